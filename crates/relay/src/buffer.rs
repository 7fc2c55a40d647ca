//! Bytes of a stream by offset, in chunks that are allocated when bytes are written and freed when
//! they are consumed.

use std::collections::VecDeque;

/// Bytes in a chunk; also the maximum length of a slice that is returned.
pub(crate) const CHUNK: usize = 16 << 10;

/// A sparse range of bytes from `base` on. The caller records which of them were written.
#[derive(Debug, Default)]
pub(crate) struct ChunkBuffer {
    /// The lowest stored offset.
    base: u64,
    /// The offset of the first chunk's first byte; at most `base`.
    start: u64,
    chunks: VecDeque<Vec<u8>>,
}

impl ChunkBuffer {
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Returns the number of allocated bytes.
    pub(crate) fn allocated(&self) -> usize {
        self.chunks.iter().map(Vec::capacity).sum()
    }

    /// Stores `data` at `offset`; bytes below the base are skipped.
    pub(crate) fn write(&mut self, mut offset: u64, mut data: &[u8]) {
        if offset < self.base {
            let skip = (self.base - offset).min(data.len() as u64);
            data = &data[skip as usize..];
            offset += skip;
        }
        while !data.is_empty() {
            let (index, at) = self.locate(offset);
            while self.chunks.len() <= index {
                self.chunks.push_back(Vec::new());
            }
            let chunk = &mut self.chunks[index];
            let (bytes, rest) = data.split_at(data.len().min(CHUNK - at));
            write_at(chunk, at, bytes, index == 0);
            data = rest;
            offset += bytes.len() as u64;
        }
    }

    /// Copies the bytes from `offset` on into `out`, all of which must have been written.
    pub(crate) fn read(&self, mut offset: u64, mut out: &mut [u8]) {
        while !out.is_empty() {
            let piece = self.piece(offset, out.len());
            let (now, later) = out.split_at_mut(piece.len());
            now.copy_from_slice(piece);
            offset += piece.len() as u64;
            out = later;
        }
    }

    /// Returns at most `max` bytes from `offset` on that are contiguous in memory.
    pub(crate) fn piece(&self, offset: u64, max: usize) -> &[u8] {
        let (index, at) = self.locate(offset);
        let chunk = &self.chunks[index];
        &chunk[at..chunk.len().min(at + max)]
    }

    /// At most `max` bytes from `offset` on, in as many pieces as `pieces` has room for; the others
    /// are empty.
    pub(crate) fn pieces<'a>(&'a self, offset: u64, max: usize, pieces: &mut [&'a [u8]]) {
        let (index, mut at) = self.locate(offset);
        let mut left = max;
        let chunks = self.chunks.range(index.min(self.chunks.len())..);
        for (piece, chunk) in pieces.iter_mut().zip(chunks) {
            *piece = &chunk[at..chunk.len().min(at + left)];
            left -= piece.len();
            at = 0;
            if left == 0 {
                return;
            }
        }
    }

    /// Discards everything below `base`. With `empty` nothing is stored above it, and all memory is
    /// freed.
    pub(crate) fn advance(&mut self, base: u64, empty: bool) {
        self.base = base;
        if empty {
            self.chunks = VecDeque::new();
            self.start = base;
            return;
        }
        while self.base - self.start >= CHUNK as u64 && !self.chunks.is_empty() {
            self.chunks.pop_front();
            self.start += CHUNK as u64;
        }
        if self.chunks.is_empty() {
            self.start = base;
        }
    }

    /// Discards everything from `stop` on, in whole chunks.
    pub(crate) fn truncate(&mut self, stop: u64) {
        let kept = stop.saturating_sub(self.start).div_ceil(CHUNK as u64);
        self.chunks.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
    }

    fn locate(&self, offset: u64) -> (usize, usize) {
        let from_start = offset - self.start;
        ((from_start / CHUNK as u64) as usize, (from_start % CHUNK as u64) as usize)
    }
}

/// Writes `bytes` at `at` of `chunk`; what lies between its end and `at` becomes zero. A chunk that
/// is not the `first` one is allocated as a whole: its stream is not short.
fn write_at(chunk: &mut Vec<u8>, at: usize, bytes: &[u8], first: bool) {
    let end = at + bytes.len();
    if end > chunk.capacity() {
        // Doubling, but never past a chunk: short streams stay small.
        let wanted = if first { end.max((2 * chunk.capacity()).min(CHUNK)) } else { CHUNK };
        chunk.reserve_exact(wanted - chunk.len());
    }
    if at > chunk.len() {
        chunk.resize(at, 0);
    }
    // Memory is not cleared where it is written at once.
    let (old, new) = bytes.split_at(bytes.len().min(chunk.len() - at));
    chunk[at..at + old.len()].copy_from_slice(old);
    chunk.extend_from_slice(new);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(offset: u64, len: usize) -> Vec<u8> {
        (offset..offset + len as u64).map(|at| (at % 251) as u8).collect()
    }

    #[test]
    fn bytes_are_read_back_in_any_order() {
        let mut buffer = ChunkBuffer::default();
        let total = 100_000usize;
        for step in (0..total).step_by(1_436).rev() {
            let len = 1_436.min(total - step);
            buffer.write(step as u64, &pattern(step as u64, len));
        }
        let mut all = vec![0; total];
        buffer.read(0, &mut all);
        assert_eq!(all, pattern(0, total));
        let mut pieces: [&[u8]; 3] = [&[]; 3];
        buffer.pieces(10, 2 * CHUNK, &mut pieces);
        assert_eq!(pieces.map(<[u8]>::len), [CHUNK - 10, CHUNK, 10]);
        assert_eq!(pieces.concat(), pattern(10, 2 * CHUNK));
        buffer.advance(50_001, false);
        assert!(buffer.allocated() <= 50_000 + 2 * CHUNK);
        assert_eq!(buffer.piece(50_001, 10), pattern(50_001, 10));
        buffer.write(49_990, &pattern(49_990, 30));
        assert_eq!(buffer.piece(50_001, 10), pattern(50_001, 10));
    }

    #[test]
    fn truncation_discards_later_bytes() {
        let mut buffer = ChunkBuffer::default();
        buffer.write(0, &pattern(0, 5 * CHUNK));
        buffer.advance(CHUNK as u64 + 7, false);
        buffer.truncate(2 * CHUNK as u64 + 1);
        assert_eq!(buffer.allocated(), 2 * CHUNK);
        let mut rest = vec![0; CHUNK - 6];
        buffer.read(CHUNK as u64 + 7, &mut rest);
        assert_eq!(rest, pattern(CHUNK as u64 + 7, CHUNK - 6));
        buffer.truncate(0);
        assert_eq!(buffer.allocated(), 0);
    }

    #[test]
    fn memory_grows_with_the_content() {
        let mut buffer = ChunkBuffer::default();
        buffer.write(0, &[1; 100]);
        assert!(buffer.allocated() < 256);
        buffer.advance(100, true);
        assert_eq!(buffer.allocated(), 0);
        buffer.write(100, &[2; 100]);
        assert_eq!(buffer.piece(100, 1000), [2; 100]);
        assert!(buffer.allocated() < 256);
    }
}
