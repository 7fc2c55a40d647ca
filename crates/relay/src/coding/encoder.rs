//! The sending side.

use super::{Coder, DICTIONARY_MAGIC, HISTORY, History, MAGIC, MAX_CHUNK, MAX_SHARED, VERSION};
use core::fmt;
use zstd_safe::{CCtx, compress_bound};

/// Compression level of Zstandard. Higher ones gain a tenth at most on chunks of this size, at a
/// fraction of the speed.
const LEVEL: i32 = 3;
/// Octets of a half by which it is decided whether it is compressed.
const SAMPLE: u64 = 16 << 10;
/// Fewer octets decide nothing.
const LEAST_SAMPLE: u64 = 2 << 10;
/// The prefix of a chunk has this many times the octets of the chunk, and no less than
/// [`LEAST_PREFIX`]: the compressor reads all of it for each chunk.
const PREFIX_CHUNKS: usize = 16;
const LEAST_PREFIX: usize = 4 << 10;

/// Compresses one half of a stream.
pub(crate) struct Encoder {
    coder: Coder,
    history: History,
    /// Octets taken so far, and produced for them.
    taken: u64,
    produced: u64,
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").field("taken", &self.taken).finish_non_exhaustive()
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        self.coder.with(|contexts| contexts.encoders -= 1);
    }
}

/// Returns whether `data`, the first octets of a half, begins a protocol that encrypts its content.
pub(crate) fn is_encrypted(data: &[u8]) -> bool {
    // A TLS record (RFC 8446, section 5.1), and the identification of SSH (RFC 4253, section 4.2).
    matches!(data, [0x14..=0x17, 3, 0..=4, ..]) || data.starts_with(b"SSH-")
}

impl Encoder {
    /// Returns an encoder, or `None` if too many exist.
    pub(crate) fn new(coder: &Coder) -> Option<Self> {
        let is_free = coder.with(|contexts| {
            let is_free = contexts.encoders < MAX_SHARED;
            contexts.encoders += usize::from(is_free);
            is_free
        });
        let coder = coder.clone();
        is_free.then(|| Self { coder, history: History::new(), taken: 0, produced: 0 })
    }

    /// Returns the chunk of `data`, at most [`MAX_CHUNK`] octets, which is at most
    /// [`OVERHEAD`](super::OVERHEAD) octets longer than those.
    pub(crate) fn encode(&mut self, data: &[u8]) -> Vec<u8> {
        debug_assert!(!data.is_empty() && data.len() <= MAX_CHUNK);
        let len = (data.len() * PREFIX_CHUNKS).clamp(LEAST_PREFIX, HISTORY);
        let prefix = super::prefix(&self.history.0, len);
        debug_assert!(!prefix.starts_with(&DICTIONARY_MAGIC));
        let mut frame = Vec::with_capacity(compress_bound(data.len()));
        let compressed = self.coder.with(|contexts| {
            let context = contexts.compress.get_or_insert_with(CCtx::create);
            context.compress_using_dict(&mut frame, data, prefix, LEVEL)
        });
        let content = frame.get(MAGIC.len()..).unwrap_or_default();
        let is_shorter = compressed.is_ok() && content.len() < data.len();
        let content = if is_shorter { content } else { data };
        let mut chunk = Vec::with_capacity(content.len() + super::OVERHEAD);
        if self.taken == 0 {
            chunk.push(VERSION);
        }
        write_head(&mut chunk, content.len(), is_shorter);
        chunk.extend_from_slice(content);
        self.history.make_room(data.len());
        self.history.0.extend_from_slice(data);
        self.taken += data.len() as u64;
        self.produced += chunk.len() as u64;
        chunk
    }

    /// Returns whether the first octets show that compressing the half is not worth it.
    pub(crate) fn is_in_vain(&self) -> bool {
        (LEAST_SAMPLE..=SAMPLE).contains(&self.taken) && self.produced * 8 > self.taken * 7
    }

    /// Appends to `chunk` that the octets behind it are not coded.
    pub(crate) fn end_coding(chunk: &mut Vec<u8>) {
        write_head(chunk, 0, false);
    }
}

fn write_head(chunk: &mut Vec<u8>, len: usize, is_compressed: bool) {
    let mut value = len * 2 + usize::from(is_compressed);
    while value >= 0x80 {
        chunk.push(value as u8 | 0x80);
        value >>= 7;
    }
    chunk.push(value as u8);
}
