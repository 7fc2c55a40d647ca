//! The rules of the sender, without I/O (TRF-3).
//!
//! Entries are offered ahead of their content, so that a folder of small files does not cost a round
//! trip for each. Numbers and octets of unfinished entries are bounded.

use crate::wire::{Answer, Message, Outcome, Role, UNKNOWN_SIZE, Violation};
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of entries without an outcome, also at the receiver.
pub const MAX_OPEN: usize = 4_096;
/// Maximum octets of the paths of these entries, beyond the first.
const MAX_PATHS: usize = 256 << 10;
/// Maximum number of times that a file is sent.
const MAX_ATTEMPTS: u8 = 3;

/// An entry without an outcome.
#[derive(Debug)]
struct Offer {
    path_len: usize,
    size: u64,
    state: State,
    attempts: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Without an answer.
    Offered,
    /// Its content is needed, or being sent.
    Needed,
    /// Its content was sent.
    Sent,
}

/// What the receiver has reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// It had the entry already.
    Present(u32),
    /// It has stored the file.
    Stored(u32),
    /// The entry was refused, or the file could not be stored; its content is not needed.
    Failed(u32, String),
    /// The file arrived damaged, and is sent another time.
    Damaged(u32),
}

/// The sender's side of a transfer.
#[derive(Debug, Default)]
pub struct Sender {
    has_hello: bool,
    next: u32,
    open: BTreeMap<u32, Offer>,
    path_octets: usize,
    /// Files whose content is needed, from an offset.
    needed: VecDeque<(u32, u64)>,
    has_ended: bool,
    is_done: bool,
}

impl Sender {
    /// Returns whether another entry can be offered now.
    pub fn can_offer(&self) -> bool {
        !self.has_ended && self.open.len() < MAX_OPEN && self.path_octets < MAX_PATHS
    }

    /// Counts an entry that is offered; returns its number.
    pub fn offer(&mut self, path_len: usize, size: u64) -> u32 {
        let number = self.next;
        self.next += 1;
        self.path_octets += path_len;
        self.open.insert(number, Offer { path_len, size, state: State::Offered, attempts: 0 });
        number
    }

    /// Notes that no entries follow.
    pub fn end(&mut self) {
        self.has_ended = true;
    }

    /// Returns the next file whose content is needed, with the offset.
    pub fn take_needed(&mut self) -> Option<(u32, u64)> {
        self.needed.pop_front()
    }

    /// Notes that the content of a file was sent. Returns whether its outcome is awaited.
    pub fn on_sent(&mut self, number: u32) -> bool {
        let offer = self.open.get_mut(&number);
        offer.map(|offer| offer.state = State::Sent).is_some()
    }

    /// Notes that the content of a file will not be sent.
    pub fn on_abandoned(&mut self, number: u32) {
        self.remove(number);
    }

    /// Returns whether the content of a file is still wanted.
    pub fn is_wanted(&self, number: u32) -> bool {
        self.open.get(&number).is_some_and(|offer| offer.state == State::Needed)
    }

    /// Returns whether the receiver has everything.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    fn remove(&mut self, number: u32) -> Option<Offer> {
        let offer = self.open.remove(&number)?;
        self.path_octets -= offer.path_len;
        Some(offer)
    }

    /// Handles a message of the receiver.
    ///
    /// # Errors
    /// If it is not possible now.
    pub fn handle(&mut self, message: Message<'_>) -> Result<Option<Report>, Violation> {
        match message {
            Message::Hello(Role::Receiver) if !self.has_hello => {
                self.has_hello = true;
                Ok(None)
            }
            Message::Hello(Role::Sender) if !self.has_hello => {
                Err(Violation::Unexpected("both ends send"))
            }
            _ if !self.has_hello => Err(Violation::Unexpected("no HELLO")),
            Message::Answer { number, answer } => self.on_answer(number, answer),
            Message::Result { number, outcome } => self.on_outcome(number, outcome),
            Message::Done if self.has_ended && self.open.is_empty() => {
                self.is_done = true;
                Ok(None)
            }
            Message::Done => Err(Violation::Unexpected("DONE")),
            // Without an effect on the state; the caller ends the transfer.
            Message::Error(_) => Ok(None),
            Message::Hello(_)
            | Message::Entry(_)
            | Message::Data { .. }
            | Message::Finish { .. }
            | Message::Abandon { .. }
            | Message::End => Err(Violation::Unexpected("a message of senders")),
        }
    }

    fn on_answer(&mut self, number: u32, answer: Answer) -> Result<Option<Report>, Violation> {
        let offer = self.open.get_mut(&number).filter(|offer| offer.state == State::Offered);
        let Some(offer) = offer else { return Err(Violation::Unexpected("ANSWER")) };
        match answer {
            Answer::Send(offset) if offset > offer.size => Err(Violation::Value("offset")),
            Answer::Send(offset) if offer.size == UNKNOWN_SIZE && offset > 0 => {
                Err(Violation::Value("offset"))
            }
            Answer::Send(offset) => {
                (offer.state, offer.attempts) = (State::Needed, 1);
                self.needed.push_back((number, offset));
                Ok(None)
            }
            Answer::Present => {
                self.remove(number);
                Ok(Some(Report::Present(number)))
            }
            Answer::Refused(reason) => {
                self.remove(number);
                Ok(Some(Report::Failed(number, reason)))
            }
        }
    }

    fn on_outcome(&mut self, number: u32, outcome: Outcome) -> Result<Option<Report>, Violation> {
        let state = self.open.get(&number).map(|offer| offer.state);
        match (outcome, state) {
            (Outcome::Stored, Some(State::Sent)) => {
                self.remove(number);
                Ok(Some(Report::Stored(number)))
            }
            (Outcome::Damaged, Some(State::Sent)) => Ok(Some(self.on_damaged(number))),
            (Outcome::Failed(reason), Some(State::Sent | State::Needed)) => {
                self.remove(number);
                self.needed.retain(|&(needed, _)| needed != number);
                Ok(Some(Report::Failed(number, reason)))
            }
            // The file was abandoned meanwhile.
            (Outcome::Failed(_), None) if number < self.next => Ok(None),
            _ => Err(Violation::Unexpected("RESULT")),
        }
    }

    fn on_damaged(&mut self, number: u32) -> Report {
        let offer = self.open.get_mut(&number).filter(|offer| offer.size != UNKNOWN_SIZE);
        match offer {
            Some(offer) if offer.attempts < MAX_ATTEMPTS => {
                offer.attempts += 1;
                offer.state = State::Needed;
                self.needed.push_back((number, 0));
                Report::Damaged(number)
            }
            Some(_) | None => {
                self.remove(number);
                Report::Failed(number, "it arrives damaged".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeted() -> Sender {
        let mut sender = Sender::default();
        sender.handle(Message::Hello(Role::Receiver)).unwrap();
        sender
    }

    fn answer(number: u32, answer: Answer) -> Message<'static> {
        Message::Answer { number, answer }
    }

    fn result(number: u32, outcome: Outcome) -> Message<'static> {
        Message::Result { number, outcome }
    }

    /// TRF-3.3
    #[test]
    fn offers_are_bounded() {
        let mut sender = greeted();
        let mut offered = 0;
        while sender.can_offer() {
            sender.offer(10, 1);
            offered += 1;
        }
        assert_eq!(offered, MAX_OPEN);
        sender.handle(answer(0, Answer::Present)).unwrap();
        assert!(sender.can_offer());
        let mut sender = greeted();
        let mut offered = 0;
        while sender.can_offer() {
            sender.offer(4_096, 1);
            offered += 1;
        }
        assert_eq!(offered, 64);
    }

    /// TRF-3.5
    #[test]
    fn a_damaged_file_is_sent_three_times() {
        let mut sender = greeted();
        let number = sender.offer(1, 100);
        sender.handle(answer(number, Answer::Send(40))).unwrap();
        for offset in [40, 0, 0] {
            assert_eq!(sender.take_needed(), Some((number, offset)));
            assert!(sender.is_wanted(number) && sender.on_sent(number));
            let report = sender.handle(result(number, Outcome::Damaged)).unwrap();
            let failed = Report::Failed(number, "it arrives damaged".to_owned());
            let expected = if sender.open.is_empty() { failed } else { Report::Damaged(number) };
            assert_eq!(report, Some(expected));
        }
        assert_eq!(sender.take_needed(), None);
        sender.end();
        sender.handle(Message::Done).unwrap();
        assert!(sender.is_done());
    }

    #[test]
    fn impossible_messages_are_violations() {
        let is_refused = |prepare: &dyn Fn(&mut Sender), message: Message<'_>| {
            let mut sender = greeted();
            sender.offer(1, 10);
            prepare(&mut sender);
            assert!(sender.handle(message.clone()).is_err(), "{message:?}");
        };
        let nothing = |_: &mut Sender| ();
        is_refused(&nothing, answer(1, Answer::Present));
        is_refused(&nothing, answer(0, Answer::Send(11)));
        is_refused(&nothing, result(0, Outcome::Stored));
        is_refused(&nothing, Message::Done);
        is_refused(&nothing, Message::Hello(Role::Receiver));
        is_refused(&nothing, Message::End);
        let end = |sender: &mut Sender| sender.end();
        is_refused(&end, Message::Done);
        let answered = |sender: &mut Sender| {
            sender.handle(answer(0, Answer::Send(0))).unwrap();
        };
        is_refused(&answered, answer(0, Answer::Send(0)));
        is_refused(&answered, result(0, Outcome::Stored));
        assert!(Sender::default().handle(Message::Done).is_err(), "no HELLO");
    }
}
