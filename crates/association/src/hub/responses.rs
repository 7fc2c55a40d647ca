//! Responses of a hub to handshakes and to datagrams without an association.

use super::{Hub, PeerId};
use crate::batch::TransmitBatch;
use crate::checksum::{UNKNOWN_KEY, write_tag};
use crate::version;
use crate::wire::{Header, Kind, OVERHEAD};
use std::collections::VecDeque;
use std::net::SocketAddr;
use units::Instant;

/// Maximum number of queued responses of each priority.
const MAX_QUEUED: usize = 512;

/// Queued responses.
#[derive(Debug, Default)]
pub(super) struct ResponseQueue {
    /// Welcomes, which have priority.
    first: VecDeque<(SocketAddr, Vec<u8>)>,
    others: VecDeque<(SocketAddr, Vec<u8>)>,
}

impl ResponseQueue {
    pub(super) fn push_first(&mut self, to: SocketAddr, bytes: Vec<u8>) {
        if self.first.len() < MAX_QUEUED {
            self.first.push_back((to, bytes));
        }
    }

    pub(super) fn push(&mut self, to: SocketAddr, bytes: Vec<u8>) {
        if self.others.len() < MAX_QUEUED {
            self.others.push_back((to, bytes));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_empty() && self.others.is_empty()
    }

    /// Moves the next response to `batch`; returns its destination.
    pub(super) fn poll_transmit(&mut self, batch: &mut TransmitBatch<'_>) -> Option<SocketAddr> {
        let queue = if self.first.is_empty() { &mut self.others } else { &mut self.first };
        let len = queue.front()?.1.len();
        let slot = batch.slot(len).filter(|slot| slot.len() == len)?;
        let (to, bytes) = queue.pop_front()?;
        slot.copy_from_slice(&bytes);
        batch.commit(len);
        Some(to)
    }
}

impl Hub {
    /// Returns when the Welcome with the current keys of `peer` was created: at the first datagram
    /// of an association, its handshake has taken one RTT since then.
    pub fn welcomed_at(&mut self, peer: PeerId) -> Option<Instant> {
        self.table.current(peer).map(|channel| channel.made())
    }

    /// Responds to a datagram with an unknown index, within the limits of responses. An Unknown has
    /// 24 octets, the minimum size of a datagram.
    pub(super) fn answer_unknown(&mut self, now: Instant, from: SocketAddr, header: Header) {
        let known = self.acquainted.has(from.ip());
        if !self.unknowns.take(now, from, OVERHEAD, known) {
            self.counters.unknowns_withheld += 1;
            return;
        }
        let mut bytes = vec![0; OVERHEAD];
        Header { kind: Kind::Unknown, ..header }.encode(&mut bytes);
        write_tag(UNKNOWN_KEY, &mut bytes);
        self.counters.unknowns += 1;
        self.answers.push(from, bytes);
    }

    /// Responds to a datagram of another version with the supported versions, within the limits of
    /// responses.
    pub(super) fn answer_version(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        let Some(bytes) = version::answer(datagram) else { return };
        let known = self.acquainted.has(from.ip());
        if !self.unknowns.take(now, from, bytes.len(), known) {
            self.counters.unknowns_withheld += 1;
            return;
        }
        self.counters.versions += 1;
        self.answers.push(from, bytes);
    }
}
