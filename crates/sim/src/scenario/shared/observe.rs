//! Captures and samples of flows and bottleneck over time.

use super::{DelayedStart, FlowNodes, Shared};
use crate::Network;
use crate::host::Datagrams;
use crate::session_endpoint::SessionEndpoint;
use crate::tcp::{TcpSink, TcpSource};
use satlink::Direction;
use std::io::Write;
use units::Span;

impl Shared {
    /// Writes the packets at the bottleneck's end at the senders, both directions, as pcapng from
    /// now on; [`Network::finish_captures`] ends the capture.
    pub fn capture(&mut self, out: impl Write + 'static) {
        self.net.capture(self.bottleneck, self.near, out);
    }

    /// Samples at this interval the bottleneck queue, the octets delivered of each flow, and the
    /// variables of each sender, named after `names`.
    ///
    /// # Panics
    /// If the interval is zero.
    pub fn sample(&mut self, every: Span, names: &[String]) {
        let (bottleneck, rate) = (self.bottleneck, self.link.forward.rate);
        self.net.sample(every, "bottleneck queue", "bytes", move |net| {
            Some(net.line(bottleneck).backlog(Direction::Forward).bytes as f64)
        });
        if let Some(rate) = rate {
            self.net.sample(every, "bottleneck delay", "s", move |net| {
                let bytes = net.line(bottleneck).backlog(Direction::Forward).bytes;
                Some(rate.time_for(bytes).as_secs_f64())
            });
        }
        for (ends, name) in self.ends.clone().into_iter().zip(names) {
            self.net.sample(every, &format!("{name} arrived"), "bytes", move |net| {
                Some(arrived(net, ends) as f64)
            });
            match ends {
                FlowNodes::Xstp { sender, .. } => {
                    self.net.sample_session(every, name, move |net| {
                        let session =
                            &net.node::<Datagrams<SessionEndpoint>>(sender).endpoint.session;
                        Some(session.snapshot(net.now()))
                    });
                }
                FlowNodes::Tcp { sender, .. } => {
                    type Variable = fn(&simtcp::Snapshot) -> Option<f64>;
                    let variables: [(&str, &'static str, Variable); 4] = [
                        ("congestion window", "bytes", |seen| Some(seen.congestion_window as f64)),
                        ("threshold", "bytes", |seen| {
                            (seen.threshold < u64::MAX).then_some(seen.threshold as f64)
                        }),
                        ("outstanding", "bytes", |seen| Some(seen.flight as f64)),
                        ("round trip", "s", |seen| seen.round_trip.map(Span::as_secs_f64)),
                    ];
                    for (variable, unit, value) in variables {
                        self.net.sample(every, &format!("{name} {variable}"), unit, move |net| {
                            let connection = net.node::<TcpSource>(sender).connection(0)?;
                            value(&connection.snapshot())
                        });
                    }
                }
            }
        }
    }
}

/// Octets in order at a flow's receiver.
fn arrived(net: &Network, ends: FlowNodes) -> u64 {
    match ends {
        FlowNodes::Xstp { receiver, .. } => net
            .node::<DelayedStart<Datagrams<SessionEndpoint>>>(receiver)
            .inner
            .endpoint
            .data
            .in_order(),
        FlowNodes::Tcp { receiver, .. } => {
            net.node::<TcpSink>(receiver).flows().iter().map(|flow| flow.bytes).sum()
        }
    }
}
