//! Selection of runs, and evaluation of their results.

use super::*;
use testbed::traffic::Sample;

#[test]
fn equal_cases_share_a_run() {
    let all = jobs(&ControlConfig::default()).unwrap();
    let names: usize = all.iter().map(|job| job.names.len()).sum();
    assert_eq!(names, controllers::all().len() * Way::ALL.len());
    assert!(all.len() < names, "no loss, a queue of one product and 1 Mbit/s are one link");
    assert!(all.windows(2).all(|pair| pair[0].case.to >= pair[1].case.to));
    let some = ControlConfig {
        only: vec!["loss/1".to_owned()],
        ways: vec!["steady".to_owned(), "bbr".to_owned()],
        ..ControlConfig::default()
    };
    assert_eq!(jobs(&some).unwrap().len(), 2);
}

#[test]
fn unknown_names_are_reported_with_the_known_ones() {
    let error = |config: &ControlConfig| jobs(config).err().unwrap().to_string();
    let config = ControlConfig { only: vec!["moon".to_owned()], ..ControlConfig::default() };
    assert!(error(&config).starts_with("case: found \"moon\", expected (a part of) one of loss/0"));
    let config = ControlConfig { ways: vec!["vegas".to_owned()], ..ControlConfig::default() };
    assert!(
        error(&config).ends_with("expected one of fixed, newreno, probing, steady, cubic, bbr")
    );
}

#[test]
fn quick_runs_shorten_only_constant_links() {
    for case in controllers::all() {
        let quick = shorter(case.clone());
        let same = case.study == "blackout" || case.study == "handoff" || case.study == "fade";
        assert_eq!(quick.to == case.to, same, "{}", case.key());
        assert!(quick.to > quick.from);
    }
}

#[test]
fn values_are_computed_from_the_interval_of_the_case() {
    let series =
        (0..=100).map(|step| Sample { at: Span::from_millis(step * 100), bytes: step * 1_000 });
    let transfer = Transfer {
        started: Instant::ZERO,
        connected: None,
        first_byte: None,
        ended: Span::from_secs(10),
        bytes: 100_000,
        complete: false,
        matches: true,
        checksum: 0,
        series: series.collect(),
        error: None,
    };
    let at = |secs| Instant::ZERO + Span::from_secs(secs);
    assert_eq!(bytes(&transfer, Span::ZERO, at(2), at(4)), 20_000);
    assert_eq!(bytes(&transfer, Span::from_secs(3), at(2), at(4)), 10_000, "it began at 3 s");
    let cases = controllers::all();
    let case = |study| cases.iter().find(|case| case.study == study).unwrap();
    assert_eq!(value(case("own"), &[4e6, 4e6]), Some(1.0));
    assert_eq!(value(case("own"), &[4e6, 0.0]), Some(0.5));
    let compete = case("compete");
    assert_eq!(value(compete, &[compete.allowed_bps / 2.0, 1.0]), Some(1.0));
    assert_eq!(value(compete, &[]), None);
}
