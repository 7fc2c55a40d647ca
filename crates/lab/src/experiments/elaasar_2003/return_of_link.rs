//! Section 6.3: the time until a sender detects the end of a blackout.

use super::trial::{Party, Trial};
use crate::experiments::{Draw, Point, Setting, Values};
use satlink::LinkConfig;
use sim::transfer;
use units::{RngStream, Span};

pub(super) const STUDY: &str = "return-of-link";

/// Lengths of the blackouts in seconds.
pub(super) const BLACKOUTS: [u64; 5] = [5, 10, 20, 50, 100];

pub(super) fn key(blackout: u64, party: Party) -> String {
    format!("{blackout}s/{}", party.name())
}

/// Returns the points: one blackout per job, at a random time.
pub(super) fn plan(setting: &Setting) -> Vec<Point> {
    let mut points = Vec::new();
    for party in Party::ALL {
        for blackout in BLACKOUTS {
            let mut trial = Trial::over(setting, party, LinkConfig::default());
            for direction in [&mut trial.link.forward, &mut trial.link.return_] {
                direction.delay = Span::from_millis(100);
            }
            // The transfer must not end before the blackout.
            trial.size = 10_000_000;
            let simulate = move |draw: &Draw| simulate(&trial, blackout, draw);
            points.push(Point::new(STUDY, key(blackout, party), setting.replications, simulate));
        }
    }
    points
}

fn simulate(trial: &Trial, blackout: u64, draw: &Draw) -> Result<Values, String> {
    let mut rng = RngStream::new(draw.seed, draw.run, "elaasar-2003/blackout");
    let at = Span::from_secs_f64(3.0 + rng.uniform());
    let length = Span::from_secs_f64(blackout as f64 + rng.uniform());
    let found = transfer::recovery_time(&trial.config(draw), at, length)
        .map_err(|error| error.to_string())?
        .ok_or("the link was not found again")?;
    Ok(Values::new().with("seconds", found.as_secs_f64()))
}
