//! Detection of unresponsive peers of TCP sockets.

use std::io;
use units::{Instant, Span};

/// Whether the peer has sent nothing for `longest`, and data to it has been unacknowledged for as
/// long. After an idle time the peer still has that time. `unacked_since` is stored between calls.
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
    fn a_peer_that_was_idle_for_long_has_its_time() {
        let longest = Span::from_secs(120);
        let at = |seconds| Instant::ZERO + Span::from_secs(seconds);
        let silent = |seconds| Some(Span::from_secs(seconds));
        let mut unacked_since = None;
        // Idle for an hour, then a byte is sent, and the first check follows.
        assert!(!has_vanished(at(3600), silent(3600), &mut unacked_since, longest));
        assert!(!has_vanished(at(3719), silent(3719), &mut unacked_since, longest));
        assert!(has_vanished(at(3720), silent(3720), &mut unacked_since, longest));
        // An answer restarts the time; with a steady stream there is always unacknowledged data.
        assert!(!has_vanished(at(3725), None, &mut unacked_since, longest));
        for seconds in (3730..4000).step_by(5) {
            assert!(!has_vanished(at(seconds), silent(1), &mut unacked_since, longest));
        }
        assert!(!has_vanished(at(4005), silent(119), &mut unacked_since, longest));
        assert!(has_vanished(at(4006), silent(120), &mut unacked_since, longest));
    }
}
