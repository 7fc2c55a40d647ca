//! Random faults followed by a fault-free phase in which all connections must end.

use super::{Rig, Setting};
use crate::traffic::ConnectionPlan;
use crate::{Change, Faults, Meter};
use core::fmt;
use satlink::{Direction, Jitter};
use units::{Instant, RngStream, Span};

/// End of the faults.
const CALM: Instant = Instant::from_nanos(20_000_000_000);
/// Time within which all connections must end.
const PATIENCE: Span = Span::from_secs(120);

/// A violated guarantee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Packet conservation does not hold on the link.
    Accounts,
    /// Connections are still open two minutes after the faults.
    Stuck {
        /// Streams that the terminal still has.
        streams: usize,
    },
    /// Connections were reset, refused or lost.
    Lost {
        /// Number of connections.
        connections: u64,
    },
    /// Streams are not discarded although all connections have ended.
    Remembered {
        /// Number of streams.
        streams: usize,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accounts => f.write_str("packet conservation does not hold on the link"),
            Self::Stuck { streams } => {
                write!(f, "{streams} streams are open two minutes after the faults")
            }
            Self::Lost { connections } => write!(f, "{connections} connections were lost"),
            Self::Remembered { streams } => write!(f, "{streams} streams are not discarded"),
        }
    }
}

impl std::error::Error for Violation {}

/// Runs clients of all kinds through faults drawn from `seed` (loss, duplication, reordering,
/// jitter, outages, corruption, truncation, replay) and then without faults. Returns the run's
/// trace.
///
/// # Errors
/// Returns the first violation.
///
/// # Panics
/// If a client or server receives octets that were not sent, or a relay violates one of its
/// invariants.
pub fn storm(seed: u64) -> Result<u64, Violation> {
    storm_seen(seed).map(|seen| seen.trace)
}

/// Results of a storm over gateways on a link.
#[derive(Clone, Debug)]
pub(crate) struct StormResult {
    pub(crate) trace: u64,
    /// Datagrams sent by both ends.
    pub(crate) packets: u64,
    /// Octets of responses and requests delivered.
    pub(crate) bytes: u64,
    pub(crate) storm: Span,
    pub(crate) recovery: Span,
}

/// As [`storm`], with more results.
pub(crate) fn storm_seen(seed: u64) -> Result<StormResult, Violation> {
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

fn seen(rig: &Rig, recovery: Span) -> StormResult {
    let sum = |meter: &Meter| {
        meter
            .bins()
            .iter()
            .fold((0, 0), |(packets, bytes), bin| (packets + bin.packets, bytes + bin.bytes))
    };
    let [forward, back] = Direction::BOTH.map(|direction| sum(rig.offered(direction)).0);
    let bytes = sum(rig.terminal.client.received()).1 + sum(rig.hub.server.received()).1;
    let storm = CALM.since(Instant::ZERO);
    StormResult { trace: rig.trace_hash(), packets: forward + back, bytes, storm, recovery }
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

/// Many short exchanges and a few long ones, in both directions.
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
