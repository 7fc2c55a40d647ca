//! Section 7: the stack over packet radio.
//!
//! ```text
//!   stacks   the parameters: from manuals, chosen or fitted; and their variations
//!   cells    the claims
//!   tables   accounting, table 1 decomposed, sweeps, header compression
//!   figures  figure 19, throughput, gain of compression
//!   report   the sections, in order
//! ```

mod cells;
mod figures;
mod report;
mod stacks;
mod tables;
#[cfg(test)]
mod tests;

use super::super::{Draw, Point, Results, Section, Setting, Summary, Values};
use sim::radio::{Radio, retrieve};
pub(super) use stacks::{PAUSE_MS, PROCESSING_MS};
use stacks::{RATES, SIZES};

/// The chosen stack and three alternatives.
const STACKS: &str = "radio-stacks";
/// The chosen stack with more file sizes.
const CURVE: &str = "radio-curve";
/// Sweeps of one parameter at a time.
const SWEEPS: &str = "radio-sweeps";
/// Header compression.
const COMPRESSION: &str = "radio-compression";

/// File sizes of figure 19, bytes.
const CURVE_SIZES: [u64; 10] = [1, 3, 10, 30, 100, 157, 300, 1_024, 3_000, 10_240];

pub(super) fn plan(setting: &Setting) -> Vec<Point> {
    let mut points = Vec::new();
    // The paper ran each test 20 to 30 times.
    let often = setting.replications + setting.replications / 2;
    for rate in RATES {
        for (name, make) in stacks::BESIDE {
            points.push(point(STACKS, &key(name, rate), often, &SIZES, make(rate)));
        }
        let chosen = stacks::chosen(rate);
        points.push(point(CURVE, &key("chosen", rate), setting.replications, &CURVE_SIZES, chosen));
        for change in stacks::sweeps().iter().flat_map(|sweep| sweep.changes) {
            let radio = stacks::with(rate, &[*change]);
            let key = key(&change.name(), rate);
            points.push(point(SWEEPS, &key, setting.replications, &SIZES, radio));
        }
        for (under, condition) in stacks::COMPRESSED_UNDER {
            for (name, change) in stacks::COMPRESSIONS {
                let radio = stacks::with(rate, &[condition, change]);
                let key = key(&format!("{name}/{under}"), rate);
                points.push(point(COMPRESSION, &key, often, &SIZES, radio));
            }
        }
    }
    points
}

pub(super) fn sections(results: &Results) -> Vec<Section> {
    report::sections(results)
}

fn key(name: &str, rate: u64) -> String {
    format!("{name}/{rate}")
}

/// Returns a point that retrieves files of `sizes` bytes.
fn point(study: &'static str, key: &str, often: u32, sizes: &[u64], radio: Radio) -> Point {
    let sizes = sizes.to_vec();
    Point::new(study, key, often, move |draw: &Draw| {
        let mut values = Values::new();
        for &size in &sizes {
            let found = retrieve(&radio, size, draw.seed, draw.run);
            let found = found.map_err(|error| error.to_string())?;
            let latency = found.latency.unwrap_or(radio.patience);
            let lost = found.channel.collided.packets + found.channel.unheard.packets;
            let [client, server] = &found.sessions;
            let polls = client.polls_sent + server.polls_sent;
            values = values
                .with(&named("latency_s", size), latency.as_secs_f64())
                .with(&named("given_up", size), f64::from(u8::from(found.latency.is_none())))
                .with(&named("chunks", size), found.chunks as f64)
                .with(&named("new_data_frames", size), server.data_sent as f64)
                .with(&named("polls", size), polls as f64)
                .with(&named("collisions", size), lost as f64)
                .with(&named("frames", size), found.frames.iter().sum::<u64>() as f64)
                .with(&named("octets", size), found.octets.iter().sum::<u64>() as f64)
                .with(&named("on_air_s", size), found.channel.on_air.as_secs_f64());
        }
        Ok(values)
    })
}

fn named(name: &str, size: u64) -> String {
    format!("{size}/{name}")
}

/// Returns the latencies of a point without outliers: "results that are dramatically affected by
/// noise are discarded", which is taken for more than twice the first decile.
fn latencies(results: &Results, study: &str, key: &str, size: u64) -> Vec<f64> {
    let mut all = results.values(study, key, &named("latency_s", size));
    let most = super::super::statistics::quantile(&all, 0.1).unwrap_or_default() * 2.0;
    all.retain(|&latency| latency <= most);
    all
}

/// Returns the mean of these latencies, and the fraction that was discarded.
fn latency(results: &Results, study: &str, key: &str, size: u64) -> (Summary, f64) {
    let kept = latencies(results, study, key, size);
    let all = results.of(study, key).len().max(1);
    (Summary::of(&kept), 1.0 - kept.len() as f64 / all as f64)
}

/// Returns the throughput of table 1 in bit/s; `None` for another rate or size.
pub(crate) fn table_1(rate: u64, size: u64) -> Option<f64> {
    let row = RATES.iter().position(|&known| known == rate)?;
    let column = SIZES.iter().position(|&known| known == size)?;
    Some(cells::published()[row][column])
}

/// Returns the bits of the file and of all headers, as the paper counts them: 98 bytes per frame.
pub(crate) fn counted_bits(size: u64) -> f64 {
    8.0 * (size + 98 * sim::radio::file_transfer::chunks(size)) as f64
}

/// Returns the throughput in bit/s over the mean latency, as the paper must have computed it.
fn throughput(results: &Results, study: &str, key: &str, size: u64) -> Summary {
    let (latency, _) = latency(results, study, key, size);
    let mean = counted_bits(size) / latency.mean;
    let relative =
        if latency.half.is_finite() { latency.half / latency.mean } else { f64::INFINITY };
    let deviation = mean * latency.deviation / latency.mean;
    Summary { n: latency.n, mean, deviation, half: mean * relative }
}
