//! The star network of Recommendation ITU-R S.1711, annex 3, section 4: three clusters with ten
//! platforms and 8,000 terminals.
//!
//! A platform is an independent network: an outbound of 48 Mbit/s, 140 return channels of 76.8
//! kbit/s, and the terminals of its part of a cluster. The only reported figure of its users is the
//! volume received per day; [`Star::star_one`] derives web users from that.

use super::{RandomAccess, Reports, RequestModel, RequestOrder, Site, Stack, Star};
use satlink::mac::aloha::AlohaConfig;
use satlink::mac::mf_tdma::{Demand, MfTdmaConfig};
use satlink::mac::schedule::Free;
use satlink::mac::slots::SlotFormat;
use simtcp::TcpConfig;
use units::{BitRate, Instant, Span};
use xstp::congestion::Controller;
use xstp::session::{SessionConfig, Spread, StpPolicy};

/// A cluster (section 4.1.2.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cluster {
    /// Its number in the document.
    pub number: u32,
    /// Number of platforms ("HSP").
    pub platforms: u32,
    /// Number of terminals.
    pub terminals: u32,
    /// Octets that a platform's terminals sent per day, on average over the month of tables 19 and
    /// 20. Nothing is reported of cluster 1: it is assumed to send as much per terminal as cluster
    /// 2.
    pub sent_on_a_day: f64,
}

/// All three.
pub const CLUSTERS: [Cluster; 3] = [
    Cluster { number: 1, platforms: 3, terminals: 1_200, sent_on_a_day: 2.280e9 },
    Cluster { number: 2, platforms: 3, terminals: 3_200, sent_on_a_day: 6.079e9 },
    Cluster { number: 3, platforms: 4, terminals: 3_600, sent_on_a_day: 4.836e9 },
];

impl Cluster {
    /// Terminals of a platform; the first platforms have one more if the division has a remainder.
    pub fn terminals_of(&self, platform: u32) -> usize {
        let more = u32::from(platform < self.terminals % self.platforms);
        (self.terminals / self.platforms + more) as usize
    }
}

/// Terminals of a platform at which throughput is measured with consecutive large objects.
pub const PROBES: usize = 4;
/// Octets of these objects. The document does not state what was fetched.
pub const PROBE_BYTES: u64 = 1_000_000;

/// Octets of a web user's object: the mean element of the five pages of table 21.
const ELEMENT: u64 = 934_420 / 108;
/// Octets of a request.
const REQUEST: u64 = 400;
/// Maximum rates of a terminal on the outbound and on the return channels (table 14), as payload:
/// table 17 has days above 320 kbit/s, so that rate cannot include headers.
const MAX_DOWN: BitRate = BitRate::from_kbps(320);
const MAX_UP: BitRate = BitRate::from_kbps(50);
/// Octets of IP packets on the return link per element: the request with its headers, and the STATs
/// of its POLLs, without collisions; a test verifies it. At the reported load 10 % more is sent for
/// each element, and accordingly fewer elements are fetched.
const UP_FOR_AN_ELEMENT: f64 = 514.0;
/// Seconds from a request to its element: a round trip, transmission time and queuing. Verified by
/// the same test.
const RESPONSE: f64 = 1.33;
/// Half of the round trip of 800 ms.
const ONE_WAY_DELAY: Span = Span::from_millis(400);
/// Return channels, and those of them for random access. The document has both kinds (figure 41)
/// and does not state how many of each.
const CARRIERS: u32 = 140;
const RANDOM_CARRIERS: u32 = 70;
/// Slots of the longest packet sent by random access: a request.
const SHORT: u64 = 3;

impl Star {
    /// A platform of `cluster` whose users send `load` times their average volume, for `duration`.
    /// They wait for each object, so on slow channels they send less. The last [`PROBES`] sites
    /// measure throughput.
    ///
    /// Terminals split TCP, with at most 320 kbit/s of payload in forward and 50 kbit/s in return
    /// direction (table 14).
    ///
    /// # Panics
    /// If `load` needs more objects than users without think time can fetch.
    pub fn star_one(cluster: Cluster, platform: u32, load: f64, duration: Span) -> Self {
        Self::platform_part(cluster, cluster.terminals_of(platform), 1, load, duration)
    }

    /// `1/part` of the first platform of `cluster`: of its terminals, channels and outbound, with
    /// the same load per terminal. The number of throughput probes is the same.
    ///
    /// # Panics
    /// As [`Star::star_one`], and if `part` does not divide the 70 channels of each kind.
    pub fn star_one_part(cluster: Cluster, part: u32, load: f64, duration: Span) -> Self {
        assert!(RANDOM_CARRIERS.is_multiple_of(part), "{part} divides {RANDOM_CARRIERS}");
        let terminals = cluster.terminals_of(0) / part as usize;
        Self::platform_part(cluster, terminals, part, load, duration)
    }

    /// Limits the forward payload rate of each terminal, under [`Stack::Split`].
    pub fn limit_down(&mut self, most: BitRate) {
        if let (Stack::Split { satellite, .. }, Some((_, down))) = (&self.stack, &mut self.caps) {
            *down = with_headers(satellite, most);
        }
    }

    fn platform_part(
        cluster: Cluster,
        terminals: usize,
        part: u32,
        load: f64,
        duration: Span,
    ) -> Self {
        let mac = return_link(terminals, (CARRIERS - RANDOM_CARRIERS) / part);
        let element = element_asking(cluster, load);
        let probe = RequestModel { object: PROBE_BYTES, think: Span::from_secs(5), ..element };
        let one = |requests| move |terminal| Site { terminal, connections: 1, requests };
        let sites = (0..terminals).map(one(element));
        let probes = (0..PROBES).map(|probe| probe * terminals / PROBES).map(one(probe));
        let random = AlohaConfig {
            carriers: RANDOM_CARRIERS / part,
            format: SlotFormat::Mpeg,
            ..AlohaConfig::new(BitRate::from_bps(76_800), ONE_WAY_DELAY)
        };
        let satellite = star_one_stp();
        let caps = Some((with_headers(&satellite, MAX_UP), with_headers(&satellite, MAX_DOWN)));
        Self {
            mac,
            random: Some(RandomAccess { carriers: random, short: SHORT }),
            forward: BitRate::from_bps(48_000_000 / u64::from(part)),
            outages: Vec::new(),
            caps,
            lan: (BitRate::from_mbps(10), Span::from_millis(1)),
            reports: Reports { shared: Some(Span::from_millis(10)), expected: 0, next: 0 },
            stack: Stack::Split { lan: TcpConfig::reno(), satellite, follow_grants: false },
            sites: sites.chain(probes).collect(),
            duration,
        }
    }
}

/// The rate of full STP packets whose payload rate is `payload`.
fn with_headers(satellite: &SessionConfig, payload: BitRate) -> BitRate {
    let full = satellite.max_segment + satellite.packet_overhead;
    payload.mul_ratio(full as u64, satellite.payload_size() as u64)
}

/// Web users whose requests and acknowledgements have the volume that a platform's terminals sent.
fn element_asking(cluster: Cluster, load: f64) -> RequestModel {
    let sent = cluster.sent_on_a_day * f64::from(cluster.platforms) / f64::from(cluster.terminals);
    let every = UP_FOR_AN_ELEMENT * 86_400.0 / (sent * load);
    let think = every - RESPONSE;
    assert!(think > 0.0, "{load} times the traffic leaves no time to think");
    RequestModel {
        request: REQUEST,
        object: ELEMENT,
        think: Span::from_secs_f64(think),
        order: RequestOrder::Closed,
        start: Instant::ZERO,
        first: None,
    }
}

fn return_link(terminals: usize, carriers: u32) -> MfTdmaConfig {
    let mut mac = MfTdmaConfig::mhatre_rosenberg(terminals);
    mac.rate = BitRate::from_bps(76_800);
    mac.format = SlotFormat::Mpeg;
    mac.carriers = carriers;
    mac.hub_leg = ONE_WAY_DELAY - mac.terminals[0].up;
    (mac.demand, mac.free, mac.sync) = (Demand::Absolute, Free::None, Some(8));
    // Slots of a frame for 50 kbit/s of payload: 9 of a carrier's 12.
    let most = MAX_UP.bytes_in(mac.period).div_ceil(mac.format.payload()) as u32;
    mac.terminals.iter_mut().for_each(|terminal| terminal.contract.most = most);
    mac
}

/// Sessions with the terminals' rates and without slow start, as section 4 states of splitting.
pub fn star_one_stp() -> SessionConfig {
    let stp = SessionConfig::stp_1999();
    SessionConfig {
        controller: Controller::Fixed,
        max_rate: Some(BitRate::from_kbps(320)),
        // The data of 320 kbit/s between two POLLs and a STAT.
        send_buffer: 256 << 10,
        stp: StpPolicy { spread: Spread::Window, poll_after_bytes: None, ..stp.stp },
        polls_per_round_trip: 1,
        poll_round_trips: 2,
        // With POLL intervals that double, as in STP, sessions would resume only minutes after an
        // outage of minutes.
        poll_backoff_cap: 0,
        initial_rtt: Span::from_secs(1),
        ..stp
    }
    .with_low_rate_rules(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1/10 of a platform of cluster 2.
    fn tenth(load: f64, secs: u64) -> Star {
        Star::star_one_part(CLUSTERS[1], 10, load, Span::from_secs(secs))
    }

    /// 1/10 of the terminals with all channels, where collisions are rare.
    fn uncrowded(load: f64) -> super::super::StarReport {
        Star::platform_part(CLUSTERS[1], 107, 1, load, Span::from_secs(120)).run(3, 0)
    }

    #[test]
    fn the_clusters_are_8_000_terminals_on_ten_platforms() {
        let of = |cluster: &Cluster| -> Vec<usize> {
            (0..cluster.platforms).map(|platform| cluster.terminals_of(platform)).collect()
        };
        let all: Vec<usize> = CLUSTERS.iter().flat_map(of).collect();
        assert_eq!((all.len(), all.iter().sum::<usize>()), (10, 8_000));
    }

    /// Sections 4.1.2.1 and 4.2.3: volume received per day.
    #[test]
    fn users_send_the_reported_volume() {
        let report = uncrowded(4.0);
        let users = report.sites.len() - PROBES;
        let objects: usize = report.sites[..users].iter().map(|site| site.responses.len()).sum();
        let each = report.up as f64 / objects as f64;
        assert!((each / UP_FOR_AN_ELEMENT - 1.0).abs() < 0.1, "{each}");
        let reported = 4.0 * CLUSTERS[1].sent_on_a_day / 10.0 * 120.0 / 86_400.0;
        assert!((report.up as f64 / reported - 1.0).abs() < 0.15, "{} {reported}", report.up);
    }

    /// Table 14, and the effect of a round trip of 800 ms.
    #[test]
    fn large_object_arrives_at_the_terminal_rate() {
        let report = uncrowded(1.0);
        let probes = &report.sites[report.sites.len() - PROBES..];
        let took = probes.iter().flat_map(|site| &site.responses).map(|one| one.1.as_secs_f64());
        let rates: Vec<f64> = took.map(|took| PROBE_BYTES as f64 * 8.0 / took / 1e3).collect();
        assert!(rates.iter().all(|rate| (290.0..320.0).contains(rate)), "{rates:?} kbit/s");
    }

    /// Table 14, return direction.
    #[test]
    fn upload_is_close_to_the_terminal_rate() {
        let mut star = tenth(1.0, 120);
        let users = star.sites.len() - PROBES;
        for site in &mut star.sites[users..] {
            (site.requests.request, site.requests.object) = (300_000, 100);
        }
        let report = star.run(3, 0);
        let took = report.sites[users..].iter().flat_map(|site| &site.responses);
        let rates: Vec<f64> = took.map(|one| 300.0 * 8.0 / one.1.as_secs_f64()).collect();
        assert!(
            rates.len() >= 4 && rates.iter().all(|rate| (40.0..50.0).contains(rate)),
            "{rates:?}"
        );
    }

    /// Sessions resume within the time of a POLL and its STAT.
    #[test]
    fn pending_requests_are_served_right_after_an_outage() {
        let (at, length) = (Span::from_secs(60), Span::from_secs(60));
        let mut star = tenth(1.0, 180);
        star.outages = vec![satlink::Outage {
            at,
            length,
            every: None,
            direction: Some(satlink::Direction::Forward),
        }];
        let report = star.run(3, 0);
        let end = Instant::ZERO + at + length;
        let users = &report.sites[..report.sites.len() - PROBES];
        let waited = users.iter().flat_map(|site| &site.responses);
        let waited = waited.filter(|&&(came, took)| came > end && came < end + took);
        let after: Vec<f64> = waited.map(|&(came, _)| came.since(end).as_secs_f64()).collect();
        assert!(after.len() > users.len() * 9 / 10, "{} of {}", after.len(), users.len());
        // Up to 1.6 s to the next POLL, its STAT and the object: 2.2 s on average, and at most 2 s
        // more for each collision of a STAT, of which all are sent at the same time.
        let mean = after.iter().sum::<f64>() / after.len() as f64;
        let longest = after.iter().copied().fold(0.0, f64::max);
        assert!(mean < 3.5 && longest < 8.0, "{mean} s, at most {longest} s");
        assert_eq!(report.sites.iter().map(|site| site.lost).sum::<u64>(), 0);
    }
}
