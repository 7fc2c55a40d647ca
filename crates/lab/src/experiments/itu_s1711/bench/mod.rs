//! The measurements of annex 3: files over a satellite, with gateways and without.
//!
//! ```text
//!   two segments    hosts ─ gateway ── satellite ── host
//!   three segments  hosts ─ (Internet) ─ gateway ── satellite ── gateway ─ host
//! ```

mod trials;

use super::super::{Draw, Values};
use satlink::{DirectionConfig, GilbertElliott, Limit, LinkConfig, QueueConfig};
use sim::scenario::files::{Files, Transports};
use simtcp::{DelayedAck, InitialWindow, RtoConfig, TcpConfig};
pub(super) use trials::*;
use units::{BitRate, Span};
use xstp::congestion::Controller;
use xstp::session::{SessionConfig, StpPolicy};

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

/// Whose TCP the hosts have, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    /// None in particular: acknowledgements wait for 200 ms, as Windows 2000's do.
    Usual,
    /// Solaris 7, of sections 2.1 and 2.3: they wait for 50 ms, and retransmissions for 200 ms at
    /// least and 3 s at first (`tcp_deferred_ack_interval`, `tcp_rexmit_interval_min` and
    /// `_initial`); it takes SACK from others but does not ask for it (`tcp_sack_permitted` 1), and
    /// is of 1998: no limited transmit, and acknowledgements are counted.
    Solaris,
}

impl System {
    pub(super) fn tcp(self) -> TcpConfig {
        let base = TcpConfig::new_reno();
        match self {
            Self::Usual => TcpConfig::sack(),
            Self::Solaris => TcpConfig {
                slow_start_limit: Some(1),
                byte_counting: false,
                limited_transmit: false,
                delayed_ack: DelayedAck { after: Span::from_millis(50), ..DelayedAck::USUAL },
                rto: RtoConfig {
                    initial: Span::from_secs(3),
                    min: Span::from_millis(200),
                    ..base.rto
                },
                ..base
            },
        }
    }
}

/// What of the protocol between the gateways of three segments is not given, and varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    /// XSTP at 97 % of the satellite's rate, with windows that do not limit it.
    Taken,
    /// The same with windows of so many segments for each connection.
    Window(u32),
    /// The same with TCP's rules for the window in place of a rate.
    NewReno,
    /// The same at this share of the satellite's rate, percent.
    Share(u64),
}

impl Space {
    pub(super) fn words(self) -> String {
        match self {
            Self::Taken => "XSTP at 97 % of the rate".to_owned(),
            Self::Window(segments) => format!("windows of {segments} segments for each connection"),
            Self::NewReno => "TCP's rules for the window".to_owned(),
            Self::Share(percent) => format!("{percent} % of the rate"),
        }
    }
}

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trial {
    pub(super) way: Way,
    pub(super) flows: u32,
    pub(super) kbps: u64,
    pub(super) round_trip_ms: u64,
    pub(super) errors: Errors,
    /// The hosts' TCP, and bytes of their windows.
    pub(super) system: System,
    pub(super) window: u64,
    /// Between gateways of three segments.
    pub(super) space: Space,
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
/// What a program on Windows 2000 has under way, which is less than the window: a socket's send
/// buffer of 8,192 bytes, and one write of 4,096 beside it, which is what its workstations hand on
/// at a time (Microsoft's articles 149525, and 311084 on satellite links).
pub(super) const UNDER_WAY: u64 = 12_288;
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
            system: System::Solaris,
            window: SMALL,
            space: Space::Taken,
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
        let system = if self.system == System::Usual { "" } else { "/Solaris" };
        let space = match self.space {
            Space::Taken => String::new(),
            other => format!("/{}", other.words()),
        };
        format!(
            "{way}/{flows}/{kbps} kbit/s/{round_trip_ms} ms/{errors}/{window}{system}{each}\
             /{seconds} s{udp}{space}"
        )
    }

    /// From when on it is counted: after a fifth of the time, and for whole round trips, since a
    /// window that is small comes in bursts.
    fn settled(&self) -> Span {
        let until = Span::from_secs(self.seconds);
        let round_trip = Span::from_millis(self.round_trip_ms);
        let trips = (until * 4 / 5).as_nanos() / round_trip.as_nanos();
        until - round_trip * trips
    }

    fn host(&self) -> TcpConfig {
        TcpConfig {
            window_scale: self.window > 65_535,
            receive_buffer: self.window,
            // A sender must not be what limits it.
            send_buffer: (2 * self.window).max(65_536),
            initial_window: InitialWindow::Segments(2),
            ..self.system.tcp()
        }
    }

    fn carriage(&self) -> Transports {
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
            Way::Plain => Transports::Tcp(host),
            Way::Two => Transports::SplitTcp(wide.clone(), wide),
            Way::Three => Transports::ThreeSegments(near.clone(), self.space(product), near),
        }
    }

    fn space(&self, product: u64) -> SessionConfig {
        let taken = space(self.kbps, self.flows, product);
        match self.space {
            Space::Taken => taken,
            Space::Window(segments) => SessionConfig {
                number_window: segments,
                receive_window: segments,
                initial_peer_window: segments,
                ..taken
            },
            Space::NewReno => SessionConfig { controller: Controller::NewReno, ..taken },
            Space::Share(percent) => space(self.kbps * percent / 97, self.flows, product),
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
        let carried = files.carry();
        let udp = carried.constant as f64 * 8.0 * 1_470.0 / 1_498.0 / until.as_secs_f64();
        Values::new()
            .with("kbps", carried.rate_after(self.settled()) / 1e3)
            .with("udp_kbps", udp / 1e3)
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
        initial_peer_window: window,
        send_buffer: (u64::from(window) * SEGMENT) as usize,
        stp: StpPolicy { poll_after_bytes: None, ..base.stp },
        ..base
    }
    .with_low_rate_rules(4)
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
