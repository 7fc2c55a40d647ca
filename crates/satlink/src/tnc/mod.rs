//! What a computer exchanges with a terminal node controller (TNC): AX.25 frames in KISS.
//!
//! ```text
//!   information (an IP packet) ─▶ ax25: UI frame ─▶ kiss: serial line or TCP ─▶ TNC ─▶ radio
//! ```
//!
//! Both are codecs without I/O. The TNC adds and removes flags, bit stuffing and the check
//! sequence, and accesses the channel ([`mac::csma`](crate::mac::csma) models it).

pub mod ax25;
pub mod kiss;
