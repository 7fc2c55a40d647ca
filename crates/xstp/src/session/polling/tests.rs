use super::*;

const RTT: Span = Span::from_millis(600);

fn polling(backoff_cap: u32) -> Polling {
    Polling::new(
        PollingConfig {
            per_round_trip: 3,
            round_trips: 1,
            backoff_cap,
            tick: Span::from_millis(10),
            spacing: Span::from_millis(5),
        },
        0,
        Instant::ZERO,
    )
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

/// XSTP-10.2.1
#[test]
fn the_timer_polls_three_times_per_rtt() {
    let mut polling = polling(6);
    assert_eq!(polling.due(Some(PollTimer::Regular), RTT), at(200));
    polling.on_sent(at(200), None, 0, false);
    assert_eq!(polling.due(Some(PollTimer::Regular), RTT), at(400));
    assert_eq!(polling.due(None, RTT), Instant::FAR_FUTURE);
    polling.config.round_trips = 6;
    assert_eq!(polling.due(Some(PollTimer::Regular), RTT), at(1_400), "one every two RTTs");
}

/// XSTP-10.2.3
#[test]
fn unanswered_polls_double_the_interval_until_a_stat() {
    let mut polling = polling(2);
    for expected in [400, 800, 800] {
        polling.on_sent(at(0), None, 0, true);
        assert_eq!(polling.interval(PollTimer::Regular, RTT), Span::from_millis(expected));
    }
    assert_eq!(polling.interval(PollTimer::Fallback, RTT), Span::from_millis(2420));
    polling.on_stat(at(900), polling.seq());
    assert_eq!(polling.interval(PollTimer::Regular, RTT), Span::from_millis(200));
    assert_eq!(polling.interval(PollTimer::Fallback, RTT), Span::from_millis(620));
}

/// XSTP-10.2.4
#[test]
fn a_cap_of_zero_never_backs_off() {
    let mut polling = polling(0);
    for _ in 0..100 {
        polling.on_sent(at(0), None, 0, true);
    }
    assert_eq!(polling.interval(PollTimer::Regular, RTT), Span::from_millis(200));
}

/// XSTP-10.2.5
#[test]
fn polls_are_spaced() {
    let mut polling = polling(0);
    polling.on_sent(at(10), None, 0, false);
    polling.request();
    assert_eq!(polling.due(None, RTT), at(15));
    assert_eq!(polling.interval(PollTimer::Regular, RTT / 200), RTT / 120, "the timer, too");
}

/// XSTP-10.2.1: without it the timer of a session without spacing never stopped.
#[test]
fn an_rtt_of_zero_has_a_minimum_interval() {
    let mut polling = polling(0);
    polling.config.spacing = Span::ZERO;
    polling.on_sent(at(10), None, 0, false);
    assert_eq!(polling.due(Some(PollTimer::Regular), Span::ZERO), at(11));
}

/// XSTP-7.3.5: at one POLL per millisecond and an RTT that had grown to 600 ms, every STAT arrived
/// after its POLL was discarded.
#[test]
fn stats_match_their_polls_after_the_list_is_thinned() {
    let mut polling = polling(0);
    let mut sampled = 0;
    for millis in 1..10_000 {
        polling.on_sent(at(millis), Some(2 * millis as u32), 0, false);
        if millis > 600 {
            let matched = polling.on_stat(at(millis), 2 * (millis as u32 - 600));
            let matched = matched.expect("an outstanding POLL");
            assert!(matched.first);
            let wrong = matched.sent_at.is_some_and(|sent| at(millis).since(sent) != RTT);
            assert!(!wrong, "the right POLL or none");
            sampled += u32::from(matched.sent_at.is_some());
        }
    }
    assert!(sampled > 100, "{sampled}");
    assert_eq!(polling.on_stat(at(10_000), 30_000), None, "no such POLL");
}

/// XSTP-10.2.6
#[test]
fn app_limited_polls_are_at_most_as_frequent_as_timer_polls() {
    let mut polling = polling(0);
    let mut polls = 0;
    for millis in (0..60_000).step_by(2) {
        polling.request_when_app_limited(at(millis), RTT);
        if polling.due(Some(PollTimer::Regular), RTT) <= at(millis) {
            polling.on_sent(at(millis), None, 0, false);
            polls += 1;
        }
    }
    assert!((300..=620).contains(&polls), "{polls} in a minute; the timer sends 300");
}

/// XSTP-10.5.1
#[test]
fn octets_before_an_unanswered_poll_count_from_the_last_answered_one() {
    let mut polling = polling(0);
    assert_eq!(polling.octets_before_unanswered(), 0, "no POLL is unanswered");
    for (millis, octets) in [(100, 1_000), (200, 5_000), (300, 12_000)] {
        polling.on_sent(at(millis), None, octets, false);
    }
    assert_eq!(polling.octets_before_unanswered(), 1_000);
    polling.on_stat(at(700), 2);
    assert_eq!(polling.octets_before_unanswered(), 7_000);
    polling.on_stat(at(900), 3);
    assert_eq!(polling.octets_before_unanswered(), 0);
}

/// XSTP-10.1.3
#[test]
fn stats_match_outstanding_polls_in_order() {
    let mut polling = polling(6);
    assert_eq!(polling.on_stat(at(0), 0), None, "no POLL was sent");
    for millis in [100, 200, 300] {
        polling.on_sent(at(millis), None, 0, false);
    }
    assert_eq!(polling.stat_missing_since(), Some(at(100)));
    assert_eq!(polling.on_stat(at(800), 4), None, "no such POLL");
    let matched = PollMatch { sent_at: Some(at(200)), first: true };
    assert_eq!(polling.on_stat(at(800), 2), Some(matched));
    assert_eq!(polling.stat_missing_since(), Some(at(800)));
    let repeated = PollMatch { first: false, ..matched };
    assert_eq!(polling.on_stat(at(801), 2), Some(repeated), "the second STAT of a list");
    assert_eq!(polling.on_stat(at(802), 1), None, "older than the last answered POLL");
    assert!(polling.is_outstanding());
    polling.on_stat(at(900), 3);
    assert!(!polling.is_outstanding());
    assert_eq!(polling.stat_missing_since(), None);
}

/// XSTP-2.2.2
#[test]
fn sequence_numbers_from_a_clock_increase_strictly() {
    let mut polling = polling(6);
    assert_eq!(polling.on_sent(at(0), Some(1000), 0, false), 1000);
    assert_eq!(polling.on_sent(at(0), Some(1000), 0, false), 1001);
    assert_eq!(polling.on_sent(at(0), Some(1000), 0, false), 1002);
    assert_eq!(polling.on_sent(at(0), Some(2000), 0, false), 2000);
    assert_eq!(polling.on_stat(at(1), 1500), None, "between two used sequence numbers");
    assert!(sent_before(u32::MAX, 3), "sequence numbers wrap");
    assert!(!sent_before(3, 3));
}
