//! What a relay is told before it starts.

use association::Limits;
use units::{BitRate, Span};

/// Bytes of IPv4 and UDP around each datagram.
pub const IPV4_UDP: usize = 28;
/// Bytes of IPv6 and UDP around each datagram.
pub const IPV6_UDP: usize = 48;
/// The smallest path MTU that a relay works over: every opening frame fits.
pub const MIN_MTU: usize = 576;

/// How a relay works; the same type for both ends.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// A terminal's name, by which the hub knows it again; at most 64 bytes.
    pub name: String,
    /// The rate that this side sends at, at most: IP packets with all their headers. `None`: what
    /// the peer says its link takes, or else what the controller finds.
    pub send_rate: Option<BitRate>,
    /// The rate that this side's link takes from the peer, announced to it.
    pub receive_rate: Option<BitRate>,
    /// Largest IP packet on the path, bytes; at least [`MIN_MTU`].
    pub mtu: usize,
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
    /// Bytes of send buffer that all streams share, sent and unsent.
    pub send_pool: u64,
    /// Bytes that one stream may hold unsent.
    pub unsent_limit: u64,
    /// Time without word from the peer after which a POLL is sent on an idle session.
    pub keep_alive: Span,
    /// Time without an answer after which the session is given up.
    pub no_response: Span,
    /// The round trip assumed before one has been measured.
    pub initial_round_trip: Span,
    /// The wall clock at [`units::Instant::ZERO`], nanoseconds since 1970.
    pub wall_clock_ns: u64,
    /// Terminals that a hub keeps.
    pub max_terminals: usize,
}

impl RelayConfig {
    /// The usual values for a side called `name`, for a link whose rate is not known.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            send_rate: None,
            receive_rate: None,
            mtu: 1500,
            ip_overhead: IPV4_UDP,
            link_overhead: 0,
            max_streams: 4096,
            receive_pool: 64 << 20,
            stream_minimum: 16 << 10,
            shared_credit: 8 << 20,
            send_pool: 64 << 20,
            unsent_limit: 256 << 10,
            keep_alive: Span::from_secs(10),
            no_response: Span::from_secs(120),
            initial_round_trip: Span::from_millis(600),
            wall_clock_ns: 0,
            max_terminals: 256,
        }
    }

    /// Sets both directions' rates, and buffers that are deep enough for them: a window of eight
    /// round trips of 600 ms for one stream, twice over, and 1.5 s of credit for young streams.
    #[must_use]
    pub fn with_rates(mut self, send: Option<BitRate>, receive: Option<BitRate>) -> Self {
        let seconds = |rate: Option<BitRate>, millis| {
            rate.map_or(0, |rate| rate.bytes_in(Span::from_millis(millis)))
        };
        self.send_rate = send;
        self.receive_rate = receive;
        self.shared_credit = if receive.is_some() {
            seconds(receive, 1_500).next_multiple_of(1024).clamp(1 << 20, 256 << 20)
        } else {
            self.shared_credit
        };
        self.receive_pool = seconds(receive, 10_000).max(self.receive_pool) + self.shared_credit;
        self.send_pool = seconds(send, 10_000).max(self.send_pool);
        self.unsent_limit = seconds(send, 250).clamp(128 << 10, 8 << 20);
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
        }
    }
}
