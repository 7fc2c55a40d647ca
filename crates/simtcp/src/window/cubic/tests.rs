use super::*;

const MSS: u64 = 1_000;

fn cubic(segments: u64) -> Cubic {
    Cubic::new(Levels::new(MSS, segments * MSS, None), EarlyEnd::Never)
}

fn ack(at: Span, segments: u64) -> Acked {
    Acked {
        now: Instant::ZERO + at,
        bytes: segments * MSS,
        up_to: 0,
        next: 0,
        limited: true,
        sample: None,
        round_trip: Some(Span::from_millis(100)),
        fine: None,
    }
}

fn window(cubic: &Cubic) -> f64 {
    cubic.levels().window() as f64 / MSS as f64
}

/// Acknowledges a window each 100 ms from `from` to `to`.
fn run(cubic: &mut Cubic, from: Span, to: Span) {
    let mut at = from;
    while at < to {
        for _ in 0..(window(cubic) as u64) {
            cubic.on_ack(&ack(at, 1));
        }
        at += Span::from_millis(100);
    }
}

#[test]
fn linux_grows_by_a_twentieth_before_any_loss() {
    let grown = |early_end, lost: bool| {
        let levels = Levels::new(MSS, 100 * MSS, None);
        let mut cubic = Cubic::new(levels, early_end);
        cubic.levels_mut().set_threshold(100 * MSS);
        if lost {
            cubic.on_loss(100 * MSS);
        }
        let before = window(&cubic);
        // A window of acknowledgements at one time: t is 0, and the cubic function flat.
        (0..before as u64).for_each(|_| cubic.on_ack(&ack(Span::from_millis(1), 1)));
        window(&cubic) / before
    };
    // (1 + 1/20 of a segment for each): 100 become 105; after a loss and without Linux's rule the
    // cubic function is flat and W_est adds less than one.
    let known = grown(EarlyEnd::LinuxHyStart, false);
    assert!((known - 1.05).abs() < 0.001, "{known}");
    assert!(grown(EarlyEnd::Never, false) < 1.012);
    assert!(grown(EarlyEnd::LinuxHyStart, true) < 1.04);
}

#[test]
fn growth_is_concave_to_the_old_window_at_k_and_convex_after() {
    let mut cubic = cubic(1_000);
    cubic.on_loss(1_000 * MSS);
    assert_eq!(window(&cubic), 700.0);
    // K = cbrt(300 / 0.4) = 9.0856 s. W(t) = 0.4 (t - K)^3 + 1000, with a target one round trip
    // ahead: after 2 s 0.4 (-7.0856)^3 + 1000 = 857.7, after 5 s 972.7, at K 1000.
    let mut last = Span::ZERO;
    for (seconds, expected) in [(2.0, 857.7), (5.0, 972.7), (9.0856, 1000.0), (12.0, 1009.9)] {
        let until = Span::from_secs_f64(seconds);
        run(&mut cubic, last, until);
        last = until;
        let got = window(&cubic);
        assert!((got - expected).abs() < 4.0, "at {seconds} s: {got}, not {expected}");
    }
}

#[test]
fn fast_convergence_after_a_loss_below_the_old_window() {
    let mut cubic = cubic(100);
    cubic.on_loss(100 * MSS);
    assert_eq!((cubic.top, window(&cubic)), (100.0, 70.0));
    cubic.on_loss(70 * MSS);
    // W_max = 70 × 1.7 / 2 = 59.5 (section 4.7).
    assert!((cubic.top - 59.5).abs() < 1e-9);
    assert_eq!(window(&cubic), 49.0);
}

#[test]
fn on_a_short_path_it_grows_as_reno_would() {
    // At 10 segments and 100 ms, C t^3 is far below alpha = 0.529 a round trip: K = 1.957 s
    // and W(1 s) = 0.4 (-0.957)^3 + 10 = 9.65. W_est is back at 10 after 5.7 round trips,
    // and gains a segment in each of the other 4.3; a little less here, since only whole
    // segments are acknowledged.
    let mut cubic = cubic(10);
    cubic.on_loss(10 * MSS);
    run(&mut cubic, Span::ZERO, Span::from_secs(1));
    let got = window(&cubic);
    assert!((13.2..14.3).contains(&got), "{got}");
}

#[test]
fn growth_after_a_timeout_starts_at_the_threshold() {
    let mut cubic = cubic(100);
    cubic.on_timeout(100 * MSS, true);
    assert_eq!((window(&cubic), cubic.levels().threshold()), (1.0, 70 * MSS));
    // Slow start to 70, then K = 0 and W_max = 70 (section 4.8): 0.4 × 5^3 = 50 more in 5 s.
    cubic.on_ack(&ack(Span::ZERO, 69));
    assert_eq!(window(&cubic), 70.0);
    run(&mut cubic, Span::from_millis(1), Span::from_secs(5));
    let got = window(&cubic);
    assert!((got - 120.0).abs() < 4.0, "{got}");
}

/// Round trips of growing length in slow start; returns the final window.
fn queueing(cubic: &mut Cubic, from: u64) -> f64 {
    let mut number = from * 1_000;
    for round in 0..12 {
        for _ in 0..10 {
            number += 1;
            let at = Span::from_millis(from * 1_000 + round * 100);
            let sample = Some(Span::from_millis(600 + 40 * round));
            let (up_to, next) = (number, number + 9);
            cubic.on_ack(&Acked { up_to, next, sample, ..ack(at, 1) });
        }
    }
    window(cubic)
}

#[test]
fn an_early_end_is_for_the_initial_slow_start() {
    let levels = || Levels::new(MSS, 20 * MSS, None);
    let mut plus = Cubic::new(levels(), EarlyEnd::HyStartPlusPlus);
    assert!(queueing(&mut plus, 0) < 100.0 && plus.levels().threshold() < 100 * MSS);
    let mut plain = Cubic::new(levels(), EarlyEnd::Never);
    plain.levels = plus.levels;
    for cubic in [&mut plus, &mut plain] {
        cubic.on_timeout(400 * MSS, true);
    }
    assert_eq!(queueing(&mut plus, 100), queueing(&mut plain, 100));
    // Linux's HyStart has ended a slow start, and is inactive until a timeout.
    let mut linux = Cubic::new(levels(), EarlyEnd::LinuxHyStart);
    let found = queueing(&mut linux, 0);
    assert!(found < 100.0, "{found}");
    linux.levels.set_threshold(1_000 * MSS);
    assert!(queueing(&mut linux, 100) >= found + 120.0 - 1e-9);
    linux.on_timeout(400 * MSS, true);
    linux.levels.set_threshold(1_000 * MSS);
    queueing(&mut linux, 200);
    assert!(linux.levels().threshold() < 100 * MSS);
}

#[test]
fn time_in_which_the_window_was_not_used_does_not_count() {
    let (mut used, mut idle) = (cubic(1_000), cubic(1_000));
    for cubic in [&mut used, &mut idle] {
        cubic.on_loss(1_000 * MSS);
        run(cubic, Span::ZERO, Span::from_secs(2));
    }
    idle.on_idle(Span::from_secs(60));
    run(&mut used, Span::from_secs(2), Span::from_secs(3));
    run(&mut idle, Span::from_secs(62), Span::from_secs(63));
    assert!((window(&used) - window(&idle)).abs() < 0.1);
}
