//! Annex 2, table 3: a cell for each enhancement and impairment, and ours measured.

use super::super::MATRIX;
use super::super::enhancements::{Impairment, all, key};
use super::super::varied;
use crate::experiments::cell::{Criterion, Expected, Published};
use crate::experiments::{Cell, Results, Section, Summary, Table};

/// What table 3 says of an enhancement under an impairment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Yes,
    No,
    Partly,
    Irrelevant,
}

use Says::{Irrelevant, No, Partly, Yes};

/// An enhancement's row: latency, large product, link errors; and why ours differs there.
struct Row {
    name: &'static str,
    says: [Says; 3],
    why: [&'static str; 3],
}

const fn row(name: &'static str, says: [Says; 3], why: [&'static str; 3]) -> Row {
    Row { name, says, why }
}

/// Table 3.
const TABLE: [Row; 11] = [
    row("larger initial window", [Yes, Yes, No], ["", ONCE, ""]),
    row("byte counting", [Yes, No, No], ["", GROWS, GROWS]),
    row("window scaling", [Yes, Yes, No], [SMALL, "", ""]),
    row("pacing", [Yes, Yes, No], ["", BURSTS, ""]),
    row("Vegas", [Yes, Yes, No], [CAREFUL, SLOW, VEGAS]),
    row("delayed acknowledgements", [Yes, No, No], [DELAYED, "", ""]),
    row("ECN", [Yes, Yes, Partly], [UNMARKED, ECN, ERRORS]),
    row("header compression", [No, No, Yes], ["", "", HEADERS]),
    row("path MTU discovery", [Yes, Yes, No], ["", "", SEGMENTS]),
    row("T/TCP", [Yes, Irrelevant, Irrelevant], ["", "", ""]),
    row("FEC", [Irrelevant, Irrelevant, Yes], ["", "", ""]),
];

const ONCE: &str = "it saves two round trips once, which a long transfer does not notice: of 10 s it \
                    is half as much again (table)";
const GROWS: &str = "the window grows twice as fast after each loss as well when acknowledgements are \
                     delayed; where each segment is acknowledged it gains nothing (table)";
const SMALL: &str = "a file of 200 kbytes is nearly there when its window passes 64 kbytes, and one of 1 \
                     or 5 Mbytes takes longer with it: Reno's window overflows the queue, and repairs \
                     cost more than it gains (table); see the large product";
const BURSTS: &str = "a queue of one product loses no burst, and pacing delays what would be sent at \
                      once; with a short queue it gains (next columns of the table)";
const SLOW: &str = "it leaves slow start early and then adds a segment in a round trip at most: after \
                    600 s it still has a fifth (table)";
const CAREFUL: &str = "its slow start doubles every other round trip only, so short files take longer; \
                       one of 2 Mbytes, where Reno loses, is faster (table)";
const VEGAS: &str = "its window grows by round trips and not by acknowledgements, half of which are \
                     saved by delaying them: over a TCP that counts bytes it gains 4 % (table)";
const DELAYED: &str = "half as many acknowledgements open the window half as fast: equation 3 says so \
                       itself; where bytes are counted 5 % are left of it (table)";
const ECN: &str = "marks halve the window as losses do, and what they save is a retransmission";
const UNMARKED: &str =
    "a file of 200 kbytes fills no queue, and nothing is marked; one of 2 Mbytes gains (table)";
const ERRORS: &str = "TCP is far below the rate under errors: no queue fills and nothing is marked, \
                      and losses by errors are taken for congestion as before; at 1e-7 and 1e-8, \
                      where queues fill, it gains (table)";
const HEADERS: &str = "a packet that is lost takes those behind it along until a full header comes, \
                       with segments of 160 bytes as well; at 1e-7 it costs nothing (table)";
const SEGMENTS: &str = "Reno's throughput under losses is so many segments a round trip, whatever their \
                        size, with fewer and more errors as well (table)";

/// Gains of less count as none, percent.
const GAIN: f64 = 5.0;

impl Says {
    fn words(self) -> &'static str {
        match self {
            Yes => "it helps",
            No => "it does not help",
            Partly => "it helps in part",
            Irrelevant => "it is not relevant",
        }
    }

    fn criterion(self) -> &'static str {
        match self {
            Yes => "at least 5 % more with it",
            No | Irrelevant => "less than 5 % more with it",
            Partly => "more with it, if only a little",
        }
    }

    fn holds(self, gain: Summary) -> bool {
        let half = gain.interval().map_or(0.0, |_| gain.half);
        match self {
            Yes => gain.mean - half >= GAIN,
            No | Irrelevant => gain.mean + half < GAIN,
            Partly => gain.mean - half > 0.0,
        }
    }
}

/// How much more there is with it, percent.
fn gain(results: &Results, name: &str, impairment: Impairment) -> Summary {
    let (with, without) = (key(name, true, impairment), key(name, false, impairment));
    results.paired(MATRIX, &with, &without, "score", more)
}

fn more(with: f64, without: f64) -> f64 {
    100.0 * (with / without - 1.0)
}

fn cell(results: &Results, row: &Row, column: usize) -> Cell {
    let (impairment, says) = (Impairment::ALL[column], row.says[column]);
    let gain = gain(results, row.name, impairment);
    let expected = Expected {
        name: "",
        place: "annex 2, table 3",
        published: Published::Claim(says.words()),
        criterion: Criterion::Holds(says.criterion()),
    };
    let holds = says.holds(gain);
    let why = match (holds, row.why[column]) {
        (true, _) => "measured over the same TCP without it",
        (false, "") => "not explained",
        (false, why) => why,
    };
    let mut cell = expected.claim(holds, format!("{:+.1} %", gain.mean), Some(gain), why);
    cell.name = format!("{}: {}", row.name, impairment.name());
    cell
}

/// The section.
pub(super) fn section(results: &Results) -> Section {
    let columns = [0, 1, 2];
    let cells = TABLE.iter().flat_map(|row| columns.map(|column| cell(results, row, column)));
    Section {
        title: "Enhancements against impairments (annex 2, table 3)".into(),
        text: vec![
            "What each enhancement gains over the same TCP without it: Reno with a first window of \
             one segment, delayed acknowledgements and windows of one and a half products. Latency: the \
             time of a file of 200 kbytes over 2 Mbit/s and 520 ms, the second one that these \
             hosts exchange. Large product: what 40 s carry over 10 Mbit/s. Link errors: 2 Mbit/s \
             at 1e-6. Columns that the table does not have: a router with a queue of 50 packets \
             and not of one product, 32 kbit/s in return, and eight sessions at once; and rows for \
             SACK and the gateways of annex 2's sections 3 and 4. Less than 5 % counts as no gain."
                .into(),
            "Pacing and, with it, its base use a connection that was idle for 20 s; T/TCP's file is \
             an answer of 1,000 bytes. FEC is a code of 188 bytes in 204 that leaves no errors. \
             ECN stands beside the same early dropping without marks. Filtering has only \
             acknowledgements to filter where they wait. The spoofer has a shaper behind it."
                .into(),
        ],
        tables: vec![table(results), reasons(results)],
        cells: cells.collect(),
        ..Section::default()
    }
}

/// Entries that differ, with what their reason names varied.
fn reasons(results: &Results) -> Table {
    let percent = |gain: Summary| match gain.interval() {
        Some([low, high]) => format!("{:+.1} % ({low:+.1} to {high:+.1})", gain.mean),
        None => format!("{:+.1} %", gain.mean),
    };
    let rows = varied::all().into_iter().map(|one| {
        let [with, without] = [one.key(true), one.key(false)];
        let otherwise = results.paired(MATRIX, &with, &without, "score", more);
        vec![
            format!("{}: {}", one.name, one.impairment.name()),
            percent(gain(results, one.name, one.impairment)),
            one.what.to_owned(),
            percent(otherwise),
        ]
    });
    let head = ["entry", "as measured", "otherwise", "gain then"];
    Table {
        id: "table-3-reasons".into(),
        title: "Entries of table 3 that differ, and what they hang on".into(),
        head: head.map(str::to_owned).into(),
        rows: rows.collect(),
    }
}

fn table(results: &Results) -> Table {
    let rows = all().into_iter().map(|enhancement| {
        let name = enhancement.name;
        let published = TABLE.iter().find(|row| row.name == name);
        let mut words = vec![name.to_owned()];
        for (column, impairment) in Impairment::ALL.into_iter().enumerate() {
            let says =
                published.and_then(|row| row.says.get(column)).map_or("", |says| match says {
                    Yes => "yes: ",
                    No => "no: ",
                    Partly => "partly: ",
                    Irrelevant => "not relevant: ",
                });
            words.push(format!("{says}{:+.0} %", gain(results, name, impairment).mean));
        }
        words
    });
    let head = ["enhancement"].into_iter().chain(Impairment::ALL.map(Impairment::name));
    Table {
        id: "table-3".into(),
        title: "What table 3 says, and what each enhancement gains here".into(),
        head: head.map(str::to_owned).collect(),
        rows: rows.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_measured() {
        let all = all();
        for row in &TABLE {
            assert!(all.iter().any(|one| one.name == row.name), "{}", row.name);
        }
        let half = |mean, half| Summary { n: 10, mean, deviation: 1.0, half };
        assert!(Yes.holds(half(9.0, 3.0)) && !Yes.holds(half(7.0, 3.0)));
        assert!(No.holds(half(1.0, 3.0)) && !No.holds(half(3.0, 3.0)));
        assert!(Partly.holds(half(1.0, 0.5)) && !Partly.holds(half(0.4, 0.5)));
    }
}
