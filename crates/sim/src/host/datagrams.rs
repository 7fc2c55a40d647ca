//! An [`Endpoint`] as a node, so that endpoints of a [`Path`](crate::Path) also run in a network.

use crate::Endpoint;
use crate::network::{Address, IPV4_UDP, Node, Outbox, Packet};
use units::Instant;

/// An endpoint whose datagrams are sent to one address by UDP, such as a terminal's gateway.
#[derive(Debug)]
pub struct Datagrams<E> {
    /// The endpoint.
    pub endpoint: E,
    to: Option<Address>,
    port: u16,
    header: usize,
}

impl<E: Endpoint> Datagrams<E> {
    /// Datagrams of `endpoint` are sent from `port` to `to`; with `None`, to the source of the last
    /// one received.
    pub fn new(endpoint: E, port: u16, to: Option<Address>) -> Self {
        Self { endpoint, to, port, header: IPV4_UDP }
    }

    /// Returns it with `header` octets below each datagram in place of 28.
    #[must_use]
    pub fn with_header(self, header: usize) -> Self {
        Self { header, ..self }
    }
}

impl<E: Endpoint + 'static> Node for Datagrams<E> {
    fn handle_packet(&mut self, now: Instant, packet: &mut Packet) {
        self.to.get_or_insert(packet.from);
        self.endpoint.handle_datagram(now, packet.bytes_mut());
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outbox<'_>) {
        let (to, header) = (self.to, self.header);
        let from = Address::new(out.node(), self.port);
        self.endpoint.poll_transmit(now, &mut |datagram| {
            // Without a peer address nothing can be sent.
            let Some(to) = to else { return };
            let mut buffer = out.buffer(datagram.len());
            buffer.copy_from_slice(datagram);
            out.send(Packet::udp(from, to, buffer).with_header(header));
        });
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }
}
