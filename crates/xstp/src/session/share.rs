//! How much of a sender's rate POLLs and reports may take when no data carries them.
//!
//! ```text
//!   control goes ──▶ no more of it alone before    n × the time that it takes at our pace
//! ```
//!
//! On a return channel of 1 kbit/s a STAT takes half a second, and three of them for each round
//! trip would leave nothing for a request, and a queue besides. With the bound they become fewer
//! and newer: a STAT that waits is not sent late but made later, and answers the newest POLL.
//! Where there is data to ride on they ride, which costs next to nothing.

use super::Session;
use super::polling::Pace;
use super::state::State;
use units::{BitRate, Instant, Span};

/// About what a POLL and a STAT take with what lies below, octets.
const CONTROL: u64 = 80;
/// A way is narrow where the timer's POLLs would take more than this part of it, one in so many.
const NARROW: u64 = 32;
/// Who has something to send says at least a word in this time, when he hears nothing, or when
/// that would take more than this part of his rate or of the peer's, one in so many, as much more
/// rarely.
const SILENCE: Span = Span::from_secs(2);
const WORDS: u64 = 16;

/// The share, and what the pace means for waiting.
#[derive(Clone, Debug, Default)]
pub(crate) struct Share {
    /// No control alone before this.
    from: Instant,
    /// What our own pace, and the way back, add to the time until an answer.
    slowness: Span,
    /// When the answer to the last POLL should be there, where a way is narrow: the timer does not
    /// ask before for what that POLL has asked for.
    answer: Instant,
}

impl Session {
    /// When POLLs and reports may go without data. A list that has begun is not cut, and the first
    /// STAT does not wait for what the handshake took: with the next one it tells the peer the
    /// rate of a train, where together they would be one.
    pub(super) fn control_from(&self) -> Instant {
        let first = self.last_stat_sent.is_none() && self.receiver.stat_due();
        if self.in_list || first { Instant::ZERO } else { self.share.from }
    }

    /// What our pace, and the way back where it is known to be narrow, may add to the time in
    /// which a POLL is answered: it waits its turn, and so does the STAT.
    pub(super) fn slowness(&self) -> Span {
        self.share.slowness
    }

    /// A POLL went out: where our way or the one back is narrow, what it has asked for is waited
    /// for (XSTP-10.2.7). Not where an answer is `late`: the link may be down, and is to be used as
    /// soon as it is there again.
    pub(super) fn wait_for_answer(&mut self, now: Instant, late: bool) {
        let pace = self.congestion.known(now).or(self.config.paced_rate());
        let ways = [pace, self.config.reverse_rate, self.granted];
        let interval = self.polling.interval(Pace::Timer, self.round_trip.smoothed());
        let narrow = ways.iter().flatten().any(|way| way.time_for(CONTROL * NARROW) > interval);
        let waits = self.config.gateway.low_rate.is_some() && narrow && !late;
        self.share.answer = if waits { now + self.round_trip.answer() } else { Instant::ZERO };
    }

    /// No POLL of the timer goes before this: the last one asked for all that is out, and its
    /// answer may be on the way.
    pub(super) fn asked_until(&self) -> Instant {
        let new = self.polling.bytes_since_poll() > 0 || self.sender.queued() > 0;
        let waits = self.polling.is_outstanding() && !new;
        if waits { self.share.answer } else { Instant::ZERO }
    }

    /// A datagram that is none of this session's, with `len` bytes where a segment would stand,
    /// takes its share of the way: what follows waits for it.
    pub fn charge_beside(&mut self, now: Instant, len: usize) {
        self.charge(now, len, false);
    }

    /// What was lost of late was lost because it was too large for the path, and says nothing of
    /// its rate. [`set_max_segment`](Self::set_max_segment) tells of the size.
    pub fn losses_were_size(&mut self, now: Instant) {
        self.congestion.on_resized(now);
        // What was sent at next to no rate is not waited for.
        self.pacer.forget(now);
        self.polling.want();
    }

    /// Control of `octets`, with all that lies below, went out alone.
    pub(super) fn charge_control(&mut self, now: Instant, octets: usize) {
        let part = u64::from(self.config.gateway.control_divisor().unwrap_or(0));
        if part == 0 {
            return;
        }
        if let Some(rate) = self.control_rate(now) {
            self.share.from = self.share.from.max(now) + rate.time_for(octets as u64 * part);
        }
    }

    /// What control has a share of: our pace where it is more than a guess, else what it may be at
    /// most; no more than what we were granted, for that is what control is charged at.
    fn control_rate(&self, now: Instant) -> Option<BitRate> {
        let pace = self.congestion.known(now).or(self.config.paced_rate());
        [pace, self.granted].into_iter().flatten().min()
    }

    /// When a POLL goes whatever else keeps it back: data waits, as it does for long where the pace
    /// is next to nothing, and nothing was sent or heard meanwhile. So a peer that is gone, or
    /// another by now, is found out about.
    pub(super) fn word_at(&self) -> Option<Instant> {
        let waits = self.fresh_waiting || self.sender.queued() > 0;
        if self.config.gateway.low_rate.is_none() || !waits || self.state == State::Beginning {
            return None;
        }
        let sent = [self.last_data_sent, self.last_stat_sent, self.polling.last_sent()];
        let last = sent.into_iter().flatten().fold(self.last_heard, Instant::max);
        // The answer takes as much of the way back, and must not run into that to a train.
        let ways = [self.config.paced_rate(), self.granted, self.config.reverse_rate];
        let rate = ways.into_iter().flatten().min();
        let word = rate.map_or(Span::ZERO, |rate| rate.time_for(CONTROL * WORDS));
        Some(last + SILENCE.max(word))
    }

    /// An answer seems to be overdue: looks at what the pace is by now.
    pub(super) fn review_slowness(&mut self, now: Instant) {
        let part = u64::from(self.config.gateway.control_divisor().unwrap_or(0));
        if part == 0 {
            return;
        }
        let full = (self.max_segment + self.config.packet_overhead) as u64;
        let pace = self.congestion.known(now).or(self.config.paced_rate());
        let own = pace.map_or(Span::ZERO, |rate| rate.time_for(full + part * CONTROL));
        let back = self.config.reverse_rate;
        let back = back.map_or(Span::ZERO, |rate| rate.time_for((part + 1) * CONTROL));
        self.share.slowness = own + back;
    }
}
