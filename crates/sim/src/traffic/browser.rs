//! Users who read web pages: a page, its files, a think time, the next page.

use super::{Client, ConnectionPlan, Exchange, Order, Start, mah};
use crate::Streams;
use crate::host::{Application, StreamEvent};
use units::{Instant, RngStream, Span};

/// The pages and think times of a user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BrowsingModel {
    /// As in the traces of 1995.
    Mah,
    /// Pages of equal files, with exponentially distributed think times.
    Even {
        /// Files of a page, the primary file included; at least 1.
        files: u64,
        /// Octets of each file.
        bytes: u64,
        /// Octets of each request.
        request: u64,
        /// Mean think time.
        think: Span,
    },
}

/// A page that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRead {
    /// When it was requested.
    pub asked: Instant,
    /// When its last octet arrived.
    pub done: Instant,
    /// Its files, the primary file included.
    pub files: u64,
    /// Sum of their octets.
    pub bytes: u64,
}

/// A user of a [`Server`](super::Server): the primary file of each page first, then the others on
/// several connections; each page has its own connections.
pub struct Browser<I> {
    reading: BrowsingModel,
    connections: usize,
    rng: RngStream,
    page: Option<Client<I>>,
    asked: Instant,
    files: u64,
    bytes: u64,
    next: Option<Instant>,
    until: Instant,
    pages: Vec<PageRead>,
    lost: u64,
}

impl<I: Copy + Ord> Browser<I> {
    /// Reads from `start` on and requests no page after `until`; the files of a page use at most
    /// `connections` connections.
    ///
    /// # Panics
    /// If `connections` is zero.
    pub fn new(
        reading: BrowsingModel,
        connections: usize,
        rng: RngStream,
        start: Instant,
        until: Instant,
    ) -> Self {
        assert!(connections > 0, "a page needs a connection");
        Self {
            reading,
            connections,
            rng,
            page: None,
            asked: start,
            files: 0,
            bytes: 0,
            next: Some(start),
            until,
            pages: Vec::new(),
            lost: 0,
        }
    }

    /// The pages read, in order.
    pub fn pages(&self) -> &[PageRead] {
        &self.pages
    }

    /// Connections that were reset, refused or lost.
    pub fn lost(&self) -> u64 {
        self.lost + self.page.as_ref().map_or(0, Client::lost)
    }

    /// Whether no page is outstanding and none follows.
    pub fn is_done(&self) -> bool {
        self.page.is_none() && self.next.is_none()
    }

    /// The plans of the next page.
    fn plan(&mut self, now: Instant) -> Vec<ConnectionPlan> {
        let rng = &mut self.rng;
        let files = match self.reading {
            BrowsingModel::Mah => mah::draw(mah::Size::Files, rng),
            BrowsingModel::Even { files, .. } => files.max(1),
        };
        let mut draw = |first: bool| match self.reading {
            BrowsingModel::Mah => {
                let (request, reply) = if first {
                    (mah::Size::PrimaryRequest, mah::Size::PrimaryReply)
                } else {
                    (mah::Size::SecondaryRequest, mah::Size::SecondaryReply)
                };
                Exchange { request: mah::draw(request, rng), response: mah::draw(reply, rng) }
            }
            BrowsingModel::Even { bytes, request, .. } => Exchange { request, response: bytes },
        };
        let all: Vec<Exchange> = (0..files).map(|file| draw(file == 0)).collect();
        self.files = files;
        self.bytes = all.iter().map(|exchange| exchange.response).sum();
        let used = self.connections.min(all.len().saturating_sub(1).max(1));
        let mut plans: Vec<ConnectionPlan> = (0..used)
            .map(|connection| {
                let start = if connection == 0 { Start::At(now) } else { Start::AfterFirstOf(0) };
                ConnectionPlan::new(start, Order::OneByOne, Vec::new())
            })
            .collect();
        for (file, exchange) in all.into_iter().enumerate() {
            let connection = if file == 0 { 0 } else { (file - 1) % used };
            plans[connection].exchanges.push(exchange);
        }
        plans
    }

    fn think(&mut self) -> Span {
        match self.reading {
            BrowsingModel::Mah => mah::think(&mut self.rng),
            BrowsingModel::Even { think, .. } => self.rng.exponential_span(think),
        }
    }

    /// Checks whether the page is complete, and schedules the next one.
    fn check_page(&mut self, now: Instant) {
        let Some(page) = self.page.take_if(|page| page.is_done()) else { return };
        self.lost += page.lost();
        if page.lost() == 0 {
            let (asked, files, bytes) = (self.asked, self.files, self.bytes);
            self.pages.push(PageRead { asked, done: now, files, bytes });
        }
        let next = now + self.think();
        self.next = (next <= self.until).then_some(next);
    }
}

impl<S: Streams> Application<S> for Browser<S::Id>
where
    S::Id: 'static,
{
    fn handle_event(&mut self, now: Instant, event: StreamEvent<S::Id>, streams: &mut S) {
        if let Some(page) = &mut self.page {
            Application::handle_event(page, now, event, streams);
        }
        self.check_page(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match &self.page {
            Some(page) => page.poll_timeout(),
            None => self.next,
        }
    }

    fn handle_timeout(&mut self, now: Instant, streams: &mut S) {
        if self.page.is_none() && self.next.is_some_and(|at| at <= now) {
            self.next = None;
            self.asked = now;
            self.page = Some(Client::new(self.plan(now)));
        }
        if let Some(page) = &mut self.page {
            page.handle_timeout(now, streams);
        }
        self.check_page(now);
    }
}
