//! What the document gives, what it leaves open, and what is taken here.

use crate::experiments::{SetUp, Setting};

pub(super) fn lines(setting: &Setting) -> Vec<SetUp> {
    let published = SetUp::published;
    let chosen = |name: &str, published: &str, ours: &str, why: &str| {
        SetUp::chosen(name, published, ours, why)
    };
    vec![
        published("clusters", "1,200, 3,200 and 3,600 terminals on 3, 3 and 4 platforms"),
        published("a platform", "48 Mbit/s out; 140 return channels of 76.8 kbit/s; 800 ms"),
        published("a terminal", "at most 320 kbit/s down and 50 kbit/s up"),
        published("splitting", "at hub and terminal, with local acknowledgements"),
        chosen(
            "320 kbit/s",
            "maximum outbound rate",
            "payload",
            "a platform's mean of a day was 324 kbit/s: it cannot count headers",
        ),
        chosen(
            "50 kbit/s",
            "maximum inbound rate",
            "payload, in 9 of a carrier's 12 slots",
            "as the other rate; at first it counted headers, in 8 slots, which a full segment exceeds: \
             corrected after uploads had shown 39 kbit/s",
        ),
        chosen(
            "return channels",
            "some for random access, the others for dedicated access",
            "70 and 70, bursts of 188 bytes, plans every 250 ms; packets of up to three bursts go by random \
             access",
            "how many of each, and which packets, is not told",
        ),
        chosen(
            "what was fetched to measure throughput",
            "200 measurements a day",
            "1 MB, at 4 terminals of a platform, 5 s after the last one on average",
            "a round number, taken before anything was compared; a figure shows others",
        ),
        chosen(
            "users",
            "bytes in on a day",
            "elements of 8,652 bytes, the mean of table 21's pages, for requests of 400 bytes, as \
             many as send what was reported, evenly over the day",
            "",
        ),
        chosen(
            "cluster 1's traffic",
            "not measured",
            "as much for each terminal as in cluster 2",
            "",
        ),
        chosen(
            "sessions over the satellite",
            "proprietary; no slow start",
            "STP's segments at the terminal's rate, a POLL in two round trips whether it is answered \
             or not",
            "intervals at first doubled without answers as those of STP do, up to 64 times: corrected \
             after outages of two minutes had cost 200 s",
        ),
        chosen(
            "outages",
            "hours in a month",
            "two minutes each, one run beside the same users in fair weather",
            "lengths are not told; a table has others",
        ),
        SetUp::chosen(
            "replications",
            "",
            setting.replications.to_string(),
            "one platform of a cluster, for five minutes; where one thing is changed at a time and \
             for outages, a tenth of one: terminals, channels and outbound",
        ),
    ]
}
