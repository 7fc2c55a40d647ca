//! Packet radio: file transfer over XSTP over IPv4 over AX.25 on a channel shared by stations.
//!
//! ```text
//!   ground station: Client                       satellite: Server
//!   ┌───────────────────┐                        ┌───────────────────┐
//!   │ file transfer   5 │                        │ file transfer   5 │
//!   │ XSTP           16 │                        │ XSTP           16 │
//!   │ IPv4, route    60 │      ┌──────────┐      │ IPv4, route    60 │
//!   │ AX.25          17 │◀────▶│ mac::csma│◀────▶│ AX.25          17 │
//!   └───────────────────┘      └──────────┘      └───────────────────┘
//! ```
//!
//! This is the stack of Elaasar et al. 2003, section 7: 157 octets of a file in a frame of 255.
//! [`retrieve`] fetches one file and measures it. As published, segments have 16 octets of header,
//! but a POLL on an SD takes three more here (`docs/spec/xstp.md`, 3.7.1): such a frame has 258,
//! still below the 256 octets of information that AX.25 allows.

pub mod file_transfer;
mod run;
mod station;

pub use run::{Radio, Retrieval, Start, retrieve};
pub use station::Computer;
