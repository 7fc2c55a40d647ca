//! Evaluation of the paper's claims.

mod grid;
pub(super) mod sentences;
pub(super) mod tables;

use super::bench::{FLOWS, MEDIUM, OTHERS, RECOVERIES, SECONDS, TAKEN, Test, test};
use super::{LATER, TESTS, later};
use crate::experiments::publication::{page, paper};
use crate::experiments::{
    Figure, Outcome, Results, Section, Series, Setting, Summary, Table, Verdict,
};

use grid::Grid;

paper!(PAPER = "marchese-2001");
page!(LEFT_OPEN = "marchese-2001/left-open");
page!(LEFT_FOR_LATER = "marchese-2001/left-for-later");

pub(super) fn judge(_: &Setting, results: &Results) -> Outcome {
    let mut cells = tables::cells(results, TAKEN.name);
    let grid = Grid::new(results);
    grid.quote(&mut cells);
    cells.extend(sentences::PAGE.judge(sentences::CLAIMS, results));
    let published = Section { figures: figures(results), cells, ..sentences::PAGE.section() };
    Outcome {
        summary: PAPER.summary(&[]),
        set_up: PAPER.set_up(&[]),
        sections: vec![published, left_open(results, &grid), left_for_later(results)],
        ..Outcome::default()
    }
}

fn key(bench: &str, test: Test) -> String {
    format!("{bench}/{}/{}/{}", test.bytes, test.window, test.buffer)
}

fn figures(results: &Results) -> Vec<Figure> {
    let line = |name: String, test: Test| {
        let averages = results.of(TESTS, &key(TAKEN.name, test))[0].series("kbytes_per_s");
        let points = SECONDS.iter().zip(averages).filter(|(_, average)| **average > 0.0);
        Series::new(name, points.map(|(&at, &average)| (at as f64, Summary::of(&[average]))))
    };
    let published =
        Series::dots("published after 5 s", [26.0, 48.0, 35.0, 118.0].map(|y| (5.0, y)));
    let mut figure_6: Vec<Series> = [(1, 64), (6, 64), (1, 320), (6, 320)]
        .map(|(window, buffer)| {
            line(format!("window {window}, {buffer} kbytes"), test(MEDIUM, window, buffer))
        })
        .into();
    figure_6.push(published);
    let by_window = |window| line(format!("window {window}"), test(MEDIUM, window, 64));
    let by_buffer = |window| move |buffer| (window, buffer);
    let of = |(window, buffer)| line(format!("{buffer} kbytes"), test(MEDIUM, window, buffer));
    vec![
        sentences::PAGE.figure("figure-3", [1, 2, 4, 6].map(by_window).into()),
        sentences::PAGE.figure("figure-4", [64, 128, 320, 640].map(by_buffer(1)).map(of).into()),
        sentences::PAGE
            .figure("figure-5", [64, 128, 192, 256, 320, 384].map(by_buffer(6)).map(of).into()),
        sentences::PAGE.figure("figure-6", figure_6),
    ]
}

/// Returns the agreement of each alternative, and the queue lengths at which the router overflows.
fn left_open(results: &Results, grid: &Grid) -> Section {
    let benches = || std::iter::once(&TAKEN).chain(&OTHERS);
    let share = |cells: &[crate::experiments::Cell], place: &str| {
        let of: Vec<_> = cells.iter().filter(|cell| cell.place == place).collect();
        let agree = of.iter().filter(|cell| cell.verdict == Verdict::Agrees).count();
        format!("{agree} of {}", of.len())
    };
    let places = ["table III", "table IV", "table V", "table VI", "table VII", "table VIII"];
    let rows = benches().map(|bench| {
        let cells = tables::cells(results, bench.name);
        let agree = cells.iter().filter(|cell| cell.verdict == Verdict::Agrees).count();
        let mut row = vec![bench.about.to_owned(), format!("{agree} of {}", cells.len())];
        row.extend(places.map(|place| share(&cells, place)));
        row
    });
    let mut head = vec!["the bench".to_owned(), "cells of all tables".to_owned()];
    head.extend(places.map(str::to_owned));
    let alternatives = Table { head, ..LEFT_OPEN.table("alternatives", rows) };
    let buffers = [256, 320, 384, 448, 512, 640];
    let queues = benches().filter(|bench| bench.name == "taken" || bench.name.starts_with("queue"));
    let rows = queues.map(|bench| {
        let at = |buffer| {
            let key = key(bench.name, test(MEDIUM, 6, buffer));
            let lost = results.summary(TESTS, &key, "overflowed").mean;
            let seconds = results.summary(TESTS, &key, "seconds").mean;
            format!("{lost:.0}; {seconds:.1} s")
        };
        let about =
            if bench.name == "taken" { "a router queue of 64 packets" } else { bench.about };
        let mut row = vec![about.to_owned()];
        row.extend(buffers.map(at));
        row
    });
    let mut head = vec!["the queue".to_owned()];
    head.extend(buffers.map(|buffer| format!("{buffer} kbytes")));
    let queues = Table { head, ..LEFT_OPEN.table("queues", rows) };
    Section { tables: vec![alternatives, queues, grid.table()], ..LEFT_OPEN.section() }
}

/// Returns the section on several connections and other loss recoveries.
fn left_for_later(results: &Results) -> Section {
    let line = |recovery: &str| {
        let at =
            |flows| (f64::from(flows), results.summary(LATER, &later(recovery, flows), "kbps"));
        Series::new(recovery, FLOWS.map(at))
    };
    let rows = RECOVERIES.iter().flat_map(|(recovery, _)| {
        FLOWS.map(|flows| {
            let of = |name| results.summary(LATER, &later(recovery, flows), name).mean;
            vec![
                (*recovery).to_owned(),
                flows.to_string(),
                format!("{:.0}", of("kbps")),
                format!("{:.0}", of("overflowed")),
                format!("{:.1}", of("timeouts")),
            ]
        })
    });
    Section {
        figures: vec![
            LEFT_FOR_LATER
                .figure("several", RECOVERIES.iter().map(|(recovery, _)| line(recovery)).collect()),
        ],
        tables: vec![LEFT_FOR_LATER.table("several-losses", rows)],
        ..LEFT_FOR_LATER.section()
    }
}
