//! The kinds of faults, and how often each struck.

use core::fmt;

/// What can go wrong in a storm. Each kind is on or off for a seed, and counted when it strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A datagram is lost.
    Loss,
    /// A run of datagrams is lost.
    Burst,
    /// A datagram comes twice.
    Duplicate,
    /// A datagram is overtaken.
    Reorder,
    /// Delays vary from datagram to datagram.
    Jitter,
    /// A bit is flipped.
    Corrupt,
    /// A datagram loses its end.
    Truncate,
    /// An earlier datagram comes once more, much later.
    Replay,
    /// Nothing passes in either direction for a while.
    Blackout,
    /// Nothing passes in one direction for a while.
    OneWayBlackout,
    /// The delay becomes another one.
    DelayStep,
    /// The rate becomes another one.
    RateChange,
    /// The queue before the link is full.
    Overflow,
    /// A clock runs faster or slower than time.
    Drift,
    /// A clock leaps forward.
    ClockForward,
    /// A clock leaps back.
    ClockBack,
    /// An end is called later than it wanted.
    LateTimer,
    /// An end stands still, and then gets all at once.
    Stall,
    /// The client's side starts anew and remembers only how often it has begun.
    ClientRestart,
    /// The server's side starts anew.
    ServerRestart,
    /// A side that starts anew has forgotten everything.
    Amnesia,
    /// A datagram of an earlier incarnation comes.
    OldIncarnation,
    /// Room for a few packets only.
    TinyWindow,
    /// Room for as many packets as can be numbered.
    HugeWindow,
    /// A reader pauses, and the window shuts.
    SlowReader,
    /// Packets of a few dozen bytes.
    TinySegment,
    /// The path's MTU changes.
    MtuChange,
    /// Numbers pass from 2²⁴ - 1 to 0.
    Wrap,
    /// One direction ends long before the other.
    HalfClose,
    /// An end, or a stream's owner, gives up.
    Abort,
    /// Ends that are silent for seconds are given up.
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
            Self::DelayStep => "steps of the delay",
            Self::RateChange => "changes of the rate",
            Self::Overflow => "full queues",
            Self::Drift => "clocks at other rates",
            Self::ClockForward => "clocks that leap forward",
            Self::ClockBack => "clocks that leap back",
            Self::LateTimer => "late timers",
            Self::Stall => "ends that stand still",
            Self::ClientRestart => "restarts of the client",
            Self::ServerRestart => "restarts of the server",
            Self::Amnesia => "restarts without memory",
            Self::OldIncarnation => "datagrams of an old incarnation",
            Self::TinyWindow => "tiny windows",
            Self::HugeWindow => "huge windows",
            Self::SlowReader => "slow readers, zero windows",
            Self::TinySegment => "tiny segments",
            Self::MtuChange => "changes of the MTU",
            Self::Wrap => "numbers that wrap",
            Self::HalfClose => "half-closes",
            Self::Abort => "resets and aborts",
            Self::Impatience => "ends that give up soon",
        })
    }
}

/// Which kinds may strike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultSet(u32);

impl FaultSet {
    /// Whether `fault` is one of them.
    pub fn has(self, fault: Fault) -> bool {
        self.0 & 1 << fault as u32 != 0
    }

    /// Adds `fault`.
    pub fn add(&mut self, fault: Fault) {
        self.0 |= 1 << fault as u32;
    }

    /// Takes `fault` out.
    pub fn remove(&mut self, fault: Fault) {
        self.0 &= !(1 << fault as u32);
    }

    /// All of them.
    pub fn iter(self) -> impl Iterator<Item = Fault> {
        Fault::ALL.into_iter().filter(move |&fault| self.has(fault))
    }
}

/// How often each kind struck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strikes([u64; Fault::ALL.len()]);

impl Strikes {
    /// `fault` struck once more.
    pub fn count(&mut self, fault: Fault) {
        self.0[fault as usize] += 1;
    }

    /// How often `fault` struck.
    pub fn of(&self, fault: Fault) -> u64 {
        self.0[fault as usize]
    }
}

impl Default for Strikes {
    fn default() -> Self {
        Self([0; Fault::ALL.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_place_of_its_own() {
        let mut set = FaultSet::default();
        let mut strikes = Strikes::default();
        for fault in Fault::ALL {
            assert!(!set.has(fault) && strikes.of(fault) == 0, "{fault}");
            set.add(fault);
            strikes.count(fault);
        }
        assert_eq!(set.iter().count(), Fault::ALL.len());
        set.remove(Fault::Wrap);
        assert!(!set.has(Fault::Wrap) && set.has(Fault::HalfClose));
    }
}
