//! Associations of further paths, joined to that of another one.

mod rig;

use association::{Capabilities, Hub, HubReceived, PeerId, Terminal};
use rig::*;
use units::RngStream;

const NAMES: [&str; 4] = ["boat", "boat/leo", "ship", "boats/leo"];

/// Returns the terminal `name`, which has the capability unless it is an `old` one.
fn path(suite: Suite, name: &str, old: bool) -> Terminal {
    let mut config = terminal_config(suite, name);
    config.limits.capabilities = if old { Capabilities::NONE } else { Capabilities::ALL };
    Terminal::new(config, at(0), RngStream::new(1, 0, name))
}

fn hub(suite: Suite, old: bool) -> Hub {
    let mut config = hub_config(suite, &NAMES);
    config.limits.capabilities = if old { Capabilities::NONE } else { Capabilities::ALL };
    Hub::new(config, RngStream::new(1, 0, "hub"))
}

/// Exchanges a handshake and the first datagram; returns the association at the hub, and the one
/// to which that has joined it.
fn connect(terminal: &mut Terminal, hub: &mut Hub) -> (PeerId, Option<PeerId>) {
    greet(terminal, hub, at(0));
    let mut first = up(terminal, b"one");
    match hub.handle_datagram(at(1), home(), &mut first).expect("opened") {
        HubReceived::Payload { peer, joins, first: true, .. } => (peer, joins),
        other => panic!("{other:?}"),
    }
}

/// ASC-2.12
#[test]
fn a_further_path_of_the_same_terminal_is_joined() {
    for suite in BOTH {
        let mut hub = hub(suite, false);
        let mut geo = path(suite, "boat", false);
        let (first, joins) = connect(&mut geo, &mut hub);
        assert_eq!((joins, geo.joined()), (None, (false, false)));
        let mut leo = path(suite, "boat/leo", false);
        leo.set_sibling(geo.association());
        leo.restart(at(0));
        let (second, joins) = connect(&mut leo, &mut hub);
        assert_eq!((joins, leo.joined()), (Some(first), (true, true)));
        assert!(leo.association().is_some() && leo.association() != geo.association());
        assert_ne!(first, second);
        // The first path may be joined to the second one in turn.
        geo.set_sibling(leo.association());
        geo.restart(at(600));
        greet(&mut geo, &mut hub, at(600));
        assert_eq!(geo.joined(), (true, true));
    }
}

/// ASC-2.12
#[test]
fn other_terminals_and_unknown_associations_are_not_joined() {
    for suite in BOTH {
        let mut hub = hub(suite, false);
        let mut boat = path(suite, "boat", false);
        connect(&mut boat, &mut hub);
        let number = boat.association().expect("established");
        for (name, sibling) in [("ship", number), ("boats/leo", number), ("boat/leo", number ^ 1)] {
            let mut other = path(suite, name, false);
            other.set_sibling(Some(sibling));
            other.restart(at(0));
            let (_, joins) = connect(&mut other, &mut hub);
            assert_eq!((joins, other.joined()), (None, (true, false)), "{name}");
        }
        // A terminal that names its own association continues it.
        boat.set_sibling(Some(number));
        boat.restart(at(600));
        exchange(&mut boat, &mut hub, at(600));
        assert!(!boat.joined().1);
    }
}

/// ASC-2.10, ASC-2.12
#[test]
fn sides_of_earlier_releases_join_nothing() {
    for suite in BOTH {
        for (old_hub, old_terminal) in [(true, false), (false, true)] {
            let mut hub = hub(suite, old_hub);
            let mut geo = path(suite, "boat", false);
            connect(&mut geo, &mut hub);
            let mut leo = path(suite, "boat/leo", old_terminal);
            leo.set_sibling(geo.association());
            leo.restart(at(0));
            let (_, joins) = connect(&mut leo, &mut hub);
            assert_eq!((joins, leo.joined()), (None, (true, false)));
        }
    }
}
