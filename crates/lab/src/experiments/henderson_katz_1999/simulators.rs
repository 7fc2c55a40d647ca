//! One file over figure 2's satellite by the senders of RFC 6675 and RFC 6582, for which other
//! simulators have results (`papers/henderson-katz-1999/ns-2.tcl`).

use super::super::network::{limited, transfer};
use super::super::{Draw, Point, Setting, Values};
use satlink::{DirectionConfig, Limit, LinkConfig};
use sim::scenario::files::Transports;
use simtcp::{DelayedAck, InitialWindow, RecoveryKind, RepairTimer, TcpConfig};
use units::{BitRate, Span};

/// The study of these transfers.
pub(super) const SIMULATORS: &str = "simulators";

/// Round trips in ms.
pub(super) const ROUND_TRIPS: [u64; 2] = [20, 600];
/// Shares of packets that are lost.
pub(super) const LOSSES: [f64; 2] = [0.0, 0.001];
/// Segments for each acknowledgement.
pub(super) const ACKNOWLEDGED: [u32; 2] = [1, 2];

const FILE: u64 = 10_000_000;
const PATIENCE: Span = Span::from_secs(3_000);
/// Queue limits in packets, forward and return.
const QUEUES: [u64; 2] = [50, 10_000];

/// A sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    /// RFC 6675.
    Sack,
    /// RFC 6582: the first partial acknowledgement restarts the timer.
    Impatient,
    /// RFC 6582: each partial acknowledgement restarts the timer.
    SlowButSteady,
}

impl Sender {
    pub(super) const ALL: [Self; 3] = [Self::Sack, Self::Impatient, Self::SlowButSteady];

    /// Returns the identifier, which is that of its claim as well.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sack => "sack",
            Self::Impatient => "impatient",
            Self::SlowButSteady => "slow-but-steady",
        }
    }

    /// Returns the configuration: ns-2's first window and its growth by acknowledgement.
    fn tcp(self, acknowledged: u32) -> TcpConfig {
        let repair_timer = match self {
            Self::Sack | Self::Impatient => RepairTimer::Impatient,
            Self::SlowButSteady => RepairTimer::SlowButSteady,
        };
        let (recovery, sack) = match self {
            Self::Sack => (RecoveryKind::Sack, true),
            Self::Impatient | Self::SlowButSteady => (RecoveryKind::NewReno, false),
        };
        let base = TcpConfig::new_reno();
        TcpConfig {
            recovery,
            sack,
            repair_timer,
            max_segment: 1_000,
            initial_window: InitialWindow::Segments(1),
            slow_start_limit: Some(1),
            byte_counting: false,
            delayed_ack: DelayedAck { every: acknowledged, ..DelayedAck::USUAL },
            receive_buffer: 245_000,
            send_buffer: 245_000,
            ..base
        }
    }
}

pub(super) fn key(sender: Sender, round_trip_ms: u64, loss: f64, acknowledged: u32) -> String {
    format!("{}/{round_trip_ms}/{loss}/{acknowledged}", sender.name())
}

pub(super) fn plan(setting: &Setting) -> Vec<Point> {
    let mut points = Vec::new();
    for sender in Sender::ALL {
        for round_trip in ROUND_TRIPS {
            for loss in LOSSES {
                for acknowledged in ACKNOWLEDGED {
                    let key = key(sender, round_trip, loss, acknowledged);
                    // Without losses runs are nearly equal; over 600 ms a window is a random
                    // walk, of which 10 MB are too few steps.
                    let replications = match (setting.quick, loss > 0.0, round_trip) {
                        (true, ..) => setting.replications,
                        (false, false, _) => 5,
                        (false, true, 20) => 30,
                        (false, true, _) => 150,
                    };
                    points.push(Point::new(SIMULATORS, key, replications, move |draw| {
                        Ok(carry(sender.tcp(acknowledged), round_trip, loss, draw))
                    }));
                }
            }
        }
    }
    points
}

fn carry(tcp: TcpConfig, round_trip_ms: u64, loss: f64, draw: &Draw) -> Values {
    let hop = |kbps, delay, loss| {
        let way = |queue| limited(BitRate::from_kbps(kbps), delay, Limit::Packets(queue));
        let [forward, return_] = QUEUES.map(way);
        LinkConfig {
            forward: DirectionConfig { loss, ..forward },
            return_,
            ..LinkConfig::default()
        }
    };
    let near = Span::from_millis(5);
    let far = Span::from_millis(round_trip_ms / 2) - near;
    let hops = vec![hop(10_000, near, 0.0), hop(1_300, far, loss)];
    let files = transfer(Transports::Tcp(tcp), FILE, hops, PATIENCE, draw);
    let carried = sim::scenario::files::Files { chance: Span::from_secs(1), ..files }.carry();
    let seconds = carried.took.unwrap_or(PATIENCE).as_secs_f64();
    Values::new()
        .with("kbps", carried.bytes as f64 * 8.0 / seconds / 1e3)
        .with("timeouts", carried.timeouts as f64)
        .with("recoveries", carried.recoveries as f64)
}
