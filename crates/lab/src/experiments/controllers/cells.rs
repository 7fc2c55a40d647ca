//! The goals of the controller `steady`, written down before measurement, and their evaluation.

use super::{TRANSFER, TRANSFERS, figures, key};
use crate::experiments::publication::{page, paper};
use crate::experiments::statistics::{Summary, quantile};
use crate::experiments::{Cell, Outcome, Results, Section, Setting, Table};
use sim::scenario::controllers::{Case, Metric, RateControl, all};

page!(PAGE = "controllers/goals");
page!(ALL = "controllers/numbers");
paper!(PAPER = "controllers");

pub(super) fn judge(setting: &Setting, results: &Results) -> Outcome {
    let seen = Seen { results, cases: all() };
    let transfers: Vec<&str> = TRANSFERS.iter().map(|(name, ..)| *name).collect();
    let values = [("words", seen.words()), ("transfers", transfers.join("; "))];
    Outcome {
        summary: PAPER.summary(&values),
        pictures: vec![figures::picture(setting, results, &seen.cases)],
        set_up: PAPER.set_up(&values),
        sections: vec![
            Section { cells: seen.cells(), ..PAGE.section() },
            Section {
                tables: vec![seen.table("value", "shares"), seen.table("queue_s", "queues")],
                ..ALL.section()
            },
        ],
    }
}

struct Seen<'a> {
    results: &'a Results,
    cases: Vec<Case>,
}

impl Seen<'_> {
    fn of(&self, study: &str, point: &str, way: RateControl, name: &str) -> Summary {
        self.results.summary(study, &format!("{point}/{}", way.name()), name)
    }

    fn median(&self, transfer: &str) -> f64 {
        quantile(&self.results.values(TRANSFER, transfer, "time_s"), 0.5).unwrap_or(f64::MAX)
    }

    /// Lists the cases in which another controller is better by more than 0.05.
    fn words(&self) -> String {
        let mut lost = Vec::new();
        for case in self.cases.iter().filter(|case| case.metric == Metric::Share) {
            let of = |way: RateControl| self.of(case.study, case.point, way, "value").mean;
            let best = RateControl::ALL.map(of).into_iter().fold(0.0, f64::max);
            if of(RateControl::Steady) < best - 0.05 {
                let most = |way: &RateControl| of(*way) == best;
                let who = RateControl::ALL.into_iter().find(most).map_or("", RateControl::name);
                let (ours, name) = (of(RateControl::Steady), case.key());
                lost.push(format!("{name} ({ours:.2}, {who} {best:.2})"));
            }
        }
        if lost.is_empty() { "nowhere".to_owned() } else { lost.join("; ") }
    }

    fn cells(&self) -> Vec<Cell> {
        let steady = |study, point| self.of(study, point, RateControl::Steady, "value");
        let share = |id: &str, seen: Summary, least: f64, most: f64| {
            // Goals concern means; an interval across the limit is reported.
            let reached = |mean: f64| (least..=most).contains(&mean);
            let [low, high] = seen.interval().unwrap_or([seen.mean; 2]);
            let clear = reached(low) == reached(seen.mean) && reached(high) == reached(seen.mean);
            let chance = if clear { "" } else { "; the limit lies within the interval" };
            let ours = format!("{:.3}{chance}", seen.mean);
            PAGE.claim(id).holds(reached(seen.mean), ours, Some(seen))
        };
        let times = self.results.values("loss", "0 %/steady", "at_speed_s");
        // A negative time means never, and must not enter a mean.
        let never = times.iter().filter(|&&time| time < 0.0).count();
        let speed = Summary::of(&times);
        let queues: Vec<f64> = ["0.25", "1", "4"]
            .map(|point| self.of("queue", point, RateControl::Steady, "queue_s").mean / 0.6)
            .to_vec();
        let most = queues.iter().copied().fold(0.0, f64::max);
        let mut cells = vec![
            share("clean", steady("loss", "0 %"), 0.95, 2.0),
            share("lossy", steady("loss", "1 %"), 0.95, 2.0),
            PAGE.claim("speed").holds(
                never == 0 && speed.mean <= 4.0 * 0.6,
                match never {
                    0 => format!("from {:.2} round trips on", speed.mean / 0.6),
                    _ => format!("never in {never} of {} runs", times.len()),
                },
                (never == 0).then(|| speed.scaled(1.0 / 0.6)),
            ),
            share("own", steady("own", "2 flows"), 0.95, 1.0),
            share("beside", steady("compete", "1 cubic"), 0.5, 2.0),
            share("narrow", steady("return", "1 kbit/s"), 0.5, 2.0),
            PAGE.claim("queue").holds(
                most < 0.1,
                format!("{most:.3} of a round trip at most"),
                None,
            ),
        ];
        for (name, limit) in [("cold", 5.2), ("remembered", 4.3), ("configured", 4.3)] {
            let seen = self.median(name);
            cells.push(PAGE.claim(name).holds(seen <= limit, format!("{seen:.2} s"), None));
        }
        let costs: Vec<f64> = ["cold", "remembered", "configured"]
            .map(|name| self.median(&format!("{name}, 1 %")) - self.median(name))
            .to_vec();
        let most = costs.iter().copied().fold(0.0, f64::max);
        let ours = format!("{:.2}, {:.2} and {:.2} s more", costs[0], costs[1], costs[2]);
        cells.push(PAGE.claim("loss-costs").holds(most <= 1.1, ours, None));
        cells
    }

    fn table(&self, name: &str, id: &str) -> Table {
        let head = core::iter::once("case").chain(RateControl::ALL.map(RateControl::name));
        let row = |case: &Case| {
            let ours = |way: RateControl| {
                let seen = self.results.summary(case.study, &key(case, way.name()), name);
                match seen.interval() {
                    Some(_) if seen.half > 0.0005 => format!("{:.3} ± {:.3}", seen.mean, seen.half),
                    _ => format!("{:.3}", seen.mean),
                }
            };
            core::iter::once(case.key()).chain(RateControl::ALL.map(ours)).collect()
        };
        let head = head.map(str::to_owned).collect();
        Table { head, ..ALL.table(id, self.cases.iter().map(row)) }
    }
}
