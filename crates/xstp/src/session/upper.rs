//! Interface of the layer above a session.

use crate::seq::Seq24;

/// Payload of a new packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewPacket {
    /// Payload octets written.
    pub len: usize,
    /// Value that the session hands back when the packet is retransmitted or acknowledged.
    pub handle: u64,
}

/// The layer above, lent to each call of a [`Session`](super::Session) that needs it.
///
/// A session stores no payload. It requests the payload of a packet for its first transmission,
/// and again for each retransmission.
pub trait UpperLayer {
    /// Whether there is new data to send.
    fn has_new_data(&self) -> bool;

    /// Whether the next new packet may precede retransmissions (XSTP-7.2.2).
    fn has_urgent_data(&self) -> bool {
        false
    }

    /// Writes the payload of the new packet `number` into `room`; returns `None` if there is no
    /// data, or none that fits.
    fn fill_new(&mut self, number: Seq24, room: &mut [u8]) -> Option<NewPacket>;

    /// Whether packets of padding can be sent.
    fn accepts_padding(&self) -> bool {
        false
    }

    /// Fills `room` with padding, which the peer discards, as the payload of a new packet.
    fn fill_padding(&mut self, room: &mut [u8]) -> Option<NewPacket> {
        let _ = room;
        None
    }

    /// Writes the payload for a retransmission of packet `number` into `room` and returns its
    /// length. The payload may be shorter than before, or empty if it is no longer needed.
    fn fill_retransmission(&mut self, number: Seq24, handle: u64, room: &mut [u8]) -> usize;

    /// The peer has received packet `number`: its payload can be released.
    fn on_acknowledged(&mut self, number: Seq24, handle: u64);

    /// Receives the payload of packet `number`, once per packet, in the order of arrival.
    fn deliver(&mut self, number: Seq24, payload: &[u8]);

    /// Writes a note that is sent with the next STAT or POLL; returns its length, or 0 for no
    /// note. Notes may be lost; a later one replaces an earlier one.
    fn fill_note(&mut self, room: &mut [u8]) -> usize {
        let _ = room;
        0
    }

    /// Receives a note of the peer.
    fn on_note(&mut self, note: &[u8]) {
        let _ = note;
    }
}
