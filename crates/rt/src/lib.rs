//! Clock, sockets and packet interfaces of the machine: drivers for the sans-IO crates.
//!
//! ```text
//!                    ┌───────┐ now  ┌───────────────────────────┐
//!   monotonic clock ▶│ Clock │─────▶│ emulator: a satlink::Link │
//!                    └───────┘      │ or a star with a MAC      │
//!   interface ──▶ packet, tun ─────▶│                           │──▶ packet, tun ──▶ interface
//!                                   └─────────────┬─────────────┘
//!                                                 └──▶ pcap (nanosecond timestamps)
//!
//!   netlink   links, addresses, routes, rules and offloads
//!   sched     real-time scheduling
//!   counts    number of connections per terminal, from a hub to a MAC scheduler
//! ```
//!
//! All crates below this one take the time as an argument. A driver loop reads the clock, waits
//! until the next timeout, and calls the state machine:
//!
//! ```
//! # struct Machine(Option<units::Instant>);
//! # impl Machine {
//! #     fn poll_timeout(&self) -> Option<units::Instant> { self.0 }
//! #     fn handle_timeout(&mut self, now: units::Instant) { if self.0 <= Some(now) { self.0 = None } }
//! # }
//! let clock = rt::Clock::new();
//! # let mut machine = Machine(Some(clock.now() + units::Span::from_micros(50)));
//! while let Some(due) = machine.poll_timeout() {
//!     clock.sleep_until(due); // or wait on sockets until then
//!     machine.handle_timeout(clock.now());
//! }
//! ```

mod batch;
mod clock;
pub mod counts;
pub mod emulator;
pub mod netlink;
pub mod packet;
pub mod pcap;
pub mod sched;
mod sockets;
mod tun;

pub use clock::Clock;
pub use tun::Tun;
