//! Pauses in accepting clients for lack of slots or descriptors.

use units::{Instant, Span};

/// Length of a pause for lack of descriptors.
const NO_DESCRIPTORS: Span = Span::from_millis(200);

/// State of accepting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pause {
    /// It is not paused.
    #[default]
    None,
    /// Paused for lack of slots until a connection closes, or until this time if the shortage is
    /// temporary. Clients that have slots already are accepted nevertheless.
    Slots(Option<Instant>),
    /// Paused for all clients until this time or until a connection closes.
    Descriptors(Instant),
}

impl Pause {
    /// A pause for lack of descriptors.
    pub(crate) fn without_descriptors(now: Instant) -> Self {
        Self::Descriptors(now + NO_DESCRIPTORS)
    }

    /// Whether no client is to be accepted now. `room_again`: a connection has closed; `expected`:
    /// a client that has a slot already may be in the accept queue.
    pub(crate) fn holds(self, now: Instant, room_again: bool, expected: bool) -> bool {
        match self {
            Self::None => false,
            Self::Slots(until) => !room_again && !expected && until.is_none_or(|until| now < until),
            Self::Descriptors(until) => !room_again && now < until,
        }
    }

    /// Returns when the pause ends by itself.
    pub(crate) fn until(self) -> Option<Instant> {
        match self {
            Self::None => None,
            Self::Slots(until) => until,
            Self::Descriptors(until) => Some(until),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_was_let_in_does_not_wait_for_others_places() {
        let now = Instant::ZERO + Span::from_secs(1);
        let slots = Pause::Slots(None);
        assert!(slots.holds(now, false, false));
        assert!(!slots.holds(now, false, true), "it has its place");
        assert!(!slots.holds(now, true, false));
        assert_eq!(slots.until(), None);
        let pause = Pause::without_descriptors(now);
        assert!(pause.holds(now, false, true), "there is no descriptor for it either");
        assert!(!pause.holds(now + NO_DESCRIPTORS, false, false));
        assert_eq!(pause.until(), Some(now + NO_DESCRIPTORS));
    }

    #[test]
    fn a_shortage_without_any_connection_ends_by_itself() {
        let now = Instant::ZERO + Span::from_secs(1);
        let until = now + Span::from_secs(1);
        let pause = Pause::Slots(Some(until));
        assert!(pause.holds(now, false, false));
        assert_eq!(pause.until(), Some(until));
        assert!(!pause.holds(until, false, false), "no connection need close");
    }
}
