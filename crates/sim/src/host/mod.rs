//! Hosts put together from a transport and an application.
//!
//! ```text
//!    Application   bulk, requests, files, pages        streams of bytes that it checks
//!        │  Streams: open, write, peek, consume, end
//!        ▼
//!    Transport     XSTP, TCP, a relay                  packets
//!        │  Node: handle_packet, poll_transmit, poll_timeout
//!        ▼
//!    Network
//! ```
//!
//! Every application runs on every transport. [`Proxy`] joins two transports as a gateway does.

mod bulk;
mod datagrams;
mod proxy;
mod tcp;
mod xstp;

pub use bulk::{BulkReceiver, BulkSender};
pub use datagrams::Datagrams;
pub use proxy::Proxy;
pub use tcp::{Tcp, TcpId};
pub use xstp::{Xstp, XstpStream};

use crate::Streams;
use crate::network::{Node, Outbox, Packet};
use units::Instant;

/// What happened to a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEvent<I> {
    /// The peer opened it.
    Opened(I),
    /// It has bytes.
    Readable(I),
    /// It takes bytes again, after it took fewer than it was given.
    Writable(I),
    /// The peer sends no more on it; everything that it sent has been told of.
    Ended(I),
    /// It is over, in order or not.
    Gone(I),
}

/// A transport: streams above, packets below.
pub trait Transport: Streams + 'static {
    /// Whether a packet is for this transport.
    fn wants(&self, packet: &Packet) -> bool;
    /// Takes a packet that arrived at `now`.
    fn handle_packet(&mut self, now: Instant, packet: &mut Packet);
    /// Sends all packets that may leave at `now`.
    fn poll_transmit(&mut self, now: Instant, out: &mut Outbox<'_>);
    /// When to call [`Transport::handle_timeout`].
    fn poll_timeout(&self) -> Option<Instant>;
    /// Does what is due at `now`.
    fn handle_timeout(&mut self, now: Instant);
    /// The next thing that happened to a stream.
    fn poll_event(&mut self) -> Option<StreamEvent<Self::Id>>;
}

/// What uses streams.
pub trait Application<S: Streams>: 'static {
    /// Something happened to a stream.
    fn handle_event(&mut self, now: Instant, event: StreamEvent<S::Id>, streams: &mut S);
    /// When to call [`Application::handle_timeout`].
    fn poll_timeout(&self) -> Option<Instant>;
    /// Does what is due at `now`.
    fn handle_timeout(&mut self, now: Instant, streams: &mut S);
}

/// A host with one transport and one application.
#[derive(Debug)]
pub struct Host<T, A> {
    /// What carries the streams.
    pub transport: T,
    /// What uses them.
    pub application: A,
}

impl<T: Transport, A: Application<T>> Host<T, A> {
    /// `application` on `transport`.
    pub fn new(transport: T, application: A) -> Self {
        Self { transport, application }
    }

    fn events(&mut self, now: Instant) {
        while let Some(event) = self.transport.poll_event() {
            self.application.handle_event(now, event, &mut self.transport);
        }
    }
}

impl<T: Transport, A: Application<T>> Node for Host<T, A> {
    fn handle_packet(&mut self, now: Instant, packet: &mut Packet) {
        self.transport.handle_packet(now, packet);
        self.events(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outbox<'_>) {
        self.transport.poll_transmit(now, out);
        self.events(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match (self.transport.poll_timeout(), self.application.poll_timeout()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (only, None) | (None, only) => only,
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.transport.handle_timeout(now);
        self.events(now);
        if self.application.poll_timeout().is_some_and(|at| at <= now) {
            self.application.handle_timeout(now, &mut self.transport);
            self.events(now);
        }
    }
}

#[cfg(test)]
mod tests;
