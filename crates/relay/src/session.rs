//! Configurations of the session and the association, and the relay as a session's upper layer.

use crate::PathMetrics;
use crate::config::{Control, RelayConfig, announced_rate};
use crate::streams::Streams;
use association::{Capabilities, Limits, OVERHEAD};
use units::{BitRate, Span};
use xstp::Seq24;
use xstp::congestion::Controller;
use xstp::session::{NewPacket, ProbingConfig, SessionConfig, UpperLayer};

/// Approximate length of a Hello in octets, with headers.
const HELLO: u64 = 210;

/// Rate limit of Cookies and of Unknowns: a fiftieth of the link's rate, with a minimum and a
/// maximum.
const ANSWERS: (u64, [BitRate; 2]) = (50, [BitRate::from_kbps(16), BitRate::from_mbps(2)]);

/// Minimum RTT in cached path metrics; a lower value is taken for a failed measurement.
const LEAST_ROUND_TRIP: Span = Span::from_micros(10);

/// Maximum window assumed before the peer's first segment; a gateway permits four times as many
/// numbers.
const ASSUMED: u32 = 1 << 16;

/// Returns the association's part of the configuration.
pub(crate) fn association_config(config: &RelayConfig) -> association::Config {
    let usual = association::Config::new(&config.name);
    // On a low-rate path the response to a Hello takes more than a second.
    let hello = config.send_rate.map_or(Span::ZERO, |rate| rate.time_for(HELLO * 2));
    let hello = hello + config.initial_rtt;
    let (part, [least, most]) = ANSWERS;
    let answers = |rate: BitRate| rate.mul_ratio(1, part).clamp(least, most);
    association::Config {
        security: config.security.clone(),
        is_beside: config.is_beside,
        limits: config.limits(),
        wall_clock_ns: config.wall_clock_ns,
        max_terminals: config.max_terminals,
        part: config.part.clone(),
        answer_rate: config.send_rate.map_or(usual.answer_rate, answers),
        hello_interval: usual.hello_interval.max(hello),
        hello_interval_max: usual.hello_interval_max.max(hello * 4),
        ..usual
    }
}

/// Returns the session's part of the configuration, with a peer that announced `limits` and with
/// cached path metrics.
pub(crate) fn session_config(
    config: &RelayConfig,
    limits: Limits,
    cached: Option<PathMetrics>,
) -> SessionConfig {
    let rate = lower(config.send_rate, announced_rate(limits));
    let mut session = match (config.control, rate) {
        (Control::Fixed, Some(rate)) => SessionConfig::gateway(rate),
        (Control::Steady, _) | (Control::Fixed, None) => steady(config, rate),
        (Control::NewReno, _) => newreno(config, rate),
        (Control::Probing, _) => {
            let mut session = newreno(config, rate).with_probing(Some(ProbingConfig::default()));
            session.stp.small_window = 0;
            session
        }
    };
    let can_repair = limits.capabilities.contains(Capabilities::REPAIR);
    session.gateway.repair_percent = config.repair_percent.filter(|_| can_repair);
    session.initial_rate = cached.map(|metrics| metrics.rate);
    session.reverse_rate = config.receive_rate;
    session.max_segment = largest(config, limits) - config.ip_overhead - OVERHEAD;
    session.packet_overhead = config.ip_overhead + OVERHEAD + config.link_overhead;
    session.first_number = config.first_number;
    session.keep_alive = config.keep_alive;
    session.no_response = Some(config.no_response);
    // An outage during the handshake is bounded as any other.
    let tries = config.no_response.as_nanos() / session.handshake_timeout.as_nanos().max(1);
    session.handshake_tries = session.handshake_tries.max(u32::try_from(tries).unwrap_or(u32::MAX));
    // The clock may have been set back since the measurement.
    session.initial_rtt = cached
        .map(|metrics| metrics.min_rtt)
        .filter(|round_trip| *round_trip >= LEAST_ROUND_TRIP)
        .unwrap_or(config.initial_rtt);
    // The peer is a gateway too, whose window is bounded by its memory in the first RTT.
    session.initial_peer_window = session.number_window.min(ASSUMED);
    session
}

/// Returns the lower of two rates, each of which may be absent.
pub(crate) fn lower(own: Option<BitRate>, theirs: Option<BitRate>) -> Option<BitRate> {
    match (own, theirs) {
        (Some(own), Some(theirs)) => Some(own.min(theirs)),
        (own, theirs) => own.or(theirs),
    }
}

/// Returns the maximum IP packet size of both sides.
pub(crate) fn largest(config: &RelayConfig, limits: Limits) -> usize {
    config.max_datagram().min(limits.max_datagram as usize).max(512) + config.ip_overhead
}

/// Returns the configuration of a session that estimates its rate, with the cap `most`.
fn steady(config: &RelayConfig, most: Option<BitRate>) -> SessionConfig {
    let mut session = SessionConfig::gateway_auto();
    session.max_rate = most;
    session.number_window = numbers(config);
    session
}

/// Returns the configuration of a session with a window controller and the maximum `rate`.
fn newreno(config: &RelayConfig, rate: Option<BitRate>) -> SessionConfig {
    let mut session = SessionConfig::gateway(rate.unwrap_or(BitRate::from_mbps(1)));
    session.controller = Controller::NewReno;
    session.max_rate = rate;
    session.number_window = numbers(config);
    session
}

/// Returns the number of packets in a full send buffer of full packets.
fn numbers(config: &RelayConfig) -> u32 {
    (config.send_pool / 500).clamp(1 << 12, 1 << 18) as u32
}

impl UpperLayer for Streams {
    fn has_new_data(&self) -> bool {
        Self::has_fresh(self)
    }

    fn has_urgent_data(&self) -> bool {
        Self::has_urgent(self)
    }

    fn fill_new(&mut self, _number: Seq24, room: &mut [u8]) -> Option<NewPacket> {
        let (len, handle) = Self::fresh(self, room)?;
        Some(NewPacket { len, handle })
    }

    fn accepts_padding(&self) -> bool {
        Self::accepts_padding(self)
    }

    fn fill_padding(&mut self, room: &mut [u8]) -> Option<NewPacket> {
        let (len, handle) = Self::padding(self, room);
        Some(NewPacket { len, handle })
    }

    fn fill_retransmission(&mut self, _number: Seq24, handle: u64, room: &mut [u8]) -> usize {
        Self::again(self, handle, room)
    }

    fn on_acknowledged(&mut self, _number: Seq24, handle: u64) {
        Self::released(self, handle);
    }

    fn deliver(&mut self, _number: Seq24, payload: &[u8]) {
        Self::deliver(self, payload);
    }

    fn fill_note(&mut self, room: &mut [u8]) -> usize {
        Self::note(self, room)
    }

    fn on_note(&mut self, note: &[u8]) {
        Self::noted(self, note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RLY-7.1
    #[test]
    fn announced_rates_have_a_minimum_of_one_kbit() {
        let announced = |bps| announced_rate(Limits { receive_rate_bps: bps, ..Limits::default() });
        assert_eq!(announced(0), None);
        assert_eq!(announced(1), Some(BitRate::from_kbps(1)));
        assert_eq!(announced(64_000), Some(BitRate::from_kbps(64)));
        let config = RelayConfig::new("boat");
        let hostile = Limits { receive_rate_bps: 1, ..Limits::default() };
        let session = session_config(&config, hostile, None);
        assert_eq!(session.max_rate, Some(BitRate::from_kbps(1)));
    }

    /// ASC-7.6
    #[test]
    fn responses_to_unvalidated_sources_take_a_fiftieth_of_the_link() {
        let share = |kbps: Option<u64>| {
            let rate = kbps.map(BitRate::from_kbps);
            association_config(&RelayConfig::new("hub").with_rates(rate, None)).answer_rate
        };
        for (link, answers) in [(10_000, 200), (100, 16), (1_000_000, 2_000)] {
            assert_eq!(share(Some(link)), BitRate::from_kbps(answers), "{link} kbit/s");
        }
        assert_eq!(share(None), BitRate::from_mbps(1));
    }
}
