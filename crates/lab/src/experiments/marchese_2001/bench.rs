//! Two hosts, connected by 2,048 kbit/s with a one-way delay of 250 ms.
//!
//! ```text
//!   SYN ──────▶            time and octets are counted at the sender: from the opening of
//!       ◀────── SYN-ACK    the connection to its last acknowledgement
//!   data ─────▶
//!       ◀────── last ACK
//! ```

use super::super::network::{ethernet, limited, transfer};
use super::super::{Draw, Values};
use satlink::{Limit, LinkConfig};
use sim::scenario::files::{Files, FilesReport, Transports};
use simtcp::{DelayedAck, InitialWindow, TcpConfig};
use std::sync::LazyLock;
use units::{BitRate, Instant, Span};

/// File size in octets, initial window in segments and buffer in kbytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Test {
    pub(super) bytes: u64,
    pub(super) window: u32,
    pub(super) buffer: u64,
}

/// The file sizes of the paper, in thousands and millions: "100 kbytes", "2.8 Mbytes", "11 Mbytes";
/// see [`Bench::bytes`].
pub(super) const SMALL: u64 = 100_000;
pub(super) const MEDIUM: u64 = 2_800_000;
pub(super) const LARGE: u64 = 11_000_000;

pub(super) const fn test(bytes: u64, window: u32, buffer: u64) -> Test {
    Test { bytes, window, buffer }
}

/// Returns all tests of the tables and figures, without duplicates.
pub(super) fn tests() -> Vec<Test> {
    let mut all = Vec::new();
    all.extend([1, 2, 4, 6, 8, 10].map(|window| test(SMALL, window, 64)));
    all.extend([1, 2, 4, 6].map(|window| test(MEDIUM, window, 64)));
    all.extend([128, 320, 640].map(|buffer| test(MEDIUM, 1, buffer)));
    all.extend([128, 192, 256, 320, 384, 448, 512, 640].map(|buffer| test(MEDIUM, 6, buffer)));
    all.extend([128, 192, 256, 320].map(|buffer| test(SMALL, 6, buffer)));
    all.extend([64, 128, 192, 256, 320].map(|buffer| test(LARGE, 6, buffer)));
    all.sort_unstable();
    all.dedup();
    all
}

/// Acknowledgement strategy of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acks {
    /// Every segment is acknowledged immediately.
    AtOnce,
    /// Every second segment is acknowledged, after the first `.0` segments, with a delay of up to
    /// `.1` ms.
    Second(u32, u64),
}

/// The TCP implementation of the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    /// Linux 2.2, as far as the paper describes it.
    Then,
    /// A current Linux kernel with Reno.
    Today,
}

/// Start of the measured time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Starts {
    /// The first SYN.
    AtSyn,
    /// The opening of the connection at the sender.
    Open,
}

/// Name and constructor of a loss recovery.
pub(super) type Recovery = (&'static str, fn() -> TcpConfig);

/// Parameters of the testbed: those of the paper, and those that it leaves open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bench {
    /// Name in keys.
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) kbps: u64,
    pub(super) one_way_ms: u64,
    pub(super) queue: u64,
    pub(super) acks: Acks,
    /// Receive window in percent of the buffer.
    pub(super) share: u64,
    pub(super) timestamps: bool,
    pub(super) starts: Starts,
    pub(super) system: System,
    /// Whether a kbyte of a file has 1,024 octets.
    pub(super) binary: bool,
    pub(super) flows: u32,
    pub(super) recovery: Recovery,
}

/// The parameters used here.
pub(super) const TAKEN: Bench = Bench {
    name: "taken",
    about: "as taken",
    kbps: 2_048,
    one_way_ms: 250,
    queue: 64,
    acks: Acks::Second(1, 50),
    share: 50,
    timestamps: true,
    starts: Starts::Open,
    system: System::Then,
    binary: true,
    flows: 1,
    recovery: RECOVERIES[0],
};

/// A current kernel: the simulated counterpart of the live runs.
pub(super) const TODAY: Bench = Bench {
    name: "today",
    about: "a Linux kernel of today with reno",
    system: System::Today,
    ..TAKEN
};

const fn alternative(name: &'static str, about: &'static str, bench: Bench) -> Bench {
    Bench { name, about, ..bench }
}

/// Alternatives, each with one change.
pub(super) const OTHERS: [Bench; 20] = [
    alternative(
        "at-once",
        "every segment acknowledged at once",
        Bench { acks: Acks::AtOnce, ..TAKEN },
    ),
    alternative(
        "second",
        "every second segment acknowledged, the first one delayed as well",
        Bench { acks: Acks::Second(0, 50), ..TAKEN },
    ),
    alternative(
        "after-200",
        "acknowledgements delayed by 200 ms at most",
        Bench { acks: Acks::Second(1, 200), ..TAKEN },
    ),
    alternative(
        "quick",
        "every second segment acknowledged, after the first 16",
        Bench { acks: Acks::Second(16, 50), ..TAKEN },
    ),
    alternative("syn", "time from the SYN on", Bench { starts: Starts::AtSyn, ..TAKEN }),
    alternative(
        "at-once-syn",
        "every segment acknowledged at once, time from the SYN on",
        Bench { acks: Acks::AtOnce, starts: Starts::AtSyn, ..TAKEN },
    ),
    alternative("queue-40", "a router queue of 40 packets", Bench { queue: 40, ..TAKEN }),
    alternative("queue-50", "a router queue of 50 packets", Bench { queue: 50, ..TAKEN }),
    alternative("queue-75", "a router queue of 75 packets", Bench { queue: 75, ..TAKEN }),
    alternative("queue-100", "a router queue of 100 packets", Bench { queue: 100, ..TAKEN }),
    alternative("queue-150", "a router queue of 150 packets", Bench { queue: 150, ..TAKEN }),
    alternative("queue-inf", "a router queue without end", Bench { queue: 1 << 20, ..TAKEN }),
    alternative("rate-1600", "1,600 kbit/s", Bench { kbps: 1_600, ..TAKEN }),
    alternative("rate-1700", "1,700 kbit/s", Bench { kbps: 1_700, ..TAKEN }),
    alternative("rate-1800", "1,800 kbit/s", Bench { kbps: 1_800, ..TAKEN }),
    alternative("whole", "windows as large as the buffers", Bench { share: 100, ..TAKEN }),
    alternative("plain", "no timestamps", Bench { timestamps: false, ..TAKEN }),
    alternative("way-260", "260 ms each way", Bench { one_way_ms: 260, ..TAKEN }),
    alternative("decimal", "files of 1,000-byte kbytes", Bench { binary: false, ..TAKEN }),
    TODAY,
];

/// Returns all combinations of what the paper leaves open, or contradicts in its tables: rate, queue,
/// acknowledgements, loss recovery, and the share of the buffer that is the window.
pub(super) fn grid() -> &'static [Bench] {
    static GRID: LazyLock<Vec<Bench>> = LazyLock::new(|| {
        let mut all = Vec::new();
        for kbps in [1_700, 1_800, 2_048] {
            for queue in [50, 64, 100] {
                for acks in [Acks::AtOnce, Acks::Second(1, 50)] {
                    for recovery in [RECOVERIES[0], RECOVERIES[2]] {
                        for share in [50, 100] {
                            all.push(Bench { kbps, queue, acks, recovery, share, ..TAKEN });
                        }
                    }
                }
            }
        }
        all
    });
    &GRID
}

/// Loss recovery: NewReno with SACK as in the paper, and alternatives.
pub(super) const RECOVERIES: [Recovery; 4] = [
    ("NewReno with SACK", TcpConfig::sack_new_reno),
    ("NewReno", TcpConfig::new_reno),
    ("Reno", TcpConfig::reno),
    ("SACK after RFC 6675", TcpConfig::sack),
];

/// Parallel connections of the study that section V proposes.
pub(super) const FLOWS: [u32; 4] = [1, 2, 4, 8];

impl Bench {
    pub(super) fn key(&self, test: Test) -> String {
        format!("{}/{}/{}/{}", self.name, test.bytes, test.window, test.buffer)
    }

    /// Returns the values of a combination of the grid, in words.
    pub(super) fn combination(&self) -> [String; 5] {
        let acks = if self.acks == Acks::AtOnce { "each" } else { "every second" };
        let (rate, queue) = (self.kbps.to_string(), self.queue.to_string());
        let share = format!("{} %", self.share);
        [rate, queue, acks.to_owned(), self.recovery.0.to_owned(), share]
    }

    /// Returns the file size of a test in octets.
    pub(super) fn bytes(&self, test: Test) -> u64 {
        match (self.binary, test.bytes) {
            (false, bytes) => bytes,
            (true, bytes @ ..1_000_000) => bytes / 1_000 * 1_024,
            (true, bytes) => bytes / 100_000 * (1 << 20) / 10,
        }
    }

    fn tcp(&self, test: Test) -> TcpConfig {
        let sockets = TcpConfig {
            initial_window: InitialWindow::Segments(test.window),
            send_buffer: test.buffer * 1_024,
            receive_buffer: test.buffer * 1_024 * self.share / 100,
            ..match self.system {
                System::Then => (self.recovery.1)(),
                System::Today => TcpConfig::linux_reno(),
            }
        };
        match self.system {
            System::Then => self.of_1999(&sockets),
            System::Today => sockets,
        }
    }

    fn of_1999(&self, tcp: &TcpConfig) -> TcpConfig {
        let delayed_ack = match self.acks {
            Acks::AtOnce => DelayedAck::OFF,
            Acks::Second(at_once, after) => DelayedAck {
                every: 2,
                after: Span::from_millis(after),
                at_once,
                ticks: false,
                with_answers: false,
            },
        };
        TcpConfig {
            slow_start_limit: Some(1),
            byte_counting: false,
            limited_transmit: false,
            // Linux 2.2 has a clock of 100 Hz.
            timestamps: self.timestamps.then_some(Span::from_millis(10)),
            delayed_ack,
            ..tcp.clone()
        }
    }

    /// Returns the link between the hosts.
    pub(super) fn link(&self) -> LinkConfig {
        let (rate, limit) = (BitRate::from_kbps(self.kbps), Limit::Packets(self.queue));
        LinkConfig::symmetric(limited(rate, self.one_way(), limit))
    }

    fn one_way(&self) -> Span {
        Span::from_millis(self.one_way_ms)
    }

    fn files(&self, test: Test, draw: &Draw) -> Files {
        let (carriage, hops) = (Transports::Tcp(self.tcp(test)), vec![self.link()]);
        Files {
            flows: self.flows,
            access: ethernet(BitRate::from_mbps(10)),
            ..transfer(carriage, self.bytes(test), hops, Span::from_secs(400), draw)
        }
    }

    /// Runs one transfer; returns its duration and the amount of data over time.
    pub(super) fn run(&self, test: Test, draw: &Draw) -> Values {
        let carried = self.files(test, draw).carry();
        let took = carried.took.unwrap_or(Span::from_secs(400));
        // The sender receives the last acknowledgement half a round trip after the last octet
        // arrives, and its connection is open one round trip after the SYN.
        let seconds = match self.starts {
            Starts::AtSyn => took + self.one_way(),
            Starts::Open => took.saturating_sub(self.one_way()),
        };
        Values::new()
            .with("seconds", seconds.as_secs_f64())
            .with_series("kbytes_per_s", self.averages(&carried, seconds))
            .with("overflowed", carried.overflowed[0] as f64)
            .with("timeouts", carried.timeouts as f64)
    }

    /// Returns the average throughput from the start to each of [`SECONDS`] in kbyte/s; zero after
    /// the end.
    fn averages(&self, carried: &FilesReport, over: Span) -> Vec<f64> {
        let average = |seconds: u64| {
            let at = carried.began + Span::from_secs(seconds);
            let bytes = carried.bytes_by(match self.starts {
                Starts::AtSyn => {
                    Instant::ZERO + at.since(Instant::ZERO).saturating_sub(self.one_way())
                }
                Starts::Open => at + self.one_way(),
            });
            let ended = Span::from_secs(seconds) > over;
            if ended { 0.0 } else { bytes as f64 / seconds as f64 / 1e3 }
        };
        SECONDS.into_iter().map(average).collect()
    }

    /// Runs several parallel transfers of 2.8 Mbytes with a window of 6 and 320 kbytes.
    pub(super) fn several(&self, draw: &Draw) -> Values {
        let files = self.files(test(MEDIUM, 6, 320), draw);
        let carried = Files { chance: Span::from_secs(1), ..files }.carry();
        let took = carried.took.unwrap_or(Span::from_secs(400)).as_secs_f64();
        let bits = 8.0 * carried.bytes as f64;
        Values::new()
            .with("kbps", bits / took / 1e3)
            .with("overflowed", carried.overflowed[0] as f64)
            .with("timeouts", carried.timeouts as f64)
    }
}

/// Sampling times of the figures in seconds.
pub(super) const SECONDS: [u64; 13] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24];
