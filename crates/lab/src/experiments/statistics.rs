//! Means with their 95 % confidence intervals, and quantiles.

use serde::{Deserialize, Serialize};

/// Mean of independent replications with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of replications.
    pub n: usize,
    /// Mean of the replications.
    pub mean: f64,
    /// Standard deviation, with divisor n − 1.
    pub deviation: f64,
    /// Half-width of the 95 % confidence interval by Student's t: zero for equal values, infinite
    /// for a single one.
    pub half: f64,
}

impl Summary {
    /// Summarises `values`. Without values the mean is zero and the interval infinite.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len();
        if n == 0 {
            return Self { n, mean: 0.0, deviation: 0.0, half: f64::INFINITY };
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        if n == 1 {
            return Self { n, mean, deviation: 0.0, half: f64::INFINITY };
        }
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let deviation = (squares / (n - 1) as f64).sqrt();
        let half = student(n - 1) * deviation / (n as f64).sqrt();
        Self { n, mean, deviation, half }
    }

    /// Returns the summary of an exactly known value.
    pub fn exact(value: f64) -> Self {
        Self { n: 1, mean: value, deviation: 0.0, half: 0.0 }
    }

    /// Returns the confidence interval, if it is finite.
    pub fn interval(&self) -> Option<[f64; 2]> {
        self.half.is_finite().then_some([self.mean - self.half, self.mean + self.half])
    }

    /// Returns the summary multiplied by `factor`.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        let deviation = self.deviation * factor.abs();
        Self { n: self.n, mean: self.mean * factor, deviation, half: self.half * factor.abs() }
    }

    /// Returns true if the whole confidence interval is above `bound`.
    pub fn clearly_above(&self, bound: f64) -> bool {
        self.mean - self.half > bound
    }

    /// Returns true if the whole confidence interval is below `bound`.
    pub fn clearly_below(&self, bound: f64) -> bool {
        self.mean + self.half < bound
    }
}

/// Formats a mean with `digits` decimals, followed by `± half-width` unless that is zero.
pub(crate) fn shown(summary: Summary, digits: usize) -> String {
    match summary.interval() {
        Some(_) if summary.half > 0.0 => {
            format!("{:.digits$} ± {:.digits$}", summary.mean, summary.half)
        }
        Some(_) | None => format!("{:.digits$}", summary.mean),
    }
}

/// Formats a mean with the half-width of its interval.
pub(crate) fn pm(summary: Summary, digits: usize) -> String {
    match summary.interval() {
        Some(_) => format!("{:.digits$} ± {:.digits$}", summary.mean, summary.half),
        None => format!("{:.digits$}", summary.mean),
    }
}

/// Returns the ratio of the means of two paired samples less one, with its interval by the delta
/// method.
pub fn relative_gain(first: &[f64], second: &[f64]) -> Summary {
    let n = first.len().min(second.len());
    let (a, b) = (Summary::of(&first[..n]), Summary::of(&second[..n]));
    if n == 0 || b.mean == 0.0 {
        return Summary::of(&[]);
    }
    let ratio = a.mean / b.mean;
    let residuals: Vec<f64> =
        first.iter().zip(second).map(|(x, y)| (x - ratio * y) / b.mean).collect();
    let spread = Summary::of(&residuals);
    Summary { n, mean: ratio - 1.0, deviation: spread.deviation, half: spread.half }
}

/// Returns the jackknife estimate of an interval: `parts` are the values of `number` with each
/// replication left out. Fewer than two parts give an infinite interval.
pub fn jackknife(number: f64, parts: &[f64]) -> Summary {
    let n = parts.len();
    if n < 2 {
        return Summary { n, mean: number, deviation: 0.0, half: f64::INFINITY };
    }
    let mean = parts.iter().sum::<f64>() / n as f64;
    let squares: f64 = parts.iter().map(|part| (part - mean) * (part - mean)).sum();
    let error = (squares * (n - 1) as f64 / n as f64).sqrt();
    let half = student(n - 1) * error;
    Summary { n, mean: number, deviation: error * (n as f64).sqrt(), half }
}

/// Returns the quantile `q` (0 to 1) of `values` by linear interpolation; `None` without values.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let place = q.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64))
}

/// Returns the slope of the least-squares line; `None` if all points have the same abscissa.
pub fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let mean = |part: fn(&(f64, f64)) -> f64| points.iter().map(part).sum::<f64>() / n;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let across: f64 = points.iter().map(|point| (point.0 - x) * (point.0 - x)).sum();
    let both: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    (across > 0.0).then(|| both / across)
}

/// 0.975 quantiles of Student's t with 1 to 30 degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// Returns the 0.975 quantile of Student's t. Beyond the table it uses the Cornish-Fisher
/// expansion, which is accurate to three digits there.
fn student(freedom: usize) -> f64 {
    let normal = 1.959_964_f64;
    match STUDENT.get(freedom.saturating_sub(1)) {
        Some(&value) => value,
        None => {
            let f = freedom as f64;
            let cube = normal.powi(3);
            normal
                + (cube + normal) / (4.0 * f)
                + (5.0 * normal.powi(5) + 16.0 * cube + 3.0 * normal) / (96.0 * f * f)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_of_a_hand_calculated_example() {
        // Mean 5, squares 16 + 4 + 4 + 16 = 40, deviation sqrt(40/3), t(3) = 3.182.
        let seen = Summary::of(&[1.0, 3.0, 7.0, 9.0]);
        assert_eq!((seen.n, seen.mean), (4, 5.0));
        assert!((seen.deviation - 3.651_484).abs() < 1e-6);
        assert!((seen.half - 3.182 * 3.651_484 / 2.0).abs() < 1e-5);
        assert!(seen.clearly_above(-0.9) && !seen.clearly_above(-0.7));
        assert_eq!(Summary::of(&[2.0, 2.0]).half, 0.0);
        assert_eq!(Summary::of(&[2.0]).interval(), None);
    }

    #[test]
    fn jackknife_of_a_mean_equals_its_interval() {
        let values = [1.0, 3.0, 7.0, 9.0];
        let mean = |left_out: usize| {
            let kept = (0..4).filter(|&index| index != left_out);
            kept.map(|index| values[index]).sum::<f64>() / 3.0
        };
        let parts: Vec<f64> = (0..4).map(mean).collect();
        let (plain, jackknifed) = (Summary::of(&values), jackknife(5.0, &parts));
        assert!((plain.half - jackknifed.half).abs() < 1e-9, "{plain:?} {jackknifed:?}");
        assert!((plain.deviation - jackknifed.deviation).abs() < 1e-9);
        assert_eq!(jackknife(5.0, &parts[..1]).interval(), None);
    }

    #[test]
    fn students_t_is_continuous_beyond_the_table() {
        assert_eq!(student(19), 2.093);
        assert!((student(40) - 2.021).abs() < 5e-4, "{}", student(40));
        assert!((student(120) - 1.980).abs() < 5e-4, "{}", student(120));
    }

    #[test]
    fn quantiles_are_interpolated() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(quantile(&values, 0.0), Some(1.0));
        assert_eq!(quantile(&values, 0.5), Some(2.5));
        assert_eq!(quantile(&values, 1.0), Some(4.0));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn paired_gains_have_narrower_intervals() {
        let off = [10.0, 20.0, 30.0, 40.0];
        let on: Vec<f64> = off.iter().map(|value| value * 1.5).collect();
        let gain = relative_gain(&on, &off);
        assert!((gain.mean - 0.5).abs() < 1e-12 && gain.half < 1e-12, "{gain:?}");
        let mixed = relative_gain(&[60.0, 15.0, 45.0, 30.0], &off);
        assert!((mixed.mean - 0.5).abs() < 1e-12 && mixed.half > 0.5, "{mixed:?}");
    }

    #[test]
    fn slope_of_a_line() {
        assert_eq!(slope(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]), Some(2.0));
        assert_eq!(slope(&[(1.0, 1.0), (1.0, 3.0)]), None);
    }
}
