//! The final counters of an engine.

use super::super::summary as shared;
use super::TerminalPort;
use super::engine::{Engine, HUB, Tallies};
use super::port::failed;
use super::summary::{
    Counts, StarEnd, StarForward, StarReturn, StarStart, StarSummary, TerminalAccount,
};
use crate::sched;
use satlink::Direction;
use units::{Instant, Span};

impl Engine {
    pub(super) fn finish(mut self, scheduling: sched::Scheduling, cpu: Span) -> StarSummary {
        let now = self.clock.now();
        let intervals = self.observer.finish(now, &self.down, &self.up);
        for port in &mut self.ports {
            if let Some(socket) = &mut port.socket {
                port.kernel_dropped = socket.kernel_counts().dropped;
            }
        }
        let seconds = now.since(Instant::ZERO).as_secs_f64();
        let Tallies { messages, malformed, late_stamps, .. } = self.tallies;
        let mut end = StarEnd {
            seconds,
            forward: self.forward_account(seconds),
            r#return: self.return_account(seconds),
            terminals: self.terminal_accounts(),
            counts: Counts::of(messages, malformed, self.weights.counters()),
            lateness: self.observer.lateness.summary(),
            cpu_seconds: cpu.as_secs_f64(),
            late_stamps,
            kept_up: true,
            reasons: Vec::new(),
        };
        end.reasons = end.shortcomings(self.config.lateness_limit);
        end.kept_up = end.reasons.is_empty();
        StarSummary { start: self.start(scheduling), intervals, end, log: self.log }
    }

    fn start(&self, scheduling: sched::Scheduling) -> StarStart {
        let star = if self.config.star_words.is_empty() {
            format!("{:?}", self.config.star)
        } else {
            self.config.star_words.clone()
        };
        let terminals = self.config.terminals.iter();
        StarStart {
            epoch_unix_ns: self.first_epoch_unix_ns,
            seed: self.config.seed,
            run: self.config.run,
            hub: self.ports[HUB].name.clone(),
            terminals: terminals.map(|t| (t.name.clone(), t.interface.clone())).collect(),
            star,
            frame: self.frame,
            scheduling,
            notes: self.ports.iter().flat_map(|port| port.notes.clone()).collect(),
        }
    }

    fn forward_account(&self, seconds: f64) -> StarForward {
        let counters = self.down.counters(Direction::Forward);
        let (send_failed, last_send_error) = failed(&self.ports[1..]);
        StarForward {
            bits_per_second: counters.delivered.bytes as f64 * 8.0 / seconds.max(1e-9),
            kernel_dropped: self.ports[HUB].kernel_dropped,
            received: self.ports[HUB].received,
            out_of_memory: self.tallies.out_of_memory,
            offered: counters.offered,
            delivered: counters.delivered,
            dropped: shared::drops(counters),
            held: counters.held,
            unheard: self.tallies.unheard,
            send_failed,
            last_send_error,
        }
    }

    fn return_account(&self, seconds: f64) -> StarReturn {
        let (send_failed, last_send_error) = failed(&self.ports[..1]);
        StarReturn {
            kernel_dropped: self.ports[1..].iter().map(|port| port.kernel_dropped).sum(),
            send_failed,
            last_send_error,
            ..StarReturn::of(&self.up, seconds)
        }
    }

    fn terminal_accounts(&self) -> Vec<TerminalAccount> {
        let account = |(number, port): (usize, &TerminalPort)| {
            let counters = self.up.terminal(number);
            TerminalAccount {
                name: port.name.clone(),
                delivered: counters.delivered,
                granted: counters.granted,
                used: counters.used,
                weight: self.weighs[number],
            }
        };
        self.config.terminals.iter().enumerate().map(account).collect()
    }
}
