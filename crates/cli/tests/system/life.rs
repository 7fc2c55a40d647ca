//! Gateways that are stopped or reconfigured under load.

use crate::network::{PATIENCE, Setup, TestNetwork, content, pause, read_all};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;
use testbed::addresses::{HUB_WAN, SERVER};

#[test]
fn a_stopping_terminal_finishes_downloads_and_bypasses_new_connections() {
    let setup = Setup { drain: "60s", ..Setup::default() };
    let Some(network) = TestNetwork::build("drain", &setup) else { return };
    let listener = network.listen(SERVER.0, 9000);
    let mut old = network.connect(SERVER.0, 9000);
    let (mut old_server, seen) = listener.accept().unwrap();
    assert_eq!(seen.ip(), HUB_WAN.0, "by way of the hub");
    let sent = content(5, 4_000_000);
    let (first, second) = sent.split_at(1_000_000);
    old_server.write_all(first).unwrap();
    network.drain_terminal();
    // New connections bypass the gateway as soon as the rules are exchanged.
    assert!(soon(|| goes_straight(&network, &listener)), "new connections are still intercepted");
    // More than all buffers hold, so the data must be read meanwhile.
    let reader = std::thread::spawn(move || {
        old.set_read_timeout(Some(PATIENCE)).unwrap();
        read_all(&mut old)
    });
    old_server.write_all(second).unwrap();
    drop(old_server);
    let (got, end) = reader.join().unwrap();
    end.expect("a clean end");
    assert!(got == sent, "{} bytes", got.len());
    let terminal = network.ended_terminal();
    assert!(terminal["seconds"].as_f64() < Some(50.0), "it did not wait for its limit: {terminal}");
    assert_eq!(terminal["connections"]["lost_with_peer"], 0);
}

#[test]
fn a_download_survives_a_change_of_the_interception_rules() {
    let Some(mut network) = TestNetwork::build("reload", &Setup::default()) else { return };
    let (listener, other) = (network.listen(SERVER.0, 9000), network.listen(SERVER.0, 9001));
    let mut old = network.connect(SERVER.0, 9000);
    let (mut old_server, seen) = listener.accept().unwrap();
    assert_eq!(seen.ip(), HUB_WAN.0, "by way of the hub");
    let sent = content(6, 6_000_000);
    let mut thirds = sent.chunks(2_000_000);
    let mut send = || old_server.write_all(thirds.next().unwrap()).unwrap();
    let reader = std::thread::spawn(move || {
        old.set_read_timeout(Some(PATIENCE)).unwrap();
        read_all(&mut old)
    });
    send();
    assert!(!goes_straight(&network, &other));
    // One port is excluded now, and the other is not.
    let interfaces = "interfaces = [\"lan\"]";
    let excluded = format!("{interfaces}\nexclude_ports = [9001]\nmark = 77");
    network.reload_terminal(|text| text.replace(interfaces, &excluded));
    assert!(soon(|| goes_straight(&network, &other)), "the new rule is not in force");
    assert!(!goes_straight(&network, &listener));
    send();
    // No new connection is intercepted; the open one continues.
    network.reload_terminal(|text| text.replace(&format!("[intercept]\n{interfaces}\n"), ""));
    assert!(soon(|| goes_straight(&network, &listener)), "interception is still in force");
    send();
    drop(old_server);
    let (got, end) = reader.join().unwrap();
    end.expect("a clean end");
    assert!(got == sent, "{} bytes", got.len());
}

/// Returns true if a new connection of the client reaches the server without the gateways.
fn goes_straight(network: &TestNetwork, listener: &TcpListener) -> bool {
    let port = listener.local_addr().unwrap().port();
    let new: TcpStream = network.connect(SERVER.0, port);
    let (_, seen) = listener.accept().unwrap();
    seen == new.local_addr().unwrap()
}

/// Waits until `it` is true; returns false at the time limit.
fn soon(mut it: impl FnMut() -> bool) -> bool {
    (0..500).any(|_| {
        let so = it();
        if !so {
            pause(Duration::from_millis(20));
        }
        so
    })
}
