//! The open question of section 8: at which fraction of congestion losses probing ends to pay off.

use super::trial::{Party, Trial};
use crate::experiments::{Draw, Point, Setting, Values};
use satlink::{DropCause, Limit, LinkConfig, MarkovState, TwoStateMarkov};
use units::{BitRate, Span};

/// The paper's model: each bad state is congested, with a longer delay, or it is not.
pub(super) const MODELLED: &str = "congestion-modelled";
/// A link with a queue that overflows and with random loss.
pub(super) const QUEUED: &str = "congestion-queued";

/// Mean sojourn times of the modelled study, in seconds.
pub(super) const STAYS: [u64; 2] = [10, 1];
/// Fraction of packets that its bad states drop.
const DROP: f64 = 0.2;

/// Returns the fractions of congestion among bad states, in percent.
pub(super) fn shares(quick: bool) -> &'static [u32] {
    if quick { &[0, 50, 100] } else { &[0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100] }
}

/// Returns the random loss ratios in addition to the queue's losses, in packets per million.
pub(super) fn losses(quick: bool) -> &'static [u32] {
    match quick {
        true => &[0, 3_000, 30_000],
        false => &[0, 100, 300, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000],
    }
}

/// Returns the key of a point of the modelled study.
pub(super) fn modelled_key(stay: u64, share: u32, party: Party) -> String {
    format!("{stay}s/{share}/{}", party.name())
}

/// Returns the key of a point of the queued study.
pub(super) fn queued_key(loss: u32, party: Party) -> String {
    format!("{loss}/{}", party.name())
}

pub(super) fn plan(setting: &Setting) -> Vec<Point> {
    let mut points = Vec::new();
    for party in Party::ALL {
        for stay in STAYS {
            for &share in shares(setting.quick) {
                let trial = Trial::over(setting, party, modelled(stay, f64::from(share) / 100.0));
                let key = modelled_key(stay, share, party);
                let simulate = move |draw: &Draw| trial.run(draw);
                points.push(Point::new(MODELLED, key, setting.replications, simulate));
            }
        }
        for &loss in losses(setting.quick) {
            let mut trial = Trial::over(setting, party, LinkConfig::default());
            trial.link = queued(f64::from(loss) / 1e6);
            let key = queued_key(loss, party);
            let simulate = move |draw: &Draw| queued_values(&trial, draw);
            points.push(Point::new(QUEUED, key, setting.replications, simulate));
        }
    }
    points
}

/// Returns a link with good states without congestion and bad states of which `share` have a longer
/// delay.
fn modelled(stay: u64, share: f64) -> LinkConfig {
    let delays = [Span::from_millis(100), Span::from_millis(150)];
    let state = |drop, second_delay| MarkovState {
        mean_stay: Span::from_secs(stay),
        drop,
        delays,
        second_delay,
    };
    LinkConfig {
        shared: Some(TwoStateMarkov { states: [state(0.0, 0.0), state(DROP, share)] }),
        ..LinkConfig::default()
    }
}

/// Returns a link of 800 kbit/s and 200 ms round trip, which 19 segments fill, with a queue of 8
/// packets. A window of 64 segments, spread over a round trip as STATs open it, is 1.28 Mbit/s and
/// overflows the queue.
fn queued(loss: f64) -> LinkConfig {
    let mut link = LinkConfig::default();
    for direction in [&mut link.forward, &mut link.return_] {
        direction.rate = Some(BitRate::from_kbps(800));
        direction.delay = Span::from_millis(100);
        direction.queue.limit = Limit::Packets(8);
        direction.loss = loss;
    }
    link
}

fn queued_values(trial: &Trial, draw: &Draw) -> Result<Values, String> {
    let seen = trial.transfer(draw)?;
    let dropped = |cause| seen.forward.dropped(cause).packets as f64;
    let (queue, loss) = (dropped(DropCause::QueueFull), dropped(DropCause::Loss));
    let share = if queue + loss > 0.0 { queue * 100.0 / (queue + loss) } else { 0.0 };
    Ok(trial
        .values(&seen)
        .with("queue_drops", queue)
        .with("random_drops", loss)
        .with("congestion_percent", share))
}
