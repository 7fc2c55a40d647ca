//! What a hub has to say to those who are not in an association.

use crate::TransmitBatch;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Answers of a kind that wait to be sent; more are not worth keeping.
const MOST: usize = 64;

/// Answers that wait to be sent.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// Welcomes: no flood of others keeps them back.
    first: VecDeque<(SocketAddr, Vec<u8>)>,
    others: VecDeque<(SocketAddr, Vec<u8>)>,
}

impl Answers {
    pub(super) fn push_first(&mut self, to: SocketAddr, bytes: Vec<u8>) {
        if self.first.len() < MOST {
            self.first.push_back((to, bytes));
        }
    }

    pub(super) fn push(&mut self, to: SocketAddr, bytes: Vec<u8>) {
        if self.others.len() < MOST {
            self.others.push_back((to, bytes));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_empty() && self.others.is_empty()
    }

    /// Puts the next one into `batch`; returns where it goes.
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
