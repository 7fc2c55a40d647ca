//! Annex 3, section 3: one TCP connection over 155 Mbit/s ATM and 540 ms, alone and behind a faster
//! network.

use super::super::network::{direction, limited, transfer};
use super::super::{Draw, Values};
use satlink::{DirectionConfig, Framing, Limit, LinkConfig};
use sim::scenario::files::{Files, FilesReport, Transports};
use simtcp::{DelayedAck, InitialWindow, TcpConfig};
use units::{BitRate, Instant, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trial {
    /// Hosts on ATM with sockets of `socket` kbytes, with a round trip of 540 ms or 1 ms.
    Atm { socket: u64, satellite: bool },
    /// Hosts on 500 Mbit/s: window and router queue in packets, as simulated there.
    Gigabit { window: u64, queue: u64 },
    /// The full window with a recovery of [`RECOVERIES`], for the minute that figure 31 shows.
    Recovery { recovery: usize, queue: u64 },
    /// A file of 92.1 Mbytes between memories with sockets of `socket` kbytes: FTP without disks.
    File { socket: u64 },
}

/// Socket buffers of figure 30 in kbytes.
pub(super) const SOCKETS: [u64; 6] = [64, 1_000, 2_000, 4_000, 6_000, 8_000];
/// Socket buffers of figure 46 in kbytes.
pub(super) const FTP_SOCKETS: [u64; 5] = [64, 256, 1_000, 2_000, 4_000];
/// File size of figure 46 in octets.
const FILE: u64 = 92_100_000;
/// Windows of figure 34 in packets.
pub(super) const WINDOWS: [u64; 5] = [1_000, 3_000, 4_500, 6_374, 9_000];
/// The window that fills the link.
pub(super) const FULL: u64 = 6_374;
/// Router queues in packets: as in routers of the time, half of the window, and unlimited.
pub(super) const QUEUES: [u64; 4] = [100, 1_000, 3_187, ENDLESS];
/// Name and constructor of a TCP.
type Recovery = (&'static str, fn() -> TcpConfig);
/// Recoveries of the grid.
pub(super) const RECOVERIES: [Recovery; 4] = [
    ("SACK, RFC 6675", TcpConfig::sack),
    ("SACK-Reno", TcpConfig::sack_reno),
    ("NewReno", TcpConfig::new_reno),
    ("Reno", TcpConfig::reno),
];
/// The recovery of [`RECOVERIES`] that is nearest to the published 2 to 3 Mbit/s with a queue of 100.
pub(super) const TAKEN: usize = 2;
/// Router queues of the grid in packets.
pub(super) const GRID: [u64; 3] = [50, 100, 300];
/// Resolution of the longest pause.
const STEP: Span = Span::from_millis(100);

/// An unlimited queue in packets.
pub(super) const ENDLESS: u64 = 1 << 20;

/// Octets of data in a packet of the simulation.
const PACKET: u64 = 1_430;
/// Rate limit of the hosts: section 5.2 reached 118.32 Mbit/s without the satellite, in segments of
/// 9,100 octets with 40 of headers.
const COMPUTERS: f64 = 118.32e6 * 9_140.0 / 9_100.0;

impl Trial {
    pub(super) fn key(&self) -> String {
        match self {
            Self::Atm { socket, satellite } => {
                format!("ATM/{socket} kbytes/{}", if *satellite { "540 ms" } else { "1 ms" })
            }
            Self::Gigabit { window, queue } => format!("gigabit/{window} packets/queue {queue}"),
            Self::Recovery { recovery, queue } => {
                format!("{}/queue {queue}", RECOVERIES[*recovery].0)
            }
            Self::File { socket } => format!("file/{socket} kbytes"),
        }
    }

    fn tcp(&self) -> TcpConfig {
        let (max_segment, window, delayed_ack) = match self {
            // Linux doubles the requested buffer and uses three quarters of it as window.
            Self::Atm { socket, .. } => (9_100, socket * 1_500, DelayedAck::USUAL),
            // The client of this test is on Ethernet.
            Self::File { socket } => (1_460, socket * 1_500, DelayedAck::USUAL),
            // The sink of ns-2 acknowledges each packet.
            Self::Gigabit { window, .. } => (PACKET as u16, window * PACKET, DelayedAck::OFF),
            Self::Recovery { .. } => (PACKET as u16, FULL * PACKET, DelayedAck::USUAL),
        };
        let base = match self {
            Self::Recovery { recovery, .. } => RECOVERIES[*recovery].1(),
            Self::Atm { .. } | Self::Gigabit { .. } | Self::File { .. } => TcpConfig::sack(),
        };
        TcpConfig {
            max_segment,
            initial_window: InitialWindow::Segments(2),
            send_buffer: 2 * window,
            receive_buffer: window,
            delayed_ack,
            ..base
        }
    }

    fn line(&self) -> DirectionConfig {
        let delay = match self {
            Self::Atm { satellite: false, .. } => Span::from_micros(500),
            Self::Atm { .. } | Self::Gigabit { .. } | Self::Recovery { .. } | Self::File { .. } => {
                Span::from_millis(270)
            }
        };
        match self {
            // The cell rate of STM-1.
            Self::Atm { .. } | Self::File { .. } => DirectionConfig {
                framing: Framing::Aal5,
                ..direction(BitRate::from_kbps(149_760), delay)
            },
            Self::Gigabit { queue, .. } | Self::Recovery { queue, .. } => {
                limited(BitRate::from_mbps(135), delay, Limit::Packets(*queue))
            }
        }
    }

    /// Sends for 20 s and measures the second half; a file is sent to its end.
    pub(super) fn run(&self, draw: &Draw) -> Values {
        let rate = match self {
            Self::Atm { .. } | Self::File { .. } => BitRate::from_bps(COMPUTERS as u64),
            Self::Gigabit { .. } | Self::Recovery { .. } => BitRate::from_mbps(500),
        };
        let access = LinkConfig::symmetric(limited(rate, Span::ZERO, Limit::Packets(ENDLESS)));
        let (bytes, until) = match self {
            Self::Atm { .. } | Self::Gigabit { .. } => (u64::MAX, Span::from_secs(20)),
            Self::Recovery { .. } => (u64::MAX, Span::from_secs(60)),
            Self::File { .. } => (FILE, Span::from_secs(1_200)),
        };
        let hops = vec![LinkConfig::symmetric(self.line())];
        let files = transfer(Transports::Tcp(self.tcp()), bytes, hops, until, draw);
        let carried = Files { access, ..files }.carry();
        let mbps = match (self, carried.took) {
            (Self::File { .. }, took) => FILE as f64 * 8.0 / took.unwrap_or(until).as_secs_f64(),
            (Self::Recovery { .. }, _) => carried.bytes as f64 * 8.0 / until.as_secs_f64(),
            (Self::Atm { .. } | Self::Gigabit { .. }, _) => carried.rate_after(until / 2),
        };
        Values::new()
            .with("mbps", mbps / 1e6)
            .with("queue", carried.fullest[0].packets as f64)
            .with("overflowed", carried.overflowed[0] as f64)
            .with("timeouts", carried.timeouts as f64)
            .with("pause_s", longest_pause(&carried).as_secs_f64())
    }
}

/// Returns the longest time without arrivals at the sink, in steps of [`STEP`].
fn longest_pause(carried: &FilesReport) -> Span {
    let (mut longest, mut pause) = (0, 0);
    let mut at = Instant::ZERO;
    while at < carried.ended {
        let came: u64 = carried.arrived.iter().map(|one| one.between(at, at + STEP).bytes).sum();
        pause = if came == 0 { pause + 1 } else { 0 };
        longest = longest.max(pause);
        at += STEP;
    }
    STEP * longest
}

pub(super) fn trials() -> Vec<Trial> {
    let mut all = Vec::new();
    for socket in SOCKETS {
        all.extend([true, false].map(|satellite| Trial::Atm { socket, satellite }));
    }
    all.extend(QUEUES.map(|queue| Trial::Gigabit { window: FULL, queue }));
    let others = WINDOWS.into_iter().filter(|&window| window != FULL);
    all.extend(others.map(|window| Trial::Gigabit { window, queue: ENDLESS }));
    for queue in GRID {
        all.extend((0..RECOVERIES.len()).map(|recovery| Trial::Recovery { recovery, queue }));
    }
    all.extend(FTP_SOCKETS.map(|socket| Trial::File { socket }));
    all
}
