//! Pacing of a session: when data is sent, and how much control traffic is sent without data.
//!
//! ```text
//!   congestion controller ── rate ───▶ ┌────────┐
//!          or window ── schedule ────▶ │ Pacing │ ──▶ next_send
//!   RateBounds ── minimum, maximum ──▶ └────────┘
//!                                      ControlBudget ──▶ not_before, for control without data
//! ```

mod control_budget;
mod pacer;

pub(super) use control_budget::ControlBudget;
use pacer::Pacer;

use crate::config::SessionConfig;
use units::{BitRate, Instant, Span};

/// Configured bounds of the rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateBounds {
    min: Option<BitRate>,
    max: Option<BitRate>,
}

impl RateBounds {
    pub(super) fn of(config: &SessionConfig) -> Self {
        Self { min: config.min_rate, max: config.paced_rate() }
    }

    /// Limits the interval after a packet of `octets` to what the rates allow.
    fn limit(self, interval: Span, octets: usize) -> Span {
        let octets = octets as u64;
        let longest = self.min.map_or(Span::MAX, |rate| rate.time_for(octets));
        let shortest = self.max.map_or(Span::ZERO, |rate| rate.time_for(octets));
        interval.min(longest).max(shortest)
    }
}

/// Schedule of a congestion window after a STAT or USTAT, or after a pause (XSTP-8.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowSchedule {
    /// Number of segments that are spread over one RTT.
    pub(super) segments: u64,
    /// Whether they are sent back to back instead.
    pub(super) is_burst: bool,
    /// SRTT, if it was measured.
    pub(super) rtt: Option<Span>,
    /// Octets of a full packet.
    pub(super) packet: usize,
}

/// Pacing of one session.
#[derive(Clone, Debug)]
pub(super) struct Pacing {
    pacer: Pacer,
    /// Interval between the segments of a window controller.
    interval: Span,
    /// Rate granted by the peer.
    granted: Option<BitRate>,
    pub(super) control: ControlBudget,
}

impl Pacing {
    pub(super) fn new(config: &SessionConfig) -> Self {
        Self {
            pacer: Pacer::new(config.pacing_burst),
            interval: Span::ZERO,
            granted: None,
            control: ControlBudget::new(config.gateway.control_divisor()),
        }
    }

    pub(super) fn next_send(&self) -> Instant {
        self.pacer.next_send()
    }

    /// Whether data may be sent at `now`.
    pub(super) fn is_ready(&self, now: Instant) -> bool {
        self.pacer.ready(now)
    }

    /// No data is waiting.
    pub(super) fn pause(&mut self) {
        self.pacer.idle();
    }

    /// Discards the schedule: data may be sent at `now`.
    pub(super) fn reset(&mut self, now: Instant) {
        self.pacer.reset(now);
    }

    pub(super) fn granted(&self) -> Option<BitRate> {
        self.granted
    }

    pub(super) fn set_granted(&mut self, rate: Option<BitRate>) {
        self.granted = rate;
    }

    /// Starts the schedule of a congestion window.
    pub(super) fn start(&mut self, now: Instant, schedule: &WindowSchedule, bounds: RateBounds) {
        self.interval = match schedule.rtt {
            Some(rtt) if !schedule.is_burst => rtt / schedule.segments.max(1),
            Some(_) | None => Span::ZERO,
        };
        self.pacer.bring_forward(now, bounds.limit(self.interval, schedule.packet));
    }

    /// Whether the packets of a window controller are sent back to back, for packets of `octets`.
    pub(super) fn is_back_to_back(&self, octets: usize, bounds: RateBounds) -> bool {
        bounds.limit(self.interval, octets).is_zero()
    }

    /// Accounts a packet of `octets` that was sent at `now`. `rate` is the controller's, if it has
    /// one; `spread` says whether the packet is part of a window's schedule.
    pub(super) fn charge(
        &mut self,
        now: Instant,
        octets: usize,
        spread: bool,
        rate: Option<BitRate>,
        bounds: RateBounds,
    ) {
        let shortest = bounds.max.map(|rate| rate.time_for(octets as u64));
        match (rate, shortest) {
            (Some(rate), _) => self.pacer.charge_bytes(now, octets as u64, rate),
            (None, shortest) if spread => {
                let interval = bounds.limit(self.interval, octets);
                self.pacer.charge_span(now, interval, shortest.unwrap_or(Span::ZERO));
            }
            (None, Some(shortest)) => self.pacer.charge_span(now, shortest, shortest),
            (None, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: usize = 1_500;

    fn schedule(segments: u64, is_burst: bool) -> WindowSchedule {
        let rtt = Some(Span::from_millis(600));
        WindowSchedule { segments, is_burst, rtt, packet: PACKET }
    }

    /// XSTP-8.2.1
    #[test]
    fn a_window_is_spread_over_one_round_trip_within_the_bounds() {
        let config = SessionConfig::stp_1999();
        let bounds = RateBounds::of(&config);
        let mut pacing = Pacing::new(&config);
        pacing.start(Instant::ZERO, &schedule(6, false), bounds);
        pacing.charge(Instant::ZERO, PACKET, true, None, bounds);
        assert_eq!(pacing.next_send(), Instant::ZERO + Span::from_millis(100));
        assert!(!pacing.is_back_to_back(PACKET, bounds));
        pacing.start(Instant::ZERO, &schedule(6, true), bounds);
        assert!(pacing.is_back_to_back(PACKET, bounds));
        // 12 kbit/s: a packet takes one second, whatever the window is.
        let slow = RateBounds { max: Some(BitRate::from_kbps(12)), ..bounds };
        assert!(!pacing.is_back_to_back(PACKET, slow));
        let mut pacing = Pacing::new(&config);
        pacing.start(Instant::ZERO, &schedule(6, true), slow);
        pacing.charge(Instant::ZERO, PACKET, true, None, slow);
        assert_eq!(pacing.next_send(), Instant::ZERO + Span::from_secs(1));
    }

    #[test]
    fn the_rate_of_a_controller_overrides_the_schedule() {
        let config = SessionConfig::stp_1999();
        let bounds = RateBounds::of(&config);
        let mut pacing = Pacing::new(&config);
        pacing.charge(Instant::ZERO, PACKET, false, None, bounds);
        assert_eq!(pacing.next_send(), Instant::ZERO, "no rate, and not part of the schedule");
        pacing.charge(Instant::ZERO, PACKET, true, Some(BitRate::from_kbps(12)), bounds);
        assert_eq!(pacing.next_send(), Instant::ZERO + Span::from_secs(1));
    }
}
