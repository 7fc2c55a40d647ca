//! An engine as an observer sees it, between two rounds.

use crate::observe::{Counted, LoopStatus, Page, TerminalStatus};
use relay::{Tap, Tapped};
use std::net::SocketAddr;
use units::Instant;

/// What an engine shows of itself. It does not require `Debug`: trait objects would bring that of the whole engine,
/// 0.2 MB of a program.
pub(crate) trait Observed {
    /// Returns everything that is counted.
    fn counted(&mut self, now: Instant) -> Counted;

    /// Returns the status of each path to a peer; a terminal calls its own `own`. `unix` turns
    /// times into seconds since 1970.
    fn terminals(
        &mut self,
        now: Instant,
        own: &str,
        unix: &dyn Fn(Instant) -> f64,
    ) -> Vec<TerminalStatus>;

    /// Returns at most `most` connections with a number above `after`, of the terminal called
    /// `only` if one is named, in the order of their numbers. `at` is now, and the nanoseconds
    /// since 1970 at the clock's zero.
    fn page(&mut self, at: (Instant, u64), after: u64, most: usize, only: Option<&str>) -> Page;

    /// Returns the taps, where there are any.
    fn taps(&mut self) -> Option<&mut dyn Taps>;

    /// Returns the timeliness of the loops of several shards.
    fn rounds(&mut self) -> Option<LoopStatus> {
        None
    }

    /// Whether this gateway is a hub.
    fn is_hub(&self) -> bool;
}

/// Copies of the payloads of associations, for captures.
pub(crate) trait Taps {
    /// Starts or stops copying received and sent payloads.
    fn set_tap(&mut self, tap: Option<Tap>);

    /// Passes the copied payloads to `take`, with the terminal's name at a hub, and clears them.
    /// Returns how many payloads were dropped since the tap was set.
    fn drain_tap(&mut self, take: &mut dyn FnMut(Option<&str>, Tapped<'_>)) -> u64;
}

/// Returns at most `most` of `all` with a `number` above `after`, in the order of their numbers, and
/// whether there are more.
pub(crate) fn page_of<'a, T>(
    all: impl Iterator<Item = &'a T>,
    number: impl Fn(&T) -> u64,
    after: u64,
    most: usize,
) -> (Vec<&'a T>, bool) {
    let mut page: Vec<&T> = all.filter(|one| number(one) > after).collect();
    let more = page.len() > most;
    if more {
        page.select_nth_unstable_by_key(most, |one| number(one));
        page.truncate(most);
    }
    page.sort_unstable_by_key(|one| number(one));
    (page, more)
}

/// What an observer may read and request.
pub(crate) struct EngineView<'a> {
    pub(crate) now: Instant,
    /// Nanoseconds since 1970 at the clock's zero.
    epoch_unix_ns: u64,
    pub(crate) link: Option<SocketAddr>,
    /// Addresses and interfaces that it waits for.
    pub(crate) waiting: Vec<String>,
    observed: &'a mut dyn Observed,
}

impl<'a> EngineView<'a> {
    /// A view of `observed`, whose first path has the address `link`.
    pub(crate) fn new(
        now: Instant,
        epoch_unix_ns: u64,
        (link, waiting): (Option<SocketAddr>, Vec<String>),
        observed: &'a mut dyn Observed,
    ) -> Self {
        Self { now, epoch_unix_ns, link, waiting, observed }
    }

    /// Returns everything that is counted.
    pub(crate) fn counted(&mut self) -> Counted {
        self.observed.counted(self.now)
    }

    /// Returns the status of each path to a peer; a terminal calls its own `own`.
    pub(crate) fn terminals(&mut self, own: &str) -> Vec<TerminalStatus> {
        let epoch = self.epoch_unix_ns;
        let unix = |at: Instant| (epoch + at.as_nanos()) as f64 / 1e9;
        self.observed.terminals(self.now, own, &unix)
    }

    /// As [`Observed::page`].
    pub(crate) fn connections(&mut self, after: u64, most: usize, only: Option<&str>) -> Page {
        self.observed.page((self.now, self.epoch_unix_ns), after, most, only)
    }

    /// Returns the taps, where there are any.
    pub(crate) fn taps(&mut self) -> Option<&mut dyn Taps> {
        self.observed.taps()
    }

    /// As [`Observed::rounds`].
    pub(crate) fn rounds(&mut self) -> Option<LoopStatus> {
        self.observed.rounds()
    }

    /// Whether this gateway is a hub.
    pub(crate) fn is_hub(&self) -> bool {
        self.observed.is_hub()
    }

    /// Nanoseconds since 1970 at the clock's zero.
    pub(crate) fn epoch_unix_ns(&self) -> u64 {
        self.epoch_unix_ns
    }
}
