//! Figure 19, throughput against size, and the gain of header compression.

use super::cells::{THROUGHPUT, compression_gain};
use super::stacks::{COMPRESSED_UNDER, RATES, SIZES, TITLES};
use super::{CURVE, CURVE_SIZES, Results, STACKS, counted_bits, key, latency, throughput};
use crate::experiments::{Axis, Figure, Series};

/// Figure 19: latency against size, both logarithmic.
pub(super) fn latency_by_size(results: &Results) -> Figure {
    let mut series = Vec::new();
    for (r, &rate) in RATES.iter().enumerate() {
        let key = key("chosen", rate);
        let points = CURVE_SIZES
            .into_iter()
            .map(|size| (size as f64, latency(results, CURVE, &key, size).0));
        series.push(Series::new(format!("ours, {:.1} kbit/s", rate as f64 / 1e3), points));
        let published =
            (0..SIZES.len()).map(|s| (SIZES[s] as f64, counted_bits(SIZES[s]) / THROUGHPUT[r][s]));
        let name = format!("from table 1, {:.1} kbit/s", rate as f64 / 1e3);
        series.push(Series::dashed(name, published));
    }
    Figure {
        id: "radio-figure-19".to_owned(),
        title: "Figure 19: latency over packet radio".to_owned(),
        x: Axis::log("size of the file, bytes"),
        y: Axis::log("latency, s"),
        series,
        note: "Dashed: what table 1 implies when it counts all headers. Up to 157 bytes a file \
               takes one frame."
            .to_owned(),
    }
}

/// Table 1 as a figure, for the rate numbered `r`.
pub(super) fn throughput_by_size(results: &Results, r: usize) -> Figure {
    let rate = RATES[r];
    let published = (0..SIZES.len()).map(|s| (SIZES[s] as f64, THROUGHPUT[r][s]));
    let mut series = vec![Series::dashed("table 1", published)];
    for (name, title) in TITLES {
        // At the lower rate there is no noise.
        if r == 0 && name == "noise" {
            continue;
        }
        let points =
            SIZES.map(|size| (size as f64, throughput(results, STACKS, &key(name, rate), size)));
        series.push(Series::new(title, points));
    }
    Figure {
        id: format!("radio-table-1-{rate}"),
        title: format!("Table 1 at {:.1} kbit/s", rate as f64 / 1e3),
        x: Axis::log("size of the file, bytes"),
        y: Axis::log("throughput with all headers counted, bit/s"),
        series,
        note: String::new(),
    }
}

/// What header compression saves.
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
    Figure {
        id: "radio-compression".to_owned(),
        title: "What header compression saves".to_owned(),
        x: Axis::log("size of the file, bytes"),
        y: Axis::linear("latency saved, %"),
        series,
        note: "Without pauses and noise. A context begins with two full headers, so that single frames save \
               nothing."
            .to_owned(),
    }
}
