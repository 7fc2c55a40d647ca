//! Probing upwards: a round trip at a little more, and what becomes of it.
//!
//! ```text
//!   cruise ──due──▶ rate + 1/16 for a round trip ──its last POLL answered──▶
//!       what more was sent arrived, and no delay grew    that is the rate; more of it at once,
//!                                                        and so on to twice the rate
//!       the delay grew by half of what it must where      the link's rate is what passed;
//!       the link takes no more                            the next one twice as late
//!       less than half of the addition arrived            (a queue too short to be seen)
//! ```

use super::samples::{Samples, Window, mul};
use units::{Instant, Span};

/// The usual first addition is 1/2 to this power.
const SMALLEST: u32 = 4;
/// Round trips between two probes, at first and at most.
const FIRST_WAIT: u64 = 4;
const LONGEST_WAIT: u64 = 16;
/// No wait is longer, but for one of the first length.
const LONGEST: Span = Span::from_secs(8);
/// Packets that a probe has at least: its effect must be larger than a packet.
const PACKETS: u64 = 36;
/// Packets that are enough for a probe at twice the rate; where fewer go in a round trip, it is
/// at twice the rate.
const FEW_PACKETS: u64 = 4;
/// A rate this many times below the ceiling that was told is nobody's.
const FAR: u64 = 64;

/// When to probe, and by how much.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    due: Instant,
    waits: u64,
    power: u32,
}

/// A probe under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pub(super) base: u64,
    pub(super) rate: u64,
    pub(super) from: Instant,
    pub(super) until: Instant,
    /// The POLL at its end is asked for.
    pub(super) ended: bool,
}

/// What came of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The way takes more.
    Room,
    /// The way takes this, and what was more waits.
    Queue(u64),
    /// What was more was lost.
    Loss,
}

impl Schedule {
    pub(super) fn new() -> Self {
        Self { due: Instant::ZERO, waits: FIRST_WAIT, power: SMALLEST }
    }

    /// The next one comes soon.
    pub(super) fn soon(&mut self, now: Instant, round_trip: Span) {
        *self = Self { due: now + round_trip * FIRST_WAIT, ..Self::new() };
    }

    /// The first one, where the rate may be wrong by `doubt` millionths of it: it adds more.
    pub(super) fn first(&mut self, due: Instant, doubt: u64) {
        let adds = |power: &u32| 1_000_000 >> power >= doubt;
        let power = (0..=SMALLEST).rev().find(adds).unwrap_or(0);
        *self = Self { due, power, ..Self::new() };
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.due
    }

    /// The probe that is due.
    pub(super) fn begin(
        &self,
        now: Instant,
        base: u64,
        most: u64,
        round_trip: Span,
        time: Span,
        error_ppm: u64,
    ) -> Probe {
        // Far below a ceiling that was told something was misjudged: the way up is not to take
        // minutes, as it would with a 16th of next to nothing.
        let lost = most < u64::MAX && base < most / FAR;
        // So few packets go that doubling them adds a handful to a queue, unless the last probe
        // found one.
        let few = mul(base, round_trip.as_micros(), 12_000 * 1_000_000) < FEW_PACKETS;
        let lost = lost || (few && self.waits == FIRST_WAIT);
        let (power, least) = if lost { (0, FEW_PACKETS) } else { (self.power, PACKETS) };
        let rate = base.saturating_add(base >> power).min(most);
        // Half of the addition is to be twice what chance makes of the errors:
        // n/32 = 2 √(n p) for n packets.
        let packets = least.max(mul(4_096, error_ppm, 1_000_000));
        let packets = Span::from_nanos(mul(1_500 * 8 * packets, 1_000_000_000, rate));
        Probe { base, rate, from: now, until: now + time.max(packets), ended: false }
    }

    /// Takes in what a probe has found.
    pub(super) fn found(&mut self, now: Instant, found: Found, round_trip: Span) {
        if found == Found::Room {
            self.power = self.power.div_ceil(2).max(1);
            self.waits = FIRST_WAIT;
            self.due = now;
        } else {
            let wait = (round_trip * self.waits).min(LONGEST.max(round_trip * FIRST_WAIT));
            self.due = now + wait;
            self.waits = (self.waits * 2).min(LONGEST_WAIT);
            self.power = SMALLEST;
        }
    }
}

impl Probe {
    /// What to judge by: the window of its POLLs, or where answers are too far apart for that the
    /// one around it, with the rate that was meant for it; `None` where too little of the addition
    /// was sent in either.
    pub(super) fn seen(&self, samples: &Samples) -> Option<(Window, u64)> {
        let of_its_own = || samples.window(self.from, Some(self.until));
        let around = || samples.around(self.from, self.until);
        // A quarter of the addition on average is told from none as well.
        let least = self.base + (self.rate - self.base) / 4;
        let tells = |window: &Window| window.sent_bps() >= least;
        let window = of_its_own().filter(tells).or_else(|| around().filter(tells))?;
        let most = window.sent_bps() >= self.middle(self.rate);
        Some((window, if most { self.rate } else { window.sent_bps() }))
    }

    fn middle(&self, rate: u64) -> u64 {
        self.base + (rate - self.base) / 2
    }

    /// What a window shows in which `rate` was meant to be sent, where errors lose `error_ppm`.
    pub(super) fn judge(&self, (window, rate): &(Window, u64), error_ppm: u64) -> Found {
        let middle = self.middle(*rate);
        if window.passed_bps() < middle {
            return Found::Queue(window.passed_bps());
        }
        let kept = 1_000_000_u64.saturating_sub(error_ppm);
        let enough = mul(mul(window.sent, kept, 1_000_000), middle, *rate);
        if window.arrived < enough { Found::Loss } else { Found::Room }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// XSTP-14.4.1
    #[test]
    fn next_to_nothing_is_doubled_until_a_queue_is_found() {
        let mut schedule = Schedule::new();
        let round_trip = Span::from_millis(600);
        let begin = |schedule: &Schedule, base| {
            let probe = schedule.begin(Instant::ZERO, base, u64::MAX, round_trip, round_trip, 0);
            (probe.rate, probe.until.since(Instant::ZERO).as_millis())
        };
        assert_eq!(begin(&schedule, 1_000), (2_000, 24_000), "four packets");
        assert_eq!(begin(&schedule, 79_000), (158_000, 600), "fewer than four in a round trip");
        assert_eq!(begin(&schedule, 80_000), (85_000, 5_082), "thirty-six packets");
        schedule.found(Instant::ZERO, Found::Queue(1_000), round_trip);
        assert_eq!(begin(&schedule, 1_600).0, 1_700);
    }
}
