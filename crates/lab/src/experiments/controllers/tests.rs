use super::*;

#[test]
fn a_job_is_deterministic() {
    let cases = all();
    let case = cases.iter().find(|case| case.key() == "loss/1 %").unwrap();
    let draw = Draw { seed: 1, run: 2 };
    assert_eq!(one(case, RateControl::Cubic, &draw), one(case, RateControl::Cubic, &draw));
    assert_ne!(
        one(case, RateControl::Cubic, &draw),
        one(case, RateControl::Cubic, &Draw { seed: 1, run: 3 })
    );
}
