//! Many short exchanges on one association, and the distribution of their times.

use super::{Rig, START, Setting};
use crate::traffic::{ConnectionPlan, Exchange};
use satlink::Direction;
use units::Span;

/// Interval between the starts of two exchanges: longer than a response that is retransmitted once.
const INTERVAL: Span = Span::from_millis(2_000);
/// Exchanges before those that are measured: the gateways measure the loss of the path.
const WARM_UP: usize = 100;

/// Times of exchanges, and what they cost.
#[derive(Clone, Debug)]
pub struct Exchanges {
    /// Time of each exchange as the client sees it, in ascending order.
    pub times: Vec<Span>,
    /// Mean rates with all headers, in bit/s: forward and return.
    pub rates_bps: [f64; 2],
    /// Repair symbols that the hub sent, and packets that the terminal recovered.
    pub repairs: [u64; 2],
}

impl Exchanges {
    /// Smallest time that at least `per_mille` of the exchanges do not exceed.
    ///
    /// # Panics
    /// If there are no exchanges.
    pub fn quantile(&self, per_mille: usize) -> Span {
        let rank = (self.times.len() * per_mille).div_ceil(1_000);
        self.times[rank.max(1) - 1]
    }
}

/// Runs `count` exchanges with responses of `response` octets, each on a connection of its own.
///
/// # Panics
/// If one does not end within a minute.
pub fn exchanges(setting: &Setting, count: usize, response: u64) -> Exchanges {
    let starts = (0..WARM_UP + count).map(|index| START + INTERVAL * index as u64);
    let exchange = Exchange { request: 300, response };
    let plans: Vec<_> = starts.map(|start| ConnectionPlan::single(start, exchange)).collect();
    let mut rig = setting.rig(plans);
    let begin = START + INTERVAL * WARM_UP as u64;
    let last = START + INTERVAL * (WARM_UP + count) as u64;
    let end = last + Span::from_secs(60);
    let repairs = |rig: &Rig| {
        [rig.hub.hub.totals().repairs_sent, rig.terminal.relay.totals().packets_recovered]
    };
    rig.run_while(begin, |_| true);
    let before = repairs(&rig);
    assert!(rig.run_while(end, |rig| !rig.terminal.client.is_done()), "an exchange did not end");
    let measured = rig.terminal.client.exchanged().iter();
    let mut times: Vec<Span> = measured
        .filter(|exchanged| exchanged.asked >= begin)
        .filter_map(|exchanged| Some(exchanged.done?.since(exchanged.asked)))
        .collect();
    assert_eq!(times.len(), count);
    times.sort_unstable();
    let rate = |direction| {
        let sample = rig.offered(direction).between(begin, last);
        sample.bytes as f64 * 8.0 / last.since(begin).as_secs_f64()
    };
    let after = repairs(&rig);
    Exchanges {
        times,
        rates_bps: [rate(Direction::Forward), rate(Direction::Return)],
        repairs: [after[0] - before[0], after[1] - before[1]],
    }
}
