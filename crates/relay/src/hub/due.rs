//! Timers of terminals, and terminals with pending work, so that idle ones are not polled.

use crate::PeerId;
use std::collections::{BTreeMap, BTreeSet};
use units::Instant;

/// Due times of terminals, and terminals with changes.
#[derive(Debug, Default)]
pub(super) struct Due {
    /// By time, and among equal times in the order of registration.
    times: BTreeMap<(Instant, u64), PeerId>,
    noted: BTreeMap<PeerId, (Instant, u64)>,
    last: u64,
    /// Terminals whose due time may have changed.
    touched: BTreeSet<PeerId>,
    /// Terminals that may have events.
    with_events: BTreeSet<PeerId>,
}

impl Due {
    /// Records a change of a terminal.
    pub(super) fn touch(&mut self, id: PeerId) {
        self.touched.insert(id);
        self.with_events.insert(id);
    }

    /// Removes a terminal.
    pub(super) fn forget(&mut self, id: PeerId) {
        self.note(id, None);
        self.touched.remove(&id);
        self.with_events.remove(&id);
    }

    /// Sets the due time of a terminal.
    pub(super) fn note(&mut self, id: PeerId, at: Option<Instant>) {
        if let Some(key) = self.noted.remove(&id) {
            self.times.remove(&key);
        }
        if let Some(at) = at {
            self.last += 1;
            self.times.insert((at, self.last), id);
            self.noted.insert(id, (at, self.last));
        }
        self.touched.remove(&id);
    }

    /// Returns the earliest due time.
    pub(super) fn first(&self) -> Option<Instant> {
        self.times.first_key_value().map(|((at, _), _)| *at)
    }

    /// Returns the terminal with the earliest due time, if it has passed by `now`.
    pub(super) fn waiting(&self, now: Instant) -> Option<PeerId> {
        self.times.first_key_value().filter(|((at, _), _)| *at <= now).map(|(_, id)| *id)
    }

    /// Returns all terminals that are due by `now`, and those with changes.
    pub(super) fn all(&self, now: Instant) -> Vec<PeerId> {
        let due = self.times.range(..=(now, u64::MAX)).map(|(_, id)| *id);
        due.chain(self.touched.iter().copied()).collect()
    }

    /// Returns the terminals whose due time may have changed.
    pub(super) fn touched(&self) -> impl Iterator<Item = PeerId> {
        self.touched.iter().copied()
    }

    pub(super) fn take_touched(&mut self) -> BTreeSet<PeerId> {
        std::mem::take(&mut self.touched)
    }

    /// Returns the next terminal after `last` that may have events.
    pub(super) fn next_with_events(&self, last: Option<PeerId>) -> Option<PeerId> {
        let after = last.and_then(|last| {
            use std::ops::Bound::{Excluded, Unbounded};
            self.with_events.range((Excluded(last), Unbounded)).next()
        });
        after.or(self.with_events.first()).copied()
    }

    /// Records that a terminal has no more events.
    pub(super) fn clear_events(&mut self, id: PeerId) {
        self.with_events.remove(&id);
    }
}
