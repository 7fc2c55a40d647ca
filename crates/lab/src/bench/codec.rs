//! `bentpipe bench codec`: processing cost of a packet without sockets.
//!
//! The same state machines as in a gateway, under virtual time: sealing and opening of datagrams
//! by the association, and streams from one relay to another, which adds frames, the session's
//! headers, flow control and retransmission state; these also with windows of 100 to 500,000
//! packets and with 1 to 10,000 streams.

mod relays;

use super::figures::{BenchReport, Figures, MAIN, Machine, chosen, interleave};
use crate::LabError;
use association::{Config, Hub, HubReceived, OVERHEAD, Sealed, Terminal};
use gateway::{PrivateKey, SystemEntropy};
use nix::time::{ClockId, clock_gettime};
use relay::{Keys, Known, PresharedKey, PublicKey, Security, TransmitBatch};
use relays::{Path, streams};
use rt::Clock;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use units::Instant;

/// Octets of a datagram: an IPv4 packet of 1,500 octets without its headers.
const DATAGRAM: usize = 1472;
/// Datagrams in a batch: those of one system call, 64 kB.
const BATCH: usize = 44;
/// Windows in packets, and numbers of streams, of the cases of scale.
const WINDOWS: [usize; 3] = [100, 10_000, 500_000];
const STREAMS: [usize; 4] = [1, 100, 1_000, 10_000];

/// Options of the benchmark.
#[derive(Clone, Debug)]
pub struct CodecConfig {
    /// Datagrams of each case.
    pub datagrams: usize,
    /// Runs of each case.
    pub runs: u32,
    /// Names of cases or parts of them; empty for all.
    pub only: Vec<String>,
}

/// Measures each case.
///
/// # Errors
/// If a name matches no case.
pub fn codec(config: &CodecConfig, note: &mut dyn FnMut(&str)) -> Result<BenchReport, LabError> {
    let machine = Machine::here();
    let cases: Vec<String> = ["noise", "null"]
        .iter()
        .flat_map(|suite| ["datagram", "stream"].map(|what| format!("{suite}-{what}")))
        .chain(WINDOWS.map(|window| format!("window-{window}")))
        .chain(STREAMS.map(|streams| format!("streams-{streams}")))
        .collect();
    let cases = chosen("case", &cases, &config.only)?;
    let (series, notes) = interleave(
        config.runs,
        &cases,
        &[(MAIN, ())],
        |number, ()| {
            let case = &cases[number];
            let encrypted = case.starts_with("noise");
            Ok(match case.split_once('-') {
                Some(("window", window)) => {
                    streams(false, &Path::with_window(count(window)), config.datagrams)
                }
                Some(("streams", number)) => {
                    streams(false, &Path::with_streams(count(number)), config.datagrams)
                }
                Some((_, "datagram")) => datagrams(encrypted, config.datagrams),
                _ => streams(encrypted, &Path::fast(), config.datagrams),
            })
        },
        note,
    )?;
    Ok(BenchReport {
        bench: "codec",
        machine,
        debug_build: cfg!(debug_assertions),
        runs: config.runs,
        seconds: 0.0,
        results: series.results(MAIN),
        notes,
    })
}

fn count(text: &str) -> usize {
    text.parse().expect("the name of a case ends with a number")
}

/// Processor time of a repeated operation, without time in which the thread does not run.
struct Stopwatch {
    clock: Clock,
    processor_ns: u64,
    real_ns: u64,
    cycles: u64,
}

impl Stopwatch {
    fn new() -> Self {
        Self { clock: Clock::new(), processor_ns: 0, real_ns: 0, cycles: 0 }
    }

    fn time<T>(&mut self, operation: impl FnOnce() -> T) -> T {
        let (start, cycles, processor) = (self.clock.now(), cycles(), processor_ns());
        let done = operation();
        self.processor_ns += processor_ns().saturating_sub(processor);
        self.cycles += self::cycles().saturating_sub(cycles);
        self.real_ns += self.clock.now().since(start).as_nanos();
        done
    }

    fn add_to(&self, figures: &mut Figures, name: &str, packets: usize) {
        let nanoseconds = self.processor_ns as f64 / packets as f64;
        figures.add(name, "ns/packet", nanoseconds);
        if self.cycles > 0 {
            // The counter also counts while the thread does not run, so it is used for the
            // frequency only.
            let per_nanosecond = self.cycles as f64 / self.real_ns as f64;
            figures.add(format!("{name}-cycles"), "cycles/packet", nanoseconds * per_nanosecond);
        }
    }
}

/// Returns the processor time of this thread; 0 if the kernel does not count it.
fn processor_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.map_or(0, |time| Duration::from(time).as_nanos() as u64)
}

/// Returns the processor's time stamp counter, which counts at its nominal frequency; 0 if there is
/// none.
fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has the instruction, which reads a counter.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    0
}

fn terminal_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 4500).into()
}

/// Returns the keys of a terminal and a hub.
fn acquainted(encrypted: bool) -> [Security; 2] {
    if !encrypted {
        return [Security::None, Security::None];
    }
    let [terminal, hub] = [(); 2].map(|()| PrivateKey::generate(&mut SystemEntropy));
    let security = |own: &PrivateKey, name: &str, public: PublicKey| {
        let known = Known { name: name.into(), public, preshared: PresharedKey::NONE };
        let keys = Keys::new(own.clone(), vec![known]).expect("one key is no duplicate");
        Security::Noise(keys.into())
    };
    [security(&terminal, "hub", hub.public()), security(&hub, "terminal", terminal.public())]
}

/// Sealing and opening of datagrams of [`DATAGRAM`] octets.
fn datagrams(encrypted: bool, count: usize) -> Figures {
    let now = Instant::ZERO;
    let [terminal, hub] = acquainted(encrypted);
    let config = |name, security| Config {
        security,
        // One pair of keys for the whole measurement.
        renew_after_datagrams: u64::MAX,
        ..Config::new(name)
    };
    let mut terminal = Terminal::new(config("terminal", terminal), now, SystemEntropy);
    let mut hub = Hub::new(config("hub", hub), SystemEntropy);
    greet(&mut terminal, &mut hub);
    let mut batch = vec![vec![0x5a; DATAGRAM]; BATCH];
    let (mut seal, mut open) = (Stopwatch::new(), Stopwatch::new());
    let rounds = count.div_ceil(BATCH);
    for _ in 0..rounds {
        seal.time(|| {
            for datagram in &mut batch {
                assert!(terminal.seal(now, Sealed::Data, datagram), "the keys last");
            }
        });
        open.time(|| {
            for datagram in &mut batch {
                match hub.handle_datagram(now, terminal_address(), datagram) {
                    Ok(HubReceived::Payload { payload, .. }) => {
                        assert_eq!(payload.len(), DATAGRAM - OVERHEAD);
                    }
                    other => panic!("a sealed datagram was not opened: {other:?}"),
                }
            }
        });
    }
    let mut figures = Figures::default();
    seal.add_to(&mut figures, "seal", rounds * BATCH);
    open.add_to(&mut figures, "open", rounds * BATCH);
    figures
}

fn greet(terminal: &mut Terminal, hub: &mut Hub) {
    let now = Instant::ZERO;
    let mut buffer = [0; 1500];
    let mut batch = TransmitBatch::new(&mut buffer, 1);
    assert!(terminal.poll_transmit(now, &mut batch), "a new terminal sends a Hello");
    let mut hello = batch.datagrams().next().expect("a Hello").to_vec();
    hub.handle_datagram(now, terminal_address(), &mut hello).expect("a valid Hello");
    batch.clear();
    hub.poll_transmit(&mut batch).expect("a Hello is answered");
    let mut welcome = batch.datagrams().next().expect("a Welcome").to_vec();
    terminal.handle_datagram(now, &mut welcome).expect("a valid Welcome");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_cost() {
        // "window-100" is in the name of 10,000 packets as well.
        let only = ["noise", "null", "window-100"].map(str::to_owned).to_vec();
        let config = CodecConfig { datagrams: 200, runs: 1, only };
        let report = codec(&config, &mut |_| {}).unwrap();
        assert!(report.results.len() >= 12, "{report:?}");
        assert!(report.results.iter().all(|figure| figure.value > Some(0.0)), "{report:?}");
    }
}
