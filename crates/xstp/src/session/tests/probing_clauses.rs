//! What begins probing, what it does and how it ends, clause by clause. The figures of the paper
//! are next door.

use super::probing::{loses_a_window, three};
use super::wire::{CLIENT, SERVER, Wire};
use super::*;
use crate::session::{Halve, LossRoundTrip, ProbingConfig, ProbingStatistics};
use crate::wire::{Echo, RunList, Stat, Ustat};
use alloc::string::String;

/// A window of twelve, so that USTATs tell of gaps and halving can be seen.
fn twelve(probing: ProbingConfig) -> SessionConfig {
    let mut config = SessionConfig::xstp_2003().with_probing(Some(probing));
    (config.initial_window, config.number_window) = (12, 12);
    config.xstp.burst_threshold = 64;
    config
}

/// Loses the second packet of the window that starts at 1,000 ms; from then on everything takes
/// `later` each way.
fn loses_one(config: &SessionConfig, later: u64) -> Wire {
    let mut wire = Wire::new(config);
    wire.run(at(995));
    wire.delays.push((at(999), Span::from_millis(later)));
    // The window's packets leave together: the second of them is not put on the wire.
    wire.lost.push((CLIENT, at(999), at(1_001)));
    wire.run(at(999));
    let second = wire.session().sender.table.next() + 1;
    wire.lost.clear();
    wire.only_lost = Some(Seq24::of_count(second));
    wire
}

/// XSTP-13.1.2, XSTP-13.2.1: a USTAT with something to be sent again begins a cycle, and
/// nothing is sent again for it. XSTP-13.2.5: USTATs of a cycle are not looked at.
#[test]
fn a_ustat_begins_a_cycle_and_others_are_ignored_then() {
    let mut wire = loses_one(&twelve(ProbingConfig::default()), 100);
    wire.run(at(1_190));
    // The receiver's own USTAT comes at 1,200 ms with a STAT. This one overtook that.
    let missing = Seq24::of_count(wire.session().sender.table.next() - 11);
    let ustat = Ustat::new(missing, RunList::new(0, &[1]).unwrap()).unwrap();
    let ustat = Segment::ustat(Seq24::ZERO, ustat).with_timestamp(1_190);
    wire.ends[CLIENT].hear(at(1_190), &ustat).unwrap();
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

/// XSTP-13.1.2: a STAT with something to be sent again begins a cycle.
#[test]
fn a_stat_begins_a_cycle() {
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

/// The window in packets, the verdicts and the log after a loss at 1,000 ms with which the path
/// becomes as slow as `later` each way.
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
        assert!(end < 10_000, "it must end");
    }
    let window = wire.session().congestion_window().unwrap();
    (window * 100 / before, wire.session().statistics().probing)
}

/// XSTP-13.4.3, XSTP-13.4.4, XSTP-13.4.5
#[test]
fn round_trips_that_grew_are_congestion() {
    let config = ProbingConfig::default();
    let cases = [
        ("as fast as before", config, 100, (100, 1, 0, 0)),
        ("half as slow again", config, 150, (50, 0, 1, 0)),
        (
            "which is tolerated",
            ProbingConfig { tolerance_millionths: 500_000, ..config },
            150,
            (100, 1, 0, 0),
        ),
        (
            "but not more",
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
            "half of the flight",
            ProbingConfig { halve: Halve::Flight, ..config },
            150,
            (14, 0, 1, 0),
        ),
        // A false early timeout has measured the slower path before the loss is found.
        (
            "the last round trip",
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
fn what_acknowledgements_added_meanwhile_is_kept_or_not() {
    let windows = [false, true].map(|restore_window| {
        let probing = Some(ProbingConfig { restore_window, ..ProbingConfig::default() });
        let config = SessionConfig { number_window: 64, ..three() };
        let mut wire = Wire::new(&config.with_probing(probing));
        // The STAT that ends the cycle has all that the lost one would have acknowledged.
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

/// XSTP-13.1.1: what is lost before the sender notices is about a third of a window, where
/// without probing all of it goes.
#[test]
fn a_blackout_costs_a_part_of_the_window() {
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

/// XSTP-13.4.6: every verdict as if it were congestion, to see what immediate recovery is worth.
#[test]
fn immediate_recovery_can_be_switched_off() {
    let probing = Some(ProbingConfig { immediate_recovery: false, ..ProbingConfig::default() });
    let mut wire = loses_a_window(&three().with_probing(probing));
    wire.run(at(1_405));
    let seen = wire.session().statistics().probing;
    assert_eq!((seen.recovered, seen.congested), (0, 1));
    assert_eq!(wire.session().congestion_window(), Some(2_000), "two packets at least");
}

#[test]
fn a_cycle_ends_with_the_session() {
    let mut wire = loses_a_window(&three());
    wire.run(at(1_250));
    assert!(wire.session().is_probing());
    wire.ends[CLIENT].session.abort(at(1_250));
    assert!(!wire.session().is_probing());
}

/// XSTP-13.3.3, XSTP-13.4.2: of a list in two segments, the first ends the cycle, and the second
/// only has its part sent again.
#[test]
fn a_list_in_parts_counts_once() {
    let mut wire = loses_a_window(&three());
    wire.run(at(1_390));
    let map = wire.session().probing.map();
    let count = map[1].unwrap().0;
    let part = |below, runs| {
        let echo = Echo { seq: count, timestamp: 0 };
        let received_below = Seq24::new(below);
        let stat = Stat { echo, received_below, window: 64, arrival: None, runs };
        Segment::stat(Seq24::ZERO, stat).with_timestamp(1_400)
    };
    let client = &mut wire.ends[CLIENT];
    client.hear(at(1_400), &part(15, RunList::new(0, &[1]).unwrap())).unwrap();
    assert_eq!(client.said(at(1_400)), ["SD+POLL 15 poll<18"]);
    client.hear(at(1_400), &part(15, RunList::new(1, &[2]).unwrap())).unwrap();
    assert!(!client.session.is_probing());
    assert_eq!(client.said(at(1_400))[..2], ["SD 16", "SD 17"]);
}

/// XSTP-7.3.7
#[test]
fn of_much_that_is_missing_a_burst_goes_at_once() {
    let config = SessionConfig { initial_window: 32, ..SessionConfig::xstp_2003() };
    let mut wire = Wire::new(&config);
    wire.lost.push((CLIENT, at(1_000), at(1_150)));
    wire.run(at(3_000));
    let log = wire.since(1_160);
    // The last line of the STAT that ended the cycle, and what it has sent again.
    let told = log.iter().rposition(|line| line.ends_with("miss 184+24")).unwrap();
    let when = log[told].split(' ').next().unwrap();
    let together = log[told + 1..].iter().take_while(|line| line.starts_with(when)).count();
    assert_eq!(wire.session().statistics().data_retransmitted, 24);
    assert_eq!(together, 9, "eight, and the first of those that are spread");
}

/// XSTP-8.2.4, XSTP-10.3.5
#[test]
fn few_packets_go_back_to_back_and_the_last_of_the_first_asks() {
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
        let at_once = data.iter().filter(|line| line.starts_with(&data[0][..4])).count();
        assert_eq!(at_once < window as usize, spread, "window {window}: {log:?}");
        if !spread {
            let asking = data.iter().position(|line| line.contains("POLL"));
            assert_eq!(asking, Some(window as usize - 1), "{data:?}");
        }
    }
}

/// XSTP-13.1.1: where nothing is lost and the path stays as it is, POLLs and STATs take turns for
/// ever, whatever its length.
#[test]
fn turns_hold_on_a_path_that_does_not_change() {
    for micros in [1_000, 7_001, 49_999, 100_000, 123_457, 400_003] {
        let mut wire = Wire::new(&SessionConfig::xstp_2003());
        wire.delays[0].1 = Span::from_micros(micros);
        wire.run(at(micros / 10));
        let seen = wire.session().statistics();
        assert_eq!(seen.probing, ProbingStatistics::default(), "{micros} us each way");
        assert!(seen.data_sent > 1_000 || seen.polls_sent > 100, "{seen:?}");
    }
}

/// XSTP-13.1.1: after a blackout the path is slower than the smoothed round trip. The probes of
/// the cycle that are on their way make no early timeout of the first regular POLLs.
#[test]
fn turns_begin_anew_after_a_cycle() {
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

/// XSTP-13.2.6: where control has a bound the peer may answer every other probe only.
#[test]
fn probes_that_are_passed_over_make_the_next_ones_rarer() {
    let probing = ProbingConfig { before_loss: false, ..ProbingConfig::default() };
    let cases: [(Option<u32>, &[&str]); 2] = [
        (None, &["1200 > POLL poll<72", "1400 > POLL poll<72", "1600 > POLL poll<72"]),
        (Some(4), &["1200 > POLL poll<72", "1400 > POLL poll<72", "1800 > POLL poll<72"]),
    ];
    for (divisor, expected) in cases {
        let mut config = twelve(probing);
        config.gateway.low_rate = divisor.map(|control_divisor| LowRatePolicy { control_divisor });
        let mut wire = loses_one(&config, 100);
        // Of the probes from 1,200 ms on, 200 ms apart, the first one is not answered.
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
