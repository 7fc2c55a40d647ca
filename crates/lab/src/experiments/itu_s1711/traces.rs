//! Traces of one connection: figures 4, 31, 33, 47 and 48.

use super::super::network::limited;
use super::super::{Draw, Values};
use super::atm::{RECOVERIES, TAKEN};
use satlink::{Limit, LinkConfig, Outage};
use sim::Network;
use sim::network::Address;
use sim::tcp::{FlowPlan, TcpSink, TcpSource};
use simtcp::{DelayedAck, InitialWindow, TcpConfig};
use units::{BitRate, Instant, Span};

/// A connection whose state is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trace {
    /// Figure 4: a window of 64 kbytes and one timeout.
    Window,
    /// Figure 31: behind a faster network and a router queue of 100 packets.
    Bursts,
    /// Figure 33: the same with an unlimited queue.
    Queue,
    /// Figures 47 and 48: a socket buffer of 1 Mbyte, and 2 % packet loss during one round trip
    /// after 38 s.
    File,
}

impl Trace {
    pub(super) const ALL: [Self; 4] = [Self::Window, Self::Bursts, Self::Queue, Self::File];

    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Window => "window",
            Self::Bursts => "bursts",
            Self::Queue => "queue",
            Self::File => "file",
        }
    }

    fn tcp(self) -> TcpConfig {
        let (segment, window) = match self {
            Self::Window => (1_460, 65_535),
            Self::Bursts | Self::Queue => (1_430, 6_374 * 1_430),
            Self::File => (1_460, 1_500_000),
        };
        let base = match self {
            // As annex 1 describes it: one initial segment, and each acknowledgement opens the
            // window.
            Self::Window => {
                TcpConfig { delayed_ack: DelayedAck::OFF, ..TcpConfig::reno().of_1999() }
            }
            Self::Bursts | Self::Queue => {
                TcpConfig { delayed_ack: DelayedAck::OFF, ..RECOVERIES[TAKEN].1() }
            }
            Self::File => TcpConfig::sack(),
        };
        TcpConfig {
            max_segment: segment,
            initial_window: InitialWindow::Segments(if self == Self::Window { 1 } else { 2 }),
            send_buffer: 2 * window,
            receive_buffer: window,
            ..base
        }
    }

    fn line(self) -> LinkConfig {
        let (mbps, queue) = match self {
            Self::Window => (10, 1 << 20),
            Self::Bursts => (135, 100),
            Self::Queue => (135, 1 << 20),
            Self::File => (135, 1 << 20),
        };
        let trip = if self == Self::Window { 520 } else { 540 };
        let (rate, delay) = (BitRate::from_mbps(mbps), Span::from_millis(trip) / 2);
        let mut link = LinkConfig::symmetric(limited(rate, delay, Limit::Packets(queue)));
        let outage = |at, length| Outage { at, length, every: None, direction: None };
        if self == Self::Window {
            link.outages.push(outage(Span::from_secs(10), Span::from_millis(600)));
        }
        link
    }

    fn until(self) -> Span {
        match self {
            Self::Window => Span::from_secs(30),
            Self::Bursts => Span::from_secs(60),
            Self::Queue => Span::from_secs(12),
            Self::File => Span::from_secs(60),
        }
    }

    /// Records time, window in segments, acknowledged kbytes, timeouts and slow-start threshold.
    pub(super) fn run(self, draw: &Draw) -> Values {
        let tcp = self.tcp();
        let mut net = Network::new(draw.seed, draw.run);
        let sink = net.host(TcpSink::new(tcp.clone(), PORT));
        let to = Address::new(sink, PORT);
        let plan = FlowPlan { start: Instant::ZERO, stop: None, bytes: u64::MAX, to, tcp };
        let source = net.host_with(|node| TcpSource::new(node, vec![plan]));
        let router = net.router();
        let mbps = if self == Self::Window { 100 } else { 500 };
        let access = limited(BitRate::from_mbps(mbps), Span::ZERO, Limit::Packets(1 << 20));
        net.link(source, router, &LinkConfig::symmetric(access));
        let line = net.link(router, sink, &self.line());
        if self == Self::File {
            let mut lossy = self.line();
            lossy.forward.loss = 0.02;
            let (begin, clean) = (Instant::ZERO + Span::from_secs(38), self.line());
            let change = |config: LinkConfig| {
                move |net: &mut Network| net.reconfigure(line, &config).expect("a link")
            };
            net.change_at(begin, change(lossy));
            net.change_at(begin + Span::from_millis(540), change(clean));
        }
        let (mut at, mut window, mut sent) = (Vec::new(), Vec::new(), Vec::new());
        let (mut timeouts, mut threshold) = (Vec::new(), Vec::new());
        for step in 1..=self.until().as_nanos() / STEP.as_nanos() {
            let now = Instant::ZERO + STEP * step;
            net.run_until(now);
            let Some(end) = net.node::<TcpSource>(source).connection(0) else { continue };
            let (seen, counters) = (end.snapshot(), end.counters());
            let segment = seen.segment as f64;
            at.push(now.since(Instant::ZERO).as_secs_f64());
            window.push(seen.congestion_window as f64 / segment);
            // There is no threshold before the first loss.
            threshold.push(seen.threshold.min(1 << 30) as f64 / segment);
            sent.push(end.acknowledged() as f64 / 1e3);
            timeouts.push(counters.timeouts as f64);
        }
        Values::new()
            .with_series("at_s", at)
            .with_series("window", window)
            .with_series("threshold", threshold)
            .with_series("acknowledged_kb", sent)
            .with_series("timeouts", timeouts)
    }
}

const PORT: u16 = 80;
/// Recording interval.
const STEP: Span = Span::from_millis(100);
