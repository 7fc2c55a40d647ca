//! What a relay is told before it starts.

use crate::PathMetrics;
use association::{Capabilities, Limits, Security};
use core::fmt;
use core::str::FromStr;
use units::{BitRate, Span};
use xstp::Seq24;

/// Bytes of IPv4 and UDP around each datagram.
pub const IPV4_UDP: usize = 28;
/// Bytes of IPv6 and UDP around each datagram.
pub const IPV6_UDP: usize = 48;
/// The smallest path MTU that a relay works over: every opening frame fits.
pub const MIN_MTU: usize = 576;

/// About what a word of credit takes of the way to the peer: a STAT with its note, four times
/// over, since control takes a quarter of a rate.
pub(crate) const WORD: u64 = 400;

/// What decides how fast a relay sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Control {
    /// Finds the rate, keeps it through losses and blackouts, and makes way where others send. A
    /// rate that is told is a ceiling.
    #[default]
    Steady,
    /// The rate that is told, or less where the link has less. Without a rate: `steady`.
    Fixed,
    /// The Satellite Transport Protocol's window, which takes every loss for congestion.
    NewReno,
    /// The same with probing before a loss is taken for congestion, as Elaasar and others have it.
    Probing,
}

impl Control {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Steady, Self::Fixed, Self::NewReno, Self::Probing];

    /// What users call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::Fixed => "fixed",
            Self::NewReno => "newreno",
            Self::Probing => "probing",
        }
    }
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Control {
    type Err = UnknownControl;

    fn from_str(text: &str) -> Result<Self, UnknownControl> {
        Self::ALL.into_iter().find(|control| control.name() == text).ok_or(UnknownControl)
    }
}

/// A name that no [`Control`] has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownControl;

impl fmt::Display for UnknownControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected one of {}", Control::ALL.map(Control::name).join(", "))
    }
}

impl core::error::Error for UnknownControl {}

/// How a relay works; the same type for both ends.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// A terminal's name, by which a hub without keys knows it again; at most 64 bytes.
    pub name: String,
    /// What secures the way to the peer: at a terminal the keys of one hub, at a hub those of its
    /// terminals.
    pub security: Security,
    /// The rate that this side sends at, at most: IP packets with all their headers. `None`: what
    /// the peer says its link takes, or else what the controller finds.
    pub send_rate: Option<BitRate>,
    /// Rate at which this side can receive, announced to the peer.
    pub receive_rate: Option<BitRate>,
    /// What decides how fast this side sends.
    pub control: Control,
    /// Path metrics that an earlier session with the peer has measured, if there was one: the first
    /// session begins with them. At a hub see [`Hub::cache_path_metrics`](crate::Hub::cache_path_metrics).
    pub path_metrics: Option<PathMetrics>,
    /// Largest IP packet on the path, bytes; at least [`MIN_MTU`].
    pub mtu: usize,
    /// Whether what the path takes is found by probing, below [`mtu`](Self::mtu). Without that it
    /// takes `mtu`, or what [`Relay::set_mtu`](crate::Relay::set_mtu) says.
    pub probe_mtu: bool,
    /// Whether a hub estimates the rate by packets of padding while there is no stream. Without
    /// that, or for a peer that does not skip extension frames, the first data estimates it.
    pub probe_rate: bool,
    /// Bytes of IP and UDP in each packet: [`IPV4_UDP`] or [`IPV6_UDP`].
    pub ip_overhead: usize,
    /// Bytes that the link adds to each IP packet and that count against the rate.
    pub link_overhead: usize,
    /// Streams that the peer may have open at once.
    pub max_streams: usize,
    /// Bytes of receive buffer that all streams share.
    pub receive_pool: u64,
    /// Bytes of receive buffer that each stream has in any case; a multiple of 1,024.
    pub stream_minimum: u64,
    /// Credit for streams too young to have been given any, taken from the receive pool.
    pub shared_credit: u64,
    /// Bytes of send buffer that all streams share, sent and unsent, beside the first 16 KiB that
    /// each stream holds.
    pub send_pool: u64,
    /// Bytes of buffer that a hub has for all terminals together, in each direction; `None`: as
    /// many as all their pools. As beside these, each stream has 16 KiB beside it.
    pub total_memory: Option<u64>,
    /// Bytes that one stream may hold unsent, at most: what is sent in a quarter of a second, as
    /// soon as a rate is known.
    pub unsent_limit: u64,
    /// Time without word from the peer after which a POLL is sent on an idle session.
    pub keep_alive: Span,
    /// Time without an answer after which the session is given up.
    pub no_response: Span,
    /// The round trip assumed before one has been measured.
    pub initial_rtt: Span,
    /// The wall clock at [`units::Instant::ZERO`], nanoseconds since 1970.
    pub wall_clock_ns: u64,
    /// Optional features that this side announces.
    pub capabilities: Capabilities,
    /// Terminals that a hub keeps.
    pub max_terminals: usize,
    /// The number of each session's first packet, the same at both ends. For trying what happens
    /// where numbers wrap.
    pub first_number: Seq24,
}

impl RelayConfig {
    /// The usual values for a side called `name`, for a link whose rate is not known: 128 MiB of
    /// buffer each way.
    pub fn new(name: &str) -> Self {
        let config = Self {
            name: name.into(),
            security: Security::None,
            send_rate: None,
            receive_rate: None,
            control: Control::default(),
            path_metrics: None,
            mtu: 1500,
            probe_mtu: false,
            probe_rate: false,
            ip_overhead: IPV4_UDP,
            link_overhead: 0,
            max_streams: 4096,
            receive_pool: 0,
            stream_minimum: 16 << 10,
            shared_credit: 0,
            send_pool: 0,
            total_memory: None,
            unsent_limit: 8 << 20,
            keep_alive: Span::from_secs(10),
            no_response: Span::from_secs(120),
            initial_rtt: Span::from_millis(600),
            wall_clock_ns: 0,
            capabilities: Capabilities::ALL,
            max_terminals: 256,
            first_number: Seq24::ZERO,
        };
        config.with_memory(128 << 20)
    }

    /// Sets the memory for buffers, in each direction: `bytes`, at least 1 MiB. A quarter of it is
    /// credit for streams too young to have been given any.
    ///
    /// What is under way has to fit: 250 Mbit/s over 600 ms are 19 MB, in the first round trip
    /// within that quarter.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        let bytes = bytes.max(1 << 20);
        self.receive_pool = bytes;
        self.shared_credit = (bytes / 4).next_multiple_of(1024);
        self.send_pool = bytes;
        self
    }

    /// Sets both directions' rates, and buffers that are deep enough for those that are known: a
    /// window of eight round trips of 600 ms for one stream, twice over, and for young streams
    /// credit for 1.5 s and for as long as the word of more takes on a narrow way to the peer.
    #[must_use]
    pub fn with_rates(mut self, send: Option<BitRate>, receive: Option<BitRate>) -> Self {
        (self.send_rate, self.receive_rate) = (send, receive);
        let least = 64 << 20;
        if let Some(rate) = receive {
            let word = send.map_or(Span::ZERO, |rate| rate.time_for(WORD * 2));
            let young = rate.bytes_in(Span::from_millis(1_500) + word);
            self.shared_credit = young.next_multiple_of(1024).clamp(1 << 20, 256 << 20);
            let old = rate.bytes_in(Span::from_secs(10)).max(least);
            self.receive_pool = old + self.shared_credit;
        }
        if let Some(rate) = send {
            self.send_pool = rate.bytes_in(Span::from_secs(10)).max(least);
        }
        self
    }

    /// Bytes of memory that received data takes at most, whoever does not read.
    pub fn receive_bound(&self) -> u64 {
        self.receive_pool + self.max_streams as u64 * self.stream_minimum
    }

    /// Largest UDP payload.
    pub(crate) fn max_datagram(&self) -> usize {
        self.mtu.max(MIN_MTU) - self.ip_overhead
    }

    /// What the peer is told.
    pub(crate) fn limits(&self) -> Limits {
        let word = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        Limits {
            max_datagram: word(self.max_datagram() as u64),
            streams: word(self.max_streams as u64),
            minimum_credit: word(self.stream_minimum),
            shared_credit: word(self.shared_credit),
            receive_rate_bps: self.receive_rate.map_or(0, BitRate::as_bps),
            capabilities: self.capabilities,
        }
    }
}
/// Minimum rate that a peer announces, bits per second. At a lower one a single packet would take
/// longer than the outage timeout.
const MIN_ANNOUNCED: u64 = 1_000;

/// Rate at which the peer can receive, as it has announced it; `None`: it knows none.
pub(crate) fn announced_rate(limits: Limits) -> Option<BitRate> {
    let rate = BitRate::new(limits.receive_rate_bps)?;
    Some(rate.max(BitRate::from_bps(MIN_ANNOUNCED)))
}
