//! System tests: real gateways in network namespaces, with an injected fault under load.
//!
//! ```text
//!   client ── terminal ══ emulator ══ hub ── server        TestNetwork: processes of this program
//!   Load: parallel connections with content that can be verified
//! ```
//!
//! Each system test is one file with one function that injects faults into a `network::TestNetwork` under a
//! `load::Load` and records guarantees and measured values in a [`Verdict`]. A test fails if a
//! guarantee is violated, and names it; it also reports what cannot be tested on this machine.
//! Everything runs in namespaces and processes that end with this one.

mod bond;
mod browser;
mod clock_step;
mod common;
mod compression;
mod dead_names;
mod disk_full;
mod families;
mod flood;
mod hostile;
mod interface_gone;
mod kill;
mod late_address;
mod load;
mod log_blocked;
mod long;
mod network;
mod site_names;
mod slots;
mod slow_cpu;
mod soak;
mod stalled;
mod udp_blocked;
mod verdict;

pub use common::ProofConfig;
pub use verdict::Verdict;

use crate::LabError;
use crate::files::write_whole;
use common::{failed, noise, sleep_ms};
use rt::Clock;
use std::path::Path;

/// One system test.
#[derive(Debug)]
pub struct Entry {
    /// Name on the command line.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    run: fn(&ProofConfig, &mut Verdict) -> Result<(), LabError>,
}

/// All system tests, the longest last.
pub const ALL: &[Entry] = &[
    Entry {
        name: "kill-terminal",
        about: "kill -9 of the terminal's gateway under load, and restart",
        run: kill::terminal,
    },
    Entry {
        name: "kill-hub",
        about: "kill -9 of the hub's gateway under load, and restart",
        run: kill::hub,
    },
    Entry {
        name: "disk-full",
        about: "state file and log on a full disk, which is freed later",
        run: disk_full::run,
    },
    Entry {
        name: "clock-step",
        about: "steps of the wall clock by days in both directions; a start with an old date",
        run: clock_step::run,
    },
    Entry {
        name: "interface-gone",
        about: "interfaces of LAN and satellite are deleted and created again, with another address",
        run: interface_gone::run,
    },
    Entry {
        name: "families",
        about: "a hub that receives IPv6 later, and servers that refuse: fallback of clients",
        run: families::run,
    },
    Entry {
        name: "log-blocked",
        about: "the standard error of both gateways is not read, at level debug",
        run: log_blocked::run,
    },
    Entry {
        name: "late-address",
        about: "gateways start before their addresses are assigned; these are removed and added again",
        run: late_address::run,
    },
    Entry {
        name: "slow-cpu",
        about: "both gateways run for 10 ms of each 100 ms",
        run: slow_cpu::run,
    },
    Entry {
        name: "flood",
        about: "forged handshakes during a transfer at full rate",
        run: flood::run,
    },
    Entry {
        name: "hostile-terminal",
        about: "a terminal with a valid key sends malformed payloads",
        run: hostile::terminal::run,
    },
    Entry {
        name: "hostile-hub",
        about: "a hub with the right key sends malformed payloads",
        run: hostile::hub::run,
    },
    Entry {
        name: "hostile-client",
        about: "thousands of slow, silent, malformed and half-open clients",
        run: hostile::client::run,
    },
    Entry {
        name: "stalled",
        about: "hundreds of connections that are not read, in parallel to an honest client",
        run: stalled::run,
    },
    Entry {
        name: "dead-names",
        about: "look-ups of 1,000 names without response, in parallel to valid names",
        run: dead_names::run,
    },
    Entry {
        name: "site-names",
        about: "names by the terminal's DNS forwarder, with placeholders and without a link; squid",
        run: site_names::run,
    },
    Entry {
        name: "compression",
        about: "a page, records and an archive over 1 Mbit/s, with compression off and on",
        run: compression::run,
    },
    Entry {
        name: "bond",
        about: "two links used at once: rates, short requests, and the loss of either link",
        run: bond::run,
    },
    Entry {
        name: "slots",
        about: "clients and a terminal with the maximum number of connections",
        run: slots::run,
    },
    Entry {
        name: "udp-blocked",
        about: "UDP is blocked while a download fills the link: connections over TLS, and back",
        run: udp_blocked::run,
    },
    Entry {
        name: "browser",
        about: "pages, WebSocket, events, media and uploads in Chromium, beside plain TCP; a link cut",
        run: browser::run,
    },
    Entry {
        name: "soak",
        about: "100,000 connections of all kinds; memory and descriptors before and after",
        run: soak::run,
    },
];

/// Returns the system tests with these names, or all if there are none.
///
/// # Errors
/// If a name is unknown.
pub fn choose(names: &[String]) -> Result<Vec<&'static Entry>, LabError> {
    if names.is_empty() {
        return Ok(ALL.iter().collect());
    }
    let find = |name: &String| {
        ALL.iter().find(|entry| entry.name == name).ok_or_else(|| {
            let known: Vec<&str> = ALL.iter().map(|entry| entry.name).collect();
            let known = known.join(", ");
            LabError::Request(format!("proof: found {name:?}, expected one of {known}"))
        })
    };
    names.iter().map(find).collect()
}

/// Runs one system test. A failed set-up counts as a failure and is reported.
pub fn prove(entry: &Entry, config: &ProofConfig) -> Verdict {
    let clock = Clock::new();
    let from = clock.now();
    let mut verdict = Verdict::new(entry.name, config.quick);
    if let Err(error) = (entry.run)(config, &mut verdict) {
        verdict.demand(false, &format!("the test was completed ({error})"));
    }
    verdict.seconds = clock.now().since(from).as_secs_f64();
    verdict
}

/// Writes verdicts to `path` as JSON.
///
/// # Errors
/// If the file cannot be written.
pub fn write(verdicts: &[Verdict], path: &Path) -> Result<(), LabError> {
    let mut text = serde_json::to_string_pretty(verdicts).expect("verdicts are text and numbers");
    text.push('\n');
    write_whole(path, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_tests_are_selected_by_name() {
        assert_eq!(choose(&[]).unwrap().len(), ALL.len());
        assert_eq!(choose(&["kill-hub".to_owned()]).unwrap()[0].name, "kill-hub");
        let error = choose(&["kill".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("kill-hub") && error.contains("\"kill\""), "{error}");
    }

    #[test]
    fn names_are_distinct() {
        let mut names: Vec<&str> = ALL.iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}
