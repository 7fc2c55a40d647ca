//! Hostile packets on a proxy: a script of handshakes, segments with arbitrary fields, and
//! arbitrary octets.

use super::segment::{ACK, Bare, SYN, Segment};
use super::{PacketPep, PepConfig, Toward, Verdict};
use std::net::SocketAddr;
use units::{Instant, Span};

/// Memory of the proxy under test: small, so that scripts reach its limits.
const CONFIG: PepConfig =
    PepConfig { spoof: true, space_acks: true, flows: 6, flow_memory: 64 << 10, memory: 160 << 10 };

/// Appends options and payload to a packet without payload; options are padded with their end.
pub(crate) fn extend(packet: &mut Vec<u8>, options: &[u8], payload: &[u8]) {
    let tcp = if packet[0] >> 4 == 4 { 20 } else { 40 };
    packet.extend(options);
    while !(packet.len() - tcp).is_multiple_of(4) {
        packet.push(0);
    }
    packet[tcp + 12] = ((packet.len() - tcp) / 4) as u8 * 16;
    packet.extend(payload);
    super::segment::finish(packet, tcp);
}

/// The ends of connection `number`, of IPv4 or IPv6.
fn ends(number: u8) -> (SocketAddr, SocketAddr) {
    let port = 1_000 + u16::from(number);
    if number.is_multiple_of(2) {
        (([10, 1, 0, 2], port).into(), ([10, 3, 0, 2], 80).into())
    } else {
        (([0xfd00, 1, 0, 0, 0, 0, 0, 2], port).into(), ([0xfd00, 3, 0, 0, 0, 0, 0, 2], 80).into())
    }
}

/// Reads a script; octets after its end are zero.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn octet(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn half(&mut self) -> u16 {
        u16::from_be_bytes([self.octet(), self.octet()])
    }

    fn take(&mut self, most: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken.to_vec()
    }
}

/// The proxy and what its packets have to satisfy.
struct Subject {
    pep: PacketPep,
    now: Instant,
}

impl Subject {
    fn handle(&mut self, toward: Toward, mut packet: Vec<u8>) {
        let len = packet.len();
        let verdict = self.pep.handle(self.now, toward, &mut packet);
        assert_eq!(packet.len(), len);
        if verdict == Verdict::Taken {
            assert!(Segment::parse(&packet).is_some(), "taken without being a segment");
        }
        self.pep.check();
    }

    fn drain(&mut self, mut most: u8) {
        while let Some((_, packet)) = self.pep.poll_output(self.now, |_, _| most > 0) {
            most = most.saturating_sub(1);
            let segment = Segment::parse(&packet).expect("a segment was made");
            assert!(segment.is_intact(&packet));
        }
        self.pep.check();
    }
}

/// A segment with fields of the script, near the numbers at which the connection began.
fn segment(script: &mut Script<'_>, toward: Toward, number: u8, flags: u8) -> Vec<u8> {
    let (near, far) = ends(number);
    // Either end may have opened it.
    let (own, other) = if script.octet() & 1 == 0 { (1_001, 5_001) } else { (5_001, 1_001) };
    let (source, destination) = if toward == Toward::Far { (near, far) } else { (far, near) };
    let seq = u32::wrapping_add(own, u32::from(script.half())).wrapping_sub(16);
    let ack = u32::wrapping_add(other, u32::from(script.half())).wrapping_sub(16);
    let window = script.half();
    let timestamps = None;
    let mut packet =
        Bare { source, destination, seq, ack, flags, window, timestamps, sack: &[] }.build();
    let options = usize::from(script.octet() % 40);
    let options = script.take(options);
    let payload = vec![7; usize::from(script.octet()) * 6];
    extend(&mut packet, &options, &payload);
    packet
}

/// Plays a script of packets, output and time.
///
/// # Panics
/// If a packet that was made is no valid segment, or memory, windows or the number of connections
/// exceed their bounds.
pub fn packets(script: &[u8]) {
    let mut script = Script(script);
    let mut subject = Subject { pep: PacketPep::new(CONFIG), now: Instant::ZERO };
    while !script.0.is_empty() {
        let code = script.octet();
        let number = script.octet() % 9;
        let toward = if code & 8 == 0 { Toward::Far } else { Toward::Near };
        match code % 8 {
            0 => {
                for (flags, toward, seq, ack) in [
                    (SYN, toward, 1_000, 0),
                    (SYN | ACK, toward.reverse(), 5_000, 1_001),
                    (ACK, toward, 1_001, 5_001),
                ] {
                    let (near, far) = ends(number);
                    let (source, destination) =
                        if toward == Toward::Far { (near, far) } else { (far, near) };
                    let bare = Bare {
                        source,
                        destination,
                        seq,
                        ack,
                        flags,
                        window: script.half(),
                        timestamps: None,
                        sack: &[],
                    };
                    let mut packet = bare.build();
                    let options: &[u8] = if code & 16 == 0 { &[3, 3, 2, 4, 2] } else { &[] };
                    extend(&mut packet, if flags == ACK { &[] } else { options }, &[]);
                    subject.handle(toward, packet);
                }
            }
            1..=3 => {
                let packet = segment(&mut script, toward, number, ACK);
                subject.handle(toward, packet);
            }
            4 => {
                let flags = script.octet();
                let packet = segment(&mut script, toward, number, flags);
                subject.handle(toward, packet);
            }
            5 => {
                let length = usize::from(script.octet());
                let octets = script.take(length);
                subject.handle(toward, octets);
            }
            6 => subject.drain(number),
            _ => {
                subject.now += Span::from_millis(10) * u64::from(script.half());
                subject.pep.handle_timeout(subject.now);
                subject.pep.check();
            }
        }
    }
    subject.drain(255);
}

/// A pure acknowledgement of `ack`, with SACK blocks.
#[cfg(test)]
pub(crate) fn acknowledgement(
    source: SocketAddr,
    destination: SocketAddr,
    ack: u32,
    sack: &[(u32, u32)],
) -> Vec<u8> {
    let (seq, flags, window, timestamps) = (7, ACK, 500, None);
    Bare { source, destination, seq, ack, flags, window, timestamps, sack }.build()
}
