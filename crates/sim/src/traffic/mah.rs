//! Web browsing in 1995: the quantiles of Mah's traces (B. A. Mah, "An Empirical Model of HTTP
//! Network Traffic", INFOCOM 1997), from which the satellite papers draw their loads.
//!
//! Values between the quantiles of the table are interpolated; below the first quantile its value
//! is used. A page is a primary file and the secondary files that it references; a user reads
//! several pages of one server, with a think time between them.

use units::{RngStream, Span};

/// A cumulative fraction, and its value.
type Quantile = (f64, f64);

/// The cumulative fractions of the rows below.
const SHARES: [f64; 29] = [
    0.01, 0.02, 0.05, 0.10, 0.15, 0.20, 0.25, 0.30, 0.35, 0.40, 0.45, 0.50, 0.55, 0.60, 0.65, 0.70,
    0.75, 0.80, 0.85, 0.90, 0.925, 0.95, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999, 1.0,
];

/// Octets of a page's primary file.
const PRIMARY_REPLY: [f64; 29] = [
    81.0,
    102.0,
    203.0,
    308.0,
    336.0,
    460.0,
    723.0,
    938.0,
    1165.0,
    1466.0,
    1756.0,
    2099.0,
    2363.0,
    2677.0,
    3211.0,
    3852.0,
    4461.0,
    5496.0,
    6876.0,
    11606.0,
    17020.0,
    26241.0,
    54938.0,
    85056.0,
    286_568.0,
    649_354.0,
    1_047_903.0,
    1_636_039.0,
    8_146_976.0,
];

/// Octets of a secondary file.
const SECONDARY_REPLY: [f64; 29] = [
    81.0, 81.0, 83.0, 103.0, 110.0, 303.0, 422.0, 558.0, 831.0, 1135.0, 1496.0, 1981.0, 2476.0,
    2905.0, 3426.0, 4139.0, 5640.0, 7586.0, 11054.0, 16918.0, 20990.0, 29336.0, 45090.0, 60356.0,
    73490.0, 109_775.0, 191_112.0, 204_121.0, 246_212.0,
];

/// Octets of the request for a page.
const PRIMARY_REQUEST: [f64; 29] = [
    118.0, 128.0, 155.0, 175.0, 200.0, 207.0, 212.0, 217.0, 221.0, 226.0, 233.0, 238.0, 246.0,
    258.0, 269.0, 283.0, 294.0, 319.0, 1074.0, 1114.0, 1124.0, 1133.0, 1144.0, 1147.0, 1158.0,
    1204.0, 1271.0, 1288.0, 1288.0,
];

/// Octets of the request for a secondary file.
const SECONDARY_REQUEST: [f64; 29] = [
    119.0, 126.0, 135.0, 142.0, 193.0, 199.0, 204.0, 209.0, 213.0, 218.0, 222.0, 227.0, 234.0,
    243.0, 252.0, 264.0, 278.0, 288.0, 300.0, 1057.0, 1061.0, 1073.0, 1121.0, 1135.0, 1152.0,
    1170.0, 1178.0, 1182.0, 1182.0,
];

/// Seconds between pages; below 1 s it was not a think time.
const THINKING: [f64; 29] = [
    1.13, 1.30, 1.62, 2.36, 3.36, 4.31, 5.23, 6.53, 8.00, 10.1, 12.5, 15.3, 19.4, 24.3, 31.3, 41.2,
    60.2, 94.2, 194.0, 538.0, 1500.0, 4039.0, 9115.0, 13_890.0, 53_173.0, 64_197.0, 75_131.0,
    78_116.0, 86_400.0,
];

/// Files of a page, the primary file included.
const FILES: [Quantile; 11] = [
    (0.486, 1.0),
    (0.692, 2.0),
    (0.781, 3.0),
    (0.826, 4.0),
    (0.875, 5.0),
    (0.904, 6.0),
    (0.940, 8.0),
    (0.961, 10.0),
    (0.987, 16.0),
    (0.996, 20.0),
    (1.0, 65.0),
];

/// Consecutive pages from one server.
const PAGES: [Quantile; 10] = [
    (0.356, 1.0),
    (0.549, 2.0),
    (0.664, 3.0),
    (0.747, 4.0),
    (0.791, 5.0),
    (0.881, 8.0),
    (0.909, 12.0),
    (0.957, 15.0),
    (0.996, 21.0),
    (1.0, 37.0),
];

/// A distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Octets of a page's primary file.
    PrimaryReply,
    /// Octets of a secondary file.
    SecondaryReply,
    /// Octets of the request for a page.
    PrimaryRequest,
    /// Octets of the request for a secondary file.
    SecondaryRequest,
    /// Files of a page, the primary file included.
    Files,
    /// Consecutive pages from one server.
    Pages,
}

/// Draws a number from a distribution.
pub fn draw(size: Size, rng: &mut RngStream) -> u64 {
    quantile(size, rng.uniform())
}

/// The mean of the values up to `largest`, and their fraction of all values.
pub fn mean_up_to(size: Size, largest: u64) -> (f64, f64) {
    const STEPS: u32 = 200_000;
    let middle = |step: u32| (f64::from(step) + 0.5) / f64::from(STEPS);
    let (mut sum, mut count) = (0.0, 0_u32);
    for value in (0..STEPS).map(|step| quantile(size, middle(step))) {
        if value <= largest {
            sum += value as f64;
            count += 1;
        }
    }
    (sum / f64::from(count.max(1)), f64::from(count) / f64::from(STEPS))
}

/// The quantile `share` (0 to 1) of a distribution.
pub fn quantile(size: Size, share: f64) -> u64 {
    let value = match size {
        Size::PrimaryReply => at(share, rows(&PRIMARY_REPLY)),
        Size::SecondaryReply => at(share, rows(&SECONDARY_REPLY)),
        Size::PrimaryRequest => at(share, rows(&PRIMARY_REQUEST)),
        Size::SecondaryRequest => at(share, rows(&SECONDARY_REQUEST)),
        Size::Files => at(share, FILES.into_iter()),
        Size::Pages => at(share, PAGES.into_iter()),
    };
    value.ceil() as u64
}

/// Draws a think time before the next page.
pub fn think(rng: &mut RngStream) -> Span {
    Span::from_secs_f64(at(rng.uniform(), rows(&THINKING)))
}

fn rows(values: &[f64; 29]) -> impl Iterator<Item = Quantile> {
    SHARES.into_iter().zip(*values)
}

/// The quantile `share` of the rows.
fn at(share: f64, rows: impl Iterator<Item = Quantile>) -> f64 {
    let mut below: Option<Quantile> = None;
    for (upper, value) in rows {
        if share <= upper {
            let Some((lower, least)) = below else { return value };
            return least + (value - least) * (share - lower) / (upper - lower);
        }
        below = Some((upper, value));
    }
    below.map_or(0.0, |(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_and_values_between_are_interpolated() {
        let reply = |share| at(share, rows(&PRIMARY_REPLY));
        assert_eq!(
            [reply(0.0), reply(0.01), reply(0.5), reply(1.0)],
            [81.0, 81.0, 2099.0, 8146976.0]
        );
        assert!((reply(0.525) - 2231.0).abs() < 1e-6);
        assert_eq!(at(0.3, FILES.into_iter()), 1.0);
        assert!((at(0.95, FILES.into_iter()) - 8.952_38).abs() < 1e-4, "between 8 and 10");
    }

    #[test]
    fn means_are_those_of_the_traces() {
        // The mean primary reply in the traces is 17,932 octets, with a standard error of 400 here;
        // 2.9 files per page, 4.1 consecutive pages.
        let mut rng = RngStream::new(1, 0, "mah");
        let mut mean =
            |size| (0..200_000).map(|_| draw(size, &mut rng) as f64).sum::<f64>() / 200_000.0;
        let primary = mean(Size::PrimaryReply);
        assert!((16_000.0..19_000.0).contains(&primary), "{primary}");
        // The same by integration; and without the largest.
        let (whole, share) = mean_up_to(Size::PrimaryReply, u64::MAX);
        assert!((whole / primary - 1.0).abs() < 0.06 && share == 1.0, "{whole} {primary}");
        let (culled, share) = mean_up_to(Size::PrimaryReply, 146_000);
        assert!(
            (4_500.0..5_500.0).contains(&culled) && (0.98..0.99).contains(&share),
            "{culled} {share}"
        );
        let secondary = mean(Size::SecondaryReply);
        assert!((6_000.0..7_500.0).contains(&secondary), "{secondary}");
        let requests = (mean(Size::PrimaryRequest), mean(Size::SecondaryRequest));
        assert!((380.0..420.0).contains(&requests.0), "{requests:?}");
        assert!((310.0..360.0).contains(&requests.1), "{requests:?}");
        let (files, pages) = (mean(Size::Files), mean(Size::Pages));
        assert!((2.7..3.2).contains(&files), "{files}");
        assert!((3.8..4.7).contains(&pages), "{pages}");
        let mut thoughts: Vec<Span> = (0..10_001).map(|_| think(&mut rng)).collect();
        thoughts.sort();
        let median = thoughts[5_000].as_secs_f64();
        assert!((14.0..17.0).contains(&median), "{median}");
    }
}
