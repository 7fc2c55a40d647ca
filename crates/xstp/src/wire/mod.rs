//! Segments: their contents, and their encoding in two profiles.
//!
//! ```text
//!             Published                            Sealed
//!   carried   on IP, protocol 253                  inside an association's datagram
//!   header    16 octets: ports, type, number,      4 octets: type, number
//!             window, checksum, timestamp
//!   lists     3-octet boundaries                   lengths in variable-length integers
//!   integrity Internet checksum                    tag of the association
//! ```
//!
//! A [`Segment`] borrows from the octets that it was decoded from, or from its sender; only valid
//! combinations of parts can be built. [`Segment::decode`] checks all that can be checked without
//! the state of the session. Each part has a file of its own, headed by its layout.
//!
//! ```
//! use xstp::Seq24;
//! use xstp::wire::{Poll, Profile, Segment};
//!
//! let last = Segment::data(Seq24::new(4), b"tail").and_poll(1000, Poll { seq: 1, next: Seq24::new(5) });
//! let mut octets = [0; 64];
//! let len = last.encode(&Profile::Sealed, &mut octets)?;
//! let seen = Segment::decode(&Profile::Sealed, &octets[..len])?;
//! assert_eq!(seen, last);
//! assert_eq!(seen.payload(), Some(&b"tail"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod begin;
mod checksum;
mod codec;
mod data;
mod end;
mod error;
mod header;
pub mod ipv4;
mod kinds;
mod note;
mod octets;
mod poll;
mod repair;
mod runs;
mod segment;
mod stat;
mod ustat;

pub use begin::{Begin, BeginAck, Delivery};
pub use end::End;
pub use error::{DecodeError, EncodeError, Part};
pub use header::{Endpoints, PROTOCOL_NUMBER, Profile};
pub use kinds::Kinds;
pub use poll::Poll;
pub use repair::Repair;
pub use runs::{Run, RunBudget, RunList, Runs};
pub use segment::{Control, Segment};
pub use stat::{Arrival, Echo, Stat};
pub use ustat::Ustat;

#[cfg(test)]
mod tests;
