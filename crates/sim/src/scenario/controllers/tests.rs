use super::*;

fn case(key: &str) -> Case {
    all().into_iter().find(|case| case.key() == key).expect("there is such a case")
}

#[test]
fn cases_are_valid_and_have_unique_names() {
    let cases = all();
    let mut keys: Vec<String> = cases.iter().map(Case::key).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), cases.len());
    for case in &cases {
        case.link.validate().unwrap();
        assert!(case.from < case.to && case.allowed_bps > 0.0, "{}", case.key());
        for (at, link) in &case.changes {
            link.validate().unwrap();
            assert!(Instant::ZERO + *at < case.to);
        }
    }
}

#[test]
fn fixed_rate_is_reached_and_loss_limits_cubic() {
    let fixed = measure(&case("loss/1 %"), RateControl::Fixed, 1, 0);
    assert!(fixed.value > 0.95 && fixed.at_speed < Some(Span::from_secs(2)), "{fixed:?}");
    let cubic = measure(&case("loss/1 %"), RateControl::Cubic, 1, 0);
    assert!(cubic.value < 0.1 && cubic.at_speed.is_none(), "{cubic:?}");
}

#[test]
fn achievable_goodput_accounts_for_a_fade() {
    let case = case("fade/to 30 %");
    // 20 s at 3 and 40 s at 10 Mbit/s: 7.67 Mbit/s on average, of which 1440/1500 is payload.
    assert!((case.allowed_bps - 7.36e6).abs() < 1e4, "{}", case.allowed_bps);
    let seen = measure(&case, RateControl::Steady, 1, 0);
    assert!((0.5..1.0).contains(&seen.value), "{seen:?}");
}
