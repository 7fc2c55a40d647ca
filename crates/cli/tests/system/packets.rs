//! Traffic that is forwarded unsplit, parallel to split connections.

use crate::network::{Setup, TestNetwork, have, pause};
use rt::netlink::{Netlink, sysctl};
use serde_json::Value;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use testbed::addresses::{CLIENT, SERVER};

const CARRY: &str = "[forward]\ninterfaces = [\"lan\"]\nrefuse = [\"udp/443\"]\n";
const HOME: &str = "[forward]\nnetworks = [\"10.1.0.0/24\", \"fd00:1::/64\"]\n";

fn build(name: &str, setup: &Setup<'_>) -> Option<TestNetwork> {
    if let Err(error) = std::fs::metadata("/dev/net/tun") {
        eprintln!("skipped: /dev/net/tun: {error}");
        return None;
    }
    let setup = Setup { terminal_tables: CARRY, hub_tables: HOME, ..*setup };
    TestNetwork::build(name, &setup)
}

/// Opens a UDP socket on the client or the server.
fn udp(network: &TestNetwork, at_server: bool, address: impl Into<IpAddr>, port: u16) -> UdpSocket {
    let host = if at_server { &network.net.server } else { &network.net.client };
    let address = SocketAddr::new(address.into(), port);
    let socket = host.run(|| UdpSocket::bind(address)).expect("a free port");
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket
}

/// Echoes all packets until `done`.
fn echo(socket: &UdpSocket, done: &AtomicBool) {
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut buffer = vec![0; 65_536];
    while !done.load(Ordering::Relaxed) {
        if let Ok((len, from)) = socket.recv_from(&mut buffer) {
            socket.send_to(&buffer[..len], from).unwrap();
        }
    }
}

fn raw(network: &TestNetwork, at_server: bool, protocol: i32) -> Socket {
    let host = if at_server { &network.net.server } else { &network.net.client };
    let make = || Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(protocol)));
    let socket = host.run(make).expect("root may");
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket
}

/// Reads packets until one has `wanted` as its IP payload; returns its source.
fn await_raw(socket: &Socket, wanted: &[u8]) -> IpAddr {
    let mut buffer = [MaybeUninit::uninit(); 2048];
    loop {
        let (len, from) = socket.recv_from(&mut buffer).expect("a packet in time");
        let bytes: Vec<u8> = buffer[..len]
            .iter()
            .map(|byte| {
                // SAFETY: the kernel has written the first `len` bytes.
                unsafe { byte.assume_init() }
            })
            .collect();
        if bytes.get(20..) == Some(wanted) {
            return from.as_socket().expect("an address").ip();
        }
    }
}

/// UDP of many sizes and ICMP of both families during a download at the full rate.
#[test]
fn udp_and_icmp_are_forwarded_during_a_download() {
    let setup = Setup {
        link: "delay 40ms rate 8mbit limit 2bdp",
        rates: "rate_up = \"8mbit\"\nrate_down = \"8mbit\"\nround_trip = \"80ms\"",
        ..Setup::default()
    };
    let Some(network) = build("packets", &setup) else { return };
    let listener = network.listen(SERVER.0, 9000);
    let mut download = network.connect(SERVER.0, 9000);
    let (mut server, _) = listener.accept().unwrap();
    let done = AtomicBool::new(false);
    let far = [udp(&network, true, SERVER.0, 5000), udp(&network, true, SERVER.1, 5000)];
    thread::scope(|scope| {
        let done = &done;
        scope.spawn(move || {
            while server.write_all(&[7; 4096]).is_ok() {
                if done.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        scope.spawn(move || {
            let mut buffer = vec![0; 65_536];
            while download.read(&mut buffer).is_ok_and(|len| len > 0) {
                if done.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        for socket in &far {
            scope.spawn(move || echo(socket, done));
        }
        pause(Duration::from_secs(1));
        for (from, to) in
            [(IpAddr::from(CLIENT.0), IpAddr::from(SERVER.0)), (CLIENT.1.into(), SERVER.1.into())]
        {
            let near = udp(&network, false, from, 0);
            near.connect(SocketAddr::new(to, 5000)).unwrap();
            let mut answered = 0;
            // The last two exceed the packet size of the link, and that of the LAN.
            for size in [12, 160, 160, 160, 500, 1_200, 1_400, 1_452, 4_000] {
                for attempt in 0..5u8 {
                    let packet = vec![attempt; size];
                    near.send(&packet).unwrap();
                    let mut buffer = vec![0; 65_536];
                    if near.recv(&mut buffer).is_ok_and(|len| buffer[..len] == packet[..]) {
                        answered += 1;
                    }
                }
            }
            assert!(answered >= 43, "{answered} of 45 to {to}");
        }
        if have(&["ping"]) {
            let (v4, v6) = (SERVER.0.to_string(), SERVER.1.to_string());
            for to in [v4, v6] {
                network.succeed_on_client("ping", &["-c", "5", "-i", "0.2", "-w", "10", &to]);
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    let (terminal, hub) = network.finish();
    for report in [&terminal, &hub] {
        let carried = &report["connections"]["forwarded"];
        assert!(carried["sent"].as_u64() >= Some(90), "{carried}");
        assert!(carried["received"].as_u64() >= Some(90), "{carried}");
        assert_eq!(carried["denied"], 0, "{carried}");
    }
}

/// Traffic without ports and handshake: ESP, and TCP with only one visible direction.
#[test]
fn ipsec_and_one_way_flows_are_forwarded_unchanged() {
    let Some(network) = build("one-way", &Setup::default()) else { return };
    let to = SockAddr::from(SocketAddr::from((SERVER.0, 0)));
    let esp = [0, 0, 1, 7, 0, 0, 0, 1, 0xde, 0xad, 0xbe, 0xef];
    let (near, far) = (raw(&network, false, 50), raw(&network, true, 50));
    near.send_to(&esp, &to).unwrap();
    assert_eq!(await_raw(&far, &esp), IpAddr::from(CLIENT.0));
    // Data of an established flow, and a SYN-ACK whose SYN took another path.
    let (near, far) = (raw(&network, false, 6), raw(&network, true, 6));
    for flags in [0x18, 0x12] {
        let mut segment = vec![0x15, 0xb3, 0x27, 0x0f, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, flags, 1, 0];
        segment.extend([0, 0, 0, 0]);
        near.send_to(&segment, &to).unwrap();
        assert_eq!(await_raw(&far, &segment), IpAddr::from(CLIENT.0));
    }
    let (terminal, hub) = network.finish();
    assert!(terminal["connections"]["forwarded"]["sent"].as_u64() >= Some(3), "{terminal}");
    assert!(hub["connections"]["forwarded"]["received"].as_u64() >= Some(3), "{hub}");
    // Only the test's own connection check was intercepted.
    assert_eq!(terminal["connections"]["accepted"], hub["connections"]["opened"]);
}

/// QUIC's port is refused immediately, so that browsers use TCP; spoofed sources are dropped.
#[test]
fn refused_ports_are_answered_and_spoofed_sources_dropped() {
    let Some(network) = build("refused", &Setup::default()) else { return };
    let quic = udp(&network, false, CLIENT.0, 0);
    quic.connect(SocketAddr::from((SERVER.0, 443))).unwrap();
    quic.send(b"hello").unwrap();
    let answer = quic.recv(&mut [0; 16]).unwrap_err();
    assert_eq!(answer.kind(), ErrorKind::ConnectionRefused, "at once");
    let far = udp(&network, true, SERVER.0, 5000);
    far.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let other = Ipv4Addr::new(192, 0, 2, 77);
    network.net.client.run(|| Netlink::open()?.add_address("eth0", other.into(), 32)).unwrap();
    let foreign = udp(&network, false, other, 0);
    let own = udp(&network, false, CLIENT.0, 0);
    for (socket, arrives) in [(&own, true), (&foreign, false)] {
        socket.send_to(b"hello", SocketAddr::from((SERVER.0, 5000))).unwrap();
        assert_eq!(far.recv_from(&mut [0; 16]).is_ok(), arrives);
    }
    let (_, hub) = network.finish();
    assert_eq!(hub["connections"]["forwarded"]["foreign_source"], 1);
}

/// Packets bypass a gateway that was killed.
#[test]
fn packets_bypass_a_killed_terminal_gateway() {
    let Some(mut network) = build("packets-killed", &Setup::default()) else { return };
    let far = udp(&network, true, SERVER.0, 5000);
    let near = udp(&network, false, CLIENT.0, 0);
    let arrives = |bytes: &[u8]| {
        near.send_to(bytes, SocketAddr::from((SERVER.0, 5000))).unwrap();
        far.recv_from(&mut [0; 16]).is_ok()
    };
    assert!(arrives(b"carried"));
    network.kill_terminal();
    assert!(arrives(b"forwarded"));
}

/// Packets of bypassing connections are not tunnelled to an unreachable hub.
#[test]
fn without_a_hub_packets_bypass_the_gateway_as_connections_do() {
    if std::fs::metadata("/dev/net/tun").is_err() {
        eprintln!("skipped: no /dev/net/tun");
        return;
    }
    let fail = "[fail]\nunreachable = \"open\"\n[health]\nhold = \"1s\"\nprobe = \"200ms\"\n";
    let tables = format!("{CARRY}{fail}");
    let setup = Setup { terminal_tables: &tables, hub_tables: HOME, ..Setup::default() };
    let Some(mut network) = TestNetwork::build("openpackets", &setup) else { return };
    // The default of some distributions, which requires an address on the tunnel.
    for end in [&network.net.terminal, &network.net.hub] {
        end.run(|| sysctl("net.ipv4.conf.all.rp_filter", "2")).expect("root may");
    }
    let listener = network.listen(SERVER.0, 9000);
    let (client, server) =
        (udp(&network, false, CLIENT.0, 5000), udp(&network, true, SERVER.0, 5000));
    let answered = |words: &[u8]| {
        let mut buffer = [0; 100];
        client.send_to(words, (SERVER.0, 5000)).unwrap();
        let Ok((len, from)) = server.recv_from(&mut buffer) else { return false };
        server.send_to(&buffer[..len], from).unwrap();
        client.recv(&mut buffer).is_ok_and(|len| &buffer[..len] == words)
    };
    assert!(answered(b"carried"));
    network.kill_hub();
    pause(Duration::from_secs(3));
    let own = network.connect(SERVER.0, 9000).local_addr().unwrap();
    assert_eq!(listener.accept().expect("a connection").1, own, "straight from the client");
    assert!(answered(b"past the gateway"));
    network.replace_hub();
    pause(Duration::from_secs(4));
    assert!(answered(b"carried again"));
    let (terminal, hub) = network.finish();
    let carried = |report: &Value, what: &str| {
        report["connections"]["forwarded"][what].as_u64().expect("a counter")
    };
    // The second hub has received only the last packet.
    assert_eq!((carried(&terminal, "sent"), carried(&hub, "received")), (2, 1), "{terminal}");
}

/// Packets like those of RTP through gateways that compress headers, over a link that loses and
/// reorders: what arrives is what was sent, in both directions and both families (HDR-2.5).
#[test]
fn voice_with_compressed_headers_arrives_unchanged() {
    if std::fs::metadata("/dev/net/tun").is_err() {
        eprintln!("skipped: no /dev/net/tun");
        return;
    }
    let keys = "compress_headers = true\n";
    let (carry, home) = (format!("{CARRY}{keys}"), format!("{HOME}{keys}"));
    let setup = Setup {
        link: "delay 40ms 30ms unordered loss 5%",
        terminal_tables: &carry,
        hub_tables: &home,
        ..Setup::default()
    };
    let Some(network) = TestNetwork::build("voice", &setup) else { return };
    let done = AtomicBool::new(false);
    let far = [udp(&network, true, SERVER.0, 5004), udp(&network, true, SERVER.1, 5004)];
    let mut answered = 0;
    thread::scope(|scope| {
        for socket in &far {
            scope.spawn(|| echo(socket, &done));
        }
        for (from, to) in
            [(IpAddr::from(CLIENT.0), IpAddr::from(SERVER.0)), (CLIENT.1.into(), SERVER.1.into())]
        {
            let near = udp(&network, false, from, 0);
            near.connect(SocketAddr::new(to, 5004)).unwrap();
            near.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            let packet = |number: u16| {
                let mut packet = vec![0x80, 18];
                packet.extend_from_slice(&number.to_be_bytes());
                packet.extend_from_slice(&(u32::from(number) * 160).to_be_bytes());
                packet.extend([1, 2, 3, 4]);
                packet.extend((0..20).map(|at| number as u8 ^ at));
                packet
            };
            for number in 0..300 {
                near.send(&packet(number)).unwrap();
                let mut buffer = [0; 100];
                while let Ok(len) = near.recv(&mut buffer) {
                    let number = u16::from_be_bytes([buffer[2], buffer[3]]);
                    assert_eq!(buffer[..len], packet(number)[..]);
                    answered += 1;
                }
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(answered > 400, "{answered} of 600, with 5 % loss each way");
    let (terminal, hub) = network.finish();
    for report in [&terminal, &hub] {
        let count = |name: &str| report[name].as_u64().expect("a counter");
        assert!(count("headers_compressed") > 300, "{report}");
        assert!(count("headers_restored") > 200, "{report}");
        assert_eq!(count("headers_damaged"), 0, "{report}");
    }
}
