//! Gateways that are stopped while they work, as an administrator would.

use crate::bed::{Bed, PATIENCE, Setup, content, pause, read_all};
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;
use testbed::addresses::{HUB_WAN, SERVER};

#[test]
fn a_terminal_that_stops_finishes_downloads_and_lets_new_connections_pass() {
    let setup = Setup { drain: "60s", ..Setup::default() };
    let Some(bed) = Bed::build("drain", &setup) else { return };
    let listener = bed.listen(SERVER.0, 9000);
    let mut old = bed.connect(SERVER.0, 9000);
    let (mut old_server, seen) = listener.accept().unwrap();
    assert_eq!(seen.ip(), HUB_WAN.0, "by way of the hub");
    let sent = content(5, 4_000_000);
    let (first, second) = sent.split_at(1_000_000);
    old_server.write_all(first).unwrap();
    bed.drain_terminal();
    // New connections go straight to the server as soon as the rules are exchanged.
    let straight = (0..500).any(|_| {
        let new: TcpStream = bed.connect(SERVER.0, 9000);
        let (_, seen) = listener.accept().unwrap();
        let straight = seen == new.local_addr().unwrap();
        if !straight {
            pause(Duration::from_millis(20));
        }
        straight
    });
    assert!(straight, "new connections are still intercepted");
    old_server.write_all(second).unwrap();
    drop(old_server);
    old.set_read_timeout(Some(PATIENCE)).unwrap();
    let (got, end) = read_all(&mut old);
    end.expect("a clean end");
    assert!(got == sent, "{} bytes", got.len());
    drop(old);
    let terminal = bed.ended_terminal();
    assert!(terminal["seconds"].as_f64() < Some(50.0), "it did not wait for its limit: {terminal}");
    assert_eq!(terminal["connections"]["lost_with_peer"], 0);
}
