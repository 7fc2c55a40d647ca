//! Registration of keys by terminals (ASC-6.8 to ASC-6.10).

mod rig;

use association::{
    Config, Hub, HubReceived, Keys, Known, OpenError, PublicKey, Registration, Security, Terminal,
    TerminalReceived,
};
use rig::*;
use std::sync::Arc;
use units::{Instant, RngStream};

/// Keys of a hub with a boat, and the enrolment key of a buoy.
fn keys() -> Keys {
    let keys = Keys::new(key("hub"), vec![known("boat")]).expect("keys");
    keys.with_enrolment(vec![known_as("buoy", key("token").public())]).expect("keys")
}

fn hub() -> Hub {
    let security = Security::Noise(keys().into());
    Hub::new(Config { security, ..Config::new("hub") }, RngStream::new(1, 0, "hub"))
}

/// A terminal with the private key `own` that registers `new`, or connects.
fn terminal(own: &str, new: Option<&str>, now: Instant) -> Terminal {
    let config = Config {
        security: noise(own, vec![known("hub")]),
        registers: new.map(|new| key(new).public()),
        ..terminal_config(Suite::Noise, own)
    };
    Terminal::new(config, now, RngStream::new(now.as_nanos(), 0, own))
}

/// Registers and returns the response.
fn response(hub: &mut Hub, own: &str, new: PublicKey, now: Instant) -> Option<bool> {
    let config = Config { registers: Some(new), ..terminal_config(Suite::Noise, own) };
    let security = noise(own, vec![known("hub")]);
    let config = Config { security, ..config };
    let mut terminal = Terminal::new(config, now, RngStream::new(now.as_nanos(), 1, own));
    let mut hello = hello_of(&mut terminal, now).expect("a Hello is due");
    hub.handle_datagram(now, home(), &mut hello).ok()?;
    let (_, mut welcome) = answer_of(hub)?;
    match terminal.handle_datagram(now, &mut welcome) {
        Ok(TerminalReceived::Registered { received }) => Some(received),
        other => panic!("{other:?}"),
    }
}

/// ASC-6.8, ASC-6.9
#[test]
fn a_terminal_with_an_enrolment_key_registers_its_own_and_connects_with_it() {
    let mut hub = hub();
    let new = key("buoy").public();
    assert_eq!(response(&mut hub, "token", new, at(1)), Some(true));
    let registration =
        Registration { name: "buoy".into(), proved: key("token").public(), key: new };
    assert_eq!(hub.poll_registration(), Some(registration));
    assert_eq!(hub.poll_registration(), None);
    // Nothing has changed until the hub has stored it.
    let mut hello = hello_of(&mut terminal("buoy", None, at(2)), at(2)).expect("due");
    let unknown = Err(OpenError::UnknownKey { key: new });
    assert_eq!(hub.handle_datagram(at(2), home(), &mut hello), unknown);
    let stored = Keys::new(key("hub"), vec![known("boat"), known("buoy")]).expect("keys");
    hub.set_keys(Arc::new(stored));
    greet(&mut terminal("buoy", None, at(3)), &mut hub, at(3));
    // The enrolment key cannot be used twice.
    assert_eq!(response(&mut hub, "token", key("thief").public(), at(4)), None);
}

/// ASC-6.8
#[test]
fn an_enrolment_key_makes_no_association() {
    let mut hub = hub();
    let mut hello = hello_of(&mut terminal("token", None, at(1)), at(1)).expect("due");
    let unknown = Err(OpenError::UnknownKey { key: key("token").public() });
    assert_eq!(hub.handle_datagram(at(1), home(), &mut hello), unknown);
    assert_eq!(answer_of(&mut hub), None);
}

/// ASC-6.9
#[test]
fn a_terminal_replaces_its_key_and_keeps_its_association_meanwhile() {
    let mut hub = hub();
    let mut boat = terminal("boat", None, at(1));
    greet(&mut boat, &mut hub, at(1));
    let new = key("boat's next").public();
    assert_eq!(response(&mut hub, "boat", new, at(500)), Some(true));
    assert_eq!(hub.poll_registration().map(|one| (one.name, one.key)), Some(("boat".into(), new)));
    let mut data = with_room(b"still here");
    assert!(boat.seal(at(501), association::Sealed::Data, &mut data));
    assert!(take(&mut hub, at(501), home(), data).1, "its first payload");
}

/// ASC-6.9: the key of another terminal, the hub's own, and a point of low order.
#[test]
fn keys_that_are_not_free_are_refused() {
    let mut hub = hub();
    let weak: PublicKey = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".parse().expect("a key");
    let taken = [key("boat").public(), key("hub").public(), key("token").public(), weak];
    for (index, new) in taken.into_iter().enumerate() {
        let now = at(1 + index as u64);
        assert_eq!(response(&mut hub, "token", new, now), Some(false), "{new}");
    }
    assert_eq!(hub.poll_registration(), None);
}

/// ASC-6.10
#[test]
fn a_repetition_has_the_same_response_and_a_replay_none() {
    let mut hub = hub();
    let hello = |new: &str, now| hello_of(&mut terminal("token", Some(new), now), now).unwrap();
    let (first, second) = (hello("first", at(1)), hello("second", at(2)));
    for datagram in [&first, &first, &second] {
        let mut datagram = datagram.clone();
        let received = hub.handle_datagram(at(3), home(), &mut datagram);
        assert_eq!(received, Ok(HubReceived::Nothing));
        assert!(answer_of(&mut hub).is_some());
    }
    let mut replay = first.clone();
    let replayed = hub.handle_datagram(at(4), home(), &mut replay);
    assert_eq!(replayed, Err(OpenError::Stale));
    let registered = hub.poll_registration().map(|one| one.key);
    assert_eq!(registered, Some(key("second").public()), "one for each terminal, the latest");
    assert_eq!(hub.poll_registration(), None);
}

/// ASC-6.8
#[test]
fn enrolment_keys_are_unique_like_others() {
    let keys = || Keys::new(key("hub"), vec![known("boat")]).expect("keys");
    let refused = |known: Known| keys().with_enrolment(vec![known]).is_err();
    assert!(refused(known_as("buoy", key("boat").public())));
    assert!(refused(known_as("boat", key("token").public())));
    assert!(refused(known_as("buoy", key("hub").public())));
    assert!(!refused(known_as("buoy", key("token").public())));
}

/// ASC-6.8
#[test]
fn a_hub_that_drains_registers_nothing() {
    let mut hub = hub();
    hub.drain();
    assert_eq!(response(&mut hub, "token", key("buoy").public(), at(1)), None);
    assert_eq!(hub.poll_registration(), None);
}
