//! A hub reports its terminals' connection counts to a MAC scheduler.

use super::harness::*;
use rt::counts::Receiver;
use std::path::PathBuf;

/// Waits until the scheduler has received this count for the terminal `boat`.
fn is_reported(receiver: &mut Receiver, connections: u64) -> bool {
    soon(|| {
        let mut last = None;
        while let Some(message) = receiver.receive() {
            let terminals = message.unwrap().terminals;
            last = terminals.into_iter().find(|count| count.name == "boat").or(last);
        }
        last.is_some_and(|count| count.connections == connections)
    })
}

fn place(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("bentpipe-{}-{name}.mac.sock", std::process::id()))
}

#[test]
fn connection_counts_are_reported_to_a_scheduler() {
    let (first, second) = (place("first"), place("second"));
    let mut receiver = Receiver::bind(&first).unwrap();
    let hub = hub_at("127.0.0.1:0", &format!("[mac]\nsocket = \"{}\"\n", first.display()));
    let boat = terminal_of(&hub, "name = \"boat\"\n");
    let server = echo();
    let connect = || socks_from(open(boat.addresses.socks5[0]), server).0;
    let mut clients = vec![connect(), connect(), connect()];
    assert!(is_reported(&mut receiver, 3));
    clients.truncate(1);
    assert!(is_reported(&mut receiver, 1));
    // Another scheduler replaces it and receives the complete state without a change.
    let mut other = Receiver::bind(&second).unwrap();
    let paths = [&first, &second].map(|path| path.display().to_string());
    hub.reload(|text| text.replace(&paths[0], &paths[1]));
    assert!(is_reported(&mut other, 1));
    clients.clear();
    assert!(is_reported(&mut other, 0));
    let counted = hub.stop().connections;
    assert!(counted.mac_messages >= 4, "{counted:?}");
}
