//! The points to run.

use super::super::{Draw, Point, Setting, Values};
use super::access;
use super::access::{Access, LOADS};
use satlink::mac::mf_tdma::{Class, MfTdma, MfTdmaConfig};
use satlink::mac::schedule::Free;
use sim::multi_access::{Design, Interpretation, Prediction, Scenario, Stack, Star, StarReport};
use units::{BitRate, Instant, RngStream, Span};

/// The study of table I.
pub(super) const TABLE: &str = "table";
/// The study of other interpretations.
pub(super) const READINGS: &str = "readings";
/// The study of bulk transfers, and of the same designs under the paper's load.
pub(super) const BULK: &str = "bulk";
pub(super) const PAGES: &str = "pages";
/// The study of predicted demand, and its allocations of free capacity.
pub(super) const PREDICTED: &str = "predicted";
pub(super) const FREE: [(&str, Free); 2] =
    [("nothing free", Free::None), ("free by weight", Free::ByWeight)];
/// The study of other access schemes.
pub(super) const ACCESS: &str = "access";
pub(super) const LOOP: &str = "loop";
/// The study of how often a terminal without slots may send a request.
pub(super) const REQUESTS: &str = "requests";
/// Intervals of these opportunities in frames of 250 ms.
pub(super) const OPPORTUNITIES: [u32; 6] = [1, 2, 4, 8, 16, RAREST];
/// The interval with which the paper's sentence about timeouts holds.
pub(super) const RAREST: u32 = 32;
/// Duration of bulk transfers.
pub(super) const BULK_TIME: Span = Span::from_secs(120);

/// Alternatives to the published scenarios.
pub(super) const ASKED_ONLY: &str = "split, only what is asked for";
pub(super) const FIXED_SPLIT: &str = "split, fixed shares";
pub(super) const DEMAND_AND_FREE: &str = "TCP on demand, free slots too";

/// The three scenarios of the table.
pub(super) const THREE: [Scenario; 3] = [Scenario::Static, Scenario::Equal, Scenario::Weighted];

/// A sweep of one parameter.
pub(super) struct Sweep {
    pub(super) study: &'static str,
    values: &'static [f64],
    quick: &'static [f64],
    change: fn(Scenario, f64) -> Star,
}

pub(super) const SWEEPS: [Sweep; 5] = [
    Sweep {
        study: "load",
        values: &[0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0],
        quick: &[0.25, 1.0, 4.0],
        change: |scenario, think| {
            let mut star = Star::mhatre_rosenberg(scenario);
            star.sites.iter_mut().for_each(|site| site.requests.think = Span::from_secs_f64(think));
            // As many think times as in the published 80 s, and at least 80 s.
            star.duration = star.duration.max(Span::from_secs_f64(40.0 * think));
            star
        },
    },
    Sweep {
        study: "uplink",
        values: &[30.0, 50.0, 75.0, 100.0, 150.0, 200.0, 400.0],
        quick: &[50.0, 200.0],
        change: |scenario, rate| {
            let mut star = Star::mhatre_rosenberg(scenario);
            star.mac.rate = BitRate::from_kbps(rate as u64);
            star
        },
    },
    Sweep {
        study: "terminals",
        values: &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0],
        quick: &[2.0, 20.0, 100.0],
        change: |scenario, terminals| {
            let mut star = Star::published_with(scenario, terminals as usize);
            star.mac.rate = BitRate::from_kbps(5 * terminals as u64);
            star
        },
    },
    Sweep {
        study: "object",
        values: &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0],
        quick: &[1.0, 4.0, 16.0],
        change: |scenario, kb| {
            let mut star = Star::mhatre_rosenberg(scenario);
            star.sites.iter_mut().for_each(|site| site.requests.object = (kb * 1_024.0) as u64);
            star
        },
    },
    Sweep {
        study: "period",
        values: &[62.5, 125.0, 250.0, 500.0, 1_000.0],
        quick: &[125.0, 500.0],
        change: |scenario, period| {
            let mut star = Star::mhatre_rosenberg(scenario);
            star.mac.period = Span::from_secs_f64(period / 1e3);
            star
        },
    },
];

impl Sweep {
    pub(super) fn values(&self, setting: &Setting) -> &'static [f64] {
        if setting.quick { self.quick } else { self.values }
    }
}

pub(super) fn key(scenario: Scenario, value: impl std::fmt::Display) -> String {
    format!("{value}/{}", scenario.name())
}

pub(super) fn plan(setting: &Setting) -> Vec<Point> {
    let mut points = Vec::new();
    let mut put = |study, key: String, replications, star: Star| {
        points.push(Point::new(study, key, replications, move |draw| Ok(one(&star, draw))));
    };
    for scenario in Scenario::ALL {
        put(
            TABLE,
            scenario.name().to_owned(),
            setting.replications,
            Star::mhatre_rosenberg(scenario),
        );
    }
    for (name, star) in beside() {
        put(TABLE, name.to_owned(), setting.replications, star);
    }
    for reading in Interpretation::ALL {
        for scenario in THREE.into_iter().filter(|&scenario| reading.concerns(scenario)) {
            let star = reading.of(Star::mhatre_rosenberg(scenario));
            put(READINGS, key(scenario, reading.name()), setting.at_most(10), star);
        }
    }
    for sweep in &SWEEPS {
        for &value in sweep.values(setting) {
            for scenario in THREE {
                let star = (sweep.change)(scenario, value);
                // Many terminals give many samples.
                let most = if star.sites.len() > 100 { 3 } else { 10 };
                put(sweep.study, key(scenario, value), setting.at_most(most), star);
            }
        }
    }
    for frames in OPPORTUNITIES {
        for (name, star) in asking(frames) {
            put(REQUESTS, format!("{frames}/{name}"), setting.at_most(10), star);
        }
    }
    for design in Design::ALL {
        let star = Star::bulk(design, BULK_TIME);
        put(BULK, design.name().to_owned(), setting.at_most(10), star);
        let star = design.of(Star::mhatre_rosenberg(Scenario::Weighted));
        put(PAGES, design.name().to_owned(), setting.at_most(10), star);
    }
    for prediction in Prediction::ALL {
        for (name, free) in FREE {
            let key = format!("{}/{name}", prediction.name());
            put(PREDICTED, key, setting.at_most(10), Star::pages(prediction, free));
        }
    }
    for access in Access::ALL {
        for load in LOADS {
            let key = format!("{load}/{}", access.name());
            let replications = setting.at_most(5);
            points.push(Point::new(ACCESS, key, replications, move |draw| {
                Ok(access::measure(access, load, draw))
            }));
        }
    }
    points.push(Point::new(LOOP, "all", setting.at_most(5), |draw| Ok(grant_loop(draw))));
    points
}

/// Returns the alternatives to the published scenarios.
pub(super) fn beside() -> [(&'static str, Star); 3] {
    let mut asked_only = Star::mhatre_rosenberg(Scenario::Equal);
    (asked_only.mac.free, asked_only.mac.sync) = (Free::None, Some(1));
    let mut fixed = Star::mhatre_rosenberg(Scenario::Equal);
    fixed.mac.demand = satlink::mac::mf_tdma::Demand::None;
    let mut both = Star::mhatre_rosenberg(Scenario::EndToEndOnDemand);
    (both.mac.free, both.mac.sync) = (Free::Equal, None);
    [(ASKED_ONLY, asked_only), (FIXED_SPLIT, fixed), (DEMAND_AND_FREE, both)]
}

/// Returns the networks without free slots in which each terminal has an opportunity to send a
/// request once in so many frames: TCP end to end by its least timeout, and split.
pub(super) fn asking(frames: u32) -> [(&'static str, Star); 3] {
    let tcp = |least_ms: u64| {
        let mut star = Star::mhatre_rosenberg(Scenario::EndToEndOnDemand);
        if let Stack::EndToEnd(tcp) = &mut star.stack {
            tcp.rto.min = Span::from_millis(least_ms);
        }
        star
    };
    let mut split = Star::mhatre_rosenberg(Scenario::Equal);
    split.mac.free = Free::None;
    let all = [("TCP, 1 s", tcp(1_000)), ("TCP, 0.2 s", tcp(200)), ("split", split)];
    all.map(|(name, mut star)| {
        star.mac.sync = Some(frames);
        (name, star)
    })
}

pub(super) fn one(star: &Star, draw: &Draw) -> Values {
    let seen = star.run(draw.seed, draw.run);
    let half = seen.sites.len() / 2;
    let bytes = |part: fn(&sim::multi_access::SiteReport) -> u64, first: bool| {
        let (downs, ups) = seen.sites.split_at(half);
        let sites = if first { downs } else { ups };
        sites.iter().map(part).sum::<u64>() as f64 * 8.0 / star.duration.as_secs_f64() / 1e3
    };
    Values::new()
        .with("objects", seen.objects() as f64)
        .with("mean_s", seen.mean_response_s())
        .with("longest_s", seen.longest_response_s())
        .with("settled_s", settled(star, &seen, |_| true))
        .with("crowded_s", settled(star, &seen, |connections| connections > 1))
        .with("alone_s", settled(star, &seen, |connections| connections == 1))
        .with("down_kbps", seen.down_bps() / 1e3)
        .with("down_bytes", seen.down as f64 / seen.objects().max(1) as f64)
        .with("up_kbps", seen.up_bps() / 1e3)
        .with("granted", seen.slots.0 as f64)
        .with("used", seen.slots.1 as f64)
        .with("timeouts", seen.timeouts as f64)
        .with("received_kbps", bytes(|site| site.received, true))
        .with("sent_kbps", bytes(|site| site.sent, false))
}

/// Returns the mean response time in seconds after 20 s and ten think times, when windows are open,
/// at sites whose number of connections satisfies `of`; 0 without any.
pub(super) fn settled(star: &Star, seen: &StarReport, of: impl Fn(usize) -> bool) -> f64 {
    let from = Instant::ZERO + Span::from_secs(20).max(star.sites[0].requests.think * 10);
    let sites = seen.sites.iter().filter(|site| of(site.connections));
    let late = sites.flat_map(|site| &site.responses).filter(|(at, _)| *at > from);
    let (count, sum) =
        late.fold((0, 0.0), |(count, sum), (_, took)| (count + 1, sum + took.as_secs_f64()));
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}

/// Measures the delay from the arrival of a packet to its requested slot on the published link
/// without free capacity: packets of one cell, one at a time.
pub(super) fn grant_loop(draw: &Draw) -> Values {
    let mut config = MfTdmaConfig::mhatre_rosenberg(20);
    // Requests have their own bursts, and terminals need no time to process a burst time plan.
    (config.free, config.sync, config.lead) = (Free::None, Some(1), Span::ZERO);
    let mut link: MfTdma<Vec<u8>> =
        MfTdma::new(&config, draw.seed, draw.run).expect("the published link");
    let mut rng = RngStream::new(draw.seed, draw.run, "lab/grant-loop");
    let sent = config.way(0) + config.slot();
    let mut now = Instant::ZERO + Span::from_secs(3);
    let mut loops = Vec::new();
    for _ in 0..2_000 {
        now += Span::from_nanos(rng.below(config.period.as_nanos()));
        link.offer(now, rng.below(20) as usize, Class::Data, vec![0; 40]);
        let offered = now;
        now += Span::from_secs(3);
        while let Some(arrived) = link.poll_arrival(now) {
            loops.push((arrived.at - sent).since(offered).as_secs_f64());
        }
    }
    let mean = loops.iter().sum::<f64>() / loops.len() as f64;
    let (least, most) = loops
        .iter()
        .fold((f64::MAX, 0.0_f64), |(low, high), &value| (low.min(value), high.max(value)));
    Values::new().with("mean_s", mean).with("least_s", least).with("most_s", most)
}
