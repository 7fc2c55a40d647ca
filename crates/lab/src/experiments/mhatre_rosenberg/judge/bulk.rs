//! The paper's future work: acknowledgements that need no capacity request.

use super::{Seen, shown};
use crate::experiments::Section;
use crate::experiments::mhatre_rosenberg::{BULK, PAGES};
use crate::experiments::publication::page;
use sim::multi_access::Design;

page!(PAGE = "mhatre-rosenberg/bulk");

pub(super) fn section(seen: &Seen<'_>) -> Section {
    let of =
        |study: &str, design: Design, name: &str| seen.results.summary(study, design.name(), name);
    let row = |design: Design| {
        let used = of(BULK, design, "used").mean / of(BULK, design, "granted").mean;
        vec![
            design.name().to_owned(),
            shown(of(BULK, design, "received_kbps"), 0),
            shown(of(BULK, design, "sent_kbps"), 1),
            format!("{used:.3}"),
            shown(of(PAGES, design, "objects"), 0),
            shown(of(PAGES, design, "settled_s"), 3),
        ]
    };
    let table = PAGE.table("bulk", Design::ALL.map(row));
    let gain = |other: Design| {
        let first = Design::Separate.name();
        seen.gain(BULK, first, other.name(), "received_kbps")
    };
    let cell = |id: &str, other: Design| {
        let gain = gain(other);
        PAGE.claim(id).holds(gain.clearly_above(0.3), format!("{:.1} times", gain.mean + 1.0), None)
    };
    Section {
        tables: vec![table],
        cells: vec![cell("separated", Design::Published), cell("separated-paced", Design::Paced)],
        ..PAGE.section()
    }
}
