use super::*;
use crate::session::upper::Filled;
use alloc::vec::Vec;
use std::vec;

/// Writes down what it is told to forget.
#[derive(Default)]
struct Forgetful(Vec<u32>);

impl Upper for Forgetful {
    fn has_fresh(&self) -> bool {
        false
    }
    fn fresh(&mut self, _: Seq24, _: &mut [u8]) -> Option<Filled> {
        None
    }
    fn again(&mut self, _: Seq24, _: u64, _: &mut [u8]) -> usize {
        0
    }
    fn released(&mut self, number: Seq24, handle: u64) {
        assert_eq!(u64::from(number.value()), handle % u64::from(Seq24::MODULUS));
        self.0.push(number.value());
    }
    fn deliver(&mut self, _: Seq24, _: &[u8]) {}
}

/// A sending after the POLL counted `poll`.
fn after(poll: u32) -> Sending {
    Sending { poll, at: Instant::ZERO }
}

/// An answer to the POLL counted `poll`.
fn asked(poll: u32) -> Asked {
    Asked { poll, age: None, hold: false }
}

const MISSING: bool = true;
const RECEIVED: bool = false;

/// A sender that has sent `sent` packets of 100 bytes, each stamped with what `stamp` says.
fn sender(sent: u64, release_early: bool, stamp: impl Fn(u64) -> u32) -> Sender {
    let mut sender = Sender::new(1 << 20, 1 << 20, release_early);
    for n in 0..sent {
        assert_eq!(sender.push(100, n, after(stamp(n))), n);
    }
    sender
}

fn list(from: u32, runs: &[(bool, u32)]) -> Vec<Run> {
    let mut start = Seq24::new(from);
    runs.iter()
        .map(|&(missing, len)| {
            let run = Run { start, len, missing };
            start = start.add(len);
            run
        })
        .collect()
}

fn stat(
    sender: &mut Sender,
    below: u32,
    runs: &[(bool, u32)],
    poll: u32,
) -> Result<(Outcome, Vec<u32>), Disbelief> {
    let mut upper = Forgetful::default();
    let runs = list(below, runs);
    let outcome =
        sender.on_stat(Seq24::new(below), 1000, runs.into_iter(), asked(poll), &mut upper)?;
    Ok((outcome, upper.0))
}

fn queue(sender: &Sender) -> Vec<u64> {
    sender.queue.iter().copied().collect()
}

/// XSTP-7.3.1
#[test]
fn a_stat_releases_what_is_below_its_number() {
    let mut sender = sender(10, false, |_| 0);
    let (outcome, released) = stat(&mut sender, 4, &[], 1).unwrap();
    assert_eq!(outcome, Outcome { released: 400, lost: 0, lost_again: 0 });
    assert_eq!(released, [0, 1, 2, 3]);
    assert_eq!((sender.oldest(), sender.next(), sender.unreleased()), (4, 10, 6));
    assert_eq!(sender.unreleased_bytes(), 600);
}

/// XSTP-7.3.2
#[test]
fn a_stat_calls_back_only_what_was_sent_before_its_poll() {
    // 0 to 4 were sent before POLL 1, the others after it.
    let mut sender = sender(10, false, |n| u32::from(n >= 5));
    let (outcome, _) =
        stat(&mut sender, 3, &[(MISSING, 2), (RECEIVED, 1), (MISSING, 2)], 1).unwrap();
    assert_eq!(outcome.lost, 2, "6 and 7 may have been on their way");
    assert_eq!(queue(&sender), [3, 4]);
    let (outcome, _) =
        stat(&mut sender, 3, &[(MISSING, 2), (RECEIVED, 1), (MISSING, 2)], 2).unwrap();
    assert_eq!(outcome.lost, 2, "3 and 4 wait already");
    assert_eq!(queue(&sender), [3, 4, 6, 7]);
}

/// XSTP-7.3.3
#[test]
fn a_packet_sent_again_waits_for_a_poll_after_that() {
    let mut sender = sender(5, false, |_| 0);
    stat(&mut sender, 0, &[(MISSING, 1), (RECEIVED, 4)], 1).unwrap();
    let again = sender.again().unwrap();
    assert_eq!(again, Again { count: 0, handle: 0, size: 100 });
    sender.sent_again(0, 100, after(3));
    for answered in [2, 3] {
        let (outcome, _) = stat(&mut sender, 0, &[(MISSING, 1), (RECEIVED, 4)], answered).unwrap();
        assert_eq!(outcome.lost, 0, "POLL {answered} was sent before it");
    }
    let (outcome, _) = stat(&mut sender, 0, &[(MISSING, 1), (RECEIVED, 4)], 4).unwrap();
    assert_eq!(outcome.lost, 1);
}

/// XSTP-7.4.1
#[test]
fn a_ustat_calls_back_only_what_was_sent_once() {
    let mut sender = sender(10, false, |_| 0);
    let mut upper = Forgetful::default();
    let ustat = |sender: &mut Sender, upper: &mut Forgetful| {
        sender.on_ustat(Seq24::new(2), list(2, &[(MISSING, 3)]).into_iter(), false, upper).unwrap()
    };
    assert_eq!(ustat(&mut sender, &mut upper), Outcome { released: 200, lost: 3, lost_again: 0 });
    assert_eq!(ustat(&mut sender, &mut upper), Outcome::default(), "they wait already");
    sender.sent_again(2, 100, after(0));
    sender.sent_again(3, 100, after(0));
    assert_eq!(ustat(&mut sender, &mut upper), Outcome::default(), "2 and 3 were sent again");
    assert_eq!(queue(&sender), [4]);
}

/// XSTP-7.3.4
#[test]
fn received_runs_are_released_early_only_when_so_configured() {
    let runs = [(MISSING, 1), (RECEIVED, 3), (MISSING, 1), (RECEIVED, 2)];
    let mut keeping = sender(8, false, |_| 0);
    assert_eq!(stat(&mut keeping, 1, &runs, 1).unwrap().1, [0]);
    assert_eq!(keeping.unreleased(), 7);
    let mut early = sender(8, true, |_| 0);
    let (outcome, released) = stat(&mut early, 1, &runs, 1).unwrap();
    assert_eq!(released, [0, 2, 3, 4, 6, 7]);
    assert_eq!(outcome, Outcome { released: 600, lost: 2, lost_again: 0 });
    assert_eq!((early.unreleased(), early.next() - early.oldest()), (2, 7));
    assert_eq!(stat(&mut early, 8, &[], 1).unwrap().1, [1, 5], "each number once");
    assert!(early.is_empty());
    assert!(early.again().is_none(), "what is released is not sent again");
}

/// XSTP-7.5.1
#[test]
fn numbers_that_cannot_be_are_not_believed() {
    let mut sender = sender(10, true, |_| 0);
    stat(&mut sender, 5, &[], 1).unwrap();
    let before = (sender.oldest(), sender.next(), sender.unreleased(), sender.free_numbers());
    assert_eq!(stat(&mut sender, 4, &[], 2), Err(Disbelief::ReceivedBelow));
    assert_eq!(stat(&mut sender, 11, &[], 2), Err(Disbelief::ReceivedBelow));
    assert_eq!(stat(&mut sender, 7, &[(MISSING, 1), (RECEIVED, 3)], 2), Err(Disbelief::List));
    assert_eq!(stat(&mut sender, 7, &[(MISSING, u32::MAX)], 2), Err(Disbelief::List));
    let after = (sender.oldest(), sender.next(), sender.unreleased(), sender.free_numbers());
    assert_eq!(before, after, "nothing of them was used");
}

/// XSTP-7.4.1, XSTP-7.5.1
#[test]
fn a_ustat_that_was_overtaken_calls_back_what_is_still_outstanding() {
    let mut sender = sender(10, true, |_| 0);
    let mut upper = Forgetful::default();
    stat(&mut sender, 5, &[], 1).unwrap();
    let mut ustat = |below, gaps: &[(bool, u32)]| {
        let number = Seq24::new(below);
        let gaps = list(below, gaps).into_iter().filter(|run| run.missing);
        let outcome = sender.on_ustat(number, gaps, false, &mut upper);
        outcome.map(|outcome| (outcome.released, outcome.lost, sender.oldest(), queue(&sender)))
    };
    let gap = [(MISSING, 1), (RECEIVED, 2), (MISSING, 2)];
    assert_eq!(ustat(3, &gap[..1]), Ok((0, 0, 5, vec![])), "it has arrived since");
    assert_eq!(ustat(3, &gap), Ok((0, 2, 5, vec![6, 7])));
    assert_eq!(ustat(3, &[(MISSING, 8)]), Err(Disbelief::List), "it was never sent");
    assert_eq!(ustat(Seq24::MODULUS - 1, &[(MISSING, 1)]), Err(Disbelief::ReceivedBelow));
}

/// XSTP-7.1.2
#[test]
fn the_smaller_of_the_windows_bounds_new_numbers() {
    let mut sender = Sender::new(4, 1000, false);
    let mut upper = Forgetful::default();
    for n in 0..4 {
        sender.push(1, n, after(0));
    }
    assert_eq!(sender.free_numbers(), 0, "the own window");
    assert!(!sender.is_shut_by_peer());
    sender.on_stat(Seq24::new(3), 2, core::iter::empty(), asked(1), &mut upper).unwrap();
    assert_eq!(sender.free_numbers(), 1, "the peer's");
    sender.on_stat(Seq24::new(4), 0, core::iter::empty(), asked(2), &mut upper).unwrap();
    assert!(sender.is_shut_by_peer());
    sender.on_stat(Seq24::new(4), u32::MAX, core::iter::empty(), asked(3), &mut upper).unwrap();
    assert_eq!(sender.free_numbers(), 4, "a nonsensical window is cut to half the numbers");
}

/// XSTP-7.2.1
#[test]
fn numbers_wrap() {
    let mut sender = Sender::new(64, 64, true);
    let mut upper = Forgetful::default();
    let wraps = u64::from(Seq24::MODULUS) + 1000;
    while sender.next() < wraps {
        let count = sender.next();
        sender.push(1, count, after(0));
        if sender.free_numbers() == 0 {
            // Everything but the first arrived; then the first does.
            let first = Seq24::of_count(sender.oldest());
            let poll = sender.oldest() as u32 + 1;
            let runs = list(first.value(), &[(MISSING, 1), (RECEIVED, 63)]);
            let outcome =
                sender.on_stat(first, 64, runs.into_iter(), asked(poll), &mut upper).unwrap();
            assert_eq!(outcome, Outcome { released: 63, lost: 1, lost_again: 0 });
            let next = sender.next_number();
            sender.on_stat(next, 64, core::iter::empty(), asked(poll), &mut upper).unwrap();
        }
    }
    assert_eq!(upper.0.len() as u64 + sender.unreleased(), wraps);
}

/// XSTP-7.2.2
#[test]
fn the_lowest_number_is_sent_again_first() {
    let mut sender = sender(10, false, |_| 0);
    stat(&mut sender, 6, &[(MISSING, 2), (RECEIVED, 2)], 1).unwrap();
    let order: Vec<u64> = core::iter::from_fn(|| {
        let again = sender.again()?;
        sender.sent_again(again.count, 50, after(1));
        Some(again.count)
    })
    .collect();
    assert_eq!(order, vec![6, 7]);
    assert_eq!(sender.unreleased_bytes(), 2 * 50 + 2 * 100, "they came with fewer bytes");
}

/// XSTP-7.6.1
#[test]
fn what_was_lost_three_times_goes_out_twice() {
    let mut sender = sender(3, true, |_| 0);
    sender.set_double(Some(3), 0);
    let mut poll = 0;
    for (resending, times) in [(1, 1), (2, 1), (3, 2), (4, 2)] {
        poll += 1;
        let (outcome, _) = stat(&mut sender, 0, &[(MISSING, 1), (RECEIVED, 2)], poll).unwrap();
        assert_eq!(outcome.lost, 1, "resending {resending}");
        assert_eq!(outcome.lost_again, u64::from(resending > 1), "resending {resending}");
        let mut sent = 0;
        while let Some(again) = sender.again() {
            sender.sent_again(again.count, again.size, after(poll));
            sent += 1;
        }
        assert_eq!(sent, times, "resending {resending}");
    }
}

/// XSTP-7.6.2
#[test]
fn the_first_numbers_go_out_twice_at_once() {
    let mut sender = sender(6, true, |_| 0);
    sender.set_double(Some(3), 2);
    let mut send_all = |poll, lost: &[(bool, u32)]| {
        stat(&mut sender, 0, lost, poll).unwrap();
        let sent = core::iter::from_fn(|| {
            let again = sender.again()?;
            sender.sent_again(again.count, again.size, after(poll));
            Some(again.count)
        });
        sent.collect::<Vec<_>>()
    };
    let three = [(MISSING, 3), (RECEIVED, 3)];
    assert_eq!(send_all(1, &three), [0, 0, 1, 1, 2], "two of three");
    // Of the third this is the second time.
    assert_eq!(send_all(2, &three), [0, 0, 1, 1, 2]);
}

/// XSTP-7.6.1
#[test]
fn sending_twice_comes_to_an_end_however_often_something_is_lost() {
    let mut sender = sender(2, true, |_| 0);
    sender.set_double(Some(3), 0);
    for poll in 1..400 {
        stat(&mut sender, 0, &[(MISSING, 1), (RECEIVED, 1)], poll).unwrap();
        let sent = core::iter::from_fn(|| {
            let again = sender.again()?;
            sender.sent_again(again.count, again.size, after(poll));
            Some(())
        });
        assert!(sent.take(3).count() <= 2, "poll {poll}");
    }
}

/// XSTP-7.5.3
#[test]
fn lists_that_come_again_and_again_are_not_walked_through() {
    let mut sender = sender(100, true, |_| 0);
    // The parts of one list, in any order and twice, are what a path can make of it.
    for _ in 0..2 {
        stat(&mut sender, 0, &[(MISSING, 100)], 1).unwrap();
    }
    assert_eq!(sender.listing, Some((1, 0)));
    let (outcome, released) = stat(&mut sender, 10, &[(MISSING, 1), (RECEIVED, 1)], 1).unwrap();
    assert_eq!((outcome.released, released.len()), (1_000, 10), "N(R) alone is used");
    let (_, released) = stat(&mut sender, 10, &[(MISSING, 1), (RECEIVED, 1)], 2).unwrap();
    assert_eq!(released, [11], "the next POLL's answer is");
    for _ in 0..10 {
        let gap = list(10, &[(MISSING, 90)]);
        let mut upper = Forgetful::default();
        sender.on_ustat(Seq24::new(10), gap.into_iter(), false, &mut upper).unwrap();
    }
    assert_eq!(sender.telling, 100 * TELLINGS - 4 * 90);
}

/// XSTP-7.3.6
#[test]
fn by_the_rule_of_round_trips_one_must_have_passed_since_the_last_sending() {
    let at = |millis| Instant::ZERO + Span::from_millis(millis);
    let mut sender = Sender::new(1 << 20, 1 << 20, false);
    for (count, millis) in [(0, 0), (1, 50), (2, 100)] {
        sender.push(100, count, Sending { poll: 0, at: at(millis) });
    }
    let mut poll = 0;
    let mut lost = |sender: &mut Sender, millis: u64, hold: bool| {
        poll += 1;
        let asked = Asked { poll, age: Some((at(millis), Span::from_millis(200))), hold };
        let runs = list(0, &[(MISSING, 2), (RECEIVED, 1)]);
        let (upper, below) = (&mut Forgetful::default(), Seq24::ZERO);
        sender.on_stat(below, 1000, runs.into_iter(), asked, upper).unwrap().lost
    };
    assert_eq!(lost(&mut sender, 199, false), 0);
    assert_eq!(lost(&mut sender, 200, true), 1, "0 is old enough");
    assert_eq!(queue(&sender), [0; 0], "but was only counted");
    assert_eq!(lost(&mut sender, 249, false), 1);
    assert_eq!(queue(&sender), [0]);
    sender.sent_again(0, 100, Sending { poll: 4, at: at(260) });
    assert_eq!(lost(&mut sender, 900, false), 1, "1; and 0 was sent after this POLL");
    assert_eq!(lost(&mut sender, 459, false), 0, "too late");
    assert_eq!(lost(&mut sender, 460, false), 1);
    // Microseconds wrap after 71 minutes.
    let mut sender = Sender::new(1 << 20, 1 << 20, false);
    let turn = (1 << 32) / 1_000;
    for count in 0..3 {
        sender.push(100, count, Sending { poll: 0, at: at(turn - 100) });
    }
    assert_eq!(lost(&mut sender, turn + 90, false), 0);
    assert_eq!(lost(&mut sender, turn + 101, false), 2);
}
