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
pub(crate) use proxy::carry;
pub use tcp::{Tcp, TcpId};
pub use xstp::{Xstp, XstpStream};

use crate::Streams;
use crate::network::{Address, Node, Outbox, Packet};
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
    /// It was broken off: by the peer, or for want of answers. [`StreamEvent::Gone`] follows.
    Broken(I),
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

/// Between whom a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamAddresses {
    /// Who opened it.
    pub client: Address,
    /// To whom it was opened.
    pub server: Address,
}

/// A transport that stands in for others, as gateways do that nobody sees (RFC 3135,
/// section 2.5): it takes streams that are meant for somebody else, and opens them in another's
/// name.
///
/// The peer's end of a stream is held back: it is told as [`StreamEvent::Ended`] but confirmed
/// to the peer only by [`StandIn::confirm`], so that nobody takes for delivered what a gateway
/// still has.
pub trait StandIn: Transport {
    /// Whether a packet opens a stream that could be taken; [`Transport::handle_packet`] does.
    fn opens(&self, packet: &Packet) -> bool;
    /// The stream that a packet belongs to, if it is known.
    fn stream_of(&self, packet: &Packet) -> Option<Self::Id>;
    /// Between whom `stream` is, as long as it is known.
    fn ends(&self, stream: Self::Id) -> Option<StreamAddresses>;
    /// Opens a stream to `ends.server` in the name of `ends.client`.
    fn open_between(&mut self, now: Instant, ends: StreamAddresses) -> Self::Id;
    /// Breaks a stream off.
    fn reset(&mut self, now: Instant, stream: Self::Id);
    /// Whether this end of a stream is ended and the peer has confirmed it; so is one that is
    /// over.
    fn is_confirmed(&self, stream: Self::Id) -> bool;
    /// Confirms the peer's end.
    fn confirm(&mut self, now: Instant, stream: Self::Id);
    /// Bytes of a stream that are kept here: arrived and not consumed, written and not known to
    /// have arrived.
    fn held(&self, stream: Self::Id) -> u64;
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
