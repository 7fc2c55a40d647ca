//! Errors of received datagrams, and their counters.

use crate::keys::PublicKey;
use core::fmt;

/// Reason why a datagram was rejected. Only a counter has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// It is too short for its kind.
    Truncated {
        /// Octets received.
        found: usize,
        /// Minimum octets of its kind.
        expected: usize,
    },
    /// It has another version of the format.
    Version {
        /// Version received.
        found: u8,
        /// Version of this side.
        expected: u8,
    },
    /// It is a message of a hub that does not understand the version of this side.
    PeerVersions {
        /// Lowest version that the hub understands.
        lowest: u8,
        /// Highest version that the hub understands.
        highest: u8,
        /// Version of this side.
        own: u8,
    },
    /// It has an unknown kind.
    Kind {
        /// Kind received.
        found: u8,
    },
    /// Its kind is not allowed here or now.
    Unexpected,
    /// It has another security suite.
    Suite {
        /// Suite received.
        found: u8,
        /// Suite of this side.
        expected: u8,
    },
    /// It is a malformed handshake message.
    Malformed(&'static str),
    /// Its association does not exist.
    UnknownIndex {
        /// Index received.
        index: u32,
    },
    /// It was received before, or is older than the replay window.
    Replayed {
        /// Counter received.
        counter: u64,
    },
    /// Its tag is invalid: it is damaged, or not from the peer.
    Tag,
    /// The key of the terminal is not configured.
    UnknownKey {
        /// The key, whose possession the terminal has proved.
        key: PublicKey,
    },
    /// It is a Hello of a terminal of another part of this hub.
    OtherPart {
        /// Number of that part.
        part: u32,
    },
    /// It is a Hello that is not newer than one accepted before.
    Stale,
    /// The hub is under load.
    Busy,
    /// The maximum number of terminals is reached, or the hub accepts no more because it stops.
    Full,
    /// Its association may be that of another process of this hub; this one has not responded. It
    /// is sealed under an unknown index, or a Hello that renews the keys of an unknown association.
    Elsewhere,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { found, expected } => {
                write!(f, "datagram of {found} bytes where at least {expected} were expected")
            }
            Self::Version { found, expected } => {
                write!(f, "datagram of version {found} where {expected} was expected")
            }
            Self::PeerVersions { lowest, highest, own } => {
                write!(f, "hub understands versions {lowest} to {highest}, this side {own}")
            }
            Self::Kind { found } => write!(f, "datagram of unknown kind {found}"),
            Self::Unexpected => write!(f, "datagram of a kind that is not expected here"),
            Self::Suite { found, expected } => {
                let name = |suite| if suite == 0 { "none" } else { "noise" };
                write!(
                    f,
                    "peer has security {:?} ({found}), this side {:?}",
                    name(*found),
                    name(*expected)
                )
            }
            Self::Malformed(what) => write!(f, "handshake message with a bad {what}"),
            Self::UnknownIndex { index } => {
                write!(f, "datagram for unknown association {index:06x}")
            }
            Self::Replayed { counter } => write!(f, "datagram {counter} was seen before"),
            Self::Tag => write!(f, "datagram is damaged, or not from the peer"),
            Self::UnknownKey { key } => write!(f, "terminal whose key is not known here: {key}"),
            Self::OtherPart { part } => write!(f, "Hello of a terminal of part {part}"),
            Self::Stale => write!(f, "Hello that is not later than one before it"),
            Self::Busy => write!(f, "too many Hellos"),
            Self::Full => write!(f, "no room for another terminal"),
            Self::Elsewhere => write!(f, "datagram for another process of this hub"),
        }
    }
}

impl std::error::Error for OpenError {}

/// Counters of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams sealed.
    pub sealed: u64,
    /// Datagrams opened.
    pub opened: u64,
    /// Hellos sent (terminal) or answered (hub).
    pub hellos: u64,
    /// Unknowns sent (hub) or accepted (terminal).
    pub unknowns: u64,
    /// Malformed datagrams, and those of another version, kind or suite.
    pub malformed: u64,
    /// Datagrams for an unknown index.
    pub unknown_index: u64,
    /// Replayed datagrams.
    pub replayed: u64,
    /// Datagrams with an invalid tag.
    pub bad_tag: u64,
    /// Hellos with an unknown key.
    pub unknown_keys: u64,
    /// Hellos that were not newer than one before.
    pub stale: u64,
    /// Cookies sent (hub) or accepted (terminal): the hub was under load.
    pub cookies: u64,
    /// Cookies suppressed by the response rate limit.
    pub cookies_withheld: u64,
    /// Unknowns suppressed by the response rate limit.
    pub unknowns_withheld: u64,
    /// Hellos dropped under load.
    pub busy: u64,
    /// Key renewals.
    pub renewals: u64,
    /// Version messages sent (hub) or accepted (terminal): the other side has another version.
    pub versions: u64,
    /// Hellos rejected because the maximum number of terminals was reached.
    pub full: u64,
}

impl Counters {
    /// Adds the counters of another association.
    pub fn add(&mut self, other: &Self) {
        let Self {
            sealed,
            opened,
            hellos,
            unknowns,
            malformed,
            unknown_index,
            replayed,
            bad_tag,
            unknown_keys,
            stale,
            cookies,
            cookies_withheld,
            unknowns_withheld,
            busy,
            renewals,
            versions,
            full,
        } = other;
        self.sealed += sealed;
        self.opened += opened;
        self.hellos += hellos;
        self.unknowns += unknowns;
        self.malformed += malformed;
        self.unknown_index += unknown_index;
        self.replayed += replayed;
        self.bad_tag += bad_tag;
        self.unknown_keys += unknown_keys;
        self.stale += stale;
        self.cookies += cookies;
        self.cookies_withheld += cookies_withheld;
        self.unknowns_withheld += unknowns_withheld;
        self.busy += busy;
        self.renewals += renewals;
        self.versions += versions;
        self.full += full;
    }

    pub(crate) fn count(&mut self, error: OpenError) {
        match error {
            OpenError::Truncated { .. }
            | OpenError::Version { .. }
            | OpenError::Kind { .. }
            | OpenError::Unexpected
            | OpenError::Suite { .. }
            | OpenError::Malformed(_) => self.malformed += 1,
            OpenError::PeerVersions { .. } => self.versions += 1,
            OpenError::UnknownIndex { .. } => self.unknown_index += 1,
            OpenError::Replayed { .. } => self.replayed += 1,
            OpenError::Tag => self.bad_tag += 1,
            OpenError::UnknownKey { .. } => self.unknown_keys += 1,
            // Counted by the part that answers it.
            OpenError::OtherPart { .. } => {}
            OpenError::Stale => self.stale += 1,
            OpenError::Busy => self.busy += 1,
            OpenError::Full => self.full += 1,
            // The other process counts it.
            OpenError::Elsewhere => {}
        }
    }
}
