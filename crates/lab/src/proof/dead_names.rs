//! Thousands of lookups of names without responding servers, parallel to lookups of valid names.
//!
//! The hub's machine has two name servers: one answers for `*.good.test` alone, as a resolver does
//! if the servers of other zones do not respond, and one never answers. Hostile clients request
//! connections to unanswered names; an honest client requests valid ones. The proxy requests
//! contain the names, so the hub resolves them.

use super::network::{SOCKS, Setup, Side, TestNetwork};
use super::{ProofConfig, Verdict, failed, sleep_ms};
use crate::LabError;
use crate::live::Gateway;
use rt::Clock;
use rt::netlink::Netlink;
use socket2::{Domain, Protocol, Socket, Type};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use testbed::addresses;
use units::Span;

/// Addresses of the hostile clients and of the name server that never answers.
const HOSTILE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 66);
const SILENT: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 53);
/// Proxy of the second terminal, on the same machine as the first.
const SECOND_SOCKS: u16 = 1081;
/// Unanswered names of each hostile client.
const DEAD: usize = 1_000;
/// Additional time in seconds that a valid name may take during the attack.
const BEYOND: f64 = 0.1;
/// Time limit of a client.
const PATIENCE: Duration = Duration::from_secs(30);
/// Connection limits above the number of unanswered names.
const LIMITS: &str = "connections = 8000\n";

pub(super) fn run(config: &ProofConfig, verdict: &mut Verdict) -> Result<(), LabError> {
    let setup = Setup { accept: "confirm", limits: LIMITS, ..Setup::new(config.seed) };
    let mut network = TestNetwork::without_gateways(&setup)?;
    let names = NameServers::start(&network)?;
    let resolv = ResolvConf::write()?;
    network.start_by(Side::Hub, resolv.command()?)?;
    network.start(Side::Terminal)?;
    network.await_path(Span::from_secs(30))?;
    let mut second = second_terminal(&network)?;
    let rounds = if config.quick { 10 } else { 40 };
    let terminals = [("first", network.proxy(SOCKS)), ("second", network.proxy(SECOND_SOCKS))];

    let mut quiet = Vec::new();
    for (name, proxy) in terminals {
        await_name(&network, proxy)?;
        let times = good_names(&network, proxy, &format!("quiet-{name}"), rounds);
        verdict.figure(&format!("quiet_{name}_s"), times.median);
        verdict.demand(times.failed == 0, "names are resolved without other load");
        quiet.push(times.median);
    }
    let mut clients = Vec::new();
    for (attack, (name, proxy)) in ["one", "both"].into_iter().zip(terminals) {
        clients.extend(dead_names(&network, proxy, name)?);
        sleep_ms(1_000);
        for (own, (name, proxy)) in quiet.iter().zip(terminals) {
            let times = good_names(&network, proxy, &format!("{attack}-{name}"), rounds);
            verdict.figure(&format!("dead_by_{attack}_{name}_s"), times.median);
            verdict.figure(&format!("dead_by_{attack}_{name}_worst_s"), times.worst);
            verdict.demand(
                times.failed == 0 && times.median <= own + BEYOND,
                &format!(
                    "a good name takes {BEYOND} s more at most for a client of the {name} terminal \
                     while clients of {attack} wait for {DEAD} dead names each"
                ),
            );
        }
        network.check()?;
        second.check()?;
    }
    let before = names.asked();
    verdict.figure("queries_while_clients_wait", before as f64);
    drop(clients);
    sleep_ms(2_000);
    let gone = names.asked();
    sleep_ms(3_000);
    verdict.demand(names.asked() == gone, "look-ups of closed clients are cancelled");
    network.check()
}

/// Starts another terminal of the hub with its own key.
fn second_terminal(network: &TestNetwork) -> Result<Gateway, LabError> {
    let (hub, lan) = (addresses::HUB.0, addresses::TERMINAL_LAN.0);
    let config = format!(
        "role = \"terminal\"\nprivate_key = \"{}\"\naccept = \"confirm\"\n\
         [link]\npeer = \"{hub}:{}\"\npeer_public_key = \"{}\"\n\
         [socks5]\nlisten = \"{lan}:{SECOND_SOCKS}\"\n[control]\nsocket = \"off\"\n\
         [limits]\ndrain = \"0s\"\n{LIMITS}",
        network.wild_key.to_text(),
        super::network::PORT,
        network.hub_key.public(),
    );
    Gateway::start(Some(&network.net.terminal), "terminal", &config)
}

/// The two name servers, which count queries.
struct NameServers {
    asked: Arc<AtomicU64>,
}

impl NameServers {
    fn start(network: &TestNetwork) -> Result<Self, LabError> {
        let add = |host: &testbed::Host, address: Ipv4Addr| {
            host.run(|| {
                Netlink::open().and_then(|mut net| net.add_address("eth0", address.into(), 24))
            })
        };
        add(&network.net.server, SILENT).map_err(|error| LabError::Proof(error.to_string()))?;
        add(&network.net.client, HOSTILE).map_err(|error| LabError::Proof(error.to_string()))?;
        let asked = Arc::new(AtomicU64::new(0));
        for (address, answers) in [(addresses::SERVER.0, true), (SILENT, false)] {
            let socket = network.net.server.run(|| UdpSocket::bind((address, 53)));
            let socket = socket.map_err(failed("a name server"))?;
            let asked = Arc::clone(&asked);
            // The thread ends with the process.
            std::thread::spawn(move || serve(&socket, answers, &asked));
        }
        Ok(Self { asked })
    }

    fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

fn serve(socket: &UdpSocket, answers: bool, asked: &AtomicU64) {
    let mut query = [0; 512];
    while let Ok((length, from)) = socket.recv_from(&mut query) {
        asked.fetch_add(1, Ordering::Relaxed);
        if let Some(answer) = answer(&query[..length]).filter(|_| answers) {
            let _ = socket.send_to(&answer, from); // Queries for a lost answer are repeated.
        }
    }
}

/// Returns the answer for a name below `good.test`: the server's address, or none for another type.
pub(super) fn answer(query: &[u8]) -> Option<Vec<u8>> {
    let question = query.get(12..)?;
    let name = question.iter().position(|&octet| octet == 0)? + 1;
    let is_good = question[..name].to_ascii_lowercase().ends_with(b"\x04good\x04test\0");
    let question = question.get(..name + 4)?;
    let is_a = question[name..] == [0, 1, 0, 1];
    // Response, recursion desired and available; one question, and one answer or authority.
    let counts: [u8; 8] = if is_a { [0, 1, 0, 1, 0, 0, 0, 0] } else { [0, 1, 0, 0, 0, 1, 0, 0] };
    let mut answer = [&query[..2], &[0x81, 0x80], &counts, question].concat();
    if is_a {
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        answer.extend(addresses::SERVER.0.octets());
    } else {
        // SOA of the root: names of one octet, five numbers of four.
        answer.extend([0, 0, 6, 0, 1, 0, 0, 0, 60, 0, 22, 0, 0]);
        answer.extend([0, 0, 0, 60].repeat(5));
    }
    is_good.then_some(answer)
}

/// The hub's `/etc/resolv.conf`, mounted in a mount namespace.
struct ResolvConf {
    file: PathBuf,
}

impl ResolvConf {
    fn write() -> Result<Self, LabError> {
        let file =
            std::env::temp_dir().join(format!("bentpipe-{}.resolv.conf", std::process::id()));
        let text = format!("nameserver {}\nnameserver {SILENT}\n", addresses::SERVER.0);
        fs::write(&file, text).map_err(failed("resolv.conf"))?;
        Ok(Self { file })
    }

    fn command(&self) -> Result<Command, LabError> {
        let program = crate::live::gateway_program().map_err(failed("this program"))?;
        let mut command = Command::new("unshare");
        let script = "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"";
        command.args(["--mount", "sh", "-c", script]).arg(&self.file).arg(program);
        Ok(command)
    }
}

impl Drop for ResolvConf {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file); // In the folder for temporary files.
    }
}

/// Sends a proxy request for `name` without reading the reply.
fn ask(proxy: SocketAddr, from: Option<Ipv4Addr>, name: &str, port: u16) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    if let Some(from) = from {
        socket.bind(&SocketAddr::new(from.into(), 0).into())?;
    }
    // A client that gives up resets; after a FIN it could still be reading.
    socket.set_linger(Some(Duration::ZERO))?;
    socket.connect_timeout(&proxy.into(), PATIENCE)?;
    let mut stream: TcpStream = socket.into();
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&[5, 1, 0])?;
    stream.read_exact(&mut [0; 2])?;
    let request = [&[5, 1, 0, 3, name.len() as u8], name.as_bytes(), &port.to_be_bytes()].concat();
    stream.write_all(&request)?;
    Ok(stream)
}

/// Requests the unanswered names of a hostile client from the proxy of the terminal `label`; the
/// requests wait until dropped.
fn dead_names(
    network: &TestNetwork,
    proxy: SocketAddr,
    label: &str,
) -> Result<Vec<TcpStream>, LabError> {
    let asked: io::Result<Vec<TcpStream>> = network.net.client.run(|| {
        let name = |number| format!("n{number}.{label}.dead.test");
        (0..DEAD).map(|number| ask(proxy, Some(HOSTILE), &name(number), 80)).collect()
    });
    asked.map_err(failed("a hostile client's request"))
}

/// Response times of an honest client's requests in seconds.
struct Times {
    median: f64,
    worst: f64,
    failed: usize,
}

/// Connects to `rounds` valid names, one after the other, none of which was requested before.
fn good_names(network: &TestNetwork, proxy: SocketAddr, label: &str, rounds: usize) -> Times {
    let clock = Clock::new();
    let mut times = Vec::new();
    let mut failed = 0;
    for number in 0..rounds {
        let from = clock.now();
        let connected =
            network.net.client.run(|| good_name(proxy, &format!("{label}-{number}"), network));
        failed += usize::from(connected.is_err());
        times.push(clock.now().since(from).as_secs_f64());
        // One that reaches the time limit is sufficient.
        if connected.is_err() {
            break;
        }
    }
    times.sort_by(f64::total_cmp);
    Times { median: times[times.len() / 2], worst: times[times.len() - 1], failed }
}

fn good_name(proxy: SocketAddr, label: &str, network: &TestNetwork) -> io::Result<()> {
    let mut stream = ask(proxy, None, &format!("{label}.good.test"), network.server().port())?;
    let mut reply = [0; 10];
    stream.read_exact(&mut reply)?;
    if reply[1] == 0 { Ok(()) } else { Err(io::ErrorKind::ConnectionRefused.into()) }
}

/// Waits until the proxy resolves a name.
fn await_name(network: &TestNetwork, proxy: SocketAddr) -> Result<(), LabError> {
    let clock = Clock::new();
    let until = clock.now() + Span::from_secs(30);
    let mut number = 0;
    while clock.now() < until {
        number += 1;
        let label = format!("first{number}-{}", proxy.port());
        if network.net.client.run(|| good_name(proxy, &label, network)).is_ok() {
            return Ok(());
        }
        sleep_ms(100);
    }
    Err(LabError::Proof("no name is resolved".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_server_answers_only_for_good_names() {
        let query = |name: &[u8], kind| {
            let head = [0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            [&head[..], name, &[0, kind, 0, 1]].concat()
        };
        let good = query(b"\x01a\x04Good\x04test\0", 1);
        let found = answer(&good).expect("an answer");
        assert_eq!(found[..8], [0xab, 0xcd, 0x81, 0x80, 0, 1, 0, 1]);
        assert_eq!(found[found.len() - 4..], addresses::SERVER.0.octets());
        let none = answer(&query(b"\x01a\x04good\x04test\0", 28)).expect("an answer");
        assert_eq!((none[7], none[9], none.len()), (0, 1, good.len() + 11 + 22));
        assert_eq!(answer(&query(b"\x01a\x04dead\x04test\0", 1)), None);
        assert_eq!(answer(b"short"), None);
    }
}
