//! Steps of the wall clock for the gateways alone.
//!
//! A time namespace changes only the monotonic clock, and the machine's wall clock must not change.
//! A small C library (`wall_clock.c`, compiled here, preloaded before the C library) adds the value
//! of a file to each reading of the wall clock. (libfaketime would also change the kernel's timers,
//! which a real step does not.)

use super::load::{Load, LoadConfig};
use super::network::{Setup, Side, TestNetwork};
use super::{ProofConfig, Verdict, failed, sleep_ms};
use crate::LabError;
use crate::live::gateway_program;
use rt::Clock;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use units::Span;

/// Source of the preloaded library.
const SOURCE: &str = include_str!("wall_clock.c");
const DAY: i64 = 86_400;

/// Returns the offsets in seconds, in order of their application, and their descriptions.
fn leaps() -> [(i64, &'static str); 5] {
    let now = (Clock::new().epoch_unix_ns() / 1_000_000_000).cast_signed();
    [
        (3_600, "an hour ahead"),
        (-30 * DAY, "a month back"),
        (3_650 * DAY, "ten years ahead"),
        (-1, "a second back"),
        (10 - now, "the clock's beginning, as on a board without a battery"),
    ]
}

pub(super) fn run(config: &ProofConfig, verdict: &mut Verdict) -> Result<(), LabError> {
    let Some(wrong) = Wrong::new()? else {
        verdict.note("not shown: this machine has no C compiler (cc)");
        return Ok(());
    };
    let mut network = TestNetwork::without_gateways(&Setup::new(config.seed))?;
    for side in [Side::Hub, Side::Terminal] {
        network.start_by(side, wrong.command()?)?;
    }
    network.await_path(Span::from_secs(30))?;
    let maps = fs::read_to_string(format!("/proc/{}/maps", network.process(Side::Hub)));
    let stands_between = maps.map_err(failed("the hub's memory map"))?.contains(LIBRARY);
    verdict.demand(stands_between, "the steps of the clock affect the gateways");

    let load = Load::start(&network, LoadConfig::new(config.seed));
    let each = if config.quick { 700 } else { 4_000 };
    for (seconds, words) in leaps() {
        let before = load.so_far().complete;
        wrong.set(seconds)?;
        sleep_ms(each);
        network.check()?;
        let carried = load.so_far().complete > before;
        verdict.demand(
            carried,
            &format!("connections are relayed after a step of the clock: {words}"),
        );
    }
    let tally = load.finish(&network);
    verdict.demand(tally.reset + tally.refused == 0, "no connection is reset or refused");
    verdict.evaluate(tally);

    // The date of a Hello must be later than that of the previous one. A terminal that has lost its
    // date must nevertheless be able to connect.
    wrong.set(-30 * DAY)?;
    for side in [Side::Terminal, Side::Hub, Side::Terminal] {
        network.kill(side);
        network.start_by(side, wrong.command()?)?;
        let back = network.await_path(Span::from_secs(30))?;
        let name = side.name();
        verdict.figure(&format!("{name}_back_with_old_date_s"), back.as_secs_f64());
        let text = format!("a {name} that starts with an old date connects within 10 s");
        verdict.demand(back <= Span::from_secs(10), &text);
        wrong.set(-60 * DAY)?;
    }
    network.check()
}

/// File name of the library.
const LIBRARY: &str = "wall_clock.so";

/// A folder with the library and the file with the offset.
struct Wrong {
    folder: PathBuf,
}

impl Wrong {
    /// Returns `None` without a compiler.
    fn new() -> Result<Option<Self>, LabError> {
        let folder = std::env::temp_dir().join(format!("bentpipe-clock-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(failed("a folder"))?;
        let wrong = Self { folder };
        wrong.set(0)?;
        let source = wrong.folder.join("wall_clock.c");
        fs::write(&source, SOURCE).map_err(failed("a file"))?;
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(wrong.library()).arg(&source);
        match compiler.status() {
            Ok(status) if status.success() => Ok(Some(wrong)),
            Ok(status) => Err(LabError::Proof(format!("cc ended with {status}"))),
            Err(_) => Ok(None),
        }
    }

    fn library(&self) -> PathBuf {
        self.folder.join(LIBRARY)
    }

    fn offset(&self) -> PathBuf {
        self.folder.join("offset")
    }

    /// Sets the offset atomically, because gateways read it at any time.
    fn set(&self, seconds: i64) -> Result<(), LabError> {
        let beside = self.folder.join("offset.part");
        let written = fs::write(&beside, seconds.to_string());
        written.and_then(|()| fs::rename(&beside, self.offset())).map_err(failed("the clock"))
    }

    fn command(&self) -> Result<Command, LabError> {
        let mut command = Command::new(gateway_program().map_err(failed("this program"))?);
        command.env("LD_PRELOAD", self.library()).env("WALL_CLOCK_OFFSET", self.offset());
        Ok(command)
    }
}

impl Drop for Wrong {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder); // Ours, in a folder for such things.
    }
}
