//! Queries and responses for tests, fuzzing and simulation.

/// A query for one of 256 names, of type A or AAAA.
pub(crate) fn query(name: u8, kind: u8) -> Vec<u8> {
    let mut message = vec![name, kind, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 3];
    message.extend(format!("n{name:02x}").as_bytes());
    message.extend(b"\x04site\x03net\0");
    message.extend([0, if kind.is_multiple_of(2) { 1 } else { 28 }, 0, 1]);
    message
}

/// The response to `query` with one address, or with the code `b`, or malformed.
pub(crate) fn answer(mut query: Vec<u8>, b: u8, ttl: u8) -> Vec<u8> {
    // Without the OPT record.
    query.truncate(query.len() - 11);
    query[2] = 0x81;
    query[3] = 0x80 | if b.is_multiple_of(4) { b % 6 } else { 0 };
    query[10..12].fill(0);
    if b % 16 == 7 {
        query[0] ^= 1;
    }
    if query.ends_with(&[0, 1, 0, 1]) {
        query[7] = 1;
        query.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, ttl, 0, 4, 192, 0, 2, b]);
    }
    query
}
