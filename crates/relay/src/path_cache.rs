//! A hub's cache of path metrics by terminal, with which the next session of each starts.

use crate::PathMetrics;
use std::collections::BTreeMap;
use units::Instant;

/// Maximum number of entries. If a terminal uses many names, the oldest entries are evicted, and
/// the terminals concerned start their next session without cached metrics.
const MAX_ENTRIES: usize = 1024;

/// Path metrics of one terminal.
#[derive(Clone, Copy, Debug)]
struct Entry {
    metrics: PathMetrics,
    /// When they were measured; `None`: before this process started.
    at: Option<Instant>,
}

/// Path metrics by the terminal's name.
#[derive(Debug, Default)]
pub(crate) struct PathCache {
    entries: BTreeMap<String, Entry>,
}

impl PathCache {
    pub(crate) fn get(&self, name: &str) -> Option<PathMetrics> {
        self.entries.get(name).map(|entry| entry.metrics)
    }

    /// Stores metrics that were measured at `at`, or before this process started.
    pub(crate) fn put(&mut self, name: String, metrics: PathMetrics, at: Option<Instant>) {
        self.entries.insert(name, Entry { metrics, at });
        if self.entries.len() > MAX_ENTRIES {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.at);
            if let Some(name) = oldest.map(|(name, _)| name.clone()) {
                self.entries.remove(&name);
            }
        }
    }

    /// Returns entries that were measured since this process started, with the time.
    pub(crate) fn measured(&self) -> impl Iterator<Item = (&str, PathMetrics, Instant)> {
        self.entries
            .iter()
            .filter_map(|(name, entry)| Some((name.as_str(), entry.metrics, entry.at?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{BitRate, Span};

    fn metrics(mbps: u64) -> PathMetrics {
        PathMetrics { rate: BitRate::from_mbps(mbps), min_rtt: Span::from_millis(600) }
    }

    #[test]
    fn the_oldest_entry_is_evicted_and_measured_ones_are_listed() {
        let mut cache = PathCache::default();
        cache.put("old".into(), metrics(1), None);
        for number in 0..MAX_ENTRIES as u64 {
            let at = Instant::from_nanos(number);
            cache.put(format!("boat {number}"), metrics(2), Some(at));
        }
        assert_eq!(cache.get("old"), None);
        assert_eq!(cache.get("boat 0"), Some(metrics(2)));
        cache.put("old".into(), metrics(3), None);
        assert_eq!(cache.get("old"), None, "entries from before the start are evicted first");
        assert_eq!(cache.measured().count(), MAX_ENTRIES);
        cache.put("boat 7".into(), metrics(9), Some(Instant::from_nanos(7)));
        let expected = ("boat 7", metrics(9), Instant::from_nanos(7));
        assert!(cache.measured().any(|entry| entry == expected));
    }
}
