//! Hubs that terminals find by name.

use super::harness::*;
use crate::driver::resolving::NameServer;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Starts a terminal whose hub is `peer`, which is looked up at `names`; `link` has lines of
/// `[link]`.
fn terminal(peer: &str, names: SocketAddr, link: &str) -> Running {
    Running::start(&format!(
        "role = \"terminal\"\n[link]\npeer = \"{peer}\"\nround_trip = \"10ms\"\n{link}\n\
         [resolver]\nnameservers = \"{names}\"\ntimeout = \"1s\"\nattempts = 1\n\
         [control]\nsocket = \"{}\"\n[socks5]\nlisten = \"127.0.0.1:0\"\n",
        socket(names).display()
    ))
}

/// Returns the control socket of the terminal whose name server is `names`.
fn socket(names: SocketAddr) -> std::path::PathBuf {
    let name = format!("bentpipe-{}-hub-{}.sock", std::process::id(), names.port());
    std::env::temp_dir().join(name)
}

/// Returns whether a new connection echoes a byte, within several attempts at addresses.
fn carries(terminal: &Running, server: SocketAddr) -> bool {
    (0..30).any(|_| {
        let (mut stream, _) = socks_from(open(terminal.addresses.socks5[0]), server);
        stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        stream.write_all(b"?").is_ok() && stream.read_exact(&mut [0]).is_ok()
    })
}

fn status(names: SocketAddr) -> String {
    let mut stream = UnixStream::connect(socket(names)).unwrap();
    stream.write_all(b"{\"ask\":\"status\"}\n").unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}

/// The name's first address is 127.0.0.9, where there is no hub at first, and later the only one.
#[test]
fn the_next_address_is_tried_and_a_hub_that_has_moved_is_found() {
    let names = NameServer::start();
    let server = echo();
    let hub = hub_at("127.0.0.1:0", "");
    let port = hub.addresses.link.unwrap().port();
    let terminal =
        terminal(&format!("two.loop.test:{port}"), names.address(), "listen = \"127.0.0.1:0\"");
    assert!(carries(&terminal, server), "by the second address");
    let asked = names.queries_for("two.loop.test.");
    hub.stop();
    let _moved = hub_at(&format!("127.0.0.9:{port}"), "");
    assert!(carries(&terminal, server), "at the other address");
    assert!(status(names.address()).contains(&format!("127.0.0.9:{port}")));
    assert!(asked >= 1);
}

/// Without `listen` the socket is for both families.
#[test]
fn a_name_that_cannot_be_looked_up_at_first_is_waited_for() {
    let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let hub = hub_at("127.0.0.1:0", "");
    let port = hub.addresses.link.unwrap().port();
    let terminal = terminal(&format!("one.loop.test:{port}"), address, "");
    let waits = format!("name one.loop.test:{port} (link.peer)");
    assert!(status(address).contains(&waits), "{}", status(address));
    let _names = NameServer::start_at(address);
    assert!(carries(&terminal, echo()));
    assert!(!status(address).contains(&waits));
}
