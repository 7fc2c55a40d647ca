//! The state of each path of a relay.

use super::{Path, Relay};
use crate::{PathMetrics, Totals, health};
use association::Terminal;
use units::{BitRate, Instant, Span};
use xstp::session::{Session, Snapshot};

/// One path of a relay, read-only. What concerns streams is counted at the first path.
#[derive(Clone, Copy, Debug)]
pub struct PathView<'r> {
    relay: &'r Relay,
    path: &'r Path,
    is_first: bool,
}

impl Relay {
    /// Returns the paths with their numbers, the first one first. There is at least one.
    pub fn paths(&self) -> impl Iterator<Item = (usize, PathView<'_>)> {
        let first = self.paths.iter().next().map(|(number, _)| number);
        self.paths.iter().map(move |(number, path)| {
            (number, PathView { relay: self, path, is_first: Some(number) == first })
        })
    }

    /// Returns the path with this number.
    pub fn path(&self, number: usize) -> Option<PathView<'_>> {
        self.paths().find(|(other, _)| *other == number).map(|(_, path)| path)
    }
}

impl PathView<'_> {
    /// Returns whether it is the first path.
    pub fn is_first(&self) -> bool {
        self.is_first
    }

    /// Returns whether there is a session with the peer.
    pub fn is_connected(&self) -> bool {
        self.path.connected
    }

    /// Returns whether the peer responds: see [`Relay::is_answered`].
    pub fn is_answered(&self) -> bool {
        self.path.is_answered()
    }

    /// Returns whether the path is not used because the hub has not joined it to another one that
    /// has a session.
    pub fn is_not_joined(&self) -> bool {
        let is_refused =
            |terminal: &Terminal| terminal.is_established() && terminal.joined() == (true, false);
        self.path.session.is_none()
            && self.path.terminal.as_ref().is_some_and(is_refused)
            && self.relay.has_others(self.path.number())
    }

    /// Returns when the session was opened, if there is one.
    pub fn connected_since(&self) -> Option<Instant> {
        self.path.connected_since.filter(|_| self.path.connected)
    }

    /// Returns when a datagram of the peer was last decrypted.
    pub fn heard(&self) -> Option<Instant> {
        self.path.heard
    }

    fn session(&self) -> Option<&Session> {
        self.path.session.as_ref()
    }

    /// Returns the session's state variables at `now`, if there is a session.
    pub fn snapshot(&self, now: Instant) -> Option<Snapshot> {
        self.session().map(|session| session.snapshot(now))
    }

    /// Returns the smoothed RTT, once one was measured.
    pub fn round_trip(&self) -> Option<Span> {
        self.session().and_then(Session::srtt)
    }

    /// Returns the sending rate at `now`, if there is one.
    pub fn rate(&self, now: Instant) -> Option<BitRate> {
        self.session()?.rate(now)
    }

    /// Returns the path metrics that the present or last session has measured.
    pub fn path_metrics(&self) -> Option<PathMetrics> {
        self.path.path_metrics()
    }

    /// Returns the current maximum size of an IP packet, bytes.
    pub fn mtu(&self) -> usize {
        self.path.mtu.current()
    }

    /// Returns the hub's rate grant for this terminal on the path, if there is one.
    pub fn granted(&self) -> Option<BitRate> {
        self.relay.streams.granted_on(self.path.number())
    }

    /// Returns the counters of a terminal's association.
    pub fn association_counters(&self) -> Option<&association::Counters> {
        self.path.terminal.as_ref().map(Terminal::counters)
    }

    /// Returns the totals of its sessions, including past ones; at the first path also those of the
    /// streams.
    pub fn totals(&self) -> Totals {
        let mut totals = self.path.totals();
        if self.is_first {
            totals.add(&self.relay.stream_totals());
        }
        totals
    }

    /// Returns a sample to evaluate its [health](crate::health).
    pub fn sample(&self) -> health::PathSample {
        let counted = self.session().map(Session::statistics);
        health::PathSample {
            answered: self.is_answered(),
            round_trip: self.round_trip(),
            sent: counted.map_or(0, |counted| counted.data_sent),
            retransmitted: counted.map_or(0, |counted| counted.data_retransmitted),
        }
    }
}
