//! What the demo found, with iperf3's keys where iperf3 has them.

use super::{DemoConfig, Plan, TIME_LIMIT};
use crate::LabError;
use crate::live::Way;
use serde::Serialize;
use testbed::content::Content;
use testbed::traffic::{Sample, Transfer};
use units::Span;

/// Everything that the demo found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What was asked for.
    pub start: Start,
    /// Each way.
    pub runs: Vec<DemoRun>,
}

/// What was asked for.
#[derive(Clone, Debug, Serialize)]
pub struct Start {
    /// The program's version.
    pub version: &'static str,
    /// The link's name, or its file.
    pub link: String,
    /// The file's size.
    pub size_bytes: u64,
    /// The most that TCP can carry: the rate, less what is lost, less headers.
    pub bound_bits_per_second: f64,
    /// Out and back without queueing.
    pub round_trip_seconds: f64,
    /// After this time from the first byte on a download is stopped.
    pub time_limit_seconds: f64,
    /// The seed of everything random on the links.
    pub seed: u64,
}

/// One way over the link.
#[derive(Clone, Debug, Serialize)]
pub struct DemoRun {
    /// The way.
    pub name: Way,
    /// From the click to the last byte, or to the stop.
    pub seconds: Option<f64>,
    /// From the click to the first byte.
    pub first_byte_seconds: Option<f64>,
    /// Bytes that arrived.
    pub bytes: u64,
    /// Whether that was all of the file.
    pub complete: bool,
    /// From the first byte to the last.
    pub goodput_bits_per_second: f64,
    /// As a share of the bound.
    pub bound_share: f64,
    /// What entered the return channel during the download, all headers counted.
    pub return_bits_per_second: Option<f64>,
    /// The same in bytes.
    pub return_bytes: Option<u64>,
    /// 4 KB up, 4 KB down, connect included: the median.
    pub request_4k_seconds: Option<f64>,
    /// The page of 30 objects over six connections: the median.
    pub page_seconds: Option<f64>,
    /// Segments that were retransmitted over the link.
    pub retransmissions: Option<u64>,
    /// Whether what arrived is what was sent, as far as it arrived.
    pub checksums_match: bool,
    /// The two checksums.
    pub checksum: Option<Checksum>,
    /// Goodput over time.
    pub intervals: Vec<Interval>,
    /// Whether the emulator did what the link says, and nothing else.
    pub emulator_kept_up: bool,
    /// What went wrong.
    pub notes: Vec<String>,
}

/// Checksums (XXH3, 64 bits, hexadecimal) of what arrived and of as many bytes of what was sent.
#[derive(Clone, Debug, Serialize)]
pub struct Checksum {
    /// Of the bytes that arrived, taken while they did.
    pub received: String,
    /// Of the first so many bytes of the file.
    pub expected: String,
}

/// Goodput between two moments, counted from the click.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Interval {
    /// Seconds.
    pub start: f64,
    /// Seconds.
    pub end: f64,
    /// Bytes that arrived between them.
    pub bytes: u64,
    /// The same per second.
    pub bits_per_second: f64,
}

impl Report {
    pub(super) fn new(config: &DemoConfig, plan: &Plan, runs: Vec<DemoRun>) -> Self {
        let start = Start {
            version: env!("CARGO_PKG_VERSION"),
            link: config.link.clone(),
            size_bytes: plan.size,
            bound_bits_per_second: plan.bound,
            round_trip_seconds: plan.link.round_trip().as_secs_f64(),
            time_limit_seconds: TIME_LIMIT.as_secs_f64(),
            seed: plan.seed,
        };
        Self { start, runs }
    }

    /// Whether every way delivered something, and nothing but what was sent.
    pub fn whole(&self) -> bool {
        self.runs.iter().all(|run| run.checksums_match)
    }
}

impl DemoRun {
    pub(super) fn new(name: Way) -> Self {
        Self {
            name,
            seconds: None,
            first_byte_seconds: None,
            bytes: 0,
            complete: false,
            goodput_bits_per_second: 0.0,
            bound_share: 0.0,
            return_bits_per_second: None,
            return_bytes: None,
            request_4k_seconds: None,
            page_seconds: None,
            retransmissions: None,
            checksums_match: false,
            checksum: None,
            intervals: Vec::new(),
            emulator_kept_up: true,
            notes: Vec::new(),
        }
    }

    pub(super) fn failed(name: Way, error: &LabError) -> Self {
        Self { notes: vec![error.to_string()], ..Self::new(name) }
    }
}

impl Checksum {
    pub(super) fn of(transfer: &Transfer, file: u64) -> Option<Self> {
        (transfer.bytes > 0).then(|| Self {
            received: format!("{:016x}", transfer.checksum),
            expected: format!("{:016x}", Content::new(file).checksum(transfer.bytes)),
        })
    }
}

/// Intervals of a second; the last may be shorter.
pub(super) fn intervals(series: &[Sample], ended: Span) -> Vec<Interval> {
    let mut intervals = Vec::new();
    let mut samples = series.iter().peekable();
    let (mut start, mut before, mut bytes) = (Span::ZERO, 0, 0);
    while start < ended {
        let end = (start + Span::from_secs(1)).min(ended);
        while let Some(sample) = samples.next_if(|sample| sample.at <= end) {
            bytes = sample.bytes;
        }
        let seconds = end.saturating_sub(start).as_secs_f64();
        // A rest of a few milliseconds says nothing about a rate.
        if seconds > 0.2 || intervals.is_empty() {
            intervals.push(Interval {
                start: start.as_secs_f64(),
                end: end.as_secs_f64(),
                bytes: bytes - before,
                bits_per_second: (bytes - before) as f64 * 8.0 / seconds,
            });
        }
        (start, before) = (end, bytes);
    }
    intervals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_in_one_interval() {
        let at = |ms, bytes| Sample { at: Span::from_millis(ms), bytes };
        let series = [at(500, 100), at(1_000, 200), at(1_001, 250), at(3_400, 1_000)];
        let found = intervals(&series, Span::from_millis(3_400));
        let bytes: Vec<u64> = found.iter().map(|interval| interval.bytes).collect();
        assert_eq!(bytes, [200, 50, 0, 750]);
        assert_eq!(found[0].bits_per_second, 1_600.0);
        assert!((found[3].bits_per_second - 15_000.0).abs() < 1e-6);
        assert!(intervals(&[], Span::ZERO).is_empty());
    }
}
