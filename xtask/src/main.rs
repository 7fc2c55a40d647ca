//! Checks of the source tree: `cargo run -p xtask -- check`.
//!
//! ```text
//!   layers  ── dependencies between crates are those of the table; `no_std` crates stay pure
//!   sizes   ── no file or test module exceeds its limit; those that already do may only shrink
//!   cycles  ── imports between files of different folders have no cycle
//!   terms   ── retired terms are not used, except in listed places
//!   clauses ── clauses are numbered in order and contain all requirements; tests name existing ones
//!   links   ── links in Markdown lead to existing files and headings
//! ```
//!
//! And `cargo run -p xtask -- packages` makes the Debian package and a tarball with a static program,
//! `deb` and `tarball` one of them.
//!
//! Each check prints every violation with what was found and what is allowed.

use report::Report;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

mod binary;
mod clauses;
mod cycles;
mod deb;
mod files;
mod layers;
mod links;
mod pages;
mod report;
mod sizes;
mod sources;
mod tarball;
mod terms;

type Check = fn() -> Result<Report, String>;

const CHECKS: [(&str, Check); 6] = [
    ("layers", layers::check),
    ("sizes", sizes::check),
    ("cycles", cycles::check),
    ("terms", terms::check),
    ("clauses", clauses::check),
    ("links", links::check),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let made = match words.split_first() {
        Some((&"deb", rest)) => Some(deb::build(rest).map(|package| vec![package])),
        Some((&"tarball", rest)) => Some(tarball::build(rest).map(|package| vec![package])),
        Some((&"packages", rest)) => Some(packages(rest)),
        Some(_) | None => None,
    };
    if let Some(made) = made {
        return report_packages(made);
    }
    let chosen: Vec<_> = match arguments.as_slice() {
        [name] => CHECKS.iter().filter(|(known, _)| name == "check" || name == known).collect(),
        _ => Vec::new(),
    };
    if chosen.is_empty() {
        let names = CHECKS.map(|(name, _)| name).join(" | ");
        eprintln!("usage: cargo run -p xtask -- check | {names} | packages | deb | tarball");
        return ExitCode::from(2);
    }
    let mut failed = false;
    for (_, check) in chosen {
        match check() {
            Ok(report) => failed |= report.print(),
            Err(error) => {
                eprintln!("error: {error}");
                failed = true;
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Makes all packages, in one folder if it is named.
fn packages(arguments: &[&str]) -> Result<Vec<PathBuf>, String> {
    if !matches!(arguments, [] | ["--out", _]) {
        return Err("usage: cargo run -p xtask -- packages [--out DIR]".into());
    }
    Ok(vec![deb::build(arguments)?, tarball::build(arguments)?])
}

/// Prints packages with their checksums.
fn report_packages(made: Result<Vec<PathBuf>, String>) -> ExitCode {
    let sums = made.and_then(|all| files::run(Command::new("sha256sum").args(all)));
    match sums {
        Ok(sums) => {
            print!("{sums}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
