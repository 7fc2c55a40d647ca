//! Result of a measurement: as a table with the proposed configuration, and as JSON.

use endpoint::PathReport;
use gateway::measure::MeasuredPath;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use units::{BitRate, Span};

/// Part of a maximum rate, in percent, from which that rate counts as the limit.
const LIMITED_PERCENT: u64 = 97;
/// Loss ratio from which repair is proposed, in millionths.
const REPAIR_PPM: u64 = 1_000;

/// Result of a measurement.
#[derive(Debug, Serialize)]
pub(super) struct Measured {
    hub: String,
    address: SocketAddr,
    round_trip_seconds: Option<f64>,
    /// From hub to terminal.
    down: Direction,
    /// From terminal to hub.
    up: Direction,
    is_mtu_final: bool,
    /// Keys of `[link]` and their values.
    proposal: BTreeMap<&'static str, String>,
}

#[derive(Debug, Serialize)]
struct Direction {
    rate_bits_per_second: Option<u64>,
    /// Set if a configuration limits the rate, so that the link's is unknown.
    limited_by_configuration: bool,
    loss_ratio: Option<f64>,
    jitter_seconds: Option<f64>,
    mtu_bytes: u64,
}

impl Direction {
    fn new(report: &PathReport) -> Self {
        let is_limited = |max: BitRate| {
            report.rate.is_none_or(|rate| rate >= max.mul_ratio(LIMITED_PERCENT, 100))
        };
        Self {
            rate_bits_per_second: report.rate.or(report.max_rate).map(BitRate::as_bps),
            limited_by_configuration: report.max_rate.is_some_and(is_limited),
            loss_ratio: report.loss_ppm.map(|ppm| ppm as f64 / 1e6),
            jitter_seconds: report.jitter.map(Span::as_secs_f64),
            mtu_bytes: report.mtu,
        }
    }
}

impl Measured {
    pub(super) fn new(
        path: &MeasuredPath,
        address: SocketAddr,
        round_trip: Option<Span>,
        [down, up]: [PathReport; 2],
        is_mtu_final: bool,
    ) -> Self {
        let mut proposal = BTreeMap::new();
        for (key, report) in [("rate_down", down), ("rate_up", up)] {
            proposal.extend(report.rate.map(|rate| (key, rate_text(rate))));
        }
        proposal.extend(round_trip.map(|time| ("round_trip", format!("{}ms", millis(time)))));
        let mtu = down.mtu.min(up.mtu);
        if is_mtu_final && mtu < u64::from(path.link.mtu) {
            proposal.insert("mtu", mtu.to_string());
        }
        if down.loss_ppm.max(up.loss_ppm) >= Some(REPAIR_PPM) {
            proposal.insert("repair", "auto".into());
        }
        Self {
            hub: path.hub.to_string(),
            address,
            round_trip_seconds: round_trip.map(Span::as_secs_f64),
            down: Direction::new(&down),
            up: Direction::new(&up),
            is_mtu_final,
            proposal,
        }
    }

    /// Returns what was not found, and what to do.
    pub(super) fn failure(&self) -> Option<String> {
        let missing = [("rate_down", &self.down), ("rate_up", &self.up)];
        let (key, _) = missing.into_iter().find(|(_, one)| one.rate_bits_per_second.is_none())?;
        Some(format!(
            "no {key} was found: too little was transferred; repeat it with larger --seconds and \
             --max-bytes"
        ))
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |seconds: Option<f64>| {
            seconds.map_or("-".to_owned(), |seconds| format!("{:.1} ms", seconds * 1e3))
        };
        let round_trip = millis(self.round_trip_seconds);
        writeln!(f, "{} at {}, round trip {round_trip}\n", self.hub, self.address)?;
        writeln!(f, "{:<10} {:>16} {:>9} {:>10} {:>6}", "", "RATE", "LOSS", "JITTER", "MTU")?;
        for (name, one) in [("from hub", &self.down), ("to hub", &self.up)] {
            let rate = one.rate_bits_per_second.and_then(BitRate::new);
            let rate = rate.map_or("-".to_owned(), |rate| rate.to_string());
            let loss = one.loss_ratio.map_or("-".to_owned(), |it| format!("{:.2} %", it * 1e2));
            let (jitter, mtu) = (millis(one.jitter_seconds), one.mtu_bytes);
            writeln!(f, "{name:<10} {rate:>16} {loss:>9} {jitter:>10} {mtu:>6}")?;
        }
        for (name, one) in [("from hub", &self.down), ("to hub", &self.up)] {
            if one.limited_by_configuration {
                writeln!(f, "\n{name}: a rate or plan in the hub's configuration is the limit")?;
            }
        }
        if !self.is_mtu_final {
            writeln!(f, "\nMTU: the search was not complete; the path may take more")?;
        }
        writeln!(f, "\nFor [link] in both configurations:\n")?;
        self.proposal.iter().try_for_each(|(key, value)| match *key {
            "mtu" => writeln!(f, "{key} = {value}"),
            _ => writeln!(f, "{key} = \"{value}\""),
        })
    }
}

fn millis(time: Span) -> u64 {
    time.as_micros().div_ceil(1_000).max(1)
}

/// Returns the rate with three digits, as the configuration has it.
fn rate_text(rate: BitRate) -> String {
    let bps = rate.as_bps();
    let unit = 10_u64.pow(bps.max(100).ilog10() - 2);
    let rounded = (bps + unit / 2) / unit * unit;
    if rounded >= 1_000_000 {
        format!("{}mbit", rounded as f64 / 1e6)
    } else {
        format!("{}kbit", rounded as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_proposed_with_three_digits_and_a_unit_of_the_configuration() {
        for (bps, text) in [
            (9_961_234, "9.96mbit"),
            (99_960_000, "100mbit"),
            (1_234_567_890, "1230mbit"),
            (64_123, "64.1kbit"),
            (1_500, "1.5kbit"),
            (50, "0.05kbit"),
        ] {
            assert_eq!(rate_text(BitRate::from_bps(bps)), text);
        }
    }
}
