//! A hub of two parts: who receives which datagram, and what the parts share.

mod rig;

use association::{
    Config, Hub, Keys, OpenError, Part, Security, Terminal, TerminalReceived, part_of,
};
use rig::*;
use std::sync::Arc;
use units::{Instant, RngStream};

const NAMES: [&str; 4] = ["boat", "buoy", "ship", "site"];

/// Boats are terminals of part 0, and all others of part 1.
fn home_part(name: &str) -> u32 {
    u32::from(!name.starts_with("boat"))
}

fn keys(names: &[&str]) -> Vec<Keys> {
    let known = names.iter().map(|name| known(name)).collect();
    let keys = Keys::new(key("hub"), known).expect("keys");
    keys.with_enrolment(vec![known_as("cove", key("token").public())])
        .expect("keys")
        .split(2, home_part)
}

fn hub() -> [Hub; 2] {
    let mut parts = Part::all(2, 7).into_iter().zip(keys(&NAMES));
    [(); 2].map(|()| {
        let (part, keys) = parts.next().expect("two parts");
        let number = u64::from(part.number());
        let config = Config { security: Security::Noise(keys.into()), part, ..Config::new("hub") };
        Hub::new(config, RngStream::new(number, 0, "hub"))
    })
}

fn terminal(name: &str, now: Instant) -> Terminal {
    Terminal::new(terminal_config(Suite::Noise, name), now, RngStream::new(1, 0, name))
}

/// Connects `terminal`; part 0 receives its Hello, and `part` answers it.
fn connect(hub: &mut [Hub; 2], terminal: &mut Terminal, part: u32, now: Instant) {
    let mut hello = hello_of(terminal, now).expect("a Hello is due");
    assert_eq!(part_of(&hello, 2), 0);
    let first = hub[0].handle_datagram(now, home(), &mut hello);
    if part != 0 {
        assert_eq!(first, Err(OpenError::OtherPart { part }));
        hub[part as usize].handle_datagram(now, home(), &mut hello).expect("handed over");
    }
    let (_, mut welcome) = answer_of(&mut hub[part as usize]).expect("a Welcome");
    let received = terminal.handle_datagram(now, &mut welcome);
    assert!(matches!(received, Ok(TerminalReceived::Established)));
}

/// ASC-1.3
#[test]
fn sealed_datagrams_lead_to_the_part_of_their_terminal() {
    let mut hub = hub();
    for name in NAMES {
        let (mut terminal, part) = (terminal(name, at(0)), home_part(name));
        connect(&mut hub, &mut terminal, part, at(0));
        let datagram = up(&mut terminal, b"data");
        assert_eq!(part_of(&datagram, 2), part, "{name}");
        let hub = &mut hub[part as usize];
        let (peer, first, _) = take(hub, at(1), home(), datagram);
        assert!(first);
        assert_eq!(hub.name(peer), Some(name));
        let (_, datagram) = down(hub, peer, b"back");
        assert_eq!(got(&mut terminal, at(2), datagram), b"back");
    }
    assert_eq!(hub[0].counters().unknown_keys, 0);
    assert_eq!([hub[0].counters().hellos, hub[1].counters().hellos], [1, 3]);
}

/// ASC-7.2: under load part 0 requests a cookie, and the part of the terminal does not repeat that.
#[test]
fn only_part_0_limits_hellos() {
    let mut hub = hub();
    for round in 0..200 {
        let mut another = terminal("boat", at(round));
        let _ = hub[0].handle_datagram(
            at(0),
            elsewhere(),
            &mut hello_of(&mut another, at(round)).expect("due"),
        );
        while answer_of(&mut hub[0]).is_some() {}
    }
    assert!(hub[0].counters().cookies > 0, "under load");
    let mut ship = terminal("ship", at(0));
    let mut hello = hello_of(&mut ship, at(0)).expect("due");
    assert_eq!(
        hub[0].handle_datagram(at(0), home(), &mut hello.clone()),
        Ok(association::HubReceived::Nothing)
    );
    let (_, mut cookie) = answer_of(&mut hub[0]).expect("a Cookie");
    ship.handle_datagram(at(0), &mut cookie).expect("a Cookie");
    // For part 1 the cookie of part 0 would be invalid.
    for _ in 0..100 {
        hub[1].handle_datagram(at(0), home(), &mut hello).expect("accepted");
    }
    assert_eq!(hub[1].counters().cookies, 0);
    let mut hello = hello_of(&mut ship, at(600)).expect("with a cookie");
    let handed = hub[0].handle_datagram(at(600), home(), &mut hello);
    assert_eq!(handed, Err(OpenError::OtherPart { part: 1 }));
    hub[1].handle_datagram(at(600), home(), &mut hello).expect("accepted");
}

/// ASC-6.9: a key of a terminal of any part cannot be registered.
#[test]
fn registrations_are_received_by_the_part_of_the_terminal() {
    let mut hub = hub();
    for (new, received) in [("boat", false), ("cove", true)] {
        let config = Config {
            registers: Some(key(new).public()),
            security: noise("token", vec![known("hub")]),
            ..terminal_config(Suite::Noise, "cove")
        };
        let mut cove = Terminal::new(config, at(0), RngStream::new(1, 0, new));
        let mut hello = hello_of(&mut cove, at(0)).expect("due");
        let handed = hub[0].handle_datagram(at(0), home(), &mut hello);
        assert_eq!(handed, Err(OpenError::OtherPart { part: 1 }));
        hub[1].handle_datagram(at(0), home(), &mut hello).expect("handed over");
        let (_, mut welcome) = answer_of(&mut hub[1]).expect("a Welcome");
        let answer = cove.handle_datagram(at(0), &mut welcome).expect("valid");
        assert_eq!(answer, TerminalReceived::Registered { received }, "{new}");
    }
    assert!(hub[1].poll_registration().is_some_and(|one| one.key == key("cove").public()));
}

/// ASC-6.7
#[test]
fn a_terminal_that_is_removed_from_the_list_of_its_part_is_disconnected() {
    let mut hub = hub();
    let mut ship = terminal("ship", at(0));
    connect(&mut hub, &mut ship, 1, at(0));
    take(&mut hub[1], at(1), home(), up(&mut ship, b"here"));
    let mut ended = Vec::new();
    for (hub, keys) in hub.iter_mut().zip(keys(&["boat", "buoy"])) {
        ended.extend(hub.set_keys(Arc::new(keys)));
    }
    assert_eq!(ended.len(), 1);
    let key = key("ship").public();
    let mut hello = hello_of(&mut terminal("ship", at(9)), at(9)).expect("due");
    assert_eq!(
        hub[0].handle_datagram(at(9), home(), &mut hello),
        Err(OpenError::UnknownKey { key })
    );
}
