//! Finds the rate, keeps it, and makes way where others send.
//!
//! ```text
//!   START ──▶ CRUISE ──due──▶ PROBING ──▶ CRUISE
//!               │ a queue stands
//!               ▼
//!            DRAINING ──▶ SETTLING ──gone──▶ CRUISE at what the link takes
//!                             │ went down, but stays    somebody else keeps it ──▶ COMPETING
//!                             └ did not change          the way is longer now ──▶ CRUISE
//! ```
//!
//! Everything is decided on answered POLLs ([`samples`]): what was sent, what arrived, and how
//! long it was under way in the forward direction. Loss alone slows nothing, and the way back
//! plays no part. The derivation is in `docs/spec/steady.md`.

mod company;
mod interface;
mod law;
mod probe;
mod queue;
mod regain;
mod samples;
mod start;

use super::{PollAnswered, PollSent};
use crate::config::SessionConfig;
use core::ops::Range;
use law::{Company, Law};
use probe::{Found, Probe, Schedule};
use queue::{Drain, Then};
use regain::{COLLAPSE, Fall};
use samples::{Sample, Samples, Window, as_micros, micros, mul};
use start::{Ramp, Train};
use units::{BitRate, Instant, Span};

/// Delays above the least that are never taken for a queue.
const LEAST_QUEUE: Span = Span::from_millis(25);
/// Readers may stand still for so long, when others have their processors; what they read then is
/// late and no queue.
const STALL: Span = Span::from_millis(60);
/// Full packets whose time on the line is never taken for a queue.
const LEAST_PACKETS: u64 = 3;
/// Never slower than this.
const LEAST_BPS: u64 = 1_000;
/// The longest that a delay is not taken for a queue after one that did not go away.
const LONGEST_HOLD: Span = Span::from_secs(60);
/// Where delays differ by more than this many microseconds, a train shows little.
const UNSURE: i64 = 1_000;
/// Answers in a row, at least, that must show a queue.
const ENOUGH: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Phase {
    Train(Train),
    Ramp(Ramp),
    Cruise,
    Probing(Probe),
    Draining(Drain),
    /// The first POLL sent since then has not been answered.
    Settling(Drain),
    /// Others send too.
    Sharing(Law),
}

/// The controller `steady`.
#[derive(Clone, Debug)]
pub(crate) struct Steady {
    /// What is configured, less the headroom.
    most: Option<u64>,
    floor: u64,
    samples: Samples,
    phase: Phase,
    /// What cruising is at, bits per second.
    base: u64,
    schedule: Schedule,
    /// What the link was last seen to take.
    link: Option<u64>,
    last_answer: Instant,
    /// Drains in a row after which a queue stayed.
    stays: u32,
    /// Until then a delay that stays is somebody's queue.
    company_until: Instant,
    /// How long no delay is taken for a queue after one that was none, and until when.
    hold: Span,
    wait_until: Instant,
    round_trip: Span,
    /// A POLL is wanted with the next packet.
    ask: bool,
    last_poll: Instant,
    /// What the way back takes POLLs at.
    poll_least: Span,
    /// And where each is to have an answer of its own.
    poll_apart: Span,
    /// POLLs go unanswered.
    quiet: bool,
    /// When an outage ended with something other than an answer; none has come since.
    resumed: Option<Instant>,
    /// Whether the rate has been seen to arrive.
    found: bool,
    /// Whether a ceiling has brought it down since.
    is_cut: bool,
    /// The best rate so far; halved each time that a train does not bring it back.
    best: u64,
    /// Whether a queue may ever have been another's.
    met: bool,
    /// Until then it is known that others share the way: it took something else at two events.
    shared_until: Instant,
    /// What the rate was before a queue showed that the way takes far less.
    fall: Option<Fall>,
    /// The train under way shows how much more the way takes; the rate is known.
    regaining: bool,
}

impl Steady {
    /// The controller of a session that is about to start.
    pub(crate) fn new(config: &SessionConfig) -> Self {
        let most = config.paced_rate().map(BitRate::as_bps);
        let known = config.initial_rate.map(BitRate::as_bps).or(most);
        let known = known.map(|rate| rate.min(most.unwrap_or(u64::MAX)));
        let (phase, base) = match known {
            None => (Phase::Train(Train::new()), LEAST_BPS),
            Some(rate) if Some(rate) == most => (Phase::Cruise, rate),
            // A train takes less time than would be lost at a rate that holds no longer.
            Some(rate) if most.is_some_and(|most| rate < most / COLLAPSE) => {
                (Phase::Train(Train::new()), LEAST_BPS)
            }
            Some(rate) => (Phase::Ramp(Ramp::new(Instant::ZERO, rate, rate)), rate),
        };
        let poll_least = config.reverse_rate.map_or(Span::ZERO, |rate| rate.time_for(2 * 80));
        Self {
            most,
            // Never above the ceiling, which the peer may set as low as it likes.
            floor: config.min_rate.map_or(LEAST_BPS, BitRate::as_bps).min(most.unwrap_or(u64::MAX)),
            samples: Samples::new(),
            phase,
            base,
            schedule: Schedule::new(),
            link: None,
            last_answer: Instant::ZERO,
            stays: 0,
            company_until: Instant::ZERO,
            hold: Span::ZERO,
            wait_until: Instant::ZERO,
            round_trip: config.initial_round_trip,
            ask: false,
            last_poll: Instant::ZERO,
            poll_least,
            // The peer's control has a part of its rate as ours has.
            poll_apart: poll_least
                * u64::from(config.gateway.control_divisor().unwrap_or(0).max(2) + 1),
            quiet: false,
            resumed: None,
            found: false,
            is_cut: false,
            best: known.unwrap_or(0),
            met: false,
            shared_until: Instant::ZERO,
            fall: None,
            regaining: false,
        }
    }

    /// The ceiling is another: a lower one holds at once, towards a higher one it feels its way.
    pub(super) fn set_most(&mut self, most: Option<BitRate>) {
        self.most = most.map(BitRate::as_bps);
        self.floor = self.floor.min(self.most());
        self.is_cut |= self.base > self.most();
        self.base = self.base.min(self.most());
    }

    /// The ceiling is `most` from now on, by the word of somebody who knows: who is at the ceiling
    /// goes with it.
    pub(super) fn grant(&mut self, most: Option<BitRate>) {
        let at_ceiling = self.base >= self.most() && matches!(self.phase, Phase::Cruise);
        self.set_most(most);
        if at_ceiling && self.most.is_some() {
            self.base = self.most();
        }
    }

    /// The rate at `now`.
    pub(super) fn pace(&self, now: Instant) -> BitRate {
        let rate = match &self.phase {
            Phase::Train(train) if train.may_send() => start::TRAIN_BPS,
            // What is sent again meanwhile is no part of it, and goes as slowly as a train each
            // round trip.
            Phase::Train(_) => start::trains_bps(self.round_trip),
            Phase::Ramp(ramp) => ramp.rate,
            Phase::Cruise | Phase::Sharing(_) => self.base,
            Phase::Probing(probe) if now < probe.until => probe.rate,
            Phase::Probing(_) => self.base,
            Phase::Draining(drain) if now < drain.until => drain.rate,
            Phase::Draining(_) | Phase::Settling(_) => self.base,
        };
        let most = self.most.unwrap_or(u64::MAX);
        BitRate::from_bps(rate.clamp(self.floor.min(most), most))
    }

    /// The rate at `now` where it is more than a guess.
    pub(super) fn known(&self, now: Instant) -> Option<BitRate> {
        match self.phase {
            Phase::Train(_) => None,
            Phase::Ramp(_) | Phase::Cruise | Phase::Probing(_) => Some(self.pace(now)),
            Phase::Draining(_) | Phase::Settling(_) | Phase::Sharing(_) => Some(self.pace(now)),
        }
    }

    /// Whether new data may leave at all.
    pub(super) fn may_send(&self) -> bool {
        match &self.phase {
            Phase::Train(train) => train.may_send(),
            Phase::Ramp(_) | Phase::Cruise | Phase::Probing(_) => true,
            Phase::Draining(_) | Phase::Settling(_) | Phase::Sharing(_) => true,
        }
    }

    /// Whether a POLL must fit beside what leaves: a train leaves at once, and a POLL that waits
    /// for a segment of its own comes behind all of it. Where the rate has collapsed that is as
    /// well: a queue that is full drops the train's packets, and what is small gets through.
    pub(super) fn keeps_room(&self) -> bool {
        self.regaining && matches!(&self.phase, Phase::Train(train) if train.may_send())
    }

    #[cfg(test)]
    pub(super) fn begin_regaining(&mut self) {
        self.regain();
    }

    /// The least and the largest distance of POLLs.
    pub(super) fn poll_range(&self) -> Range<Span> {
        let most = match &self.phase {
            // Alone a POLL is a twentieth of a packet: no more than a 64th of the rate.
            _ if self.quiet => {
                let spared = Span::from_nanos(mul(64 * 8 * 80, 1_000_000_000, self.base));
                (self.round_trip / 10).max(spared).min(self.round_trip / 2)
            }
            Phase::Ramp(ramp) => ramp.poll_every(self.last_poll, self.round_trip),
            // Something may be growing.
            Phase::Cruise if self.samples.last_queue() > self.limit() / 2 => self.round_trip / 8,
            Phase::Train(_) | Phase::Cruise | Phase::Probing(_) => Span::MAX,
            Phase::Draining(_) | Phase::Settling(_) | Phase::Sharing(_) => Span::MAX,
        };
        // The answers to a train's POLLs are not to be merged with those to later ones.
        let train = matches!(self.phase, Phase::Train(_));
        if train { self.poll_apart..most } else { self.poll_least..most }
    }

    /// Whether a POLL is to go with the data that is about to leave.
    pub(super) fn take_ask(&mut self) -> bool {
        core::mem::take(&mut self.ask)
    }

    /// What it does, in a word.
    pub(super) fn mode(&self) -> &'static str {
        match &self.phase {
            Phase::Train(_) => "train",
            Phase::Ramp(_) => "ramp",
            Phase::Cruise => "cruise",
            Phase::Probing(_) => "probing",
            Phase::Draining(_) => "draining",
            Phase::Settling(_) => "settling",
            Phase::Sharing(law) if law.company == Company::Polite => "sharing",
            Phase::Sharing(_) => "competing",
        }
    }

    /// The last delay above the least.
    pub(super) fn queue(&self) -> Option<Span> {
        self.samples.last().map(|_| micros(self.samples.last_queue()))
    }

    /// The rate that is worth remembering.
    pub(super) fn learnt(&self) -> Option<BitRate> {
        (self.found && !self.is_cut).then(|| BitRate::from_bps(self.base.max(1)))
    }

    /// The rate was seen to arrive.
    fn note_found(&mut self) {
        (self.found, self.is_cut) = (true, false);
    }

    /// A packet with data leaves after `octets` in all.
    pub(super) fn on_data(&mut self, now: Instant, octets: u64) {
        match &mut self.phase {
            Phase::Train(train) => self.ask |= train.on_data(now, octets),
            Phase::Ramp(ramp) if ramp.since == Instant::ZERO => {
                ramp.since = now;
                self.ask = true;
            }
            Phase::Probing(probe) if now >= probe.until && !probe.ended => {
                probe.ended = true;
                self.ask = true;
            }
            Phase::Draining(drain) if now >= drain.until => {
                self.phase = Phase::Settling(Drain { until: now, ..*drain });
                self.ask = true;
            }
            Phase::Ramp(ramp) => {
                // At a remembered rate early ones go whatever the timer says: some are to be
                // before a full queue.
                let every = ramp.poll_every(self.last_poll, self.round_trip).max(self.poll_least);
                let early = ramp.rate == ramp.cap && now.since(ramp.since) < self.round_trip / 8;
                self.ask |= early && now >= self.last_poll + every;
            }
            Phase::Cruise | Phase::Probing(_) => {}
            Phase::Draining(_) | Phase::Settling(_) | Phase::Sharing(_) => {}
        }
    }

    pub(super) fn on_poll(&mut self, poll: &PollSent) {
        self.last_poll = poll.now;
        self.samples.on_poll(poll);
        if let Phase::Train(train) = &mut self.phase {
            train.on_poll(poll.octets);
        }
    }

    /// POLLs have gone unanswered for too long: what was sent then shows nothing.
    pub(super) fn on_outage(&mut self, now: Instant) {
        self.quiet = true;
        match self.phase {
            // On a slow way the answer is merely late.
            Phase::Train(_) => {}
            Phase::Ramp(_) | Phase::Cruise | Phase::Sharing(_) => self.samples.restart(),
            Phase::Probing(_) | Phase::Draining(_) | Phase::Settling(_) => {
                self.samples.restart();
                self.phase = Phase::Cruise;
                self.schedule.soon(now, self.round_trip);
            }
        }
    }

    /// The peer was heard: whatever POLLs were lost, the way is there. If they go on being lost
    /// at the old rate, it takes far less than that.
    pub(super) fn on_heard(&mut self, now: Instant) {
        if core::mem::take(&mut self.quiet) {
            self.resumed = Some(now);
        } else if self.resumed.is_some_and(|at| now >= at + self.round_trip * 4) {
            self.resumed = None;
            self.look_again(now);
        }
    }

    /// Whether nothing but POLLs goes.
    pub(super) fn is_quiet(&self) -> bool {
        self.quiet
    }

    pub(super) fn on_answer(&mut self, answered: &PollAnswered) {
        let now = answered.now;
        self.round_trip = answered.min_rtt;
        self.resumed = None;
        let Some(sample) = self.samples.on_answer(answered) else { return };
        let since = core::mem::replace(&mut self.last_answer, now);
        match self.phase {
            Phase::Train(train) => self.on_train(now, train),
            Phase::Ramp(ramp) => self.on_ramp(now, ramp, &sample),
            Phase::Cruise => self.on_cruise(now),
            Phase::Probing(probe) => self.on_probe(now, &probe, &sample),
            Phase::Draining(drain) => self.on_draining(now, drain, &sample),
            Phase::Sharing(law) => self.on_sharing(now, law, now.since(since)),
            Phase::Settling(drain) => {
                if sample.sent_at >= drain.until {
                    self.settle(now, &drain);
                }
            }
        }
    }

    fn on_cruise(&mut self, now: Instant) {
        let span = self.span();
        self.samples.learn_jitter();
        self.samples.learn_errors(self.limit() / 4, span * 2);
        let Some(window) = self.samples.latest(span, ENOUGH) else { return };
        if self.has_collapsed() && self.schedule.is_due(now) {
            self.look_again(now);
            return;
        }
        self.best = self.best.max(self.base);
        // Whoever has not enough to send neither makes a queue nor finds room.
        if window.sent_bps() < self.base / 10 * 9 {
            return;
        }
        // A delay that came with a longer way hides no link that takes less.
        if now < self.wait_until && !self.is_choked(&window) {
            return;
        }
        let standing = self.samples.standing(span, ENOUGH).unwrap_or(0);
        if self.is_queue(&window) || self.is_long() {
            self.uninvited(now, &window);
        } else if standing < self.limit() / 2
            && self.schedule.is_due(now)
            && self.base < self.most()
        {
            self.probe(now);
        }
    }

    /// A little more for a round trip.
    pub(super) fn probe(&mut self, now: Instant) {
        let time = self.round_trip.max(micros(self.samples.jitter() * 32));
        let (errors, base, most) = (self.samples.error_ppm(), self.base, self.most());
        let probe = self.schedule.begin(now, base, most, self.round_trip, time, errors);
        self.phase = Phase::Probing(probe);
        self.ask = true;
    }

    /// Two samples are enough where less passes than is sent, beyond doubt.
    fn is_choked(&self, window: &Window) -> bool {
        window.passed_bps() < window.sent_bps() / 8 * 7
            && self.samples.standing(STALL, 2).unwrap_or(0) > self.limit()
    }

    fn on_probe(&mut self, now: Instant, probe: &Probe, sample: &Sample) {
        if let Some(window) = self.samples.latest(self.span(), 2)
            && self.is_choked(&window)
        {
            self.schedule.found(now, Found::Loss, self.round_trip);
            let link = window.link_bps(self.samples.error_ppm());
            self.drain(now, link, Then::Cruise);
            return;
        }
        if sample.sent_at <= probe.from {
            self.samples.learn_jitter();
            self.samples.learn_errors(self.limit() / 4, self.span() * 2);
        }
        if sample.sent_at < probe.until {
            return;
        }
        self.phase = Phase::Cruise;
        let Some(seen) = probe.seen(&self.samples) else {
            // There was not enough to send.
            self.schedule.soon(now, self.round_trip);
            return;
        };
        let found = probe.judge(&seen, self.samples.error_ppm());
        self.schedule.found(now, found, self.round_trip);
        if found != Found::Room && self.fell_just_now(now) {
            self.schedule.soon(now, self.round_trip);
        }
        match found {
            Found::Room => {
                self.note_found();
                if self.may_regain(now, probe) {
                    self.base = seen.1;
                    self.regain();
                } else if now < self.shared_until {
                    self.join(now);
                } else {
                    self.base = seen.1;
                }
            }
            Found::Queue(link) => {
                let waits = self.samples.queue(sample);
                // What a train showed may be wrong by more than chance.
                let least = if self.link.is_some() { 15 } else { 12 };
                let link = link.max(probe.base / 16 * least);
                self.base = self.below(link);
                self.link = Some(link);
                self.note_found();
                if waits > as_micros(LEAST_QUEUE) / 3 {
                    self.drain(now, link, Then::Own);
                }
            }
            Found::Loss => {}
        }
    }

    /// Microseconds above the least delay that are a queue.
    fn limit(&self) -> i64 {
        let packets = Span::from_nanos(mul(LEAST_PACKETS * 12_000, 1_000_000_000, self.base));
        let least = as_micros((self.round_trip / 8).max(LEAST_QUEUE).max(packets));
        least.max(self.samples.jitter() * 4)
    }

    /// The time that tells a rate: a third of a round trip, or some packets, and no stall.
    fn span(&self) -> Span {
        let packets = Span::from_nanos(mul(16 * 12_000, 1_000_000_000, self.base));
        (self.round_trip / 3).max(packets.min(self.round_trip * 8)).max(STALL)
    }

    fn most(&self) -> u64 {
        self.most.unwrap_or(u64::MAX)
    }

    /// A little less than what the link takes, so that a queue cannot grow: where others add their
    /// errors to ours, twice as much.
    fn below(&self, link: u64) -> u64 {
        link - if self.met { link / 128 } else { link / 256 }
    }
}

#[cfg(test)]
mod tests;
