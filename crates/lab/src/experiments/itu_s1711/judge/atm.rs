//! Annex 3, section 3: figures 30 to 34.

use super::super::ATM;
use super::super::atm::{ENDLESS, FTP_SOCKETS, FULL, QUEUES, SOCKETS, Trial, WINDOWS};
use crate::experiments::publication::{Found, Sentence, judge, nothing, number, that};
use crate::experiments::{Axis, Criterion, Figure, Results, Section, Series, Summary, Table};

fn of(results: &Results, trial: Trial, name: &str) -> Summary {
    results.summary(ATM, &trial.key(), name)
}

fn mbps(results: &Results, trial: Trial) -> Summary {
    of(results, trial, "mbps")
}

fn atm(socket: u64, satellite: bool) -> Trial {
    Trial::Atm { socket, satellite }
}

fn gigabit(window: u64, queue: u64) -> Trial {
    Trial::Gigabit { window, queue }
}

/// The section.
pub(super) fn section(results: &Results) -> Section {
    let by_socket = |satellite: bool, name: &str| {
        let at = |socket: u64| (socket as f64 / 1e3, mbps(results, atm(socket, satellite)));
        Series::new(name, SOCKETS.map(at))
    };
    let by_window = WINDOWS.map(|window| (window as f64, mbps(results, gigabit(window, ENDLESS))));
    let figure = |id: &str, title: &str, x: &str, series| Figure {
        id: id.into(),
        title: title.into(),
        x: Axis::linear(x),
        y: Axis::linear("throughput (Mbit/s)"),
        series,
        note: String::new(),
    };
    let row = |queue: u64| {
        let value = |name| format!("{:.0}", of(results, gigabit(FULL, queue), name).mean);
        let name = if queue == ENDLESS { "without end".to_owned() } else { queue.to_string() };
        vec![name, value("mbps"), value("queue"), value("overflowed")]
    };
    Section {
        title: "155 Mbit/s of ATM (figures 30 to 34)".into(),
        text: vec![
            "One TCP over OC-3 and 540 ms. With hosts on ATM the socket's size limits it; behind a \
             faster network slow start sends at twice the line's rate, and a router needs a queue \
             for the half of it."
                .into(),
        ],
        figures: vec![
            figure(
                "figure-30",
                "TCP by the size of sockets (figure 30)",
                "socket (Mbytes)",
                vec![by_socket(true, "540 ms"), by_socket(false, "1 ms")],
            ),
            figure(
                "figure-34",
                "Behind 500 Mbit/s, by the window (figure 34)",
                "window (packets)",
                vec![Series::new("a queue without end", by_window)],
            ),
        ],
        tables: vec![
            Table {
                id: "queues-atm".into(),
                title: "Behind 500 Mbit/s with a window of 6,374 packets, by the router's queue"
                    .into(),
                head: ["queue, packets", "Mbit/s", "fullest", "overflowed"]
                    .map(str::to_owned)
                    .into(),
                rows: QUEUES.map(row).into(),
            },
            ftp(results),
        ],
        cells: judge(SENTENCES, results),
    }
}

/// A file between memories, by the size of sockets.
fn ftp(results: &Results) -> Table {
    let row = |socket: u64| {
        let found = mbps(results, Trial::File { socket });
        vec![socket.to_string(), format!("{:.1}", found.mean)]
    };
    Table {
        id: "figure-46".into(),
        title: "FTP's file of 92.1 Mbytes without its disks (figure 46)".into(),
        head: ["socket, kbytes", "Mbit/s"].map(str::to_owned).into(),
        rows: FTP_SOCKETS.map(row).into(),
    }
}

const SECTION_3_2: &str = "annex 3, section 3.2, figure 30";
const SECTION_3_3: &str = "annex 3, section 3.3.1, figures 33 and 34";

const SENTENCES: &[Sentence] = &[
    number(
        "sockets of 6 Mbytes, IPv4",
        SECTION_3_2,
        (113.0, "Mbit/s", Criterion::Within(0.1)),
        |results| mbps(results, atm(6_000, true)),
        [
            "what the computers carry: 118 Mbit/s, as FTP had without the satellite (section 5.2); \
             the line would take 133",
            "what the computers carried without the satellite, 118 Mbit/s, is what they carry",
        ],
    ),
    number(
        "share of what there is without the satellite",
        SECTION_3_2,
        (95.0, "%", Criterion::Within(0.1)),
        |results| {
            let [far, near] =
                [true, false].map(|satellite| mbps(results, atm(6_000, satellite)).mean);
            Summary::of(&[100.0 * far / near])
        },
        ["the window holds what is under way", ""],
    ),
    that(
        "about 6 Mbytes are needed",
        "annex 3, section 3.4",
        (
            "for the most of 155 Mbit/s sockets of about 6 Mbytes are needed",
            "4 Mbytes have less than 90 % of what 8 have, 6 Mbytes more than 95 %",
        ),
        |results| {
            let all = [4_000, 6_000, 8_000].map(|socket| mbps(results, atm(socket, true)).mean);
            let [less, enough] = [all[0] / all[2], all[1] / all[2]].map(|share| share * 100.0);
            Found::new(format!("{less:.0} and {enough:.0} %"))
                .below(Summary::of(&[less]), 90.0)
                .above(Summary::of(&[enough]), 95.0)
        },
        ["as Linux makes a window of one and a half times what is asked for", ""],
    ),
    that(
        "routers of the time have too short queues",
        "annex 3, section 3.3, figure 31",
        (
            "behind a faster network the most was 2 to 3 Mbit/s, because the router drops bursts",
            "with a queue of 100 packets less than a tenth of the line",
        ),
        |results| {
            let found = mbps(results, gigabit(FULL, QUEUES[0]));
            Found::new(format!("{:.1} Mbit/s", found.mean)).below(found, 13.5)
        },
        [
            "slow start ends after some hundred packets",
            "ours loses the burst and repairs it with SACK; theirs paused for 27 s, as the sequence graph shows, for reasons that are not told",
        ],
    ),
    number(
        "the fullest queue",
        SECTION_3_3,
        (2_279.0, "packet", Criterion::Within(0.1)),
        |results| of(results, gigabit(FULL, ENDLESS), "queue"),
        [
            "what slow start sends above the line's rate",
            "half of the window, 3,187, is what the document reckons itself, and at the end the window that does not fit the line stays in the queue; its simulation had 2,279 for reasons that are not told",
        ],
    ),
    that(
        "no more than half of the window",
        SECTION_3_3,
        (
            "the queue needs half of the largest window",
            "with a queue of 3,187 packets nothing overflows",
        ),
        |results| {
            let lost = of(results, gigabit(FULL, QUEUES[2]), "overflowed");
            Found::new(format!("{:.0} packets", lost.mean)).below(lost, 0.5)
        },
        ["bursts come at twice the line's rate", "bursts leave faster than twice the line's rate"],
    ),
    that(
        "the window that fills the line is the best",
        SECTION_3_3,
        (
            "throughput is greatest with buffers of about 6,374 packets",
            "6,374 packets have more than 10 % more than 4,500, and 9,000 no more than 5 % more than 6,374",
        ),
        |results| {
            let all =
                [4_500, FULL, 9_000].map(|window| mbps(results, gigabit(window, ENDLESS)).mean);
            Found::new(format!("{:.0}, {:.0} and {:.0} Mbit/s", all[0], all[1], all[2]))
                .above(Summary::of(&[all[1] / all[0]]), 1.1)
                .below(Summary::of(&[all[2] / all[1]]), 1.05)
        },
        ["the product of rate and round trip", ""],
    ),
    nothing(
        "FTP with sockets of 1 Mbyte",
        "annex 3, section 5.2, figures 46 to 48",
        "FTP had at most about 3 Mbit/s, with sockets of 1 Mbyte, and less with larger ones, for disk and memory of the computers",
        "what the computers' disks and memory did is not told; between memories a socket of 1 Mbyte \
         has seven times as much (table), so it was not the network",
    ),
];
