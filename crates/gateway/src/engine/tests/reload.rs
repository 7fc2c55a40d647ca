//! A gateway continues running connections when it reloads its configuration.

use super::harness::*;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};

/// Returns an unused port.
fn free_port() -> SocketAddr {
    nobody()
}

/// SOCKS5 reply code of a connection that the policy forbids.
const FORBIDDEN: u8 = 2;

#[test]
fn a_transfer_continues_across_reloads() {
    let pair = Pair::confirm();
    let data = pattern(3_000_000, 41);
    let (sent, (sender, result)) = (data.clone(), std::sync::mpsc::channel::<()>());
    let result = std::sync::Mutex::new(result);
    let result = std::sync::Arc::new(result);
    let server = serve(move |mut stream| {
        stream.write_all(&sent[..1_000_000]).unwrap();
        result.lock().unwrap().recv().unwrap();
        stream.write_all(&sent[1_000_000..]).unwrap();
    });
    let mut running = pair.connect(server);
    let mut got = read_exactly(&mut running, 500_000);

    let other = free_port();
    pair.terminal.reload(|text| {
        let text = text.replace("rate_up = \"200mbit\"", "rate_up = \"50mbit\"");
        let text = text.replace("accept = \"confirm\"", "accept = \"early\"");
        let connect = "[connect]\nlisten = \"127.0.0.1:0\"";
        assert!(text.contains(connect), "{text}");
        text.replace(connect, &format!("[connect]\nlisten = \"{other}\""))
    });
    assert!(soon(|| !refuses(other)), "the new listener is not there");
    assert!(refuses(pair.terminal.addresses.connect[0]), "the old one still is");
    assert!(!refuses(pair.terminal.addresses.socks5[0]), "one that stays is gone");
    // Now accepted early, although no server listens.
    assert_eq!(pair.socks(nobody()).1, 0);

    let denied = |text: &str| format!("{text}[hub]\ndeny = [\"127.0.0.0/8\"]\n");
    pair.hub
        .reload(|text| denied(&text.replace("rate_down = \"200mbit\"", "rate_down = \"90mbit\"")));
    sender.send(()).unwrap();
    got.extend(read_all(&mut running));
    assert!(got == data, "{} bytes", got.len());
}

#[test]
fn the_hubs_rules_change_for_new_connections() {
    let pair = Pair::confirm();
    let server = echo();
    let mut before = pair.connect(server);
    pair.hub.reload(|text| format!("{text}[hub]\ndeny = [\"127.0.0.0/8\"]\n"));
    assert!(soon(|| pair.socks(server).1 == FORBIDDEN));
    before.write_all(b"still here").unwrap();
    assert_eq!(read_exactly(&mut before, 10), b"still here");
    pair.hub.reload(str::to_owned);
    assert!(soon(|| pair.socks(server).1 == 0));
}

#[test]
fn an_invalid_reload_changes_nothing() {
    let pair = Pair::early();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let (taken, free) = (taken.local_addr().unwrap(), (free_port(), taken));
    let wanted = |text: &str, listen: String| {
        text.replace(
            "[connect]\nlisten = \"127.0.0.1:0\"",
            &format!("[connect]\nlisten = {listen}"),
        )
    };
    // A mistake in another key, and a port that is in use.
    pair.terminal.reload(|text| wanted(text, format!("\"{}\"\nhear = 5", free.0)));
    pair.terminal.reload(|text| wanted(text, format!("[\"{}\", \"{taken}\"]", free.0)));
    pause_ms(100);
    assert!(!refuses(pair.terminal.addresses.connect[0]));
    assert!(refuses(free.0));
    pair.terminal.reload(|text| wanted(text, format!("\"{}\"", free.0)));
    assert!(soon(|| !refuses(free.0)));
    assert!(soon(|| refuses(pair.terminal.addresses.connect[0])));
}

#[test]
fn fewer_connections_are_allowed_from_now_on() {
    let pair = Pair::early();
    let server = echo();
    let mut open: Vec<_> = (0..5).map(|_| pair.connect(server)).collect();
    pair.terminal.reload(|text| format!("{text}[limits]\nconnections = 5\n"));
    // The sixth is refused until one of the five is closed.
    assert!(soon(|| pair.socks(server).1 == 1));
    drop(open.pop());
    assert!(soon(|| pair.socks(server).1 == 0));
}
