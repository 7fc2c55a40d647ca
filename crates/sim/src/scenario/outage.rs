//! A link outage.

use super::{START, Setting};
use crate::traffic::ConnectionPlan;
use satlink::Direction;
use units::Span;

/// Effects of an outage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outage {
    /// From the end of the outage until packets enter the link at full rate, in round trips.
    pub recovered_after: f64,
    /// Connections lost.
    pub lost: u64,
    /// Whether every octet was delivered.
    pub complete: bool,
}

/// A download of 60 MB with an outage of `length` in its middle.
///
/// # Panics
/// If the sender does not return to its rate.
pub fn outage(setting: &Setting, length: Span) -> Outage {
    const BYTES: u64 = 60_000_000;
    let begins = START + Span::from_secs(20);
    let returns = begins + length;
    let mut setting = setting.clone();
    setting.link.outages.push(satlink::Outage {
        at: begins.since(units::Instant::ZERO),
        length,
        every: None,
        direction: None,
    });
    let mut rig = setting.rig(vec![ConnectionPlan::download(START, BYTES)]);
    rig.run_until(returns + Span::from_secs(30));
    let rate = setting.rates[0];
    let meter = rig.offered(Direction::Forward);
    // Full rate: at least 95 % of it over 200 ms.
    let window = Span::from_millis(200);
    let full = rate.bytes_in(window) * 95 / 100;
    let back = (0..)
        .map(|step| returns + meter.bin() * step)
        .take_while(|&at| at < returns + Span::from_secs(30))
        .find(|&at| meter.between(at, at + window).bytes >= full)
        .expect("the sender should come back to its rate");
    let complete =
        rig.run_while(returns + Span::from_secs(200), |rig| !rig.terminal.client.is_done());
    Outage {
        recovered_after: back.since(returns).as_secs_f64() / setting.round_trip().as_secs_f64(),
        lost: rig.terminal.client.lost() + rig.hub.server.lost(),
        complete,
    }
}
