//! XSTP, the eXtended Satellite Transport Protocol, without I/O and without a clock.
#![forbid(unsafe_code)]
#![no_std]

extern crate alloc;
