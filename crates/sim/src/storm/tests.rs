use super::*;

/// Runs `count` storms over `subject` from the seed `first` on.
fn run_storms(subject: Subject, first: u64, count: u64) -> Tally {
    let mut tally = Tally::default();
    for seed in first..first + count {
        match run(subject, seed) {
            Ok(report) => tally.add(&report),
            Err(damage) => panic!(
                "{damage}\n  {}\n  bentpipe lab fuzz --seeds 1 --first {seed} --subject {}",
                describe(subject, seed),
                subject.name()
            ),
        }
    }
    tally
}

/// XSTP-6.2.1: 200 storms over sessions and 200 over connections have no violation and reach every
/// event in every state, and every kind of fault.
#[test]
fn storms_over_sessions_reach_every_state_and_event_without_violation() {
    let mut tally = Tally::default();
    for subject in [Subject::Sessions, Subject::Connections] {
        tally.merge(&run_storms(subject, FIRST, 200));
    }
    assert!(tally.packets / tally.runs >= 1_000, "{tally}");
    assert_eq!(tally.missed(), [], "{tally}");
    assert_eq!(tally.surprising(), [], "{tally}");
    for fault in Fault::ALL {
        assert!(tally.occurrences(fault)[0] > 0, "{fault} did not occur: {tally}");
    }
}

/// A range in which 200 seeds reach the rare combinations.
const FIRST: u64 = 6_000;

/// 200 storms over gateways have no violation, with every kind of fault and both cipher suites.
#[test]
fn storms_over_gateways_have_no_violation() {
    let tally = run_storms(Subject::Gateways, FIRST, 200);
    assert!(tally.packets / tally.runs >= 1_000, "{tally}");
    assert_eq!(tally.surprising(), [], "{tally}");
    for fault in Fault::ALL {
        assert!(tally.occurrences(fault)[0] > 0, "{fault} did not occur: {tally}");
    }
    let noise = |seed| describe(Subject::Gateways, seed).contains("noise");
    let noise = (FIRST..FIRST + 200).filter(|&seed| noise(seed)).count();
    assert!((50..150).contains(&noise), "{noise} of 200 with keys");
    run_storms(Subject::Links, FIRST, 20);
}

/// Seeds with an earlier violation (see docs/reliability.md).
#[test]
fn seeds_of_fixed_defects_have_no_violation() {
    for seed in [8, 88, 96, 376, 540, 729, 920, 1056, 1104, 1742, 77_650, 170_244] {
        run_storms(Subject::Sessions, seed, 1);
    }
    for seed in
        [48, 57, 94, 187, 273, 453, 927, 1123, 1263, 1983, 64_788, 73_877, 93_021, 152_349, 156_877]
    {
        run_storms(Subject::Connections, seed, 1);
    }
    for seed in [4, 691, 717, 1051, 1127, 1330, 1372, 2231, 2693, 5693] {
        run_storms(Subject::Gateways, seed, 1);
    }
}

#[test]
fn the_same_seed_gives_the_same_storm() {
    for subject in Subject::ALL {
        let trace = |seed| run(subject, seed).map(|report| report.trace);
        assert_eq!(trace(7), trace(7));
        assert_ne!(trace(7), trace(8));
    }
}
