//! Bound of the control traffic that is sent without data (RFC 3550 section 6.2 bounds RTCP in
//! the same way).
//!
//! ```text
//!   control packet sent ──▶ not_before = now + divisor × octets / rate
//! ```
//!
//! On a return link of 1 kbit/s the transmission of a STAT takes half a second; three STATs per
//! RTT would leave no capacity for data and would build a queue. With the bound they become fewer
//! and newer: a delayed STAT is created when it is sent, and answers the newest POLL. STATs and
//! POLLs that are piggybacked on data are not delayed.

use units::{BitRate, Instant, Span};

/// Approximate size of a packet with a POLL or STAT, with the headers below, in octets.
const CONTROL_OCTETS: u64 = 80;
/// A path is a low-rate path if a control packet takes more than 1/32 of the POLL interval.
const LOW_RATE_DIVISOR: u64 = 32;
/// A session with waiting data sends a POLL after this time in which it neither sent nor received
/// a segment,
const LIVENESS_INTERVAL: Span = Span::from_secs(2);
/// or later, so that these POLLs take at most 1/16 of the rate.
const LIVENESS_POLL_DIVISOR: u64 = 16;

/// Budget of control traffic on low-rate paths. Without a divisor nothing is bounded.
#[derive(Clone, Debug)]
pub(in crate::session) struct ControlBudget {
    /// Control takes at most 1/`divisor` of the rate.
    divisor: Option<u32>,
    /// Time before which no control is sent without data.
    not_before: Instant,
    /// Time that the rates of both directions add to the response time.
    response_allowance: Span,
    /// On a low-rate path, time at which the STAT for the last POLL is expected.
    poll_holdoff_until: Instant,
}

impl ControlBudget {
    pub(super) fn new(divisor: Option<u32>) -> Self {
        Self {
            divisor,
            not_before: Instant::ZERO,
            response_allowance: Span::ZERO,
            poll_holdoff_until: Instant::ZERO,
        }
    }

    /// Whether the rules for low-rate paths apply.
    pub(in crate::session) fn is_enabled(&self) -> bool {
        self.divisor.is_some()
    }

    pub(in crate::session) fn not_before(&self) -> Instant {
        self.not_before
    }

    /// A control packet of `octets` was sent without data, while the rate is `rate`.
    pub(in crate::session) fn charge(
        &mut self,
        now: Instant,
        octets: usize,
        rate: Option<BitRate>,
    ) {
        if let (Some(divisor), Some(rate)) = (self.divisor, rate) {
            let time = rate.time_for(octets as u64 * u64::from(divisor));
            self.not_before = self.not_before.max(now) + time;
        }
    }

    pub(in crate::session) fn response_allowance(&self) -> Span {
        self.response_allowance
    }

    /// A POLL is answered: the allowance depends on what was sent before the next one.
    pub(in crate::session) fn reset_response_allowance(&mut self) {
        self.response_allowance = Span::ZERO;
    }

    /// A STAT seems to be overdue: updates the allowance for the current rates of both directions,
    /// `forward` and `reverse`. `flight` octets, of which the SRTT `srtt` allows for a part, were
    /// sent before the POLL, and a full packet has `packet` octets.
    pub(in crate::session) fn update_response_allowance(
        &mut self,
        (forward, reverse): (Option<BitRate>, Option<BitRate>),
        (flight, srtt): (u64, Span),
        packet: usize,
    ) {
        let Some(divisor) = self.divisor.map(u64::from) else { return };
        let control = packet as u64 + divisor * CONTROL_OCTETS;
        let own = forward.map_or(Span::ZERO, |rate| {
            rate.time_for(control) + rate.time_for(flight).saturating_sub(srtt)
        });
        let peers = (divisor + 1) * CONTROL_OCTETS;
        let peers = reverse.map_or(Span::ZERO, |rate| rate.time_for(peers));
        self.response_allowance = own + peers;
    }

    /// A POLL was sent. On a path that has a low rate, by any of `rates` and the POLL `interval`,
    /// the timer waits for `response` before the next one (XSTP-10.2.7); not while a STAT is
    /// `overdue`, so that the end of an outage is detected early.
    pub(in crate::session) fn on_poll_sent(
        &mut self,
        now: Instant,
        rates: [Option<BitRate>; 3],
        interval: Span,
        overdue: bool,
        response: Span,
    ) {
        let time = |rate: BitRate| rate.time_for(CONTROL_OCTETS * LOW_RATE_DIVISOR);
        let is_low_rate = rates.into_iter().flatten().any(|rate| time(rate) > interval);
        let waits = self.is_enabled() && is_low_rate && !overdue;
        self.poll_holdoff_until = if waits { now + response } else { Instant::ZERO };
    }

    /// Earliest time of the next timer POLL, while the last POLL covers all outstanding packets.
    pub(in crate::session) fn poll_holdoff_until(&self) -> Instant {
        self.poll_holdoff_until
    }

    /// Time without segments after which a session with waiting data sends a POLL regardless of
    /// pacing, where `rate` is the lowest known rate: so it detects that the peer has restarted.
    pub(in crate::session) fn liveness_interval(rate: Option<BitRate>) -> Span {
        let time = |rate: BitRate| rate.time_for(CONTROL_OCTETS * LIVENESS_POLL_DIVISOR);
        LIVENESS_INTERVAL.max(rate.map_or(Span::ZERO, time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: BitRate = BitRate::from_kbps(1);

    /// XSTP-8.1.7
    #[test]
    fn control_takes_its_fraction_of_the_rate() {
        let mut budget = ControlBudget::new(Some(4));
        budget.charge(Instant::ZERO, 80, Some(SLOW));
        // 80 octets take 640 ms at 1 kbit/s.
        assert_eq!(budget.not_before(), Instant::ZERO + Span::from_millis(2_560));
        budget.charge(Instant::ZERO, 80, None);
        assert_eq!(budget.not_before(), Instant::ZERO + Span::from_millis(2_560));
        let mut unbounded = ControlBudget::new(None);
        unbounded.charge(Instant::ZERO, 80, Some(SLOW));
        assert_eq!(unbounded.not_before(), Instant::ZERO);
    }

    /// XSTP-10.2.7, XSTP-10.2.8
    #[test]
    fn polls_wait_for_stats_on_low_rate_paths_unless_one_is_overdue() {
        let (interval, response) = (Span::from_millis(200), Span::from_millis(900));
        let until = |rate, overdue| {
            let mut budget = ControlBudget::new(Some(4));
            budget.on_poll_sent(
                Instant::ZERO,
                [None, Some(rate), None],
                interval,
                overdue,
                response,
            );
            budget.poll_holdoff_until()
        };
        // 2,560 octets take 204.8 ms at 100 kbit/s, and 186 ms at 110 kbit/s.
        assert_eq!(until(BitRate::from_kbps(100), false), Instant::ZERO + response);
        assert_eq!(until(BitRate::from_kbps(110), false), Instant::ZERO);
        assert_eq!(until(BitRate::from_kbps(100), true), Instant::ZERO);
    }

    /// XSTP-10.5.1: 12,000 octets take 1.5 s at 64 kbit/s.
    #[test]
    fn the_outage_timeout_includes_what_was_sent_before_the_poll() {
        let mut budget = ControlBudget::new(Some(4));
        let rates = (Some(BitRate::from_kbps(64)), None);
        let srtt = Span::from_millis(300);
        let mut allowance = |flight| {
            budget.update_response_allowance(rates, (flight, srtt), 1_500);
            budget.response_allowance()
        };
        let without = allowance(0);
        assert_eq!(without, BitRate::from_kbps(64).time_for(1_820));
        assert_eq!(allowance(2_400), without, "the SRTT contains it");
        assert_eq!(allowance(12_000), without + Span::from_millis(1_200));
    }

    #[test]
    fn liveness_polls_take_a_sixteenth_of_a_low_rate() {
        assert_eq!(ControlBudget::liveness_interval(None), Span::from_secs(2));
        assert_eq!(ControlBudget::liveness_interval(Some(SLOW)), Span::from_millis(10_240));
    }
}
