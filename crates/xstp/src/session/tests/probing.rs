//! Figures 1 to 4 of Elaasar et al. 2003, packet for packet.
//!
//! A window of three packets at an RTT of 200 ms is sent in one burst, whose last packet carries a
//! POLL; two standalone POLLs follow at intervals of a third of an RTT. So the log has a STAT and a
//! POLL every 67 ms, as in the figures.

use super::wire::{CLIENT, SERVER, Wire};
use super::*;
use alloc::string::String;

/// Settings of the paper with a constant window of three packets.
pub(super) fn three() -> SessionConfig {
    SessionConfig { initial_window: 3, number_window: 3, ..SessionConfig::xstp_2003() }
}

/// A path on which the window sent at 1,000 ms is lost.
pub(super) fn loses_a_window(config: &SessionConfig) -> Wire {
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
        // The last RTT before the loss: POLL and STAT alternate.
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
        // A STAT was due, and none was received since the last POLL: this POLL is PROBE 1.
        "1200 > POLL poll<18",
        // Responses to POLLs sent before the cycle; the second one replaces the first in its slot.
        "1267 < STAT have<15 miss 15+3",
        "1333 < STAT have<15 miss 15+3",
        // Response to PROBE 1: two consecutive slots with an unchanged RTT, after one RTT.
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

/// Figure 1: a lost STAT is detected after at least a third of an RTT. XSTP-13.1.1
#[test]
fn a_lost_stat_is_detected_at_the_next_poll() {
    let mut wire = Wire::new(&three());
    // The STAT for the POLL of 1,000 ms.
    wire.lost.push((SERVER, at(1_095), at(1_105)));
    wire.run(at(1_290));
    let expected = [
        "1133 < STAT have<15",
        "1133 > POLL poll<18",
        "1200 > POLL poll<18",
        // Only a STAT was lost.
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
        // It has no gaps, so no packet was lost: sending continues as before.
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
        // PROBE 1 was lost; PROBE 2 is sent although it is unanswered.
        (1_405, &["200", "-", "-"]),
        // The response to PROBE 2 is not enough: the slot of PROBE 1 is before it.
        (1_605, &["200", "-", "200", "-"]),
        // With the response to PROBE 3 there are two consecutive ones.
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

/// Figure 4: a full map. XSTP-13.2.3, XSTP-13.3.2, XSTP-13.3.3
#[test]
fn figure_4_a_full_map_discards_the_oldest_slot() {
    let mut wire = Wire::new(&three());
    // A blackout of 1.5 s in both directions.
    wire.lost.extend([(CLIENT, at(1_000), at(2_500)), (SERVER, at(1_000), at(2_500))]);
    // The last STAT arrives at 1,067 ms, so PROBE 1 is sent at 1,133 ms.
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
    assert_eq!(probes, expected, "one per RTT, without back-off");
}
