//! The second axis: loss recovery.

mod berkeley;
mod newreno;
mod rack;
mod sack;
mod vegas;

pub(crate) use berkeley::Berkeley;
pub(crate) use newreno::NewReno;
pub(crate) use rack::Rack;
pub(crate) use sack::Sack;
pub(crate) use vegas::Vegas;

use crate::config::{RecoveryKind, TcpConfig};
use crate::log::{Delivery, SentLog};
use crate::segment::Block;
use units::{Instant, Span};

/// The sender's variables used by a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outstanding {
    /// SND.UNA: the oldest unacknowledged number.
    pub(crate) oldest: u64,
    /// SND.NXT: the next number to send; set back after a timeout.
    pub(crate) next: u64,
    /// The number after the highest ever sent (HighData of RFC 6675, plus one).
    pub(crate) end: u64,
    /// SMSS.
    pub(crate) segment: u64,
}

/// An acknowledgement, as input of a recovery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report<'a> {
    /// The oldest unacknowledged number before it.
    pub(crate) before: u64,
    /// The congestion window.
    pub(crate) window: u64,
    /// It is a duplicate by RFC 5681, section 2.
    pub(crate) duplicate: bool,
    /// The blocks of its SACK option.
    pub(crate) sack: &'a [Block],
    /// Its time of arrival.
    pub(crate) now: Instant,
    /// The data that it delivers, if a log is maintained.
    pub(crate) delivery: &'a Delivery,
    /// SRTT.
    pub(crate) smoothed: Option<Span>,
}

/// The result of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No recovery is in progress.
    Open,
    /// A loss is detected: the window is to be reduced.
    Loss,
    /// Recovery continues; with `restart_timer` the retransmission timer is restarted.
    Repairing {
        /// See above.
        restart_timer: bool,
    },
    /// Recovery has ended.
    Repaired {
        /// How the window is deflated.
        deflate: Deflate,
    },
}

/// Deflation of the window at the end of a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deflate {
    /// None: inflation ends, and the window is ssthresh already.
    Stays,
    /// To at most the flight plus a segment, and at least two segments (RFC 6582, section 3.2, step
    /// 3, option 1).
    ToFlight,
    /// To at most the flight plus a segment: one segment if nothing is outstanding (Henderson &
    /// Katz 1999, appendix, rule 3).
    ToFlightBare,
}

/// A loss recovery algorithm.
#[derive(Clone, Debug)]
pub(crate) enum Recovery {
    Berkeley(Berkeley),
    Vegas(Vegas),
    Rack(Rack),
    NewReno(NewReno),
    Sack(Sack),
}

impl Recovery {
    /// The recovery of a configuration; `sack` if both ends support SACK.
    pub(crate) fn new(config: &TcpConfig, sack: bool) -> Self {
        let limited_transmit = config.limited_transmit;
        let berkeley =
            |newreno, sack| Self::Berkeley(Berkeley::new(newreno, sack, limited_transmit));
        match config.recovery {
            RecoveryKind::Reno => berkeley(false, false),
            RecoveryKind::Vegas => Self::Vegas(Vegas::new(limited_transmit)),
            RecoveryKind::SackReno => berkeley(false, sack),
            RecoveryKind::SackNewReno => berkeley(true, sack),
            RecoveryKind::Sack if sack => Self::Sack(Sack::new(limited_transmit)),
            RecoveryKind::Rack if sack => Self::Rack(Rack::new()),
            RecoveryKind::NewReno | RecoveryKind::Sack | RecoveryKind::Rack => {
                Self::NewReno(NewReno::new(limited_transmit, config.repair_timer))
            }
        }
    }

    /// Handles an acknowledgement, after which `now` is outstanding.
    pub(crate) fn on_ack(
        &mut self,
        now: &Outstanding,
        report: &Report<'_>,
        log: Option<&mut SentLog>,
    ) -> Verdict {
        match self {
            Self::Berkeley(berkeley) => berkeley.on_ack(now, report),
            Self::Vegas(vegas) => vegas.on_ack(now, report, log.as_deref()),
            Self::Rack(rack) => match log {
                Some(log) => rack.on_ack(now, report, log),
                None => Verdict::Open,
            },
            Self::NewReno(newreno) => newreno.on_ack(now, report),
            Self::Sack(sack) => sack.on_ack(now, report),
        }
    }

    /// Handles a retransmission timeout; returns whether everything from the oldest on is
    /// retransmitted.
    pub(crate) fn on_timeout(&mut self, now: &Outstanding, log: Option<&mut SentLog>) -> bool {
        match self {
            Self::Berkeley(berkeley) => berkeley.on_timeout(),
            Self::Vegas(vegas) => vegas.on_timeout(),
            Self::Rack(rack) => {
                if let Some(log) = log {
                    rack.on_timeout(now, log);
                }
                return false;
            }
            Self::NewReno(newreno) => newreno.on_timeout(now),
            Self::Sack(sack) => sack.on_timeout(now),
        }
        true
    }

    /// Octets estimated to be in flight.
    pub(crate) fn in_flight(&self, now: &Outstanding, log: Option<&SentLog>) -> u64 {
        match self {
            Self::Rack(_) => log.map_or(0, SentLog::on_way),
            Self::Berkeley(_) | Self::Vegas(_) | Self::NewReno(_) => now.next - now.oldest,
            Self::Sack(sack) => sack.pipe(now),
        }
    }

    /// Whether it uses the transmission log.
    pub(crate) fn needs_log(&self) -> bool {
        match self {
            Self::Vegas(_) | Self::Rack(_) => true,
            Self::Berkeley(_) | Self::NewReno(_) | Self::Sack(_) => false,
        }
    }

    /// Whether the retransmission timer starts at the last transmission of the oldest segment, as
    /// in Linux, and not at the last acknowledgement.
    pub(crate) fn times_the_oldest(&self) -> bool {
        matches!(self, Self::Rack(_))
    }

    /// Window inflation for new data; negative after partial acknowledgements of more than a
    /// window.
    pub(crate) fn inflation(&self) -> i64 {
        match self {
            Self::Berkeley(berkeley) => berkeley.inflation(),
            Self::Vegas(vegas) => vegas.inflation().cast_signed(),
            Self::NewReno(newreno) => newreno.inflation(),
            Self::Sack(_) | Self::Rack(_) => 0,
        }
    }

    /// Whether a loss recovery is in progress.
    pub(crate) fn is_repairing(&self) -> bool {
        match self {
            Self::Berkeley(berkeley) => berkeley.is_repairing(),
            Self::Vegas(vegas) => vegas.is_repairing(),
            Self::Rack(rack) => rack.is_repairing(),
            Self::NewReno(newreno) => newreno.is_repairing(),
            Self::Sack(sack) => sack.is_repairing(),
        }
    }

    /// The next retransmission, which precedes new data, with `room` octets of window.
    pub(crate) fn lost(
        &mut self,
        now: &Outstanding,
        log: Option<&SentLog>,
        room: u64,
    ) -> Option<Block> {
        match self {
            Self::Berkeley(berkeley) => berkeley.lost(now),
            Self::Vegas(vegas) => vegas.lost(now),
            Self::Rack(rack) => rack.lost(now, log?, room),
            Self::NewReno(newreno) => newreno.lost(now),
            Self::Sack(sack) => sack.lost(now, room),
        }
    }

    /// A retransmission that is allowed if there is no new data.
    pub(crate) fn perhaps_lost(&mut self, now: &Outstanding) -> Option<Block> {
        match self {
            Self::Berkeley(_) | Self::Vegas(_) | Self::Rack(_) | Self::NewReno(_) => None,
            Self::Sack(sack) => sack.perhaps_lost(now),
        }
    }

    /// After a timeout: the first run from `now.next` on that is not selectively acknowledged.
    pub(crate) fn again(&self, now: &Outstanding) -> Option<Block> {
        match self {
            // All losses are marked in the log.
            Self::Rack(_) => None,
            Self::Berkeley(berkeley) => berkeley.again(now),
            Self::Vegas(_) | Self::NewReno(_) => {
                (now.next < now.end).then_some((now.next, now.end))
            }
            Self::Sack(sack) => sack.again(now),
        }
    }
}

/// Returns the inflation after a partial acknowledgement of `acked` octets: the inflated window less
/// `acked`, plus `more` (RFC 6582, section 3.2, step 3). An acknowledgement of more than the
/// inflated window leaves `more` alone, as in BSD; a limit at the threshold instead would release
/// up to half of a window in one burst.
fn deflated(window: u64, inflation: i64, acked: u64, more: u64) -> i64 {
    let left = window.saturating_add_signed(inflation).saturating_sub(acked) + more;
    left.cast_signed() - window.cast_signed()
}

/// An empty report for tests.
#[cfg(test)]
fn tests_report() -> Report<'static> {
    const NOTHING: Delivery =
        Delivery { bytes: 0, newest: None, round_trip: None, reordered: false };
    Report {
        before: 0,
        window: 0,
        duplicate: false,
        sack: &[],
        now: Instant::ZERO,
        delivery: &NOTHING,
        smoothed: None,
    }
}
