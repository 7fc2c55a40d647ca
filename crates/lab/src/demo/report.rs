//! The report of the demo, with the keys of iperf3 where it has equivalent ones.

use super::{DemoConfig, Plan, TIME_LIMIT};
use crate::LabError;
use crate::live::Way;
use serde::Serialize;
use testbed::content::Content;
use testbed::traffic::{Sample, Transfer};
use units::Span;

/// Results of the demo.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Parameters of the demo.
    pub start: Start,
    /// Results of each transport.
    pub runs: Vec<DemoRun>,
}

/// Parameters of the demo.
#[derive(Clone, Debug, Serialize)]
pub struct Start {
    /// Version of the program.
    pub version: &'static str,
    /// Name of the link, or of its file.
    pub link: String,
    /// File size in octets.
    pub size_bytes: u64,
    /// Maximum goodput of TCP: the rate without losses and headers, in bits/s.
    pub bound_bits_per_second: f64,
    /// Round trip without queuing delay in seconds.
    pub round_trip_seconds: f64,
    /// Time limit of a download from its first octet in seconds.
    pub time_limit_seconds: f64,
    /// Seed of the links' random processes.
    pub seed: u64,
}

/// One transport over the link.
#[derive(Clone, Debug, Serialize)]
pub struct DemoRun {
    /// The transport.
    pub name: Way,
    /// Time from the request to the last octet or the time limit, in seconds.
    pub seconds: Option<f64>,
    /// Time from the request to the first octet, in seconds.
    pub first_byte_seconds: Option<f64>,
    /// Received octets.
    pub bytes: u64,
    /// Whether the file was received completely.
    pub complete: bool,
    /// Goodput from the first to the last octet, in bits/s.
    pub goodput_bits_per_second: f64,
    /// Goodput as a fraction of the bound.
    pub bound_share: f64,
    /// Traffic of the return channel during the download, with all headers, in bits/s.
    pub return_bits_per_second: Option<f64>,
    /// The same in octets.
    pub return_bytes: Option<u64>,
    /// Median time of a request of 4 KB and a response of 4 KB including the connection, in
    /// seconds.
    pub request_4k_seconds: Option<f64>,
    /// Median time of a page of 30 objects over six connections, in seconds.
    pub page_seconds: Option<f64>,
    /// Retransmitted segments over the link.
    pub retransmissions: Option<u64>,
    /// Whether the received octets are those that were sent.
    pub checksums_match: bool,
    /// Checksums of received and sent octets.
    pub checksum: Option<Checksum>,
    /// Goodput over time.
    pub intervals: Vec<Interval>,
    /// Whether the emulator kept its schedule.
    pub emulator_kept_up: bool,
    /// Errors and remarks.
    pub notes: Vec<String>,
}

/// Checksums (XXH3, 64 bits, hexadecimal) of the received octets and of the same prefix of the
/// file.
#[derive(Clone, Debug, Serialize)]
pub struct Checksum {
    /// Checksum of the received octets, computed as they arrived.
    pub received: String,
    /// Checksum of the same prefix of the file.
    pub expected: String,
}

/// Goodput in an interval, relative to the request.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Interval {
    /// Start in seconds.
    pub start: f64,
    /// End in seconds.
    pub end: f64,
    /// Octets received in the interval.
    pub bytes: u64,
    /// Goodput in bits/s.
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

    /// Returns true if every transport delivered data, and only correct data.
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

/// Divides a transfer into intervals of one second; the last may be shorter.
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
        // A remainder of a few milliseconds gives no meaningful rate.
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
    fn every_octet_is_in_one_interval() {
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
