//! The senders of RFC 6675 and RFC 6582 beside ns-2's.

use super::super::simulators::{ACKNOWLEDGED, LOSSES, ROUND_TRIPS, SIMULATORS, Sender, key};
use crate::experiments::publication::page;
use crate::experiments::{Cell, Results, Section};

page!(PAGE = "henderson-katz-1999/simulators");

pub(super) fn section(results: &Results) -> Section {
    let mut cells: Vec<Cell> = Vec::new();
    for sender in Sender::ALL {
        let claim = PAGE.claim(sender.name());
        // Indexed as `ROUND_TRIPS`, `LOSSES` and `ACKNOWLEDGED`.
        let table: [[[f64; 2]; 2]; 2] = claim.values();
        for (round_trip, rows) in ROUND_TRIPS.into_iter().zip(table) {
            for (loss, row) in LOSSES.into_iter().zip(rows) {
                for (acknowledged, stored) in ACKNOWLEDGED.into_iter().zip(row) {
                    let key = key(sender, round_trip, loss, acknowledged);
                    let ours = results.summary(SIMULATORS, &key, "kbps");
                    let name = format!(
                        "{}, {round_trip} ms, {} % lost, an acknowledgement for {acknowledged}",
                        sender.name(),
                        loss * 100.0
                    );
                    cells.push(claim.cell(name, stored, ours));
                }
            }
        }
    }
    Section { cells, ..PAGE.section() }
}
