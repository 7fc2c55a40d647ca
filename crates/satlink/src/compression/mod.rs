//! Header compression for XSTP over IPv4 on a point-to-point link.
//!
//! ```text
//!   IPv4 20 to 60 │ XSTP 16 │ payload          full frame: one octet, then the packet
//!   └─────────┬───────────┘
//!             ▼
//!   kind, flags, type, low bits of changed fields, checksum, CRC: 10 to 17 octets │ payload
//! ```
//!
//! The format and the rules are in `docs/spec/compression.md`. A [`Compressor`] is at one end of
//! the link and a [`Decompressor`] at the other; for two directions each end has one of both.
//!
//! ```
//! use satlink::compression::{Compressor, Decompressor};
//!
//! let (mut compressor, mut decompressor) = (Compressor::new(), Decompressor::new());
//! let packet = b"not even IPv4";
//! let frame = compressor.compress(packet);
//! assert_eq!(decompressor.decompress(&frame), Ok(packet.to_vec()));
//! ```

mod compressor;
mod decompressor;
mod header;

pub use compressor::Compressor;
pub use decompressor::{Decompressor, Refused};

/// Contexts of one direction.
pub const CONTEXTS: usize = 8;

/// Maximum number of octets by which a frame is longer than its packet.
pub const LONGEST_ADDED: usize = 1;

#[cfg(test)]
mod tests;
