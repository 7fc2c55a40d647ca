//! What the recommendation states, and what becomes of it.

mod arithmetic;
mod atm;
mod enhancements;
mod equations;
mod measured;
mod pages;
mod shaping;
mod traces;

use crate::experiments::{Outcome, Results, SetUp, Setting};

/// Judges all results.
pub(super) fn judge(_: &Setting, results: &Results) -> Outcome {
    Outcome {
        summary: SUMMARY.map(str::to_owned).into(),
        set_up: set_up(),
        sections: vec![
            equations::section(results),
            traces::window(results),
            enhancements::section(results),
            measured::one_connection(results),
            measured::two_segments(results),
            measured::three_segments(results),
            atm::section(results),
            shaping::section(results),
            traces::files(results),
            pages::section(results),
            arithmetic::section(results),
        ],
        ..Outcome::default()
    }
}

const SUMMARY: [&str; 2] = [
    "What the recommendation concludes stands: a window over a round trip is all that TCP has, a \
     gateway lifts that to the link's rate, at low error ratios with TCP behind it and at high \
     ones with a protocol that repairs losses without slowing down; pages come fastest when their \
     elements are asked for all at once. The fullest queue behind 500 Mbit/s is its own to a \
     packet: 2,278, where it simulated 2,279.",
    "Its table 2 is for packets of 1 kbyte and not 1 kbit, and some of its arithmetic slips. Table \
     3, which says of each enhancement whether it helps, is measured here. What figures 46 to 48 \
     (FTP) say of throughput is the computers' disks; the line would have carried seven times as \
     much.",
];

fn set_up() -> Vec<SetUp> {
    let chosen = |name, published, ours: &str, why| SetUp::chosen(name, published, ours, why);
    let mut lines = vec![
        SetUp::published("round trips of tables 1 and 2", "20, 200, 600 and 520 ms"),
        chosen(
            "window of table 1",
            "64 kbytes, or 65,535 bytes",
            "65,535 bytes",
            "what the header can say",
        ),
        SetUp::fitted(
            "packets of table 2",
            "1 kbit",
            "1 kbyte",
            "the table's numbers do not follow from 1 kbit; the lengths that were tried stand \
             beside it",
        ),
    ];
    lines.extend(hosts());
    lines.extend(gateways());
    lines.extend(pages());
    lines
}

fn hosts() -> Vec<SetUp> {
    let chosen = |name, published, ours: &str, why| SetUp::chosen(name, published, ours, why);
    vec![
        chosen(
            "windows of hosts",
            "8 kbytes in sections 2.1 and 2.3; Windows 2000 in test B",
            "8,760 bytes; 32 kbytes in test A",
            "what these systems had unless told otherwise; Windows and Solaris round 8,192 up to \
             whole segments",
        ),
        SetUp::fitted(
            "what a host of test B has under way",
            "Windows 2000",
            "12,288 bytes",
            "by the 200 and 400 kbit/s of figures 13 and 14. It is what its programs can have: 8,192 \
             bytes of a socket's send buffer and a write of 4,096 (Microsoft's articles 149525 and \
             311084); the window alone is 17,520, and others are in the table",
        ),
        chosen(
            "hosts of sections 2.1 and 2.3",
            "Solaris 7",
            "acknowledgements wait for 50 ms, retransmissions for 200 ms at least and 3 s at first; \
             no SACK between two of them; no limited transmit, acknowledgements counted",
            "its settings unless changed (tcp_deferred_ack_interval, tcp_rexmit_interval_min and \
             _initial, tcp_sack_permitted), and its year",
        ),
    ]
}

fn gateways() -> Vec<SetUp> {
    let chosen = |name, published, ours: &str, why| SetUp::chosen(name, published, ours, why);
    vec![
        chosen(
            "gateways of two segments",
            "two products, not described",
            "TCP with SACK and windows of two products of rate and round trip",
            "what is needed to fill the line",
        ),
        chosen(
            "gateways of three segments",
            "a protocol gateway, not described",
            "XSTP at 97 % of the satellite's rate, shared evenly by connections",
            "such gateways are told the rate",
        ),
        chosen(
            "queues",
            "",
            "one product of rate and round trip",
            "so that they are not what limits",
        ),
        chosen(
            "what is counted",
            "",
            "bytes after a fifth of the time, for whole round trips: of 60 s, 20 s above 2 Mbit/s, \
             12 s of many connections",
            "how long the tests were is not told; a small window comes in bursts, one in each round \
             trip",
        ),
        chosen(
            "enhancements of table 3",
            "",
            "over Reno with a first window of a segment and windows of one and a half products",
            "the baseline of annex 1; what each is measured on stands above its table",
        ),
        chosen(
            "many connections",
            "128 kbit/s each; 50 to 350",
            "50, 280 and 350, each host on a line of 128 kbit/s",
            "the numbers that the text names",
        ),
        chosen(
            "burst errors",
            "various",
            "as many packets lost as at 1e-6, in bursts of 1, 4 and 16",
            "the figure is not legible",
        ),
        chosen(
            "hosts on ATM",
            "sockets of 64 kbytes to 8 Mbytes",
            "windows of one and a half times that",
            "Linux doubles what is asked for and gives three quarters to the window",
        ),
        SetUp::published("what the computers on ATM carry without the satellite", "118.32 Mbit/s"),
        chosen(
            "shaping",
            "a token bucket; its rate is not given",
            "100 Mbit/s, tokens every 10 ms; a router's queue of 100 packets",
            "95 Mbit/s are 95 % of what there was without the satellite; Linux's clock on PCs of \
             the time, and its usual queue",
        ),
    ]
}

fn pages() -> Vec<SetUp> {
    let chosen = |name, published, ours: &str, why| SetUp::chosen(name, published, ours, why);
    vec![
        SetUp::published("windows of table 22", "10 Mbytes"),
        chosen(
            "segments of table 22",
            "",
            "1,448 bytes of data",
            "the client is on Ethernet, and Linux has timestamps on",
        ),
        SetUp::fitted(
            "first window of table 22",
            "",
            "three segments",
            "RFC 2414, as Linux has it from 2.4 on; which Linux it was is not told, and with two \
             segments pages take a round trip longer (table)",
        ),
        chosen(
            "HTTP/1.0",
            "Netscape 4.77",
            "four connections at once",
            "the browser's setting unless changed",
        ),
        chosen(
            "elements with HTTP/1.0",
            "30, 21, 33, 16 and 8 in table 21; 41, 22, 34, 14 and 8 connections in table 22, which \
             'corresponds to the number of elements'",
            "as many as table 22 counts, of the page's bytes",
            "what was counted while it was measured; those of table 21 are among the alternatives",
        ),
        chosen(
            "HTTP/1.1",
            "Webbot 5.2.8",
            "each request waits for 30 ms",
            "its library gathers requests for so long before it sends them (libwww, HTHost.c)",
        ),
        chosen(
            "requests and heads of answers",
            "",
            "300 and 280 bytes; Webbot's requests 190",
            "what browsers and Apache of the time sent, about; 190 is what Webbot's authors measured \
             (Nielsen and others, SIGCOMM 1997)",
        ),
        chosen(
            "programs of table 22",
            "",
            "take 1 ms before they ask, answer or end",
            "an acknowledgement does not wait for them; how long it is does not matter",
        ),
        chosen(
            "acknowledgements of table 22",
            "",
            "of each segment as long as the window that is told grows; where a host answers, with \
             the answer, or of every second segment and after 40 ms, once",
            "Linux 2.4's rule; the window grows to 10 Mbytes, longer than any of the pages",
        ),
        SetUp::fitted(
            "sizes of a page's elements",
            "",
            "drawn from web files of 1995, scaled to the page's bytes; 20 draws",
            "elements of a page are not all alike; with all alike fewer times agree (table)",
        ),
    ]
}
