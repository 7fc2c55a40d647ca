//! Killed gateways, and a link with all impairments.

use crate::network::{PATIENCE, Setup, TestNetwork, exchange, read_all};
use std::io::{ErrorKind, Read, Write};
use testbed::addresses::SERVER;

#[test]
fn data_is_complete_on_a_link_with_loss_duplication_and_reordering() {
    let link = "delay 40ms rate 40mbit limit 2bdp loss 2% duplicate 1% reorder 2%";
    let Some(network) = TestNetwork::build("lossy", &Setup { link, ..Setup::default() }) else {
        return;
    };
    let listener = network.listen(SERVER.0, 9000);
    let client = network.connect(SERVER.0, 9000);
    let (server, _) = listener.accept().unwrap();
    exchange(client, server, 6_000_000);
    let (_, hub) = network.finish();
    assert!(hub["retransmitted"].as_u64() > Some(0), "{hub}");
}

#[test]
fn clients_bypass_a_killed_terminal_gateway() {
    let Some(mut network) = TestNetwork::build("killed", &Setup::default()) else { return };
    let listener = network.listen(SERVER.0, 9000);
    let mut old = network.connect(SERVER.0, 9000);
    let (mut old_server, seen) = listener.accept().unwrap();
    assert_eq!(seen.ip(), testbed::addresses::HUB_WAN.0, "by way of the hub");
    network.kill_terminal();
    // Split connections are reset.
    old.set_read_timeout(Some(PATIENCE)).unwrap();
    let (got, _) = read_all(&mut old);
    assert!(got.is_empty());
    let mut new = network.connect(SERVER.0, 9000);
    let (mut new_server, seen) = listener.accept().unwrap();
    assert_eq!(seen, new.local_addr().unwrap(), "straight from the client");
    new.write_all(b"hello").unwrap();
    let mut heard = [0; 5];
    new_server.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"hello");
    // The hub keeps the session's connections until its timeout.
    old_server.set_nonblocking(true).unwrap();
    let waiting = old_server.read(&mut heard).map_err(|error| error.kind());
    assert!(matches!(waiting, Err(ErrorKind::WouldBlock | ErrorKind::ConnectionReset)));
}

#[test]
fn a_replaced_hub_is_found() {
    let Some(mut network) = TestNetwork::build("replaced", &Setup::default()) else { return };
    let listener = network.listen(SERVER.0, 9000);
    let mut old = network.connect(SERVER.0, 9000);
    // Kept open: otherwise the server's FIN may arrive before the hub is killed.
    let _served = listener.accept().unwrap();
    network.replace_hub();
    let (_, end) = read_all(&mut old);
    assert_eq!(end.expect_err("not a clean end").kind(), ErrorKind::ConnectionReset);
    let mut new = network.connect(SERVER.0, 9000);
    let (mut server, _) = listener.accept().unwrap();
    server.write_all(b"hello").unwrap();
    let mut heard = [0; 5];
    new.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"hello");
}
