//! In network namespaces of their own: client — gateway — server, by veth.
//!
//! One thread visits the namespaces in turn; a socket stays in the one where it was made.

mod confirm;
mod quic;

use super::*;
use nix::sched::{CloneFlags, setns, unshare};
use rt::netlink::{VethEnd, sysctl};
use socket2::{Domain, Protocol, SockFilter, SockRef, Socket, Type};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);
const CLIENTS: [&str; 2] = ["10.1.0.2", "fd00:1::2"];
const GATEWAYS: [&str; 2] = ["10.1.0.1", "fd00:1::1"];
const SERVERS: [&str; 2] = ["10.3.0.2", "fd00:3::2"];

pub(crate) struct Spaces {
    pub(crate) client: File,
    pub(crate) gateway: File,
    pub(crate) server: File,
}

impl Spaces {
    pub(crate) fn build() -> Self {
        let spaces = Self { client: new_space(), gateway: new_space(), server: new_space() };
        enter(&spaces.gateway);
        let mut net = Netlink::open().unwrap();
        for (near, far, space) in
            [("lan0", "eth0", &spaces.client), ("wan0", "eth0", &spaces.server)]
        {
            net.create_veth(&VethEnd::new(near), &VethEnd::new(far).in_namespace(space.as_fd()))
                .unwrap();
        }
        set_up(&mut net, "lan0", GATEWAYS);
        set_up(&mut net, "wan0", ["10.3.0.1", "fd00:3::1"]);
        sysctl("net.ipv4.ip_forward", "1").unwrap();
        sysctl("net.ipv6.conf.all.forwarding", "1").unwrap();
        for (space, own, next) in [
            (&spaces.client, CLIENTS, GATEWAYS),
            (&spaces.server, SERVERS, ["10.3.0.1", "fd00:3::1"]),
        ] {
            enter(space);
            let mut net = Netlink::open().unwrap();
            set_up(&mut net, "eth0", own);
            net.add_route(&Route::default_v4(next[0].parse().unwrap())).unwrap();
            net.add_route(&Route::default_v6(next[1].parse().unwrap())).unwrap();
        }
        spaces
    }
}

pub(crate) fn new_space() -> File {
    unshare(CloneFlags::CLONE_NEWNET).unwrap();
    Netlink::open().unwrap().set_up("lo").unwrap();
    File::open("/proc/thread-self/ns/net").unwrap()
}

pub(crate) fn enter(space: &File) {
    setns(space, CloneFlags::CLONE_NEWNET).unwrap();
}

fn set_up(net: &mut Netlink, name: &str, addresses: [&str; 2]) {
    net.disable_offloads(name).unwrap();
    net.set_up(name).unwrap();
    for (address, prefix) in addresses.into_iter().zip([24, 64]) {
        net.add_address(name, address.parse().unwrap(), prefix).unwrap();
        net.await_address(address.parse().unwrap()).unwrap();
    }
}

/// Runs `test` in a thread that may create namespaces; reports if the machine permits none.
pub(crate) fn with_namespaces(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(|| match unshare(CloneFlags::CLONE_NEWNET) {
        Ok(()) => test(),
        Err(why) => eprintln!("skipped: unshare(CLONE_NEWNET) was refused: {why}"),
    });
    thread.join().expect("the test in namespaces failed");
}

/// Accepts a connection, or fails after a while.
fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    listener.set_nonblocking(false).unwrap();
    SockRef::from(listener).set_read_timeout(Some(PATIENCE)).unwrap();
    let (stream, peer) = listener.accept().expect("a connection to accept");
    stream.set_nonblocking(false).unwrap();
    (stream, peer)
}

fn connect(to: SocketAddr) -> TcpStream {
    TcpStream::connect_timeout(&to, PATIENCE).unwrap_or_else(|e| panic!("{to}: {e}"))
}

/// Bytes from one end arrive at the other.
fn pass(from: &mut TcpStream, to: &mut TcpStream, bytes: &[u8]) {
    from.set_nonblocking(false).unwrap();
    to.set_nonblocking(false).unwrap();
    to.set_read_timeout(Some(PATIENCE)).unwrap();
    from.write_all(bytes).unwrap();
    let mut got = vec![0; bytes.len()];
    to.read_exact(&mut got).unwrap();
    assert_eq!(got, bytes);
}

fn at(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address.parse().unwrap(), port)
}

/// Returns the contents of the packet filter, the policy rules and the routing tables, as netlink
/// messages without the parts that change by themselves (sequence numbers, the generation,
/// routes of link-local addresses, which appear a while after their interface).
pub(crate) fn everything() -> Vec<Vec<u8>> {
    const RTM_GETROUTE: u16 = 26;
    const RTM_GETRULE: u16 = 34;
    let netfilter = [1u16, 4, 7].map(|get| (libc::NETLINK_NETFILTER, (10 << 8) | get));
    let route = [RTM_GETROUTE, RTM_GETRULE].map(|get| (libc::NETLINK_ROUTE, get));
    let all = netfilter.iter().chain(&route).flat_map(|&(protocol, get)| dump(protocol, get));
    let link_local = [0xfe, 0x80, 0, 0, 0, 0, 0, 0];
    all.filter(|entry| !entry.windows(8).any(|bytes| bytes == link_local)).collect()
}

pub(crate) fn assert_nothing_changed(before: &[Vec<u8>]) {
    let after = everything();
    let gone: Vec<_> = before.iter().filter(|entry| !after.contains(entry)).collect();
    let new: Vec<_> = after.iter().filter(|entry| !before.contains(entry)).collect();
    assert!(gone.is_empty() && new.is_empty(), "gone: {gone:?}, new: {new:?}");
    assert_eq!(after, before, "the order changed");
}

fn dump(protocol: i32, get: u16) -> Vec<Vec<u8>> {
    let socket =
        Socket::new(Domain::from(libc::AF_NETLINK), Type::RAW, Some(Protocol::from(protocol)));
    let mut socket = socket.unwrap();
    let mut request = vec![0; 28];
    request[0] = 28;
    request[4..6].copy_from_slice(&get.to_ne_bytes());
    request[6..8].copy_from_slice(&0x301u16.to_ne_bytes()); // NLM_F_REQUEST | NLM_F_DUMP
    socket.send(&request).unwrap();
    let mut found = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = socket.read(&mut buffer).unwrap();
        let mut rest = &buffer[..length];
        while rest.len() >= 16 {
            let size = u32::from_ne_bytes(rest[..4].try_into().unwrap()) as usize;
            let kind = u16::from_ne_bytes(rest[4..6].try_into().unwrap());
            assert_ne!(kind, libc::NLMSG_ERROR as u16, "dump {get:#x} was refused");
            if kind == libc::NLMSG_DONE as u16 {
                return found;
            }
            let skipped = if protocol == libc::NETLINK_NETFILTER { 20 } else { 16 };
            found.push(rest[skipped..size].to_vec());
            rest = &rest[size.next_multiple_of(4).min(rest.len())..];
        }
    }
}

/// A table that is none of ours, with rules in it.
fn somebody_elses_table() {
    let mut plan = HubRules::new("other").plan().unwrap();
    plan.table = "other".into();
    plan.chains[0].hooked = false;
    let mut nftables = Nftables::open().unwrap();
    nftables.install_unowned(&plan).unwrap();
}

#[test]
fn intercepted_connections_keep_the_clients_address() {
    with_namespaces(|| {
        let spaces = Spaces::build();
        enter(&spaces.gateway);
        somebody_elses_table();
        let before = everything();
        assert!(before.len() > 10, "the dump shows nothing");
        let listeners = listen(0).unwrap();
        let port = listeners.v4.local_addr().unwrap().port();
        let terminal =
            Interception::terminal(&TerminalRules::new("term", &["lan0"], port)).unwrap();
        let hub = Interception::hub(&HubRules::new("hub")).unwrap();
        assert_eq!(terminal.notes(), [""; 0]);
        assert_ne!(everything(), before);
        for ((client, server), listener) in
            CLIENTS.into_iter().zip(SERVERS).zip([&listeners.v4, listeners.v6.as_ref().unwrap()])
        {
            enter(&spaces.server);
            let web = TcpListener::bind(at(server, 80)).unwrap();
            enter(&spaces.client);
            let mut inner = connect(at(server, 80));
            enter(&spaces.gateway);
            let (mut taken, peer) = accept(listener);
            assert_eq!(peer, inner.local_addr().unwrap());
            assert_eq!(peer.ip(), client.parse::<IpAddr>().unwrap());
            let wanted =
                original_destination(taken.local_addr().unwrap(), listener.local_addr().unwrap());
            assert_eq!(wanted, Some(at(server, 80)));
            let mut onward = connect_from(peer, at(server, 80)).unwrap();
            let (mut served, seen) = accept(&web);
            assert_eq!(seen, peer, "the server sees the client's own address and port");
            pass(&mut inner, &mut taken, b"request");
            pass(&mut onward, &mut served, b"request");
            pass(&mut served, &mut onward, b"response");
            pass(&mut taken, &mut inner, b"response");
        }
        drop(listeners);
        terminal.remove().unwrap();
        drop(hub);
        assert_nothing_changed(&before);
    });
}

#[test]
fn excluded_and_local_connections_are_not_intercepted() {
    with_namespaces(|| {
        let spaces = Spaces::build();
        enter(&spaces.server);
        let web = TcpListener::bind("[::]:80").unwrap();
        enter(&spaces.client);
        let mut old = connect(at(SERVERS[0], 80));
        let (mut old_served, _) = accept(&web);

        enter(&spaces.gateway);
        let own = TcpListener::bind("[::]:8080").unwrap();
        let listeners = listen(0).unwrap();
        let port = listeners.v4.local_addr().unwrap().port();
        let rules = TerminalRules {
            include_ports: vec!["80-90".parse().unwrap()],
            exclude_ports: vec!["81".parse().unwrap()],
            include_destinations: vec!["10.0.0.0/8".parse().unwrap(), "fd00::/16".parse().unwrap()],
            exclude_destinations: vec!["fd00:3::2".parse().unwrap()],
            ..TerminalRules::new("term", &["lan*"], port)
        };
        let _guard = Interception::terminal(&rules).unwrap();
        pass(&mut old, &mut old_served, b"a connection from before goes on");

        enter(&spaces.client);
        for gateway in GATEWAYS {
            connect(at(gateway, 8080));
            accept(&own);
        }
        let refused = |to| {
            let tried = || TcpStream::connect_timeout(&to, PATIENCE).unwrap_err().kind();
            // Behind other work a neighbour may not answer the kernel's three questions in time.
            let answers = |kind: &io::ErrorKind| *kind != io::ErrorKind::HostUnreachable;
            let kind = (0..3).map(|_| tried()).find(answers);
            assert_eq!(kind, Some(io::ErrorKind::ConnectionRefused), "{to}");
        };
        refused(at(SERVERS[0], 81)); // excluded port: the server itself refuses
        refused(at(SERVERS[0], 91)); // not an included port
        refused(at(SERVERS[1], 82)); // excluded network
        refused(at(GATEWAYS[0], port)); // the listener is not for the network
        connect(at(SERVERS[0], 82)); // nobody listens there: intercepted
        accept(&listeners.v4);
    });
}

#[test]
fn one_port_of_a_client_can_reach_the_same_server_again() {
    with_namespaces(|| {
        let spaces = Spaces::build();
        enter(&spaces.server);
        let web = TcpListener::bind("0.0.0.0:80").unwrap();
        let mail = TcpListener::bind("0.0.0.0:25").unwrap();
        enter(&spaces.gateway);
        let _guard = Interception::hub(&HubRules::new("hub")).unwrap();
        let client = at(CLIENTS[0], 5555);
        let _first = connect_from(client, at(SERVERS[0], 80)).unwrap();
        assert_eq!(accept(&web).1, client);
        let _other = connect_from(client, at(SERVERS[0], 25)).unwrap();
        assert_eq!(accept(&mail).1, client);
        let _again = connect_from(client, at(SERVERS[0], 80)).unwrap();
        let (_, seen) = accept(&web);
        assert_eq!(seen.ip(), client.ip());
        assert_ne!(seen.port(), client.port());
    });
}

#[test]
fn the_rules_of_a_crashed_gateway_are_replaced() {
    with_namespaces(|| {
        drop(new_space());
        let before = everything();
        let rules = HubRules::new("crashed");
        let plan = rules.plan().unwrap();
        Nftables::open().unwrap().install_unowned(&plan).unwrap();
        let mut net = Netlink::open().unwrap();
        net.add_route(&Route::local_default(Ipv4Addr::UNSPECIFIED.into(), plan.routing_table))
            .unwrap();
        let after = Interception::hub(&rules).unwrap();
        let notes = after.notes().join("; ");
        assert!(notes.contains("replaced table inet bentpipe_crashed"), "{notes}");
        assert!(notes.contains("took over from an earlier run: local 0.0.0.0/0"), "{notes}");
        drop(after);
        assert_nothing_changed(&before);
    });
}

#[test]
fn equal_rules_of_other_programs_are_not_removed() {
    with_namespaces(|| {
        drop(new_space());
        let rules = HubRules::new("shared");
        let (mark, table, priority) = (rules.mark, rules.table, rules.priority);
        let rule = format!("rule add fwmark {mark}/0xffffffff table {table} pref {priority}");
        let ip = std::process::Command::new("ip").args(rule.split(' ')).status();
        if !ip.is_ok_and(|status| status.success()) {
            eprintln!("skipped: this machine has no ip program");
            return;
        }
        let before = everything();
        let hub = Interception::hub(&rules).unwrap();
        assert_eq!(hub.notes(), [""; 0], "it is taken for a leftover");
        assert_ne!(everything(), before);
        drop(hub);
        assert_nothing_changed(&before);
    });
}

#[test]
fn intercepted_connections_continue_while_new_ones_bypass() {
    with_namespaces(|| {
        let spaces = Spaces::build();
        enter(&spaces.server);
        let web = TcpListener::bind(at(SERVERS[0], 80)).unwrap();
        enter(&spaces.gateway);
        let listeners = listen(0).unwrap();
        let port = listeners.v4.local_addr().unwrap().port();
        let rules = TerminalRules::new("term", &["lan0"], port);
        let mut terminal = Interception::terminal(&rules).unwrap();
        enter(&spaces.client);
        let mut old = connect(at(SERVERS[0], 80));
        enter(&spaces.gateway);
        let (mut taken, _) = accept(&listeners.v4);
        terminal.suspend().unwrap();
        pass(&mut old, &mut taken, b"still the gateway's");
        enter(&spaces.client);
        let mut new = connect(at(SERVERS[0], 80));
        let (mut served, _) = accept(&web);
        pass(&mut new, &mut served, b"straight to the server");
        pass(&mut taken, &mut old, b"and back");
        terminal.remove().unwrap();
    });
}

/// A client has received a SYN-ACK, and the gateway is killed before the client's ACK arrives: no
/// socket exists that the kernel could reset.
#[test]
fn a_connection_that_was_half_open_when_its_gateway_ended_is_reset_by_the_server() {
    with_namespaces(|| {
        let spaces = Spaces::build();
        enter(&spaces.server);
        let _web = TcpListener::bind(at(SERVERS[0], 80)).unwrap();
        enter(&spaces.gateway);
        let listeners = listen(0).unwrap();
        take_openings_only(&listeners.v4);
        let port = listeners.v4.local_addr().unwrap().port();
        let terminal =
            Interception::terminal(&TerminalRules::new("term", &["lan0"], port)).unwrap();
        enter(&spaces.client);
        let mut client = connect(at(SERVERS[0], 80));
        client.write_all(b"request").unwrap();
        drop(listeners);
        drop(terminal);
        // Its retransmissions bypass the gateway.
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let end = client.read(&mut [0]).expect_err("nobody knows this connection");
        assert_eq!(end.kind(), io::ErrorKind::ConnectionReset);
    });
}

/// Responds to a client's SYN, and leaves the connection half open.
fn take_openings_only(listener: &TcpListener) {
    const OCTET: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
    const ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
    const END: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let filter = [
        SockFilter::new(OCTET, 0, 0, 13),     // Flags of TCP's header.
        SockFilter::new(ANY_BIT, 1, 0, 0x02), // SYN
        SockFilter::new(END, 0, 0, 0),
        SockFilter::new(END, 0, 0, u32::MAX),
    ];
    SockRef::from(listener).attach_filter(&filter).unwrap();
}

#[test]
fn a_table_vanishes_with_its_process_and_is_not_shared() {
    with_namespaces(|| {
        drop(new_space());
        let before = everything();
        let rules = HubRules::new("one");
        let first = Interception::hub(&rules).unwrap();
        match Interception::hub(&rules) {
            Err(InterceptError::InUse { table, .. }) => assert_eq!(table, "bentpipe_one"),
            other => panic!("{other:?}"),
        }
        let second = Interception::hub(&HubRules::new("two")).unwrap();
        drop(first);
        drop(second);
        assert_nothing_changed(&before);
        let mut nftables = Nftables::open().unwrap();
        nftables.install(&rules.plan().unwrap(), None).unwrap();
        assert_ne!(everything(), before);
        drop(nftables);
        assert_nothing_changed(&before);
    });
}

#[test]
fn a_refusal_names_the_call_and_leaves_nothing() {
    with_namespaces(|| {
        drop(new_space());
        let before = everything();
        let mut plan = HubRules::new("x").plan().unwrap();
        // A jump to a chain that does not exist.
        plan.chains[0].rules.push(ruleset::Rule {
            needs: "nothing_of_the_kind",
            expressions: expressions::Expressions::new()
                .verdict(expressions::Verdict::Jump("nowhere")),
        });
        let error = Interception::install(plan, vec![]).unwrap_err();
        assert_eq!(error.errno(), Some(libc::ENOENT));
        let text = error.to_string();
        assert!(text.contains("NFT_MSG_NEWRULE (bentpipe_x prerouting 3)"), "{text}");
        assert!(text.contains("modprobe") && text.contains("nothing_of_the_kind"), "{text}");
        assert_nothing_changed(&before);
    });
}
