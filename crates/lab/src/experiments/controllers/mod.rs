//! The congestion controllers, compared under each impairment of satellite links.
//!
//! ```text
//!   mod       the points: every controller in every case, and transfers of 100 MB
//!   cells     the goals of `steady`, and their evaluation
//!   figures   the picture: controllers across, cases down, simulated and live
//! ```

mod cells;
mod figures;

use super::{Draw, Entry, Point, Setting, Values};
use satlink::LinkConfig;
use sim::scenario::controllers::{Case, RateControl, all, measure};
use sim::scenario::single_session::SingleSession;
use units::{BitRate, Span};
use xstp::session::SessionConfig;

/// `steady` in comparison with `fixed`, `newreno`, `probing` and TCP's CUBIC.
pub(crate) static ENTRY: Entry = Entry {
    id: "controllers",
    title: "Ways of controlling the rate",
    source: "this project's goals; for transfers of 100 MB, picoquic's published satellite figures",
    about: "Every way of controlling the rate through every kind of trouble: loss, blackouts, \
            hand-offs, queues, narrow and slow return channels, rain, and others on the link.",
    replications: 5,
    live: None,
    parameters: &[],
    plan,
    judge: cells::judge,
};

/// The study of transfers.
const TRANSFER: &str = "transfer";
/// Size of a transfer in bytes.
const BYTES: u64 = 100_000_000;
/// Forward rate of a transfer.
const FAST: BitRate = BitRate::from_mbps(250);

/// Transfers: name, what the sender knows of the rate in advance, and the loss.
const TRANSFERS: [(&str, Known, &str); 6] = [
    ("cold", Known::Nothing, "loss 0%"),
    ("remembered", Known::Remembered, "loss 0%"),
    ("configured", Known::Configured, "loss 0%"),
    ("cold, 1 %", Known::Nothing, "loss 1%"),
    ("remembered, 1 %", Known::Remembered, "loss 1%"),
    ("configured, 1 %", Known::Configured, "loss 1%"),
];

/// What the sender knows of the bottleneck rate before a transfer.
#[derive(Clone, Copy, Debug)]
enum Known {
    Nothing,
    Remembered,
    Configured,
}

/// Returns the key of the point of a controller in a case.
fn key(case: &Case, way: &str) -> String {
    format!("{}/{way}", case.point)
}

fn plan(setting: &Setting) -> Vec<Point> {
    let mut points = Vec::new();
    for case in all() {
        for way in RateControl::ALL {
            let case = case.clone();
            let key = key(&case, way.name());
            points.push(Point::new(case.study, key, setting.replications, move |draw| {
                Ok(one(&case, way, draw))
            }));
        }
    }
    // The median of a few runs depends on losses near the end.
    let transfers = 4 * setting.replications + 1;
    for (name, known, words) in TRANSFERS {
        points.push(Point::new(TRANSFER, name, transfers, move |draw| {
            let seconds = transfer(known, words, draw).ok_or("it took longer than 60 s")?;
            Ok(Values::new().with("time_s", seconds.as_secs_f64()))
        }));
    }
    points
}

fn one(case: &Case, way: RateControl, draw: &Draw) -> Values {
    let seen = measure(case, way, draw.seed, draw.run);
    // A rate that is never reached is stored as a negative time.
    let at_speed = seen.at_speed.map_or(-1.0, Span::as_secs_f64);
    Values::new()
        .with("value", seen.value)
        .with("queue_s", seen.queue_s)
        .with("return_bps", seen.return_bps)
        .with("at_speed_s", at_speed)
}

/// Transfers 100 MB over 250/3 Mbit/s and 600 ms. Returns the time from the first packet to the
/// last octet in order.
fn transfer(known: Known, words: &str, draw: &Draw) -> Option<Span> {
    let mut link: LinkConfig = satlink::profiles::by_name("geo").expect("the profile exists");
    let fast = "forward rate 250mbit limit 1bdp return rate 3mbit both";
    satlink::words::apply_link(&mut link, &format!("{fast} {words}")).expect("they are words");
    let auto = SessionConfig::gateway_auto();
    let config = match known {
        Known::Nothing => auto,
        Known::Remembered => SessionConfig { initial_rate: Some(FAST), ..auto },
        Known::Configured => SessionConfig { max_rate: Some(FAST), ..auto },
    };
    let back = SessionConfig::gateway(BitRate::from_mbps(3));
    let seed = draw.seed.wrapping_mul(1_000).wrapping_add(draw.run);
    SingleSession::new(&link, seed, &config, &back, BYTES).time_for(BYTES, Span::from_secs(60))
}

#[cfg(test)]
mod tests;
