//! Named link profiles: typical links, and those of the papers.

use crate::errors::{MarkovState, TwoStateMarkov};
use crate::{DirectionConfig, Framing, Jitter, Limit, LinkConfig, QueueConfig};
use units::{BitRate, Span};

/// A named link.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// A short description.
    pub about: &'static str,
    build: fn() -> LinkConfig,
}

impl Profile {
    /// The link.
    pub fn config(&self) -> LinkConfig {
        (self.build)()
    }
}

/// The link of the profile `name`.
pub fn by_name(name: &str) -> Option<LinkConfig> {
    ALL.iter().find(|profile| profile.name == name).map(Profile::config)
}

/// All profiles.
pub const ALL: &[Profile] = &[
    Profile {
        name: "geo",
        about: "geostationary: 600 ms, 10 Mbit/s down, 1 Mbit/s up, queue of one product",
        build: geo,
    },
    Profile { name: "geo-lossy", about: "as geo, 1 % loss both ways", build: geo_lossy },
    Profile { name: "leo", about: "low orbit: 50 ms, 50/10 Mbit/s, some jitter", build: leo },
    Profile { name: "meo", about: "medium orbit: 140 ms, 50/10 Mbit/s", build: meo },
    Profile {
        name: "hk-1999-geo",
        about: "Henderson and Katz 1999: 600 ms, 1.3 Mbit/s; the queue is not given there",
        build: || henderson_katz(Span::from_millis(600)),
    },
    Profile {
        name: "hk-1999-leo",
        about: "Henderson and Katz 1999, table 1: 80 ms, 1.3 Mbit/s",
        build: || henderson_katz(Span::from_millis(80)),
    },
    Profile {
        name: "elaasar-2003-corruption",
        about: "Elaasar et al. 2003: equal stays of 10 s, 20 % dropped in the bad ones",
        build: || elaasar_corruption(Span::from_secs(10), 0.2),
    },
    Profile {
        name: "elaasar-2003-handoff",
        about: "Elaasar et al. 2003: blackouts of 1 s, 5 % of the time",
        build: || elaasar_handoff(Span::from_secs(1), 5.0),
    },
    Profile {
        name: "elaasar-2003-connectivity",
        about: "Elaasar et al. 2003: connected for 5 s at a time, 10 % of the time",
        build: || elaasar_connectivity(Span::from_secs(5), 10.0),
    },
    Profile {
        name: "marchese-2001",
        about: "Marchese 2001: 250 ms each way, 2,048 kbit/s",
        build: marchese,
    },
    Profile {
        name: "mhatre-rosenberg",
        about: "Mhatre and Rosenberg: 270 ms each way, 50 Mbit/s down, 100 kbit/s up in ATM cells",
        build: mhatre_rosenberg,
    },
    Profile {
        name: "s1711-vsat",
        about: "ITU-R S.1711, test A: 384 kbit/s both ways, geostationary",
        build: || symmetric(BitRate::from_kbps(384), Span::from_millis(300), Framing::Plain),
    },
    Profile {
        name: "s1711-atm",
        about: "ITU-R S.1711, annex 3 (Korea to Japan): 540 ms, ATM cells at 149.76 Mbit/s (STM-1's payload)",
        build: || symmetric(BitRate::from_kbps(149_760), Span::from_millis(270), Framing::Aal5),
    },
    Profile {
        name: "s1711-isp",
        about: "ITU-R S.1711, annex 3 (three segments): 700 ms, 350 times 128 kbit/s",
        build: || symmetric(BitRate::from_kbps(44_800), Span::from_millis(350), Framing::Plain),
    },
];

/// Elaasar et al. 2003, bit corruption: both states have a mean sojourn of `mean_stay`, and the bad
/// one has this loss rate (0 to 0.5 in the paper).
pub fn elaasar_corruption(mean_stay: Span, drop: f64) -> LinkConfig {
    elaasar(mean_stay, mean_stay, drop)
}

/// Elaasar et al. 2003, hand-off: blackouts of mean `rendezvous`, for `rate_percent` (1 to 15) of
/// the time.
pub fn elaasar_handoff(rendezvous: Span, rate_percent: f64) -> LinkConfig {
    elaasar(rest(rendezvous, rate_percent), rendezvous, 1.0)
}

/// Elaasar et al. 2003, limited connectivity: connected for `rendezvous` on average,
/// `rate_percent` (1 to 30) of the time.
pub fn elaasar_connectivity(rendezvous: Span, rate_percent: f64) -> LinkConfig {
    elaasar(rendezvous, rest(rendezvous, rate_percent), 1.0)
}

/// The mean sojourn of the other state: `100 d / rate - d`.
fn rest(rendezvous: Span, rate_percent: f64) -> Span {
    Span::from_secs_f64(rendezvous.as_secs_f64() * (100.0 / rate_percent - 1.0))
}

/// The paper gives no rate: the hosts are processes. One of 100 and 150 ms is drawn for each
/// sojourn.
fn elaasar(good: Span, bad: Span, drop: f64) -> LinkConfig {
    let delays = [Span::from_millis(100), Span::from_millis(150)];
    let state = |mean_stay, drop| MarkovState { mean_stay, drop, delays, second_delay: 0.5 };
    LinkConfig {
        shared: Some(TwoStateMarkov { states: [state(good, 0.0), state(bad, drop)] }),
        ..LinkConfig::default()
    }
}

fn direction(rate: BitRate, delay: Span) -> DirectionConfig {
    DirectionConfig {
        rate: Some(rate),
        delay,
        queue: QueueConfig { limit: Limit::BandwidthDelay(1.0), ..QueueConfig::default() },
        ..DirectionConfig::default()
    }
}

fn asymmetric(forward: BitRate, return_: BitRate, delay: Span) -> LinkConfig {
    LinkConfig {
        forward: direction(forward, delay),
        return_: direction(return_, delay),
        ..LinkConfig::default()
    }
}

fn symmetric(rate: BitRate, delay: Span, framing: Framing) -> LinkConfig {
    LinkConfig::symmetric(DirectionConfig { framing, ..direction(rate, delay) })
}

fn geo() -> LinkConfig {
    asymmetric(BitRate::from_mbps(10), BitRate::from_mbps(1), Span::from_millis(300))
}

fn geo_lossy() -> LinkConfig {
    let mut link = geo();
    link.forward.loss = 0.01;
    link.return_.loss = 0.01;
    link
}

fn leo() -> LinkConfig {
    let mut link =
        asymmetric(BitRate::from_mbps(50), BitRate::from_mbps(10), Span::from_millis(25));
    link.forward.jitter = Jitter::Uniform(Span::from_millis(3));
    link.return_.jitter = Jitter::Uniform(Span::from_millis(3));
    link
}

fn meo() -> LinkConfig {
    asymmetric(BitRate::from_mbps(50), BitRate::from_mbps(10), Span::from_millis(70))
}

fn henderson_katz(round_trip: Span) -> LinkConfig {
    symmetric(BitRate::from_kbps(1_300), round_trip / 2, Framing::Plain)
}

fn marchese() -> LinkConfig {
    symmetric(BitRate::from_kbps(2_048), Span::from_millis(250), Framing::Plain)
}

/// Without multiple access: one terminal has the whole return link.
fn mhatre_rosenberg() -> LinkConfig {
    let mut link =
        asymmetric(BitRate::from_mbps(50), BitRate::from_kbps(100), Span::from_millis(270));
    link.return_.framing = Framing::Aal5VirtualCircuit;
    link
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Link;
    use alloc::vec::Vec;

    #[test]
    fn profiles_are_valid_and_have_unique_names() {
        for (index, profile) in ALL.iter().enumerate() {
            let link = Link::<Vec<u8>>::new(&profile.config(), 1, 0);
            assert!(link.is_ok(), "{}: {link:?}", profile.name);
            assert!(ALL[..index].iter().all(|other| other.name != profile.name));
        }
    }

    #[test]
    fn a_geo_link_queues_one_bandwidth_delay_product() {
        let link = geo();
        let limit = link.queue(crate::Direction::Forward).limit;
        assert_eq!(limit, Limit::Bytes(750_000));
    }

    #[test]
    fn other_sojourns_follow_from_the_rate() {
        // 0.5 s at 1 % and 15 % give 49.5 s and 2.83 s; 5 s at 1 % gives 495 s.
        let good = |link: &LinkConfig| link.shared.expect("a process").states[0].mean_stay;
        let half = Span::from_millis(500);
        assert_eq!(good(&elaasar_handoff(half, 1.0)), Span::from_millis(49_500));
        assert_eq!(good(&elaasar_handoff(half, 15.0)).as_millis(), 2_833);
        let link = elaasar_connectivity(Span::from_secs(5), 1.0);
        assert_eq!(link.shared.expect("a process").states[1].mean_stay, Span::from_secs(495));
    }
}
