//! A server that is being connected to: its addresses, as they are resolved, and the attempts.
//!
//! ```text
//!   Connecting ── resolver's answers, sockets' news, time ──▶ Pending │ Connected │ Failed
//! ```
//!
//! A hub and a terminal that connects directly differ in which addresses they may reach and in how
//! a socket is made: that is an argument. The address that is judged is the one connected to.

use crate::engine::connect::address_order;
use crate::engine::connect::happy_eyeballs::HappyEyeballs;
use crate::engine::host::{Host, Socket};
use crate::engine::hub::reason_of;
use crate::engine::resolver::{self, Failure, Outcome, QueryId};
use crate::engine::{Engine, Role};
use crate::proxy::RefuseReason;
use std::net::{IpAddr, SocketAddr};
use units::{Instant, Span};

impl Engine {
    /// Hands the resolver's answers to the connections that wait for them.
    pub(crate) fn names(&mut self, now: Instant) {
        if !std::mem::take(&mut self.names_answered) {
            return;
        }
        self.core.resolver.handle_updates(now);
        while let Some(answer) = self.core.resolver.poll_answer() {
            match &mut self.role {
                Role::Terminal(terminal) => {
                    terminal.door.direct.answered(&mut self.core, now, answer);
                }
                Role::Hub(hub) => hub.answered(&mut self.core, now, answer),
            }
        }
    }
}

/// The attempts to reach the server of one connection.
#[derive(Debug)]
pub(crate) struct Connecting {
    /// The query for its addresses, while it is not answered in full.
    query: Option<QueryId>,
    port: u16,
    race: HappyEyeballs,
    attempts: Vec<(SocketAddr, Socket)>,
    /// When to give up.
    limit: Instant,
    /// Why the last attempt has failed.
    reason: RefuseReason,
}

/// How far it has come.
#[derive(Debug)]
pub(crate) enum Reached {
    /// Attempts run, or names are being resolved; to be asked again at that time.
    Pending(Instant),
    /// The server has answered.
    Connected(Socket),
    /// No address could be reached.
    Failed(RefuseReason),
}

impl Connecting {
    /// To a server on `port`, until `patience` is over.
    pub(crate) fn new(now: Instant, port: u16, patience: Span) -> Self {
        Self {
            query: None,
            port,
            race: HappyEyeballs::new(patience),
            attempts: Vec::new(),
            limit: now + patience,
            reason: RefuseReason::Other,
        }
    }

    /// The query that is to be cancelled when this is given up.
    pub(crate) fn query(&self) -> Option<QueryId> {
        self.query
    }

    /// Whether no address is being connected to yet.
    pub(crate) fn is_resolving(&self) -> bool {
        self.query.is_some() && self.race.is_waiting()
    }

    /// Whether no address was tried.
    pub(crate) fn has_no_address(&self) -> bool {
        self.race.is_waiting()
    }

    /// The server has an address and no name.
    pub(crate) fn address(&mut self, now: Instant, address: SocketAddr) {
        // There is nothing to sort.
        self.race.on_addresses(now, [address], true, |_| ());
    }

    /// The server's name is being looked up, or was in the resolver's cache.
    pub(crate) fn resolution(
        &mut self,
        now: Instant,
        host: &dyn Host,
        resolution: resolver::Resolution,
    ) {
        match resolution {
            resolver::Resolution::Pending(query) => self.query = Some(query),
            resolver::Resolution::Answered(outcome) => self.resolved(now, host, outcome),
        }
    }

    /// An answer to [`Connecting::query`].
    pub(crate) fn answer(&mut self, now: Instant, host: &dyn Host, result: resolver::Progress) {
        match result {
            resolver::Progress::Partial(addresses) => self.add(now, host, &addresses, false),
            resolver::Progress::Complete(outcome) => {
                self.query = None;
                self.resolved(now, host, outcome);
            }
        }
    }

    fn resolved(&mut self, now: Instant, host: &dyn Host, outcome: Outcome) {
        match outcome {
            Ok(addresses) => self.add(now, host, &addresses, true),
            Err(failure) => {
                self.reason = match failure {
                    Failure::NotFound | Failure::NoAnswer => RefuseReason::NameNotFound,
                    Failure::Refused => RefuseReason::Limit,
                };
                self.add(now, host, &[], true);
            }
        }
    }

    fn add(&mut self, now: Instant, host: &dyn Host, addresses: &[IpAddr], complete: bool) {
        let addresses = addresses.iter().map(|&address| SocketAddr::new(address, self.port));
        self.race.on_addresses(now, addresses, complete, |all| address_order::sort(all, host));
    }

    /// Looks after the attempts, and begins those that are due by `connect`, which returns the
    /// reason where an address may not be reached or no socket is to be had for it.
    pub(crate) fn turn(
        &mut self,
        now: Instant,
        mut connect: impl FnMut(SocketAddr) -> Result<Socket, RefuseReason>,
    ) -> Reached {
        if let Some(server) = self.take_connected(now) {
            return Reached::Connected(server);
        }
        if now >= self.limit {
            let reason = match (self.is_resolving(), self.attempts.is_empty()) {
                (true, _) => RefuseReason::NameNotFound,
                (false, false) => RefuseReason::TimedOut,
                (false, true) => self.reason,
            };
            return Reached::Failed(reason);
        }
        while let Some(address) = self.race.poll_abandoned(now) {
            self.attempts.retain(|(other, _)| *other != address);
            self.reason = RefuseReason::TimedOut;
        }
        while let Some(address) = self.race.poll_attempt(now) {
            match connect(address) {
                Ok(server) => self.attempts.push((address, server)),
                Err(reason) => self.failed(now, address, reason),
            }
        }
        if self.race.is_exhausted() {
            return Reached::Failed(self.reason);
        }
        let timeout = self.race.poll_timeout().unwrap_or(self.limit);
        Reached::Pending(timeout.min(self.limit))
    }

    /// The first attempt that has succeeded; those that have failed are removed.
    fn take_connected(&mut self, now: Instant) -> Option<Socket> {
        let mut index = 0;
        while let Some((address, server)) = self.attempts.get(index) {
            let address = *address;
            if let Some(error) = server.take_error() {
                tracing::debug!(%address, %error, "not connected");
                self.attempts.remove(index);
                self.failed(now, address, reason_of(&error));
            } else if server.is_connected() {
                return Some(self.attempts.remove(index).1);
            } else {
                // Neither: the news was of another socket, or of another kind.
                index += 1;
            }
        }
        None
    }

    fn failed(&mut self, now: Instant, address: SocketAddr, reason: RefuseReason) {
        self.reason = reason;
        self.race.on_failed(now, address);
    }
}
