//! One direction of the shared link.

use super::plan::LineSetup;
use crate::EventQueue;
use units::{Instant, RngStream, Serializer, Span};

/// Octets of IP and UDP headers of a datagram.
pub(super) const HEADERS: u64 = 28;
/// Maximum queuing delay.
const QUEUE: Span = Span::from_secs(1);

/// One direction of the shared link: a rate, a queue, a delay and random loss.
pub(super) struct LinkDirection {
    serializer: Serializer,
    delay: Span,
    loss: f64,
    rng: RngStream,
    /// Datagrams in flight, with the terminal that sends or receives.
    pub(super) in_flight: EventQueue<(usize, Vec<u8>)>,
    pub(super) packets: u64,
    /// Octets of IP packets per terminal.
    pub(super) octets: Vec<u64>,
}

impl LinkDirection {
    pub(super) fn new(setup: LineSetup, terminals: usize, rng: RngStream) -> Self {
        let LineSetup { rate, delay, loss } = setup;
        let (serializer, in_flight) = (Serializer::new(rate), EventQueue::new());
        Self { serializer, delay, loss, rng, in_flight, packets: 0, octets: vec![0; terminals] }
    }

    /// Enqueues a datagram; returns false if it was dropped.
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
            self.in_flight.push(out + self.delay, (terminal, bytes.to_vec()));
        }
        !lost
    }
}

/// Builds an IPv4 UDP packet of `octets`.
pub(super) fn udp(client: usize, port: u16, dscp: u8, octets: usize) -> Vec<u8> {
    let mut packet = vec![0; octets.max(28)];
    (packet[0], packet[1], packet[9]) = (0x45, dscp << 2, 17);
    packet[12..16].copy_from_slice(&[10, 0, 0, client as u8]);
    packet[20..22].copy_from_slice(&port.to_be_bytes());
    packet
}
