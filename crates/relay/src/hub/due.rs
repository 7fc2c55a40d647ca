//! Which terminals want attention, so that nobody is asked in vain.

use crate::PeerId;
use std::collections::{BTreeMap, BTreeSet};
use units::Instant;

/// When terminals want to be called, and which have been touched.
#[derive(Debug, Default)]
pub(super) struct Due {
    /// By time, and among equals by who was noted first.
    times: BTreeMap<(Instant, u64), PeerId>,
    noted: BTreeMap<PeerId, (Instant, u64)>,
    last: u64,
    /// Whose times may be others by now.
    touched: BTreeSet<PeerId>,
    /// Who may have something to tell.
    news: BTreeSet<PeerId>,
}

impl Due {
    /// Something was done to this one.
    pub(super) fn touch(&mut self, id: PeerId) {
        self.touched.insert(id);
        self.news.insert(id);
    }

    /// It is gone.
    pub(super) fn forget(&mut self, id: PeerId) {
        self.note(id, None);
        self.touched.remove(&id);
        self.news.remove(&id);
    }

    /// It wants to be called at `at`.
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

    /// When the first one wants to be called, of those that were noted.
    pub(super) fn first(&self) -> Option<Instant> {
        self.times.first_key_value().map(|((at, _), _)| *at)
    }

    /// Who has waited longest of those that are due by `now`.
    pub(super) fn waiting(&self, now: Instant) -> Option<PeerId> {
        self.times.first_key_value().filter(|((at, _), _)| *at <= now).map(|(_, id)| *id)
    }

    /// All that are due by `now`, and those that were touched.
    pub(super) fn all(&self, now: Instant) -> Vec<PeerId> {
        let due = self.times.range(..=(now, u64::MAX)).map(|(_, id)| *id);
        due.chain(self.touched.iter().copied()).collect()
    }

    /// Whose times may be others by now.
    pub(super) fn touched(&self) -> impl Iterator<Item = PeerId> {
        self.touched.iter().copied()
    }

    pub(super) fn take_touched(&mut self) -> BTreeSet<PeerId> {
        std::mem::take(&mut self.touched)
    }

    /// Who may have something to tell; after `last` first.
    pub(super) fn teller(&self, last: Option<PeerId>) -> Option<PeerId> {
        let after = last.and_then(|last| {
            use std::ops::Bound::{Excluded, Unbounded};
            self.news.range((Excluded(last), Unbounded)).next()
        });
        after.or(self.news.first()).copied()
    }

    /// It has told all.
    pub(super) fn told_all(&mut self, id: PeerId) {
        self.news.remove(&id);
    }
}
