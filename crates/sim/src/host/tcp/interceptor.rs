//! Interception of TCP connections.

use super::{Tcp, TcpId};
use crate::host::{Interceptor, StreamAddresses};
use crate::network::{Packet, Payload};
use simtcp::{Segment, State};
use units::Instant;

/// A peer's FIN that is hidden from the endpoint until it may be acknowledged.
#[derive(Debug, Default)]
pub(super) struct HeldFin {
    held: Option<Segment>,
    let_go: bool,
}

impl HeldFin {
    /// Returns `segment` without its FIN, which is stored.
    pub(super) fn hold(&mut self, mut segment: Segment) -> Segment {
        if self.let_go || segment.flags.reset {
            return segment;
        }
        if segment.flags.fin {
            let mut fin = segment;
            fin.sequence += u64::from(segment.payload.len) + u64::from(segment.flags.syn);
            fin.flags.syn = false;
            fin.payload.offset += u64::from(segment.payload.len);
            fin.payload.len = 0;
            self.held.get_or_insert(fin);
            segment.flags.fin = false;
        }
        if let Some(fin) = &mut self.held
            && segment.acknowledgement >= fin.acknowledgement
        {
            // Its acknowledgement of the other direction is kept current.
            fin.acknowledgement = segment.acknowledgement;
            fin.window = segment.window;
            fin.options.timestamps = segment.options.timestamps;
        }
        segment
    }

    /// The length of the peer's stream, once it has ended.
    pub(super) fn at(&self) -> Option<u64> {
        self.held.as_ref().map(|fin| fin.sequence - 1)
    }

    /// Returns the FIN once; from then on none is held.
    fn release(&mut self) -> Option<Segment> {
        let first = !core::mem::replace(&mut self.let_go, true);
        self.held.filter(|_| first)
    }
}

impl Interceptor for Tcp {
    /// Segments without payload octets are not intercepted.
    fn opens(&self, packet: &Packet) -> bool {
        match &packet.payload {
            Payload::Stream(segment, _) => segment.flags.syn && segment.acknowledgement.is_none(),
            Payload::Bytes(_) | Payload::Tcp(_) => false,
        }
    }

    fn stream_of(&self, packet: &Packet) -> Option<TcpId> {
        packet.segment()?;
        let &place = self.by_peer.get(&(packet.from, packet.to))?;
        self.slots[place as usize].as_ref().map(|slot| slot.id)
    }

    fn ends(&self, stream: TcpId) -> Option<StreamAddresses> {
        let slot = self.slot(stream)?;
        let (client, server) =
            if slot.passive { (slot.remote, slot.local) } else { (slot.local, slot.remote) };
        Some(StreamAddresses { client, server })
    }

    fn open_between(&mut self, _: Instant, ends: StreamAddresses) -> TcpId {
        self.connect(ends.client, ends.server)
    }

    fn reset(&mut self, _: Instant, stream: TcpId) {
        self.abort(stream);
    }

    fn is_confirmed(&self, stream: TcpId) -> bool {
        self.slot(stream).is_none_or(|slot| match slot.stream.endpoint.state() {
            State::FinWait2 | State::TimeWait | State::Closed => true,
            State::Listen
            | State::SynSent
            | State::SynReceived
            | State::Established
            | State::FinWait1
            | State::CloseWait
            | State::Closing
            | State::LastAck => false,
        })
    }

    fn confirm(&mut self, now: Instant, stream: TcpId) {
        let Some(slot) = self.slot_mut(stream) else { return };
        if let Some(fin) = slot.end.release() {
            slot.stream.handle(now, &fin, &[]);
            self.note(stream.slot);
            self.wake(stream.slot);
        }
    }

    fn held(&self, stream: TcpId) -> u64 {
        self.slot(stream).map_or(0, |slot| slot.stream.held())
    }
}
