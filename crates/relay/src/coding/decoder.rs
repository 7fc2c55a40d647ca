//! The receiving side, which accepts any octets.

use super::{Coder, HISTORY, History, MAGIC, MAX_CHUNK, VERSION};
use core::fmt;
use zstd_safe::{DCtx, get_frame_content_size};

/// A coded half that cannot be decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

/// What the next octet is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Version,
    /// The head of a chunk, of which `value` was read.
    Head {
        value: usize,
        shift: u32,
    },
    Content {
        len: usize,
        is_compressed: bool,
    },
    /// The rest of the half, which is not coded.
    Plain,
}

const HEAD: Next = Next::Head { value: 0, shift: 0 };

/// Decompresses one half of a stream, one chunk at a time.
pub(crate) struct Decoder {
    coder: Coder,
    history: History,
    /// Octets at the end of the history that were not read yet.
    unread: usize,
    next: Next,
    /// The magic number, and what has arrived of a content.
    staged: Vec<u8>,
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").field("next", &self.next).finish_non_exhaustive()
    }
}

impl Decoder {
    pub(crate) fn new(coder: &Coder) -> Self {
        let (history, staged) = (History::new(), Vec::new());
        Self { coder: coder.clone(), history, unread: 0, next: Next::Version, staged }
    }

    /// Decompressed octets that were not read yet, at most [`MAX_CHUNK`].
    pub(crate) fn output(&self) -> &[u8] {
        &self.history.0[self.history.0.len() - self.unread..]
    }

    /// Removes the first `len` octets of the output.
    ///
    /// # Panics
    /// Panics if there are fewer.
    pub(crate) fn consume(&mut self, len: usize) {
        assert!(len <= self.unread, "{len} octets consumed of {}", self.unread);
        self.unread -= len;
    }

    /// Returns whether the octets behind the output are not coded.
    pub(crate) fn is_over(&self) -> bool {
        self.next == Next::Plain
    }

    /// Returns whether the half may end here.
    pub(crate) fn is_between_chunks(&self) -> bool {
        matches!(self.next, HEAD | Next::Plain | Next::Version)
    }

    /// Bytes of allocated memory.
    pub(crate) fn allocated(&self) -> usize {
        self.history.0.capacity() + self.staged.capacity()
    }

    /// Takes octets until there is output, the coding is over, or there are none left; returns how
    /// many. It is called without output.
    ///
    /// # Errors
    /// Returns an error if they cannot be decompressed.
    pub(crate) fn take(&mut self, octets: &[u8]) -> Result<usize, Damaged> {
        debug_assert_eq!(self.unread, 0);
        let mut rest = octets;
        while let Some((&first, behind)) = rest.split_first()
            && self.unread == 0
            && !self.is_over()
        {
            match self.next {
                Next::Version if first == VERSION => (self.next, rest) = (HEAD, behind),
                Next::Version => return Err(Damaged),
                Next::Head { value, shift } => {
                    self.next = after_head(value, shift, first)?;
                    rest = behind;
                }
                Next::Content { len, is_compressed } => {
                    let missing = len - self.staged.len().saturating_sub(MAGIC.len());
                    if self.staged.is_empty() {
                        self.staged.reserve_exact(MAGIC.len() + len);
                        self.staged.extend_from_slice(&MAGIC);
                    }
                    let (now, later) = rest.split_at(missing.min(rest.len()));
                    self.staged.extend_from_slice(now);
                    rest = later;
                    if now.len() == missing {
                        self.finish_chunk(is_compressed)?;
                    }
                }
                Next::Plain => {}
            }
        }
        Ok(octets.len() - rest.len())
    }

    fn finish_chunk(&mut self, is_compressed: bool) -> Result<(), Damaged> {
        let staged = core::mem::take(&mut self.staged);
        self.next = HEAD;
        self.history.make_room(MAX_CHUNK);
        let history = &mut self.history.0;
        let start = history.len();
        if is_compressed {
            let size = get_frame_content_size(&staged).ok().flatten().unwrap_or_default();
            let size = usize::try_from(size).map_err(|_| Damaged)?;
            if size == 0 || size > MAX_CHUNK {
                return Err(Damaged);
            }
            history.resize(start + size, 0);
            let (past, room) = history.split_at_mut(start);
            let prefix = super::prefix(past, HISTORY);
            let written = self.coder.with(|contexts| {
                let context = contexts.decompress.get_or_insert_with(DCtx::create);
                context.decompress_using_dict(room, &staged, prefix)
            });
            if written != Ok(size) {
                return Err(Damaged);
            }
        } else {
            history.extend_from_slice(&staged[MAGIC.len()..]);
        }
        self.unread = self.history.0.len() - start;
        Ok(())
    }
}

/// What follows the octet `first` of a head.
fn after_head(value: usize, shift: u32, first: u8) -> Result<Next, Damaged> {
    let value = value | usize::from(first & 0x7f) << shift;
    if first & 0x80 != 0 {
        // The longest content has a head of three octets.
        return if shift < 14 { Ok(Next::Head { value, shift: shift + 7 }) } else { Err(Damaged) };
    }
    match (value / 2, value % 2 == 1) {
        (0, false) => Ok(Next::Plain),
        (len @ 1..=MAX_CHUNK, is_compressed) => Ok(Next::Content { len, is_compressed }),
        (_, _) => Err(Damaged),
    }
}
