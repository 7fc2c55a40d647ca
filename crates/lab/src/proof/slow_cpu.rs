//! Gateways with little processor time: 10 ms of each 100 ms.
//!
//! The processes are stopped by SIGSTOP and continued by SIGCONT, which needs no privileges or
//! control group. This is stricter than a quota of a tenth, which only stops processes that have
//! used it.
//!
//! A download runs in parallel to the load: a controller can mistake a stopped gateway for a full
//! link, and must recover soon.

use super::load::{Load, LoadConfig};
use super::long::Long;
use super::network::{Setup, Side, TestNetwork};
use super::{ProofConfig, Verdict, failed, sleep_ms};
use crate::LabError;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rt::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use units::Span;

/// Content of the download.
const SEED: u64 = 9_000_002;
const PERIOD: Span = Span::from_millis(100);
const SHARE: Span = Span::from_millis(10);
/// Rate that the download alone must reach again, and the time limit for that.
const RECOVERED: (f64, Span) = (0.9, Span::from_secs(20));

pub(super) fn run(config: &ProofConfig, verdict: &mut Verdict) -> Result<(), LabError> {
    let mut network = TestNetwork::new(&Setup::new(config.seed))?;
    let before = [network.usage(Side::Terminal)?, network.usage(Side::Hub)?];
    let long = Long::start(&network, SEED);
    sleep_ms(2_000);
    let alone = long.rate(2_000);
    let load = Load::start(&network, LoadConfig { workers: 24, ..LoadConfig::new(config.seed) });
    sleep_ms(1_000);
    let free = load.so_far();
    let throttle = Throttle::start([network.process(Side::Terminal), network.process(Side::Hub)])?;
    let seconds = if config.quick { 6 } else { 30 };
    let starved = long.rate(seconds * 1_000);
    let slow = load.so_far();
    let clock = Clock::new();
    let free_again = clock.now();
    drop(throttle);
    let tally = load.finish(&network);
    let others = clock.now().since(free_again);
    let (again, highest) = long.await_rate(alone * RECOVERED.0, RECOVERED.1);
    verdict.figure("download_alone_mbit_s", alone);
    verdict.figure("download_slow_mbit_s", starved);
    verdict.figure("download_afterwards_mbit_s", highest);
    if let Some(again) = again {
        verdict.figure("download_back_after_s", (others + again).as_secs_f64());
    }
    verdict.demand(again.is_some(), "a download reaches 90 % of its rate again within 20 s");
    long.finish(verdict)?;
    verdict.figure("complete_while_slow", (slow.complete - free.complete) as f64);
    verdict
        .demand(slow.complete > free.complete, "connections complete with little processor time");
    verdict.demand(tally.reset == 0, "no connection is reset");
    verdict.evaluate(tally);
    verdict.demand(
        network.await_path(Span::from_secs(5)).is_ok(),
        "new connections are relayed afterwards",
    );
    sleep_ms(2_000);
    for (at, side) in Side::BOTH.into_iter().enumerate() {
        let after = network.usage(side)?;
        let name = side.name();
        verdict.figure(&format!("{name}_cpu_s"), after.cpu - before[at].cpu);
        verdict.demand(
            after.descriptors <= before[at].descriptors + 1,
            &format!("the {name} has let go of all connections"),
        );
    }
    network.check()
}

/// Stops processes most of the time; dropping it continues them.
struct Throttle {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Throttle {
    fn start(processes: [u32; 2]) -> Result<Self, LabError> {
        let processes = processes.map(|id| Pid::from_raw(id.cast_signed()));
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("throttle".to_owned())
            .spawn(move || {
                let clock = Clock::new();
                let tell = |signal| {
                    for process in processes {
                        let _ = kill(process, signal); // A process that has ended is reported elsewhere.
                    }
                };
                while !flag.load(Ordering::Relaxed) {
                    let from = clock.now();
                    tell(Signal::SIGCONT);
                    clock.sleep_until(from + SHARE);
                    tell(Signal::SIGSTOP);
                    clock.sleep_until(from + PERIOD);
                }
                tell(Signal::SIGCONT);
            })
            .map_err(failed("a thread"))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // It cannot panic.
        }
    }
}
