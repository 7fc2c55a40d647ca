//! Table I's measured column, tables II and III, and narrow return channels.

use super::super::latency::{ORBITS, SEGMENTS, Way};
use super::super::networks::{self, Channel, DIRECPC, RICOCHET, WAYS, WITH_RED};
use super::super::web::{self, Web};
use super::super::{NETWORKS, WEB};
use crate::experiments::publication::{Found, Numbers, Sentence, judge, number, that};
use crate::experiments::statistics::relative_gain;
use crate::experiments::{Cell, Criterion, Results, Section, Summary, Table};

/// The measured column, s: as `ORBITS`, `SEGMENTS` and `Way::ALL` stand.
const MEASURED: [[[f64; 4]; 2]; 2] = [
    [[2.0, 1.4, 1.6, 1.0], [2.6, 2.0, 1.9, 1.3]],
    [[0.37, 0.28, 0.25, 0.16], [0.55, 0.47, 0.31, 0.23]],
];

const TABLE_1: Numbers = Numbers {
    place: "section V.B, table I",
    unit: "s",
    criterion: Criterion::Within(0.1),
    why: [
        "round trips as reckoned, and the time that bytes take at 1.3 Mbit/s",
        "one request in seven of the traces needs three small segments and so another round trip \
         or two, and one reply in thirty more than 100 of them. With requests of one segment, or \
         without those replies, standard TCP agrees, and T/TCP is 15 to 18 % above (table); the \
         paper gives neither. T/TCP's published mean is 0.6 s below standard TCP's, a whole round \
         trip, though its first segment is acknowledged late as well",
    ],
};

/// Table II: latency in s and packets of TCP, T/TCP and STP.
const TABLE_2: [(f64, f64); 3] = [(2.0, 12.3), (1.4, 7.3), (1.5, 9.1)];

const BOTH: [&str; 2] = [
    "",
    "the draws of the paper are not known; culled as table I's reckoning, as its packets imply",
];

fn of(results: &Results, web: Web, name: &str) -> Summary {
    results.summary(WEB, &web.key(), name)
}

fn of_table_2(index: usize) -> Web {
    let ways = [web::Way::Tcp(Way::ALL[0]), web::Way::Tcp(Way::ALL[1]), web::Way::Stp];
    web::table_2(ways[index])
}

/// Replies on the web, measured.
pub(super) fn replies(results: &Results) -> Section {
    let mut cells = Vec::new();
    for ((orbit, round_trip), rows) in ORBITS.into_iter().zip(MEASURED) {
        for (segment, row) in SEGMENTS.into_iter().zip(rows) {
            for (way, published) in Way::ALL.into_iter().zip(row) {
                let ours = of(results, web::table_1(way, round_trip, segment), "latency_s");
                let name = format!("{orbit}, {segment} bytes, {}: measured mean", way.name());
                cells.push(TABLE_1.cell(name, published, ours));
            }
        }
    }
    cells.extend(table_2(results));
    cells.extend(judge(SENTENCES, results));
    Section {
        title: "Replies on the web, sent (tables I and II)".into(),
        text: vec![
            "1,000 transfers of each kind, one after the other, sizes drawn from the same \
             quantiles. Table I has all of them; for table II replies over 100 segments are left \
             out, because its packets leave no room for them."
                .into(),
        ],
        tables: vec![culled(results)],
        cells,
        ..Section::default()
    }
}

/// Table I's measured column with the largest replies and without.
fn culled(results: &Results) -> Table {
    let mut rows = Vec::new();
    for ((orbit, round_trip), column) in ORBITS.into_iter().zip(MEASURED) {
        for (segment, row) in SEGMENTS.into_iter().zip(column) {
            for (way, published) in Way::ALL.into_iter().zip(row) {
                let all = of(results, web::table_1(way, round_trip, segment), "latency_s");
                let culled = web::table_1_culled(way, round_trip, segment);
                let small = web::table_1_small(way, round_trip, segment);
                let [culled, small] = [culled, small].map(|web| of(results, web, "latency_s"));
                rows.push(vec![
                    format!("{orbit}, {segment} bytes, {}", way.name()),
                    format!("{published}"),
                    format!("{:.2}", all.mean),
                    format!("{:.2}", culled.mean),
                    format!("{:.2}", small.mean),
                ]);
            }
        }
    }
    Table {
        id: "table-1-measured".into(),
        title: "Measured means of table I, s, and what the largest replies and requests do".into(),
        head: ["what", "published", "all", "no reply over 100 segments", "requests of one segment"]
            .map(str::to_owned)
            .into(),
        rows,
    }
}

fn table_2(results: &Results) -> Vec<Cell> {
    let names = ["TCP", "T/TCP", "STP"];
    let numbers = |unit, why| Numbers {
        place: "section VII.C, table II",
        unit,
        criterion: Criterion::Within(0.1),
        why,
    };
    let latency = numbers("s", ["round trips, and 1.3 Mbit/s", BOTH[1]]);
    let packets = numbers(
        "packet",
        [
            "data, acknowledgements, and what opening and closing take",
            "how a host delays and joins acknowledgements, SYN, FIN and STATs decides about two \
             packets more or less",
        ],
    );
    let mut cells = Vec::new();
    for (index, (name, published)) in names.into_iter().zip(TABLE_2).enumerate() {
        let web = of_table_2(index);
        let ours = of(results, web, "latency_s");
        cells.push(latency.cell(format!("{name}: latency"), published.0, ours));
        let ours = of(results, web, "packets");
        cells.push(packets.cell(format!("{name}: packets"), published.1, ours));
    }
    cells
}

fn better(results: &Results, first: Web, second: Web, name: &str) -> Summary {
    let [first, second] = [first, second].map(|web| results.values(WEB, &web.key(), name));
    relative_gain(&first, &second).scaled(100.0)
}

const SENTENCES: &[Sentence] = &[
    that(
        "STP between TCP and T/TCP: latency",
        "section VII.C, table II",
        (
            "STP's latency is better than TCP's and slightly worse than T/TCP's",
            "below TCP's, and above T/TCP's by less than 25 %",
        ),
        |results| {
            let [tcp, transactions] =
                [0, 1].map(|other| better(results, of_table_2(2), of_table_2(other), "latency_s"));
            Found::new(format!(
                "{:+.0} % over TCP, {:+.0} % over T/TCP",
                tcp.mean, transactions.mean
            ))
            .below(tcp, 0.0)
            .between(transactions, 0.0, 25.0)
        },
        [
            "no handshake, and bursts that are spread",
            "ours is not slower than T/TCP: STATs after every burst open the window sooner than delayed acknowledgements do",
        ],
    ),
    that(
        "STP between TCP and T/TCP: packets",
        "section VII.C, table II",
        ("STP takes fewer packets than TCP and more than T/TCP", "below TCP's and above T/TCP's"),
        |results| {
            let [tcp, transactions] =
                [0, 1].map(|other| better(results, of_table_2(2), of_table_2(other), "packets"));
            Found::new(format!(
                "{:+.0} % over TCP, {:+.0} % over T/TCP",
                tcp.mean, transactions.mean
            ))
            .below(tcp, 0.0)
            .above(transactions, 0.0)
        },
        [
            "a STAT for each burst of the small window",
            "more than T/TCP, but no fewer than TCP: STATs for each burst, and BGN, END and what answers them, are as many packets as TCP's handshakes",
        ],
    ),
    that(
        "a return channel of 1 kbit/s",
        "section VII.C",
        (
            "browsers over STP still perform well with 1 kbit/s in return, where TCP is unusable",
            "over 1 kbit/s STP's latency is less than half of TCP's",
        ),
        |results| {
            let [stp, tcp] = [web::Way::Stp, web::Way::Tcp(Way::ALL[0])].map(web::narrow);
            let change = better(results, stp, tcp, "latency_s");
            let [stp, tcp] = [stp, tcp].map(|web| of(results, web, "latency_s").mean);
            Found::new(format!("{stp:.1} s with STP, {tcp:.1} s with TCP")).below(change, -50.0)
        },
        [
            "STATs for bursts, not for pairs of segments",
            "requests of some hundred bytes take seconds there with either, and are most of the latency",
        ],
    ),
];

fn network(results: &Results, channel: Channel, way: usize, name: &str) -> Summary {
    results.summary(NETWORKS, &channel.key(WAYS[way].0), name)
}

/// Table III.
pub(super) fn commercial(results: &Results) -> Section {
    let row = |channel: Channel| {
        let value = |way, name| format!("{:.1}", network(results, channel, way, name).mean);
        let columns =
            [(0, "kbps"), (0, "reverse_kbps"), (1, "kbps"), (1, "reverse_kbps"), (0, "queue_s")];
        let mut row = vec![channel.name.to_owned()];
        row.extend(columns.map(|(way, name)| value(way, name)));
        row
    };
    Section {
        title: "Commercial networks (table III)".into(),
        text: vec![
            "A satellite with a modem for the way back, and packet radio with deep queues, as \
             channels. Their rates are not given and were fitted, and so were losses in the \
             Internet; the table shows others."
                .into(),
        ],
        tables: vec![Table {
            id: "table-3-channels".into(),
            title: "Channels: kbit/s forward and in return, and the deepest queue in s".into(),
            head: [
                "channel",
                "STP",
                "STP in return",
                "TCP SACK",
                "TCP SACK in return",
                "queue, STP",
            ]
            .map(str::to_owned)
            .into(),
            rows: networks::all().map(row).collect(),
        }],
        cells: judge(NETWORK_SENTENCES, results),
        ..Section::default()
    }
}

const TABLE_3: &str = "section VII.C, table III";
const TENTH: Criterion = Criterion::Within(0.1);
const FITTED: [&str; 2] = [
    "the channel was fitted to the forward numbers",
    "one channel for both protocols, its rate and losses fitted by STP. TCP is as far behind as published where a faster line with more losses has a queue of 20 kbytes: there its bursts overflow the queue and STP's spread packets do not (table); which of them the Internet of the time was is not told",
];
const BACK: [&str; 2] = [
    "three STATs a round trip, an acknowledgement for two segments",
    "acknowledgements follow throughput, which is too high here; STATs follow the round trip, and 0.6 kbit/s of them are one each 0.6 s: the published round trips were below 2 s on average, in spite of the queues of 15 s of the text. With a queue of 15 kbytes, which is 4 s, all four numbers of Ricochet agree (table)",
];

const NETWORK_SENTENCES: &[Sentence] = &[
    number(
        "DirecPC forward, STP",
        TABLE_3,
        (480.0, "kbit/s", TENTH),
        |results| network(results, DIRECPC, 0, "kbps"),
        FITTED,
    ),
    number(
        "DirecPC forward, TCP",
        TABLE_3,
        (370.0, "kbit/s", TENTH),
        |results| network(results, DIRECPC, 1, "kbps"),
        FITTED,
    ),
    number(
        "DirecPC in return, STP",
        TABLE_3,
        (2.8, "kbit/s", TENTH),
        |results| network(results, DIRECPC, 0, "reverse_kbps"),
        BACK,
    ),
    number(
        "DirecPC in return, TCP",
        TABLE_3,
        (7.6, "kbit/s", TENTH),
        |results| network(results, DIRECPC, 1, "reverse_kbps"),
        BACK,
    ),
    number(
        "Ricochet forward, STP",
        TABLE_3,
        (28.1, "kbit/s", TENTH),
        |results| network(results, RICOCHET, 0, "kbps"),
        FITTED,
    ),
    number(
        "Ricochet forward, TCP",
        TABLE_3,
        (27.1, "kbit/s", TENTH),
        |results| network(results, RICOCHET, 1, "kbps"),
        FITTED,
    ),
    number(
        "Ricochet in return, STP",
        TABLE_3,
        (0.6, "kbit/s", TENTH),
        |results| network(results, RICOCHET, 0, "reverse_kbps"),
        BACK,
    ),
    number(
        "Ricochet in return, TCP",
        TABLE_3,
        (0.9, "kbit/s", TENTH),
        |results| network(results, RICOCHET, 1, "reverse_kbps"),
        BACK,
    ),
    that(
        "DirecPC: STP is better both ways",
        "section VII.C",
        (
            "STP is faster forward and uses less than half of the return channel",
            "more kbit/s forward, and less than half of TCP's in return",
        ),
        |results| {
            let keys = [0, 1].map(|way| DIRECPC.key(WAYS[way].0));
            let of = |name| {
                relative_gain(
                    &results.values(NETWORKS, &keys[0], name),
                    &results.values(NETWORKS, &keys[1], name),
                )
                .scaled(100.0)
            };
            let [forward, back] = ["kbps", "reverse_kbps"].map(of);
            Found::new(format!("{:+.0} % forward, {:+.0} % in return", forward.mean, back.mean))
                .above(forward, 0.0)
                .below(back, -50.0)
        },
        [
            "bytes are counted in slow start, and STATs go by the clock",
            "a single loss in the Internet halves either's window, and STP's sending is spread over a longer round trip",
        ],
    ),
    that(
        "Ricochet: STP is better",
        "section VII.C",
        ("STP does better on average in the packet radio network", "more kbit/s forward"),
        |results| {
            let keys = [0, 1].map(|way| RICOCHET.key(WAYS[way].0));
            let change = relative_gain(
                &results.values(NETWORKS, &keys[0], "kbps"),
                &results.values(NETWORKS, &keys[1], "kbps"),
            )
            .scaled(100.0);
            Found::new(format!("{:+.1} %", change.mean)).above(change, 0.0)
        },
        [
            "headers are smaller, and it keeps the line busy",
            "100 kbytes are slow start for most of the time, and STP spreads what a STAT lets out over the round trip",
        ],
    ),
    that(
        "queues of 15 s",
        "section VII.C",
        (
            "STP sends so smoothly that queues of 15 s build up before it loses anything",
            "its deepest queue is 12 to 16 s",
        ),
        |results| {
            let queue = network(results, RICOCHET, 0, "queue_s");
            Found::new(format!("{:.1} s", queue.mean)).between(queue, 12.0, 16.0)
        },
        [
            "its window of 240 kbytes fills whatever there is",
            "100 kbytes are over before the window has filled such a queue",
        ],
    ),
    that(
        "RED would help there",
        "section VII.C",
        (
            "such delays argue for RED in packet radio networks",
            "with RED the deepest queue is less than half, and throughput at least 80 % of what it was",
        ),
        |results| {
            let keys = [WITH_RED, RICOCHET].map(|channel| channel.key(WAYS[0].0));
            let of = |name| {
                relative_gain(
                    &results.values(NETWORKS, &keys[0], name),
                    &results.values(NETWORKS, &keys[1], name),
                )
                .scaled(100.0)
            };
            let [kbps, queue] = ["kbps", "queue_s"].map(of);
            Found::new(format!("queue {:+.0} %, throughput {:+.0} %", queue.mean, kbps.mean))
                .above(kbps, -20.0)
                .below(queue, -50.0)
        },
        [
            "a loss halves the window long before the queue is full",
            "slow start fills the queue before the average sees it",
        ],
    ),
];
