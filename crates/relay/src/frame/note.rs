//! Encoding of notes, and of streams as single numbers (RLY-1.9).

use super::{CREDIT_UNIT, Writer, varint_len};
use crate::target::StreamId;

impl Writer<'_> {
    /// Adds an entry to a note if it fits: a stream's limit, or the returned shared credit.
    pub(crate) fn note(&mut self, id: Option<StreamId>, value: u64) -> bool {
        let key = note_key(id);
        let value = value / CREDIT_UNIT;
        if varint_len(key) + varint_len(value) > self.left() {
            return false;
        }
        self.varint(key);
        self.varint(value);
        true
    }
}

/// Returns the number of a stream in which the side that opened it is one bit.
pub(super) fn stream_key(id: StreamId) -> u64 {
    u64::from(id.number()) << 1 | u64::from(id.opened_by_hub())
}

fn note_key(id: Option<StreamId>) -> u64 {
    id.map_or(0, |id| stream_key(id) + 1)
}
