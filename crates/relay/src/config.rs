//! Configuration of a relay.

use crate::{Coder, PathMetrics};
use association::{Capabilities, Limits, Part, Security};
use core::fmt;
use core::str::FromStr;
use units::{BitRate, Span};
use xstp::Seq24;

/// Octets of the IPv4 and UDP headers of each datagram.
pub const IPV4_UDP: usize = 28;
/// Octets of the IPv6 and UDP headers of each datagram.
pub const IPV6_UDP: usize = 48;
/// Minimum path MTU of a relay: every opening frame fits.
pub const MIN_MTU: usize = 576;

/// Approximate number of octets of path capacity that a credit update takes: a STAT with its note,
/// times four, because control traffic is limited to a quarter of the rate.
pub(crate) const WORD: u64 = 400;

/// Round trips at the path's rate that a pool is sized for: a stream's window has eight, and one
/// stream is granted two fifths of a pool.
pub(crate) const POOL_ROUND_TRIPS: u64 = 16;
/// Size up to which a pool does not depend on the path, bytes.
pub(crate) const PATH_POOL_MIN: u64 = 64 << 20;

/// The controller of a relay's sending rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Control {
    /// Estimates the bottleneck rate, keeps it through losses and blackouts, and backs off for
    /// competing traffic. A configured rate is a cap.
    #[default]
    Steady,
    /// Sends at the configured rate, or less if the link has less. Without a rate: `steady`.
    Fixed,
    /// The window of the Satellite Transport Protocol, which treats every loss as congestion.
    NewReno,
    /// As `newreno`, with probing before a loss is treated as congestion (Elaasar et al.).
    Probing,
}

impl Control {
    /// All controllers.
    pub const ALL: [Self; 4] = [Self::Steady, Self::Fixed, Self::NewReno, Self::Probing];

    /// Returns the name in the configuration.
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

/// Error of a name that no [`Control`] has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownControl;

impl fmt::Display for UnknownControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected one of {}", Control::ALL.map(Control::name).join(", "))
    }
}

impl core::error::Error for UnknownControl {}

/// Configuration of a relay, for both ends.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// The terminal's name, by which a hub without keys identifies it; at most 64 bytes.
    pub name: String,
    /// Keys for the path to the peer: at a terminal those of one hub, at a hub those of its
    /// terminals.
    pub security: Security,
    /// Maximum sending rate, of IP packets with all their headers. `None`: the rate that the peer
    /// announces for its link, or else the rate that the controller estimates.
    pub send_rate: Option<BitRate>,
    /// Rate at which this side can receive, announced to the peer.
    pub receive_rate: Option<BitRate>,
    /// The controller of this side's sending rate.
    pub control: Control,
    /// Path metrics that an earlier session with the peer has measured; the first session starts
    /// with them. For a hub see [`Hub::cache_path_metrics`](crate::Hub::cache_path_metrics).
    pub path_metrics: Option<PathMetrics>,
    /// Maximum size of an IP packet on the path, bytes; at least [`MIN_MTU`].
    pub mtu: usize,
    /// Whether the path MTU is probed, up to [`mtu`](Self::mtu). If not, it is `mtu`, or the value
    /// of [`Relay::set_mtu`](crate::Relay::set_mtu).
    pub probe_mtu: bool,
    /// Whether a hub estimates the rate by packets of padding while there is no stream. If not, or
    /// for a peer that does not skip extension frames, the rate is estimated from the first data.
    pub probe_rate: bool,
    /// Octets of IP and UDP headers in each packet: [`IPV4_UDP`] or [`IPV6_UDP`].
    pub ip_overhead: usize,
    /// Octets that the link adds to each IP packet and that count against the rate.
    pub link_overhead: usize,
    /// Maximum number of streams that the peer may have open.
    pub max_streams: usize,
    /// Bytes of receive buffer that all streams share.
    pub receive_pool: u64,
    /// Minimum receive buffer of each stream in bytes; a multiple of 1,024.
    pub stream_minimum: u64,
    /// Credit for streams without a per-stream limit yet, taken from the receive pool, bytes.
    pub shared_credit: u64,
    /// Bytes of send buffer that all streams share, sent and unsent, in addition to the first 16
    /// KiB of each stream.
    pub send_pool: u64,
    /// Bytes of buffer that a hub has for all terminals together, in each direction; `None`: the
    /// sum of their pools. Each stream has 16 KiB in addition.
    pub total_memory: Option<u64>,
    /// Maximum number of unsent bytes of one stream, until a rate is known; then, the bytes that
    /// are sent in a quarter of a second.
    pub unsent_limit: u64,
    /// Time without a segment from the peer after which a POLL is sent on an idle session.
    pub keep_alive: Span,
    /// Time without a STAT after which the session is closed.
    pub no_response: Span,
    /// The RTT assumed before the first sample.
    pub initial_rtt: Span,
    /// The wall clock at [`units::Instant::ZERO`], nanoseconds since 1970.
    pub wall_clock_ns: u64,
    /// Optional features that this side announces, repair as far as
    /// [`repair_percent`](Self::repair_percent) says.
    pub capabilities: Capabilities,
    /// Maximum share of the send rate for repair symbols, in percent, 1 to 50. `None`: none are
    /// sent, and none are accepted. They are used if both sides have a share.
    pub repair_percent: Option<u32>,
    /// Whether this side compresses streams as far as their content and the peer allow it. What the
    /// peer has compressed is decompressed in any case.
    pub compress: bool,
    /// State of the compressor, shared with the relays of other configurations that it is cloned to.
    pub coder: Coder,
    /// Whether superseded acknowledgements of TCP are removed from the queues of forwarded packets
    /// ([`pep`](crate::pep)).
    pub filter_acks: bool,
    /// Whether this side compresses the headers of forwarded packets. Those of the peer are restored
    /// in any case.
    pub compress_headers: bool,
    /// Whether the hub is to keep earlier associations of this terminal until their sessions end
    /// (ASC-2.11).
    pub is_beside: bool,
    /// Maximum number of terminals of a hub.
    pub max_terminals: usize,
    /// The part of a hub that this is.
    pub part: Part,
    /// Sequence number of each session's first packet, the same at both ends. Used by tests of
    /// sequence number wrap-around.
    pub first_number: Seq24,
}

impl RelayConfig {
    /// Returns the defaults for a side called `name`, for a link of unknown rate: 128 MiB of buffer
    /// in each direction.
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
            repair_percent: None,
            compress: false,
            coder: Coder::default(),
            filter_acks: false,
            compress_headers: false,
            is_beside: false,
            max_terminals: 256,
            part: Part::default(),
            first_number: Seq24::ZERO,
        };
        config.with_memory(128 << 20)
    }

    /// Sets the memory for buffers, in each direction: `bytes`, at least 1 MiB. A quarter of it is
    /// credit for streams without a per-stream limit.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        let bytes = bytes.max(1 << 20);
        self.receive_pool = bytes;
        self.shared_credit = (bytes / 4).next_multiple_of(1024);
        self.send_pool = bytes;
        self
    }

    /// Sets the rates of both directions, and the maximum size of the buffers for the known ones:
    /// twice a window of eight round trips of 600 ms, and shared credit for 1.5 s plus the time of a
    /// credit update on a low-rate path to the peer. With a measured round trip the buffers are
    /// smaller, but not below 64 MiB.
    #[must_use]
    pub fn with_rates(mut self, send: Option<BitRate>, receive: Option<BitRate>) -> Self {
        (self.send_rate, self.receive_rate) = (send, receive);
        if let Some(rate) = receive {
            let word = send.map_or(Span::ZERO, |rate| rate.time_for(WORD * 2));
            let young = rate.bytes_in(Span::from_millis(1_500) + word);
            self.shared_credit = young.next_multiple_of(1024).clamp(1 << 20, 256 << 20);
            let old = rate.bytes_in(Span::from_secs(10)).max(PATH_POOL_MIN);
            self.receive_pool = old + self.shared_credit;
        }
        if let Some(rate) = send {
            self.send_pool = rate.bytes_in(Span::from_secs(10)).max(PATH_POOL_MIN);
        }
        self
    }

    /// Returns the maximum number of bytes of memory for received data, with any number of stalled
    /// readers.
    pub fn receive_bound(&self) -> u64 {
        self.receive_pool + self.max_streams as u64 * self.stream_minimum
    }

    /// Returns the maximum UDP payload, bytes.
    pub(crate) fn max_datagram(&self) -> usize {
        self.mtu.max(MIN_MTU) - self.ip_overhead
    }

    /// Returns the limits that are announced to the peer.
    pub(crate) fn limits(&self) -> Limits {
        let word = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        Limits {
            max_datagram: word(self.max_datagram() as u64),
            streams: word(self.max_streams as u64),
            minimum_credit: word(self.stream_minimum),
            shared_credit: word(self.shared_credit),
            receive_rate_bps: self.receive_rate.map_or(0, BitRate::as_bps),
            capabilities: match self.repair_percent {
                Some(_) => self.capabilities,
                None => self.capabilities.without(Capabilities::REPAIR),
            },
        }
    }
}
/// Minimum rate that a peer announces, bits per second. At a lower rate a single packet would take
/// longer than the outage timeout.
const MIN_ANNOUNCED: u64 = 1_000;

/// Returns the rate at which the peer can receive, as announced; `None`: unknown.
pub(crate) fn announced_rate(limits: Limits) -> Option<BitRate> {
    let rate = BitRate::new(limits.receive_rate_bps)?;
    Some(rate.max(BitRate::from_bps(MIN_ANNOUNCED)))
}
