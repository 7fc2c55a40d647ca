//! Estimates the bottleneck rate, follows it, and backs off for competing traffic.
//!
//! ```text
//!   estimator     per POLL: q = delay − base delay, send, service and delivery rate, p_err, jitter
//!                 C = service rate, or delivery rate ÷ (1 − p_err) if the queue overflows
//!   threshold     Q = max(min_rtt / 8, 25 ms, 3 × 1500 octets ÷ R, 4 × jitter)
//!   law           R ≤ C − C/256 (C − C/128 with cross traffic); with cross traffic, CUBIC
//!
//!   TRAIN ──▶ RAMP ──▶ CRUISE ──due──▶ PROBING ──▶ CRUISE
//!                        │ q > Q
//!                        ▼
//!                     DRAINING ──▶ SETTLING ── q drained ───▶ CRUISE at C, or SHARING
//!                                      │ q varies             cross traffic ──▶ COMPETING
//!                                      └ q is constant        new base delay ──▶ CRUISE
//! ```
//!
//! | state | known on entry | exit |
//! |---|---|---|
//! | TRAIN, RAMP ([`startup`]) | nothing, or a cached rate | the rate is confirmed, or a queue |
//! | CRUISE ([`cruise`]) | R, confirmed or as before | a probe is due; a standing queue |
//! | PROBING ([`probe`]) | R, p_err | the first POLL sent after one RTT is answered |
//! | DRAINING, SETTLING ([`drain`]) | C, q, the rate before | q is drained, constant, or varies |
//! | SHARING, COMPETING ([`sharing`]) | that there is cross traffic, and of which kind | equal C three times; no more queue |
//!
//! All decisions are based on answered POLLs ([`estimator`]). Loss alone does not reduce the rate,
//! and the reverse path is not involved. Specification and derivation: `docs/spec/steady.md`
//! (XSTP-14), with the same symbols.

mod cruise;
mod cubic;
mod drain;
mod estimator;
mod padding;
mod probe;
mod rate_recovery;
mod sharing;
mod startup;

use crate::config::SessionConfig;
use crate::congestion::controller::{CongestionController, PollAnswered, PollSent};
use core::ops::Range;
use cubic::CubicCurve;
use drain::Drain;
use estimator::{PathEstimator, SampleInterval, as_micros, micros, mul, time_for_packets};
use padding::Padding;
use probe::{Probe, ProbeSchedule};
use rate_recovery::{COLLAPSE, RateDrop};
use startup::{Ramp, Train};
use units::{BitRate, Instant, Span};

/// Minimum of the queue-detection threshold.
const MIN_THRESHOLD: Span = Span::from_millis(25);
/// Full packets whose serialization delay is below the threshold.
const MIN_THRESHOLD_PACKETS: u64 = 3;
/// Minimum interval for a rate: a receiver may not be scheduled for this time, and then reads late.
const MIN_RATE_SPAN: Span = Span::from_millis(60);
/// Minimum rate, bits per second.
const MIN_RATE_BPS: u64 = 1_000;
/// Maximum time for which no queue is detected after an increase of the path delay.
const MAX_HOLDOFF: Span = Span::from_secs(60);
/// Jitter above which a train is imprecise, in microseconds.
const LOW_JITTER_US: i64 = 1_000;
/// Minimum number of consecutive samples that show a queue.
const MIN_SAMPLES: usize = 3;
/// Octets of a packet with a POLL or STAT.
const CONTROL_OCTETS: u64 = 80;
/// A session without data for longer than these octets take at the rate of a ramp is idle.
const MIN_IDLE_OCTETS: u64 = 3_000;

#[derive(Clone, Copy, Debug)]
enum State {
    Train(Train),
    Ramp(Ramp),
    Cruise,
    Probing(Probe),
    Draining(Drain),
    /// No POLL that was sent since the end of the drain is answered.
    Settling(Drain),
    /// SHARING or COMPETING.
    Sharing(CubicCurve),
}

/// The controller `steady`.
#[derive(Clone, Debug)]
pub(crate) struct Steady {
    path: PathEstimator,
    state: State,
    /// Configured or granted rate, less the headroom.
    max_rate_bps: Option<u64>,
    min_rate_bps: u64,
    /// R: the rate of CRUISE.
    base_rate_bps: u64,
    /// C when it was last measured.
    bottleneck_bps: Option<u64>,
    /// Maximum of R; halved each time that a train does not restore it.
    best_rate_bps: u64,
    /// R was confirmed by deliveries.
    rate_confirmed: bool,
    /// The rate cap has reduced R since.
    capped_since_confirmed: bool,
    min_rtt: Span,
    probes: ProbeSchedule,
    /// Consecutive drains after which a queue remained.
    undrained_queues: u32,
    /// Time for which no queue is detected after an increase of the path delay, and its end.
    queue_holdoff: Span,
    queue_ignored_until: Instant,
    /// Another flow may have caused a drained queue: R is C/128 below C instead of C/256.
    cross_traffic_seen: bool,
    /// Time until which a constant delay is taken for the queue of another sender.
    competing_until: Instant,
    /// Time until which other senders are assumed to share the bottleneck: C differed at two events.
    sharing_until: Instant,
    /// The last drop of R.
    rate_drop: Option<RateDrop>,
    /// The current train was started at a known rate, after a probe that found capacity.
    recovering_rate: bool,
    padding: Padding,
    /// A POLL is sent with the next packet.
    poll_requested: bool,
    /// Times of the last POLL and of the last STAT that gave a sample.
    last_poll: Instant,
    last_stat: Instant,
    /// Minimum interval between POLLs that the reverse path can carry: the serialization time of
    /// two control packets, or zero if its rate is unknown.
    min_poll_interval: Span,
    /// Minimum interval between the POLLs of a train, so that each is answered by a separate STAT.
    train_poll_interval: Span,
    /// POLLs are unanswered for longer than the outage timeout.
    in_blackout: bool,
    /// Time at which a blackout ended with a segment other than a STAT; no STAT followed.
    blackout_ended_at: Option<Instant>,
}

impl Steady {
    /// The controller of a session that starts.
    pub(crate) fn new(config: &SessionConfig) -> Self {
        let cap = config.paced_rate().map(BitRate::as_bps);
        let known = config.initial_rate.map(BitRate::as_bps).or(cap);
        let known = known.map(|rate| rate.min(cap.unwrap_or(u64::MAX)));
        let (state, base_rate_bps) = match known {
            Some(rate) if Some(rate) == cap => (State::Cruise, rate),
            // Far below the rate cap a train takes less time than the cached rate would cost.
            Some(rate) if cap.is_none_or(|cap| rate >= cap / COLLAPSE) => {
                (State::Ramp(Ramp::new(Instant::ZERO, rate, rate)), rate)
            }
            Some(_) | None => (State::Train(Train::new()), MIN_RATE_BPS),
        };
        let control_time = |rate: BitRate| rate.time_for(2 * CONTROL_OCTETS);
        let min_poll_interval = config.reverse_rate.map_or(Span::ZERO, control_time);
        // The control traffic of the peer is bounded as the own one.
        let divisor = config.gateway.control_divisor().unwrap_or(0).max(2);
        let min_rate = config.min_rate.map_or(MIN_RATE_BPS, BitRate::as_bps);
        Self {
            path: PathEstimator::default(),
            state,
            max_rate_bps: cap,
            // At most the rate cap, which the peer may set to any value.
            min_rate_bps: min_rate.min(cap.unwrap_or(u64::MAX)),
            base_rate_bps,
            bottleneck_bps: None,
            best_rate_bps: known.unwrap_or(0),
            rate_confirmed: false,
            capped_since_confirmed: false,
            min_rtt: config.initial_rtt,
            probes: ProbeSchedule::new(),
            undrained_queues: 0,
            queue_holdoff: Span::ZERO,
            queue_ignored_until: Instant::ZERO,
            cross_traffic_seen: false,
            competing_until: Instant::ZERO,
            sharing_until: Instant::ZERO,
            rate_drop: None,
            recovering_rate: false,
            padding: Padding::new(known.is_none()),
            poll_requested: false,
            last_poll: Instant::ZERO,
            last_stat: Instant::ZERO,
            min_poll_interval,
            train_poll_interval: min_poll_interval * u64::from(divisor + 1),
            in_blackout: false,
            blackout_ended_at: None,
        }
    }

    /// R was confirmed by deliveries.
    fn confirm_rate(&mut self) {
        (self.rate_confirmed, self.capped_since_confirmed) = (true, false);
    }

    /// Whether the service rate is far below the send rate and two samples are above the
    /// threshold.
    fn is_choked(&self, recent: &SampleInterval) -> bool {
        recent.service_rate_bps() < recent.send_rate_bps() / 8 * 7
            && self.path.standing_queue_us(MIN_RATE_SPAN, 2).unwrap_or(0)
                > self.queue_threshold_us()
    }

    /// Whether less than 9/10 of R was sent.
    fn is_app_limited(&self, recent: &SampleInterval) -> bool {
        recent.send_rate_bps() < self.base_rate_bps / 10 * 9
    }

    /// Queue-detection threshold Q, microseconds.
    fn queue_threshold_us(&self) -> i64 {
        let packets = time_for_packets(MIN_THRESHOLD_PACKETS, self.base_rate_bps);
        let min = (self.min_rtt / 8).max(MIN_THRESHOLD).max(packets);
        as_micros(min).max(self.path.jitter_us() * 4)
    }

    /// Minimum interval for a rate: a third of an RTT, or 16 packets in at most 8 RTTs, and at
    /// least 60 ms.
    fn rate_span(&self) -> Span {
        let packets = time_for_packets(16, self.base_rate_bps);
        (self.min_rtt / 3).max(packets.min(self.min_rtt * 8)).max(MIN_RATE_SPAN)
    }

    /// The rate cap, or the maximum value.
    fn max_rate(&self) -> u64 {
        self.max_rate_bps.unwrap_or(u64::MAX)
    }

    /// `rate_bps` between the minimum rate and the rate cap.
    fn bounded(&self, rate_bps: u64) -> BitRate {
        let max_rate = self.max_rate();
        BitRate::from_bps(rate_bps.clamp(self.min_rate_bps.min(max_rate), max_rate))
    }

    /// Rate slightly below C, at which a queue drains; further below it with cross traffic, whose
    /// errors add to the own ones.
    fn below(&self, bottleneck_bps: u64) -> u64 {
        let divisor = if self.cross_traffic_seen { 128 } else { 256 };
        bottleneck_bps - bottleneck_bps / divisor
    }

    /// Maximum interval between POLLs.
    fn max_poll_interval(&self) -> Span {
        match &self.state {
            // A POLL without data takes at most 1/64 of the rate.
            _ if self.in_blackout => {
                let spared = self.blackout_poll_interval();
                (self.min_rtt / 10).max(spared).min(self.min_rtt / 2)
            }
            State::Ramp(ramp) => ramp.poll_interval(self.last_poll, self.min_rtt),
            // A queue may be growing.
            State::Cruise if self.path.last_queue_us() > self.queue_threshold_us() / 2 => {
                self.min_rtt / 8
            }
            State::Train(_) | State::Cruise | State::Probing(_) => Span::MAX,
            State::Draining(_) | State::Settling(_) | State::Sharing(_) => Span::MAX,
        }
    }

    /// Time in which a control packet takes 1/64 of the rate.
    fn blackout_poll_interval(&self) -> Span {
        let bits = 64 * 8 * CONTROL_OCTETS;
        Span::from_nanos(mul(bits, 1_000_000_000, self.base_rate_bps))
    }

    /// A packet is sent after `octets` in total. Returns whether a POLL is sent with it.
    fn on_packet(&mut self, now: Instant, octets: u64) -> bool {
        match &mut self.state {
            State::Train(train) => self.poll_requested |= train.on_data(now, octets),
            State::Ramp(ramp) if ramp.since == Instant::ZERO => {
                ramp.since = now;
                self.poll_requested = true;
            }
            State::Ramp(ramp) => {
                // At a cached rate some POLLs are sent before the queue can be full.
                let interval = ramp.poll_interval(self.last_poll, self.min_rtt);
                let interval = interval.max(self.min_poll_interval);
                let is_early = ramp.rate == ramp.cap && now.since(ramp.since) < self.min_rtt / 8;
                self.poll_requested |= is_early && now >= self.last_poll + interval;
            }
            State::Probing(probe) if now >= probe.until && !probe.ended => {
                probe.ended = true;
                self.poll_requested = true;
            }
            State::Draining(drain) if now >= drain.until => {
                let drain = *drain;
                self.enter_settling(now, drain);
            }
            State::Cruise | State::Probing(_) => {}
            State::Draining(_) | State::Settling(_) | State::Sharing(_) => {}
        }
        core::mem::take(&mut self.poll_requested)
    }
}

impl CongestionController for Steady {
    fn mode(&self, _: Instant) -> &'static str {
        match &self.state {
            State::Train(_) => "train",
            State::Ramp(_) => "ramp",
            State::Cruise => "cruise",
            State::Probing(_) => "probing",
            State::Draining(_) => "draining",
            State::Settling(_) => "settling",
            State::Sharing(curve) if curve.is_loss_based() => "competing",
            State::Sharing(_) => "sharing",
        }
    }

    fn pace(&self, now: Instant) -> Option<BitRate> {
        let rate = match &self.state {
            State::Train(train) if train.may_send() => startup::TRAIN_BPS,
            // Retransmissions after the train are not part of it: one train per RTT.
            State::Train(_) => startup::trains_bps(self.min_rtt),
            State::Ramp(ramp) => ramp.rate,
            State::Probing(probe) if now < probe.until => probe.rate,
            State::Draining(drain) if now < drain.until => drain.rate,
            State::Cruise | State::Sharing(_) | State::Probing(_) => self.base_rate_bps,
            State::Draining(_) | State::Settling(_) => self.base_rate_bps,
        };
        Some(self.bounded(rate))
    }

    fn estimated_pace(&self, now: Instant) -> Option<BitRate> {
        match &self.state {
            State::Train(_) => None,
            State::Probing(_) => Some(self.bounded(self.base_rate_bps)),
            State::Ramp(_) | State::Cruise => self.pace(now),
            State::Draining(_) | State::Settling(_) | State::Sharing(_) => self.pace(now),
        }
    }

    fn confirmed_rate(&self) -> Option<BitRate> {
        let is_current = self.rate_confirmed && !self.capped_since_confirmed;
        is_current.then(|| BitRate::from_bps(self.base_rate_bps.max(1)))
    }

    fn queuing_delay(&self) -> Option<Span> {
        self.path.last().map(|_| micros(self.path.last_queue_us()))
    }

    fn jitter(&self) -> Option<Span> {
        self.path.last().map(|_| micros(self.path.jitter_us()))
    }

    fn error_ppm(&self) -> Option<u64> {
        self.path.measured_error_ppm()
    }

    fn may_send(&self) -> bool {
        !matches!(&self.state, State::Train(train) if !train.may_send() && !train.is_padding())
    }

    fn is_poll_only(&self) -> bool {
        self.in_blackout
    }

    /// A train is sent back to back, and a POLL in a segment of its own would follow all of it. A
    /// train at a collapsed rate needs no space: a full queue drops its packets, and a small
    /// segment passes.
    fn reserves_poll_space(&self) -> bool {
        self.recovering_rate && matches!(&self.state, State::Train(train) if train.may_send())
    }

    fn padding(&self) -> Option<usize> {
        if let State::Train(train) = &self.state { self.padding.octets(train) } else { None }
    }

    fn poll_range(&self) -> Range<Span> {
        // The STATs for the POLLs of a train must not be merged with later ones.
        let is_train = matches!(self.state, State::Train(_));
        let min_interval = if is_train { self.train_poll_interval } else { self.min_poll_interval };
        min_interval..self.max_poll_interval()
    }

    /// A lower rate cap applies at once; towards a higher one the rate is probed.
    fn set_max_rate(&mut self, rate: Option<BitRate>) {
        self.max_rate_bps = rate.map(BitRate::as_bps);
        let max_rate = self.max_rate();
        self.min_rate_bps = self.min_rate_bps.min(max_rate);
        self.capped_since_confirmed |= self.base_rate_bps > max_rate;
        self.base_rate_bps = self.base_rate_bps.min(max_rate);
    }

    /// Sets the rate cap as granted by the peer. A controller that cruises at the old cap continues
    /// at the new one without probing.
    fn apply_grant(&mut self, rate: Option<BitRate>) {
        let at_cap = self.base_rate_bps >= self.max_rate() && matches!(self.state, State::Cruise);
        self.set_max_rate(rate);
        if at_cap && self.max_rate_bps.is_some() {
            self.base_rate_bps = self.max_rate();
        }
    }

    fn on_poll(&mut self, poll: &PollSent) {
        self.last_poll = poll.now;
        self.path.on_poll(poll);
        if let State::Train(train) = &mut self.state {
            train.on_poll(poll.octets);
        }
    }

    fn on_poll_answered(&mut self, answered: &PollAnswered) {
        let now = answered.now;
        self.min_rtt = answered.min_rtt;
        self.blackout_ended_at = None;
        let Some(sample) = self.path.on_poll_answered(answered) else { return };
        let last_stat = core::mem::replace(&mut self.last_stat, now);
        match self.state {
            State::Train(train) => self.on_train(now, train),
            State::Ramp(ramp) => self.on_ramp(now, ramp, &sample),
            State::Cruise => self.on_cruise(now),
            State::Probing(probe) => self.on_probe(now, &probe, &sample),
            State::Draining(drain) => self.on_draining(now, drain, &sample),
            State::Settling(drain) if sample.sent_at >= drain.until => {
                self.on_settling(now, &drain);
            }
            State::Settling(_) => {}
            State::Sharing(curve) => self.on_sharing(now, curve, now.since(last_stat)),
        }
    }

    fn on_data(&mut self, now: Instant, octets: u64) -> bool {
        self.end_padding(now);
        self.on_packet(now, octets)
    }

    fn on_padding(&mut self, now: Instant, octets: u64) -> bool {
        if self.padding.on_sent(now, octets) {
            return true;
        }
        if let (State::Train(train), Padding::Enabled(_)) = (&mut self.state, &self.padding) {
            train.on_padding();
        }
        self.on_packet(now, octets)
    }

    /// The intervals of a ramp do not contain idle time. At a low rate packets are acknowledged before
    /// the next one is due, which is no idle time.
    fn on_restart(&mut self, now: Instant, idle: Span) -> bool {
        if let State::Ramp(ramp) = &mut self.state
            && idle > BitRate::from_bps(ramp.rate).time_for(MIN_IDLE_OCTETS)
        {
            ramp.since = now;
            self.poll_requested = true;
        }
        false
    }

    fn on_outage(&mut self, now: Instant) {
        self.in_blackout = true;
        match self.state {
            // On a low-rate path the STAT is only late.
            State::Train(_) => {}
            State::Ramp(_) | State::Cruise | State::Sharing(_) => self.path.clear_samples(),
            State::Probing(_) | State::Draining(_) | State::Settling(_) => {
                self.path.clear_samples();
                self.state = State::Cruise;
                self.probes.reset(now, self.min_rtt);
            }
        }
    }

    /// The path is up. If POLLs at the old rate are still lost after four RTTs, the bottleneck rate
    /// is far below it.
    fn on_peer_activity(&mut self, now: Instant) {
        if core::mem::take(&mut self.in_blackout) {
            self.blackout_ended_at = Some(now);
        } else if self.blackout_ended_at.is_some_and(|at| now >= at + self.min_rtt * 4) {
            self.blackout_ended_at = None;
            self.restart_with_train(now);
        }
    }

    fn on_mtu_black_hole(&mut self, now: Instant) {
        self.restart_after_mtu_losses(now);
    }

    #[cfg(test)]
    fn start_recovery_train(&mut self) {
        self.recover_with_train();
    }
}

#[cfg(test)]
mod tests;
