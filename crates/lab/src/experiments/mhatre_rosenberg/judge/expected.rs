//! What was published, written down before anything was compared.

use crate::experiments::{Criterion, Expected, Published};
use sim::multi_access::Scenario;

const fn number(name: &'static str, value: f64, unit: &'static str, share: f64) -> Expected {
    let published = Published::Number { value, unit };
    Expected { name, place: "table I", published, criterion: Criterion::Within(share) }
}

const fn claim(
    name: &'static str,
    place: &'static str,
    text: &'static str,
    when: &'static str,
) -> Expected {
    Expected { name, place, published: Published::Claim(text), criterion: Criterion::Holds(when) }
}

/// A row of table I: the name of our value, the same in words, and the cells of the three
/// scenarios.
pub(super) struct Row {
    pub(super) value: &'static str,
    pub(super) words: &'static str,
    pub(super) digits: usize,
    pub(super) cells: [Expected; 3],
}

/// Where the paper's scenarios stand in a row.
pub(super) const COLUMNS: [Scenario; 3] = [Scenario::Static, Scenario::Equal, Scenario::Weighted];

pub(super) const TABLE_I: [Row; 5] = [
    Row {
        value: "objects",
        words: "objects",
        digits: 0,
        cells: [
            number("objects, scenario 1", 1_106.0, "objects", 0.1),
            number("objects, scenario 2", 1_628.0, "objects", 0.1),
            number("objects, scenario 3", 1_824.0, "objects", 0.1),
        ],
    },
    Row {
        value: "mean_s",
        words: "mean response, s",
        digits: 2,
        cells: [
            number("mean response, scenario 1", 2.25, "s", 0.2),
            number("mean response, scenario 2", 0.87, "s", 0.2),
            number("mean response, scenario 3", 0.83, "s", 0.2),
        ],
    },
    Row {
        value: "longest_s",
        words: "longest response, s",
        digits: 1,
        cells: [
            number("longest response, scenario 1", 13.14, "s", 0.3),
            number("longest response, scenario 2", 8.42, "s", 0.3),
            number("longest response, scenario 3", 7.49, "s", 0.3),
        ],
    },
    Row {
        value: "down_kbps",
        words: "downlink, kbit/s",
        digits: 0,
        cells: [
            number("downlink, scenario 1", 778.0, "kbit/s", 0.1),
            number("downlink, scenario 2", 1_155.0, "kbit/s", 0.1),
            number("downlink, scenario 3", 1_291.0, "kbit/s", 0.1),
        ],
    },
    Row {
        value: "up_kbps",
        words: "uplink, kbit/s",
        digits: 2,
        cells: [
            number("uplink, scenario 1", 44.77, "kbit/s", 0.1),
            number("uplink, scenario 2", 23.91, "kbit/s", 0.1),
            number("uplink, scenario 3", 26.27, "kbit/s", 0.1),
        ],
    },
];

const fn percent(name: &'static str, value: f64, slack: f64) -> Expected {
    let published = Published::Number { value, unit: "%" };
    let criterion = Criterion::Absolute(slack);
    Expected { name, place: "section VII, after table I", published, criterion }
}

pub(super) const MORE_SPLIT: Expected = percent("more objects in scenario 2 than 1", 47.0, 10.0);
pub(super) const MORE_WEIGHTED: Expected = percent("more objects in scenario 3 than 2", 12.0, 5.0);
pub(super) const MORE_IN_ALL: Expected = percent("more objects in scenario 3 than 1", 65.0, 10.0);
pub(super) const USEFUL: Expected = Expected {
    name: "useful rate of the uplink",
    place: "section VII",
    published: Published::Number { value: 91.0, unit: "kbit/s" },
    criterion: Criterion::Within(0.03),
};

pub(super) const HALF_DELAY: Expected = claim(
    "delay of scenario 2",
    "section VII",
    "with splitting and bandwidth on demand clients wait half as long as with TCP end to end",
    "the mean response is below half of scenario 1's, beyond chance",
);
pub(super) const POOR: Expected = claim(
    "TCP as it is",
    "section VII",
    "end to end over fixed shares, delays are large and throughput is very low",
    "the mean response is above four round trips, and fewer objects come than in either of the \
     others, beyond chance",
);
pub(super) const HUNGRY: Expected = claim(
    "acknowledgements of TCP's",
    "section VII",
    "TCP end to end uses much of the return channel for its acknowledgements",
    "most of what an object costs on the uplink in scenario 1 is more than the whole of what it \
     costs in scenario 2, beyond chance",
);
pub(super) const WASTED: Expected = claim(
    "fixed shares",
    "section VI",
    "some terminals need more bandwidth and cannot have it, while others do not need theirs",
    "in scenario 1 more than a quarter of the slots pass unused, and clients at crowded terminals \
     wait longer than those alone at theirs, beyond chance",
);
pub(super) const ON_DEMAND: Expected = claim(
    "TCP end to end with bandwidth on demand",
    "section VII.A",
    "the delays of bandwidth on demand made TCP time out on most occasions",
    "more than one retransmission timeout for two objects, beyond chance",
);
pub(super) const EVERY_PACKET: Expected = claim(
    "asking for every packet",
    "section VI",
    "when slots must be asked for every packet, requests are delayed and responses take longer",
    "with the same splitting and nothing free, the mean response is above scenario 2's, beyond \
     chance",
);
pub(super) const EFFICIENT: Expected = claim(
    "STP with bandwidth on demand",
    "section VII",
    "polling works well even with the delays of bandwidth on demand; responses are short",
    "the mean response of scenario 2 is below two round trips of 540 ms, beyond chance",
);
pub(super) const THROUGH: Expected = claim(
    "weights, throughput",
    "section VII",
    "sharing free slots by connections gives a higher throughput",
    "scenario 3 has more objects than scenario 2, beyond chance",
);
pub(super) const SHORTER: Expected = claim(
    "weights, response",
    "section VII",
    "sharing free slots by connections gives shorter responses",
    "the mean response of scenario 3 is below scenario 2's, beyond chance",
);
pub(super) const LONGEST: Expected = claim(
    "weights, crowded terminals",
    "section VII.C",
    "terminals with many connections get more of what is free, and wait less",
    "after windows have opened, responses at crowded terminals are shorter in scenario 3 than in \
     scenario 2, beyond chance",
);
pub(super) const HALF_RETURN: Expected = claim(
    "return channel",
    "section VII",
    "scenarios 2 and 3 use about half of the return channel that scenario 1 uses",
    "both ratios lie between 0.4 and 0.65 with their intervals",
);

pub(super) const ALOHA: Expected = claim(
    "slotted Aloha",
    "section I",
    "slotted Aloha has a very low throughput",
    "of packets of two cells it carries less than half of what the same link carries on demand, at \
     every load from 0.4 of the slots up, beyond chance",
);
pub(super) const PURE_DEMAND: Expected = claim(
    "pure bandwidth on demand",
    "section I",
    "when every packet waits for permission, delays are large",
    "at a tenth of the load the mean delay is more than twice that with free slots, beyond chance",
);
const fn goal(name: &'static str, text: &'static str, when: &'static str) -> Expected {
    claim(name, "goals of the project", text, when)
}

pub(super) const GRANT_LOOP: Expected = goal(
    "grant loop",
    "0.54 to 1.29 s, 0.915 s on average: three waits of up to 250 ms and two crossings",
    "no loop is outside, the extremes come within 50 ms of both ends, and the mean is within 20 ms",
);
pub(super) const SEPARATED: Expected = goal(
    "acknowledgements apart from data",
    "with the uplink full of uploads, bulk downloads have 1.3 times the published design's goodput",
    "they have, beyond chance",
);
pub(super) const SEPARATED_PACED: Expected = goal(
    "the same against sessions that follow their grants",
    "1.3 times the goodput even where sessions send no faster than they are granted slots",
    "they have, beyond chance",
);
pub(super) const MODEL: Expected = goal(
    "analytic model",
    "mean value analysis says the mean response of scenarios 2 and 3",
    "within a tenth of the simulated one after 20 s and ten thoughts, at every load from 1 s \
     between requests up",
);
