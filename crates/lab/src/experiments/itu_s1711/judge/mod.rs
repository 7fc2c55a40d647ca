//! What the recommendation states, and what becomes of it.

mod arithmetic;
mod atm;
mod equations;
mod measured;
mod pages;

use crate::experiments::{Outcome, Results, SetUp, Setting};

/// Judges all results.
pub(super) fn judge(_: &Setting, results: &Results) -> Outcome {
    Outcome {
        summary: SUMMARY.map(str::to_owned).into(),
        set_up: set_up(),
        sections: vec![
            equations::section(results),
            measured::one_connection(results),
            measured::two_segments(results),
            measured::three_segments(results),
            atm::section(results),
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
    "Its table 2 is for packets of 1 kbyte and not 1 kbit, and some of its arithmetic slips. Not \
     done: table 3 as a matrix, shaping (figures 35 to 37), and the gateways as live programs. \
     Figures 46 to 48 (FTP) show the computers' disks. Figures 4 and 31 are traces of one \
     connection; what they show of slow start is in equation 2 and table 2.",
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
    lines.extend(gateways());
    lines
}

fn gateways() -> Vec<SetUp> {
    let chosen = |name, published, ours: &str, why| SetUp::chosen(name, published, ours, why);
    vec![
        chosen(
            "windows of hosts",
            "8 kbytes in section 2.1; Windows 2000 in test B",
            "8,192 bytes; 17,520 in test B; 32 kbytes in test A",
            "what these systems had unless told otherwise",
        ),
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
            "bytes after a fifth of the time: 60 s, 20 s above 2 Mbit/s, 12 s of many connections",
            "how long the tests were is not told",
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
    ]
}
