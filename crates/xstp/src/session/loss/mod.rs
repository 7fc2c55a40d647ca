//! Loss detection: the round-trip time, outages, and the cause of a loss.
//!
//! ```text
//!   POLL ──▶ STAT ──▶ RttEstimator   SRTT, RTTVAR: response and outage timeouts
//!   no STAT ────────▶ Liveness       outage, then no response
//!   STAT, USTAT ────▶ Probing        congestion or corruption (XSTP 2003)
//! ```
//!
//! Which packets are lost is decided by [`sender`](super::sender): the receiver's lists name them.

mod liveness;
mod probing;
mod rtt;

pub(super) use liveness::Liveness;
pub use probing::ProbingStatistics;
pub(super) use probing::{Baseline, Correction, Probing, Trigger, Verdict};
pub(super) use rtt::RttEstimator;
