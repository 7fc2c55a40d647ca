//! When POLLs are sent: the POLL timer with its back-off, requests for a POLL, and the POLLs that
//! are not answered yet.
//!
//! ```text
//!   timer              while packets are unacknowledged, or the peer's window is closed
//!   end of a burst     always in small-window mode; otherwise when the session becomes
//!                      application-limited, as far as an allowance permits
//!   octets sent        a fraction of the send buffer since the last POLL
//! ```
//!
//! Each POLL has a sequence number that only increases. The sender stores with each packet the
//! sequence number of the last POLL before its transmission, and so decides for each STAT whether
//! it could have reported that packet (XSTP-7.3.1). The list of sent POLLs gives RTT samples.

use alloc::collections::VecDeque;
use core::ops::Range;
use units::{Instant, Span};

/// Maximum number of sent POLLs that are stored for RTT sampling; at three POLLs per RTT this
/// covers about 80 RTTs without a STAT. When the list is full, every other entry is discarded, so
/// that STATs can still be matched after a large increase of the RTT.
const MAX_SENT_POLLS: usize = 256;

/// Minimum interval of the timer, for RTTs of zero that a coarse clock or one that was set back
/// measures.
const MIN_INTERVAL: Span = Span::from_millis(1);

/// Burst size of the POLLs that an application-limited session sends beyond those of the timer.
const APP_LIMITED_ALLOWANCE: u32 = 8;

/// Number of POLLs before the first RTT sample that are sent at the interval of the timer.
const UNBACKED_POLLS: u64 = 4;
/// Maximum number of doublings of the interval after them.
const UNMEASURED_DOUBLINGS: u64 = 5;

/// A POLL that was sent.
#[derive(Clone, Copy, Debug)]
struct SentPoll {
    seq: u32,
    at: Instant,
    /// Octets of the session that were sent before it.
    octets: u64,
}

/// Mode of the POLL timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PollTimer {
    /// A fixed number of POLLs per RTT.
    Regular,
    /// Small window: bursts carry POLLs, and the timer only replaces a lost one.
    Fallback,
    /// The peer's window is closed.
    Persist,
    /// A probing cycle is running: one POLL per RTT.
    Probe,
}

/// Result of a STAT that answers a POLL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PollMatch {
    /// Time of the POLL; `None` if its entry was discarded.
    pub(crate) sent_at: Option<Instant>,
    /// Whether it is the first STAT for this POLL; a long list takes several STATs.
    pub(crate) first: bool,
}

/// Settings of the POLL timer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PollingConfig {
    pub(crate) per_round_trip: u32,
    /// RTTs over which that many POLLs are spread.
    pub(crate) round_trips: u32,
    pub(crate) backoff_cap: u32,
    pub(crate) tick: Span,
    pub(crate) spacing: Span,
}

/// POLL timer of one session.
#[derive(Clone, Debug)]
pub(crate) struct Polling {
    config: PollingConfig,
    /// Sequence number of the last POLL: "VT(PS)".
    seq: u32,
    /// Sequence number of the last POLL that a STAT answered: "VT(PA)".
    answered: u32,
    /// Octets of the session that were sent before that POLL.
    octets_answered: u64,
    sent_polls: VecDeque<SentPoll>,
    /// Newest POLL when entries were last discarded: up to it, a sequence number that is not in
    /// the list may have been used.
    thinned: Option<u32>,
    /// Number of POLLs sent.
    total: u64,
    /// Time at which the packet table last became non-empty: the timer runs from it.
    nonempty_since: Instant,
    last_sent: Option<Instant>,
    /// Time of the last STAT.
    last_stat: Option<Instant>,
    /// A STAT was received since the last POLL.
    answered_since_last: bool,
    backoff: u32,
    /// A POLL is requested independent of the timer.
    requested: bool,
    /// It is sent without spacing from the last one.
    immediate: bool,
    /// Octets sent in SDs since the last POLL.
    sent_bytes: u64,
    /// Number of POLLs that an application-limited session may still request, in 256ths.
    allowance: u32,
    allowance_at: Instant,
}

impl Polling {
    /// No POLL is sent; the sequence number of the first one is above `start`.
    pub(crate) fn new(config: PollingConfig, start: u32, now: Instant) -> Self {
        Self {
            config,
            seq: start,
            answered: start,
            octets_answered: 0,
            sent_polls: VecDeque::new(),
            thinned: None,
            total: 0,
            nonempty_since: now,
            last_sent: None,
            last_stat: None,
            answered_since_last: false,
            backoff: 0,
            requested: false,
            immediate: false,
            sent_bytes: 0,
            allowance: APP_LIMITED_ALLOWANCE << 8,
            allowance_at: Instant::ZERO,
        }
    }

    /// A listener has accepted a session at `now`: the first POLL's sequence number is above
    /// `start`.
    pub(crate) fn start_at(&mut self, start: u32, now: Instant) {
        self.seq = start;
        self.answered = start;
        self.nonempty_since = now;
    }

    /// The packet table has become non-empty.
    pub(crate) fn on_nonempty(&mut self, now: Instant) {
        self.nonempty_since = now;
    }

    pub(crate) fn seq(&self) -> u32 {
        self.seq
    }

    /// Whether the last POLL is not answered yet.
    pub(crate) fn is_outstanding(&self) -> bool {
        self.seq != self.answered
    }

    /// Time of the last POLL.
    pub(crate) fn last_sent(&self) -> Option<Instant> {
        self.last_sent
    }

    /// Time since which a STAT is missing: the oldest unanswered POLL, or the last STAT if that is
    /// later.
    pub(crate) fn stat_missing_since(&self) -> Option<Instant> {
        let oldest = self.first_unanswered()?.at;
        Some(self.last_stat.map_or(oldest, |stat| stat.max(oldest)))
    }

    /// Octets that were sent between the last answered POLL and the oldest unanswered one: as much
    /// may arrive before that POLL.
    pub(crate) fn octets_before_unanswered(&self) -> u64 {
        self.first_unanswered().map_or(0, |sent| sent.octets.saturating_sub(self.octets_answered))
    }

    fn first_unanswered(&self) -> Option<&SentPoll> {
        self.sent_polls.iter().find(|sent| self.is_newer(sent.seq))
    }

    /// Time of the oldest unanswered POLL of those sent from `from` on.
    pub(crate) fn oldest_unanswered(&self, from: Instant) -> Option<Instant> {
        let mut unanswered = self.sent_polls.iter().filter(|sent| self.is_newer(sent.seq));
        unanswered.find(|sent| sent.at >= from).map(|sent| sent.at)
    }

    pub(crate) fn answered_since_last(&self) -> bool {
        self.answered_since_last
    }

    /// Number of doublings of the interval for unanswered POLLs.
    pub(crate) fn backoff(&self) -> u32 {
        self.backoff
    }

    /// Whether a POLL is requested independent of the timer.
    pub(crate) fn is_requested(&self) -> bool {
        self.requested
    }

    /// Restarts the timer without back-off.
    pub(crate) fn restart_timer(&mut self) {
        self.backoff = 0;
        self.requested = false;
    }

    /// Requests a POLL with the next segment, independent of the timer.
    pub(crate) fn request(&mut self) {
        self.requested = true;
    }

    /// Requests a POLL with the next segment, without spacing from the last one.
    pub(crate) fn request_immediate(&mut self) {
        self.immediate = true;
    }

    /// The session is application-limited: requests a POLL if the allowance covers one.
    ///
    /// A flow that is slower than the link becomes application-limited after every packet. Beyond
    /// a burst its POLLs are no more frequent than those of the timer, so that they do not fill
    /// the reverse path.
    pub(crate) fn request_when_app_limited(&mut self, now: Instant, rtt: Span) {
        if self.requested {
            return;
        }
        let refill = self.interval(PollTimer::Regular, rtt).as_nanos().max(1);
        let passed = now.since(self.allowance_at).as_nanos();
        let earned = (u128::from(passed) * 256 / u128::from(refill)).min(1 << 20) as u32;
        if earned > 0 {
            // Fractions of a 256th are carried over.
            self.allowance = (self.allowance + earned).min(APP_LIMITED_ALLOWANCE << 8);
            self.allowance_at = now;
        }
        if self.allowance >= 256 {
            self.allowance -= 256;
            self.requested = true;
        }
    }

    /// An SD with `bytes` payload octets was sent.
    pub(crate) fn on_data_sent(&mut self, bytes: usize) {
        self.sent_bytes = self.sent_bytes.saturating_add(bytes as u64);
    }

    pub(crate) fn bytes_since_poll(&self) -> u64 {
        self.sent_bytes
    }

    /// Interval between POLLs of the timer, with the current back-off.
    pub(crate) fn interval(&self, timer: PollTimer, rtt: Span) -> Span {
        let tick = self.config.tick;
        match timer {
            PollTimer::Regular => {
                // Rounded up, or the last POLL of an RTT would precede the STAT.
                let parts = u64::from(self.config.per_round_trip.max(1));
                let round_trips = rtt * u64::from(self.config.round_trips.max(1));
                let base = Span::from_nanos(round_trips.as_nanos().div_ceil(parts));
                let max = round_trips.max(tick) * (1 << self.config.backoff_cap.min(16));
                let backed_off = base * (1 << self.backoff.min(16));
                backed_off.min(if self.config.backoff_cap == 0 { base } else { max })
            }
            // Two ticks beyond the RTT, because the STAT is due after exactly one RTT.
            PollTimer::Fallback => rtt.max(tick * 2) * (1 << self.backoff.min(16)) + tick * 2,
            PollTimer::Persist => rtt.max(tick * 2) * (1 << self.backoff.min(16)),
            PollTimer::Probe => rtt.max(tick * 2),
        }
        .max(self.config.spacing)
        .max(MIN_INTERVAL)
    }

    /// Minimum interval between POLLs before the first RTT sample, where `rtt` is the assumed one:
    /// a low-rate path may have a far longer one, and POLLs must not fill it.
    pub(crate) fn unmeasured_interval(&self, rtt: Span) -> Span {
        let more = self.total.saturating_sub(UNBACKED_POLLS).min(UNMEASURED_DOUBLINGS);
        let usual = rtt / u64::from(self.config.per_round_trip);
        if more == 0 { Span::ZERO } else { usual * (1 << more) }
    }

    /// Time at which the next POLL is due; before the first one, immediately.
    pub(crate) fn due(&self, timer: Option<PollTimer>, rtt: Span) -> Instant {
        if self.immediate {
            return Instant::ZERO;
        }
        let spaced = self.last_sent.map_or(Instant::ZERO, |sent| sent + self.config.spacing);
        if self.requested {
            return spaced;
        }
        let Some(timer) = timer else { return Instant::FAR_FUTURE };
        (self.timer_start() + self.interval(timer, rtt)).max(spaced)
    }

    /// Limits `due` to `range` after the last POLL, unless a POLL is requested.
    pub(crate) fn within(&self, due: Instant, range: Range<Span>) -> Instant {
        if self.requested || self.immediate {
            return due;
        }
        let start = self.timer_start();
        let max = range.end.max(self.config.spacing);
        due.min(start + max).max(start + range.start)
    }

    fn timer_start(&self) -> Instant {
        self.last_sent.map_or(self.nonempty_since, |sent| sent.max(self.nonempty_since))
    }

    /// Sequence number of the next POLL. `clock` is its minimum: published segments use their
    /// millisecond clock.
    pub(crate) fn next_seq(&self, clock: Option<u32>) -> u32 {
        let next = self.seq.wrapping_add(1);
        match clock {
            Some(clock) if (clock.wrapping_sub(next) as i32) > 0 => clock,
            Some(_) | None => next,
        }
    }

    /// A POLL with [`Polling::next_seq`] is sent after `octets` of the session; `overdue`: a STAT is
    /// overdue.
    pub(crate) fn on_sent(
        &mut self,
        now: Instant,
        clock: Option<u32>,
        octets: u64,
        overdue: bool,
    ) -> u32 {
        if overdue {
            self.backoff = (self.backoff + 1).min(self.config.backoff_cap);
        }
        if self.sent_polls.len() == MAX_SENT_POLLS {
            let mut keep = false;
            self.sent_polls.retain(|_| {
                keep = !keep;
                keep
            });
            self.thinned = Some(self.seq);
        }
        self.seq = self.next_seq(clock);
        self.sent_polls.push_back(SentPoll { seq: self.seq, at: now, octets });
        self.total += 1;
        self.last_sent = Some(now);
        self.requested = false;
        self.immediate = false;
        self.answered_since_last = false;
        self.sent_bytes = 0;
        self.seq
    }

    /// A STAT echoes the POLL `seq`. Returns `None` if no such POLL is outstanding (error R).
    pub(crate) fn on_stat(&mut self, now: Instant, seq: u32) -> Option<PollMatch> {
        let ahead = seq.wrapping_sub(self.answered) as i32;
        let beyond = self.seq.wrapping_sub(seq) as i32;
        if ahead < 0 || beyond < 0 || self.last_sent.is_none() {
            return None;
        }
        let first = ahead > 0;
        // Only used sequence numbers can be echoed: published ones are not consecutive.
        let discarded = self.thinned.is_some_and(|newest| !sent_before(newest, seq));
        let poll = self.sent_polls.iter().find(|sent| sent.seq == seq).copied();
        if first && poll.is_none() && !discarded {
            return None;
        }
        self.octets_answered = poll.map_or(self.octets_answered, |poll| poll.octets);
        if first {
            while self.sent_polls.front().is_some_and(|sent| sent_before(sent.seq, seq)) {
                self.sent_polls.pop_front();
            }
        }
        self.answered = seq;
        self.backoff = 0;
        self.last_stat = Some(now);
        self.answered_since_last = true;
        Some(PollMatch { sent_at: poll.map(|poll| poll.at), first })
    }

    fn is_newer(&self, seq: u32) -> bool {
        (seq.wrapping_sub(self.answered) as i32) > 0
    }
}

/// Whether a packet whose last transmission followed the POLL `packet_poll` was sent before the
/// POLL `seq`, and so should have been received before it (XSTP-7.3.2).
pub(crate) fn sent_before(packet_poll: u32, seq: u32) -> bool {
    (seq.wrapping_sub(packet_poll) as i32) > 0
}

#[cfg(test)]
mod tests;
