//! What can be set about a session, and two presets.

use super::ProbingConfig;
use crate::congestion::Controller;
use crate::wire::{Delivery, Profile};
use crate::{Seq24, wire::Endpoints};
use core::fmt;
use units::{BitRate, Span};

/// How a window controller's segments are spread over the round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// What a STAT or USTAT enables is spread over one round trip from then on: Henderson and
    /// Katz's delayed send timer.
    Enabled,
    /// A full window is spread over one round trip.
    Window,
}

/// Which numbers that a STAT tells as missing are sent again. Each rule asks that a number was
/// last sent before the POLL that the STAT answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetransmitRule {
    /// Nothing more: Henderson and Katz 1999.
    PollOrder,
    /// And a smoothed round trip or more before the STAT came: Elaasar et al. 2003.
    RoundTrip,
    /// As `RoundTrip`, doubled as often as POLLs went unanswered before the STAT.
    BackedOff,
}

/// Everything that can be set about a session. Start from a preset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionConfig {
    /// How segments are written.
    pub profile: Profile,
    /// What the layer above does with packets that arrive; the peer's must be the same.
    pub delivery: Delivery,
    /// What decides how much may be outstanding.
    pub controller: Controller,
    /// How a window controller's segments are spread.
    pub spread: Spread,
    /// Probing before anything is done about a loss, under the controller `newreno`.
    pub probing: Option<ProbingConfig>,
    /// The rate below which pacing never goes, counting `packet_overhead`.
    pub min_rate: Option<BitRate>,
    /// The rate that is never exceeded, counting `packet_overhead`. `fixed` sends at it.
    pub max_rate: Option<BitRate>,
    /// The rate that `steady` begins at: what an earlier session on this way found out.
    pub start_rate: Option<BitRate>,
    /// What the way back takes, where it is known: it bounds how often `steady` polls.
    pub return_rate: Option<BitRate>,
    /// The share of `max_rate` that is left unused so that no queue stands, in millionths.
    pub headroom_millionths: u32,
    /// Whether `fixed` sends below its rate when a queue of its own making stands on the way: a
    /// configured rate is a ceiling, and the link may have less.
    pub yield_to_queue: bool,
    /// Bytes that each segment costs below XSTP and that rates count: IP, UDP, association.
    pub packet_overhead: usize,
    /// The largest segment that is sent or can be received, in bytes with XSTP's header.
    pub max_segment: usize,
    /// The number of each direction's first packet, the same at both ends. The specification
    /// says 0; others are for trying what happens when numbers wrap.
    pub first_number: Seq24,
    /// Numbers that may be in use at once, from the oldest without acknowledgement on.
    pub number_window: u32,
    /// Numbers that the peer may have in use towards us, unless the layer above sets another
    /// window.
    pub receive_window: u32,
    /// Bytes that a [`Connection`](crate::Connection) holds until the peer has them.
    pub send_buffer: usize,
    /// Numbers that the peer is taken to allow until its first word.
    pub assumed_window: u32,
    /// From this sending again on, a number goes out twice each time: what was lost so often
    /// holds up most, and is so rare that a copy costs next to nothing.
    pub double_from: Option<u8>,
    /// So many numbers from the first on go out twice whenever they are sent again: a young session
    /// has little behind which a further round trip would not be seen.
    pub double_first: u32,
    /// Whether a POLL follows at once when something is sent again that was lost more than once.
    pub poll_after_second_loss: bool,
    /// Which numbers that a STAT tells as missing are sent again.
    pub retransmit_rule: RetransmitRule,
    /// Whether numbers that a STAT lists as received above N(R) are released at once.
    pub release_early: bool,
    /// The first congestion window, in segments.
    pub initial_window: u32,
    /// After this long without data outstanding a window controller slow-starts anew.
    pub slow_start_after_idle: Option<Span>,
    /// Whether that is also a time in which what is outstanding was not acknowledged: an outage.
    pub outage_is_idle: bool,
    /// Of what one STAT or USTAT reports missing, this many go back to back; the rest is spread
    /// with what is new. (With `max_rate` everything is.)
    pub again_burst: u32,
    /// Fewer segments than this, enabled by one STAT or USTAT, go back to back.
    pub burst_threshold: u32,
    /// Below a congestion window of this many segments the last SD of each burst carries a
    /// POLL, and the timer only replaces lost ones.
    pub small_window: u32,
    /// Timer POLLs for each smoothed round trip.
    pub polls_per_round_trip: u32,
    /// Smoothed round trips that these timer POLLs are spread over: 1, or 2 with one POLL for
    /// "once every two round trips".
    pub poll_round_trips: u32,
    /// How often a POLL interval without an answer doubles the next one, at most.
    pub poll_backoff_cap: u32,
    /// How long a due POLL waits for an SD to ride on.
    pub poll_ride: Span,
    /// How long before it is due a POLL may ride on an SD already.
    pub poll_ride_early: Span,
    /// Whether it waits for the last SD of those that leave back to back.
    pub poll_ends_burst: bool,
    /// Whether a [`Connection`](crate::Connection) keeps what does not fill a segment until
    /// everything before it is acknowledged: Nagle's algorithm.
    pub nagle: bool,
    /// Bytes sent since the last POLL that force one: the share of the send buffer.
    pub poll_after_bytes: Option<u64>,
    /// Whether the first burst after nothing was outstanding carries a POLL.
    pub poll_first_burst: bool,
    /// Whether the last SD carries a POLL when the layer above runs dry, as far as the allowance
    /// lasts.
    pub poll_when_dry: bool,
    /// Whether the SD that shuts a window carries a POLL, or one follows it.
    pub poll_when_shut: bool,
    /// STATs, and POLLs, are never closer together than this.
    pub control_spacing: Span,
    /// POLLs and reports that no data carries take at most one in so many octets of what the
    /// pace allows; 0: no bound.
    pub control_part: u32,
    /// Packets that must arrive after a gap before a USTAT reports it.
    pub ustat_threshold: u32,
    /// How long a USTAT that is due is held, so that gaps close together share it.
    pub ustat_hold: Span,
    /// Granularity of coarse timers; fallback POLLs wait at least two of these.
    pub tick: Span,
    /// How long late pacing may catch up.
    pub catch_up: Span,
    /// The round trip that is assumed before one is measured.
    pub initial_round_trip: Span,
    /// How long an unanswered BGN or END waits to be sent again, at least.
    pub handshake_timeout: Span,
    /// How often BGN and END are sent.
    pub handshake_tries: u32,
    /// An idle session polls this long after it last heard from the peer.
    pub keep_alive: Span,
    /// A session whose peer is silent for this long although it should speak is closed.
    pub no_response: Option<Span>,
}

impl SessionConfig {
    /// The Satellite Transport Protocol as published, between two unspecified addresses: set
    /// `profile` to the real ones.
    ///
    /// In order, slow start from one segment, POLLs on the last segment of each burst below a
    /// window of 10 segments, three POLLs a round trip above it, timers of 10 ms.
    pub fn stp_1999() -> Self {
        let unspecified = core::net::SocketAddr::from(([0, 0, 0, 0], 0));
        Self {
            profile: Profile::Published(Endpoints { local: unspecified, remote: unspecified }),
            delivery: Delivery::InOrder,
            controller: Controller::NewReno,
            spread: Spread::Enabled,
            probing: None,
            min_rate: None,
            max_rate: None,
            start_rate: None,
            return_rate: None,
            headroom_millionths: 0,
            yield_to_queue: false,
            packet_overhead: 20,
            max_segment: 1480,
            first_number: Seq24::ZERO,
            number_window: 4096,
            receive_window: 160,
            send_buffer: 240_000,
            assumed_window: 160,
            double_from: None,
            double_first: 0,
            poll_after_second_loss: false,
            retransmit_rule: RetransmitRule::PollOrder,
            release_early: false,
            initial_window: 1,
            slow_start_after_idle: None,
            outage_is_idle: false,
            again_burst: u32::MAX,
            burst_threshold: 0,
            small_window: 10,
            polls_per_round_trip: 3,
            poll_round_trips: 1,
            poll_backoff_cap: 6,
            poll_ride: Span::from_millis(10),
            poll_ride_early: Span::from_millis(10),
            poll_ends_burst: false,
            nagle: false,
            poll_after_bytes: Some(120_000),
            poll_first_burst: false,
            poll_when_dry: true,
            poll_when_shut: true,
            control_spacing: Span::ZERO,
            control_part: 0,
            ustat_threshold: 1,
            ustat_hold: Span::ZERO,
            tick: Span::from_millis(10),
            catch_up: Span::from_millis(10),
            initial_round_trip: Span::from_secs(3),
            handshake_timeout: Span::from_secs(3),
            handshake_tries: 6,
            keep_alive: Span::from_secs(75),
            no_response: Some(Span::from_secs(120)),
        }
    }

    /// A gateway's session inside an association, on a link of `rate`.
    ///
    /// Immediate delivery, paced at the rate less two per mille, no congestion window, and
    /// numbers for eight round trips of up to 1.2 s.
    pub fn gateway(rate: BitRate) -> Self {
        let round_trips = Span::from_millis(1_200) * 8;
        // Packets are mostly full, but the window must not shut on runs of smaller ones.
        let numbers = rate.bytes_in(round_trips) / 500;
        Self {
            profile: Profile::Sealed,
            delivery: Delivery::Immediate,
            controller: Controller::Fixed,
            spread: Spread::Window,
            probing: None,
            min_rate: None,
            max_rate: Some(rate),
            start_rate: None,
            return_rate: None,
            headroom_millionths: 2_000,
            yield_to_queue: true,
            // IPv4, UDP, and an association's header and tag.
            packet_overhead: 20 + 8 + 8 + 16,
            max_segment: 1500 - (20 + 8 + 8 + 16),
            first_number: Seq24::ZERO,
            number_window: numbers.clamp(1 << 12, 1 << 22) as u32,
            receive_window: 1 << 18,
            send_buffer: 1 << 20,
            assumed_window: 1 << 12,
            double_from: Some(3),
            double_first: 0,
            poll_after_second_loss: true,
            retransmit_rule: RetransmitRule::PollOrder,
            release_early: true,
            initial_window: 10,
            slow_start_after_idle: None,
            outage_is_idle: false,
            again_burst: u32::MAX,
            burst_threshold: 0,
            small_window: 0,
            polls_per_round_trip: 3,
            poll_round_trips: 1,
            poll_backoff_cap: 0,
            poll_ride: Span::ZERO,
            poll_ride_early: Span::ZERO,
            poll_ends_burst: false,
            nagle: false,
            poll_after_bytes: None,
            poll_first_burst: false,
            poll_when_dry: true,
            poll_when_shut: true,
            control_spacing: Span::from_millis(5),
            control_part: 4,
            ustat_threshold: 3,
            ustat_hold: Span::from_millis(20),
            tick: Span::from_millis(10),
            catch_up: Span::from_millis(20),
            initial_round_trip: Span::from_millis(700),
            handshake_timeout: Span::from_millis(1_000),
            handshake_tries: 30,
            keep_alive: Span::from_secs(12),
            no_response: Some(Span::from_secs(180)),
        }
    }

    /// A gateway's session on a link whose rate nobody knows: `steady` finds it.
    ///
    /// As [`SessionConfig::gateway`], with numbers for eight round trips of 1.2 s at 100 Mbit/s
    /// and for twenty of 600 ms at 250 Mbit/s.
    pub fn gateway_auto() -> Self {
        Self {
            controller: Controller::Steady,
            max_rate: None,
            double_first: 1_024,
            number_window: 1 << 18,
            assumed_window: 1 << 16,
            ..Self::gateway(BitRate::from_mbps(100))
        }
    }

    /// Payload bytes of a full segment with SD. As published there is always room for a POLL.
    pub fn payload_size(&self) -> usize {
        self.max_segment.saturating_sub(self.data_overhead())
    }

    /// The rate at which `fixed` sends and that nothing exceeds: `max_rate` less the headroom.
    pub fn paced_rate(&self) -> Option<BitRate> {
        self.max_rate.map(|rate| self.less_headroom(rate))
    }

    /// `rate` less the headroom.
    pub(crate) fn less_headroom(&self, rate: BitRate) -> BitRate {
        let kept = 1_000_000_u32.saturating_sub(self.headroom_millionths);
        rate.mul_ratio(u64::from(kept), 1_000_000)
    }

    /// Bytes of a segment with SD that are not payload.
    pub(crate) fn data_overhead(&self) -> usize {
        match self.profile {
            Profile::Published(_) => 16 + 3,
            Profile::Sealed => 4,
        }
    }

    /// Checks that the settings make sense together.
    ///
    /// # Errors
    /// The first setting that does not.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let least_segment = self.data_overhead() + 64;
        let checks = [
            ("max_segment", self.max_segment >= least_segment, "room for 64 payload bytes"),
            ("max_segment", self.max_segment <= 65_515, "at most 65515 bytes"),
            ("number_window", (1..=Seq24::HALF).contains(&self.number_window), "1 to 2^23"),
            ("receive_window", (1..=Seq24::HALF).contains(&self.receive_window), "1 to 2^23"),
            ("polls_per_round_trip", self.polls_per_round_trip > 0, "at least 1"),
            ("poll_round_trips", (1..=16).contains(&self.poll_round_trips), "1 to 16"),
            ("poll_backoff_cap", self.poll_backoff_cap <= 16, "at most 16"),
            ("ustat_threshold", self.ustat_threshold > 0, "at least 1"),
            (
                "controller",
                // As published a STAT does not say when its POLL arrived.
                self.controller != Controller::Steady || self.profile == Profile::Sealed,
                "the profile `sealed` under `steady`",
            ),
            (
                "probing",
                self.probing.is_none() || self.controller == Controller::NewReno,
                "the controller `newreno` below it",
            ),
            (
                "probing.required_probes",
                self.probing.is_none_or(|p| (1..=p.max_probes).contains(&p.required_probes)),
                "1 to max_probes",
            ),
            (
                "probing.max_probes",
                self.probing.is_none_or(|p| (1..=256).contains(&p.max_probes)),
                "1 to 256",
            ),
            ("tick", !self.tick.is_zero(), "above zero"),
            ("keep_alive", !self.keep_alive.is_zero(), "above zero"),
            ("handshake_timeout", !self.handshake_timeout.is_zero(), "above zero"),
            ("handshake_tries", self.handshake_tries > 0, "at least 1"),
            ("initial_round_trip", !self.initial_round_trip.is_zero(), "above zero"),
            ("headroom_millionths", self.headroom_millionths < 1_000_000, "below 1000000"),
            (
                "max_rate",
                self.controller != Controller::Fixed || self.max_rate.is_some(),
                "a rate for the controller `fixed`",
            ),
            (
                // What goes alone does not wait for the pacer, but is charged to it.
                "control_part",
                self.max_rate.is_none() || self.control_part >= 2,
                "at least 2 with a max_rate, or nothing may be left for data",
            ),
            (
                "min_rate",
                self.min_rate.zip(self.max_rate).is_none_or(|(min, max)| min <= max),
                "at most max_rate",
            ),
        ];
        match checks.into_iter().find(|(_, holds, _)| !holds) {
            Some((setting, _, expected)) => Err(ConfigError { setting, expected }),
            None => Ok(()),
        }
    }
}

/// A setting that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The field of [`SessionConfig`].
    pub setting: &'static str,
    /// What it should be.
    pub expected: &'static str,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}", self.setting, self.expected)
    }
}

impl core::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_make_sense() {
        assert_eq!(SessionConfig::stp_1999().validate(), Ok(()));
        assert_eq!(SessionConfig::xstp_2003().validate(), Ok(()));
        for bps in [1_000, 64_000, 10_000_000, 250_000_000, u64::MAX] {
            assert_eq!(SessionConfig::gateway(BitRate::from_bps(bps)).validate(), Ok(()));
        }
        assert_eq!(SessionConfig::gateway_auto().validate(), Ok(()));
    }

    #[test]
    fn steady_needs_what_only_the_sealed_profile_tells() {
        let controller = Controller::Steady;
        let published = SessionConfig { controller, ..SessionConfig::stp_1999() };
        assert_eq!(published.validate().map_err(|error| error.setting), Err("controller"));
    }

    /// XSTP-8.1.7
    #[test]
    fn a_maximum_rate_needs_a_bound_on_control() {
        let max_rate = Some(BitRate::from_kbps(200));
        for (control_part, valid) in [(0, false), (1, false), (2, true), (4, true)] {
            let config = SessionConfig { max_rate, control_part, ..SessionConfig::stp_1999() };
            assert_eq!(config.validate().is_ok(), valid, "{control_part}");
        }
    }

    #[test]
    fn a_gateway_has_numbers_for_eight_round_trips() {
        let rate = BitRate::from_mbps(50);
        let config = SessionConfig::gateway(rate);
        let per_round_trip = rate.bytes_in(Span::from_millis(1_200)) / 1500;
        assert!(u64::from(config.number_window) >= 8 * per_round_trip);
    }

    /// XSTP-12.1.1
    #[test]
    fn the_specification_has_the_presets() {
        let text = include_str!("../../../../docs/spec/xstp.md");
        let presets = [SessionConfig::stp_1999(), SessionConfig::gateway(BitRate::from_mbps(10))];
        let ms = |value: fn(&SessionConfig) -> Span| {
            presets.each_ref().map(|preset| value(preset).as_millis())
        };
        let count = |value: fn(&SessionConfig) -> u32| {
            presets.each_ref().map(|preset| u64::from(value(preset)))
        };
        let rows = [
            ("window told", count(|c| c.receive_window)),
            ("assumed window", count(|c| c.assumed_window)),
            ("small-window mode below, packets", count(|c| c.small_window)),
            ("POLLs each round trip", count(|c| c.polls_per_round_trip)),
            ("back-off, doublings at most", count(|c| c.poll_backoff_cap)),
            ("wait for a packet to ride on, ms", ms(|c| c.poll_ride)),
            ("least distance of POLLs and of STATs, ms", ms(|c| c.control_spacing)),
            ("control's part of the pace, one in", count(|c| c.control_part)),
            ("reordering threshold", count(|c| c.ustat_threshold)),
            ("hold of USTATs, ms", ms(|c| c.ustat_hold)),
            ("tick of coarse timers, ms", ms(|c| c.tick)),
            ("catching up, ms", ms(|c| c.catch_up)),
            ("headroom, millionths", count(|c| c.headroom_millionths)),
            ("first assumption of the round trip, ms", ms(|c| c.initial_round_trip)),
            ("handshake timeout, ms", ms(|c| c.handshake_timeout)),
            ("tries of BGN and END", count(|c| c.handshake_tries)),
            ("keep-alive, ms", ms(|c| c.keep_alive)),
            ("no response, ms", ms(|c| c.no_response.unwrap_or(Span::ZERO))),
        ];
        for (name, [published, gateway]) in rows {
            let end = std::format!("| {published} | {gateway} |");
            let row = text.lines().find(|line| line.starts_with(&std::format!("| {name} | ")));
            assert!(row.is_some_and(|row| row.ends_with(&end)), "{name}: {end} is not {row:?}");
        }
    }

    #[test]
    fn what_does_not_make_sense_is_named() {
        let mut config = SessionConfig::gateway(BitRate::from_mbps(1));
        config.max_rate = None;
        let error = config.validate().unwrap_err();
        assert_eq!(error.setting, "max_rate");
        assert_eq!(std::format!("{error}"), "max_rate: expected a rate for the controller `fixed`");
    }
}
