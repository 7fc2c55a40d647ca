use super::*;
use crate::congestion::controller::{PollAnswered, PollSent};
use std::vec::Vec;

const PACKET: u64 = 1_500;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

/// A train and its measurements; times in milliseconds.
struct Rig {
    train: Train,
    path: PathEstimator,
    octets: u64,
    last_seq: u32,
}

impl Rig {
    fn new() -> Self {
        Self { train: Train::new(), path: PathEstimator::default(), octets: 0, last_seq: 0 }
    }

    /// Sends packets at `now`; returns the POLLs that they carry.
    fn send(&mut self, now: u64, packets: u32) -> Vec<(u32, u64)> {
        let mut polls = Vec::new();
        for _ in 0..packets {
            let has_poll = self.train.on_data(at(now), self.octets);
            self.octets += PACKET;
            if has_poll {
                polls.push(self.poll(now));
            }
        }
        polls
    }

    fn poll(&mut self, now: u64) -> (u32, u64) {
        self.last_seq += 1;
        let sent = PollSent { now: at(now), seq: self.last_seq, octets: self.octets };
        self.path.on_poll(&sent);
        self.train.on_poll(self.octets);
        (self.last_seq, self.octets)
    }

    /// Receives the STAT for a POLL at `now`; the POLL arrived at `arrived` on the receiver's clock.
    fn receive_stat(&mut self, now: u64, (seq, octets): (u32, u64), arrived: u64) -> Option<u64> {
        let answered = PollAnswered {
            now: at(now),
            seq,
            timestamp: 0,
            arrived_at: (arrived * 1_000) as u32,
            arrived: octets as u32,
            min_rtt: Span::from_millis(600),
        };
        self.path.on_poll_answered(&answered)?;
        self.train.estimate(at(now), &self.path).map(|seen| seen.rate)
    }
}

/// XSTP-14.2.4: the clock is set back by two seconds after the train and before its next POLL, whose
/// STAT gives no estimate.
#[test]
fn a_clock_step_does_not_block_a_train() {
    let mut rig = Rig::new();
    rig.send(5_000, TRAIN_PACKETS);
    assert!(!rig.train.may_send());
    let late = rig.poll(3_000);
    assert_eq!(rig.receive_stat(3_600, late, 3_300), None);
    assert!(rig.train.may_send(), "the train is repeated");
    assert_eq!(rig.train.failed, 1);
}

/// XSTP-14.2.4
#[test]
fn a_train_waits_for_its_second_stat() {
    let mut rig = Rig::new();
    let polls = rig.send(5_000, TRAIN_PACKETS);
    assert_eq!(polls.len(), 4);
    assert_eq!(rig.receive_stat(5_600, polls[0], 5_300), None);
    assert!(!rig.train.may_send(), "the other STATs are in flight");
    assert_eq!(rig.receive_stat(5_612, polls[3], 5_312), Some(9 * PACKET * 8 * 1_000 / 12));
}

/// XSTP-14.2.4: a step of the receiver's clock by one minute during a train.
#[test]
fn a_receiver_stall_invalidates_a_train() {
    let mut rig = Rig::new();
    let polls = rig.send(5_000, TRAIN_PACKETS);
    assert_eq!(rig.receive_stat(5_600, polls[0], 5_300), None);
    for poll in &polls[1..] {
        let late = u64::from(poll.0) * 4;
        assert_eq!(rig.receive_stat(5_600 + late, *poll, 65_300 + late), None);
    }
    assert_eq!((rig.train.may_send(), rig.train.failed), (true, 1), "the train is repeated");
    let polls = rig.send(6_300, TRAIN_PACKETS);
    rig.receive_stat(6_900, polls[0], 66_600);
    assert_eq!(rig.receive_stat(6_904, polls[1], 66_604), Some(3 * PACKET * 8 * 1_000 / 4));
}

#[test]
fn a_low_rate_path_is_no_receiver_stall() {
    let mut rig = Rig::new();
    let polls = rig.send(5_000, TRAIN_PACKETS);
    let mut rate = None;
    for (poll, arrived) in polls.iter().zip([0, 18_000, 36_000, 54_000]) {
        rate = rig.receive_stat(5_600 + arrived, *poll, 5_300 + arrived);
        if rate.is_some() {
            break;
        }
    }
    // Two STATs with enough octets between their POLLs suffice.
    assert_eq!(rate, Some(3 * PACKET * 8 / 18));
}

/// More POLLs are outstanding than are stored: STATs for the discarded ones are ignored.
#[test]
fn a_stat_for_a_discarded_poll_discards_no_other() {
    let mut rig = Rig::new();
    let polls: Vec<_> = (0..300).map(|n| rig.poll(n)).collect();
    rig.receive_stat(1_000, polls[0], 500);
    assert!(rig.path.last().is_none());
    rig.receive_stat(1_100, polls[299], 800);
    assert_eq!(rig.path.last().map(|sample| sample.sent_at), Some(at(299)));
}

/// XSTP-14.2.4: over 64 kbit/s the ten packets of a train take 1.9 s, whatever the RTT.
#[test]
fn trains_without_an_estimate_bound_the_rate_by_the_time_that_they_took() {
    let mut rig = Rig::new();
    for start in [1_000, 4_000] {
        rig.send(start, TRAIN_PACKETS);
        let late = rig.poll(start + 1_900);
        assert_eq!(rig.receive_stat(start + 2_000, late, start + 1_990), None);
    }
    let fallback = |rtt| rig.train.fallback_bps(Span::from_millis(rtt), Span::ZERO);
    assert_eq!(fallback(80), Some(125_000), "two trains in 1.92 s, which follow an RTT");
    assert_eq!(fallback(1_200), Some(200_000), "two trains in an RTT");
}

/// XSTP-14.2.1
#[test]
fn retransmissions_after_a_train_are_not_part_of_it() {
    let mut train = Train::new();
    let polls = (0..TRAIN_PACKETS).filter(|_| train.on_data(at(1), 0)).count();
    assert_eq!(polls, 4);
    assert!((0..20).all(|_| !train.on_data(at(2), 0)), "none of them carries a POLL");
    assert!(!train.may_send());
    train.on_poll(15_000);
    let mut path = PathEstimator::default();
    path.on_poll(&PollSent { now: at(3), seq: 1, octets: 15_000 });
    path.on_poll_answered(&PollAnswered {
        now: at(603),
        seq: 1,
        timestamp: 3_000,
        arrived_at: 303_000,
        arrived: 15_000,
        min_rtt: Span::from_millis(600),
    });
    assert_eq!(train.estimate(at(603), &path), None);
    assert!(train.has_failed(), "the train had no estimate");
}

/// XSTP-14.2.1: the first packets of a response are sent, and after a pause the others.
#[test]
fn a_pause_after_the_first_packets_restarts_the_train() {
    let mut rig = Rig::new();
    let first = rig.send(0, 2)[0];
    let polls = rig.send(1, 10);
    assert_eq!(polls.len(), 4);
    assert!(!rig.train.may_send());
    assert_eq!(rig.receive_stat(600, first, 300), None);
    // One packet per millisecond from the third on; one STAT suffices.
    assert_eq!(rig.receive_stat(610, polls[2], 308), Some(7 * PACKET * 8 * 1_000 / 7));
    assert_eq!(rig.receive_stat(620, polls[3], 311), Some(10 * PACKET * 8 * 1_000 / 10));
}

/// XSTP-14.2.1
#[test]
fn trickled_packets_restart_a_train_three_times() {
    let mut rig = Rig::new();
    let sent = (0..100).take_while(|&now| {
        let may = rig.train.may_send();
        rig.send(now, u32::from(may));
        may
    });
    assert_eq!(sent.count(), 13, "three restarts, and ten packets");
    let mut rig = Rig::new();
    rig.send(0, 4);
    rig.send(1, 6);
    assert!(!rig.train.may_send(), "four packets do not restart");
}
