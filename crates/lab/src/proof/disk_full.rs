//! A full disk for state file and log.
//!
//! Each gateway has a tmpfs of 64 kB in its own mount namespace, which is filled before the gateway
//! starts and disappears with the process. Log and state file are on it. Later, space is released.

use super::load::{Load, LoadConfig};
use super::network::{Setup, Side, TestNetwork};
use super::{ProofConfig, Verdict, failed, sleep_ms};
use crate::LabError;
use crate::live::gateway_program;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Mounts and fills the disk, and executes the program that follows.
const SCRIPT: &str = "mount -t tmpfs -o size=64k bentpipe \"$0\" || exit 9; \
     cat /dev/zero > \"$0/fill\" 2>/dev/null; exec \"$@\" 2>\"$0/log\"";

pub(super) fn run(config: &ProofConfig, verdict: &mut Verdict) -> Result<(), LabError> {
    let disk = Disk::new()?;
    let state = disk.path.join("peers.toml");
    let setup = Setup {
        // Rates are measured, so that there is state to store; the log level is high.
        rates: "rate_up = \"auto\"\nrate_down = \"auto\"\nround_trip = \"30ms\"",
        top: format!("state = \"{}\"\n", state.display()),
        tables: "[log]\nlevel = \"debug\"\nconnections = \"on\"\n".to_owned(),
        ..Setup::new(config.seed)
    };
    let mut network = TestNetwork::without_gateways(&setup)?;
    for side in [Side::Hub, Side::Terminal] {
        network.start_by(side, disk.command()?)?;
    }
    network.await_path(units::Span::from_secs(30))?;
    let inside = |network: &mut TestNetwork, side, name: &str| {
        PathBuf::from(format!("/proc/{}/root{}/{name}", network.process(side), disk.path.display()))
    };
    let fill = inside(&mut network, Side::Hub, "fill");
    let full = fs::metadata(&fill).map_err(failed("the filled disk"))?.len();
    verdict.figure("disk_bytes", full as f64);
    let log = inside(&mut network, Side::Hub, "log");
    verdict.demand(length(&log) == 0, "the log had no room");

    let load = Load::start(&network, LoadConfig { workers: 20, ..LoadConfig::new(config.seed) });
    sleep_ms(if config.quick { 2_000 } else { 8_000 });
    network.check()?;
    let without_room = load.so_far().complete;
    verdict.demand(without_room > 0, "connections are relayed while nothing can be written");
    verdict.demand(
        !inside(&mut network, Side::Hub, "peers.toml").exists(),
        "no half of a state file is left",
    );
    // Space is released without a restart.
    for side in Side::BOTH {
        fs::remove_file(inside(&mut network, side, "fill")).map_err(failed("making room"))?;
    }
    sleep_ms(1_500);
    verdict.demand(length(&log) > 0, "the log continues when there is room again");
    let tally = load.finish(&network);
    verdict.demand(tally.reset + tally.refused == 0, "no connection is reset or refused");
    verdict.evaluate(tally);
    network.check()
}

fn length(path: &std::path::Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// The mount point: an empty folder outside the mount namespace.
struct Disk {
    path: PathBuf,
}

impl Disk {
    fn new() -> Result<Self, LabError> {
        let path = std::env::temp_dir().join(format!("bentpipe-disk-{}", std::process::id()));
        fs::create_dir_all(&path).map_err(failed("a folder"))?;
        Ok(Self { path })
    }

    fn command(&self) -> Result<Command, LabError> {
        let program = gateway_program().map_err(failed("this program"))?;
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", SCRIPT]).arg(&self.path).arg(program);
        Ok(command)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path); // It is empty here.
    }
}
