//! One session alone on a link, without gateways: what a controller makes of it.

use crate::session_endpoint::SessionEndpoint;
use crate::{Change, Path, PathConfig};
use satlink::{Direction, LinkConfig};
use units::{Instant, Span};
use xstp::session::{Session, SessionConfig, Snapshot};

/// IPv4, UDP, and an association's header and tag.
const HEADERS: usize = 52;
/// Bytes of a full IPv4 packet, and those of them that are a session's own.
const PACKET: f64 = 1_500.0;
const CARRIED: f64 = PACKET - HEADERS as f64 - 4.0 - 8.0;

/// A terminal that asks, and a hub that sends: the terminal's BGN is the request.
pub struct Alone {
    /// The two sessions and the link between them.
    pub path: Path<SessionEndpoint, SessionEndpoint>,
    link: LinkConfig,
}

/// One instant of a session.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// When.
    pub at: Instant,
    /// The sender's variables.
    pub sender: Snapshot,
    /// What waits in the forward queue, as a time at the link's first rate.
    pub queue: Span,
    /// Bits per second that arrived in order since the last moment.
    pub goodput_bps: f64,
}

impl Alone {
    /// A hub that sends `bytes` over `link` by `config`; the terminal has `back`.
    ///
    /// # Panics
    /// When the link or a configuration is not valid.
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

    /// The link becomes `link` at `at`.
    pub fn change_at(&mut self, at: Instant, link: LinkConfig) {
        self.path.change_at(at, Change::Link(Box::new(link)));
    }

    /// The time from the first packet to the last of `bytes` bytes in order at the terminal;
    /// `None` when that is later than `limit`.
    pub fn time_for(&mut self, bytes: u64, limit: Span) -> Option<Span> {
        let done = self
            .path
            .run_while(Instant::ZERO + limit, |path| path.terminal.data.in_order() < bytes);
        done.then(|| self.path.now().since(Instant::ZERO))
    }

    /// Runs until `until`, and looks every `step`.
    pub fn series(&mut self, until: Instant, step: Span) -> Vec<Moment> {
        let rate = self.link.forward.rate.expect("the link should have a rate");
        let mut moments = Vec::new();
        let mut front = self.path.terminal.data.in_order();
        while self.path.now() < until {
            let at = self.path.now() + step;
            self.path.run_until(at);
            let now_front = self.path.terminal.data.in_order();
            moments.push(Moment {
                at,
                sender: self.path.hub.session.snapshot(at),
                queue: rate.time_for(self.path.link().backlog(Direction::Forward).bytes),
                goodput_bps: (now_front - front) as f64 * 8.0 / step.as_secs_f64(),
            });
            front = now_front;
        }
        moments
    }

    /// Bytes in order between two times, as a share of what the link's first state can carry.
    pub fn share(&self, from: Instant, to: Instant) -> f64 {
        let bytes = self.path.terminal.data.arrived().between(from, to).bytes;
        let forward = &self.link.forward;
        let rate = forward.rate.expect("the link should have a rate").as_bps() as f64;
        let survives = (1.0 - forward.loss) * (1.0 - forward.bit_error_ratio).powf(PACKET * 8.0);
        let bound = rate * survives * CARRIED / PACKET * to.since(from).as_secs_f64();
        bytes as f64 * 8.0 / bound
    }

    /// What the terminal sent, with all headers, bits per second.
    pub fn return_bps(&self, from: Instant, to: Instant) -> f64 {
        let bytes = self.path.offered(Direction::Return).between(from, to).bytes;
        bytes as f64 * 8.0 / to.since(from).as_secs_f64()
    }
}

#[cfg(test)]
mod tests;
