use super::*;

const MSS: u64 = 1_000;
const INFLATION: i64 = 1_000;

fn outstanding(oldest: u64, end: u64) -> Outstanding {
    Outstanding { oldest: oldest * MSS, next: end * MSS, end: end * MSS, segment: MSS }
}

/// An acknowledgement up to `now.oldest`, with blocks, in thousands.
fn feed(tcp: &mut Berkeley, now: &Outstanding, before: u64, blocks: &[Block]) -> Verdict {
    let scaled: std::vec::Vec<Block> =
        blocks.iter().map(|&(start, end)| (start * MSS, end * MSS)).collect();
    let before = before * MSS;
    let duplicate = before == now.oldest;
    tcp.on_ack(
        now,
        &Report {
            before,
            window: 10 * MSS,
            duplicate,
            sack: &scaled,
            ..super::super::tests_report()
        },
    )
}

fn again(tcp: &mut Berkeley, now: &Outstanding) -> Option<u64> {
    tcp.lost(now).map(|(start, end)| {
        assert_eq!(end, start + MSS);
        start / MSS
    })
}

#[test]
fn reno_ends_with_the_first_new_acknowledgement_and_begins_again() {
    let mut reno = Berkeley::new(false, false, false);
    // 10 to 19 are outstanding; 10 and 14 are lost.
    let now = outstanding(10, 20);
    for _ in 0..2 {
        assert_eq!(feed(&mut reno, &now, 10, &[]), Verdict::Open);
    }
    assert_eq!(feed(&mut reno, &now, 10, &[]), Verdict::Loss);
    assert_eq!((again(&mut reno, &now), again(&mut reno, &now)), (Some(10), None));
    assert_eq!(reno.inflation(), 3 * INFLATION);
    feed(&mut reno, &now, 10, &[]);
    assert_eq!(reno.inflation(), 4 * INFLATION);
    let partial = outstanding(14, 24);
    assert_eq!(feed(&mut reno, &partial, 10, &[]), Verdict::Repaired { deflate: Deflate::Stays });
    assert_eq!((reno.inflation(), again(&mut reno, &partial)), (0, None));
    // Data sent meanwhile causes duplicates: a second loss in the same window.
    for _ in 0..2 {
        assert_eq!(feed(&mut reno, &partial, 14, &[]), Verdict::Open);
    }
    assert_eq!(feed(&mut reno, &partial, 14, &[]), Verdict::Loss);
    assert_eq!(again(&mut reno, &partial), Some(14));
}

#[test]
fn sack_new_reno_sends_one_eligible_segment_with_each_acknowledgement() {
    let mut tcp = Berkeley::new(true, true, false);
    // 10 to 29 are outstanding; 10, 12 and 13 are lost.
    let now = outstanding(10, 30);
    feed(&mut tcp, &now, 10, &[(11, 12)]);
    feed(&mut tcp, &now, 10, &[(14, 15), (11, 12)]);
    assert_eq!(feed(&mut tcp, &now, 10, &[(14, 16), (11, 12)]), Verdict::Loss);
    // Rule 2: fast retransmit, cwnd = ssthresh + 3.
    assert_eq!((again(&mut tcp, &now), tcp.inflation()), (Some(10), 3 * INFLATION));
    // 16 has arrived: it is four beyond 12, so rule 6 retransmits 12 without inflation.
    feed(&mut tcp, &now, 10, &[(14, 17), (11, 12)]);
    assert_eq!((again(&mut tcp, &now), tcp.inflation()), (Some(12), 3 * INFLATION));
    feed(&mut tcp, &now, 10, &[(14, 18), (11, 12)]);
    assert_eq!((again(&mut tcp, &now), tcp.inflation()), (Some(13), 3 * INFLATION));
    // Nothing more is eligible: inflation by one.
    feed(&mut tcp, &now, 10, &[(14, 19), (11, 12)]);
    assert_eq!((again(&mut tcp, &now), tcp.inflation()), (None, 4 * INFLATION));
    // 10 has arrived: acknowledged up to 12. Rule 4: 4 - 2 + 1 = 3.
    let partial = outstanding(12, 31);
    let verdict = feed(&mut tcp, &partial, 10, &[(14, 30)]);
    assert_eq!(verdict, Verdict::Repairing { restart_timer: true });
    assert_eq!((again(&mut tcp, &partial), tcp.inflation()), (None, 3 * INFLATION));
    // Rule 3: 30 was the highest at the beginning.
    let full = outstanding(30, 31);
    assert_eq!(
        feed(&mut tcp, &full, 12, &[]),
        Verdict::Repaired { deflate: Deflate::ToFlightBare }
    );
}

#[test]
fn sack_reno_reduces_again_but_sends_nothing_twice() {
    let mut tcp = Berkeley::new(false, true, false);
    // 10 to 29 are outstanding; 10 and 20 are lost.
    let now = outstanding(10, 30);
    for end in [12, 13, 14] {
        feed(&mut tcp, &now, 10, &[(11, end)]);
    }
    assert_eq!(again(&mut tcp, &now), Some(10));
    feed(&mut tcp, &now, 10, &[(21, 25), (11, 20)]);
    assert_eq!(again(&mut tcp, &now), Some(20), "eligible by blocks");
    // 10 has arrived: acknowledged up to 20, and Reno's recovery has ended.
    let partial = outstanding(20, 32);
    let verdict = feed(&mut tcp, &partial, 10, &[(21, 30)]);
    assert_eq!(verdict, Verdict::Repaired { deflate: Deflate::Stays });
    for _ in 0..2 {
        assert_eq!(feed(&mut tcp, &partial, 20, &[(21, 31)]), Verdict::Open);
    }
    assert_eq!(feed(&mut tcp, &partial, 20, &[(21, 32)]), Verdict::Loss, "halved again");
    assert_eq!(again(&mut tcp, &partial), None, "20 is on its way a second time");
}

#[test]
fn without_sack_rules_1_to_4_are_new_reno() {
    let mut tcp = Berkeley::new(true, false, false);
    let now = outstanding(10, 20);
    for _ in 0..3 {
        feed(&mut tcp, &now, 10, &[]);
    }
    assert_eq!(again(&mut tcp, &now), Some(10));
    let partial = outstanding(14, 20);
    assert_eq!(feed(&mut tcp, &partial, 10, &[]), Verdict::Repairing { restart_timer: true });
    assert_eq!(
        (again(&mut tcp, &partial), tcp.inflation()),
        (Some(14), 0),
        "3 - 4 + 1: below the threshold"
    );
    // After a timeout, duplicates below snd_recover do not start a recovery (rule 2).
    tcp.on_timeout();
    for _ in 0..4 {
        assert_eq!(feed(&mut tcp, &partial, 14, &[]), Verdict::Open);
    }
    let beyond = outstanding(20, 30);
    assert_eq!(feed(&mut tcp, &beyond, 14, &[]), Verdict::Open);
    for _ in 0..2 {
        assert_eq!(feed(&mut tcp, &beyond, 20, &[]), Verdict::Open);
    }
    assert_eq!(feed(&mut tcp, &beyond, 20, &[]), Verdict::Loss, "at snd_recover: allowed");
}

#[test]
fn sacked_segments_are_not_retransmitted_after_a_timeout() {
    let mut tcp = Berkeley::new(true, true, false);
    let now = outstanding(10, 20);
    feed(&mut tcp, &now, 10, &[(12, 15)]);
    tcp.on_timeout();
    let back = Outstanding { next: 10 * MSS, ..now };
    assert_eq!(tcp.again(&back), Some((10 * MSS, 20 * MSS)), "forgotten");
    let later = Outstanding { oldest: 11 * MSS, next: 12 * MSS, ..now };
    feed(&mut tcp, &later, 10, &[(12, 15)]);
    assert_eq!(tcp.again(&later), Some((15 * MSS, 20 * MSS)), "rule 7");
}
