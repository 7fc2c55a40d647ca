//! Encoding of REPORT frames and their fields (RLY-11).

use super::{REPORT, Writer, varint_len};

impl Writer<'_> {
    /// Writes a REPORT if it fits; returns whether it did.
    pub(crate) fn report(&mut self, number: u64, content: &[u8]) -> bool {
        let len = varint_len(number) + content.len();
        if 1 + varint_len(len as u64) + len > self.left() {
            return false;
        }
        self.byte(REPORT);
        self.varint(len as u64);
        self.varint(number);
        self.bytes(content);
        true
    }

    /// Writes a field of a report, of numbers and a text, if it fits.
    pub(crate) fn field(&mut self, key: u64, numbers: &[u64], text: &str) {
        let len = numbers.iter().copied().map(varint_len).sum::<usize>() + text.len();
        if varint_len(key) + varint_len(len as u64) + len > self.left() {
            return;
        }
        self.varint(key);
        self.varint(len as u64);
        numbers.iter().for_each(|&number| self.varint(number));
        self.bytes(text.as_bytes());
    }
}
