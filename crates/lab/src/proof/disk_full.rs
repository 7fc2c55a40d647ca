//! A disk without room, under the state file and under the log.
//!
//! Each gateway gets a tmpfs of its own, of 64 kB, in a mount namespace of its own, filled to the
//! last byte before it starts; it vanishes with the process. Its log goes there, its state is to
//! be kept there. Later the room comes back.

use super::bed::{Bed, Setup, Side};
use super::load::{Load, LoadConfig};
use super::{ProofConfig, Verdict, failed, pause_ms};
use crate::LabError;
use crate::live::gateway_program;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Mounts the disk, fills it, and becomes the program that follows.
const SCRIPT: &str = "mount -t tmpfs -o size=64k bentpipe \"$0\" || exit 9; \
     cat /dev/zero > \"$0/fill\" 2>/dev/null; exec \"$@\" 2>\"$0/log\"";

pub(super) fn run(config: &ProofConfig, verdict: &mut Verdict) -> Result<(), LabError> {
    let disk = Disk::new()?;
    let state = disk.path.join("peers.toml");
    let setup = Setup {
        // Rates are found, so there is something to remember; the log has much to say.
        rates: "rate_up = \"auto\"\nrate_down = \"auto\"\nround_trip = \"30ms\"",
        top: format!("state = \"{}\"\n", state.display()),
        tables: "[log]\nlevel = \"debug\"\nconnections = \"on\"\n".to_owned(),
        ..Setup::new(config.seed)
    };
    let mut bed = Bed::without_gateways(&setup)?;
    for side in [Side::Hub, Side::Terminal] {
        bed.start_by(side, disk.command()?)?;
    }
    bed.await_path(units::Span::from_secs(30))?;
    let inside = |bed: &mut Bed, side, name: &str| {
        PathBuf::from(format!("/proc/{}/root{}/{name}", bed.process(side), disk.path.display()))
    };
    let fill = inside(&mut bed, Side::Hub, "fill");
    let full = fs::metadata(&fill).map_err(failed("the filled disk"))?.len();
    verdict.figure("disk_bytes", full as f64);
    let log = inside(&mut bed, Side::Hub, "log");
    verdict.demand(length(&log) == 0, "the log had no room");

    let load = Load::start(&bed, LoadConfig { workers: 20, ..LoadConfig::new(config.seed) });
    pause_ms(if config.quick { 2_000 } else { 8_000 });
    bed.check()?;
    let without_room = load.so_far().complete;
    verdict.demand(without_room > 0, "connections are carried while nothing can be written");
    verdict.demand(
        !inside(&mut bed, Side::Hub, "peers.toml").exists(),
        "no half of a state file is left",
    );
    // Room again, without a restart.
    for side in Side::BOTH {
        fs::remove_file(inside(&mut bed, side, "fill")).map_err(failed("making room"))?;
    }
    pause_ms(1_500);
    verdict.demand(length(&log) > 0, "the log goes on when there is room again");
    let tally = load.finish(&bed);
    verdict.demand(tally.reset + tally.refused == 0, "no connection is reset or refused");
    verdict.judge(tally);
    bed.check()
}

fn length(path: &std::path::Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Where the disks are mounted: an empty folder, which is all that others see.
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
        let _ = fs::remove_dir(&self.path); // It is empty here; if not, it is not ours to empty.
    }
}
