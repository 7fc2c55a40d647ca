//! The points to run.

use super::super::{Draw, Point, Setting, Values};
use super::weather;
use sim::multi_access::{CLUSTERS, PROBES, Stack, Star, StarReport};
use simtcp::TcpConfig;
use units::{BitRate, Span};

/// The study of the clusters, one platform of each.
pub(super) const CLUSTER: &str = "cluster";
/// Studies of one parameter at a time, on a part of a platform of cluster 2.
pub(super) const LOAD: &str = "load";
pub(super) const FILE: &str = "file";
pub(super) const STACK: &str = "stack";
/// The study of terminals' downlink rates, on a part of a platform of cluster 3.
pub(super) const RATE: &str = "rate";
/// The study of uploads, which table 14 bounds as well.
pub(super) const UP: &str = "up";
pub(super) const WEATHER: &str = "weather";

/// Duration of a run.
pub(super) const TIME: Span = Span::from_secs(300);
/// Divisor of a platform where one parameter is varied.
pub(super) const PART: u32 = 10;
/// Multiples of the reported traffic.
pub(super) const LOADS: [f64; 5] = [0.5, 1.0, 2.0, 3.0, 4.0];
/// Sizes of the files that measure throughput, in octets.
pub(super) const FILES: [u64; 6] = [100_000, 300_000, 1_000_000, 2_000_000, 3_000_000, 10_000_000];
/// Receive buffers of end-to-end TCP: of Windows 2000, and the largest without window scaling.
pub(super) const BUFFERS: [u64; 2] = [17_520, 65_535];
/// File sizes for each stack, in octets: a large file, and one that slow start dominates.
pub(super) const STACK_FILES: [u64; 2] = [1_000_000, 30_000];
/// Downlink rates of terminals in cluster 3, kbit/s of payload.
pub(super) const RATES: [u64; 4] = [240, 256, 265, 288];

pub(super) fn plan(setting: &Setting) -> Vec<Point> {
    let mut points = Vec::new();
    let mut put = |study, key: String, replications, star: Star| {
        points.push(Point::new(study, key, replications, move |draw| Ok(one(&star, draw))));
    };
    let often = setting.replications;
    for cluster in CLUSTERS {
        put(CLUSTER, cluster.number.to_string(), often, Star::star_one(cluster, 0, 1.0, TIME));
    }
    for load in LOADS {
        let star = Star::star_one_part(CLUSTERS[1], PART, load, TIME);
        put(LOAD, load.to_string(), often, star);
    }
    for bytes in FILES {
        put(FILE, bytes.to_string(), often, fetching(part(), bytes));
    }
    for kbps in RATES {
        let mut star = Star::star_one_part(CLUSTERS[2], PART, 1.0, TIME);
        star.limit_down(BitRate::from_kbps(kbps));
        put(RATE, kbps.to_string(), often, star);
    }
    for bytes in STACK_FILES {
        put(STACK, format!("split/{bytes}"), often, fetching(part(), bytes));
        for buffer in BUFFERS {
            let star = fetching(end_to_end(part(), buffer), bytes);
            put(STACK, format!("{buffer}/{bytes}"), often, star);
        }
    }
    put(UP, "all".to_owned(), often, sending(part()));
    for length in weather::LENGTHS {
        let key = length.as_secs_f64().to_string();
        points.push(Point::new(WEATHER, key, often, move |draw| Ok(weather::one(length, draw))));
    }
    points
}

pub(super) fn part() -> Star {
    Star::star_one_part(CLUSTERS[1], PART, 1.0, TIME)
}

/// Changes the size of the files that measure throughput.
pub(super) fn fetching(mut star: Star, bytes: u64) -> Star {
    let users = star.sites.len() - PROBES;
    star.sites[users..].iter_mut().for_each(|site| site.requests.object = bytes);
    star
}

/// Makes the probes measure uploads.
pub(super) fn sending(mut star: Star) -> Star {
    let users = star.sites.len() - PROBES;
    for site in &mut star.sites[users..] {
        (site.requests.request, site.requests.object) = (300_000, 100);
    }
    star
}

/// Replaces the split connections by end-to-end TCP, to terminals with 320 kbit/s downlinks.
pub(super) fn end_to_end(mut star: Star, buffer: u64) -> Star {
    let tcp = TcpConfig { receive_buffer: buffer, window_scale: false, ..TcpConfig::reno() };
    star.stack = Stack::EndToEnd(tcp);
    star.caps = None;
    star.lan = (BitRate::from_kbps(320), star.lan.1);
    star
}

pub(super) fn one(star: &Star, draw: &Draw) -> Values {
    let seen = star.run(draw.seed, draw.run);
    let users = seen.sites.len() - PROBES;
    let seconds = seen.duration.as_secs_f64();
    let (planned, bursts, through) = seen.access;
    let probed = star.sites[users].requests;
    let moved = probed.object.max(probed.request);
    Values::new()
        .with("throughput_kbps", throughput(&seen, moved))
        .with("objects", objects(&seen, users) as f64)
        .with("response_s", response(&seen, users))
        .with("inbound_gb_day", seen.up as f64 / seconds * 86_400.0 / 1e9)
        .with("outbound_mbps", seen.down_bps() / 1e6)
        .with("planned", planned as f64)
        .with("through", if bursts == 0 { 0.0 } else { through as f64 / bursts as f64 })
        .with("lost", seen.sites.iter().map(|site| site.lost).sum::<u64>() as f64)
}

/// Returns the mean throughput in kbit/s of the probes' transfers of `bytes`, from the request to
/// the last octet; 0 if none completed.
pub(super) fn throughput(seen: &StarReport, bytes: u64) -> f64 {
    let probes = &seen.sites[seen.sites.len() - PROBES..];
    let took = probes.iter().flat_map(|site| &site.responses).map(|one| one.1.as_secs_f64());
    let (count, sum) =
        took.fold((0, 0.0), |(count, sum), took| (count + 1, sum + bytes as f64 * 8.0 / took));
    if count == 0 { 0.0 } else { sum / f64::from(count) / 1e3 }
}

pub(super) fn objects(seen: &StarReport, users: usize) -> usize {
    seen.sites[..users].iter().map(|site| site.responses.len()).sum()
}

/// Returns the mean time from a user's request to the complete object, in seconds.
pub(super) fn response(seen: &StarReport, users: usize) -> f64 {
    let all = seen.sites[..users].iter().flat_map(|site| &site.responses);
    let sum: f64 = all.map(|one| one.1.as_secs_f64()).sum();
    sum / objects(seen, users).max(1) as f64
}
