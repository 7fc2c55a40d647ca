//! Reports of a terminal to its hubs (RLY-11).

use super::{RelaySet, Side};
use crate::logging::recent;
use crate::report::Counters;
use relay::health::HealthState;
use relay::{ReportedCounters, ReportedPath, TerminalReport};
use units::{Instant, Span};

/// Minimum interval of reports.
const INTERVAL: Span = Span::from_secs(60);

/// When a terminal has reported.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    /// Start of this process, seconds since 1970; `None` before the first report.
    started_unix_s: Option<u64>,
    next: Instant,
}

impl Reports {
    /// Reports to the hubs of `relays` if a report is due; `unix_s` is the time in seconds since
    /// 1970.
    pub(crate) fn review(
        &mut self,
        now: Instant,
        unix_s: u64,
        relays: &mut RelaySet,
        (open, counters): (usize, &Counters),
    ) {
        if now < self.next {
            return;
        }
        self.next = now + INTERVAL;
        let started_unix_s = *self.started_unix_s.get_or_insert(unix_s);
        let dropped = relays.association().dropped.values().sum();
        let Side::Terminal(paths) = &mut relays.side else { return };
        let path = |number: usize| ReportedPath {
            state: state(paths.health_state(number)),
            failures: paths.failures(number),
            name: paths.all[number].name.clone(),
        };
        let report = TerminalReport {
            release: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_s,
            paths: (0..paths.all.len()).map(path).collect(),
            counters: ReportedCounters {
                open: open as u64,
                opened: counters.opened,
                refused: counters.refused.values().sum(),
                lost: counters.lost_with_peer,
                dropped,
            },
            messages: recent::messages(),
        };
        paths.present.iter_mut().for_each(|relay| relay.set_report(&report));
    }
}

fn state(health: HealthState) -> u8 {
    match health {
        HealthState::Up => 0,
        HealthState::Recovering => 1,
        HealthState::Degraded => 2,
        HealthState::Down => 3,
    }
}
