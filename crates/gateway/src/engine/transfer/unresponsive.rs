//! Detection of unresponsive peers of TCP sockets.

use std::io;
use units::{Instant, Span};

/// Whether the peer has been silent for `longest` and has owed an acknowledgment for as long. A
/// peer that was idle and owes one only now still has that time. `owing` is stored between calls.
pub(crate) fn has_vanished(
    now: Instant,
    unanswered: Option<Span>,
    unacked_since: &mut Option<Instant>,
    longest: Span,
) -> bool {
    let Some(silent) = unanswered else {
        *unacked_since = None;
        return false;
    };
    let since = *unacked_since.get_or_insert(now);
    silent >= longest && now.since(since) >= longest
}

/// Whether an error of `read` or `write` only means that the call is to be repeated later.
pub(crate) fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_idle_for_long_has_not_vanished_when_asked() {
        let longest = Span::from_secs(120);
        let at = |seconds| Instant::ZERO + Span::from_secs(seconds);
        let silent = |seconds| Some(Span::from_secs(seconds));
        let mut unacked_since = None;
        // Idle for an hour, then a byte is sent, and a moment later someone looks.
        assert!(!has_vanished(at(3600), silent(3600), &mut unacked_since, longest));
        assert!(!has_vanished(at(3719), silent(3719), &mut unacked_since, longest));
        assert!(has_vanished(at(3720), silent(3720), &mut unacked_since, longest));
        // An answer begins it all anew; a steady stream owes for ever and is never silent.
        assert!(!has_vanished(at(3725), None, &mut unacked_since, longest));
        for seconds in (3730..4000).step_by(5) {
            assert!(!has_vanished(at(seconds), silent(1), &mut unacked_since, longest));
        }
        assert!(!has_vanished(at(4005), silent(119), &mut unacked_since, longest));
        assert!(has_vanished(at(4006), silent(120), &mut unacked_since, longest));
    }
}
