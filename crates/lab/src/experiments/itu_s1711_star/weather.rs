//! The cost of an outage of the outbound link for its users.
//!
//! Monthly unavailabilities of one or two per mille are not simulated as months. Without outages
//! the state is that of fair weather, so one outage is run and compared with the same users in fair
//! weather; missing objects are converted to seconds of fair weather. A month with the
//! unavailability `s`, made of such outages, has `1 - s * cost / length` of its objects.

use super::PART;
use crate::experiments::{Draw, Values};
use satlink::{Direction, Outage};
use sim::multi_access::{CLUSTERS, PROBES, Stack, Star, StarReport};
use units::{Instant, Span};

pub(super) const LENGTHS: [Span; 4] =
    [Span::from_secs(10), Span::from_secs(30), Span::from_secs(120), Span::from_secs(300)];
/// The outage length that the months consist of.
pub(super) const USUAL: Span = Span::from_secs(120);

/// Start of the outage, and duration of the observation after its end.
const AT: Span = Span::from_secs(60);
const AFTER: Span = Span::from_secs(90);

/// Simulates an outage of `length`.
pub(super) fn one(length: Span, draw: &Draw) -> Values {
    let fair = star(length);
    let outage = Outage { at: AT, length, every: None, direction: Some(Direction::Forward) };
    let away = Star { outages: vec![outage], ..fair.clone() };
    let [fair, away] = [fair, away].map(|star| star.run(draw.seed, draw.run));
    let (objects, kept) = (users(&fair).count() as f64, users(&away).count() as f64);
    let end = Instant::ZERO + AT + length;
    let waited = users(&away).filter(|&(came, took)| came > end && came < end + took);
    let back: Vec<f64> = waited.map(|(came, _)| came.since(end).as_secs_f64()).collect();
    let lost: u64 = away.sites.iter().map(|site| site.lost).sum();
    Values::new()
        .with("cost_s", (objects - kept) / objects * fair.duration.as_secs_f64())
        .with("waiting", back.len() as f64 / (away.sites.len() - PROBES) as f64)
        .with("back_mean_s", back.iter().sum::<f64>() / back.len().max(1) as f64)
        .with("back_longest_s", back.iter().copied().fold(0.0, f64::max))
        .with("lost", lost as f64)
}

fn star(length: Span) -> Star {
    let mut star = Star::star_one_part(CLUSTERS[1], PART, 1.0, AT + length + AFTER);
    if let Stack::Split { satellite, .. } = &mut star.stack {
        // The outage must not count as a lost terminal.
        satellite.no_response = Some(length + AFTER);
    }
    star
}

/// Returns completion and duration of each user's request.
fn users(seen: &StarReport) -> impl Iterator<Item = (Instant, Span)> {
    let sites = &seen.sites[..seen.sites.len() - PROBES];
    sites.iter().flat_map(|site| site.responses.iter().copied())
}
