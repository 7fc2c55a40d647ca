//! Paths whose interfaces are removed and added, in separate network namespaces.

use super::harness::*;
use crate::intercept::tests::{enter, new_space, with_namespaces};
use rt::netlink::{Netlink, VethEnd};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;

/// Connects the two by a new interface `wan0` at the terminal.
fn plug(terminal: &File, hub: &File) {
    enter(terminal);
    let mut net = Netlink::open().unwrap();
    let far = VethEnd::new("eth0").in_namespace(hub.as_fd());
    net.create_veth(&VethEnd::new("wan0"), &far).unwrap();
    for (space, name, address) in [(hub, "eth0", "10.9.0.2"), (terminal, "wan0", "10.9.0.1")] {
        enter(space);
        let mut net = Netlink::open().unwrap();
        net.disable_offloads(name).unwrap();
        net.add_address(name, address.parse().unwrap(), 24).unwrap();
        net.set_up(name).unwrap();
    }
}

fn unplug(terminal: &File) {
    enter(terminal);
    Netlink::open().unwrap().delete_link("wan0").unwrap();
}

/// Returns a new connection by the terminal's proxy if it echoes a byte.
fn carries(terminal: &Running, echo: SocketAddr) -> Option<TcpStream> {
    let (mut stream, _) = socks_from(open(terminal.addresses.socks5[0]), echo);
    echoes(&mut stream, 500).then_some(stream)
}

fn echoes(stream: &mut TcpStream, ms: u64) -> bool {
    stream.set_read_timeout(Some(std::time::Duration::from_millis(ms))).unwrap();
    stream.write_all(b"?").is_ok() && stream.read_exact(&mut [0]).is_ok()
}

#[test]
fn a_path_waits_for_its_interface() {
    with_namespaces(|| {
        let spaces = [new_space(), new_space()];
        let [near, far] = &spaces;
        enter(far);
        let hub = hub_at("0.0.0.0:7000", "[hub]\nown_addresses = \"allow\"");
        let echo = echo();
        enter(near);
        let terminal = Running::start(
            "role = \"terminal\"\naccept = \"early\"\nname = \"boat\"\n\
             [link]\nrate_up = \"50mbit\"\nrate_down = \"50mbit\"\nround_trip = \"10ms\"\n\
             [[path]]\nname = \"sat\"\npeer = \"10.9.0.2:7000\"\ninterface = \"wan0\"\n\
             listen = \"0.0.0.0:7100\"\n\
             [[path]]\nname = \"spare\"\npeer = \"10.9.0.2:7000\"\nrole = \"backup\"\n\
             interface = \"wan9\"\nlisten = \"10.8.0.1:0\"\n\
             [health]\nhold = \"100ms\"\nprobe = \"200ms\"\n\
             [socks5]\nlisten = \"127.0.0.1:0\"\n",
        );
        assert!(carries(&terminal, echo).is_none(), "there is no wire");
        plug(near, far);
        let mut first = None;
        let mut lasts = || {
            first = carries(&terminal, echo);
            first.is_some()
        };
        enter(near);
        assert!((0..20).any(|_| lasts()), "the interface is there");
        // As with a modem that restarts: the interface is replaced by another of the same name.
        let mut first = first.unwrap();
        for _ in 0..2 {
            unplug(near);
            assert!(!echoes(&mut first, 300), "it waits");
            plug(near, far);
            enter(near);
            first.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
            read_exactly(&mut first, 1);
            assert!((0..20).any(|_| carries(&terminal, echo).is_some()), "new ones, too");
        }
        assert!(echoes(&mut first, 5_000), "what ran goes on");
        let report = terminal.stop();
        assert_eq!(report.connections.lost_with_peer, 0);
        assert!(report.udp.received > 0 && report.udp.send_errors > 0, "{:?}", report.udp);
        hub.stop();
    });
}
