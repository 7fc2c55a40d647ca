//! Hashes the code that determines the results of experiments, so that stored results of other code
//! are not reused.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Crates that every simulated experiment runs.
const SIMULATED: &[&str] = &["units", "satlink", "simtcp", "xstp", "association", "relay", "sim"];
/// Crates that live experiments run in addition.
const LIVE: &[&str] = &["rt", "testbed", "gateway"];
/// Files and folders of an experiment that only evaluate stored results.
const EVALUATION: &[&str] =
    &["judge", "cells.rs", "figures.rs", "tables.rs", "report.rs", "tests.rs"];

/// Files of scenarios that only evaluate stored results.
const SCENARIO_EVALUATION: &[&str] = &[
    "bundle.rs",
    "compare.rs",
    "expect.rs",
    "figures.rs",
    "mod.rs",
    "record.rs",
    "results.rs",
    "simulation.rs",
    "source.rs",
    "sweep.rs",
    "tests.rs",
];

fn main() {
    let lab = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let crates = lab.parent().expect("the crates' folder").to_path_buf();
    let mut codes = BTreeMap::new();
    for (name, parts) in [("simulated", SIMULATED), ("live", LIVE)] {
        let mut hash = Hash::new();
        for part in parts {
            take(&crates.join(part).join("src"), &["tests.rs"], &mut hash);
        }
        let lock = crates.join("../Cargo.lock");
        println!("cargo:rerun-if-changed={}", lock.display());
        hash.take(&fs::read(lock).unwrap_or_default());
        codes.insert(name.to_owned(), hash.0);
    }
    let experiments = lab.join("src/experiments");
    println!("cargo:rerun-if-changed={}", experiments.display());
    let shared = fs::read(experiments.join("network.rs")).unwrap_or_default();
    for entry in sorted(&experiments).into_iter().filter(|path| path.is_dir()) {
        let mut hash = Hash::new();
        hash.take(&shared);
        take(&entry, EVALUATION, &mut hash);
        let name = entry.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        codes.insert(name.to_owned(), hash.0);
    }
    let mut hash = Hash::new();
    take(&lab.join("src/scenario"), SCENARIO_EVALUATION, &mut hash);
    codes.insert("scenario".to_owned(), hash.0);
    let words: Vec<String> =
        codes.iter().map(|(name, code)| format!("{name}={code:016x}")).collect();
    println!("cargo:rustc-env=BENTPIPE_LAB_CODES={}", words.join(","));
}

/// Adds the sources below `folder` to the hash, except files and folders named in `without`.
fn take(folder: &Path, without: &[&str], hash: &mut Hash) {
    println!("cargo:rerun-if-changed={}", folder.display());
    for path in sorted(folder) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if without.contains(&name) {
            continue;
        }
        if path.is_dir() && name != "tests" {
            take(&path, without, hash);
        } else if name.ends_with(".rs") {
            hash.take(name.as_bytes());
            hash.take(&fs::read(&path).unwrap_or_default());
        }
    }
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// FNV-1a, 64 bits.
struct Hash(u64);

impl Hash {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn take(&mut self, bytes: &[u8]) {
        for &byte in bytes.iter().chain(&[0]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
