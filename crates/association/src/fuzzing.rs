//! What must hold whatever a network does to datagrams, as a function of a script.
//!
//! The target in `fuzz/` breeds scripts; the test below draws random ones.

use crate::channel::{UNKNOWN_KEY, write_tag};
use crate::handshake::HELLO_KEY;
use crate::wire::{HEADER_LEN, OVERHEAD};
use crate::{Config, Hub, HubReceived, PeerId, Terminal, TerminalReceived, TransmitBatch};
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use units::{Instant, RngStream, Span};

/// Datagrams that the network holds in one direction; more are lost.
const MAX_HELD: usize = 32;

/// Plays `script` to a terminal, a hub and a network that loses, repeats, damages and invents
/// datagrams; then lets the network be, and expects both ends to find each other.
///
/// # Panics
/// When a payload arrives that was not sent, or twice, when the hub keeps more than it said, or
/// when the ends do not find each other again.
pub fn association(script: &[u8]) {
    let mut bench = Bench::new();
    for step in script.chunks_exact(4) {
        bench.step(step[0], step[1], step[2], step[3]);
    }
    bench.heal();
}

struct Bench {
    now: Instant,
    terminal: Terminal,
    hub: Hub,
    hubs: u64,
    peer: Option<PeerId>,
    /// Towards the hub, and towards the terminal.
    held: [VecDeque<Vec<u8>>; 2],
    /// Numbers of payloads on their way, and of the next one.
    sent: [BTreeSet<u32>; 2],
    next: u32,
}

const UP: usize = 0;
const DOWN: usize = 1;

impl Bench {
    fn new() -> Self {
        let now = Instant::ZERO;
        let terminal = Terminal::new(Config::new("boat"), now, RngStream::new(1, 0, "boat"));
        let (hub, hubs) = (new_hub(0), 1);
        let held = Default::default();
        Self { now, terminal, hub, hubs, peer: None, held, sent: Default::default(), next: 0 }
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
                self.hub = new_hub(self.hubs);
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

    /// Seals a payload with a number that is used once.
    fn send(&mut self, direction: usize) {
        let mut datagram = vec![0; OVERHEAD + 4];
        datagram[HEADER_LEN..HEADER_LEN + 4].copy_from_slice(&self.next.to_be_bytes());
        let sealed = match (direction, self.peer) {
            (UP, _) => self.terminal.seal(&mut datagram),
            (_, Some(peer)) => self.hub.seal(peer, &mut datagram).is_some(),
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
                Ok(TerminalReceived::Payload(payload)) => Some(payload.to_vec()),
                Ok(TerminalReceived::Established | TerminalReceived::Nothing) | Err(_) => None,
            }
        };
        if let Some(payload) = payload {
            let number = u32::from_be_bytes(payload.try_into().expect("four bytes were sent"));
            assert!(self.sent[direction].remove(&number), "{number} was not sent, or came twice");
        }
        self.let_hub_answer();
    }

    fn let_hub_answer(&mut self) {
        let config = Config::new("hub");
        assert!(self.hub.peers() <= config.max_terminals + config.max_pending);
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

    /// A perfect network from here on: within some rounds payloads pass both ways.
    fn heal(&mut self) {
        for held in &mut self.held {
            held.clear();
        }
        let mut passed = [false; 2];
        for _ in 0..8 {
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
        }
        assert_eq!(passed, [true; 2], "the ends did not find each other");
    }
}

fn new_hub(count: u64) -> Hub {
    Hub::new(Config::new("hub"), RngStream::new(1, count, "hub"))
}

/// Puts the tag right where anyone can: of a Hello or an Unknown.
fn repair(datagram: &mut [u8]) {
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
        fn no_network_deceives_or_parts_them(script in vec(any::<u8>(), 0..800)) {
            super::association(&script);
        }
    }
}
