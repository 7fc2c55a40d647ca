//! The third axis: the congestion window.

mod bbr;
mod bbr3;
mod cubic;
mod events;
mod hystart;
mod levels;
mod prague;
mod reno;
mod vegas;

pub(crate) use bbr::Bbr;
pub(crate) use bbr3::Bbr3;
pub(crate) use cubic::Cubic;
pub(crate) use events::{Acked, Marks, Sample};
pub(crate) use levels::Levels;
pub(crate) use prague::Prague;
pub(crate) use reno::Reno;
pub(crate) use vegas::Vegas;

use crate::config::{AfterIdle, WindowKind};
use crate::recovery::Deflate;
use units::Span;

/// A congestion window algorithm.
#[derive(Clone, Debug)]
pub(crate) enum Window {
    Vegas(Vegas),
    Bbr(Bbr),
    Bbr3(Bbr3),
    Prague(Prague),
    Reno(Reno),
    Cubic(Cubic),
}

impl Window {
    pub(crate) fn new(kind: WindowKind, levels: Levels) -> Self {
        match kind {
            WindowKind::Vegas => Self::Vegas(Vegas::new(levels)),
            WindowKind::Bbr => Self::Bbr(Bbr::new(levels)),
            WindowKind::Bbr3 => Self::Bbr3(Bbr3::new(levels)),
            WindowKind::Prague => Self::Prague(Prague::new(levels)),
            WindowKind::Reno => Self::Reno(Reno::new(levels)),
            WindowKind::Cubic { early_end } => Self::Cubic(Cubic::new(levels, early_end)),
        }
    }

    /// Window and threshold.
    pub(crate) fn levels(&self) -> &Levels {
        match self {
            Self::Vegas(vegas) => vegas.levels(),
            Self::Bbr(bbr) => bbr.levels(),
            Self::Bbr3(bbr) => bbr.levels(),
            Self::Prague(prague) => prague.levels(),
            Self::Reno(reno) => reno.levels(),
            Self::Cubic(cubic) => cubic.levels(),
        }
    }

    pub(crate) fn levels_mut(&mut self) -> &mut Levels {
        match self {
            Self::Vegas(vegas) => vegas.levels_mut(),
            Self::Bbr(bbr) => bbr.levels_mut(),
            Self::Bbr3(bbr) => bbr.levels_mut(),
            Self::Prague(prague) => prague.levels_mut(),
            Self::Reno(reno) => reno.levels_mut(),
            Self::Cubic(cubic) => cubic.levels_mut(),
        }
    }

    /// Handles the acknowledgement of new data outside of recovery.
    pub(crate) fn on_ack(&mut self, acked: &Acked) {
        match self {
            Self::Vegas(vegas) => vegas.on_ack(acked),
            Self::Bbr(_) | Self::Bbr3(_) => {}
            Self::Prague(prague) => prague.on_ack(acked),
            Self::Reno(reno) => reno.on_ack(acked),
            Self::Cubic(cubic) => cubic.on_ack(acked),
        }
    }

    /// Whether it wants [samples](Self::on_sample).
    pub(crate) fn needs_log(&self) -> bool {
        match self {
            Self::Vegas(_) | Self::Bbr(_) | Self::Bbr3(_) => true,
            Self::Reno(_) | Self::Cubic(_) | Self::Prague(_) => false,
        }
    }

    /// Handles a sample of the path.
    pub(crate) fn on_sample(&mut self, sample: &Sample) {
        match self {
            Self::Vegas(vegas) => vegas.on_sample(sample),
            Self::Bbr(bbr) => bbr.on_sample(sample),
            Self::Bbr3(bbr) => bbr.on_sample(sample),
            Self::Reno(_) | Self::Cubic(_) | Self::Prague(_) => {}
        }
    }

    /// Pacing rate in octets per second, if the algorithm sets one.
    pub(crate) fn pacing_rate(&self) -> Option<f64> {
        match self {
            Self::Bbr(bbr) => Some(bbr.pacing_rate()),
            Self::Bbr3(bbr) => Some(bbr.pacing_rate()),
            Self::Reno(_) | Self::Cubic(_) | Self::Vegas(_) | Self::Prague(_) => None,
        }
    }

    /// The minimum round trip, if the algorithm measures it.
    pub(crate) fn least_round_trip(&self) -> Option<Span> {
        match self {
            Self::Bbr(bbr) => bbr.least_round_trip(),
            Self::Bbr3(bbr) => bbr.least_round_trip(),
            Self::Reno(_) | Self::Cubic(_) | Self::Vegas(_) | Self::Prague(_) => None,
        }
    }

    /// The window is small by design, and rate samples are not valid.
    pub(crate) fn drains(&self) -> bool {
        match self {
            Self::Bbr(bbr) => bbr.drains(),
            Self::Bbr3(bbr) => bbr.drains(),
            Self::Reno(_) | Self::Cubic(_) | Self::Vegas(_) | Self::Prague(_) => false,
        }
    }

    /// The window may become smaller than the flight by design, so that repair waits for room.
    /// Version 1 of BBR does so too, but keeps the stricter timer of its published results.
    pub(crate) fn delays_repair(&self) -> bool {
        matches!(self, Self::Bbr3(_))
    }

    /// Handles a loss detected by duplicates, with `flight` octets outstanding.
    pub(crate) fn on_loss(&mut self, flight: u64) {
        match self {
            Self::Vegas(vegas) => vegas.on_loss(flight),
            Self::Bbr(bbr) => bbr.on_loss(),
            Self::Bbr3(bbr) => bbr.on_loss(),
            Self::Prague(prague) => prague.on_loss(flight),
            Self::Reno(reno) => reno.on_loss(flight),
            Self::Cubic(cubic) => cubic.on_loss(flight),
        }
    }

    /// Whether it responds to the number of marks: its segments carry ECT(1).
    pub(crate) fn is_scalable(&self) -> bool {
        matches!(self, Self::Bbr3(_) | Self::Prague(_))
    }

    /// Handles the marks of an acknowledgement, before the acknowledgement; returns whether they
    /// reduced the window. `None`: it responds to marks as to losses.
    pub(crate) fn on_marks(&mut self, marks: &Marks) -> Option<bool> {
        match self {
            Self::Prague(prague) => Some(prague.on_marks(marks)),
            Self::Bbr3(bbr) => {
                bbr.on_marks(marks);
                Some(marks.bytes > 0)
            }
            Self::Reno(_) | Self::Cubic(_) | Self::Vegas(_) | Self::Bbr(_) => None,
        }
    }

    /// Handles a retransmission timeout; `first`: the first for this data.
    pub(crate) fn on_timeout(&mut self, flight: u64, first: bool) {
        match self {
            Self::Vegas(vegas) => vegas.on_timeout(flight, first),
            Self::Bbr(bbr) => bbr.on_timeout(),
            Self::Bbr3(bbr) => bbr.on_timeout(),
            Self::Prague(prague) => prague.on_timeout(flight, first),
            Self::Reno(reno) => reno.on_timeout(flight, first),
            Self::Cubic(cubic) => cubic.on_timeout(flight, first),
        }
    }

    /// Handles the end of recovery with `flight` octets outstanding: the window is reduced so that
    /// no burst follows.
    pub(crate) fn deflate(&mut self, flight: u64, how: Deflate) {
        if matches!(self, Self::Bbr(_) | Self::Bbr3(_)) {
            return;
        }
        let levels = self.levels_mut();
        let segment = levels.segment();
        let flight = match how {
            Deflate::Stays => return,
            Deflate::ToFlight => flight.max(segment),
            Deflate::ToFlightBare => flight,
        };
        levels.set_window(levels.threshold().min(flight + segment));
    }

    /// Handles an idle time, which lasted for so many retransmission timeouts.
    pub(crate) fn on_idle(&mut self, idle: Span, timeouts: u64, after: AfterIdle) {
        match after {
            AfterIdle::SlowStart if timeouts > 0 => {
                self.levels_mut().restart();
                self.forget_epoch();
            }
            AfterIdle::Decay if timeouts > 0 => {
                self.levels_mut().decay(timeouts);
                self.forget_epoch();
            }
            AfterIdle::Keep | AfterIdle::SlowStart | AfterIdle::Decay | AfterIdle::Paced => {
                match self {
                    Self::Reno(_) | Self::Vegas(_) | Self::Prague(_) => {}
                    Self::Bbr(bbr) => bbr.on_idle(idle),
                    Self::Bbr3(bbr) => bbr.on_idle(idle),
                    Self::Cubic(cubic) => cubic.on_idle(idle),
                }
            }
        }
    }

    fn forget_epoch(&mut self) {
        match self {
            Self::Reno(_) | Self::Vegas(_) | Self::Bbr(_) | Self::Bbr3(_) | Self::Prague(_) => {}
            Self::Cubic(cubic) => cubic.restart(),
        }
    }

    /// Handles a retransmitted SYN: an initial window of one segment (RFC 5681, section 3.1).
    pub(crate) fn syn_was_lost(&mut self) {
        let levels = self.levels_mut();
        levels.set_window(levels.segment());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovery_ends_with_the_flight_plus_a_segment_and_by_the_appendix_with_one() {
        const MSS: u64 = 1_000;
        let deflated = |how, flight| {
            let mut window = Window::new(WindowKind::Reno, Levels::new(MSS, 20 * MSS, None));
            window.on_loss(20 * MSS);
            window.deflate(flight * MSS, how);
            window.levels().window() / MSS
        };
        // ssthresh is 10. RFC 6582: min(10, max(flight, 1) + 1); the appendix: min(10, flight + 1).
        for (flight, rfc, appendix) in [(15, 10, 10), (4, 5, 5), (0, 2, 1)] {
            assert_eq!(deflated(Deflate::ToFlight, flight), rfc);
            assert_eq!(deflated(Deflate::ToFlightBare, flight), appendix);
            assert_eq!(deflated(Deflate::Stays, flight), 10);
        }
    }
}
