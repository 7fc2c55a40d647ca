//! Formats numbers for display.

/// Formats bits/s with three digits.
pub(crate) fn rate(bits: f64) -> String {
    scaled(bits, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
}

/// Formats octets with three digits.
pub(crate) fn bytes(bytes: u64) -> String {
    scaled(bytes as f64, &["B", "kB", "MB", "GB", "TB", "PB"])
}

fn scaled(value: f64, units: &[&str]) -> String {
    let (mut value, mut index) = (value.max(0.0), 0);
    while value >= 999.5 && index + 1 < units.len() {
        value /= 1000.0;
        index += 1;
    }
    let digits = if index == 0 || value >= 99.95 { 0 } else { usize::from(value < 9.995) + 1 };
    format!("{value:.digits$} {}", units[index])
}

/// Formats a count with thousands separators.
pub(crate) fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a duration in its one or two largest units.
pub(crate) fn time(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    match whole {
        0 if seconds < 0.0095 => format!("{:.1} ms", seconds.max(0.0) * 1e3),
        0 => format!("{:.0} ms", seconds * 1e3),
        1..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        3600..86_400 => format!("{} h {} min", whole / 3600, whole / 60 % 60),
        86_400.. => format!("{} d {} h", whole / 86_400, whole / 3600 % 24),
    }
}

/// Formats a fraction as a percentage.
pub(crate) fn share(share: f64) -> String {
    if share > 0.0 && share < 0.000_5 { "<0.1 %".into() } else { format!("{:.1} %", share * 1e2) }
}

/// The placeholder of an unknown value.
pub(crate) fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".into())
}

/// Replaces control characters, which a terminal would execute, in names of the peer.
pub(crate) fn safe(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Pads or truncates `text` to `width` columns.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let len = text.chars().count();
    if len <= width {
        return format!("{text}{}", " ".repeat(width - len));
    }
    text.chars().take(width.saturating_sub(1)).chain(std::iter::once('…')).take(width).collect()
}

/// Pads or truncates `text` to `width` columns, aligned right.
pub(crate) fn fit_right(text: &str, width: usize) -> String {
    let len = text.chars().count();
    if len <= width { format!("{}{text}", " ".repeat(width - len)) } else { fit(text, width) }
}

/// Draws the last `width` of `values` as a line of blocks, of which `most` is the tallest.
pub(crate) fn spark(
    values: impl DoubleEndedIterator<Item = f64>,
    most: f64,
    width: usize,
) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let block = |value: f64| {
        let height = if most > 0.0 { (value / most * 8.0).ceil() as usize } else { 0 };
        BLOCKS[height.clamp(1, 8) - 1]
    };
    let line: Vec<char> = values.rev().take(width).map(block).collect();
    let drawn: String = line.into_iter().rev().collect();
    fit_right(&drawn, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        for (value, expected) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.00 kB"),
            (12_345, "12.3 kB"),
            (999_499, "999 kB"),
            (999_500, "1.00 MB"),
            (u64::MAX, "18447 PB"),
        ] {
            assert_eq!(bytes(value), expected);
        }
        assert_eq!(rate(9_996_000.0), "10.0 Mbit/s");
        assert_eq!(rate(-1.0), "0 bit/s");
        assert_eq!((count(1_234_567), count(12)), ("1,234,567".into(), "12".into()));
    }

    #[test]
    fn times_have_their_largest_units() {
        for (value, expected) in [
            (0.0004, "0.4 ms"),
            (0.612, "612 ms"),
            (1.25, "1.2 s"),
            (61.0, "1 min 1 s"),
            (7_300.0, "2 h 1 min"),
            (200_000.0, "2 d 7 h"),
            (-5.0, "0.0 ms"),
        ] {
            assert_eq!(time(value), expected);
        }
        assert_eq!(
            (share(0.0), share(0.0001), share(0.0123)),
            ("0.0 %".into(), "<0.1 %".into(), "1.2 %".into())
        );
    }

    #[test]
    fn text_fits_its_column_without_control_characters() {
        assert_eq!((fit("boat", 6), fit("a long name", 6)), ("boat  ".into(), "a lon…".into()));
        assert_eq!((fit_right("7", 3), fit("x", 0)), ("  7".into(), String::new()));
        assert_eq!(safe("a\u{1b}[2Jb"), "a\u{fffd}[2Jb");
        assert_eq!(spark([0.0, 1.0, 4.0, 8.0].into_iter(), 8.0, 5), " ▁▁▄█");
        assert_eq!(spark([1.0, 2.0].into_iter(), 2.0, 1), "█");
        assert_eq!(spark([5.0].into_iter(), 0.0, 1), "▁");
    }
}
