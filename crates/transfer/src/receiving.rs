//! Receiving over a channel.

use crate::channel::{Channel, progress};
use crate::receiver::{Input, Receiver};
use crate::wire::{Answer, Entry, Hash, MAX_MESSAGE, Message, Outcome, Role, decode};
use crate::{Reporter, Summary, TransferError, Update};
use std::io;

/// Where received files are written.
pub trait Store {
    /// Decides on an entry; its content follows after [`Answer::Send`].
    fn offer(&mut self, entry: Entry) -> Answer;

    /// Writes the next octets of a file.
    ///
    /// # Errors
    /// If they cannot be written; the file has failed then.
    fn write(&mut self, number: u32, bytes: &[u8]) -> io::Result<()>;

    /// Stores the complete file if it has this hash; returns false and discards it otherwise.
    ///
    /// # Errors
    /// If it cannot be stored; the file has failed then.
    fn finish(&mut self, number: u32, hash: &Hash) -> io::Result<bool>;

    /// Releases a file whose content does not follow, or that has failed.
    fn abandon(&mut self, number: u32);

    /// Waits until all files are on the disk.
    ///
    /// # Errors
    /// If that is not possible.
    fn close(&mut self) -> io::Result<()>;
}

/// Receives one transfer from `channel` into `store`. Returns after the sender has the last
/// message, so the caller only closes the stream.
///
/// # Errors
/// If the stream is lost, or the sender violates the protocol or ends the transfer.
pub fn receive(
    channel: &mut impl Channel,
    store: &mut impl Store,
    report: &mut Reporter<'_>,
) -> Result<Summary, TransferError> {
    let mut run = Run {
        channel,
        store,
        report,
        rules: Receiver::default(),
        replies: Vec::new(),
        summary: Summary::default(),
    };
    let result = run.run();
    if let Err(TransferError::Protocol(violation)) = &result {
        run.replies.clear();
        Message::Error(violation.to_string()).encode(&mut run.replies);
        let _ = run.flush(); // The violation is reported.
    }
    result.map(|()| run.summary)
}

struct Run<'a, 'r, C, S> {
    channel: &'a mut C,
    store: &'a mut S,
    report: &'a mut Reporter<'r>,
    rules: Receiver,
    /// Messages that are not written yet: at most those to one read.
    replies: Vec<u8>,
    summary: Summary,
}

impl<C: Channel, S: Store> Run<'_, '_, C, S> {
    fn run(&mut self) -> Result<(), TransferError> {
        Message::Hello(Role::Receiver).encode(&mut self.replies);
        let mut input = vec![0; 2 * MAX_MESSAGE];
        let mut len = 0;
        loop {
            self.flush()?;
            match progress(self.channel.try_read(&mut input[len..])) {
                Ok(None) => {
                    self.channel.wait(false);
                    continue;
                }
                Ok(Some(0)) => return Err(TransferError::Interrupted(early_end())),
                Ok(Some(read)) => len += read,
                Err(error) => return Err(TransferError::Interrupted(error)),
            }
            let mut used = 0;
            while let Some((message, octets)) = decode(&input[used..len])? {
                used += octets;
                let input = self.rules.handle(message)?;
                self.handle(input)?;
            }
            input.copy_within(used..len, 0);
            len -= used;
            if self.rules.is_complete() {
                return self.complete();
            }
        }
    }

    fn handle(&mut self, input: Input<'_>) -> Result<(), TransferError> {
        match input {
            Input::Nothing => {}
            Input::Entry(entry) => {
                let shown = String::from_utf8_lossy(&entry.path).escape_debug().to_string();
                let size = entry.known_size().unwrap_or_default();
                let answer = self.store.offer(entry);
                match &answer {
                    Answer::Send(offset) => (self.report)(Update::Skipped(*offset)),
                    Answer::Present => {
                        self.summary.present += 1;
                        (self.report)(Update::Skipped(size));
                    }
                    Answer::Refused(reason) => self.fail(&format!("{shown}: refused: {reason}")),
                }
                self.rules.answer(answer).encode(&mut self.replies);
            }
            Input::Data(number, bytes) => match self.store.write(number, bytes) {
                Ok(()) => {
                    self.summary.octets += bytes.len() as u64;
                    (self.report)(Update::Moved(bytes.len() as u64));
                }
                Err(error) => self.fail_file(number, &error),
            },
            Input::Finish(number, hash) => match self.store.finish(number, &hash) {
                Ok(is_stored) => {
                    self.summary.files += u64::from(is_stored);
                    let outcome = if is_stored { Outcome::Stored } else { Outcome::Damaged };
                    self.rules.outcome(number, outcome).encode(&mut self.replies);
                }
                Err(error) => self.fail_file(number, &error),
            },
            Input::Abandon(number) => self.store.abandon(number),
            Input::Error(text) => return Err(TransferError::Peer(text)),
        }
        Ok(())
    }

    fn fail(&mut self, note: &str) {
        self.summary.failed += 1;
        (self.report)(Update::Note(note));
    }

    fn fail_file(&mut self, number: u32, error: &io::Error) {
        self.store.abandon(number);
        self.fail(&format!("a file was not stored: {error}"));
        let outcome = Outcome::Failed(error.to_string());
        self.rules.outcome(number, outcome).encode(&mut self.replies);
    }

    fn complete(&mut self) -> Result<(), TransferError> {
        match self.store.close() {
            Ok(()) => Message::Done.encode(&mut self.replies),
            Err(error) => {
                let text = format!("the files are not on the disk: {error}");
                Message::Error(text.clone()).encode(&mut self.replies);
                self.flush()?;
                return Err(TransferError::Local(text));
            }
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<(), TransferError> {
        let mut written = 0;
        while written < self.replies.len() {
            match progress(self.channel.try_write(&self.replies[written..])) {
                Ok(Some(len)) => written += len,
                Ok(None) => self.channel.wait(true),
                Err(error) => return Err(TransferError::Interrupted(error)),
            }
        }
        self.replies.clear();
        Ok(())
    }
}

pub(crate) fn early_end() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the peer has closed the stream")
}
