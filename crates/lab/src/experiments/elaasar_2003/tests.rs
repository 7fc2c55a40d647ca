//! A small run, compared bit by bit with stored results and loosely with the paper.

use super::super::options::Options;
use super::conditions::Condition;
use super::trial::{Party, Trial};
use super::*;
use crate::experiments::{Cell, Draw, Point, Ran, Setting, Verdict, run};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Stored results of the small run. `BENTPIPE_BLESS=1 cargo test -p lab golden` rewrites them after
/// a change of the protocol that is meant to change them.
const GOLDEN: &str = include_str!("golden.csv");
/// Every sentence of the paper's results, and its cell.
const SENTENCES: &str = include_str!("../../../../../docs/results/elaasar-2003-sentences.md");
const PATH: &str = "src/experiments/elaasar_2003/golden.csv";

fn setting() -> Setting {
    let mut options = Options::new("/nonexistent");
    options.quick = true;
    options.set = vec!["file_bytes=200000".to_owned()];
    Setting { replications: 2, ..options.setting(&ENTRY).unwrap() }
}

/// Returns the values of a point that are compared: points of all figures, and of each other study
/// at least one.
fn looked_at(point: &Point) -> &'static [&'static str] {
    const TRANSFER: &[&str] =
        &["seconds", "overhead_percent", "retransmission_percent", "cycles", "probes"];
    const RADIO: &[&str] = &["100/latency_s", "1024/latency_s", "1024/frames", "1024/octets"];
    match (point.study, point.key.as_str()) {
        (FIGURES, _) => &TRANSFER[..4],
        (AMBIGUITIES, "no-slot-before/corruption-10s/20/on" | "reordered/handoff-1s/5/off") => {
            TRANSFER
        }
        (congestion::MODELLED, "1s/50/on" | "1s/50/steady") => TRANSFER,
        (congestion::QUEUED, "3000/off" | "3000/on" | "3000/steady") => {
            &["seconds", "queue_drops", "random_drops"]
        }
        (return_of_link::STUDY, "20s/off" | "20s/on" | "20s/steady") => &["seconds"],
        ("radio-stacks", "chosen/1200" | "timer/1200" | "noise/9600") => RADIO,
        ("radio-compression", "filled/with noise of 1e-4/9600") => RADIO,
        _ => &[],
    }
}

/// Returns the compared values of each replication as CSV.
fn small_run() -> String {
    let mut text = String::from("study,point,replication,value,number\n");
    for point in plan(&setting()) {
        let names = looked_at(&point);
        let runs = if names.is_empty() { 0 } else { u64::from(point.replications) };
        for run in 0..runs {
            let values = (point.simulate)(&Draw { seed: 1, run }).unwrap();
            for name in names {
                let (study, key, number) = (point.study, &point.key, values.get(name));
                text += &format!("{study},{key},{run},{name},{number}\n");
            }
        }
    }
    text
}

#[test]
fn golden() {
    let now = small_run();
    for study in [AMBIGUITIES, congestion::MODELLED, congestion::QUEUED, return_of_link::STUDY] {
        assert!(now.contains(&format!("\n{study},")), "nothing of {study}");
    }
    assert!(now.contains("\nradio-stacks,") && now.contains("\nradio-compression,"));
    if std::env::var_os("BENTPIPE_BLESS").is_some() {
        std::fs::write(PATH, &now).unwrap();
        return;
    }
    let changed = GOLDEN.lines().zip(now.lines()).find(|(before, now)| before != now);
    assert_eq!(changed, None, "the golden run has changed; see the top of this file");
    assert_eq!(GOLDEN.lines().count(), now.lines().count());
}

/// The ranges are widened for a small file and few replications.
#[test]
fn a_small_run_is_within_the_papers_ranges() {
    let setting = Setting { replications: 4, ..setting() };
    let means = |condition: Condition, percent, name| {
        [Party::Off, Party::On].map(|party| {
            let mut trial = Trial::new(&setting, party, condition, percent);
            trial.size = 1_000_000;
            let runs = 0..u64::from(setting.replications);
            let values = runs.map(|run| trial.run(&Draw { seed: 1, run }).unwrap().get(name));
            values.sum::<f64>() / f64::from(setting.replications)
        })
    };
    let [off, on] = means(conditions::CORRUPTION_10, 20, "throughput_bps");
    assert!((1.0..3.0).contains(&(on / off)), "bit corruption: {off} and {on} bit/s");
    let [off, on] = means(conditions::HANDOFF_1, 15, "throughput_bps");
    assert!((1.0..2.5).contains(&(on / off)), "hand-off: {off} and {on} bit/s");
    let [off, on] = means(conditions::HANDOFF_1, 15, "overhead_percent");
    assert!(on < off, "hand-off: {off} and {on} % of overhead");
}

/// The list of sentences must name all cells and no others. The cells of the two tables are listed
/// by their prefix.
fn every_sentence_has_its_cell(names: &BTreeSet<&str>) {
    let quoted = SENTENCES.lines().filter(|line| line.starts_with('|')).flat_map(|line| {
        let cells = line.rsplit(" | ").next().unwrap_or_default();
        cells.split('`').skip(1).step_by(2)
    });
    let listed: Vec<&str> = quoted.collect();
    let is_listed = |name: &str| {
        listed.iter().any(|listed| match listed.strip_suffix(" ...") {
            Some(beginning) => name.starts_with(beginning),
            None => *listed == name,
        })
    };
    let unlisted: Vec<&&str> = names.iter().filter(|name| !is_listed(name)).collect();
    assert!(unlisted.is_empty(), "cells without a sentence: {unlisted:?}");
    for listed in listed.iter().filter(|listed| !listed.ends_with(" ...")) {
        assert!(names.contains(listed), "{listed}: no cell of this name");
    }
}

#[test]
fn a_tiny_run_writes_all_results() {
    let folder = std::env::temp_dir().join(format!("bentpipe-elaasar-{}", std::process::id()));
    let mut options = Options::new(&folder);
    options.quick = true;
    options.replications = Some(1);
    options.set = vec!["file_bytes=50000".to_owned()];
    let ran = run(&[&ENTRY], &options).unwrap();
    let [Ran::Whole(judged)] = ran.as_slice() else { panic!("not whole: {ran:?}") };
    let cells: Vec<&Cell> = judged.outcome.cells().collect();
    let names: BTreeSet<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
    assert_eq!(names.len(), cells.len(), "every cell has its own name");
    assert!(cells.len() >= 120, "{} cells", cells.len());
    assert!(judged.outcome.count(Verdict::NotComparable) * 10 <= cells.len());
    every_sentence_has_its_cell(&names);
    assert!(cells.iter().all(|cell| !cell.reason.is_empty() && !cell.criterion.is_empty()));
    let exists = |name: &str| PathBuf::from(&folder).join(name).exists();
    for name in ["report.html", "results.json", "elaasar-2003/corruption-10s-throughput.png"] {
        assert!(exists(name), "{name} is missing");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
