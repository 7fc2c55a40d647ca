//! When new connections are carried, and when not, by a clock of our own.

use super::*;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(1_000 + ms)
}

fn fail(unreachable: WhenFail, full: WhenFail) -> FallbackPolicy {
    let mut fail = FallbackPolicy::new(FailSection { unreachable, full });
    fail.review(at(0), HealthState::Down, 0, 100);
    fail
}

#[test]
fn a_terminal_that_has_just_started_is_patient() {
    let mut fail = fail(WhenFail::Open, WhenFail::Wait);
    assert_eq!((fail.disposition(), fail.wanted_bypass(at(0))), (Disposition::Relay, None));
    assert_eq!(fail.poll_timeout(at(0)), Some(at(5_000)));
    fail.review(at(4_999), HealthState::Down, 0, 100);
    assert_eq!(fail.disposition(), Disposition::Relay);
    fail.review(at(5_000), HealthState::Down, 0, 100);
    assert_eq!(
        (fail.disposition(), fail.wanted_bypass(at(5_000))),
        (Disposition::Direct, Some(true))
    );
    assert_eq!(fail.poll_timeout(at(5_000)), None);
}

#[test]
fn the_bypass_ends_when_a_path_is_up() {
    let mut fail = fail(WhenFail::Open, WhenFail::Wait);
    fail.review(at(9_000), HealthState::Down, 0, 100);
    fail.set_bypass(true);
    assert_eq!(fail.wanted_bypass(at(9_000)), None);
    fail.review(at(10_000), HealthState::Recovering, 0, 100);
    assert_eq!((fail.disposition(), fail.wanted_bypass(at(10_000))), (Disposition::Direct, None));
    fail.review(at(20_000), HealthState::Up, 0, 100);
    assert_eq!(
        (fail.disposition(), fail.wanted_bypass(at(20_000))),
        (Disposition::Relay, Some(false))
    );
}

#[test]
fn refusals_end_when_a_path_responds() {
    let mut fail = fail(WhenFail::Refuse, WhenFail::Wait);
    fail.review(at(9_000), HealthState::Down, 0, 100);
    assert_eq!((fail.disposition(), fail.wanted_bypass(at(9_000))), (Disposition::Refuse, None));
    fail.review(at(10_000), HealthState::Recovering, 0, 100);
    assert_eq!(fail.disposition(), Disposition::Relay);
}

#[test]
fn an_outage_makes_the_hub_unreachable_after_half_a_second() {
    let mut fail = fail(WhenFail::Refuse, WhenFail::Wait);
    for outage in [at(200), at(2_000)] {
        fail.review(outage - Span::from_millis(100), HealthState::Up, 0, 100);
        assert_eq!(fail.disposition(), Disposition::Relay);
        fail.review(outage, HealthState::Down, 0, 100);
        assert_eq!(fail.disposition(), Disposition::Relay);
        assert_eq!(fail.poll_timeout(outage), Some(outage + Span::from_millis(500)));
        fail.review(outage + Span::from_millis(500), HealthState::Down, 0, 100);
        assert_eq!(fail.disposition(), Disposition::Refuse);
    }
}

#[test]
fn beyond_the_limit_connections_pass_until_a_tenth_is_free() {
    let mut fail = fail(WhenFail::Wait, WhenFail::Open);
    for (open, wants) in [(93, None), (94, Some(true)), (91, Some(true)), (90, None), (93, None)] {
        fail.review(at(10_000), HealthState::Up, open, 100);
        assert_eq!(
            (fail.wanted_bypass(at(10_000)), fail.disposition()),
            (wants, Disposition::Relay),
            "{open}"
        );
    }
    assert!(!fail.waits_when_full());
}

#[test]
fn a_rejected_filter_change_is_retried() {
    let mut fail = fail(WhenFail::Open, WhenFail::Wait);
    fail.review(at(9_000), HealthState::Down, 0, 100);
    fail.refused(at(9_000));
    assert_eq!((fail.wanted_bypass(at(9_999)), fail.is_bypassing()), (None, false));
    assert_eq!(fail.poll_timeout(at(9_999)), Some(at(10_000)));
    assert_eq!(fail.wanted_bypass(at(10_000)), Some(true));
    fail.set_bypass(true);
    assert_eq!((fail.wanted_bypass(at(10_000)), fail.is_bypassing()), (None, true));
    assert_eq!(fail.poll_timeout(at(10_000)), None);
}

#[test]
fn a_hub_that_answers_by_a_poor_path_is_not_missed() {
    let mut fail = fail(WhenFail::Open, WhenFail::Wait);
    fail.review(at(9_000), HealthState::Degraded, 0, 100);
    assert_eq!((fail.disposition(), fail.wanted_bypass(at(9_000))), (Disposition::Relay, None));
}

#[test]
fn a_blocked_connection_is_not_polled() {
    let mut fail = fail(WhenFail::Wait, WhenFail::Wait);
    fail.review(at(60_000), HealthState::Down, 100, 100);
    assert_eq!((fail.disposition(), fail.wanted_bypass(at(60_000))), (Disposition::Relay, None));
    assert_eq!(fail.poll_timeout(at(0)), None);
}
