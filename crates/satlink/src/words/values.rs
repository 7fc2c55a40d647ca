//! Values in the syntax of tc and netem.

use crate::Limit;
use units::{BitRate, Span};

/// A time; a number without a unit is in microseconds.
pub(super) fn time(text: &str) -> Option<Span> {
    let (number, unit) = split(text)?;
    let seconds = match unit.as_str() {
        "s" | "sec" | "secs" => 1.0,
        "ms" | "msec" | "msecs" => 1e-3,
        "us" | "usec" | "usecs" | "" => 1e-6,
        "ns" | "nsec" | "nsecs" => 1e-9,
        _ => return None,
    };
    Some(Span::from_secs_f64(number * seconds))
}

/// A rate; a number without a unit is in bit/s, and `bps` are octets per second.
pub(super) fn rate(text: &str) -> Option<BitRate> {
    let (number, unit) = split(text)?;
    let (scale, bits) = if let Some(scale) = unit.strip_suffix("bit") {
        (scale, 1.0)
    } else if let Some(scale) = unit.strip_suffix("bps") {
        (scale, 8.0)
    } else {
        (unit.as_str(), 1.0)
    };
    let factor = match scale {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        "ki" => 1024.0,
        "mi" => 1024.0 * 1024.0,
        "gi" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    // The cast saturates at the maximum.
    BitRate::new(libm::round(number * factor * bits) as u64)
}

/// A percentage, with or without the sign.
pub(super) fn share(text: &str) -> Option<f64> {
    let (number, unit) = split(text)?;
    let share = number / 100.0;
    ((unit == "%" || unit.is_empty()) && share <= 1.0).then_some(share)
}

/// A ratio from 0 to 1.
pub(super) fn ratio(text: &str) -> Option<f64> {
    let ratio: f64 = text.parse().ok()?;
    (0.0..=1.0).contains(&ratio).then_some(ratio)
}

/// A queue limit in packets, or with a unit in octets or bandwidth-delay products.
pub(super) fn limit(text: &str) -> Option<Limit> {
    let (number, unit) = split(text)?;
    if number <= 0.0 {
        return None;
    }
    let whole = |factor: f64| {
        let whole = (number * factor) as u64;
        (whole > 0).then_some(whole)
    };
    match unit.as_str() {
        "" | "p" | "packets" => whole(1.0).map(Limit::Packets),
        "b" | "bytes" => whole(1.0).map(Limit::Bytes),
        "k" | "kb" => whole(1024.0).map(Limit::Bytes),
        "m" | "mb" => whole(1024.0 * 1024.0).map(Limit::Bytes),
        "bdp" => Some(Limit::BandwidthDelay(number)),
        _ => None,
    }
}

/// A whole number above zero.
pub(super) fn whole(text: &str) -> Option<u32> {
    text.parse().ok().filter(|&number| number > 0)
}

/// A whole number.
pub(super) fn number(text: &str) -> Option<u32> {
    text.parse().ok()
}

/// A non-negative number, and its unit in lower case.
fn split(text: &str) -> Option<(f64, alloc::string::String)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].to_ascii_lowercase()))
}
