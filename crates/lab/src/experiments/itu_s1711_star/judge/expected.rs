//! What the document states, written down before anything was compared.

use crate::experiments::statistics::Summary;
use crate::experiments::{Criterion, Expected, Published};

const fn number(
    name: &'static str,
    place: &'static str,
    value: f64,
    unit: &'static str,
    criterion: Criterion,
) -> Expected {
    Expected { name, place, published: Published::Number { value, unit }, criterion }
}

const fn claim(
    name: &'static str,
    place: &'static str,
    text: &'static str,
    when: &'static str,
) -> Expected {
    Expected { name, place, published: Published::Claim(text), criterion: Criterion::Holds(when) }
}

/// Half of the last digit that is printed, and a little for how it was rounded.
const ROUNDED: Criterion = Criterion::Absolute(0.051);
/// Hours are printed to a thousandth.
const HOURS: Criterion = Criterion::Absolute(0.001);

pub(super) const YEARS: [Expected; 7] = [
    number("availability of cluster 1 in the year", "table 16", 100.0, "%", ROUNDED),
    number("availability of cluster 2 in the year", "table 16", 99.9, "%", ROUNDED),
    number("availability of cluster 3 in the year", "table 16", 100.0, "%", ROUNDED),
    number("availability of the system in the year", "table 16, figure 44", 99.8, "%", ROUNDED),
    number("unavailability of the system in the year", "table 16", 0.2, "%", ROUNDED),
    number("unavailable in a month", "table 16", 1.730, "h", HOURS),
    number("available in a month", "table 16", 728.270, "h", HOURS),
];

pub(super) const OUT: Expected = claim(
    "hours of unavailability",
    "table 16",
    "the hours are the shares of the months' hours",
    "for all twelve months, with the months' real lengths, to a thousandth of an hour",
);

/// Months in which the system was away, with their availability.
pub(super) const RAIN: [Expected; 5] = [
    rain("January 2003 under its outages", 98.6),
    rain("February 2003 under its outages", 98.9),
    rain("March 2003 under its outages", 99.8),
    rain("November 2003 under its outages", 99.9),
    rain("December 2003 under its outages", 99.9),
];

const fn rain(name: &'static str, availability: f64) -> Expected {
    number(name, "table 16, figures 42 to 44", availability, "%", ROUNDED)
}

pub(super) const MAX_2: Expected =
    number("highest day of cluster 2", "section 4.2.2", 319.11, "kbit/s", HOURS);
pub(super) const MAX_3: Expected =
    number("highest day of cluster 3", "section 4.2.2", 262.35, "kbit/s", HOURS);

/// Days on which a cluster's value is the mean of its platforms'.
pub(super) const MEANS: [Expected; 4] = [
    means("days whose mean fits, cluster 2, throughput", "table 17", 29.0),
    means("days whose mean fits, cluster 3, throughput", "table 18", 29.0),
    means("days whose mean fits, cluster 2, traffic", "table 19", 29.0),
    means("days whose mean fits, cluster 3, traffic", "table 20", 28.0),
];

const fn means(name: &'static str, place: &'static str, days: f64) -> Expected {
    number(name, place, days, "days", Criterion::Absolute(0.0))
}

/// The mean of a month's days is ours and not printed; days lie around it, 19 in 20 of them within
/// two standard deviations. That far ours may be off.
pub(super) fn throughput<const N: usize>(
    name: &'static str,
    place: &'static str,
    days: &[[f64; N]],
) -> Expected {
    let spread = Summary::of(&days.iter().map(|row| row[0]).collect::<Vec<f64>>());
    number(name, place, spread.mean, "kbit/s", Criterion::Absolute(2.0 * spread.deviation))
}
pub(super) const TRAFFIC_2: Expected = number(
    "traffic of a platform in cluster 2",
    "table 19, its mean",
    6.079,
    "GB/day",
    Criterion::Within(0.1),
);
pub(super) const TRAFFIC_3: Expected = number(
    "traffic of a platform in cluster 3",
    "table 20, its mean",
    4.836,
    "GB/day",
    Criterion::Within(0.1),
);

pub(super) const DAYS_2: Expected = claim(
    "throughput of all days of cluster 2",
    "table 17",
    "302.13 to 319.11 kbit/s on every day of the month",
    "ours lies between them at half, at once and at twice the month's mean traffic",
);
pub(super) const BUSY: Expected = claim(
    "busy days",
    "tables 17 and 19",
    "throughput is lower on days with more traffic",
    "the tables' days correlate below zero, and ours falls from half to four times the traffic",
);
pub(super) const INBOUND: Expected = claim(
    "inbound rate",
    "table 14",
    "at most 50 kbit/s from a terminal",
    "an upload has more than 40 and no more than 50 kbit/s",
);
pub(super) const WINDOWING: Expected = claim(
    "local acknowledgements and windows",
    "section 4",
    "local acknowledgements improve TCP by doing away with the limit that windows set",
    "a large file is faster by splitting than end to end with each of the two windows",
);
pub(super) const SLOW_START: Expected = claim(
    "local acknowledgements and slow start",
    "section 4",
    "local acknowledgements do away with slow start and raise throughput",
    "a file of 30 kB is at least half as fast again by splitting as end to end with 64 kB",
);

/// The mean of a table's first column.
pub(super) fn mean_of<const N: usize>(rows: &[[f64; N]]) -> f64 {
    rows.iter().map(|row| row[0]).sum::<f64>() / rows.len() as f64
}
