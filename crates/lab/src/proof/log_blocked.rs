//! Standard error that is not read: a full pipe in place of a hanging journal.
//!
//! ```text
//!   read ──▶ blocked ──▶ read again ──▶ blocked, and asked to end
//! ```
//!
//! Both gateways log at level debug to named pipes of this process. Throughput with full pipes is
//! compared with throughput before and after. At the end a gateway with a full pipe must stop on
//! request.

use super::load::{Load, LoadConfig};
use super::long::Long;
use super::network::{Setup, Side, TestNetwork};
use super::{ProofConfig, Verdict, failed, sleep_ms};
use crate::LabError;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rt::Clock;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use units::Span;

/// Content of the download.
const SEED: u64 = 9_000_004;
/// Executes the program that follows with its standard error at `$0`.
const SCRIPT: &str = "exec \"$@\" 2>\"$0\"";
/// Time limit for the end of a process with a full pipe.
const END: Span = Span::from_secs(5);
/// Address of each gateway's metrics, on its host.
const METRICS: &str = "127.0.0.1:9100";
/// Fraction of the throughput that remains with full pipes. The short test only measures it.
const SHARE: f64 = 0.98;

pub(super) fn run(config: &ProofConfig, verdict: &mut Verdict) -> Result<(), LabError> {
    let setup = Setup {
        link: "delay 15ms rate 20mbit limit 2bdp",
        rates: "rate_up = \"20mbit\"\nrate_down = \"20mbit\"\nround_trip = \"30ms\"",
        tables: format!(
            "[log]\nlevel = \"debug\"\nconnections = \"on\"\n[metrics]\nlisten = \"{METRICS}\"\n"
        ),
        ..Setup::new(config.seed)
    };
    let mut network = TestNetwork::without_gateways(&setup)?;
    let pipes = [Pipe::new(Side::Terminal)?, Pipe::new(Side::Hub)?];
    for side in [Side::Hub, Side::Terminal] {
        network.start_by(side, pipes[side as usize].command()?)?;
    }
    network.await_path(Span::from_secs(30))?;
    let long = Long::start(&network, SEED);
    let load = Load::start(&network, LoadConfig { workers: 8, ..LoadConfig::new(config.seed) });
    let seconds = if config.quick { 6 } else { 60 };
    // The long download uses the rate that the others leave.
    let rate = || -> Result<f64, LabError> {
        let before = received(&network)?;
        sleep_ms(seconds * 1_000);
        Ok((received(&network)? - before) as f64 * 8.0 / seconds as f64 / 1e6)
    };
    sleep_ms(3_000);
    let read = rate()?;
    let before = load.so_far().complete;
    pipes.iter().try_for_each(Pipe::block)?;
    let blocked = rate()?;
    let after = load.so_far().complete;
    verdict.figure("complete_while_blocked", (after - before) as f64);
    verdict.demand(after > before, "connections are relayed while the log is not read");
    pipes.iter().for_each(Pipe::read_again);
    let again = rate()?;
    let share = blocked / ((read + again) / 2.0);
    verdict.figure("read_mbit_s", read);
    verdict.figure("blocked_mbit_s", blocked);
    verdict.figure("read_again_mbit_s", again);
    verdict.figure("share_while_blocked", share);
    if !config.quick {
        verdict.demand(share >= SHARE, &format!("throughput is at least {SHARE} of that before"));
    }
    for pipe in &pipes {
        let (side, name) = (pipe.side, pipe.side.name());
        let lines = dropped(&network, side).map_err(failed("the metrics"))?;
        verdict.figure(&format!("{name}_lines_dropped"), lines);
        if lines > 0.0 {
            let said = pipe.await_line("log lines were dropped", Span::from_secs(30));
            verdict.demand(said, &format!("the {name} logs the number of dropped lines"));
        }
    }
    long.finish(verdict)?;
    let tally = load.finish(&network);
    verdict.demand(tally.reset + tally.refused == 0, "no connection is reset or refused");
    verdict.evaluate(tally);
    network.check()?;
    pipes.iter().try_for_each(Pipe::block)?;
    for side in Side::BOTH {
        let ended = end(&mut network, side)?;
        verdict.demand(
            ended <= END,
            &format!("the {} ends within {END} although its log is not read", side.name()),
        );
        verdict.figure(&format!("{}_ended_after_s", side.name()), ended.as_secs_f64());
    }
    Ok(())
}

/// Returns the octets that the client's host has received, with headers.
fn received(network: &TestNetwork) -> Result<u64, LabError> {
    let page = network.net.client.run(|| fs::read_to_string("/proc/thread-self/net/dev"));
    let page = page.map_err(failed("/proc/thread-self/net/dev"))?;
    let value =
        |line: &str| line.trim().strip_prefix("eth0:")?.split_whitespace().next()?.parse().ok();
    page.lines().find_map(value).ok_or_else(|| LabError::Proof("no interface eth0".to_owned()))
}

/// Returns the log lines that a gateway dropped, by its metrics.
fn dropped(network: &TestNetwork, side: Side) -> std::io::Result<f64> {
    let ask = || {
        let mut stream = TcpStream::connect(METRICS)?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
        let mut page = String::new();
        stream.read_to_string(&mut page).map(|_| page)
    };
    let page = network.host(side).run(ask)?;
    let value = |line: &str| line.strip_prefix("bentpipe_log_lines_dropped_total ")?.parse().ok();
    page.lines().find_map(value).ok_or_else(|| std::io::Error::other("no such metric"))
}

/// Stops a gateway; returns the time that this takes, up to a limit.
fn end(network: &mut TestNetwork, side: Side) -> Result<Span, LabError> {
    let clock = Clock::new();
    let from = clock.now();
    let process = Pid::from_raw(network.process(side).cast_signed());
    kill(process, Signal::SIGTERM).map_err(|errno| failed("kill")(errno.into()))?;
    // The other gateway may have ended already.
    while !network.has_ended(side) && clock.now().since(from) <= END {
        sleep_ms(20);
    }
    Ok(clock.now().since(from))
}

/// A named pipe and its reader.
struct Pipe {
    side: Side,
    path: PathBuf,
    /// Keeps the pipe open, so that writes block instead of failing.
    held: File,
    reads: Arc<AtomicBool>,
    ends: Arc<AtomicBool>,
    lines: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Pipe {
    fn new(side: Side) -> Result<Self, LabError> {
        let name = format!("bentpipe-log-{}-{}", std::process::id(), side.name());
        let path = std::env::temp_dir().join(name);
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU)
            .map_err(|errno| failed("a named pipe")(errno.into()))?;
        let held = File::options()
            .read(true)
            .write(true)
            .custom_flags(nix::libc::O_NONBLOCK)
            .open(&path)
            .map_err(failed("a named pipe"))?;
        let mut pipe = Self {
            side,
            path,
            held,
            reads: Arc::new(AtomicBool::new(true)),
            ends: Arc::default(),
            lines: Arc::default(),
            reader: None,
        };
        pipe.start()?;
        Ok(pipe)
    }

    fn start(&mut self) -> Result<(), LabError> {
        let mut file = self.held.try_clone().map_err(failed("a descriptor"))?;
        let (reads, ends) = (Arc::clone(&self.reads), Arc::clone(&self.ends));
        let lines = Arc::clone(&self.lines);
        let reader = std::thread::Builder::new().name("log".to_owned()).spawn(move || {
            let mut chunk = [0; 65_536];
            while !ends.load(Ordering::Relaxed) {
                let count = match reads.load(Ordering::Relaxed) {
                    true => file.read(&mut chunk).unwrap_or(0),
                    false => 0,
                };
                if count == 0 {
                    sleep_ms(5);
                    continue;
                }
                let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                // Only the end matters.
                if lines.len() > 8 << 20 {
                    lines.clear();
                }
                lines.extend_from_slice(&chunk[..count]);
            }
        });
        self.reader = Some(reader.map_err(failed("a thread"))?);
        Ok(())
    }

    fn command(&self) -> Result<Command, LabError> {
        let program = crate::live::gateway_program().map_err(failed("this program"))?;
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT]).arg(&self.path).arg(program);
        Ok(command)
    }

    /// Stops reading, and fills the pipe completely.
    fn block(&self) -> Result<(), LabError> {
        self.reads.store(false, Ordering::Relaxed);
        sleep_ms(50);
        for length in [4096, 1] {
            loop {
                match (&self.held).write(&vec![b'\n'; length]) {
                    Ok(_) => {}
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(failed("filling a pipe")(error)),
                }
            }
        }
        Ok(())
    }

    fn read_again(&self) {
        self.reads.store(true, Ordering::Relaxed);
    }

    /// Waits for a line that contains these words.
    fn await_line(&self, words: &str, patience: Span) -> bool {
        let clock = Clock::new();
        let from = clock.now();
        loop {
            let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if lines.windows(words.len()).any(|window| window == words.as_bytes()) {
                return true;
            }
            if clock.now().since(from) > patience {
                return false;
            }
            sleep_ms(200);
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join(); // It cannot panic.
        }
        let _ = fs::remove_file(&self.path);
    }
}
