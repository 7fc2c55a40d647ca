//! The reports of an emulator: per second while it runs, and in total at the end.
//!
//! The JSON has iperf3's shape and keys where iperf3 has them: `start`, `intervals`, `end`,
//! `bits_per_second`.

use super::lateness::Lateness;
use crate::sched::Scheduling;
use satlink::{Counters, Direction, DropCause, Tally};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use units::{Instant, Span};

/// Maximum number of intervals; beyond it neighbours are merged.
pub(super) const MOST_INTERVALS: usize = 3600;

/// The report of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Parameters at the start.
    pub start: Start,
    /// Results per interval.
    pub intervals: Vec<Interval>,
    /// Totals.
    pub end: End,
    /// Events of each packet, if a log was requested.
    #[serde(skip)]
    pub log: Vec<LogEntry>,
    /// Events dropped from the log for lack of room.
    #[serde(skip)]
    pub log_omitted: u64,
}

/// An event in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Time of [`Clock::new`](crate::Clock::new).
    pub at: Instant,
    /// Direction of the packet.
    pub direction: Direction,
    /// Its octets at the network layer.
    pub bytes: usize,
    /// The event.
    pub event: LogEvent,
}

/// An event of a packet. Losses on air are only counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEvent {
    /// It arrived, and was offered to the link.
    Offered,
    /// The link dropped it at the same time.
    Dropped(DropCause),
    /// It was delivered, at the time given by the link.
    Delivered {
        /// Its time in the queue and in transmission.
        waited: Span,
    },
}

/// Parameters of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Start {
    /// Nanoseconds since 1970 at the link's epoch: with the seed, the run and a capture this
    /// suffices to reproduce a run under virtual time.
    pub epoch_unix_ns: u64,
    /// Seed of the link's random numbers.
    pub seed: u64,
    /// Replication.
    pub run: u64,
    /// Input side of the forward direction.
    pub a: String,
    /// Output side of the forward direction.
    pub b: String,
    /// Description of the link, as given or generated.
    pub link: String,
    /// Real-time scheduling that was granted.
    pub scheduling: Scheduling,
    /// Warnings.
    pub notes: Vec<String>,
}

/// An interval.
#[derive(Clone, Debug, Serialize)]
pub struct Interval {
    /// Seconds from the link's epoch to the start of the interval.
    pub start: f64,
    /// Seconds from the link's epoch to its end.
    pub end: f64,
    /// The direction from A to B.
    pub forward: Flow,
    /// The direction from B to A.
    pub r#return: Flow,
    /// Maximum lateness of a departure.
    pub max_lateness_seconds: f64,
}

/// One direction in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Flow {
    /// Delivered bits at the network layer.
    pub bits_per_second: f64,
    /// Offered bits at the network layer.
    pub offered_bits_per_second: f64,
    /// Packets offered.
    pub offered_packets: u64,
    /// Packets delivered.
    pub delivered_packets: u64,
    /// Packets dropped by the link.
    pub dropped_packets: u64,
    /// Octets queued and in transmission at the end, with framing.
    pub queue_bytes: u64,
    /// Mean time of the delivered packets in the queue and in transmission.
    pub mean_wait_seconds: f64,
    /// Maximum of these times.
    pub max_wait_seconds: f64,
}

/// Time of packets in the queue and in transmission.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waits {
    packets: u64,
    sum: Span,
    max: Span,
}

impl Waits {
    pub(super) fn note(&mut self, wait: Span) {
        self.packets += 1;
        self.sum += wait;
        self.max = self.max.max(wait);
    }

    /// In seconds.
    pub(super) fn mean_and_max(&self) -> (f64, f64) {
        ((self.sum / self.packets.max(1)).as_secs_f64(), self.max.as_secs_f64())
    }
}

/// Totals of a run.
#[derive(Clone, Debug, Serialize)]
pub struct End {
    /// Duration.
    pub seconds: f64,
    /// From A to B.
    pub forward: Accounts,
    /// From B to A.
    pub r#return: Accounts,
    /// Lateness of departures.
    pub lateness: Lateness,
    /// Processor time of the emulator's thread.
    pub cpu_seconds: f64,
    /// Packets whose timestamps were read too late to be applied exactly.
    pub late_stamps: u64,
    /// Packets missing in the captures because the disk was too slow.
    pub capture_omitted: u64,
    /// Whether the emulator did exactly what the link's configuration describes.
    pub kept_up: bool,
    /// If not, the reasons.
    pub reasons: Vec<String>,
}

/// Counters of one direction: `received = offered + out_of_memory`, and `offered + duplicated =
/// delivered + dropped + held`, and `delivered = sent + send_failed`.
#[derive(Clone, Debug, Serialize)]
pub struct Accounts {
    /// Mean delivered rate at the network layer in bit/s.
    pub bits_per_second: f64,
    /// Packets dropped by the kernel before they could be read.
    pub kernel_dropped: u64,
    /// Packets read.
    pub received: u64,
    /// Packets not offered because the emulator's memory limit was reached.
    pub out_of_memory: u64,
    /// Packets offered to the link.
    #[serde(serialize_with = "tally")]
    pub offered: Tally,
    /// Copies made by the link.
    #[serde(serialize_with = "tally")]
    pub duplicated: Tally,
    /// Packets delivered.
    #[serde(serialize_with = "tally")]
    pub delivered: Tally,
    /// Packets dropped by the link, by cause.
    pub dropped: BTreeMap<String, u64>,
    /// Packets in the link at the end.
    #[serde(serialize_with = "tally")]
    pub held: Tally,
    /// Packets marked with congestion experienced.
    pub marked: u64,
    /// Maximum occupancy of the queue.
    #[serde(serialize_with = "tally")]
    pub fullest_queue: Tally,
    /// Packets sent.
    pub sent: u64,
    /// Packets that the kernel rejected.
    pub send_failed: u64,
    /// The last error of these.
    pub last_send_error: Option<String>,
}

pub(super) fn tally<S: Serializer>(tally: &Tally, serializer: S) -> Result<S::Ok, S::Error> {
    BTreeMap::from([("packets", tally.packets), ("bytes", tally.bytes)]).serialize(serializer)
}

impl Summary {
    /// As JSON.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("every key is a string")
    }
}

impl End {
    /// The reasons for which the emulator fell short of its configuration.
    pub(super) fn shortcomings(&self, lateness_limit: Span) -> Vec<String> {
        let mut reasons = Vec::new();
        for (name, accounts) in [("forward", &self.forward), ("return", &self.r#return)] {
            let mut note = |packets: u64, what: &str| {
                if packets > 0 {
                    reasons.push(format!("{packets} {name} packets {what}"));
                }
            };
            note(accounts.kernel_dropped, "arrived faster than they could be read");
            note(accounts.out_of_memory, "found no memory in the emulator");
            let error = accounts.last_send_error.as_deref().unwrap_or("unknown");
            note(accounts.send_failed, &format!("could not be handed on (the last: {error})"));
        }
        if self.lateness.p99_seconds > lateness_limit.as_secs_f64() {
            reasons.push(format!(
                "one packet in a hundred left more than {} after its time (limit {})",
                Span::from_secs_f64(self.lateness.p99_seconds),
                lateness_limit
            ));
        }
        reasons
    }
}

impl Accounts {
    /// Packets dropped by the link for any cause.
    pub fn dropped_in_all(&self) -> u64 {
        self.dropped.values().sum()
    }
}

/// Drops by cause, without causes that did not occur.
pub(super) fn drops(counters: &Counters) -> BTreeMap<String, u64> {
    DropCause::ALL
        .into_iter()
        .map(|cause| (cause.to_string(), counters.dropped(cause).packets))
        .filter(|&(_, packets)| packets > 0)
        .collect()
}

/// The difference of two readings of a direction's counters.
pub(super) fn flow(
    before: &Counters,
    after: &Counters,
    length: Span,
    queue_bytes: u64,
    waits: Waits,
) -> Flow {
    let seconds = length.as_secs_f64().max(1e-9);
    let rate = |before: Tally, after: Tally| (after.bytes - before.bytes) as f64 * 8.0 / seconds;
    let dropped = after.dropped_in_all().packets - before.dropped_in_all().packets;
    let (mean_wait_seconds, max_wait_seconds) = waits.mean_and_max();
    Flow {
        bits_per_second: rate(before.delivered, after.delivered),
        offered_bits_per_second: rate(before.offered, after.offered),
        offered_packets: after.offered.packets - before.offered.packets,
        delivered_packets: after.delivered.packets - before.delivered.packets,
        dropped_packets: dropped,
        queue_bytes,
        mean_wait_seconds,
        max_wait_seconds,
    }
}

/// Adds an interval; intervals are merged at the limit.
pub(super) fn push_interval(intervals: &mut Vec<Interval>, interval: Interval) {
    if intervals.len() >= MOST_INTERVALS {
        let pairs = intervals.chunks(2).map(|pair| match pair {
            [first, second] => together(first, second),
            _ => pair[0].clone(),
        });
        *intervals = pairs.collect();
    }
    intervals.push(interval);
}

fn together(first: &Interval, second: &Interval) -> Interval {
    let weights = [first.end - first.start, second.end - second.start];
    let mean = |a: f64, b: f64| (a * weights[0] + b * weights[1]) / (weights[0] + weights[1]);
    let flow = |a: &Flow, b: &Flow| Flow {
        bits_per_second: mean(a.bits_per_second, b.bits_per_second),
        offered_bits_per_second: mean(a.offered_bits_per_second, b.offered_bits_per_second),
        offered_packets: a.offered_packets + b.offered_packets,
        delivered_packets: a.delivered_packets + b.delivered_packets,
        dropped_packets: a.dropped_packets + b.dropped_packets,
        queue_bytes: b.queue_bytes,
        mean_wait_seconds: {
            let packets = (a.delivered_packets + b.delivered_packets).max(1) as f64;
            let sum = |flow: &Flow| flow.mean_wait_seconds * flow.delivered_packets as f64;
            (sum(a) + sum(b)) / packets
        },
        max_wait_seconds: a.max_wait_seconds.max(b.max_wait_seconds),
    };
    Interval {
        start: first.start,
        end: second.end,
        forward: flow(&first.forward, &second.forward),
        r#return: flow(&first.r#return, &second.r#return),
        max_lateness_seconds: first.max_lateness_seconds.max(second.max_lateness_seconds),
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let late = Span::from_secs_f64(self.max_lateness_seconds);
        write!(
            f,
            "{:6.1} s | forward {} | return {} | late {late}",
            self.end, self.forward, self.r#return
        )
    }
}

impl fmt::Display for Flow {
    /// Delivered and offered rates, the queue, and the drops.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:7.3} of {:7.3} Mbit/s, {:4.0} kB queued, {} dropped",
            self.bits_per_second / 1e6,
            self.offered_bits_per_second / 1e6,
            self.queue_bytes as f64 / 1e3,
            self.dropped_packets
        )
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = &self.end;
        for (name, accounts) in [("forward", &end.forward), ("return", &end.r#return)] {
            write!(f, "{name}: {accounts}")?;
        }
        let late = |seconds| Span::from_secs_f64(seconds);
        writeln!(
            f,
            "departures late by {} (median), {} (99th percentile), {} (most)",
            late(end.lateness.p50_seconds),
            late(end.lateness.p99_seconds),
            late(end.lateness.max_seconds)
        )?;
        writeln!(f, "scheduling: {}", self.start.scheduling)?;
        if end.kept_up {
            return write!(f, "kept up: every drop and every delay was the link's");
        }
        write!(f, "DID NOT KEEP UP: {}", end.reasons.join("; "))
    }
}

impl fmt::Display for Accounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} packets offered, {} delivered ({:.3} Mbit/s), {} under way",
            self.offered.packets,
            self.delivered.packets,
            self.bits_per_second / 1e6,
            self.held.packets
        )?;
        for (cause, packets) in &self.dropped {
            write!(f, ", {packets} dropped ({})", cause.replace('_', " "))?;
        }
        writeln!(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(second: usize, packets: u64) -> Interval {
        let forward = Flow {
            bits_per_second: packets as f64,
            delivered_packets: packets,
            queue_bytes: packets,
            ..Flow::default()
        };
        Interval {
            start: second as f64,
            end: second as f64 + 1.0,
            forward,
            r#return: Flow::default(),
            max_lateness_seconds: packets as f64,
        }
    }

    #[test]
    fn a_long_run_keeps_its_sums_in_fewer_intervals() {
        let mut intervals = Vec::new();
        let count = MOST_INTERVALS * 3;
        for second in 0..count {
            push_interval(&mut intervals, interval(second, second as u64));
        }
        assert!(intervals.len() <= MOST_INTERVALS + 1);
        let packets: u64 = intervals.iter().map(|one| one.forward.delivered_packets).sum();
        assert_eq!(packets, (0..count as u64).sum::<u64>());
        // Without gaps, and with the mean of the merged intervals.
        assert!(intervals.windows(2).all(|pair| pair[0].end == pair[1].start));
        let first = &intervals[0];
        let mean = (0..first.end as u64).sum::<u64>() as f64 / first.end;
        assert!(first.end > 1.0);
        assert_eq!(first.forward.bits_per_second, mean);
        assert_eq!(first.max_lateness_seconds, first.end - 1.0);
    }

    #[test]
    fn json_uses_the_keys_of_iperf3() {
        let value = serde_json::to_value(interval(3, 7)).unwrap();
        assert_eq!(value["forward"]["bits_per_second"], 7.0);
        assert_eq!(value["return"]["queue_bytes"], 0);
        assert_eq!((value["start"].as_f64(), value["end"].as_f64()), (Some(3.0), Some(4.0)));
    }
}
