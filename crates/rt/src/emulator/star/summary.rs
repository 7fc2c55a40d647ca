//! The reports of a star: per second while it runs, and in total at the end. The JSON has the keys
//! of the point-to-point emulator where both have the value.

use super::super::lateness::Lateness;
use super::super::summary::{Flow, tally};
use crate::sched::Scheduling;
use satlink::Tally;
use satlink::mac::mf_tdma::{MfTdma, MfTdmaCounters};
use satlink::mac::schedule::Given;
use satlink::mac::weights::WeightCounters;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use units::{Instant, Span};

/// The report of a run.
#[derive(Clone, Debug, Serialize)]
pub struct StarSummary {
    /// Parameters at the start.
    pub start: StarStart,
    /// Results per interval; limited to the last hour of one-second intervals.
    pub intervals: VecDeque<StarInterval>,
    /// Totals.
    pub end: StarEnd,
    /// Events of packets of the return link, if a log was requested, up to its limit.
    #[serde(skip)]
    pub log: Vec<ReturnEntry>,
}

/// A packet on the return link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnEntry {
    /// Time from the epoch.
    pub at: Instant,
    /// Its terminal.
    pub terminal: usize,
    /// Its octets at the network layer.
    pub bytes: usize,
    /// Whether it arrived at the hub; otherwise it was offered by the terminal.
    pub arrived: bool,
}

/// Parameters of a run.
#[derive(Clone, Debug, Serialize)]
pub struct StarStart {
    /// Nanoseconds since 1970 when the first plan was made.
    pub epoch_unix_ns: u64,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Replication.
    pub run: u64,
    /// The hub's interface.
    pub hub: String,
    /// The terminals' names and interfaces.
    pub terminals: Vec<(String, String)>,
    /// Description of the network, as given or generated.
    pub star: String,
    /// Slots per frame on all carriers, and seconds per frame.
    pub frame: (u32, f64),
    /// Real-time scheduling that was granted.
    pub scheduling: Scheduling,
    /// Warnings.
    pub notes: Vec<String>,
}

/// An interval.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct StarInterval {
    /// Seconds from the epoch to the start of the interval.
    pub start: f64,
    /// Seconds from the epoch to its end.
    pub end: f64,
    /// From the hub.
    pub forward: Flow,
    /// To the hub.
    pub r#return: Flow,
    /// Slots of the return link.
    pub slots: Slots,
    /// Maximum lateness of a departure.
    pub max_lateness_seconds: f64,
}

/// Slots of the return link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Slots {
    /// Slots assigned.
    pub granted: u64,
    /// Assigned slots that carried data.
    pub used: u64,
    /// Constant assignment (CRA).
    pub constant: u64,
    /// Assigned on request.
    pub asked: u64,
    /// Assigned freely (FCA).
    pub free: u64,
}

/// Totals of a run.
#[derive(Clone, Debug, Serialize)]
pub struct StarEnd {
    /// Duration.
    pub seconds: f64,
    /// From the hub.
    pub forward: StarForward,
    /// To the hub.
    pub r#return: StarReturn,
    /// In the order of [`StarStart::terminals`].
    pub terminals: Vec<TerminalAccount>,
    /// Announced connection counts.
    pub counts: Counts,
    /// Lateness of departures.
    pub lateness: Lateness,
    /// Processor time of the emulator's thread.
    pub cpu_seconds: f64,
    /// Packets whose timestamps were read too late to be applied exactly.
    pub late_stamps: u64,
    /// Whether the emulator did exactly what the star's description contains.
    pub kept_up: bool,
    /// If not, the reasons.
    pub reasons: Vec<String>,
}

/// Counters of the forward link: `received = offered + out_of_memory`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StarForward {
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
    /// Packets delivered, each counted once for any number of terminals.
    #[serde(serialize_with = "tally")]
    pub delivered: Tally,
    /// Packets dropped by the link, by cause.
    pub dropped: BTreeMap<String, u64>,
    /// Packets in the link at the end.
    #[serde(serialize_with = "tally")]
    pub held: Tally,
    /// Packets delivered to a terminal that was off.
    pub unheard: u64,
    /// Packets that terminals' interfaces rejected.
    pub send_failed: u64,
    /// The last error of these.
    pub last_send_error: Option<String>,
}

/// Counters of the return link: `offered = delivered + dropped + held`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StarReturn {
    /// Mean delivered rate at the network layer in bit/s.
    pub bits_per_second: f64,
    /// Packets dropped by the kernel before they could be read.
    pub kernel_dropped: u64,
    /// Packets offered by terminals.
    #[serde(serialize_with = "tally")]
    pub offered: Tally,
    /// Packets delivered.
    #[serde(serialize_with = "tally")]
    pub delivered: Tally,
    /// Packets dropped: `overflowed` in a terminal that is full or off, `lost` and `collided` on
    /// air, `abandoned` by a terminal that logged off.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Packets in the link at the end.
    #[serde(serialize_with = "tally")]
    pub held: Tally,
    /// Slots.
    pub slots: Slots,
    /// Plans made.
    pub frames: u64,
    /// Plans missed by a terminal with slots in them.
    pub plans_missed: u64,
    /// Requests sent.
    pub requests: u64,
    /// Requests that did not reach the scheduler.
    pub requests_lost: u64,
    /// Requests reduced to the maximum.
    pub requests_cut: u64,
    /// Unauthorized bursts.
    pub intruders: u64,
    /// Bursts later than the guard time allows.
    pub late_bursts: u64,
    /// Terminals that lost their slots for silence.
    pub silenced: u64,
    /// Packets that the hub's interface rejected.
    pub send_failed: u64,
    /// The last error of these.
    pub last_send_error: Option<String>,
}

/// Counters of one terminal. Many more granted than used slots indicate false requests.
#[derive(Clone, Debug, Serialize)]
pub struct TerminalAccount {
    /// Its name.
    pub name: String,
    /// Packets delivered to the hub.
    #[serde(serialize_with = "tally")]
    pub delivered: Tally,
    /// Slots granted.
    pub granted: u64,
    /// Granted slots in which it sent.
    pub used: u64,
    /// Its weight at the end.
    pub weight: u32,
}

/// Messages with connection counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Messages accepted.
    pub messages: u64,
    /// Datagrams rejected.
    pub malformed: u64,
    /// Numbers of known terminals.
    pub told: u64,
    /// Numbers of unknown terminals.
    pub unknown: u64,
    /// Terminals that returned to the weight of their contract.
    pub stale: u64,
}

impl Counts {
    pub(super) fn of(messages: u64, malformed: u64, counters: WeightCounters) -> Self {
        let WeightCounters { told, unknown, stale } = counters;
        Self { messages, malformed, told, unknown, stale }
    }
}

impl Slots {
    pub(super) fn of<F: satlink::Frame>(mac: &MfTdma<F>) -> Self {
        let MfTdmaCounters { granted, used, .. } = *mac.counters();
        let Given { constant, rate, volume, free, .. } = *mac.scheduler().given();
        Self { granted, used, constant, asked: rate + volume, free }
    }

    pub(super) fn since(self, before: Self) -> Self {
        Self {
            granted: self.granted - before.granted,
            used: self.used - before.used,
            constant: self.constant - before.constant,
            asked: self.asked - before.asked,
            free: self.free - before.free,
        }
    }
}

impl StarReturn {
    pub(super) fn of<F: satlink::Frame>(mac: &MfTdma<F>, seconds: f64) -> Self {
        let counters = mac.counters();
        let dropped = drops(counters).into_iter().filter(|&(_, tally)| tally.packets > 0);
        Self {
            bits_per_second: counters.delivered.bytes as f64 * 8.0 / seconds.max(1e-9),
            offered: counters.offered,
            delivered: counters.delivered,
            dropped: dropped.map(|(cause, tally)| (cause, tally.packets)).collect(),
            held: counters.held,
            slots: Slots::of(mac),
            frames: mac.scheduler().given().frames,
            plans_missed: counters.plans_missed,
            requests: counters.requests,
            requests_lost: counters.requests_lost,
            requests_cut: mac.scheduler().clamped(),
            intruders: counters.intruders,
            late_bursts: counters.late,
            silenced: mac.scheduler().dropped(),
            ..Self::default()
        }
    }
}

fn drops(counters: &MfTdmaCounters) -> [(&'static str, Tally); 4] {
    let MfTdmaCounters { overflowed, lost, collided, abandoned, .. } = *counters;
    [("overflowed", overflowed), ("lost", lost), ("collided", collided), ("abandoned", abandoned)]
}

/// The difference of two readings of the return link's counters.
pub(super) fn return_flow(
    before: &MfTdmaCounters,
    after: &MfTdmaCounters,
    length: Span,
    (mean_wait_seconds, max_wait_seconds): (f64, f64),
) -> Flow {
    let seconds = length.as_secs_f64().max(1e-9);
    let rate = |before: Tally, after: Tally| (after.bytes - before.bytes) as f64 * 8.0 / seconds;
    let sum = |counters| drops(counters).iter().map(|(_, tally)| tally.packets).sum::<u64>();
    Flow {
        bits_per_second: rate(before.delivered, after.delivered),
        offered_bits_per_second: rate(before.offered, after.offered),
        offered_packets: after.offered.packets - before.offered.packets,
        delivered_packets: after.delivered.packets - before.delivered.packets,
        dropped_packets: sum(after) - sum(before),
        queue_bytes: after.held.bytes,
        mean_wait_seconds,
        max_wait_seconds,
    }
}

impl StarEnd {
    /// The reasons for which the emulator fell short of its configuration.
    pub(super) fn shortcomings(&self, lateness_limit: Span) -> Vec<String> {
        let mut reasons = Vec::new();
        let (forward, back) = (&self.forward, &self.r#return);
        let mut note = |packets: u64, what: &str| {
            if packets > 0 {
                reasons.push(format!("{packets} {what}"));
            }
        };
        let read = "arrived faster than they could be read";
        note(forward.kernel_dropped, &format!("forward packets {read}"));
        note(back.kernel_dropped, &format!("return packets {read}"));
        note(forward.out_of_memory, "forward packets found no memory in the emulator");
        for (name, failed, error) in [
            ("forward", forward.send_failed, &forward.last_send_error),
            ("return", back.send_failed, &back.last_send_error),
        ] {
            let error = error.as_deref().unwrap_or("unknown");
            note(failed, &format!("{name} packets could not be handed on (the last: {error})"));
        }
        if self.lateness.p99_seconds > lateness_limit.as_secs_f64() {
            let late = Span::from_secs_f64(self.lateness.p99_seconds);
            reasons.push(format!(
                "one packet in a hundred left more than {late} after its time (limit \
                 {lateness_limit})"
            ));
        }
        reasons
    }
}

impl StarSummary {
    /// As JSON.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("every key is a string")
    }
}

impl fmt::Display for StarInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Slots { granted, used, asked, .. } = self.slots;
        write!(
            f,
            "{:6.1} s | forward {:.3} Mbit/s, {:.0} kB queued | return {:.1} kbit/s, {used} of \
             {granted} slots used, {asked} asked for, {} dropped | late {}",
            self.end,
            self.forward.bits_per_second / 1e6,
            self.forward.queue_bytes as f64 / 1e3,
            self.r#return.bits_per_second / 1e3,
            self.r#return.dropped_packets,
            Span::from_secs_f64(self.max_lateness_seconds),
        )
    }
}

impl fmt::Display for StarSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StarEnd { forward, r#return: back, counts, lateness, .. } = &self.end;
        let mbps = |bits: f64| bits / 1e6;
        writeln!(
            f,
            "forward: {} packets offered, {} delivered ({:.3} Mbit/s), {} dropped",
            forward.offered.packets,
            forward.delivered.packets,
            mbps(forward.bits_per_second),
            forward.dropped.values().sum::<u64>(),
        )?;
        write!(
            f,
            "return: {} packets offered, {} delivered ({:.3} Mbit/s), {} under way",
            back.offered.packets,
            back.delivered.packets,
            mbps(back.bits_per_second),
            back.held.packets,
        )?;
        for (cause, packets) in &back.dropped {
            write!(f, ", {packets} {cause}")?;
        }
        let Slots { granted, used, asked, free, .. } = back.slots;
        writeln!(
            f,
            "\nslots: {granted} granted ({asked} asked for, {free} free), {used} used; {} requests",
            back.requests
        )?;
        for (count, what) in [
            (back.requests_lost, "requests lost"),
            (back.requests_cut, "requests for more than may be asked for"),
            (back.plans_missed, "plans missed"),
            (back.intruders, "bursts outside of all grants"),
            (back.late_bursts, "bursts too late"),
            (back.silenced, "terminals silent for too long"),
            (counts.malformed, "datagrams about connections not understood"),
            (counts.unknown, "connection counts of terminals that there are not"),
        ] {
            if count > 0 {
                writeln!(f, "{count} {what}")?;
            }
        }
        let late = Span::from_secs_f64;
        writeln!(
            f,
            "departures late by {} (median), {} (99th percentile), {} (most)",
            late(lateness.p50_seconds),
            late(lateness.p99_seconds),
            late(lateness.max_seconds)
        )?;
        writeln!(f, "scheduling: {}", self.start.scheduling)?;
        if self.end.kept_up {
            return write!(f, "kept up: every drop and every delay was the star's");
        }
        write!(f, "DID NOT KEEP UP: {}", self.end.reasons.join("; "))
    }
}
