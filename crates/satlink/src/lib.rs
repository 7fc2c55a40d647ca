//! What a satellite channel does to a packet, without I/O and without a clock.
#![forbid(unsafe_code)]
#![no_std]

extern crate alloc;
