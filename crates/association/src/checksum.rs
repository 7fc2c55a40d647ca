//! Tags of the null suite: they detect corruption, but not forgery.

use crate::wire::TAG_LEN;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128_with_seed};

/// Key of the tag of an Unknown, which belongs to no association, in every suite.
pub(crate) const UNKNOWN_KEY: u64 = 0x756e_6b6e_6f77_6e21;

/// Key of the tag of a Version, in every suite.
pub(crate) const VERSION_KEY: u64 = 0x7665_7273_696f_6e21;

/// Key of the tag of a Hello, the first message.
pub(crate) const HELLO_KEY: u64 = 0x6265_6e74_7069_7065;

fn tag(key: u64, bytes: &[u8]) -> [u8; TAG_LEN] {
    xxh3_128_with_seed(bytes, key).to_be_bytes()
}

/// Writes the tag of all preceding octets to the end of `datagram`.
pub(crate) fn write_tag(key: u64, datagram: &mut [u8]) {
    let end = datagram.len() - TAG_LEN;
    let tag = tag(key, &datagram[..end]);
    datagram[end..].copy_from_slice(&tag);
}

/// Verifies the tag at the end of `datagram`, which is at least a tag long.
pub(crate) fn tag_fits(key: u64, datagram: &[u8]) -> bool {
    let (body, found) = datagram.split_at(datagram.len() - TAG_LEN);
    tag(key, body) == found
}

/// Returns the key of tags of `label` between two ephemerals: the null suite's key schedule.
pub(crate) fn derive_key(label: u8, terminal: &[u8; 32], hub: &[u8; 32]) -> u64 {
    let mut input = [0u8; 65];
    input[0] = label;
    input[1..33].copy_from_slice(terminal);
    input[33..].copy_from_slice(hub);
    xxh3_64(&input)
}
