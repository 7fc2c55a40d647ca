//! XSTP, the eXtended Satellite Transport Protocol: reliable transport over satellite links with
//! selective acknowledgements, polled receiver state and paced transmission, without I/O and
//! without a clock.
//!
//! ```text
//!     write, read                     fill_new, fill_retransmission, deliver
//!  ┌───────▼───────┐                  ┌──────────▼──────────┐
//!  │  Connection   │                  │ UpperLayer: relay,  │
//!  │   in order    │                  │ or any other        │
//!  └───────┬───────┘                  └──────────┬──────────┘
//!          └──────────────┬──────────────────────┘
//!  handle_segment ──▶ ┌───┴─────┐ ──▶ poll_transmit
//!  handle_timeout ──▶ │ Session │ ──▶ poll_timeout, poll_event
//!                     └─┬─────┬─┘
//!        wire: segments ┘     └ congestion: rate or window
//! ```
//!
//! A [`Connection`] carries an octet stream in each direction, as in the papers. A
//! [`Session`](session::Session) delivers each packet when it is received, for an upper layer that
//! orders only what it needs in order. A
//! [`SessionConfig`](session::SessionConfig) is one of four presets: STP (1999), XSTP (2003), and
//! a gateway with or without a known rate. `docs/spec/xstp.md` and the documents that it lists
//! specify the protocol clause by clause. Segments and variables have the names of SSCOP (ITU-T Q.2110):
//!
//! | name | meaning |
//! |---|---|
//! | SD | packet with payload and a sequence number N(S), which it keeps when it is retransmitted |
//! | POLL | requests a STAT; carries VT(S) and a POLL sequence number |
//! | STAT | responds to a POLL with the receiver state: N(R), window, list of gaps |
//! | USTAT | reports gaps that the receiver has just detected, without a POLL |
//! | BGN, END, RST | open a session, close one direction, reset; BGNAK and ENDAK accept |
//! | VT(A), VT(S), VT(MS) | oldest unacknowledged packet, next new packet, end of the peer's window |
//! | VR(R), VR(H), VR(MR) | first missing packet, one after the highest known one, end of the own window |
//!
//! A packet is *released* when it is acknowledged and its payload is no longer stored. A format or
//! a rule is *published* (from the papers, on IP) or *sealed* (inside the datagrams of an
//! association). Time is an argument of every call:
//!
//! ```
//! use units::{Instant, Span};
//! use xstp::Connection;
//! use xstp::session::{SessionConfig, State};
//! use xstp::wire::{Endpoints, Profile};
//!
//! let (here, there) = ("10.0.0.1:1024".parse()?, "10.0.0.2:80".parse()?);
//! let config = |local, remote| SessionConfig {
//!     profile: Profile::Published(Endpoints { local, remote }),
//!     ..SessionConfig::stp_1999()
//! };
//! let mut now = Instant::ZERO;
//! let mut client = Connection::connect(&config(here, there), now, 1);
//! let mut server = Connection::listen(&config(there, here));
//! client.write(b"a request")?;
//! client.end(now);
//! server.end(now);
//!
//! // A link with a delay of 300 ms in each direction.
//! let (mut buffer, mut read) = ([0; 1500], [0; 100]);
//! let mut request = Vec::new();
//! while client.session().state() != State::Closed || server.session().state() != State::Closed {
//!     client.handle_timeout(now);
//!     while let Some(len) = client.poll_transmit(now, &mut buffer) {
//!         server.handle_segment(now + Span::from_millis(300), &buffer[..len])?;
//!     }
//!     let then = now + Span::from_millis(300);
//!     server.handle_timeout(then);
//!     while let Some(len) = server.poll_transmit(then, &mut buffer) {
//!         client.handle_segment(then + Span::from_millis(300), &buffer[..len])?;
//!     }
//!     let len = server.read(&mut read);
//!     request.extend_from_slice(&read[..len]);
//!     now += Span::from_millis(600);
//! }
//! assert_eq!(request, b"a request");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod config;
pub mod congestion;
mod connection;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod repair;
mod seq;
pub mod session;
pub mod wire;

pub use connection::{Connection, WriteError};
pub use seq::Seq24;
