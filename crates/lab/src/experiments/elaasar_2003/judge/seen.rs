//! The results of the six tests in the paper's terms.

use super::super::conditions::Condition;
use super::super::trial::Party;
use super::super::{
    AMBIGUITIES, FIGURES, figure_key, variant_key,
    variants::{AS_CHOSEN, Variant},
};
use crate::experiments::statistics::{self, relative_gain};
use crate::experiments::{Results, Setting, Summary};

/// Results with accessors for the quantities of the claims.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) setting: &'a Setting,
    pub(super) results: &'a Results,
    /// A replication that is excluded (jackknife).
    left_out: Option<usize>,
}

/// Names of frequently used values of a job.
pub(super) const THROUGHPUT: &str = "throughput_bps";
pub(super) const OVERHEAD: &str = "overhead_percent";
pub(super) const RATIO: &str = "ratio_bps_per_percent";
pub(super) const RETRANSMISSIONS: &str = "retransmission_percent";
pub(super) const WINDOW: &str = "window_segments";

impl<'a> Seen<'a> {
    pub(super) fn new(setting: &'a Setting, results: &'a Results) -> Self {
        Self { setting, results, left_out: None }
    }

    /// Returns a value of each included replication.
    pub(super) fn of(&self, study: &str, key: &str, name: &str) -> Vec<f64> {
        let mut values = self.results.values(study, key, name);
        if let Some(left_out) = self.left_out.filter(|&left_out| left_out < values.len()) {
            values.remove(left_out);
        }
        values
    }

    /// Computes a number from the results, with the jackknife estimate of its confidence interval.
    pub(super) fn jackknife(&self, number: impl Fn(&Seen<'_>) -> f64) -> Summary {
        let without = |index| number(&Seen { left_out: Some(index), ..*self });
        let replications = self.setting.replications as usize;
        // The only replication cannot be excluded.
        let parts: Vec<f64> = match replications {
            0 | 1 => Vec::new(),
            _ => (0..replications).map(without).collect(),
        };
        statistics::jackknife(number(self), &parts)
    }

    pub(super) fn points(&self, condition: Condition) -> &'static [u32] {
        condition.points(self.setting.quick)
    }

    pub(super) fn lossy(&self, condition: Condition) -> Vec<u32> {
        condition.lossy_points(self.setting.quick)
    }

    pub(super) fn values(&self, at: (Condition, u32), party: Party, name: &str) -> Vec<f64> {
        self.of(FIGURES, &figure_key(at.0, at.1, party), name)
    }

    pub(super) fn mean(&self, at: (Condition, u32), party: Party, name: &str) -> Summary {
        Summary::of(&self.values(at, party, name))
    }

    /// Returns the ratio of the means of ON and OFF less one, in percent.
    pub(super) fn gain(&self, at: (Condition, u32), name: &str) -> Summary {
        let (on, off) = (self.values(at, Party::On, name), self.values(at, Party::Off, name));
        relative_gain(&on, &off).scaled(100.0)
    }

    /// Returns the octets of POLLs, STATs, USTATs and handshakes without headers of data, in
    /// percent of the file.
    pub(super) fn control(&self, at: (Condition, u32), party: Party) -> Vec<f64> {
        let back = self.values(at, party, "reverse_control_percent");
        self.forward_control(at, party).iter().zip(back).map(|(f, b)| f + b).collect()
    }

    /// Returns the forward part of that.
    pub(super) fn forward_control(&self, at: (Condition, u32), party: Party) -> Vec<f64> {
        let all = self.values(at, party, "forward_control_percent");
        let headers = self.values(at, party, "data_headers_percent");
        all.iter().zip(headers).map(|(all, headers)| all - headers).collect()
    }

    /// Returns the number of bad states during each connection, computed from its duration.
    pub(super) fn events(&self, at: (Condition, u32), party: Party) -> Vec<f64> {
        let period = at.0.period(at.1);
        self.values(at, party, "seconds").iter().map(|seconds| seconds / period).collect()
    }

    /// Returns a value divided by the number of bad states.
    pub(super) fn per_event(&self, at: (Condition, u32), party: Party, name: &str) -> Vec<f64> {
        let of = self.values(at, party, name);
        of.iter().zip(self.events(at, party)).map(|(n, events)| n / events).collect()
    }

    /// Returns the fraction of its mean window that a party loses per bad state, in percent.
    pub(super) fn lost_share(&self, at: (Condition, u32), party: Party) -> Vec<f64> {
        let again = self.per_event(at, party, "segments_sent_again");
        let window = self.values(at, party, WINDOW);
        again.iter().zip(window).map(|(again, window)| again / window * 100.0).collect()
    }

    /// Returns the mean length of a probing cycle in seconds over all replications; `None` without
    /// any.
    pub(super) fn cycle(&self, at: (Condition, u32)) -> Option<f64> {
        let sum = |name| self.values(at, Party::On, name).iter().sum::<f64>();
        let cycles = sum("cycles");
        (cycles > 0.0).then(|| sum("probing_seconds") / cycles)
    }

    /// Returns a value of each replication under another interpretation.
    pub(super) fn varied(
        &self,
        variant: &Variant,
        at: (Condition, u32),
        party: Party,
        name: &str,
    ) -> Vec<f64> {
        self.of(AMBIGUITIES, &variant_key(variant, at.0, at.1, party), name)
    }

    /// Returns the ratio of a party's means under another and the chosen interpretation less one,
    /// in percent.
    pub(super) fn change(
        &self,
        variant: &Variant,
        at: (Condition, u32),
        party: Party,
        name: &str,
    ) -> Summary {
        let chosen = &AS_CHOSEN;
        let (varied, chosen) =
            (self.varied(variant, at, party, name), self.varied(chosen, at, party, name));
        relative_gain(&varied, &chosen).scaled(100.0)
    }

    /// Returns the mean gain of ON in throughput over `points` as chosen, and the gain over the
    /// same OFF that remains without a part of the mechanism; both in percent.
    pub(super) fn left_without(
        &self,
        variant: &Variant,
        condition: Condition,
        points: &[u32],
    ) -> (f64, f64) {
        let kept = |p| self.gain_in(&AS_CHOSEN, (condition, p), THROUGHPUT).mean / 100.0;
        let change = |p| self.change(variant, (condition, p), Party::On, THROUGHPUT).mean / 100.0;
        let left = |p| ((1.0 + kept(p)) * (1.0 + change(p)) - 1.0) * 100.0;
        (over(points, kept) * 100.0, over(points, left))
    }

    /// Returns the gain of ON over OFF under another interpretation, in percent.
    pub(super) fn gain_in(&self, variant: &Variant, at: (Condition, u32), name: &str) -> Summary {
        let of = |party| self.varied(variant, at, party, name);
        relative_gain(&of(Party::On), &of(Party::Off)).scaled(100.0)
    }
}

pub(super) fn short(party: Party) -> &'static str {
    match party {
        Party::Off => "OFF",
        Party::On => "ON",
        Party::Steady => "steady",
    }
}

/// Returns the sojourn time that names a test.
pub(super) fn length(test: Condition) -> String {
    let (Condition::Corruption(stay) | Condition::Handoff(stay) | Condition::Connectivity(stay)) =
        test;
    format!("{} s", stay.as_secs_f64())
}

/// Formats means as `5 %: 12, 20 %: 30`.
pub(super) fn listed(points: &[u32], mean: impl Fn(u32) -> f64, digits: usize) -> String {
    let words: Vec<String> =
        points.iter().map(|&point| format!("{point} %: {:.digits$}", mean(point))).collect();
    words.join(", ")
}

/// Formats means as [`listed`], with signs.
pub(super) fn signed(points: &[u32], mean: impl Fn(u32) -> f64) -> String {
    let words: Vec<String> =
        points.iter().map(|&point| format!("{point} %: {:+.1}", mean(point))).collect();
    words.join(", ")
}

/// Returns the point at which means first rise by more than both intervals, or the last point if it
/// is above the first.
pub(super) fn rises(points: &[u32], mean: impl Fn(u32) -> Summary) -> Option<u32> {
    let beyond = |pair: &&[u32]| {
        let (before, after) = (mean(pair[0]), mean(pair[1]));
        after.mean - finite(after.half) > before.mean + finite(before.half)
    };
    if let Some(pair) = points.windows(2).find(beyond) {
        return Some(pair[1]);
    }
    let (first, last) = (points.first()?, points.last()?);
    (mean(*last).mean >= mean(*first).mean).then_some(*last)
}

/// Returns the point at which means first fall by more than both intervals, or the last point if it
/// is below the first.
pub(super) fn falls(points: &[u32], mean: impl Fn(u32) -> Summary) -> Option<u32> {
    rises(points, |point| mean(point).scaled(-1.0))
}

/// A single replication has no interval.
fn finite(half: f64) -> f64 {
    if half.is_finite() { half } else { 0.0 }
}

/// Returns the mean of a quantity over points.
pub(super) fn over(points: &[u32], mean: impl Fn(u32) -> f64) -> f64 {
    points.iter().map(|&point| mean(point)).sum::<f64>() / points.len().max(1) as f64
}

/// Returns the summaries with the smallest and the largest mean.
pub(super) fn extremes(all: impl IntoIterator<Item = Summary>) -> (Summary, Summary) {
    let mut all: Vec<Summary> = all.into_iter().collect();
    all.sort_by(|a, b| a.mean.total_cmp(&b.mean));
    let none = Summary::of(&[]);
    (all.first().copied().unwrap_or(none), all.last().copied().unwrap_or(none))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rise_within_the_intervals_does_not_count() {
        let means = [9.0, 7.0, 7.5, 3.0];
        let mean = |half: f64| {
            move |point: u32| Summary { n: 5, mean: means[point as usize], deviation: 1.0, half }
        };
        let points = [0, 1, 2, 3];
        assert_eq!(rises(&points, mean(0.5)), None);
        assert_eq!(rises(&points, mean(0.1)), Some(2));
        assert_eq!(falls(&points, mean(0.5)), Some(1));
        assert_eq!(rises(&[1, 2], mean(0.5)), Some(2), "the end is above the beginning");
    }

    #[test]
    fn extremes_are_by_means() {
        let of = |mean| Summary::exact(mean);
        let (least, most) = extremes([of(3.0), of(-1.0), of(2.0)]);
        assert_eq!((least.mean, most.mean), (-1.0, 3.0));
    }
}
