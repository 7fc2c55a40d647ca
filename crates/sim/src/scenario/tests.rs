//! The promised figures, over shorter times than they are measured with, and what must hold
//! under any faults.

use super::*;
use crate::traffic::Exchange;
use crate::{Change, Faults};
use satlink::{Direction, Jitter};

const SHORT: Span = Span::from_secs(20);

fn geo(words: &str) -> Setting {
    Setting::new("geo", words)
}

#[test]
fn a_clean_download_fills_the_link_on_a_return_channel_of_4_kbit_per_second() {
    for connections in [1, 20] {
        let seen = bulk(&geo(""), SHORT, connections, false);
        assert!(seen.share >= 0.98, "{seen:?}");
        assert!(seen.return_bps < 4_000.0, "{seen:?}");
        assert!(seen.fullest_queue < Span::from_millis(5), "no queue builds up: {seen:?}");
    }
}

#[test]
fn loss_costs_little_more_than_what_it_takes() {
    // The in-order front lies behind by about a round trip, which is 3 % of this short time.
    let seen = bulk(&geo("loss 1%"), SHORT, 1, false);
    assert!(seen.share >= 0.94 && seen.return_bps < 10_000.0, "{seen:?}");
    let seen = bulk(&geo("ber 1e-5"), SHORT, 1, false);
    assert!(seen.share >= 0.85 && seen.return_bps < 40_000.0, "{seen:?}");
}

#[test]
fn an_upload_beside_it_leaves_the_download_alone() {
    let seen = bulk(&geo(""), SHORT, 1, true);
    assert!(seen.share >= 0.90, "{seen:?}");
    assert!(seen.upload_bps > 0.85e6, "{seen:?}");
}

#[test]
fn requests_take_little_more_than_a_round_trip_even_under_load() {
    let both = Exchange { request: 4096, response: 4096 };
    let trips = |took: Span| took.as_secs_f64() / 0.6;
    let alone = trips(request(&geo(""), both, false));
    assert!((1.0..1.15).contains(&alone), "{alone}");
    let under_load = trips(request(&geo(""), both, true));
    assert!((1.0..1.3).contains(&under_load), "{under_load}");
}

#[test]
fn pages_take_as_many_round_trips_as_they_have_turns() {
    let six = page(&geo(""), 6);
    let trips = (six.took - six.transmission).as_secs_f64() / 0.6;
    assert!((5.5..6.3).contains(&trips), "{trips}");
    let one = page(&geo(""), 1).took.as_secs_f64() / 0.6;
    assert!((2.0..2.4).contains(&one), "{one}");
}

#[test]
fn after_an_outage_the_link_is_full_again_within_less_than_two_round_trips() {
    let seen = outage(&geo(""), Span::from_secs(10));
    assert!(seen.back_after < 1.6 && seen.lost == 0 && seen.complete, "{seen:?}");
}

/// Many short exchanges and a few long ones, both ways.
fn plans() -> Vec<ConnectionPlan> {
    let at = |ms| Instant::ZERO + Span::from_millis(ms);
    let mut plans = vec![
        ConnectionPlan::download(at(500), 1_500_000),
        ConnectionPlan::upload(at(900), 400_000),
    ];
    plans.extend(ConnectionPlan::page(at(2_000), 30, 212_207, 6));
    plans.extend(ConnectionPlan::page(at(3_000), 30, 212_207, 1));
    plans.extend((0..20).map(|n| ConnectionPlan::download(at(1_000 + n * 300), 1 + n * n * 100)));
    plans
}

/// A link whose faults are drawn from `seed`, and faults besides.
fn storm(seed: u64) -> (Setting, Faults) {
    let mut rng = RngStream::new(seed, 0, "sim/scenario/storm");
    let mut setting = geo("rate 3mbit limit 0.5bdp").with_seed(seed);
    for direction in Direction::BOTH {
        let direction = setting.link.direction_mut(direction);
        direction.loss = 0.3 * rng.uniform() * rng.uniform();
        direction.duplicate = 0.1 * rng.uniform();
        direction.delay = Span::from_millis(20 + rng.below(400));
        direction.jitter = Jitter::Uniform(Span::from_millis(rng.below(60)));
        direction.keep_order = rng.chance(0.5);
    }
    setting.link.outages = vec![satlink::Outage {
        at: Span::from_millis(rng.below(10_000)),
        length: Span::from_millis(100 + rng.below(4_000)),
        every: Some(Span::from_secs(10)),
        direction: None,
    }];
    let mut share = || 0.1 * rng.uniform() * rng.uniform();
    let faults =
        Faults { corrupt: share(), truncate: share(), duplicate: share(), replay: share() };
    (setting, faults)
}

fn run_storm(seed: u64) -> Rig {
    let (setting, faults) = storm(seed);
    let mut rig = setting.rig(plans());
    rig.change_at(Instant::ZERO, Change::Faults(faults));
    rig.run_until(Instant::ZERO + Span::from_secs(20));
    rig
}

#[test]
fn after_any_storm_every_connection_comes_to_its_end() {
    for seed in 0..20 {
        let mut rig = run_storm(seed);
        assert!(rig.link().audit(), "seed {seed}: the link's accounts");
        let calm = Instant::ZERO + Span::from_secs(20);
        let link = geo("rate 3mbit limit 0.5bdp").link;
        rig.change_at(calm, Change::Link(Box::new(link)));
        rig.change_at(calm, Change::Faults(Faults::default()));
        let done = rig.run_while(calm + Span::from_secs(60), |rig| !rig.terminal.client.is_done());
        assert!(done, "seed {seed}: {:?}", rig.terminal.relay.statistics());
        // Corruption that the association would let through shows as a wrong byte.
        assert_eq!(rig.terminal.client.lost(), 0, "seed {seed}");
        rig.run_until(rig.now() + Span::from_secs(10));
        assert_eq!(rig.terminal.relay.statistics().streams, 0, "seed {seed}: all are forgotten");
        assert_eq!(rig.hub.server.lost(), 0, "seed {seed}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    assert_eq!(run_storm(1).trace_hash(), run_storm(1).trace_hash());
    assert_ne!(run_storm(1).trace_hash(), run_storm(2).trace_hash());
}
