//! TCP variants for comparison with XSTP, without I/O and without a clock.
//!
//! ```text
//!   write ──▶ Sender ─┬─ open/      handshake: three-way, T/TCP, Fast Open     ──▶ Segment
//!                     ├─ recovery/  loss detection and retransmission
//!                     └─ window/    congestion window
//!    read ◀── Receiver ── reassembly, SACK blocks, delayed acknowledgements   ◀── Segment
//! ```
//!
//! [`quic`] is a QUIC-like connection by RFC 9002, apart from these axes.
//!
//! An [`Endpoint`] is one end of one connection, with the interface of all state machines of the
//! workspace. A variant is a point on three independent axes of [`TcpConfig`]: [`Opening`],
//! [`RecoveryKind`] and [`WindowKind`]. Each rule cites the RFC and section that defines it.
//!
//! A [`Segment`] has the length of a real one but carries no octets: [`Payload`] identifies them
//! by stream and offset, so that the receiver can verify them and a simulation of a thousand
//! connections copies nothing. Sequence numbers are 64 bits and start at 0; a capture writes the
//! lower 32.
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
//!     // A path with a one-way delay of 100 ms.
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
mod counters;
mod endpoint;
mod host_cache;
mod log;
mod open;
mod probing;
pub mod quic;
mod ranges;
mod receiver;
mod recovery;
mod round_trip;
mod segment;
mod sender;
mod window;

pub use config::{
    AfterIdle, ConfigError, DelayedAck, EarlyEnd, InitialWindow, Opening, RecoveryKind,
    RepairTimer, TcpConfig, WindowKind,
};
pub use counters::Counters;
pub use endpoint::{CloseReason, Endpoint, Event, Snapshot, State};
pub use host_cache::HostCache;
pub use probing::Probing;
pub use receiver::Piece;
pub use round_trip::{Estimator, RtoConfig};
pub use segment::{
    Block, ConnectionCount, Ecn, FastOpen, Flags, IPV4_HEADER, Options, Payload, Ports, Probe,
    SackBlocks, Segment,
};

#[cfg(test)]
mod traces;
