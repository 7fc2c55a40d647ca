//! Table 22 and figure 53: web pages by three ways of HTTP.

use super::super::PAGES;
use super::super::pages::{Fetch, Variant, WAYS};
use crate::experiments::publication::{Found, Numbers, Sentence, judge, that};
use crate::experiments::{
    Axis, Cell, Criterion, Expected, Figure, Published, Results, Section, Series, Summary, Table,
};
use sim::traffic::{Http, S1711_PAGES};

/// Table 22: connections, packets, seconds; pages as table 21, ways as `WAYS`.
const PUBLISHED: [[(f64, f64, f64); 3]; 5] = [
    [(41.0, 655.0, 14.764), (1.0, 306.0, 21.158), (1.0, 318.0, 4.363)],
    [(22.0, 307.0, 8.642), (1.0, 133.0, 13.547), (1.0, 137.0, 3.247)],
    [(34.0, 551.0, 13.054), (1.0, 282.0, 21.682), (1.0, 285.0, 4.328)],
    [(14.0, 660.0, 8.277), (1.0, 514.0, 12.529), (1.0, 564.0, 4.882)],
    [(8.0, 166.0, 4.365), (1.0, 104.0, 6.540), (1.0, 119.0, 3.822)],
];

const PLACE: &str = "annex 3, section 5.3.5, table 22";

const TIME: Numbers = Numbers {
    place: PLACE,
    unit: "s",
    criterion: Criterion::Within(0.1),
    why: [
        "round trips: one for each element in a row, or for each burst of slow start",
        "the sizes of the elements are not given: a page's own file that is large or small is a \
         round trip more or less (table)",
    ],
};

const PACKETS: Numbers = Numbers {
    place: PLACE,
    unit: "packet",
    criterion: Criterion::Within(0.1),
    why: [
        "segments, their acknowledgements, and the connections' beginnings and ends",
        "how often Linux acknowledges depends on what it takes a connection for (table)",
    ],
};

const CONNECTIONS: Numbers = Numbers {
    place: PLACE,
    unit: "",
    criterion: Criterion::Within(0.1),
    why: ["one for all elements", ""],
};

/// Connections of HTTP/1.0, which ours take from the table.
fn given(name: String, connections: f64) -> Cell {
    let published = Published::Number { value: connections, unit: "" };
    let criterion = CONNECTIONS.criterion;
    let expected = Expected { name: "", place: PLACE, published, criterion };
    let reason = "it is part of the set-up: the text says that there were as many as elements \
                  linked to the page, and table 21 lists 30, 21, 33, 16 and 8 of them";
    Cell { name, ..expected.not_comparable(reason) }
}

fn fetch(page: usize, way: usize, variant: Variant) -> Fetch {
    Fetch { page: S1711_PAGES[page], way: WAYS[way], variant }
}

fn of(results: &Results, fetch: Fetch, name: &str) -> Summary {
    results.summary(PAGES, &fetch.key(), name)
}

fn taken(results: &Results, page: usize, way: usize, name: &str) -> Summary {
    of(results, fetch(page, way, Variant::Taken), name)
}

/// The section.
pub(super) fn section(results: &Results) -> Section {
    let mut cells: Vec<Cell> = Vec::new();
    for (page, ways) in PUBLISHED.into_iter().enumerate() {
        for (way, (connections, packets, time)) in ways.into_iter().enumerate() {
            let name = |what| format!("{}, {}: {what}", S1711_PAGES[page].name, WAYS[way].0);
            let ours = |name| taken(results, page, way, name);
            cells.push(TIME.cell(name("time"), time, ours("seconds")));
            cells.push(PACKETS.cell(name("packets"), packets, ours("packets")));
            cells.push(match WAYS[way].1 {
                Http::PerElement { .. } => given(name("connections"), connections),
                Http::Serial | Http::Pipelined | Http::KeepAlive { .. } => {
                    CONNECTIONS.cell(name("connections"), connections, ours("connections"))
                }
            });
        }
    }
    cells.extend(judge(SENTENCES, results));
    Section {
        title: "Web pages (table 22, figures 49 to 53)".into(),
        text: vec![
            "Five pages over 155 Mbit/s and 540 ms: HTTP/1.0 with a connection for each element, \
             four at once (figure 49), and HTTP/1.1 on one connection, one element after the other \
             (figure 51) or all asked for at once (figure 52); keep-alive (figure 50) was drawn \
             and not measured. The bytes of single elements are not given; here they are drawn, 20 \
             times, as web files were spread in 1995, and scaled to the page's bytes. The last \
             column of the document's table, bit/s, is byte/s."
                .into(),
        ],
        figures: vec![sequence(results)],
        tables: vec![
            others(results, "seconds", "Seconds of a page", |published| published.2),
            others(results, "packets", "Packets of a page", |published| published.1),
        ],
        cells,
    }
}

/// When each element of RBLAB was there, figure 53.
fn sequence(results: &Results) -> Figure {
    let line = |way: usize| {
        let values = results.of(PAGES, &fetch(4, way, Variant::Taken).key());
        let done = values[0].series("done_s");
        Series::dots(WAYS[way].0, (1..).zip(done).map(|(number, &at)| (at, f64::from(number))))
    };
    Figure {
        id: "figure-53".into(),
        title: "RBLAB: when each element was there (figure 53)".into(),
        x: Axis::linear("time since the page was asked for (s)"),
        y: Axis::linear("element"),
        series: [0, 1, 2].map(line).into(),
        note: String::new(),
    }
}

fn others(
    results: &Results,
    name: &str,
    title: &str,
    printed: fn((f64, f64, f64)) -> f64,
) -> Table {
    let digits = if name == "seconds" { 2 } else { 0 };
    let mut rows = Vec::new();
    for (page, ways) in PUBLISHED.into_iter().enumerate() {
        for (way, (named, _)) in WAYS.into_iter().enumerate() {
            let value =
                |variant| format!("{:.digits$}", of(results, fetch(page, way, variant), name).mean);
            let published =
                ways.get(way).map_or("–".to_owned(), |&row| format!("{:.digits$}", printed(row)));
            let mut row = vec![format!("{}, {named}", S1711_PAGES[page].name), published];
            row.extend(Variant::ALL.map(value));
            rows.push(row);
        }
    }
    let head = ["page and way", "published"].into_iter();
    Table {
        id: format!("table-22-{name}"),
        title: format!("{title}, and with what is not given varied"),
        head: head.chain(Variant::ALL.map(Variant::name)).map(str::to_owned).collect(),
        rows,
    }
}

/// How much less the second way takes than the first, percent, for each page.
fn less(results: &Results, first: usize, second: usize) -> [Summary; 5] {
    [0, 1, 2, 3, 4].map(|page| {
        let key = |way| fetch(page, way, Variant::Taken).key();
        let less = |first: f64, second: f64| 100.0 * (1.0 - second / first);
        results.paired(PAGES, &key(first), &key(second), "seconds", less)
    })
}

fn all_less(results: &Results, first: usize, second: usize) -> Found {
    let all = less(results, first, second);
    let words = all.map(|less| format!("{:.0}", less.mean)).join(", ");
    let found = Found::new(format!("{words} % less"));
    all.into_iter().fold(found, |found, less| found.above(less, 0.0))
}

const SENTENCES: &[Sentence] = &[
    that(
        "pipelining is the best",
        "annex 3, sections 5.3.5 and 5.4",
        (
            "HTTP/1.1 with pipelining has the best performance",
            "less time than HTTP/1.0 for each of the five pages",
        ),
        |results| all_less(results, 0, 2),
        ["one slow start, and no round trip for an element", ""],
    ),
    that(
        "pipelining is better than one after the other",
        "annex 3, section 5.3.4",
        ("pipelining avoids many round trips", "less time than serial for each of the five pages"),
        |results| all_less(results, 1, 2),
        ["a round trip for each element is saved", ""],
    ),
    that(
        "HTTP/1.0 is faster than serial HTTP/1.1",
        "annex 3, section 5.3.5",
        (
            "HTTP/1.0's total time is less than that of HTTP/1.1 without pipelining",
            "for each of the five pages",
        ),
        |results| all_less(results, 1, 0),
        [
            "four connections at once, though each needs two round trips",
            "an element that takes more than two round trips gains nothing by a new connection",
        ],
    ),
    that(
        "HTTP/1.0 makes more packets",
        "annex 3, section 5.3.5",
        (
            "with HTTP/1.0 more packets are generated",
            "more than serial and pipelined for each of the five pages",
        ),
        |results| {
            let mut found = Found::new("");
            let mut words = Vec::new();
            for page in 0..5 {
                let packets = [0, 1, 2].map(|way| taken(results, page, way, "packets"));
                let most = packets[1].mean.max(packets[2].mean);
                words.push(format!("{:.0} over {most:.0}", packets[0].mean));
                found = found.above(packets[0], most);
            }
            found.in_words(words.join(", "))
        },
        ["seven for each connection's beginning and end", ""],
    ),
    that(
        "without pipelining a round trip for each element",
        "annex 3, section 5.3.3, figure 51",
        (
            "a base document and three objects take four round trips without pipelining",
            "RBLAB's eight elements take eight to ten round trips and a handshake",
        ),
        |results| {
            let trips = taken(results, 4, 1, "seconds").scaled(1.0 / 0.54);
            Found::new(format!("{:.1} round trips", trips.mean)).between(trips, 9.0, 11.5)
        },
        [
            "each request waits for the answer before it",
            "elements of 9 kbytes on average need a second or third burst until the window has opened",
        ],
    ),
];
