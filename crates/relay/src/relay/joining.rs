//! Several paths of one relay (RLY-12).
//!
//! ```text
//!   add_path ─▶ Hello, which names the association of a path with a session
//!                 └─▶ Welcome: joined ─▶ session on the new path, for the same streams
//!   outage of a path ──▶ its unacknowledged packets move to the others
//!   no response ───────▶ the path is left; the streams remain as long as a path has a session
//!   any other end of a session, on any path ──▶ the streams end, and all sessions with them
//! ```

use super::Relay;
use super::path::Path;
use crate::DisconnectReason;
use crate::config::RelayConfig;
use crate::session::association_config;
use association::{Entropy, Terminal};
use units::{BitRate, Instant, Span};

/// Time after which a session without a response gives way to one on another path.
const ANSWER_TIME: Span = Span::from_secs(3);

impl Relay {
    /// Adds a path to the same hub to a terminal's relay, and returns its number. The first path
    /// has the number 0. What concerns streams is configured by the first path. The hub joins the
    /// new path to the first one that it has; until then, and if it does not support this, the path
    /// is not used.
    ///
    /// # Panics
    /// Panics if the configuration has keys, but none of a hub.
    pub fn add_path(
        &mut self,
        config: &RelayConfig,
        now: Instant,
        entropy: impl Entropy + 'static,
    ) -> usize {
        let first = &self.paths[0].config;
        let config = RelayConfig {
            max_streams: first.max_streams,
            receive_pool: first.receive_pool,
            stream_minimum: first.stream_minimum,
            shared_credit: first.shared_credit,
            send_pool: first.send_pool,
            unsent_limit: first.unsent_limit,
            ..config.clone()
        };
        let terminal = Terminal::new(association_config(&config), now, entropy);
        let number = self.paths.vacant_key();
        let number = self.paths.insert(Path::new(number, &config, Some(terminal)));
        self.sum_receive_rates();
        number
    }

    /// Sizes the receive pool for all paths together.
    pub(super) fn sum_receive_rates(&mut self) {
        if self.paths.len() > 1 {
            let rates = self.paths.iter().filter_map(|(_, path)| path.config.receive_rate);
            let sum = rates.fold(0, |sum: u64, rate| sum.saturating_add(rate.as_bps()));
            self.streams.set_receive_rate(BitRate::new(sum));
        }
    }

    /// Adds a path that a terminal has joined to this relay of a hub, and returns its number.
    pub(crate) fn join(&mut self, path: impl FnOnce(usize) -> Path) -> usize {
        let path = path(self.paths.vacant_key());
        self.streams.limit_padding(path.sends_padding());
        let number = self.paths.insert(path);
        self.sum_receive_rates();
        number
    }

    /// Removes a path whose association a hub has ended. Returns whether another one has a session.
    pub(crate) fn remove_path(&mut self, number: usize) -> bool {
        let others = self.has_others(number);
        if others && self.paths.contains(number) {
            self.paths.remove(number);
            self.streams.remove_path(number);
            self.wake();
        }
        others
    }

    /// Returns whether the path has no session, while another one has.
    pub(crate) fn has_left(&self, number: usize) -> bool {
        self.paths.get(number).is_some_and(|path| path.session.is_none()) && self.has_others(number)
    }

    /// Returns whether another path has a session.
    pub(super) fn has_others(&self, number: usize) -> bool {
        self.paths.iter().any(|(other, path)| other != number && path.session.is_some())
    }

    /// Ends the session of a path; the streams continue on others.
    pub(super) fn leave(&mut self, number: usize) {
        self.paths[number].lose(DisconnectReason::NoResponse, false);
        self.streams.remove_path(number);
        self.review_paths();
        self.wake();
    }

    /// Ends the sessions that the hub has not answered for some time, so that one can begin on a
    /// path that it has answered; returns false if it is too early. Nothing was sent in them.
    pub(super) fn replace_unanswered(&mut self, now: Instant) -> bool {
        let begun = self.paths.iter().filter(|(_, path)| path.session.is_some());
        let mut begun = begun.map(|(_, path)| path.begun);
        if begun.any(|begun| now.since(begun) < ANSWER_TIME) {
            return false;
        }
        for (_, path) in &mut self.paths {
            path.session = None;
        }
        true
    }

    /// Returns the association of another path that answers, or whose session has just begun.
    fn sibling_of(&self, number: usize) -> Option<u64> {
        let is_here =
            |path: &Path| path.session.is_some() && (path.is_answered() || !path.connected);
        let mut others =
            self.paths.iter().filter(|(other, path)| *other != number && is_here(path));
        others.find_map(|(_, path)| path.association)
    }

    /// Has the associations that a terminal makes from now on joined to those of other paths.
    fn name_siblings(&mut self) {
        let numbers: Vec<usize> = self.paths.iter().map(|(number, _)| number).collect();
        for number in numbers {
            let sibling = self.sibling_of(number);
            if let Some(terminal) = &mut self.paths[number].terminal {
                terminal.set_sibling(sibling);
            }
        }
    }

    /// Requests associations for the paths of a terminal that have no session.
    pub(super) fn request_joins(&mut self, now: Instant) {
        self.name_siblings();
        for (_, path) in &mut self.paths {
            if let Some(terminal) = path.terminal.as_mut().filter(|_| path.session.is_none()) {
                terminal.restart(now);
            }
        }
    }

    /// Notifies the sessions of all paths after a call for one of them: what it has received, or its
    /// next frame, may be for another.
    pub(super) fn wake_others(&mut self) {
        if self.paths.len() > 1 {
            self.wake();
        }
    }

    /// Moves the packets of paths that have ceased to answer to others that answer.
    pub(super) fn review_paths(&mut self) {
        if self.paths.len() < 2 {
            return;
        }
        let mut has_changed = false;
        for (number, path) in &mut self.paths {
            let answers = path.is_answered();
            has_changed |= std::mem::replace(&mut path.was_answered, answers) != answers;
            self.streams.set_path(number, answers);
        }
        if has_changed && self.paths.iter().any(|(_, path)| path.was_answered) {
            for (number, _) in self.paths.iter().filter(|(_, path)| !path.was_answered) {
                self.streams.leave_path(number);
            }
            self.wake();
        }
        if has_changed {
            self.name_siblings();
        }
    }
}
