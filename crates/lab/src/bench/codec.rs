//! `bentpipe bench codec`: processing cost of a packet without sockets.
//!
//! The same state machines as in a gateway, under virtual time: sealing and opening of datagrams
//! by the association, and a stream from one relay to another, which adds frames, the session's
//! headers, flow control and retransmission state.

use super::figures::{BenchReport, Figures, MAIN, Machine, chosen, interleave};
use crate::LabError;
use association::{Config, Hub, HubReceived, OVERHEAD, Sealed, Terminal};
use gateway::{PrivateKey, SystemEntropy};
use nix::time::{ClockId, clock_gettime};
use relay::{
    Event, Keys, Known, PresharedKey, Priority, PublicKey, Relay, RelayConfig, Security, Target,
    TransmitBatch,
};
use rt::Clock;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use units::{BitRate, Instant, RngStream, Span};

/// Octets of a datagram: an IPv4 packet of 1,500 octets without its headers.
const DATAGRAM: usize = 1472;
/// Datagrams in a batch: those of one system call, 64 kB.
const BATCH: usize = 44;
/// Virtual time of one step.
const STEP: Span = Span::from_micros(100);

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
        .collect();
    let cases = chosen(&cases, &config.only)?;
    let (series, notes) = interleave(
        config.runs,
        &cases,
        &[(MAIN, ())],
        |number, ()| {
            let case = &cases[number];
            let encrypted = case.starts_with("noise");
            Ok(if case.ends_with("datagram") {
                datagrams(encrypted, config.datagrams)
            } else {
                stream(encrypted, config.datagrams)
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

/// Two relays and the datagrams between them.
struct Pair {
    now: Instant,
    terminal: Relay,
    hub: relay::Hub,
    transmit: Stopwatch,
    receive: Stopwatch,
    packets: usize,
    buffer: Vec<u8>,
}

/// A stream from a terminal to a hub, in full packets.
fn stream(encrypted: bool, count: usize) -> Figures {
    let rate = Some(BitRate::from_mbps(10_000));
    let [terminal, hub] = acquainted(encrypted);
    let config = |name, security| {
        let config = RelayConfig::new(name).with_rates(rate, rate);
        RelayConfig { security, initial_rtt: Span::from_millis(1), ..config }
    };
    let random = |name| RngStream::new(1, 0, name);
    let now = Instant::ZERO;
    let mut pair = Pair {
        now,
        terminal: Relay::terminal(&config("terminal", terminal), now, random("terminal")),
        hub: relay::Hub::new(&config("hub", hub), random("hub")),
        transmit: Stopwatch::new(),
        receive: Stopwatch::new(),
        packets: 0,
        buffer: vec![0; 64 << 10],
    };
    pair.run(count);
    let mut figures = Figures::default();
    pair.transmit.add_to(&mut figures, "transmit", pair.packets);
    pair.receive.add_to(&mut figures, "receive", pair.packets);
    figures
}

impl Pair {
    fn run(&mut self, count: usize) {
        let target = Target::name("example.org", 80);
        let stream = self
            .terminal
            .open(self.now, target, Priority::Normal)
            .expect("a new relay has room for a stream");
        let block = vec![0x5a; 64 << 10];
        // More steps than any count needs: a stall is detected.
        for _ in 0..1_000 + count * 10 {
            if self.packets >= count {
                return;
            }
            let now = self.now;
            self.transmit.time(|| self.terminal.write(now, stream, &block)).expect("it is open");
            self.forward();
            self.read();
            self.acknowledge();
            self.now += STEP;
            self.terminal.handle_timeout(self.now);
            self.hub.handle_timeout(self.now);
        }
        panic!("{} of {count} packets were sent", self.packets);
    }

    fn forward(&mut self) {
        loop {
            let mut batch = TransmitBatch::new(&mut self.buffer, BATCH);
            let (now, terminal) = (self.now, &mut self.terminal);
            if self.transmit.time(|| terminal.poll_transmit(now, &mut batch)).is_none() {
                return;
            }
            let mut datagrams: Vec<Vec<u8>> = batch.datagrams().map(<[u8]>::to_vec).collect();
            self.packets += datagrams.len();
            let hub = &mut self.hub;
            self.receive.time(|| {
                for datagram in &mut datagrams {
                    let received = hub.handle_datagram(now, terminal_address(), datagram);
                    received.expect("a datagram of the peer is valid");
                }
            });
        }
    }

    /// Reads the data that has arrived on the stream, as a gateway's socket does.
    fn read(&mut self) {
        let (now, hub) = (self.now, &mut self.hub);
        self.receive.time(|| {
            while let Some((peer, event)) = hub.poll_event() {
                let Event::Readable { stream } = event else { continue };
                let Some(relay) = hub.peer(peer) else { continue };
                loop {
                    let octets = relay.peek(stream).len();
                    if octets == 0 || relay.consume(now, stream, octets).is_err() {
                        break;
                    }
                }
            }
        });
    }

    /// Transmits STATs and credit from the hub to the terminal.
    fn acknowledge(&mut self) {
        loop {
            let mut batch = TransmitBatch::new(&mut self.buffer, BATCH);
            let (now, hub, terminal) = (self.now, &mut self.hub, &mut self.terminal);
            if self.receive.time(|| hub.poll_transmit(now, &mut batch)).is_none() {
                return;
            }
            let mut datagrams: Vec<Vec<u8>> = batch.datagrams().map(<[u8]>::to_vec).collect();
            self.transmit.time(|| {
                for datagram in &mut datagrams {
                    terminal.handle_datagram(now, datagram).expect("the hub's datagram is valid");
                }
                while terminal.poll_event().is_some() {}
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_cost() {
        let config = CodecConfig { datagrams: 200, runs: 1, only: Vec::new() };
        let report = codec(&config, &mut |_| {}).unwrap();
        assert!(report.results.len() >= 8, "{report:?}");
        assert!(report.results.iter().all(|figure| figure.value > Some(0.0)), "{report:?}");
    }
}
