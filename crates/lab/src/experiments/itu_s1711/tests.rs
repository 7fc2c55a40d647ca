use super::bench::{Errors, SMALL, Trial, Way, test_b, trials};
use crate::experiments::Draw;
use std::collections::BTreeSet;

const DRAW: Draw = Draw { seed: 1, run: 0 };

#[test]
fn points_have_names_of_their_own() {
    let names: Vec<String> = trials().iter().map(|(trial, _)| trial.key()).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}

#[test]
fn a_small_window_is_the_limit_and_gateways_lift_it() {
    let kbps = |way| Trial::one(way, 10_000, 700).run(&DRAW).get("kbps");
    let bound = SMALL as f64 * 8.0 / 700.0;
    let [plain, split] = [Way::Plain, Way::Three].map(kbps);
    assert!((0.8 * bound..=bound).contains(&plain), "{plain} of {bound}");
    assert!(split > 20.0 * plain, "{split}");
}

#[test]
fn bursts_lose_as_much_as_single_errors() {
    let kbps = |errors| test_b(Way::Plain, 2, 1_536, errors).run(&DRAW).get("kbps");
    let [single, bursts] = [Errors::Ratio(1e-6), Errors::Bursts(1e-6, 4)].map(kbps);
    assert!(single > 50.0 && bursts > 50.0 && bursts < 1_536.0, "{single} {bursts}");
}
