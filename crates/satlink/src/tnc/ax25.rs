//! AX.25: unnumbered information frames, as packet radio carries IP in them.
//!
//! ```text
//!  flag │ destination │ source │ control │ protocol │ information │ check │ flag
//!    1  │      7      │    7   │    1    │    1     │   0 to 256  │   2   │   1
//! ```
//!
//! Between source and control there may be up to eight repeaters of 7 octets. Source: AX.25
//! version 2.2, sections 3.1 to 3.12 and 6.7.2.1 (N1). Sizes on air are without stuffed bits, about
//! one in sixty of random data.

use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

/// Destination and source without repeaters, control and protocol: what stands before the
/// information of a UI frame.
pub const UI_HEADER: usize = 7 + 7 + 1 + 1;

/// The check sequence.
pub const CHECK_SEQUENCE: usize = 2;

/// The two flags around a frame that is sent alone.
pub const FLAGS: usize = 2;

/// The longest information field unless stations agree on another: N1.
pub const LONGEST_INFORMATION: usize = 256;

/// Elaasar et al. 2003, section 7.2, count this much AX.25 header: one byte above
/// [`UI_HEADER`], with which 238 bytes of a frame of 255 are left for IP. They do not say what
/// the byte is; check sequence and flags are not counted.
pub const HEADER_AS_PUBLISHED: usize = 17;

/// The longest frame of Elaasar et al. 2003, counted as [`HEADER_AS_PUBLISHED`] is.
pub const FRAME_AS_PUBLISHED: usize = 255;

/// The protocol identifier of IPv4 (AX.25 2.2, figure 3.2).
pub const PROTOCOL_IPV4: u8 = 0xCC;

/// The protocol identifier of what has no layer 3: a compressor's packets travel under it.
pub const PROTOCOL_NONE: u8 = 0xF0;

/// Maximum number of repeaters.
pub const MAX_REPEATERS: usize = 8;

/// Control field of a UI frame; the poll bit is ignored.
const CONTROL_UI: u8 = 0x03;
const POLL: u8 = 0x10;
/// Bits of the last octet of an address.
const LAST: u8 = 0x01;
const RESERVED: u8 = 0x60;
/// Command in a destination, response in a source, "has been repeated" in a repeater.
const TOP: u8 = 0x80;

/// Address of a station: a call sign with its secondary identifier, such as `M0ABC-1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallSign {
    /// Letters and digits, filled with spaces.
    call: [u8; 6],
    /// 0 to 15.
    ssid: u8,
}

impl CallSign {
    fn encode(self, flags: u8, out: &mut Vec<u8>) {
        out.extend(self.call.map(|octet| octet << 1));
        out.push(RESERVED | self.ssid << 1 | flags);
    }

    /// Decodes an address of 7 octets; returns it with its flags.
    fn decode(octets: &[u8]) -> Option<(Self, u8)> {
        let (call, last) = (octets.get(..6)?, *octets.get(6)?);
        let call = [0, 1, 2, 3, 4, 5].map(|at| call[at]);
        let is_shifted = call.iter().all(|octet| octet & 1 == 0);
        let call = call.map(|octet| octet >> 1);
        let len = call.iter().position(|&octet| octet == b' ').unwrap_or(6);
        let is_valid = len > 0
            && call[..len].iter().all(|octet| octet.is_ascii_uppercase() || octet.is_ascii_digit())
            && call[len..].iter().all(|&octet| octet == b' ');
        (is_shifted && is_valid).then_some((Self { call, ssid: last >> 1 & 15 }, last))
    }

    /// Returns its 6 characters, filled with spaces, and the secondary identifier.
    pub fn octets(self) -> [u8; 7] {
        let [a, b, c, d, e, f] = self.call;
        [a, b, c, d, e, f, self.ssid]
    }
}

impl fmt::Display for CallSign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for octet in self.call.into_iter().filter(|&octet| octet != b' ') {
            write!(f, "{}", char::from(octet))?;
        }
        if self.ssid > 0 { write!(f, "-{}", self.ssid) } else { Ok(()) }
    }
}

/// Text that is no call sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSignError;

impl fmt::Display for CallSignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected 1 to 6 letters and digits, and -1 to -15 if any, as in M0ABC-1")
    }
}

impl core::error::Error for CallSignError {}

impl FromStr for CallSign {
    type Err = CallSignError;

    fn from_str(text: &str) -> Result<Self, CallSignError> {
        let (name, ssid) = text.split_once('-').unwrap_or((text, "0"));
        let is_digits = ssid.bytes().all(|octet| octet.is_ascii_digit());
        let ssid = ssid.parse().ok().filter(|&ssid: &u8| is_digits && ssid <= 15);
        let is_valid = (1..=6).contains(&name.len())
            && name.bytes().all(|octet| octet.is_ascii_alphanumeric());
        let (true, Some(ssid)) = (is_valid, ssid) else { return Err(CallSignError) };
        let mut call = [b' '; 6];
        call[..name.len()].copy_from_slice(name.as_bytes());
        call.make_ascii_uppercase();
        Ok(Self { call, ssid })
    }
}

/// A UI frame without flags and check sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UiFrame<'a> {
    /// Destination.
    pub destination: CallSign,
    /// Source.
    pub source: CallSign,
    /// Protocol identifier of the information.
    pub protocol: u8,
    /// Information.
    pub information: &'a [u8],
}

impl<'a> UiFrame<'a> {
    /// Appends the frame to `out`, to be repeated by `repeaters` in this order.
    ///
    /// # Panics
    /// If there are more than [`MAX_REPEATERS`].
    pub fn encode(&self, repeaters: &[CallSign], out: &mut Vec<u8>) {
        assert!(repeaters.len() <= MAX_REPEATERS, "a frame has at most {MAX_REPEATERS} repeaters");
        self.destination.encode(TOP, out);
        self.source.encode(if repeaters.is_empty() { LAST } else { 0 }, out);
        for (at, repeater) in repeaters.iter().enumerate() {
            repeater.encode(if at + 1 == repeaters.len() { LAST } else { 0 }, out);
        }
        out.extend([CONTROL_UI, self.protocol]);
        out.extend_from_slice(self.information);
    }

    /// Decodes a frame; `None` if it is malformed, no UI frame, or still to be repeated.
    pub fn decode(frame: &'a [u8]) -> Option<Self> {
        let (destination, flags) = CallSign::decode(frame)?;
        let (source, mut last) = CallSign::decode(frame.get(7..)?)?;
        let mut at = 14;
        while last & LAST == 0 {
            let (_, flags) = CallSign::decode(frame.get(at..)?)?;
            at += 7;
            if flags & TOP == 0 || at > 14 + 7 * MAX_REPEATERS {
                return None;
            }
            last = flags;
        }
        let (control, protocol) = (*frame.get(at)?, *frame.get(at + 1)?);
        let is_ui = flags & LAST == 0 && control & !POLL == CONTROL_UI;
        let information = frame.get(at + 2..)?;
        is_ui.then_some(Self { destination, source, protocol, information })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Framing;
    use alloc::string::ToString;

    #[test]
    fn sizes_agree_with_the_framing_of_links() {
        let added = (UI_HEADER + CHECK_SEQUENCE + FLAGS) as u64;
        assert_eq!(Framing::Ax25.on_air(100), 100 + added);
        assert_eq!(FRAME_AS_PUBLISHED - HEADER_AS_PUBLISHED, 238);
        const { assert!(FRAME_AS_PUBLISHED - HEADER_AS_PUBLISHED <= LONGEST_INFORMATION) };
    }

    fn call(text: &str) -> CallSign {
        text.parse().expect("a call sign")
    }

    #[test]
    fn call_signs_are_parsed_and_printed() {
        assert_eq!(call("m0abc-1").to_string(), "M0ABC-1");
        assert_eq!(call("W1AW").to_string(), "W1AW");
        assert_eq!(call("W1AW-0"), call("W1AW"));
        for text in ["", "-1", "TOOLONG", "A B", "M0ABC-16", "M0ABC-", "M0ABC-+1", "M0ABC-1-2"] {
            assert_eq!(text.parse::<CallSign>(), Err(CallSignError), "{text}");
        }
    }

    /// The octets are those that Dire Wolf's `gen_packets` makes of
    /// `M0ABC-1>M0XYZ-2:hello`, apart from the protocol identifier.
    #[test]
    fn frame_has_the_octets_of_the_specification() {
        let frame = UiFrame {
            destination: call("M0XYZ-2"),
            source: call("M0ABC-1"),
            protocol: PROTOCOL_IPV4,
            information: b"hello",
        };
        let mut octets = Vec::new();
        frame.encode(&[], &mut octets);
        let addresses =
            [0x9A, 0x60, 0xB0, 0xB2, 0xB4, 0x40, 0xE4, 0x9A, 0x60, 0x82, 0x84, 0x86, 0x40, 0x63];
        assert_eq!(octets[..14], addresses);
        assert_eq!(octets[14..], *b"\x03\xCChello");
        assert_eq!(octets.len(), UI_HEADER + 5);
        assert_eq!(UiFrame::decode(&octets), Some(frame));
    }

    #[test]
    fn frames_are_taken_when_all_repeaters_have_repeated_them() {
        let frame = UiFrame {
            destination: call("A"),
            source: call("B"),
            protocol: PROTOCOL_NONE,
            information: &[],
        };
        let mut octets = Vec::new();
        frame.encode(&[call("R1"), call("R2")], &mut octets);
        assert_eq!(octets.len(), UI_HEADER + 14);
        assert_eq!(UiFrame::decode(&octets), None);
        octets[20] |= TOP;
        assert_eq!(UiFrame::decode(&octets), None);
        octets[27] |= TOP;
        assert_eq!(UiFrame::decode(&octets), Some(frame));
        for len in 0..octets.len() {
            assert_eq!(UiFrame::decode(&octets[..len]), None, "{len} octets");
        }
        octets[28] = 0x2F;
        assert_eq!(UiFrame::decode(&octets), None, "no UI frame");
    }
}
