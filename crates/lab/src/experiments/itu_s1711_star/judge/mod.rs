//! What is stated, and what becomes of it.

mod expected;
mod set_up;
mod tables;
mod weather;

use super::{
    BUFFERS, CLUSTER, FILE, FILES, LOAD, LOADS, RATE, RATES, STACK, STACK_FILES, UP, data,
};
use crate::experiments::statistics::{Summary, relative_gain, shown};
use crate::experiments::{Axis, Figure, Outcome, Results, Section, Series, Setting, Table};
use expected as paper;

/// Judges all results.
pub(super) fn judge(setting: &Setting, results: &Results) -> Outcome {
    let seen = Seen { results };
    Outcome {
        summary: summary(&seen),
        set_up: set_up::lines(setting),
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

    /// A stack's throughput over another's, less one, in pairs of runs.
    fn gain(&self, first: &str, second: &str, bytes: u64) -> Summary {
        let values = |stack: &str| {
            self.results.values(STACK, &format!("{stack}/{bytes}"), "throughput_kbps")
        };
        relative_gain(&values(first), &values(second))
    }
}

fn summary(seen: &Seen<'_>) -> Vec<String> {
    let off = |kbps: &u64| {
        let ours = seen.throughput(RATE, &kbps.to_string()).mean;
        (ours - paper::mean_of(&data::THROUGHPUT_3)).abs()
    };
    let nearest = RATES.into_iter().min_by(|a, b| off(a).total_cmp(&off(b))).unwrap_or(0);
    vec![
        format!(
            "Under the traffic that was reported, splitting gives a terminal of cluster 2 {} kbit/s \
             of its 320, where {:.0} were measured: what is missing is the way there and back, once \
             for each file.",
            shown(seen.throughput(CLUSTER, "2"), 0),
            paper::mean_of(&data::THROUGHPUT_2),
        ),
        format!(
            "Cluster 3 was measured at {:.0} kbit/s, and ours has {}: it has the same rates, fewer \
             terminals on a platform and less traffic. Nothing that the document tells makes it \
             slower. Terminals that may have {} kbit/s would come nearest of those tried ({}), and \
             so would files of a quarter of a megabyte.",
            paper::mean_of(&data::THROUGHPUT_3),
            shown(seen.throughput(CLUSTER, "3"), 0),
            nearest,
            shown(seen.throughput(RATE, &nearest.to_string()), 0),
        ),
    ]
}

fn clusters(seen: &Seen<'_>) -> Section {
    let range = data::THROUGHPUT_2.map(|row| row[0]);
    let [low, high] =
        [f64::min, f64::max].map(|pick| range.into_iter().reduce(pick).unwrap_or(0.0));
    let around: Vec<f64> =
        [0.5, 1.0, 2.0].map(|load| seen.throughput(LOAD, &load.to_string()).mean).to_vec();
    let within = around.iter().all(|&ours| (low..=high).contains(&ours));
    let correlation = tables::correlation(&data::THROUGHPUT_2, &data::TRAFFIC_2);
    let [light, heavy] = [0.5, 4.0].map(|load| seen.throughput(LOAD, &load.to_string()));
    let falls = relative_gain(
        &seen.results.values(LOAD, "4", "throughput_kbps"),
        &seen.results.values(LOAD, "0.5", "throughput_kbps"),
    );
    let up = seen.throughput(UP, "all");
    let cells = vec![
        paper::throughput("throughput in cluster 2", "table 17, its mean", &data::THROUGHPUT_2)
            .number(seen.throughput(CLUSTER, "2"), "files of 1 MB at 320 kbit/s"),
        paper::throughput("throughput in cluster 3", "table 18, its mean", &data::THROUGHPUT_3)
            .number(
                seen.throughput(CLUSTER, "3"),
                "its rates, round trip and traffic would make it as fast as cluster 2; what else \
                 would bring it near is in two figures",
            ),
        paper::TRAFFIC_2.number(seen.cluster(2, "inbound_gb_day"), "set so; see the set-up"),
        paper::TRAFFIC_3.number(seen.cluster(3, "inbound_gb_day"), "set so; see the set-up"),
        paper::DAYS_2.claim(
            within,
            around.iter().map(|ours| format!("{ours:.1}")).collect::<Vec<_>>().join(", "),
            None,
            "",
        ),
        paper::BUSY.claim(
            correlation < 0.0 && falls.clearly_below(0.0),
            format!(
                "the tables' coefficient is {correlation:.2}; ours {} to {} kbit/s",
                shown(light, 1),
                shown(heavy, 1)
            ),
            Some(falls),
            "what waits is the request, on carriers of random access, and the outbound's queue",
        ),
        paper::INBOUND.claim(
            up.mean > 40.0 && up.mean <= 50.0,
            format!("{} kbit/s", shown(up, 1)),
            Some(up),
            "9 of a carrier's 12 slots, in which a full segment fits: 1,461 bytes of payload in 250 ms",
        ),
    ];
    Section {
        title: "Throughput and traffic".into(),
        text: vec![format!(
            "A platform of cluster 2 carries {} Mbit/s out of 48, and {} of the packets that go up \
             wait for the plan; {} of the bursts on carriers of random access come through.",
            shown(seen.cluster(2, "outbound_mbps"), 1),
            shown(seen.cluster(2, "planned"), 0),
            shown(seen.cluster(2, "through"), 3),
        )],
        figures: vec![by_load(seen), by_file(seen), by_rate(seen)],
        cells,
        ..Section::default()
    }
}

fn by_load(seen: &Seen<'_>) -> Figure {
    let level = |name: &str, value: f64| {
        Series::dashed(name, [LOADS[0], LOADS[LOADS.len() - 1]].map(|load| (load, value)))
    };
    Figure {
        id: "load".into(),
        title: "Throughput of a terminal by traffic, cluster 2".into(),
        x: Axis::log("traffic (1: the month's mean)"),
        y: Axis::linear("throughput (kbit/s)"),
        series: vec![
            Series::new("ours", LOADS.map(|load| (load, seen.throughput(LOAD, &load.to_string())))),
            level("table 17, mean", paper::mean_of(&data::THROUGHPUT_2)),
            level("table 18, mean (cluster 3)", paper::mean_of(&data::THROUGHPUT_3)),
        ],
        note: "The outbound is far from full at the traffic that was reported.".into(),
    }
}

fn by_file(seen: &Seen<'_>) -> Figure {
    let kb = |bytes: u64| bytes as f64 / 1e3;
    let level = |name: &str, value: f64| {
        Series::dashed(name, [FILES[0], FILES[FILES.len() - 1]].map(|bytes| (kb(bytes), value)))
    };
    Figure {
        id: "file".into(),
        title: "Throughput of a terminal by what it fetches, cluster 2".into(),
        x: Axis::log("file (kB)"),
        y: Axis::linear("throughput (kbit/s)"),
        series: vec![
            Series::new(
                "ours",
                FILES.map(|bytes| (kb(bytes), seen.throughput(FILE, &bytes.to_string()))),
            ),
            level("table 17, mean", paper::mean_of(&data::THROUGHPUT_2)),
            level("table 18, mean (cluster 3)", paper::mean_of(&data::THROUGHPUT_3)),
        ],
        note: "What was fetched to measure throughput is not told; ours was 1 MB, chosen before \
               anything was compared."
            .into(),
    }
}

fn by_rate(seen: &Seen<'_>) -> Figure {
    let ends = [RATES[0], RATES[RATES.len() - 1]].map(|kbps| kbps as f64);
    let points = RATES.map(|kbps| (kbps as f64, seen.throughput(RATE, &kbps.to_string())));
    Figure {
        id: "rate".into(),
        title: "Throughput of a terminal by what it may have, cluster 3".into(),
        x: Axis::linear("the most that a terminal may have down (kbit/s of payload)"),
        y: Axis::linear("throughput (kbit/s)"),
        series: vec![
            Series::new("ours", points),
            Series::dashed(
                "table 18, mean",
                ends.map(|kbps| (kbps, paper::mean_of(&data::THROUGHPUT_3))),
            ),
        ],
        note: "Table 14 has 320 kbit/s for all clusters.".into(),
    }
}

fn splitting(seen: &Seen<'_>) -> Section {
    let [large, small] = STACK_FILES;
    let [narrow, wide] = BUFFERS.map(|buffer| buffer.to_string());
    let against = [&narrow, &wide].map(|buffer| seen.gain("split", buffer, large));
    let start = seen.gain("split", &wide, small);
    let cells = vec![
        paper::WINDOWING.claim(
            against.iter().all(|gain| gain.clearly_above(0.0)),
            format!(
                "{} % more than with 17,520 bytes, {} % more than with 65,535",
                shown(against[0].scaled(100.0), 0),
                shown(against[1].scaled(100.0), 0)
            ),
            Some(against[1]),
            "65,535 bytes over 800 ms are twice what a terminal may have: that window sets no \
             limit, slow start and what it loses in the terminal's queue do",
        ),
        paper::SLOW_START.claim(
            start.clearly_above(0.5),
            format!("{} times as fast", shown(Summary { mean: start.mean + 1.0, ..start }, 2)),
            Some(start),
            "",
        ),
    ];
    let row = |stack: &str| {
        let cell = |bytes: u64| shown(seen.throughput(STACK, &format!("{stack}/{bytes}")), 0);
        vec![stack.to_owned(), cell(large), cell(small)]
    };
    let table = Table {
        id: "stacks".into(),
        title: "Throughput in kbit/s, split and end to end with these receive buffers".into(),
        head: ["stack", "1 MB", "30 kB"].map(str::to_owned).into(),
        rows: ["split", &narrow, &wide].map(row).into(),
    };
    Section {
        title: "Local acknowledgements".into(),
        text: vec![
            "That header compression saves overhead is measured in the entry itu-s1711.".into(),
        ],
        tables: vec![table],
        cells,
        ..Section::default()
    }
}
