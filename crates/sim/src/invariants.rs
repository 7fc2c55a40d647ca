//! What must hold in every run, held by those who look on: window, rate, memory, progress.
//!
//! | invariant | who holds it |
//! |---|---|
//! | bytes delivered are the bytes sent, in order and once | [`StreamCheck`](crate::StreamCheck) in each application that receives |
//! | conservation on each link and in the network | [`Network::audit`], now and then and at the end of each run; [`Path`](crate::Path), at the end |
//! | what is sent keeps within window and rate | [`SessionGuard`], with every segment of every session; in gateways by [`SessionWatch`] |
//! | what is held keeps within what is configured | [`SessionGuard`]; in gateways the relay's own limits, and in storms their books |
//! | progress after the last fault | [`Network::expect_progress`] |
//!
//! A broken invariant is a panic; in a network its message names seed, run and time.

use crate::Network;
use units::{BitRate, Instant, Span};
use xstp::Connection;
use xstp::session::{Session, SessionConfig};

/// Watches what a session says of itself against what it really sends.
#[derive(Clone, Debug)]
pub struct SessionGuard {
    /// Bytes below XSTP that rates count.
    overhead: u64,
    payload: u64,
    catch_up: Span,
    /// What no controller's pace exceeds.
    ceiling: Option<BitRate>,
    numbers: u64,
    /// Bytes and packets that a connection may hold.
    held: (usize, usize),
    /// When what was sent so far would be out at the session's own rate; less by what may be
    /// caught up.
    free_at: Instant,
    /// Packets sent for the first time, so far.
    fresh: u64,
    data: u64,
}

/// What a session sent and what it says.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Octets of the segment.
    pub octets: u64,
    /// Packets sent for the first time, so far.
    pub fresh: u64,
    /// Packets sent at all, so far.
    pub data: u64,
    /// Bytes outstanding.
    pub outstanding: u64,
    /// Numbers outstanding.
    pub numbers: u64,
    /// The congestion window, in bytes.
    pub window: Option<u64>,
    /// The rate at which everything is paced.
    pub pace: Option<BitRate>,
}

impl SessionGuard {
    /// For a session of `config`.
    pub fn new(config: &SessionConfig) -> Self {
        Self {
            overhead: config.packet_overhead as u64,
            payload: config.payload_size() as u64,
            catch_up: config.pacing_burst,
            ceiling: config.paced_rate(),
            numbers: u64::from(config.number_window),
            held: (config.send_buffer, config.receive_window as usize),
            free_at: Instant::ZERO,
            fresh: 0,
            data: 0,
        }
    }

    /// The session's ceiling is `config`'s from now on; what was planned under the old one is
    /// let go.
    pub fn follow(&mut self, config: &SessionConfig) {
        self.ceiling = config.paced_rate();
        self.free_at = Instant::ZERO;
    }

    /// `session` has just sent a segment of `octets`.
    ///
    /// # Panics
    /// When it should not have.
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
    /// When it should not have.
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
                "{} numbers are outstanding, {} at most may be",
                sent.numbers,
                self.numbers
            );
        }
        let Some(pace) = sent.pace.into_iter().chain(self.ceiling).min() else { return };
        // A nanosecond for rounding.
        assert!(
            !is_data || self.free_at <= now + Span::from_nanos(1),
            "data was sent {} before its time at {pace}",
            self.free_at.since(now)
        );
        let takes = pace.time_for(sent.octets + self.overhead) - Span::from_nanos(1);
        self.free_at = self.free_at.max(now - self.catch_up) + takes;
    }

    /// What `connection` holds now.
    ///
    /// # Panics
    /// When that is more than is configured.
    pub fn on_held(&self, connection: &Connection) {
        self.check_held(connection.unacknowledged_bytes(), connection.cached_packets());
    }

    /// As [`SessionGuard::on_held`].
    ///
    /// # Panics
    /// When that is more than is configured.
    pub fn check_held(&self, bytes: usize, packets: usize) {
        let (most_bytes, most_packets) = self.held;
        assert!(bytes <= most_bytes, "{bytes} bytes are kept to be sent, {most_bytes} at most");
        assert!(packets <= most_packets, "{packets} packets are cached, {most_packets} at most");
    }
}

/// Watches whatever session there is, one after another.
#[derive(Clone, Debug, Default)]
pub struct SessionWatch {
    seen: Option<Seen>,
}

#[derive(Clone, Debug)]
struct Seen {
    incarnation: Option<u32>,
    segments: u64,
    octets: u64,
    guard: SessionGuard,
}

impl SessionWatch {
    /// Looks at `session` after each segment that it may have sent.
    ///
    /// # Panics
    /// When it sent what it should not have.
    pub fn look(&mut self, now: Instant, session: &Session) {
        let counted = session.statistics();
        let (incarnation, segments) = (session.incarnation(), counted.segments_sent);
        let same = |seen: &&mut Seen| {
            seen.segments <= segments && (seen.incarnation == incarnation || seen.segments == 0)
        };
        if self.seen.as_mut().filter(same).is_none() {
            let guard = SessionGuard::new(session.config());
            self.seen = Some(Seen { incarnation, segments: 0, octets: 0, guard });
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

/// Reads how far somebody is; nothing when all is done.
type HowFar = Box<dyn Fn(&Network) -> Option<u64>>;

/// Somebody who must get on.
pub(crate) struct Progress {
    what: String,
    patience: Span,
    read: HowFar,
    last: Option<u64>,
}

/// Progress.
impl Network {
    /// From `healed` on, when the last fault is over, what `read` reads must grow at least once
    /// in each `patience`, until it reads nothing because all is done.
    pub fn expect_progress(
        &mut self,
        what: &str,
        healed: Instant,
        patience: Span,
        read: impl Fn(&Self) -> Option<u64> + 'static,
    ) {
        let progress =
            Progress { what: what.to_owned(), patience, read: Box::new(read), last: None };
        self.change_at(healed, move |net| net.look_for_progress(progress));
    }

    fn look_for_progress(&mut self, mut progress: Progress) {
        let Some(value) = (progress.read)(self) else { return };
        if let Some(last) = progress.last {
            assert!(
                value > last,
                "{} stands still at {value} for {}",
                progress.what,
                progress.patience
            );
        }
        progress.last = Some(value);
        let next = self.now() + progress.patience;
        self.change_at(next, move |net| net.look_for_progress(progress));
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
    fn more_than_the_window_is_found_out() {
        let mut guard = guard();
        for fresh in 1..=12 {
            guard.check(Instant::ZERO, Sent { window: Some(10_000), ..sent(fresh) });
        }
    }

    #[test]
    fn a_window_that_shrank_is_no_reproach() {
        let mut guard = guard();
        guard.check(Instant::ZERO, Sent { window: Some(10_000), ..sent(9) });
        // The same packets once more.
        let again = Sent { window: Some(5_000), data: 12, ..sent(9) };
        guard.check(Instant::ZERO, again);
    }

    #[test]
    #[should_panic(expected = "101 numbers are outstanding, 100 at most may be")]
    fn more_numbers_than_configured_are_found_out() {
        guard().check(Instant::ZERO, sent(101));
    }

    #[test]
    #[should_panic(expected = "before its time at 8.160 Mbit/s")]
    fn more_than_the_rate_is_found_out() {
        let mut guard = guard();
        // 1,020 bytes take 1 ms; the eleventh and the first may be caught up, not the twelfth.
        let pace = Some(BitRate::from_kbps(8_160));
        let start = Instant::ZERO + Span::from_secs(1);
        for fresh in 1..=12 {
            guard.check(start, Sent { pace, ..sent(fresh) });
        }
    }

    #[test]
    #[should_panic(expected = "before its time at 8.160 Mbit/s")]
    fn more_than_the_configured_rate_is_found_out_whatever_the_controller_says() {
        let mut config = SessionConfig::stp_1999();
        config.max_segment = PAYLOAD as usize + 19;
        config.max_rate = Some(BitRate::from_kbps(8_160));
        let mut guard = SessionGuard::new(&config);
        for fresh in 1..=20 {
            guard.check(Instant::ZERO, Sent { pace: Some(BitRate::from_mbps(100)), ..sent(fresh) });
        }
    }

    #[test]
    fn the_rate_and_what_is_caught_up_is_allowed() {
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
    #[should_panic(expected = "240001 bytes are kept to be sent, 240000 at most")]
    fn a_buffer_that_grows_is_found_out() {
        guard().check_held(240_001, 0);
    }

    #[test]
    #[should_panic(expected = "161 packets are cached, 160 at most")]
    fn a_cache_that_grows_is_found_out() {
        guard().check_held(240_000, 161);
    }

    #[test]
    #[should_panic(expected = "at 5.000000000s: the transfer stands still at 3 for 2.000 s")]
    fn standing_still_is_found_out() {
        let mut net = Network::new(1, 0);
        let read = |net: &Network| Some((net.now().as_nanos() / 1_000_000_000).min(3));
        let healed = Instant::ZERO + Span::from_secs(1);
        net.expect_progress("the transfer", healed, Span::from_secs(2), read);
        net.run_until(healed + Span::from_secs(60));
    }

    #[test]
    fn what_is_done_need_not_grow() {
        let mut net = Network::new(1, 0);
        let read = |net: &Network| {
            let seconds = net.now().as_nanos() / 1_000_000_000;
            (seconds < 10).then_some(seconds)
        };
        net.expect_progress("the transfer", Instant::ZERO, Span::from_secs(2), read);
        net.run_until(Instant::ZERO + Span::from_secs(60));
    }
}
