//! The discrete-event engine: the same code as the gateway, under virtual time.
//!
//! ```text
//!    terminal: Endpoint                                     hub: Endpoint
//!   ┌──────────────────┐   return    ┌───────────────┐     ┌──────────────────┐
//!   │ protocol and     │────────────▶│ satlink::Link │────▶│ protocol and     │
//!   │ what uses it     │◀────────────│ and faults    │◀────│ what uses it     │
//!   └──────────────────┘   forward   └───────────────┘     └──────────────────┘
//!                     Path: moves time, counts bytes, checks
//! ```
//!
//! A [`Path`] joins two sans-IO endpoints by a satellite link and moves time from one event to
//! the next. Nothing here knows a clock; the same seed gives the same run, which
//! [`Path::trace_hash`] proves.
//!
//! ```
//! use sim::{Endpoint, Path, PathConfig};
//! use units::{Instant, Span};
//!
//! /// Sends one datagram and counts what it gets.
//! struct Once(bool, usize);
//!
//! impl Endpoint for Once {
//!     fn handle_datagram(&mut self, _: Instant, datagram: &mut [u8]) {
//!         self.1 += datagram.len();
//!     }
//!     fn poll_transmit(&mut self, _: Instant, send: &mut dyn FnMut(&[u8])) {
//!         if core::mem::take(&mut self.0) {
//!             send(&[7; 100]);
//!         }
//!     }
//!     fn poll_timeout(&self) -> Option<Instant> {
//!         None
//!     }
//!     fn handle_timeout(&mut self, _: Instant) {}
//! }
//!
//! let config = PathConfig::new(satlink::profiles::by_name("geo").unwrap());
//! let mut path = Path::new(&config, Once(true, 0), Once(true, 0))?;
//! path.run_until(Instant::ZERO + Span::from_secs(1));
//! assert_eq!((path.terminal.1, path.hub.1), (100, 100));
//! # Ok::<(), satlink::ConfigError>(())
//! ```
#![forbid(unsafe_code)]

mod agenda;
pub mod bare;
mod calendar;
pub mod capture;
mod faults;
pub mod gateways;
pub mod host;
pub mod invariants;
mod meter;
pub mod network;
mod path;
mod pattern;
pub mod radio;
pub mod scenario;
mod series;
pub mod tcp;
mod trace;
pub mod traffic;
pub mod transfer;

pub use agenda::Agenda;
pub use calendar::Calendar;
pub use capture::Capture;
pub use faults::Faults;
pub use meter::{Meter, Sample};
pub use network::Network;
pub use path::{Change, Datagram, Endpoint, Path, PathConfig};
pub use pattern::{Broken, Pattern, StreamCheck};
pub use series::Series;
pub use trace::TraceHash;
pub use traffic::Streams;
