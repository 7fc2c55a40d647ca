//! A single session on a link, without gateways: the behaviour of a congestion controller.

use crate::session_endpoint::SessionEndpoint;
use crate::{Change, Path, PathConfig};
use satlink::{Direction, LinkConfig};
use units::{Instant, Span};
use xstp::session::{Session, SessionConfig, Snapshot};

/// Octets of IPv4, UDP and association headers and tag.
const HEADERS: usize = 52;
/// Octets of a full IPv4 packet, and of its session payload.
const PACKET: f64 = 1_500.0;
const CARRIED: f64 = PACKET - HEADERS as f64 - 4.0 - 8.0;

/// A terminal that requests with its BGN, and a hub that sends.
pub struct SingleSession {
    /// The two sessions and the link between them.
    pub path: Path<SessionEndpoint, SessionEndpoint>,
    link: LinkConfig,
}

/// A sample of a session's variables.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Time of the sample.
    pub at: Instant,
    /// The sender's variables.
    pub sender: Snapshot,
    /// Forward queue, as its transmission time at the link's initial rate.
    pub queue: Span,
    /// Octets delivered in order since the last sample, in bit/s.
    pub goodput_bps: f64,
}

impl SingleSession {
    /// A hub that sends `bytes` over `link` with `config`; the terminal has `back`.
    ///
    /// # Panics
    /// If the link or a configuration is invalid.
    pub fn new(
        link: &LinkConfig,
        seed: u64,
        config: &SessionConfig,
        back: &SessionConfig,
        bytes: u64,
    ) -> Self {
        let setting = PathConfig { header: HEADERS, seed, ..PathConfig::new(link.clone()) };
        let terminal = Session::connect(back, Instant::ZERO, 1);
        let hub = Session::listen(config);
        let path = Path::new(
            &setting,
            SessionEndpoint::new(terminal, 7, 0, false),
            SessionEndpoint::new(hub, 7, bytes, false),
        )
        .expect("a valid link");
        Self { path, link: link.clone() }
    }

    /// Replaces the link by `link` at `at`.
    pub fn change_at(&mut self, at: Instant, link: LinkConfig) {
        self.path.change_at(at, Change::Link(Box::new(link)));
    }

    /// Time from the first packet until `bytes` octets have arrived in order at the terminal;
    /// `None` if that is after `limit`.
    pub fn time_for(&mut self, bytes: u64, limit: Span) -> Option<Span> {
        let done = self
            .path
            .run_while(Instant::ZERO + limit, |path| path.terminal.data.in_order() < bytes);
        done.then(|| self.path.now().since(Instant::ZERO))
    }

    /// Runs until `until` and takes a sample every `step`.
    pub fn series(&mut self, until: Instant, step: Span) -> Vec<Sample> {
        let rate = self.link.forward.rate.expect("the link should have a rate");
        let mut moments = Vec::new();
        let mut front = self.path.terminal.data.in_order();
        while self.path.now() < until {
            let at = self.path.now() + step;
            self.path.run_until(at);
            let now_front = self.path.terminal.data.in_order();
            moments.push(Sample {
                at,
                sender: self.path.hub.session.snapshot(at),
                queue: rate.time_for(self.path.link().backlog(Direction::Forward).bytes),
                goodput_bps: (now_front - front) as f64 * 8.0 / step.as_secs_f64(),
            });
            front = now_front;
        }
        moments
    }

    /// Octets delivered in order between two times, as a fraction of the capacity of the initial
    /// link.
    pub fn utilization(&self, from: Instant, to: Instant) -> f64 {
        let bytes = self.path.terminal.data.arrived().between(from, to).bytes;
        let forward = &self.link.forward;
        let rate = forward.rate.expect("the link should have a rate").as_bps() as f64;
        let survives = (1.0 - forward.loss) * (1.0 - forward.bit_error_ratio).powf(PACKET * 8.0);
        let bound = rate * survives * CARRIED / PACKET * to.since(from).as_secs_f64();
        bytes as f64 * 8.0 / bound
    }

    /// The terminal's rate with all headers, in bit/s.
    pub fn return_bps(&self, from: Instant, to: Instant) -> f64 {
        let bytes = self.path.offered(Direction::Return).between(from, to).bytes;
        bytes as f64 * 8.0 / to.since(from).as_secs_f64()
    }
}

#[cfg(test)]
mod tests;
