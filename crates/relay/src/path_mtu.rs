//! Path MTU discovery by probing (DPLPMTUD, RFC 8899).
//!
//! ```text
//!            ┌──────── acknowledged: next larger size ────────┐
//!            ▼                                                 │
//!   begin ─ Searching ── no size left ──▶ SearchComplete ── 10 minutes ──▶ Searching
//!            ▲                                 │
//!            │          full packets unacknowledged, ICMP message, path change
//!            │                                 ▼
//!            └──── size does not pass ──── Validating ── acknowledged ──▶ previous state
//! ```
//!
//! Data is sent at the base PLPMTU, which nearly every path carries, until a larger probe was
//! acknowledged. A size is given up only if random loss is ruled out (see [`Trial`]); an ICMP
//! message that the kernel has received is a hint for the next size. Probes take at most 1/20 of
//! the rate of each direction, and are never larger than the octets sent in one second.
//!
//! Sizes are those of IP packets, in bytes.

use crate::config::MIN_MTU;
use association::Sealed;
use std::collections::VecDeque;
use trial::{LossEstimate, Trial, TrialResult};
use units::{BitRate, Instant, Span};

mod message;
mod trial;

/// The base PLPMTU (BASE_PLPMTU, RFC 8899, section 5.1.2).
const BASE: usize = 1200;
/// Common MTUs of networks and tunnels.
const COMMON: [usize; 22] = [
    1280, 1300, 1340, 1360, 1380, 1400, 1412, 1420, 1428, 1440, 1450, 1460, 1472, 1480, 1488, 1492,
    1496, 1500, 2002, 4352, 4470, 8166,
];
/// A search ends when the interval between the largest size that passes and the smallest that does
/// not is below this.
const MIN_STEP: usize = 8;
/// Interval of a new search for a larger size (PMTU_RAISE_TIMER, RFC 8899, section 5.1.1).
const RAISE_INTERVAL: Span = Span::from_secs(600);
/// Divisor of the rate that gives the maximum rate of probes.
const PROBE_DIVISOR: u64 = 20;
/// Maximum serialization time of a packet.
const MAX_SERIALIZATION: Span = Span::from_secs(1);
/// Number of recent Probes whose ProbeAcks are accepted.
const MAX_OUTSTANDING: usize = 64;
/// Maximum number of queued ProbeAcks; further Probes are not answered.
const MAX_ANSWERS: usize = 4;

/// Properties of the path to the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    /// The measured or assumed RTT.
    pub(crate) round_trip: Span,
    /// The rate towards the peer; `None` stops probing.
    pub(crate) rate: Option<BitRate>,
    /// The reverse rate, if it was announced.
    pub(crate) back: Option<BitRate>,
    /// Octets around a payload: IP, UDP and association.
    pub(crate) overhead: usize,
}

/// A path MTU message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outgoing {
    /// A Probe that makes an IP packet of `size` bytes.
    Probe { number: u32, size: usize },
    /// A ProbeAck for a Probe that arrived with `size` bytes of UDP payload.
    Answer { number: u32, size: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// There is no session, or probing is disabled (DISABLED in RFC 8899).
    Disabled,
    /// Searches for a larger size.
    Searching,
    /// The search is complete; it covered sizes up to `ceiling`.
    SearchComplete { until: Instant, ceiling: usize },
    /// Validates the present size after an event that indicates an MTU black hole.
    Validating,
}

/// Path MTU discovery of one side. Each direction of a path is probed by its sender.
#[derive(Debug)]
pub(crate) struct PathMtu {
    /// The configured maximum and the peer's limit (MAX_PLPMTU).
    most: usize,
    current: usize,
    phase: Phase,
    /// The smallest size that is known not to pass; `most + 1` if there is none.
    too_large: usize,
    /// The path MTU that the kernel reports.
    hint: Option<usize>,
    trial: Option<Trial>,
    luck: LossEstimate,
    numbers: u32,
    sent: VecDeque<(u32, usize)>,
    outbox: VecDeque<Outgoing>,
    /// Earliest time of the next probe within the rate limit of probes.
    from: Instant,
    answers: VecDeque<Outgoing>,
    /// Since when full packets are sent of which none was acknowledged.
    unanswered: Option<Instant>,
    /// Maximum duration of that before the size is validated.
    unanswered_limit: Span,
    /// Set when data was lost for its size, until it is reported.
    black_hole: bool,
    /// The highest rate so far. If large packets do not pass, the controller's rate collapses, and
    /// the validation must not be delayed by it.
    fastest: Option<BitRate>,
    /// The largest useful size at that rate; 0 while the rate is unknown.
    ceiling: usize,
}

impl PathMtu {
    /// Creates a discovery for packets of at most `most` bytes, all of which are used until
    /// [`begin`](Self::begin).
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            current: most,
            phase: Phase::Disabled,
            too_large: most + 1,
            hint: None,
            trial: None,
            luck: LossEstimate::default(),
            numbers: 0,
            sent: VecDeque::new(),
            outbox: VecDeque::new(),
            from: Instant::ZERO,
            answers: VecDeque::new(),
            unanswered: None,
            unanswered_limit: Span::from_secs(5),
            black_hole: false,
            fastest: None,
            ceiling: 0,
        }
    }

    /// Returns the size to use.
    pub(crate) fn current(&self) -> usize {
        self.current
    }

    /// Returns whether the search is complete.
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.phase, Phase::SearchComplete { .. })
    }

    /// Starts the search when a session with a peer that accepts packets of `most` bytes is open.
    pub(crate) fn begin(&mut self, most: usize) {
        *self = Self { hint: self.hint, numbers: self.numbers, ..Self::new(most) };
        self.current = BASE.min(most);
        self.phase = Phase::Searching;
    }

    /// Sets the size to use without probing.
    pub(crate) fn force(&mut self, mtu: usize) {
        self.current = mtu.min(self.most);
    }

    /// Stops at the end of the session.
    pub(crate) fn stop(&mut self) {
        self.phase = Phase::Disabled;
        self.trial = None;
        self.unanswered = None;
        self.outbox.clear();
        self.answers.clear();
    }

    /// Returns whether data was lost for its size since the last call.
    pub(crate) fn take_black_hole(&mut self) -> bool {
        core::mem::take(&mut self.black_hole)
    }

    /// Handles the path MTU that the kernel reports, which may be too high or too low.
    pub(crate) fn set_hint(&mut self, mtu: usize) {
        let before = self.hint.replace(mtu);
        if before == Some(mtu) {
            return;
        }
        if mtu < self.current {
            self.validate();
        } else if matches!(self.phase, Phase::SearchComplete { .. }) && mtu > self.current {
            self.search();
        }
    }

    /// Handles an error of this host's own link for a packet of `size` bytes (EMSGSIZE).
    pub(crate) fn on_emsgsize(&mut self, size: usize) {
        if self.phase == Phase::Disabled {
            return;
        }
        if size <= self.current {
            self.fall_below(size);
        } else if size < self.too_large {
            self.too_large = size;
            self.trial = None;
        }
    }

    /// Validates the size after a possible change of the path.
    pub(crate) fn on_path_change(&mut self) {
        self.too_large = self.most + 1;
        self.validate();
    }

    /// Records the transmission of a packet of data.
    pub(crate) fn data_sent(&mut self, now: Instant, size: usize) {
        if self.is_full(size) {
            self.unanswered.get_or_insert(now);
        }
    }

    /// Records the acknowledgment of a packet of data.
    pub(crate) fn data_acknowledged(&mut self, size: usize) {
        if self.is_full(size) {
            self.unanswered = None;
        }
    }

    fn is_full(&self, size: usize) -> bool {
        self.phase != Phase::Disabled && size * 16 >= self.current * 15
    }

    /// Handles a message of the peer; `arrived` is the UDP payload of its datagram in bytes.
    /// Returns false if it is malformed.
    pub(crate) fn handle(
        &mut self,
        now: Instant,
        kind: Sealed,
        payload: &[u8],
        arrived: usize,
    ) -> bool {
        match kind {
            Sealed::Probe => {
                let Some(number) = message::probe_number(payload) else { return false };
                if self.answers.len() < MAX_ANSWERS {
                    self.answers.push_back(Outgoing::Answer { number, size: arrived });
                }
                true
            }
            Sealed::ProbeAck => match message::answer(payload) {
                Some((number, _)) => {
                    self.answered(now, number);
                    true
                }
                None => false,
            },
            Sealed::Data => false,
        }
    }

    fn answered(&mut self, now: Instant, number: u32) {
        let asked = self.sent.iter().find(|(sent, _)| *sent == number);
        let Some(&(_, size)) = asked else { return };
        let passes = self.trial.as_mut().is_some_and(|trial| trial.answered(now, number));
        if self.phase == Phase::Disabled {
            return;
        }
        // A late ProbeAck is valid also after the size was given up.
        if size > self.current && size <= self.most {
            self.current = size;
            self.unanswered = None;
            self.too_large = self.too_large.max(size + 1);
            if self.trial.is_some_and(|trial| trial.size <= size) {
                self.trial = None;
            }
        }
        if passes {
            self.trial = None;
            if self.phase == Phase::Validating {
                self.unanswered = None;
                self.phase = Phase::Searching;
            }
        }
    }

    /// Processes what is due by `now` and returns the next message to send.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
        conditions: &Conditions,
    ) -> Option<Outgoing> {
        if let Some(answer) = self.answers.pop_front() {
            return Some(answer);
        }
        self.advance(now, conditions);
        self.outbox.pop_front()
    }

    /// Writes `outgoing` to `payload`, whose length is that of [`Self::room`].
    pub(crate) fn write(outgoing: Outgoing, payload: &mut [u8]) -> Sealed {
        match outgoing {
            Outgoing::Probe { number, .. } => {
                message::write_probe(number, payload);
                Sealed::Probe
            }
            Outgoing::Answer { number, size } => {
                message::write_answer(number, size, payload);
                Sealed::ProbeAck
            }
        }
    }

    /// Returns the octets of payload of `outgoing`, which has `overhead` octets around it.
    pub(crate) fn room(outgoing: Outgoing, overhead: usize) -> usize {
        match outgoing {
            Outgoing::Probe { size, .. } => size.saturating_sub(overhead).max(message::ANSWER),
            Outgoing::Answer { .. } => message::ANSWER,
        }
    }

    /// Returns when [`poll_transmit`](Self::poll_transmit) has something to do, unless the rate has
    /// to become known first.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        if !self.answers.is_empty() || !self.outbox.is_empty() {
            return Some(Instant::ZERO);
        }
        let phase = match self.phase {
            _ if self.ceiling == 0 => return None,
            Phase::Disabled => return None,
            Phase::SearchComplete { until, .. } => Some(until),
            Phase::Searching | Phase::Validating => None,
        };
        let trial = self.trial.as_ref().map(Trial::due);
        let doubts = self.phase != Phase::Validating && self.current > MIN_MTU;
        let validate =
            self.unanswered.filter(|_| doubts).map(|since| since + self.unanswered_limit);
        phase.into_iter().chain(trial).chain(validate).min()
    }

    fn advance(&mut self, now: Instant, conditions: &Conditions) {
        self.fastest = self.fastest.max(conditions.rate);
        let conditions = &Conditions { rate: self.fastest, ..*conditions };
        self.ceiling = ceiling(conditions, self.most);
        if self.phase == Phase::Disabled || self.ceiling == 0 {
            return;
        }
        self.unanswered_limit = (wait(conditions) * 2).max(Span::from_secs(2));
        if self.unanswered.is_some_and(|since| now.since(since) >= self.unanswered_limit) {
            self.validate();
        }
        if let Some(trial) = &mut self.trial {
            let hinted = self.hint.is_some_and(|hint| hint < trial.size);
            let size = trial.size;
            match trial.evaluate(now, &mut self.luck, hinted) {
                TrialResult::Open => {}
                TrialResult::TooLarge if self.phase == Phase::Validating => self.fall_below(size),
                TrialResult::TooLarge => {
                    self.too_large = self.too_large.min(size);
                    self.trial = None;
                }
            }
        }
        if let Phase::SearchComplete { until, ceiling } = self.phase
            && (now >= until || self.ceiling > ceiling)
        {
            self.search();
        }
        if self.phase == Phase::Searching && self.trial.is_none() {
            match self.candidate() {
                Some(size) => self.trial = Some(Trial::new(size, self.from)),
                None => self.settle(now),
            }
        }
        self.start_round(now, conditions);
    }

    /// Returns the next size to probe, between the largest that passes and the smallest that does
    /// not.
    fn candidate(&self) -> Option<usize> {
        let (low, high) = (self.current, self.ceiling.min(self.too_large - 1));
        if high <= low {
            return None;
        }
        if let Some(hint) = self.hint.filter(|hint| (low + 1..=high).contains(hint)) {
            return Some(hint);
        }
        if high < self.too_large - 1 || self.too_large > self.most {
            // No probe of the largest size has failed.
            return Some(high);
        }
        if self.too_large - low <= MIN_STEP {
            return None;
        }
        let middle = usize::midpoint(low, self.too_large);
        let within = COMMON.into_iter().filter(|size| (low + 1..self.too_large).contains(size));
        Some(within.min_by_key(|size| size.abs_diff(middle)).unwrap_or(middle))
    }

    /// Starts a round of probes when it is due.
    fn start_round(&mut self, now: Instant, conditions: &Conditions) {
        let (Some(trial), Some(rate)) = (&mut self.trial, conditions.rate) else { return };
        if trial.is_waiting() || trial.next > now {
            return;
        }
        let mut number = |size| {
            self.numbers = self.numbers.wrapping_add(1);
            if self.sent.len() >= MAX_OUTSTANDING {
                self.sent.pop_front();
            }
            self.sent.push_back((self.numbers, size));
            self.outbox.push_back(Outgoing::Probe { number: self.numbers, size });
            self.numbers
        };
        let probe = number(trial.size);
        let witness = trial.needs_witness().then(|| number(MIN_MTU));
        let probes = 1 + u64::from(witness.is_some());
        let bytes = trial.size + if witness.is_some() { MIN_MTU } else { 0 };
        let forth = rate.time_for(bytes as u64 * PROBE_DIVISOR);
        let answers = (message::ANSWER + conditions.overhead) as u64 * probes;
        let back =
            conditions.back.map_or(Span::ZERO, |rate| rate.time_for(answers * PROBE_DIVISOR));
        self.from = now + forth.max(back);
        trial.begin(now, probe, witness, wait(conditions), self.from);
    }

    fn search(&mut self) {
        self.too_large = self.most + 1;
        self.trial = None;
        self.phase = Phase::Searching;
    }

    fn settle(&mut self, now: Instant) {
        let until =
            if self.current < self.most { now + RAISE_INTERVAL } else { Instant::FAR_FUTURE };
        self.phase = Phase::SearchComplete { until, ceiling: self.ceiling };
    }

    /// Validates the present size, unless it is the minimum.
    fn validate(&mut self) {
        self.unanswered = None;
        let known = self.current <= MIN_MTU || self.current > self.ceiling;
        if known || matches!(self.phase, Phase::Disabled | Phase::Validating) {
            return;
        }
        self.phase = Phase::Validating;
        self.trial = Some(Trial::revalidate(self.current, self.from));
    }

    /// Handles that packets of `size` bytes do not pass any more.
    fn fall_below(&mut self, size: usize) {
        self.too_large = size.max(MIN_MTU + 1);
        self.current = if size > BASE { BASE.min(self.most) } else { MIN_MTU };
        self.black_hole = true;
        self.unanswered = None;
        self.trial = None;
        self.phase = Phase::Searching;
    }
}

/// Returns the largest useful size of at most `most`: the octets sent in one second. 0 while the
/// rate is unknown.
fn ceiling(conditions: &Conditions, most: usize) -> usize {
    let Some(rate) = conditions.rate else { return 0 };
    let fits = usize::try_from(rate.bytes_in(MAX_SERIALIZATION)).unwrap_or(usize::MAX);
    fits.max(MIN_MTU).min(most)
}

/// Returns the maximum time to a ProbeAck.
fn wait(conditions: &Conditions) -> Span {
    let round_trip =
        (conditions.round_trip * 2).max(conditions.round_trip + Span::from_millis(200));
    let full = (BASE + MIN_MTU) as u64;
    let forth = conditions.rate.map_or(Span::ZERO, |rate| rate.time_for(full * 2));
    let back = conditions.back.map_or(Span::ZERO, |rate| rate.time_for(400));
    round_trip + forth + back
}

#[cfg(test)]
mod tests;
