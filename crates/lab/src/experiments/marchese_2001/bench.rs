//! Two hosts, and 2,048 kbit/s and 250 ms each way between them.

use super::super::{Draw, Values};
use satlink::{DirectionConfig, Limit, LinkConfig, QueueConfig};
use sim::scenario::files::{Carriage, Carried, Files};
use simtcp::{DelayedAck, InitialWindow, TcpConfig};
use units::{BitRate, Span};

/// Bytes of a file, the initial window in segments, and the buffer in kbytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Test {
    pub(super) bytes: u64,
    pub(super) window: u32,
    pub(super) buffer: u64,
}

/// The three sizes of the paper: "100 kbytes", "2.8 Mbytes", "11 Mbytes".
pub(super) const SMALL: u64 = 100_000;
pub(super) const MEDIUM: u64 = 2_800_000;
pub(super) const LARGE: u64 = 11_000_000;

/// A test.
pub(super) const fn test(bytes: u64, window: u32, buffer: u64) -> Test {
    Test { bytes, window, buffer }
}

/// All tests of the tables and figures, each once.
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

/// How acknowledgements are delayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acks {
    /// Not at all.
    AtOnce,
    /// Every second segment after the first sixteen.
    Quick,
    /// Every second segment.
    Second,
}

/// A way to repair losses, by name.
pub(super) type Recovery = (&'static str, fn() -> TcpConfig);

/// The bench: what the paper gives, and what it leaves open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bench {
    /// For keys.
    pub(super) name: &'static str,
    /// What it is.
    pub(super) about: &'static str,
    pub(super) kbps: u64,
    pub(super) one_way_ms: u64,
    pub(super) queue: u64,
    pub(super) acks: Acks,
    /// Percent of a buffer that the window is.
    pub(super) share: u64,
    pub(super) timestamps: bool,
    pub(super) flows: u32,
    pub(super) recovery: Recovery,
}

/// What is taken.
pub(super) const TAKEN: Bench = Bench {
    name: "taken",
    about: "as taken",
    kbps: 2_048,
    one_way_ms: 250,
    queue: 100,
    acks: Acks::AtOnce,
    share: 50,
    timestamps: true,
    flows: 1,
    recovery: RECOVERIES[0],
};

/// One change at a time.
pub(super) const OTHERS: [Bench; 14] = [
    Bench {
        name: "quick",
        about: "every second segment acknowledged, after the first 16",
        acks: Acks::Quick,
        ..TAKEN
    },
    Bench {
        name: "second",
        about: "every second segment acknowledged",
        acks: Acks::Second,
        ..TAKEN
    },
    Bench { name: "queue-40", about: "a router queue of 40 packets", queue: 40, ..TAKEN },
    Bench { name: "queue-50", about: "a router queue of 50 packets", queue: 50, ..TAKEN },
    Bench { name: "queue-75", about: "a router queue of 75 packets", queue: 75, ..TAKEN },
    Bench { name: "queue-150", about: "a router queue of 150 packets", queue: 150, ..TAKEN },
    Bench { name: "queue-inf", about: "a router queue without end", queue: 1 << 20, ..TAKEN },
    Bench { name: "rate-1500", about: "1,500 kbit/s", kbps: 1_500, ..TAKEN },
    Bench { name: "rate-1600", about: "1,600 kbit/s", kbps: 1_600, ..TAKEN },
    Bench { name: "rate-1700", about: "1,700 kbit/s", kbps: 1_700, ..TAKEN },
    Bench { name: "rate-1800", about: "1,800 kbit/s", kbps: 1_800, ..TAKEN },
    Bench { name: "whole", about: "windows as large as the buffers", share: 100, ..TAKEN },
    Bench { name: "plain", about: "no timestamps", timestamps: false, ..TAKEN },
    Bench { name: "way-270", about: "270 ms each way", one_way_ms: 270, ..TAKEN },
];

/// How losses are repaired: NewReno with SACK as the paper has it, and others.
pub(super) const RECOVERIES: [Recovery; 4] = [
    ("NewReno with SACK", TcpConfig::sack_new_reno),
    ("NewReno", TcpConfig::new_reno),
    ("Reno", TcpConfig::reno),
    ("SACK after RFC 6675", TcpConfig::sack),
];

/// Connections at once, in what section V leaves for later.
pub(super) const FLOWS: [u32; 4] = [1, 2, 4, 8];

impl Bench {
    /// The name of a point.
    pub(super) fn key(&self, test: Test) -> String {
        format!("{}/{}/{}/{}", self.name, test.bytes, test.window, test.buffer)
    }

    fn tcp(&self, test: Test) -> TcpConfig {
        let delayed_ack = match self.acks {
            Acks::AtOnce => DelayedAck::OFF,
            Acks::Quick => DelayedAck { at_once: 16, ..DelayedAck::USUAL },
            Acks::Second => DelayedAck::USUAL,
        };
        TcpConfig {
            initial_window: InitialWindow::Segments(test.window),
            slow_start_limit: Some(1),
            byte_counting: false,
            limited_transmit: false,
            // Linux 2.2 counts in hundredths of a second.
            timestamps: self.timestamps.then_some(Span::from_millis(10)),
            delayed_ack,
            send_buffer: test.buffer * 1_024,
            receive_buffer: test.buffer * 1_024 * self.share / 100,
            ..(self.recovery.1)()
        }
    }

    fn files(&self, test: Test, draw: &Draw) -> Files {
        let way = |queue| {
            LinkConfig::symmetric(DirectionConfig {
                rate: Some(BitRate::from_kbps(self.kbps)),
                delay: Span::from_millis(self.one_way_ms),
                queue: QueueConfig { limit: Limit::Packets(queue), ..QueueConfig::default() },
                ..DirectionConfig::default()
            })
        };
        let ethernet = LinkConfig::symmetric(DirectionConfig {
            rate: Some(BitRate::from_mbps(10)),
            ..DirectionConfig::default()
        });
        Files {
            carriage: Carriage::Tcp(self.tcp(test)),
            flows: self.flows,
            bytes: test.bytes,
            access: ethernet,
            hops: vec![way(self.queue)],
            gateway: 0,
            beside: None,
            background_bps: 0.0,
            constant: None,
            stagger: Span::ZERO,
            chance: Span::ZERO,
            until: Span::from_secs(400),
            seed: draw.seed,
            run: draw.run,
        }
    }

    /// One transfer: how long it takes, and how much there is when.
    pub(super) fn run(&self, test: Test, draw: &Draw) -> Values {
        let carried = self.files(test, draw).carry();
        let took = carried.took.unwrap_or(Span::from_secs(400)).as_secs_f64();
        // The sender is told half a round trip later.
        let seconds = took + self.one_way_ms as f64 / 1e3;
        Values::new()
            .with("seconds", seconds)
            .with_series("kbytes_per_s", averages(&carried))
            .with("overflowed", carried.overflowed[0] as f64)
            .with("timeouts", carried.timeouts as f64)
    }

    /// Several transfers of 2.8 Mbytes at once, each of a window of 6 and 320 kbytes.
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

/// Seconds of the figures.
pub(super) const SECONDS: [u64; 13] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24];

/// Bytes so far over time so far, kbyte/s, at these seconds; zero when the file is over.
fn averages(carried: &Carried) -> Vec<f64> {
    let over = carried.took.map_or(f64::INFINITY, Span::as_secs_f64);
    let average = |seconds: u64| {
        let at = carried.began + Span::from_secs(seconds);
        let bytes = carried.bytes_by(at);
        if (seconds as f64) > over { 0.0 } else { bytes as f64 / seconds as f64 / 1e3 }
    };
    SECONDS.into_iter().map(average).collect()
}
