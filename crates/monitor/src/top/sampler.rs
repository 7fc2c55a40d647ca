//! Computes rates from counters.

use crate::{Connection, Status};
use std::collections::{BTreeMap, VecDeque};
use units::Instant;

/// Number of samples in a sparkline.
const HISTORY: usize = 60;

/// The last samples and the rates between them.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    status: Status,
    connections: Vec<(Connection, Flow)>,
    terminals: BTreeMap<String, TerminalRates>,
    seen: BTreeMap<u64, (u64, u64)>,
    at: Option<Instant>,
    /// Traffic of the datagram socket.
    link: (Flow, u64, u64),
}

/// Bits per second in each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Flow {
    /// From local sockets to the peer.
    pub(crate) out: f64,
    /// From the peer to local sockets.
    pub(crate) back: f64,
}

/// Recent values of a terminal.
#[derive(Clone, Debug, Default)]
pub(crate) struct TerminalRates {
    /// Goodput.
    pub(crate) flow: Flow,
    /// Fraction of data packets that were retransmissions.
    pub(crate) retransmission_ratio: f64,
    /// Goodput of each sample, as the sum of both directions.
    pub(crate) history: VecDeque<f64>,
    sent: u64,
    received: u64,
    data: u64,
    retransmitted: u64,
}

impl Sampler {
    /// Adds the status at `now`.
    pub(crate) fn take(&mut self, now: Instant, status: Status, connections: Vec<Connection>) {
        let seconds =
            self.at.map(|at| now.since(at).as_secs_f64()).filter(|&seconds| seconds > 0.0);
        // A new or restarted terminal has no rate yet.
        let rate = |new: u64, old: u64| {
            seconds.map_or(0.0, |seconds| new.saturating_sub(old) as f64 * 8.0 / seconds)
        };
        let (_, sent, received) = self.link;
        let flow = Flow {
            out: rate(status.udp.sent_bytes, sent),
            back: rate(status.udp.received_bytes, received),
        };
        self.link = (flow, status.udp.sent_bytes, status.udp.received_bytes);

        let mut ways = std::mem::take(&mut self.terminals);
        for terminal in &status.terminals {
            let (sent, received) = terminal.carried();
            let known = ways.remove(&terminal.terminal);
            let is_new = known.is_none();
            let mut rates = known.unwrap_or_default();
            if !is_new {
                rates.flow.out = rate(sent, rates.sent);
                rates.flow.back = rate(received, rates.received);
                let retransmitted = terminal.retransmitted.saturating_sub(rates.retransmitted);
                let data = terminal.data_sent.saturating_sub(rates.data);
                rates.retransmission_ratio =
                    retransmitted as f64 / data.max(retransmitted).max(1) as f64;
                rates.history.push_back(rates.flow.out + rates.flow.back);
                if rates.history.len() > HISTORY {
                    rates.history.pop_front();
                }
            }
            (rates.sent, rates.received) = (sent, received);
            (rates.data, rates.retransmitted) = (terminal.data_sent, terminal.retransmitted);
            self.terminals.insert(terminal.terminal.clone(), rates);
        }

        let before = std::mem::take(&mut self.seen);
        self.connections = connections
            .into_iter()
            .map(|one| {
                let (from, to) = (one.bytes_from_socket, one.bytes_to_socket);
                // All traffic of a new connection occurred since the last sample.
                let (old_from, old_to) = before.get(&one.number).copied().unwrap_or((0, 0));
                self.seen.insert(one.number, (from, to));
                let flow = Flow { out: rate(from, old_from), back: rate(to, old_to) };
                (one, flow)
            })
            .collect();
        self.status = status;
        self.at = Some(now);
    }

    /// Returns the last status.
    pub(crate) fn status(&self) -> &Status {
        &self.status
    }

    /// Returns the last connections with their rates.
    pub(crate) fn connections(&self) -> &[(Connection, Flow)] {
        &self.connections
    }

    /// Returns the recent values of a terminal.
    pub(crate) fn terminal(&self, terminal: &str) -> Option<&TerminalRates> {
        self.terminals.get(terminal)
    }

    /// Returns the total traffic of the datagram socket.
    pub(crate) fn link(&self) -> Flow {
        self.link.0
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::table::tests::example;
    use units::Span;

    pub(crate) fn two_looks() -> Sampler {
        let mut sampler = Sampler::default();
        let mut status = example();
        let connection = |number, from, to| Connection {
            number,
            terminal: Some("boat".into()),
            client: Some(format!("10.1.0.{number}:5000")),
            server: Some("example.org:443".into()),
            state: "open".into(),
            class: Some("bulk".into()),
            age_seconds: 65.0,
            bytes_from_socket: from,
            bytes_to_socket: to,
        };
        let start = Instant::ZERO + Span::from_secs(9);
        sampler.take(start, status.clone(), vec![connection(1, 1000, 0), connection(2, 0, 500)]);
        assert_eq!(
            sampler.terminal("boat").unwrap().flow,
            Flow::default(),
            "no rate at first sight"
        );
        status.terminals[0].stream_bytes_sent += 250_000;
        status.terminals[0].data_sent += 200;
        status.terminals[0].retransmitted += 20;
        status.udp.sent_bytes += 300_000;
        let connections = vec![connection(2, 0, 250_500), connection(3, 125_000, 0)];
        sampler.take(start + Span::from_secs(2), status, connections);
        sampler
    }

    #[test]
    fn rates_are_differences_over_time() {
        let sampler = two_looks();
        let rates = sampler.terminal("boat").unwrap();
        assert_eq!((rates.flow.out, rates.flow.back, rates.retransmission_ratio), (1e6, 0.0, 0.1));
        assert_eq!(sampler.link().out, 1.2e6);
        let flows: Vec<(u64, f64, f64)> = sampler
            .connections()
            .iter()
            .map(|(one, flow)| (one.number, flow.out, flow.back))
            .collect();
        assert_eq!(flows, [(2, 0.0, 1e6), (3, 5e5, 0.0)]);
    }

    #[test]
    fn a_restarted_terminal_has_no_negative_rate_and_history_is_bounded() {
        let mut sampler = two_looks();
        let mut status = example();
        status.terminals[0].stream_bytes_sent = 10;
        let mut at = Instant::ZERO + Span::from_secs(20);
        for _ in 0..200 {
            sampler.take(at, status.clone(), Vec::new());
            at += Span::from_secs(1);
        }
        let rates = sampler.terminal("boat").unwrap();
        assert_eq!((rates.flow.out, rates.history.len()), (0.0, HISTORY));
        status.terminals.clear();
        sampler.take(at, status, Vec::new());
        assert!(sampler.terminal("boat").is_none(), "who is gone is forgotten");
    }
}
