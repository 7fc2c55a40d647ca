//! The recoveries of the 1990s, segment by segment.

use super::windows::{rounds, ten, wire};
use crate::{DelayedAck, TcpConfig};
use std::vec::Vec;
use units::{Instant, Span};

/// Ten segments at first, no limited transmit; 3 and 5 are lost once.
fn two_lost(base: &TcpConfig) -> (Vec<Vec<u64>>, u64) {
    let mut wire = ten(&TcpConfig { limited_transmit: false, ..base.clone() }, &[3, 5]);
    let sent = rounds(&mut wire, 5);
    assert_eq!(sent[0], (0..10).collect::<Vec<_>>());
    assert_eq!(wire.client.counters().timeouts, 0);
    (sent, wire.client.counters().recoveries)
}

#[test]
fn reno_halves_twice_for_two_losses_in_a_window() {
    let (sent, recoveries) = two_lost(&TcpConfig::reno());
    // 0 to 2: cwnd 13, 10 to 15 go. Duplicates by 4, 6, 7: 3 is retransmitted, ssthresh 6.5; by 8
    // and 9: 6.5 + 5 = 11.5 for the 13 that are out.
    assert_eq!(sent[1], [10, 11, 12, 13, 14, 15, 3]);
    // By 10 to 15: from the third on one segment each. 3 fills up to 5: Reno is done, and 6.5
    // keeps back what follows the 15 that are out.
    assert_eq!(sent[2], [16, 17, 18, 19]);
    // Duplicates by 16, 17, 18: 5 is retransmitted, ssthresh 3.25.
    assert_eq!(sent[3], [5]);
    assert_eq!((sent[4].as_slice(), recoveries), (&[20, 21, 22][..], 2));
}

#[test]
fn sack_new_reno_repairs_both_at_once_and_halves_once() {
    let (sent, recoveries) = two_lost(&TcpConfig::sack_new_reno());
    // As before until the third duplicate. When 8 has come it is three beyond 5: 5 goes too,
    // and nothing is inflated (rules 5 and 6). With 9: 6.5 + 4.
    assert_eq!(sent[1], [10, 11, 12, 13, 14, 15, 3, 5]);
    // 10 to 15: 16.5 at last: 16, 17, 18. 3 fills up to 5: less 2 and one more (rule 4) makes
    // 15.5 for the 14 that are out: 19. 5 fills up to 16, which is snd_recover: cwnd =
    // min(6.5, 4 + 1) (rule 3), so 20 may go.
    assert_eq!(sent[2], [16, 17, 18, 19, 20]);
    assert_eq!(recoveries, 1);
}

#[test]
fn sack_reno_is_done_with_the_first_new_acknowledgement() {
    let (sent, recoveries) = two_lost(&TcpConfig::sack_reno());
    assert_eq!(sent[1], [10, 11, 12, 13, 14, 15, 3, 5]);
    // 3 fills up to 5: 6.5 for the 14 that are out. 5 fills up to 16: one more for 11
    // acknowledged makes 7.5 for the three that are out, and four go in one burst.
    assert_eq!(sent[2], [16, 17, 18, 19, 20, 21, 22]);
    assert_eq!(recoveries, 1);
}

#[test]
fn the_clock_of_1999_ends_on_its_steps() {
    let config = TcpConfig { delayed_ack: DelayedAck::OFF, ..TcpConfig::reno().of_1999() };
    // SYN passes; data, with the acknowledgement of the other, does not.
    let mut wire = wire(&config).losing(|count, _| count >= 1);
    wire.client.write(100);
    wire.run_until(Instant::ZERO + Span::from_secs(10));
    let sent: Vec<f64> = wire
        .sent
        .iter()
        .filter(|(_, segment)| segment.payload.len > 0)
        .map(|(at, _)| at.as_secs_f64())
        .collect();
    // SYN's round trip of 0.1 s is no step: RTO is the least, two steps, from the one before
    // 0.1 s on; then four and eight.
    assert_eq!(sent, [0.1, 1.0, 3.0, 7.0]);
}

#[test]
fn one_clock_for_all_delays_makes_an_acknowledgement_late_by_half_of_it() {
    let ticks = DelayedAck { ticks: true, ..DelayedAck::USUAL };
    let mut wire = wire(&TcpConfig { delayed_ack: ticks, ..TcpConfig::reno() });
    wire.client.write(100);
    wire.run_until(Instant::ZERO + Span::from_secs(1));
    // Sent at 0.1 s, there at 0.15 s; the clock ticks at 0.2 s.
    let (at, answer) = wire.answers.last().unwrap();
    assert_eq!((at.as_secs_f64(), answer.acknowledgement), (0.2, Some(101)));
}

#[test]
fn nagle_delays_a_short_segment_while_data_is_in_flight() {
    let config = TcpConfig { nagle: true, ..TcpConfig::new_reno() };
    let sizes = |config: &TcpConfig| -> Vec<u32> {
        let mut wire = wire(config);
        wire.run_until(Instant::ZERO + Span::from_millis(200));
        for _ in 0..3 {
            wire.client.write(100);
            wire.run_until(wire.now + Span::from_millis(10));
        }
        wire.run_until(Instant::ZERO + Span::from_secs(2));
        wire.sent[2..].iter().map(|(_, segment)| segment.payload.len).collect()
    };
    assert_eq!(sizes(&config), [100, 200], "RFC 896");
    assert_eq!(sizes(&TcpConfig { nagle: false, ..config }), [100, 100, 100]);
}
