//! Probing map of figure 4 of the paper; `session/tests/probing.rs` tests whole cycles.

use super::map::ProbeMap;
use super::*;
use alloc::vec::Vec;

const MS: Span = Span::from_millis(1);

/// Slots in milliseconds: -1 for an unanswered probe, -2 for the empty reserved slot.
fn slots(map: &ProbeMap) -> Vec<i64> {
    map.slots()
        .map(|slot| match slot.map(|probe| probe.rtt) {
            None => -2,
            Some(None) => -1,
            Some(Some(rtt)) => rtt.as_millis() as i64,
        })
        .collect()
}

/// XSTP-13.3.1, XSTP-13.3.2
#[test]
fn the_first_slot_is_kept_for_earlier_polls_until_the_map_is_full() {
    let mut map = ProbeMap::new(4, true);
    assert_eq!(slots(&map), [-2]);
    for seq in 11..=13 {
        map.on_sent(seq);
    }
    assert_eq!(slots(&map), [-2, -1, -1, -1]);
    map.on_sent(14);
    assert_eq!(slots(&map), [-1; 4], "PROBE 4 replaces the reserved slot");
    assert!(!map.on_earlier(9, MS), "the reserved slot was discarded");
    map.on_sent(15);
    assert!(!map.on_response(11, MS), "PROBE 1 was discarded");
    assert!(map.on_response(12, MS * 7));
    assert_eq!(slots(&map), [7, -1, -1, -1]);
}

/// XSTP-13.3.4
#[test]
fn the_newest_response_to_an_earlier_poll_is_kept() {
    let mut map = ProbeMap::new(4, true);
    map.on_sent(11);
    assert!(map.on_earlier(9, MS * 5));
    assert!(map.on_earlier(10, MS * 6));
    assert_eq!(slots(&map), [6, -1]);
}

/// XSTP-13.3.5
#[test]
fn only_consecutive_slots_give_a_verdict() {
    let mut map = ProbeMap::new(4, true);
    for seq in 11..=13 {
        map.on_sent(seq);
    }
    map.on_response(11, MS * 4);
    map.on_response(13, MS * 9);
    assert_eq!(slots(&map), [-2, 4, -1, 9]);
    assert_eq!(map.longest_of(2), None, "the probe between them was lost");
    assert_eq!(map.longest_of(1), Some(MS * 4));
    map.on_response(12, MS * 8);
    assert_eq!(map.longest_of(2), Some(MS * 8));
    assert_eq!(map.longest_of(3), Some(MS * 9));
    let mut map = ProbeMap::new(4, true);
    map.on_sent(11);
    map.on_earlier(10, MS * 5);
    map.on_response(11, MS * 4);
    assert_eq!(map.longest_of(2), Some(MS * 5), "the reserved slot is consecutive with PROBE 1");
}

/// XSTP-13.3.1
#[test]
fn the_reserved_slot_is_optional() {
    let mut map = ProbeMap::new(2, false);
    assert!(!map.on_earlier(9, MS));
    map.on_sent(11);
    map.on_sent(12);
    map.on_sent(13);
    assert_eq!(slots(&map), [-1, -1]);
    assert!(!map.on_response(11, MS));
}
