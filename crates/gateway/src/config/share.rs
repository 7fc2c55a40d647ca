//! What one of many may take.

use super::PeerKey;
use crate::intercept::Prefix;
use crate::reach::Destinations;
use relay::PublicKey;

/// What one terminal, or one client, may take at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShareLimits {
    /// Connections at once; unless told no more than its fair share of all.
    pub connections: Option<u32>,
    /// New connections a second; no bound unless told.
    pub rate: Option<u32>,
    /// New connections at one time, after a while without; those of two seconds unless told.
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

/// What a hub knows of one of its terminals.
#[derive(Clone, Debug)]
pub struct TerminalEntry {
    /// What the terminal is called here; without keys also in its own configuration.
    pub name: String,
    /// Its public key, where keys secure the link.
    pub key: Option<PeerKey>,
    /// Instead of its public key, the key with which it registers one.
    pub enrolment: Option<Enrolment>,
    /// The plan that it has, where that is said here.
    pub plan: Option<String>,
    /// What it may take, where that is not the usual.
    pub share: ShareLimits,
    /// Bytes of buffer for it in each direction, where that is not the usual.
    pub memory: Option<u64>,
    /// What it may reach of what all may reach.
    pub destinations: Destinations,
    /// Whose addresses it may have servers see, where those are not the usual.
    pub clients: Option<Vec<Prefix>>,
}

/// What one of many may take, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Connections at once.
    pub(crate) connections: u32,
    /// New connections a second.
    pub(crate) rate: Option<u32>,
    /// New connections at one time.
    pub(crate) burst: u32,
}

impl ShareLimits {
    /// What is told here, and the rest as in `usual`.
    #[must_use]
    pub(crate) fn or(self, usual: Self) -> Self {
        // A burst belongs to the rate that it is told with.
        let burst = if self.rate.is_some() { self.burst } else { self.burst.or(usual.burst) };
        Self {
            connections: self.connections.or(usual.connections),
            rate: self.rate.or(usual.rate),
            burst,
        }
    }

    /// In numbers.
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
    fn what_is_not_told_follows_from_the_rest() {
        let usual = ShareLimits { connections: None, rate: Some(10), burst: Some(50) };
        let terms = |connections, rate, burst| Terms { connections, rate, burst };
        assert_eq!(ShareLimits::default().terms(), terms(u32::MAX, None, 1));
        assert_eq!(usual.terms(), terms(u32::MAX, Some(10), 50));
        let one = ShareLimits { connections: Some(500), rate: Some(3), burst: None };
        assert_eq!(one.or(usual).terms(), terms(500, Some(3), 6));
        assert_eq!(ShareLimits::default().or(usual), usual);
    }
}
