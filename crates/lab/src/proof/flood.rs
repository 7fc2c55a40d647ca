//! Forged handshakes during a transfer: remaining throughput, and cost per forgery.
//!
//! All runs on one host over its loopback interface without the emulator, to save processor time.
//! Two floods alternate with quiet phases:
//!
//! * unauthenticated sources: datagrams of the size and format of a Hello, without mac1, which requires the hub's public key;
//! * sources with that key: valid Hellos of unknown terminals, which only cookies reject.

use super::{ProofConfig, Verdict, failed, noise, sleep_ms};
use crate::LabError;
use crate::live::Gateway;
use crate::live::Usage;
use association::{Config, PrivateKey, PublicKey, Terminal, TransmitBatch};
use gateway::SystemEntropy;
use rt::Clock;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use testbed::Host;
use testbed::traffic::{self, File, FileServer, Limits, Progress, Way};
use units::{RngStream, Span};

const HUB: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 4500);
const SOCKS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1080);
/// Forgeries per second.
const RATE: u64 = 50_000;
/// Forgeries that are sent together.
const BURST: u64 = 50;
/// Fraction of the throughput that must remain.
const KEPT: f64 = 0.9;

pub(super) fn run(config: &ProofConfig, verdict: &mut Verdict) -> Result<(), LabError> {
    let (rates, seconds, turns): (&[u64], _, _) =
        if config.quick { (&[100], 2, 1) } else { (&[100, 200, 300, 500], 4, 2) };
    for &rate in rates {
        at_rate(rate, (seconds, turns), config.seed, verdict)?;
    }
    verdict.note(
        "flood, both gateways, server and client share this machine's processors: what a forgery \
         costs the hub is the figure that other machines have as well",
    );
    Ok(())
}

/// Runs the test with a transfer at `rate` Mbit/s, in phases of `seconds`.
fn at_rate(
    rate: u64,
    (seconds, turns): (u64, u64),
    seed: u64,
    verdict: &mut Verdict,
) -> Result<(), LabError> {
    let host = Host::new("flood")?;
    let [hub_key, site] = [(); 2].map(|()| PrivateKey::generate(&mut SystemEntropy));
    let files = FileServer::start(Some(&host), SocketAddr::from((Ipv4Addr::LOCALHOST, 7000)))?;
    let (mut hub, mut terminal) = gateways(&host, rate, &hub_key, &site)?;
    let progress = Progress::default();
    let transfer = {
        let (server, progress) = (files.address(), progress.clone());
        host.spawn("transfer", move || endless(server, &progress))
    };
    let patience = Clock::new().now() + Span::from_secs(20);
    while progress.bytes() == 0 {
        hub.check()?;
        terminal.check()?;
        if Clock::new().now() > patience {
            return Err(LabError::Proof("the transfer does not begin".to_owned()));
        }
        sleep_ms(50);
    }
    sleep_ms(3_000);
    let kinds = [("strangers", forged_hellos(seed)), ("key_holders", hellos(&hub_key.public())?)];
    for (name, datagrams) in kinds {
        let (mut quiet, mut flooded) = (Stretch::default(), Stretch::default());
        for _ in 0..turns {
            quiet.add(&measure((&mut hub, &mut terminal), &progress, seconds)?);
            let flood = Flood::start(&host, datagrams.clone());
            flooded.add(&measure((&mut hub, &mut terminal), &progress, seconds)?);
            flooded.forged += flood.finish()?;
        }
        evaluate(&format!("{rate}_{name}"), &quiet, &flooded, verdict);
    }
    progress.stop();
    let transfer = transfer.join().map_err(|_| LabError::Proof("it panicked".to_owned()))?;
    let whole = transfer.error.is_none() && transfer.matches;
    verdict.demand(whole, "the transferred data is correct");
    hub.check()?;
    terminal.check()
}

fn gateways(
    host: &Host,
    rate: u64,
    hub_key: &PrivateKey,
    site: &PrivateKey,
) -> Result<(Gateway, Gateway), LabError> {
    let rates =
        format!("rate_up = \"{rate}mbit\"\nrate_down = \"{rate}mbit\"\nround_trip = \"10ms\"");
    let hub = format!(
        "role = \"hub\"\nprivate_key = \"{}\"\n[link]\nlisten = \"{HUB}\"\n{rates}\n\
         [hub]\nown_addresses = \"allow\"\n[limits]\ndrain = \"0s\"\n\
         [[terminal]]\nname = \"site\"\npublic_key = \"{}\"\n",
        hub_key.to_text(),
        site.public(),
    );
    let terminal = format!(
        "role = \"terminal\"\nprivate_key = \"{}\"\naccept = \"early\"\n\
         [link]\npeer = \"{HUB}\"\npeer_public_key = \"{}\"\n{rates}\n\
         [socks5]\nlisten = \"{SOCKS}\"\n[limits]\ndrain = \"0s\"\n",
        site.to_text(),
        hub_key.public(),
    );
    let hub = Gateway::start(Some(host), "hub", &hub)?;
    Ok((hub, Gateway::start(Some(host), "terminal", &terminal)?))
}

fn endless(server: SocketAddr, progress: &Progress) -> traffic::Transfer {
    let hour = Span::from_secs(3_600);
    let limits = Limits { after_first_byte: hour, overall: hour };
    let file = File { seed: 5, bytes: u64::MAX, congestion: "-" };
    let clock = Clock::new();
    // The proxy may not listen yet.
    for _ in 0..100 {
        let transfer = traffic::download(Way::Socks5(SOCKS), server, file, limits, progress);
        if transfer.bytes > 0 {
            return transfer;
        }
        clock.sleep_until(clock.now() + Span::from_millis(100));
    }
    traffic::download(Way::Socks5(SOCKS), server, file, limits, progress)
}

/// Measured values of a phase.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    seconds: f64,
    bytes: u64,
    hub_cpu: f64,
    terminal_cpu: f64,
    /// Processor time of this process: server, client and flood.
    own_cpu: f64,
    forged: u64,
}

impl Stretch {
    fn add(&mut self, other: &Self) {
        self.seconds += other.seconds;
        self.bytes += other.bytes;
        self.hub_cpu += other.hub_cpu;
        self.terminal_cpu += other.terminal_cpu;
        self.own_cpu += other.own_cpu;
        self.forged += other.forged;
    }

    fn mbps(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.seconds / 1e6
    }
}

fn measure(
    (hub, terminal): (&mut Gateway, &mut Gateway),
    progress: &Progress,
    seconds: u64,
) -> Result<Stretch, LabError> {
    let clock = Clock::new();
    let mut look = || -> Result<_, LabError> {
        let cpu = |process| Usage::of(process).map(|usage| usage.cpu);
        let used = [cpu(hub.id())?, cpu(terminal.id())?, cpu(std::process::id())?];
        Ok((clock.now(), progress.bytes(), used))
    };
    let (from, bytes, before) = look()?;
    sleep_ms(seconds * 1_000);
    let (now, more, after) = look()?;
    Ok(Stretch {
        seconds: now.since(from).as_secs_f64(),
        bytes: more - bytes,
        hub_cpu: after[0] - before[0],
        terminal_cpu: after[1] - before[1],
        own_cpu: after[2] - before[2],
        forged: 0,
    })
}

fn evaluate(name: &str, quiet: &Stretch, flooded: &Stretch, verdict: &mut Verdict) {
    let kept = flooded.mbps() / quiet.mbps();
    let mut figure = |what: &str, value: f64| verdict.figure(&format!("{name}_{what}"), value);
    figure("quiet_mbit_s", quiet.mbps());
    figure("flooded_mbit_s", flooded.mbps());
    figure("kept", kept);
    figure("forged_per_s", flooded.forged as f64 / flooded.seconds);
    // The processor time of the transfer is subtracted in proportion to its octets.
    let transfer = quiet.hub_cpu / quiet.bytes.max(1) as f64 * flooded.bytes as f64;
    let each = (flooded.hub_cpu - transfer) / flooded.forged.max(1) as f64;
    figure("hub_us_per_forgery", each * 1e6);
    for (stretch, when) in [(quiet, "quiet"), (flooded, "flooded")] {
        for (who, cpu) in [
            ("hub", stretch.hub_cpu),
            ("terminal", stretch.terminal_cpu),
            ("others", stretch.own_cpu),
        ] {
            figure(&format!("{when}_processors_{who}"), cpu / stretch.seconds);
        }
    }
    verdict.demand(kept >= KEPT, &format!("the transfer keeps 90 % of its rate ({name})"));
}

/// Returns datagrams that resemble Hellos, without mac1.
fn forged_hellos(seed: u64) -> Vec<Vec<u8>> {
    let mut random = RngStream::new(seed, 0, "flood");
    let forged = |_| {
        let mut datagram = vec![0; HELLO];
        for octet in &mut datagram {
            *octet = random.next_u64() as u8;
        }
        // A Hello with version and suite of the hub.
        (datagram[0], datagram[4]) = (0x11, 1);
        datagram
    };
    (0..256).map(forged).collect()
}

/// Octets of a Hello (`docs/spec/association.md`).
const HELLO: usize = 176;

/// Returns Hellos of unknown terminals to a hub with a known public key.
fn hellos(hub: &PublicKey) -> Result<Vec<Vec<u8>>, LabError> {
    let clock = Clock::new();
    let hello = |_| {
        let security = noise(PrivateKey::generate(&mut SystemEntropy), "hub", *hub)?;
        let wall_clock_ns = clock.epoch_unix_ns();
        let config = Config { security, wall_clock_ns, ..Config::new("nobody") };
        let mut terminal = Terminal::new(config, clock.now(), SystemEntropy);
        let mut room = [0; 2048];
        let mut batch = TransmitBatch::new(&mut room, 1);
        terminal.poll_transmit(clock.now(), &mut batch);
        Ok(batch.datagrams().next().unwrap_or_default().to_vec())
    };
    (0..256).map(hello).collect()
}

/// A running flood.
struct Flood {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: JoinHandle<std::io::Result<()>>,
}

impl Flood {
    fn start(host: &Host, datagrams: Vec<Vec<u8>>) -> Self {
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (flag, count) = (Arc::clone(&stop), Arc::clone(&sent));
        let thread = host.spawn("flood", move || pour(&datagrams, &flag, &count));
        Self { stop, sent, thread }
    }

    fn finish(self) -> Result<u64, LabError> {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.join().map_err(|_| LabError::Proof("the flood panicked".into()))?;
        ended.map_err(failed("the flood"))?;
        Ok(self.sent.load(Ordering::Relaxed))
    }
}

/// Sends from many ports, as from many terminals.
fn pour(datagrams: &[Vec<u8>], stop: &AtomicBool, sent: &AtomicU64) -> std::io::Result<()> {
    let sockets = (0..16)
        .map(|_| {
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            socket.connect(HUB)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        })
        .collect::<std::io::Result<Vec<_>>>()?;
    let clock = Clock::new();
    let every = Span::from_nanos(1_000_000_000 / (RATE / BURST));
    let mut due = clock.now();
    let mut ways = sockets.iter().cycle();
    let mut forged = datagrams.iter().cycle();
    while !stop.load(Ordering::Relaxed) {
        for (socket, datagram) in ways.by_ref().zip(forged.by_ref()).take(BURST as usize) {
            let _ = socket.send(datagram); // A full queue drops it.
        }
        sent.fetch_add(BURST, Ordering::Relaxed);
        due += every;
        clock.sleep_until(due);
    }
    Ok(())
}
