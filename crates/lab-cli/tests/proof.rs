//! Short forms of some of the tests of `bentpipe-lab proof`.
//!
//! All of them: `cargo test -p bentpipe-lab --test proof -- --ignored`, or better the command
//! itself, of a release build.

use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// Runs system tests and returns their verdicts; `None`, with a message on standard error, where
/// the machine allows no namespaces.
fn prove(names: &[&str]) -> Option<Vec<Value>> {
    if let Err(refusal) = testbed::permission::check() {
        eprintln!("skipped: {refusal}");
        return None;
    }
    let name = format!("bentpipe-proof-{}-{}", std::process::id(), names.len());
    let out = Folder(std::env::temp_dir().join(name));
    let mut command = Command::new(env!("CARGO_BIN_EXE_bentpipe-lab"));
    command.args(["proof", "--quick", "--out"]).arg(&out.0).args(names);
    let output = command.output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{errors}");
    let json = std::fs::read(out.0.join("proofs.json")).expect("verdicts");
    Some(serde_json::from_slice(&json).expect("verdicts in JSON"))
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn killed_gateways_reset_connections_and_come_back() {
    let Some(verdicts) = prove(&["kill-terminal", "kill-hub"]) else { return };
    for verdict in verdicts {
        let load = &verdict["load"];
        assert_eq!(
            (&load["truncated"], &load["wrong"], &load["hung"]),
            (&0.into(), &0.into(), &0.into())
        );
        assert!(load["reset"].as_u64().is_some_and(|reset| reset > 0), "{load}");
    }
}

#[test]
fn blocked_logs_and_late_addresses_delay_nothing() {
    prove(&["log-blocked", "late-address"]);
}

#[test]
fn no_connection_is_lost_with_either_of_two_bonded_links() {
    prove(&["bond"]);
}

#[test]
fn a_browser_works_behind_the_terminal() {
    let Some(verdicts) = prove(&["browser"]) else { return };
    for note in verdicts[0]["notes"].as_array().into_iter().flatten() {
        eprintln!("{note}");
    }
}

#[test]
#[ignore = "two minutes and more"]
fn all_short_system_tests_pass() {
    prove(&[]);
}
