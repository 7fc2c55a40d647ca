//! A small file transfer protocol: a request, the file in chunks, and the end.
//!
//! ```text
//!  0      1              3              5
//! ┌──────┬──────────────┬──────────────┬──────────────────────
//! │ kind │ chunk number │    length    │ name, or the chunk
//! └──────┴──────────────┴──────────────┴──────────────────────
//!   1 request: a name     2 a chunk     3 the last chunk     4 no such file
//! ```
//!
//! Elaasar et al. 2003, section 7.2, state that their protocol has a header of 5 bytes and that 157
//! bytes of a file fit in a frame; the layout is this project's. The end of the connection closes.

use crate::{Pattern, StreamCheck};
use core::fmt;

/// Octets before a name or a chunk.
pub const HEADER: usize = 5;

/// Octets of a file in a frame of 255, as published: 255 − 17 − 60 − 16 − 5.
pub const CHUNK: usize = 157;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Requests the file of this name; at most [`CHUNK`] octets.
    Request(Vec<u8>),
    /// Chunk `number` of the file, and whether it is the last.
    Chunk {
        /// Chunk number, counted from zero modulo 2^16.
        number: u16,
        /// Whether it is the last chunk.
        last: bool,
        /// At most [`CHUNK`] octets.
        bytes: Vec<u8>,
    },
    /// There is no file of that name.
    Missing,
}

/// An invalid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadMessage {
    /// The first octet is no kind.
    Kind {
        /// The octet found.
        found: u8,
    },
    /// The length exceeds a frame.
    Length {
        /// The length found.
        found: u16,
    },
    /// A chunk is out of order.
    Order {
        /// The expected chunk.
        expected: u16,
        /// The chunk received.
        found: u16,
    },
    /// An octet of the file differs from the stored one.
    Content {
        /// Offset in the file.
        offset: u64,
    },
}

impl fmt::Display for BadMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind { found } => write!(f, "kind: found {found}, expected 1 to 4"),
            Self::Length { found } => write!(f, "length: found {found}, expected at most {CHUNK}"),
            Self::Order { expected, found } => {
                write!(f, "chunk: found {found}, expected {expected}")
            }
            Self::Content { offset } => write!(f, "byte {offset} of the file is wrong"),
        }
    }
}

impl std::error::Error for BadMessage {}

impl Message {
    /// Appends the encoded message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (kind, number, bytes): (u8, u16, &[u8]) = match self {
            Self::Request(name) => (1, 0, name),
            Self::Chunk { number, last, bytes } => (if *last { 3 } else { 2 }, *number, bytes),
            Self::Missing => (4, 0, &[]),
        };
        debug_assert!(bytes.len() <= CHUNK, "a message fits in a frame");
        out.push(kind);
        out.extend_from_slice(&number.to_be_bytes());
        out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
        out.extend_from_slice(bytes);
    }
}

/// Parses messages from a stream of octets in pieces of any size. Holds at most one message.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    held: Vec<u8>,
}

impl Messages {
    /// Consumes octets of `bytes` until a message is complete; `None` when all are consumed and
    /// more are needed.
    ///
    /// # Errors
    /// If the input is no valid message; later results are undefined then.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Message>, BadMessage> {
        loop {
            let needed = self.needed()?;
            if self.held.len() == needed {
                break;
            }
            let (taken, rest) = bytes.split_at(bytes.len().min(needed - self.held.len()));
            if taken.is_empty() {
                return Ok(None);
            }
            self.held.extend_from_slice(taken);
            *bytes = rest;
        }
        let number = u16::from_be_bytes([self.held[1], self.held[2]]);
        let bytes = self.held[HEADER..].to_vec();
        let message = match self.held[0] {
            1 => Message::Request(bytes),
            2 => Message::Chunk { number, last: false, bytes },
            3 => Message::Chunk { number, last: true, bytes },
            4 => Message::Missing,
            found => return Err(BadMessage::Kind { found }),
        };
        self.held.clear();
        Ok(Some(message))
    }

    /// Length of the message, as far as its octets determine it.
    fn needed(&self) -> Result<usize, BadMessage> {
        if let Some(&found) = self.held.first()
            && !(1..=4).contains(&found)
        {
            return Err(BadMessage::Kind { found });
        }
        let Some(length) = self.held.get(3..HEADER) else { return Ok(HEADER) };
        let found = u16::from_be_bytes([length[0], length[1]]);
        if usize::from(found) > CHUNK {
            return Err(BadMessage::Length { found });
        }
        Ok(HEADER + usize::from(found))
    }
}

/// Requests a file, and verifies it.
#[derive(Clone, Debug)]
pub struct Client {
    messages: Messages,
    check: StreamCheck,
    due: u16,
    done: bool,
}

impl Client {
    /// Expects a file that contains `pattern`.
    pub fn new(pattern: Pattern) -> Self {
        let check = StreamCheck::new(pattern);
        Self { messages: Messages::default(), check, due: 0, done: false }
    }

    /// Consumes octets of the stream.
    ///
    /// # Errors
    /// If they are not valid messages of this file.
    pub fn take(&mut self, mut bytes: &[u8]) -> Result<(), BadMessage> {
        while let Some(message) = self.messages.next(&mut bytes)? {
            match message {
                Message::Chunk { number, last, bytes } => {
                    if number != self.due {
                        return Err(BadMessage::Order { expected: self.due, found: number });
                    }
                    self.due = self.due.wrapping_add(1);
                    let checked = self.check.take(&bytes);
                    checked.map_err(|broken| BadMessage::Content { offset: broken.offset })?;
                    self.done |= last;
                }
                Message::Missing => self.done = true,
                Message::Request(_) => return Err(BadMessage::Kind { found: 1 }),
            }
        }
        Ok(())
    }

    /// Whether the last chunk has arrived.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Octets of the file received so far.
    pub fn received(&self) -> u64 {
        self.check.received()
    }
}

/// Serves one file.
#[derive(Clone, Debug)]
pub struct Server {
    name: Vec<u8>,
    pattern: Pattern,
    size: u64,
    messages: Messages,
    /// Octets of the file sent in chunks, once it was requested.
    sent: Option<u64>,
    /// A request for another file is to be answered.
    missing: bool,
    done: bool,
}

impl Server {
    /// A server whose file `name` has `size` octets of `pattern`.
    pub fn new(name: &[u8], pattern: Pattern, size: u64) -> Self {
        Self {
            name: name.to_vec(),
            pattern,
            size,
            messages: Messages::default(),
            sent: None,
            missing: false,
            done: false,
        }
    }

    /// Consumes octets of the stream.
    ///
    /// # Errors
    /// If they are not valid messages of a client.
    pub fn take(&mut self, mut bytes: &[u8]) -> Result<(), BadMessage> {
        while let Some(message) = self.messages.next(&mut bytes)? {
            match message {
                Message::Request(name) if name == self.name => self.sent = self.sent.or(Some(0)),
                Message::Request(_) => {
                    self.missing = !self.done;
                    self.done = true;
                }
                Message::Chunk { .. } => return Err(BadMessage::Kind { found: 2 }),
                Message::Missing => return Err(BadMessage::Kind { found: 4 }),
            }
        }
        Ok(())
    }

    /// The next message for the stream, if there is one.
    pub fn next_message(&mut self) -> Option<Vec<u8>> {
        let mut message = Vec::new();
        if core::mem::take(&mut self.missing) {
            Message::Missing.encode(&mut message);
            return Some(message);
        }
        let sent = self.sent.filter(|_| !self.done)?;
        let len = (self.size - sent).min(CHUNK as u64);
        let mut bytes = vec![0; len as usize];
        self.pattern.fill(sent, &mut bytes);
        self.done = sent + len == self.size;
        self.sent = Some(sent + len);
        let number = (sent / CHUNK as u64) as u16;
        Message::Chunk { number, last: self.done, bytes }.encode(&mut message);
        Some(message)
    }

    /// Whether a message is due.
    pub fn has_message(&self) -> bool {
        self.missing || (self.sent.is_some() && !self.done)
    }

    /// Whether everything was sent.
    pub fn is_done(&self) -> bool {
        self.done && !self.missing
    }
}

/// Number of chunks of a file of `size` octets.
pub fn chunks(size: u64) -> u64 {
    size.div_ceil(CHUNK as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retrieve(size: u64, piece: usize) -> Client {
        let mut server = Server::new(b"a", Pattern(5), size);
        let mut client = Client::new(Pattern(5));
        let mut request = Vec::new();
        Message::Request(b"a".to_vec()).encode(&mut request);
        request.chunks(piece).for_each(|part| server.take(part).expect("a request"));
        while let Some(message) = server.next_message() {
            message.chunks(piece).for_each(|part| client.take(part).expect("the file"));
        }
        assert!(server.is_done());
        client
    }

    #[test]
    fn files_arrive_with_any_segmentation() {
        for size in [0, 1, 100, 157, 158, 1_024, 10_240] {
            for piece in [1, 3, 162, 10_000] {
                let client = retrieve(size, piece);
                assert!(client.is_done());
                assert_eq!(client.received(), size);
            }
        }
    }

    #[test]
    fn ten_kilobytes_are_66_chunks() {
        assert_eq!([0, 1, 157, 158, 1_024, 10_240].map(chunks), [1, 1, 1, 2, 7, 66]);
    }

    #[test]
    fn unknown_file_is_missing() {
        let mut server = Server::new(b"a", Pattern(5), 10);
        let mut client = Client::new(Pattern(5));
        server.take(&[1, 0, 0, 0, 1, b'b']).expect("a request");
        let answer = server.next_message().expect("an answer");
        client.take(&answer).expect("an answer");
        assert!(client.is_done() && server.is_done());
        assert_eq!(client.received(), 0);
    }

    #[test]
    fn invalid_input_is_an_error() {
        let mut client = Client::new(Pattern(5));
        assert_eq!(client.clone().take(&[9]), Err(BadMessage::Kind { found: 9 }));
        assert_eq!(client.clone().take(&[2, 0, 0, 0, 158]), Err(BadMessage::Length { found: 158 }));
        let order = BadMessage::Order { expected: 0, found: 1 };
        assert_eq!(client.clone().take(&[2, 0, 1, 0, 0]), Err(order));
        assert_eq!(client.take(&[2, 0, 0, 0, 1, 77]), Err(BadMessage::Content { offset: 0 }));
        let mut server = Server::new(b"a", Pattern(5), 10);
        assert_eq!(server.take(&[4, 0, 0, 0, 0]), Err(BadMessage::Kind { found: 4 }));
    }
}
