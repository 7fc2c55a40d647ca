//! Gateways with keys.

use super::harness::{Pair, Running, echo, open, pattern, pause_ms, read_exactly, serve};
use crate::{PrivateKey, SystemEntropy};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

pub(super) fn key() -> PrivateKey {
    PrivateKey::generate(&mut SystemEntropy)
}

const RATES: &str = "rate_up = \"200mbit\"\nrate_down = \"200mbit\"\nround_trip = \"10ms\"\n";

/// Starts a hub that knows `boat` by its key.
fn hub(listen: &str, own: &PrivateKey, boat: &PrivateKey) -> Running {
    Running::start(&format!(
        "role = \"hub\"\nprivate_key = \"{}\"\n[link]\nlisten = \"{listen}\"\n{RATES}\
         [[terminal]]\nname = \"boat\"\npublic_key = \"{}\"\n",
        own.to_text(),
        boat.public()
    ))
}

/// Starts a terminal that expects the hub at `peer` to have the key `hub`.
pub(super) fn terminal(peer: SocketAddr, own: &PrivateKey, hub: &PrivateKey) -> Running {
    Running::start(&format!(
        "role = \"terminal\"\nname = \"impostor\"\nprivate_key = \"{}\"\n[link]\n\
         peer = \"{peer}\"\nlisten = \"127.0.0.1:0\"\npeer_public_key = \"{}\"\n{RATES}\
         [socks5]\nlisten = \"127.0.0.1:0\"\n",
        own.to_text(),
        hub.public()
    ))
}

fn address(hub: &Running) -> SocketAddr {
    hub.addresses.link.unwrap()
}

#[test]
fn a_terminal_is_known_by_its_key_and_called_by_the_hubs_name_for_it() {
    let (shore, boat) = (key(), key());
    let hub = hub("127.0.0.1:0", &shore, &boat);
    let terminal = terminal(address(&hub), &boat, &shore);
    let pair = Pair { hub, terminal };
    let mut stream = pair.connect(echo());
    let sent = pattern(300_000, 1);
    stream.write_all(&sent).unwrap();
    assert!(read_exactly(&mut stream, sent.len()) == sent);
    drop(stream);
    let report = pair.hub.stop();
    assert_eq!(report.peers[0].peer, "boat");
    assert_eq!(report.association.dropped["stranger"], 0);
}

#[test]
fn wrong_keys_lead_nowhere_and_are_counted() {
    let (shore, boat, other) = (key(), key(), key());
    // A terminal that the hub does not know, and one that expects another hub.
    let hub = hub("127.0.0.1:0", &shore, &boat);
    let stranger = terminal(address(&hub), &other, &shore);
    let misled = terminal(address(&hub), &boat, &other);
    pause_ms(2_500);
    for terminal in [stranger, misled] {
        let report = terminal.stop();
        assert_eq!((report.traffic.sessions, report.peers.len()), (0, 0));
        assert!(report.association.hellos >= 2);
    }
    let report = hub.stop();
    assert_eq!((report.traffic.sessions, report.association.hellos), (0, 0));
    assert!(report.association.dropped["stranger"] >= 2);
    assert!(report.association.dropped["bad_tag"] >= 2);
}

#[test]
fn a_hub_that_restarts_is_found_again() {
    let (shore, boat) = (key(), key());
    let hub_then = hub("127.0.0.1:0", &shore, &boat);
    let listen = address(&hub_then);
    let terminal = terminal(listen, &boat, &shore);
    let mut pair = Pair { hub: hub_then, terminal };
    let server = echo();
    let mut old = pair.connect(server);
    old.write_all(b"x").unwrap();
    read_exactly(&mut old, 1);
    pair.hub.halt();
    assert_eq!(old.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    pair.hub = hub(&listen.to_string(), &shore, &boat);
    let mut stream = pair.connect(server);
    stream.write_all(b"again").unwrap();
    assert_eq!(read_exactly(&mut stream, 5), b"again");
}

#[test]
fn a_terminal_that_is_struck_off_the_list_is_out_and_others_go_on() {
    let (shore, boat, buoy) = (key(), key(), key());
    let hub = hub("127.0.0.1:0", &shore, &boat);
    let server = echo();
    let entry = format!("[[terminal]]\nname = \"buoy\"\npublic_key = \"{}\"\n", buoy.public());
    hub.reload(|text| format!("{text}{entry}"));
    let [boat, buoy] = [&boat, &buoy].map(|own| terminal(address(&hub), own, &shore));
    let proxy = |terminal: &Running| terminal.addresses.socks5[0];
    let mut connections = [&boat, &buoy].map(|terminal| {
        let mut stream = connect_by(proxy(terminal), server);
        stream.write_all(b"x").unwrap();
        assert_eq!(read_exactly(&mut stream, 1), b"x");
        stream
    });
    hub.reload(|text| text.replace("name = \"boat\"", "name = \"barge\"") + &entry);
    // The boat's key has another name, so its session restarts; the buoy's continues.
    assert_eq!(connections[0].read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    connections[1].write_all(b"still here").unwrap();
    assert_eq!(read_exactly(&mut connections[1], 10), b"still here");
    // The hub's own key changes only at a restart, and the list immediately.
    let own = shore.to_text();
    hub.reload(|text| {
        let text = text.replace("name = \"boat\"", "name = \"barge\"") + &entry;
        text.replace(&own, &key().to_text())
    });
    let mut again = connect_by(proxy(&boat), server);
    again.write_all(b"as before").unwrap();
    assert_eq!(read_exactly(&mut again, 9), b"as before");
    connections[1].write_all(b"still here").unwrap();
    assert_eq!(read_exactly(&mut connections[1], 10), b"still here");
}

/// Connects to `server` by the SOCKS5 proxy at `proxy`.
pub(super) fn connect_by(proxy: SocketAddr, server: SocketAddr) -> TcpStream {
    let SocketAddr::V4(server) = server else { panic!("a server on IPv4") };
    let mut stream = open(proxy);
    stream.write_all(&[5, 1, 0, 5, 1, 0, 1]).unwrap();
    stream.write_all(&server.ip().octets()).unwrap();
    stream.write_all(&server.port().to_be_bytes()).unwrap();
    assert_eq!(read_exactly(&mut stream, 4), [5, 0, 5, 0]);
    read_exactly(&mut stream, 8);
    stream
}

/// A NAT between terminal and hub, which changes the terminal's address on request.
pub(super) struct Nat {
    pub(super) address: SocketAddr,
    pub(super) outside: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Nat {
    pub(super) fn before(hub: SocketAddr) -> Self {
        let bind = || {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            Arc::new(socket)
        };
        let (inside, outsides) = (bind(), [bind(), bind()]);
        let (outside, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let client = Arc::new(std::sync::Mutex::new(None));
        let nat = Self { address: inside.local_addr().unwrap(), outside, stop };
        for (which, socket) in outsides.iter().enumerate() {
            let (socket, inside, client) = (socket.clone(), inside.clone(), client.clone());
            let (outside, stop) = (nat.outside.clone(), nat.stop.clone());
            std::thread::spawn(move || {
                let mut buffer = [0; 2048];
                while !stop.load(Ordering::Relaxed) {
                    let Ok(len) = socket.recv(&mut buffer) else { continue };
                    // Packets to the former address are lost.
                    let client = *client.lock().unwrap();
                    if let Some(client) =
                        client.filter(|_| outside.load(Ordering::Relaxed) == which)
                    {
                        let _ = inside.send_to(&buffer[..len], client);
                    }
                }
            });
        }
        let (outside, stop) = (nat.outside.clone(), nat.stop.clone());
        std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            while !stop.load(Ordering::Relaxed) {
                let Ok((len, from)) = inside.recv_from(&mut buffer) else { continue };
                *client.lock().unwrap() = Some(from);
                let _ = outsides[outside.load(Ordering::Relaxed)].send_to(&buffer[..len], hub);
            }
        });
        nat
    }
}

impl Drop for Nat {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_terminal_whose_address_changes_in_mid_transfer_loses_nothing() {
    let (shore, boat) = (key(), key());
    let hub = hub("127.0.0.1:0", &shore, &boat);
    let nat = Nat::before(address(&hub));
    let terminal = terminal(nat.address, &boat, &shore);
    let pair = Pair { hub, terminal };
    let content = pattern(6_000_000, 2);
    let server = {
        let content = content.clone();
        serve(move |mut stream| {
            let _ = stream.write_all(&content);
        })
    };
    let (mut stream, code) = pair.socks(server);
    assert_eq!(code, 0);
    let mut received = vec![0; content.len()];
    let (first, rest) = received.split_at_mut(500_000);
    stream.read_exact(first).unwrap();
    nat.outside.store(1, Ordering::Relaxed);
    stream.read_exact(rest).unwrap();
    assert!(received == content);
    let report = pair.hub.stop();
    assert_eq!(report.traffic.sessions, 1, "it is the same session");
}
