//! Sealing and opening under one pair of keys.

use crate::OpenError;
use crate::replay::ReplayWindow;
use crate::wire::{HEADER_LEN, Header, Kind, OVERHEAD, TAG_LEN};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128_with_seed};

/// The key of the tag of an Unknown, which belongs to no association.
pub(crate) const UNKNOWN_KEY: u64 = 0x756e_6b6e_6f77_6e21;

/// The tag of the null suite under `key`: finds corruption and datagrams of another association,
/// and stops nobody who wants to forge one.
fn tag(key: u64, bytes: &[u8]) -> [u8; TAG_LEN] {
    xxh3_128_with_seed(bytes, key).to_be_bytes()
}

/// Writes the tag of everything before it to the end of `datagram`.
pub(crate) fn write_tag(key: u64, datagram: &mut [u8]) {
    let end = datagram.len() - TAG_LEN;
    let tag = tag(key, &datagram[..end]);
    datagram[end..].copy_from_slice(&tag);
}

/// Whether `datagram`, at least a tag long, ends with its tag.
pub(crate) fn tag_fits(key: u64, datagram: &[u8]) -> bool {
    let (body, found) = datagram.split_at(datagram.len() - TAG_LEN);
    tag(key, body) == found
}

/// The key for tags of `label` between two ephemerals; the null suite's key schedule.
pub(crate) fn derive_key(label: u8, terminal: &[u8; 32], hub: &[u8; 32]) -> u64 {
    let mut input = [0u8; 65];
    input[0] = label;
    input[1..33].copy_from_slice(terminal);
    input[33..].copy_from_slice(hub);
    xxh3_64(&input)
}

/// Which end of an association this is; each sends under its own key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Terminal,
    Hub,
}

/// One association's keys, counters and replay window.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    remote_index: u32,
    send_key: u64,
    receive_key: u64,
    next_counter: u64,
    window: ReplayWindow,
}

/// A payload that proved to be new and whole.
pub(crate) struct Opened<'d> {
    pub(crate) payload: &'d mut [u8],
    /// Whether it is the latest so far, which decides where the peer lives now.
    pub(crate) newest: bool,
}

impl Channel {
    pub(crate) fn new(side: Side, remote_index: u32, terminal: &[u8; 32], hub: &[u8; 32]) -> Self {
        let up = derive_key(b'u', terminal, hub);
        let down = derive_key(b'd', terminal, hub);
        let (send_key, receive_key) = match side {
            Side::Terminal => (up, down),
            Side::Hub => (down, up),
        };
        Self { remote_index, send_key, receive_key, next_counter: 0, window: ReplayWindow::new() }
    }

    pub(crate) fn remote_index(&self) -> u32 {
        self.remote_index
    }

    /// Whether a datagram with this low half of its counter was sent, and lately.
    pub(crate) fn sent_lately(&self, counter: u32) -> bool {
        let last = self.next_counter as u32;
        self.next_counter > 0 && last.wrapping_sub(1).wrapping_sub(counter) < 1 << 16
    }

    /// Writes header and tag around the payload that stands in `datagram` at [`HEADER_LEN`].
    pub(crate) fn seal(&mut self, datagram: &mut [u8]) {
        let counter = self.next_counter;
        self.next_counter += 1;
        // The low half travels; the receiver knows the rest.
        let header = Header { kind: Kind::Data, index: self.remote_index, counter: counter as u32 };
        header.encode(datagram);
        write_tag(self.send_key ^ counter.rotate_left(32), datagram);
    }

    /// Checks `datagram`, whose header was decoded as `header`, and lends its payload.
    pub(crate) fn open<'d>(
        &mut self,
        header: Header,
        datagram: &'d mut [u8],
    ) -> Result<Opened<'d>, OpenError> {
        debug_assert!(datagram.len() >= OVERHEAD);
        let counter = self.window.reconstruct(header.counter);
        if !self.window.is_new(counter) {
            return Err(OpenError::Replayed { counter });
        }
        // The whole counter is part of the key, as it is part of the nonce in a real suite.
        if !tag_fits(self.receive_key ^ counter.rotate_left(32), datagram) {
            return Err(OpenError::Tag);
        }
        let newest = self.window.accept(counter);
        let end = datagram.len() - TAG_LEN;
        Ok(Opened { payload: &mut datagram[HEADER_LEN..end], newest })
    }
}
