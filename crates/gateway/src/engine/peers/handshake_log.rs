//! What the log hears of associations that do not come about. Whoever can send datagrams must not
//! be able to fill it.

use crate::engine::limits::log_budget::Complaints;
use association::OpenError;
use relay::{ReceiveError, Relay};
use std::net::SocketAddr;
use units::{Instant, Span};

/// How often the log hears of gateways with other security.
const RARELY: Span = Span::from_secs(10);
/// Hellos without an answer after which the log hears of it; then each time twice as many.
const FIRST: u64 = 4;

/// What has been complained of.
#[derive(Debug, Default)]
pub(crate) struct Strangers {
    /// Keys that are not known. They have words of their own: whoever can send a datagram can say
    /// that he has other security, and is not to keep them out of the log.
    keys: Complaints,
    other_security_again: Instant,
    /// Hellos when the association was last there.
    answered: u64,
    /// Hellos since then at which to complain; 0: [`FIRST`].
    most: u64,
}

impl Strangers {
    /// A datagram was not taken.
    pub(crate) fn not_taken(&mut self, now: Instant, from: SocketAddr, error: &ReceiveError) {
        tracing::debug!(%from, %error, "a datagram was not taken");
        let ReceiveError::Association(error) = error else { return };
        match error {
            OpenError::Stranger { key } if self.keys.may_say(now) => {
                tracing::warn!(%from, %key, "a terminal whose key is not known asks to be let in");
            }
            OpenError::Suite { .. } if now >= self.other_security_again => {
                self.other_security_again = now + RARELY;
                tracing::warn!(%from, %error, "a gateway with other security");
            }
            _ => {}
        }
    }

    /// Looks whether a terminal's hub has kept silent for long.
    pub(crate) fn not_answered(&mut self, relay: &Relay, hub: SocketAddr) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use relay::PrivateKey;
    use std::io;
    use std::sync::{Arc, Mutex};

    /// What the log hears.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_unknown_key_is_told_whatever_others_send() {
        let log = Log::default();
        let writer = log.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(subscriber, || {
            let mut strangers = Strangers::default();
            let from = "192.0.2.1:7000".parse().unwrap();
            let mut rng = units::RngStream::new(1, 0, "keys");
            for second in 0..60 {
                let now = Instant::ZERO + Span::from_secs(second);
                for _ in 0..1_000 {
                    let suite = OpenError::Suite { found: 0, expected: 1 };
                    strangers.not_taken(now, from, &ReceiveError::Association(suite));
                }
                let key = PrivateKey::generate(&mut rng).public();
                let stranger = OpenError::Stranger { key };
                strangers.not_taken(now, from, &ReceiveError::Association(stranger));
            }
        });
        let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert_eq!(log.matches("whose key is not known").count(), 60);
        assert_eq!(log.matches("other security").count(), 6);
    }
}
