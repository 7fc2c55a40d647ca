//! Tables: analysis of the published numbers, and the effect of each parameter.

use super::cells::{compression_gain, published};
use super::report::{COMPRESSION_PAGE, NUMBERS, PARAMETERS, RESULTS};
use super::stacks::{COMPRESSED_UNDER, Change, RATES, SIZES, Sweep, TITLES};
use super::{COMPRESSION, Results, STACKS, SWEEPS, counted_bits, key, latency, named, throughput};
use crate::experiments::Table;
use crate::experiments::statistics::pm;
use sim::radio::file_transfer::chunks;

/// Bytes on air of the two frames of a retrieval of 1 B: 115 with the request, 112 with the
/// response, as `sim::radio`'s tests compute them.
const AIR_OF_ONE_BYTE: f64 = 115.0 + 112.0;

/// Returns the latency for 1 B that follows from the published throughput if it counts these bytes,
/// and the part of it beyond the time on air of the two frames, which should not depend on the
/// rate.
pub(super) fn accounting() -> Table {
    let readings = [
        ("the file", 1.0),
        ("and file transfer's header", 1.0 + 5.0),
        ("and XSTP's", 1.0 + 5.0 + 16.0),
        ("and IPv4's: the packet", 1.0 + 5.0 + 16.0 + 60.0),
        ("and AX.25's: the frame", 1.0 + 5.0 + 16.0 + 60.0 + 17.0),
        ("the frame and the request's", 2.0 * 98.0 + 1.0 + 8.0),
    ];
    let table_1 = published();
    let row = |(name, bytes): (&str, f64)| {
        let implied: Vec<f64> = (0..2).map(|r| 8.0 * bytes / table_1[r][0]).collect();
        let rest: Vec<f64> =
            (0..2).map(|r| implied[r] - 8.0 * AIR_OF_ONE_BYTE / RATES[r] as f64).collect();
        vec![
            name.to_owned(),
            format!("{bytes:.0}"),
            format!("{:.3}", implied[0]),
            format!("{:.3}", implied[1]),
            format!("{:.3}", rest[0]),
            format!("{:.3}", rest[1]),
        ]
    };
    NUMBERS.table("radio-accounting", readings.map(row))
}

/// Returns table 1 decomposed: latency = bits / rate + a part independent of the rate.
pub(super) fn decomposition() -> Table {
    let table_1 = published();
    let row = |s: usize| {
        let size = SIZES[s];
        let [low, high] = [0, 1].map(|r| counted_bits(size) / table_1[r][s]);
        let [slow, fast] = RATES.map(|rate| rate as f64);
        let bits = (low - high) / (1.0 / slow - 1.0 / fast);
        let rest = high - bits / fast;
        vec![
            format!("{size} B"),
            chunks(size).to_string(),
            format!("{low:.2}"),
            format!("{high:.2}"),
            format!("{:.0}", bits / 8.0),
            format!("{rest:.2}"),
            format!("{:.2}", rest / chunks(size) as f64),
        ]
    };
    NUMBERS.table("radio-decomposition", (0..SIZES.len()).map(row))
}

fn rate_name(rate: u64) -> String {
    format!("{:.1} kbit/s", rate as f64 / 1e3)
}

/// Returns the stacks compared with the published numbers.
pub(super) fn stacks(results: &Results) -> Table {
    let mut rows = Vec::new();
    for (r, &rate) in RATES.iter().enumerate() {
        let published = published()[r].map(|value| format!("{value:.0}"));
        rows.push([vec![rate_name(rate), "published".to_owned()], published.to_vec()].concat());
        for (name, title) in TITLES {
            let at = key(name, rate);
            let ours = SIZES.map(|size| {
                let (_, discarded) = latency(results, STACKS, &at, size);
                let ours = pm(throughput(results, STACKS, &at, size), 0);
                if discarded > 0.0 {
                    format!("{ours} ({:.0} % discarded)", 100.0 * discarded)
                } else {
                    ours
                }
            });
            rows.push([vec![rate_name(rate), title.to_owned()], ours.to_vec()].concat());
        }
    }
    RESULTS.table("radio-stacks", rows)
}

/// Returns internal values of the chosen stack.
pub(super) fn inside(results: &Results) -> Table {
    let mut rows = Vec::new();
    for rate in RATES {
        for size in SIZES {
            let at = key("chosen", rate);
            let mean = |name: &str| results.summary(STACKS, &at, &named(name, size)).mean;
            let (latency, _) = latency(results, STACKS, &at, size);
            rows.push(vec![
                rate_name(rate),
                format!("{size} B"),
                format!("{:.2} ± {:.2}", latency.mean, latency.half),
                format!("{:.1}", mean("frames")),
                format!("{:.1}", mean("polls")),
                format!("{:.1}", mean("collisions")),
                format!("{:.1}", mean("on_air_s")),
            ]);
        }
    }
    RESULTS.table("radio-inside", rows)
}

/// Returns a sweep: throughputs at both rates in bit/s.
pub(super) fn sweep(index: usize, sweep: &Sweep, results: &Results) -> Table {
    let row = |change: &Change| {
        let mut row = vec![change.name()];
        for rate in RATES {
            for size in SIZES {
                let ours = throughput(results, SWEEPS, &key(&change.name(), rate), size);
                row.push(format!("{:.0}", ours.mean));
            }
        }
        row
    };
    let published =
        published().iter().flatten().map(|value| format!("{value:.0}")).collect::<Vec<_>>();
    let mut rows = vec![[vec!["published".to_owned()], published].concat()];
    rows.extend(sweep.changes.iter().map(row));
    let table = PARAMETERS.table("radio-sweep", rows);
    let title = format!("{} {}", table.title, sweep.title);
    Table { id: format!("radio-sweep-{index}"), title, ..table }
}

/// Returns the latencies with and without header compression.
pub(super) fn compression(results: &Results) -> Table {
    let mut rows = Vec::new();
    for rate in RATES {
        for (under, _) in COMPRESSED_UNDER {
            for size in SIZES {
                rows.push(compression_row(results, rate, under, size));
            }
        }
    }
    COMPRESSION_PAGE.table("radio-compression-table", rows)
}

fn compression_row(results: &Results, rate: u64, under: &str, size: u64) -> Vec<String> {
    let of = |kind: &str, name: &str| {
        let key = key(&format!("{kind}/{under}"), rate);
        results.summary(COMPRESSION, &key, &named(name, size)).mean
    };
    let each = |kind: &str| format!("{:.0}", of(kind, "octets") / of(kind, "frames"));
    let saved = |kind: &str| {
        let gain = compression_gain(results, kind, under, rate, size).scaled(100.0);
        format!("{:.1} ± {:.1} %", gain.mean, gain.half)
    };
    let latency = |kind: &str| format!("{:.2}", of(kind, "latency_s"));
    vec![
        rate_name(rate),
        under.to_owned(),
        format!("{size} B"),
        latency("plain"),
        latency("compressed"),
        saved("compressed"),
        latency("filled"),
        saved("filled"),
        each("plain"),
        each("compressed"),
        each("filled"),
    ]
}
