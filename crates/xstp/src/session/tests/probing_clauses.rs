//! Start, course and end of probing, clause by clause. `probing.rs` has the figures of the paper.

use super::probing::{loses_a_window, three};
use super::wire::{CLIENT, SERVER, Wire};
use super::*;
use crate::session::{Halve, LossRoundTrip, ProbingConfig, ProbingStatistics};
use crate::wire::{Echo, RunList, Stat, Ustat};
use alloc::string::String;

/// A window of twelve packets, large enough for USTATs and for halving.
fn twelve(probing: ProbingConfig) -> SessionConfig {
    let mut config = SessionConfig::xstp_2003().with_probing(Some(probing));
    (config.initial_window, config.number_window) = (12, 12);
    config.xstp.burst_threshold = 64;
    config
}

/// Loses the second packet of the window that starts at 1,000 ms; from then on the one-way delay is
/// `later` ms.
fn loses_one(config: &SessionConfig, later: u64) -> Wire {
    let mut wire = Wire::new(config);
    wire.run(at(995));
    wire.delays.push((at(999), Span::from_millis(later)));
    // The packets of the window are sent back to back; the second one is lost.
    wire.lost.push((CLIENT, at(999), at(1_001)));
    wire.run(at(999));
    let second = wire.session().sender.table.next() + 1;
    wire.lost.clear();
    wire.only_lost = Some(Seq24::from_extended(second));
    wire
}

/// XSTP-13.1.2, XSTP-13.2.1: a USTAT that reports a loss starts a cycle and causes no retransmission.
/// XSTP-13.2.5: USTATs during a cycle are ignored.
#[test]
fn a_ustat_starts_a_cycle_that_ignores_other_ustats() {
    let mut wire = loses_one(&twelve(ProbingConfig::default()), 100);
    wire.run(at(1_190));
    // A USTAT that overtakes the one that arrives at 1,200 ms with a STAT.
    let missing = Seq24::from_extended(wire.session().sender.table.next() - 11);
    let ustat = Ustat::new(missing, RunList::new(0, &[1]).unwrap()).unwrap();
    let ustat = Segment::ustat(Seq24::ZERO, ustat).with_timestamp(1_190);
    wire.ends[CLIENT].receive(at(1_190), &ustat).unwrap();
    assert!(wire.session().is_probing());
    wire.since(0);
    wire.run(at(1_380));
    let expected = [
        "1190 > POLL poll<72",
        "1200 < STAT have<61 miss 61+1",
        "1200 < USTAT miss 61+1",
        "1267 < STAT have<61 miss 61+1",
        "1333 < STAT have<61 miss 61+1",
    ];
    assert_eq!(wire.since(1_000), expected);
    let seen = wire.session().statistics();
    assert_eq!((seen.probing.begun_by_ustat, seen.probing.ustats_ignored), (1, 1));
    assert_eq!(seen.data_retransmitted, 0);
    wire.run(at(1_395));
    let expected = ["1390 < STAT have<61 miss 61+1", "1390 > SD 61"];
    assert_eq!(wire.since(1_340)[..2], expected);
    assert_eq!(wire.session().congestion_window(), Some(12_000), "as before");
}

/// XSTP-13.1.2: a STAT that reports a loss starts a cycle.
#[test]
fn a_stat_starts_a_cycle() {
    let mut wire = loses_one(&twelve(ProbingConfig::default()), 100);
    wire.run(at(1_201));
    assert_eq!(
        wire.since(1_200),
        ["1200 < STAT have<61 miss 61+1", "1200 < USTAT miss 61+1", "1200 > POLL poll<72"]
    );
    let seen = wire.session().statistics();
    assert_eq!((seen.probing.begun_by_stat, seen.probing.ustats_ignored), (1, 1));
    assert_eq!(seen.data_retransmitted, 0);
}

/// Window after a cycle, in percent, and the counters, for a loss at 1,000 ms after which the one-way
/// delay is `later` ms.
fn verdict(probing: ProbingConfig, later: u64) -> (u64, ProbingStatistics) {
    let config = SessionConfig { number_window: 4_096, ..twelve(probing) };
    let mut wire = loses_one(&config, later);
    wire.run(at(1_100));
    let before = wire.session().congestion_window().unwrap();
    let over = |seen: &ProbingStatistics| seen.recovered + seen.congested + seen.slow_starts > 0;
    let mut end = 1_100;
    while !over(&wire.session().statistics().probing) {
        end += 1;
        wire.run(at(end));
        assert!(end < 10_000, "the cycle does not end");
    }
    let window = wire.session().congestion_window().unwrap();
    (window * 100 / before, wire.session().statistics().probing)
}

/// XSTP-13.4.3, XSTP-13.4.4, XSTP-13.4.5
#[test]
fn longer_rtts_are_congestion() {
    let config = ProbingConfig::default();
    let cases = [
        ("constant RTT", config, 100, (100, 1, 0, 0)),
        ("RTT longer by half", config, 150, (50, 0, 1, 0)),
        (
            "within the tolerance",
            ProbingConfig { tolerance_millionths: 500_000, ..config },
            150,
            (100, 1, 0, 0),
        ),
        (
            "above the tolerance",
            ProbingConfig { tolerance_millionths: 500_000, ..config },
            250,
            (50, 0, 1, 0),
        ),
        (
            "after the idle threshold",
            ProbingConfig { idle_threshold: Span::from_millis(100), ..config },
            150,
            (5, 0, 0, 1),
        ),
        (
            "half of the outstanding data",
            ProbingConfig { halve: Halve::Flight, ..config },
            150,
            (14, 0, 1, 0),
        ),
        // A false early timeout has measured the slower path before the loss is found.
        (
            "compared with the last sample",
            ProbingConfig { loss_round_trip: LossRoundTrip::Last, ..config },
            150,
            (100, 1, 0, 0),
        ),
    ];
    for (name, config, later, expected) in cases {
        let (window, seen) = verdict(config, later);
        assert_eq!((window, seen.recovered, seen.congested, seen.slow_starts), expected, "{name}");
    }
}

/// XSTP-13.2.4, XSTP-13.4.6
#[test]
fn growth_during_a_cycle_is_kept_or_restored() {
    let windows = [false, true].map(|restore_window| {
        let probing = Some(ProbingConfig { restore_window, ..ProbingConfig::default() });
        let config = SessionConfig { number_window: 64, ..three() };
        let mut wire = Wire::new(&config.with_probing(probing));
        // The STAT that ends the cycle acknowledges what the lost one would have.
        wire.lost.push((SERVER, at(495), at(505)));
        wire.run(at(599));
        let before = wire.session().congestion_window().unwrap();
        wire.run(at(668));
        assert_eq!(wire.session().statistics().probing.premature, 1);
        wire.session().congestion_window().unwrap() - before
    });
    assert!(windows[0] > 0 && windows[1] == 0, "{windows:?}");
}

/// XSTP-13.1.3
#[test]
fn early_timeouts_can_be_switched_off() {
    let probing = Some(ProbingConfig { early_timeout: false, ..ProbingConfig::default() });
    let mut wire = loses_a_window(&three().with_probing(probing));
    wire.run(at(1_300));
    let seen = wire.session().statistics().probing;
    assert_eq!((seen.early_timeouts, seen.begun_by_stat), (0, 1));
}

/// XSTP-13.1.1: about a third of a window is lost before the sender detects the blackout; without
/// probing it sends all of it.
#[test]
fn an_early_timeout_saves_a_third_of_the_window() {
    let lost = [true, false].map(|on| {
        let probing = on.then(ProbingConfig::default);
        let config = SessionConfig { initial_window: 64, ..SessionConfig::xstp_2003() }
            .with_probing(probing);
        let mut wire = Wire::new(&config);
        wire.lost.extend([(CLIENT, at(2_000), at(4_000)), (SERVER, at(2_000), at(4_000))]);
        wire.run(at(1_995));
        let before = wire.session().statistics().data_sent;
        wire.run(at(4_000));
        wire.session().statistics().data_sent - before
    });
    assert!(lost[0] * 3 < lost[1] * 2, "{lost:?}");
}

/// XSTP-13.4.6: without immediate recovery every verdict is treated as congestion.
#[test]
fn immediate_recovery_can_be_switched_off() {
    let probing = Some(ProbingConfig { immediate_recovery: false, ..ProbingConfig::default() });
    let mut wire = loses_a_window(&three().with_probing(probing));
    wire.run(at(1_405));
    let seen = wire.session().statistics().probing;
    assert_eq!((seen.recovered, seen.congested), (0, 1));
    assert_eq!(wire.session().congestion_window(), Some(2_000), "at least two packets");
}

#[test]
fn a_cycle_ends_with_the_session() {
    let mut wire = loses_a_window(&three());
    wire.run(at(1_250));
    assert!(wire.session().is_probing());
    wire.ends[CLIENT].session.abort(at(1_250));
    assert!(!wire.session().is_probing());
}

/// XSTP-13.3.3, XSTP-13.4.2: the first part of a list in two STATs ends the cycle; the second only
/// causes retransmissions.
#[test]
fn a_list_in_several_stats_counts_once() {
    let mut wire = loses_a_window(&three());
    wire.run(at(1_390));
    let map = wire.session().probing.map();
    let seq = map[1].unwrap().0;
    let part = |below, runs| {
        let echo = Echo { seq, timestamp: 0 };
        let received_below = Seq24::new(below);
        let stat = Stat { echo, received_below, window: 64, arrival: None, runs };
        Segment::stat(Seq24::ZERO, stat).with_timestamp(1_400)
    };
    let client = &mut wire.ends[CLIENT];
    client.receive(at(1_400), &part(15, RunList::new(0, &[1]).unwrap())).unwrap();
    assert_eq!(client.send_text(at(1_400)), ["SD+POLL 15 poll<18"]);
    client.receive(at(1_400), &part(15, RunList::new(1, &[2]).unwrap())).unwrap();
    assert!(!client.session.is_probing());
    assert_eq!(client.send_text(at(1_400))[..2], ["SD 16", "SD 17"]);
}

/// XSTP-7.3.7
#[test]
fn retransmissions_start_with_a_burst() {
    let config = SessionConfig { initial_window: 32, ..SessionConfig::xstp_2003() };
    let mut wire = Wire::new(&config);
    wire.lost.push((CLIENT, at(1_000), at(1_150)));
    wire.run(at(3_000));
    let log = wire.since(1_160);
    // The STAT that ended the cycle, and the packets retransmitted with it.
    let stat = log.iter().rposition(|line| line.ends_with("miss 184+24")).unwrap();
    let when = log[stat].split(' ').next().unwrap();
    let burst = log[stat + 1..].iter().take_while(|line| line.starts_with(when)).count();
    assert_eq!(wire.session().statistics().data_retransmitted, 24);
    assert_eq!(burst, 9, "eight, and the first of the paced ones");
}

/// XSTP-8.2.4, XSTP-10.3.5
#[test]
fn short_bursts_are_sent_back_to_back_and_the_first_ends_with_a_poll() {
    for (window, spread) in [(7, false), (8, true)] {
        let config = SessionConfig {
            initial_window: window,
            number_window: window,
            ..SessionConfig::xstp_2003()
        };
        let mut wire = Wire::new(&config);
        wire.run(at(1_390));
        let log = wire.since(1_000);
        let data: Vec<&String> =
            log.iter().filter(|line| line.contains("SD") && line.contains('>')).collect();
        let burst = data.iter().filter(|line| line.starts_with(&data[0][..4])).count();
        assert_eq!(burst < window as usize, spread, "window {window}: {log:?}");
        if !spread {
            let poll = data.iter().position(|line| line.contains("POLL"));
            assert_eq!(poll, Some(window as usize - 1), "{data:?}");
        }
    }
}

/// XSTP-13.1.1: without loss, on a path of any constant RTT, POLLs and STATs alternate.
#[test]
fn polls_and_stats_alternate_on_a_constant_path() {
    for micros in [1_000, 7_001, 49_999, 100_000, 123_457, 400_003] {
        let mut wire = Wire::new(&SessionConfig::xstp_2003());
        wire.delays[0].1 = Span::from_micros(micros);
        wire.run(at(micros / 10));
        let seen = wire.session().statistics();
        assert_eq!(seen.probing, ProbingStatistics::default(), "{micros} us one-way delay");
        assert!(seen.data_sent > 1_000 || seen.polls_sent > 100, "{seen:?}");
    }
}

/// XSTP-13.1.1: after a blackout the RTT exceeds SRTT. Probes of the cycle that are still in flight
/// cause no early timeout of the first regular POLLs.
#[test]
fn probes_in_flight_cause_no_early_timeout_after_a_cycle() {
    let config = SessionConfig { initial_window: 32, ..SessionConfig::xstp_2003() };
    let mut wire = Wire::new(&config);
    wire.lost.extend([(CLIENT, at(2_000), at(3_000)), (SERVER, at(2_000), at(3_000))]);
    wire.delays.push((at(2_000), Span::from_millis(150)));
    let mut millis = 3_000;
    while wire.session().statistics().probing.congested == 0 {
        millis += 1;
        wire.run(at(millis));
        assert!(millis < 5_000);
    }
    wire.run(at(millis + 200));
    let seen = wire.session().statistics().probing;
    assert_eq!(seen.early_timeouts, 1, "{seen:?}");
}

/// XSTP-13.2.6: a peer with bounded control traffic may answer only every other probe.
#[test]
fn skipped_probes_double_the_probe_interval() {
    let probing = ProbingConfig { before_loss: false, ..ProbingConfig::default() };
    let cases: [(Option<u32>, &[&str]); 2] = [
        (None, &["1200 > POLL poll<72", "1400 > POLL poll<72", "1600 > POLL poll<72"]),
        (Some(4), &["1200 > POLL poll<72", "1400 > POLL poll<72", "1800 > POLL poll<72"]),
    ];
    for (divisor, expected) in cases {
        let mut config = twelve(probing);
        config.gateway.low_rate = divisor.map(|control_divisor| LowRatePolicy { control_divisor });
        let mut wire = loses_one(&config, 100);
        // The first probe, sent at 1,200 ms, is not answered.
        wire.lost.push((SERVER, at(1_280), at(1_320)));
        wire.run(at(1_999));
        let lines = wire.since(1_190);
        let probes: Vec<&String> = lines
            .iter()
            .take_while(|line| !line.contains("> SD"))
            .filter(|line| line.contains("> POLL"))
            .collect();
        assert_eq!(probes, expected, "{divisor:?}");
    }
}
