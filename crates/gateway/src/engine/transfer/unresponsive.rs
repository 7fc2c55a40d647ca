//! What the engine concludes from the state of a TCP socket.

use std::io;
use units::{Instant, Span};

/// Whether the other end has been silent for `longest`, and has owed an answer for as long:
/// one that was idle, and is asked only now, still has its time. `owing` is remembered from one
/// look to the next.
pub(crate) fn has_vanished(
    now: Instant,
    unanswered: Option<Span>,
    owing: &mut Option<Instant>,
    longest: Span,
) -> bool {
    let Some(silent) = unanswered else {
        *owing = None;
        return false;
    };
    let since = *owing.get_or_insert(now);
    silent >= longest && now.since(since) >= longest
}

/// Whether an error of `accept`, `read`, `write` means only: later.
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
        let mut owing = None;
        // Idle for an hour, then a byte is sent, and a moment later someone looks.
        assert!(!has_vanished(at(3600), silent(3600), &mut owing, longest));
        assert!(!has_vanished(at(3719), silent(3719), &mut owing, longest));
        assert!(has_vanished(at(3720), silent(3720), &mut owing, longest));
        // An answer begins it all anew; a steady stream owes for ever and is never silent.
        assert!(!has_vanished(at(3725), None, &mut owing, longest));
        for seconds in (3730..4000).step_by(5) {
            assert!(!has_vanished(at(seconds), silent(1), &mut owing, longest));
        }
        assert!(!has_vanished(at(4005), silent(119), &mut owing, longest));
        assert!(has_vanished(at(4006), silent(120), &mut owing, longest));
    }
}
