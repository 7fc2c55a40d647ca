//! Invariants of an association under arbitrary network behaviour, as functions of a script.
//!
//! The target in `fuzz/` generates scripts; the test below uses random ones.

#[cfg(fuzzing)]
pub(crate) mod curve;

use crate::channel::{Channel, Key, KeyPair};
use crate::checksum::{HELLO_KEY, UNKNOWN_KEY, write_tag};
use crate::cookie::MacKeys;
use crate::handshake::{HelloPayload, WelcomePayload};
use crate::noise::HELLO_LEN;
use crate::null;
use crate::wire::{HEADER_LEN, Header, Kind, OVERHEAD};
use crate::{
    Capabilities, Config, Hub, HubReceived, Keys, Known, PeerId, PresharedKey, PrivateKey, Sealed,
    Security, Terminal, TerminalReceived, TransmitBatch,
};
use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::LazyLock;
use units::{Instant, RngStream, Span};

/// Maximum number of datagrams in the network per direction; more are lost.
const MAX_HELD: usize = 32;

/// Applies `script` to a terminal, a hub and a network that drops, duplicates, corrupts and forges
/// datagrams; then makes the network perfect, and expects both ends to recover. Without keys.
///
/// # Panics
/// If a payload is delivered that was not sent, or twice, if the hub exceeds its limits, or if the
/// ends do not recover.
pub fn association(script: &[u8]) {
    play(Security::None, Security::None, script);
}

/// As [`association`], with keys, which are sometimes renewed.
///
/// # Panics
/// As [`association`].
pub fn noise(script: &[u8]) {
    let key = |name: &str| PrivateKey::generate(&mut RngStream::new(1, 0, name));
    let keys = |own: &str, other: &str| {
        let public = key(other).public();
        let known = Known { name: other.into(), public, preshared: PresharedKey::NONE };
        Security::Noise(Keys::new(key(own), vec![known]).expect("keys").into())
    };
    play(keys("boat", "hub"), keys("hub", "boat"), script);
}

fn play(terminal: Security, hub: Security, script: &[u8]) {
    let mut bench = Bench::new(terminal, hub);
    for step in script.chunks_exact(4) {
        bench.step(step[0], step[1], step[2], step[3]);
    }
    bench.heal();
}

/// Decodes `octets` as a datagram in every way in which either side decodes one: the header, the
/// payload of a Hello and a Welcome, a Hello of each suite, a Cookie, sealed data. If the first
/// octet is odd, tags and MACs that anyone can compute are corrected first.
///
/// # Panics
/// If decoded data changes when it is encoded again, or if data decrypts that was not encrypted.
pub fn datagram(octets: &[u8]) {
    let Some((&flags, octets)) = octets.split_first() else { return };
    let mut datagram = octets.to_vec();
    if flags & 1 != 0 {
        repair(&mut datagram);
    }
    if let Some(bytes) = octets.first_chunk() {
        let header = Header { kind: Kind::Hello, index: 0, counter: 0 };
        assert_eq!(&HelloPayload::decode(header, bytes).encode(), bytes);
    }
    if let Some(bytes) = octets.first_chunk() {
        let read = WelcomePayload::decode(bytes);
        assert_eq!(WelcomePayload::decode(&read.encode()), read);
    }
    if let Ok(header) = Header::decode(&datagram) {
        let mut written = [0; HEADER_LEN];
        header.encode(&mut written);
        assert_eq!(written, datagram[..HEADER_LEN]);
        let _ = null::hear(header, &datagram);
        READERS.with_borrow_mut(|readers| readers.read(header, &mut datagram));
    }
    let mut hub = Hub::new(Config::new("hub"), RngStream::new(1, 0, "hub"));
    let now = Instant::ZERO;
    let from = SocketAddr::from(([192, 0, 2, 1], 9));
    let payload = matches!(
        hub.handle_datagram(now, from, &mut datagram.clone()),
        Ok(HubReceived::Payload { .. })
    );
    assert!(!payload, "data without an association");
    let mut terminal = Terminal::new(Config::new("boat"), now, RngStream::new(1, 0, "boat"));
    let mut buffer = [0; 1500];
    let _ = terminal.poll_transmit(now, &mut TransmitBatch::new(&mut buffer, 1));
    let payload = matches!(
        terminal.handle_datagram(now, &mut datagram),
        Ok(TerminalReceived::Payload { .. })
    );
    assert!(!payload, "data without an association");
}

/// Keys that are expensive to create and can be reused.
struct Readers {
    hello: Vec<u8>,
    channel: Channel,
}

/// Keys derived from the hub's public key.
static HUB: LazyLock<MacKeys> = LazyLock::new(|| {
    MacKeys::new(&PrivateKey::generate(&mut RngStream::new(1, 0, "hub")).public())
});

thread_local! {
    static READERS: RefCell<Readers> = RefCell::new(Readers::new());
}

impl Readers {
    fn new() -> Self {
        let mut hello = vec![7; HELLO_LEN];
        HUB.write_first(&mut hello);
        let key = |octet| Key::sealed(&[octet; 32], Capabilities::ALL);
        let keys = KeyPair { send: key(1), receive: key(2) };
        Self { hello, channel: Channel::new(1, keys, Instant::ZERO) }
    }

    fn read(&mut self, header: Header, datagram: &mut [u8]) {
        if datagram.len() == HELLO_LEN {
            let _ = HUB.first_fits(datagram);
        }
        assert!(HUB.open(header, datagram, &self.hello).is_err(), "nobody made this cookie");
        assert!(self.channel.open(header, &mut datagram.to_vec()).is_err(), "nobody sealed this");
    }
}

struct Bench {
    now: Instant,
    terminal: Terminal,
    hub: Hub,
    hub_security: Security,
    hubs: u64,
    peer: Option<PeerId>,
    /// Datagrams to the hub and to the terminal.
    held: [VecDeque<Vec<u8>>; 2],
    /// Numbers of payloads in the network, and of the next one.
    sent: [BTreeSet<u32>; 2],
    next: u32,
}

const UP: usize = 0;
const DOWN: usize = 1;

impl Bench {
    fn new(security: Security, hub_security: Security) -> Self {
        let now = Instant::ZERO;
        let config = Config { security, renew_after_datagrams: 12, ..Config::new("boat") };
        let terminal = Terminal::new(config, now, RngStream::new(1, 0, "boat"));
        let (hub, hubs) = (new_hub(&hub_security, 0), 1);
        let (held, sent) = Default::default();
        Self { now, terminal, hub, hub_security, hubs, peer: None, held, sent, next: 0 }
    }

    fn step(&mut self, kind: u8, a: u8, b: u8, c: u8) {
        let direction = usize::from(a & 1);
        let front = self.held[direction].front().cloned();
        match kind % 12 {
            0 => self.let_terminal_speak(),
            1 | 2 => self.send(direction),
            3..6 => self.arrive(direction, b),
            6 => self.now += Span::from_millis(u64::from(b) * 20),
            7 => self.hold(direction, front.unwrap_or_default()),
            8 => drop(self.held[direction].pop_front()),
            9 => {
                if let Some(datagram) = self.held[direction].front_mut() {
                    let len = datagram.len().max(1);
                    let at = usize::from(b) % len;
                    datagram.get_mut(at..=at).into_iter().flatten().for_each(|octet| *octet ^= c);
                    if a & 2 != 0 {
                        repair(datagram);
                    }
                }
            }
            10 => {
                if let Some(datagram) = self.held[direction].front_mut() {
                    datagram.truncate(usize::from(b));
                    if a & 2 != 0 {
                        datagram.resize(usize::from(b).max(OVERHEAD), c);
                        repair(datagram);
                    }
                }
            }
            _ => {
                self.hub = new_hub(&self.hub_security, self.hubs);
                self.hubs += 1;
                self.peer = None;
            }
        }
    }

    fn hold(&mut self, direction: usize, datagram: Vec<u8>) {
        if self.held[direction].len() < MAX_HELD {
            self.held[direction].push_back(datagram);
        }
    }

    fn let_terminal_speak(&mut self) {
        let mut buffer = [0; 1500];
        let mut batch = TransmitBatch::new(&mut buffer, 1);
        if self.terminal.poll_transmit(self.now, &mut batch) {
            let hello = batch.datagrams().next().expect("it said so").to_vec();
            self.hold(UP, hello);
        }
    }

    /// Seals a payload with a unique number.
    fn send(&mut self, direction: usize) {
        let mut datagram = vec![0; OVERHEAD + 4];
        datagram[HEADER_LEN..HEADER_LEN + 4].copy_from_slice(&self.next.to_be_bytes());
        let sealed = match (direction, self.peer) {
            (UP, _) => self.terminal.seal(self.now, Sealed::Data, &mut datagram),
            (_, Some(peer)) => self.hub.seal(self.now, peer, Sealed::Data, &mut datagram).is_some(),
            (_, None) => false,
        };
        if sealed {
            self.sent[direction].insert(self.next);
            self.next += 1;
            self.hold(direction, datagram);
        }
    }

    fn arrive(&mut self, direction: usize, port: u8) {
        let Some(mut datagram) = self.held[direction].pop_front() else { return };
        let payload = if direction == UP {
            let from = SocketAddr::from(([192, 0, 2, 1], u16::from(port)));
            match self.hub.handle_datagram(self.now, from, &mut datagram) {
                Ok(HubReceived::Payload { peer, payload, .. }) => {
                    self.peer = Some(peer);
                    Some(payload.to_vec())
                }
                Ok(HubReceived::Nothing) | Err(_) => None,
            }
        } else {
            match self.terminal.handle_datagram(self.now, &mut datagram) {
                Ok(TerminalReceived::Payload { payload, .. }) => Some(payload.to_vec()),
                Ok(_) | Err(_) => None,
            }
        };
        // The first datagram under new keys may be empty.
        if let Some(payload) = payload.filter(|payload| !payload.is_empty()) {
            let number = u32::from_be_bytes(payload.try_into().expect("four bytes were sent"));
            assert!(self.sent[direction].remove(&number), "{number} was not sent, or came twice");
        }
        self.let_hub_answer();
    }

    fn let_hub_answer(&mut self) {
        let config = Config::new("hub");
        assert!(self.hub.kept() <= 2 * config.max_terminals + config.max_pending);
        let mut buffer = [0; 1500];
        loop {
            let mut batch = TransmitBatch::new(&mut buffer, 1);
            if self.hub.poll_transmit(&mut batch).is_none() {
                return;
            }
            let answer = batch.datagrams().next().expect("it said so").to_vec();
            self.hold(DOWN, answer);
        }
    }

    /// Makes the network perfect: within some rounds payloads are delivered in both directions.
    fn heal(&mut self) {
        for held in &mut self.held {
            held.clear();
        }
        let mut whole = 0;
        for _ in 0..8 {
            let mut passed = [false; 2];
            self.now += Span::from_secs(10);
            self.let_terminal_speak();
            for direction in [UP, DOWN] {
                let number = self.next;
                self.send(direction);
                while !self.held[direction].is_empty() {
                    self.arrive(direction, 1);
                }
                passed[direction] = number < self.next && !self.sent[direction].contains(&number);
            }
            whole = if passed == [true; 2] { whole + 1 } else { 0 };
            if whole == 2 {
                return;
            }
        }
        panic!("the ends did not find each other");
    }
}

fn new_hub(security: &Security, count: u64) -> Hub {
    let config = Config { security: security.clone(), ..Config::new("hub") };
    Hub::new(config, RngStream::new(1, count, "hub"))
}

/// Corrects what anyone can compute: the tag of a Hello or an Unknown, and a Hello's mac1.
fn repair(datagram: &mut [u8]) {
    if datagram.len() == HELLO_LEN && datagram[0] & 0x0f == 1 && datagram[4] == 1 {
        HUB.write_first(datagram);
        return;
    }
    if datagram.len() < OVERHEAD {
        return;
    }
    let key = if datagram[0] & 0x0f == 1 { HELLO_KEY } else { UNKNOWN_KEY };
    write_tag(key, datagram);
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_octets_are_a_datagram_or_an_error(octets in vec(any::<u8>(), 0..200)) {
            super::datagram(&octets);
        }

        #[test]
        fn any_octets_of_a_kind_are_too(kind in 0x10..0x18u8, octets in vec(any::<u8>(), 0..200)) {
            super::datagram(&[&[1, kind], &octets[..]].concat());
        }

        #[test]
        fn no_network_deceives_or_parts_them(script in vec(any::<u8>(), 0..800)) {
            super::association(&script);
        }

        #[test]
        fn nor_do_keys_part_them(script in vec(any::<u8>(), 0..400)) {
            super::noise(&script);
        }
    }
}
