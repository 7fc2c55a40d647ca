//! Access schemes for the same return link under the same packets: delay and carried load.

use super::super::{Draw, Values};
use satlink::mac::aloha::{Aloha, AlohaConfig};
use satlink::mac::dama::{Dama, DamaConfig};
use satlink::mac::mf_tdma::{Arrived, Class, Demand, MfTdma, MfTdmaConfig};
use satlink::mac::mixed::Mixed;
use satlink::mac::schedule::Free;
use units::{BitRate, Instant, RngStream, Span};

/// Offered loads as fractions of the slots.
pub(super) const LOADS: [f64; 7] = [0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8];
/// Size of a packet in octets: an HTTP request with STP, two cells.
const BYTES: usize = 82;
const TERMINALS: usize = 20;
/// Number of carriers of the circuits.
const CIRCUITS: u32 = 10;
/// Duration of the arrivals, and of the wait for the last packets, in seconds.
const TIME: (f64, f64) = (120.0, 30.0);

/// An access scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Fixed,
    AskedOnly,
    AskedAndFree,
    Aloha,
    Circuits,
    Mixed,
}

impl Access {
    pub(super) const ALL: [Self; 6] = [
        Self::Fixed,
        Self::AskedOnly,
        Self::AskedAndFree,
        Self::Aloha,
        Self::Circuits,
        Self::Mixed,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed shares",
            Self::AskedOnly => "on demand, nothing free",
            Self::AskedAndFree => "on demand and free slots",
            Self::Aloha => "slotted Aloha",
            Self::Circuits => "circuits (DAMA)",
            Self::Mixed => "random and dedicated",
        }
    }

    fn link(self, draw: &Draw) -> Link {
        let published = MfTdmaConfig::mhatre_rosenberg(TERMINALS);
        let way = published.way(0);
        let tdma = |config: MfTdmaConfig| {
            Link::Tdma(MfTdma::new(&config, draw.seed, draw.run).expect("a valid link"))
        };
        let none = MfTdmaConfig { free: Free::None, sync: Some(1), ..published.clone() };
        match self {
            Self::Fixed => tdma(MfTdmaConfig { demand: Demand::None, ..published }),
            Self::AskedOnly => tdma(none),
            Self::AskedAndFree => tdma(published),
            Self::Aloha => {
                let config = AlohaConfig::new(published.rate, way);
                let channel = Aloha::new(&config, TERMINALS, draw.seed, draw.run);
                Link::Aloha(channel.expect("a valid channel"))
            }
            Self::Circuits => {
                let rate = BitRate::from_bps(published.rate.as_bps() / u64::from(CIRCUITS));
                let hold = Span::ZERO;
                let config = DamaConfig { rate, carriers: CIRCUITS, way, hold, queue: 256 };
                Link::Circuits(Dama::new(&config, TERMINALS).expect("a valid pool"))
            }
            Self::Mixed => {
                let random = AlohaConfig::new(BitRate::from_kbps(40), way);
                let dedicated =
                    MfTdmaConfig { rate: BitRate::from_kbps(60), sync: Some(4), ..none };
                let mixed = Mixed::new(&random, &dedicated, 2, draw.seed, draw.run);
                Link::Mixed(mixed.expect("a valid link"))
            }
        }
    }
}

#[expect(clippy::large_enum_variant, reason = "a run has one")]
enum Link {
    Tdma(MfTdma<Vec<u8>>),
    Aloha(Aloha<Vec<u8>>),
    Circuits(Dama<Vec<u8>>),
    Mixed(Mixed<Vec<u8>>),
}

impl Link {
    fn offer(&mut self, now: Instant, terminal: usize) {
        let packet = vec![0; BYTES];
        // Dropped packets count as not delivered.
        let _admission = match self {
            Self::Tdma(link) => link.offer(now, terminal, Class::Data, packet),
            Self::Aloha(link) => link.offer(now, terminal, packet),
            Self::Circuits(link) => link.offer(now, terminal, packet),
            Self::Mixed(link) => link.offer(now, terminal, packet),
        };
    }

    fn poll(&mut self, now: Instant) -> Option<Arrived<Vec<u8>>> {
        match self {
            Self::Tdma(link) => link.poll_arrival(now),
            Self::Aloha(link) => link.poll_arrival(now),
            Self::Circuits(link) => link.poll_arrival(now),
            Self::Mixed(link) => link.poll_arrival(now),
        }
    }
}

/// Offers packets of two cells from 20 terminals as a Poisson process of load `load`.
pub(super) fn measure(access: Access, load: f64, draw: &Draw) -> Values {
    let mut link = access.link(draw);
    let mut rng = RngStream::new(draw.seed, draw.run, "lab/access");
    // There are 58 slots per frame and four frames per second; a packet needs two slots.
    let gap = 2.0 / (58.0 * 4.0 * load);
    let at = |secs: f64| Instant::ZERO + Span::from_secs_f64(secs);
    let (mut now, mut offered) = (2.0, 0_u32);
    let mut delays = Vec::new();
    while now < TIME.0 {
        now += rng.exponential(gap);
        take(&mut link, at(now), &mut delays);
        link.offer(at(now), rng.below(TERMINALS as u64) as usize);
        offered += 1;
    }
    let in_time = delays.len() as f64 / f64::from(offered);
    take(&mut link, at(now + TIME.1), &mut delays);
    let mean = delays.iter().sum::<f64>() / delays.len().max(1) as f64;
    Values::new().with("delay_s", mean).with("carried", in_time * load)
}

fn take(link: &mut Link, until: Instant, delays: &mut Vec<f64>) {
    while let Some(arrived) = link.poll(until) {
        delays.push(arrived.at.since(arrived.offered_at).as_secs_f64());
    }
}
