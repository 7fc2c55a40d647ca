//! Sessions on satellite links: every packet is delivered once, at the link's rate.

use super::*;
use crate::{Change, Path, PathConfig};
use satlink::Direction;
use units::{BitRate, RngStream};
use xstp::session::SessionConfig;

/// Octets of IPv4, UDP and association headers and tag.
const HEADERS: usize = 52;

fn setting(words: &str) -> PathConfig {
    let mut link = satlink::profiles::by_name("geo").expect("a profile");
    satlink::words::apply_link(&mut link, words).expect("right words");
    PathConfig { header: HEADERS, ..PathConfig::new(link) }
}

fn path(setting: &PathConfig, down: u64, up: u64) -> Path<SessionEndpoint, SessionEndpoint> {
    let config = |rate: Option<BitRate>| SessionConfig::gateway(rate.expect("a rate"));
    let terminal = Session::connect(&config(setting.link.return_.rate), Instant::ZERO, 1);
    let hub = Session::listen(&config(setting.link.forward.rate));
    Path::new(
        setting,
        SessionEndpoint::new(terminal, 7, up, true),
        SessionEndpoint::new(hub, 7, down, true),
    )
    .expect("a valid link")
}

fn at(secs: u64) -> Instant {
    Instant::ZERO + Span::from_secs(secs)
}

/// Goodput at the terminal, and its send rate, from 2 s to 32 s, in bit/s.
fn download(words: &str) -> (f64, f64) {
    let mut path = path(&setting(words), 1 << 40, 0);
    path.run_until(at(32));
    let per_second = |bytes: u64| bytes as f64 * 8.0 / 30.0;
    let back = path.offered(Direction::Return).between(at(2), at(32)).bytes;
    (per_second(path.terminal.data.arrived().between(at(2), at(32)).bytes), per_second(back))
}

#[test]
fn download_fills_the_link_with_little_reverse_traffic() {
    let (goodput, back) = download("");
    assert!(goodput > 9.45e6, "{goodput}");
    assert!(back < 4_000.0, "{back}");
}

#[test]
fn random_loss_costs_little_more_than_the_lost_packets() {
    let (goodput, back) = download("loss 1%");
    assert!(goodput > 0.975 * 9.504e6, "{goodput}");
    assert!(back < 10_000.0, "{back}");
}

#[test]
fn jitter_of_the_reverse_path_does_not_reduce_goodput() {
    let (goodput, _) = download("return delay 300ms 100ms");
    assert!(goodput > 9.45e6, "{goodput}");
}

#[test]
fn a_short_transfer_takes_one_round_trip() {
    // The client starts with its BGN; 10 kB are back after one round trip.
    let mut path = path(&setting(""), 10_000, 400);
    assert!(path.run_while(at(5), |path| path.terminal.data.in_order() < 10_000));
    assert!(path.now() < Instant::ZERO + Span::from_millis(630), "{:?}", path.now());
}

/// A link with faults drawn from `seed`.
fn random_faults(seed: u64) -> PathConfig {
    let mut rng = RngStream::new(seed, 0, "sim/bare/storm");
    let mut config = setting("rate 2mbit limit 0.5bdp");
    config.seed = seed;
    for direction in [&mut config.link.forward, &mut config.link.return_] {
        direction.loss = 0.3 * rng.uniform() * rng.uniform();
        direction.duplicate = 0.2 * rng.uniform();
        direction.delay = Span::from_millis(20 + rng.below(400));
        direction.jitter = satlink::Jitter::Uniform(Span::from_millis(rng.below(60)));
        direction.keep_order = rng.chance(0.5);
    }
    config.link.outages = vec![satlink::Outage {
        at: Span::from_millis(rng.below(10_000)),
        length: Span::from_millis(100 + rng.below(4_000)),
        every: Some(Span::from_secs(10)),
        direction: rng.chance(0.3).then_some(Direction::Forward),
    }];
    config
}

#[test]
fn all_packets_are_delivered_once_and_both_ends_close_after_random_faults() {
    for seed in 0..30 {
        let config = random_faults(seed);
        let mut path = path(&config, 3_000_000, 300_000);
        path.run_until(at(20));
        assert!(path.link().audit(), "seed {seed}: the link's accounts");
        let calm = setting("rate 2mbit limit 0.5bdp").link;
        path.change_at(at(20), Change::Link(Box::new(calm)));
        let over = |path: &Path<SessionEndpoint, SessionEndpoint>| {
            path.terminal.data.in_order() == 3_000_000
                && path.hub.data.in_order() == 300_000
                && path.terminal.data.is_released()
                && path.hub.data.is_released()
        };
        let done = path.run_while(at(80), |path| !over(path));
        assert!(done, "seed {seed}: {:?} {:?}", path.terminal.session, path.hub.session);
        path.run_until(path.now() + Span::from_secs(20));
        for side in [&path.terminal, &path.hub] {
            let last = side.events.last().map(|(_, event)| *event);
            assert_eq!(last, Some(Event::Closed), "seed {seed}: {:?}", side.events);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let mut path = path(&random_faults(seed), 500_000, 50_000);
        path.run_until(at(15));
        path.trace_hash()
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}
