//! A star: many terminals, one hub, and a return link that the terminals share.
//!
//! ```text
//!  clients ─TCP─ terminal ─┐ up: MF-TDMA, granted by the hub           ┌─ proxy ─TCP─ servers
//!  clients ─TCP─ terminal ─┼──────────── satellite ──────────── hub ───┼─ proxy ─TCP─ servers
//!  clients ─TCP─ terminal ─┘ down: broadcast, 50 Mbit/s                └─ proxy ─TCP─ servers
//! ```
//!
//! A [`Star`] says what there is; [`Star::run`] runs it and tells what its users had. With
//! [`Stack::Split`] terminal and hub split each TCP connection, with one STP connection between
//! them for each; with [`Stack::EndToEnd`] TCP goes all the way. The three scenarios of Mhatre
//! and Rosenberg are [`Star::mhatre_rosenberg`]; bulk transfers while uploads fill the return
//! link are [`Star::bulk`], pages whose requests the hub sees coming [`Star::pages`]; the 8,000 terminals of Recommendation ITU-R S.1711 are
//! [`Star::star_one`]; [`model`] computes by hand what the scenarios show.

mod agents;
mod build;
mod bulk;
mod gateways;
pub mod model;
mod predicted;
mod published;
mod readings;
mod space;
mod star_one;

pub use agents::{Answerer, Asker, Asking, AskingOrder};
pub use bulk::Design;
pub use gateways::{GatewaysSeen, Segments};
pub use predicted::Prediction;
pub use published::{Scenario, published_stp, published_tcp};
pub use readings::Reading;
pub use relay::Control;
pub use space::{Carried, RandomAccess, Reports, Space};
pub use star_one::{CLUSTERS, Cluster, PROBE_BYTES, PROBES, star_one_stp};

use build::Built;
use satlink::Outage;
use satlink::mac::mf_tdma::MfTdmaConfig;
use simtcp::TcpConfig;
use units::{BitRate, Instant, Span};
use xstp::session::SessionConfig;

/// What carries the users' bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a run has one")]
pub enum Stack {
    /// TCP all the way.
    EndToEnd(TcpConfig),
    /// TCP to the terminal, an STP connection for each to the hub, TCP to the server.
    Split {
        /// On both local networks.
        lan: TcpConfig,
        /// Over the satellite; `profile` is filled in.
        space: SessionConfig,
        /// Whether the terminals' sessions are told their part of what the terminal is granted,
        /// as the rate that they never exceed.
        follow_grants: bool,
    },
}

/// Users behind one terminal who all do the same, and their server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Site {
    /// Behind which terminal of the MAC.
    pub terminal: usize,
    /// Their connections.
    pub connections: usize,
    /// What they ask for.
    pub asking: Asking,
}

/// A star network.
#[derive(Clone, Debug, PartialEq)]
pub struct Star {
    /// The return link; one way is that of its first terminal.
    pub mac: MfTdmaConfig,
    /// Carriers of random access beside those of the plan.
    pub random: Option<RandomAccess>,
    /// The forward link.
    pub forward: BitRate,
    /// When it carries nothing.
    pub outages: Vec<Outage>,
    /// The most that a connection may send up and down under [`Stack::Split`], with all headers.
    pub caps: Option<(BitRate, BitRate)>,
    /// Rate of the local networks, and their delay one way.
    pub lan: (BitRate, Span),
    /// How acknowledgements go up.
    pub reports: Reports,
    /// What carries the users' bytes.
    pub stack: Stack,
    /// The users.
    pub sites: Vec<Site>,
    /// How long it runs.
    pub duration: Span,
}

/// What the users of a site had.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteSeen {
    /// Its connections.
    pub connections: usize,
    /// Objects that came whole: when, and how long after they were asked for.
    pub responses: Vec<(Instant, Span)>,
    /// Bytes of objects.
    pub received: u64,
    /// Bytes of requests at the server.
    pub sent: u64,
    /// Connections that were lost.
    pub lost: u64,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// In the order of [`Star::sites`].
    pub sites: Vec<SiteSeen>,
    /// IP bytes that came down.
    pub down: u64,
    /// IP bytes that went up and arrived.
    pub up: u64,
    /// Slots granted, and slots used.
    pub slots: (u64, u64),
    /// Slots granted because they were asked for, and those because nobody asked for them.
    pub asked_and_free: (u64, u64),
    /// Packets that waited for the plan, bursts on carriers of random access, and those of them
    /// that came through.
    pub access: (u64, u64, u64),
    /// Retransmission timeouts of TCP's, servers' and clients' together, under
    /// [`Stack::EndToEnd`].
    pub timeouts: u64,
    /// How long it ran.
    pub duration: Span,
    /// A number that two runs share only if they were the same.
    pub trace: u64,
}

impl Star {
    /// Runs it.
    ///
    /// # Panics
    /// When the MAC's settings make no sense, a byte is not the one that was sent, or an
    /// invariant of the simulator is broken; the message names seed, run and time.
    pub fn run(&self, seed: u64, run: u64) -> Seen {
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
        built.seen(self)
    }
}

impl Seen {
    /// Objects that came whole.
    pub fn objects(&self) -> usize {
        self.sites.iter().map(|site| site.responses.len()).sum()
    }

    /// Mean time from a request to its object, in seconds; 0 without any.
    pub fn mean_response_s(&self) -> f64 {
        let all = self.sites.iter().flat_map(|site| &site.responses);
        let sum: f64 = all.map(|(_, took)| took.as_secs_f64()).sum();
        if self.objects() == 0 { 0.0 } else { sum / self.objects() as f64 }
    }

    /// The longest of them, in seconds.
    pub fn longest_response_s(&self) -> f64 {
        let all = self.sites.iter().flat_map(|site| &site.responses);
        all.map(|(_, took)| took.as_secs_f64()).fold(0.0, f64::max)
    }

    /// The time that `share` of them do not exceed, in seconds; 0 without any.
    pub fn quantile_s(&self, share: f64) -> f64 {
        let all = self.sites.iter().flat_map(|site| &site.responses);
        let mut all: Vec<Span> = all.map(|&(_, took)| took).collect();
        all.sort_unstable();
        let place = (share * all.len() as f64) as usize;
        all.get(place.min(all.len().saturating_sub(1))).map_or(0.0, |took| took.as_secs_f64())
    }

    /// IP bits that came down in a second.
    pub fn down_bps(&self) -> f64 {
        self.down as f64 * 8.0 / self.duration.as_secs_f64()
    }

    /// IP bits that went up in a second.
    pub fn up_bps(&self) -> f64 {
        self.up as f64 * 8.0 / self.duration.as_secs_f64()
    }
}

#[cfg(test)]
mod tests;
