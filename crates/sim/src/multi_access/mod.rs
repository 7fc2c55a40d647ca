//! A star network: many terminals that share a return link, and one hub.
//!
//! ```text
//!   clients ─TCP─ terminal ─┐ return: MF-TDMA, granted by the hub       ┌─ proxy ─TCP─ servers
//!   clients ─TCP─ terminal ─┼──────────── satellite ──────────── hub ───┼─ proxy ─TCP─ servers
//!   clients ─TCP─ terminal ─┘ forward: broadcast, 50 Mbit/s             └─ proxy ─TCP─ servers
//! ```
//!
//! A [`Star`] describes the network; [`Star::run`] simulates it and returns the results of its
//! users. With [`Stack::Split`] terminal and hub split each TCP connection, with one STP connection
//! between them for each; with [`Stack::EndToEnd`] TCP runs from end to end.
//! [`Star::mhatre_rosenberg`] are the three scenarios of Mhatre and Rosenberg; [`Star::bulk`] are
//! downloads while uploads fill the return link; [`Star::pages`] are pages whose requests the hub
//! predicts; [`Star::star_one`] are the 8,000 terminals of Recommendation ITU-R S.1711. [`model`]
//! is an analytical model of the scenarios.

mod agents;
mod build;
mod bulk;
mod gateways;
mod interpretations;
pub mod model;
mod predicted;
mod published;
mod satellite;
mod star_one;

pub use agents::{ObjectServer, RequestClient, RequestModel, RequestOrder};
pub use bulk::Design;
pub use gateways::{GatewaysReport, Segments};
pub use interpretations::Interpretation;
pub use predicted::Prediction;
pub use published::{Scenario, published_stp, published_tcp};
pub use relay::Control;
pub use satellite::{RandomAccess, Reports, Satellite, UplinkFrame};
pub use star_one::{CLUSTERS, Cluster, PROBE_BYTES, PROBES, star_one_stp};

use build::Built;
use satlink::Outage;
use satlink::mac::mf_tdma::MfTdmaConfig;
use simtcp::TcpConfig;
use units::{BitRate, Instant, Span};
use xstp::session::SessionConfig;

/// The transport of the users' data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a run has one")]
pub enum Stack {
    /// TCP from end to end.
    EndToEnd(TcpConfig),
    /// TCP to the terminal, an STP connection for each to the hub, TCP to the server.
    Split {
        /// TCP of both local networks.
        lan: TcpConfig,
        /// Over the satellite; `profile` is set by the run.
        satellite: SessionConfig,
        /// Whether the rate cap of the terminals' sessions follows their share of the terminal's
        /// grants.
        follow_grants: bool,
    },
}

/// Equal users behind one terminal, and their server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Site {
    /// Index of the terminal in the MAC.
    pub terminal: usize,
    /// Number of connections.
    pub connections: usize,
    /// Their requests.
    pub requests: RequestModel,
}

/// A star network.
#[derive(Clone, Debug, PartialEq)]
pub struct Star {
    /// The return link; the one-way delay is that of its first terminal.
    pub mac: MfTdmaConfig,
    /// Carriers of random access beside those of the burst time plan.
    pub random: Option<RandomAccess>,
    /// Rate of the forward link.
    pub forward: BitRate,
    /// Outages of the forward link.
    pub outages: Vec<Outage>,
    /// Maximum rates of a connection, return and forward, under [`Stack::Split`], with all headers.
    pub caps: Option<(BitRate, BitRate)>,
    /// Rate of the local networks, and their one-way delay.
    pub lan: (BitRate, Span),
    /// How acknowledgements are sent on the return link.
    pub reports: Reports,
    /// The transport of the users' data.
    pub stack: Stack,
    /// The users.
    pub sites: Vec<Site>,
    /// Duration of the run.
    pub duration: Span,
}

/// Results of the users of a site.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteReport {
    /// Number of connections.
    pub connections: usize,
    /// Complete objects: time of arrival, and response time.
    pub responses: Vec<(Instant, Span)>,
    /// Octets of objects received.
    pub received: u64,
    /// Octets of requests received by the server.
    pub sent: u64,
    /// Connections lost.
    pub lost: u64,
}

/// Results of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct StarReport {
    /// In the order of [`Star::sites`].
    pub sites: Vec<SiteReport>,
    /// Octets of IP packets delivered on the forward link.
    pub down: u64,
    /// Octets of IP packets delivered on the return link.
    pub up: u64,
    /// Slots granted, and slots used.
    pub slots: (u64, u64),
    /// Slots granted for capacity requests, and slots assigned freely.
    pub asked_and_free: (u64, u64),
    /// Packets sent in slots of the plan, bursts on random-access carriers, and delivered bursts.
    pub access: (u64, u64, u64),
    /// TCP retransmission timeouts of servers and clients, under [`Stack::EndToEnd`].
    pub timeouts: u64,
    /// Duration of the run.
    pub duration: Span,
    /// A hash of the run; equal for equal runs.
    pub trace: u64,
}

impl Star {
    /// Simulates the star.
    ///
    /// # Panics
    /// If the MAC's settings are invalid, received octets differ from those sent, or an invariant
    /// of the simulator is violated; the message has seed, run and time.
    pub fn run(&self, seed: u64, run: u64) -> StarReport {
        let mut built = Built::new(self, seed, run);
        let end = Instant::ZERO + self.duration;
        let follows = matches!(self.stack, Stack::Split { follow_grants: true, .. });
        if follows {
            while built.net.now() < end {
                let next = built.net.now() + self.mac.period;
                built.net.run_until(next.min(end));
                built.follow_grants(self);
            }
        } else {
            built.net.run_until(end);
        }
        built.report(self)
    }
}

impl StarReport {
    /// Number of complete objects.
    pub fn objects(&self) -> usize {
        self.sites.iter().map(|site| site.responses.len()).sum()
    }

    /// Mean response time in seconds; 0 without objects.
    pub fn mean_response_s(&self) -> f64 {
        let all = self.sites.iter().flat_map(|site| &site.responses);
        let sum: f64 = all.map(|(_, took)| took.as_secs_f64()).sum();
        if self.objects() == 0 { 0.0 } else { sum / self.objects() as f64 }
    }

    /// Maximum response time in seconds.
    pub fn longest_response_s(&self) -> f64 {
        let all = self.sites.iter().flat_map(|site| &site.responses);
        all.map(|(_, took)| took.as_secs_f64()).fold(0.0, f64::max)
    }

    /// Rate of IP packets on the forward link in bit/s.
    pub fn down_bps(&self) -> f64 {
        self.down as f64 * 8.0 / self.duration.as_secs_f64()
    }

    /// Rate of IP packets on the return link in bit/s.
    pub fn up_bps(&self) -> f64 {
        self.up as f64 * 8.0 / self.duration.as_secs_f64()
    }
}

#[cfg(test)]
mod tests;
