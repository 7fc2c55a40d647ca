//! A link outage.

use super::{START, Setting};
use crate::Meter;
use crate::traffic::ConnectionPlan;
use satlink::Direction;
use units::{Instant, Span};

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
    let setting = with_outage(setting, begins, length, None);
    let mut rig = setting.rig(vec![ConnectionPlan::download(START, BYTES)]);
    rig.run_until(returns + Span::from_secs(30));
    let rate = setting.rates[0];
    let meter = rig.offered(Direction::Forward);
    // Full rate: at least 95 % of it over 200 ms.
    let window = Span::from_millis(200);
    let full = rate.bytes_in(window) * 95 / 100;
    let back = first_window(meter, returns, window, full)
        .expect("the sender should come back to its rate");
    let complete =
        rig.run_while(returns + Span::from_secs(200), |rig| !rig.terminal.client.is_done());
    Outage {
        recovered_after: back.as_secs_f64() / setting.round_trip().as_secs_f64(),
        lost: rig.terminal.client.lost() + rig.hub.server.lost(),
        complete,
    }
}

/// Times from the end of an outage to the stages of the recovery of a download.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recovery {
    /// First packet from the hub that leaves the link at the terminal.
    pub heard: Option<Span>,
    /// First byte that the client receives in order.
    pub in_order: Option<Span>,
    /// Start of the first second in which the client receives 80 % of the achievable goodput. The
    /// octets that arrived before the outage behind a lost packet do not count: the client
    /// receives them with the first byte.
    pub full_second: Option<Span>,
}

/// Measures how a download recovers from an outage of `length` in `direction`, both if `None`.
pub fn recovery(setting: &Setting, length: Span, direction: Option<Direction>) -> Recovery {
    const OBSERVED: Span = Span::from_secs(20);
    let begins = START + Span::from_secs(20);
    let returns = begins + length;
    let achievable = super::bulk::bound_bps(setting);
    let setting = with_outage(setting, begins, length, direction);
    let mut rig = setting.rig(vec![ConnectionPlan::download(START, 1 << 40)]);
    rig.run_until(returns + OBSERVED);
    let (link, client) = (rig.delivered(Direction::Forward), rig.terminal.client.received());
    let in_order = first_window(client, returns, client.bin(), 1);
    let enough = (0.8 * achievable / 8.0) as u64;
    let full_second = in_order.and_then(|first| {
        let after = first + client.bin();
        let full = first_window(client, returns + after, Span::from_secs(1), enough)?;
        Some(after + full)
    });
    Recovery { heard: first_window(link, returns, link.bin(), 1), in_order, full_second }
}

fn with_outage(
    setting: &Setting,
    at: Instant,
    length: Span,
    direction: Option<Direction>,
) -> Setting {
    let mut setting = setting.clone();
    let at = at.since(Instant::ZERO);
    setting.link.outages.push(satlink::Outage { at, length, every: None, direction });
    setting
}

/// Time from `from` to the first window of `length` in which `meter` counted `bytes`, in steps of
/// the meter's bins; only windows that have passed.
fn first_window(meter: &Meter, from: Instant, length: Span, bytes: u64) -> Option<Span> {
    let end = Instant::ZERO + meter.bin() * meter.bins().len() as u64;
    (0..)
        .map(|step| from + meter.bin() * step)
        .take_while(|&at| at + length <= end)
        .find(|&at| meter.between(at, at + length).bytes >= bytes)
        .map(|at| at.since(from))
}
