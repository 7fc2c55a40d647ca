//! A terminal, a hub and the datagrams between them, for tests that inspect each.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part of the rig")]

pub mod flood;

use association::{
    Config, HEADER_LEN, Hub, HubReceived, Keys, Known, OVERHEAD, PeerId, PresharedKey, PrivateKey,
    PublicKey, Sealed, Security, Terminal, TerminalReceived, TransmitBatch,
};
use std::net::SocketAddr;
use units::{Instant, RngStream, Span};

/// The suite of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    Null,
    Noise,
}

pub const BOTH: [Suite; 2] = [Suite::Null, Suite::Noise];

pub fn home() -> SocketAddr {
    "192.0.2.1:4500".parse().expect("address")
}

pub fn elsewhere() -> SocketAddr {
    "[2001:db8::7]:999".parse().expect("address")
}

pub fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

/// Returns the private key of `name`.
pub fn key(name: &str) -> PrivateKey {
    PrivateKey::generate(&mut RngStream::new(1, 0, name))
}

pub fn known(name: &str) -> Known {
    known_as(name, key(name).public())
}

pub fn known_as(name: &str, public: PublicKey) -> Known {
    Known { name: name.into(), public, preshared: PresharedKey::NONE }
}

pub fn noise(own: &str, others: Vec<Known>) -> Security {
    Security::Noise(Keys::new(key(own), others).expect("keys").into())
}

/// Returns the terminal `name` of a hub called `hub`.
pub fn terminal_config(suite: Suite, name: &str) -> Config {
    let security = match suite {
        Suite::Null => Security::None,
        Suite::Noise => noise(name, vec![known("hub")]),
    };
    // A date in 2026; each process starts at some time.
    Config { security, wall_clock_ns: 1_790_000_000 << 30, ..Config::new(name) }
}

/// Returns a hub that knows `terminals`.
pub fn hub_config(suite: Suite, terminals: &[&str]) -> Config {
    let security = match suite {
        Suite::Null => Security::None,
        Suite::Noise => noise("hub", terminals.iter().map(|name| known(name)).collect()),
    };
    Config { security, ..Config::new("hub") }
}

pub fn terminal(suite: Suite, seed: u64, now: Instant) -> Terminal {
    let rng = RngStream::new(seed, 0, "terminal");
    Terminal::new(terminal_config(suite, "boat"), now, rng)
}

pub fn hub(suite: Suite, seed: u64) -> Hub {
    Hub::new(hub_config(suite, &["boat"]), RngStream::new(seed, 0, "hub"))
}

pub fn hello_of(terminal: &mut Terminal, now: Instant) -> Option<Vec<u8>> {
    let mut buffer = [0; 1500];
    let mut batch = TransmitBatch::new(&mut buffer, 4);
    terminal.poll_transmit(now, &mut batch).then(|| one(&batch))
}

pub fn answer_of(hub: &mut Hub) -> Option<(SocketAddr, Vec<u8>)> {
    let mut buffer = [0; 1500];
    let mut batch = TransmitBatch::new(&mut buffer, 4);
    hub.poll_transmit(&mut batch).map(|to| (to, one(&batch)))
}

pub fn one(batch: &TransmitBatch<'_>) -> Vec<u8> {
    assert_eq!(batch.count(), 1);
    batch.datagrams().next().expect("one").to_vec()
}

/// Exchanges Hello and Welcome, without the first datagram.
pub fn greet(terminal: &mut Terminal, hub: &mut Hub, now: Instant) {
    assert_eq!(exchange(terminal, hub, now), TerminalReceived::Established);
}

/// Exchanges Hello and Welcome, whatever the result.
pub fn exchange(terminal: &mut Terminal, hub: &mut Hub, now: Instant) -> TerminalReceived<'static> {
    let mut hello = hello_of(terminal, now).expect("hello is due");
    assert_eq!(hub.handle_datagram(now, home(), &mut hello), Ok(HubReceived::Nothing));
    let (to, mut welcome) = answer_of(hub).expect("welcome");
    assert_eq!(to, home());
    match terminal.handle_datagram(now, &mut welcome).expect("taken") {
        TerminalReceived::Established => TerminalReceived::Established,
        TerminalReceived::Nothing => TerminalReceived::Nothing,
        other => panic!("{other:?}"),
    }
}

/// Renews the keys, including the first datagram under them.
pub fn renew(terminal: &mut Terminal, hub: &mut Hub, now: Instant) {
    assert_eq!(exchange(terminal, hub, now), TerminalReceived::Nothing);
    let confirm = hello_of(terminal, now).expect("the first datagram is due");
    assert!(!take(hub, now, home(), confirm).1);
}

pub fn with_room(payload: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0; OVERHEAD + payload.len()];
    datagram[HEADER_LEN..HEADER_LEN + payload.len()].copy_from_slice(payload);
    datagram
}

pub fn up_at(terminal: &mut Terminal, now: Instant, payload: &[u8]) -> Vec<u8> {
    let mut datagram = with_room(payload);
    assert!(terminal.seal(now, Sealed::Data, &mut datagram));
    datagram
}

pub fn up(terminal: &mut Terminal, payload: &[u8]) -> Vec<u8> {
    up_at(terminal, at(0), payload)
}

pub fn down_at(hub: &mut Hub, now: Instant, peer: PeerId, payload: &[u8]) -> (SocketAddr, Vec<u8>) {
    let mut datagram = with_room(payload);
    let to = hub.seal(now, peer, Sealed::Data, &mut datagram).expect("known");
    (to, datagram)
}

pub fn down(hub: &mut Hub, peer: PeerId, payload: &[u8]) -> (SocketAddr, Vec<u8>) {
    down_at(hub, at(0), peer, payload)
}

/// Delivers a payload to the hub; returns its association, whether it was the first, and the
/// association that it replaced.
pub fn take(
    hub: &mut Hub,
    now: Instant,
    from: SocketAddr,
    mut datagram: Vec<u8>,
) -> (PeerId, bool, Option<PeerId>) {
    match hub.handle_datagram(now, from, &mut datagram) {
        Ok(HubReceived::Payload { peer, first, replaced, .. }) => {
            assert!(replaced.len() <= 1, "{replaced:?}");
            (peer, first, replaced.first().copied())
        }
        other => panic!("{other:?}"),
    }
}

/// Delivers a payload to the terminal.
pub fn got(terminal: &mut Terminal, now: Instant, mut datagram: Vec<u8>) -> Vec<u8> {
    match terminal.handle_datagram(now, &mut datagram) {
        Ok(TerminalReceived::Payload { payload, .. }) => payload.to_vec(),
        other => panic!("{other:?}"),
    }
}
