//! The network of Mhatre and Rosenberg 2002, section VII, and its three scenarios.

use super::{Reports, RequestModel, RequestOrder, Site, Stack, Star};
use satlink::mac::mf_tdma::{Demand, MfTdmaConfig};
use satlink::mac::schedule::Free;
use simtcp::{AfterIdle, DelayedAck, Estimator, InitialWindow, RtoConfig, TcpConfig};
use units::{BitRate, Instant, Span};
use xstp::session::{SessionConfig, StpPolicy};

/// A scenario of section VII.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// A: TCP end to end, fixed assignment of the return link.
    Static,
    /// B: split TCP, demand assignment, free slots divided equally.
    Equal,
    /// C: split TCP, demand assignment, free slots divided by number of connections.
    Weighted,
    /// TCP end to end with demand assignment: tried in the paper, without published figures.
    EndToEndOnDemand,
}

impl Scenario {
    /// All, in order.
    pub const ALL: [Self; 4] = [Self::Static, Self::Equal, Self::Weighted, Self::EndToEndOnDemand];

    /// A short name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Static => "scenario 1",
            Self::Equal => "scenario 2",
            Self::Weighted => "scenario 3",
            Self::EndToEndOnDemand => "TCP on demand",
        }
    }
}

impl Star {
    /// The published network: 20 terminals, ten with five clients and ten with one; objects of 4 KB
    /// and a think time of 2 s; 100 kbit/s return, 50 Mbit/s forward, a round trip of 540 ms, for
    /// 80 s.
    ///
    /// Parameters that the paper omits are those of the simulator that it used (requests of 43
    /// bytes, segments of 536 bytes, no request while an object is outstanding), and are listed
    /// with the experiment.
    pub fn mhatre_rosenberg(scenario: Scenario) -> Self {
        Self::published_with(scenario, 20)
    }

    /// The same with `terminals` terminals; every second one has five clients.
    pub fn published_with(scenario: Scenario, terminals: usize) -> Self {
        let requests = RequestModel {
            request: 43,
            object: 4_096,
            think: Span::from_secs(2),
            order: RequestOrder::Closed,
            start: Instant::ZERO,
            first: None,
        };
        let mut mac = MfTdmaConfig::mhatre_rosenberg(terminals);
        let site = |terminal: usize| {
            let connections = if terminal.is_multiple_of(2) { 5 } else { 1 };
            Site { terminal, connections, requests }
        };
        let sites: Vec<Site> = (0..terminals).map(site).collect();
        for site in &sites {
            mac.terminals[site.terminal].contract.weight = site.connections as u32;
        }
        mac.demand = match scenario {
            Scenario::Static => Demand::None,
            Scenario::Equal | Scenario::Weighted | Scenario::EndToEndOnDemand => Demand::Absolute,
        };
        mac.free = match scenario {
            Scenario::Static | Scenario::Equal => Free::Equal,
            Scenario::Weighted => Free::ByWeight,
            Scenario::EndToEndOnDemand => Free::None,
        };
        if scenario == Scenario::EndToEndOnDemand {
            // Terminals need dedicated slots for capacity requests.
            mac.sync = Some(1);
        }
        let stack = match scenario {
            Scenario::Static | Scenario::EndToEndOnDemand => Stack::EndToEnd(published_tcp()),
            Scenario::Equal | Scenario::Weighted => {
                let (lan, satellite) = (published_tcp(), published_stp());
                Stack::Split { lan, satellite, follow_grants: false }
            }
        };
        Self {
            mac,
            random: None,
            forward: BitRate::from_mbps(50),
            outages: Vec::new(),
            caps: None,
            lan: (BitRate::from_mbps(10), Span::from_millis(1)),
            reports: Reports { shared: Some(Span::from_millis(10)), expected: 0, next: 0 },
            stack,
            sites,
            duration: Span::from_secs(80),
        }
    }
}

/// TCP as ns-2's `FullTcp`: segments of 536 bytes, each acknowledged, an initial window of two,
/// slow start after idle; and the paper's buffers of 8 KB. Nagle's algorithm is off: with it a
/// response takes four round trips and more than the published 2.25 s on an idle link.
pub fn published_tcp() -> TcpConfig {
    TcpConfig {
        max_segment: 536,
        initial_window: InitialWindow::Segments(2),
        slow_start_limit: Some(1),
        byte_counting: false,
        after_idle: AfterIdle::SlowStart,
        limited_transmit: false,
        nagle: false,
        window_scale: false,
        delayed_ack: DelayedAck::OFF,
        rto: RtoConfig {
            initial: Span::from_secs(3),
            min: Span::from_secs(1),
            max: Span::from_secs(64),
            granularity: Span::from_millis(100),
            ticks: false,
            estimator: Estimator::Rfc6298,
        },
        send_buffer: 8_192,
        receive_buffer: 8_192,
        ..TcpConfig::reno()
    }
}

/// STP of 1999 with the paper's buffers of 64 KB. The timer sends a POLL once every two round
/// trips, and below a window of ten segments the last one of each burst carries a POLL.
pub fn published_stp() -> SessionConfig {
    let stp = SessionConfig::stp_1999();
    let window = (64 << 10) / stp.payload_size() as u32;
    SessionConfig {
        send_buffer: 64 << 10,
        receive_window: window,
        initial_peer_window: window,
        stp: StpPolicy { poll_after_bytes: None, poll_when_app_limited: false, ..stp.stp },
        polls_per_round_trip: 1,
        poll_round_trips: 2,
        ..stp
    }
}
