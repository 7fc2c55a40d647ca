//! Standard output, or another writer, that receives one file.

use crate::receiving::Store;
use crate::wire::{Answer, Entry, Hash, Kind};
use ring::digest::{Context, SHA256};
use std::io::{self, Write};

/// A writer that receives one file. It stays over interruptions, and continues after the octets
/// that were written. Its hash is known only after all of it was written.
pub struct Output<W> {
    writer: W,
    /// Path, size and time of the file.
    identity: Option<(Vec<u8>, u64, i64, u32)>,
    written: u64,
    hash: Context,
}

impl<W: Write> Output<W> {
    /// Creates the store for `writer`.
    pub fn new(writer: W) -> Self {
        Self { writer, identity: None, written: 0, hash: Context::new(&SHA256) }
    }
}

impl<W: Write> Store for Output<W> {
    fn offer(&mut self, entry: Entry) -> Answer {
        let Entry { path, size, mtime_s, mtime_ns, kind, .. } = entry;
        let identity = (path, size, mtime_s, mtime_ns);
        if kind == Kind::Folder || self.identity.as_ref().is_some_and(|one| *one != identity) {
            return Answer::Refused("the receiver takes one file, to its standard output".into());
        }
        self.identity = Some(identity);
        if size == crate::wire::UNKNOWN_SIZE && self.written > 0 {
            return Answer::Refused("a part was received, and this input has no beginning".into());
        }
        Answer::Send(self.written)
    }

    fn write(&mut self, _: u32, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes)?;
        self.hash.update(bytes);
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn finish(&mut self, _: u32, hash: &Hash) -> io::Result<bool> {
        self.writer.flush()?;
        if self.hash.clone().finish().as_ref() == hash {
            return Ok(true);
        }
        Err(io::Error::other("the hash differs, and what was written cannot be taken back"))
    }

    fn abandon(&mut self, _: u32) {}

    fn close(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}
