//! Compares rate controls on typical satellite links.
//!
//! A [`Case`] is a link, its changes, and a metric; [`measure`] runs one rate control in it. All
//! sessions are single, without gateways, on hosts of their own; TCP is the simulated one.

mod cases;

pub use cases::{Case, Metric, all};

use super::shared::{Shared, SharedFlow};
use satlink::Direction;
use simtcp::TcpConfig;
use units::{BitRate, Instant, Span};
use xstp::congestion::Controller;
use xstp::session::{ProbingConfig, SessionConfig};

/// A transport and its rate control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RateControl {
    /// XSTP with the link's rate configured.
    Fixed,
    /// XSTP with the published congestion window, below the link's rate.
    NewReno,
    /// The same with probing.
    Probing,
    /// XSTP with the controller `steady`.
    Steady,
    /// TCP with CUBIC and the defaults of a Linux kernel.
    Cubic,
}

impl RateControl {
    /// All, in order.
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
        let gateway = SessionConfig { reverse_rate: Some(back), ..SessionConfig::gateway(forward) };
        let newreno = SessionConfig { controller: Controller::NewReno, ..gateway.clone() };
        let config = match self {
            Self::Cubic => return SharedFlow::tcp(&TcpConfig::linux()),
            Self::Fixed => gateway,
            Self::NewReno => newreno,
            Self::Probing => newreno.with_probing(Some(ProbingConfig::default())),
            Self::Steady => {
                SessionConfig { reverse_rate: Some(back), ..SessionConfig::gateway_auto() }
            }
        };
        SharedFlow::session(&config, &SessionConfig::gateway(back))
    }
}

/// The results of a rate control in a case.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// The case's [metric](Metric).
    pub value: f64,
    /// Mean time in the forward queue, in seconds.
    pub queue_s: f64,
    /// Rate of the return link with all headers, in bit/s.
    pub return_bps: f64,
    /// Time from the start until a round trip's goodput is 0.95 of the achievable; `None`: never.
    pub at_speed: Option<Span>,
}

/// Runs `control` in `case`.
///
/// # Panics
/// If the case's link has no rate in a direction.
pub fn measure(case: &Case, control: RateControl, seed: u64, run: u64) -> Measured {
    let rate = |rate: Option<BitRate>| rate.expect("the link should have a rate");
    let rates = [rate(case.link.forward.rate), rate(case.link.return_.rate)];
    let flow = || control.flow(rates[0], rates[1]);
    let flows = match case.metric {
        Metric::Share => vec![flow()],
        Metric::OfFair => vec![flow(), RateControl::Cubic.flow(rates[0], rates[1])],
        Metric::Jain => vec![flow(), flow().at(Span::from_secs(20))],
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
    let value = match case.metric {
        Metric::Share => shares.goodput_bps[0] / case.allowed_bps,
        Metric::OfFair => shares.of_fair[0],
        Metric::Jain => shares.jain,
    };
    let carried = shared.net.offered(shared.bottleneck, Direction::Return).total().bytes;
    Measured {
        value,
        queue_s: queue / f64::from(looks.max(1)),
        return_bps: carried as f64 * 8.0 / case.to.as_secs_f64(),
        at_speed: at_speed(&shared, case),
    }
}

/// When the first flow's goodput of a round trip was first nearly the achievable one.
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
