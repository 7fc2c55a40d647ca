//! Hosts in network namespaces, wired with the emulator.
//!
//! ```text
//!   client ───── terminal ═════ space ═════ hub ───── server
//!   10.1.0.2     10.1.0.1     emulator   10.2.0.2    10.3.0.2
//!                10.2.0.1                10.3.0.1
//! ```
//!
//! Five namespaces with the kernel's own TCP in each; only the two thick wires are emulated. It
//! works as root and, after [`permission::acquire`], in a user namespace. Everything vanishes
//! with the process, however that ends: namespaces are held by descriptors, and child processes
//! are told to die with their parent.
//!
//! ```no_run
//! use testbed::{Satellite, SatelliteConfig};
//!
//! testbed::permission::acquire()?; // before any thread starts
//! let net = Satellite::new(&SatelliteConfig::default())?;
//! let answer = net.client.run(|| std::net::TcpStream::connect("10.3.0.2:80"));
//! # Ok::<(), testbed::TestbedError>(())
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
