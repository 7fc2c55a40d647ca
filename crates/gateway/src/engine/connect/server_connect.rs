//! Connecting to a server: its addresses, as they are resolved, and the attempts.
//!
//! ```text
//!   Connecting ── resolver's answers, sockets' news, time ──▶ Pending │ Connected │ Failed
//! ```
//!
//! Hubs and terminals differ in the permitted addresses and in how a socket is made, which is an
//! argument. The policy is applied to the address that is connected to.

use crate::engine::connect::address_order;
use crate::engine::connect::happy_eyeballs::HappyEyeballs;
use crate::engine::host::{Host, Socket};
use crate::engine::resolver::{self, Failure, Outcome, QueryId};
use crate::proxy::RefuseReason;
use std::io;
use std::net::{IpAddr, SocketAddr};
use units::{Instant, Span};

/// The attempts to reach the server of one connection.
#[derive(Debug)]
pub(crate) struct ServerConnect {
    /// Query for its addresses, while it is not answered in full.
    query: Option<QueryId>,
    port: u16,
    race: HappyEyeballs,
    attempts: Vec<(SocketAddr, Socket)>,
    /// Time at which all attempts are abandoned.
    limit: Instant,
    /// Reason of the last failed attempt.
    reason: RefuseReason,
}

/// Result of a turn.
#[derive(Debug)]
pub(crate) enum Reached {
    /// Attempts are in progress or the name is being resolved; to be called again at this time.
    Pending(Instant),
    /// An attempt has succeeded.
    Connected(Socket),
    /// No address could be reached.
    Failed(RefuseReason),
}

impl ServerConnect {
    /// Attempts to reach a server on `port`, which time out after `patience`.
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

    /// Returns the query, which is to be cancelled if the attempts are abandoned.
    pub(crate) fn query(&self) -> Option<QueryId> {
        self.query
    }

    /// Whether the name is being resolved and no attempt has begun.
    pub(crate) fn is_resolving(&self) -> bool {
        self.query.is_some() && self.race.is_waiting()
    }

    /// Whether no attempt has begun.
    pub(crate) fn has_no_address(&self) -> bool {
        self.race.is_waiting()
    }

    /// Sets the only address of a server without a name.
    pub(crate) fn address(&mut self, now: Instant, address: SocketAddr) {
        // A single address needs no order.
        self.addresses(now, &[address]);
    }

    /// Sets all addresses of a server without a name, of which there may be none.
    pub(crate) fn addresses(&mut self, now: Instant, addresses: &[SocketAddr]) {
        self.race.on_addresses(now, addresses.iter().copied(), true, |_| ());
    }

    /// Sets the result of the name lookup, or its query.
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

    /// An answer to [`ServerConnect::query`].
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

    /// Checks the attempts and begins those that are due by `connect`, which returns a reason if an
    /// address is not permitted or no socket is available.
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

    /// Returns the first attempt that has succeeded, and removes those that have failed.
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
                // The event was of another socket or of another kind.
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

/// Returns the reason that a client is given for a failed attempt to connect.
pub(crate) fn reason_of(error: &io::Error) -> RefuseReason {
    match error.raw_os_error() {
        Some(libc::ECONNREFUSED | libc::ECONNRESET) => RefuseReason::ConnectionRefused,
        Some(libc::EHOSTUNREACH | libc::EHOSTDOWN) => RefuseReason::HostUnreachable,
        Some(libc::ENETUNREACH | libc::ENETDOWN | libc::EAFNOSUPPORT) => {
            RefuseReason::NetworkUnreachable
        }
        Some(libc::ETIMEDOUT) => RefuseReason::TimedOut,
        Some(libc::EACCES | libc::EPERM) => RefuseReason::Policy,
        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM | libc::EADDRNOTAVAIL) => {
            RefuseReason::Limit
        }
        Some(_) | None => RefuseReason::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_their_reasons() {
        let reason = |code| reason_of(&io::Error::from_raw_os_error(code));
        assert_eq!(reason(libc::ECONNREFUSED), RefuseReason::ConnectionRefused);
        assert_eq!(reason(libc::EHOSTUNREACH), RefuseReason::HostUnreachable);
        assert_eq!(reason(libc::ENETUNREACH), RefuseReason::NetworkUnreachable);
        assert_eq!(reason(libc::ETIMEDOUT), RefuseReason::TimedOut);
        assert_eq!(reason(libc::EMFILE), RefuseReason::Limit);
        assert_eq!(reason(libc::EADDRNOTAVAIL), RefuseReason::Limit, "no free port");
        assert_eq!(reason(libc::EIO), RefuseReason::Other);
    }
}
