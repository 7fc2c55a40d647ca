//! The measurements of annex 3: files over a satellite with and without gateways.
//!
//! ```text
//!   two segments    hosts ─ gateway ── satellite ── host
//!   three segments  hosts ─ (Internet) ─ gateway ── satellite ── gateway ─ host
//! ```

mod trials;

use super::super::network::{direction, ethernet, limited, transfer};
use super::super::{Draw, Values};
use satlink::{DirectionConfig, GilbertElliott, Limit, LinkConfig};
use sim::scenario::files::{Files, Transports};
use simtcp::{DelayedAck, InitialWindow, RtoConfig, TcpConfig};
pub(super) use trials::*;
use units::{BitRate, Span};
use xstp::congestion::Controller;
use xstp::session::{SessionConfig, StpPolicy};

/// The division of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// End-to-end TCP.
    Plain,
    /// A gateway before the satellite, and TCP with a large window behind it.
    Two,
    /// Gateways on both sides, with XSTP at the satellite's rate between them.
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

/// Loss model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Errors {
    /// Bit error ratio.
    Ratio(f64),
    /// The same bit error ratio in bursts that corrupt `.1` packets on average.
    Bursts(f64, u32),
    /// Packet loss ratio in the Internet.
    Internet(f64),
}

/// The TCP of the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    /// A common TCP: acknowledgements are delayed by 200 ms, as in Windows 2000.
    Usual,
    /// Solaris 7 of sections 2.1 and 2.3: acknowledgements are delayed by 50 ms, the retransmission
    /// timeout is at least 200 ms and initially 3 s (`tcp_deferred_ack_interval`,
    /// `tcp_rexmit_interval_min` and `_initial`). It accepts SACK but does not offer it
    /// (`tcp_sack_permitted` 1), has no limited transmit, and counts acknowledgements.
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

/// Variations of the protocol between the gateways, which the document does not specify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    /// XSTP at 97 % of the satellite's rate, with windows that do not limit it.
    Taken,
    /// The same with windows of so many segments per connection.
    Window(u32),
    /// The same with NewReno in place of a configured rate.
    NewReno,
    /// The same at this percentage of the satellite's rate.
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

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trial {
    pub(super) way: Way,
    pub(super) flows: u32,
    pub(super) kbps: u64,
    pub(super) round_trip_ms: u64,
    pub(super) errors: Errors,
    /// TCP of the hosts, and their windows in octets.
    pub(super) system: System,
    pub(super) window: u64,
    /// Protocol between the gateways of three segments.
    pub(super) space: Space,
    /// Rate of each host's access in kbit/s; `None` for 100 Mbit/s.
    pub(super) each_kbps: Option<u64>,
    pub(super) seconds: u64,
    /// Rate of parallel UDP traffic in kbit/s.
    pub(super) udp_kbps: Option<u64>,
}

/// Windows of hosts in octets: 8 kbytes, which Windows NT, 95 and 98 and Solaris round up to whole
/// segments (the registry's default is 8,760 on Ethernet; `MSS_ROUNDUP` in Solaris's `tcp.c`);
/// Windows 2000; FreeBSD 4 and others.
pub(super) const SMALL: u64 = 8_760;
pub(super) const WINDOWS_2000: u64 = 17_520;
pub(super) const UNIX: u64 = 32_768;
/// Outstanding data of an application on Windows 2000, which is less than the window: a send buffer
/// of 8,192 octets and one write of 4,096 octets (Microsoft's articles 149525, and 311084 on
/// satellite links).
pub(super) const UNDER_WAY: u64 = 12_288;
/// Octets of data in a segment.
const SEGMENT: u64 = 1_460;
/// Round trip of the Internet part in test 3.
const INTERNET: Span = Span::from_millis(200);

impl Trial {
    /// Returns a transfer of one connection without further limits.
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
            // 20 s at the highest rate have as many packets as hours at the lowest.
            seconds: if kbps > 2_048 { 20 } else { 60 },
            udp_kbps: None,
        }
    }

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

    /// Returns the start of the measurement: after a fifth of the time, so that a whole number of
    /// round trips remains, because small windows are sent in bursts.
    fn settled(&self) -> Span {
        let until = Span::from_secs(self.seconds);
        let round_trip = Span::from_millis(self.round_trip_ms);
        let trips = (until * 4 / 5).as_nanos() / round_trip.as_nanos();
        until - round_trip * trips
    }

    /// Returns the interval between starts of connections.
    pub(super) fn stagger(&self) -> Span {
        Span::from_millis(10).min(Span::from_secs(1) / u64::from(self.flows))
    }

    fn host(&self) -> TcpConfig {
        TcpConfig {
            window_scale: self.window > 65_535,
            receive_buffer: self.window,
            // The sender must not be the limit.
            send_buffer: (2 * self.window).max(65_536),
            initial_window: InitialWindow::Segments(2),
            ..self.system.tcp()
        }
    }

    fn carriage(&self) -> Transports {
        let host = self.host();
        // A gateway accepts the hosts' data immediately.
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
        let delay = (Span::from_millis(self.round_trip_ms) - rest) / 2;
        LinkConfig::symmetric(DirectionConfig {
            bit_error_ratio: ratio,
            gilbert,
            ..limited(BitRate::from_kbps(self.kbps), delay, Limit::BandwidthDelay(1.0))
        })
    }

    fn hops(&self) -> (Vec<LinkConfig>, usize) {
        let satellite = self.satellite();
        match (self.way, self.errors) {
            (_, Errors::Internet(loss)) => {
                let internet = LinkConfig::symmetric(DirectionConfig {
                    loss,
                    ..direction(BitRate::from_mbps(100), INTERNET / 2)
                });
                (vec![internet, satellite, LinkConfig::default()], 1)
            }
            (Way::Plain | Way::Two | Way::Three, Errors::Ratio(_) | Errors::Bursts(..)) => {
                (vec![satellite, LinkConfig::default()], 0)
            }
        }
    }

    /// Runs the transfer and measures after a fifth of the time.
    pub(super) fn run(&self, draw: &Draw) -> Values {
        let (hops, gateway) = self.hops();
        let access = BitRate::from_kbps(self.each_kbps.unwrap_or(100_000));
        let until = Span::from_secs(self.seconds);
        let files = Files {
            flows: self.flows,
            access: ethernet(access),
            gateway,
            constant: self.udp_kbps.map(BitRate::from_kbps),
            stagger: self.stagger(),
            chance: Span::from_millis(50),
            ..transfer(self.carriage(), u64::MAX, hops, until, draw)
        };
        let carried = files.carry();
        let udp = carried.constant as f64 * 8.0 * 1_470.0 / 1_498.0 / until.as_secs_f64();
        Values::new()
            .with("kbps", carried.rate_after(self.settled()) / 1e3)
            .with("udp_kbps", udp / 1e3)
    }
}

/// Returns XSTP between gateways with a configured rate, which is divided evenly among connections.
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

/// Returns bursts of `packets` packets on average with the packet loss of `ratio` for 1,500 octets.
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
