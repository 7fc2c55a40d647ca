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
use xstp::session::{SessionConfig, Spread, StpPolicy};

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
/// The most that a terminal may have of the outbound, and of the return channels (table 14), in
/// payload: table 17 has days above 320 kbit/s, so that rate cannot count headers.
const MOST_DOWN: BitRate = BitRate::from_kbps(320);
const MOST_UP: BitRate = BitRate::from_kbps(50);
/// What an element costs the return link, in IP bytes: the request with its headers, and the
/// answers to the POLLs on it, where nothing collides; a test holds it. At the reported load a tenth
/// more is sent for each, and fewer are fetched for that.
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
    /// `duration`; they wait for each object, so where channels are slow they send less. The last
    /// [`PROBES`] sites are those at which throughput is measured.
    ///
    /// Terminals split TCP, at no more than 320 kbit/s of payload down and 50 kbit/s up
    /// (table 14).
    ///
    /// # Panics
    /// When `load` asks for more objects than users who never think could fetch.
    pub fn star_one(cluster: Cluster, platform: u32, load: f64, duration: Span) -> Self {
        Self::piece(cluster, cluster.terminals_of(platform), 1, load, duration)
    }

    /// The `part`th part of the first platform of `cluster`: of its terminals, channels and
    /// outbound, with the same load on them. Throughput is measured at as many terminals.
    ///
    /// # Panics
    /// As [`Star::star_one`], and when `part` is not a divisor of the 70 channels of each kind.
    pub fn star_one_part(cluster: Cluster, part: u32, load: f64, duration: Span) -> Self {
        assert!(RANDOM_CARRIERS.is_multiple_of(part), "{part} divides {RANDOM_CARRIERS}");
        let terminals = cluster.terminals_of(0) / part as usize;
        Self::piece(cluster, terminals, part, load, duration)
    }

    /// Lets terminals have no more than so much payload down, under [`Stack::Split`].
    pub fn limit_down(&mut self, most: BitRate) {
        if let (Stack::Split { space, .. }, Some((_, down))) = (&self.stack, &mut self.caps) {
            *down = with_headers(space, most);
        }
    }

    fn piece(cluster: Cluster, terminals: usize, part: u32, load: f64, duration: Span) -> Self {
        let mac = return_link(terminals, (CARRIERS - RANDOM_CARRIERS) / part);
        let element = element_asking(cluster, load);
        let probe = Asking { object: PROBE_BYTES, think: Span::from_secs(5), ..element };
        let one = |asking| move |terminal| Site { terminal, connections: 1, asking };
        let sites = (0..terminals).map(one(element));
        let probes = (0..PROBES).map(|probe| probe * terminals / PROBES).map(one(probe));
        let random = AlohaConfig {
            carriers: RANDOM_CARRIERS / part,
            format: SlotFormat::Mpeg,
            ..AlohaConfig::new(BitRate::from_bps(76_800), WAY)
        };
        let space = star_one_stp();
        let caps = Some((with_headers(&space, MOST_UP), with_headers(&space, MOST_DOWN)));
        Self {
            mac,
            random: Some(RandomAccess { carriers: random, short: SHORT }),
            forward: BitRate::from_bps(48_000_000 / u64::from(part)),
            outages: Vec::new(),
            caps,
            lan: (BitRate::from_mbps(10), Span::from_millis(1)),
            reports: Reports { shared: Some(Span::from_millis(10)), expected: 0, next: 0 },
            stack: Stack::Split { lan: TcpConfig::reno(), space, follow_grants: false },
            sites: sites.chain(probes).collect(),
            duration,
        }
    }
}

/// The rate of full packets of STP's whose payload comes to `payload`.
fn with_headers(space: &SessionConfig, payload: BitRate) -> BitRate {
    let full = space.max_segment + space.packet_overhead;
    payload.mul_ratio(full as u64, space.payload_size() as u64)
}

/// Web users whose requests and answers come to what a platform's terminals sent.
fn element_asking(cluster: Cluster, load: f64) -> Asking {
    let sent = cluster.sent_on_a_day * f64::from(cluster.platforms) / f64::from(cluster.terminals);
    let every = UP_FOR_AN_ELEMENT * 86_400.0 / (sent * load);
    let think = every - RESPONSE;
    assert!(think > 0.0, "{load} times the traffic leaves no time to think");
    Asking {
        request: REQUEST,
        object: ELEMENT,
        think: Span::from_secs_f64(think),
        order: AskingOrder::Closed,
        start: Instant::ZERO,
        first: None,
    }
}

fn return_link(terminals: usize, carriers: u32) -> MfTdmaConfig {
    let mut mac = MfTdmaConfig::mhatre_rosenberg(terminals);
    mac.rate = BitRate::from_bps(76_800);
    mac.format = SlotFormat::Mpeg;
    mac.carriers = carriers;
    mac.hub_leg = WAY - mac.terminals[0].up;
    (mac.demand, mac.free, mac.sync) = (Demand::Absolute, Free::None, Some(8));
    // As many slots of a frame as 50 kbit/s of payload need: 9 of a carrier's 12.
    let most = MOST_UP.bytes_in(mac.period).div_ceil(mac.format.payload()) as u32;
    mac.terminals.iter_mut().for_each(|terminal| terminal.contract.most = most);
    mac
}

/// Sessions at the rates that terminals have, without a window to open: what section 4 says of
/// splitting, that it does away with slow start.
pub fn star_one_stp() -> SessionConfig {
    let stp = SessionConfig::stp_1999();
    SessionConfig {
        controller: Controller::Fixed,
        max_rate: Some(BitRate::from_kbps(320)),
        // What 320 kbit/s brings between two POLLs and an answer.
        send_buffer: 256 << 10,
        stp: StpPolicy { spread: Spread::Window, poll_after_bytes: None, ..stp.stp },
        polls_per_round_trip: 1,
        poll_round_trips: 2,
        // With intervals that double, as STP's do, terminals would be found again minutes after
        // an outage of minutes.
        poll_backoff_cap: 0,
        initial_rtt: Span::from_secs(1),
        ..stp
    }
    .with_low_rate_rules(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tenth of a platform of cluster 2.
    fn tenth(load: f64, secs: u64) -> Star {
        Star::star_one_part(CLUSTERS[1], 10, load, Span::from_secs(secs))
    }

    /// A tenth of the terminals with all channels, where nothing collides to speak of.
    fn uncrowded(load: f64) -> super::super::Seen {
        Star::piece(CLUSTERS[1], 107, 1, load, Span::from_secs(120)).run(3, 0)
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
        let seen = uncrowded(4.0);
        let users = seen.sites.len() - PROBES;
        let objects: usize = seen.sites[..users].iter().map(|site| site.responses.len()).sum();
        let each = seen.up as f64 / objects as f64;
        assert!((each / UP_FOR_AN_ELEMENT - 1.0).abs() < 0.1, "{each}");
        let reported = 4.0 * CLUSTERS[1].sent_on_a_day / 10.0 * 120.0 / 86_400.0;
        assert!((seen.up as f64 / reported - 1.0).abs() < 0.15, "{} {reported}", seen.up);
    }

    /// Table 14, and what a round trip of 800 ms takes of it.
    #[test]
    fn a_large_object_comes_at_the_terminal_s_rate() {
        let seen = uncrowded(1.0);
        let probes = &seen.sites[seen.sites.len() - PROBES..];
        let took = probes.iter().flat_map(|site| &site.responses).map(|one| one.1.as_secs_f64());
        let rates: Vec<f64> = took.map(|took| PROBE_BYTES as f64 * 8.0 / took / 1e3).collect();
        assert!(rates.iter().all(|rate| (290.0..320.0).contains(rate)), "{rates:?} kbit/s");
    }

    /// Table 14, the other way.
    #[test]
    fn an_upload_comes_near_the_terminal_s_rate() {
        let mut star = tenth(1.0, 120);
        let users = star.sites.len() - PROBES;
        for site in &mut star.sites[users..] {
            (site.asking.request, site.asking.object) = (300_000, 100);
        }
        let seen = star.run(3, 0);
        let took = seen.sites[users..].iter().flat_map(|site| &site.responses);
        let rates: Vec<f64> = took.map(|one| 300.0 * 8.0 / one.1.as_secs_f64()).collect();
        assert!(
            rates.len() >= 4 && rates.iter().all(|rate| (40.0..50.0).contains(rate)),
            "{rates:?}"
        );
    }

    /// Nobody is found again later than a POLL and its answer take.
    #[test]
    fn who_waits_through_an_outage_is_served_right_after_it() {
        let (at, length) = (Span::from_secs(60), Span::from_secs(60));
        let mut star = tenth(1.0, 180);
        star.outages = vec![satlink::Outage {
            at,
            length,
            every: None,
            direction: Some(satlink::Direction::Forward),
        }];
        let seen = star.run(3, 0);
        let end = Instant::ZERO + at + length;
        let users = &seen.sites[..seen.sites.len() - PROBES];
        let waited = users.iter().flat_map(|site| &site.responses);
        let waited = waited.filter(|&&(came, took)| came > end && came < end + took);
        let after: Vec<f64> = waited.map(|&(came, _)| came.since(end).as_secs_f64()).collect();
        assert!(after.len() > users.len() * 9 / 10, "{} of {}", after.len(), users.len());
        // Up to 1.6 s to the next POLL, its answer and the object: 2.2 s on average, and at most two
        // seconds more for each time that an answer, of which all come at once, collides.
        let mean = after.iter().sum::<f64>() / after.len() as f64;
        let longest = after.iter().copied().fold(0.0, f64::max);
        assert!(mean < 3.5 && longest < 8.0, "{mean} s, at most {longest} s");
        assert_eq!(seen.sites.iter().map(|site| site.lost).sum::<u64>(), 0);
    }
}
