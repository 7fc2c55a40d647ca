//! Users of the gateways: clients and servers, and their results.
//!
//! A request is a head of 24 octets (its pattern, its length, the response's length), then a
//! pattern up to its length; the response is a pattern alone. So each side can verify every octet
//! without storing any.

mod browser;
mod client;
mod constant;
mod load;
pub mod mah;
mod plan;
mod server;
mod web;

pub use browser::{Browser, BrowsingModel, PageRead};
pub use client::{Client, ClientClose, Exchanged};
pub use constant::{ConstantRate, ConstantSink, ConstantSource, Delays};
pub use load::WebLoad;
pub use plan::{ConnectionPlan, Exchange, Order, Start};
pub use server::Server;
pub use web::{Http, S1711_PAGES, WebPage};

pub use crate::Streams;

use crate::Pattern;
use crate::host::{Application, StreamEvent};
use units::Instant;

impl<S: Streams> Application<S> for Client<S::Id>
where
    S::Id: 'static,
{
    fn handle_event(&mut self, now: Instant, event: StreamEvent<S::Id>, streams: &mut S) {
        match event {
            StreamEvent::Readable(stream) => self.readable(now, stream, streams),
            StreamEvent::Writable(stream) => self.writable(now, stream, streams),
            StreamEvent::Gone(stream) => self.gone(stream),
            StreamEvent::Opened(_) | StreamEvent::Ended(_) | StreamEvent::Broken(_) => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Self::poll_timeout(self)
    }

    fn handle_timeout(&mut self, now: Instant, streams: &mut S) {
        Self::handle_timeout(self, now, streams);
    }
}

impl<S: Streams> Application<S> for Server<S::Id>
where
    S::Id: 'static,
{
    fn handle_event(&mut self, now: Instant, event: StreamEvent<S::Id>, streams: &mut S) {
        match event {
            StreamEvent::Opened(stream) => self.opened(stream),
            StreamEvent::Readable(stream) => self.readable(now, stream, streams),
            StreamEvent::Writable(stream) => self.writable(now, stream, streams),
            StreamEvent::Ended(stream) => self.ended(now, stream, streams),
            StreamEvent::Broken(_) => {}
            StreamEvent::Gone(stream) => self.gone(stream),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Self::poll_timeout(self)
    }

    fn handle_timeout(&mut self, now: Instant, streams: &mut S) {
        Self::handle_timeout(self, now, streams);
    }
}

/// Octets of a request's head.
pub(crate) const HEAD: u64 = 24;

/// The head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) tag: u64,
    pub(crate) request: u64,
    pub(crate) response: u64,
}

impl Head {
    fn to_bytes(self) -> [u8; HEAD as usize] {
        let mut out = [0; HEAD as usize];
        for (place, word) in out.chunks_exact_mut(8).zip([self.tag, self.request, self.response]) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        out
    }

    pub(crate) fn from_bytes(bytes: [u8; HEAD as usize]) -> Self {
        let mut words = bytes
            .chunks_exact(8)
            .map(|word| word.iter().fold(0u64, |sum, &byte| sum << 8 | u64::from(byte)));
        let mut word = || words.next().unwrap_or_default();
        Self { tag: word(), request: word(), response: word() }
    }

    /// The octets of the request after its head.
    fn body(self) -> Pattern {
        Pattern(self.tag.wrapping_mul(2))
    }

    /// The octets of the response.
    fn answer(self) -> Pattern {
        Pattern(self.tag.wrapping_mul(2).wrapping_add(1))
    }
}

#[cfg(test)]
mod over_transports;
#[cfg(test)]
mod tests;
