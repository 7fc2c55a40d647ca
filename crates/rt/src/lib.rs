//! The real clock, sockets and packet interfaces that drive what is sans-IO.
//!
//! ```text
//!   Clock       the machine's monotonic clock, as units::Instant
//!   sched       real-time scheduling: asked for, and what was granted
//!   netlink     links, addresses, routes, rules and offloads
//!   packet      raw Ethernet on an interface, many frames a call, stamped by the kernel
//!   pcap        packet captures with nanosecond stamps
//!   emulator    a satlink::Link in real time, between two interfaces or as a UDP relay; or a star
//!               of terminals that share the return link by a MAC
//!   counts      what a hub tells a MAC: connections of each terminal
//! ```
//!
//! Everything below this crate is handed the time; this is where it comes from. A driver's loop
//! has the same shape everywhere:
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
