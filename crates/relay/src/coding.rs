//! Compression of one direction of a stream (RLY-13).
//!
//! ```text
//! half    version (1 octet), chunks
//! chunk   varint: length of the content × 2 + 1 if it is compressed; content
//! ```
//!
//! Each chunk can be decompressed when it has arrived, so that nothing waits for a later write. It
//! refers to the last [`HISTORY`] octets of the same half. The compressor's own state is the same
//! for all streams of a gateway; a stream only stores its history.

mod decoder;
mod encoder;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;

use core::fmt;
pub(crate) use decoder::Decoder;
pub(crate) use encoder::{Encoder, is_encrypted};
use std::sync::{Arc, Mutex, PoisonError};
use zstd_safe::{CCtx, DCtx};

/// First octet of a coded half. Another dictionary or another format has another one.
const VERSION: u8 = 1;
/// Precedes the first octets of each half in its history.
const DICTIONARY: &[u8] = include_bytes!("coding/dictionary.txt");
/// Maximum octets of a chunk before compression.
pub(crate) const MAX_CHUNK: usize = 16 << 10;
/// Octets that a chunk may refer to.
const HISTORY: usize = 32 << 10;
/// Maximum octets of memory of a history.
const MAX_MEMORY: usize = 64 << 10;
/// Maximum octets that a chunk is longer than its content before compression, with the version and
/// the end of coding.
pub(crate) const OVERHEAD: usize = 5;
/// First octets of a Zstandard frame, which are not transmitted.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Prefixes with these first octets would be taken for a formatted dictionary (RFC 8878, section 5).
const DICTIONARY_MAGIC: [u8; 4] = [0x37, 0xa4, 0x30, 0xec];

/// Halves that one session may have coded at a time, by the sender.
pub(crate) const MAX_ENCODED: usize = 64;
/// The same for the receiver: some may be read here that have ended at the sender.
pub(crate) const MAX_DECODED: usize = 256;
/// Halves that are coded at a time by all sessions that share a [`Coder`].
const MAX_SHARED: usize = 1024;

/// Counters of compressed streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodingStatistics {
    /// Octets of streams before compression, of compressed chunks and those stored in between.
    pub plain_sent: u64,
    /// The octets that were sent for them.
    pub coded_sent: u64,
    /// Octets of streams after decompression.
    pub plain_received: u64,
    /// The octets that were received for them.
    pub coded_received: u64,
    /// Streams of which the sent half was compressed.
    pub compressed: u64,
    /// Streams that were left as they are because of their content, some after their first octets.
    pub left_alone: u64,
    /// Streams that were left as they are because too many are compressed already.
    pub refused: u64,
    /// Streams that were reset because what was received could not be decompressed.
    pub damaged: u64,
}

impl CodingStatistics {
    /// Adds the counters of `other`.
    pub fn add(&mut self, other: &Self) {
        self.plain_sent += other.plain_sent;
        self.coded_sent += other.coded_sent;
        self.plain_received += other.plain_received;
        self.coded_received += other.coded_received;
        self.compressed += other.compressed;
        self.left_alone += other.left_alone;
        self.refused += other.refused;
        self.damaged += other.damaged;
    }
}

/// State of the compressor, shared by the relays to whose configurations it was cloned.
#[derive(Clone, Default)]
pub struct Coder(Arc<Mutex<Contexts>>);

#[derive(Default)]
struct Contexts {
    compress: Option<CCtx<'static>>,
    decompress: Option<DCtx<'static>>,
    /// Encoders that exist.
    encoders: usize,
}

impl fmt::Debug for Coder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coder").finish_non_exhaustive()
    }
}

impl Coder {
    fn with<T>(&self, work: impl FnOnce(&mut Contexts) -> T) -> T {
        // Each chunk begins with fresh state, so a panic of another thread leaves nothing behind.
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The last octets of a half, before compression.
#[derive(Debug)]
struct History(Vec<u8>);

impl History {
    fn new() -> Self {
        Self(DICTIONARY.to_vec())
    }

    /// Makes room for `len` more octets within [`MAX_MEMORY`].
    fn make_room(&mut self, len: usize) {
        if self.0.len() + len > MAX_MEMORY {
            self.0.drain(..self.0.len() - HISTORY);
        }
        let capacity = (self.0.len() + len).next_power_of_two();
        self.0.reserve_exact(capacity - self.0.len());
    }
}

/// The last `len` octets of `history` in the form that a chunk may refer to.
fn prefix(history: &[u8], len: usize) -> &[u8] {
    let prefix = &history[history.len().saturating_sub(len)..];
    // A receiver whose prefix is longer finds the same octets, since references count from its end.
    if prefix.starts_with(&DICTIONARY_MAGIC) { &prefix[1..] } else { prefix }
}

#[cfg(test)]
mod tests;
