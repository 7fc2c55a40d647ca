//! Several paths: selection for new connections, and treatment of connections during an outage.

use super::harness::*;
use super::line::Line;
use std::io::{Read, Write};
use std::net::TcpStream;

/// Starts a terminal with two paths over `lines`; `more` is in the table of the second.
fn terminal(lines: [&Line; 2], more: &str, top: &str) -> Running {
    let [one, two] = lines.map(|line| line.address);
    Running::start(&format!(
        "role = \"terminal\"\naccept = \"early\"\nname = \"boat\"\n{top}\n\
         [link]\nmtu = 1400\nrate_up = \"50mbit\"\nrate_down = \"50mbit\"\nround_trip = \"10ms\"\n\
         [[path]]\nname = \"one\"\npeer = \"{one}\"\nlisten = \"127.0.0.1:0\"\n\
         [[path]]\nname = \"two\"\npeer = \"{two}\"\nlisten = \"127.0.0.1:0\"\n{more}\n\
         [health]\nhold = \"1s\"\nprobe = \"200ms\"\n\
         [socks5]\nlisten = \"127.0.0.1:0\"\n"
    ))
}

fn connect(terminal: &Running, server: std::net::SocketAddr) -> TcpStream {
    let (stream, code) = socks_from(open(terminal.addresses.socks5[0]), server);
    assert_eq!(code, 0);
    stream
}

/// Returns whether a byte is echoed within the time limit.
fn echoes(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(std::time::Duration::from_millis(1_500))).unwrap();
    stream.write_all(b"?").is_ok() && stream.read_exact(&mut [0]).is_ok()
}

#[test]
fn new_connections_go_to_the_next_hub_and_back_and_running_ones_wait() {
    let hubs = [hub_at("127.0.0.1:0", ""), hub_at("127.0.0.1:0", "")];
    let lines = [0, 1].map(|at: usize| Line::to(hubs[at].addresses.link.unwrap()));
    let terminal = terminal([&lines[0], &lines[1]], "role = \"backup\"", "");
    let echo = echo();
    // Either path may be up first.
    assert!(soon(|| echoes(&mut connect(&terminal, echo))));
    pause_ms(1_500);
    let mut old = connect(&terminal, echo);
    assert!(echoes(&mut old));
    lines[0].cut();
    // A POLL of the first path is unanswered, which is detected after its timeout.
    assert!(soon(|| echoes(&mut connect(&terminal, echo))), "not by the second hub");
    assert!(!echoes(&mut old), "it waits for its path");
    lines[0].mend();
    old.set_read_timeout(Some(std::time::Duration::from_secs(15))).unwrap();
    read_exactly(&mut old, 1);
    assert!(echoes(&mut old), "and has gone on");
    // After the hold time the first path is used again, while the second is still up.
    pause_ms(2_500);
    let mut back = connect(&terminal, echo);
    assert!(echoes(&mut back));
    lines[1].cut();
    assert!(echoes(&mut back), "the first hub has new ones again");
    let report = terminal.stop();
    assert_eq!(report.connections.lost_with_peer, 0);
    let [first, second] = hubs.map(|hub| hub.stop().connections.opened);
    assert!(first >= 2 && second >= 1, "{first} and {second}");
}

#[test]
fn two_paths_to_one_hub_share_by_weight_and_have_one_terminals_share() {
    let known = "[[terminal]]\nname = \"boat\"\nconnections = 8\n";
    let hub = hub_at("127.0.0.1:0", known);
    let lines = [(); 2].map(|()| Line::to(hub.addresses.link.unwrap()));
    let terminal = terminal([&lines[0], &lines[1]], "weight = 3", "");
    let echo = echo();
    // Both are up.
    assert!(soon(|| {
        let mut pair = [(); 2].map(|()| connect(&terminal, echo));
        pair.iter_mut().all(echoes)
    }));
    pause_ms(500);
    let mut eight: Vec<TcpStream> = (0..8).map(|_| connect(&terminal, echo)).collect();
    assert!(eight.iter_mut().all(echoes));
    // A ninth exceeds the quota that both paths share.
    let mut ninth = connect(&terminal, echo);
    let _ = ninth.write_all(b"?");
    assert!(ninth.read(&mut [0]).is_err(), "reset");
    lines[0].cut();
    let mut waiting = eight.iter_mut().map(|stream| !echoes(stream)).filter(|waits| *waits);
    let by_first = waiting.by_ref().count();
    assert_eq!(by_first, 2, "of eight, with weights 1 and 3");
    lines[0].mend();
    drop(terminal);
    let report = hub.stop();
    assert_eq!(report.connections.limited["terminal_connections"], 1);
}
