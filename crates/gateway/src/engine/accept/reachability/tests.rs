use super::*;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

const V4_ONLY: Families = Families { ipv4: FamilyReach::Global, ipv6: FamilyReach::None };

fn address(text: &str) -> Destination {
    Destination::Address(text.parse().unwrap())
}

/// RLY-9.4
#[test]
fn only_global_addresses_of_a_family_that_is_not_reached_are_refused() {
    let mut known = Reachability::default();
    let unreachable =
        |known: &Reachability, text: &str| known.is_unreachable(text.parse().unwrap());
    assert!(!unreachable(&known, "2001:db8::1"));
    known.review(at(0), true, Some(V4_ONLY));
    assert!(unreachable(&known, "2001:db8::1"));
    for reached in ["fd00::1", "::1", "64:ff9b::1", "1.1.1.1", "::ffff:1.1.1.1"] {
        assert!(!unreachable(&known, reached), "{reached}");
    }
    let partial = |ipv4, ipv6| Some(Families { ipv4, ipv6 });
    known.review(at(1), true, partial(FamilyReach::Partial, FamilyReach::Partial));
    assert!(known.is_deferred(at(1), &address("[2001:db8::1]:80")));
    assert!(!known.is_deferred(at(1), &address("[fd00::1]:80")));
    assert!(!known.is_deferred(at(1), &address("1.1.1.1:80")), "nothing falls back from IPv4");
    known.review(at(2), true, partial(FamilyReach::None, FamilyReach::Global));
    assert!(unreachable(&known, "1.1.1.1") && !unreachable(&known, "10.1.1.1"));
}

/// RLY-9.2
#[test]
fn announcements_are_valid_until_the_next_session_replaces_them() {
    let mut known = Reachability::default();
    known.review(at(0), true, Some(V4_ONLY));
    known.review(at(1), false, None);
    assert_eq!(known.families, V4_ONLY);
    known.review(at(60_000), true, None);
    known.review(at(64_999), true, None);
    assert_eq!(known.families, V4_ONLY);
    assert_eq!(known.poll_timeout(at(64_999)), Some(at(65_000)));
    known.review(at(65_000), true, None);
    assert_eq!(known.families, Families::default());
    assert!(known.stale);
}

#[test]
fn servers_that_failed_are_deferred_until_they_answer_or_time_has_passed() {
    let mut known = Reachability::default();
    let server = Destination::Address("10.3.0.2:80".parse().unwrap());
    let client = Some("10.1.0.7".parse().unwrap());
    let refused = RefuseReason::ConnectionRefused;
    known.failed(at(0), client, Some(&server), refused);
    assert!(known.is_deferred(at(9_999), &address("10.3.0.2:80")));
    assert!(!known.is_deferred(at(9_999), &address("10.3.0.2:81")));
    assert!(!known.is_deferred(at(10_000), &address("10.3.0.2:80")));
    assert!(std::mem::take(&mut known.stale));
    known.succeeded(Some(&server));
    assert!(!known.is_deferred(at(1), &address("10.3.0.2:80")) && known.stale);
    known.failed(at(0), client, Some(&server), RefuseReason::Policy);
    assert!(!known.is_deferred(at(1), &address("10.3.0.2:80")));
}
