//! Hostile clients with stalled connections, parallel to an honest client.
//!
//! ```text
//!   hostile clients   downloads that they do not read, or read slowly, or only at first;
//!                     uploads to a server that does not read; connection after connection
//!   honest client     one download, one upload: each is to keep 95 % of what it has alone
//! ```

use super::network::{Setup, Side, TestNetwork};
use super::{ProofConfig, Verdict, failed, sleep_ms};
use crate::LabError;
use rt::netlink::Netlink;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use testbed::addresses;
use testbed::traffic::{self, File, Limits, Progress, Transfer, Way};
use units::Span;

/// Fraction of its throughput alone that the honest client keeps.
const KEPT: f64 = 0.95;
/// Fraction of its fair share that it keeps in parallel to clients that use all they can.
const KEPT_OF_SHARE: f64 = 0.8;
/// Port of the server that does not read.
const DEAF: u16 = 7_001;
/// Octets per second of a slow reader; octets of a fast reader until it stops.
const SLOW: usize = 1_000;
const FAST: usize = 500_000;
/// Octets of a short connection.
const SHORT: usize = 20_000;
/// Interval between actions of hostile clients in milliseconds.
const STEP_MS: u64 = 50;

/// A link with the traffic on it.
struct Form {
    name: &'static str,
    link: &'static str,
    rates: &'static str,
    connections: usize,
    clients: u8,
    settle_ms: u64,
    measured_ms: u64,
}

const CONFIGURED: Form = Form {
    name: "20_mbit",
    link: "delay 250ms rate 20mbit limit 2bdp",
    rates: "rate_up = \"20mbit\"\nrate_down = \"20mbit\"\nround_trip = \"500ms\"",
    connections: 200,
    clients: 1,
    settle_ms: 40_000,
    measured_ms: 15_000,
};

const UNCONFIGURED: Form = Form {
    name: "20_mbit_not_told",
    rates: "round_trip = \"500ms\"",
    clients: 3,
    settle_ms: 60_000,
    ..CONFIGURED
};

const MANY: Form = Form {
    name: "60_mbit",
    link: "delay 250ms rate 60mbit limit 2bdp",
    rates: "rate_up = \"60mbit\"\nrate_down = \"60mbit\"\nround_trip = \"500ms\"",
    connections: 1_000,
    settle_ms: 80_000,
    ..CONFIGURED
};

pub(super) fn run(config: &ProofConfig, verdict: &mut Verdict) -> Result<(), LabError> {
    let forms: &[Form] =
        if config.quick { &[CONFIGURED] } else { &[CONFIGURED, UNCONFIGURED, MANY] };
    forms.iter().try_for_each(|form| prove(form, config, verdict))
}

/// The behaviour of a hostile client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A download of which nothing is read.
    Download,
    /// An upload to a server that does not read.
    Upload,
    /// A download that is read at this rate in octets per second.
    Slow,
    /// A download that is read without delay up to so many octets.
    Fast,
    /// Consecutive short downloads.
    Churn,
}

/// The behaviour and number of the connections, and the fraction of the honest client's throughput
/// that must remain: clients that use all they can have their fair shares of the link.
const ATTACKS: [(&str, &[Kind], f64); 4] = [
    ("stalled_downloads", &[Kind::Download], KEPT),
    ("stalled_uploads", &[Kind::Upload], KEPT),
    ("mixture", &[Kind::Download, Kind::Upload, Kind::Slow, Kind::Fast], KEPT),
    ("churn", &[Kind::Churn], KEPT_OF_SHARE),
];

fn prove(form: &Form, config: &ProofConfig, verdict: &mut Verdict) -> Result<(), LabError> {
    let setup = Setup { link: form.link, rates: form.rates, ..Setup::new(config.seed) };
    let mut network = TestNetwork::new(&setup)?;
    let addresses = (0..form.clients).map(client);
    let settled = network.net.client.run(|| {
        let mut net = Netlink::open()?;
        addresses.into_iter().try_for_each(|at| net.add_address("eth0", at.into(), 24))
    });
    settled.map_err(|error| LabError::Proof(error.to_string()))?;
    let deaf = Deaf::start(&network)?;
    let alone = measure(&network, form, verdict)?;
    for (way, rate) in ["download", "upload"].into_iter().zip(alone) {
        verdict.figure(&format!("{}_alone_{way}_mbit_s", form.name), rate);
    }
    for (name, kinds, part) in ATTACKS {
        let share = if part < KEPT { part / f64::from(form.clients + 1) } else { part };
        let attack = Attack::start(&network, form, kinds);
        sleep_ms(form.settle_ms);
        let beside = measure(&network, form, verdict)?;
        verdict.figure(&format!("{}_{name}_connections", form.name), attack.finish()? as f64);
        for (at, way) in ["download", "upload"].into_iter().enumerate() {
            let kept = beside[at] / alone[at];
            verdict.figure(&format!("{}_{name}_{way}_kept", form.name), kept);
            let promise = format!(
                "an honest {way} keeps {:.0} % of its rate beside {name} ({})",
                share * 100.0,
                form.name
            );
            verdict.demand(kept >= share, &promise);
        }
        for side in Side::BOTH {
            let memory = network.usage(side)?.resident as f64;
            verdict.figure(&format!("{}_{name}_{}_bytes", form.name, side.name()), memory);
        }
        // Reset connections are removed by the gateways.
        sleep_ms(3_000);
    }
    drop(deaf);
    network.check()
}

/// Returns an address of a hostile client.
fn client(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 1, 0, 66 + number)
}

/// Starts a download and an upload of the honest client; returns their rates in Mbit/s.
fn measure(
    network: &TestNetwork,
    form: &Form,
    verdict: &mut Verdict,
) -> Result<[f64; 2], LabError> {
    let honest = [Honest::start(network, true), Honest::start(network, false)];
    // Until both have reached their rate.
    sleep_ms(8_000);
    let before = honest.each_ref().map(Honest::bytes);
    sleep_ms(form.measured_ms);
    let after = honest.each_ref().map(Honest::bytes);
    let rate = |at: usize| (after[at] - before[at]) as f64 * 8.0 / form.measured_ms as f64 / 1e3;
    let rates = [rate(0), rate(1)];
    for honest in honest {
        honest.progress.stop();
        let ended = honest.thread.join();
        let ended = ended.map_err(|_| LabError::Proof("a transfer panicked".to_owned()))?;
        if let Some(error) = ended.error {
            verdict.note(format!("an honest transfer ended: {error}"));
        }
    }
    Ok(rates)
}

/// An unlimited transfer of the honest client.
struct Honest {
    progress: Progress,
    thread: JoinHandle<Transfer>,
}

impl Honest {
    fn start(network: &TestNetwork, down: bool) -> Self {
        let progress = Progress::default();
        let (server, seen) = (network.server(), progress.clone());
        let thread = network.net.client.spawn("honest", move || {
            let hour = Span::from_secs(3_600);
            let limits = Limits { after_first_byte: hour, overall: hour };
            let file = File { seed: 7, bytes: u64::MAX, congestion: "-" };
            let carry = if down { traffic::download } else { traffic::upload };
            carry(Way::Direct, server, file, limits, &seen)
        });
        Self { progress, thread }
    }

    fn bytes(&self) -> u64 {
        self.progress.bytes()
    }
}

/// A server that accepts connections and does not read.
struct Deaf {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Deaf {
    fn start(network: &TestNetwork) -> Result<Self, LabError> {
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, DEAF));
        let listener = network.net.server.run(|| {
            let listener = TcpListener::bind(any)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let listener = listener.map_err(failed("a server that does not read"))?;
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = network.net.server.spawn("deaf", move || {
            let mut kept = Vec::new();
            while !flag.load(Ordering::Relaxed) {
                while let Ok((stream, _)) = listener.accept() {
                    kept.push(stream);
                }
                sleep_ms(STEP_MS);
            }
        });
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Deaf {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // A panic there has been printed.
        }
    }
}

/// Running hostile clients.
struct Attack {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<usize>,
}

impl Attack {
    fn start(network: &TestNetwork, form: &Form, kinds: &'static [Kind]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (flag, server) = (Arc::clone(&stop), network.server());
        let (count, clients) = (form.connections, usize::from(form.clients));
        let thread = network.net.client.spawn("stalled", move || {
            let mut all: Vec<Hostile> = Vec::new();
            while !flag.load(Ordering::Relaxed) {
                for number in all.len()..(all.len() + 50).min(count) {
                    let from = client((number % clients) as u8);
                    all.push(Hostile::new(kinds[number % kinds.len()], from, server));
                }
                all.iter_mut().for_each(Hostile::step);
                sleep_ms(STEP_MS);
            }
            all.iter().filter(|hostile| hostile.stream.is_some()).count()
        });
        Self { stop, thread }
    }

    /// Stops them; returns the number of connections.
    fn finish(self) -> Result<usize, LabError> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| LabError::Proof("hostile clients panicked".to_owned()))
    }
}

/// One connection of a hostile client.
struct Hostile {
    kind: Kind,
    from: Ipv4Addr,
    server: SocketAddr,
    stream: Option<TcpStream>,
    read: usize,
}

impl Hostile {
    fn new(kind: Kind, from: Ipv4Addr, server: SocketAddr) -> Self {
        let stream = open(kind, from, server);
        Self { kind, from, server, stream, read: 0 }
    }

    /// Performs the periodic action of the connection.
    fn step(&mut self) {
        match self.kind {
            Kind::Download => {}
            Kind::Upload => {
                if let Some(stream) = &mut self.stream {
                    while stream.write(&[0; 16 << 10]).is_ok() {}
                }
            }
            Kind::Slow => self.read_some(SLOW * STEP_MS as usize / 1_000),
            Kind::Fast => self.read_some(FAST.saturating_sub(self.read)),
            Kind::Churn => {
                self.read_some(SHORT.saturating_sub(self.read));
                if self.read >= SHORT {
                    *self = Self::new(self.kind, self.from, self.server);
                }
            }
        }
    }

    fn read_some(&mut self, mut most: usize) {
        let Some(stream) = &mut self.stream else { return };
        let mut room = [0; 16 << 10];
        while most > 0 {
            let len = most.min(room.len());
            match stream.read(&mut room[..len]) {
                Ok(0) => self.read = usize::MAX,
                Ok(count) => {
                    self.read = self.read.saturating_add(count);
                    most -= count;
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => self.read = usize::MAX,
            }
            return;
        }
    }
}

/// Connects from a hostile client's address; `None` if refused.
fn open(kind: Kind, from: Ipv4Addr, server: SocketAddr) -> Option<TcpStream> {
    let to = match kind {
        Kind::Upload => SocketAddr::new(addresses::SERVER.0.into(), DEAF),
        Kind::Download | Kind::Slow | Kind::Fast | Kind::Churn => server,
    };
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).ok()?;
    socket.bind(&SocketAddr::new(from.into(), 0).into()).ok()?;
    socket.connect_timeout(&to.into(), Duration::from_secs(2)).ok()?;
    let mut stream: TcpStream = socket.into();
    let bytes = if kind == Kind::Churn { SHORT as u64 } else { u64::MAX };
    if kind != Kind::Upload {
        stream.write_all(format!("GET {bytes} 9 -\n").as_bytes()).ok()?;
    }
    stream.set_nonblocking(true).ok()?;
    Some(stream)
}
