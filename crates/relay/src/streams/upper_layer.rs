//! What the streams are to a session.

use super::Streams;
use xstp::Seq24;
use xstp::session::{NewPacket, UpperLayer};

impl UpperLayer for Streams {
    fn has_new_data(&self) -> bool {
        Self::has_fresh(self)
    }

    fn fill_new(&mut self, _number: Seq24, room: &mut [u8]) -> Option<NewPacket> {
        let (len, handle) = Self::fresh(self, room)?;
        Some(NewPacket { len, handle })
    }

    fn fill_retransmission(&mut self, _number: Seq24, handle: u64, room: &mut [u8]) -> usize {
        Self::again(self, handle, room)
    }

    fn on_acknowledged(&mut self, _number: Seq24, handle: u64) {
        Self::released(self, handle);
    }

    fn deliver(&mut self, _number: Seq24, payload: &[u8]) {
        Self::deliver(self, payload);
    }

    fn fill_note(&mut self, room: &mut [u8]) -> usize {
        Self::note(self, room)
    }

    fn on_note(&mut self, note: &[u8]) {
        Self::noted(self, note);
    }
}
