//! Invariants checked in every run: window, rate, memory, progress.
//!
//! | invariant | check |
//! |---|---|
//! | octets delivered are those sent, in order and once | [`StreamCheck`](crate::StreamCheck) in each receiving application |
//! | packet conservation on each link and in the network | [`Network::audit`], periodically and at the end of each run; [`Path`](crate::Path), at the end |
//! | a session keeps its window and rate | [`SessionGuard`], with every segment of every session; in gateways [`SessionWatch`] |
//! | a session keeps its memory limits | [`SessionGuard`]; in gateways the relay's own limits, and in storms their ledgers |
//! | progress after the last fault | [`Network::expect_progress`] |
//!
//! A violation is a panic; in a network its message has seed, run and time.

use crate::Network;
use units::{BitRate, Instant, Span};
use xstp::Connection;
use xstp::session::{Session, SessionConfig};

/// Maximum time for which segments that are not delayed put data off, and the octets whose time it is
/// if that is longer.
const MAX_DEBT: Span = Span::from_secs(1);
const MAX_DEBT_OCTETS: u64 = 3_000;

/// Compares the segments that a session sends with its window and rate.
#[derive(Clone, Debug)]
pub struct SessionGuard {
    /// Octets below XSTP that count towards rates.
    overhead: u64,
    payload: u64,
    catch_up: Span,
    /// Maximum rate under any controller.
    max_rate: Option<BitRate>,
    numbers: u64,
    /// Maximum octets and packets buffered by a connection.
    held: (usize, usize),
    /// When the octets sent so far would have been transmitted at the session's rate, less the
    /// pacing burst allowance.
    free_at: Instant,
    /// First transmissions of packets so far.
    fresh: u64,
    data: u64,
}

/// Counters of a session after a segment.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Octets of the segment.
    pub octets: u64,
    /// First transmissions of packets so far.
    pub fresh: u64,
    /// Transmissions of packets so far.
    pub data: u64,
    /// Octets outstanding.
    pub outstanding: u64,
    /// Packets outstanding.
    pub numbers: u64,
    /// The congestion window in octets.
    pub window: Option<u64>,
    /// The pacing rate.
    pub pace: Option<BitRate>,
}

impl SessionGuard {
    /// Creates a guard for a session with `config`.
    pub fn new(config: &SessionConfig) -> Self {
        Self {
            overhead: config.packet_overhead as u64,
            payload: config.payload_size() as u64,
            catch_up: config.pacing_burst,
            max_rate: config.paced_rate(),
            numbers: u64::from(config.number_window),
            held: (config.send_buffer, config.receive_window as usize),
            free_at: Instant::ZERO,
            fresh: 0,
            data: 0,
        }
    }

    /// Takes the maximum rate of `config` from now on and restarts the rate check.
    pub fn follow(&mut self, config: &SessionConfig) {
        self.max_rate = config.paced_rate();
        self.free_at = Instant::ZERO;
    }

    /// Checks that `session` was allowed to send a segment of `octets`.
    ///
    /// # Panics
    /// If it was not.
    pub fn on_sent(&mut self, now: Instant, octets: usize, session: &Session) {
        let seen = session.snapshot(now);
        let counted = session.statistics();
        self.check(
            now,
            Sent {
                octets: octets as u64,
                fresh: counted.data_sent,
                data: counted.data_sent + counted.data_retransmitted,
                outstanding: seen.outstanding_bytes,
                numbers: session.outstanding_packets(),
                window: seen.congestion_window,
                pace: seen.rate,
            },
        );
    }

    /// As [`SessionGuard::on_sent`].
    ///
    /// # Panics
    /// If the segment was not allowed.
    pub fn check(&mut self, now: Instant, sent: Sent) {
        let is_fresh = sent.fresh > self.fresh;
        let is_data = sent.data > self.data;
        (self.fresh, self.data) = (sent.fresh, sent.data);
        if is_fresh {
            let window = sent.window.unwrap_or(u64::MAX).max(self.payload);
            assert!(
                sent.outstanding <= window.saturating_add(self.payload),
                "{} bytes are outstanding in a window of {window}",
                sent.outstanding
            );
            assert!(
                sent.numbers <= self.numbers,
                "{} packets are outstanding; the limit is {}",
                sent.numbers,
                self.numbers
            );
        }
        let Some(pace) = sent.pace.into_iter().chain(self.max_rate).min() else { return };
        // 1 ns for rounding.
        assert!(
            !is_data || self.free_at <= now + Span::from_nanos(1),
            "data was sent {} before its time at {pace}",
            self.free_at.since(now)
        );
        let octets = sent.octets + self.overhead;
        let takes = pace.time_for(octets) - Span::from_nanos(1);
        // XSTP-8.1.5
        let latest = now + MAX_DEBT.max(pace.time_for(octets.max(MAX_DEBT_OCTETS)));
        self.free_at = (self.free_at.max(now - self.catch_up) + takes).min(latest);
    }

    /// Checks the buffers of `connection`.
    ///
    /// # Panics
    /// If they exceed their limits.
    pub fn on_held(&self, connection: &Connection) {
        self.check_held(connection.unacknowledged_bytes(), connection.cached_packets());
    }

    /// As [`SessionGuard::on_held`].
    ///
    /// # Panics
    /// If they exceed their limits.
    pub fn check_held(&self, bytes: usize, packets: usize) {
        let (max_bytes, max_packets) = self.held;
        assert!(
            bytes <= max_bytes,
            "{bytes} bytes are buffered for sending; the limit is {max_bytes}"
        );
        assert!(packets <= max_packets, "{packets} packets are cached; the limit is {max_packets}");
    }
}

/// Checks consecutive sessions.
#[derive(Clone, Debug, Default)]
pub struct SessionWatch {
    seen: Option<LastSent>,
}

#[derive(Clone, Debug)]
struct LastSent {
    incarnation: Option<u32>,
    segments: u64,
    octets: u64,
    guard: SessionGuard,
}

impl SessionWatch {
    /// Checks `session`, after each segment that it may have sent.
    ///
    /// # Panics
    /// If it sent a segment that was not allowed.
    pub fn check_sent(&mut self, now: Instant, session: &Session) {
        let counted = session.statistics();
        let (incarnation, segments) = (session.incarnation(), counted.segments_sent);
        let same = |seen: &&mut LastSent| {
            seen.segments <= segments && (seen.incarnation == incarnation || seen.segments == 0)
        };
        if self.seen.as_mut().filter(same).is_none() {
            let guard = SessionGuard::new(session.config());
            self.seen = Some(LastSent { incarnation, segments: 0, octets: 0, guard });
        }
        let Some(seen) = &mut self.seen else { return };
        seen.incarnation = incarnation;
        if segments > seen.segments {
            let octets = (counted.octets_sent - seen.octets) as usize;
            (seen.segments, seen.octets) = (segments, counted.octets_sent);
            seen.guard.on_sent(now, octets, session);
        }
    }
}

/// Reads a progress counter; `None` when all work is done.
type ReadProgress = Box<dyn Fn(&Network) -> Option<u64>>;

/// A counter that must grow.
pub(crate) struct Progress {
    what: String,
    patience: Span,
    read: ReadProgress,
    last: Option<u64>,
}

/// Progress checks.
impl Network {
    /// From `from` on, when the last fault has ended, the value of `read` must grow at least once
    /// in each `patience`, until it is `None` because all work is done.
    pub fn expect_progress(
        &mut self,
        what: &str,
        from: Instant,
        patience: Span,
        read: impl Fn(&Self) -> Option<u64> + 'static,
    ) {
        let progress =
            Progress { what: what.to_owned(), patience, read: Box::new(read), last: None };
        self.change_at(from, move |net| net.check_progress(progress));
    }

    fn check_progress(&mut self, mut progress: Progress) {
        let Some(value) = (progress.read)(self) else { return };
        if let Some(last) = progress.last {
            assert!(
                value > last,
                "{} makes no progress at {value} for {}",
                progress.what,
                progress.patience
            );
        }
        progress.last = Some(value);
        let next = self.now() + progress.patience;
        self.change_at(next, move |net| net.check_progress(progress));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: u64 = 1_000;

    fn guard() -> SessionGuard {
        let mut config = SessionConfig::stp_1999();
        config.max_segment = PAYLOAD as usize + 19;
        config.number_window = 100;
        config.pacing_burst = Span::from_millis(10);
        SessionGuard::new(&config)
    }

    fn sent(fresh: u64) -> Sent {
        Sent {
            octets: PAYLOAD,
            fresh,
            data: fresh,
            outstanding: PAYLOAD * fresh,
            numbers: fresh,
            window: None,
            pace: None,
        }
    }

    #[test]
    #[should_panic(expected = "12000 bytes are outstanding in a window of 10000")]
    fn exceeding_the_window_is_detected() {
        let mut guard = guard();
        for fresh in 1..=12 {
            guard.check(Instant::ZERO, Sent { window: Some(10_000), ..sent(fresh) });
        }
    }

    #[test]
    fn shrinking_window_is_no_violation() {
        let mut guard = guard();
        guard.check(Instant::ZERO, Sent { window: Some(10_000), ..sent(9) });
        // The same packets are retransmitted.
        let again = Sent { window: Some(5_000), data: 12, ..sent(9) };
        guard.check(Instant::ZERO, again);
    }

    #[test]
    #[should_panic(expected = "101 packets are outstanding; the limit is 100")]
    fn exceeding_the_packet_limit_is_detected() {
        guard().check(Instant::ZERO, sent(101));
    }

    #[test]
    #[should_panic(expected = "before its time at 8.160 Mbit/s")]
    fn exceeding_the_rate_is_detected() {
        let mut guard = guard();
        // 1,020 octets take 1 ms; the burst allowance covers the first and the eleventh, not the
        // twelfth.
        let pace = Some(BitRate::from_kbps(8_160));
        let start = Instant::ZERO + Span::from_secs(1);
        for fresh in 1..=12 {
            guard.check(start, Sent { pace, ..sent(fresh) });
        }
    }

    #[test]
    #[should_panic(expected = "before its time at 8.160 Mbit/s")]
    fn exceeding_the_configured_rate_is_detected_under_any_controller() {
        let mut config = SessionConfig::stp_1999();
        config.max_segment = PAYLOAD as usize + 19;
        config.max_rate = Some(BitRate::from_kbps(8_160));
        let mut guard = SessionGuard::new(&config);
        for fresh in 1..=20 {
            guard.check(Instant::ZERO, Sent { pace: Some(BitRate::from_mbps(100)), ..sent(fresh) });
        }
    }

    #[test]
    fn pacing_burst_allowance_is_no_violation() {
        let mut guard = guard();
        let pace = Some(BitRate::from_kbps(8_160));
        let start = Instant::ZERO + Span::from_secs(1);
        for fresh in 1..=11 {
            guard.check(start, Sent { pace, ..sent(fresh) });
        }
        for fresh in 12..50 {
            guard.check(start + Span::from_millis(fresh - 11), Sent { pace, ..sent(fresh) });
        }
    }

    #[test]
    #[should_panic(expected = "240001 bytes are buffered for sending; the limit is 240000")]
    fn exceeding_the_send_buffer_is_detected() {
        guard().check_held(240_001, 0);
    }

    #[test]
    #[should_panic(expected = "161 packets are cached; the limit is 160")]
    fn exceeding_the_packet_cache_is_detected() {
        guard().check_held(240_000, 161);
    }

    #[test]
    #[should_panic(expected = "at 5.000000000s: the transfer makes no progress at 3 for 2.000 s")]
    fn missing_progress_is_detected() {
        let mut net = Network::new(1, 0);
        let read = |net: &Network| Some((net.now().as_nanos() / 1_000_000_000).min(3));
        let from = Instant::ZERO + Span::from_secs(1);
        net.expect_progress("the transfer", from, Span::from_secs(2), read);
        net.run_until(from + Span::from_secs(60));
    }

    #[test]
    fn finished_transfers_need_no_progress() {
        let mut net = Network::new(1, 0);
        let read = |net: &Network| {
            let seconds = net.now().as_nanos() / 1_000_000_000;
            (seconds < 10).then_some(seconds)
        };
        net.expect_progress("the transfer", Instant::ZERO, Span::from_secs(2), read);
        net.run_until(Instant::ZERO + Span::from_secs(60));
    }
}
