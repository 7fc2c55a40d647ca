//! A router between the gateways, whose second link has a smaller MTU.

use crate::network::{PATIENCE, content, gateway, pause, read_all, report_of};
use rt::netlink::{Netlink, NetlinkError, Route, VethEnd, sysctl};
use serde_json::Value;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;
use testbed::traffic::{Way, connect};
use testbed::{Host, Process};

const TERMINAL: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const ROUTER: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 1, 0, 2), Ipv4Addr::new(10, 2, 0, 1)];
const HUB: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 2);

/// Terminal, router and hub, with a gateway on each end; the client runs on the terminal and the
/// server on the hub.
struct Routed {
    hosts: [Host; 3],
    terminal: Process,
    hub: Process,
}

impl Routed {
    fn build() -> Option<Self> {
        if let Err(refusal) = testbed::permission::check() {
            eprintln!("skipped: {refusal}");
            return None;
        }
        let hosts = ["terminal", "router", "hub"].map(|name| Host::new(name).expect("namespaces"));
        let [terminal, router, hub] = &hosts;
        lay(terminal, "up", TERMINAL, router, "down", ROUTER[0]);
        lay(router, "up", ROUTER[1], hub, "down", HUB);
        router.run(|| sysctl("net.ipv4.ip_forward", "1")).expect("a router");
        for (host, by) in [(terminal, ROUTER[0]), (hub, ROUTER[1])] {
            change(host, |net| net.add_route(&Route::default_v4(by)));
        }
        let hub_process = gateway(
            hub,
            &format!(
                "role = \"hub\"\nsecurity = \"none\"\n[link]\nlisten = \"{HUB}:7000\"\n\
                 rate_down = \"20mbit\"\nrate_up = \"20mbit\"\nround_trip = \"50ms\"\n\
                 [hub]\nown_addresses = \"allow\"\n[limits]\ndrain = \"0s\"\n"
            ),
        );
        let terminal_process = gateway(
            terminal,
            &format!(
                "role = \"terminal\"\nsecurity = \"none\"\n[link]\npeer = \"{HUB}:7000\"\n\
                 rate_down = \"20mbit\"\nrate_up = \"20mbit\"\nround_trip = \"50ms\"\n\
                 [socks5]\nlisten = \"127.0.0.1:1080\"\n[limits]\ndrain = \"0s\"\n"
            ),
        );
        Some(Self { hosts, terminal: terminal_process, hub: hub_process })
    }

    /// Connects from the terminal to the hub through both gateways; returns the client's and the
    /// server's socket.
    fn connect(&self) -> (TcpStream, TcpStream) {
        let [terminal, _, hub] = &self.hosts;
        let server = SocketAddr::from((HUB, 9000));
        let listener = hub.run(|| TcpListener::bind(server)).expect("a free port");
        let way = Way::Socks5(SocketAddr::from(([127, 0, 0, 1], 1080)));
        for _ in 0..50 {
            if let Ok(client) = terminal.run(|| connect(way, server, PATIENCE)) {
                let (server, _) = listener.accept().expect("a connection");
                return (client, server);
            }
            pause(Duration::from_millis(20));
        }
        panic!("no way through");
    }

    /// Stops both gateways without a connection between them, so that lost peers are not reported.
    fn finish(mut self) -> (Value, Value) {
        change(&self.hosts[1], |net| net.set_down("up"));
        let hub = report_of(&mut self.hub);
        (report_of(&mut self.terminal), hub)
    }
}

/// Creates a link between two hosts with Ethernet's MTU.
pub(crate) fn lay(
    near: &Host,
    near_name: &'static str,
    near_address: Ipv4Addr,
    far: &Host,
    far_name: &'static str,
    far_address: Ipv4Addr,
) {
    change(near, |net| {
        let peer = VethEnd::new(far_name).in_namespace(far.namespace());
        net.create_veth(&VethEnd::new(near_name), &peer)
    });
    for (host, name, address) in [(near, near_name, near_address), (far, far_name, far_address)] {
        change(host, |net| {
            net.disable_offloads(name)?;
            net.set_up(name)?;
            net.add_address(name, address.into(), 24)?;
            net.await_address(address.into())
        });
    }
}

pub(crate) fn change(
    host: &Host,
    work: impl FnOnce(&mut Netlink) -> Result<(), NetlinkError> + Send,
) {
    host.run(|| work(&mut Netlink::open()?)).expect("the kernel accepts the change");
}

fn mtu(report: &Value) -> u64 {
    report["peers"][0]["mtu"].as_u64().expect("a peer")
}

#[test]
fn the_path_mtu_is_detected_and_detected_again_after_a_change() {
    let Some(net) = Routed::build() else { return };
    let (client, server) = net.connect();
    let length = 20_000_000;
    let (down, up) = (content(1, length), content(2, length));
    std::thread::scope(|scope| {
        for (stream, bytes) in [(&server, &down), (&client, &up)] {
            let mut stream = stream.try_clone().unwrap();
            scope.spawn(move || {
                stream.write_all(bytes).unwrap();
                stream.shutdown(std::net::Shutdown::Write).unwrap();
            });
        }
        let readers = [&server, &client].map(|stream| {
            let mut stream = stream.try_clone().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            scope.spawn(move || read_all(&mut stream))
        });
        pause(Duration::from_secs(2));
        // From here on the router sends "packet too big" to the terminal; packets from the hub are
        // dropped without a message, because the router's link does not receive them.
        change(&net.hosts[1], |net| net.set_mtu("up", 1400));
        let [at_server, at_client] = readers.map(|reader| reader.join().unwrap());
        at_server.1.expect("a clean end");
        at_client.1.expect("a clean end");
        assert!(at_server.0 == up, "{} bytes up", at_server.0.len());
        assert!(at_client.0 == down, "{} bytes down", at_client.0.len());
    });
    let (terminal, hub) = net.finish();
    assert_eq!(mtu(&terminal), 1400, "the router said so");
    assert!((1200..=1400).contains(&mtu(&hub)), "nobody said anything: {}", mtu(&hub));
}

#[test]
fn a_full_path_mtu_is_used_and_a_smaller_interface_mtu_respected() {
    let Some(net) = Routed::build() else { return };
    let (mut client, mut server) = net.connect();
    let mut send = |bytes: &[u8]| {
        let mut got = vec![0; bytes.len()];
        std::thread::scope(|scope| {
            scope.spawn(|| server.write_all(bytes).unwrap());
            std::io::Read::read_exact(&mut client, &mut got).unwrap();
        });
        assert!(got == bytes);
    };
    send(&content(1, 3_000_000));
    change(&net.hosts[2], |net| net.set_mtu("down", 1300));
    send(&content(2, 3_000_000));
    pause(Duration::from_secs(2));
    let (terminal, hub) = net.finish();
    assert_eq!((mtu(&terminal), mtu(&hub)), (1500, 1300));
}
