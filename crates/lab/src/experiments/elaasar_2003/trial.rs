//! One transfer of the paper's file: sender, link and recorded values.

use super::conditions::Condition;
use crate::experiments::{Draw, Setting, Values};
use satlink::LinkConfig;
use sim::transfer::{Overhead, Transfer, TransferConfig, transfer};
use units::{BitRate, Span};
use xstp::congestion::Controller;
use xstp::session::{GatewayPolicy, SessionConfig};
use xstp::wire::{Delivery, Profile};

/// The sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Party {
    /// The paper's XSTP-OFF.
    Off,
    /// The paper's XSTP-ON.
    On,
    /// The gateway's controller, with the same buffers.
    Steady,
}

impl Party {
    pub(super) const ALL: [Self; 3] = [Self::Off, Self::On, Self::Steady];
    /// The paper's senders.
    pub(super) const PAPER: [Self; 2] = [Self::Off, Self::On];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Steady => "steady",
        }
    }

    /// Returns the name in figures.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Off => "XSTP-OFF",
            Self::On => "XSTP-ON",
            Self::Steady => "steady",
        }
    }

    fn session(self, setting: &Setting) -> SessionConfig {
        let paper = || {
            let mut config = SessionConfig::xstp_2003();
            if let Some(probing) = &mut config.xstp.probing {
                probing.tolerance_millionths = (setting.get("tolerance") * 1e6) as u32;
                probing.max_probes = setting.get("max_probes") as u32;
                probing.required_probes = setting.get("required_probes") as u32;
                probing.idle_threshold = Span::from_secs_f64(setting.get("idle_threshold_s"));
            }
            config.xstp.slow_start_after_idle =
                Some(Span::from_secs_f64(setting.get("idle_threshold_s")));
            config.polls_per_round_trip = setting.get("polls_per_round_trip") as u32;
            config
        };
        match self {
            Self::On => paper(),
            Self::Off => paper().with_probing(None),
            Self::Steady => steady(&SessionConfig::xstp_2003()),
        }
    }
}

/// Returns the gateway's session with the paper's payloads, buffers and in-order delivery, and
/// without a response timeout. Its segments have the 4-octet header of the sealed profile, which is
/// used within an association; [`values`] counts the published header instead.
fn steady(paper: &SessionConfig) -> SessionConfig {
    let auto = SessionConfig::gateway_auto();
    SessionConfig {
        delivery: Delivery::InOrder,
        controller: Controller::Steady,
        packet_overhead: paper.packet_overhead,
        max_segment: paper.payload_size() + SEALED_HEADER as usize,
        number_window: paper.number_window,
        receive_window: paper.receive_window,
        initial_peer_window: paper.initial_peer_window,
        send_buffer: paper.send_buffer,
        handshake_tries: paper.handshake_tries,
        no_response: None,
        // The file is too short for the duplication rules of long sessions.
        gateway: GatewayPolicy {
            duplicate_first_packets: paper.gateway.duplicate_first_packets,
            ..auto.gateway
        },
        ..auto
    }
}

/// The parameters of a transfer.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) source: SessionConfig,
    pub(super) link: LinkConfig,
    pub(super) size: u64,
}

impl Trial {
    /// Returns the transfer of the paper at a point.
    pub(super) fn new(setting: &Setting, party: Party, condition: Condition, percent: u32) -> Self {
        Self::over(setting, party, condition.link(percent))
    }

    /// Returns the transfer over another link.
    pub(super) fn over(setting: &Setting, party: Party, mut link: LinkConfig) -> Self {
        let kbps = setting.get("link_rate_kbps");
        if kbps > 0.0 {
            let rate = Some(BitRate::from_bps((kbps * 1e3) as u64));
            (link.forward.rate, link.return_.rate) = (rate, rate);
        }
        Self { source: party.session(setting), link, size: setting.get("file_bytes") as u64 }
    }

    pub(super) fn run(&self, draw: &Draw) -> Result<Values, String> {
        self.transfer(draw).map(|seen| self.values(&seen))
    }

    pub(super) fn transfer(&self, draw: &Draw) -> Result<Transfer, String> {
        transfer(&self.config(draw)).map_err(|error| error.to_string())
    }

    /// Returns the configuration for the simulator.
    pub(super) fn config(&self, draw: &Draw) -> TransferConfig {
        TransferConfig {
            source: self.source.clone(),
            sink: self.source.clone(),
            link: self.link.clone(),
            size: self.size,
            chunk: CHUNK,
            header: IPV4,
            seed: draw.seed,
            run: draw.run,
            limit: LIMIT,
        }
    }

    /// Returns the recorded values. Overheads are in percent of the file.
    pub(super) fn values(&self, seen: &Transfer) -> Values {
        // Every header counts as the published one.
        let added = match self.source.profile {
            Profile::Published(_) => 0,
            Profile::Sealed => HEADER - SEALED_HEADER,
        };
        let mut overhead = seen.overhead();
        overhead.forward_control += added * seen.source.segments_sent;
        overhead.reverse_control += added * seen.sink.segments_sent;
        values(seen, overhead)
    }
}

/// Octets per write of the application.
const CHUNK: usize = 1_000;
/// XSTP directly over IPv4.
const IPV4: usize = 20;
/// Upper bound of the duration: 10 MB in connected states of 5 s, 1 % of the time, take hours.
const LIMIT: Span = Span::from_secs(1_000_000);

/// Octets of the XSTP header as published, and in the sealed profile.
const HEADER: u64 = 16;
const SEALED_HEADER: u64 = 4;

fn values(seen: &Transfer, overhead: Overhead) -> Values {
    let probing = &seen.source.probing;
    let percent = |octets: u64| octets as f64 * 100.0 / seen.size as f64;
    let headers = HEADER * seen.source.data_sent;
    let count = |number: u64| number as f64;
    let cycles = probing.premature + probing.recovered + probing.congested + probing.slow_starts;
    let segment = seen.size as f64 / seen.source.data_sent.max(1) as f64;
    let window = seen.mean_window / segment;
    Values::new()
        .with("seconds", seen.took.as_secs_f64())
        .with("throughput_bps", seen.throughput_bps())
        .with("overhead_percent", percent(overhead.total()))
        .with("retransmission_percent", percent(overhead.retransmission))
        .with("forward_control_percent", percent(overhead.forward_control))
        .with("reverse_control_percent", percent(overhead.reverse_control))
        .with("data_headers_percent", percent(headers))
        .with("ratio_bps_per_percent", seen.throughput_bps() / percent(overhead.total()))
        .with("segments_sent_again", count(seen.source.data_retransmitted))
        .with("window_segments", window)
        .with("window_reductions", count(seen.window_reductions))
        .with("cycles", count(cycles))
        .with("cycles_premature", count(probing.premature))
        .with("cycles_recovered", count(probing.recovered))
        .with("cycles_congested", count(probing.congested))
        .with("cycles_slow_start", count(probing.slow_starts))
        .with("early_timeouts", count(probing.early_timeouts))
        .with("probes", count(probing.probes_sent))
        .with("probing_seconds", probing.time.as_secs_f64())
}
