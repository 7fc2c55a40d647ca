//! Pauses in accepting clients: for want of places, or of descriptors.

use units::{Instant, Span};

/// How long accepting pauses when the system has no descriptors.
const NO_DESCRIPTORS: Span = Span::from_millis(200);

/// Whether accepting pauses, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pause {
    /// It does not.
    #[default]
    None,
    /// Until a connection closes, or until then where there are fewer places for a while only.
    /// Those that have a place already come in all the same.
    Places(Option<Instant>),
    /// Until then, or until a connection closes; for all of them.
    Descriptors(Instant),
}

impl Pause {
    /// The system has no descriptors.
    pub(crate) fn without_descriptors(now: Instant) -> Self {
        Self::Descriptors(now + NO_DESCRIPTORS)
    }

    /// Whether nobody is to be accepted now. `room_again`: a connection has closed; `expected`: a
    /// client may be waiting that has a place already.
    pub(crate) fn holds(self, now: Instant, room_again: bool, expected: bool) -> bool {
        match self {
            Self::None => false,
            Self::Places(until) => {
                !room_again && !expected && until.is_none_or(|until| now < until)
            }
            Self::Descriptors(until) => !room_again && now < until,
        }
    }

    /// When it is over by itself.
    pub(crate) fn until(self) -> Option<Instant> {
        match self {
            Self::None => None,
            Self::Places(until) => until,
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
        let places = Pause::Places(None);
        assert!(places.holds(now, false, false));
        assert!(!places.holds(now, false, true), "it has its place");
        assert!(!places.holds(now, true, false));
        assert_eq!(places.until(), None);
        let pause = Pause::without_descriptors(now);
        assert!(pause.holds(now, false, true), "there is no descriptor for it either");
        assert!(!pause.holds(now + NO_DESCRIPTORS, false, false));
        assert_eq!(pause.until(), Some(now + NO_DESCRIPTORS));
    }

    #[test]
    fn a_shortage_without_any_connection_ends_by_itself() {
        let now = Instant::ZERO + Span::from_secs(1);
        let until = now + Span::from_secs(1);
        let pause = Pause::Places(Some(until));
        assert!(pause.holds(now, false, false));
        assert_eq!(pause.until(), Some(until));
        assert!(!pause.holds(until, false, false), "no connection need close");
    }
}
