//! What the log hears of associations that do not come about. Whoever can send datagrams must not
//! be able to fill it.

use association::OpenError;
use relay::{ReceiveError, Relay};
use std::net::SocketAddr;
use units::{Instant, Span};

/// How often the log hears of datagrams that were not taken.
const RARELY: Span = Span::from_secs(10);
/// Hellos without an answer after which the log hears of it; then each time twice as many.
const FIRST: u64 = 4;

/// What has been complained of.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    again: Instant,
    /// Hellos when the association was last there.
    answered: u64,
    /// Hellos since then at which to complain; 0: [`FIRST`].
    most: u64,
}

impl Strangers {
    /// A datagram was not taken.
    pub(super) fn not_taken(&mut self, now: Instant, from: SocketAddr, error: &ReceiveError) {
        tracing::debug!(%from, %error, "a datagram was not taken");
        let ReceiveError::Association(error) = error else { return };
        if now < self.again {
            return;
        }
        match error {
            OpenError::Stranger { key } => {
                tracing::warn!(%from, %key, "a terminal whose key is not known asks to be let in");
            }
            OpenError::Suite { .. } => {
                tracing::warn!(%from, %error, "a gateway with other security");
            }
            _ => return,
        }
        self.again = now + RARELY;
    }

    /// Looks whether a terminal's hub has kept silent for long.
    pub(super) fn not_answered(&mut self, relay: &Relay, hub: SocketAddr) {
        let Some(counters) = relay.association_counters() else { return };
        if relay.is_connected() {
            self.answered = counters.hellos;
            self.most = FIRST;
            return;
        }
        let said = counters.hellos - self.answered;
        if said < self.most.max(FIRST) {
            return;
        }
        self.most = said * 2;
        let bad_tag = counters.bad_tag;
        tracing::warn!(
            %hub, said, bad_tag,
            "the hub does not answer: is it there, are link.peer_public_key and its \
             preshared key right, and does it know this terminal's key?"
        );
    }
}
