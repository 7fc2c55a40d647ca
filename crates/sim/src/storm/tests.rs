use super::*;

/// Runs `count` storms from `first` on over each subject.
fn weather(first: u64, count: u64) -> Tally {
    let mut tally = Tally::default();
    for subject in Subject::ALL {
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
    }
    tally
}

#[test]
fn after_a_storm_everything_comes_to_its_end() {
    let tally = weather(0, 40);
    assert!(tally.packets / tally.runs >= 1_000, "{tally}");
}

#[test]
fn the_same_seed_gives_the_same_storm() {
    for subject in Subject::ALL {
        let trace = |seed| run(subject, seed).map(|report| report.trace);
        assert_eq!(trace(7), trace(7));
        assert_ne!(trace(7), trace(8));
    }
}
