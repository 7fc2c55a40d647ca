//! Discrete-event simulator: runs the protocol code of the gateways under virtual time.
//!
//! ```text
//!   Host                                    satlink::Link                   Host
//!  ┌─────────────┐     ┌────────┐  forward ┌─────────────┐  ┌────────┐     ┌─────────────┐
//!  │ Application │     │        │─────────▶│ queue, rate,│─▶│        │     │ Application │
//!  │ Transport   │◀───▶│ router │◀─────────│ errors,delay│◀─│ router │◀───▶│ Transport   │
//!  └─────────────┘     └────────┘  return  └─────────────┘  └────────┘     └─────────────┘
//!      Network: event queue, routes, packet counters, invariants, captures, samples
//! ```
//!
//! A [`Network`] connects nodes by satellite links and advances the time from event to event; a
//! [`Path`] is the special case of two endpoints and one link. There is no clock: equal seeds give
//! equal runs, as [`Network::trace_hash`] and [`Path::trace_hash`] verify. [`invariants`] lists
//! what is checked in every run. docs/guide/simulator.md shows how to write a simulation.
//!
//! ```
//! use sim::network::{Address, Node, Outbox, Packet};
//! use sim::Network;
//! use units::{Instant, Span};
//!
//! /// Sends one packet to `peer`, if there is one, and counts the octets received.
//! struct Host {
//!     peer: Option<Address>,
//!     received: usize,
//! }
//!
//! impl Node for Host {
//!     fn handle_packet(&mut self, _: Instant, packet: &mut Packet) {
//!         self.received += packet.bytes().len();
//!     }
//!     fn poll_transmit(&mut self, _: Instant, out: &mut Outbox<'_>) {
//!         if let Some(to) = self.peer.take() {
//!             let from = Address::new(out.node(), 7);
//!             out.send(Packet::udp(from, to, vec![7; 100]));
//!         }
//!     }
//!     fn poll_timeout(&self) -> Option<Instant> {
//!         None
//!     }
//!     fn handle_timeout(&mut self, _: Instant) {}
//! }
//!
//! let mut net = Network::new(1, 0);
//! let terminal = net.host(Host { peer: None, received: 0 });
//! let hub = net.host(Host { peer: Some(Address::new(terminal, 7)), received: 0 });
//! net.link(hub, terminal, &satlink::profiles::by_name("geo").unwrap());
//! net.run_until(Instant::ZERO + Span::from_secs(1));
//! assert_eq!(net.node::<Host>(terminal).received, 100);
//! ```
#![forbid(unsafe_code)]

pub mod capture;
mod event_queue;
mod faults;
pub mod gateways;
pub mod host;
pub mod invariants;
mod meter;
pub mod multi_access;
pub mod network;
mod path;
mod pattern;
pub mod pep;
pub mod radio;
pub mod scenario;
mod series;
pub mod session_endpoint;
pub mod storm;
mod streams;
pub mod tcp;
mod timer_tree;
pub mod topology;
mod trace;
pub mod traffic;
pub mod transfer;

pub use capture::Capture;
pub use event_queue::EventQueue;
pub use faults::Faults;
pub use meter::{Meter, Sample};
pub use network::Network;
pub use path::{Change, Datagram, End, Endpoint, Path, PathConfig};
pub use pattern::{Broken, Pattern, StreamCheck};
pub use series::Series;
pub use streams::Streams;
pub use timer_tree::TimerTree;
pub use trace::TraceHash;

/// Compiles and runs the example of the simulator guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/simulator.md")]
struct Guide;

/// Compiles and runs the examples of the guide to shared return links.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/multi-access.md")]
struct MultiAccessGuide;
