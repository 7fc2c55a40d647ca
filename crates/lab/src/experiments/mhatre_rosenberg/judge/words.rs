//! The paragraphs at the top.

use super::{Seen, shown};
use crate::experiments::mhatre_rosenberg::TABLE;
use sim::multi_access::Scenario;

pub(super) fn summary(seen: &Seen<'_>) -> Vec<String> {
    let [one, two, three] =
        [Scenario::Static, Scenario::Equal, Scenario::Weighted].map(|scenario| scenario.name());
    let value = |key: &str, name: &str, digits| shown(seen.table(key, name), digits);
    let gain = |first: &str, second: &str| {
        shown(seen.gain(TABLE, first, second, "objects").scaled(100.0), 1)
    };
    vec![
        format!(
            "The paper's result stands: splitting TCP and granting slots on demand halves the \
             response, makes half as many objects again, and costs half of the return channel. \
             Scenario 1 has {} objects ({} s), scenario 2 {} ({} s).",
            value(one, "objects", 0),
            value(one, "mean_s", 2),
            value(two, "objects", 0),
            value(two, "mean_s", 2),
        ),
        format!(
            "Weights are worth less than published: {} % more objects where the paper has 12 %. \
             Scenario 3 has {} objects ({} s). The published 1,824 objects and 0.83 s exclude each \
             other in a closed loop of 60 clients.",
            gain(three, two),
            value(three, "objects", 0),
            value(three, "mean_s", 2),
        ),
        "What the paper left to the future has an answer: acknowledgements with a queue and a slot \
         of their own free downloads from uploads."
            .to_owned(),
        "Everything open was settled before these runs, two things of it after a look at four of \
         them: Nagle's rule, and POLLs on the end of bursts. Both are marked as fitted."
            .to_owned(),
    ]
}
