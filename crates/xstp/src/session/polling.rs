//! When to ask: the POLL timer, its back-off, and the book of POLLs that were sent.
//!
//! Three things make a POLL due:
//!
//! * **the timer**, while anything is unacknowledged or the peer's window is shut;
//! * **the last SD of a burst**, in small-window mode always, otherwise when the upper layer
//!   runs dry, as far as an allowance lasts;
//! * **the share of the send buffer** that was sent since the last POLL.
//!
//! Each POLL has a count that only grows. The sender stamps every SD with the count of the last
//! POLL before it, and so knows of each STAT whether it could have seen that SD (XSTP-7.3.1).
//! The book keeps when each POLL was sent: an answer is a round-trip sample.

use alloc::collections::VecDeque;
use core::ops::Range;
use units::{Instant, Span};

/// POLLs that are remembered; at three for each round trip this is 80 round trips of silence.
/// When there are more, every other one is forgotten: where round trips have become much longer
/// than the timer knows, answers must still find their POLLs, or it would never know.
const BOOK: usize = 256;

/// However short a round trip is measured to be (a clock may be coarse, or be set back): without
/// a bound the timer would ask without end.
const LEAST_INTERVAL: Span = Span::from_millis(1);

/// POLLs beyond the timer's that a dry upper layer may cause at once.
const DRY_ALLOWANCE: u32 = 8;

/// One POLL that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    count: u32,
    at: Instant,
}

/// Which clock the POLL timer runs by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// A fixed number of POLLs for each round trip.
    Timer,
    /// Small window: bursts carry their POLLs, the timer only replaces one that was lost.
    Fallback,
    /// The peer's window is shut.
    Persist,
    /// A probing cycle is running: one for each round trip.
    Probe,
}

/// The answer to one POLL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// When the POLL was sent; `None` when it was too long ago to be in the book.
    pub(crate) sent_at: Option<Instant>,
    /// Whether it is the first answer to this POLL (a long list comes in several STATs).
    pub(crate) first: bool,
}

/// What the POLL timer needs to know of the configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PollingConfig {
    pub(crate) per_round_trip: u32,
    /// Round trips over which that many are spread.
    pub(crate) round_trips: u32,
    pub(crate) backoff_cap: u32,
    pub(crate) tick: Span,
    pub(crate) spacing: Span,
}

/// The POLL machine of one session.
#[derive(Clone, Debug)]
pub(crate) struct Polling {
    config: PollingConfig,
    /// Count of the last POLL sent: "VT(PS)".
    count: u32,
    /// Count of the last POLL that a STAT answered: "VT(PA)".
    answered: u32,
    book: VecDeque<Sent>,
    /// The newest POLL when some were forgotten: up to here a count that is not in the book may
    /// have been used.
    thinned: Option<u32>,
    last_sent: Option<Instant>,
    /// When a STAT last answered anything.
    last_answer: Option<Instant>,
    /// A STAT answered something since the last POLL went out.
    answered_since_last: bool,
    backoff: u32,
    /// Something other than the timer asks for a POLL.
    wanted: bool,
    /// It is wanted at once, however short ago the last one was.
    urgent: bool,
    /// Bytes sent in SDs since the last POLL.
    sent_bytes: u64,
    /// POLLs that a dry upper layer may still cause, in 256ths.
    allowance: u32,
    allowance_at: Instant,
}

impl Polling {
    /// No POLL sent; the first one's count is above `start`.
    pub(crate) fn new(config: PollingConfig, start: u32) -> Self {
        Self {
            config,
            count: start,
            answered: start,
            book: VecDeque::new(),
            thinned: None,
            last_sent: None,
            last_answer: None,
            answered_since_last: false,
            backoff: 0,
            wanted: false,
            urgent: false,
            sent_bytes: 0,
            allowance: DRY_ALLOWANCE << 8,
            allowance_at: Instant::ZERO,
        }
    }

    /// The first POLL's count is above `start` after all: nothing was sent yet.
    pub(crate) fn start_at(&mut self, start: u32) {
        self.count = start;
        self.answered = start;
    }

    /// Count of the last POLL sent, with which an SD sent now is stamped.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Whether no STAT has answered the last POLL yet.
    pub(crate) fn is_outstanding(&self) -> bool {
        self.count != self.answered
    }

    /// When the last POLL was sent.
    pub(crate) fn last_sent(&self) -> Option<Instant> {
        self.last_sent
    }

    /// Since when the peer owes an answer: the oldest POLL that nothing has answered, or the
    /// last answer when that is later.
    pub(crate) fn silent_since(&self) -> Option<Instant> {
        let oldest = self.book.iter().find(|sent| self.is_newer(sent.count))?.at;
        Some(self.last_answer.map_or(oldest, |answer| answer.max(oldest)))
    }

    /// When the oldest POLL was sent that nothing has answered, of those sent from `from` on.
    pub(crate) fn oldest_unanswered(&self, from: Instant) -> Option<Instant> {
        let mut unanswered = self.book.iter().filter(|sent| self.is_newer(sent.count));
        unanswered.find(|sent| sent.at >= from).map(|sent| sent.at)
    }

    /// Whether a STAT has answered anything since the last POLL.
    pub(crate) fn answered_since_last(&self) -> bool {
        self.answered_since_last
    }

    /// Doublings of the interval for POLLs that were not answered.
    pub(crate) fn backoff(&self) -> u32 {
        self.backoff
    }

    /// Whether something other than the timer asks for a POLL.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// The regular intervals begin anew, without back-off.
    pub(crate) fn restart_timer(&mut self) {
        self.backoff = 0;
        self.wanted = false;
    }

    /// Asks for a POLL with the next segment, whatever the timer says.
    pub(crate) fn want(&mut self) {
        self.wanted = true;
    }

    /// Asks for a POLL with the next segment, however short ago the last one was.
    pub(crate) fn urge(&mut self) {
        self.urgent = true;
    }

    /// The upper layer has nothing more: asks for a POLL if the allowance still covers one.
    ///
    /// A flow that is slower than the link runs dry after every packet. Its POLLs must not
    /// take the return channel over, so beyond a handful they come no faster than the timer's.
    pub(crate) fn want_when_dry(&mut self, now: Instant, round_trip: Span) {
        if self.wanted {
            return;
        }
        let refill = self.interval(Pace::Timer, round_trip).as_nanos().max(1);
        let passed = now.since(self.allowance_at).as_nanos();
        let earned = (u128::from(passed) * 256 / u128::from(refill)).min(1 << 20) as u32;
        if earned > 0 {
            // Less than a 256th is left to be earned later.
            self.allowance = (self.allowance + earned).min(DRY_ALLOWANCE << 8);
            self.allowance_at = now;
        }
        if self.allowance >= 256 {
            self.allowance -= 256;
            self.wanted = true;
        }
    }

    /// `bytes` were sent in an SD.
    pub(crate) fn on_data_sent(&mut self, bytes: usize) {
        self.sent_bytes = self.sent_bytes.saturating_add(bytes as u64);
    }

    /// Bytes sent in SDs since the last POLL.
    pub(crate) fn bytes_since_poll(&self) -> u64 {
        self.sent_bytes
    }

    /// The time between timer POLLs at the present back-off.
    pub(crate) fn interval(&self, pace: Pace, round_trip: Span) -> Span {
        let tick = self.config.tick;
        match pace {
            Pace::Timer => {
                // Rounded up, or the last POLL of a round trip would come before the STAT.
                let parts = u64::from(self.config.per_round_trip.max(1));
                let round_trips = round_trip * u64::from(self.config.round_trips.max(1));
                let base = Span::from_nanos(round_trips.as_nanos().div_ceil(parts));
                let longest = round_trips.max(tick) * (1 << self.config.backoff_cap.min(16));
                let backed_off = base * (1 << self.backoff.min(16));
                backed_off.min(if self.config.backoff_cap == 0 { base } else { longest })
            }
            // Two ticks beyond the round trip: the answer is due just when it is over.
            Pace::Fallback => round_trip.max(tick * 2) * (1 << self.backoff.min(16)) + tick * 2,
            Pace::Persist => round_trip.max(tick * 2) * (1 << self.backoff.min(16)),
            Pace::Probe => round_trip.max(tick * 2),
        }
        .max(self.config.spacing)
        .max(LEAST_INTERVAL)
    }

    /// When the next POLL is due at this pace. Before the first one: at once.
    pub(crate) fn due(&self, pace: Option<Pace>, armed_at: Instant, round_trip: Span) -> Instant {
        if self.urgent {
            return Instant::ZERO;
        }
        let spaced = self.last_sent.map_or(Instant::ZERO, |sent| sent + self.config.spacing);
        if self.wanted {
            return spaced;
        }
        let Some(pace) = pace else { return Instant::FAR_FUTURE };
        let start = self.last_sent.map_or(armed_at, |sent| sent.max(armed_at));
        (start + self.interval(pace, round_trip)).max(spaced)
    }

    /// `due`, but no later than `most` after the last POLL, nor earlier than `least` after it
    /// unless something asks for one.
    pub(crate) fn within(&self, due: Instant, armed_at: Instant, range: Range<Span>) -> Instant {
        if self.wanted || self.urgent {
            return due;
        }
        let start = self.last_sent.map_or(armed_at, |sent| sent.max(armed_at));
        let most = range.end.max(self.config.spacing);
        due.min(start + most).max(start + range.start)
    }

    /// The count of the next POLL. `clock` is the least that it may be: published segments use
    /// their millisecond clock as the count.
    pub(crate) fn next_count(&self, clock: Option<u32>) -> u32 {
        let next = self.count.wrapping_add(1);
        match clock {
            Some(clock) if (clock.wrapping_sub(next) as i32) > 0 => clock,
            Some(_) | None => next,
        }
    }

    /// A POLL with [`Polling::next_count`] goes out at `now`. `late`: an answer is overdue.
    pub(crate) fn on_sent(&mut self, now: Instant, clock: Option<u32>, late: bool) -> u32 {
        if late {
            self.backoff = (self.backoff + 1).min(self.config.backoff_cap);
        }
        if self.book.len() == BOOK {
            let mut keep = false;
            self.book.retain(|_| {
                keep = !keep;
                keep
            });
            self.thinned = Some(self.count);
        }
        self.count = self.next_count(clock);
        self.book.push_back(Sent { count: self.count, at: now });
        self.last_sent = Some(now);
        self.wanted = false;
        self.urgent = false;
        self.answered_since_last = false;
        self.sent_bytes = 0;
        self.count
    }

    /// A STAT echoes `count`. `None`: no such POLL is waiting (error R).
    pub(crate) fn on_answer(&mut self, now: Instant, count: u32) -> Option<Answer> {
        let ahead = count.wrapping_sub(self.answered) as i32;
        let beyond = self.count.wrapping_sub(count) as i32;
        if ahead < 0 || beyond < 0 || self.last_sent.is_none() {
            return None;
        }
        let first = ahead > 0;
        // Only counts that were used can be echoed: published counts have holes.
        let forgotten = self.thinned.is_some_and(|newest| !sent_before(newest, count));
        let sent_at = self.book.iter().find(|sent| sent.count == count).map(|sent| sent.at);
        if first && sent_at.is_none() && !forgotten {
            return None;
        }
        if first {
            while self.book.front().is_some_and(|sent| sent_before(sent.count, count)) {
                self.book.pop_front();
            }
        }
        self.answered = count;
        self.backoff = 0;
        self.last_answer = Some(now);
        self.answered_since_last = true;
        Some(Answer { sent_at, first })
    }

    fn is_newer(&self, count: u32) -> bool {
        (count.wrapping_sub(self.answered) as i32) > 0
    }
}

/// Whether an SD stamped `stamp` was last sent before the POLL counted `count`, and so should
/// have arrived before it (XSTP-7.3.2).
pub(crate) fn sent_before(stamp: u32, count: u32) -> bool {
    (count.wrapping_sub(stamp) as i32) > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(600);

    fn polling(backoff_cap: u32) -> Polling {
        Polling::new(
            PollingConfig {
                per_round_trip: 3,
                round_trips: 1,
                backoff_cap,
                tick: Span::from_millis(10),
                spacing: Span::from_millis(5),
            },
            0,
        )
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Span::from_millis(millis)
    }

    /// XSTP-10.2.1
    #[test]
    fn the_timer_polls_three_times_a_round_trip() {
        let mut polling = polling(6);
        assert_eq!(polling.due(Some(Pace::Timer), at(0), RTT), at(200));
        polling.on_sent(at(200), None, false);
        assert_eq!(polling.due(Some(Pace::Timer), at(0), RTT), at(400));
        assert_eq!(polling.due(None, at(0), RTT), Instant::FAR_FUTURE);
        polling.config.round_trips = 6;
        assert_eq!(polling.due(Some(Pace::Timer), at(0), RTT), at(1_400), "once every two");
    }

    /// XSTP-10.2.3
    #[test]
    fn silence_doubles_the_interval_up_to_a_cap_and_an_answer_ends_it() {
        let mut polling = polling(2);
        for expected in [400, 800, 800] {
            polling.on_sent(at(0), None, true);
            assert_eq!(polling.interval(Pace::Timer, RTT), Span::from_millis(expected));
        }
        assert_eq!(polling.interval(Pace::Fallback, RTT), Span::from_millis(2420));
        polling.on_answer(at(900), polling.count());
        assert_eq!(polling.interval(Pace::Timer, RTT), Span::from_millis(200));
        assert_eq!(polling.interval(Pace::Fallback, RTT), Span::from_millis(620));
    }

    /// XSTP-10.2.4
    #[test]
    fn a_cap_of_zero_never_backs_off() {
        let mut polling = polling(0);
        for _ in 0..100 {
            polling.on_sent(at(0), None, true);
        }
        assert_eq!(polling.interval(Pace::Timer, RTT), Span::from_millis(200));
    }

    /// XSTP-10.2.5
    #[test]
    fn polls_keep_their_distance() {
        let mut polling = polling(0);
        polling.on_sent(at(10), None, false);
        polling.want();
        assert_eq!(polling.due(None, at(0), RTT), at(15));
        assert_eq!(polling.interval(Pace::Timer, RTT / 200), RTT / 120, "the timer too");
    }

    /// XSTP-10.2.1: storms have found the timer of a session without spacing asking for ever.
    #[test]
    fn a_round_trip_of_no_time_at_all_does_not_ask_without_end() {
        let mut polling = polling(0);
        polling.config.spacing = Span::ZERO;
        polling.on_sent(at(10), None, false);
        assert_eq!(polling.due(Some(Pace::Timer), at(0), Span::ZERO), at(11));
    }

    /// XSTP-7.3.5: storms have found sessions that asked every millisecond where a round trip had
    /// become 600 of them: each answer came when its POLL was forgotten, and was ignored.
    #[test]
    fn answers_find_their_polls_however_many_went_out_meanwhile() {
        let mut polling = polling(0);
        let mut sampled = 0;
        for millis in 1..10_000 {
            polling.on_sent(at(millis), Some(2 * millis as u32), false);
            if millis > 600 {
                let answer = polling.on_answer(at(millis), 2 * (millis as u32 - 600));
                let answer = answer.expect("it was asked");
                assert!(answer.first);
                let late = answer.sent_at.is_some_and(|sent| at(millis).since(sent) != RTT);
                assert!(!late, "the right POLL or none");
                sampled += u32::from(answer.sent_at.is_some());
            }
        }
        assert!(sampled > 100, "{sampled}");
        assert_eq!(polling.on_answer(at(10_000), 30_000), None, "never asked");
    }

    /// XSTP-10.2.6
    #[test]
    fn a_flow_that_runs_dry_all_the_time_polls_no_faster_than_twice_the_timer() {
        let mut polling = polling(0);
        let mut polls = 0;
        for millis in (0..60_000).step_by(2) {
            polling.want_when_dry(at(millis), RTT);
            if polling.due(Some(Pace::Timer), at(0), RTT) <= at(millis) {
                polling.on_sent(at(millis), None, false);
                polls += 1;
            }
        }
        assert!((300..=620).contains(&polls), "{polls} in a minute, where the timer makes 300");
    }

    /// XSTP-10.1.3
    #[test]
    fn answers_are_taken_once_in_order_and_within_what_was_asked() {
        let mut polling = polling(6);
        assert_eq!(polling.on_answer(at(0), 0), None, "nothing was asked");
        for millis in [100, 200, 300] {
            polling.on_sent(at(millis), None, false);
        }
        assert_eq!(polling.silent_since(), Some(at(100)));
        assert_eq!(polling.on_answer(at(800), 4), None, "never asked");
        let answer = Answer { sent_at: Some(at(200)), first: true };
        assert_eq!(polling.on_answer(at(800), 2), Some(answer));
        assert_eq!(polling.silent_since(), Some(at(800)));
        let again = Answer { first: false, ..answer };
        assert_eq!(polling.on_answer(at(801), 2), Some(again), "the second part of a list");
        assert_eq!(polling.on_answer(at(802), 1), None, "older than what was answered");
        assert!(polling.is_outstanding());
        polling.on_answer(at(900), 3);
        assert!(!polling.is_outstanding());
        assert_eq!(polling.silent_since(), None);
    }

    /// XSTP-2.2.2
    #[test]
    fn counts_that_come_from_a_clock_grow_strictly() {
        let mut polling = polling(6);
        assert_eq!(polling.on_sent(at(0), Some(1000), false), 1000);
        assert_eq!(polling.on_sent(at(0), Some(1000), false), 1001);
        assert_eq!(polling.on_sent(at(0), Some(1000), false), 1002);
        assert_eq!(polling.on_sent(at(0), Some(2000), false), 2000);
        assert_eq!(polling.on_answer(at(1), 1500), None, "a count between two that were used");
        assert!(sent_before(u32::MAX, 3), "counts wrap");
        assert!(!sent_before(3, 3));
    }
}
