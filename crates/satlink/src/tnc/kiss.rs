//! KISS: frames on a line to a TNC.
//!
//! ```text
//!   C0 │ port, command │ content: C0 as DB DC, DB as DB DD │ C0
//!       4 bits   4 bits
//! ```
//!
//! Source: Chepponis and Karn, "The KISS TNC: a simple host-to-TNC communications protocol",
//! sections 3 and 4.
//!
//! ```
//! use satlink::tnc::kiss::{self, Command, Decoder};
//!
//! let mut line = Vec::new();
//! kiss::encode(0, Command::Data, &[0xC0, 1], &mut line);
//! assert_eq!(line, [0xC0, 0, 0xDB, 0xDC, 1, 0xC0]);
//! let mut decoder = Decoder::new(256);
//! let mut rest = &line[..];
//! let frame = decoder.next(&mut rest).expect("a frame");
//! assert_eq!((frame.port, frame.command, frame.content), (0, Ok(Command::Data), &[0xC0, 1][..]));
//! ```

use alloc::vec::Vec;
use units::Span;

const FEND: u8 = 0xC0;
const FESC: u8 = 0xDB;
const TFEND: u8 = 0xDC;
const TFESC: u8 = 0xDD;

/// Maximum number of a TNC's port.
pub const MAX_PORT: u8 = 15;

/// Command of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// The content is an AX.25 frame without flags and check sequence.
    Data,
    /// Time from key-up to the first octet, in units of 10 ms.
    TxDelay,
    /// P of p-persistence: p = (P + 1) / 256.
    Persistence,
    /// Slot time, in units of 10 ms.
    SlotTime,
    /// Time from the last octet to key-down, in units of 10 ms.
    TxTail,
    /// Full duplex unless 0.
    FullDuplex,
    /// Specific to the TNC.
    SetHardware,
    /// Leaves KISS; port 15.
    Return,
}

impl Command {
    const ALL: [(Self, u8); 8] = [
        (Self::Data, 0),
        (Self::TxDelay, 1),
        (Self::Persistence, 2),
        (Self::SlotTime, 3),
        (Self::TxTail, 4),
        (Self::FullDuplex, 5),
        (Self::SetHardware, 6),
        (Self::Return, 15),
    ];

    fn code(self) -> u8 {
        Self::ALL.into_iter().find(|(command, _)| *command == self).map_or(0, |(_, code)| code)
    }
}

/// A frame from the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Port of the TNC, 0 to 15.
    pub port: u8,
    /// The command, or the code of an unknown one.
    pub command: Result<Command, u8>,
    /// Content.
    pub content: &'a [u8],
}

/// Channel access of a TNC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// Time from key-up to the first octet, in units of 10 ms, at most 2.55 s.
    pub tx_delay: Option<Span>,
    /// P of p-persistence: p = (P + 1) / 256.
    pub persistence: Option<u8>,
    /// Slot time, in units of 10 ms, at most 2.55 s.
    pub slot_time: Option<Span>,
    /// Whether the channel is full-duplex.
    pub full_duplex: Option<bool>,
}

impl Parameters {
    /// Appends the frames that set these parameters of `port`; those that are `None` stay.
    pub fn encode(&self, port: u8, out: &mut Vec<u8>) {
        let ticks = |time: Span| (time.as_millis() / 10).min(255) as u8;
        let settings = [
            (Command::TxDelay, self.tx_delay.map(ticks)),
            (Command::Persistence, self.persistence),
            (Command::SlotTime, self.slot_time.map(ticks)),
            (Command::FullDuplex, self.full_duplex.map(u8::from)),
        ];
        for (command, value) in settings {
            if let Some(value) = value {
                encode(port, command, &[value], out);
            }
        }
    }
}

/// Appends a frame to the line `out`.
///
/// # Panics
/// If `port` is above 15.
pub fn encode(port: u8, command: Command, content: &[u8], out: &mut Vec<u8>) {
    assert!(port <= MAX_PORT, "a port of a TNC is at most {MAX_PORT}");
    out.push(FEND);
    // Port 12 with Data is a FEND and is escaped as well.
    for &octet in [port << 4 | command.code()].iter().chain(content) {
        match octet {
            FEND => out.extend([FESC, TFEND]),
            FESC => out.extend([FESC, TFESC]),
            octet => out.push(octet),
        }
    }
    out.push(FEND);
}

/// Finds the frames on a line. It stores at most one frame.
#[derive(Clone, Debug)]
pub struct Decoder {
    frame: Vec<u8>,
    /// Maximum length of the content.
    limit: usize,
    state: State,
    /// Frames that were dropped: longer than the limit, or with an invalid escape.
    refused: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In a frame, or before the first one.
    Open,
    /// After FESC.
    Escape,
    /// The frame is dropped up to the next FEND.
    Skip,
    /// The frame was returned and is to be cleared.
    Returned,
}

impl Decoder {
    /// Creates a decoder for frames with at most `limit` octets of content.
    pub fn new(limit: usize) -> Self {
        Self { frame: Vec::new(), limit, state: State::Open, refused: 0 }
    }

    /// Number of frames that were dropped because they were longer than the limit, or had an
    /// invalid escape sequence.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Consumes octets of `line` until a frame is complete; `None` if all are consumed and none
    /// is. Empty frames are ignored, as the specification says.
    pub fn next(&mut self, line: &mut &[u8]) -> Option<Frame<'_>> {
        if self.state == State::Returned {
            self.frame.clear();
            self.state = State::Open;
        }
        while let Some((&octet, rest)) = line.split_first() {
            *line = rest;
            if self.take(octet) {
                self.state = State::Returned;
                let (&first, content) = self.frame.split_first()?;
                let code = first & 15;
                let known = Command::ALL.into_iter().find(|(_, number)| *number == code);
                let command = known.map(|(command, _)| command).ok_or(code);
                return Some(Frame { port: first >> 4, command, content });
            }
        }
        None
    }

    /// Processes one octet; returns whether a frame is complete.
    fn take(&mut self, octet: u8) -> bool {
        let octet = match (self.state, octet) {
            (State::Skip, FEND) => {
                self.frame.clear();
                self.state = State::Open;
                return false;
            }
            (State::Skip, _) => return false,
            (State::Open | State::Returned, FEND) => return !self.frame.is_empty(),
            (State::Open | State::Returned, FESC) => {
                self.state = State::Escape;
                return false;
            }
            (State::Open | State::Returned, octet) => octet,
            (State::Escape, TFEND) => FEND,
            (State::Escape, TFESC) => FESC,
            (State::Escape, FEND) => {
                self.refused += 1;
                self.frame.clear();
                self.state = State::Open;
                return false;
            }
            (State::Escape, _) => {
                self.skip();
                return false;
            }
        };
        self.state = State::Open;
        if self.frame.len() > self.limit {
            self.skip();
        } else {
            self.frame.push(octet);
        }
        false
    }

    fn skip(&mut self) {
        self.refused += 1;
        self.state = State::Skip;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn decode(decoder: &mut Decoder, mut line: &[u8]) -> Vec<(u8, Result<Command, u8>, Vec<u8>)> {
        let mut frames = Vec::new();
        while let Some(Frame { port, command, content }) = decoder.next(&mut line) {
            frames.push((port, command, content.to_vec()));
        }
        frames
    }

    #[test]
    fn every_octet_and_port_arrives_with_any_segmentation() {
        let content: Vec<u8> = (0..=255).collect();
        let mut line = Vec::new();
        for port in 0..=MAX_PORT {
            encode(port, Command::Data, &content, &mut line);
        }
        for piece in [1, 2, 7, line.len()] {
            let mut decoder = Decoder::new(256);
            let frames: Vec<_> =
                line.chunks(piece).flat_map(|piece| decode(&mut decoder, piece)).collect();
            assert_eq!(frames.len(), 16);
            for (port, frame) in frames.into_iter().enumerate() {
                assert_eq!(frame, (port as u8, Ok(Command::Data), content.clone()));
            }
            assert_eq!(decoder.refused(), 0);
        }
    }

    #[test]
    fn parameters_are_in_units_of_ten_milliseconds() {
        let parameters = Parameters {
            tx_delay: Some(Span::from_millis(300)),
            persistence: Some(63),
            slot_time: Some(Span::from_secs(9)),
            full_duplex: None,
        };
        let mut line = Vec::new();
        parameters.encode(1, &mut line);
        assert_eq!(line, [192, 0x11, 30, 192, 192, 0x12, 63, 192, 192, 0x13, 255, 192]);
    }

    #[test]
    fn long_and_malformed_frames_are_refused_and_the_next_one_arrives() {
        let mut decoder = Decoder::new(4);
        let long = [&[FEND, 0][..], &[7; 5], &[FEND]].concat();
        let broken = [FEND, 0, 1, FESC, 1, 2, FEND];
        let cut = [FEND, 0, 1, FESC, FEND];
        for (count, bad) in [&long[..], &broken, &cut].into_iter().enumerate() {
            assert_eq!(decode(&mut decoder, bad), []);
            assert_eq!(decoder.refused(), count as u64 + 1);
            let good = decode(&mut decoder, &[FEND, 0, 1, 2, 3, 4, FEND]);
            assert_eq!(good, [(0, Ok(Command::Data), vec![1, 2, 3, 4])]);
        }
        assert_eq!(decode(&mut decoder, &[FEND, FEND, FEND]), []);
        assert_eq!(decode(&mut decoder, &[0x3A, FEND]), [(3, Err(10), vec![])]);
    }
}
