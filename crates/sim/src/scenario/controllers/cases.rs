//! The cases, each along one axis.

use satlink::{DirectionConfig, LinkConfig, profiles, words};
use units::{Instant, Span};

/// Payload fraction of a full packet.
const USEFUL: f64 = 1_440.0 / 1_500.0;

/// The metric of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Goodput as a fraction of the achievable.
    Share,
    /// Beside a CUBIC flow: goodput as a multiple of half of the achievable.
    OfFair,
    /// Jain's index of two flows, of which the second starts 20 s later.
    Jain,
}

/// A link, its changes, and a metric.
#[derive(Clone, Debug)]
pub struct Case {
    /// The axis.
    pub study: &'static str,
    /// A readable name of the point on it.
    pub point: &'static str,
    /// The metric.
    pub metric: Metric,
    /// The initial link.
    pub link: LinkConfig,
    /// Later links and their times.
    pub changes: Vec<(Span, LinkConfig)>,
    /// Start of the measured interval.
    pub from: Instant,
    /// End of the run.
    pub to: Instant,
    /// Mean achievable goodput from `from` to `to` in bit/s.
    pub allowed_bps: f64,
}

impl Case {
    /// Its name: study and point.
    pub fn key(&self) -> String {
        format!("{}/{}", self.study, self.point)
    }

    /// A download of a minute over `link`.
    fn minute(study: &'static str, point: &'static str, link: LinkConfig) -> Self {
        let allowed_bps = allowed(&link);
        let (from, to) = (Instant::ZERO, at(60));
        Self { study, point, metric: Metric::Share, link, changes: vec![], from, to, allowed_bps }
    }
}

/// All cases, by study.
pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for (point, words) in [
        ("0 %", "both loss 0%"),
        ("0.1 %", "both loss 0.1%"),
        ("1 %", "both loss 1%"),
        ("5 %", "both loss 5%"),
        ("20 %", "both loss 20%"),
    ] {
        cases.push(Case::minute("loss", point, geo(words)));
    }
    for (point, words, millis) in [
        ("0.1 s", "outage at 20s for 100ms", 100),
        ("1 s", "outage at 20s for 1s", 1_000),
        ("10 s", "outage at 20s for 10s", 10_000),
        ("30 s", "outage at 20s for 30s", 30_000),
    ] {
        let over = at(20) + Span::from_millis(millis);
        let case = Case::minute("blackout", point, geo(words));
        cases.push(Case { from: over, to: over + Span::from_secs(20), ..case });
    }
    cases.extend([("10 ms", 10), ("40 ms", 40)].map(|(point, step)| handoff(point, step)));
    for (point, words) in
        [("0.25", "both limit 0.25bdp"), ("1", "both limit 1bdp"), ("4", "both limit 4bdp")]
    {
        cases.push(Case::minute("queue", point, geo(words)));
    }
    for (point, words) in [
        ("1 kbit/s", "return rate 1kbit"),
        ("10 kbit/s", "return rate 10kbit"),
        ("100 kbit/s", "return rate 100kbit"),
        ("1 Mbit/s", "return rate 1mbit"),
    ] {
        cases.push(Case::minute("return", point, geo(words)));
    }
    cases.push(Case::minute("demand", "0.5–1.3 s", geo("return delay 900ms 400ms")));
    cases.push(fade());
    for (study, point, metric) in
        [("compete", "1 cubic", Metric::OfFair), ("own", "2 flows", Metric::Jain)]
    {
        let from = if metric == Metric::Jain { at(20) } else { at(0) };
        cases.push(Case { metric, from, to: at(300), ..Case::minute(study, point, geo("")) });
    }
    cases
}

/// A handover every 15 s: an interruption and another delay.
fn handoff(point: &'static str, step: u64) -> Case {
    let base = "both limit 312500b outage at 15s for 100ms every 15s";
    let mut near = profiles::by_name("leo").expect("the profile should exist");
    words::apply_link(&mut near, base).expect("the words should be understood");
    let mut far = near.clone();
    let longer = |control: &mut DirectionConfig| control.delay += Span::from_millis(step);
    longer(&mut far.forward);
    longer(&mut far.return_);
    let turns = [&far, &near, &far];
    let changes = (1..).zip(turns).map(|(turn, link)| (Span::from_secs(15 * turn), link.clone()));
    let changes = changes.collect();
    Case { changes, ..Case::minute("handoff", point, near) }
}

/// A fade: 30 % of the rate for 20 s.
fn fade() -> Case {
    let (clear, rain) = (geo("both limit 750kb"), geo("both limit 750kb forward rate 3mbit"));
    let changes = vec![(Span::from_secs(20), rain.clone()), (Span::from_secs(40), clear.clone())];
    let allowed_bps = (2.0 * allowed(&clear) + allowed(&rain)) / 3.0;
    Case { changes, allowed_bps, ..Case::minute("fade", "to 30 %", clear) }
}

fn geo(words: &str) -> LinkConfig {
    let mut link = profiles::by_name("geo").expect("the profile should exist");
    words::apply_link(&mut link, words).expect("the words should be understood");
    link
}

fn allowed(link: &LinkConfig) -> f64 {
    let rate = link.forward.rate.expect("the link should have a rate").as_bps() as f64;
    rate * (1.0 - link.forward.loss) * USEFUL
}

fn at(secs: u64) -> Instant {
    Instant::ZERO + Span::from_secs(secs)
}
