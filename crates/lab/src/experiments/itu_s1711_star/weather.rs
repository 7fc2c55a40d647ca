//! What an outage of the outbound costs those behind it.
//!
//! A month's shares of a per mille and two cannot be simulated as months, and need not be: between
//! outages everything is as in fair weather. One outage is run, beside the same users in fair
//! weather; objects that were not fetched are counted in seconds of fair weather. A month whose
//! share of `s` consists of such outages then has `1 - s * cost / length` of its objects.

use super::PART;
use crate::experiments::{Draw, Values};
use satlink::{Direction, Outage};
use sim::multi_access::{CLUSTERS, PROBES, Stack, Star, StarReport};
use units::{Instant, Span};

/// How long an outage lasts.
pub(super) const LENGTHS: [Span; 4] =
    [Span::from_secs(10), Span::from_secs(30), Span::from_secs(120), Span::from_secs(300)];
/// That of which the months' are made.
pub(super) const USUAL: Span = Span::from_secs(120);

/// When it begins, and how long is looked at what comes after it.
const AT: Span = Span::from_secs(60);
const AFTER: Span = Span::from_secs(90);

/// An outage of `length`.
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
        // An outage is not to be taken for a terminal that has gone.
        satellite.no_response = Some(length + AFTER);
    }
    star
}

/// What users had: when, and how long after they had asked.
fn users(seen: &StarReport) -> impl Iterator<Item = (Instant, Span)> {
    let sites = &seen.sites[..seen.sites.len() - PROBES];
    sites.iter().flat_map(|site| site.responses.iter().copied())
}
