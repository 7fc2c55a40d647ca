use super::*;
use crate::session::upper::NewPacket;
use alloc::vec::Vec;
use std::vec;

/// Upper layer that records acknowledged packets.
#[derive(Default)]
struct ReleaseLog(Vec<u32>);

impl UpperLayer for ReleaseLog {
    fn has_new_data(&self) -> bool {
        false
    }
    fn fill_new(&mut self, _: Seq24, _: &mut [u8]) -> Option<NewPacket> {
        None
    }
    fn fill_retransmission(&mut self, _: Seq24, _: u64, _: &mut [u8]) -> usize {
        0
    }
    fn on_acknowledged(&mut self, number: Seq24, handle: u64) {
        assert_eq!(u64::from(number.value()), handle % u64::from(Seq24::MODULUS));
        self.0.push(number.value());
    }
    fn deliver(&mut self, _: Seq24, _: &[u8]) {}
}

/// A transmission after the POLL with the sequence number `poll`.
fn after(poll: u32) -> Transmission {
    Transmission { poll, at: Instant::ZERO }
}

/// Filter of a STAT for the POLL with the sequence number `poll`.
fn stat_for(poll: u32) -> RetransmitFilter {
    RetransmitFilter { poll, age: None, hold: false }
}

const MISSING: bool = true;
const RECEIVED: bool = false;

/// A table of `sent` packets of 100 octets; `poll_seq` is the last POLL before each.
fn sender(sent: u64, release_early: bool, poll_seq: impl Fn(u64) -> u32) -> PacketTable {
    let mut sender = PacketTable::new(1 << 20, 1 << 20, release_early);
    for n in 0..sent {
        assert_eq!(sender.push(100, n, after(poll_seq(n))), n);
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
    sender: &mut PacketTable,
    below: u32,
    runs: &[(bool, u32)],
    poll: u32,
) -> Result<(Outcome, Vec<u32>), InvalidReport> {
    let mut upper = ReleaseLog::default();
    let runs = list(below, runs);
    let outcome =
        sender.on_stat(Seq24::new(below), 1000, runs.into_iter(), stat_for(poll), &mut upper)?;
    Ok((outcome, upper.0))
}

fn queue(sender: &PacketTable) -> Vec<u64> {
    sender.queue.iter().copied().collect()
}

/// XSTP-7.3.1
#[test]
fn a_stat_releases_packets_below_its_number() {
    let mut sender = sender(10, false, |_| 0);
    let (outcome, released) = stat(&mut sender, 4, &[], 1).unwrap();
    assert_eq!(outcome, Outcome { released: 400, lost: 0, lost_retransmissions: 0 });
    assert_eq!(released, [0, 1, 2, 3]);
    assert_eq!((sender.oldest(), sender.next(), sender.unreleased()), (4, 10, 6));
    assert_eq!(sender.unreleased_bytes(), 600);
}

/// XSTP-7.3.2
#[test]
fn a_stat_retransmits_only_packets_sent_before_its_poll() {
    // 0 to 4 were sent before POLL 1, the others after it.
    let mut sender = sender(10, false, |n| u32::from(n >= 5));
    let (outcome, _) =
        stat(&mut sender, 3, &[(MISSING, 2), (RECEIVED, 1), (MISSING, 2)], 1).unwrap();
    assert_eq!(outcome.lost, 2, "6 and 7 may have been in flight");
    assert_eq!(queue(&sender), [3, 4]);
    let (outcome, _) =
        stat(&mut sender, 3, &[(MISSING, 2), (RECEIVED, 1), (MISSING, 2)], 2).unwrap();
    assert_eq!(outcome.lost, 2, "3 and 4 are queued already");
    assert_eq!(queue(&sender), [3, 4, 6, 7]);
}

/// XSTP-7.3.3
#[test]
fn a_retransmitted_packet_waits_for_a_later_poll() {
    let mut sender = sender(5, false, |_| 0);
    stat(&mut sender, 0, &[(MISSING, 1), (RECEIVED, 4)], 1).unwrap();
    let next = sender.next_retransmission().unwrap();
    assert_eq!(next, Retransmission { seq: 0, handle: 0, size: 100 });
    sender.on_retransmitted(0, 100, after(3));
    for answered in [2, 3] {
        let (outcome, _) = stat(&mut sender, 0, &[(MISSING, 1), (RECEIVED, 4)], answered).unwrap();
        assert_eq!(outcome.lost, 0, "POLL {answered} was sent before it");
    }
    let (outcome, _) = stat(&mut sender, 0, &[(MISSING, 1), (RECEIVED, 4)], 4).unwrap();
    assert_eq!(outcome.lost, 1);
}

/// XSTP-7.4.1
#[test]
fn a_ustat_retransmits_only_packets_sent_once() {
    let mut sender = sender(10, false, |_| 0);
    let mut upper = ReleaseLog::default();
    let ustat = |sender: &mut PacketTable, upper: &mut ReleaseLog| {
        sender.on_ustat(Seq24::new(2), list(2, &[(MISSING, 3)]).into_iter(), false, upper).unwrap()
    };
    assert_eq!(
        ustat(&mut sender, &mut upper),
        Outcome { released: 200, lost: 3, lost_retransmissions: 0 }
    );
    assert_eq!(ustat(&mut sender, &mut upper), Outcome::default(), "they are queued already");
    sender.on_retransmitted(2, 100, after(0));
    sender.on_retransmitted(3, 100, after(0));
    assert_eq!(ustat(&mut sender, &mut upper), Outcome::default(), "2 and 3 were retransmitted");
    assert_eq!(queue(&sender), [4]);
}

/// XSTP-7.3.4
#[test]
fn received_runs_are_released_early_if_configured() {
    let runs = [(MISSING, 1), (RECEIVED, 3), (MISSING, 1), (RECEIVED, 2)];
    let mut keeping = sender(8, false, |_| 0);
    assert_eq!(stat(&mut keeping, 1, &runs, 1).unwrap().1, [0]);
    assert_eq!(keeping.unreleased(), 7);
    let mut early = sender(8, true, |_| 0);
    let (outcome, released) = stat(&mut early, 1, &runs, 1).unwrap();
    assert_eq!(released, [0, 2, 3, 4, 6, 7]);
    assert_eq!(outcome, Outcome { released: 600, lost: 2, lost_retransmissions: 0 });
    assert_eq!((early.unreleased(), early.next() - early.oldest()), (2, 7));
    assert_eq!(stat(&mut early, 8, &[], 1).unwrap().1, [1, 5], "each packet once");
    assert!(early.is_empty());
    assert!(early.next_retransmission().is_none(), "released packets are not retransmitted");
}

/// XSTP-7.5.1
#[test]
fn invalid_reports_are_rejected() {
    let mut sender = sender(10, true, |_| 0);
    stat(&mut sender, 5, &[], 1).unwrap();
    let before = (sender.oldest(), sender.next(), sender.unreleased(), sender.free_numbers());
    let before_the_first = Seq24::MODULUS - 1;
    assert_eq!(stat(&mut sender, before_the_first, &[], 2), Err(InvalidReport::ReceivedBelow));
    assert_eq!(stat(&mut sender, 11, &[], 2), Err(InvalidReport::ReceivedBelow));
    assert_eq!(stat(&mut sender, 7, &[(MISSING, 1), (RECEIVED, 3)], 2), Err(InvalidReport::List));
    assert_eq!(stat(&mut sender, 7, &[(MISSING, u32::MAX)], 2), Err(InvalidReport::List));
    let after = (sender.oldest(), sender.next(), sender.unreleased(), sender.free_numbers());
    assert_eq!(before, after, "nothing has changed");
}

/// XSTP-7.4.1, XSTP-7.5.1
#[test]
fn an_overtaken_ustat_retransmits_outstanding_packets() {
    let mut sender = sender(10, true, |_| 0);
    let mut upper = ReleaseLog::default();
    stat(&mut sender, 5, &[], 1).unwrap();
    let mut ustat = |below, gaps: &[(bool, u32)]| {
        let number = Seq24::new(below);
        let gaps = list(below, gaps).into_iter().filter(|run| run.missing);
        let outcome = sender.on_ustat(number, gaps, false, &mut upper);
        outcome.map(|outcome| (outcome.released, outcome.lost, sender.oldest(), queue(&sender)))
    };
    let gap = [(MISSING, 1), (RECEIVED, 2), (MISSING, 2)];
    assert_eq!(ustat(3, &gap[..1]), Ok((0, 0, 5, vec![])), "it was received since");
    assert_eq!(ustat(3, &gap), Ok((0, 2, 5, vec![6, 7])));
    assert_eq!(ustat(3, &[(MISSING, 8)]), Err(InvalidReport::List), "it was never sent");
    assert_eq!(ustat(Seq24::MODULUS - 1, &[(MISSING, 1)]), Err(InvalidReport::ReceivedBelow));
}

/// XSTP-7.3.1, XSTP-7.5.1
#[test]
fn an_overtaken_stat_retransmits_outstanding_packets() {
    let mut sender = sender(10, true, |_| 0);
    let mut upper = ReleaseLog::default();
    sender.on_ustat(Seq24::new(5), core::iter::empty(), false, &mut upper).unwrap();
    let limit = sender.limit;
    let runs = [(MISSING, 1), (RECEIVED, 2), (MISSING, 1), (RECEIVED, 2), (MISSING, 1)];
    let (outcome, released) = stat(&mut sender, 2, &runs, 1).unwrap();
    assert_eq!((outcome.lost, released, sender.oldest()), (2, vec![6, 7], 5));
    assert_eq!(queue(&sender), [5, 8]);
    assert_eq!(sender.limit, limit.max(2 + 1000));
    sender.on_stat(Seq24::new(3), 4, core::iter::empty(), stat_for(1), &mut upper).unwrap();
    assert_eq!(sender.limit, limit.max(2 + 1000), "an earlier window does not reduce VT(MS)");
    assert_eq!(stat(&mut sender, 3, &[(MISSING, 8)], 1), Err(InvalidReport::List), "never sent");
}

/// XSTP-7.1.2
#[test]
fn the_smaller_window_bounds_new_packets() {
    let mut sender = PacketTable::new(4, 1000, false);
    let mut upper = ReleaseLog::default();
    for n in 0..4 {
        sender.push(1, n, after(0));
    }
    assert_eq!(sender.free_numbers(), 0, "the own window");
    assert!(!sender.is_peer_window_closed());
    sender.on_stat(Seq24::new(3), 2, core::iter::empty(), stat_for(1), &mut upper).unwrap();
    assert_eq!(sender.free_numbers(), 1, "the peer's");
    sender.on_stat(Seq24::new(4), 0, core::iter::empty(), stat_for(2), &mut upper).unwrap();
    assert!(sender.is_peer_window_closed());
    sender.on_stat(Seq24::new(4), u32::MAX, core::iter::empty(), stat_for(3), &mut upper).unwrap();
    assert_eq!(sender.free_numbers(), 4, "a window is limited to half of the number space");
}

/// XSTP-7.2.1
#[test]
fn numbers_wrap() {
    let mut sender = PacketTable::new(64, 64, true);
    let mut upper = ReleaseLog::default();
    let wraps = u64::from(Seq24::MODULUS) + 1000;
    while sender.next() < wraps {
        let count = sender.next();
        sender.push(1, count, after(0));
        if sender.free_numbers() == 0 {
            // All packets but the first are received, then the first one.
            let first = Seq24::from_extended(sender.oldest());
            let poll = sender.oldest() as u32 + 1;
            let runs = list(first.value(), &[(MISSING, 1), (RECEIVED, 63)]);
            let outcome =
                sender.on_stat(first, 64, runs.into_iter(), stat_for(poll), &mut upper).unwrap();
            assert_eq!(outcome, Outcome { released: 63, lost: 1, lost_retransmissions: 0 });
            let next = sender.next_number();
            sender.on_stat(next, 64, core::iter::empty(), stat_for(poll), &mut upper).unwrap();
        }
    }
    assert_eq!(upper.0.len() as u64 + sender.unreleased(), wraps);
}

/// XSTP-7.2.2
#[test]
fn the_lowest_number_is_retransmitted_first() {
    let mut sender = sender(10, false, |_| 0);
    stat(&mut sender, 6, &[(MISSING, 2), (RECEIVED, 2)], 1).unwrap();
    let order: Vec<u64> = core::iter::from_fn(|| {
        let next = sender.next_retransmission()?;
        sender.on_retransmitted(next.seq, 50, after(1));
        Some(next.seq)
    })
    .collect();
    assert_eq!(order, vec![6, 7]);
    assert_eq!(sender.unreleased_bytes(), 2 * 50 + 2 * 100, "retransmissions are shorter");
}

/// XSTP-7.6.1
#[test]
fn packets_are_duplicated_from_the_configured_retransmission_on() {
    let mut sender = sender(3, true, |_| 0);
    sender.set_duplication(Some(3), 0);
    let mut poll = 0;
    for (retransmission, times) in [(1, 1), (2, 1), (3, 2), (4, 2)] {
        poll += 1;
        let (outcome, _) = stat(&mut sender, 0, &[(MISSING, 1), (RECEIVED, 2)], poll).unwrap();
        assert_eq!(outcome.lost, 1, "retransmission {retransmission}");
        assert_eq!(
            outcome.lost_retransmissions,
            u64::from(retransmission > 1),
            "retransmission {retransmission}"
        );
        let mut sent = 0;
        while let Some(next) = sender.next_retransmission() {
            sender.on_retransmitted(next.seq, next.size, after(poll));
            sent += 1;
        }
        assert_eq!(sent, times, "retransmission {retransmission}");
    }
}

/// XSTP-7.6.2
#[test]
fn the_first_packets_are_duplicated_from_the_first_retransmission_on() {
    let mut sender = sender(6, true, |_| 0);
    sender.set_duplication(Some(3), 2);
    let mut send_all = |poll, lost: &[(bool, u32)]| {
        stat(&mut sender, 0, lost, poll).unwrap();
        let sent = core::iter::from_fn(|| {
            let next = sender.next_retransmission()?;
            sender.on_retransmitted(next.seq, next.size, after(poll));
            Some(next.seq)
        });
        sent.collect::<Vec<_>>()
    };
    let three = [(MISSING, 3), (RECEIVED, 3)];
    assert_eq!(send_all(1, &three), [0, 0, 1, 1, 2], "two of three");
    // For the third packet this is the second retransmission.
    assert_eq!(send_all(2, &three), [0, 0, 1, 1, 2]);
}

/// XSTP-7.6.1
#[test]
fn duplication_ends_after_any_number_of_losses() {
    let mut sender = sender(2, true, |_| 0);
    sender.set_duplication(Some(3), 0);
    for poll in 1..400 {
        stat(&mut sender, 0, &[(MISSING, 1), (RECEIVED, 1)], poll).unwrap();
        let sent = core::iter::from_fn(|| {
            let next = sender.next_retransmission()?;
            sender.on_retransmitted(next.seq, next.size, after(poll));
            Some(())
        });
        assert!(sent.take(3).count() <= 2, "poll {poll}");
    }
}

/// XSTP-7.5.3
#[test]
fn repeated_lists_are_bounded() {
    let mut sender = sender(100, true, |_| 0);
    // A path can duplicate and reorder the STATs of one list.
    for _ in 0..2 {
        stat(&mut sender, 0, &[(MISSING, 100)], 1).unwrap();
    }
    assert_eq!(sender.stat_budget, Some((1, 0)));
    let (outcome, released) = stat(&mut sender, 10, &[(MISSING, 1), (RECEIVED, 1)], 1).unwrap();
    assert_eq!((outcome.released, released.len()), (1_000, 10), "only N(R) is used");
    let (_, released) = stat(&mut sender, 10, &[(MISSING, 1), (RECEIVED, 1)], 2).unwrap();
    assert_eq!(released, [11], "the STAT for the next POLL is used");
    for _ in 0..10 {
        let gap = list(10, &[(MISSING, 90)]);
        let mut upper = ReleaseLog::default();
        sender.on_ustat(Seq24::new(10), gap.into_iter(), false, &mut upper).unwrap();
    }
    assert_eq!(sender.ustat_budget, 100 * USTAT_LISTINGS_PER_PACKET - 4 * 90);
}

/// XSTP-7.3.6
#[test]
fn the_rtt_rule_needs_a_minimum_age_of_the_transmission() {
    let at = |millis| Instant::ZERO + Span::from_millis(millis);
    let mut sender = PacketTable::new(1 << 20, 1 << 20, false);
    for (count, millis) in [(0, 0), (1, 50), (2, 100)] {
        sender.push(100, count, Transmission { poll: 0, at: at(millis) });
    }
    let mut poll = 0;
    let mut lost = |sender: &mut PacketTable, millis: u64, hold: bool| {
        poll += 1;
        let filter =
            RetransmitFilter { poll, age: Some((at(millis), Span::from_millis(200))), hold };
        let runs = list(0, &[(MISSING, 2), (RECEIVED, 1)]);
        let (upper, below) = (&mut ReleaseLog::default(), Seq24::ZERO);
        sender.on_stat(below, 1000, runs.into_iter(), filter, upper).unwrap().lost
    };
    assert_eq!(lost(&mut sender, 199, false), 0);
    assert_eq!(lost(&mut sender, 200, true), 1, "0 is old enough");
    assert_eq!(queue(&sender), [0; 0], "it was only counted");
    assert_eq!(lost(&mut sender, 249, false), 1);
    assert_eq!(queue(&sender), [0]);
    sender.on_retransmitted(0, 100, Transmission { poll: 4, at: at(260) });
    assert_eq!(lost(&mut sender, 900, false), 1, "only 1: 0 was retransmitted after this POLL");
    assert_eq!(lost(&mut sender, 459, false), 0, "0 is not old enough");
    assert_eq!(lost(&mut sender, 460, false), 1);
    // Timestamps in microseconds wrap after 71 minutes.
    let mut sender = PacketTable::new(1 << 20, 1 << 20, false);
    let wrap = (1 << 32) / 1_000;
    for count in 0..3 {
        sender.push(100, count, Transmission { poll: 0, at: at(wrap - 100) });
    }
    assert_eq!(lost(&mut sender, wrap + 90, false), 0);
    assert_eq!(lost(&mut sender, wrap + 101, false), 2);
}
