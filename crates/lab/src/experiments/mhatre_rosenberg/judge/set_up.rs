//! What the paper gives, what it leaves open, and what is taken here.

use crate::experiments::{SetUp, Setting};

pub(super) fn lines(setting: &Setting) -> Vec<SetUp> {
    let mut lines = given(setting);
    lines.extend(open());
    lines.extend(transports());
    lines
}

fn given(setting: &Setting) -> Vec<SetUp> {
    let published = SetUp::published;
    vec![
        published("network", "20 terminals; behind ten of them five clients, behind ten one"),
        published(
            "links",
            "100 kbit/s up, 50 Mbit/s down, local networks of 10 Mbit/s; about 540 ms there and back",
        ),
        published("slots", "53 bytes, 48 of them data; burst time plans and requests every 250 ms"),
        published("objects", "4 kB on persistent connections; 80 s"),
        published("buffers", "8 kB for TCP, 64 kB for STP"),
        published("polling", "once every two round trips"),
        SetUp::chosen(
            "replications",
            "one run, as far as is told",
            setting.replications.to_string(),
            "10 in sweeps and readings, 3 where there are more than 100 terminals; the same chance in all \
             scenarios",
        ),
    ]
}

fn open() -> Vec<SetUp> {
    let chosen = |name: &str, published: &str, ours: &str, why: &str| {
        SetUp::chosen(name, published, ours, why)
    };
    vec![
        chosen(
            "requests",
            "a Poisson process, once every 2 s for each client",
            "2 s on average from an object to the next request",
            "2,400 requests cannot have made 1,628 objects of 0.87 s; ns-2's client drops a request \
             while the page is pending, which makes a closed loop",
        ),
        chosen("size of a request", "", "43 bytes", "ns-2's web client"),
        chosen("local networks", "", "1 ms; servers answer at once", ""),
        chosen("frame", "250 ms", "58 slots, the rest idle", "58.96 would fit"),
        chosen(
            "a plan takes effect",
            "",
            "two of the longest ways and 10 ms after it was made, as the hub hears it",
            "terminals must have heard of it",
        ),
        chosen(
            "requests for slots",
            "queue length and slots already allocated; piggybacked on data",
            "cells that wait less slots that the terminal was told of, in the first cell of each frame",
            "see the decision record mf-tdma",
        ),
        chosen(
            "TCP with bandwidth on demand",
            "tried, no figures",
            "nothing free; each terminal has a burst of its own in each frame to ask in",
            "without it nobody could ask",
        ),
        chosen(
            "SYN",
            "kept back until the server has answered",
            "not kept back",
            "60 of some 1,600 responses would be 0.6 s longer",
        ),
        chosen("STATs", "one packet for all of a terminal", "those of 10 ms", ""),
        chosen(
            "what is counted",
            "",
            "objects that came whole within 80 s; IP bytes over 80 s",
            "only IP bytes give the paper's uplink in scenario 1",
        ),
    ]
}

fn transports() -> Vec<SetUp> {
    vec![
        SetUp::chosen(
            "TCP",
            "ns-2.1b8a, duplex, with flow control added",
            "segments of 536 bytes, each acknowledged, a first window of two, slow start after pauses, Reno",
            "ns-2's FullTcp as it comes",
        ),
        SetUp::fitted(
            "Nagle's rule",
            "",
            "off",
            "with it an idle link would take four round trips and more for each object, which the \
             published mean excludes; chosen after a look at four runs",
        ),
        SetUp::chosen(
            "STP",
            "Henderson's code, made duplex",
            "the preset of 1999: first window of one segment, segments of 1,461 bytes, delayed send",
            "the paper says nothing else",
        ),
        SetUp::fitted(
            "POLLs on data",
            "",
            "below a window of ten segments the last one of each burst carries a POLL, as in STP of \
             1999; above it the timer alone polls",
            "at first the timer alone; corrected after a look at four runs, in which first objects \
             took ten seconds. Both are among the readings",
        ),
    ]
}
