//! Switches of the three generations of the protocol.

use units::Span;

/// Time over which the segments of a window controller are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// The segments that a STAT or USTAT allows are spread over one RTT: the delayed send
    /// timer of Henderson and Katz.
    Enabled,
    /// A full window is spread over one RTT.
    Window,
}

/// Condition under which a packet that a STAT reports missing is retransmitted. Each rule
/// requires that the packet was last sent before the POLL that the STAT answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetransmitRule {
    /// No further condition: Henderson and Katz 1999.
    PollOrder,
    /// The last transmission was at least SRTT before the STAT: Elaasar et al. 2003.
    RoundTrip,
    /// As `RoundTrip`, with SRTT doubled for each POLL that was unanswered before the STAT.
    BackedOff,
}

/// Policy of the Satellite Transport Protocol, Henderson and Katz 1999: when POLLs are sent and
/// how a window is spread over the RTT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StpPolicy {
    /// Time over which the segments of a window controller are spread.
    pub spread: Spread,
    /// Congestion window, in segments, below which the last SD of each burst carries a POLL and
    /// the timer only replaces lost POLLs.
    pub small_window: u32,
    /// Maximum time that a due POLL waits to be piggybacked on an SD.
    pub poll_piggyback_wait: Span,
    /// Time before it is due from which on a POLL may be piggybacked on an SD.
    pub poll_piggyback_early: Span,
    /// Octets sent since the last POLL that force another one: a fraction of the send buffer.
    pub poll_after_bytes: Option<u64>,
    /// Whether the last SD carries a POLL when the session becomes application-limited, as far
    /// as an allowance permits.
    pub poll_when_app_limited: bool,
    /// Whether the SD that fills a window carries a POLL, or a POLL follows it.
    pub poll_when_window_full: bool,
    /// Whether a [`Connection`](crate::Connection) keeps data that does not fill a segment until
    /// all earlier data is acknowledged (Nagle's algorithm, RFC 896).
    pub nagle: bool,
}

impl StpPolicy {
    /// Policy of the preset [`stp_1999`](crate::session::SessionConfig::stp_1999).
    pub const fn published() -> Self {
        Self {
            spread: Spread::Enabled,
            small_window: 10,
            poll_piggyback_wait: Span::from_millis(10),
            poll_piggyback_early: Span::from_millis(10),
            poll_after_bytes: Some(120_000),
            poll_when_app_limited: true,
            poll_when_window_full: true,
            nagle: false,
        }
    }
}

/// Policy that XSTP, Elaasar et al. 2003, adds to STP: probing before a loss is taken for
/// congestion, slow start after a pause, and bursts of retransmissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XstpPolicy {
    /// Probing after a loss, with the controller `newreno`.
    pub probing: Option<ProbingConfig>,
    /// Condition under which a packet that a STAT reports missing is retransmitted.
    pub retransmit_rule: RetransmitRule,
    /// Time without new data after which a window controller restarts with slow start.
    pub slow_start_after_idle: Option<Span>,
    /// Whether a time without acknowledgements, an outage, counts as such a pause.
    pub outage_is_idle: bool,
    /// Number of packets, of those that a STAT or USTAT reports missing, that are retransmitted
    /// back to back. The others are spread with new data, and with a `max_rate` all of them are.
    pub retransmit_burst: u32,
    /// Number of segments allowed by one STAT or USTAT below which they are sent back to back.
    pub burst_threshold: u32,
    /// Whether a POLL waits for the last SD of those that are sent back to back.
    pub poll_ends_burst: bool,
    /// Whether the first burst of a session without outstanding data carries a POLL.
    pub poll_first_burst: bool,
}

impl XstpPolicy {
    /// All additions turned off: STP as published in 1999.
    pub const fn off() -> Self {
        Self {
            probing: None,
            retransmit_rule: RetransmitRule::PollOrder,
            slow_start_after_idle: None,
            outage_is_idle: false,
            retransmit_burst: u32::MAX,
            burst_threshold: 0,
            poll_ends_burst: false,
            poll_first_burst: false,
        }
    }

    /// Policy of the preset [`xstp_2003`](crate::session::SessionConfig::xstp_2003).
    pub fn published() -> Self {
        Self {
            probing: Some(ProbingConfig::default()),
            retransmit_rule: RetransmitRule::BackedOff,
            slow_start_after_idle: Some(Span::from_secs(3)),
            outage_is_idle: true,
            retransmit_burst: 8,
            burst_threshold: 8,
            poll_ends_burst: true,
            poll_first_burst: true,
        }
    }
}

/// Policy of gateways, not part of any paper: for repeated loss, for configured rates that are too
/// high, and for links of a few kbit/s. By default all additions are turned off, as published.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayPolicy {
    /// Whether packets that a STAT lists as received above N(R) are released at once.
    pub release_early: bool,
    /// Number of the retransmission from which on a packet is sent twice each time: such packets
    /// delay their streams most, and are so rare that duplicates cost little.
    pub duplicate_from_retransmission: Option<u8>,
    /// Number of packets at the start of the session that are sent twice from their first
    /// retransmission on.
    pub duplicate_first_packets: u32,
    /// Whether a POLL follows the retransmission of a packet that was lost more than once.
    pub poll_after_second_loss: bool,
    /// Whether `fixed` sends below its rate while it causes a standing queue: the link may have
    /// less than the configured rate.
    pub detect_standing_queue: bool,
    /// Maximum share of the send rate for repair symbols, in percent (XSTP-15). `None`: REPAIR is
    /// neither sent nor accepted; the peer has to be configured likewise.
    pub repair_percent: Option<u32>,
    /// Rules for low-rate paths (RFC 3150); `None` as published.
    pub low_rate: Option<LowRatePolicy>,
}

/// Rules for paths on which POLLs and STATs take a considerable part of the rate (XSTP-8.1.7,
/// XSTP-10.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LowRatePolicy {
    /// POLLs, STATs and USTATs without data take at most 1/`control_divisor` of the send rate.
    pub control_divisor: u32,
}

impl GatewayPolicy {
    /// Divisor of the send rate that bounds control traffic, if the rules for low-rate paths
    /// apply.
    pub fn control_divisor(&self) -> Option<u32> {
        self.low_rate.map(|policy| policy.control_divisor)
    }
}

/// Round-trip time with which responses to probes are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossRoundTrip {
    /// SRTT at the start of the cycle.
    Smoothed,
    /// The last sample before the cycle.
    Last,
}

/// Quantity that is halved when probing detects congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halve {
    /// The congestion window (section 4.2 of the paper).
    Window,
    /// The outstanding data (FlightSize of RFC 5681), which decreases while no data is sent.
    Flight,
}

/// Settings of probing. The defaults are those of
/// [`xstp_2003`](crate::session::SessionConfig::xstp_2003).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbingConfig {
    /// Slots of the probing map: MAX_PROBES.
    pub max_probes: u32,
    /// Consecutive responses that end a cycle: REQ_PROBES.
    pub required_probes: u32,
    /// Increase of the round-trip time above which a loss is taken for congestion, in millionths:
    /// RTT_TOLERANCE, whose value the paper does not give.
    pub tolerance_millionths: u32,
    /// Duration from which on a cycle that detects congestion ends in slow start.
    pub idle_threshold: Span,
    /// Whether a due POLL begins a cycle if no STAT was received since the last one.
    pub early_timeout: bool,
    /// Whether the first slot of the map is for responses to POLLs sent before the cycle.
    pub before_loss: bool,
    /// Round-trip time with which responses are compared.
    pub loss_round_trip: LossRoundTrip,
    /// Whether the window is restored to its value before the cycle if there was no congestion.
    /// Otherwise it keeps what acknowledgements added during the cycle.
    pub restore_window: bool,
    /// Quantity that congestion halves.
    pub halve: Halve,
    /// Whether sending continues unchanged after a corruption loss. Otherwise, for comparison, every
    /// cycle that found a loss ends as if there were congestion.
    pub immediate_recovery: bool,
}

impl Default for ProbingConfig {
    fn default() -> Self {
        Self {
            max_probes: 4,
            required_probes: 2,
            tolerance_millionths: 100_000,
            idle_threshold: Span::from_secs(3),
            early_timeout: true,
            before_loss: true,
            loss_round_trip: LossRoundTrip::Smoothed,
            restore_window: false,
            halve: Halve::Window,
            immediate_recovery: true,
        }
    }
}
