//! Hubs that are replaced by another process, which serves new streams (RLY-10.9).
//!
//! ```text
//!   relay ──GOAWAY, no session follows──▶ former relay ──its streams end──▶ closed ──4 s──▶ removed
//!     └──────▶ another relay: new association, new streams
//! ```

use super::{Paths, configs};
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

type Make = dyn FnMut(Option<Relay>, &RelayConfig, Instant) -> Relay + Send;

impl RelayMaker {
    pub(super) fn new<E: Entropy + 'static>(
        mut entropy: impl FnMut() -> E + Send + 'static,
    ) -> Self {
        Self(Box::new(move |relay, config, now| match relay {
            Some(mut relay) => {
                relay.add_path(config, now, entropy());
                relay
            }
            None => Relay::terminal(config, now, entropy()),
        }))
    }

    /// Creates a relay with paths of these configurations, of which there is at least one.
    pub(super) fn relay<'c>(
        &mut self,
        configs: impl Iterator<Item = &'c RelayConfig>,
        now: Instant,
    ) -> Relay {
        let relay = configs.fold(None, |relay, config| Some((self.0)(relay, config, now)));
        relay.expect("each relay has a path")
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
    /// Number of the relay in its place.
    present: usize,
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
    /// The former relays in the place of relay `present`.
    pub(super) fn of(&mut self, present: usize) -> impl Iterator<Item = &mut Former> {
        self.all.iter_mut().filter(move |former| former.present == present)
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
        for (_, path) in former.relay.paths() {
            path.association_counters().into_iter().for_each(|one| counters.add(one));
        }
        former
    }

    /// Removes a former relay of relay `present` if it has as many as it can have: one whose session has
    /// ended, else the oldest.
    fn make_room(&mut self, present: usize) {
        if self.of(present).count() < MAX_FORMER {
            return;
        }
        let is_closed = |one: &Former| one.present == present && one.removed_at.is_some();
        let closed = self.all.iter().position(is_closed);
        let Some(index) = closed.or_else(|| self.all.iter().position(|one| one.present == present))
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
    /// Begins other associations in place of the next relay whose hub has announced its end. Returns
    /// that relay's number and the one that it has as a former relay, with the existing streams.
    pub(crate) fn poll_succession(&mut self, now: Instant) -> Option<(usize, u32)> {
        let number =
            self.present.iter().position(|relay| relay.is_left() && relay.can_overlap())?;
        self.formers.make_room(number);
        for path in self.all.iter_mut().filter(|path| path.seat.0 == number) {
            let view = self.present[number].path(path.seat.1);
            let metrics = view.and_then(|view| view.path_metrics());
            path.config.is_beside = true;
            path.config.path_metrics = metrics.or(path.config.path_metrics);
            // It refers to the counters of the relay.
            path.handshake_log = HandshakeLog::default();
            tracing::info!(hub = %path.known_as(), "hub is replaced: another association for new connections");
        }
        let next = self.make.relay(configs(&self.all, number), now);
        let mut relay = std::mem::replace(&mut self.present[number], next);
        relay.drain();
        let formers = &mut self.formers;
        formers.last_id += 1;
        let id = formers.last_id;
        formers.all.push(Former { id, present: number, relay: Box::new(relay), removed_at: None });
        Some((number, id))
    }

    /// Returns the former relay with this number.
    pub(crate) fn former(&mut self, id: u32) -> Option<&mut Former> {
        self.formers.all.iter_mut().find(|former| former.id == id)
    }

    /// Returns all relays, of which several may have one path.
    pub(crate) fn relays(&self) -> impl Iterator<Item = &Relay> {
        self.present.iter().chain(self.formers.all.iter().map(|former| &*former.relay))
    }

    /// As [`Paths::relays`].
    pub(crate) fn relays_mut(&mut self) -> impl Iterator<Item = &mut Relay> {
        self.present.iter_mut().chain(self.formers.all.iter_mut().map(|former| &mut *former.relay))
    }

    /// Returns the relays of path `number`, and its number in them.
    pub(crate) fn relays_of(
        &mut self,
        number: usize,
    ) -> Option<(impl Iterator<Item = &mut Relay>, usize)> {
        let (relay, number) = self.all.get(number)?.seat;
        let present = self.present.get_mut(relay);
        let formers = self.formers.of(relay).map(|former| &mut *former.relay);
        Some((present.into_iter().chain(formers), number))
    }

    /// Returns the totals of former relays that were removed.
    pub(crate) fn past(&self) -> &(Totals, Counters) {
        &self.formers.past
    }
}
