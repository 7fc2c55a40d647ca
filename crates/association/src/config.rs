//! Settings of an association, and the limits that its sides announce.

use crate::capabilities::Capabilities;
use crate::channel::Channel;
use crate::keys::{PublicKey, Security};
use crate::part::Part;
use units::{BitRate, Instant, Span};

/// Limits of a side that it announces in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum datagram, in octets of UDP payload.
    pub max_datagram: u32,
    /// Maximum number of open streams of the peer.
    pub streams: u32,
    /// Initial flow-control credit of each stream, in octets.
    pub minimum_credit: u32,
    /// Flow-control credit that streams without a per-stream limit share, in octets.
    pub shared_credit: u32,
    /// Rate that the link of this side receives, in bits per second of IP packets; 0 if unknown.
    pub receive_rate_bps: u64,
    /// Optional features of this side.
    pub capabilities: Capabilities,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_datagram: 1472,
            streams: 4096,
            minimum_credit: 16 << 10,
            shared_credit: 8 << 20,
            receive_rate_bps: 0,
            capabilities: Capabilities::ORDERLY_END,
        }
    }
}

/// Settings of an association.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name of the terminal, at most [`MAX_NAME`](crate::MAX_NAME) octets. A hub without keys
    /// identifies the terminal by it, and a hub with keys by its key.
    pub name: String,
    /// Security suite.
    pub security: Security,
    /// The key that a terminal registers at the hub; it makes no association then.
    pub registers: Option<PublicKey>,
    /// Whether the hub is to keep earlier associations of the same terminal until their sessions
    /// end (ASC-2.11).
    pub is_beside: bool,
    /// Limits that are announced to the peer.
    pub limits: Limits,
    /// Time from the first Hello to the second; the interval then grows by half each time.
    pub hello_interval: Span,
    /// Maximum interval between two Hellos.
    pub hello_interval_max: Span,
    /// Wall clock at [`units::Instant::ZERO`], in nanoseconds since 1970, for the timestamp of
    /// Hellos.
    pub wall_clock_ns: u64,
    /// Maximum number of terminals of a hub.
    pub max_terminals: usize,
    /// Maximum number of associations of a hub without keys from which no payload was received.
    /// With keys there is at most one for each configured terminal.
    pub max_pending: usize,
    /// Lifetime of such an association.
    pub pending_lifetime: Span,
    /// Maximum rate of all Cookies of a hub, and of all its Unknowns, in bits per second of IP
    /// packets: they are sent to unvalidated sources.
    pub answer_rate: BitRate,
    /// The part of a hub that this is.
    pub part: Part,
    /// Age at which a terminal renews its keys, in suites with secret keys.
    pub renew_after: Span,
    /// Number of datagrams in either direction after which it renews them at any age.
    pub renew_after_datagrams: u64,
    /// Time for which the previous keys still decrypt.
    pub previous_lifetime: Span,
    /// Age at which keys expire that could not be renewed.
    pub expire_after: Span,
}

impl Config {
    /// Default settings of a side named `name`.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            security: Security::None,
            registers: None,
            is_beside: false,
            limits: Limits::default(),
            hello_interval: Span::from_secs(1),
            hello_interval_max: Span::from_secs(5),
            wall_clock_ns: 0,
            max_terminals: 256,
            max_pending: 64,
            pending_lifetime: Span::from_secs(15),
            answer_rate: BitRate::from_mbps(1),
            part: Part::default(),
            renew_after: Span::from_secs(120),
            renew_after_datagrams: 1 << 28,
            previous_lifetime: Span::from_secs(60),
            expire_after: Span::from_secs(600),
        }
    }

    /// Whether the suite has secret keys, which expire.
    pub(crate) fn is_secret(&self) -> bool {
        matches!(self.security, Security::Noise(_))
    }

    /// Whether the keys of a channel have expired at `now`.
    pub(crate) fn is_expired(&self, now: Instant, channel: &Channel) -> bool {
        self.is_secret() && now.since(channel.made()) >= self.expire_after
    }
}
