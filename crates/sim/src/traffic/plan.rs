//! Plans of client connections.

use super::HEAD;
use units::{Instant, Span};

/// A connection: when it is opened, and its exchanges.
#[derive(Clone, Debug)]
pub struct ConnectionPlan {
    /// When it is opened.
    pub start: Start,
    /// Order of requests and responses.
    pub order: Order,
    /// Requests and responses, in order.
    pub exchanges: Vec<Exchange>,
    /// The last request waits until this connection, counted from 0, has ended.
    pub waits_for: Option<usize>,
    /// Delay of requests and of the end, for a program that collects them or a user's think time.
    pub held: Span,
}

/// When a connection is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At this time.
    At(Instant),
    /// When the first response on this connection, counted from 0, is complete.
    AfterFirstOf(usize),
    /// When the first response on connection `after` is complete and fewer than `at_once` of the
    /// connections with the same condition are open; the next one is opened as soon as one has
    /// ended.
    InTurn {
        /// The connection of the first response, counted from 0.
        after: usize,
        /// Maximum number of open connections; at least 1.
        at_once: usize,
    },
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Each when the previous response is complete.
    OneByOne,
    /// All but the first when the first response is complete.
    PipelinedAfterFirst,
    /// All but the first as the first response names them, in equal parts of it.
    PipelinedAsNamed,
}

/// Octets of a request and of its response. A request has at least 24, a response at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Octets to the server.
    pub request: u64,
    /// Octets from the server.
    pub response: u64,
}

impl ConnectionPlan {
    /// One request for `response` octets at `start`.
    pub fn download(start: Instant, response: u64) -> Self {
        Self::single(start, Exchange { request: 300, response })
    }

    /// `request` octets to the server from `start` on, and a short response at the end.
    pub fn upload(start: Instant, request: u64) -> Self {
        Self::single(start, Exchange { request, response: 100 })
    }

    /// One exchange at `start`.
    pub fn single(start: Instant, exchange: Exchange) -> Self {
        Self::new(Start::At(start), Order::OneByOne, vec![exchange])
    }

    /// A connection that does not wait for another one's end.
    pub fn new(start: Start, order: Order, exchanges: Vec<Exchange>) -> Self {
        Self { start, order, exchanges, waits_for: None, held: Span::ZERO }
    }

    /// A file of `bytes` octets, fetched as with FTP from `start` on: a control connection with two
    /// commands, the file on a connection of its own, and a final command when it has arrived.
    pub fn file(start: Instant, bytes: u64) -> Vec<Self> {
        let command = Exchange { request: 40, response: 80 };
        let control = Self {
            waits_for: Some(1),
            ..Self::new(Start::At(start), Order::OneByOne, vec![command; 2])
        };
        let file = Exchange { request: HEAD, response: bytes };
        vec![control, Self::new(Start::AfterFirstOf(0), Order::OneByOne, vec![file])]
    }

    /// A page of `objects` equal objects with `bytes` octets in all, requested from `start` on: the
    /// first alone; then on one connection all others pipelined, or on more connections one at a
    /// time on each.
    pub fn page(start: Instant, objects: u64, bytes: u64, connections: usize) -> Vec<Self> {
        let size = |index: u64| bytes / objects + u64::from(index < bytes % objects);
        let exchange = |index: u64| Exchange { request: 300, response: size(index) };
        let order = if connections == 1 { Order::PipelinedAfterFirst } else { Order::OneByOne };
        (0..connections)
            .map(|connection| {
                let first = (connection == 0).then_some(0);
                let others = (1..objects)
                    .filter(|index| ((index - 1) % connections as u64) as usize == connection);
                let start = if connection == 0 { Start::At(start) } else { Start::AfterFirstOf(0) };
                Self::new(start, order, first.into_iter().chain(others).map(exchange).collect())
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_its_objects_and_octets() {
        for connections in [1, 6] {
            let plans = ConnectionPlan::page(Instant::ZERO, 30, 212_207, connections);
            assert_eq!(plans.len(), connections);
            let all: Vec<_> = plans.iter().flat_map(|plan| &plan.exchanges).collect();
            assert_eq!(all.len(), 30);
            assert_eq!(all.iter().map(|exchange| exchange.response).sum::<u64>(), 212_207);
            let longest = plans[1..].iter().map(|plan| plan.exchanges.len()).max();
            assert_eq!(longest.unwrap_or(5), 5, "five rounds after the first");
        }
    }
}
