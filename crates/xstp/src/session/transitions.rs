//! What the state machine's actions do, and what they need to know of time and incarnations.

use super::state::{self, Action, State, Stimulus};
use super::{Event, Session, stamp_of};
use crate::wire::Profile;
use units::Instant;

/// Reports of credit and outages that wait to be taken, at most.
const REPORTS: usize = 64;

impl Session {
    /// Feeds an event to the state machine and does what it says, as far as no segment's parts
    /// are needed for it. Returns the action.
    pub(super) fn apply(&mut self, now: Instant, stimulus: Stimulus) -> Action {
        self.coverage.mark(self.state, stimulus);
        let (next, action) = state::step(self.state, stimulus);
        let closes = next == State::Closed && self.state != State::Closed;
        self.state = next;
        if closes {
            self.close(now);
        }
        match action {
            Action::Nothing | Action::Process | Action::Accept | Action::Opened => {}
            Action::AcceptAgain | Action::AckEndAgain | Action::SendReset => {}
            Action::AbortQuietly => {}
            Action::Unexpected => self.statistics.unexpected += 1,
            Action::SendEnd => {
                self.stop_probing();
                self.handshake.end();
            }
            Action::RepeatHandshake => self.repeat_handshake(),
            Action::PeerEnds => self.emit(Event::PeerEnded),
            Action::OwnEnded => {
                self.handshake.settle();
                self.emit(Event::SelfEnded);
            }
            Action::PeerEndsLast => {
                self.ended = true;
                self.emit(Event::PeerEnded);
                self.emit(Event::Closed);
            }
            Action::OwnEndedLast => {
                self.ended = true;
                self.emit(Event::SelfEnded);
                self.emit(Event::Closed);
            }
            Action::Superseded => self.emit(Event::Superseded),
            Action::Refused => self.emit(Event::Refused),
            Action::PeerReset => self.emit(Event::Reset),
            Action::AbortWithReset => self.handshake.reset(self.incarnation),
            Action::HandshakeFailed => {
                self.statistics.handshakes_failed += 1;
                self.handshake.reset(self.incarnation);
                self.emit(Event::NoResponse);
            }
            Action::PeerGone => {
                self.statistics.no_response += 1;
                self.handshake.reset(self.incarnation);
                self.emit(Event::NoResponse);
            }
        }
        action
    }

    /// Stops everything that a closed session must not do.
    fn close(&mut self, now: Instant) {
        self.handshake.settle();
        self.stop_probing();
        self.unanswered_since = None;
        self.end_outage(now);
    }

    pub(super) fn emit(&mut self, event: Event) {
        // What says where the session is comes a few times at most, and is never dropped.
        if event.is_report() && self.events.len() >= REPORTS {
            self.statistics.events_dropped += 1;
        } else {
            self.events.push_back(event);
        }
    }

    /// The stamp of a segment sent at `now`. As published it never goes back, even where the clock
    /// does: what is stamped before a BGN or BGNAK is taken for another incarnation's, and what
    /// another incarnation sent before this one began must stay before them all.
    pub(super) fn stamp(&self, now: Instant) -> u32 {
        let shown = match self.config.profile {
            Profile::Published(_) => now.max(self.stamped_at),
            Profile::Sealed => now,
        };
        stamp_of(&self.config.profile, shown)
    }

    /// The clock that POLL counts follow, where they do.
    pub(super) fn count_clock(&self, now: Instant) -> Option<u32> {
        match self.config.profile {
            Profile::Published(_) => Some(self.stamp(now)),
            Profile::Sealed => None,
        }
    }

    /// What of an incarnation goes over the wire.
    pub(super) fn trim_incarnation(&self, incarnation: u32) -> u32 {
        match self.config.profile {
            Profile::Published(_) => incarnation & 0xff,
            Profile::Sealed => incarnation,
        }
    }

    /// Whether `incarnation` is after `than`, serially.
    pub(super) fn is_newer_incarnation(&self, incarnation: u32, than: u32) -> bool {
        let ahead = incarnation.wrapping_sub(than);
        match self.config.profile {
            Profile::Published(_) => (ahead as u8 as i8) > 0,
            Profile::Sealed => (ahead as i32) > 0,
        }
    }
}
