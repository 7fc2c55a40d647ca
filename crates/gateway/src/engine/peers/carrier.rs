//! Choice of the carrier of a path's datagrams: UDP, or TLS while UDP does not work.
//!
//! ```text
//!   Udp ──silence──▶ Connecting ──TLS works──▶ Tls ──UDP answers a probe──▶ Returning ──10 s──▶ Udp
//!    ▲                   │ UDP answers, or no TLS ▲                             │ silence
//!    └───────────────────┘                        └─────────────────────────────┘
//! ```
//!
//! The association moves with its datagrams (ASC-3.3), so nothing else changes.

use crate::engine::host::TlsState;
use units::{Instant, Span};

/// Time for the first response, after which TLS is tried. A handshake over a geostationary satellite
/// takes 1.2 s.
const FIRST: Span = Span::from_secs(3);
/// Time after which TLS is tried when POLLs are unanswered: that was detected after about two RTT, and
/// UDP that answers while TLS connects is kept.
const SILENCE: Span = Span::ZERO;
/// Minimum time between two attempts to connect.
const RETRY: Span = Span::from_secs(5);
/// Interval of probes by UDP; doubled each time that UDP answers a probe and fails again.
const PROBE: Span = Span::from_secs(15);
const MAX_PROBE: Span = Span::from_secs(600);
/// Time for which UDP has to work before TLS is ended.
const HOLD: Span = Span::from_secs(10);

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CarrierAction {
    /// Begin to connect by TLS.
    Open,
    /// End the TLS connection.
    Close,
    /// Probe the hub by UDP.
    Probe,
}

/// The carrier of a path.
#[derive(Debug)]
pub(crate) struct Carrier {
    /// UDP is never used.
    only_tls: bool,
    state: State,
    /// Whether the hub has ever responded.
    has_responded: bool,
    /// Start of the present silence.
    silent_since: Option<Instant>,
    /// Earliest time of the next attempt to connect.
    retry_at: Instant,
    probe_interval: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Udp,
    Connecting,
    Tls { probe_at: Instant },
    Returning { until: Instant },
}

impl Carrier {
    pub(crate) fn new(only_tls: bool) -> Self {
        Self {
            only_tls,
            state: State::Udp,
            has_responded: false,
            silent_since: None,
            retry_at: Instant::ZERO,
            probe_interval: PROBE,
        }
    }

    /// Whether datagrams are sent by TLS.
    pub(crate) fn uses_tls(&self) -> bool {
        matches!(self.state, State::Tls { .. })
    }

    /// Whether datagrams are sent by UDP.
    pub(crate) fn uses_udp(&self) -> bool {
        !self.uses_tls() && !self.only_tls
    }

    /// Handles the answer to a probe.
    pub(crate) fn handle_answer(&mut self, now: Instant) {
        if self.uses_tls() {
            self.state = State::Returning { until: now + HOLD };
        }
    }

    /// Returns when to call [`Carrier::review`].
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let silence_over = || self.silent_since.map(|since| since + self.patience());
        match self.state {
            State::Udp if self.only_tls => Some(self.retry_at),
            State::Udp => silence_over().map(|over| over.max(self.retry_at)),
            // The state of the connection wakes the loop.
            State::Connecting => None,
            State::Tls { .. } if self.only_tls => None,
            State::Tls { probe_at } => Some(probe_at),
            State::Returning { until } => {
                Some(silence_over().map_or(until, |over| over.min(until)))
            }
        }
    }

    /// Decides what to do; `answers` if the hub responds on the path, `tls` is the state of the TLS
    /// connection. To be repeated while it returns an action.
    pub(crate) fn review(
        &mut self,
        now: Instant,
        answers: bool,
        tls: TlsState,
    ) -> Option<CarrierAction> {
        self.has_responded |= answers;
        self.silent_since = if answers { None } else { self.silent_since.or(Some(now)) };
        let is_silent = self.silent_since.is_some_and(|since| now >= since + self.patience());
        match self.state {
            State::Udp if (is_silent || self.only_tls) && now >= self.retry_at => {
                self.retry_at = now + RETRY;
                self.state = State::Connecting;
                Some(CarrierAction::Open)
            }
            State::Udp => None,
            State::Connecting if answers && !self.only_tls => self.leave(),
            State::Connecting => match tls {
                TlsState::Connecting => None,
                TlsState::Open => {
                    // The link may just have returned from an outage.
                    self.state = State::Tls { probe_at: now };
                    None
                }
                TlsState::Closed => self.leave(),
            },
            State::Tls { .. } if tls == TlsState::Closed => self.leave(),
            State::Tls { probe_at } if now >= probe_at && !self.only_tls => {
                self.state = State::Tls { probe_at: now + self.probe_interval };
                Some(CarrierAction::Probe)
            }
            State::Tls { .. } => None,
            State::Returning { .. } if is_silent => {
                self.probe_interval = (self.probe_interval * 2).min(MAX_PROBE);
                if tls == TlsState::Closed {
                    return self.leave();
                }
                self.state = State::Tls { probe_at: now + self.probe_interval };
                None
            }
            State::Returning { until } if answers && now >= until => {
                self.probe_interval = PROBE;
                self.leave()
            }
            State::Returning { .. } => None,
        }
    }

    fn leave(&mut self) -> Option<CarrierAction> {
        self.state = State::Udp;
        Some(CarrierAction::Close)
    }

    fn patience(&self) -> Span {
        if self.has_responded { SILENCE } else { FIRST }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CarrierAction::{Close, Open, Probe};
    use TlsState::{Closed, Connecting, Open as Working};

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Span::from_millis(millis)
    }

    /// A carrier whose hub has responded until 10 s, and which uses TLS since 12 s.
    fn by_tls() -> Carrier {
        let mut carrier = Carrier::new(false);
        assert_eq!(carrier.review(at(10_000), true, Closed), None);
        assert_eq!(carrier.review(at(10_600), false, Closed), Some(Open));
        assert!(carrier.uses_udp(), "until TLS works");
        assert_eq!(carrier.review(at(12_000), false, Working), None);
        assert!(carrier.uses_tls());
        carrier
    }

    /// TLS-4.1
    #[test]
    fn the_first_response_has_time() {
        let mut carrier = Carrier::new(false);
        assert_eq!(carrier.review(at(0), false, Closed), None);
        assert_eq!(carrier.poll_timeout(), Some(at(3_000)));
        assert_eq!(carrier.review(at(2_999), false, Closed), None);
        assert_eq!(carrier.review(at(3_000), false, Closed), Some(Open));
    }

    /// TLS-4.2
    #[test]
    fn udp_that_answers_first_is_kept() {
        let mut carrier = Carrier::new(false);
        carrier.review(at(0), false, Closed);
        assert_eq!(carrier.review(at(3_000), false, Closed), Some(Open));
        assert_eq!(carrier.review(at(3_400), true, Connecting), Some(Close));
        assert_eq!((carrier.uses_udp(), carrier.poll_timeout()), (true, None));
    }

    /// TLS-4.1
    #[test]
    fn a_hub_without_tls_is_tried_every_five_seconds() {
        let mut carrier = Carrier::new(false);
        carrier.review(at(0), false, Closed);
        assert_eq!(carrier.review(at(3_000), false, Closed), Some(Open));
        assert_eq!(carrier.review(at(3_100), false, Closed), Some(Close));
        assert_eq!(carrier.review(at(3_100), false, Closed), None);
        assert_eq!(carrier.poll_timeout(), Some(at(8_000)));
        assert_eq!(carrier.review(at(8_000), false, Closed), Some(Open));
    }

    /// TLS-4.4, TLS-4.5
    #[test]
    fn udp_is_probed_and_used_again() {
        let mut carrier = by_tls();
        assert_eq!(carrier.review(at(12_000), true, Working), Some(Probe));
        assert_eq!(carrier.review(at(12_000), true, Working), None);
        assert_eq!(carrier.poll_timeout(), Some(at(27_000)));
        assert_eq!(carrier.review(at(27_000), true, Working), Some(Probe));
        carrier.handle_answer(at(27_600));
        assert!(carrier.uses_udp());
        assert_eq!(carrier.review(at(37_599), true, Working), None);
        assert_eq!(carrier.review(at(37_600), true, Working), Some(Close));
        assert_eq!(carrier.poll_timeout(), None);
    }

    /// TLS-4.5
    #[test]
    fn udp_that_answers_probes_only_is_tried_less_and_less_often() {
        let mut carrier = by_tls();
        let (mut now, mut last) = (at(12_000), Span::ZERO);
        for _ in 0..8 {
            while carrier.review(now, true, Working) != Some(Probe) {
                now = carrier.poll_timeout().unwrap();
            }
            carrier.handle_answer(now);
            now += Span::from_millis(1_300);
            assert_eq!(carrier.review(now, false, Working), None);
            assert!(carrier.uses_tls());
            let wait = carrier.poll_timeout().unwrap().since(now);
            assert!(wait > last || wait == MAX_PROBE, "{wait} after {last}");
            last = wait;
        }
        assert_eq!(last, MAX_PROBE);
    }

    #[test]
    fn a_lost_connection_is_made_again() {
        let mut carrier = by_tls();
        carrier.review(at(20_000), true, Working);
        assert_eq!(carrier.review(at(20_000), true, Closed), Some(Close));
        assert_eq!(carrier.review(at(20_000), true, Closed), None, "the silence is detected");
        assert_eq!(carrier.review(at(21_500), false, Closed), Some(Open));
    }

    /// TLS-4.6
    #[test]
    fn udp_is_not_used_where_it_is_forbidden() {
        let mut carrier = Carrier::new(true);
        assert_eq!(carrier.review(at(0), false, Closed), Some(Open));
        assert!(!carrier.uses_udp());
        assert_eq!(carrier.review(at(100), false, Working), None);
        assert!(carrier.uses_tls());
        assert_eq!((carrier.review(at(100), true, Working), carrier.poll_timeout()), (None, None));
        assert_eq!(carrier.review(at(9_000), true, Closed), Some(Close));
        assert_eq!(carrier.review(at(9_000), true, Closed), Some(Open));
    }
}
