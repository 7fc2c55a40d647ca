//! Reports the number of connections of each terminal to a MAC scheduler ([`rt::counts`]): changes
//! within 100 ms, everything once a second.

use crate::engine::limits::slots::SlotTable;
use crate::report::Counters;
use rt::counts::{MOST_TERMINALS, Message, Sender, TerminalCount};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use units::{Instant, Span};

/// Interval between messages.
const STEP: Span = Span::from_millis(100);
/// Period in which everything is repeated.
const ROUND: Span = Span::from_secs(1);
/// Time after its last connection for which a terminal is reported.
const IDLE: Span = Span::from_secs(10);
/// Maximum number of reported terminals; the scheduler applies its default weight to others.
const MOST: usize = 20_000;
/// Minimum interval between log messages about a missing listener.
const COMPLAIN: Span = Span::from_secs(60);

/// Sender of reports to the scheduler.
#[derive(Debug)]
pub(crate) struct SchedulerNotifier {
    sender: Sender,
    hub: String,
    sequence: u64,
    known: ReportedCounts,
    complain_at: Instant,
    listener_seen: bool,
}

/// Counts that were reported, and when to report more.
#[derive(Debug, Default)]
struct ReportedCounts {
    terminals: BTreeMap<Arc<str>, ReportedTerminal>,
    /// Terminal that was repeated last.
    cursor: Option<Arc<str>>,
    repeat_at: Instant,
    change_at: Instant,
}

#[derive(Clone, Copy, Debug)]
struct ReportedTerminal {
    connections: u32,
    /// Time of the end of its last connection.
    idle: Option<Instant>,
}

impl SchedulerNotifier {
    /// A notifier for the socket at `path` and the hub called `hub`; `None`, which is logged, if no
    /// socket could be opened.
    pub(crate) fn new(path: &Path, hub: &str) -> Option<Self> {
        let sender = Sender::new(path)
            .inspect_err(|error| tracing::warn!(%error, "mac.socket: no socket could be opened"))
            .ok()?;
        Some(Self {
            sender,
            hub: hub.to_owned(),
            sequence: 0,
            known: ReportedCounts::default(),
            complain_at: Instant::ZERO,
            listener_seen: false,
        })
    }

    /// Returns the path of the scheduler's socket.
    pub(crate) fn path(&self) -> &Path {
        self.sender.path()
    }

    /// Returns when to call [`SchedulerNotifier::send_due`].
    pub(crate) fn poll_timeout(&self, slots: &SlotTable<Arc<str>>) -> Instant {
        self.known.due(slots.has_changed())
    }

    /// Sends the reports that are due.
    pub(crate) fn send_due(
        &mut self,
        now: Instant,
        slots: &mut SlotTable<Arc<str>>,
        counters: &mut Counters,
    ) {
        if now < self.poll_timeout(slots) {
            return;
        }
        // A scheduler that was configured later needs the present counts.
        let changed = slots.take_changed() || self.known.terminals.is_empty();
        let count = |held| u32::try_from(held).unwrap_or(u32::MAX);
        let counts = || slots.groups().map(|(name, held)| (name, count(held)));
        let say = self.known.say(now, changed, counts);
        for terminals in say.chunks(MOST_TERMINALS) {
            let message = Message::new(&self.hub, self.sequence, terminals.to_vec());
            self.sequence += 1;
            match self.sender.send(&message) {
                Ok(()) => {
                    counters.mac_messages += 1;
                    if !std::mem::replace(&mut self.listener_seen, true) {
                        tracing::info!(socket = %self.path().display(), "connection counts are received by a scheduler");
                    }
                }
                Err(error) => {
                    // The report is repeated later.
                    counters.mac_send_errors += 1;
                    self.listener_seen = false;
                    if now >= self.complain_at {
                        let socket = self.path().display();
                        tracing::warn!(%socket, %error, "connection counts are received by no scheduler");
                        self.complain_at = now + COMPLAIN;
                    }
                }
            }
        }
    }
}

impl ReportedCounts {
    fn due(&self, changed: bool) -> Instant {
        if changed { self.repeat_at.min(self.change_at) } else { self.repeat_at }
    }

    /// Returns what is to be reported at `now`; `counts` has the terminals with connections, by
    /// name.
    fn say<'a, I: Iterator<Item = (&'a Arc<str>, u32)>>(
        &mut self,
        now: Instant,
        changed: bool,
        counts: impl FnOnce() -> I,
    ) -> Vec<TerminalCount> {
        let mut say = BTreeMap::new();
        if changed {
            self.take_changes(now, counts(), &mut say);
            if !say.is_empty() {
                self.change_at = now + STEP;
            }
        }
        if now >= self.repeat_at {
            self.terminals
                .retain(|_, reported| reported.idle.is_none_or(|since| now.since(since) < IDLE));
            let whole = self.terminals.len();
            let pieces =
                if whole > MOST_TERMINALS { ROUND.as_nanos() / STEP.as_nanos() } else { 1 };
            self.repeat(whole.div_ceil(pieces as usize), &mut say);
            self.repeat_at = now + ROUND / pieces;
        }
        let count = |(name, connections): (Arc<str>, u32)| TerminalCount {
            name: name.to_string(),
            connections: connections.into(),
        };
        say.into_iter().map(count).collect()
    }

    fn take_changes<'a>(
        &mut self,
        now: Instant,
        counts: impl Iterator<Item = (&'a Arc<str>, u32)>,
        say: &mut BTreeMap<Arc<str>, u32>,
    ) {
        let counts: BTreeMap<&Arc<str>, u32> = counts.collect();
        for (name, reported) in &mut self.terminals {
            let connections = counts.get(name).copied().unwrap_or(0);
            if reported.connections != connections {
                say.insert(Arc::clone(name), connections);
                *reported =
                    ReportedTerminal { connections, idle: (connections == 0).then_some(now) };
            }
        }
        for (name, connections) in counts {
            if connections > 0 && self.terminals.len() < MOST && !self.terminals.contains_key(name)
            {
                self.terminals
                    .insert(Arc::clone(name), ReportedTerminal { connections, idle: None });
                say.insert(Arc::clone(name), connections);
            }
        }
    }

    /// Repeats the next `count` terminals, cyclically.
    fn repeat(&mut self, count: usize, say: &mut BTreeMap<Arc<str>, u32>) {
        let last = self.cursor.take();
        let behind = last.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let behind = self.terminals.range((behind, Bound::Unbounded));
        let before = last.map(|last| self.terminals.range(..=last));
        for (name, reported) in behind.chain(before.into_iter().flatten()).take(count) {
            say.insert(Arc::clone(name), reported.connections);
            self.cursor = Some(Arc::clone(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::limits::slots::Owner;
    use rt::counts::Receiver;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(1_000 + ms)
    }

    /// A connection of the terminal called `name`, with this number.
    fn connect(slots: &mut SlotTable<Arc<str>>, name: &str, index: usize) {
        let owner = Owner { group: name.into(), client: [10, 0, 0, 1].into() };
        slots.occupy(at(0), owner, index);
    }

    fn ends(name: &str) -> (SchedulerNotifier, Receiver) {
        let file = format!("bentpipe-{}-{name}.sock", std::process::id());
        let path = std::env::temp_dir().join(file);
        (SchedulerNotifier::new(&path, "teleport").unwrap(), Receiver::bind(&path).unwrap())
    }

    /// Returns all reported counts as names and numbers.
    fn said(receiver: &mut Receiver) -> Vec<(String, u64)> {
        let mut all = Vec::new();
        while let Some(message) = receiver.receive() {
            let terminals = message.unwrap().terminals;
            all.extend(terminals.into_iter().map(|count| (count.name, count.connections)));
        }
        all
    }

    #[test]
    fn changes_are_reported_soon_and_all_counts_every_second() {
        let (mut mac, mut receiver) = ends("soon");
        let (mut slots, mut counters) = (SlotTable::default(), Counters::default());
        let mut tell = |ms, slots: &mut SlotTable<Arc<str>>| {
            mac.send_due(at(ms), slots, &mut counters);
            (said(&mut receiver), mac.poll_timeout(slots))
        };
        let own = |name: &str, count| (name.to_owned(), count);
        assert_eq!(tell(0, &mut slots), (vec![], at(1_000)), "nothing to say");
        for (index, name) in ["boat", "hut", "boat"].into_iter().enumerate() {
            connect(&mut slots, name, index);
        }
        assert_eq!(tell(5, &mut slots), (vec![own("boat", 2), own("hut", 1)], at(1_000)));
        slots.release(1);
        assert_eq!(tell(50, &mut slots), (vec![], at(105)), "not more often than that");
        assert_eq!(tell(105, &mut slots).0, [own("hut", 0)]);
        assert_eq!(tell(999, &mut slots).0, []);
        assert_eq!(tell(1_000, &mut slots).0, [own("boat", 2), own("hut", 0)]);
        // Who has none for a while is not spoken of for ever.
        assert_eq!(tell(10_500, &mut slots), (vec![own("boat", 2)], at(11_500)));
        assert_eq!((counters.mac_messages, counters.mac_send_errors), (4, 0));
    }

    #[test]
    fn many_terminals_are_reported_in_pieces() {
        let (mut mac, mut receiver) = ends("many");
        let (mut slots, mut counters) = (SlotTable::default(), Counters::default());
        let names: Vec<String> = (0..450).map(|number| format!("site-{number:03}")).collect();
        for (index, name) in names.iter().enumerate() {
            connect(&mut slots, name, index);
        }
        mac.send_due(at(0), &mut slots, &mut counters);
        assert_eq!(said(&mut receiver).len(), 450);
        let mut again = Vec::new();
        for step in 1..=10 {
            assert_eq!(mac.poll_timeout(&slots), at(step * 100));
            mac.send_due(at(step * 100), &mut slots, &mut counters);
            let piece = said(&mut receiver);
            assert_eq!(piece.len(), 45);
            again.extend(piece.into_iter().map(|(name, _)| name));
        }
        again.sort();
        assert_eq!(again, names, "each once in a second");
    }

    #[test]
    fn a_terminal_sends_without_data_from_the_hub() {
        let (mut mac, receiver) = ends("deaf");
        drop(receiver);
        let (mut slots, mut counters) = (SlotTable::default(), Counters::default());
        connect(&mut slots, "boat", 0);
        mac.send_due(at(0), &mut slots, &mut counters);
        assert_eq!((counters.mac_messages, counters.mac_send_errors), (0, 1));
        let mut again = Receiver::bind(mac.path()).unwrap();
        mac.send_due(at(1_000), &mut slots, &mut counters);
        assert_eq!(said(&mut again), [("boat".to_owned(), 1)], "a second later it is");
    }
}
