//! Packets in the emulated link.

use crate::packet::headers;
use satlink::Frame;

/// A packet in the link, with the data needed to forward it.
#[derive(Clone, Debug)]
pub(super) struct Carried {
    pub(super) bytes: Vec<u8>,
    pub(super) envelope: Envelope,
    /// Its length at the network layer.
    len: usize,
    flow: u64,
}

/// The context of the octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Envelope {
    /// The bytes are a whole Ethernet frame.
    Ethernet,
    /// The bytes are the payload of a datagram.
    Datagram {
        /// The client of the relay.
        client: ClientId,
        /// The IP type of service or traffic class.
        traffic_class: u8,
    },
}

/// A client of the UDP relay: its slot, and how often the slot was reused, so that packets in
/// flight to an earlier client are not delivered to a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClientId {
    pub(super) place: u32,
    pub(super) turn: u32,
}

impl Carried {
    /// A whole Ethernet frame.
    pub(super) fn ethernet(frame: Vec<u8>) -> Self {
        let (len, flow) = (headers::network_len(&frame), headers::frame_flow(&frame));
        Self { bytes: frame, envelope: Envelope::Ethernet, len, flow }
    }

    /// A datagram's payload; its headers have `overhead` bytes.
    pub(super) fn datagram(
        payload: Vec<u8>,
        overhead: usize,
        client: ClientId,
        traffic_class: u8,
    ) -> Self {
        let len = payload.len() + overhead;
        let flow = u64::from(client.place) << 32 | u64::from(client.turn);
        Self { bytes: payload, envelope: Envelope::Datagram { client, traffic_class }, len, flow }
    }
}

impl Frame for Carried {
    fn len(&self) -> usize {
        self.len
    }

    fn flow(&self) -> u64 {
        self.flow
    }

    fn mark(&mut self) -> bool {
        match &mut self.envelope {
            Envelope::Ethernet => headers::mark_frame(&mut self.bytes),
            Envelope::Datagram { traffic_class, .. } => {
                let capable = *traffic_class & 3 != 0;
                *traffic_class |= if capable { 3 } else { 0 };
                capable
            }
        }
    }

    fn is_l4s(&self) -> bool {
        let field = match &self.envelope {
            Envelope::Ethernet => headers::frame_ecn(&self.bytes),
            Envelope::Datagram { traffic_class, .. } => *traffic_class & 3,
        };
        field & 1 == 1
    }
}
