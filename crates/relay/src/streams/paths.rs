//! The paths that carry the packets of the streams, and which of them carry new packets.
//!
//! One path carries everything. Of several, the *fastest* that answers carries any packet. A slower
//! one carries bulk data only, and only while so much is queued that the faster paths cannot send
//! it before a packet of the slower one arrives: so bulk data uses all paths, each at the rate of
//! its own session, and short exchanges and the end of a transfer use the fastest (RLY-12.3).

use super::Streams;
use super::grants::Grants;
use super::sending::Control;
use crate::scheduler::{Class, Entry};
use units::{BitRate, Instant, Span};

/// A path, as its session has measured it.
#[derive(Debug, Default)]
struct PathState {
    /// It has a session whose POLLs are answered.
    answers: bool,
    round_trip: Option<Span>,
    rate: Option<BitRate>,
    grants: Grants,
}

/// The paths by number. Those without a session do not answer.
#[derive(Debug)]
pub(super) struct Paths {
    all: Vec<PathState>,
    /// The path of the call that is being served.
    current: usize,
}

impl Default for Paths {
    fn default() -> Self {
        Self { all: vec![PathState::default()], current: 0 }
    }
}

impl Paths {
    pub(super) fn current(&self) -> usize {
        self.current
    }

    pub(super) fn are_several(&self) -> bool {
        self.all.len() > 1
    }

    /// The grants of the current path.
    pub(super) fn grants(&self) -> &Grants {
        &self.all[self.current].grants
    }

    pub(super) fn grants_mut(&mut self) -> &mut Grants {
        &mut self.all[self.current].grants
    }

    pub(super) fn grants_of(&self, path: usize) -> Option<&Grants> {
        self.all.get(path).map(|state| &state.grants)
    }

    /// Records what the session of the current path has measured; returns the longest round trip
    /// of the paths in use and the sum of their rates, as far as they are known.
    pub(super) fn measured(
        &mut self,
        round_trip: Option<Span>,
        rate: Option<BitRate>,
    ) -> (Option<Span>, Option<BitRate>) {
        let current = &mut self.all[self.current];
        (current.round_trip, current.rate) = (round_trip, rate);
        if self.all.len() == 1 {
            return (round_trip, rate);
        }
        let any = self.all.iter().any(|state| state.answers);
        let used = || self.all.iter().filter(|state| state.answers || !any);
        let rates = used().filter_map(|state| state.rate);
        let sum = rates.fold(0_u64, |sum, rate| sum.saturating_add(rate.as_bps()));
        (used().filter_map(|state| state.round_trip).max(), BitRate::new(sum))
    }

    /// Half the difference between the longest and the shortest round trip of the paths that
    /// answer: how long a packet of the fastest may wait for one that was sent before it.
    pub(super) fn spread(&self) -> Span {
        let trips = || self.all.iter().filter(|state| state.answers).filter_map(|s| s.round_trip);
        trips().max().zip(trips().min()).map_or(Span::ZERO, |(most, least)| (most - least) / 2)
    }

    /// Whether the current path does not answer while another does.
    pub(super) fn is_avoided(&self) -> bool {
        !self.all[self.current].answers && self.all.iter().any(|state| state.answers)
    }

    /// Bytes that the paths which are faster than the current one send before a packet that it
    /// sends now arrives: none for the fastest. `None` if that is not known.
    fn sent_before(&self) -> Option<u64> {
        let delay = self.all[self.current].round_trip;
        let mut bytes = 0_u64;
        for (number, other) in self.all.iter().enumerate() {
            let is_faster = match (other.round_trip, delay) {
                (Some(other), Some(delay)) => (other, number) < (delay, self.current),
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => number < self.current,
            };
            if number != self.current && other.answers && is_faster {
                let ahead = (delay? - other.round_trip?) / 2;
                bytes = bytes.saturating_add(other.rate?.bytes_in(ahead));
            }
        }
        Some(bytes)
    }

    /// Whether the current path is the fastest that answers, or none answers.
    fn is_fastest(&self) -> bool {
        self.all.len() == 1 || !self.is_avoided() && self.sent_before() == Some(0)
    }
}

/// Which frames the current path may carry in new packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carries {
    All,
    /// Data of streams without priority.
    Bulk,
    /// Frames that concern the path itself.
    Own,
}

impl Carries {
    /// Whether data of this class may follow.
    pub(super) fn takes(self, class: Class, entry: Entry) -> bool {
        match self {
            Self::All => true,
            // A flow of IP packets is not divided, because its receiver may take reordering for
            // loss.
            Self::Bulk => class >= Class::Bulk && matches!(entry, Entry::Stream(_)),
            Self::Own => false,
        }
    }
}

impl Control {
    /// Whether a packet on `path` may carry it.
    pub(super) fn goes_on(self, path: usize, carries: Carries) -> bool {
        match self {
            Self::Rate { path: own } => own == path,
            Self::Accept { .. }
            | Self::Reset { .. }
            | Self::Credit { .. }
            | Self::Received { .. }
            | Self::Shared { .. }
            | Self::Families
            | Self::Report
            | Self::Contexts
            | Self::Invalid { .. }
            | Self::GoAway => carries == Carries::All,
        }
    }
}

impl Streams {
    /// The next calls are for the session of the path with this number, which `answers` if it is
    /// open and its POLLs are answered.
    pub(crate) fn set_path(&mut self, path: usize, answers: bool) {
        if path >= self.paths.all.len() {
            self.paths.all.resize_with(path + 1, PathState::default);
        }
        self.paths.current = path;
        self.paths.all[path].answers = answers;
    }

    pub(crate) fn has_several_paths(&self) -> bool {
        self.paths.are_several()
    }

    /// No more padding is sent unless it is `suitable` for a further path, too.
    pub(crate) fn limit_padding(&mut self, suitable: bool) {
        self.sends_padding &= suitable;
    }

    /// What a new packet on the current path may carry now.
    pub(super) fn carries(&self) -> Carries {
        if self.paths.is_fastest() {
            return Carries::All;
        }
        let waits = || {
            let before = self.paths.sent_before()?;
            let (class, entry) = self.scheduler.front()?;
            let is_bulk = Carries::Bulk.takes(class, entry);
            let is_next = is_bulk && !self.announcement.due && !self.report.due;
            Some(is_next && self.send_pool.unsent.total() >= before)
        };
        let is_first = |control: &Control| matches!(control, Control::Rate { .. });
        let takes = !self.paths.is_avoided() && self.controls.iter().all(is_first);
        if takes && waits() == Some(true) { Carries::Bulk } else { Carries::Own }
    }

    /// The path does not answer: what its packets carry goes in new packets on other paths. The
    /// packets keep nothing, so their retransmissions are empty.
    pub(crate) fn leave_path(&mut self, path: usize) {
        let its = self.packets.iter().filter(|(_, packet)| packet.path() == path);
        let handles: Vec<usize> = its.map(|(handle, _)| handle).collect();
        for handle in handles {
            self.move_packet(handle);
        }
    }

    /// The path has no session any more: see [`leave_path`](Self::leave_path). Its packets will not
    /// be acknowledged.
    pub(crate) fn remove_path(&mut self, path: usize) {
        self.leave_path(path);
        self.drop_packets(path);
        self.controls.retain(|control| *control != Control::Rate { path });
        if let Some(state) = self.paths.all.get_mut(path) {
            *state = PathState::default();
        }
    }

    /// The time of the next calls, and what the session of the current path knows of it.
    pub(crate) fn set_time(
        &mut self,
        now: Instant,
        round_trip: Option<Span>,
        rate: Option<BitRate>,
    ) {
        self.now = now;
        let before = (self.round_trip, self.rate);
        let (round_trip, rate) = self.paths.measured(round_trip, rate);
        self.round_trip = round_trip.unwrap_or(self.round_trip);
        self.rate = rate.or(self.rate);
        if before != (self.round_trip, self.rate) {
            self.size_pools();
            if let Some(rate) = self.rate {
                self.scheduler.set_rate(rate);
            }
        }
    }
}

#[cfg(test)]
mod tests;
