//! The TCPs to compare with, without I/O and without a clock.
//!
//! ```text
//!   write ──▶ Sender ── recovery/  what is lost, and retransmitted  ──▶ Segment
//!             │         window/    how much may be on the way
//!             │         open/      what goes before the data
//!    read ◀── Receiver  order, SACK blocks, delayed acknowledgements ◀── Segment
//! ```
//!
//! An [`Endpoint`] is one end of one connection, driven by the verbs that every protocol of the
//! project has. A TCP is put together along three axes, each a choice of [`TcpConfig`] and none
//! knowing the others: [`Opening`], [`RecoveryKind`] and [`WindowKind`]. Each rule names the RFC
//! and the section that it is from.
//!
//! A [`Segment`] is a struct with the length of the real thing. It carries no bytes but says
//! which they are ([`Payload`]), so that whoever reads can check them and a simulation of a
//! thousand connections copies nothing. Sequence numbers count from 0 in 64 bits; a capture
//! writes the lower 32.
//!
//! ```
//! use simtcp::{Endpoint, Ports, TcpConfig};
//! use units::{Instant, Span};
//!
//! let config = TcpConfig::cubic();
//! let mut client = Endpoint::connect(&config, Ports { from: 40_000, to: 80 }, 7);
//! let mut server = Endpoint::listen(&config, 80, 8);
//! client.write(100_000);
//! let mut now = Instant::ZERO;
//! for _ in 0..10 {
//!     // Each round a tenth of a second passes on the way, in each direction.
//!     now += Span::from_millis(100);
//!     while let Some(segment) = client.poll_transmit(now) {
//!         server.handle_segment(now, &segment);
//!     }
//!     now += Span::from_millis(100);
//!     while let Some(segment) = server.poll_transmit(now) {
//!         client.handle_segment(now, &segment);
//!     }
//! }
//! let piece = server.read(u64::MAX).unwrap();
//! assert_eq!((piece.content, piece.offset, piece.len), (7, 0, 100_000));
//! ```
#![forbid(unsafe_code)]
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod config;
mod endpoint;
mod log;
mod open;
mod probing;
mod ranges;
mod receiver;
mod recovery;
mod round_trip;
mod segment;
mod sender;
mod window;

pub use config::{AfterIdle, ConfigError, DelayedAck, InitialWindow, TcpConfig};
pub use endpoint::{CloseReason, Counters, Endpoint, Event, Snapshot, State};
pub use open::{HostCache, Opening};
pub use probing::Probing;
pub use receiver::Piece;
pub use recovery::{RecoveryKind, RepairTimer};
pub use round_trip::{Estimator, RtoConfig};
pub use segment::{
    Block, ConnectionCount, Ecn, FastOpen, Flags, IPV4_HEADER, Options, Payload, Ports, Probe,
    SackBlocks, Segment,
};
pub use window::{EarlyEnd, WindowKind};

#[cfg(test)]
mod traces;
