//! Figure 19, throughput by file size, and the gain of header compression.

use super::cells::{compression_gain, published};
use super::report::{COMPRESSION_PAGE, RESULTS};
use super::stacks::{COMPRESSED_UNDER, RATES, SIZES, TITLES};
use super::{CURVE, CURVE_SIZES, Results, STACKS, counted_bits, key, latency, throughput};
use crate::experiments::{Figure, Series};

/// Returns figure 19: latency by file size, both logarithmic.
pub(super) fn latency_by_size(results: &Results) -> Figure {
    let mut series = Vec::new();
    for (r, &rate) in RATES.iter().enumerate() {
        let key = key("chosen", rate);
        let points = CURVE_SIZES
            .into_iter()
            .map(|size| (size as f64, latency(results, CURVE, &key, size).0));
        series.push(Series::new(format!("ours, {:.1} kbit/s", rate as f64 / 1e3), points));
        let table_1 = SIZES.into_iter().zip(published()[r]);
        let implied = table_1.map(|(size, bps)| (size as f64, counted_bits(size) / bps));
        let name = format!("from table 1, {:.1} kbit/s", rate as f64 / 1e3);
        series.push(Series::dashed(name, implied));
    }
    RESULTS.figure("radio-figure-19", series)
}

/// Returns table 1 as a figure, for the rate with index `r`.
pub(super) fn throughput_by_size(results: &Results, r: usize) -> Figure {
    let rate = RATES[r];
    let table_1 = SIZES.into_iter().zip(published()[r]).map(|(size, bps)| (size as f64, bps));
    let mut series = vec![Series::dashed("table 1", table_1)];
    for (name, title) in TITLES {
        // The lower rate has no noise.
        if r == 0 && name == "noise" {
            continue;
        }
        let points =
            SIZES.map(|size| (size as f64, throughput(results, STACKS, &key(name, rate), size)));
        series.push(Series::new(title, points));
    }
    let figure = RESULTS.figure("radio-table-1", series);
    let title = format!("{} {:.1} kbit/s", figure.title, rate as f64 / 1e3);
    Figure { id: format!("radio-table-1-{rate}"), title, ..figure }
}

/// Returns the figure of the gain of header compression.
pub(super) fn gain(results: &Results) -> Figure {
    let mut series = Vec::new();
    for rate in RATES {
        for (kind, title) in [("compressed", "same segments"), ("filled", "frames filled")] {
            let points = SIZES.map(|size| {
                let gain = compression_gain(results, kind, COMPRESSED_UNDER[0].0, rate, size);
                (size as f64, gain.scaled(100.0))
            });
            series.push(Series::new(format!("{title}, {:.1} kbit/s", rate as f64 / 1e3), points));
        }
    }
    COMPRESSION_PAGE.figure("radio-compression", series)
}
