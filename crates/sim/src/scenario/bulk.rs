//! A download, optionally with an upload or other downloads beside it.

use super::{Rig, START, Setting};
use crate::traffic::ConnectionPlan;
use satlink::Direction;
use units::{Instant, Span};

/// Results of a download over a time from its first octet on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bulk {
    /// Octets delivered in order to the client, in bit/s.
    pub goodput_bps: f64,
    /// The same as a fraction of rate × (1 − loss) × 1440/1500.
    pub share: f64,
    /// The terminal's rate with all headers, in bit/s.
    pub return_bps: f64,
    /// Mean forward queue, as its transmission time at the link's rate.
    pub standing_queue: Span,
    /// Maximum forward queue, likewise.
    pub fullest_queue: Span,
    /// Frames dropped by the forward queue.
    pub queue_drops: u64,
    /// Payload rate of the upload in bit/s.
    pub upload_bps: f64,
}

/// Downloads for `length` from the first octet on, on `downloads` connections; with `upload`
/// another connection fills the return link.
///
/// # Panics
/// If no octet arrives within a minute.
pub fn bulk(setting: &Setting, length: Span, downloads: usize, upload: bool) -> Bulk {
    const ENDLESS: u64 = 1 << 40;
    let mut plans = vec![ConnectionPlan::download(START, ENDLESS); downloads];
    if upload {
        plans.push(ConnectionPlan::upload(START, ENDLESS));
    }
    let mut rig = setting.rig(plans);
    let first = first_byte(&mut rig);
    let end = first + length;
    let sampling = Span::from_millis(100);
    let (mut waited, mut samples, mut at) = (0, 0, first);
    while at < end {
        at = (at + sampling).min(end);
        rig.run_until(at);
        waited += rig.link().backlog(Direction::Forward).bytes;
        samples += 1;
    }
    assert!(rig.link().audit(), "packet conservation should hold on the link");
    report(setting, &rig, first, end, waited / samples)
}

/// Time after its first octet until a download first delivers 0.95 of the achievable goodput over a
/// round trip, in round trips; `None` if it does not within `length`. As in `bentpipe bench link`
/// the start of that round trip counts.
pub fn full_rate_after(setting: &Setting, length: Span) -> Option<f64> {
    let mut rig = setting.rig(vec![ConnectionPlan::download(START, 1 << 40)]);
    let first = first_byte(&mut rig);
    let (trip, tick) = (setting.round_trip(), Span::from_millis(10));
    let enough = 0.95 * bound_bps(setting) * trip.as_secs_f64() / 8.0;
    let back = (trip.as_nanos() / tick.as_nanos()) as usize;
    let mut series = Vec::new();
    while rig.now() < first + length {
        rig.run_until(rig.now() + tick);
        series.push(rig.terminal.client.received().total().bytes);
        let before = series.len().checked_sub(back + 1).map_or(0, |index| series[index]);
        let now = rig.now();
        if now >= first + trip && (series[series.len() - 1] - before) as f64 >= enough {
            return Some((now.since(first).as_secs_f64() / trip.as_secs_f64() - 1.0).max(0.0));
        }
    }
    None
}

/// Achievable goodput of a download, in bit/s.
pub(super) fn bound_bps(setting: &Setting) -> f64 {
    let forward = &setting.link.forward;
    let rate = forward.rate.expect("the link should have a rate");
    // Survival of a full packet of 1,500 octets.
    let bits = 1_500.0 * 8.0;
    let survives = (1.0 - forward.loss) * (1.0 - forward.bit_error_ratio).powf(bits);
    rate.as_bps() as f64 * survives * 1_440.0 / 1_500.0
}

/// Time from the request of a file of `bytes` octets to its last octet.
///
/// # Panics
/// If it does not arrive within ten minutes.
pub fn file(setting: &Setting, bytes: u64) -> Span {
    let mut rig = setting.rig(vec![ConnectionPlan::download(START, bytes)]);
    let end = START + Span::from_secs(600);
    assert!(rig.run_while(end, |rig| !rig.terminal.client.is_done()), "the file did not come");
    rig.now().since(START)
}

fn first_byte(rig: &mut Rig) -> Instant {
    let some = |rig: &Rig| !rig.terminal.client.received().bins().is_empty();
    assert!(rig.run_while(START + Span::from_secs(60), |rig| !some(rig)), "no byte arrived");
    rig.now()
}

fn report(setting: &Setting, rig: &Rig, first: Instant, end: Instant, waits: u64) -> Bulk {
    let seconds = end.since(first).as_secs_f64();
    let per_second = |bytes: u64| bytes as f64 * 8.0 / seconds;
    let goodput_bps = per_second(rig.terminal.client.received().between(first, end).bytes);
    let forward = &setting.link.forward;
    let rate = forward.rate.expect("the link should have a rate");
    let counters = rig.link().counters(Direction::Forward);
    Bulk {
        goodput_bps,
        share: goodput_bps / bound_bps(setting),
        return_bps: per_second(rig.offered(Direction::Return).between(first, end).bytes),
        standing_queue: rate.time_for(waits),
        fullest_queue: rate.time_for(counters.fullest.bytes),
        queue_drops: counters.dropped(satlink::DropCause::QueueFull).packets,
        upload_bps: per_second(rig.hub.server.received().between(first, end).bytes),
    }
}
