//! Accepting clients and connecting to their servers.

use super::Single;
use super::pair::Pair;
use crate::SourceMode;
use crate::engine::accept::listener::Accepted;
use crate::engine::connect::server_connect::reason_of;
use crate::engine::connect::source_addresses::is_out_of_ports;
use crate::engine::host::{Close, LocalAddress, Socket};
use crate::engine::limits::rates::QuotaOwner;
use crate::engine::limits::slots::reserve::is_out_of_descriptors;
use crate::engine::limits::slots::{Full, Owner, RECLAIMED};
use crate::engine::transfer::socket_pair::Side;
use crate::intercept;
use crate::proxy::RefuseReason;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use units::{Instant, Span};

/// Maximum number of clients that are accepted in one round.
const ACCEPT_BUDGET: usize = 64;
/// Length of a pause for lack of descriptors.
const ACCEPT_PAUSE: Span = Span::from_millis(200);

impl Single {
    /// Accepts pending clients; true when more are pending.
    pub(super) fn accept(&mut self, now: Instant) -> bool {
        if self.accept_again.is_some_and(|again| now < again) {
            return false;
        }
        self.accept_again = None;
        let mut budget = ACCEPT_BUDGET;
        for number in 0..self.listeners.len() {
            while self.listeners[number].listener.may_accept() {
                if budget == 0 {
                    return true;
                }
                budget -= 1;
                match self.listeners[number].listener.accept() {
                    Accepted::Client(stream, client) => {
                        self.accept_client(now, number, stream, client);
                        self.slots.restore_reserve();
                    }
                    Accepted::Empty => {}
                    Accepted::Exhausted(error) => {
                        if is_out_of_descriptors(&error) && self.slots.descriptors_ran_out(now) {
                            continue;
                        }
                        tracing::debug!(%error, "accepting paused: no descriptors");
                        self.counters.accept_pauses += 1;
                        self.accept_again = Some(now + ACCEPT_PAUSE);
                        return false;
                    }
                }
            }
        }
        false
    }

    /// There may be room again: a pause ends with the next round, which is due at once.
    pub(super) fn end_accept_pause(&mut self) {
        self.accept_again = self.accept_again.map(|_| self.now);
    }

    fn accept_client(&mut self, now: Instant, number: usize, client: Socket, from: SocketAddr) {
        self.counters.accepted += 1;
        let facing = &self.listeners[number];
        let local = client.local_address().ok();
        let server =
            local.and_then(|local| intercept::original_destination(local, facing.listener.address));
        let Some(server) = server else {
            tracing::info!(client = %from, "connection to the transparent port rejected: not intercepted");
            self.counters.not_intercepted += 1;
            client.close(Close::Reset);
            return;
        };
        let satellite = if facing.clients { Side::Client } else { Side::Server };
        let Some(owner) = self.admit(now, from) else {
            self.counters.refused(RefuseReason::Limit);
            client.close(Close::Reset);
            return;
        };
        let onward =
            client.prepare(&self.limits).and_then(|()| self.connect(from, server, satellite));
        let onward = match onward {
            Ok(onward) => onward,
            Err(error) => {
                tracing::debug!(client = %from, %server, %error, "not connected");
                if is_out_of_descriptors(&error) {
                    self.slots.descriptors_ran_out(now);
                    self.counters.limited("descriptors");
                } else if is_out_of_ports(&error) {
                    self.counters.limited("ports");
                }
                self.counters.refused(reason_of(&error));
                client.close(Close::Reset);
                return;
            }
        };
        let mut pair = Pair::new(client, onward, (from, server), satellite, now);
        self.last_number += 1;
        pair.number = self.last_number;
        let index = self.pairs.insert(pair);
        self.slots.table.occupy(now, owner, index);
        self.counters.peak_connections =
            self.counters.peak_connections.max(self.pairs.len() as u64);
        if let Err(error) = self.register(index) {
            tracing::warn!(client = %from, %error, "client socket not watched, connection reset");
            self.remove(index).reset();
            return;
        }
        self.set_due(index, Some(now + self.limits.connect));
    }

    /// Returns the slot owner if the client may have one more connection. The slot of another
    /// client's idle connection may be reclaimed for it.
    fn admit(&mut self, now: Instant, client: SocketAddr) -> Option<Owner<Arc<str>>> {
        let owner = self.slots.owner(&self.group, client.ip());
        let terms = self.limits.client.terms();
        let quota_owner = QuotaOwner::Client(owner.client);
        let what = if !self.quotas.has_token(now, &quota_owner, &terms) {
            "client_rate"
        } else {
            match self.slots.admit(now, &owner, (usize::MAX, terms.connections as usize)) {
                Ok(reclaimed) => {
                    self.quotas.take(now, &quota_owner, &terms);
                    if let Some(index) = reclaimed {
                        self.counters.reclaimed += 1;
                        self.pairs[index].cause = RECLAIMED;
                        self.remove(index).reset();
                    }
                    return Some(owner);
                }
                Err(Full::Client) => "client_connections",
                Err(Full::Table | Full::Group) => "connections",
            }
        };
        self.counters.limited(what);
        self.slots.refused(now, &owner, what);
        None
    }

    /// Starts connecting to the server.
    fn connect(
        &mut self,
        client: SocketAddr,
        server: SocketAddr,
        satellite: Side,
    ) -> io::Result<Socket> {
        let local = match self.source {
            SourceMode::Client => LocalAddress::Client(client),
            SourceMode::Own => LocalAddress::Any,
        };
        let tuning = &self.tuning;
        let socket = self.kernel.connect_tuned(local, server, &|socket| match satellite {
            Side::Server => tuning.apply(&socket),
            Side::Client => Ok(()),
        })?;
        // The server may have answered before this gateway has noticed: a process that is killed then
        // must not pass for the end of the data.
        socket.prepare(&self.limits)?;
        Ok(socket)
    }
}
