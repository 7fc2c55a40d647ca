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
//! And `cargo run -p xtask -- packages` makes packages.
//!
//! Each check prints every violation with what was found and what is allowed.

use report::Report;
use std::process::ExitCode;

mod binary;
mod clauses;
mod cycles;
mod files;
mod layers;
mod links;
mod packages;
mod pages;
mod report;
mod sizes;
mod sources;
mod stage;
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
    if let Some((&"packages", rest)) = words.split_first() {
        return match packages::build(rest) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        };
    }
    let chosen: Vec<_> = match arguments.as_slice() {
        [name] => CHECKS.iter().filter(|(known, _)| name == "check" || name == known).collect(),
        _ => Vec::new(),
    };
    if chosen.is_empty() {
        let names = CHECKS.map(|(name, _)| name).join(" | ");
        eprintln!("usage: cargo run -p xtask -- check | {names} | packages");
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
