//! Hosts composed of a transport and an application.
//!
//! ```text
//!   Application   bulk, requests, files, pages        verified byte streams
//!        │  Streams: open, write, peek, consume, end
//!        ▼
//!    Transport     XSTP, TCP, QUIC, a relay            packets
//!        │  Node: handle_packet, poll_transmit, poll_timeout
//!        ▼
//!    Network
//! ```
//!
//! Every application runs on every transport. [`Proxy`] connects two transports as a gateway does.

mod bulk;
mod datagrams;
mod end_to_end;
mod proxy;
mod quic;
mod relay_link;
mod tcp;
mod xstp;

pub use bulk::{BulkReceiver, BulkSender};
pub use datagrams::Datagrams;
pub use end_to_end::{EndToEnd, EndToEndConfig, EndToEndId};
pub use proxy::Proxy;
pub(crate) use proxy::carry;
pub use quic::{Quic, QuicId};
pub use relay_link::{RelayLink, RelayStream};
pub use tcp::{Tcp, TcpId};
pub use xstp::{Xstp, XstpStream};

use crate::Streams;
use crate::network::{Address, Node, Outbox, Packet};
use units::Instant;

/// An event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEvent<I> {
    /// The peer opened it.
    Opened(I),
    /// It has octets to read.
    Readable(I),
    /// It accepts octets after it accepted fewer than offered.
    Writable(I),
    /// The peer has ended its send side, and all data before was reported.
    Ended(I),
    /// It was reset by the peer, or timed out. [`StreamEvent::Gone`] follows.
    Broken(I),
    /// It is closed, in order or not.
    Gone(I),
}

impl<I> StreamEvent<I> {
    /// The same event of another identifier.
    pub(crate) fn map<J>(self, id: impl FnOnce(I) -> J) -> StreamEvent<J> {
        match self {
            Self::Opened(stream) => StreamEvent::Opened(id(stream)),
            Self::Readable(stream) => StreamEvent::Readable(id(stream)),
            Self::Writable(stream) => StreamEvent::Writable(id(stream)),
            Self::Ended(stream) => StreamEvent::Ended(id(stream)),
            Self::Broken(stream) => StreamEvent::Broken(id(stream)),
            Self::Gone(stream) => StreamEvent::Gone(id(stream)),
        }
    }
}

/// A transport: streams above, packets below.
pub trait Transport: Streams + 'static {
    /// Whether a packet is for this transport.
    fn wants(&self, packet: &Packet) -> bool;
    /// Handles a packet that arrived at `now`.
    fn handle_packet(&mut self, now: Instant, packet: &mut Packet);
    /// Sends all packets that may be sent at `now`.
    fn poll_transmit(&mut self, now: Instant, out: &mut Outbox<'_>);
    /// Returns when to call [`Transport::handle_timeout`].
    fn poll_timeout(&self) -> Option<Instant>;
    /// Handles the timers that have expired at `now`.
    fn handle_timeout(&mut self, now: Instant);
    /// The next event of a stream.
    fn poll_event(&mut self) -> Option<StreamEvent<Self::Id>>;
}

/// The addresses of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamAddresses {
    /// The address that opened it.
    pub client: Address,
    /// The address it was opened to.
    pub server: Address,
}

/// A transport for transparent gateways (RFC 3135, section 2.5): it accepts streams addressed to
/// other hosts, and opens streams with another host's source address.
///
/// The end of a peer's send side is held: it is reported as [`StreamEvent::Ended`] but acknowledged
/// to the peer only by [`Interceptor::confirm`], so that the peer does not take data buffered at a
/// gateway for delivered.
pub trait Interceptor: Transport {
    /// Whether a packet opens a stream that could be accepted; [`Transport::handle_packet`] accepts
    /// it.
    fn opens(&self, packet: &Packet) -> bool;
    /// The stream that a packet belongs to, if it is known.
    fn stream_of(&self, packet: &Packet) -> Option<Self::Id>;
    /// The addresses of `stream`, as long as it is known.
    fn ends(&self, stream: Self::Id) -> Option<StreamAddresses>;
    /// Opens a stream to `ends.server` with the source address `ends.client`.
    fn open_between(&mut self, now: Instant, ends: StreamAddresses) -> Self::Id;
    /// Resets a stream.
    fn reset(&mut self, now: Instant, stream: Self::Id);
    /// Whether this side's end is sent and acknowledged by the peer, or the stream is closed.
    fn is_confirmed(&self, stream: Self::Id) -> bool;
    /// Acknowledges the peer's end.
    fn confirm(&mut self, now: Instant, stream: Self::Id);
    /// Octets of a stream that are buffered here: received and not consumed, or written and not
    /// acknowledged.
    fn held(&self, stream: Self::Id) -> u64;
}

/// An application on streams.
pub trait Application<S: Streams>: 'static {
    /// Handles an event of a stream.
    fn handle_event(&mut self, now: Instant, event: StreamEvent<S::Id>, streams: &mut S);
    /// Returns when to call [`Application::handle_timeout`].
    fn poll_timeout(&self) -> Option<Instant>;
    /// Handles the timers that have expired at `now`.
    fn handle_timeout(&mut self, now: Instant, streams: &mut S);
}

/// A host with one transport and one application.
#[derive(Debug)]
pub struct Host<T, A> {
    /// The transport.
    pub transport: T,
    /// The application.
    pub application: A,
}

impl<T: Transport, A: Application<T>> Host<T, A> {
    /// Runs `application` on `transport`.
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
