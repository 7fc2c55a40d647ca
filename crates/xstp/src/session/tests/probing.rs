//! Figures 1 to 4 of Elaasar et al. 2003, packet for packet, and the clauses around them.
//!
//! A window of three packets over a round trip of 200 ms: each STAT brings out one packet, and
//! the POLL that is due at the same time rides on it. So a line in a log is a third of a round
//! trip after the one before.

use super::*;
use crate::session::{Halve, LossRoundTrip, ProbingConfig, ProbingStatistics};
use crate::wire::{Echo, RunList, Stat, Ustat};
use alloc::format;
use alloc::string::{String, ToString};

/// Two ends and a network that does what a script says.
struct Wire {
    now: Instant,
    ends: [Hand; 2],
    /// From when on a segment takes how long.
    delays: Vec<(Instant, Span)>,
    /// What the client, or the server, sends within these times is lost.
    lost: Vec<(usize, Instant, Instant)>,
    /// This packet of the client's is lost once.
    only_lost: Option<Seq24>,
    flying: BTreeMap<(Instant, usize), (usize, Vec<u8>)>,
    log: Vec<String>,
}

const CLIENT: usize = 0;
const SERVER: usize = 1;

impl Wire {
    fn new(config: &SessionConfig) -> Self {
        let mut client = Hand::client(config);
        client.upper.push_many(10_000, 1_000);
        Self {
            now: at(0),
            ends: [client, Hand::server(config)],
            delays: alloc::vec![(at(0), Span::from_millis(100))],
            lost: Vec::new(),
            only_lost: None,
            flying: BTreeMap::new(),
            log: Vec::new(),
        }
    }

    fn run(&mut self, until: Instant) {
        loop {
            for from in [CLIENT, SERVER] {
                for octets in self.ends[from].send(self.now) {
                    self.enter(from, octets);
                }
            }
            let arrival = self.flying.keys().next().map(|&(at, _)| at);
            let timers = self.ends.iter().filter_map(|end| end.session.poll_timeout());
            let next = timers.chain(arrival).min().filter(|&next| next < until);
            let Some(next) = next else { break };
            self.now = self.now.max(next);
            while let Some(entry) = self.flying.first_entry().filter(|e| e.key().0 <= self.now) {
                let (to, octets) = entry.remove();
                if to == CLIENT {
                    self.write('<', &octets, false);
                }
                self.ends[to].hear_all(self.now, &[octets]);
            }
        }
        self.now = until;
    }

    /// What the client sends or gets, in whole milliseconds.
    fn write(&mut self, arrow: char, octets: &[u8], lost: bool) {
        let profile = self.ends[CLIENT].session.config.profile;
        let what = describe(&Segment::decode(&profile, octets).unwrap());
        let note = if lost { " lost" } else { "" };
        let millis = (self.now.as_nanos() + 500_000) / 1_000_000;
        self.log.push(format!("{millis} {arrow} {what}{note}"));
    }

    fn enter(&mut self, from: usize, octets: Vec<u8>) {
        let now = self.now;
        let mut lost =
            self.lost.iter().any(|&(f, start, end)| f == from && now >= start && now < end);
        let segment = Segment::decode(&self.ends[from].session.config.profile, &octets).unwrap();
        if from == CLIENT && segment.payload().is_some() && self.only_lost == Some(segment.number())
        {
            self.only_lost = None;
            lost = true;
        }
        if from == CLIENT {
            self.write('>', &octets, lost);
        }
        if !lost {
            let delay = self.delays.iter().rev().find(|&&(from, _)| now >= from).unwrap().1;
            self.flying.insert((now + delay, self.flying.len()), (1 - from, octets));
        }
    }

    fn session(&self) -> &Session {
        &self.ends[CLIENT].session
    }

    /// The log from then on, which is forgotten.
    fn since(&mut self, millis: u64) -> Vec<String> {
        let log = core::mem::take(&mut self.log);
        let time = |line: &String| line.split(' ').next().unwrap().parse::<u64>().unwrap();
        log.into_iter().filter(|line| time(line) >= millis).collect()
    }

    /// The map's round trips in milliseconds: `-` while unanswered, `pre` the reserved slot.
    fn map(&self) -> Vec<String> {
        let text = |slot: Option<(u32, Option<Span>)>| match slot {
            None => "pre".to_string(),
            Some((_, None)) => "-".to_string(),
            Some((_, Some(round_trip))) => round_trip.as_millis().to_string(),
        };
        self.session().probing_map().into_iter().map(text).collect()
    }
}

/// The paper's settings with a window of three packets from the start.
fn three() -> SessionConfig {
    SessionConfig { initial_window: 3, number_window: 3, ..SessionConfig::xstp_2003() }
}

/// A window of three that loses all of it at 1,000 ms.
fn loses_a_window(config: &SessionConfig) -> Wire {
    let mut wire = Wire::new(config);
    wire.lost.push((CLIENT, at(1_000), at(1_010)));
    wire
}

/// Figure 1. XSTP-13.1.1, XSTP-13.2.1, XSTP-13.2.2, XSTP-13.3.4, XSTP-13.4.2
#[test]
fn figure_1_an_early_timeout_after_a_loss() {
    let mut wire = loses_a_window(&three());
    wire.run(at(1_850));
    let expected = [
        // The last round before: POLL and STAT take turns.
        "800 < STAT have<12",
        "800 > SD 12",
        "800 > SD 13",
        "800 > SD+POLL 14 poll<15",
        "867 < STAT have<12",
        "867 > POLL poll<15",
        "933 < STAT have<12",
        "933 > POLL poll<15",
        "1000 < STAT have<15",
        "1000 > SD 15 lost",
        "1000 > SD 16 lost",
        "1000 > SD+POLL 17 poll<18 lost",
        "1067 < STAT have<15",
        "1067 > POLL poll<18",
        "1133 < STAT have<15",
        "1133 > POLL poll<18",
        // A STAT was due, and none has come since the last POLL: this one is PROBE 1.
        "1200 > POLL poll<18",
        // Answers to POLLs from before the cycle; the second takes the first one's slot.
        "1267 < STAT have<15 miss 15+3",
        "1333 < STAT have<15 miss 15+3",
        // PROBE 1's: two neighbours, as fast as before. One round trip was enough.
        "1400 < STAT have<15 miss 15+3",
        "1400 > SD 15",
        "1400 > SD 16",
        "1400 > SD+POLL 17 poll<18",
        "1467 > POLL poll<18",
        "1533 > POLL poll<18",
        "1600 < STAT have<18",
        "1600 > SD 18",
        "1600 > SD 19",
        "1600 > SD+POLL 20 poll<21",
        "1667 < STAT have<18",
        "1667 > POLL poll<21",
        "1733 < STAT have<18",
        "1733 > POLL poll<21",
        "1800 < STAT have<21",
        "1800 > SD 21",
        "1800 > SD 22",
        "1800 > SD+POLL 23 poll<24",
    ];
    assert_eq!(wire.since(800), expected);
    let seen = wire.session().statistics().probing;
    assert_eq!((seen.early_timeouts, seen.recovered, seen.probes_sent), (1, 1, 1));
    assert_eq!(seen.time.as_millis(), 200);
    assert_eq!(wire.session().congestion_window(), Some(3_000));
}

/// Figure 1: a STAT that is lost on its way back is missed after a third of a round trip at
/// least. XSTP-13.1.1
#[test]
fn a_lost_stat_is_missed_at_the_next_poll() {
    let mut wire = Wire::new(&three());
    // The answer to the POLL of 1,000 ms.
    wire.lost.push((SERVER, at(1_095), at(1_105)));
    wire.run(at(1_290));
    let expected = [
        "1133 < STAT have<15",
        "1133 > POLL poll<18",
        "1200 > POLL poll<18",
        // Nothing is missing but a STAT.
        "1267 < STAT have<18",
        "1267 > SD 18",
        "1267 > SD 19",
        "1267 > SD+POLL 20 poll<21",
    ];
    assert_eq!(wire.since(1_100), expected);
    assert_eq!(wire.session().statistics().probing.premature, 1);
}

/// Figure 2. XSTP-13.1.1, XSTP-13.4.1
#[test]
fn figure_2_a_false_early_timeout_when_the_round_trip_grows() {
    let mut wire = Wire::new(&three());
    wire.delays.push((at(1_090), Span::from_millis(120)));
    wire.run(at(1_340));
    let expected = [
        "1000 < STAT have<15",
        "1000 > SD 15",
        "1000 > SD 16",
        "1000 > SD+POLL 17 poll<18",
        "1067 < STAT have<15",
        "1067 > POLL poll<18",
        "1133 < STAT have<15",
        "1133 > POLL poll<18",
        // The STAT for the POLL of 1,000 ms takes 20 ms longer: PROBE 1.
        "1200 > POLL poll<18",
        // It has no gaps, so nothing was lost: data goes on at once, as before.
        "1220 < STAT have<18",
        "1220 > SD 18",
        "1220 > SD 19",
        "1220 > SD+POLL 20 poll<21",
        "1287 < STAT have<18",
        "1288 > POLL poll<21",
    ];
    assert_eq!(wire.since(1_000), expected);
    let seen = wire.session().statistics().probing;
    assert_eq!((seen.early_timeouts, seen.premature, seen.probes_sent), (1, 1, 1));
    assert_eq!(wire.session().congestion_window(), Some(3_000));
}

/// Figures 3 and 4: the phases of a cycle, on the wire and in the map. XSTP-13.3.1 to
/// XSTP-13.3.5
#[test]
fn figures_3_and_4_the_phases_of_a_cycle() {
    let mut wire = loses_a_window(&three());
    wire.lost.push((CLIENT, at(1_195), at(1_205)));
    wire.run(at(1_195));
    assert!(wire.map().is_empty() && !wire.session().is_probing());
    let phases: [(u64, &[&str]); 6] = [
        (1_205, &["pre", "-"]),
        (1_270, &["200", "-"]),
        (1_340, &["200", "-"]),
        // PROBE 1 was lost. PROBE 2 goes although nothing has answered it.
        (1_405, &["200", "-", "-"]),
        // PROBE 2's answer alone is not enough, as PROBE 1 lies between it and the first slot.
        (1_605, &["200", "-", "200", "-"]),
        // PROBE 3's is.
        (1_805, &[]),
    ];
    for (millis, map) in phases {
        wire.run(at(millis));
        assert_eq!(wire.map(), map, "at {millis} ms");
    }
    let expected = [
        "1200 > POLL poll<18 lost",
        "1267 < STAT have<15 miss 15+3",
        "1333 < STAT have<15 miss 15+3",
        "1400 > POLL poll<18",
        "1600 < STAT have<15 miss 15+3",
        "1600 > POLL poll<18",
        "1800 < STAT have<15 miss 15+3",
        "1800 > SD 15",
        "1800 > SD 16",
        "1800 > SD+POLL 17 poll<18",
    ];
    assert_eq!(wire.since(1_200), expected);
}

/// Figure 4: what happens when the map is full. XSTP-13.2.3, XSTP-13.3.2, XSTP-13.3.3
#[test]
fn figure_4_the_oldest_slots_make_room() {
    let mut wire = Wire::new(&three());
    // Nothing passes for a second and a half, either way.
    wire.lost.extend([(CLIENT, at(1_000), at(2_500)), (SERVER, at(1_000), at(2_500))]);
    // STATs stop with that of 1,067 ms, so PROBE 1 goes at 1,133 ms.
    let phases: [(u64, &[&str]); 8] = [
        (1_150, &["pre", "-"]),
        (1_350, &["pre", "-", "-"]),
        (1_550, &["pre", "-", "-", "-"]),
        (1_750, &["-", "-", "-", "-"]),
        (2_350, &["-", "-", "-", "-"]),
        (2_550, &["-", "-", "-", "-"]),
        (2_750, &["-", "-", "200", "-"]),
        (2_950, &[]),
    ];
    for (millis, map) in phases {
        wire.run(at(millis));
        assert_eq!(wire.map(), map, "at {millis} ms");
    }
    let probes: Vec<String> = wire.since(1_130).into_iter().take(9).collect();
    let expected = [
        "1133 > POLL poll<18 lost",
        "1333 > POLL poll<18 lost",
        "1533 > POLL poll<18 lost",
        "1733 > POLL poll<18 lost",
        "1933 > POLL poll<18 lost",
        "2133 > POLL poll<18 lost",
        "2333 > POLL poll<18 lost",
        "2533 > POLL poll<18",
        "2733 < STAT have<15 miss 15+3",
    ];
    assert_eq!(probes, expected, "one each round trip, without back-off");
}

/// A window of twelve, so that USTATs tell of gaps and halving can be seen.
fn twelve(probing: ProbingConfig) -> SessionConfig {
    SessionConfig {
        initial_window: 12,
        number_window: 12,
        burst_threshold: 64,
        probing: Some(probing),
        ..SessionConfig::xstp_2003()
    }
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
    let second = wire.session().sender.next() + 1;
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
    let missing = Seq24::of_count(wire.session().sender.next() - 11);
    let ustat = Ustat::new(missing, RunList::new(0, &[1]).unwrap()).unwrap();
    let ustat = Segment::ustat(Seq24::ZERO, ustat).stamped(1_190);
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

/// XSTP-13.4.6
#[test]
fn what_acknowledgements_added_meanwhile_is_kept_or_not() {
    let windows = [false, true].map(|restore_window| {
        let probing = Some(ProbingConfig { restore_window, ..ProbingConfig::default() });
        let mut wire = Wire::new(&SessionConfig { number_window: 64, probing, ..three() });
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
    let mut wire = loses_a_window(&SessionConfig { probing, ..three() });
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
        let config = SessionConfig { initial_window: 64, probing, ..SessionConfig::xstp_2003() };
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
    let mut wire = loses_a_window(&SessionConfig { probing, ..three() });
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
    let map = wire.session().probing_map();
    let count = map[1].unwrap().0;
    let part = |below, runs| {
        let echo = Echo { count, stamp: 0 };
        let received_below = Seq24::new(below);
        let stat = Stat { echo, received_below, window: 64, arrival: None, runs };
        Segment::stat(Seq24::ZERO, stat).stamped(1_400)
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
