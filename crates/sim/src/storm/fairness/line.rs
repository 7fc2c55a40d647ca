//! One direction of the link that terminals share.

use super::mix::LineSetup;
use crate::Agenda;
use units::{Instant, RngStream, Serializer, Span};

/// Octets of IP and UDP around each datagram.
pub(super) const HEADERS: u64 = 28;
/// How long a packet may wait before a line.
const QUEUE: Span = Span::from_secs(1);

/// One direction of the link.
pub(super) struct Line {
    serializer: Serializer,
    delay: Span,
    loss: f64,
    rng: RngStream,
    /// With the terminal that sends or receives.
    pub(super) flying: Agenda<(usize, Vec<u8>)>,
    pub(super) packets: u64,
    /// Octets of IP packets that went for each terminal.
    pub(super) octets: Vec<u64>,
}

impl Line {
    pub(super) fn new(setup: LineSetup, terminals: usize, rng: RngStream) -> Self {
        let LineSetup { rate, delay, loss } = setup;
        let (serializer, flying) = (Serializer::new(rate), Agenda::new());
        Self { serializer, delay, loss, rng, flying, packets: 0, octets: vec![0; terminals] }
    }

    /// Takes a datagram; says whether it was not lost.
    pub(super) fn offer(&mut self, now: Instant, terminal: usize, bytes: &[u8]) -> bool {
        self.packets += 1;
        if self.serializer.free_at().since(now) > QUEUE {
            return false;
        }
        let octets = bytes.len() as u64 + HEADERS;
        self.octets[terminal] += octets;
        let out = self.serializer.send(now, octets);
        let lost = self.loss > 0.0 && self.rng.chance(self.loss);
        if !lost {
            self.flying.put(out + self.delay, (terminal, bytes.to_vec()));
        }
        !lost
    }
}

/// A packet of `octets` over IPv4 and UDP.
pub(super) fn udp(client: usize, port: u16, dscp: u8, octets: usize) -> Vec<u8> {
    let mut packet = vec![0; octets.max(28)];
    (packet[0], packet[1], packet[9]) = (0x45, dscp << 2, 17);
    packet[12..16].copy_from_slice(&[10, 0, 0, client as u8]);
    packet[20..22].copy_from_slice(&port.to_be_bytes());
    packet
}
