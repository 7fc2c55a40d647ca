//! Interface between a session and its congestion controller.

use core::ops::Range;
use units::{BitRate, Instant, Span};

/// Effect of a STAT or USTAT on the outstanding data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AckEvent {
    pub(crate) now: Instant,
    /// Payload octets that it newly acknowledges.
    pub(crate) released: u64,
    /// Packets that it newly reports missing.
    pub(crate) lost: u64,
    /// VT(A) after it: the oldest unacknowledged packet, as an extended sequence number.
    pub(crate) oldest: u64,
    /// VT(S): the next new packet, as an extended sequence number.
    pub(crate) next: u64,
    /// Smoothed RTT, if it was measured.
    pub(crate) srtt: Option<Span>,
}

/// A POLL that is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PollSent {
    pub(crate) now: Instant,
    /// Its sequence number.
    pub(crate) seq: u32,
    /// Octets sent in this session up to and including it, with headers below XSTP.
    pub(crate) octets: u64,
}

/// Measurements that the first STAT for a POLL reports, in profiles where it does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PollAnswered {
    /// Arrival time of the STAT.
    pub(crate) now: Instant,
    /// Sequence number of the POLL.
    pub(crate) seq: u32,
    /// Timestamp of the POLL, microseconds of the own clock, modulo 2³².
    pub(crate) timestamp: u32,
    /// Arrival time of the POLL, microseconds of the receiver's clock, modulo 2³².
    pub(crate) arrived_at: u32,
    /// Octets that the receiver had received by then, modulo 2³².
    pub(crate) arrived: u32,
    /// Minimum RTT so far.
    pub(crate) min_rtt: Span,
}

/// Interface of a controller. The default of an output is "no restriction"; the default of an
/// input is to ignore it.
pub(crate) trait CongestionController {
    /// Name of the current mode.
    fn mode(&self, now: Instant) -> &'static str;

    /// Rate at which all segments are paced at `now`; `None` if the session spreads a window.
    fn pace(&self, _now: Instant) -> Option<BitRate> {
        None
    }

    /// The rate, if it is more than an assumption.
    fn estimated_pace(&self, now: Instant) -> Option<BitRate> {
        self.pace(now)
    }

    /// Rate that deliveries have confirmed: the initial rate of the next session on this path.
    fn confirmed_rate(&self) -> Option<BitRate> {
        None
    }

    /// Congestion window in octets, if there is one.
    fn window(&self) -> Option<u64> {
        None
    }

    /// Slow-start threshold in octets; `None` before the first loss, or without a window.
    fn ssthresh(&self) -> Option<u64> {
        None
    }

    /// Queuing delay of the forward path, if it is measured.
    fn queuing_delay(&self) -> Option<Span> {
        None
    }

    /// Jitter of the forward path's delay (RFC 3393), if it is measured.
    fn jitter(&self) -> Option<Span> {
        None
    }

    /// Loss ratio without congestion, in millionths, if it is measured.
    fn error_ppm(&self) -> Option<u64> {
        None
    }

    /// Whether new data may be sent.
    fn may_send(&self) -> bool {
        true
    }

    /// Whether no data is sent, not even retransmissions: only POLLs.
    fn is_poll_only(&self) -> bool {
        false
    }

    /// Whether new data leaves room for a POLL that must not be sent in a segment of its own.
    fn reserves_poll_space(&self) -> bool {
        false
    }

    /// Payload octets of the padding packet that is sent if there is no data, at most; `None` if
    /// none is sent.
    fn padding(&self) -> Option<usize> {
        None
    }

    /// Minimum and maximum interval between POLLs.
    fn poll_range(&self) -> Range<Span> {
        Span::ZERO..Span::MAX
    }

    /// Sets the rate cap: the configured rate less the headroom.
    fn set_max_rate(&mut self, _rate: Option<BitRate>) {}

    /// Sets the rate that the peer grants. Unlike [`Self::set_max_rate`] the measurements of the
    /// path stay valid.
    fn apply_grant(&mut self, _rate: Option<BitRate>) {}

    /// A POLL is sent.
    fn on_poll(&mut self, _poll: &PollSent) {}

    /// The first STAT for a POLL is received.
    fn on_poll_answered(&mut self, _answered: &PollAnswered) {}

    /// A STAT or USTAT is received.
    fn on_ack(&mut self, _event: &AckEvent) {}

    /// A packet with data is sent after `octets` in total. Returns whether a POLL is sent with it.
    fn on_data(&mut self, _now: Instant, _octets: u64) -> bool {
        false
    }

    /// A padding packet is sent after `octets` in total. Returns whether a POLL is sent with it.
    fn on_padding(&mut self, now: Instant, octets: u64) -> bool {
        self.on_data(now, octets)
    }

    /// Data is sent after an idle time. Returns whether the window restarts with slow start.
    fn on_restart(&mut self, _now: Instant, _idle: Span) -> bool {
        false
    }

    /// POLLs are unanswered for longer than the outage timeout.
    fn on_outage(&mut self, _now: Instant) {}

    /// A segment of the peer is received.
    fn on_peer_activity(&mut self, _now: Instant) {}

    /// Recent losses were caused by packets larger than the path MTU (RFC 8899 section 4.3).
    fn on_mtu_black_hole(&mut self, _now: Instant) {}

    /// Probing has detected congestion: halves the window, or sets it to half of `flight`, once
    /// per window; VT(S) is `next`.
    fn halve(&mut self, _next: u64, _flight: Option<u64>) {}

    /// Probing has detected congestion after a long time: restarts with slow start.
    fn slow_start(&mut self) {}

    /// Probing has detected no congestion: sets the window and the threshold to earlier values.
    fn restore(&mut self, _window: u64, _ssthresh: Option<u64>) {}

    /// Starts a packet train as after a probe that found capacity.
    #[cfg(test)]
    fn start_recovery_train(&mut self) {}
}
