//! Hubs that are replaced by another process, which serves new streams (RLY-10.9).
//!
//! ```text
//!   relay ──GOAWAY, no session follows──▶ former relay ──its streams end──▶ closed ──4 s──▶ removed
//!     └──────▶ another relay: new association, new streams
//! ```

use super::Paths;
use crate::engine::peers::handshake_log::HandshakeLog;
use association::{Counters, Entropy};
use relay::{DisconnectReason, Event, Relay, RelayConfig, Totals};
use std::fmt;
use units::{Instant, Span};

/// Maximum number of former relays of a path. A hub keeps as many associations beside the newest.
const MAX_FORMER: usize = 3;
/// Time for which a closed session responds to a retransmitted END.
const LAST_END_TIME: Span = Span::from_secs(4);

/// Creates the relays of paths.
pub(super) struct RelayMaker(Box<Make>);

type Make = dyn FnMut(&RelayConfig, Instant) -> Relay + Send;

impl RelayMaker {
    pub(super) fn new<E: Entropy + 'static>(
        mut entropy: impl FnMut() -> E + Send + 'static,
    ) -> Self {
        Self(Box::new(move |config, now| Relay::terminal(config, now, entropy())))
    }

    pub(super) fn relay(&mut self, config: &RelayConfig, now: Instant) -> Box<Relay> {
        Box::new((self.0)(config, now))
    }
}

impl fmt::Debug for RelayMaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RelayMaker")
    }
}

/// A relay whose hub opens no session any more, with the streams that remain.
#[derive(Debug)]
pub(crate) struct Former {
    pub(super) id: u32,
    /// Number of its path.
    pub(super) path: usize,
    pub(crate) relay: Box<Relay>,
    /// When it is removed, once its session has ended.
    removed_at: Option<Instant>,
}

/// Former relays of all paths.
#[derive(Debug, Default)]
pub(super) struct Formers {
    pub(super) all: Vec<Former>,
    last_id: u32,
    /// Those that were removed although they had streams, for events.
    ended: Vec<u32>,
    /// Totals of those that were removed.
    pub(super) past: (Totals, Counters),
}

impl Formers {
    pub(super) fn of(&mut self, path: usize) -> impl Iterator<Item = &mut Former> {
        self.all.iter_mut().filter(move |former| former.path == path)
    }

    pub(super) fn poll_event(&mut self) -> Option<(u32, Event)> {
        if let Some(id) = self.ended.pop() {
            return Some((id, Event::Disconnected { reason: DisconnectReason::Closed }));
        }
        self.all.iter_mut().find_map(|former| Some((former.id, former.relay.poll_event()?)))
    }

    /// Removes those whose sessions have ended.
    pub(super) fn review(&mut self, now: Instant) {
        for former in &mut self.all {
            if former.removed_at.is_none() && former.relay.has_drained() {
                former.removed_at = Some(now + LAST_END_TIME);
            }
        }
        let is_over = |former: &Former| former.removed_at.is_some_and(|at| at <= now);
        while let Some(index) = self.all.iter().position(is_over) {
            self.remove(index);
        }
    }

    fn remove(&mut self, index: usize) -> Former {
        let former = self.all.remove(index);
        let (totals, counters) = &mut self.past;
        totals.add(&former.relay.totals());
        former.relay.association_counters().into_iter().for_each(|one| counters.add(one));
        former
    }

    /// Removes a former relay of `path` if it has as many as it can have: one whose session has
    /// ended, else the oldest.
    fn make_room(&mut self, path: usize) {
        if self.of(path).count() < MAX_FORMER {
            return;
        }
        let is_closed = |one: &Former| one.path == path && one.removed_at.is_some();
        let closed = self.all.iter().position(is_closed);
        let Some(index) = closed.or_else(|| self.all.iter().position(|one| one.path == path))
        else {
            return;
        };
        let former = self.remove(index);
        if former.removed_at.is_none() {
            tracing::warn!("connections reset: the hub has been replaced {MAX_FORMER} times since");
            self.ended.push(former.id);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let due =
            |former: &Former| former.removed_at.into_iter().chain(former.relay.poll_timeout());
        self.all.iter().flat_map(due).min()
    }
}

impl Paths {
    /// Begins another association on the next path whose hub has announced its end. Returns the
    /// path and the number of its former relay, which has the existing streams.
    pub(crate) fn poll_succession(&mut self, now: Instant) -> Option<(usize, u32)> {
        let (formers, all) = (&mut self.formers, &mut self.all);
        let mut numbered = all.iter_mut().enumerate();
        let (number, path) =
            numbered.find(|(_, path)| path.relay.is_left() && path.relay.can_overlap())?;
        formers.make_room(number);
        let metrics = path.relay.path_metrics().or(path.config.path_metrics);
        path.config = RelayConfig { is_beside: true, path_metrics: metrics, ..path.config.clone() };
        let next = self.make.relay(&path.config, now);
        let mut relay = std::mem::replace(&mut path.relay, next);
        relay.drain();
        // It refers to the counters of the relay.
        path.handshake_log = HandshakeLog::default();
        tracing::info!(hub = %path.known_as(), "hub is replaced: another association for new connections");
        formers.last_id += 1;
        let id = formers.last_id;
        formers.all.push(Former { id, path: number, relay, removed_at: None });
        Some((number, id))
    }

    /// Returns the former relay with this number.
    pub(crate) fn former(&mut self, id: u32) -> Option<&mut Former> {
        self.formers.all.iter_mut().find(|former| former.id == id)
    }

    /// Returns all relays, of which several may have one path.
    pub(crate) fn relays(&self) -> impl Iterator<Item = &Relay> {
        let present = self.all.iter().map(|path| &*path.relay);
        present.chain(self.formers.all.iter().map(|former| &*former.relay))
    }

    /// As [`Paths::relays`].
    pub(crate) fn relays_mut(&mut self) -> impl Iterator<Item = &mut Relay> {
        let present = self.all.iter_mut().map(|path| &mut *path.relay);
        present.chain(self.formers.all.iter_mut().map(|former| &mut *former.relay))
    }

    /// Returns the relays of path `number`.
    pub(crate) fn relays_of(&mut self, number: usize) -> impl Iterator<Item = &mut Relay> {
        let present = self.all.get_mut(number).map(|path| &mut *path.relay);
        present.into_iter().chain(self.formers.of(number).map(|former| &mut *former.relay))
    }

    /// Returns the totals of former relays that were removed.
    pub(crate) fn past(&self) -> &(Totals, Counters) {
        &self.formers.past
    }
}
