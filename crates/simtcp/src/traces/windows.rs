//! Windows, round trip by round trip.

use super::wire::Wire;
use crate::{AfterIdle, DelayedAck, Estimator, InitialWindow, RtoConfig, State, TcpConfig};
use std::vec::Vec;
use units::{BitRate, Instant, RngStream, Serializer, Span};

const MSS: u64 = 1_000;
const ROUND: Span = Span::from_millis(100);

/// Segments of 1000 octets, each acknowledged immediately, an initial window of one segment.
pub(super) fn plain(base: &TcpConfig) -> TcpConfig {
    TcpConfig {
        max_segment: 1_000,
        initial_window: InitialWindow::Segments(1),
        slow_start_limit: Some(1),
        timestamps: None,
        delayed_ack: DelayedAck::OFF,
        rto: RtoConfig {
            initial: Span::from_secs(1),
            min: Span::from_secs(1),
            max: Span::from_secs(60),
            granularity: Span::from_millis(1),
            ticks: false,
            estimator: Estimator::Rfc6298,
        },
        ..base.clone()
    }
}

pub(super) fn wire(config: &TcpConfig) -> Wire {
    Wire::new(config, ROUND / 2)
}

fn round(number: u64) -> Instant {
    Instant::ZERO + ROUND * number
}

/// Runs `rounds` round trips after the handshake; returns what was sent in each.
pub(super) fn rounds(wire: &mut Wire, rounds: u64) -> Vec<Vec<u64>> {
    (1..=rounds)
        .map(|number| {
            wire.run_until(round(number + 1) - Span::from_nanos(1));
            wire.numbers(round(number), round(number + 1))
        })
        .collect()
}

#[test]
fn slow_start_doubles_with_each_round_trip() {
    let mut wire = wire(&plain(&TcpConfig::new_reno()));
    wire.client.write(1_000 * MSS);
    let sent: Vec<usize> = rounds(&mut wire, 6).iter().map(Vec::len).collect();
    assert_eq!(sent, [1, 2, 4, 8, 16, 32]);
    assert_eq!(wire.client.snapshot().congestion_window, 32 * MSS);
}

#[test]
fn delayed_acknowledgements_slow_it_down_unless_bytes_are_counted() {
    // An acknowledgement for every second segment. RFC 5681 with a limit of one segment: growth by
    // half per round trip; with two (RFC 3465): doubling.
    for (limit, expected) in [(Some(1), [4, 6, 9]), (Some(2), [4, 8, 16])] {
        let config = TcpConfig {
            initial_window: InitialWindow::Segments(4),
            slow_start_limit: limit,
            delayed_ack: DelayedAck { after: Span::from_millis(90), ..DelayedAck::USUAL },
            ..plain(&TcpConfig::new_reno())
        };
        let mut wire = wire(&config);
        wire.client.write(1_000 * MSS);
        let sent: Vec<usize> = rounds(&mut wire, 3).iter().map(Vec::len).collect();
        assert_eq!(sent, expected, "{limit:?}");
    }
}

/// NewReno with an initial window of ten segments, and the given ones lost once.
pub(super) fn ten(base: &TcpConfig, lost: &'static [u64]) -> Wire {
    let config = TcpConfig { initial_window: InitialWindow::Segments(10), ..plain(base) };
    let mut seen = Vec::new();
    let mut wire = wire(&config).losing(move |_, segment| {
        let number = segment.payload.offset / 1_000;
        let loses = segment.payload.len > 0 && lost.contains(&number) && !seen.contains(&number);
        seen.push(if segment.payload.len > 0 { number } else { u64::MAX });
        loses
    });
    wire.client.write(1_000 * MSS);
    wire
}

#[test]
fn fast_retransmit_and_fast_recovery_of_rfc_6582() {
    let mut wire = ten(&TcpConfig::new_reno(), &[3]);
    let sent = rounds(&mut wire, 4);
    assert_eq!(sent[0], (0..10).collect::<Vec<_>>());
    // 0 to 2 are acknowledged: cwnd 13, and 10 to 15 are sent. Two duplicates allow 16 and 17 (RFC
    // 3042), the third retransmits 3; ssthresh = 13 / 2 = 6.5. Six duplicates in all.
    assert_eq!(sent[1], [10, 11, 12, 13, 14, 15, 16, 17, 3]);
    // Eight more: 15 are outstanding, 6.5 + n are allowed, so the tenth duplicate and the next four
    // send one segment each. Then the full acknowledgement: 18 to 22 are outstanding, cwnd =
    // min(6.5, 5 + 1) = 6, so one more is allowed.
    assert_eq!(sent[2], [18, 19, 20, 21, 22, 23]);
    let snapshot = wire.client.snapshot();
    assert_eq!(snapshot.threshold, 6_500);
    assert_eq!(wire.client.counters().retransmitted_segments, 1);
    assert_eq!(wire.client.counters().timeouts, 0);
    // 6 acknowledged with a window of 6: slow start by half a segment, and not yet by a whole one.
    assert_eq!(sent[3].len(), 6);
    assert_eq!(snapshot.congestion_window, 6_500);
}

#[test]
fn partial_acknowledgements_repair_one_segment_each_round_trip() {
    let mut wire = ten(&TcpConfig::new_reno(), &[3, 5, 7]);
    let sent = rounds(&mut wire, 5);
    // Duplicates by 4, 6, 8 and 9: four; 16, 17 by limited transmit, then 3.
    assert_eq!(sent[1], [10, 11, 12, 13, 14, 15, 16, 17, 3]);
    // By 10 to 17 eight more: 15 are outstanding, 6.5 + 12 are allowed: 18, 19, 20. Then 3
    // completes up to 5: 5 is retransmitted, and the window is 6.5 + 12 - 2 + 1 = 17.5 for the 16
    // from 5 to 20: 21.
    assert_eq!(sent[2], [18, 19, 20, 5, 21]);
    assert!(sent[3].contains(&7), "{:?}", sent[3]);
    assert!(!wire.client.snapshot().repairing, "acknowledged up to 18 and beyond");
    assert_eq!(wire.client.counters().retransmitted_segments, 3);
    assert_eq!((wire.client.counters().recoveries, wire.client.counters().timeouts), (1, 0));
}

#[test]
fn sack_repairs_many_losses_in_one_round_trip() {
    let mut wire = ten(&TcpConfig::sack(), &[3, 5, 7]);
    let sent = rounds(&mut wire, 3);
    // As above until the third duplicate (8): pipe = 10 to 17, 9 and the retransmission of 3: 10 >
    // 6.5.
    assert_eq!(sent[1], [10, 11, 12, 13, 14, 15, 16, 17, 3]);
    // In the next round pipe falls by one with each of 10 to 17; after 10 to 14, 5 and 7 (lost
    // before), then new data keep it at 6.
    assert_eq!(sent[2][..2], [5, 7], "{:?}", sent[2]);
    wire.run_until(round(5));
    assert!(!wire.client.snapshot().repairing);
    assert_eq!(wire.client.counters().retransmitted_segments, 3);
    assert_eq!(wire.client.snapshot().threshold, 6_500);
}

#[test]
fn timeouts_back_off_and_slow_start_restarts_at_one() {
    // SYN, then 1, 2, 4, 8 and 16 segments: 1 to 31. Of the last round, sent at 0.5 s, four arrive,
    // and allow 32 to 39. Those and the first four retransmissions are lost.
    let mut wire =
        wire(&plain(&TcpConfig::new_reno())).losing(|count, _| (20..44).contains(&count));
    wire.client.write(1_000 * MSS);
    wire.run_until(Instant::ZERO + Span::from_secs(30));
    let again: Vec<f64> = wire.sent[40..].iter().map(|(at, _)| at.as_secs_f64()).collect();
    // The last acknowledgement arrived at 0.6 s; at a round trip of 100 ms RTO is the minimum, 1 s.
    assert_eq!(again, [1.6, 3.6, 7.6, 15.6]);
    let snapshot = wire.client.snapshot();
    assert_eq!(snapshot.timeout, Span::from_secs(16));
    // 20 segments were outstanding: half of them, kept while the same data is lost.
    assert_eq!((snapshot.threshold, snapshot.congestion_window), (10_000, MSS));
    // The fifth arrives; slow start retransmits the following ones, from one segment on.
    wire.run_until(Instant::ZERO + Span::from_millis(31_850));
    let sent = wire.numbers(Instant::ZERO + Span::from_secs(31), wire.now);
    assert_eq!(sent, [19, 20, 21, 22, 23, 24, 25]);
    assert_eq!(wire.client.counters().timeouts, 5);
}

/// Fraction of the achievable goodput in 60 s at 10 Mbit/s, 600 ms and a queue of 750 KB: 1440 of
/// 1500 octets are payload.
fn share_of_a_satellite_link(config: &TcpConfig, loss: f64) -> f64 {
    let mut chance = RngStream::new(1, 0, "loss");
    let mut wire = Wire::new(config, Span::from_millis(300))
        .with_line(Serializer::new(BitRate::from_mbps(10)), 750_000)
        .losing(move |_, _| chance.chance(loss));
    for tenth in 1..=600 {
        wire.client.write(u64::MAX);
        wire.run_until(Instant::ZERO + ROUND * tenth);
    }
    assert_eq!(wire.client.state(), State::Established);
    wire.read as f64 / (10e6 / 8.0 * 60.0 * (1.0 - loss) * 1_440.0 / 1_500.0)
}

#[test]
fn cubic_on_a_satellite_link_matches_kernels() {
    // Linux, over the emulator: 0.958 without loss, 0.043 with 1 %.
    let clean = share_of_a_satellite_link(&TcpConfig::linux(), 0.0);
    assert!((clean - 0.958).abs() < 0.03, "{clean}");
    let lossy = share_of_a_satellite_link(&TcpConfig::linux(), 0.01);
    assert!((lossy - 0.043).abs() < 0.01, "{lossy}");
    // Without HyStart, slow start overshoots by the whole queue, and the recovery loses as much.
    let plain = share_of_a_satellite_link(&TcpConfig::cubic(), 0.0);
    assert!((0.88..clean).contains(&plain), "{plain}");
}

#[test]
fn a_paced_window_that_is_not_used_does_not_grow() {
    let round = Span::from_millis(100);
    // One of the first eleven is lost: congestion avoidance.
    let after_idle = AfterIdle::Keep;
    let config = TcpConfig { pacing: true, after_idle, ..TcpConfig::linux_reno() };
    let mut wire = Wire::new(&config, round / 2).losing(|count, _| count == 20);
    let mut at = Instant::ZERO;
    let mut write = |wire: &mut Wire, bytes: u64, rounds: u64| {
        for _ in 0..rounds {
            wire.client.write(bytes);
            at += round;
            wire.run_until(at);
        }
        wire.client.snapshot().congestion_window
    };
    let window = write(&mut wire, 40_000, 12);
    assert!(wire.client.counters().recoveries == 1 && window > 6_000, "{window}");
    // 3/4 of it in each round trip: more than the half that suffices in slow start.
    let idle = write(&mut wire, 0, 20);
    assert_eq!(wire.client.snapshot().unsent, 0);
    let unused = write(&mut wire, idle * 3 / 4, 20);
    assert_eq!(unused, idle);
    // All of it: it grows.
    assert!(write(&mut wire, 2 * idle, 10) > idle);
}

#[test]
fn coarse_clock_counts_ticks_even_with_a_log() {
    for base in [TcpConfig::vegas(), TcpConfig::linux_cubic()] {
        let config = base.of_1999();
        let mut wire = Wire::new(&config, Span::from_millis(300));
        wire.client.write(20_000);
        // The SYN took 600 ms, which is one tick of 500; the first segment one as well, and with up
        // to 200 ms of delay two, which has a weight of 1/8.
        wire.run_until(Instant::ZERO + Span::from_millis(1_450));
        let round_trip = wire.client.snapshot().round_trip.unwrap().as_secs_f64();
        assert!([0.5, 0.562_5].contains(&round_trip), "{round_trip}");
        wire.run_until(Instant::ZERO + Span::from_secs(10));
        assert_eq!((wire.read, wire.client.counters().retransmitted_segments), (20_000, 0));
    }
}
