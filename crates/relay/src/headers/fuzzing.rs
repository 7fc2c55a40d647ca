//! Properties of header compression that hold for any packets and any frames, and packets to try it
//! with.

use super::ContextUse;
use super::layout::Layout;
use crate::datagram::{Answer, Datagrams, Filled};
use crate::frame::{Frame, Reader, Writer};
use crate::{Owner, headers::Profile};
use units::{BitRate, Instant};

/// Rate of the path in these scripts.
const RATE: Option<BitRate> = Some(BitRate::from_mbps(100));

/// A packet of the session on its way.
struct Flight {
    payload: Vec<u8>,
    packet: Vec<u8>,
    carried: Option<ContextUse>,
    is_delivered: bool,
}

/// Two ends that forward packets, and the packets between them.
pub(super) struct Pair {
    sender: Datagrams,
    receiver: Datagrams,
    flying: Vec<Flight>,
    answers: Vec<Answer>,
    /// Octets of all payloads.
    pub(super) octets: usize,
}

impl Pair {
    pub(super) fn new(compresses: bool) -> Self {
        let mut sender = Datagrams::new(false, compresses);
        sender.permit_compression(true);
        let receiver = Datagrams::new(false, false);
        Self { sender, receiver, flying: Vec::new(), answers: Vec::new(), octets: 0 }
    }

    #[cfg(test)]
    pub(super) fn sender(&mut self) -> &mut Datagrams {
        &mut self.sender
    }

    /// Sends a packet in a payload of its own.
    pub(super) fn send(&mut self, packet: &[u8]) {
        let pushed = self.sender.push(Instant::ZERO, packet, RATE, (Owner::default(), None));
        let Some((_, flow)) = pushed else { return };
        let mut room = [0; 1_500];
        let mut writer = Writer::new(&mut room);
        let filled = self.sender.fill(Instant::ZERO, flow, RATE, &mut writer, (true, false));
        let carried = match filled {
            Filled::SentIn(carried) => Some(carried),
            Filled::Sent => None,
            Filled::Idle | Filled::NoRoom => panic!("{filled:?} with {} bytes", packet.len()),
        };
        let written = writer.written();
        let _ = self.sender.finish_turn(Instant::ZERO, flow);
        let payload = room[..written].to_vec();
        self.octets += written;
        self.flying.push(Flight { payload, packet: packet.to_vec(), carried, is_delivered: false });
    }

    /// Delivers a payload, unless it was: its packet is received as it was sent.
    pub(super) fn deliver(&mut self, at: usize) {
        let Some(flight) = self.flying.get_mut(at) else { return };
        if !core::mem::replace(&mut flight.is_delivered, true) {
            self.answers.extend(take(&mut self.receiver, &flight.payload));
            assert_eq!(self.receiver.take().as_ref(), Some(&flight.packet));
        }
    }

    /// The sender takes a payload for lost. The payload may still arrive.
    pub(super) fn lose(&mut self, at: usize) {
        if let Some(flight) = self.flying.get_mut(at) {
            flight.carried = flight.carried.map(|carried| self.sender.context_lost(carried));
        }
    }

    /// The sender learns that a payload has arrived, or that its retransmission without content has.
    pub(super) fn acknowledge(&mut self, at: usize) {
        if at >= self.flying.len() {
            return;
        }
        if !self.flying[at].is_delivered {
            self.lose(at);
        }
        if let Some(carried) = self.flying.remove(at).carried {
            self.sender.context_released(carried);
        }
    }

    /// The sender has the answers of the receiver.
    pub(super) fn answer(&mut self) {
        for answer in self.answers.drain(..) {
            match answer {
                Answer::Contexts => self.sender.receive_contexts(Datagrams::contexts()),
                Answer::Invalid(context) => {
                    self.sender.receive_invalid(context);
                    self.receiver.refusal_known(context);
                }
            }
        }
    }

    pub(super) fn in_flight(&self) -> usize {
        self.flying.len()
    }

    /// Everything that was sent so far has arrived, and the sender knows.
    pub(super) fn settle(&mut self) {
        while !self.flying.is_empty() {
            self.deliver(0);
            self.acknowledge(0);
        }
        self.answer();
    }
}

/// Passes a payload to a receiver; returns its answers.
pub(super) fn take(receiver: &mut Datagrams, payload: &[u8]) -> Vec<Answer> {
    let mut reader = Reader::new(payload);
    let mut answers = Vec::new();
    while !reader.is_empty() {
        let definition = receiver.take_definition();
        match (reader.frame(), definition) {
            (Ok(Frame::Datagram { packet }), Some(definition)) => {
                answers.extend(receiver.receive_defining(Instant::ZERO, definition, packet));
            }
            (Ok(Frame::Datagram { packet }), None) => {
                receiver.receive(Instant::ZERO, packet.to_vec());
            }
            (Ok(Frame::Define { context, rule }), _) => receiver.receive_define(context, rule),
            (Ok(Frame::Compressed { content }), _) => {
                answers.extend(receiver.receive_compressed(Instant::ZERO, content));
            }
            (Ok(Frame::Contexts { contexts }), _) => receiver.receive_contexts(contexts),
            (Ok(Frame::Invalid { context }), _) => receiver.receive_invalid(context),
            (Ok(_), _) => {}
            (Err(_), _) => break,
        }
    }
    let _ = receiver.take_definition();
    answers
}

/// Fields of a packet with UDP, and with RTP if `ssrc` is given.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fields {
    pub(crate) v6: bool,
    pub(crate) port: u16,
    pub(crate) id: u16,
    pub(crate) service: u8,
    pub(crate) ssrc: Option<u32>,
    pub(crate) number: u16,
    pub(crate) timestamp: u32,
    pub(crate) marker: bool,
    pub(crate) no_checksum: bool,
}

/// Makes a packet with right lengths and checksums.
pub(crate) fn packet(fields: Fields, payload: &[u8]) -> Vec<u8> {
    let layout = Layout { v6: fields.v6, profile: Profile::Udp };
    let mut packet = if fields.v6 {
        let mut header = vec![0x60, 0, 0, 0, 0, 0, 17, 64];
        header.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        header.extend([0x20, 1, 0xd, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        header
    } else {
        let [a, b] = fields.id.to_be_bytes();
        vec![0x45, 0, 0, 0, a, b, 0x40, 0, 64, 17, 0, 0, 10, 1, 0, 2, 10, 3, 0, 2]
    };
    layout.set_service(&mut packet, fields.service);
    packet.extend_from_slice(&fields.port.to_be_bytes());
    packet.extend([0x13, 0x8c, 0, 0, 0, 0]);
    if let Some(ssrc) = fields.ssrc {
        packet.extend([0x80, 18 | u8::from(fields.marker) << 7]);
        packet.extend_from_slice(&fields.number.to_be_bytes());
        packet.extend_from_slice(&fields.timestamp.to_be_bytes());
        packet.extend_from_slice(&ssrc.to_be_bytes());
    }
    packet.extend_from_slice(payload);
    layout.seal(&mut packet);
    if !fields.no_checksum {
        let at = layout.ip_len() + 6;
        let sum = layout.right_udp_checksum(&packet);
        packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
    packet
}

/// Plays a script of packets of several flows, with loss, reordering and late answers, to two ends
/// with header compression; then `script` itself, as a payload of frames, to both.
///
/// # Panics
/// Panics if a packet that arrives is not the one that was sent.
pub fn headers(script: &[u8]) {
    let mut pair = Pair::new(true);
    let mut flows: [Fields; 8] = core::array::from_fn(|at| Fields {
        v6: at & 1 != 0,
        port: 4_000 + at as u16 / 4,
        ssrc: (at & 2 != 0).then_some(7),
        no_checksum: at == 4,
        ..Fields::default()
    });
    for step in script.chunks_exact(3) {
        let [kind, a, b] = [step[0], step[1], step[2]];
        let at = usize::from(a) % pair.in_flight().max(1);
        match kind % 16 {
            0 => pair.lose(at),
            1 => pair.answer(),
            2 | 3 => pair.acknowledge(at),
            4..=6 => pair.deliver(at),
            7 => pair.settle(),
            _ => {
                let fields = &mut flows[usize::from(a & 7)];
                fields.number = fields.number.wrapping_add(u16::from(kind >> 4 & 1) + 1);
                fields.timestamp = fields.timestamp.wrapping_add(160 << (b & 7));
                fields.id = fields.id.wrapping_add(u16::from(kind >> 5) * u16::from(b >> 4));
                fields.service = b & 0x10;
                fields.marker = b & 0x20 != 0;
                let mut packet = packet(*fields, &step[1..]);
                // Some are damaged.
                if b == 0xff {
                    let at = usize::from(a) % packet.len();
                    packet[at] ^= kind;
                }
                pair.send(&packet);
            }
        }
        if pair.in_flight() > 200 {
            pair.settle();
        }
    }
    pair.settle();
    for end in [&mut pair.sender, &mut pair.receiver] {
        let _ = take(end, script);
        while end.take().is_some() {}
    }
}
