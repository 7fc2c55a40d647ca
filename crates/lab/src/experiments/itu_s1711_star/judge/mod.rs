//! Evaluation of the section's claims.

mod tables;
mod weather;

use super::{
    BUFFERS, CLUSTER, FILE, FILES, LOAD, LOADS, RATE, RATES, STACK, STACK_FILES, UP, data::DATA,
};
use crate::experiments::publication::{page, paper};
use crate::experiments::statistics::{Summary, relative_gain, shown};
use crate::experiments::{Figure, Outcome, Results, Section, Series, Setting};

paper!(PAPER = "itu-s1711-star");
page!(PAGE = "itu-s1711-star/clusters");
page!(SPLITTING = "itu-s1711-star/splitting");

pub(super) fn judge(setting: &Setting, results: &Results) -> Outcome {
    let seen = Seen { results };
    let values = values(setting, &seen);
    Outcome {
        summary: PAPER.summary(&values),
        set_up: PAPER.set_up(&values),
        sections: vec![
            clusters(&seen),
            splitting(&seen),
            weather::section(&seen),
            tables::section(),
        ],
        ..Outcome::default()
    }
}

struct Seen<'a> {
    results: &'a Results,
}

impl Seen<'_> {
    fn throughput(&self, study: &str, key: &str) -> Summary {
        self.results.summary(study, key, "throughput_kbps")
    }

    fn cluster(&self, number: u32, name: &str) -> Summary {
        self.results.summary(CLUSTER, &number.to_string(), name)
    }

    /// Returns the ratio of two stacks' throughputs less one, paired by run.
    fn gain(&self, first: &str, second: &str, bytes: u64) -> Summary {
        let values = |stack: &str| {
            self.results.values(STACK, &format!("{stack}/{bytes}"), "throughput_kbps")
        };
        relative_gain(&values(first), &values(second))
    }
}

fn values(setting: &Setting, seen: &Seen<'_>) -> [(&'static str, String); 7] {
    let [table_17, table_18] = [mean_of(&DATA.throughput_2), mean_of(&DATA.throughput_3)];
    let off = |kbps: &u64| (seen.throughput(RATE, &kbps.to_string()).mean - table_18).abs();
    let nearest = RATES.into_iter().min_by(|a, b| off(a).total_cmp(&off(b))).unwrap_or(0);
    [
        ("replications", setting.replications.to_string()),
        ("table_17", format!("{table_17:.0}")),
        ("table_18", format!("{table_18:.0}")),
        ("ours_2", shown(seen.throughput(CLUSTER, "2"), 0)),
        ("ours_3", shown(seen.throughput(CLUSTER, "3"), 0)),
        ("nearest", nearest.to_string()),
        ("at_nearest", shown(seen.throughput(RATE, &nearest.to_string()), 0)),
    ]
}

/// Returns the mean of a table's first column.
fn mean_of<const N: usize>(rows: &[[f64; N]]) -> f64 {
    rows.iter().map(|row| row[0]).sum::<f64>() / rows.len() as f64
}

fn clusters(seen: &Seen<'_>) -> Section {
    let range = DATA.throughput_2.iter().map(|row| row[0]);
    let [low, high] = [f64::min, f64::max].map(|pick| range.clone().reduce(pick).unwrap_or(0.0));
    let around: Vec<f64> =
        [0.5, 1.0, 2.0].map(|load| seen.throughput(LOAD, &load.to_string()).mean).to_vec();
    let within = around.iter().all(|&ours| (low..=high).contains(&ours));
    let correlation = tables::correlation(&DATA.throughput_2, &DATA.traffic_2);
    let [light, heavy] = [0.5, 4.0].map(|load| seen.throughput(LOAD, &load.to_string()));
    let falls = relative_gain(
        &seen.results.values(LOAD, "4", "throughput_kbps"),
        &seen.results.values(LOAD, "0.5", "throughput_kbps"),
    );
    let up = seen.throughput(UP, "all");
    let cells = vec![
        PAGE.claim("throughput-2").number(seen.throughput(CLUSTER, "2")),
        PAGE.claim("throughput-3").number(seen.throughput(CLUSTER, "3")),
        PAGE.claim("traffic-2").number(seen.cluster(2, "inbound_gb_day")),
        PAGE.claim("traffic-3").number(seen.cluster(3, "inbound_gb_day")),
        PAGE.claim("days-2").holds(
            within,
            around.iter().map(|ours| format!("{ours:.1}")).collect::<Vec<_>>().join(", "),
            None,
        ),
        PAGE.claim("busy").holds(
            correlation < 0.0 && falls.clearly_below(0.0),
            format!(
                "the tables' coefficient is {correlation:.2}; ours {} to {} kbit/s",
                shown(light, 1),
                shown(heavy, 1)
            ),
            Some(falls),
        ),
        PAGE.claim("inbound").holds(
            (45.0..=50.0).contains(&up.mean),
            format!("{} kbit/s", shown(up, 1)),
            Some(up),
        ),
    ];
    let values = [
        ("outbound", shown(seen.cluster(2, "outbound_mbps"), 1)),
        ("planned", shown(seen.cluster(2, "planned"), 0)),
        ("through", shown(seen.cluster(2, "through"), 3)),
    ];
    Section {
        figures: vec![by_load(seen), by_file(seen), by_rate(seen)],
        cells,
        ..PAGE.section_with(&values)
    }
}

fn by_load(seen: &Seen<'_>) -> Figure {
    let level = |name: &str, value: f64| {
        Series::dashed(name, [LOADS[0], LOADS[LOADS.len() - 1]].map(|load| (load, value)))
    };
    PAGE.figure(
        "load",
        vec![
            Series::new("ours", LOADS.map(|load| (load, seen.throughput(LOAD, &load.to_string())))),
            level("table 17, mean", mean_of(&DATA.throughput_2)),
            level("table 18, mean (cluster 3)", mean_of(&DATA.throughput_3)),
        ],
    )
}

fn by_file(seen: &Seen<'_>) -> Figure {
    let kb = |bytes: u64| bytes as f64 / 1e3;
    let level = |name: &str, value: f64| {
        Series::dashed(name, [FILES[0], FILES[FILES.len() - 1]].map(|bytes| (kb(bytes), value)))
    };
    PAGE.figure(
        "file",
        vec![
            Series::new(
                "ours",
                FILES.map(|bytes| (kb(bytes), seen.throughput(FILE, &bytes.to_string()))),
            ),
            level("table 17, mean", mean_of(&DATA.throughput_2)),
            level("table 18, mean (cluster 3)", mean_of(&DATA.throughput_3)),
        ],
    )
}

fn by_rate(seen: &Seen<'_>) -> Figure {
    let ends = [RATES[0], RATES[RATES.len() - 1]].map(|kbps| kbps as f64);
    let points = RATES.map(|kbps| (kbps as f64, seen.throughput(RATE, &kbps.to_string())));
    PAGE.figure(
        "rate",
        vec![
            Series::new("ours", points),
            Series::dashed("table 18, mean", ends.map(|kbps| (kbps, mean_of(&DATA.throughput_3)))),
        ],
    )
}

fn splitting(seen: &Seen<'_>) -> Section {
    let [large, small] = STACK_FILES;
    let [narrow, wide] = BUFFERS.map(|buffer| buffer.to_string());
    let against = [&narrow, &wide].map(|buffer| seen.gain("split", buffer, large));
    let start = seen.gain("split", &wide, small);
    let cells = vec![
        SPLITTING.claim("windowing").holds(
            against.iter().all(|gain| gain.clearly_above(0.0)),
            format!(
                "{} % more than with 17,520 bytes, {} % more than with 65,535",
                shown(against[0].scaled(100.0), 0),
                shown(against[1].scaled(100.0), 0)
            ),
            Some(against[1]),
        ),
        SPLITTING.claim("slow-start").holds(
            start.clearly_above(0.5),
            format!("{} times as fast", shown(Summary { mean: start.mean + 1.0, ..start }, 2)),
            Some(start),
        ),
    ];
    let row = |stack: &str| {
        let cell = |bytes: u64| shown(seen.throughput(STACK, &format!("{stack}/{bytes}")), 0);
        vec![stack.to_owned(), cell(large), cell(small)]
    };
    let table = SPLITTING.table("stacks", ["split", &narrow, &wide].map(row));
    Section { tables: vec![table], cells, ..SPLITTING.section() }
}
