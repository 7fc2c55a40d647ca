//! Any mix of faults, then calm: everything must come to its end.

use super::{Rig, Setting};
use crate::traffic::ConnectionPlan;
use crate::{Change, Faults, Meter};
use core::fmt;
use satlink::{Direction, Jitter};
use units::{Instant, RngStream, Span};

/// When the storm ends.
const CALM: Instant = Instant::from_nanos(20_000_000_000);
/// How long everything may take after that.
const PATIENCE: Span = Span::from_secs(120);

/// A promise that a storm broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The link's accounts do not balance.
    Accounts,
    /// After two minutes of calm some connections have not come to their end.
    Stuck {
        /// Streams that the terminal still has.
        streams: usize,
    },
    /// Connections were reset, refused or lost.
    Lost {
        /// How many.
        connections: u64,
    },
    /// Streams are remembered although all connections are over.
    Remembered {
        /// How many.
        streams: usize,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accounts => f.write_str("the link's accounts do not balance"),
            Self::Stuck { streams } => {
                write!(f, "after two minutes of calm {streams} streams stand")
            }
            Self::Lost { connections } => write!(f, "{connections} connections were lost"),
            Self::Remembered { streams } => write!(f, "{streams} streams are not forgotten"),
        }
    }
}

impl std::error::Error for Violation {}

/// Runs clients of all kinds through a storm drawn from `seed` (loss, duplicates, overtaking,
/// jitter, outages, corruption, truncation, replay) and then calm. Returns the run's trace.
///
/// # Errors
/// The first promise that was broken.
///
/// # Panics
/// When a client or server gets a byte that was not sent, or a relay breaks a rule of its own.
pub fn storm(seed: u64) -> Result<u64, Violation> {
    storm_seen(seed).map(|seen| seen.trace)
}

/// What a storm over gateways was like.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) trace: u64,
    /// Datagrams that both ends sent.
    pub(crate) packets: u64,
    /// Bytes of responses and requests that arrived.
    pub(crate) bytes: u64,
    pub(crate) storm: Span,
    pub(crate) recovery: Span,
}

/// As [`storm`], with more about it.
pub(crate) fn storm_seen(seed: u64) -> Result<Seen, Violation> {
    let mut rig = rig(seed);
    rig.run_until(CALM);
    if !rig.link().audit() {
        return Err(Violation::Accounts);
    }
    rig.change_at(CALM, Change::Link(Box::new(calm().link)));
    rig.change_at(CALM, Change::Faults(Faults::default()));
    let over = |rig: &Rig| rig.terminal.client.is_done();
    if !rig.run_while(CALM + PATIENCE, |rig| !over(rig)) {
        return Err(Violation::Stuck { streams: rig.terminal.relay.statistics().streams });
    }
    let recovery = rig.now().since(CALM);
    rig.run_until(rig.now() + Span::from_secs(10));
    let connections = rig.terminal.client.lost() + rig.hub.server.lost();
    if connections > 0 {
        return Err(Violation::Lost { connections });
    }
    match rig.terminal.relay.statistics().streams {
        0 => Ok(seen(&rig, recovery)),
        streams => Err(Violation::Remembered { streams }),
    }
}

fn seen(rig: &Rig, recovery: Span) -> Seen {
    let sum = |meter: &Meter| {
        meter
            .bins()
            .iter()
            .fold((0, 0), |(packets, bytes), bin| (packets + bin.packets, bytes + bin.bytes))
    };
    let [forward, back] = Direction::BOTH.map(|direction| sum(rig.offered(direction)).0);
    let bytes = sum(rig.terminal.client.received()).1 + sum(rig.hub.server.received()).1;
    let storm = CALM.since(Instant::ZERO);
    Seen { trace: rig.trace_hash(), packets: forward + back, bytes, storm, recovery }
}

fn calm() -> Setting {
    Setting::new("geo", "rate 3mbit limit 0.5bdp")
}

fn rig(seed: u64) -> Rig {
    let mut rng = RngStream::new(seed, 0, "sim/scenario/storm");
    let mut setting = calm().with_seed(seed);
    for direction in Direction::BOTH {
        let direction = setting.link.direction_mut(direction);
        direction.loss = 0.3 * rng.uniform() * rng.uniform();
        direction.duplicate = 0.1 * rng.uniform();
        direction.delay = Span::from_millis(20 + rng.below(400));
        direction.jitter = Jitter::Uniform(Span::from_millis(rng.below(60)));
        direction.keep_order = rng.chance(0.5);
    }
    setting.link.outages = vec![satlink::Outage {
        at: Span::from_millis(rng.below(10_000)),
        length: Span::from_millis(100 + rng.below(4_000)),
        every: Some(Span::from_secs(10)),
        direction: None,
    }];
    let mut share = || 0.1 * rng.uniform() * rng.uniform();
    let faults =
        Faults { corrupt: share(), truncate: share(), duplicate: share(), replay: share() };
    let mut rig = setting.rig(plans());
    rig.change_at(Instant::ZERO, Change::Faults(faults));
    rig
}

/// Many short exchanges and a few long ones, both ways.
fn plans() -> Vec<ConnectionPlan> {
    let at = |ms| Instant::ZERO + Span::from_millis(ms);
    let mut plans = vec![
        ConnectionPlan::download(at(500), 1_500_000),
        ConnectionPlan::upload(at(900), 400_000),
    ];
    plans.extend(ConnectionPlan::page(at(2_000), 30, 212_207, 6));
    plans.extend(ConnectionPlan::page(at(3_000), 30, 212_207, 1));
    plans.extend((0..20).map(|n| ConnectionPlan::download(at(1_000 + n * 300), 1 + n * n * 100)));
    plans
}
