//! Test networks of Linux network namespaces that are connected by the link emulator.
//!
//! ```text
//!   client ───── terminal ═════ space ═════ hub ───── server
//!   10.1.0.2     10.1.0.1     emulator   10.2.0.2    10.3.0.2
//!                10.2.0.1                10.3.0.1
//! ```
//!
//! Each host is a namespace with the TCP of the kernel; only the two links drawn double are
//! emulated. A network is created as root or, after [`permission::acquire`], in a user namespace.
//! It is removed with the process, however that ends: namespaces exist only as open descriptors,
//! and child processes are killed with their parent.
//!
//! ```no_run
//! use testbed::{Satellite, SatelliteConfig};
//!
//! testbed::permission::acquire()?; // before any thread starts
//! let net = Satellite::new(&SatelliteConfig::default())?;
//! let connected = net.client.run(|| std::net::TcpStream::connect("10.3.0.2:80"));
//! # Ok::<(), testbed::TestbedError>(())
//! ```
//!
//! Files in transfer are pseudo-random: a receiver verifies them by their seed and length alone.
//!
//! ```
//! use testbed::content::{Checksum, Content};
//!
//! let file = Content::new(7);
//! let mut received = [0; 1000];
//! file.fill(0, &mut received);
//! let mut checksum = Checksum::default();
//! checksum.update(&received);
//! assert_eq!(checksum.value(), file.checksum(1000));
//! ```

pub mod content;
mod error;
mod host;
pub mod permission;
mod reference;
mod star;
mod topology;
pub mod traffic;

pub use error::TestbedError;
pub use host::{Host, Process};
pub use reference::{Emulators, Reference};
pub use star::StarNetwork;
pub use topology::{Satellite, SatelliteConfig, Wire, addresses};
