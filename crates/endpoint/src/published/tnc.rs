//! Segments on packet radio: IPv4 packets in AX.25 UI frames, through a TNC.

use super::Peer;
use super::carrier::Deliver;
use super::line::{Line, OpenLine};
use satlink::tnc::ax25::{CallSign, MAX_REPEATERS, PROTOCOL_IPV4, UiFrame};
use satlink::tnc::kiss::{self, Command, Decoder, Parameters};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::OwnedFd;
use std::str::FromStr;
use xstp::wire::ipv4::{self, MAX_HOPS, Packets};

/// Maximum length of a frame from a TNC: addresses of ten stations, and 2048 octets, of which
/// TNCs send fewer.
const MAX_FRAME: usize = 10 * 7 + 2 + 2048;
/// Reads of one round, so that other threads reach the state.
const READS: usize = 16;
/// Maximum number of peers for which the identification of the next packet is stored.
const MAX_PEERS: usize = 256;

/// A station: its call sign and its IPv4 address.
///
/// In text `M0ABC-1`, or `M0ABC-1@44.131.0.1` if the address is not the one that follows from the
/// call sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Station {
    /// Call sign.
    pub call: CallSign,
    /// IPv4 address.
    pub address: Ipv4Addr,
}

impl Station {
    /// Returns the station `call` with the link-local address that follows from its call sign
    /// (RAD-2.1): 169.254.x.y, by the hash FNV-1a of its seven octets.
    pub fn new(call: CallSign) -> Self {
        let hash = call.octets().into_iter().fold(0x811c_9dc5_u32, |hash, octet| {
            (hash ^ u32::from(octet)).wrapping_mul(0x0100_0193)
        });
        // RFC 3927, section 2.1: the first and the last 256 addresses are reserved.
        let host = 256 + hash % (254 * 256);
        Self { call, address: Ipv4Addr::from_bits(0xa9fe_0000 | host) }
    }
}

/// Text that is no station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationError;

impl fmt::Display for StationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a call sign such as M0ABC-1, or M0ABC-1@44.131.0.1")
    }
}

impl std::error::Error for StationError {}

impl FromStr for Station {
    type Err = StationError;

    fn from_str(text: &str) -> Result<Self, StationError> {
        let (call, address) = match text.split_once('@') {
            Some((call, address)) => (call, Some(address.parse().map_err(|_| StationError)?)),
            None => (text, None),
        };
        let station = Self::new(call.parse().map_err(|_| StationError)?);
        Ok(Self { address: address.unwrap_or(station.address), ..station })
    }
}

/// A TNC, and the station that uses it.
#[derive(Clone, Debug)]
pub struct Tnc {
    /// Where it is.
    pub line: Line,
    /// Port of the TNC, 0 to 15.
    pub port: u8,
    /// Channel access, as far as it is to be set.
    pub parameters: Parameters,
    /// The own station.
    pub station: Station,
    /// Repeaters of the frames that are sent, at most 8.
    pub repeaters: Vec<CallSign>,
    /// Loose source route of the packets that are sent, at most 9 addresses.
    pub route: Vec<Ipv4Addr>,
}

impl Tnc {
    /// Returns the TNC at `line` with its port 0 and its own parameters.
    pub fn new(line: Line, station: Station) -> Self {
        Self {
            line,
            port: 0,
            parameters: Parameters::default(),
            station,
            repeaters: Vec::new(),
            route: Vec::new(),
        }
    }
}

/// An open line to a TNC.
#[derive(Debug)]
pub(super) struct TncLink {
    line: OpenLine,
    tnc: Tnc,
    decoder: Decoder,
    /// Octets for the line.
    unwritten: Vec<u8>,
    packets: BTreeMap<Ipv4Addr, Packets>,
    refused: u64,
}

impl TncLink {
    pub(super) fn open(tnc: &Tnc) -> io::Result<Self> {
        assert!(tnc.port <= kiss::MAX_PORT, "a port of a TNC is at most {}", kiss::MAX_PORT);
        assert!(tnc.repeaters.len() <= MAX_REPEATERS, "at most {MAX_REPEATERS} repeaters");
        assert!(tnc.route.len() <= MAX_HOPS, "at most {MAX_HOPS} addresses in a route");
        let mut unwritten = Vec::new();
        tnc.parameters.encode(tnc.port, &mut unwritten);
        Ok(Self {
            line: OpenLine::open(&tnc.line)?,
            tnc: tnc.clone(),
            decoder: Decoder::new(MAX_FRAME),
            unwritten,
            packets: BTreeMap::new(),
            refused: 0,
        })
    }

    pub(super) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.line.descriptor()
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused + self.decoder.refused()
    }

    pub(super) fn receive(
        &mut self,
        buffer: &mut [u8],
        deliver: &mut Deliver<'_>,
    ) -> io::Result<()> {
        for _ in 0..READS {
            let Some(len) = self.line.read(buffer)? else { return Ok(()) };
            let mut rest = &buffer[..len];
            while let Some(frame) = self.decoder.next(&mut rest) {
                if (frame.port, frame.command) != (self.tnc.port, Ok(Command::Data)) {
                    self.refused += 1;
                    continue;
                }
                match read_frame(frame.content, self.tnc.station) {
                    Found::Segment(peer, segment) => deliver(peer, segment),
                    Found::Other => {}
                    Found::Malformed => self.refused += 1,
                }
            }
        }
        Ok(())
    }

    /// Writes queued octets to the line; returns whether some remain queued.
    pub(super) fn is_full(&mut self) -> io::Result<bool> {
        if !self.unwritten.is_empty() {
            let written = self.line.write(&self.unwritten)?;
            self.unwritten.drain(..written);
        }
        Ok(!self.unwritten.is_empty())
    }

    pub(super) fn send(&mut self, peer: Peer, segment: &[u8]) -> io::Result<bool> {
        let (Some(call), IpAddr::V4(to)) = (peer.station, peer.address) else { return Ok(false) };
        if self.packets.len() >= MAX_PEERS && !self.packets.contains_key(&to) {
            self.packets.clear();
        }
        let (here, route) = (self.tnc.station, &self.tnc.route);
        let packets = self
            .packets
            .entry(to)
            .or_insert_with(|| Packets::new(here.address, to).with_route(route));
        let frame = UiFrame {
            destination: call,
            source: here.call,
            protocol: PROTOCOL_IPV4,
            information: &packets.packet(segment),
        };
        let mut content = Vec::new();
        frame.encode(&self.tnc.repeaters, &mut content);
        kiss::encode(self.tnc.port, Command::Data, &content, &mut self.unwritten);
        self.is_full()?;
        Ok(true)
    }
}

enum Found<'a> {
    Segment(Peer, &'a [u8]),
    /// For another station, or of another protocol: others use the channel as well.
    Other,
    Malformed,
}

/// Finds the segment in a frame for `here`.
fn read_frame(frame: &[u8], here: Station) -> Found<'_> {
    let Some(ui) = UiFrame::decode(frame) else { return Found::Malformed };
    if ui.destination != here.call || ui.protocol != PROTOCOL_IPV4 {
        return Found::Other;
    }
    match ipv4::decode(ui.information) {
        Some(packet) if packet.to == here.address => {
            let peer = Station { call: ui.source, address: packet.from };
            Found::Segment(peer.into(), packet.segment)
        }
        Some(_) => Found::Other,
        None => Found::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RAD-2.1
    #[test]
    fn stations_are_parsed_and_have_link_local_addresses() {
        let station: Station = "M0ABC-1".parse().expect("a station");
        assert_eq!(station.address, Ipv4Addr::new(169, 254, 237, 219));
        let other: Station = "m0abc-1@44.131.0.1".parse().expect("a station");
        assert_eq!((other.call, other.address), (station.call, Ipv4Addr::new(44, 131, 0, 1)));
        for text in ["", "@44.131.0.1", "M0ABC-1@", "M0ABC-1@host"] {
            assert_eq!(text.parse::<Station>(), Err(StationError), "{text}");
        }
    }

    /// The frame by which `from` sends `segment` to `to`, with `repeaters` that have repeated it.
    fn frame(from: Station, to: Station, route: &[Ipv4Addr], segment: &[u8]) -> Vec<u8> {
        let mut packets = Packets::new(from.address, to.address).with_route(route);
        let information = packets.packet(segment);
        let (destination, source) = (to.call, from.call);
        let ui =
            UiFrame { destination, source, protocol: PROTOCOL_IPV4, information: &information };
        let mut frame = Vec::new();
        ui.encode(&[], &mut frame);
        frame
    }

    /// RAD-1.1, RAD-1.2, RAD-1.3, RAD-1.4
    #[test]
    fn frames_for_this_station_have_a_segment() {
        let [a, b, c] =
            ["M0ABC-1", "M0XYZ", "M0XYZ-1"].map(|text| text.parse().expect("a station"));
        let route = [Ipv4Addr::new(44, 131, 0, 9); MAX_HOPS];
        for (route, len) in [(&[][..], 218), (&route, 178)] {
            let segment = vec![7; len];
            let frame = frame(a, b, route, &segment);
            // The paper counts 17 octets of AX.25, of which 16 are known.
            assert_eq!(frame.len(), 254);
            let Found::Segment(peer, found) = read_frame(&frame, b) else { panic!("no segment") };
            assert_eq!((peer, found), (a.into(), &segment[..]));
            assert!(matches!(read_frame(&frame, c), Found::Other));
            let moved = Station { address: a.address, ..b };
            assert!(matches!(read_frame(&frame, moved), Found::Other));
        }
        let longest = frame(a, b, &[], &[7; 2028]);
        assert!(matches!(read_frame(&longest, b), Found::Segment(..)));
        assert!(longest.len() + 7 * MAX_REPEATERS <= MAX_FRAME);
        // The addresses end with the second; its last octet says that a repeater follows.
        let mut repeated = frame(a, b, &[], &[7; 20]);
        repeated[13] &= !1;
        repeated.splice(14..14, *b"\x9A\x60\x82\x84\x86\x40\x61");
        assert!(matches!(read_frame(&repeated, b), Found::Malformed));
        repeated[20] |= 0x80;
        assert!(matches!(read_frame(&repeated, b), Found::Segment(..)));
        let mut fragment = frame(a, b, &[], &[7; 20]);
        // An offset of 1, and as much less in the checksum.
        fragment[16 + 7] += 1;
        let sum = u16::from_be_bytes([fragment[26], fragment[27]]) - 1;
        fragment[26..28].copy_from_slice(&sum.to_be_bytes());
        assert!(matches!(read_frame(&fragment, b), Found::Malformed));
    }
}
