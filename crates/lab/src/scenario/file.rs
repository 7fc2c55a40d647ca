//! The keys of a scenario file.

use super::transport::Transport;
use super::values::{Link, Rate, Size, Tcp, Time};
use serde::Deserialize;
use std::collections::BTreeMap;
use units::Span;

/// One point of a scenario: the file with one value for each swept key.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    #[serde(default)]
    pub(super) title: String,
    /// Length of a run in simulated time.
    pub(super) duration: Time,
    pub(super) replications: Option<u32>,
    pub(super) seed: Option<u64>,
    /// By name, `FIRST-SECOND`: the nodes that the link connects, forward from the first.
    pub(super) links: BTreeMap<String, Link>,
    #[serde(default)]
    pub(super) gateways: Gateways,
    pub(super) traffic: BTreeMap<String, Traffic>,
    #[serde(default)]
    pub(super) record: Record,
    #[serde(default)]
    pub(super) expect: Vec<Expect>,
    #[serde(default)]
    pub(super) plot: Plot,
}

/// What is at the ends of the satellite link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum GatewayKind {
    /// Routers.
    #[default]
    None,
    /// The product's gateways, with a relay between them.
    Pair,
    /// A single gateway at the hub, with TCP on both sides.
    Single,
    /// Gateways with an STP session for each connection, as published.
    Stp,
}

/// The gateways.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Gateways {
    pub(super) kind: GatewayKind,
    /// The node of the terminal.
    pub(super) terminal: String,
    /// The node of the hub.
    pub(super) hub: String,
    /// `pair`: the rate control of both directions.
    pub(super) control: Control,
    /// `pair`: the configured rates; measured by the gateways unless given.
    pub(super) rate_forward: Option<Rate>,
    pub(super) rate_return: Option<Rate>,
    /// `pair`: maximum share of the rates for repair symbols.
    pub(super) repair_percent: Option<u32>,
    /// `pair`: whether datagrams are encrypted.
    pub(super) encrypted: bool,
    /// The TCP towards the hosts.
    pub(super) lan_tcp: Tcp,
    /// `single`: the TCP over the satellite link.
    pub(super) satellite_tcp: Tcp,
}

impl Default for Gateways {
    fn default() -> Self {
        Self {
            kind: GatewayKind::None,
            terminal: "terminal".to_owned(),
            hub: "hub".to_owned(),
            control: Control::Steady,
            rate_forward: None,
            rate_return: None,
            repair_percent: None,
            encrypted: true,
            lan_tcp: Tcp::default(),
            satellite_tcp: Tcp::default(),
        }
    }
}

/// The rate control of a relay.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Control {
    Steady,
    Fixed,
    NewReno,
    Probing,
}

impl From<Control> for relay::Control {
    fn from(control: Control) -> Self {
        match control {
            Control::Steady => Self::Steady,
            Control::Fixed => Self::Fixed,
            Control::NewReno => Self::NewReno,
            Control::Probing => Self::Probing,
        }
    }
}

/// The kind of a traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// A file, or unlimited data, from `from` to `to`.
    Bulk,
    /// Requests at regular times, each on a connection of its own, from `from` to `to`.
    Request,
    /// Visits of one page at regular times.
    Page,
    /// Users who read pages as in the traces of 1995.
    Web,
    /// Independent short transfers at random times with a mean rate.
    Background,
    /// UDP at a constant rate.
    Constant,
}

/// How pages are fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Http {
    /// HTTP/1.0: a connection for each element.
    PerElement,
    /// Connections that each fetch one element after another.
    #[default]
    KeepAlive,
    /// One connection, one element after another.
    Serial,
    /// One connection, requests sent ahead.
    Pipelined,
}

/// One traffic.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Traffic {
    pub(super) kind: Kind,
    /// The node of the host that opens connections; of `bulk` and `constant` it sends the data.
    pub(super) from: String,
    /// The node of the other host.
    pub(super) to: String,
    #[serde(default)]
    pub(super) tcp: Transport,
    /// Start; a random time up to `random_start` is added.
    #[serde(default = "one_second")]
    pub(super) start: Time,
    #[serde(default = "one_second")]
    pub(super) random_start: Time,
    /// No request, page or datagram starts later; default: the end of the run.
    pub(super) stop: Option<Time>,
    /// `bulk`, `web`: number of flows or users.
    #[serde(default = "one")]
    pub(super) flows: u32,
    /// `bulk`: delay between the starts of flows.
    #[serde(default)]
    pub(super) stagger: Time,
    /// `bulk`: octets of each flow; unlimited unless given.
    pub(super) bytes: Option<Size>,
    /// `bulk`: the goodput is measured from this time after the start on.
    #[serde(default)]
    pub(super) settle: Time,
    /// `request`: octets.
    pub(super) request: Option<Size>,
    pub(super) response: Option<Size>,
    /// `request`, `page`: time between starts.
    pub(super) interval: Option<Time>,
    /// `page`: number of equal elements and their sum in octets.
    pub(super) elements: Option<u64>,
    pub(super) page_bytes: Option<Size>,
    #[serde(default)]
    pub(super) http: Http,
    /// `page`, `web`: connections of a page.
    pub(super) connections: Option<u32>,
    /// `background`, `constant`: the rate.
    pub(super) rate: Option<Rate>,
    /// `constant`: octets of a packet.
    pub(super) packet: Option<Size>,
}

fn one_second() -> Time {
    Time(Span::from_secs(1))
}

fn one() -> u32 {
    1
}

/// What is recorded of the first replication of each point.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Record {
    /// Sampling interval of time series; none unless given.
    pub(super) series: Option<Time>,
    /// Links whose packets are captured at their first end.
    pub(super) capture: Vec<String>,
    /// Links whose counters are measures.
    pub(super) links: Vec<String>,
}

/// A criterion.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expect {
    /// A name for reports.
    #[serde(default)]
    pub(super) name: String,
    /// The measure, such as `download.goodput`.
    pub(super) measure: String,
    /// The points: values of swept keys; all unless given.
    #[serde(default)]
    pub(super) at: BTreeMap<String, toml::Value>,
    /// With this, the ratio of the measure at `at` to that at `at` changed by `versus`.
    #[serde(default)]
    pub(super) versus: BTreeMap<String, toml::Value>,
    /// The expected number, within `tolerance`.
    pub(super) value: Option<f64>,
    pub(super) tolerance: Option<Tolerance>,
    /// The interval has to be above this bound.
    pub(super) above: Option<f64>,
    /// The interval has to be below this bound.
    pub(super) below: Option<f64>,
}

/// Accepted distance of a number from the expected one: the larger of the two parts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tolerance {
    /// As a fraction of the expected number.
    #[serde(default)]
    pub(super) within: f64,
    /// In the unit of the measure.
    #[serde(default)]
    pub(super) absolute: f64,
    /// The reason.
    pub(super) because: String,
}

/// The figure of a sweep.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Plot {
    /// The swept key of the horizontal axis; default: the first with numbers.
    pub(super) x: Option<String>,
    /// The measures, one figure each; default: the first measure of each traffic.
    pub(super) y: Vec<String>,
    /// Whether the horizontal axis is logarithmic.
    pub(super) log_x: bool,
}
