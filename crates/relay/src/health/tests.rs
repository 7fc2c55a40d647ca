//! Scripted cases, and properties for random samples.

use super::*;
use proptest::prelude::*;

const HOLD: Span = Span::from_secs(10);

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

fn seen(answered: bool) -> PathSample {
    PathSample { answered, ..PathSample::default() }
}

#[test]
fn the_hold_time_applies_after_a_failure_only() {
    let mut health = Health::new(HealthCriteria::default());
    health.update(at(0), seen(false));
    assert_eq!((health.state(), health.failures()), (HealthState::Down, 0));
    health.update(at(700), seen(true));
    assert_eq!(health.state(), HealthState::Up);
    health.update(at(5_000), seen(false));
    assert_eq!((health.state(), health.failures()), (HealthState::Down, 1));
    health.update(at(6_000), seen(true));
    assert_eq!(health.state(), HealthState::Recovering);
    assert_eq!(health.poll_timeout(), Some(at(16_000)));
    health.update(at(15_999), seen(true));
    assert_eq!(health.state(), HealthState::Recovering);
    health.update(at(16_000), seen(true));
    assert_eq!((health.state(), health.poll_timeout()), (HealthState::Up, None));
}

#[test]
fn changed_criteria_discard_earlier_losses() {
    let seen = |sent: u64, retransmitted: u64| PathSample {
        answered: true,
        round_trip: Some(Span::from_millis(700)),
        sent,
        retransmitted,
    };
    let mut health = Health::new(HealthCriteria::default());
    health.update(at(0), seen(10_000, 9_000));
    assert_eq!(health.state(), HealthState::Up);
    health.set_demands(HealthCriteria { most_loss: Some(10), ..HealthCriteria::default() });
    health.update(at(60_000), seen(10_000, 9_000));
    health.update(at(70_000), seen(11_000, 9_000));
    assert_eq!(health.state(), HealthState::Up, "since it is asked nothing was lost");
    health.update(at(80_000), seen(12_000, 9_500));
    assert_eq!(health.state(), HealthState::Degraded);
    let demands = HealthCriteria { hold: Span::from_secs(1), ..HealthCriteria::default() };
    health.set_demands(demands);
    health.update(at(80_001), seen(12_000, 9_500));
    health.update(at(81_001), seen(12_000, 9_500));
    assert_eq!(health.state(), HealthState::Up, "any loss is taken again");
    health.set_demands(HealthCriteria { most_round_trip: Some(Span::from_millis(650)), ..demands });
    health.update(at(81_002), seen(12_000, 9_500));
    assert_eq!(health.state(), HealthState::Degraded, "too slow now");
}

#[test]
fn first_prefers_a_path_that_may_respond() {
    let mut selector = selector(&[(2, 1), (1, 1), (3, 1)]);
    assert_eq!((selector.first(), selector.first_of(|number| number != 1)), (Some(1), Some(0)));
    assert_eq!(selector.first_of(|_| false), Some(1), "none may");
    selector.update(at(0), 1, seen(true));
    assert_eq!(selector.first_of(|number| number != 1), Some(1), "one that does answer is one");
}

#[test]
fn another_failure_restarts_the_hold_time() {
    let mut health = Health::new(HealthCriteria::default());
    for (ms, answered) in [(0, true), (1, false), (2, true), (9_000, false), (9_001, true)] {
        health.update(at(ms), seen(answered));
    }
    health.update(at(10_002), seen(true));
    assert_eq!(health.state(), HealthState::Recovering);
    health.update(at(19_001), seen(true));
    assert_eq!(health.state(), HealthState::Up);
}

#[test]
fn loss_or_rtt_above_the_limit_degrades_a_path() {
    let demands = HealthCriteria {
        most_loss: Some(20),
        most_round_trip: Some(Span::from_secs(1)),
        ..HealthCriteria::default()
    };
    let mut health = Health::new(demands);
    let sent =
        |sent, retransmitted| PathSample { answered: true, sent, retransmitted, round_trip: None };
    health.update(at(0), sent(0, 0));
    // A fifth does not exceed a fifth, and a measurement needs its minimum duration.
    health.update(at(4_000), sent(1, 1_000));
    assert_eq!(health.state(), HealthState::Up);
    health.update(at(5_000), sent(8_000, 2_000));
    assert_eq!(health.state(), HealthState::Up);
    health.update(at(10_000), sent(8_790, 2_210));
    assert_eq!((health.state(), health.answers()), (HealthState::Degraded, HealthState::Up));
    // No data is sent over it any more: it recovers, and has to pass the hold time.
    health.update(at(20_000), sent(8_790, 2_210));
    assert_eq!(health.state(), HealthState::Recovering);
    health.update(at(30_000), sent(8_790, 2_210));
    assert_eq!(health.state(), HealthState::Up);
    let slow = PathSample { round_trip: Some(Span::from_millis(1_001)), ..sent(8_790, 2_210) };
    health.update(at(31_000), slow);
    assert_eq!((health.state(), health.failures()), (HealthState::Degraded, 2));
    health.update(at(32_000), PathSample { answered: false, ..slow });
    assert_eq!((health.state(), health.failures()), (HealthState::Down, 2));
    // Responses are sufficient after the hold time even if their RTT stays too high.
    health.update(at(33_000), slow);
    assert_eq!(
        (health.state(), health.answers()),
        (HealthState::Degraded, HealthState::Recovering)
    );
    assert_eq!(health.poll_timeout(), Some(at(43_000)));
    health.update(at(43_000), slow);
    assert_eq!((health.state(), health.answers()), (HealthState::Degraded, HealthState::Up));
}

#[test]
fn outage_losses_are_not_a_loss_rate() {
    let mut health =
        Health::new(HealthCriteria { most_loss: Some(5), ..HealthCriteria::default() });
    let sent = |answered, sent, retransmitted| PathSample {
        answered,
        sent,
        retransmitted,
        round_trip: None,
    };
    health.update(at(0), sent(true, 0, 0));
    health.update(at(60_000), sent(false, 1_000, 500));
    health.update(at(61_000), sent(true, 1_000, 501));
    health.update(at(71_000), sent(true, 2_000, 502));
    assert_eq!(health.state(), HealthState::Up);
}

fn selector(all: &[(u32, u32)]) -> PathSelector {
    let mut selector = PathSelector::default();
    for &(priority, weight) in all {
        selector.add(priority, weight, HealthCriteria::default());
    }
    selector
}

#[test]
fn selection_is_by_weight_and_priority() {
    let mut selector = selector(&[(1, 3), (2, 1), (1, 1)]);
    assert_eq!(
        (selector.choose(), selector.first(), selector.any_usable()),
        (None, Some(0), false)
    );
    selector.update(at(0), 1, seen(true));
    assert_eq!((selector.choose(), selector.first()), (Some(1), Some(1)));
    for number in [0, 2] {
        assert_eq!(selector.update(at(1), number, seen(true)), Some(HealthState::Up));
    }
    let chosen: Vec<_> = (0..8).filter_map(|_| selector.choose()).collect();
    assert_eq!(chosen, [0, 0, 2, 0, 0, 0, 2, 0]);
    selector.update(at(2), 0, seen(false));
    assert_eq!([selector.choose(), selector.choose()], [Some(2), Some(2)]);
    selector.update(at(2), 2, seen(false));
    assert_eq!(selector.choose(), Some(1));
    // The first path recovers; without the backup it is better than none.
    selector.update(at(3), 0, seen(true));
    assert_eq!(selector.choose(), Some(1));
    selector.update(at(4), 1, seen(false));
    assert_eq!(selector.choose(), Some(0));
}

#[test]
fn a_degraded_path_is_preferred_to_one_that_is_down() {
    let demands =
        HealthCriteria { most_round_trip: Some(Span::from_secs(1)), ..HealthCriteria::default() };
    let mut selector = PathSelector::default();
    selector.add(1, 1, demands);
    selector.add(2, 1, demands);
    let slow = PathSample { round_trip: Some(Span::from_secs(2)), ..seen(true) };
    assert_eq!(
        selector.update(at(0), 1, slow),
        Some(HealthState::Degraded),
        "at the start as well"
    );
    assert_eq!(
        (selector.choose(), selector.first(), selector.any_usable()),
        (Some(1), Some(1), true)
    );
    selector.update(at(1), 0, slow);
    assert_eq!((selector.choose(), selector.first()), (Some(0), Some(0)), "by priority");
    selector.update(at(2), 1, seen(true));
    assert_eq!((selector.choose(), selector.first()), (Some(1), Some(1)));
    selector.update(at(3), 1, seen(false));
    selector.update(at(4), 1, seen(true));
    assert_eq!(selector.health(1).state(), HealthState::Recovering);
    assert_eq!(
        (selector.choose(), selector.first()),
        (Some(1), Some(1)),
        "it has recovered from worse"
    );
    selector.update(at(5), 1, seen(false));
    assert_eq!((selector.choose(), selector.first()), (Some(0), Some(0)));
}

proptest! {
    /// For random samples: a path that is up is selected if there is one, otherwise one that
    /// responds; the first priority precedes others; and no path is used again before the hold
    /// time.
    #[test]
    fn the_best_path_is_selected_without_flapping(
        all in prop::collection::vec((1u32..4, 1u32..5), 1..6),
        steps in prop::collection::vec(
            (0u64..4_000, prop::collection::vec((any::<bool>(), any::<bool>()), 6)),
            1..200,
        ),
    ) {
        let most_round_trip = Some(Span::from_secs(1));
        let mut selector = PathSelector::default();
        for &(priority, weight) in &all {
            selector.add(priority, weight, HealthCriteria { most_round_trip, ..HealthCriteria::default() });
        }
        let mut now = at(0);
        let mut failed: Vec<Option<Instant>> = vec![None; all.len()];
        let mut answering = vec![None; all.len()];
        for (pause, answers) in steps {
            now += Span::from_millis(pause);
            for number in 0..all.len() {
                let (answered, slow) = answers[number];
                let round_trip = Some(Span::from_secs(1 + u64::from(slow)));
                let before = selector.health(number).state();
                selector.update(now, number, PathSample { round_trip, ..seen(answered) });
                if !answered || slow {
                    answering[number] = None;
                    if before == HealthState::Up {
                        failed[number] = Some(now);
                    }
                } else {
                    answering[number].get_or_insert(now);
                }
                let state = selector.health(number).state();
                prop_assert_eq!(state == HealthState::Down, !answered);
                prop_assert_eq!(selector.health(number).answers() == HealthState::Down, !answered);
                prop_assert_eq!(state == HealthState::Degraded, answered && slow);
                if state == HealthState::Up && failed[number].is_some() {
                    let since = answering[number].expect("it answers");
                    prop_assert!(now.since(since) >= HOLD);
                }
            }
            let chosen = selector.choose();
            let verdicts: Vec<HealthState> =
                (0..all.len()).map(|number| selector.health(number).state()).collect();
            let answering = [HealthState::Up, HealthState::Recovering, HealthState::Degraded];
            let best = answering.into_iter().find_map(|state| {
                let like = (0..all.len()).filter(|&number| verdicts[number] == state);
                like.map(|number| all[number].0).min().map(|priority| (state, priority))
            });
            prop_assert_eq!(chosen.map(|number| (verdicts[number], all[number].0)), best);
            prop_assert_eq!(selector.any_usable(), chosen.is_some());
            prop_assert_eq!(selector.first().is_some(), true);
        }
    }

    /// Between two times at which the same path replaces another lies the hold time, unless no path
    /// was up.
    #[test]
    fn takeovers_are_separated_by_the_hold_time(
        steps in prop::collection::vec((0u64..3_000, any::<bool>()), 1..300),
    ) {
        let mut selector = selector(&[(1, 1), (2, 1)]);
        let mut now = at(0);
        selector.update(now, 1, seen(true));
        let mut took_over: Option<Instant> = None;
        let mut last = Some(1);
        for (pause, answered) in steps {
            now += Span::from_millis(pause);
            selector.update(now, 0, seen(answered));
            let chosen = selector.choose();
            if chosen == Some(0) && last == Some(1) {
                if let Some(before) = took_over {
                    prop_assert!(now.since(before) >= HOLD);
                }
                took_over = Some(now);
            }
            last = chosen;
        }
    }

    /// Over many selections each path of the same priority has its share by weight, within one.
    #[test]
    fn selections_are_proportional_to_weights(weights in prop::collection::vec(1u32..20, 1..8), rounds in 1u64..20) {
        let mut selector = selector(&weights.iter().map(|&weight| (1, weight)).collect::<Vec<_>>());
        for number in 0..weights.len() {
            selector.update(at(0), number, seen(true));
        }
        let total: u32 = weights.iter().sum();
        let mut counts = vec![0u64; weights.len()];
        for _ in 0..rounds * u64::from(total) {
            counts[selector.choose().expect("all are well")] += 1;
        }
        for (count, weight) in counts.iter().zip(&weights) {
            prop_assert_eq!(*count, rounds * u64::from(*weight));
        }
    }
}
