//! Rate-limited log of failed handshakes, which forged datagrams must not be able to fill.

use crate::engine::limits::log_budget::LogBudget;
use association::OpenError;
use relay::{PathView, ReceiveError};
use std::net::SocketAddr;
use units::{Instant, Span};

/// Minimum interval between log messages about peers with another security suite.
const RARELY: Span = Span::from_secs(10);
/// Number of unanswered Hellos before the first log message; it doubles with each message.
const FIRST: u64 = 4;

/// State of the log.
#[derive(Debug, Default)]
pub(crate) struct HandshakeLog {
    /// Budget for unknown keys. It is separate because any datagram can claim another security
    /// suite and must not suppress them.
    keys: LogBudget,
    other_security_again: Instant,
    other_version_again: Instant,
    /// Number of Hellos when the association was last established, or the hub had no address.
    answered: u64,
    /// Number of Hellos since then at which the next message is due; 0: [`FIRST`].
    most: u64,
    /// Whether the hub does not join the path to others, which was logged.
    is_not_joined: bool,
}

impl HandshakeLog {
    /// Logs a rejected datagram.
    pub(crate) fn log_rejected(&mut self, now: Instant, from: SocketAddr, error: &ReceiveError) {
        tracing::debug!(%from, %error, "datagram rejected");
        let ReceiveError::Association(error) = error else { return };
        match error {
            OpenError::UnknownKey { key } if self.keys.allow(now) => {
                tracing::warn!(%from, %key, "handshake rejected: unknown terminal key");
            }
            OpenError::Suite { .. } if now >= self.other_security_again => {
                self.other_security_again = now + RARELY;
                tracing::warn!(%from, %error, "handshake rejected: peer uses another security suite");
            }
            OpenError::Version { .. } | OpenError::PeerVersions { .. }
                if now >= self.other_version_again =>
            {
                self.other_version_again = now + RARELY;
                tracing::warn!(%from, %error, "handshake rejected: peer uses another protocol version");
            }
            _ => {}
        }
    }

    /// Logs a hub that does not respond to Hellos, or does not join the path to others. To one
    /// without an address no Hellos are sent.
    pub(crate) fn log_unanswered(&mut self, path: PathView<'_>, hub: Option<SocketAddr>) {
        let Some(counters) = path.association_counters() else { return };
        let is_used = path.is_connected() || path.is_not_joined();
        if let Some(hub) = hub.filter(|_| path.is_not_joined() && !self.is_not_joined) {
            tracing::warn!(
                %hub,
                "path not used: the hub does not support `bond`, or names this key as another terminal"
            );
        }
        self.is_not_joined = path.is_not_joined();
        let Some(hub) = hub.filter(|_| !is_used) else {
            self.answered = counters.hellos;
            self.most = FIRST;
            return;
        };
        let hellos = counters.hellos - self.answered;
        if hellos < self.most.max(FIRST) {
            return;
        }
        self.most = hellos * 2;
        let bad_tag = counters.bad_tag;
        tracing::warn!(
            %hub, hellos, bad_tag,
            "no response from the hub: check that it runs, link.peer_public_key and its \
             preshared key, and that its list has this terminal's key"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logging::captured::Captured;
    use relay::{PrivateKey, Relay, RelayConfig, TransmitBatch};

    /// Returns what `run` logs.
    fn logged(run: impl FnOnce()) -> String {
        let log = Captured::default();
        let writer = log.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(subscriber, run);
        log.text()
    }

    #[test]
    fn unknown_keys_are_logged_whatever_others_send() {
        let log = logged(|| {
            let mut rejected = HandshakeLog::default();
            let from = "192.0.2.1:7000".parse().unwrap();
            let mut rng = units::RngStream::new(1, 0, "keys");
            for second in 0..60 {
                let now = Instant::ZERO + Span::from_secs(second);
                for _ in 0..1_000 {
                    let suite = OpenError::Suite { found: 0, expected: 1 };
                    rejected.log_rejected(now, from, &ReceiveError::Association(suite));
                }
                let key = PrivateKey::generate(&mut rng).public();
                let unknown = OpenError::UnknownKey { key };
                rejected.log_rejected(now, from, &ReceiveError::Association(unknown));
                let version = OpenError::Version { found: 2, expected: 1 };
                rejected.log_rejected(now, from, &ReceiveError::Association(version));
            }
        });
        assert_eq!(log.matches("unknown terminal key").count(), 60);
        assert_eq!(log.matches("another security suite").count(), 6);
        assert_eq!(log.matches("another protocol version").count(), 6);
    }

    #[test]
    fn a_hub_is_missed_from_the_time_when_its_address_is_known() {
        let random = units::RngStream::new(1, 0, "hub");
        let mut relay = Relay::terminal(&RelayConfig::new("boat"), Instant::ZERO, random);
        let (mut log, hub) = (HandshakeLog::default(), "192.0.2.1:7000".parse().unwrap());
        let mut run = |seconds: std::ops::Range<u64>, hub| {
            logged(|| {
                for second in seconds {
                    let now = Instant::ZERO + Span::from_secs(second);
                    relay.handle_timeout(now);
                    let mut room = [0; 2_000];
                    while relay.poll_transmit(now, &mut TransmitBatch::new(&mut room, 1)).is_some()
                    {
                    }
                    log.log_unanswered(relay.path(0).expect("one"), hub);
                }
            })
        };
        assert_eq!(run(0..100, None), "", "no Hello has left this host");
        assert_eq!(run(100..102, Some(hub)), "", "it has time to answer");
        let said = run(102..200, Some(hub));
        assert!(said.contains("no response from the hub"), "{said}");
        assert!(said.contains("hub=192.0.2.1:7000 hellos=4 "), "{said}");
    }
}
