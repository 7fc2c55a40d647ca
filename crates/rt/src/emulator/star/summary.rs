//! What a star reports: once a second while it runs, and all at the end. The JSON has the keys of
//! the point-to-point emulator where it has the same.

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

/// What a star did, from its start to its end.
#[derive(Clone, Debug, Serialize)]
pub struct StarSummary {
    /// What it was when it began.
    pub start: StarStart,
    /// What happened in each interval; the last hour's where they are seconds.
    pub intervals: VecDeque<StarInterval>,
    /// The whole.
    pub end: StarEnd,
    /// What happened to packets of the return link, if that was asked for, until there was no
    /// room.
    #[serde(skip)]
    pub log: Vec<ReturnEntry>,
}

/// A packet on the return link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnEntry {
    /// When, from the epoch.
    pub at: Instant,
    /// Whose it is.
    pub terminal: usize,
    /// Its bytes on the network layer.
    pub bytes: usize,
    /// Whether it arrived at the hub; otherwise the terminal handed it in.
    pub arrived: bool,
}

/// What a star was when it began.
#[derive(Clone, Debug, Serialize)]
pub struct StarStart {
    /// Nanoseconds since 1970 when the first plan was made.
    pub epoch_unix_ns: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// Replication.
    pub run: u64,
    /// The hub's interface.
    pub hub: String,
    /// The terminals' names and interfaces.
    pub terminals: Vec<(String, String)>,
    /// The network, in the words that it was given in, or as this program holds it.
    pub star: String,
    /// Slots of a frame on all carriers, and seconds of a frame.
    pub frame: (u32, f64),
    /// What of real-time scheduling was granted.
    pub scheduling: Scheduling,
    /// What else was not as it should be.
    pub notes: Vec<String>,
}

/// One interval.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct StarInterval {
    /// Seconds from the epoch to the interval's begin.
    pub start: f64,
    /// To its end.
    pub end: f64,
    /// From the hub.
    pub forward: Flow,
    /// To the hub.
    pub r#return: Flow,
    /// Of the return link.
    pub slots: Slots,
    /// How late the latest packet left.
    pub max_lateness_seconds: f64,
}

/// Slots of the return link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Slots {
    /// That were given away.
    pub granted: u64,
    /// Of those, such as carried something.
    pub used: u64,
    /// Given by contract.
    pub constant: u64,
    /// Given because they were asked for.
    pub asked: u64,
    /// Given because nobody asked for them.
    pub free: u64,
}

/// The whole of a run.
#[derive(Clone, Debug, Serialize)]
pub struct StarEnd {
    /// How long it was.
    pub seconds: f64,
    /// From the hub.
    pub forward: StarForward,
    /// To the hub.
    pub r#return: StarReturn,
    /// In the order of [`StarStart::terminals`].
    pub terminals: Vec<TerminalAccount>,
    /// What a hub told of its connections.
    pub counts: Counts,
    /// How late packets left.
    pub lateness: Lateness,
    /// Processor time that the emulator's thread took.
    pub cpu_seconds: f64,
    /// Packets whose stamps came too late to be honoured to the nanosecond.
    pub late_stamps: u64,
    /// Whether the emulator did what the star's description says, and nothing else.
    pub kept_up: bool,
    /// If not, why not, in plain words.
    pub reasons: Vec<String>,
}

/// The accounts of the forward link: `received = offered + out_of_memory`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StarForward {
    /// Delivered, network-layer bits, over the whole time.
    pub bits_per_second: f64,
    /// Packets that the kernel dropped before they could be read.
    pub kernel_dropped: u64,
    /// Packets read.
    pub received: u64,
    /// Packets not offered because the emulator's memory was full.
    pub out_of_memory: u64,
    /// Packets handed to the link.
    #[serde(serialize_with = "tally")]
    pub offered: Tally,
    /// Packets that came through, each counted once however many terminals it concerned.
    #[serde(serialize_with = "tally")]
    pub delivered: Tally,
    /// Packets that the link dropped, by cause.
    pub dropped: BTreeMap<String, u64>,
    /// Packets still under way at the end.
    #[serde(serialize_with = "tally")]
    pub held: Tally,
    /// Packets that came through for a terminal that was off.
    pub unheard: u64,
    /// Packets that terminals' interfaces did not take.
    pub send_failed: u64,
    /// Why the last of these was not taken.
    pub last_send_error: Option<String>,
}

/// The accounts of the return link: `offered = delivered + dropped + held`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StarReturn {
    /// Delivered, network-layer bits, over the whole time.
    pub bits_per_second: f64,
    /// Packets that the kernel dropped before they could be read.
    pub kernel_dropped: u64,
    /// Packets that terminals handed in.
    #[serde(serialize_with = "tally")]
    pub offered: Tally,
    /// Packets that came through.
    #[serde(serialize_with = "tally")]
    pub delivered: Tally,
    /// Packets dropped: `overflowed` in a terminal that is full or off, `lost` and `collided` on
    /// air, `abandoned` by a terminal that left.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Packets still under way at the end.
    #[serde(serialize_with = "tally")]
    pub held: Tally,
    /// Slots.
    pub slots: Slots,
    /// Plans that were made.
    pub frames: u64,
    /// Plans that a terminal with slots in them did not hear.
    pub plans_missed: u64,
    /// Requests sent.
    pub requests: u64,
    /// Of those, such as the scheduler never saw.
    pub requests_lost: u64,
    /// Requests for more than anyone may ask for, which were cut down.
    pub requests_cut: u64,
    /// Bursts outside of all grants.
    pub intruders: u64,
    /// Bursts later than the guard time allows.
    pub late_bursts: u64,
    /// Terminals that lost their slots because nothing was heard of them.
    pub silenced: u64,
    /// Packets that the hub's interface did not take.
    pub send_failed: u64,
    /// Why the last of these was not taken.
    pub last_send_error: Option<String>,
}

/// What one terminal had of the return link. One that is granted far more than it uses says what
/// is not so.
#[derive(Clone, Debug, Serialize)]
pub struct TerminalAccount {
    /// Its name.
    pub name: String,
    /// Packets of it that arrived at the hub.
    #[serde(serialize_with = "tally")]
    pub delivered: Tally,
    /// Slots that it was granted.
    pub granted: u64,
    /// Of those, such as it sent in.
    pub used: u64,
    /// Its weight at the end.
    pub weight: u32,
}

/// What came over the socket for connection counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Messages that were understood.
    pub messages: u64,
    /// Datagrams that were not.
    pub malformed: u64,
    /// Numbers of terminals that there are.
    pub told: u64,
    /// Numbers of terminals that there are not.
    pub unknown: u64,
    /// Terminals that went back to their usual weight because nothing was told any more.
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

/// What happened on the return link between two readings of its counters.
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
    /// In what the emulator fell short of its task, in plain words.
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
