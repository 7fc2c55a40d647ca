//! Client of a running gateway: its status, a live view, and captures of its traffic.
//!
//! ```text
//!   bentpipe status ── Status, table ─┐
//!   bentpipe top ───── top ───────────┼─▶ Client ──▶ control socket of a gateway
//!   bentpipe capture ─ capture ───────┘              (one JSON object per line)
//! ```
//!
//! The gateway's side is `gateway::observe`; `docs/guide/monitoring.md` documents requests and
//! responses. Unknown fields of a response are ignored and missing ones are zero, so that a client
//! works with older and newer gateways:
//!
//! ```
//! let response = r#"{ "gateway": { "role": "hub", "name": "shore" }, "a_newer_field": 1 }"#;
//! let status: monitor::Status = serde_json::from_str(response)?;
//! assert!(monitor::table(&status).starts_with("hub \"shore\""));
//! # Ok::<(), serde_json::Error>(())
//! ```

mod answers;
mod capture;
mod client;
mod error;
mod table;
pub mod top;
mod words;

pub use answers::{Connection, Page, Report, ReportedMessage, ReportedPath, Status, Terminal};
pub use capture::{Captured, Request, capture};
pub use client::{Client, Question};
pub use error::Error;
pub use table::table;
