//! Arithmetic of 32-bit sequence numbers (RFC 9293, 3.4).

/// Whether `a` precedes `b`.
pub(super) fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Whether `a` follows `b`.
pub(super) fn after(a: u32, b: u32) -> bool {
    before(b, a)
}

/// The later of the two.
pub(super) fn later(a: u32, b: u32) -> u32 {
    if before(a, b) { b } else { a }
}

/// The earlier of the two.
pub(super) fn earlier(a: u32, b: u32) -> u32 {
    if before(a, b) { a } else { b }
}

/// Number of octets from `from` to `to`, which does not precede it.
pub(super) fn distance(from: u32, to: u32) -> u32 {
    to.wrapping_sub(from)
}

/// Whether `value` is in `first..=last`.
pub(super) fn within(value: u32, first: u32, last: u32) -> bool {
    distance(first, value) <= distance(first, last)
}
