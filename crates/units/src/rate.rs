//! Rates in bits per second, and serialization delays.

use crate::{Instant, Span};
use core::fmt;

/// A rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(u64);

impl BitRate {
    /// A rate of `bps` bits per second.
    ///
    /// # Panics
    /// If `bps` is zero: a link without a rate is an outage.
    pub const fn from_bps(bps: u64) -> Self {
        assert!(bps > 0, "a rate must be above zero");
        Self(bps)
    }

    /// As [`BitRate::from_bps`], or `None` for zero.
    pub const fn new(bps: u64) -> Option<Self> {
        if bps == 0 { None } else { Some(Self(bps)) }
    }

    /// A rate of `kbps` thousand bits per second.
    ///
    /// # Panics
    /// When `kbps` is zero.
    pub const fn from_kbps(kbps: u64) -> Self {
        Self::from_bps(kbps * 1_000)
    }

    /// A rate of `mbps` million bits per second.
    ///
    /// # Panics
    /// When `mbps` is zero.
    pub const fn from_mbps(mbps: u64) -> Self {
        Self::from_bps(mbps * 1_000_000)
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// The serialization delay of `bytes` octets at this rate, rounded up to 1 ns.
    ///
    /// For consecutive packets use [`Serializer`], which carries the remainder: rounding each
    /// packet separately causes measurable errors on fast links.
    pub fn time_for(self, bytes: u64) -> Span {
        let nanos = (u128::from(bytes) * 8_000_000_000).div_ceil(u128::from(self.0));
        Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The whole nanoseconds of `bytes` octets plus the remainder `rest` of an earlier call; and
    /// the new remainder, in units of 1/rate nanoseconds, below the rate.
    pub fn time_and_rest(self, bytes: u64, rest: u64) -> (Span, u64) {
        const BITS: u64 = 8_000_000_000;
        if let Some(work) = bytes.checked_mul(BITS).and_then(|work| work.checked_add(rest)) {
            return (Span::from_nanos(work / self.0), work % self.0);
        }
        let work = u128::from(bytes) * u128::from(BITS) + u128::from(rest);
        let rate = u128::from(self.0);
        let whole = u64::try_from(work / rate).unwrap_or(u64::MAX);
        // A remainder is below the rate, which is a u64.
        (Span::from_nanos(whole), (work % rate) as u64)
    }

    /// Whole octets sent in `span`, rounded down.
    pub fn bytes_in(self, span: Span) -> u64 {
        let bytes = u128::from(self.0) * u128::from(span.as_nanos()) / 8_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// This rate times `numerator / denominator`, at least 1 bit per second; saturates.
    ///
    /// # Panics
    /// When `denominator` is zero.
    pub fn mul_ratio(self, numerator: u64, denominator: u64) -> Self {
        let wide = u128::from(self.0) * u128::from(numerator) / u128::from(denominator);
        Self(u64::try_from(wide).unwrap_or(u64::MAX).max(1))
    }
}

impl fmt::Debug for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 1_000_000 => write!(f, "{:.3} Mbit/s", n as f64 / 1e6),
            n if n >= 1_000 => write!(f, "{:.3} kbit/s", n as f64 / 1e3),
            n => write!(f, "{n} bit/s"),
        }
    }
}

/// A transmitter that sends frames one after another at a rate, without cumulative rounding errors.
///
/// The end of each transmission is stored with a fraction of a nanosecond, so that the mean rate is
/// exact over any number of packets.
#[derive(Clone, Debug)]
pub struct Serializer {
    rate: BitRate,
    /// When the transmitter is free, rounded down.
    free_at: Instant,
    /// The fraction that `free_at` omits, in units of 1/rate nanoseconds; below `rate`.
    remainder: u64,
}

impl Serializer {
    /// A transmitter of `rate` that is free from the epoch on.
    pub const fn new(rate: BitRate) -> Self {
        Self { rate, free_at: Instant::ZERO, remainder: 0 }
    }

    /// Its rate.
    pub const fn rate(&self) -> BitRate {
        self.rate
    }

    /// Changes the rate of later transmissions; the current one keeps its end.
    pub fn set_rate(&mut self, rate: BitRate) {
        self.rate = rate;
        self.remainder = 0;
    }

    /// When the transmitter is free.
    pub const fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Puts `bytes` on the line at `now`, or when it is free; returns when the last bit is out.
    pub fn send(&mut self, now: Instant, bytes: u64) -> Instant {
        if now > self.free_at {
            self.free_at = now;
            self.remainder = 0;
        }
        let (span, remainder) = self.rate.time_and_rest(bytes, self.remainder);
        self.remainder = remainder;
        self.free_at += span;
        self.free_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn a_packet_takes_its_bits_over_the_rate() {
        assert_eq!(BitRate::from_mbps(10).time_for(1500), Span::from_micros(1200));
        assert_eq!(BitRate::from_bps(3).time_for(1), Span::from_nanos(2_666_666_667));
        assert_eq!(BitRate::from_mbps(10).bytes_in(Span::from_micros(1200)), 1500);
    }

    #[test]
    fn long_and_short_ways_of_division_agree() {
        let rate = BitRate::from_bps(333_333_333);
        // 2^32 bytes need more than 64 bits: 2^35 / 0.333... s = 103.079 s; 1024 times 2^22 less.
        let (long, rest) = rate.time_and_rest(1 << 32, 5);
        let mut short = (Span::ZERO, 5);
        for _ in 0..1 << 10 {
            let (span, rest) = rate.time_and_rest(1 << 22, short.1);
            short = (short.0 + span, rest);
        }
        assert_eq!((long, rest), short);
    }

    #[test]
    fn a_serializer_keeps_the_rate_over_many_packets() {
        // 200 Mbit/s is 25 bytes a microsecond; 1,499 bytes are 59.96 us, and 7 bytes are 280 ns.
        // At 333,333,333 bit/s nothing divides.
        let rate = BitRate::from_bps(333_333_333);
        let mut line = Serializer::new(rate);
        let mut last = Instant::ZERO;
        for _ in 0..1_000_000 {
            last = line.send(Instant::ZERO, 1499);
        }
        let exact = 1_499u128 * 1_000_000 * 8_000_000_000 / 333_333_333;
        assert_eq!(u128::from(last.as_nanos()), exact);
    }

    #[test]
    fn an_idle_serializer_starts_at_once() {
        let mut line = Serializer::new(BitRate::from_mbps(8));
        line.send(Instant::ZERO, 1000);
        let now = Instant::from_nanos(5_000_000);
        assert_eq!(line.send(now, 1000), now + Span::from_millis(1));
    }

    #[test]
    fn rates_print_in_the_unit_that_fits() {
        assert_eq!(format!("{}", BitRate::from_kbps(1_500)), "1.500 Mbit/s");
        assert_eq!(format!("{}", BitRate::from_bps(999)), "999 bit/s");
        assert_eq!(BitRate::new(0), None);
    }
}
