//! The second axis: what is lost, and retransmitted.

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

/// The sender's variables that a recovery looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outstanding {
    /// SND.UNA: the oldest number that is not acknowledged.
    pub(crate) oldest: u64,
    /// SND.NXT: what goes next; after a timeout it goes back.
    pub(crate) next: u64,
    /// The number after the highest that was ever sent (HighData of RFC 6675, plus one).
    pub(crate) end: u64,
    /// SMSS.
    pub(crate) segment: u64,
}

/// An acknowledgement, as a recovery sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report<'a> {
    /// What was the oldest before it.
    pub(crate) before: u64,
    /// The congestion window.
    pub(crate) window: u64,
    /// It is a duplicate as RFC 5681, section 2, has it.
    pub(crate) duplicate: bool,
    /// The blocks of its SACK option.
    pub(crate) sack: &'a [Block],
    /// When it came.
    pub(crate) now: Instant,
    /// What it delivers, where a log is kept.
    pub(crate) delivery: &'a Delivery,
    /// SRTT.
    pub(crate) smoothed: Option<Span>,
}

/// What an acknowledgement led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing is being repaired.
    Open,
    /// A loss is found: the window is to be reduced.
    Loss,
    /// Repair goes on; `restart_timer` when the retransmission timer is to start anew.
    Repairing {
        /// See above.
        restart_timer: bool,
    },
    /// Repair is over.
    Repaired {
        /// What becomes of the window.
        deflate: Deflate,
    },
}

/// What becomes of the window at a repair's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deflate {
    /// It stays: inflation is over, and ssthresh it is already.
    Stays,
    /// Not above the flight and a segment, and above two segments in any case (RFC 6582,
    /// section 3.2, step 3, option 1).
    ToFlight,
    /// Not above the flight and a segment: one segment where nothing is outstanding (Henderson &
    /// Katz 1999, appendix, rule 3).
    ToFlightBare,
}

/// One of the ways to repair.
#[derive(Clone, Debug)]
pub(crate) enum Recovery {
    Berkeley(Berkeley),
    Vegas(Vegas),
    Rack(Rack),
    NewReno(NewReno),
    Sack(Sack),
}

impl Recovery {
    /// The recovery that a TCP is to have; `sack` when both ends have SACK.
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

    /// An acknowledgement came, and `now` is what is outstanding after it.
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

    /// The retransmission timer ran out; says whether all will be retransmitted from the oldest on.
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

    /// Bytes that count as being on the way.
    pub(crate) fn in_flight(&self, now: &Outstanding, log: Option<&SentLog>) -> u64 {
        match self {
            Self::Rack(_) => log.map_or(0, SentLog::on_way),
            Self::Berkeley(_) | Self::Vegas(_) | Self::NewReno(_) => now.next - now.oldest,
            Self::Sack(sack) => sack.pipe(now),
        }
    }

    /// Whether it looks at when segments were sent.
    pub(crate) fn needs_log(&self) -> bool {
        match self {
            Self::Vegas(_) | Self::Rack(_) => true,
            Self::Berkeley(_) | Self::NewReno(_) | Self::Sack(_) => false,
        }
    }

    /// Whether the retransmission timer counts from the last sending of the oldest, as in Linux,
    /// and not from the last acknowledgement.
    pub(crate) fn times_the_oldest(&self) -> bool {
        matches!(self, Self::Rack(_))
    }

    /// By how much the window is inflated for new data.
    pub(crate) fn inflation(&self) -> u64 {
        match self {
            Self::Berkeley(berkeley) => berkeley.inflation(),
            Self::Vegas(vegas) => vegas.inflation(),
            Self::NewReno(newreno) => newreno.inflation(),
            Self::Sack(_) | Self::Rack(_) => 0,
        }
    }

    /// Whether new data may go although nothing else says so: a loss is being repaired, or not.
    pub(crate) fn is_repairing(&self) -> bool {
        match self {
            Self::Berkeley(berkeley) => berkeley.is_repairing(),
            Self::Vegas(vegas) => vegas.is_repairing(),
            Self::Rack(rack) => rack.is_repairing(),
            Self::NewReno(newreno) => newreno.is_repairing(),
            Self::Sack(sack) => sack.is_repairing(),
        }
    }

    /// What is to be retransmitted now, before new data, with `room` bytes of window.
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

    /// What may be retransmitted since there is no new data.
    pub(crate) fn perhaps_lost(&mut self, now: &Outstanding) -> Option<Block> {
        match self {
            Self::Berkeley(_) | Self::Vegas(_) | Self::Rack(_) | Self::NewReno(_) => None,
            Self::Sack(sack) => sack.perhaps_lost(now),
        }
    }

    /// After a timeout: the first run from `now.next` on that the peer is not known to have.
    pub(crate) fn again(&self, now: &Outstanding) -> Option<Block> {
        match self {
            // All that is lost is known.
            Self::Rack(_) => None,
            Self::Berkeley(berkeley) => berkeley.again(now),
            Self::Vegas(_) | Self::NewReno(_) => {
                (now.next < now.end).then_some((now.next, now.end))
            }
            Self::Sack(sack) => sack.again(now),
        }
    }
}

/// A report of nothing, for tests to fill in.
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
