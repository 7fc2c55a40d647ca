//! The caller's buffer for datagrams that are sent together.

/// Content of a batch after a call to `poll_transmit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Octets in the batch, from its start.
    pub len: usize,
    /// Size in octets of each datagram but the last, which may be shorter.
    pub segment_size: usize,
}

/// A buffer of the caller to which datagrams are written one after another, all of one size (the
/// last may be shorter), so that the kernel can send them in one call. A batch whose first datagram
/// is smaller than the path MTU is closed with it, because a larger one could not follow.
#[derive(Debug)]
pub struct TransmitBatch<'a> {
    buffer: &'a mut [u8],
    len: usize,
    count: usize,
    max_datagrams: usize,
    segment_size: usize,
    offered: usize,
    closed: bool,
}

impl<'a> TransmitBatch<'a> {
    /// Creates an empty batch of at most `max_datagrams` datagrams in `buffer`.
    pub fn new(buffer: &'a mut [u8], max_datagrams: usize) -> Self {
        Self { buffer, len: 0, count: 0, max_datagrams, segment_size: 0, offered: 0, closed: false }
    }

    /// Returns space for the next datagram, of at most `max_datagram` octets; `None` if the batch
    /// is complete. The datagram is added by [`commit`](Self::commit).
    pub fn slot(&mut self, max_datagram: usize) -> Option<&mut [u8]> {
        if self.closed || self.count >= self.max_datagrams {
            return None;
        }
        let left = self.buffer.len() - self.len;
        let size = if self.count == 0 {
            max_datagram.min(left)
        } else if self.segment_size > max_datagram || self.segment_size > left {
            return None;
        } else {
            self.segment_size
        };
        if size == 0 {
            return None;
        }
        self.offered = size;
        Some(&mut self.buffer[self.len..self.len + size])
    }

    /// Adds the first `len` octets of the last [slot](Self::slot) to the batch as a datagram.
    ///
    /// # Panics
    /// If `len` is zero or larger than the slot.
    pub fn commit(&mut self, len: usize) {
        assert!(len > 0 && len <= self.offered, "{len} bytes were not offered");
        if self.count == 0 {
            self.segment_size = len;
        }
        self.closed = len < self.offered;
        self.offered = 0;
        self.len += len;
        self.count += 1;
    }

    /// Returns the content of the batch; `None` if it is empty.
    pub fn transmit(&self) -> Option<Transmit> {
        (self.count > 0).then_some(Transmit { len: self.len, segment_size: self.segment_size })
    }

    /// Returns the number of datagrams.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the datagrams in order.
    pub fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        self.buffer[..self.len].chunks(self.segment_size.max(1))
    }

    /// Empties the batch for reuse.
    pub fn clear(&mut self) {
        self.len = 0;
        self.count = 0;
        self.segment_size = 0;
        self.offered = 0;
        self.closed = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_of_one_size_fill_a_batch_and_a_shorter_one_ends_it() {
        let mut buffer = [0u8; 100];
        let mut batch = TransmitBatch::new(&mut buffer, 8);
        for len in [30, 30, 10] {
            let slot = batch.slot(30).expect("open");
            assert_eq!(slot.len(), 30);
            slot[..len].fill(len as u8);
            batch.commit(len);
        }
        assert!(batch.slot(30).is_none(), "the short one was the last");
        assert_eq!(batch.transmit(), Some(Transmit { len: 70, segment_size: 30 }));
        let sizes: Vec<usize> = batch.datagrams().map(<[u8]>::len).collect();
        assert_eq!(sizes, [30, 30, 10]);
        batch.clear();
        assert!(batch.transmit().is_none());
        assert!(batch.slot(30).is_some());
    }

    #[test]
    fn a_small_first_datagram_closes_the_batch() {
        let mut buffer = [0u8; 100];
        let mut batch = TransmitBatch::new(&mut buffer, 8);
        batch.slot(30).expect("open");
        batch.commit(29);
        assert!(batch.slot(30).is_none());
    }

    #[test]
    fn the_buffer_and_the_count_bound_a_batch() {
        let mut buffer = [0u8; 70];
        let mut batch = TransmitBatch::new(&mut buffer, 8);
        for _ in 0..2 {
            batch.slot(30).expect("open");
            batch.commit(30);
        }
        assert!(batch.slot(30).is_none(), "10 bytes are left");
        let mut buffer = [0u8; 70];
        let mut batch = TransmitBatch::new(&mut buffer, 1);
        batch.slot(30).expect("open");
        batch.commit(30);
        assert!(batch.slot(30).is_none());
    }
}
