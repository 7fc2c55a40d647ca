//! Points and lengths of time in whole nanoseconds.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A point in time: nanoseconds since an epoch of the driver's choosing.
///
/// Covers 584 years. Arithmetic saturates: a timer beyond that range never expires.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The epoch.
    pub const ZERO: Self = Self(0);
    /// The maximum, for timers that are not set.
    pub const FAR_FUTURE: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the epoch, for people and plots.
    pub fn as_secs_f64(self) -> f64 {
        Span(self.0).as_secs_f64()
    }

    /// Time passed since `earlier`; zero when `earlier` is later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

/// A length of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

impl Span {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// The maximum.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A span of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// A span of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// A span of `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// The span nearest to `secs` seconds; zero for negative numbers and NaN, [`Span::MAX`] on
    /// overflow.
    pub fn from_secs_f64(secs: f64) -> Self {
        // A float-to-integer cast saturates and maps NaN to zero.
        Self(libm::round(secs * 1e9) as u64)
    }

    /// Whole nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `self - other`, or zero if `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Whether it is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self × numerator / denominator` without overflow in between; saturates.
    ///
    /// # Panics
    /// When `denominator` is zero.
    pub fn mul_ratio(self, numerator: u64, denominator: u64) -> Self {
        let wide = u128::from(self.0) * u128::from(numerator) / u128::from(denominator);
        Self(u64::try_from(wide).unwrap_or(u64::MAX))
    }
}

impl Add<Span> for Instant {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Instant {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Instant {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl SubAssign for Span {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Mul<u64> for Span {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Span {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 1_000_000_000 => write!(f, "{:.3} s", n as f64 / 1e9),
            n if n >= 1_000_000 => write!(f, "{:.3} ms", n as f64 / 1e6),
            n if n >= 1_000 => write!(f, "{:.3} us", n as f64 / 1e3),
            n => write!(f, "{n} ns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Instant::ZERO - Span::from_secs(1), Instant::ZERO);
        assert_eq!(Instant::FAR_FUTURE + Span::from_secs(1), Instant::FAR_FUTURE);
        assert_eq!(Instant::ZERO.since(Instant::from_nanos(5)), Span::ZERO);
        assert_eq!(Span::from_secs(u64::MAX), Span::MAX);
        assert_eq!(Span::from_nanos(3) - Span::from_nanos(5), Span::ZERO);
    }

    #[test]
    fn seconds_as_floats_round_and_saturate() {
        assert_eq!(Span::from_secs_f64(0.6), Span::from_millis(600));
        assert_eq!(Span::from_secs_f64(-1.0), Span::ZERO);
        assert_eq!(Span::from_secs_f64(f64::NAN), Span::ZERO);
        assert_eq!(Span::from_secs_f64(f64::INFINITY), Span::MAX);
    }

    #[test]
    fn ratios_do_not_overflow_in_between() {
        assert_eq!(Span::MAX.mul_ratio(2, 2), Span::MAX);
        assert_eq!(Span::from_millis(600).mul_ratio(7, 8), Span::from_millis(525));
    }

    #[test]
    fn spans_print_in_the_unit_that_fits() {
        assert_eq!(format!("{}", Span::from_millis(1500)), "1.500 s");
        assert_eq!(format!("{}", Span::from_micros(1500)), "1.500 ms");
        assert_eq!(format!("{}", Span::from_nanos(999)), "999 ns");
    }
}
