//! Deferred accept: an intercepted client is accepted only after its server has accepted.

use crate::network::{PATIENCE, Setup, TestNetwork, content, exchange, have, pause, read_all};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};
use testbed::addresses::{CLIENT, SERVER};

const CONFIRM: Setup<'static> = Setup {
    link: "delay 40ms rate 40mbit limit 2bdp",
    rates: "rate_up = \"40mbit\"\nrate_down = \"40mbit\"\nround_trip = \"80ms\"",
    accept: "confirm",
    intercept: "",
    terminal: "",
    top: "",
    hub: "deny = [\"any port 25\"]",
    limits: "connect = \"4s\"",
    drain: "0s",
    terminal_tables: "",
    hub_tables: "",
    second: false,
};

/// Without it, a client over a satellite may time out before the response can arrive.
const FAR: Setup<'static> = Setup { link: "delay 600ms rate 40mbit limit 2bdp", ..CONFIRM };

fn accepted(listener: &TcpListener) -> TcpStream {
    SockRef::from(listener).set_read_timeout(Some(PATIENCE)).unwrap();
    let (stream, _) = listener.accept().expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn no_other_client(listener: &TcpListener) {
    listener.set_nonblocking(true).unwrap();
    let error = listener.accept().map(|(_, client)| client).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}

fn refused(network: &TestNetwork, server: IpAddr, port: u16) -> ErrorKind {
    network.try_connect(server, port, PATIENCE).unwrap_err().kind()
}

#[test]
fn the_client_receives_the_servers_response() {
    let Some(network) = TestNetwork::build("confirm", &CONFIRM) else { return };
    let both = [IpAddr::from(SERVER.0), IpAddr::from(SERVER.1)];
    for server in both {
        assert_eq!(refused(&network, server, 4444), ErrorKind::ConnectionRefused, "a closed port");
    }
    assert_eq!(refused(&network, both[0], 25), ErrorKind::HostUnreachable, "a rule of the hub's");
    // An unused address, which the hub's neighbour discovery reports.
    let nobody = refused(&network, "10.3.0.77".parse().unwrap(), 80);
    assert_eq!(nobody, ErrorKind::HostUnreachable);
    for server in both {
        let listener = network.listen(server, 9000);
        let client = network.connect(server, 9000);
        exchange(client, accepted(&listener), 300_000);
        no_other_client(&listener);
    }
    let (terminal, _) = network.finish();
    let connections = &terminal["connections"];
    assert_eq!(connections["syns_held"], 6, "{terminal}");
    assert_eq!(connections["refused"]["connection_refused"], 2, "{terminal}");
    assert_eq!(connections["refused"]["policy"], 1, "{terminal}");
    assert_eq!(connections["syns_abandoned"], 0, "{terminal}");
}

#[test]
fn programs_report_the_servers_response() {
    if !have(&["curl", "nft", "nginx"]) {
        return;
    }
    let Some(network) = TestNetwork::build("confirm-words", &CONFIRM) else { return };
    let server = SERVER.0;
    let run = |args: &[&str]| {
        let output = network.run_on_client("curl", args);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let url = format!("http://{server}:4444/");
    let (code, words) = run(&["-sSv", &url]);
    assert!(code == Some(7) && words.contains("Connection refused"), "{code:?} {words}");
    // A firewall that drops packets: the client waits until its own timeout.
    let rules = "add table inet t; add chain inet t i { type filter hook input priority 0; }; \
                 add rule inet t i tcp dport 81 drop";
    let mut nft = Command::new("nft");
    nft.arg(rules);
    let mut nft = network.net.server.start(nft).expect("nft starts");
    assert!(nft.wait().expect("a child to wait for").success());
    let (code, words) = run(&["-sSv", "--connect-timeout", "4", &format!("http://{server}:81/")]);
    assert!(code == Some(28) && !words.contains("Connected"), "{code:?} {words}");
    // Valid connections work.
    let page = network.file("page.bin", 500_000);
    let dir = network.dir.display();
    std::fs::write(
        network.dir.join("nginx.conf"),
        format!(
            "daemon off; pid {dir}/nginx.pid; error_log /dev/null;\nevents {{}}\n\
             http {{ access_log off; server {{ listen 8080; root {dir}; }} }}\n"
        ),
    )
    .unwrap();
    let conf = network.dir.join("nginx.conf").display().to_string();
    let user = ["-g", "user root;", "-c", &conf];
    let _nginx = network.start_on_server("nginx", &user, 8080);
    let (code, words) = run(&["-sS", "-o", "got.bin", &format!("http://{server}:8080/page.bin")]);
    assert_eq!(code, Some(0), "{words}");
    assert!(std::fs::read(network.dir.join("got.bin")).unwrap() == page);
}

#[test]
fn data_of_a_server_that_sends_first_is_complete() {
    let Some(network) = TestNetwork::build("confirm-banner", &CONFIRM) else { return };
    let listener = network.listen(SERVER.0, 2222);
    let banner = content(3, 50_000);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for last in [false, true] {
                let mut server = accepted(&listener);
                server.write_all(b"SSH-2.0-here\r\n").unwrap();
                // A server that sends and closes before its client is connected.
                if last {
                    server.write_all(&banner).unwrap();
                } else {
                    server.read_exact(&mut [0]).unwrap();
                }
            }
        });
        let mut client = network.connect(SERVER.0, 2222);
        let mut line = [0; 14];
        client.read_exact(&mut line).unwrap();
        assert_eq!(&line, b"SSH-2.0-here\r\n");
        client.write_all(b"x").unwrap();
        let mut client = network.connect(SERVER.0, 2222);
        let (got, end) = read_all(&mut client);
        end.expect("a clean end");
        assert!(got[..14] == line && got[14..] == banner, "{} bytes", got.len());
    });
}

#[test]
fn two_hundred_parallel_clients_are_each_accepted_once() {
    let Some(network) = TestNetwork::build("confirm-crowd", &CONFIRM) else { return };
    let listener = network.listen(SERVER.0, 9000);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut served: Vec<_> = (0..200).map(|_| accepted(&listener)).collect();
            for server in &mut served {
                let mut number = [0; 4];
                server.read_exact(&mut number).unwrap();
                server.write_all(&number).unwrap();
            }
            no_other_client(&listener);
        });
        let clients: Vec<_> = (0..200u32)
            .map(|number| {
                let network = &network;
                scope.spawn(move || {
                    let mut client = network.connect(SERVER.0, 9000);
                    client.write_all(&number.to_be_bytes()).unwrap();
                    let mut echo = [0; 4];
                    client.read_exact(&mut echo).unwrap();
                    assert_eq!(echo, number.to_be_bytes());
                })
            })
            .collect();
        for client in clients {
            client.join().unwrap();
        }
    });
    let (terminal, hub) = network.finish();
    assert_eq!(terminal["connections"]["syns_held"], 200, "{terminal}");
    assert!(hub["connections"]["connected"].as_u64() >= Some(200), "{hub}");
}

#[test]
fn a_retransmitted_syn_opens_no_second_stream() {
    let Some(network) = TestNetwork::build("confirm-again", &FAR) else { return };
    let listener = network.listen(SERVER.0, 9000);
    #[expect(clippy::disallowed_methods, reason = "a lower bound on what a round trip takes")]
    let begun = Instant::now();
    // Linux retransmits its SYN after one second; the response arrives after 1.2 s.
    let client = network.connect(SERVER.0, 9000);
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(1200), "{took:?}: before the server can have answered");
    eprintln!("confirmed after {took:?}, where a round trip is 1.2 s: what confirming costs");
    exchange(client, accepted(&listener), 10_000);
    no_other_client(&listener);
    let (terminal, _) = network.finish();
    assert_eq!(terminal["connections"]["syns_held"], 1, "{terminal}");
}

#[test]
fn a_client_that_gives_up_leaves_no_state_and_can_retry() {
    let Some(network) = TestNetwork::build("confirm-gone", &FAR) else { return };
    let listener = network.listen(SERVER.0, 9000);
    let server = SocketAddr::new(SERVER.0.into(), 9000);
    let from = |port: u16| {
        let client = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        client.set_reuse_address(true).unwrap();
        client.bind(&SocketAddr::new(CLIENT.0.into(), port).into()).unwrap();
        client
    };
    // It waits 0.1 s and gives up.
    let gone = network.net.client.run(|| from(5000).connect_timeout(&server.into(), SHORT));
    assert_eq!(gone.unwrap_err().kind(), ErrorKind::TimedOut);
    // Another one reuses its port while the server is still being contacted.
    let client = network.net.client.run(|| {
        assert!(from(5001).connect_timeout(&server.into(), SHORT).is_err());
        let again = from(5001);
        again.connect_timeout(&server.into(), PATIENCE).map(|()| TcpStream::from(again))
    });
    let mut client = client.expect("the second attempt");
    let both = [accepted(&listener), accepted(&listener)];
    // The client identifies its connection, because connections are not ordered.
    client.write_all(b"?").unwrap();
    let (mut served, mut gone) = first_with_data(both);
    served.read_exact(&mut [0]).unwrap();
    exchange(client, served, 10_000);
    let error = gone.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    no_other_client(&listener);
    let (terminal, _) = network.finish();
    assert_eq!(terminal["connections"]["syns_held"], 2, "{terminal}");
    assert_eq!(terminal["connections"]["syns_abandoned"], 1, "{terminal}");
}

const SHORT: Duration = Duration::from_millis(100);

/// Returns the connection of the two on which data arrives, and the other.
fn first_with_data([one, other]: [TcpStream; 2]) -> (TcpStream, TcpStream) {
    for stream in [&one, &other] {
        stream.set_read_timeout(Some(SHORT)).unwrap();
    }
    let hears = |stream: &TcpStream| stream.peek(&mut [0]).is_ok_and(|count| count == 1);
    let tries = (0..PATIENCE.as_millis() / SHORT.as_millis()).find_map(|_| {
        let first = hears(&one);
        (first || hears(&other)).then_some(first)
    });
    let first = tries.expect("something from the client");
    for stream in [&one, &other] {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    if first { (one, other) } else { (other, one) }
}

/// Returns a SYN to the server's port 4444 from another address of the LAN.
fn forged_syn(number: u16) -> Vec<u8> {
    let from = [10, 1, 0, 10 + (number % 200) as u8];
    let mut tcp = vec![0; 20];
    tcp[..2].copy_from_slice(&(1024 + number).to_be_bytes());
    tcp[2..4].copy_from_slice(&4444u16.to_be_bytes());
    tcp[4..6].copy_from_slice(&number.to_be_bytes());
    (tcp[12], tcp[13], tcp[14]) = (5 << 4, 2, 0xff);
    let summed = [&from[..], &SERVER.0.octets(), &[0, 6, 0, 20], &tcp].concat();
    let words = summed.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
    // The kernel fills in identification and checksum if they are zero.
    let head = [0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0];
    [&head[..], &from, &SERVER.0.octets(), &tcp].concat()
}

#[test]
fn a_flood_of_syns_is_bounded_by_the_table() {
    let terminal = "[intercept.confirm]\nmax_pending = 50\nrate = 200\n";
    let setup = Setup { terminal, ..CONFIRM };
    let Some(network) = TestNetwork::build("confirm-flood", &setup) else { return };
    let raw = Some(Protocol::from(255));
    let raw = network.net.client.run(|| Socket::new(Domain::IPV4, Type::RAW, raw)).unwrap();
    let server = SocketAddr::new(SERVER.0.into(), 0).into();
    let sent = (0..5_000).filter(|&number| raw.send_to(&forged_syn(number), &server).is_ok());
    assert!(sent.count() > 1_000);
    // Later clients are refused while the table is full, and served soon afterwards.
    let listener = network.listen(SERVER.0, 9000);
    let tries = (0..200).find_map(|_| {
        let tried = network.try_connect(SERVER.0, 9000, PATIENCE);
        if tried.is_err() {
            pause(SHORT);
        }
        tried.ok()
    });
    exchange(tries.expect("a place at last"), accepted(&listener), 10_000);
    let (terminal, hub) = network.finish();
    let count = |report: &serde_json::Value, key: &str| report["connections"][key].as_u64();
    assert!(count(&terminal, "peak_connections") <= Some(55), "{terminal}");
    assert!(terminal["connections"]["limited"]["confirming"].as_u64() >= Some(500), "{terminal}");
    assert_eq!(count(&terminal, "opened"), count(&hub, "opened"), "{terminal} {hub}");
}

#[test]
fn without_a_hub_no_client_is_accepted() {
    let Some(mut network) = TestNetwork::build("confirm-alone", &CONFIRM) else { return };
    let listener = network.listen(SERVER.0, 9000);
    network.kill_hub();
    let error = network.try_connect(SERVER.0, 9000, Duration::from_millis(1500)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    no_other_client(&listener);
    // The terminal waits fourteen seconds for the hub, and then refuses waiting clients.
    let error = network.try_connect(SERVER.0, 9000, PATIENCE).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NetworkUnreachable);
    network.replace_hub();
    let listener = network.listen(SERVER.0, 9001);
    let client = network.connect(SERVER.0, 9001);
    exchange(client, accepted(&listener), 10_000);
}

#[test]
fn ports_can_have_different_accept_modes() {
    let rules = "[[accept_rule]]\nports = [22, 4444]\naccept = \"confirm\"\n\
                 [intercept.confirm]\nmax_pending = 4\nwhen_full = \"early\"\n";
    let setup = Setup { accept: "early", terminal: rules, ..CONFIRM };
    let Some(network) = TestNetwork::build("confirm-rules", &setup) else { return };
    assert_eq!(refused(&network, SERVER.0.into(), 4444), ErrorKind::ConnectionRefused);
    let mut early = network.connect(SERVER.0, 4445);
    assert_eq!(early.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    // Four wait for a server that does not respond; the table has no slot for the fifth.
    let full = network.net.server.run(|| {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        listener.bind(&SocketAddr::new(SERVER.0.into(), 22).into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let mut waiting = Vec::new();
        for _ in 0..4 {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.set_nonblocking(true).unwrap();
            let _ = socket.connect(&address);
            waiting.push(socket);
        }
        (listener, waiting)
    });
    std::thread::scope(|scope| {
        let network = &network;
        let wait = move || network.try_connect(SERVER.0, 22, Duration::from_millis(900)).is_err();
        // Sequentially, because one client may open half of the new connections per second.
        let four = [(); 4].map(|()| {
            let client = scope.spawn(wait);
            pause(Duration::from_millis(100));
            client
        });
        let fifth = network.try_connect(SERVER.0, 22, SHORT * 5);
        assert!(fifth.is_ok(), "answered early: {fifth:?}");
        for client in four {
            assert!(client.join().unwrap());
        }
    });
    drop(full);
    let (terminal, _) = network.finish();
    assert!(terminal["connections"]["limited"]["confirming"].as_u64() >= Some(1), "{terminal}");
}
