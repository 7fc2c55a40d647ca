//! Kinds of faults, and how often each occurred.

use core::fmt;

/// A kind of fault. Each kind is enabled or disabled by the seed, and its occurrences are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A datagram is lost.
    Loss,
    /// Consecutive datagrams are lost.
    Burst,
    /// A datagram is duplicated.
    Duplicate,
    /// A datagram is reordered.
    Reorder,
    /// The delay varies between datagrams.
    Jitter,
    /// A bit is flipped.
    Corrupt,
    /// A datagram is truncated.
    Truncate,
    /// An earlier datagram is replayed.
    Replay,
    /// Both directions lose every datagram for a time.
    Blackout,
    /// One direction loses every datagram for a time.
    OneWayBlackout,
    /// The path delay changes.
    DelayStep,
    /// The rate changes.
    RateChange,
    /// The queue before the link overflows.
    Overflow,
    /// A clock has skew.
    Drift,
    /// A clock steps forward.
    ClockForward,
    /// A clock steps backward.
    ClockBack,
    /// An endpoint's timer expires late.
    LateTimer,
    /// An endpoint does not run for a time.
    Stall,
    /// The client restarts and keeps only its incarnation counter.
    ClientRestart,
    /// The server restarts.
    ServerRestart,
    /// An endpoint restarts without any stored state.
    Amnesia,
    /// A datagram of an earlier incarnation arrives.
    OldIncarnation,
    /// The receive window has a few packets.
    TinyWindow,
    /// The receive window has half of the sequence number space.
    HugeWindow,
    /// A reader pauses, and the window closes.
    SlowReader,
    /// Packets have a few dozen octets.
    TinySegment,
    /// The path MTU changes.
    MtuChange,
    /// Sequence numbers wrap from 2²⁴ - 1 to 0.
    Wrap,
    /// One direction ends long before the other.
    HalfClose,
    /// An endpoint aborts its session or a stream.
    Abort,
    /// The response timeout is a few seconds.
    Impatience,
}

impl Fault {
    /// Every kind.
    pub const ALL: [Self; 31] = [
        Self::Loss,
        Self::Burst,
        Self::Duplicate,
        Self::Reorder,
        Self::Jitter,
        Self::Corrupt,
        Self::Truncate,
        Self::Replay,
        Self::Blackout,
        Self::OneWayBlackout,
        Self::DelayStep,
        Self::RateChange,
        Self::Overflow,
        Self::Drift,
        Self::ClockForward,
        Self::ClockBack,
        Self::LateTimer,
        Self::Stall,
        Self::ClientRestart,
        Self::ServerRestart,
        Self::Amnesia,
        Self::OldIncarnation,
        Self::TinyWindow,
        Self::HugeWindow,
        Self::SlowReader,
        Self::TinySegment,
        Self::MtuChange,
        Self::Wrap,
        Self::HalfClose,
        Self::Abort,
        Self::Impatience,
    ];
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loss => "loss",
            Self::Burst => "loss in bursts",
            Self::Duplicate => "duplicates",
            Self::Reorder => "overtaking",
            Self::Jitter => "jitter",
            Self::Corrupt => "corruption",
            Self::Truncate => "truncation",
            Self::Replay => "replay",
            Self::Blackout => "blackouts",
            Self::OneWayBlackout => "blackouts of one direction",
            Self::DelayStep => "path delay changes",
            Self::RateChange => "rate changes",
            Self::Overflow => "full queues",
            Self::Drift => "clock skew",
            Self::ClockForward => "clock steps forward",
            Self::ClockBack => "clock steps backward",
            Self::LateTimer => "late timers",
            Self::Stall => "endpoint stalls",
            Self::ClientRestart => "restarts of the client",
            Self::ServerRestart => "restarts of the server",
            Self::Amnesia => "restarts without memory",
            Self::OldIncarnation => "datagrams of an old incarnation",
            Self::TinyWindow => "tiny windows",
            Self::HugeWindow => "huge windows",
            Self::SlowReader => "slow readers, zero windows",
            Self::TinySegment => "tiny segments",
            Self::MtuChange => "MTU changes",
            Self::Wrap => "sequence number wraps",
            Self::HalfClose => "half-closes",
            Self::Abort => "resets and aborts",
            Self::Impatience => "endpoints with short timeouts",
        })
    }
}

/// A set of kinds of faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultSet(u32);

impl FaultSet {
    /// Returns whether the set contains `fault`.
    pub fn has(self, fault: Fault) -> bool {
        self.0 & 1 << fault as u32 != 0
    }

    /// Adds `fault`.
    pub fn add(&mut self, fault: Fault) {
        self.0 |= 1 << fault as u32;
    }

    /// Removes `fault`.
    pub fn remove(&mut self, fault: Fault) {
        self.0 &= !(1 << fault as u32);
    }

    /// All members, in order.
    pub fn iter(self) -> impl Iterator<Item = Fault> {
        Fault::ALL.into_iter().filter(move |&fault| self.has(fault))
    }
}

/// Number of occurrences of each kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultCounts([u64; Fault::ALL.len()]);

impl FaultCounts {
    /// Counts one occurrence of `fault`.
    pub fn count(&mut self, fault: Fault) {
        self.0[fault as usize] += 1;
    }

    /// The number of occurrences of `fault`.
    pub fn of(&self, fault: Fault) -> u64 {
        self.0[fault as usize]
    }
}

impl Default for FaultCounts {
    fn default() -> Self {
        Self([0; Fault::ALL.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_own_counter() {
        let mut set = FaultSet::default();
        let mut fault_counts = FaultCounts::default();
        for fault in Fault::ALL {
            assert!(!set.has(fault) && fault_counts.of(fault) == 0, "{fault}");
            set.add(fault);
            fault_counts.count(fault);
        }
        assert_eq!(set.iter().count(), Fault::ALL.len());
        set.remove(Fault::Wrap);
        assert!(!set.has(Fault::Wrap) && set.has(Fault::HalfClose));
    }
}
