//! The network in real namespaces; skipped with the reason if they are not permitted.

use rt::emulator::{Emulator, EmulatorConfig, Handle, Ports};
use satlink::reference::Plan;
use satlink::{LinkConfig, words};
use socket2::{Domain, Socket, Type};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread::JoinHandle;
use testbed::traffic::{self, File, FileServer, Limits, Progress, Way, ask};
use testbed::{Host, Reference, Satellite, SatelliteConfig, addresses, permission};
use units::Span;

/// Whether this test may create networks; prints a message if not.
fn permitted() -> bool {
    match permission::check() {
        Ok(()) => true,
        Err(reason) => {
            eprintln!("skipped: {reason}");
            false
        }
    }
}

fn exchange(from: &Host, to: &Host, address: IpAddr) {
    let server = FileServer::start(Some(to), SocketAddr::new(address, 7000)).unwrap();
    let asked = from.run(|| ask(Way::Direct, server.address(), (4096, 4096), Span::from_secs(10)));
    assert!(asked.took.is_some(), "{} to {} ({address}): {asked:?}", from.name(), to.name());
}

#[test]
fn neighbours_reach_each_other_by_both_families() {
    if !permitted() {
        return;
    }
    let net = Satellite::new(&SatelliteConfig::default()).unwrap();
    let pairs = [
        (&net.client, &net.terminal, addresses::TERMINAL_LAN),
        (&net.terminal, &net.client, addresses::CLIENT),
        (&net.hub, &net.server, addresses::SERVER),
        (&net.server, &net.hub, addresses::HUB_WAN),
        // Across a router: the hub's address on the satellite's side.
        (&net.server, &net.hub, addresses::HUB),
    ];
    for (from, to, (v4, v6)) in pairs {
        exchange(from, to, v4.into());
        exchange(from, to, v6.into());
    }
}

/// An emulator between the terminal and the hub.
fn emulate(net: &Satellite, link: &str) -> (Handle, JoinHandle<()>) {
    let link: LinkConfig = words::parse_link(link).unwrap();
    let ports =
        Ports::Interfaces { a: Satellite::TO_HUB.to_owned(), b: Satellite::TO_TERMINAL.to_owned() };
    let (sender, handle) = mpsc::channel();
    let thread = net.space.spawn("emulator", move || {
        let emulator = Emulator::open(EmulatorConfig::new(link, ports)).unwrap();
        sender.send(emulator.handle()).unwrap();
        emulator.run(&AtomicBool::new(false)).unwrap();
    });
    (handle.recv().unwrap(), thread)
}

#[test]
fn server_is_reached_over_the_emulated_link() {
    if !permitted() {
        return;
    }
    let net = Satellite::new(&SatelliteConfig::default()).unwrap();
    let (emulator, thread) = emulate(&net, "delay 20ms");
    for address in [addresses::SERVER.0.into(), addresses::SERVER.1.into()] {
        let server = FileServer::start(Some(&net.server), SocketAddr::new(address, 7000)).unwrap();
        let exchange = net
            .client
            .run(|| ask(Way::Direct, server.address(), (4096, 4096), Span::from_secs(10)));
        // One round trip to connect, one for the request; there is no upper bound.
        assert!(exchange.took >= Some(Span::from_millis(80)), "{exchange:?}");

        let file = File { seed: 1, bytes: 300_000, congestion: "reno" };
        let limit = Span::from_secs(20);
        let limits = Limits { after_first_byte: limit, overall: limit };
        let progress = Progress::default();
        let got = net
            .client
            .run(|| traffic::download(Way::Direct, server.address(), file, limits, &progress));
        assert!(got.complete && got.matches, "{got:?}");
    }
    emulator.stop();
    thread.join().unwrap();
}

#[test]
fn without_forwarding_nothing_crosses() {
    if !permitted() {
        return;
    }
    let net = Satellite::new(&SatelliteConfig::default()).unwrap();
    let (emulator, thread) = emulate(&net, "delay 1ms");
    let address = SocketAddr::new(addresses::SERVER.0.into(), 7000);
    let server = FileServer::start(Some(&net.server), address).unwrap();
    let try_once =
        || net.client.run(|| ask(Way::Direct, server.address(), (64, 64), Span::from_secs(2)));
    assert!(try_once().took.is_some());
    net.set_forwarding(false).unwrap();
    assert!(try_once().took.is_none());
    emulator.stop();
    thread.join().unwrap();
}

#[test]
fn server_accepts_only_the_configured_peer() {
    if !permitted() {
        return;
    }
    let net = Satellite::new(&SatelliteConfig::default()).unwrap();
    let (emulator, thread) = emulate(&net, "delay 1ms");
    let address = SocketAddr::new(addresses::SERVER.0.into(), 7000);
    let server = FileServer::start(Some(&net.server), address).unwrap();
    let try_once = |host: &Host| {
        host.run(|| ask(Way::Direct, server.address(), (64, 64), Span::from_secs(2))).took
    };
    assert!(try_once(&net.client).is_some());
    server.open_only_to(addresses::HUB_WAN.0).unwrap();
    assert!(try_once(&net.hub).is_some());
    assert!(try_once(&net.client).is_none());
    emulator.stop();
    thread.join().unwrap();
}

/// A socket that was created with bbr stays paced with every other congestion control, and no
/// kernel statistic shows it. So the default must not be bbr.
#[test]
fn no_socket_starts_with_a_pacing_congestion_control() {
    if !permitted() {
        return;
    }
    let net = Satellite::new(&SatelliteConfig::default()).unwrap();
    let plan = Plan::mesh(&LinkConfig::default(), &words::parse_link("delay 1ms").unwrap(), 2);
    let mesh = Reference::new(&plan, &SatelliteConfig::default()).unwrap();
    let five = [&net.client, &net.terminal, &net.space, &net.hub, &net.server];
    for host in five.into_iter().chain((0..plan.sites.len()).map(|site| mesh.host(site))) {
        let law = host.run(|| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            let law = socket.tcp_congestion().unwrap();
            String::from_utf8_lossy(&law).trim_end_matches('\0').to_owned()
        });
        assert_eq!(law, "reno", "{}", host.name());
    }
}
