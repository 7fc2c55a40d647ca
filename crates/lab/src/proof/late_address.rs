//! Addresses that are assigned late: gateways start without their addresses and report that they
//! wait, work when these are assigned, and continue after one is removed and assigned again.

use super::long::Long;
use super::network::{SOCKS, Setup, Side, TestNetwork};
use super::{ProofConfig, Verdict, failed, sleep_ms};
use crate::LabError;
use rt::Clock;
use rt::netlink::Netlink;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use testbed::addresses;
use testbed::traffic::{self, Way};
use units::Span;

/// The download that must survive.
const SEED: u64 = 9_000_005;
const PATIENCE: Span = Span::from_secs(30);

/// A late address, its interface, and the configuration key that names it.
const LATE: [(Side, &str, Ipv4Addr, &str); 3] = [
    (Side::Hub, "sat", addresses::HUB.0, "link.listen"),
    (Side::Terminal, "sat", addresses::TERMINAL.0, "link.listen"),
    (Side::Terminal, "lan", addresses::TERMINAL_LAN.0, "socks5.listen"),
];

pub(super) fn run(config: &ProofConfig, verdict: &mut Verdict) -> Result<(), LabError> {
    let mut network = TestNetwork::without_gateways(&Setup::new(config.seed))?;
    let sockets = Sockets::new()?;
    for side in Side::BOTH {
        let control = format!("[control]\nsocket = \"{}\"\n[limits]\n", sockets.at(side).display());
        network.reconfigure(side, "[limits]\n", &control);
    }
    let own = format!("[link]\nlisten = \"{}:0\"\n", addresses::TERMINAL.0);
    network.reconfigure(Side::Terminal, "[link]\n", &own);
    for (number, (side, interface, address, _)) in (1..).zip(LATE) {
        // Without any address the kernel would remove the interface's routes and neighbours.
        add(&network, side, interface, Ipv4Addr::new(10, 99, 0, number), 32)?;
        remove(&network, side, interface, address)?;
    }
    for side in [Side::Hub, Side::Terminal] {
        network.start(side)?;
    }
    sleep_ms(2_000);
    let runs = network.check();
    verdict.demand(runs.is_ok(), "gateways start without their addresses");
    if let Err(error) = runs {
        verdict.note(error.to_string());
        return Ok(());
    }
    for (side, _, address, key) in LATE {
        let said = sockets.await_waiting(side, address, true)?;
        let promise = format!("the {} says that it waits for {address} ({key})", side.name());
        verdict.demand(said, &promise);
    }
    for (side, interface, address, _) in LATE {
        add(&network, side, interface, address, 24)?;
    }
    let back = network.await_path(PATIENCE)?;
    verdict.figure("path_after_s", back.as_secs_f64());
    let socks = network.proxy(SOCKS);
    let server = network.server();
    let ask = || traffic::ask(Way::Socks5(socks), server, (64, 64), Span::from_secs(5));
    let answered = network.net.client.run(ask).error.is_none();
    verdict.demand(answered, "a proxy listens on an address that was assigned late");

    let long = Long::start(&network, SEED);
    for (side, interface, address, key) in LATE {
        sleep_ms(if config.quick { 1_500 } else { 4_000 });
        remove(&network, side, interface, address)?;
        let said = sockets.await_waiting(side, address, true)?;
        let name = side.name();
        verdict.demand(said, &format!("the {name} reports that it has lost {address} ({key})"));
        sleep_ms(if config.quick { 500 } else { 5_000 });
        add(&network, side, interface, address, 24)?;
        let before = long.bytes();
        let back = network.await_path(PATIENCE)?;
        verdict.figure(&format!("{name}_{interface}_back_after_s"), back.as_secs_f64());
        let there = sockets.await_waiting(side, address, false)?;
        verdict.demand(there, &format!("the {name} no longer waits ({key})"));
        let grows = long.await_rate(1.0, PATIENCE).0.is_some() && long.bytes() > before;
        verdict.demand(grows, &format!("a running transfer continues ({name}, {key})"));
        network.check()?;
    }
    let answered = network.net.client.run(ask).error.is_none();
    verdict.demand(answered, "a proxy serves at an address that was removed and added again");
    long.finish(verdict)?;
    network.check()
}

fn add(
    network: &TestNetwork,
    side: Side,
    interface: &str,
    address: Ipv4Addr,
    prefix: u8,
) -> Result<(), LabError> {
    let add = || Netlink::open()?.add_address(interface, IpAddr::V4(address), prefix);
    network.host(side).run(add).map_err(|error| LabError::Proof(error.to_string()))
}

fn remove(
    network: &TestNetwork,
    side: Side,
    interface: &str,
    address: Ipv4Addr,
) -> Result<(), LabError> {
    let remove = || Netlink::open()?.delete_address(interface, IpAddr::V4(address), 24);
    network.host(side).run(remove).map_err(|error| LabError::Proof(error.to_string()))
}

/// The control sockets, in a folder that is removed at the end.
struct Sockets {
    folder: PathBuf,
}

impl Sockets {
    fn new() -> Result<Self, LabError> {
        let folder = std::env::temp_dir().join(format!("bentpipe-late-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(failed("a folder"))?;
        Ok(Self { folder })
    }

    fn at(&self, side: Side) -> PathBuf {
        self.folder.join(format!("{}.sock", side.name()))
    }

    /// Waits until the gateway reports that it waits for `address`, or that it does not.
    fn await_waiting(&self, side: Side, address: Ipv4Addr, wanted: bool) -> Result<bool, LabError> {
        let clock = Clock::new();
        let from = clock.now();
        let words = format!("address {address} ");
        while clock.now().since(from) < PATIENCE {
            let status = self.status(side).map_err(failed("the control socket"))?;
            let waiting = status["gateway"]["waiting"].as_array().cloned().unwrap_or_default();
            let mut texts = waiting.iter().filter_map(Value::as_str);
            if texts.any(|text| text.starts_with(&words)) == wanted {
                return Ok(true);
            }
            sleep_ms(100);
        }
        Ok(false)
    }

    fn status(&self, side: Side) -> std::io::Result<Value> {
        let mut stream = UnixStream::connect(self.at(side))?;
        stream.set_read_timeout(Some(std::time::Duration::from_secs(10)))?;
        stream.write_all(b"{\"ask\": \"status\"}\n")?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        serde_json::from_str(&line).map_err(std::io::Error::other)
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
