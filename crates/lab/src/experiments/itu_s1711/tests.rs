use super::bench::{Errors, SMALL, Trial, Way, test_b};
use super::enhancements::{self, Impairment};
use super::pages::{self, Variant};
use super::shaping;
use crate::experiments::Draw;
use std::collections::BTreeSet;

const DRAW: Draw = Draw { seed: 1, run: 0 };

#[test]
fn a_small_window_limits_throughput_unless_gateways_split() {
    let kbps = |way| Trial::one(way, 10_000, 700).run(&DRAW).get("kbps");
    let bound = SMALL as f64 * 8.0 / 700.0;
    let [plain, split] = [Way::Plain, Way::Three].map(kbps);
    // A window more or less at the ends of the interval is 5 %.
    assert!((0.8 * bound..=1.05 * bound).contains(&plain), "{plain} of {bound}");
    assert!(split > 20.0 * plain, "{split}");
}

#[test]
fn bursts_lose_about_as_much_as_single_errors() {
    let kbps = |errors| test_b(Way::Plain, 2, 1_536, errors).run(&DRAW).get("kbps");
    let [single, bursts] = [Errors::Ratio(1e-6), Errors::Bursts(1e-6, 4)].map(kbps);
    assert!(single > 50.0 && bursts > 50.0 && bursts < 1_536.0, "{single} {bursts}");
}

#[test]
fn enhancements_have_the_expected_gains() {
    let all = enhancements::all();
    let names: BTreeSet<&str> = all.iter().map(|one| one.name).collect();
    assert_eq!(names.len(), all.len());
    let gain = |name: &str, impairment| {
        let one = all.iter().find(|one| one.name == name).expect("it is there");
        let score =
            |case: &enhancements::Case| case.run(impairment, &DRAW).expect("it ends").get("score");
        score(&one.with) / score(&one.without)
    };
    for name in ["larger initial window", "pacing"] {
        let found = gain(name, Impairment::Latency);
        assert!(found > 1.05, "{name}: {found}");
    }
    assert!(gain("pacing", Impairment::Product) > 1.05, "the window is kept after the pause");
    assert!(gain("delayed acknowledgements", Impairment::Latency) < 1.0, "slow start is slower");
    assert!(gain("FEC", Impairment::Errors) > 1.5, "errors are what limits");
    assert!((0.97..1.03).contains(&gain("header compression", Impairment::Latency)));
}

#[test]
fn shaping_prevents_router_overflow() {
    let run = |bucket| shaping::Trial { bucket, ..shaping::Trial::bucket(shaping::BEST) };
    let [small, larger, none] = [Some(32), Some(64), None].map(|bucket| run(bucket).run(&DRAW));
    assert_eq!((small.get("overflowed"), larger.get("overflowed")), (0.0, 0.0));
    assert!(none.get("overflowed") > 0.0);
    // 32 kbytes in each of 100 clock intervals are 25.6 Mbit/s with headers.
    assert!((23.0..25.6).contains(&small.get("mbps")), "{}", small.get("mbps"));
    assert!(larger.get("mbps") > 1.9 * small.get("mbps"));
}

#[test]
fn elements_add_their_delay_only_without_pipelining() {
    let seconds = |way: usize, variant| {
        let page = sim::traffic::S1711_PAGES[4];
        let fetch = pages::Fetch { page, way: pages::WAYS[way], variant };
        fetch.run(&DRAW).expect("it ends").get("seconds")
    };
    let [one, serial, pipelined] = [0, 1, 2].map(|way| seconds(way, Variant::Even));
    assert!(pipelined < one && one < serial, "{pipelined} {one} {serial}");
    let held = seconds(1, Variant::Taken) - seconds(1, Variant::Prompt);
    // 30 ms instead of 1 ms for each of the eight; the first delay overlaps the handshake.
    assert!((0.19..0.25).contains(&held), "{held}");
}
