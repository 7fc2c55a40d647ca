//! The DNS forwarder of a terminal, its hub and a name server on loopback.

use super::harness::*;
use crate::dns::samples::{answer, query};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Starts a name server for TCP with the address 192.0.2.1 for all names, which counts queries.
fn name_server(asked: Arc<AtomicUsize>) -> SocketAddr {
    serve(move |mut stream: TcpStream| {
        let mut length = [0; 2];
        while stream.read_exact(&mut length).is_ok() {
            let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut query).unwrap();
            asked.fetch_add(1, Ordering::Relaxed);
            let answer = answer(query, 1, 200);
            stream.write_all(&(answer.len() as u16).to_be_bytes()).unwrap();
            stream.write_all(&answer).unwrap();
        }
    })
}

fn pair(more: &str) -> (Pair, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let server = name_server(Arc::clone(&asked));
    let hub = hub_at("127.0.0.1:0", &format!("[dns]\nservers = [\"{server}\"]\n"));
    let top = format!("accept = \"early\"\ndns = {{ listen = [\"127.0.0.1:0\"]{more} }}");
    let terminal = terminal_of(&hub, &top);
    (Pair { hub, terminal }, asked)
}

fn by_udp(pair: &Pair, query: &[u8]) -> Vec<u8> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket.send_to(query, pair.terminal.addresses.dns[0]).unwrap();
    let mut reply = [0; 1500];
    let length = socket.recv(&mut reply).unwrap();
    reply[..length].to_vec()
}

#[test]
fn names_are_looked_up_at_the_hub_and_stored_for_both_transports() {
    let (pair, asked) = pair("");
    // Before the first session there is no hub to ask.
    assert!(soon(|| by_udp(&pair, &query(1, 0)).ends_with(&[192, 0, 2, 1])));
    let before = asked.load(Ordering::Relaxed);
    assert!(by_udp(&pair, &query(1, 2)).ends_with(&[192, 0, 2, 1]));
    let mut stream = open(pair.terminal.addresses.dns[0]);
    for kind in [4, 6] {
        let query = query(1, kind);
        stream.write_all(&[0, query.len() as u8]).unwrap();
        stream.write_all(&query).unwrap();
    }
    for kind in [4, 6] {
        let length = read_exactly(&mut stream, 2);
        let reply = read_exactly(&mut stream, usize::from(length[1]));
        assert_eq!(reply[..2], [1, kind]);
        assert!(reply.ends_with(&[192, 0, 2, 1]));
    }
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(read_all(&mut stream).is_empty(), "it is closed when the client has finished");
    assert_eq!(asked.load(Ordering::Relaxed), before, "from the cache");
    assert!(by_udp(&pair, &query(2, 0)).ends_with(&[192, 0, 2, 1]));
    assert_eq!(asked.load(Ordering::Relaxed), before + 1);
    let hub = pair.hub.stop().connections;
    assert_eq!(hub.connected, before as u64 + 1, "a connection for each look-up");
    assert_eq!((hub.reset_by_peer, hub.reset_by_sockets), (0, 0), "closed in order");
}

#[test]
fn a_placeholder_is_opened_by_name() {
    let (pair, _) = pair(", placeholders = \"198.18.0.0/15\"");
    let mut name = 0;
    let mut reply = Vec::new();
    assert!(soon(|| {
        name += 1;
        reply = by_udp(&pair, &query(name, 0));
        reply.len() > 4 && reply[reply.len() - 4..][..2] == [198, 18]
    }));
    let placeholder = *reply.last_chunk::<4>().unwrap();
    // Nobody has the name at the hub's own resolver, and the terminal does not know the other.
    for address in [placeholder, [198, 18, 255, 1]] {
        let (mut stream, code) = pair.socks((address, 80).into());
        assert_eq!(code, 0, "accepted early");
        assert!(!matches!(stream.read(&mut [0]), Ok(1..)), "and closed");
    }
    let terminal = pair.terminal.stop().connections;
    assert_eq!(terminal.opened, 1, "the other has no name");
    assert!(terminal.refused["name_not_found"] >= 1);
}

#[test]
fn a_hub_without_name_servers_refuses_look_ups() {
    let hub = hub_at("127.0.0.1:0", "");
    let terminal = terminal_of(&hub, "dns = { listen = [\"127.0.0.1:0\"] }");
    let pair = Pair { hub, terminal };
    assert_eq!(by_udp(&pair, &query(1, 0))[3] & 0x0f, 2, "SERVFAIL");
    // When an octet has crossed the gateways, there is a session.
    let mut stream = pair.connect(echo());
    stream.write_all(&[7]).unwrap();
    assert_eq!(read_exactly(&mut stream, 1), [7]);
    assert_eq!(by_udp(&pair, &query(2, 0))[3] & 0x0f, 2);
    assert!(pair.hub.stop().connections.refused.contains_key("policy"));
}
