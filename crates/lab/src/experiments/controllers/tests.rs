use super::*;
use crate::experiments::Options;

#[test]
fn a_job_gives_the_same_numbers_again() {
    let cases = all();
    let case = cases.iter().find(|case| case.key() == "loss/1 %").unwrap();
    let draw = Draw { seed: 1, run: 2 };
    assert_eq!(one(case, RateControl::Cubic, &draw), one(case, RateControl::Cubic, &draw));
    assert_ne!(
        one(case, RateControl::Cubic, &draw),
        one(case, RateControl::Cubic, &Draw { seed: 1, run: 3 })
    );
}

#[test]
fn every_way_goes_through_every_case() {
    let setting = Options::new("unused").setting(&ENTRY).unwrap();
    let points = plan(&setting);
    assert_eq!(points.len(), all().len() * RateControl::ALL.len() + TRANSFERS.len());
}
