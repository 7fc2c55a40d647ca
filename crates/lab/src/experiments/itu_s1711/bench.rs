//! The measurements of annex 3: files over a satellite, with gateways and without.
//!
//! ```text
//!   two segments    hosts ─ gateway ── satellite ── host
//!   three segments  hosts ─ (Internet) ─ gateway ── satellite ── gateway ─ host
//! ```

use super::super::{Draw, Values};
use satlink::{DirectionConfig, GilbertElliott, Limit, LinkConfig, QueueConfig};
use sim::scenario::files::{Carriage, Files};
use simtcp::{InitialWindow, TcpConfig};
use units::{BitRate, Span};
use xstp::congestion::Controller;
use xstp::session::SessionConfig;

/// Who carries the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// TCP from end to end.
    Plain,
    /// A gateway before the satellite, TCP with a large window behind it.
    Two,
    /// Gateways on both sides, XSTP at the satellite's rate between them.
    Three,
}

impl Way {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "no gateway",
            Self::Two => "two segments",
            Self::Three => "three segments",
        }
    }
}

/// What the satellite does to bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Errors {
    /// Each bit is in error with this probability.
    Ratio(f64),
    /// As many bits in error, in bursts of so many packets on average that are all lost.
    Bursts(f64, u32),
    /// This share of packets lost in the Internet instead.
    Internet(f64),
}

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trial {
    pub(super) way: Way,
    pub(super) flows: u32,
    pub(super) kbps: u64,
    pub(super) round_trip_ms: u64,
    pub(super) errors: Errors,
    /// Bytes of the hosts' windows.
    pub(super) window: u64,
    /// Kbit/s that each host has; none: as many as it likes.
    pub(super) each_kbps: Option<u64>,
    pub(super) seconds: u64,
    /// UDP at this rate beside them.
    pub(super) udp_kbps: Option<u64>,
}

/// Windows of hosts: 8 kbytes, which Windows NT, 95 and 98 as well as Solaris round up to whole
/// segments (its registry's default is 8,760 on Ethernet; `MSS_ROUNDUP` in Solaris's `tcp.c`);
/// Windows 2000; FreeBSD 4 and others.
pub(super) const SMALL: u64 = 8_760;
pub(super) const WINDOWS_2000: u64 = 17_520;
pub(super) const UNIX: u64 = 32_768;
/// Bytes of data in a segment.
const SEGMENT: u64 = 1_460;
/// The round trip of the Internet's part in test 3.
const INTERNET: Span = Span::from_millis(200);

impl Trial {
    /// One connection without limits.
    pub(super) const fn one(way: Way, kbps: u64, round_trip_ms: u64) -> Self {
        Self {
            way,
            flows: 1,
            kbps,
            round_trip_ms,
            errors: Errors::Ratio(0.0),
            window: SMALL,
            each_kbps: None,
            // Half a minute of the fastest is as many packets as the slowest have in hours.
            seconds: if kbps > 2_048 { 20 } else { 60 },
            udp_kbps: None,
        }
    }

    /// The name of a point.
    pub(super) fn key(&self) -> String {
        let Self { flows, kbps, round_trip_ms, window, seconds, .. } = self;
        let errors = match self.errors {
            Errors::Ratio(ratio) => format!("{ratio:e}"),
            Errors::Bursts(ratio, packets) => format!("{ratio:e} in bursts of {packets}"),
            Errors::Internet(share) => format!("{share} in the Internet"),
        };
        let each = self.each_kbps.map_or(String::new(), |each| format!("/{each} each"));
        let way = self.way.name();
        let udp = self.udp_kbps.map_or(String::new(), |udp| format!("/UDP {udp}"));
        format!(
            "{way}/{flows}/{kbps} kbit/s/{round_trip_ms} ms/{errors}/{window}{each}/{seconds} s{udp}"
        )
    }

    fn host(&self) -> TcpConfig {
        TcpConfig {
            window_scale: self.window > 65_535,
            receive_buffer: self.window,
            // A sender must not be what limits it.
            send_buffer: (2 * self.window).max(65_536),
            initial_window: InitialWindow::Segments(2),
            ..TcpConfig::sack()
        }
    }

    fn carriage(&self) -> Carriage {
        let host = self.host();
        // A gateway takes what hosts send at once.
        let at_gateway = TcpConfig { receive_buffer: 1 << 18, window_scale: true, ..host.clone() };
        let near = TcpConfig { receive_buffer: self.window, ..at_gateway };
        let rate = BitRate::from_kbps(self.kbps);
        let product = rate.bytes_in(Span::from_millis(self.round_trip_ms)).max(65_536);
        let wide = TcpConfig {
            window_scale: true,
            send_buffer: 2 * product,
            receive_buffer: 2 * product,
            ..TcpConfig::sack()
        };
        match self.way {
            Way::Plain => Carriage::Tcp(host),
            Way::Two => Carriage::SplitTcp(wide.clone(), wide),
            Way::Three => {
                Carriage::ThreeSegments(near.clone(), space(self.kbps, self.flows, product), near)
            }
        }
    }

    fn satellite(&self) -> LinkConfig {
        let (ratio, gilbert) = match self.errors {
            Errors::Ratio(ratio) => (ratio, None),
            Errors::Bursts(ratio, packets) => (0.0, Some(bursts(ratio, packets))),
            Errors::Internet(_) => (0.0, None),
        };
        let rest = match self.errors {
            Errors::Internet(_) => INTERNET,
            Errors::Ratio(_) | Errors::Bursts(..) => Span::ZERO,
        };
        LinkConfig::symmetric(DirectionConfig {
            rate: Some(BitRate::from_kbps(self.kbps)),
            delay: (Span::from_millis(self.round_trip_ms) - rest) / 2,
            bit_error_ratio: ratio,
            gilbert,
            queue: QueueConfig { limit: Limit::BandwidthDelay(1.0), ..QueueConfig::default() },
            ..DirectionConfig::default()
        })
    }

    fn hops(&self) -> (Vec<LinkConfig>, usize) {
        let satellite = self.satellite();
        match (self.way, self.errors) {
            (_, Errors::Internet(loss)) => {
                let internet = LinkConfig::symmetric(DirectionConfig {
                    rate: Some(BitRate::from_mbps(100)),
                    delay: INTERNET / 2,
                    loss,
                    ..DirectionConfig::default()
                });
                (vec![internet, satellite, LinkConfig::default()], 1)
            }
            (Way::Plain | Way::Two | Way::Three, Errors::Ratio(_) | Errors::Bursts(..)) => {
                (vec![satellite, LinkConfig::default()], 0)
            }
        }
    }

    /// Sends for a while and counts what comes after a fifth of the time.
    pub(super) fn run(&self, draw: &Draw) -> Values {
        let (hops, gateway) = self.hops();
        let access = BitRate::from_kbps(self.each_kbps.unwrap_or(100_000));
        let until = Span::from_secs(self.seconds);
        let files = Files {
            carriage: self.carriage(),
            flows: self.flows,
            bytes: u64::MAX,
            access: LinkConfig::symmetric(DirectionConfig {
                rate: Some(access),
                ..DirectionConfig::default()
            }),
            hops,
            gateway,
            beside: None,
            background_bps: 0.0,
            constant: self.udp_kbps.map(BitRate::from_kbps),
            stagger: Span::from_millis(10).min(Span::from_secs(1) / u64::from(self.flows)),
            chance: Span::from_millis(50),
            until,
            seed: draw.seed,
            run: draw.run,
        };
        let settled = until / 5;
        let carried = files.carry();
        let udp = carried.constant as f64 * 8.0 * 1_470.0 / 1_498.0 / until.as_secs_f64();
        Values::new().with("kbps", carried.rate_after(settled) / 1e3).with("udp_kbps", udp / 1e3)
    }
}

/// XSTP between gateways that are told the rate; connections share it evenly.
pub(super) fn space(kbps: u64, flows: u32, product: u64) -> SessionConfig {
    let base = SessionConfig::stp_1999();
    let share = kbps * 97 / 100 / u64::from(flows);
    let window = (3 * product / SEGMENT / u64::from(flows)).clamp(128, 16_384) as u32;
    SessionConfig {
        controller: Controller::Fixed,
        max_rate: Some(BitRate::from_kbps(share)),
        number_window: 4 * window,
        receive_window: window,
        assumed_window: window,
        send_buffer: (u64::from(window) * SEGMENT) as usize,
        poll_after_bytes: None,
        control_part: 4,
        ..base
    }
}

/// Bursts of `packets` on average that lose as many packets of 1,500 bytes as `ratio` would.
fn bursts(ratio: f64, packets: u32) -> GilbertElliott {
    let lost = 1.0 - (1.0 - ratio).powi(12_000);
    let to_good = 1.0 / f64::from(packets);
    GilbertElliott {
        to_bad: lost * to_good / (1.0 - lost),
        to_good,
        loss_in_bad: 1.0,
        loss_in_good: 0.0,
    }
}

/// Rates of figures 10, 19 and 20, kbit/s.
pub(super) const RATES: [u64; 5] = [1_000, 2_000, 5_000, 10_000, 45_000];
/// Rates of figures 13 to 17.
pub(super) const VSAT: [u64; 4] = [384, 768, 1_152, 1_536];
/// Connections of figures 21 to 25.
pub(super) const MANY: [u32; 3] = [50, 280, 350];
/// Bit error ratios of figures 21 to 24: 0, 0.1 and 11 % of packets.
pub(super) const RATIOS: [f64; 3] = [0.0, 1e-7, 1e-5];
/// Packets lost in the Internet, figure 25.
pub(super) const INTERNET_LOSS: [f64; 4] = [0.0, 0.001, 0.01, 0.1];
/// Flows of figures 13 to 15.
pub(super) const SESSIONS: [u32; 3] = [1, 2, 8];
/// Packets in a burst, figure 17.
pub(super) const BURSTS: [u32; 3] = [1, 4, 16];

/// Test B: 250 ms each way.
pub(super) fn test_b(way: Way, flows: u32, kbps: u64, errors: Errors) -> Trial {
    let one = Trial::one(way, kbps, 500);
    Trial { flows, errors, window: WINDOWS_2000, ..one }
}

/// Test A: a real satellite.
pub(super) fn test_a(flows: u32, kbps: u64) -> Trial {
    Trial { flows, window: UNIX, errors: Errors::Ratio(1e-9), ..Trial::one(Way::Two, kbps, 560) }
}

/// Table 13: UDP at 40 % beside one TCP.
pub(super) fn with_udp() -> Trial {
    Trial { udp_kbps: Some(2_048 * 2 / 5), ..test_a(1, 2_048) }
}

/// Test 2: many connections of 128 kbit/s.
pub(super) fn many(way: Way, flows: u32, round_trip_ms: u64, ratio: f64) -> Trial {
    Trial {
        flows,
        errors: Errors::Ratio(ratio),
        each_kbps: Some(128),
        seconds: 12,
        ..Trial::one(way, 45_000, round_trip_ms)
    }
}

/// Test 3: losses in the Internet.
pub(super) fn internet(loss: f64) -> Trial {
    Trial { errors: Errors::Internet(loss), ..many(Way::Three, 150, 700, 0.0) }
}

/// Test 2 with hosts whose windows alone hold them to 128 kbit/s.
pub(super) fn without_lines(ratio: f64) -> Trial {
    Trial { each_kbps: None, ..many(Way::Plain, 350, 700, ratio) }
}

/// Test B without a gateway, with other windows and round trips of one session.
pub(super) fn other_host(window: u64, round_trip_ms: u64) -> Trial {
    Trial { window, round_trip_ms, ..test_b(Way::Plain, 1, 1_536, Errors::Ratio(1e-8)) }
}

/// Windows and round trips that are tried for figure 13.
pub(super) const OTHER_WINDOWS: [u64; 4] = [SMALL, 11_680, 16_384, WINDOWS_2000];
pub(super) const OTHER_ROUND_TRIPS: [u64; 2] = [500, 700];

/// The 70 % rule: gateways, 700 ms, 1e-8.
pub(super) fn rule(kbps: u64) -> Trial {
    Trial { errors: Errors::Ratio(1e-8), ..Trial::one(Way::Three, kbps, 700) }
}

/// Figure 5: one connection with a window of so many bytes under errors.
pub(super) fn figure_5(window: u64, ratio: f64) -> Trial {
    Trial { errors: Errors::Ratio(ratio), window, ..Trial::one(Way::Plain, 10_000, 520) }
}

/// Windows of figure 5.
pub(super) const WINDOWS: [u64; 3] = [16_384, 65_535, 524_288];
/// Its bit error ratios.
pub(super) const FIGURE_5: [f64; 5] = [1e-9, 1e-8, 1e-7, 1e-6, 1e-5];

/// How often where errors are few and chance is large; and where a few percent are to be told.
const OFTEN: u32 = 10;
const MOST: u32 = 30;

/// All of them, with how often each is run at most.
pub(super) fn trials() -> Vec<(Trial, u32)> {
    let mut all = single_and_many();
    let mut put = |trial, often| all.push((trial, often));
    for (flows, kbps) in [(1, 384), (1, 1_536), (1, 2_048), (4, 1_536), (3, 2_048)] {
        put(test_a(flows, kbps), MOST);
    }
    put(with_udp(), MOST);
    for way in [Way::Plain, Way::Two] {
        for kbps in VSAT {
            for flows in SESSIONS {
                let often = if way == Way::Two && kbps == VSAT[3] { MOST } else { 3 };
                put(test_b(way, flows, kbps, Errors::Ratio(1e-8)), often);
            }
            for ratio in [1e-7, 1e-6] {
                put(test_b(way, 2, kbps, Errors::Ratio(ratio)), 3);
            }
        }
        for packets in BURSTS {
            put(test_b(way, 1, 1_536, Errors::Bursts(1e-6, packets)), OFTEN);
        }
    }
    for window in OTHER_WINDOWS {
        for round_trip in OTHER_ROUND_TRIPS {
            // That of Windows 2000 over 500 ms is there already.
            if (window, round_trip) != (WINDOWS_2000, 500) {
                put(other_host(window, round_trip), 3);
            }
        }
    }
    for loss in INTERNET_LOSS {
        put(internet(loss), 3);
    }
    for window in WINDOWS {
        for ratio in FIGURE_5 {
            put(figure_5(window, ratio), OFTEN);
        }
    }
    all
}

/// Figures 10 and 19 to 24, and the 70 % rule.
fn single_and_many() -> Vec<(Trial, u32)> {
    let mut all = Vec::new();
    let mut put = |trial, often| all.push((trial, often));
    for round_trip in [200, 700] {
        for kbps in RATES {
            put(Trial::one(Way::Plain, kbps, round_trip), 1);
            put(Trial::one(Way::Three, kbps, round_trip), 1);
        }
        for flows in MANY {
            for ratio in RATIOS {
                put(many(Way::Plain, flows, round_trip, ratio), 3);
                put(many(Way::Three, flows, round_trip, ratio), 3);
            }
        }
    }
    for ratio in [RATIOS[0], RATIOS[2]] {
        put(without_lines(ratio), 3);
    }
    for kbps in [256, 1_000, 10_000, 45_000] {
        put(rule(kbps), 3);
    }
    all
}
