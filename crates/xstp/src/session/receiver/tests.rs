//! Tests of the receiver clause by clause, and against its model.

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

fn poll(receiver: &mut Receiver, seq: u32, next: u32) -> bool {
    receiver.on_poll(at(0), seq.wrapping_mul(10), Poll { seq, next: Seq24::new(next) })
}

/// Gaps of the next USTAT: first packet and length.
fn gaps(receiver: &mut Receiver, now: Instant) -> Vec<(u32, u32)> {
    receiver
        .take_ustat(now, &SEALED, 1000)
        .into_iter()
        .flat_map(|ustat| ustat.gaps().collect::<Vec<_>>())
        .map(|gap| (gap.start.value(), gap.len))
        .collect()
}

/// Runs of the next STAT: first packet, length, missing.
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

// XSTP-5.2.1
#[test]
fn a_threshold_of_one_reports_gaps_immediately() {
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
fn reordering_below_the_threshold_is_not_reported() {
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
fn a_newer_gap_reports_the_older_one() {
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
fn only_missing_packets_of_a_gap_are_reported() {
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
    assert_eq!(receiver.poll_timeout(), Some(at(20)), "the hold time of the first gap");
    assert_eq!(gaps(&mut receiver, at(19)), []);
    assert_eq!(gaps(&mut receiver, at(20)), [(1, 1), (5, 2)]);
    assert_eq!(receiver.poll_timeout(), None);
}

// XSTP-5.2.6
#[test]
fn a_stat_cancels_a_held_ustat() {
    let mut receiver = receiver(1, 20);
    feed(&mut receiver, [0, 2, 4]);
    // VT(S) of the POLL is 3: packet 3 was sent after it, so that the STAT does not cause its
    // retransmission.
    assert!(poll(&mut receiver, 1, 3));
    assert_eq!(runs(&mut receiver, 64), [(1, 1, true), (2, 1, false), (3, 1, true), (4, 1, false)]);
    assert_eq!(gaps(&mut receiver, at(20)), [(3, 1)]);
    feed(&mut receiver, [6]);
    assert!(poll(&mut receiver, 2, 7));
    assert_eq!(receiver.poll_timeout(), None);
    // Without a hold time the gap is reported as published.
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
    assert!(poll(&mut receiver, 3, 5), "sequence numbers wrap");
    assert_eq!(receiver.statistics().stale_polls, 2);
    let stat = receiver.take_stat(&SEALED, 64).unwrap();
    assert_eq!((stat.echo.seq, stat.echo.timestamp), (3, 30), "the newest is answered");
    assert!(!receiver.stat_due());
}

// XSTP-5.3.2
#[test]
fn a_poll_reveals_loss_at_the_tail() {
    let mut receiver = receiver(3, 0);
    feed(&mut receiver, [0, 1]);
    poll(&mut receiver, 1, 4);
    assert_eq!(runs(&mut receiver, 64), [(2, 2, true)]);
    assert!(!receiver.ustat_due(at(1000)), "the STAT has reported it");
    poll(&mut receiver, 2, 3);
    assert_eq!(receiver.highest(), Seq24::new(4), "VR(H) does not decrease");
    poll(&mut receiver, 3, WINDOW + 5);
    assert_eq!(receiver.highest(), Seq24::new(2 + WINDOW), "nor exceeds VR(MR)");
}

// XSTP-5.3.3, XSTP-5.3.4
#[test]
fn a_long_list_takes_several_stats() {
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
    // Two octets per gap in 31 of 64 octets; 101 gaps.
    assert_eq!(arrivals.len(), 7);
    assert_eq!(arrivals[0], Some(1500));
    assert!(arrivals[1..].iter().all(Option::is_none), "reported once");
}

// XSTP-5.4.1, XSTP-5.4.2
#[test]
fn an_advertised_window_stays_valid() {
    let mut receiver = receiver(3, 0);
    let window = |receiver: &mut Receiver, seq| {
        poll(receiver, seq, 0);
        receiver.take_stat(&SEALED, 64).unwrap().window
    };
    receiver.set_window(10);
    assert_eq!(window(&mut receiver, 1), WINDOW, "not revoked");
    feed(&mut receiver, 0..995);
    assert_eq!(window(&mut receiver, 2), 10);
    receiver.set_window(20);
    assert_eq!(
        receiver.on_data(at(0), Seq24::new(1005)),
        Accept::BeyondWindow,
        "not advertised yet"
    );
    assert_eq!(window(&mut receiver, 3), 20);
    assert_eq!(receiver.on_data(at(0), Seq24::new(1005)), Accept::New);
    receiver.set_window(0);
    feed(&mut receiver, (995..1015).filter(|&n| n != 1005));
    assert_eq!(window(&mut receiver, 4), 0, "closed");
}

// XSTP-5.3.5
#[test]
fn a_stat_reports_the_arrival_of_its_poll() {
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
fn the_cache_delivers_octets_in_order() {
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

/// Two million packets with 500 gaps at any time take about a second. With a cost in proportion to
/// the gaps they would take minutes.
#[test]
fn the_cost_of_a_packet_is_independent_of_the_number_of_gaps() {
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
        // Lost packets are received 5,000 packets later.
        if let Some(late) = number.checked_sub(5000).filter(|late| late % 9 == 4) {
            assert_eq!(receiver.on_data(now, Seq24::new(late)), Accept::New);
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
    fn the_receiver_matches_its_model(
        setting in any::<[u8; 4]>(),
        steps in vec_of(any::<[u8; 3]>(), 0..400),
    ) {
        let script: Vec<u8> = setting.into_iter().chain(steps.into_iter().flatten()).collect();
        model::check(&script);
    }
}
