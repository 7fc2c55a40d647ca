//! The messages of a transfer (TRF-2).
//!
//! ```text
//!   octet 0   1 to 3          4 ...
//!   type      length, 24 bit  content
//! ```

use core::fmt;

/// Version of the protocol.
pub const VERSION: u8 = 1;
/// Maximum octets of content in one DATA.
pub const MAX_DATA: usize = 65_536;
/// Maximum octets of a path.
pub const MAX_PATH: usize = 4_096;
/// Maximum octets of a text.
pub const MAX_TEXT: usize = 256;
/// Maximum octets of a message with its header.
pub const MAX_MESSAGE: usize = HEADER + 12 + MAX_DATA;
/// Value of the size of a file whose end is not known.
pub const UNKNOWN_SIZE: u64 = u64::MAX;

const HEADER: usize = 4;
const MAGIC: &[u8; 4] = b"BPTR";
/// Octets of an ENTRY before the path.
const ENTRY_FIXED: usize = 4 + 1 + 2 + 8 + 4 + 8;

/// Octets of a hash: SHA-256.
pub type Hash = [u8; 32];

/// Part of an end in a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It has the files.
    Sender,
    /// It wants them.
    Receiver,
}

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder; its content follows in entries of their own.
    Folder,
}

/// A file or folder that the sender offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number: entries count from 0.
    pub number: u32,
    /// Its kind.
    pub kind: Kind,
    /// Permission bits.
    pub mode: u16,
    /// Time of the last change, seconds since 1970.
    pub mtime_s: i64,
    /// The rest of this time, nanoseconds.
    pub mtime_ns: u32,
    /// Octets of a file, or [`UNKNOWN_SIZE`].
    pub size: u64,
    /// Its path, relative, with `/` between names.
    pub path: Vec<u8>,
}

impl Entry {
    /// Returns the size, unless it is unknown.
    pub fn known_size(&self) -> Option<u64> {
        (self.size != UNKNOWN_SIZE).then_some(self.size)
    }
}

/// The receiver's answer to an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The content is needed from this offset on.
    Send(u64),
    /// It is there already.
    Present,
    /// It is not received, for this reason.
    Refused(String),
}

/// What has become of a file whose content was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its hash was as announced, and it has its name.
    Stored,
    /// Its hash differed. The receiver has discarded it; it can be sent from the beginning.
    Damaged,
    /// It could not be written, for this reason.
    Failed(String),
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// The first message of each end.
    Hello(Role),
    /// A file or folder is offered.
    Entry(Entry),
    /// Content of a file.
    Data {
        /// Number of the entry.
        number: u32,
        /// Position of the first octet in the file.
        offset: u64,
        /// The content, at least one octet.
        bytes: &'a [u8],
    },
    /// The content of a file is complete.
    Finish {
        /// Number of the entry.
        number: u32,
        /// SHA-256 of the whole file.
        hash: Hash,
    },
    /// The content of a file does not follow: it has changed, or cannot be read.
    Abandon {
        /// Number of the entry.
        number: u32,
    },
    /// No entries follow.
    End,
    /// The answer to an entry.
    Answer {
        /// Number of the entry.
        number: u32,
        /// The answer.
        answer: Answer,
    },
    /// What has become of a file.
    Result {
        /// Number of the entry.
        number: u32,
        /// The outcome.
        outcome: Outcome,
    },
    /// After END: every file has its outcome, and is on the disk.
    Done,
    /// The transfer ends, for this reason.
    Error(String),
}

/// A message that the protocol does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A type that this version does not define.
    Type(u8),
    /// A length that the type does not have.
    Length {
        /// The type.
        kind: u8,
        /// The length, octets.
        len: usize,
    },
    /// A field with an undefined value.
    Value(&'static str),
    /// Another protocol, or another version of this one.
    Version,
    /// A message that is not possible now.
    Unexpected(&'static str),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type(kind) => write!(f, "message of unknown type {kind}"),
            Self::Length { kind, len } => write!(f, "message of type {kind} with {len} octets"),
            Self::Value(field) => write!(f, "{field} has an undefined value"),
            Self::Version => write!(f, "the peer does not speak version {VERSION} of transfers"),
            Self::Unexpected(what) => write!(f, "unexpected message: {what}"),
        }
    }
}

impl std::error::Error for Violation {}

mod kinds {
    pub(super) const HELLO: u8 = 0;
    pub(super) const ENTRY: u8 = 1;
    pub(super) const DATA: u8 = 2;
    pub(super) const FINISH: u8 = 3;
    pub(super) const ABANDON: u8 = 4;
    pub(super) const END: u8 = 5;
    pub(super) const ANSWER: u8 = 16;
    pub(super) const RESULT: u8 = 17;
    pub(super) const DONE: u8 = 18;
    pub(super) const ERROR: u8 = 31;
}

/// Returns the lengths that content of this type can have.
fn lengths(kind: u8) -> Option<(usize, usize)> {
    Some(match kind {
        kinds::HELLO => (6, 6),
        kinds::ENTRY => (ENTRY_FIXED + 1, ENTRY_FIXED + MAX_PATH),
        kinds::DATA => (13, 12 + MAX_DATA),
        kinds::FINISH => (36, 36),
        kinds::ABANDON => (4, 4),
        kinds::END | kinds::DONE => (0, 0),
        kinds::ANSWER => (5, 5 + MAX_TEXT),
        kinds::RESULT => (5, 5 + MAX_TEXT),
        kinds::ERROR => (0, MAX_TEXT),
        _ => return None,
    })
}

/// Decodes the first message of `input`; returns it and its octets, or `None` if it is incomplete.
///
/// # Errors
/// If it is none of this protocol; known as soon as its header is.
pub fn decode(input: &[u8]) -> Result<Option<(Message<'_>, usize)>, Violation> {
    let Some((&[kind, a, b, c], rest)) = input.split_first_chunk::<HEADER>() else {
        return Ok(None);
    };
    let len = u32::from_be_bytes([0, a, b, c]) as usize;
    let (min, max) = lengths(kind).ok_or(Violation::Type(kind))?;
    if len < min || len > max {
        return Err(Violation::Length { kind, len });
    }
    let Some(content) = rest.get(..len) else { return Ok(None) };
    let message = decode_content(kind, content)?;
    Ok(Some((message, HEADER + len)))
}

fn decode_content(kind: u8, content: &[u8]) -> Result<Message<'_>, Violation> {
    let mut fields = Fields { rest: content, kind };
    let number = |fields: &mut Fields<'_>| fields.take().map(u32::from_be_bytes);
    Ok(match kind {
        kinds::HELLO => return decode_hello(content),
        kinds::ENTRY => Message::Entry(decode_entry(fields)?),
        kinds::DATA => Message::Data {
            number: number(&mut fields)?,
            offset: u64::from_be_bytes(fields.take()?),
            bytes: fields.rest,
        },
        kinds::FINISH => Message::Finish { number: number(&mut fields)?, hash: fields.take()? },
        kinds::ABANDON => Message::Abandon { number: number(&mut fields)? },
        kinds::END => Message::End,
        kinds::ANSWER => {
            let number = number(&mut fields)?;
            let answer = match fields.take()? {
                [0] => Answer::Send(fields.last().map(u64::from_be_bytes)?),
                [1] => fields.last::<0>().map(|_| Answer::Present)?,
                [2] => Answer::Refused(text(fields.rest)),
                _ => return Err(Violation::Value("answer")),
            };
            Message::Answer { number, answer }
        }
        kinds::RESULT => {
            let number = number(&mut fields)?;
            let outcome = match fields.take()? {
                [0] => fields.last::<0>().map(|_| Outcome::Stored)?,
                [1] => fields.last::<0>().map(|_| Outcome::Damaged)?,
                [2] => Outcome::Failed(text(fields.rest)),
                _ => return Err(Violation::Value("outcome")),
            };
            Message::Result { number, outcome }
        }
        kinds::DONE => Message::Done,
        _ => Message::Error(text(content)),
    })
}

fn decode_hello(content: &[u8]) -> Result<Message<'static>, Violation> {
    match content {
        [magic @ .., VERSION, role] if magic == MAGIC => match role {
            0 => Ok(Message::Hello(Role::Sender)),
            1 => Ok(Message::Hello(Role::Receiver)),
            _ => Err(Violation::Value("role")),
        },
        _ => Err(Violation::Version),
    }
}

fn decode_entry(mut fields: Fields<'_>) -> Result<Entry, Violation> {
    let number = u32::from_be_bytes(fields.take()?);
    let kind = match fields.take()? {
        [0] => Kind::File,
        [1] => Kind::Folder,
        _ => return Err(Violation::Value("kind")),
    };
    let mode = u16::from_be_bytes(fields.take()?);
    let mtime_s = i64::from_be_bytes(fields.take()?);
    let mtime_ns = u32::from_be_bytes(fields.take()?);
    if mtime_ns >= 1_000_000_000 {
        return Err(Violation::Value("time"));
    }
    let size = u64::from_be_bytes(fields.take()?);
    Ok(Entry { number, kind, mode, mtime_s, mtime_ns, size, path: fields.rest.to_vec() })
}

/// Fields of a content.
struct Fields<'a> {
    rest: &'a [u8],
    kind: u8,
}

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Violation> {
        let error = Violation::Length { kind: self.kind, len: self.rest.len() };
        let (field, rest) = self.rest.split_first_chunk().ok_or(error)?;
        self.rest = rest;
        Ok(*field)
    }

    /// Returns the last field.
    fn last<const N: usize>(&self) -> Result<[u8; N], Violation> {
        let error = Violation::Length { kind: self.kind, len: self.rest.len() };
        self.rest.try_into().map_err(|_| error)
    }
}

/// Returns a text of the peer with control characters escaped, for terminals and logs.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).escape_debug().to_string()
}

impl Message<'_> {
    /// Appends the message to `out`. Texts are shortened to [`MAX_TEXT`].
    ///
    /// # Panics
    /// If a path or data exceeds its maximum, or is empty.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend([0; HEADER]);
        let kind = self.encode_content(out);
        let len = out.len() - start - HEADER;
        let (min, max) = lengths(kind).expect("the type is defined");
        assert!((min..=max).contains(&len), "message of type {kind} with {len} octets");
        let [_, a, b, c] = (len as u32).to_be_bytes();
        out[start..start + HEADER].copy_from_slice(&[kind, a, b, c]);
    }

    fn encode_content(&self, out: &mut Vec<u8>) -> u8 {
        match self {
            Self::Hello(role) => {
                out.extend(MAGIC);
                out.extend([VERSION, u8::from(*role == Role::Receiver)]);
                kinds::HELLO
            }
            Self::Entry(entry) => {
                out.extend(entry.number.to_be_bytes());
                out.push(u8::from(entry.kind == Kind::Folder));
                out.extend(entry.mode.to_be_bytes());
                out.extend(entry.mtime_s.to_be_bytes());
                out.extend(entry.mtime_ns.to_be_bytes());
                out.extend(entry.size.to_be_bytes());
                out.extend(&entry.path);
                kinds::ENTRY
            }
            Self::Data { number, offset, bytes } => {
                out.extend(number.to_be_bytes());
                out.extend(offset.to_be_bytes());
                out.extend(*bytes);
                kinds::DATA
            }
            Self::Finish { number, hash } => {
                out.extend(number.to_be_bytes());
                out.extend(hash);
                kinds::FINISH
            }
            Self::Abandon { number } => {
                out.extend(number.to_be_bytes());
                kinds::ABANDON
            }
            Self::End => kinds::END,
            Self::Answer { number, answer } => {
                out.extend(number.to_be_bytes());
                match answer {
                    Answer::Send(offset) => {
                        out.push(0);
                        out.extend(offset.to_be_bytes());
                    }
                    Answer::Present => out.push(1),
                    Answer::Refused(reason) => push_text(out, 2, reason),
                }
                kinds::ANSWER
            }
            Self::Result { number, outcome } => {
                out.extend(number.to_be_bytes());
                match outcome {
                    Outcome::Stored => out.push(0),
                    Outcome::Damaged => out.push(1),
                    Outcome::Failed(reason) => push_text(out, 2, reason),
                }
                kinds::RESULT
            }
            Self::Done => kinds::DONE,
            Self::Error(reason) => {
                out.extend(shortened(reason));
                kinds::ERROR
            }
        }
    }
}

fn push_text(out: &mut Vec<u8>, code: u8, text: &str) {
    out.push(code);
    out.extend(shortened(text));
}

fn shortened(text: &str) -> &[u8] {
    &text.as_bytes()[..text.floor_char_boundary(MAX_TEXT)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Message<'static>> {
        let entry = Entry {
            number: 7,
            kind: Kind::File,
            mode: 0o640,
            mtime_s: -3,
            mtime_ns: 999_999_999,
            size: UNKNOWN_SIZE,
            path: b"a/b".to_vec(),
        };
        let folder = Entry { kind: Kind::Folder, size: 0, ..entry.clone() };
        let answer = |answer| Message::Answer { number: 1, answer };
        let result = |outcome| Message::Result { number: 2, outcome };
        vec![
            Message::Hello(Role::Sender),
            Message::Hello(Role::Receiver),
            Message::Entry(entry),
            Message::Entry(folder),
            Message::Data { number: 1, offset: 1 << 40, bytes: b"data" },
            Message::Finish { number: 3, hash: [9; 32] },
            Message::Abandon { number: 4 },
            Message::End,
            answer(Answer::Send(5)),
            answer(Answer::Present),
            answer(Answer::Refused("no".to_owned())),
            result(Outcome::Stored),
            result(Outcome::Damaged),
            result(Outcome::Failed("disk full".to_owned())),
            Message::Done,
            Message::Error("why".to_owned()),
        ]
    }

    /// TRF-2.1
    #[test]
    fn every_message_is_decoded_as_it_was_encoded() {
        for message in all() {
            let mut octets = Vec::new();
            message.encode(&mut octets);
            assert_eq!(decode(&octets), Ok(Some((message.clone(), octets.len()))));
            for len in 0..octets.len() {
                assert_eq!(decode(&octets[..len]), Ok(None), "{message:?} of {len} octets");
            }
        }
    }

    /// TRF-2.2
    #[test]
    fn lengths_and_types_are_checked_before_the_content_arrives() {
        assert_eq!(decode(&[99, 0, 0, 0]), Err(Violation::Type(99)));
        let len = 12 + MAX_DATA + 1;
        let [_, a, b, c] = (len as u32).to_be_bytes();
        assert_eq!(decode(&[2, a, b, c]), Err(Violation::Length { kind: 2, len }));
        let mut hello = Vec::new();
        Message::Hello(Role::Sender).encode(&mut hello);
        hello[8] = 2;
        assert_eq!(decode(&hello), Err(Violation::Version));
    }

    #[test]
    fn texts_are_shortened_and_escaped() {
        let mut octets = Vec::new();
        Message::Error("\u{1b}[31m".to_owned() + &"ä".repeat(300)).encode(&mut octets);
        let (message, _) = decode(&octets).unwrap().unwrap();
        let Message::Error(text) = message else { panic!("{message:?}") };
        assert!(text.starts_with("\\u{1b}[31m"), "{text}");
        assert!(octets.len() <= HEADER + MAX_TEXT);
    }
}
