//! What each way of controlling the rate makes of the links that satellites are.
//!
//! A [`Case`] is a link, what happens to it, and what is asked; [`measure`] runs one way through
//! it. All sessions are alone, without gateways, on hosts of their own; TCP is the simulated one.

mod cases;

pub use cases::{Asked, Case, all};

use super::shared::{Shared, SharedFlow};
use satlink::Direction;
use simtcp::TcpConfig;
use units::{BitRate, Instant, Span};
use xstp::congestion::Controller;
use xstp::session::{ProbingConfig, SessionConfig};

/// A way of controlling the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// XSTP at the link's rate, which it is told.
    Fixed,
    /// XSTP with the published window, below the link's rate.
    NewReno,
    /// The same with probing.
    Probing,
    /// XSTP that finds the rate.
    Steady,
    /// TCP with CUBIC, as a Linux kernel comes.
    Cubic,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Fixed, Self::NewReno, Self::Probing, Self::Steady, Self::Cubic];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::NewReno => "newreno",
            Self::Probing => "probing",
            Self::Steady => "steady",
            Self::Cubic => "cubic",
        }
    }

    /// A flow of it over a link of these rates, forward and return.
    pub fn flow(self, forward: BitRate, back: BitRate) -> SharedFlow {
        let told = SessionConfig { reverse_rate: Some(back), ..SessionConfig::gateway(forward) };
        let newreno = SessionConfig { controller: Controller::NewReno, ..told.clone() };
        let config = match self {
            Self::Cubic => return SharedFlow::tcp(&TcpConfig::linux()),
            Self::Fixed => told,
            Self::NewReno => newreno,
            Self::Probing => newreno.with_probing(Some(ProbingConfig::default())),
            Self::Steady => {
                SessionConfig { reverse_rate: Some(back), ..SessionConfig::gateway_auto() }
            }
        };
        SharedFlow::session(&config, &SessionConfig::gateway(back))
    }
}

/// What a way made of a case.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// What the case [asks](Asked) for.
    pub value: f64,
    /// The mean time in the forward queue, in seconds.
    pub queue_s: f64,
    /// What the return channel carried of the bottleneck, with all headers, in bits per second.
    pub return_bps: f64,
    /// From the start until a round trip's arrivals are 0.95 of what can pass; `None`: never.
    pub at_speed: Option<Span>,
}

/// Runs `way` through `case`.
///
/// # Panics
/// When the case's link has no rate in a direction.
pub fn measure(case: &Case, way: Way, seed: u64, run: u64) -> Measured {
    let rate = |rate: Option<BitRate>| rate.expect("the link should have a rate");
    let rates = [rate(case.link.forward.rate), rate(case.link.return_.rate)];
    let flow = || way.flow(rates[0], rates[1]);
    let flows = match case.asked {
        Asked::Share => vec![flow()],
        Asked::OfFair => vec![flow(), Way::Cubic.flow(rates[0], rates[1])],
        Asked::Jain => vec![flow(), flow().at(Span::from_secs(20))],
    };
    let mut shared = Shared::new(&case.link, seed, run, &flows);
    for (at, link) in &case.changes {
        let (bottleneck, link) = (shared.bottleneck, link.clone());
        shared.net.change_at(Instant::ZERO + *at, move |net| {
            net.reconfigure(bottleneck, &link).expect("a case's link is valid");
        });
    }
    let (mut queue, mut looks) = (0.0, 0);
    while shared.net.now() < case.to {
        let next = shared.net.now() + Span::from_millis(100);
        shared.run_until(next.min(case.to));
        if shared.net.now() > case.from {
            queue += shared.queue().as_secs_f64();
            looks += 1;
        }
    }
    let shares = shared.shares(case.from, case.to);
    let value = match case.asked {
        Asked::Share => shares.goodput_bps[0] / case.allowed_bps,
        Asked::OfFair => shares.of_fair[0],
        Asked::Jain => shares.jain,
    };
    let carried = shared.net.offered(shared.bottleneck, Direction::Return).total().bytes;
    Measured {
        value,
        queue_s: queue / f64::from(looks.max(1)),
        return_bps: carried as f64 * 8.0 / case.to.as_secs_f64(),
        at_speed: at_speed(&shared, case),
    }
}

/// When the first flow's arrivals of a round trip first were nearly all that can pass.
fn at_speed(shared: &Shared, case: &Case) -> Option<Span> {
    let window = case.link.round_trip();
    let enough = 0.95 * case.allowed_bps * window.as_secs_f64() / 8.0;
    let step = Span::from_millis(10);
    let mut from = Instant::ZERO;
    while from + window <= case.to {
        if shared.bytes(0, from, from + window) as f64 >= enough {
            return Some(from.since(Instant::ZERO));
        }
        from += step;
    }
    None
}

#[cfg(test)]
mod tests;
