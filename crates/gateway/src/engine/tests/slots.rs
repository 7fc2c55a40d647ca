//! A client or terminal with the maximum number of connections leaves some to others, at both
//! gateways.

use super::harness::*;
use super::shares::open_from;
use crate::Report;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Requests a connection by SOCKS5 from `client`; `None` if it is refused.
fn granted(client: &str, proxy: SocketAddr, server: SocketAddr) -> Option<TcpStream> {
    let mut stream = open_from(client, proxy);
    let mut request = vec![5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1];
    request.extend(server.port().to_be_bytes());
    stream.write_all(&request).ok()?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).ok()?;
    (answer[3] == 0).then_some(stream)
}

fn echoes(stream: &mut TcpStream) -> bool {
    stream.write_all(b"?").and_then(|()| stream.read_exact(&mut [0])).is_ok()
}

/// Returns whether it was reset; a socket reports this once, and an end after that.
fn is_reset(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    match stream.read(&mut [0]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

/// Signals the end, also if a test fails while others wait.
struct EndOf<'a>(&'a AtomicBool);

impl Drop for EndOf<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Two clients hold all connections of `proxy` that they can get and request more continuously,
/// while a third opens a few connections and keeps them.
fn crowd_out(proxy: SocketAddr, server: SocketAddr) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let end = EndOf(&over);
        for host in ["127.0.0.2", "127.0.0.3"] {
            let over = &over;
            scope.spawn(move || {
                let mut held: Vec<TcpStream> = Vec::new();
                while !over.load(Ordering::Relaxed) {
                    held.extend(granted(host, proxy, server));
                    held.retain_mut(|stream| !is_reset(stream));
                }
            });
        }
        // Until they hold the maximum.
        pause_ms(1_500);
        let mut honest = Vec::new();
        for number in 0..4 {
            let mut stream = granted("127.0.0.4", proxy, server)
                .unwrap_or_else(|| panic!("number {number} is refused"));
            assert!(echoes(&mut stream), "number {number} is carried");
            honest.push(stream);
            pause_ms(200);
        }
        pause_ms(500);
        assert!(honest.iter_mut().all(echoes), "and all stay");
        drop(end);
    });
}

#[test]
fn two_clients_that_take_all_they_can_leave_a_third_its_connections() {
    let limits = "accept = \"confirm\"\n[limits]\nconnections = 20\n";
    let pair = Pair::with(limits, "");
    crowd_out(pair.terminal.addresses.socks5[0], echo());
    let report: Report = pair.terminal.stop();
    assert!(report.connections.limited["connections"] >= 10, "{:?}", report.connections);
    assert!(report.connections.peak_connections <= 20);
}

#[test]
fn two_clients_of_a_terminal_leave_a_third_its_connections_at_the_hub() {
    let pair = Pair::with("accept = \"confirm\"", "[limits]\nconnections = 20\n");
    crowd_out(pair.terminal.addresses.socks5[0], echo());
    let report: Report = pair.hub.stop();
    assert!(report.connections.limited["connections"] >= 10, "{:?}", report.connections);
    assert!(report.connections.peak_connections <= 20);
}

#[test]
fn a_full_table_reclaims_slots_for_smaller_owners() {
    // So few connections that no quota leaves one free.
    let pair = Pair::with("accept = \"confirm\"\n[limits]\nconnections = 4\n", "");
    let (proxy, server) = (pair.terminal.addresses.socks5[0], echo());
    let mut many: Vec<_> = (0..4).map(|_| granted("127.0.0.2", proxy, server).unwrap()).collect();
    for stream in &mut many[1..] {
        pause_ms(150);
        assert!(echoes(stream), "all but the first are busy");
    }
    assert!(granted("127.0.0.2", proxy, server).is_none(), "it has its share");
    let mut two = [(); 2].map(|()| granted("127.0.0.3", proxy, server).expect("a new client"));
    assert!(granted("127.0.0.3", proxy, server).is_none(), "now they have the same");
    assert!(two.iter_mut().chain(&mut many[2..]).all(echoes));
    assert!(soon(|| many[..2].iter_mut().all(is_reset)), "the idlest have made way");
    let report = pair.terminal.stop().connections;
    assert_eq!((report.reclaimed, report.limited["connections"]), (2, 2));
}

#[test]
fn slots_are_reclaimed_from_the_largest_terminal() {
    let hub = hub_at("127.0.0.1:0", "[limits]\nconnections = 4\n");
    let terminal = |name| terminal_of(&hub, &format!("name = \"{name}\"\naccept = \"confirm\"\n"));
    let (first, second) = (terminal("a"), terminal("b"));
    let server = echo();
    let connect = |of: &Running, host: &str| granted(host, of.addresses.socks5[0], server);
    // From four addresses, each with one connection.
    let hosts = ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"];
    let mut many: Vec<_> = hosts.iter().map(|host| connect(&first, host).unwrap()).collect();
    assert!(connect(&first, "127.0.0.6").is_none(), "its terminal has all");
    let mut two = [(); 2].map(|()| connect(&second, "127.0.0.7").expect("of another terminal"));
    assert!(connect(&second, "127.0.0.7").is_none(), "now they have the same");
    let mut third = connect(&second, "127.0.0.8").expect("another client of that terminal");
    assert!(echoes(&mut third));
    let count = |of: &mut [TcpStream]| of.iter_mut().map(is_reset).filter(|reset| *reset).count();
    assert!(soon(|| count(&mut two) == 1), "the one that is idle for longest");
    assert!(soon(|| count(&mut many) == 2), "and two of the other terminal's");
    assert_eq!(hub.stop().connections.reclaimed, 3);
}

#[test]
fn connections_that_move_nothing_end_where_that_is_wanted() {
    let pair = Pair::with("accept = \"confirm\"\n[limits]\nidle = \"4s\"\n", "");
    let server = echo();
    let (mut idle, mut busy) = (pair.connect(server), pair.connect(server));
    let mut rounds = 0;
    while !is_reset(&mut idle) {
        assert!(echoes(&mut busy), "what moves stays");
        pause_ms(50);
        rounds += 1;
        assert!(rounds < 1_000, "the other has moved nothing");
    }
    assert!(echoes(&mut busy));
    assert_eq!(pair.terminal.stop().connections.idle, 1);
}

#[test]
fn the_same_at_a_hub() {
    let pair = Pair::with("accept = \"confirm\"", "[limits]\nidle = \"1s\"\n");
    let mut idle = pair.connect(echo());
    assert!(idle.read(&mut [0]).is_err(), "reset");
    assert_eq!(pair.hub.stop().connections.idle, 1);
}
