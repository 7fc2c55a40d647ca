//! Annex 3, section 3: one TCP over 155 Mbit/s of ATM and 540 ms, alone and behind a faster
//! network.

use super::super::{Draw, Values};
use satlink::{DirectionConfig, Framing, Limit, LinkConfig, QueueConfig};
use sim::scenario::files::{Files, Transports};
use simtcp::{DelayedAck, InitialWindow, TcpConfig};
use units::{BitRate, Span};

/// A measurement or simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trial {
    /// Hosts on ATM, sockets of so many kbytes, over 540 ms or 1.
    Atm { socket: u64, satellite: bool },
    /// Behind 500 Mbit/s: a window and a router's queue in packets, as simulated there.
    Gigabit { window: u64, queue: u64 },
    /// A file of 92.1 Mbytes between memories, sockets of so many kbytes: FTP without its disks.
    File { socket: u64 },
}

/// Kbytes of sockets, figure 30.
pub(super) const SOCKETS: [u64; 6] = [64, 1_000, 2_000, 4_000, 6_000, 8_000];
/// Kbytes of sockets, figure 46.
pub(super) const FTP_SOCKETS: [u64; 5] = [64, 256, 1_000, 2_000, 4_000];
/// Bytes of its file.
const FILE: u64 = 92_100_000;
/// Packets of windows, figure 34.
pub(super) const WINDOWS: [u64; 5] = [1_000, 3_000, 4_500, 6_374, 9_000];
/// The window that fills the line.
pub(super) const FULL: u64 = 6_374;
/// Queues of the router, packets: what routers had, half of the window, and without end.
pub(super) const QUEUES: [u64; 4] = [100, 1_000, 3_187, ENDLESS];
/// A queue that never overflows.
pub(super) const ENDLESS: u64 = 1 << 20;

/// Bytes of data in a packet there.
const PACKET: u64 = 1_430;
/// What these computers can carry: section 5.2 had 118.32 Mbit/s without the satellite, in
/// segments of 9,100 bytes with 40 of headers.
const COMPUTERS: f64 = 118.32e6 * 9_140.0 / 9_100.0;

impl Trial {
    /// The name of a point.
    pub(super) fn key(&self) -> String {
        match self {
            Self::Atm { socket, satellite } => {
                format!("ATM/{socket} kbytes/{}", if *satellite { "540 ms" } else { "1 ms" })
            }
            Self::Gigabit { window, queue } => format!("gigabit/{window} packets/queue {queue}"),
            Self::File { socket } => format!("file/{socket} kbytes"),
        }
    }

    fn tcp(&self) -> TcpConfig {
        let (max_segment, window, delayed_ack) = match self {
            // Linux doubles what is asked for, and gives three quarters of it to the window.
            Self::Atm { socket, .. } => (9_100, socket * 1_500, DelayedAck::USUAL),
            // Its client is on Ethernet.
            Self::File { socket } => (1_460, socket * 1_500, DelayedAck::USUAL),
            // ns-2's sink acknowledges each packet.
            Self::Gigabit { window, .. } => (PACKET as u16, window * PACKET, DelayedAck::OFF),
        };
        TcpConfig {
            max_segment,
            initial_window: InitialWindow::Segments(2),
            send_buffer: 2 * window,
            receive_buffer: window,
            delayed_ack,
            ..TcpConfig::sack()
        }
    }

    fn line(&self) -> DirectionConfig {
        let base = DirectionConfig::default();
        let satellite = match self {
            Self::Atm { satellite, .. } => *satellite,
            Self::Gigabit { .. } | Self::File { .. } => true,
        };
        match self {
            Self::Atm { .. } | Self::File { .. } => DirectionConfig {
                // The cell rate of STM-1.
                rate: Some(BitRate::from_kbps(149_760)),
                framing: Framing::Aal5,
                delay: if satellite { Span::from_millis(270) } else { Span::from_micros(500) },
                ..base
            },
            Self::Gigabit { queue, .. } => DirectionConfig {
                rate: Some(BitRate::from_mbps(135)),
                delay: Span::from_millis(270),
                queue: QueueConfig { limit: Limit::Packets(*queue), ..QueueConfig::default() },
                ..base
            },
        }
    }

    /// Sends for 20 s and counts the second half; a file to its end.
    pub(super) fn run(&self, draw: &Draw) -> Values {
        let plenty = QueueConfig { limit: Limit::Packets(ENDLESS), ..QueueConfig::default() };
        let access = LinkConfig::symmetric(DirectionConfig {
            rate: Some(match self {
                Self::Atm { .. } | Self::File { .. } => BitRate::from_bps(COMPUTERS as u64),
                Self::Gigabit { .. } => BitRate::from_mbps(500),
            }),
            queue: plenty,
            ..DirectionConfig::default()
        });
        let (bytes, until) = match self {
            Self::Atm { .. } | Self::Gigabit { .. } => (u64::MAX, Span::from_secs(20)),
            Self::File { .. } => (FILE, Span::from_secs(1_200)),
        };
        let files = Files {
            carriage: Transports::Tcp(self.tcp()),
            flows: 1,
            bytes,
            access,
            hops: vec![LinkConfig::symmetric(self.line())],
            gateway: 0,
            beside: None,
            background_bps: 0.0,
            constant: None,
            stagger: Span::ZERO,
            chance: Span::ZERO,
            until,
            seed: draw.seed,
            run: draw.run,
        };
        let carried = files.carry();
        let mbps = match (self, carried.took) {
            (Self::File { .. }, took) => FILE as f64 * 8.0 / took.unwrap_or(until).as_secs_f64(),
            (Self::Atm { .. } | Self::Gigabit { .. }, _) => carried.rate_after(until / 2),
        };
        Values::new()
            .with("mbps", mbps / 1e6)
            .with("queue", carried.fullest[0].packets as f64)
            .with("overflowed", carried.overflowed[0] as f64)
    }
}

/// All of them.
pub(super) fn trials() -> Vec<Trial> {
    let mut all = Vec::new();
    for socket in SOCKETS {
        all.extend([true, false].map(|satellite| Trial::Atm { socket, satellite }));
    }
    all.extend(QUEUES.map(|queue| Trial::Gigabit { window: FULL, queue }));
    let others = WINDOWS.into_iter().filter(|&window| window != FULL);
    all.extend(others.map(|window| Trial::Gigabit { window, queue: ENDLESS }));
    all.extend(FTP_SOCKETS.map(|socket| Trial::File { socket }));
    all
}
