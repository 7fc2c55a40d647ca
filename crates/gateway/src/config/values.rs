//! Values with units, as they are written in a configuration.

use toml::value::{Datetime, Offset};
use units::{BitRate, Span};

/// Expected form of a rate, for messages.
pub(super) const RATE: &str =
    "a rate from \"1bit\" to \"10000gbit\", such as \"512kbit\", or \"auto\"";
/// Expected form of an amount of memory, for messages.
pub(super) const MEMORY: &str = "an amount from \"1mb\" to \"4gb\"";
/// Expected form of an amount of memory for all terminals, for messages.
pub(super) const MEMORY_TOTAL: &str = "an amount from \"16mb\" to \"1000gb\"";
/// Expected form of a length of time, for messages.
pub(super) const SPAN: &str = "a length of time, such as \"4ms\" or \"20s\"";
/// Expected form of ports, for messages.
pub(super) const PORTS: &str = "a port, such as 443, or a range, such as \"8000-8099\"";
/// Expected form of a network, for messages.
pub(super) const NETWORK: &str = "a network, such as \"10.0.0.0/8\" or \"2001:db8::/32\"";

/// Parses a rate: a number and `bit`, `kbit`, `mbit` or `gbit`, with or without `/s` or `ps`.
pub(super) fn rate(text: &str) -> Option<BitRate> {
    let text = text.trim().to_ascii_lowercase();
    let text = text.strip_suffix("/s").or_else(|| text.strip_suffix("ps")).unwrap_or(&text);
    let (number, unit) = split_number(text)?;
    let scale = match unit {
        "bit" => 1.0,
        "kbit" => 1e3,
        "mbit" => 1e6,
        "gbit" => 1e9,
        _ => return None,
    };
    let bps = (number * scale).round();
    // The maximum of 10 Tbit/s keeps the results of computations within 64 bits.
    if (1.0..=1e13).contains(&bps) { BitRate::new(bps as u64) } else { None }
}

/// Seconds since 1970 at a date (its begin) or a date with a time, in UTC; `None` before 1970 or in
/// another time zone.
pub(super) fn utc_seconds(time: &Datetime) -> Option<u64> {
    let Datetime { date: Some(date), time, offset } = time else { return None };
    if time.is_some() != (*offset == Some(Offset::Z)) {
        return None;
    }
    // Days of the Gregorian calendar, in years that begin in March (Hinnant, "chrono-Compatible
    // Low-Level Date Algorithms", days_from_civil).
    let (year, month, day) = (i64::from(date.year), i64::from(date.month), i64::from(date.day));
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + day_of_year - 719_468;
    let time = time.map_or(0, |time| {
        u64::from(time.hour) * 3600
            + u64::from(time.minute) * 60
            + u64::from(time.second.unwrap_or(0))
    });
    Some(u64::try_from(days).ok()? * 86_400 + time)
}

/// Parses an amount of memory: a number and `kb`, `mb` or `gb`, powers of 1,000.
pub(super) fn memory(text: &str) -> Option<u64> {
    amount(text).filter(|bytes| (1_000_000..=4_000_000_000).contains(bytes))
}

/// Parses an amount of memory for all terminals together.
pub(super) fn memory_total(text: &str) -> Option<u64> {
    amount(text).filter(|bytes| (16_000_000..=1_000_000_000_000).contains(bytes))
}

fn amount(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let (number, unit) = split_number(&text)?;
    let scale = match unit {
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        _ => return None,
    };
    let bytes = (number * scale).round();
    (0.0..=1e15).contains(&bytes).then_some(bytes as u64)
}

/// Parses a length of time from 1 s to 9 h.
pub(super) fn whole_seconds(text: &str) -> Option<Span> {
    let range = Span::from_secs(1)..=Span::from_secs(9 * 3600);
    span(text).filter(|span| range.contains(span))
}

/// Parses a length of time: a number and `us`, `ms`, `s`, `m` or `h`; at most a year.
pub(super) fn span(text: &str) -> Option<Span> {
    let (number, unit) = split_number(text.trim())?;
    let scale = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let secs = number * scale;
    if secs <= 365.0 * 86_400.0 { Some(Span::from_secs_f64(secs)) } else { None }
}

/// Splits `1.5mbit` into 1.5 and `mbit`. The number has neither sign nor exponent.
fn split_number(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_carry_their_unit() {
        assert_eq!(rate("10mbit"), Some(BitRate::from_mbps(10)));
        assert_eq!(rate("1.5 Mbit/s"), Some(BitRate::from_kbps(1_500)));
        assert_eq!(rate("512kbps"), None);
        assert_eq!(rate("512kbitps"), Some(BitRate::from_kbps(512)));
        assert_eq!(rate("9600bit"), Some(BitRate::from_bps(9_600)));
        for wrong in ["", "10", "mbit", "-1mbit", "0mbit", "1e3kbit", "10mb", "nanmbit"] {
            assert_eq!(rate(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn memory_carries_its_unit() {
        assert_eq!(memory("64mb"), Some(64_000_000));
        assert_eq!(memory("1.5 GB"), Some(1_500_000_000));
        assert_eq!((memory("5gb"), memory_total("5gb")), (None, Some(5_000_000_000)));
        assert_eq!(memory_total("15mb"), None);
        for wrong in ["", "64", "64mib", "100kb", "5gb", "-1mb"] {
            assert_eq!(memory(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn spans_carry_their_unit() {
        assert_eq!(span("600ms"), Some(Span::from_millis(600)));
        assert_eq!(span("0.5s"), Some(Span::from_millis(500)));
        assert_eq!(span("2m"), Some(Span::from_secs(120)));
        assert_eq!(span("0ms"), Some(Span::ZERO));
        for wrong in ["", "5", "ms", "-5ms", "5 days", "99999999h"] {
            assert_eq!(span(wrong), None, "{wrong}");
        }
    }
}
