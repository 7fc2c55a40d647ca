//! What a relay asks of the layers below: their configurations, and what it is to a session.

use crate::config::RelayConfig;
use crate::streams::Streams;
use association::{Limits, OVERHEAD};
use units::BitRate;
use xstp::Seq24;
use xstp::congestion::Controller;
use xstp::session::{Filled, SessionConfig, Upper};

/// The association's share of the configuration.
pub(crate) fn association_config(config: &RelayConfig) -> association::Config {
    association::Config {
        limits: config.limits(),
        wall_clock_ns: config.wall_clock_ns,
        max_terminals: config.max_terminals,
        ..association::Config::new(&config.name)
    }
}

/// The session's share of the configuration, with a peer that announced `limits`.
pub(crate) fn session_config(config: &RelayConfig, limits: Limits) -> SessionConfig {
    let announced = BitRate::new(limits.receive_rate_bps);
    let rate = match (config.send_rate, announced) {
        (Some(own), Some(theirs)) => Some(own.min(theirs)),
        (own, theirs) => own.or(theirs),
    };
    // Without a rate the window controller finds one; the preset's depths are those of 100 Mbit/s.
    let mut session = SessionConfig::gateway(rate.unwrap_or(BitRate::from_mbps(100)));
    if rate.is_none() {
        session.controller = Controller::NewReno;
        session.max_rate = None;
    }
    let datagram = config.max_datagram().min(limits.max_datagram as usize).max(512);
    session.max_segment = datagram - OVERHEAD;
    session.packet_overhead = config.ip_overhead + OVERHEAD + config.link_overhead;
    session.keep_alive = config.keep_alive;
    session.no_response = Some(config.no_response);
    session.initial_round_trip = config.initial_round_trip;
    session
}

impl Upper for Streams {
    fn has_fresh(&self) -> bool {
        Self::has_fresh(self)
    }

    fn fresh(&mut self, _number: Seq24, room: &mut [u8]) -> Option<Filled> {
        let (len, handle) = Self::fresh(self, room)?;
        Some(Filled { len, handle })
    }

    fn again(&mut self, _number: Seq24, handle: u64, room: &mut [u8]) -> usize {
        Self::again(self, handle, room)
    }

    fn released(&mut self, _number: Seq24, handle: u64) {
        Self::released(self, handle);
    }

    fn deliver(&mut self, _number: Seq24, payload: &[u8]) {
        Self::deliver(self, payload);
    }

    fn note(&mut self, room: &mut [u8]) -> usize {
        Self::note(self, room)
    }

    fn noted(&mut self, note: &[u8]) {
        Self::noted(self, note);
    }
}
