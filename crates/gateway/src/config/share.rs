//! Quotas of terminals and clients, and the settings of single terminals.

use super::PeerKey;
use crate::intercept::Prefix;
use crate::reach::Destinations;
use relay::PublicKey;

/// Configured quota of one terminal or one client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShareLimits {
    /// Maximum number of connections; `None`: a fair share of all.
    pub connections: Option<u32>,
    /// Maximum number of new connections per second; `None`: unlimited.
    pub rate: Option<u32>,
    /// Maximum number of new connections in a burst after an idle period; `None`: those of two
    /// seconds.
    pub burst: Option<u32>,
}

/// The enrolment key of a terminal, whose private key is in the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enrolment {
    /// The public key.
    pub key: PublicKey,
    /// Until when a terminal can register with it, in seconds since 1970.
    pub until_unix_s: u64,
}

impl TerminalEntry {
    /// Returns the key in the configuration, which a registered key replaces.
    pub(crate) fn configured_key(&self) -> Option<PublicKey> {
        let enrolment = self.enrolment.map(|enrolment| enrolment.key);
        enrolment.or_else(|| self.key.as_ref().map(|key| key.public))
    }
}

/// A hub's settings for one terminal.
#[derive(Clone, Debug)]
pub struct TerminalEntry {
    /// The terminal's name at the hub; without keys, also the name in the terminal's configuration.
    pub name: String,
    /// Its public key; `None` without encryption.
    pub key: Option<PeerKey>,
    /// Instead of its public key, the key with which it registers one.
    pub enrolment: Option<Enrolment>,
    /// Its plan, if it is set here.
    pub plan: Option<String>,
    /// Its quota, where it differs from the default.
    pub share: ShareLimits,
    /// Buffer bytes for it in each direction; `None`: the default.
    pub memory: Option<u64>,
    /// Further restrictions of the destinations that all terminals may reach.
    pub destinations: Destinations,
    /// Client addresses that it may use as source addresses; `None`: those of the hub's list.
    pub clients: Option<Vec<Prefix>>,
}

/// The quota of one terminal or client, as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Maximum number of connections.
    pub(crate) connections: u32,
    /// Maximum number of new connections per second.
    pub(crate) rate: Option<u32>,
    /// Maximum number of new connections in a burst.
    pub(crate) burst: u32,
}

impl ShareLimits {
    /// Returns the values set here, and those of `usual` for the others.
    #[must_use]
    pub(crate) fn or(self, usual: Self) -> Self {
        // A burst belongs to the rate that it is configured with.
        let burst = if self.rate.is_some() { self.burst } else { self.burst.or(usual.burst) };
        Self {
            connections: self.connections.or(usual.connections),
            rate: self.rate.or(usual.rate),
            burst,
        }
    }

    /// Returns the quota with its defaults applied.
    pub(crate) fn terms(self) -> Terms {
        let connections = self.connections.unwrap_or(u32::MAX);
        let burst = self.burst.or(self.rate.map(|rate| rate.saturating_mul(2))).unwrap_or(1);
        Terms { connections, rate: self.rate, burst }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_quota_values_follow_from_the_others() {
        let usual = ShareLimits { connections: None, rate: Some(10), burst: Some(50) };
        let terms = |connections, rate, burst| Terms { connections, rate, burst };
        assert_eq!(ShareLimits::default().terms(), terms(u32::MAX, None, 1));
        assert_eq!(usual.terms(), terms(u32::MAX, Some(10), 50));
        let one = ShareLimits { connections: Some(500), rate: Some(3), burst: None };
        assert_eq!(one.or(usual).terms(), terms(500, Some(3), 6));
        assert_eq!(ShareLimits::default().or(usual), usual);
    }
}
