//! The guaranteed figures over shorter times, and properties under random faults.

use super::*;
use crate::traffic::Exchange;
use satlink::Direction;

const SHORT: Span = Span::from_secs(20);

fn geo(words: &str) -> Setting {
    Setting::new("geo", words)
}

#[test]
fn download_fills_the_link_with_a_return_rate_of_4_kbit_per_second() {
    for connections in [1, 20] {
        let seen = bulk(&geo(""), SHORT, connections, false);
        assert!(seen.share >= 0.98, "{seen:?}");
        assert!(seen.return_bps < 4_000.0, "{seen:?}");
        assert!(seen.fullest_queue < Span::from_millis(5), "no queue builds up: {seen:?}");
    }
}

#[test]
fn loss_costs_little_more_than_the_lost_packets() {
    // In-order delivery lags by about a round trip, which is 3 % of this short time.
    let seen = bulk(&geo("loss 1%"), SHORT, 1, false);
    assert!(seen.share >= 0.94 && seen.return_bps < 10_000.0, "{seen:?}");
    let seen = bulk(&geo("ber 1e-5"), SHORT, 1, false);
    assert!(seen.share >= 0.85 && seen.return_bps < 40_000.0, "{seen:?}");
}

/// From the first packet on, with encryption and path MTU discovery, on hosts whose arrival times
/// have errors of up to 0.5 ms: packet trains are of small packets then, and inaccurate.
#[test]
fn rate_is_found_within_four_round_trips_by_hosts_with_timing_errors() {
    for seed in 1..=8 {
        let setting = geo("forward delay 300ms 500us").auto().with_seed(seed);
        let found = full_rate_after(&setting, Span::from_secs(10));
        assert!(found.is_some_and(|found| found < 3.0), "seed {seed}: {found:?}");
    }
}

/// Without configured rates, the first request of a session takes at most 5 % longer: padding has
/// found the rate, and causes no queue.
#[test]
fn a_first_request_does_not_wait_for_an_unknown_rate() {
    let exchange = Exchange { request: 4_096, response: 65_536 };
    for words in [
        "limit 1bdp",
        "limit 1bdp forward rate 2mbit return rate 64kbit",
        "limit 1bdp forward rate 1mbit",
        "both delay 20ms 1ms limit 1bdp forward rate 200mbit return rate 20mbit",
    ] {
        let mean = |setting: &Setting| {
            let took =
                (1..=8).map(|seed| request(&setting.clone().with_seed(seed), exchange, false));
            took.map(|took| took.as_secs_f64()).sum::<f64>() / 8.0
        };
        let [configured, found] = [geo(words), geo(words).auto()].map(|setting| mean(&setting));
        assert!(found <= configured * 1.05, "{words}: {configured} s, {found} s");
    }
}

/// Rekeying is due at 120 s and at 240 s and must not affect throughput.
#[test]
fn rekeying_does_not_stall_traffic() {
    let setting = Setting::new("geo", "forward rate 1mbit");
    let mut rig = setting.rig(vec![ConnectionPlan::download(START, 1 << 40)]);
    rig.run_until(START + Span::from_secs(260));
    let counters = rig.terminal.relay.association_counters().expect("a terminal has some");
    assert_eq!(counters.renewals, 2);
    assert_eq!((rig.terminal.connected(), rig.terminal.bad, rig.hub.bad), (1, 0, 0));
    let received = rig.terminal.client.received();
    let step = Span::from_secs(2);
    let mut at = START + Span::from_secs(10);
    while at < START + Span::from_secs(250) {
        let bits = received.between(at, at + step).bytes * 8;
        assert!(bits > 1_880_000, "{bits} bits in 2 s from {at:?}");
        at += step;
    }
}

/// Figures with and without encryption are equal: a datagram has the same length in both.
#[test]
fn encryption_costs_no_goodput() {
    let seen = [geo(""), geo("").open()].map(|setting| bulk(&setting, SHORT, 1, false));
    let [sealed, open] = seen.map(|seen| seen.goodput_bps);
    assert!((sealed / open - 1.0).abs() < 0.001, "{sealed} {open}");
}

#[test]
fn upload_does_not_slow_the_download() {
    let seen = bulk(&geo(""), SHORT, 1, true);
    assert!(seen.share >= 0.90, "{seen:?}");
    assert!(seen.upload_bps > 0.85e6, "{seen:?}");
}

#[test]
fn requests_take_about_a_round_trip_under_load() {
    let both = Exchange { request: 4096, response: 4096 };
    let trips = |took: Span| took.as_secs_f64() / 0.6;
    let alone = trips(request(&geo(""), both, false));
    assert!((1.0..1.15).contains(&alone), "{alone}");
    let under_load = trips(request(&geo(""), both, true));
    assert!((1.0..1.3).contains(&under_load), "{under_load}");
}

#[test]
fn page_duration_follows_from_its_request_rounds() {
    let six = page(&geo(""), 6);
    let trips = (six.took - six.transmission).as_secs_f64() / 0.6;
    assert!((5.5..6.3).contains(&trips), "{trips}");
    let one = page(&geo(""), 1).took.as_secs_f64() / 0.6;
    assert!((2.0..2.4).contains(&one), "{one}");
}

#[test]
fn link_is_full_within_two_round_trips_after_an_outage() {
    let seen = outage(&geo(""), Span::from_secs(10));
    assert!(seen.recovered_after < 1.6 && seen.lost == 0 && seen.complete, "{seen:?}");
}

/// Clients of 100 connections download at 1 Gbit/s over 1 ms, from servers that write at once what
/// they can. Streams hold 8 MiB unsent, from the fourth on 3/n of that: 108 MiB in all.
#[test]
fn buffers_of_a_hub_are_independent_of_the_number_of_connections() {
    const BOUND: u64 = 112 << 20;
    let words = "forward rate 1gbit delay 0.5ms limit 2000000b return rate 1gbit delay 0.5ms";
    let setting = Setting::new("geo", words);
    let mut rig = setting.rig(vec![ConnectionPlan::download(START, 1 << 40); 100]);
    let mut most = 0;
    for step in 1..=20 {
        rig.run_until(START + Span::from_millis(50 * step));
        let hub = rig.hub.peer.and_then(|peer| rig.hub.hub.peer(peer)).expect("a terminal");
        most = most.max(hub.statistics().send_buffered);
    }
    assert!((1 << 20..=BOUND).contains(&most), "{most} octets");
    let from = START + Span::from_millis(200);
    let received = rig.terminal.client.received().between(from, rig.now()).bytes;
    assert!(received * 8 > 900_000_000 / 10 * 8, "{received} octets in 0.8 s");
}

#[test]
fn delivery_in_order_is_back_1_3_s_after_an_outage_in_whichever_direction() {
    for setting in [geo(""), geo("").auto()] {
        for direction in [None, Some(Direction::Forward), Some(Direction::Return)] {
            let seen = recovery(&setting, Span::from_secs(10), direction);
            let full = seen.full_second.expect("the rate should be reached again");
            assert!(full < Span::from_millis(1_300), "{direction:?}: {seen:?}");
        }
    }
}

#[test]
fn outages_below_two_minutes_lose_no_connection() {
    for seconds in [60, 115] {
        let seen = outage(&geo(""), Span::from_secs(seconds));
        assert!(seen.recovered_after < 10.0 && seen.lost == 0 && seen.complete, "{seen:?}");
    }
}

#[test]
fn outage_beyond_the_timeout_resets_connections() {
    let mut setting = geo("");
    setting.link.outages.push(satlink::Outage {
        at: (START + Span::from_secs(5)).since(Instant::ZERO),
        length: Span::from_secs(130),
        every: None,
        direction: None,
    });
    let plans =
        [START, START + Span::from_secs(150)].map(|at| ConnectionPlan::download(at, 20_000_000));
    let mut rig = setting.rig(plans.into());
    rig.run_while(START + Span::from_secs(300), |rig| !rig.terminal.client.is_done());
    assert_eq!(rig.terminal.client.lost(), 1);
    // The connection that was opened afterwards.
    let done = rig.terminal.client.exchanged().iter().map(|one| one.done.is_some());
    assert_eq!(done.collect::<Vec<_>>(), [false, true]);
}

#[test]
fn every_connection_ends_after_random_faults() {
    for seed in 0..20 {
        if let Err(damage) = storm(seed) {
            panic!("seed {seed}: {damage} (cargo run -p sim --example storm -- {seed} 1)");
        }
    }
}

#[test]
fn same_seed_gives_the_same_run() {
    assert_eq!(storm(1), storm(1));
    assert_ne!(storm(1), storm(2));
}

#[test]
fn return_rate_of_1_kbit_per_second_carries_requests_during_a_download() {
    let setting = geo("return rate 1kbit limit 20");
    let small = Exchange { request: 300, response: 4096 };
    for under_load in [false, true] {
        // 2.9 s for the request on the return link, a round trip, and its wait behind a STAT.
        let took = request(&setting, small, under_load);
        assert!(took < Span::from_millis(4_500), "{took}");
    }
    let seen = bulk(&setting, SHORT, 1, false);
    assert!(seen.share >= 0.95 && seen.return_bps < 300.0, "{seen:?}");
}

#[test]
fn loss_is_recovered_with_a_return_rate_of_10_kbit_per_second() {
    let seen = bulk(&geo("loss 1% return rate 10kbit limit 20"), SHORT, 1, false);
    assert!(seen.share >= 0.90 && seen.return_bps < 2_600.0, "{seen:?}");
}

#[test]
fn gateways_find_a_rate_that_is_not_configured() {
    // The start takes 1 of these 20 s.
    let seen = bulk(&geo("").auto(), SHORT, 1, false);
    assert!(seen.share >= 0.92 && seen.return_bps < 4_500.0, "{seen:?}");
    assert!(seen.fullest_queue < Span::from_millis(60), "{seen:?}");
    // With this seed the note with the stream's second credit is lost.
    let seen = bulk(&geo("loss 1%").auto(), SHORT, 1, false);
    assert!(seen.share >= 0.90 && seen.return_bps < 10_000.0, "{seen:?}");
}

#[test]
fn cached_path_metrics_and_padding_shorten_the_start() {
    let fast = geo("limit 1bdp forward rate 250mbit return rate 3mbit");
    let rate = fast.rates[0];
    let took = |setting: &Setting| file(setting, 30_000_000);
    let cold = took(&fast.clone().auto().without_padding());
    let padded = took(&fast.clone().auto());
    let remembered = took(&fast.clone().auto().with_path_metrics(rate));
    // Transmission takes 1 s, and the round trip is 600 ms.
    assert!(remembered < Span::from_millis(1_800), "{remembered}");
    assert!(cold < remembered + Span::from_millis(1_500), "{cold}");
    assert!(remembered + Span::from_millis(500) < cold, "{remembered} is no better than {cold}");
    assert!(padded < remembered + Span::from_millis(100), "{padded}");
}

#[test]
fn return_rate_of_1_kbit_per_second_need_not_be_configured() {
    let setting = geo("return rate 1kbit limit 20").auto();
    let small = Exchange { request: 300, response: 4096 };
    assert!(request(&setting, small, false) < Span::from_secs(8));
    assert!(request(&setting, small, true) < Span::from_secs(15));
}

/// The 99th percentile of short exchanges on a lossy link, as a multiple of that without loss.
#[test]
fn repair_keeps_lost_packets_of_short_exchanges_from_waiting() {
    let p99 = |words: &str, percent, response| {
        let seen = exchanges(&geo(words).repairing(percent), 300, response);
        seen.quantile(990).as_secs_f64()
    };
    let cases = [("both loss 1%", 4_000, 1.1), ("both loss 1%", 100_000, 1.15)];
    for (words, response, limit) in cases.into_iter().chain([("both loss 2%", 100_000, 1.3)]) {
        let [lossless, without, with] =
            [("", None), (words, None), (words, Some(10))].map(|(w, p)| p99(w, p, response));
        assert!(without > 1.8 * lossless, "{words}, {response} octets: {without} s without repair");
        assert!(with < limit * lossless, "{words}, {response} octets: {with} s with repair");
    }
}

/// The session begins with the page: no loss was measured then.
#[test]
fn repair_keeps_the_first_page_of_a_session_from_waiting() {
    let mean = |words: &str, percent| {
        let setting = geo(words).repairing(percent);
        let took = (1..=40).map(|seed| page(&setting.clone().with_seed(seed), 6).took);
        took.map(Span::as_secs_f64).sum::<f64>() / 40.0
    };
    let lossless = page(&geo(""), 6).took.as_secs_f64();
    for (words, limit) in [("both loss 1%", 1.05), ("both ber 1e-5", 1.15)] {
        let [without, with] = [None, Some(10)].map(|percent| mean(words, percent));
        assert!(without > 1.1 * lossless, "{words}: {without} s without repair");
        assert!(with < limit * lossless, "{words}: {with} s with repair");
    }
}

#[test]
fn repair_symbols_are_sent_only_where_packets_are_lost() {
    let seen = exchanges(&geo("").repairing(Some(10)), 50, 100_000);
    assert_eq!(seen.repairs, [0, 0]);
}
