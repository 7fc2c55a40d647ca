//! The scenarios: traffic, link and bounds.

use crate::LabError;
use crate::live::{GatewayRates, UNCONFIGURED};
use satlink::{LinkConfig, words};
use testbed::traffic::PAGE_BYTES;
use units::BitRate;

/// A scenario.
#[derive(Debug)]
pub struct Scenario {
    /// Name on the command line and in the report.
    pub name: &'static str,
    /// What it is, for people.
    pub about: &'static str,
    /// Link description in netem syntax.
    pub words: &'static str,
    /// The traffic.
    pub(super) what: What,
    /// The rates that the gateways are configured with, in percent of the link rates.
    pub(super) configured_percent: u64,
    /// Configuration of the gateways in place of rates.
    pub(super) keys: Option<&'static str>,
    /// Bounds for [`crate::live::Way::Bentpipe`]; those of [`crate::live::Way::Unconfigured`] follow from
    /// them ([`Check::unconfigured`]).
    pub(super) checks: &'static [Check],
}

/// The traffic of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Parallel downloads.
    Bulk { downloads: usize },
    /// A download while an upload fills the return channel.
    BothWays,
    /// Single requests, alone or during a download.
    Requests { beside_bulk: bool },
    /// A web page, over six connections or pipelined on one.
    Page { pipelined: bool },
    /// A download with an outage of 10 s.
    Outage,
}

/// A bound of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Check {
    /// Lower bound.
    AtLeast(&'static str, f64),
    /// Upper bound.
    AtMost(&'static str, f64),
}

impl Check {
    pub(super) fn figure(&self) -> &'static str {
        match self {
            Self::AtLeast(figure, _) | Self::AtMost(figure, _) => figure,
        }
    }

    /// Returns the bound of gateways without a configured rate: 0.98 of the share of the link, and 1.05
    /// of the times.
    pub(super) fn unconfigured(self) -> Self {
        match self {
            Self::AtLeast(SHARE, bound) => Self::AtLeast(SHARE, bound * 0.98),
            Self::AtMost(figure @ (ROUND_TRIPS | PAGE_ROUND_TRIPS | RECOVERY), bound) => {
                Self::AtMost(figure, bound * 1.05)
            }
            Self::AtLeast(..) | Self::AtMost(..) => self,
        }
    }
}

impl Scenario {
    /// Returns the link.
    ///
    /// # Errors
    /// If the description is invalid.
    pub(super) fn link(&self) -> Result<LinkConfig, LabError> {
        words::parse_link(self.words)
            .map_err(|error| LabError::Request(format!("{}: {error}", self.name)))
    }

    /// Returns the rates that the gateways are configured with.
    pub(super) fn rates(&self, link: &LinkConfig) -> Result<GatewayRates, LabError> {
        Ok(GatewayRates::of(link)?.scaled(self.configured_percent, 100))
    }
}

/// Returns the maximum goodput of TCP in one direction of a link in bits/s: its rate without losses
/// and the headers of a packet of 1,500 octets (40, and 20 of TCP options).
pub fn bound(rate: BitRate, loss: f64, bit_error_ratio: f64) -> f64 {
    let survives = (1.0 - loss) * (1.0 - bit_error_ratio).powi(1500 * 8);
    rate.as_bps() as f64 * survives * 1440.0 / 1500.0
}

/// Returns the transmission time of the page's objects in seconds.
pub(super) fn page_transmission(link: &LinkConfig) -> f64 {
    link.forward.rate.map_or(0.0, |rate| rate.time_for(PAGE_BYTES as u64).as_secs_f64())
}

/// Fraction of [`bound`] that was reached.
pub(super) const SHARE: &str = "bound_share";
/// Traffic of the return channel with all headers, bits/s.
pub(super) const RETURN: &str = "return_bits_per_second";
/// Median response time in round trips.
pub(super) const ROUND_TRIPS: &str = "round_trips";
/// Round trips of a page without the transmission time of its octets.
pub(super) const PAGE_ROUND_TRIPS: &str = "round_trips_without_transmission";
/// Round trips from the end of an outage until packets enter the link at full rate.
pub(super) const RECOVERY: &str = "recovery_round_trips";
/// Round trips from a download's first octet to the first round trip at 0.95 of the bound.
pub(super) const FULL_RATE: &str = "round_trips_to_full_rate";
/// 1 if all received octets were correct.
pub(super) const MATCHES: &str = "checksums_match";

use Check::{AtLeast, AtMost};

const GEO_10: &str = "delay 300ms limit 1bdp forward rate 10mbit return rate 1mbit";

/// Returns a scenario whose gateways are configured with the link rates.
const fn truly(
    name: &'static str,
    about: &'static str,
    words: &'static str,
    what: What,
    checks: &'static [Check],
) -> Scenario {
    Scenario { name, about, words, what, configured_percent: 100, keys: None, checks }
}

/// Returns a scenario of one download whose gateways have no configured rate.
const fn auto(
    name: &'static str,
    about: &'static str,
    words: &'static str,
    checks: &'static [Check],
) -> Scenario {
    let keys = Some(UNCONFIGURED);
    Scenario {
        name,
        about,
        words,
        what: What::Bulk { downloads: 1 },
        configured_percent: 100,
        keys,
        checks,
    }
}

/// All scenarios, in the order of the report.
pub const SCENARIOS: &[Scenario] = &[
    truly(
        "clean",
        "10 Mbit/s, 600 ms, no loss: one download",
        GEO_10,
        What::Bulk { downloads: 1 },
        &[AtLeast(SHARE, 0.98), AtMost(RETURN, 4_000.0), AtLeast(MATCHES, 1.0)],
    ),
    truly(
        "clean-20",
        "as clean: twenty downloads at once",
        GEO_10,
        What::Bulk { downloads: 20 },
        &[AtLeast(SHARE, 0.98), AtMost(RETURN, 4_000.0), AtLeast(MATCHES, 1.0)],
    ),
    truly(
        "loss-1",
        "10 Mbit/s, 600 ms, 1 % random loss in both directions",
        "delay 300ms limit 1bdp loss 1% forward rate 10mbit return rate 1mbit",
        What::Bulk { downloads: 1 },
        &[AtLeast(SHARE, 0.98), AtMost(RETURN, 10_000.0), AtLeast(MATCHES, 1.0)],
    ),
    truly(
        "ber-1e-5",
        "10 Mbit/s, 600 ms, a bit in 100,000 in error in both directions: 11 % of full packets",
        "delay 300ms limit 1bdp ber 1e-5 forward rate 10mbit return rate 1mbit",
        What::Bulk { downloads: 1 },
        &[AtLeast(SHARE, 0.96), AtMost(RETURN, 40_000.0), AtLeast(MATCHES, 1.0)],
    ),
    truly(
        "fast",
        "50 Mbit/s, 600 ms, no loss: one download",
        "delay 300ms limit 1bdp forward rate 50mbit return rate 1mbit",
        What::Bulk { downloads: 1 },
        &[AtLeast(SHARE, 0.98), AtMost(RETURN, 4_000.0), AtLeast(MATCHES, 1.0)],
    ),
    truly(
        "fast-loss-1",
        "50 Mbit/s, 600 ms, 1 % random loss in both directions",
        "delay 300ms limit 1bdp loss 1% forward rate 50mbit return rate 1mbit",
        What::Bulk { downloads: 1 },
        &[AtLeast(SHARE, 0.97), AtMost(RETURN, 20_000.0), AtLeast(MATCHES, 1.0)],
    ),
    truly(
        "both-ways",
        "as clean, while an upload fills the return channel",
        GEO_10,
        What::BothWays,
        &[AtLeast(SHARE, 0.90), AtLeast(MATCHES, 1.0), AtLeast("upload_matches", 1.0)],
    ),
    Scenario {
        name: "told-20-less",
        about: "as clean, the gateways configured with 80 % of the link's rates",
        words: GEO_10,
        what: What::Bulk { downloads: 1 },
        configured_percent: 80,
        keys: None,
        checks: &[AtLeast(SHARE, 0.98 * 0.8), AtLeast(MATCHES, 1.0)],
    },
    Scenario {
        name: "told-20-more",
        about: "as clean, the gateways configured with 120 % of the link's rates",
        words: GEO_10,
        what: What::Bulk { downloads: 1 },
        configured_percent: 120,
        keys: None,
        checks: &[
            AtLeast(SHARE, 0.98 * 0.8),
            AtMost("standing_queue_products", 1.0),
            AtLeast(MATCHES, 1.0),
        ],
    },
    auto(
        "auto",
        "as clean, no rate configured at the gateways",
        GEO_10,
        &[AtLeast(SHARE, 0.95), AtMost(FULL_RATE, 4.0), AtLeast(MATCHES, 1.0)],
    ),
    auto(
        "auto-loss-1",
        "as loss-1, no rate configured at the gateways",
        "delay 300ms limit 1bdp loss 1% forward rate 10mbit return rate 1mbit",
        &[AtLeast(SHARE, 0.95), AtMost(FULL_RATE, 4.0), AtLeast(MATCHES, 1.0)],
    ),
    truly(
        "return-jitter",
        "as clean, the return delay between 200 and 400 ms",
        "delay 300ms limit 1bdp forward rate 10mbit return delay 300ms 100ms rate 1mbit",
        What::Bulk { downloads: 1 },
        &[AtLeast(SHARE, 0.96), AtLeast(MATCHES, 1.0)],
    ),
    truly(
        "request",
        "10 Mbit/s, 600 ms: 4 KB up, 4 KB down, connect included, nothing else on the link",
        GEO_10,
        What::Requests { beside_bulk: false },
        &[AtMost(ROUND_TRIPS, 1.15)],
    ),
    truly(
        "request-bulk",
        "as request, while a download fills the link",
        GEO_10,
        What::Requests { beside_bulk: true },
        &[AtMost(ROUND_TRIPS, 1.3)],
    ),
    truly(
        "page-six",
        "the page of 30 objects, 212,207 bytes: six connections, one object at a time on each",
        GEO_10,
        What::Page { pipelined: false },
        &[AtMost(PAGE_ROUND_TRIPS, 6.3), AtLeast(MATCHES, 1.0)],
    ),
    truly(
        "page-pipelined",
        "the same page, pipelined on one connection",
        GEO_10,
        What::Page { pipelined: true },
        &[AtMost(ROUND_TRIPS, 2.4), AtLeast(MATCHES, 1.0)],
    ),
    truly(
        "outage",
        "as clean: an outage of 10 s in the middle of a download",
        GEO_10,
        What::Outage,
        &[AtMost(RECOVERY, 1.6), AtLeast(MATCHES, 1.0)],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_valid_and_names_distinct() {
        for (index, scenario) in SCENARIOS.iter().enumerate() {
            let link = scenario.link().unwrap();
            assert!(link.validate().is_ok(), "{}", scenario.name);
            assert_eq!(link.round_trip(), units::Span::from_millis(600), "{}", scenario.name);
            assert!(scenario.rates(&link).is_ok());
            assert!(SCENARIOS[..index].iter().all(|other| other.name != scenario.name));
        }
    }

    #[test]
    fn bound_of_full_packets() {
        let rate = BitRate::from_mbps(10);
        assert_eq!(bound(rate, 0.0, 0.0), 9_600_000.0);
        assert!((bound(rate, 0.01, 0.0) - 9_504_000.0).abs() < 1e-6);
        let share = bound(rate, 0.0, 1e-5) / 9_600_000.0;
        assert!((share - 0.8869).abs() < 1e-4, "{share}");
    }
}
