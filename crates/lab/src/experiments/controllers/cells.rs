//! What `steady` is to reach, written down before it was measured, and whether it does.

use super::{TRANSFER, TRANSFERS, figures, key};
use crate::experiments::statistics::{Summary, quantile};
use crate::experiments::{
    Cell, Criterion, Expected, Outcome, Published, Results, Section, SetUp, Setting, Table,
};
use sim::scenario::controllers::{Asked, Case, Way, all};

const fn goal(name: &'static str, claim: &'static str, when: &'static str) -> Expected {
    Expected {
        name,
        place: "goals of the controller",
        published: Published::Claim(claim),
        criterion: Criterion::Holds(when),
    }
}

const fn transfer(name: &'static str, claim: &'static str, when: &'static str) -> Expected {
    Expected { place: "goals; picoquic's figures for the same link", ..goal(name, claim, when) }
}

const CLEAN: Expected = goal(
    "rate found, no loss",
    "0.95 of what can pass in the first minute",
    "the mean is 0.95 or more",
);
const LOSSY: Expected = goal(
    "rate found, 1 % loss",
    "0.95 of what can pass in the first minute",
    "the mean is 0.95 or more",
);
const SPEED: Expected = goal(
    "at speed",
    "full rate within 4 round trips of the start",
    "arrivals of a round trip are 0.95 of what can pass from 4 round trips after the first \
     packet on, or sooner",
);
const OWN: Expected = goal(
    "two of its own",
    "Jain's index of 0.95 between its own flows over 300 s",
    "the mean over 20 to 300 s is 0.95 or more, the second flow beginning at 20 s",
);
const BESIDE: Expected = goal(
    "beside CUBIC",
    "between half and twice its fair share against one flow of CUBIC, queue of one product, 300 s",
    "the mean lies between 0.5 and 2",
);
const NARROW: Expected = goal(
    "return channel of 1 kbit/s",
    "a return channel of 1 kbit/s still works",
    "half of what can pass, or more",
);
const NARROW_WHY: &str = "answers are five seconds apart on such a channel: the first two that \
                          answer a train show the rate, and what it leaves out is found slowly";
const QUEUE: Expected = goal(
    "its own queue",
    "alone it keeps no queue",
    "the mean time in the queue is below a tenth of a round trip at 0.25, 1 and 4 products",
);
const COLD: Expected = transfer(
    "100 MB, cold",
    "5.2 s (picoquic 5.5 s; the bound is about 3.9 s)",
    "the median is 5.2 s or less",
);
const REMEMBERED: Expected =
    transfer("100 MB, rate remembered", "4.3 s (picoquic 4.9 s)", "the median is 4.3 s or less");
const CONFIGURED: Expected =
    transfer("100 MB, rate configured", "4.3 s", "the median is 4.3 s or less");
const LOSS_COSTS: Expected = transfer(
    "100 MB, 1 % loss",
    "1.1 s more than without (picoquic 7.1 s in all)",
    "the median is 1.1 s or less above that without loss, whatever is known of the rate",
);

pub(super) fn judge(setting: &Setting, results: &Results) -> Outcome {
    let seen = Seen { results, cases: all() };
    Outcome {
        summary: seen.summary(),
        pictures: vec![figures::picture(setting, results, &seen.cases)],
        set_up: set_up(),
        sections: vec![
            Section {
                title: "What steady is to reach".into(),
                cells: seen.cells(),
                ..Section::default()
            },
            Section {
                title: "All numbers".into(),
                tables: vec![seen.table("value", "shares"), seen.table("queue_s", "queues")],
                ..Section::default()
            },
        ],
    }
}

struct Seen<'a> {
    results: &'a Results,
    cases: Vec<Case>,
}

impl Seen<'_> {
    fn of(&self, study: &str, point: &str, way: Way, name: &str) -> Summary {
        self.results.summary(study, &format!("{point}/{}", way.name()), name)
    }

    fn median(&self, transfer: &str) -> f64 {
        quantile(&self.results.values(TRANSFER, transfer, "time_s"), 0.5).unwrap_or(f64::MAX)
    }

    fn summary(&self) -> Vec<String> {
        let mut lost = Vec::new();
        for case in self.cases.iter().filter(|case| case.asked == Asked::Share) {
            let of = |way: Way| self.of(case.study, case.point, way, "value").mean;
            let best = Way::ALL.map(of).into_iter().fold(0.0, f64::max);
            if of(Way::Steady) < best - 0.05 {
                let most = |way: &Way| of(*way) == best;
                let who = Way::ALL.into_iter().find(most).map_or("", Way::name);
                let (ours, name) = (of(Way::Steady), case.key());
                lost.push(format!("{name} ({ours:.2}, {who} {best:.2})"));
            }
        }
        let words = if lost.is_empty() { "nowhere".to_owned() } else { lost.join("; ") };
        vec![format!(
            "Where steady, which is told nothing, is more than 0.05 below the best of the others, \
             of which fixed, newreno and probing are told the rate: {words}."
        )]
    }

    fn cells(&self) -> Vec<Cell> {
        let steady = |study, point| self.of(study, point, Way::Steady, "value");
        let share = |goal: &Expected, seen: Summary, least: f64, most: f64, why: &str| {
            // Goals are about means; where the interval reaches across the limit, it says so.
            let reached = |mean: f64| (least..=most).contains(&mean);
            let [low, high] = seen.interval().unwrap_or([seen.mean; 2]);
            let clear = reached(low) == reached(seen.mean) && reached(high) == reached(seen.mean);
            let chance = if clear { "" } else { "; the limit lies within the interval" };
            let ours = format!("{:.3}{chance}", seen.mean);
            goal.claim(reached(seen.mean), ours, Some(seen), why)
        };
        let times = self.results.values("loss", "0 %/steady", "at_speed_s");
        // A time below zero stands for never, and must not enter a mean.
        let never = times.iter().filter(|&&time| time < 0.0).count();
        let speed = Summary::of(&times);
        let queues: Vec<f64> = ["0.25", "1", "4"]
            .map(|point| self.of("queue", point, Way::Steady, "queue_s").mean / 0.6)
            .to_vec();
        let most = queues.iter().copied().fold(0.0, f64::max);
        let mut cells = vec![
            share(&CLEAN, steady("loss", "0 %"), 0.95, 2.0, "what is missing is the start"),
            share(&LOSSY, steady("loss", "1 %"), 0.95, 2.0, "loss alone slows nothing"),
            SPEED.claim(
                never == 0 && speed.mean <= 4.0 * 0.6,
                match never {
                    0 => format!("from {:.2} round trips on", speed.mean / 0.6),
                    _ => format!("never in {never} of {} runs", times.len()),
                },
                (never == 0).then(|| speed.scaled(1.0 / 0.6)),
                "counted at the receiver, whose first data comes a round trip after its request",
            ),
            share(&OWN, steady("own", "2 flows"), 0.95, 1.0, "the second comes to a full link"),
            share(&BESIDE, steady("compete", "1 cubic"), 0.5, 2.0, "both begin together"),
            share(&NARROW, steady("return", "1 kbit/s"), 0.5, 2.0, NARROW_WHY),
            QUEUE.claim(
                most < 0.1,
                format!("{most:.3} of a round trip at most"),
                None,
                "what is seen is the delay above its minimum",
            ),
        ];
        for (goal, name, limit) in
            [(COLD, "cold", 5.2), (REMEMBERED, "remembered", 4.3), (CONFIGURED, "configured", 4.3)]
        {
            let seen = self.median(name);
            let why = "from the first packet to the last byte in order";
            cells.push(goal.claim(seen <= limit, format!("{seen:.2} s"), None, why));
        }
        let costs: Vec<f64> = ["cold", "remembered", "configured"]
            .map(|name| self.median(&format!("{name}, 1 %")) - self.median(name))
            .to_vec();
        let most = costs.iter().copied().fold(0.0, f64::max);
        let ours = format!("{:.2}, {:.2} and {:.2} s more", costs[0], costs[1], costs[2]);
        let why = "an ideal repeat-request scheme needs 0.9 s more, for the last losses";
        cells.push(LOSS_COSTS.claim(most <= 1.1, ours, None, why));
        cells
    }

    fn table(&self, name: &str, id: &str) -> Table {
        let title = match name {
            "value" => {
                "Goodput as a share of what can pass; beside CUBIC as a multiple of the \
                        fair share; of two flows, Jain's index"
            }
            _ => "Mean time in the queue, seconds",
        };
        let head = core::iter::once("case").chain(Way::ALL.map(Way::name));
        let row = |case: &Case| {
            let ours = |way: Way| {
                let seen = self.results.summary(case.study, &key(case, way.name()), name);
                match seen.interval() {
                    Some(_) if seen.half > 0.0005 => format!("{:.3} ± {:.3}", seen.mean, seen.half),
                    _ => format!("{:.3}", seen.mean),
                }
            };
            core::iter::once(case.key()).chain(Way::ALL.map(ours)).collect()
        };
        Table {
            id: id.into(),
            title: title.into(),
            head: head.map(str::to_owned).collect(),
            rows: self.cases.iter().map(row).collect(),
        }
    }
}

fn set_up() -> Vec<SetUp> {
    let line = |name: &str, ours: &str, why: &str| SetUp::chosen(name, "", ours, why);
    let transfers: Vec<&str> = TRANSFERS.iter().map(|(name, ..)| *name).collect();
    vec![
        line(
            "link",
            "geostationary, 10/1 Mbit/s, 600 ms, a queue of one product; hand-offs: low orbit, \
             50/10 Mbit/s, 50 ms and 3 ms of jitter",
            "what satellite plans have; each case changes one thing",
        ),
        line(
            "what can pass",
            "1440 of the 1500 bytes of a full packet, times the share that is not lost",
            "as in the project's other figures",
        ),
        line(
            "fixed, newreno, probing",
            "told the link's rate, which is a ceiling to the window controllers",
            "as a gateway with a rate plan would be",
        ),
        line(
            "steady",
            "told no forward rate; the return channel's rate is known to both",
            "what a terminal sends it paces, so somebody knows it",
        ),
        line(
            "cubic",
            "the simulated TCP: CUBIC, SACK, timestamps, ten segments at first, HyStart++",
            "in 60 s on the first link it reaches 0.94, the kernel 0.96; at 1 % loss both 0.04 to \
             0.05",
        ),
        line(
            "transfers",
            &transfers.join("; "),
            "100 MB over 250/3 Mbit/s at 600 ms, queue of one product",
        ),
    ]
}
