//! Looking at a gateway that runs: its status, a live view, and captures of what passes it.
//!
//! ```text
//!   bentpipe status ─┐
//!   bentpipe top ────┼─▶ Client ──▶ control socket of a gateway (one JSON object a line)
//!   bentpipe capture ┘
//! ```
//!
//! The gateway's side is `gateway::observe`; `docs/guide/monitoring.md` says what is asked and
//! answered. Answers are read with patience: what is not known is passed over and what is missing
//! counts as nothing, so that a view works with gateways a little older or newer than itself.
//!
//! ```no_run
//! let mut client = monitor::Client::find(None)?;
//! let status: monitor::Status = client.ask(&monitor::Question::Status)?;
//! print!("{}", monitor::table(&status));
//! # Ok::<(), monitor::Error>(())
//! ```

mod answers;
mod capture;
mod client;
mod error;
mod table;
pub mod top;
mod words;

pub use answers::{Connection, Page, Status, Terminal};
pub use capture::{Captured, Request, capture};
pub use client::{Client, Question};
pub use error::Error;
pub use table::table;
