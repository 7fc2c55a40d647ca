//! What clients do, written down beforehand.

use super::HEAD;
use units::{Instant, Span};

/// One connection: when it is opened, and what is asked on it.
#[derive(Clone, Debug)]
pub struct ConnectionPlan {
    /// When it is opened.
    pub start: Start,
    /// Who waits for whom.
    pub order: Order,
    /// Requests and responses, in order.
    pub exchanges: Vec<Exchange>,
    /// The last request waits until this connection, counted from 0, has come to its end.
    pub waits_for: Option<usize>,
    /// Requests, and the end, are held back for so long: by a program that gathers them, or a
    /// person who thinks.
    pub held: Span,
}

/// When a connection is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At this time.
    At(Instant),
    /// When the first response on this connection, counted from 0, is complete.
    AfterFirstOf(usize),
    /// When the first response on connection `after` is complete, and fewer than `at_once` of
    /// those that are opened in the same turn are open: the next as soon as one has ended.
    InTurn {
        /// Which connection's first response, counted from 0.
        after: usize,
        /// How many may be open; at least 1.
        at_once: usize,
    },
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Each once the response before it is complete.
    OneByOne,
    /// All but the first once the first response is complete.
    PipelinedAfterFirst,
    /// All but the first as the first response names them: each once its share of it is there.
    PipelinedAsNamed,
}

/// A request and its response, bytes. A request has at least 24, a response at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Bytes to the server.
    pub request: u64,
    /// Bytes back.
    pub response: u64,
}

impl ConnectionPlan {
    /// One request for `response` bytes at `start`.
    pub fn download(start: Instant, response: u64) -> Self {
        Self::single(start, Exchange { request: 300, response })
    }

    /// `request` bytes to the server from `start` on, and a short answer at the end.
    pub fn upload(start: Instant, request: u64) -> Self {
        Self::single(start, Exchange { request, response: 100 })
    }

    /// One exchange at `start`.
    pub fn single(start: Instant, exchange: Exchange) -> Self {
        Self::new(Start::At(start), Order::OneByOne, vec![exchange])
    }

    /// A connection that waits for no other's end.
    pub fn new(start: Start, order: Order, exchanges: Vec<Exchange>) -> Self {
        Self { start, order, exchanges, waits_for: None, held: Span::ZERO }
    }

    /// A file of `bytes`, fetched as by FTP from `start` on: a control connection with two
    /// commands, the file on a connection of its own, and a last command when it is there.
    pub fn file(start: Instant, bytes: u64) -> Vec<Self> {
        let command = Exchange { request: 40, response: 80 };
        let control = Self {
            waits_for: Some(1),
            ..Self::new(Start::At(start), Order::OneByOne, vec![command; 2])
        };
        let file = Exchange { request: HEAD, response: bytes };
        vec![control, Self::new(Start::AfterFirstOf(0), Order::OneByOne, vec![file])]
    }

    /// A page of `objects` equal objects of `bytes` together, asked for from `start` on: the
    /// first alone; then, with one connection, all others at once, with more, one at a time on
    /// each.
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
    fn a_page_has_its_objects_and_bytes() {
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
