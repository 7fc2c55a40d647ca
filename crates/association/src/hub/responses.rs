//! Responses of a hub to handshakes and to datagrams without an association.

use crate::batch::TransmitBatch;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Maximum number of queued responses of each priority.
const MAX_QUEUED: usize = 64;

/// Responses that are waiting to be sent.
#[derive(Debug, Default)]
pub(super) struct ResponseQueue {
    /// Welcomes, which precede all others.
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
