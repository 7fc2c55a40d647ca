//! The variables of a session that one may want to see over time.

use super::Session;
use units::{BitRate, Instant, Span};

/// A session's variables at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// What the controller does, in a word.
    pub mode: &'static str,
    /// The rate at which everything is paced, in bits of whole IP packets per second; `None`
    /// where a window controller's packets are spread instead.
    pub rate: Option<BitRate>,
    /// The congestion window in bytes, if the controller keeps one.
    pub congestion_window: Option<u64>,
    /// Where the window stops to grow exponentially, in bytes.
    pub threshold: Option<u64>,
    /// Payload bytes sent and not released.
    pub outstanding: u64,
    /// Numbers that wait to be sent again.
    pub waiting_again: u64,
    /// The smoothed round trip, once one was measured.
    pub round_trip: Option<Span>,
    /// The shortest round trip so far.
    pub least_round_trip: Option<Span>,
    /// What waits on the way to the peer, as far as the controller measures it.
    pub queue: Option<Span>,
    /// Whether a probing cycle is running.
    pub is_probing: bool,
    /// Since when POLLs go unanswered for too long, while they do.
    pub outage_since: Option<Instant>,
}

/// What a session found out about its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Learnt {
    /// The rate that the way took, in bits of whole IP packets per second.
    pub rate: BitRate,
    /// The round trip without a queue.
    pub round_trip: Span,
}

impl Session {
    /// The rate at which this side sends at most by `now`, as far as there is one: the pace, or
    /// the window over a round trip.
    pub fn rate(&self, now: Instant) -> Option<BitRate> {
        self.congestion.known(now).or_else(|| {
            let round_trip = self.round_trip.measured()?.as_micros().max(1);
            let bps = self.congestion.window()?.saturating_mul(8_000_000) / round_trip;
            let found = BitRate::new(bps)?;
            Some(self.config.paced_rate().map_or(found, |most| found.min(most)))
        })
    }

    /// Whether there is an outage: POLLs go unanswered for too long.
    pub fn is_out(&self) -> bool {
        self.outage_since.is_some()
    }

    /// The session's variables at `now`: for time series and for people.
    pub fn snapshot(&self, now: Instant) -> Snapshot {
        Snapshot {
            mode: if self.is_probing() { "probing" } else { self.congestion.mode(now) },
            rate: self.congestion.pace(now),
            congestion_window: self.congestion.window(),
            threshold: self.congestion.threshold(),
            outstanding: self.sender.unreleased_bytes(),
            waiting_again: self.sender.queued() as u64,
            round_trip: self.round_trip.measured(),
            least_round_trip: self.round_trip.least(),
            queue: self.congestion.queue(),
            is_probing: self.is_probing(),
            outage_since: self.outage_since,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::SessionConfig;

    #[test]
    fn a_snapshot_shows_what_the_session_runs_at() {
        let session = Session::listen(&SessionConfig::gateway(BitRate::from_mbps(10)));
        let seen = session.snapshot(Instant::ZERO);
        assert_eq!(seen.mode, "free");
        assert_eq!(seen.rate, Some(BitRate::from_bps(9_980_000)), "less the headroom");
        assert_eq!((seen.congestion_window, seen.round_trip), (None, None));
        assert_eq!(session.rate(Instant::ZERO), seen.rate);
        let session = Session::listen(&SessionConfig::stp_1999());
        let seen = session.snapshot(Instant::ZERO);
        assert_eq!(seen.mode, "slow start");
        assert_eq!((seen.rate, seen.threshold), (None, None));
        assert_eq!(seen.congestion_window, Some(1461));
    }
}
