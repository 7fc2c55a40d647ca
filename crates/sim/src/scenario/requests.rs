//! Short exchanges: a request, a page.

use super::{START, Setting};
use crate::traffic::{ConnectionPlan, Exchange};
use units::{BitRate, Span};

/// Time of a request and its response, connection set-up included, as the client sees it; with
/// `under_load` while a download fills the link.
///
/// If the response does not arrive within a minute.
/// When the response does not come within a minute.
pub fn request(setting: &Setting, bytes: Exchange, under_load: bool) -> Span {
    let at = if under_load { START + Span::from_secs(20) } else { START };
    let mut plans = vec![ConnectionPlan::single(at, bytes)];
    if under_load {
        plans.push(ConnectionPlan::download(START, 1 << 40));
    }
    let mut rig = setting.rig(plans);
    let done = |client: &crate::traffic::Client<_>| {
        client.exchanged().iter().find(|one| one.connection == 0).and_then(|one| one.done)
    };
    let came = rig.run_while(at + Span::from_secs(60), |rig| done(&rig.terminal.client).is_none());
    assert!(came, "no response came");
    rig.now().since(at)
}

/// Duration of a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Page {
    /// From the first connection to the last octet.
    pub took: Span,
    /// Transmission time of its octets at the forward rate.
    pub transmission: Span,
}

/// ITU-R S.1711's page `China2008`: 30 objects, 212,207 octets, on so many connections (1: all
/// objects but the first are pipelined when the first has arrived).
///
/// # Panics
/// If it does not arrive within two minutes.
pub fn page(setting: &Setting, connections: usize) -> Page {
    const BYTES: u64 = 212_207;
    let mut rig = setting.rig(ConnectionPlan::page(START, 30, BYTES, connections));
    let end = START + Span::from_secs(120);
    assert!(rig.run_while(end, |rig| !rig.terminal.client.is_done()), "the page did not come");
    let rate = setting.link.forward.rate.unwrap_or(BitRate::from_mbps(10));
    Page { took: rig.now().since(START), transmission: rate.time_for(BYTES) }
}
