//! What a hub remembers of terminals, so that their next session begins at speed.

use crate::PathMetrics;
use std::collections::BTreeMap;
use units::Instant;

/// Terminals that are remembered. Whoever makes names up pushes out what was learnt longest ago,
/// and costs others no more than a start without memory.
const MOST: usize = 1024;

/// One terminal.
#[derive(Clone, Copy, Debug)]
struct Entry {
    learnt: PathMetrics,
    /// When it was learnt here; `None`: in an earlier life.
    at: Option<Instant>,
}

/// Terminals by name.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    entries: BTreeMap<String, Entry>,
}

impl Memory {
    pub(crate) fn get(&self, peer: &str) -> Option<PathMetrics> {
        self.entries.get(peer).map(|entry| entry.learnt)
    }

    /// Takes what was learnt at `at`, or in an earlier life.
    pub(crate) fn put(&mut self, peer: String, learnt: PathMetrics, at: Option<Instant>) {
        self.entries.insert(peer, Entry { learnt, at });
        if self.entries.len() > MOST {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.at);
            if let Some(name) = oldest.map(|(name, _)| name.clone()) {
                self.entries.remove(&name);
            }
        }
    }

    /// What was learnt in this life, and when.
    pub(crate) fn news(&self) -> impl Iterator<Item = (&str, PathMetrics, Instant)> {
        self.entries
            .iter()
            .filter_map(|(name, entry)| Some((name.as_str(), entry.learnt, entry.at?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{BitRate, Span};

    fn learnt(mbps: u64) -> PathMetrics {
        PathMetrics { rate: BitRate::from_mbps(mbps), min_rtt: Span::from_millis(600) }
    }

    #[test]
    fn what_is_old_makes_room_and_news_are_told() {
        let mut memory = Memory::default();
        memory.put("old".into(), learnt(1), None);
        for number in 0..MOST as u64 {
            let at = Instant::from_nanos(number);
            memory.put(format!("boat {number}"), learnt(2), Some(at));
        }
        assert_eq!(memory.get("old"), None);
        assert_eq!(memory.get("boat 0"), Some(learnt(2)));
        memory.put("old".into(), learnt(3), None);
        assert_eq!(memory.get("old"), None, "of two, what is from an earlier life goes first");
        assert_eq!(memory.news().count(), MOST);
        memory.put("boat 7".into(), learnt(9), Some(Instant::from_nanos(7)));
        assert!(memory.news().any(|news| news == ("boat 7", learnt(9), Instant::from_nanos(7))));
    }
}
