//! Sender of a session: packets in flight, the peer's window, and the conditions under which new
//! data is sent.
//!
//! ```text
//!   upper layer ── wake ──▶ ┌────────┐ ── push, on_retransmitted ──▶ PacketTable
//!   link scheduler ─ block ▶│ Sender │ ◀── on_stat, on_ustat ─────── (VT(A), VT(S), VT(MS))
//!   MTU, peer ─────────────▶└────────┘
//! ```

mod table;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use table::check_against_model;
pub(crate) use table::{
    InvalidReport, Outcome, PacketTable, Retransmission, RetransmitFilter, Transmission,
};

use crate::config::SessionConfig;
use units::{Instant, Span};

/// State of the sender.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    pub(super) table: PacketTable,
    /// Whether the upper layer had new data when it was last queried.
    pub(super) has_new_data: bool,
    /// Whether the scheduler of a shared link delays the data of this session (XSTP-8.1.8).
    pub(super) is_blocked: bool,
    /// Whether the last packet was new although retransmissions are queued: one of them is next.
    pub(super) has_preceded: bool,
    /// Whether the window of the peer is open, or no data is waiting for it.
    pub(super) peer_window_open: bool,
    /// Whether a packet that was lost more than once is queued: a POLL follows its retransmission
    /// (XSTP-10.6.1).
    poll_after_retransmission: bool,
    /// Number of packets that may still be retransmitted back to back.
    retransmit_burst_left: u32,
    /// Maximum segment size: the minimum of the own limit, the path's and the peer's.
    max_segment: usize,
    /// Maximum segment size of the peer.
    peer_max_segment: usize,
    /// Time of the last transmission of data.
    last_data_at: Option<Instant>,
}

impl Sender {
    pub(super) fn new(config: &SessionConfig) -> Self {
        let gateway = &config.gateway;
        let mut table = PacketTable::new(
            config.number_window,
            config.initial_peer_window,
            gateway.release_early,
        );
        table.set_duplication(
            gateway.duplicate_from_retransmission,
            gateway.duplicate_first_packets,
        );
        table.start_at(u64::from(config.first_number.value()));
        Self {
            table,
            has_new_data: true,
            is_blocked: false,
            has_preceded: false,
            peer_window_open: true,
            poll_after_retransmission: false,
            retransmit_burst_left: config.xstp.retransmit_burst,
            max_segment: config.max_segment,
            peer_max_segment: usize::MAX,
            last_data_at: None,
        }
    }

    pub(super) fn max_segment(&self) -> usize {
        self.max_segment
    }

    /// Sets the maximum segment size to `bytes`, within the configured one, the peer's, and the
    /// size of a header with 64 payload octets.
    pub(super) fn set_max_segment(&mut self, bytes: usize, config: &SessionConfig) {
        let min = config.data_overhead() + 64;
        let max = config.max_segment.min(self.peer_max_segment);
        self.max_segment = bytes.min(max).max(min);
    }

    /// Applies the window and the segment size of the peer's BGN or BGNAK.
    pub(super) fn apply_peer_limits(
        &mut self,
        window: u32,
        max_segment: usize,
        config: &SessionConfig,
    ) {
        self.table.set_first_window(window);
        self.peer_max_segment = max_segment;
        self.set_max_segment(self.max_segment, config);
    }

    /// Whether packets are queued for retransmission.
    pub(super) fn has_retransmissions(&self) -> bool {
        self.table.queued() > 0
    }

    /// Whether data of any kind is waiting to be sent.
    pub(super) fn has_data(&self) -> bool {
        self.has_new_data || self.has_retransmissions()
    }

    /// Whether the windows allow a new packet; `window` is the congestion window in segments.
    pub(super) fn may_send_new(&self, window: Option<u64>) -> bool {
        self.table.free_numbers() > 0
            && window.is_none_or(|window| self.table.unreleased() < window)
    }

    pub(super) fn retransmit_burst_left(&self) -> u32 {
        self.retransmit_burst_left
    }

    /// A packet of `len` payload octets was retransmitted.
    pub(super) fn on_retransmitted(&mut self, seq: u64, len: usize, transmission: Transmission) {
        self.table.on_retransmitted(seq, len, transmission);
        self.retransmit_burst_left = self.retransmit_burst_left.saturating_sub(1);
        self.last_data_at = Some(transmission.at);
    }

    /// A new packet of `len` payload octets was sent.
    pub(super) fn on_sent(&mut self, len: usize, handle: u64, transmission: Transmission) {
        self.last_data_at = Some(transmission.at);
        self.table.push(len, handle, transmission);
    }

    pub(super) fn last_data_at(&self) -> Option<Instant> {
        self.last_data_at
    }

    /// Time since the last transmission of data, if there was one.
    pub(super) fn idle_time(&self, now: Instant) -> Option<Span> {
        self.last_data_at.map(|last| now.since(last))
    }

    /// A STAT or USTAT reported losses.
    pub(super) fn on_losses(&mut self, outcome: Outcome, config: &SessionConfig) {
        if outcome.lost > 0 {
            self.retransmit_burst_left = config.xstp.retransmit_burst;
        }
        self.poll_after_retransmission |=
            config.gateway.poll_after_second_loss && outcome.lost_retransmissions > 0;
    }

    /// Drops all retransmissions: the STAT that ends a probing cycle lists what is still missing.
    pub(super) fn drop_retransmissions(&mut self) {
        self.table.clear_queue();
        self.poll_after_retransmission = false;
    }

    /// Returns, once, whether a POLL follows the retransmissions that were just sent.
    pub(super) fn take_poll_after_retransmission(&mut self) -> bool {
        core::mem::take(&mut self.poll_after_retransmission)
    }

    /// Detects that new data waits for the peer's window; returns true at the transition.
    pub(super) fn detect_window_closed(&mut self) -> bool {
        let closes =
            self.peer_window_open && self.has_new_data && self.table.is_peer_window_closed();
        self.peer_window_open &= !closes;
        closes
    }

    /// Detects that the peer's window has reopened; returns true at the transition.
    pub(super) fn detect_window_reopened(&mut self) -> bool {
        let opens = !self.peer_window_open && !self.table.is_peer_window_closed();
        self.peer_window_open |= opens;
        opens
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::BitRate;

    fn config() -> SessionConfig {
        SessionConfig::gateway(BitRate::from_mbps(10))
    }

    fn at(poll: u32) -> Transmission {
        Transmission { poll, at: Instant::ZERO }
    }

    #[test]
    fn the_segment_size_is_bounded_by_configuration_peer_and_header() {
        let config = config();
        let mut sender = Sender::new(&config);
        sender.set_max_segment(usize::MAX, &config);
        assert_eq!(sender.max_segment(), config.max_segment);
        sender.apply_peer_limits(10, 900, &config);
        assert_eq!(sender.max_segment(), 900);
        sender.set_max_segment(0, &config);
        assert_eq!(sender.max_segment(), config.data_overhead() + 64);
    }

    #[test]
    fn a_closed_window_is_reported_once_and_only_while_data_waits() {
        let config = SessionConfig { initial_peer_window: 1, ..config() };
        let mut sender = Sender::new(&config);
        sender.on_sent(100, 0, at(0));
        sender.has_new_data = false;
        assert!(!sender.detect_window_closed());
        sender.has_new_data = true;
        assert!(sender.detect_window_closed());
        assert!(!sender.detect_window_closed());
        assert!(!sender.detect_window_reopened());
        sender.table.set_first_window(2);
        assert!(sender.detect_window_reopened());
        assert!(!sender.detect_window_reopened());
    }

    #[test]
    fn each_loss_report_allows_another_burst() {
        let mut config = config();
        config.xstp.retransmit_burst = 2;
        let mut sender = Sender::new(&config);
        sender.on_sent(100, 0, at(0));
        for left in [1, 0, 0] {
            sender.on_retransmitted(0, 100, at(1));
            assert_eq!(sender.retransmit_burst_left(), left);
        }
        sender.on_losses(Outcome { lost: 1, lost_retransmissions: 1, released: 0 }, &config);
        assert_eq!(sender.retransmit_burst_left(), 2);
        assert!(sender.take_poll_after_retransmission());
        assert!(!sender.take_poll_after_retransmission());
    }
}
