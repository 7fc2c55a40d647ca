//! The window of a scalable sender: DCTCP's response (RFC 8257, section 3.3) to AccECN's count of
//! marks, as TCP Prague (draft-briscoe-iccrg-prague-congestion-control).
//!
//! ```text
//!   each round    alpha += (marked / delivered - alpha) / 16        RFC 8257, section 3.3, step 6
//!   a mark        cwnd -= cwnd alpha / 2, once per round            step 9
//!                 ssthresh = cwnd: slow start ends with the first
//!   an ACK        cwnd += SMSS (acked - marked) / cwnd
//!   loss          as Reno: half                                     section 3.5
//! ```
//!
//! alpha is 1 at first. Growth is Reno's, so that it depends on the round trip: the independence
//! from it that Prague has below 25 ms is not modelled.

use super::{Acked, Levels, Marks, Reno};

/// g, the weight of a round.
const GAIN: f64 = 1.0 / 16.0;

/// Reno's window with alpha.
#[derive(Clone, Debug)]
pub(crate) struct Prague {
    reno: Reno,
    alpha: f64,
    /// Octets marked and delivered in this round, which ends with this number.
    marked: u64,
    delivered: u64,
    round_end: u64,
    /// The window is not reduced again before this is acknowledged.
    reduced_until: u64,
    /// Marked octets of the current acknowledgement, which do not open the window.
    unused: u64,
}

impl Prague {
    pub(crate) fn new(levels: Levels) -> Self {
        Self {
            reno: Reno::new(levels),
            alpha: 1.0,
            marked: 0,
            delivered: 0,
            round_end: 0,
            reduced_until: 0,
            unused: 0,
        }
    }

    pub(crate) fn levels(&self) -> &Levels {
        self.reno.levels()
    }

    pub(crate) fn levels_mut(&mut self) -> &mut Levels {
        self.reno.levels_mut()
    }

    /// Handles the marks of an acknowledgement, before the acknowledgement itself; returns whether
    /// the window is reduced.
    pub(crate) fn on_marks(&mut self, marks: &Marks) -> bool {
        self.marked += marks.bytes;
        self.delivered += marks.delivered;
        self.unused = marks.bytes;
        if marks.up_to > self.round_end && self.delivered > 0 {
            let share = (self.marked as f64 / self.delivered as f64).min(1.0);
            self.alpha += (share - self.alpha) * GAIN;
            (self.marked, self.delivered, self.round_end) = (0, 0, marks.next);
        }
        if marks.bytes == 0 || marks.up_to <= self.reduced_until {
            return false;
        }
        self.reduced_until = marks.next;
        let levels = self.reno.levels_mut();
        let cut = levels.window() as f64 * self.alpha / 2.0;
        levels.set_threshold(levels.window() - cut as u64);
        levels.set_window(levels.threshold());
        true
    }

    pub(crate) fn on_ack(&mut self, acked: &Acked) {
        let bytes = acked.bytes.saturating_sub(core::mem::take(&mut self.unused));
        if bytes > 0 {
            self.reno.on_ack(&Acked { bytes, ..*acked });
        }
    }

    pub(crate) fn on_loss(&mut self, flight: u64) {
        self.reno.on_loss(flight);
    }

    pub(crate) fn on_timeout(&mut self, flight: u64, first: bool) {
        self.reno.on_timeout(flight, first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    /// A round of 100 segments, each acknowledged alone, of which every `nth` is marked (0: none);
    /// returns the number of reductions.
    fn round(prague: &mut Prague, number: u64, nth: u64) -> u64 {
        let mut reductions = 0;
        for n in 1..=100 {
            let up_to = (number * 100 + n) * MSS;
            let bytes = if nth > 0 && n % nth == 0 { MSS } else { 0 };
            let marks = Marks { bytes, delivered: MSS, up_to, next: up_to + 100 * MSS };
            reductions += u64::from(prague.on_marks(&marks));
        }
        reductions
    }

    #[test]
    fn first_mark_halves_and_ends_slow_start() {
        let mut prague = Prague::new(Levels::new(MSS, 100 * MSS, None));
        assert_eq!(round(&mut prague, 0, 0), 0);
        assert!(prague.levels().in_slow_start());
        assert_eq!(round(&mut prague, 1, 100), 1);
        // alpha has decayed twice: by the first acknowledgement of each round.
        let share = 1.0 - 0.5 * (15.0 / 16.0) * (15.0 / 16.0);
        assert_eq!(prague.levels().window(), (100_000.0 * share) as u64 + 1);
        assert!(!prague.levels().in_slow_start());
    }

    #[test]
    fn alpha_becomes_the_marked_share_and_the_cut_is_half_of_it() {
        let mut prague = Prague::new(Levels::new(MSS, 100 * MSS, None));
        let mut reductions = 0;
        for number in 0..200 {
            reductions += round(&mut prague, number, 10);
        }
        assert!((prague.alpha - 0.1).abs() < 0.01, "{}", prague.alpha);
        // The first mark of data sent after a reduction is ten segments behind it: 20,000 / 110.
        assert!((181..=183).contains(&reductions), "once per round: {reductions}");
        prague.levels_mut().set_window(100 * MSS);
        round(&mut prague, 200, 10);
        let window = prague.levels().window();
        assert!((94_000..=96_000).contains(&window), "5 %: {window}");
    }
}
