//! Forward error correction over packets: a sliding-window linear code over GF(2⁸).
//!
//! ```text
//!   packets sent      n    n+1   n+2   n+3 ...      each stored when it is first transmitted
//!                     └─────┬───────────┘
//!   repair symbol     Σ cᵢ · (length of packet i, payload of packet i, zeros)
//! ```
//!
//! A repair symbol covers up to [`MAX_COVERED`] consecutive packets. With one packet missing of
//! those that it covers, the receiver subtracts the others and has the missing one; *r* missing
//! packets need *r* symbols. The symbols need not cover the same packets: the window slides, as in
//! RFC 8681, whose coefficients are random. Here they are the elements of a Cauchy matrix, so that
//! any *r* symbols with the same window recover any *r* packets.
//!
//! The [`Encoder`] and the [`Decoder`] have no clock. Both store the payload of at most
//! [`MAX_COVERED`] packets; the decoder stores at most [`MAX_SYMBOLS`] symbols beside them.

mod decoder;
mod encoder;
mod field;
mod loss;

pub(crate) use decoder::Decoder;
pub(crate) use encoder::{Covered, Encoder};
pub(crate) use loss::{LossEstimator, repairs_needed};

/// Maximum number of packets that a repair symbol covers: half of the field.
pub(crate) const MAX_COVERED: usize = 128;
/// Number of keys: the other half of the field.
pub(crate) const KEYS: u8 = 128;
/// Maximum number of repair symbols that a decoder stores, and so of the missing packets that it
/// recovers together.
pub(crate) const MAX_SYMBOLS: usize = 32;
/// Octets before the payload in a symbol: the length of the payload.
pub(crate) const LENGTH_OCTETS: usize = 2;

/// Coefficient of packet `seq` in a symbol with `key`: 1/(x + y) with x in the upper half of the
/// field, y in the lower one. It is never zero, and two of 128 consecutive packets have different
/// ones.
fn coefficient(key: u8, seq: u64) -> u8 {
    let (x, y) = (KEYS | (key % KEYS), (seq % MAX_COVERED as u64) as u8);
    field::inverse(x ^ y)
}

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
#[cfg(test)]
mod tests;
