//! The receiver against its clauses, and against the obvious one.

use super::*;
use proptest::collection::vec as vec_of;
use proptest::prelude::*;
use std::vec;

const SEALED: Profile = Profile::Sealed;
const WINDOW: u32 = 1000;

fn receiver(ustat_threshold: u32, hold_ms: u64) -> Receiver {
    let ustat_hold = Span::from_millis(hold_ms);
    let first = Seq24::ZERO;
    Receiver::new(&ReceiverConfig { first, window: WINDOW, ustat_threshold, ustat_hold })
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

fn feed(receiver: &mut Receiver, numbers: impl IntoIterator<Item = u32>) {
    for number in numbers {
        assert_eq!(receiver.on_data(at(0), Seq24::new(number)), Accept::New, "{number}");
    }
}

fn poll(receiver: &mut Receiver, count: u32, next: u32) -> bool {
    receiver.on_poll(at(0), count.wrapping_mul(10), Poll { seq: count, next: Seq24::new(next) })
}

/// The gaps of the next USTAT: first number and how many.
fn gaps(receiver: &mut Receiver, now: Instant) -> Vec<(u32, u32)> {
    receiver
        .take_ustat(now, &SEALED, 1000)
        .into_iter()
        .flat_map(|ustat| ustat.gaps().collect::<Vec<_>>())
        .map(|gap| (gap.start.value(), gap.len))
        .collect()
}

/// The runs of the next STAT: first number, how many, missing.
fn runs(receiver: &mut Receiver, room: usize) -> Vec<(u32, u32, bool)> {
    let stat = receiver.take_stat(&SEALED, room).expect("a STAT is due");
    stat.runs().map(|run| (run.start.value(), run.len, run.missing)).collect()
}

// XSTP-5.1.1, XSTP-5.1.2, XSTP-5.1.3
#[test]
fn each_packet_is_new_once() {
    let mut receiver = receiver(3, 0);
    feed(&mut receiver, [0, 2, 1]);
    assert_eq!(receiver.received_below(), Seq24::new(3));
    for number in [0, 1, 2] {
        assert_eq!(receiver.on_data(at(0), Seq24::new(number)), Accept::Duplicate);
    }
    assert_eq!(receiver.on_data(at(0), Seq24::new(WINDOW - 1)), Accept::New);
    assert_eq!(receiver.on_data(at(0), Seq24::new(WINDOW)), Accept::BeyondWindow);
    let far = Seq24::new(Seq24::HALF + 2);
    assert_eq!(receiver.on_data(at(0), far), Accept::BeyondWindow);
    assert_eq!(receiver.on_data(at(0), far.next()), Accept::Duplicate);
    assert_eq!(receiver.highest(), Seq24::new(WINDOW));
    let statistics =
        ReceiverStatistics { packets: 4, duplicates: 4, beyond_window: 2, stale_polls: 0, gaps: 2 };
    assert_eq!(receiver.statistics(), &statistics);
}

// XSTP-5.2.1: with a threshold of one a gap is told of as soon as it shows, and once.
#[test]
fn a_gap_is_told_of_at_once_where_order_is_kept() {
    let mut receiver = receiver(1, 0);
    feed(&mut receiver, 0..7);
    assert_eq!(receiver.poll_timeout(), None);
    feed(&mut receiver, [8]);
    assert_eq!(receiver.poll_timeout(), Some(at(0)));
    assert_eq!(gaps(&mut receiver, at(0)), [(7, 1)]);
    feed(&mut receiver, [9, 10, 11, 12]);
    assert!(!receiver.ustat_due(at(1000)));
}

// XSTP-5.2.2
#[test]
fn reordering_below_the_threshold_is_not_told_of() {
    let mut receiver = receiver(3, 0);
    feed(&mut receiver, [0, 3, 4]);
    assert!(!receiver.ustat_due(at(0)), "two later packets");
    feed(&mut receiver, [1, 2, 5, 6]);
    assert!(!receiver.ustat_due(at(0)), "the gap is filled");
    feed(&mut receiver, [8, 9, 10]);
    assert_eq!(gaps(&mut receiver, at(0)), [(7, 1)]);
}

// XSTP-5.2.3
#[test]
fn a_newer_gap_flushes_the_older_one() {
    let mut receiver = receiver(3, 0);
    feed(&mut receiver, [0, 2]);
    assert!(!receiver.ustat_due(at(0)));
    feed(&mut receiver, [5]);
    assert_eq!(gaps(&mut receiver, at(0)), [(1, 1)]);
    assert!(!receiver.ustat_due(at(0)));
    feed(&mut receiver, [6, 7]);
    assert_eq!(gaps(&mut receiver, at(0)), [(3, 2)]);
}

// XSTP-5.2.4
#[test]
fn only_what_is_missing_of_a_gap_is_told() {
    let mut receiver = receiver(3, 0);
    feed(&mut receiver, [0, 10, 4, 6, 7, 11, 12]);
    assert_eq!(gaps(&mut receiver, at(0)), [(1, 3), (5, 1), (8, 2)]);
}

// XSTP-5.2.5
#[test]
fn gaps_within_the_hold_share_a_ustat() {
    let mut receiver = receiver(1, 20);
    feed(&mut receiver, [0, 2]);
    assert_eq!(receiver.poll_timeout(), Some(at(20)));
    receiver.on_data(at(5), Seq24::new(4));
    receiver.on_data(at(19), Seq24::new(7));
    receiver.on_data(at(19), Seq24::new(3));
    assert_eq!(receiver.poll_timeout(), Some(at(20)), "the first gap's time");
    assert_eq!(gaps(&mut receiver, at(19)), []);
    assert_eq!(gaps(&mut receiver, at(20)), [(1, 1), (5, 2)]);
    assert_eq!(receiver.poll_timeout(), None);
}

// XSTP-5.2.6
#[test]
fn a_stat_makes_a_held_ustat_unnecessary() {
    let mut receiver = receiver(1, 20);
    feed(&mut receiver, [0, 2, 4]);
    // The POLL left after 3: its STAT cannot have 3 sent again if it was sent later.
    assert!(poll(&mut receiver, 1, 3));
    assert_eq!(runs(&mut receiver, 64), [(1, 1, true), (2, 1, false), (3, 1, true), (4, 1, false)]);
    assert_eq!(gaps(&mut receiver, at(20)), [(3, 1)]);
    feed(&mut receiver, [6]);
    assert!(poll(&mut receiver, 2, 7));
    assert_eq!(receiver.poll_timeout(), None);
    // Without a hold, the gap is told of as published.
    let mut receiver = self::receiver(3, 0);
    feed(&mut receiver, [0, 2, 3]);
    assert!(poll(&mut receiver, 1, 4));
    feed(&mut receiver, [4]);
    assert_eq!(gaps(&mut receiver, at(0)), [(1, 1)]);
}

// XSTP-5.3.1
#[test]
fn only_newer_polls_are_answered() {
    let mut receiver = receiver(3, 0);
    assert!(poll(&mut receiver, u32::MAX - 1, 0));
    assert!(!poll(&mut receiver, u32::MAX - 1, 5));
    assert!(!poll(&mut receiver, u32::MAX - 9, 5));
    assert_eq!(receiver.highest(), Seq24::ZERO);
    assert!(poll(&mut receiver, 3, 5), "counts wrap");
    assert_eq!(receiver.statistics().stale_polls, 2);
    let stat = receiver.take_stat(&SEALED, 64).unwrap();
    assert_eq!((stat.echo.seq, stat.echo.timestamp), (3, 30), "the newest is answered");
    assert!(!receiver.stat_due());
}

// XSTP-5.3.2
#[test]
fn a_poll_shows_what_is_lost_at_the_tail() {
    let mut receiver = receiver(3, 0);
    feed(&mut receiver, [0, 1]);
    poll(&mut receiver, 1, 4);
    assert_eq!(runs(&mut receiver, 64), [(2, 2, true)]);
    assert!(!receiver.ustat_due(at(1000)), "the STAT has told of it");
    poll(&mut receiver, 2, 3);
    assert_eq!(receiver.highest(), Seq24::new(4), "VR(H) never falls");
    poll(&mut receiver, 3, WINDOW + 5);
    assert_eq!(receiver.highest(), Seq24::new(2 + WINDOW), "nor passes VR(MR)");
}

// XSTP-5.3.3, XSTP-5.3.4
#[test]
fn a_stat_tells_everything_in_as_many_segments_as_it_takes() {
    let mut receiver = receiver(1000, 0);
    feed(&mut receiver, (0..300).filter(|n| n % 3 != 1));
    receiver.on_octets(1500);
    poll(&mut receiver, 1, 301);
    let mut seen = vec![];
    let mut arrivals = vec![];
    while let Some(stat) = receiver.take_stat(&SEALED, 64) {
        arrivals.push(stat.arrival.map(|arrival| arrival.octets));
        seen.extend(stat.runs().map(|run| (run.start.value(), run.len, run.missing)));
        assert_eq!(stat.received_below, Seq24::new(1));
    }
    let mut expected = vec![];
    for start in (1..300).step_by(3) {
        expected.push((start, 1, true));
        expected.push((start + 1, if start == 298 { 1 } else { 2 }, false));
    }
    expected.push((300, 1, true));
    assert_eq!(seen, expected);
    // 31 octets of 64 are left for two each time; a hundred gaps and the last one.
    assert_eq!(arrivals.len(), 7);
    assert_eq!(arrivals[0], Some(1500));
    assert!(arrivals[1..].iter().all(Option::is_none), "told once");
}

// XSTP-5.4.1, XSTP-5.4.2
#[test]
fn what_was_offered_stays_accepted() {
    let mut receiver = receiver(3, 0);
    let window = |receiver: &mut Receiver, count| {
        poll(receiver, count, 0);
        receiver.take_stat(&SEALED, 64).unwrap().window
    };
    receiver.set_window(10);
    assert_eq!(window(&mut receiver, 1), WINDOW, "not taken back");
    feed(&mut receiver, 0..995);
    assert_eq!(window(&mut receiver, 2), 10);
    receiver.set_window(20);
    assert_eq!(receiver.on_data(at(0), Seq24::new(1005)), Accept::BeyondWindow, "not yet told");
    assert_eq!(window(&mut receiver, 3), 20);
    assert_eq!(receiver.on_data(at(0), Seq24::new(1005)), Accept::New);
    receiver.set_window(0);
    feed(&mut receiver, (995..1015).filter(|&n| n != 1005));
    assert_eq!(window(&mut receiver, 4), 0, "closed");
}

// XSTP-5.3.5
#[test]
fn a_stat_tells_when_the_poll_came_and_what_came_before() {
    let mut receiver = receiver(3, 0);
    receiver.on_octets(u32::MAX);
    receiver.on_octets(3);
    let now = Instant::from_nanos((1 << 32) * 1000 + 5_999);
    receiver.on_poll(now, 9, Poll { seq: 1, next: Seq24::ZERO });
    receiver.on_octets(1000);
    let arrival = receiver.take_stat(&SEALED, 64).unwrap().arrival;
    assert_eq!(arrival, Some(Arrival { at: 5, octets: 2 }));
}

// XSTP-5.5.1
#[test]
fn a_cache_puts_bytes_in_order() {
    let first = Seq24::new(Seq24::MODULUS - 1);
    let mut cache = ReceiveCache::new(first, 4);
    let mut out = [0; 4];
    cache.insert(first.add(2), b"def");
    assert_eq!((cache.read(&mut out), cache.free()), (0, 4));
    cache.insert(first, b"abc");
    cache.insert(first.next(), b"");
    assert_eq!((cache.is_empty(), cache.free()), (false, 2));
    assert_eq!((cache.read(&mut out), &out), (4, b"abcd"));
    assert_eq!((cache.free(), cache.read(&mut out)), (3, 2));
    assert_eq!((cache.is_empty(), cache.free()), (true, 4));
}

/// With hundreds of gaps open, what one packet costs does not depend on where it lands: two
/// million packets with 500 gaps among them take a moment, not minutes.
#[test]
fn many_gaps_cost_little() {
    let mut receiver = receiver(3, 20);
    receiver.set_window(8000);
    poll(&mut receiver, 0, 0);
    receiver.take_stat(&SEALED, 64);
    let mut filled = 0;
    for number in 0..2_000_000u32 {
        let now = Instant::from_nanos(u64::from(number) * 240_000);
        if number % 9 != 4 {
            assert_eq!(receiver.on_data(now, Seq24::new(number)), Accept::New);
        }
        // What was lost comes again 5,000 packets later.
        if let Some(again) = number.checked_sub(5000).filter(|again| again % 9 == 4) {
            assert_eq!(receiver.on_data(now, Seq24::new(again)), Accept::New);
            filled += 1;
        }
        while receiver.take_ustat(now, &SEALED, 1400).is_some() {}
        if number % 833 == 0 {
            receiver.on_poll(now, number, Poll { seq: 1 + number, next: Seq24::new(number + 1) });
            while receiver.take_stat(&SEALED, 1400).is_some() {}
        }
    }
    assert!(filled > 200_000 && !receiver.is_complete());
}

proptest! {
    #[test]
    fn it_does_what_the_obvious_one_does(
        setting in any::<[u8; 4]>(),
        steps in vec_of(any::<[u8; 3]>(), 0..400),
    ) {
        let script: Vec<u8> = setting.into_iter().chain(steps.into_iter().flatten()).collect();
        model::check(&script);
    }
}
