//! The sealed datagram channel between one terminal and one hub, without I/O.
#![forbid(unsafe_code)]
