//! The rules of the receiver, without I/O (TRF-3).

use crate::sender::MAX_OPEN;
use crate::wire::{Answer, Entry, Hash, Message, Outcome, Role, Violation};
use std::collections::BTreeMap;

/// A file whose content is expected.
#[derive(Debug)]
struct Wanted {
    size: Option<u64>,
    /// Offset of the next octet.
    at: u64,
    /// Whether it could not be stored: the rest of its content is ignored.
    has_failed: bool,
}

/// What a message of the sender means.
#[derive(Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// Nothing to do.
    Nothing,
    /// An entry, which needs an answer.
    Entry(Entry),
    /// The next octets of a file.
    Data(u32, &'a [u8]),
    /// The content of a file is complete if its hash is this one.
    Finish(u32, Hash),
    /// The content of a file does not follow.
    Abandon(u32),
    /// The sender ends the transfer, for this reason.
    Error(String),
}

/// The receiver's side of a transfer.
#[derive(Debug, Default)]
pub struct Receiver {
    has_hello: bool,
    next: u32,
    wanted: BTreeMap<u32, Wanted>,
    /// Size of the entry that waits for an answer.
    asked: Option<(u32, Option<u64>)>,
    /// The file whose content is incomplete.
    current: Option<u32>,
    has_ended: bool,
}

impl Receiver {
    /// Returns whether every file has its outcome, and no entries follow.
    pub fn is_complete(&self) -> bool {
        self.has_ended && self.wanted.is_empty()
    }

    /// Handles a message of the sender.
    ///
    /// # Errors
    /// If it is not possible now.
    pub fn handle<'a>(&mut self, message: Message<'a>) -> Result<Input<'a>, Violation> {
        match message {
            Message::Hello(Role::Sender) if !self.has_hello => {
                self.has_hello = true;
                Ok(Input::Nothing)
            }
            Message::Hello(Role::Receiver) if !self.has_hello => {
                Err(Violation::Unexpected("both ends receive"))
            }
            _ if !self.has_hello => Err(Violation::Unexpected("no HELLO")),
            Message::Entry(entry) => self.on_entry(entry),
            Message::Data { number, offset, bytes } => self.on_data(number, offset, bytes),
            Message::Finish { number, hash } => self.on_finish(number, hash),
            Message::Abandon { number } => {
                if self.current.is_none_or(|current| current == number)
                    && self.wanted.remove(&number).is_some()
                {
                    self.current = None;
                    return Ok(Input::Abandon(number));
                }
                Err(Violation::Unexpected("ABANDON"))
            }
            Message::End if !self.has_ended => {
                self.has_ended = true;
                Ok(Input::Nothing)
            }
            Message::End => Err(Violation::Unexpected("END")),
            Message::Error(text) => Ok(Input::Error(text)),
            Message::Hello(_) | Message::Answer { .. } | Message::Result { .. } | Message::Done => {
                Err(Violation::Unexpected("a message of receivers"))
            }
        }
    }

    fn on_entry(&mut self, entry: Entry) -> Result<Input<'static>, Violation> {
        if self.has_ended || entry.number != self.next || self.wanted.len() >= MAX_OPEN {
            return Err(Violation::Unexpected("ENTRY"));
        }
        self.next += 1;
        self.asked = Some((entry.number, entry.known_size()));
        Ok(Input::Entry(entry))
    }

    /// Notes the answer to the last entry; returns the message.
    ///
    /// # Panics
    /// If there is no entry without an answer.
    pub fn answer(&mut self, answer: Answer) -> Message<'static> {
        let (number, size) = self.asked.take().expect("an entry waits for its answer");
        if let Answer::Send(at) = answer {
            self.wanted.insert(number, Wanted { size, at, has_failed: false });
        }
        Message::Answer { number, answer }
    }

    /// Returns the wanted file of a message, which is not within the content of another.
    fn wanted(&mut self, number: u32) -> Option<&mut Wanted> {
        let is_possible = self.current.is_none_or(|current| current == number);
        self.wanted.get_mut(&number).filter(|_| is_possible)
    }

    fn on_data<'a>(
        &mut self,
        number: u32,
        offset: u64,
        bytes: &'a [u8],
    ) -> Result<Input<'a>, Violation> {
        let Some(wanted) = self.wanted(number) else { return Err(Violation::Unexpected("DATA")) };
        if wanted.has_failed {
            return Ok(Input::Nothing);
        }
        let end = offset.checked_add(bytes.len() as u64).ok_or(Violation::Value("offset"))?;
        if offset != wanted.at || wanted.size.is_some_and(|size| end > size) {
            return Err(Violation::Value("offset"));
        }
        wanted.at = end;
        self.current = Some(number);
        Ok(Input::Data(number, bytes))
    }

    fn on_finish(&mut self, number: u32, hash: Hash) -> Result<Input<'static>, Violation> {
        let Some(wanted) = self.wanted(number) else {
            return Err(Violation::Unexpected("FINISH"));
        };
        let has_failed = wanted.has_failed;
        if !has_failed && wanted.size.is_some_and(|size| wanted.at != size) {
            return Err(Violation::Value("size"));
        }
        self.current = None;
        if has_failed {
            // The sender has its outcome.
            self.wanted.remove(&number);
            return Ok(Input::Nothing);
        }
        Ok(Input::Finish(number, hash))
    }

    /// Notes the outcome of a file; returns the message. A failure is possible before its end.
    pub fn outcome(&mut self, number: u32, outcome: Outcome) -> Message<'static> {
        match (&outcome, self.wanted.get_mut(&number)) {
            (Outcome::Damaged, Some(wanted)) if wanted.size.is_some() => wanted.at = 0,
            (Outcome::Failed(_), Some(wanted)) if self.current == Some(number) => {
                wanted.has_failed = true;
            }
            _ => {
                self.wanted.remove(&number);
            }
        }
        Message::Result { number, outcome }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Kind, UNKNOWN_SIZE};

    fn entry(number: u32, size: u64) -> Message<'static> {
        let (mode, mtime_s, mtime_ns) = (0o644, 0, 0);
        let path = b"a".to_vec();
        Message::Entry(Entry { number, kind: Kind::File, mode, mtime_s, mtime_ns, size, path })
    }

    fn wants(size: u64, offset: u64) -> Receiver {
        let mut receiver = Receiver::default();
        receiver.handle(Message::Hello(Role::Sender)).unwrap();
        receiver.handle(entry(0, size)).unwrap();
        receiver.answer(Answer::Send(offset));
        receiver
    }

    fn data(offset: u64, bytes: &[u8]) -> Message<'_> {
        Message::Data { number: 0, offset, bytes }
    }

    /// TRF-3.4
    #[test]
    fn content_is_contiguous_and_has_the_announced_size() {
        let mut receiver = wants(10, 4);
        for (offset, bytes) in [(0, &b"abcd"[..]), (5, b"a"), (4, b"abcdefg"), (u64::MAX, b"a")] {
            assert!(receiver.handle(data(offset, bytes)).is_err(), "{offset}");
        }
        assert_eq!(receiver.handle(data(4, b"abc")), Ok(Input::Data(0, b"abc")));
        let finish = Message::Finish { number: 0, hash: [1; 32] };
        assert_eq!(receiver.handle(finish.clone()), Err(Violation::Value("size")));
        receiver.handle(data(7, b"def")).unwrap();
        assert_eq!(receiver.handle(finish), Ok(Input::Finish(0, [1; 32])));
        receiver.outcome(0, Outcome::Stored);
        receiver.handle(Message::End).unwrap();
        assert!(receiver.is_complete());
    }

    /// TRF-3.3
    #[test]
    fn unfinished_entries_are_bounded() {
        let mut receiver = wants(1, 0);
        for number in 1..MAX_OPEN as u32 {
            receiver.handle(entry(number, 1)).unwrap();
            receiver.answer(Answer::Send(0));
        }
        let number = MAX_OPEN as u32;
        assert_eq!(receiver.handle(entry(number, 1)), Err(Violation::Unexpected("ENTRY")));
    }

    #[test]
    fn the_rest_of_a_failed_file_is_ignored() {
        let mut receiver = wants(UNKNOWN_SIZE, 0);
        receiver.handle(data(0, b"ab")).unwrap();
        receiver.outcome(0, Outcome::Failed("disk full".to_owned()));
        assert_eq!(receiver.handle(data(2, b"cd")), Ok(Input::Nothing));
        receiver.handle(Message::End).unwrap();
        assert!(!receiver.is_complete());
        let finish = Message::Finish { number: 0, hash: [0; 32] };
        assert_eq!(receiver.handle(finish), Ok(Input::Nothing));
        assert!(receiver.is_complete());
    }

    #[test]
    fn files_are_not_interleaved() {
        let mut receiver = wants(10, 0);
        receiver.handle(entry(1, 10)).unwrap();
        receiver.answer(Answer::Send(0));
        receiver.handle(data(0, b"ab")).unwrap();
        let other = Message::Data { number: 1, offset: 0, bytes: b"ab" };
        assert_eq!(receiver.handle(other), Err(Violation::Unexpected("DATA")));
        assert!(receiver.handle(Message::Abandon { number: 1 }).is_err());
        assert_eq!(receiver.handle(Message::Abandon { number: 0 }), Ok(Input::Abandon(0)));
    }
}
