use super::*;
use crate::congestion::controller::{PollAnswered, PollSent};
use std::vec::Vec;

const PACKET: u64 = 1_500;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

/// A train and what is seen of it, with the sender's clock in milliseconds.
struct Rig {
    train: Train,
    path: PathEstimator,
    octets: u64,
    count: u32,
}

impl Rig {
    fn new() -> Self {
        Self { train: Train::new(), path: PathEstimator::default(), octets: 0, count: 0 }
    }

    /// Sends packets at `now`; says which POLLs went with them.
    fn send(&mut self, now: u64, packets: u32) -> Vec<(u32, u64)> {
        let mut polls = Vec::new();
        for _ in 0..packets {
            let asks = self.train.on_data(at(now), self.octets);
            self.octets += PACKET;
            if asks {
                polls.push(self.poll(now));
            }
        }
        polls
    }

    fn poll(&mut self, now: u64) -> (u32, u64) {
        self.count += 1;
        let sent = PollSent { now: at(now), seq: self.count, octets: self.octets };
        self.path.on_poll(&sent);
        self.train.on_poll(self.octets);
        (self.count, self.octets)
    }

    /// The POLL is answered at `now`, having arrived at `arrived` by the receiver's clock.
    fn answer(&mut self, now: u64, (count, octets): (u32, u64), arrived: u64) -> Option<u64> {
        let answered = PollAnswered {
            now: at(now),
            seq: count,
            timestamp: 0,
            arrived_at: (arrived * 1_000) as u32,
            arrived: octets as u32,
            min_rtt: Span::from_millis(600),
        };
        self.path.on_poll_answered(&answered)?;
        self.train.estimate(&self.path).map(|seen| seen.rate)
    }
}

/// XSTP-14.2.4: the clock is set back by two seconds between the train and its last POLLs, whose
/// answers show nothing.
#[test]
fn a_clock_that_is_set_back_holds_no_train_up() {
    let mut rig = Rig::new();
    rig.send(5_000, TRAIN_PACKETS);
    assert!(!rig.train.may_send());
    let late = rig.poll(3_000);
    assert_eq!(rig.answer(3_600, late, 3_300), None);
    assert!(rig.train.may_send(), "another train");
    assert_eq!(rig.train.failed, 1);
}

/// XSTP-14.2.4
#[test]
fn a_train_waits_for_the_answer_to_its_last_packet() {
    let mut rig = Rig::new();
    let polls = rig.send(5_000, TRAIN_PACKETS);
    assert_eq!(polls.len(), 4);
    assert_eq!(rig.answer(5_600, polls[0], 5_300), None);
    assert!(!rig.train.may_send(), "the others are on their way");
    assert_eq!(rig.answer(5_612, polls[3], 5_312), Some(9 * PACKET * 8 * 1_000 / 12));
}

/// XSTP-14.2.4: the receiver's clock leaps by a minute in the middle of a train.
#[test]
fn a_train_in_which_something_stood_still_shows_nothing() {
    let mut rig = Rig::new();
    let polls = rig.send(5_000, TRAIN_PACKETS);
    assert_eq!(rig.answer(5_600, polls[0], 5_300), None);
    for poll in &polls[1..] {
        let late = u64::from(poll.0) * 4;
        assert_eq!(rig.answer(5_600 + late, *poll, 65_300 + late), None);
    }
    assert_eq!((rig.train.may_send(), rig.train.failed), (true, 1), "another one");
    let polls = rig.send(6_300, TRAIN_PACKETS);
    rig.answer(6_900, polls[0], 66_600);
    assert_eq!(rig.answer(6_904, polls[1], 66_604), Some(3 * PACKET * 8 * 1_000 / 4));
}

#[test]
fn a_slow_way_that_takes_its_time_evenly_does_not_stand_still() {
    let mut rig = Rig::new();
    let polls = rig.send(5_000, TRAIN_PACKETS);
    let mut rate = None;
    for (poll, arrived) in polls.iter().zip([0, 18_000, 36_000, 54_000]) {
        rate = rig.answer(5_600 + arrived, *poll, 5_300 + arrived);
        if rate.is_some() {
            break;
        }
    }
    // As soon as there are two answers of enough octets.
    assert_eq!(rate, Some(3 * PACKET * 8 / 18));
}

/// More POLLs are under way than are remembered: answers to the oldest say nothing, and those to
/// the others all that they know.
#[test]
fn an_answer_to_a_forgotten_poll_drops_no_other() {
    let mut rig = Rig::new();
    let polls: Vec<_> = (0..300).map(|n| rig.poll(n)).collect();
    rig.answer(1_000, polls[0], 500);
    assert!(rig.path.last().is_none());
    rig.answer(1_100, polls[299], 800);
    assert_eq!(rig.path.last().map(|sample| sample.sent_at), Some(at(299)));
}

/// XSTP-14.2.1
#[test]
fn what_is_sent_again_after_a_train_is_no_part_of_it() {
    let mut train = Train::new();
    let polls = (0..TRAIN_PACKETS).filter(|_| train.on_data(at(1), 0)).count();
    assert_eq!(polls, 4);
    assert!((0..20).all(|_| !train.on_data(at(2), 0)), "none of them asks for a POLL");
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
    assert_eq!(train.estimate(&path), None);
    assert!(train.has_failed(), "it has shown nothing, and that is known");
}

/// XSTP-14.2.1: the head of an answer leaves, and after a pause the rest.
#[test]
fn a_pause_after_the_first_few_packets_is_no_part_of_the_train() {
    let mut rig = Rig::new();
    let first = rig.send(0, 2)[0];
    let polls = rig.send(1, 10);
    assert_eq!(polls.len(), 4);
    assert!(!rig.train.may_send());
    assert_eq!(rig.answer(600, first, 300), None);
    // One packet each millisecond, from the third on; one answer is enough.
    assert_eq!(rig.answer(610, polls[2], 308), Some(7 * PACKET * 8 * 1_000 / 7));
    assert_eq!(rig.answer(620, polls[3], 311), Some(10 * PACKET * 8 * 1_000 / 10));
}

/// XSTP-14.2.1
#[test]
fn words_that_trickle_begin_no_train_for_ever() {
    let mut rig = Rig::new();
    let sent = (0..100).take_while(|&now| {
        let may = rig.train.may_send();
        rig.send(now, u32::from(may));
        may
    });
    assert_eq!(sent.count(), 13, "three that trickle, and ten");
    let mut rig = Rig::new();
    rig.send(0, 4);
    rig.send(1, 6);
    assert!(!rig.train.may_send(), "four are more than a few");
}
