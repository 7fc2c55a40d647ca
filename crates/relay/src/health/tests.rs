//! Scripts by hand, and what holds whatever is seen.

use super::*;
use proptest::prelude::*;

const HOLD: Span = Span::from_secs(10);

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

fn seen(answered: bool) -> Seen {
    Seen { answered, ..Seen::default() }
}

#[test]
fn the_first_answer_is_trusted_and_one_after_a_failure_only_after_the_hold_time() {
    let mut health = Health::new(Demands::default());
    health.look(at(0), seen(false));
    assert_eq!((health.verdict(), health.failures()), (Verdict::Down, 0));
    health.look(at(700), seen(true));
    assert_eq!(health.verdict(), Verdict::Well);
    health.look(at(5_000), seen(false));
    assert_eq!((health.verdict(), health.failures()), (Verdict::Down, 1));
    health.look(at(6_000), seen(true));
    assert_eq!(health.verdict(), Verdict::Recovering);
    assert_eq!(health.poll_timeout(), Some(at(16_000)));
    health.look(at(15_999), seen(true));
    assert_eq!(health.verdict(), Verdict::Recovering);
    health.look(at(16_000), seen(true));
    assert_eq!((health.verdict(), health.poll_timeout()), (Verdict::Well, None));
}

#[test]
fn what_is_asked_can_change_and_old_losses_count_for_nothing_then() {
    let seen = |sent: u64, sent_again: u64| Seen {
        answered: true,
        round_trip: Some(Span::from_millis(700)),
        sent,
        sent_again,
    };
    let mut health = Health::new(Demands::default());
    health.look(at(0), seen(10_000, 9_000));
    assert_eq!(health.verdict(), Verdict::Well);
    health.set_demands(Demands { most_loss: Some(10), ..Demands::default() });
    health.look(at(60_000), seen(10_000, 9_000));
    health.look(at(70_000), seen(11_000, 9_000));
    assert_eq!(health.verdict(), Verdict::Well, "since it is asked nothing was lost");
    health.look(at(80_000), seen(12_000, 9_500));
    assert_eq!(health.verdict(), Verdict::Poor);
    let demands = Demands { hold: Span::from_secs(1), ..Demands::default() };
    health.set_demands(demands);
    health.look(at(80_001), seen(12_000, 9_500));
    health.look(at(81_001), seen(12_000, 9_500));
    assert_eq!(health.verdict(), Verdict::Well, "any loss is taken again");
    health.set_demands(Demands { most_round_trip: Some(Span::from_millis(650)), ..demands });
    health.look(at(81_002), seen(12_000, 9_500));
    assert_eq!(health.verdict(), Verdict::Poor, "too slow now");
}

#[test]
fn who_waits_for_a_way_waits_for_one_that_may_answer() {
    let mut ways = ways(&[(2, 1), (1, 1), (3, 1)]);
    assert_eq!((ways.first(), ways.first_of(|number| number != 1)), (Some(1), Some(0)));
    assert_eq!(ways.first_of(|_| false), Some(1), "none may");
    ways.look(at(0), 1, seen(true));
    assert_eq!(ways.first_of(|number| number != 1), Some(1), "one that does answer is one");
}

#[test]
fn a_relapse_begins_the_hold_time_anew() {
    let mut health = Health::new(Demands::default());
    for (ms, answered) in [(0, true), (1, false), (2, true), (9_000, false), (9_001, true)] {
        health.look(at(ms), seen(answered));
    }
    health.look(at(10_002), seen(true));
    assert_eq!(health.verdict(), Verdict::Recovering);
    health.look(at(19_001), seen(true));
    assert_eq!(health.verdict(), Verdict::Well);
}

#[test]
fn a_way_that_loses_or_takes_too_much_is_poor() {
    let demands = Demands {
        most_loss: Some(20),
        most_round_trip: Some(Span::from_secs(1)),
        ..Demands::default()
    };
    let mut health = Health::new(demands);
    let sent = |sent, sent_again| Seen { answered: true, sent, sent_again, round_trip: None };
    health.look(at(0), sent(0, 0));
    // A fifth is not more than a fifth, and in too short a time nothing is concluded.
    health.look(at(4_000), sent(1, 1_000));
    assert_eq!(health.verdict(), Verdict::Well);
    health.look(at(5_000), sent(8_000, 2_000));
    assert_eq!(health.verdict(), Verdict::Well);
    health.look(at(10_000), sent(8_790, 2_210));
    assert_eq!((health.verdict(), health.answers()), (Verdict::Poor, Verdict::Well));
    // Nothing more is sent by it: it gets another chance, and has to hold then.
    health.look(at(20_000), sent(8_790, 2_210));
    assert_eq!(health.verdict(), Verdict::Recovering);
    health.look(at(30_000), sent(8_790, 2_210));
    assert_eq!(health.verdict(), Verdict::Well);
    let slow = Seen { round_trip: Some(Span::from_millis(1_001)), ..sent(8_790, 2_210) };
    health.look(at(31_000), slow);
    assert_eq!((health.verdict(), health.failures()), (Verdict::Poor, 2));
    health.look(at(32_000), Seen { answered: false, ..slow });
    assert_eq!((health.verdict(), health.failures()), (Verdict::Down, 2));
    // Answers are trusted after the hold time even if they stay slow.
    health.look(at(33_000), slow);
    assert_eq!((health.verdict(), health.answers()), (Verdict::Poor, Verdict::Recovering));
    assert_eq!(health.poll_timeout(), Some(at(43_000)));
    health.look(at(43_000), slow);
    assert_eq!((health.verdict(), health.answers()), (Verdict::Poor, Verdict::Well));
}

#[test]
fn what_an_outage_has_lost_is_no_loss() {
    let mut health = Health::new(Demands { most_loss: Some(5), ..Demands::default() });
    let sent = |answered, sent, sent_again| Seen { answered, sent, sent_again, round_trip: None };
    health.look(at(0), sent(true, 0, 0));
    health.look(at(60_000), sent(false, 1_000, 500));
    health.look(at(61_000), sent(true, 1_000, 501));
    health.look(at(71_000), sent(true, 2_000, 502));
    assert_eq!(health.verdict(), Verdict::Well);
}

fn ways(all: &[(u32, u32)]) -> Ways {
    let mut ways = Ways::default();
    for &(priority, weight) in all {
        ways.add(priority, weight, Demands::default());
    }
    ways
}

#[test]
fn turns_go_by_weight_among_the_first_and_to_the_backup_without_them() {
    let mut ways = ways(&[(1, 3), (2, 1), (1, 1)]);
    assert_eq!((ways.choose(), ways.first(), ways.any_usable()), (None, Some(0), false));
    ways.look(at(0), 1, seen(true));
    assert_eq!((ways.choose(), ways.first()), (Some(1), Some(1)));
    for number in [0, 2] {
        assert_eq!(ways.look(at(1), number, seen(true)), Some(Verdict::Well));
    }
    let chosen: Vec<_> = (0..8).filter_map(|_| ways.choose()).collect();
    assert_eq!(chosen, [0, 0, 2, 0, 0, 0, 2, 0]);
    ways.look(at(2), 0, seen(false));
    assert_eq!([ways.choose(), ways.choose()], [Some(2), Some(2)]);
    ways.look(at(2), 2, seen(false));
    assert_eq!(ways.choose(), Some(1));
    // The first one is back, and not trusted yet; without the backup it is better than none.
    ways.look(at(3), 0, seen(true));
    assert_eq!(ways.choose(), Some(1));
    ways.look(at(4), 1, seen(false));
    assert_eq!(ways.choose(), Some(0));
}

#[test]
fn a_way_that_is_slow_is_better_than_one_that_is_dead() {
    let demands = Demands { most_round_trip: Some(Span::from_secs(1)), ..Demands::default() };
    let mut ways = Ways::default();
    ways.add(1, 1, demands);
    ways.add(2, 1, demands);
    let slow = Seen { round_trip: Some(Span::from_secs(2)), ..seen(true) };
    assert_eq!(ways.look(at(0), 1, slow), Some(Verdict::Poor), "at the start as well");
    assert_eq!((ways.choose(), ways.first(), ways.any_usable()), (Some(1), Some(1), true));
    ways.look(at(1), 0, slow);
    assert_eq!((ways.choose(), ways.first()), (Some(0), Some(0)), "by priority");
    ways.look(at(2), 1, seen(true));
    assert_eq!((ways.choose(), ways.first()), (Some(1), Some(1)));
    ways.look(at(3), 1, seen(false));
    ways.look(at(4), 1, seen(true));
    assert_eq!(ways.health(1).verdict(), Verdict::Recovering);
    assert_eq!((ways.choose(), ways.first()), (Some(1), Some(1)), "it has recovered from worse");
    ways.look(at(5), 1, seen(false));
    assert_eq!((ways.choose(), ways.first()), (Some(0), Some(0)));
}

proptest! {
    /// Whatever is seen: a way that is well is chosen if there is one, one that answers if there
    /// is one; the first priority comes first; and no way is trusted again before the hold time.
    #[test]
    fn the_choice_is_the_best_and_does_not_flap(
        all in prop::collection::vec((1u32..4, 1u32..5), 1..6),
        steps in prop::collection::vec(
            (0u64..4_000, prop::collection::vec((any::<bool>(), any::<bool>()), 6)),
            1..200,
        ),
    ) {
        let most_round_trip = Some(Span::from_secs(1));
        let mut ways = Ways::default();
        for &(priority, weight) in &all {
            ways.add(priority, weight, Demands { most_round_trip, ..Demands::default() });
        }
        let mut now = at(0);
        let mut failed: Vec<Option<Instant>> = vec![None; all.len()];
        let mut answering = vec![None; all.len()];
        for (pause, answers) in steps {
            now += Span::from_millis(pause);
            for number in 0..all.len() {
                let (answered, slow) = answers[number];
                let round_trip = Some(Span::from_secs(1 + u64::from(slow)));
                let before = ways.health(number).verdict();
                ways.look(now, number, Seen { round_trip, ..seen(answered) });
                if !answered || slow {
                    answering[number] = None;
                    if before == Verdict::Well {
                        failed[number] = Some(now);
                    }
                } else {
                    answering[number].get_or_insert(now);
                }
                let verdict = ways.health(number).verdict();
                prop_assert_eq!(verdict == Verdict::Down, !answered);
                prop_assert_eq!(ways.health(number).answers() == Verdict::Down, !answered);
                prop_assert_eq!(verdict == Verdict::Poor, answered && slow);
                if verdict == Verdict::Well && failed[number].is_some() {
                    let since = answering[number].expect("it answers");
                    prop_assert!(now.since(since) >= HOLD);
                }
            }
            let chosen = ways.choose();
            let verdicts: Vec<Verdict> =
                (0..all.len()).map(|number| ways.health(number).verdict()).collect();
            let answering = [Verdict::Well, Verdict::Recovering, Verdict::Poor];
            let best = answering.into_iter().find_map(|verdict| {
                let like = (0..all.len()).filter(|&number| verdicts[number] == verdict);
                like.map(|number| all[number].0).min().map(|priority| (verdict, priority))
            });
            prop_assert_eq!(chosen.map(|number| (verdicts[number], all[number].0)), best);
            prop_assert_eq!(ways.any_usable(), chosen.is_some());
            prop_assert_eq!(ways.first().is_some(), true);
        }
    }

    /// Between two times at which the same way takes over from another lies the hold time, unless
    /// there was none that was well.
    #[test]
    fn a_preferred_way_takes_over_no_oftener_than_the_hold_time_allows(
        steps in prop::collection::vec((0u64..3_000, any::<bool>()), 1..300),
    ) {
        let mut ways = ways(&[(1, 1), (2, 1)]);
        let mut now = at(0);
        ways.look(now, 1, seen(true));
        let mut took_over: Option<Instant> = None;
        let mut last = Some(1);
        for (pause, answered) in steps {
            now += Span::from_millis(pause);
            ways.look(now, 0, seen(answered));
            let chosen = ways.choose();
            if chosen == Some(0) && last == Some(1) {
                if let Some(before) = took_over {
                    prop_assert!(now.since(before) >= HOLD);
                }
                took_over = Some(now);
            }
            last = chosen;
        }
    }

    /// Over many choices each of the same priority has had what its weight says, to within one.
    #[test]
    fn shares_are_as_the_weights_say(weights in prop::collection::vec(1u32..20, 1..8), rounds in 1u64..20) {
        let mut ways = ways(&weights.iter().map(|&weight| (1, weight)).collect::<Vec<_>>());
        for number in 0..weights.len() {
            ways.look(at(0), number, seen(true));
        }
        let total: u32 = weights.iter().sum();
        let mut counts = vec![0u64; weights.len()];
        for _ in 0..rounds * u64::from(total) {
            counts[ways.choose().expect("all are well")] += 1;
        }
        for (count, weight) in counts.iter().zip(&weights) {
            prop_assert_eq!(*count, rounds * u64::from(*weight));
        }
    }
}
