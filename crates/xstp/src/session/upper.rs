//! The layer above a session.

use crate::Seq24;

/// What the layer above put under a new number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled {
    /// Payload bytes written.
    pub len: usize,
    /// What the layer above wants to be told when this number is asked for again or released.
    pub handle: u64,
}

/// The layer above, lent to each call of a [`Session`](super::Session) that needs it.
///
/// A session stores no payload: it asks for it when it sends, and asks again when it must send
/// again.
pub trait Upper {
    /// Whether there is anything new to send.
    fn has_fresh(&self) -> bool;

    /// Writes what goes under the new number `number` into `room`; `None` when there is nothing
    /// (or nothing that fits).
    fn fresh(&mut self, number: Seq24, room: &mut [u8]) -> Option<Filled>;

    /// Writes what goes under `number` now that it is sent again: the same bytes, fewer, or
    /// none at all when they are not wanted any more. Returns how many.
    fn again(&mut self, number: Seq24, handle: u64, room: &mut [u8]) -> usize;

    /// The peer has this number: its payload can be forgotten.
    fn released(&mut self, number: Seq24, handle: u64);

    /// A packet's payload, once for each number, in the order of arrival.
    fn deliver(&mut self, number: Seq24, payload: &[u8]);

    /// Writes a note that rides in a STAT or POLL which is sent anyway; returns its length, or
    /// 0 for none. Notes may be lost; the latest one wins.
    fn note(&mut self, room: &mut [u8]) -> usize {
        let _ = room;
        0
    }

    /// A note of the peer's.
    fn noted(&mut self, note: &[u8]) {
        let _ = note;
    }
}
