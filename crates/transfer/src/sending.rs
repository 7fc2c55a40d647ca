//! Sending over a channel.

use crate::channel::{Channel, progress};
use crate::folder::hash_prefix;
use crate::receiving::early_end;
use crate::sender::{Report, Sender};
use crate::source::{Content, Found, Source, Walk, is_unchanged};
use crate::wire::{Entry, Hash, MAX_MESSAGE, Message, Role, UNKNOWN_SIZE, decode};
use crate::{Reporter, Summary, TransferError, Update};
use ring::digest::{Context, SHA256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};

/// Octets of content in one message.
const PIECE: usize = 16 << 10;
/// Octets of messages that wait for the channel, at most, and one message.
const AHEAD: usize = 128 << 10;

/// Sends the files of `source` over `channel`. Returns when the receiver has all of them on its
/// disk.
///
/// # Errors
/// If the stream is lost, or the receiver violates the protocol or ends the transfer.
pub fn send(
    channel: &mut impl Channel,
    source: &mut Source,
    report: &mut Reporter<'_>,
) -> Result<Summary, TransferError> {
    let mut run = Run {
        rules: Sender::default(),
        walk: Some(source.walk()),
        input: source.take_input(),
        offered: BTreeMap::new(),
        current: None,
        out: Vec::new(),
        summary: Summary::default(),
        report,
    };
    Message::Hello(Role::Sender).encode(&mut run.out);
    let result = run.run(channel);
    if let Err(TransferError::Protocol(violation)) = &result {
        let mut last = Vec::new();
        Message::Error(violation.to_string()).encode(&mut last);
        let _ = channel.try_write(&last); // The violation is reported.
    }
    result.map(|()| run.summary)
}

/// A file that is being sent.
struct Current {
    number: u32,
    reader: Reader,
    offset: u64,
    hash: Context,
}

enum Reader {
    File(File),
    Input(Box<dyn Read>),
}

struct Run<'a, 'r> {
    rules: Sender,
    /// `None` after its end.
    walk: Option<Walk>,
    input: Option<Box<dyn Read>>,
    /// Files without an outcome; their number is bounded by the rules.
    offered: BTreeMap<u32, Found>,
    current: Option<Current>,
    out: Vec<u8>,
    summary: Summary,
    report: &'a mut Reporter<'r>,
}

impl Run<'_, '_> {
    fn run(&mut self, channel: &mut impl Channel) -> Result<(), TransferError> {
        let mut input = vec![0; MAX_MESSAGE];
        let (mut len, mut written) = (0, 0);
        loop {
            let mut has_moved = false;
            while let Some(read) =
                progress(channel.try_read(&mut input[len..])).map_err(TransferError::Interrupted)?
            {
                if read == 0 {
                    return Err(TransferError::Interrupted(early_end()));
                }
                len += read;
                let mut used = 0;
                while let Some((message, octets)) = decode(&input[used..len])? {
                    used += octets;
                    self.handle(message)?;
                }
                // The receiver closes the stream after its last message.
                if self.rules.is_done() {
                    return Ok(());
                }
                input.copy_within(used..len, 0);
                len -= used;
                has_moved = true;
            }
            while self.out.len() - written < AHEAD && self.fill() {}
            if written < self.out.len()
                && let Some(octets) = progress(channel.try_write(&self.out[written..]))
                    .map_err(TransferError::Interrupted)?
            {
                written += octets;
                has_moved = true;
            }
            if written >= AHEAD || written == self.out.len() {
                self.out.drain(..written);
                written = 0;
            }
            if !has_moved {
                channel.wait(written < self.out.len());
            }
        }
    }

    fn handle(&mut self, message: Message<'_>) -> Result<(), TransferError> {
        if let Message::Error(text) = message {
            return Err(TransferError::Peer(text));
        }
        let Some(outcome) = self.rules.handle(message)? else { return Ok(()) };
        match outcome {
            Report::Present(number) => {
                let found = self.offered.remove(&number);
                self.summary.present += 1;
                let size = found.and_then(|found| found.size);
                (self.report)(Update::Skipped(size.unwrap_or_default()));
            }
            Report::Stored(number) => {
                self.offered.remove(&number);
                self.summary.files += 1;
            }
            Report::Failed(number, reason) => {
                let found = self.offered.remove(&number);
                let path = found.map_or_else(String::new, |found| shown(&found.path));
                self.fail(&format!("{path}: {reason}"));
            }
            Report::Damaged(number) => {
                let path = self.offered.get(&number).map(|found| shown(&found.path));
                let path = path.unwrap_or_default();
                (self.report)(Update::Note(&format!(
                    "{path}: arrived damaged, is sent another time"
                )));
            }
        }
        Ok(())
    }

    fn fail(&mut self, note: &str) {
        self.summary.failed += 1;
        (self.report)(Update::Note(note));
    }

    /// Appends the next message to the output; returns false if there is none now.
    fn fill(&mut self) -> bool {
        if self.rules.can_offer() && self.walk.is_some() {
            self.offer();
            return true;
        }
        if let Some(current) = self.current.take() {
            self.send_piece(current);
            return true;
        }
        match self.rules.take_needed() {
            Some((number, offset)) => {
                self.start(number, offset);
                true
            }
            None => false,
        }
    }

    fn offer(&mut self) {
        match self.walk.as_mut().and_then(Walk::next) {
            None => {
                self.walk = None;
                self.rules.end();
                Message::End.encode(&mut self.out);
            }
            Some(Err(error)) => self.fail(&error.to_string()),
            Some(Ok(found)) => {
                let size = found.size.unwrap_or(UNKNOWN_SIZE);
                let number = self.rules.offer(found.path.len(), size);
                let (mtime_s, mtime_ns) = found.mtime;
                let (kind, mode, path) = (found.kind(), found.mode, found.path.clone());
                let entry = Entry { number, kind, mode, mtime_s, mtime_ns, size, path };
                Message::Entry(entry).encode(&mut self.out);
                self.offered.insert(number, found);
            }
        }
    }

    fn start(&mut self, number: u32, offset: u64) {
        match self.open(number, offset) {
            Ok(current) => {
                (self.report)(Update::Skipped(offset));
                self.current = Some(current);
            }
            Err(error) => self.abandon(number, &error.to_string()),
        }
    }

    fn open(&mut self, number: u32, offset: u64) -> io::Result<Current> {
        let found = self.offered.get(&number).ok_or(io::ErrorKind::NotFound)?;
        let mut hash = Context::new(&SHA256);
        let reader = match &found.content {
            Content::Folder => return Err(io::ErrorKind::IsADirectory.into()),
            Content::Input => Reader::Input(self.input.take().ok_or(io::ErrorKind::NotFound)?),
            Content::File(path) => {
                let mut file = File::open(path)?;
                hash_prefix(&mut file, offset, &mut hash)?;
                Reader::File(file)
            }
        };
        Ok(Current { number, reader, offset, hash })
    }

    fn abandon(&mut self, number: u32, reason: &str) {
        Message::Abandon { number }.encode(&mut self.out);
        self.rules.on_abandoned(number);
        if let Some(found) = self.offered.remove(&number) {
            self.fail(&format!("{}: {reason}", shown(&found.path)));
        }
    }

    fn send_piece(&mut self, mut current: Current) {
        let number = current.number;
        if !self.rules.is_wanted(number) {
            // The receiver has reported why.
            Message::Abandon { number }.encode(&mut self.out);
            return;
        }
        let mut piece = [0; PIECE];
        let read = match &mut current.reader {
            Reader::File(file) => file.read(&mut piece),
            Reader::Input(input) => input.read(&mut piece),
        };
        let size = self.offered.get(&number).and_then(|found| found.size);
        match read {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.current = Some(current);
            }
            Err(error) => self.abandon(number, &error.to_string()),
            Ok(0) => self.finish(current),
            Ok(len) if size.is_some_and(|size| current.offset + len as u64 > size) => {
                self.abandon(number, CHANGED);
            }
            Ok(len) => {
                let bytes = &piece[..len];
                current.hash.update(bytes);
                let offset = current.offset;
                Message::Data { number, offset, bytes }.encode(&mut self.out);
                current.offset += len as u64;
                self.summary.octets += len as u64;
                (self.report)(Update::Moved(len as u64));
                self.current = Some(current);
            }
        }
    }

    fn finish(&mut self, current: Current) {
        let Current { number, reader, hash, .. } = current;
        let found = self.offered.get(&number);
        if let (Reader::File(file), Some(found)) = (&reader, found)
            && !is_unchanged(file, found).unwrap_or(false)
        {
            self.abandon(number, CHANGED);
            return;
        }
        let hash = hash.finish();
        let hash: Hash = hash.as_ref().try_into().expect("SHA-256 has 32 octets");
        Message::Finish { number, hash }.encode(&mut self.out);
        self.rules.on_sent(number);
    }
}

const CHANGED: &str = "it has changed while it was sent; send it again";

fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).escape_debug().to_string()
}
