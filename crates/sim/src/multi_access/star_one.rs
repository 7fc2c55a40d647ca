//! The star network of Recommendation ITU-R S.1711, annex 3, section 4: three clusters of ten
//! platforms in all, 8,000 terminals.
//!
//! A platform is a network of its own: an outbound of 48 Mbit/s, 140 return channels of
//! 76.8 kbit/s, and the terminals of its part of a cluster. What its users do is known by one
//! number, the bytes that came in on a day; [`Star::star_one`] makes web users of that.

use super::{Asking, AskingOrder, RandomAccess, Reports, Site, Stack, Star};
use satlink::mac::aloha::AlohaConfig;
use satlink::mac::mf_tdma::{Demand, MfTdmaConfig};
use satlink::mac::schedule::Free;
use satlink::mac::slots::SlotFormat;
use simtcp::TcpConfig;
use units::{BitRate, Instant, Span};
use xstp::congestion::Controller;
use xstp::session::{SessionConfig, Spread};

/// A cluster (section 4.1.2.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cluster {
    /// Its number in the document.
    pub number: u32,
    /// Its platforms ("HSP").
    pub platforms: u32,
    /// Its terminals.
    pub terminals: u32,
    /// Bytes that a platform's terminals sent on a day, on average over the month of tables 19
    /// and 20. Of cluster 1 nothing is reported: it is taken to send as much for each terminal
    /// as cluster 2.
    pub sent_on_a_day: f64,
}

/// All three.
pub const CLUSTERS: [Cluster; 3] = [
    Cluster { number: 1, platforms: 3, terminals: 1_200, sent_on_a_day: 2.280e9 },
    Cluster { number: 2, platforms: 3, terminals: 3_200, sent_on_a_day: 6.079e9 },
    Cluster { number: 3, platforms: 4, terminals: 3_600, sent_on_a_day: 4.836e9 },
];

impl Cluster {
    /// Terminals of a platform; the first ones have one more where they do not divide.
    pub fn terminals_of(&self, platform: u32) -> usize {
        let more = u32::from(platform < self.terminals % self.platforms);
        (self.terminals / self.platforms + more) as usize
    }
}

/// Terminals of a platform at which throughput is measured, by one large object after the other.
pub const PROBES: usize = 4;
/// Bytes of these objects. The document does not say what was fetched.
pub const PROBE_BYTES: u64 = 1_000_000;

/// Bytes of a web user's object: the mean element of the five pages of table 21.
const ELEMENT: u64 = 934_420 / 108;
/// Bytes of a request.
const REQUEST: u64 = 400;
/// What an element costs the return link, in IP bytes: the request with its headers, and the
/// answers to the POLLs on it. A test holds it.
const UP_FOR_AN_ELEMENT: f64 = 514.0;
/// Seconds from a request to its element: a round trip, its own time, and some waiting. The same
/// test.
const RESPONSE: f64 = 1.33;
/// One way, half of the round trip of 800 ms.
const WAY: Span = Span::from_millis(400);
/// Return channels, and those of them for random access; the document has both kinds (figure 41)
/// and does not say how many of each.
const CARRIERS: u32 = 140;
const RANDOM_CARRIERS: u32 = 70;
/// Bursts of the longest packet that goes by random access: a request's.
const SHORT: u64 = 3;

impl Star {
    /// A platform of `cluster` whose users send `load` times what they did on average, for
    /// `duration`. The last [`PROBES`] sites are those at which throughput is measured.
    ///
    /// Terminals split TCP, at no more than 320 kbit/s of payload down and 50 kbit/s up
    /// (table 14).
    ///
    /// # Panics
    /// When `load` asks for more objects than users who never think could fetch.
    pub fn star_one(cluster: Cluster, platform: u32, load: f64, duration: Span) -> Self {
        let terminals = cluster.terminals_of(platform);
        let mac = return_link(terminals);
        let element = element_asking(cluster, platform, load);
        let probe = Asking { object: PROBE_BYTES, think: Span::from_secs(5), ..element };
        let one = |asking| move |terminal| Site { terminal, connections: 1, asking };
        let sites = (0..terminals).map(one(element));
        let probes = (0..PROBES).map(|probe| probe * terminals / PROBES).map(one(probe));
        let random = AlohaConfig {
            carriers: RANDOM_CARRIERS,
            format: SlotFormat::Mpeg,
            ..AlohaConfig::new(BitRate::from_bps(76_800), WAY)
        };
        let space = star_one_stp();
        // Table 17 has days above 320 kbit/s: that rate cannot count headers.
        let payload = space.payload_size() as u64;
        let full = payload + (space.max_segment - space.payload_size() + 20) as u64;
        let down = BitRate::from_kbps(320).mul_ratio(full, payload);
        Self {
            mac,
            random: Some(RandomAccess { carriers: random, short: SHORT }),
            forward: BitRate::from_mbps(48),
            outages: Vec::new(),
            caps: Some((BitRate::from_kbps(50), down)),
            lan: (BitRate::from_mbps(10), Span::from_millis(1)),
            reports: Reports { shared: Some(Span::from_millis(10)), expected: 0 },
            stack: Stack::Split { lan: TcpConfig::reno(), space, follow_grants: false },
            sites: sites.chain(probes).collect(),
            duration,
        }
    }
}

/// Web users whose requests and answers come to what a platform's terminals sent.
fn element_asking(cluster: Cluster, platform: u32, load: f64) -> Asking {
    let sent = cluster.sent_on_a_day * f64::from(cluster.platforms) / f64::from(cluster.terminals);
    let every = UP_FOR_AN_ELEMENT * 86_400.0 / (sent * load);
    let think = every - RESPONSE;
    assert!(think > 0.0, "platform {platform}: {load} times the traffic leaves no time to think");
    Asking {
        request: REQUEST,
        object: ELEMENT,
        think: Span::from_secs_f64(think),
        order: AskingOrder::Closed,
        start: Instant::ZERO,
    }
}

fn return_link(terminals: usize) -> MfTdmaConfig {
    let mut mac = MfTdmaConfig::mhatre_rosenberg(terminals);
    mac.rate = BitRate::from_bps(76_800);
    mac.format = SlotFormat::Mpeg;
    mac.carriers = CARRIERS - RANDOM_CARRIERS;
    mac.hub_leg = WAY - mac.terminals[0].up;
    (mac.demand, mac.free, mac.sync) = (Demand::Absolute, Free::None, Some(8));
    // 50 of 76.8 kbit/s: 8 of 12, to the nearest.
    let most = (mac.positions() * 50_000 + 76_800 / 2) / 76_800;
    mac.terminals.iter_mut().for_each(|terminal| terminal.contract.most = most);
    mac
}

/// Sessions at the rates that terminals have, without a window to open: what section 4 says of
/// splitting, that it does away with slow start.
pub fn star_one_stp() -> SessionConfig {
    SessionConfig {
        controller: Controller::Fixed,
        spread: Spread::Window,
        max_rate: Some(BitRate::from_kbps(320)),
        control_part: 4,
        // What 320 kbit/s brings between two POLLs and an answer.
        send_buffer: 256 << 10,
        poll_after_bytes: None,
        polls_per_round_trip: 1,
        poll_round_trips: 2,
        initial_round_trip: Span::from_secs(1),
        ..SessionConfig::stp_1999()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cluster with a tenth of the terminals, and of the traffic.
    fn tenth() -> Cluster {
        let cluster = CLUSTERS[1];
        let sent_on_a_day = cluster.sent_on_a_day / 10.0;
        Cluster { terminals: cluster.terminals / 10, sent_on_a_day, ..cluster }
    }

    fn platform(load: f64, secs: u64) -> super::super::Seen {
        Star::star_one(tenth(), 0, load, Span::from_secs(secs)).run(3, 0)
    }

    #[test]
    fn the_clusters_are_8_000_terminals_on_ten_platforms() {
        let of = |cluster: &Cluster| -> Vec<usize> {
            (0..cluster.platforms).map(|platform| cluster.terminals_of(platform)).collect()
        };
        let all: Vec<usize> = CLUSTERS.iter().flat_map(of).collect();
        assert_eq!((all.len(), all.iter().sum::<usize>()), (10, 8_000));
    }

    /// Sections 4.1.2.1 and 4.2.3: what came in on a day.
    #[test]
    fn users_send_what_was_reported() {
        let seen = platform(4.0, 120);
        let users = seen.sites.len() - PROBES;
        let objects: usize = seen.sites[..users].iter().map(|site| site.responses.len()).sum();
        let each = seen.up as f64 / objects as f64;
        assert!((each / UP_FOR_AN_ELEMENT - 1.0).abs() < 0.1, "{each}");
        let reported = 4.0 * tenth().sent_on_a_day * 120.0 / 86_400.0;
        assert!((seen.up as f64 / reported - 1.0).abs() < 0.15, "{} {reported}", seen.up);
    }

    /// Table 14, and what a round trip of 800 ms takes of it.
    #[test]
    fn a_large_object_comes_at_the_terminal_s_rate() {
        let seen = platform(1.0, 120);
        let probes = &seen.sites[seen.sites.len() - PROBES..];
        let took = probes.iter().flat_map(|site| &site.responses).map(|one| one.1.as_secs_f64());
        for took in took {
            let rate = PROBE_BYTES as f64 * 8.0 / took / 1e3;
            assert!((290.0..320.0).contains(&rate), "{rate} kbit/s");
        }
    }
}
