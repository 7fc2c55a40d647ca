//! What the paper left to the future: acknowledgements that do not wait for demand.

use super::expected::{SEPARATED, SEPARATED_PACED};
use super::{Seen, shown};
use crate::experiments::mhatre_rosenberg::{BULK, PAGES};
use crate::experiments::{Section, Table};
use sim::multi_access::Design;

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
    let head = [
        "design",
        "downloads, kbit/s",
        "uploads, kbit/s",
        "slots used",
        "objects of the paper's load",
        "their mean response from 20 s on, s",
    ];
    let table = Table {
        id: "bulk".into(),
        title: "Twenty downloads and twenty uploads at once; and the paper's load".into(),
        head: head.map(str::to_owned).into(),
        rows: Design::ALL.map(row).into(),
    };
    let gain = |other: Design| {
        let first = Design::Separate.name();
        seen.gain(BULK, first, other.name(), "received_kbps")
    };
    let cell = |expected: &crate::experiments::Expected, other: Design, why: &str| {
        let gain = gain(other);
        let ours = format!("{:.1} times", gain.mean + 1.0);
        expected.claim(gain.clearly_above(0.3), ours, None, why)
    };
    Section {
        title: "Bulk transfers down beside uploads".into(),
        text: vec![
            "As published, a STAT stands in its terminal's queue behind whatever an upload put \
             there, up to the 64 kB of STP's window, which a twentieth of the link carries away in \
             two minutes; the download stands still meanwhile. Sessions that follow the terminal's \
             grants keep that queue short. A queue of their own for STATs, and a slot in each frame \
             that need not be asked for, take the wait away altogether. POLLs stay with the data: \
             one that overtook data would have it reported missing."
                .into(),
        ],
        tables: vec![table],
        cells: vec![
            cell(&SEPARATED, Design::Published, "STATs behind up to 64 kB of upload, or ahead of it"),
            cell(&SEPARATED_PACED, Design::Paced, "STATs behind two frames of upload, or ahead"),
        ],
        ..Section::default()
    }
}
