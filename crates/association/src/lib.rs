//! The sealed datagram channel between one terminal and one hub, without I/O.
//!
//! ```text
//!   terminal                                   hub
//!     │ ── Hello (name, limits) ───────────────▶ │  answered by the same Welcome
//!     │ ◀─────────────── Welcome (index, limits)─ │  as often as it comes
//!     │ ══ Data, sealed, counter 0, 1, 2 … ═════▶ │  the first one confirms
//!     │ ◀════════════════════════ Data, sealed ══ │
//!     │ ── Hello (continues) ──────────────────▶ │  after two minutes: new keys,
//!     │ ◀──────────────── Welcome (same as before)─ │  beside the old ones
//!     │ ── Data ────────────────▶ (hub restarted) │
//!     │ ◀──────────────────────────────── Unknown │  the terminal says Hello again
//! ```
//!
//! A datagram is 8 bytes of header, the payload, and 16 bytes of tag. There are two suites
//! ([`Security`]): *noise*, in which each side proves that it owns its key and nobody else can
//! read, change or replay anything; and the *null* suite of the same framing, whose tag is a
//! checksum that finds corruption and stops nobody who means harm. `docs/spec/association.md`
//! has the layouts, and says what is protected.
//!
//! [`Terminal`] asks for an association and keeps it; [`Hub`] grants them. Time, addresses and
//! randomness are handed in:
//!
//! ```
//! use association::{Config, Hub, HubReceived, Keys, Known, OVERHEAD, PresharedKey, PrivateKey,
//!     PublicKey, Sealed, Security, Terminal, TerminalReceived, TransmitBatch};
//! use units::{Instant, RngStream};
//!
//! let now = Instant::ZERO;
//! let from = "192.0.2.1:4500".parse().unwrap();
//! // Outside simulations randomness comes from the operating system.
//! let mut random = RngStream::new(1, 0, "keys");
//! let (boat, shore) = (PrivateKey::generate(&mut random), PrivateKey::generate(&mut random));
//! let config = |name: &str, own: PrivateKey, other: &str, public: PublicKey| {
//!     let known = Known { name: other.into(), public, preshared: PresharedKey::NONE };
//!     let keys = Keys::new(own, vec![known]).unwrap();
//!     Config { security: Security::Noise(keys.into()), ..Config::new(name) }
//! };
//! let terminal = config("boat", boat.clone(), "hub", shore.public());
//! let hub = config("hub", shore, "boat", boat.public());
//! let mut terminal = Terminal::new(terminal, now, RngStream::new(1, 0, "boat"));
//! let mut hub = Hub::new(hub, RngStream::new(1, 0, "hub"));
//!
//! let mut buffer = [0u8; 1500];
//! let mut batch = TransmitBatch::new(&mut buffer, 1);
//! assert!(terminal.poll_transmit(now, &mut batch));
//! let mut hello = batch.datagrams().next().unwrap().to_vec();
//! assert!(matches!(hub.handle_datagram(now, from, &mut hello), Ok(HubReceived::Nothing)));
//!
//! batch.clear();
//! assert_eq!(hub.poll_transmit(&mut batch), Some(from));
//! let mut welcome = batch.datagrams().next().unwrap().to_vec();
//! let received = terminal.handle_datagram(now, &mut welcome);
//! assert!(matches!(received, Ok(TerminalReceived::Established)));
//!
//! let mut datagram = vec![0u8; OVERHEAD + 5];
//! datagram[8..13].copy_from_slice(b"bytes");
//! assert!(terminal.seal(now, Sealed::Data, &mut datagram));
//! match hub.handle_datagram(now, from, &mut datagram) {
//!     Ok(HubReceived::Payload { payload, first: true, .. }) => assert_eq!(payload, b"bytes"),
//!     other => panic!("{other:?}"),
//! }
//! ```
#![forbid(unsafe_code)]

mod admission;
mod batch;
mod channel;
mod checksum;
mod cookie;
mod entropy;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod handshake;
mod hub;
mod keys;
mod lately;
mod noise;
mod null;
mod places;
mod replay;
mod share;
mod terminal;
mod wire;

pub use batch::{Transmit, TransmitBatch};
pub use entropy::Entropy;
pub use handshake::MAX_NAME;
pub use hub::{Hub, HubReceived, PeerId};
pub use keys::{
    KeyTextError, Keys, KeysError, Known, PresharedKey, PrivateKey, PublicKey, Security,
};
pub use replay::REPLAY_WINDOW;
pub use terminal::{Terminal, TerminalReceived};
pub use wire::{HEADER_LEN, OVERHEAD, Sealed, TAG_LEN};

use core::fmt;
use units::{BitRate, Instant, Span};

/// What one side tells the other before anything else: what it is ready to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest datagram, bytes of UDP payload.
    pub max_datagram: u32,
    /// Streams that the peer may have open at once.
    pub streams: u32,
    /// Credit that each stream has from its start, bytes.
    pub minimum_credit: u32,
    /// Credit that streams share before they have some of their own, bytes.
    pub shared_credit: u32,
    /// Rate at which this side can receive: that of the link towards it, bits per second of whole
    /// IP packets; 0 when it is not known.
    pub receive_rate_bps: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_datagram: 1472,
            streams: 4096,
            minimum_credit: 16 << 10,
            shared_credit: 8 << 20,
            receive_rate_bps: 0,
        }
    }
}

/// How an association is made and kept.
#[derive(Clone, Debug)]
pub struct Config {
    /// A terminal's name, by which a hub without keys knows it again; at most [`MAX_NAME`] bytes.
    /// A hub with keys knows it by its key.
    pub name: String,
    /// What secures the association.
    pub security: Security,
    /// What is announced to the other side.
    pub limits: Limits,
    /// Time to the second Hello; each further one waits half as long again.
    pub hello_interval: Span,
    /// Longest time between two Hellos.
    pub hello_interval_max: Span,
    /// The wall clock at [`units::Instant::ZERO`], nanoseconds since 1970; goes into Hellos.
    pub wall_clock_ns: u64,
    /// Terminals that a hub has at once; one more is not answered.
    pub max_terminals: usize,
    /// Associations that a hub without keys keeps without having heard from the terminal again;
    /// with keys there is one for each terminal that it knows.
    pub max_pending: usize,
    /// How long such an association is kept.
    pub pending_lifetime: Span,
    /// What all Cookies of a hub may take of its link, IP packets with their headers, and all
    /// Unknowns as much: who asks for them has proved nothing.
    pub answer_rate: BitRate,
    /// Age at which a terminal renews its keys. Keys are renewed where there are secrets.
    pub renew_after: Span,
    /// Datagrams in either direction after which it does so, whatever their age.
    pub renew_after_datagrams: u64,
    /// How long the keys before are still good for opening.
    pub previous_lifetime: Span,
    /// Age at which keys are good for nothing, when they could not be renewed.
    pub expire_after: Span,
}

impl Config {
    /// The usual values for a side called `name`.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            security: Security::None,
            limits: Limits::default(),
            hello_interval: Span::from_secs(1),
            hello_interval_max: Span::from_secs(5),
            wall_clock_ns: 0,
            max_terminals: 256,
            max_pending: 64,
            pending_lifetime: Span::from_secs(15),
            answer_rate: BitRate::from_mbps(1),
            renew_after: Span::from_secs(120),
            renew_after_datagrams: 1 << 32,
            previous_lifetime: Span::from_secs(60),
            expire_after: Span::from_secs(600),
        }
    }

    /// Whether keys are secret, and grow old.
    fn is_secret(&self) -> bool {
        matches!(self.security, Security::Noise(_))
    }

    /// Whether a channel's keys are too old at `now`.
    fn is_expired(&self, now: Instant, channel: &channel::Channel) -> bool {
        self.is_secret() && now.since(channel.made()) >= self.expire_after
    }
}

/// Why a datagram was not accepted. Nothing but a counter has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// Too short for what it says it is.
    Truncated {
        /// Bytes that came.
        found: usize,
        /// Bytes that its kind has at least.
        expected: usize,
    },
    /// Of another version of the format.
    Version {
        /// The version that came.
        found: u8,
        /// The version that this side speaks.
        expected: u8,
    },
    /// Of no known kind.
    Kind {
        /// The kind that came.
        found: u8,
    },
    /// Of a kind that this side never receives, or not now.
    Unexpected,
    /// Of a suite that this side does not speak.
    Suite {
        /// The suite that came.
        found: u8,
        /// The suite that this side speaks.
        expected: u8,
    },
    /// A handshake message that contradicts itself.
    Malformed(&'static str),
    /// For an association that does not exist here.
    UnknownIndex {
        /// The index that came.
        index: u32,
    },
    /// Seen before, or too old to tell.
    Replayed {
        /// The counter that came.
        counter: u64,
    },
    /// The tag does not fit: damaged, or not from the peer.
    Tag,
    /// From a terminal whose key is not known here.
    Stranger {
        /// The key, which it has proved to own.
        key: PublicKey,
    },
    /// A Hello that is not later than one that was accepted before.
    Stale,
    /// More Hellos than this hub works for.
    Busy,
    /// No room for another terminal.
    Full,
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
            Self::Stranger { key } => write!(f, "terminal whose key is not known here: {key}"),
            Self::Stale => write!(f, "Hello that is not later than one before it"),
            Self::Busy => write!(f, "too many Hellos"),
            Self::Full => write!(f, "no room for another terminal"),
        }
    }
}

impl std::error::Error for OpenError {}

/// How many datagrams met which fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Sealed.
    pub sealed: u64,
    /// Opened.
    pub opened: u64,
    /// Hellos sent (terminal) or answered (hub).
    pub hellos: u64,
    /// Unknowns sent (hub) or heeded (terminal).
    pub unknowns: u64,
    /// Too short, of a wrong version, kind or suite, or contradictory.
    pub malformed: u64,
    /// For an index that is not known.
    pub unknown_index: u64,
    /// Seen before.
    pub replayed: u64,
    /// With a tag that does not fit.
    pub bad_tag: u64,
    /// Hellos of terminals whose key is not known.
    pub strangers: u64,
    /// Hellos that were not later than one before.
    pub stale: u64,
    /// Cookies sent (hub) or taken (terminal): the hub was busy with Hellos.
    pub cookies: u64,
    /// Hellos that a Cookie would have answered, had Cookies been left.
    pub cookies_withheld: u64,
    /// Datagrams that an Unknown would have answered, had Unknowns been left.
    pub unknowns_withheld: u64,
    /// Hellos dropped because there were too many.
    pub busy: u64,
    /// Times that keys were renewed.
    pub renewals: u64,
    /// Turned away for want of room.
    pub full: u64,
}

impl Counters {
    /// Adds what another association has counted.
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
            strangers,
            stale,
            cookies,
            cookies_withheld,
            unknowns_withheld,
            busy,
            renewals,
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
        self.strangers += strangers;
        self.stale += stale;
        self.cookies += cookies;
        self.cookies_withheld += cookies_withheld;
        self.unknowns_withheld += unknowns_withheld;
        self.busy += busy;
        self.renewals += renewals;
        self.full += full;
    }

    fn count(&mut self, error: OpenError) {
        match error {
            OpenError::Truncated { .. }
            | OpenError::Version { .. }
            | OpenError::Kind { .. }
            | OpenError::Unexpected
            | OpenError::Suite { .. }
            | OpenError::Malformed(_) => self.malformed += 1,
            OpenError::UnknownIndex { .. } => self.unknown_index += 1,
            OpenError::Replayed { .. } => self.replayed += 1,
            OpenError::Tag => self.bad_tag += 1,
            OpenError::Stranger { .. } => self.strangers += 1,
            OpenError::Stale => self.stale += 1,
            OpenError::Busy => self.busy += 1,
            OpenError::Full => self.full += 1,
        }
    }
}
