//! Interception of XSTP connections.

use super::{Xstp, XstpStream};
use crate::host::{Interceptor, StreamAddresses};
use crate::network::{Packet, Protocol};
use units::Instant;
use xstp::session::State;
use xstp::wire::{Kinds, PROTOCOL_NUMBER};

/// A peer's END that is hidden from the session until it may be acknowledged. If that takes longer
/// than the peer's timeout, the peer aborts the stream; a truncated stream never ends in order.
#[derive(Debug, Default)]
pub(super) struct HeldFin {
    segment: Vec<u8>,
    came: bool,
    let_go: bool,
}

impl HeldFin {
    /// Stores `segment` if it is an END; returns whether it was.
    pub(super) fn hold(&mut self, segment: &[u8]) -> bool {
        let kinds = kinds(segment);
        let is_end = kinds.contains(Kinds::END) && !kinds.contains(Kinds::AK);
        if !is_end || self.let_go {
            return false;
        }
        self.came = true;
        self.segment.clear();
        self.segment.extend_from_slice(segment);
        true
    }

    pub(super) fn is_held(&self) -> bool {
        self.came
    }

    /// Returns the END once; from then on none is held.
    fn release(&mut self) -> Option<Vec<u8>> {
        let first = !core::mem::replace(&mut self.let_go, true);
        (first && self.came).then(|| core::mem::take(&mut self.segment))
    }
}

/// The kinds of a published segment: its fifth octet.
fn kinds(segment: &[u8]) -> Kinds {
    segment.get(4).and_then(|&bits| Kinds::from_bits(bits)).unwrap_or(Kinds::SD)
}

pub(super) fn is_xstp(packet: &Packet) -> bool {
    packet.protocol == Protocol::Ip(PROTOCOL_NUMBER) && packet.segment().is_none()
}

/// Whether `packet` opens a connection.
pub(super) fn begins(packet: &Packet) -> bool {
    let kinds = kinds(packet.bytes());
    is_xstp(packet) && kinds.contains(Kinds::BGN) && !kinds.contains(Kinds::AK)
}

impl Interceptor for Xstp {
    fn opens(&self, packet: &Packet) -> bool {
        begins(packet)
    }

    fn stream_of(&self, packet: &Packet) -> Option<XstpStream> {
        let &place = self.by_peer.get(&(packet.from, packet.to))?;
        self.slots[place as usize].as_ref().map(|slot| slot.id)
    }

    fn ends(&self, stream: XstpStream) -> Option<StreamAddresses> {
        let slot = self.slot(stream)?;
        let (client, server) =
            if slot.passive { (slot.remote, slot.local) } else { (slot.local, slot.remote) };
        Some(StreamAddresses { client, server })
    }

    fn open_between(&mut self, now: Instant, ends: StreamAddresses) -> XstpStream {
        self.connect(now, ends.client, ends.server)
    }

    fn reset(&mut self, now: Instant, stream: XstpStream) {
        self.abort(now, stream);
    }

    fn is_confirmed(&self, stream: XstpStream) -> bool {
        self.slot(stream).is_none_or(|slot| match slot.connection.session().state() {
            State::HalfClosedLocal | State::Closed => true,
            State::Listening
            | State::Opening
            | State::Established
            | State::Closing
            | State::HalfClosedRemote
            | State::LastClosing => false,
        })
    }

    fn confirm(&mut self, now: Instant, stream: XstpStream) {
        let Some(slot) = self.slot_mut(stream) else { return };
        if let Some(end) = slot.end.release() {
            // It was valid when it arrived.
            let handled = slot.connection.handle_segment(now, &end);
            self.bad += u64::from(handled.is_err());
            self.note(stream.slot, now);
            self.wake(stream.slot);
        }
    }

    fn held(&self, stream: XstpStream) -> u64 {
        self.slot(stream).map_or(0, |slot| slot.connection.stored_bytes() as u64)
    }
}
