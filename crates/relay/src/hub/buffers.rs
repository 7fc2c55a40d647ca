//! How the memory for buffers is divided among terminals, and among the paths of each.

use super::Hub;
use crate::{PeerId, Relay, RelayConfig};
use association::Security;
use std::collections::BTreeMap;

/// Young streams of all terminals may be promised this part of what a hub has in all.
const SHARED_PART: u64 = 4;
/// Credit for young streams that a terminal has in any case.
const SHARED_LEAST: u64 = 64 << 10;

/// What a terminal has of memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffers {
    bytes: u64,
    /// Paths that have it together.
    paths: u64,
}

/// The paths of a terminal that are here, and what they may have together.
struct Group<'h> {
    relays: Vec<&'h mut Relay>,
    bound: [u64; 2],
}

impl Hub {
    /// Bounds the buffers for the terminal whose paths are called `names`, in each direction, from
    /// its next association on: `bytes`, at least 1 MiB for each path, which all of them have
    /// together. No more than a quarter of it is credit for young streams, which the terminal is
    /// told. See [`share_memory`](Self::share_memory).
    pub fn set_memory(&mut self, names: &[&str], bytes: u64) {
        let buffers = Buffers { bytes, paths: names.len().max(1) as u64 };
        self.buffers.push(buffers);
        for &name in names {
            self.buffered.insert(name.to_owned(), self.buffers.len() - 1);
            let limits = bounded(&self.config, buffers).limits();
            self.association.set_limits(name, limits);
        }
    }

    /// Divides the memory anew: that of all terminals among them, where it has a bound
    /// ([`RelayConfig::total_memory`]), and that of a terminal that is here by several paths among
    /// these. To be called every few seconds.
    ///
    /// No terminal gets more than its own bound, nor more than what is left to all others together
    /// (a dynamic threshold), so that terminals that give nothing back leave some to those that
    /// come. What is promised to a terminal, or held for it, stays. Not counted is what each stream
    /// has in any case: its minimum of what is received, and its first 16 KiB of what is sent.
    pub fn share_memory(&mut self) {
        if self.config.total_memory.is_none() && self.buffers.iter().all(|group| group.paths < 2) {
            return;
        }
        let total = self.config.total_memory;
        let usual = [self.config.receive_pool, self.config.send_pool];
        let mut groups: BTreeMap<Result<usize, PeerId>, Group<'_>> = BTreeMap::new();
        for (&id, peer) in &mut self.peers {
            let name = self.association.name(id);
            let own = name.and_then(|name| self.buffered.get(name)).copied();
            let bound = own.map_or(usual, |own| [self.buffers[own].bytes; 2]);
            let group = groups.entry(own.ok_or(id));
            group.or_insert(Group { relays: Vec::new(), bound }).relays.push(&mut peer.relay);
            // Writers may have room.
            self.due.touch(id);
        }
        let bounds = bounds(total, &groups);
        for (group, bound) in groups.into_values().zip(bounds) {
            let mut relays = group.relays;
            crate::share::divide(&mut relays, bound);
        }
    }

    /// The configuration for a relay with the terminal.
    pub(super) fn config_for(&self, id: PeerId) -> RelayConfig {
        match self.association.name(id).and_then(|name| self.buffered.get(name)) {
            Some(&group) => bounded(&self.config, self.buffers[group]),
            None => self.config.clone(),
        }
    }
}

/// What each group may have now, in each direction.
fn bounds<K>(total: Option<u64>, groups: &BTreeMap<K, Group<'_>>) -> Vec<[u64; 2]> {
    let Some(total) = total else { return groups.values().map(|group| group.bound).collect() };
    let taken: Vec<[u64; 2]> = groups
        .values()
        .map(|group| {
            let each = group.relays.iter().map(|relay| relay.taken());
            each.fold([0; 2], |sum, taken| [sum[0] + taken[0], sum[1] + taken[1]])
        })
        .collect();
    let free = [0, 1]
        .map(|way: usize| total.saturating_sub(taken.iter().map(|taken| taken[way]).sum::<u64>()));
    let count = groups.len().max(1) as u64;
    let bound = |(group, taken): (&Group<'_>, &[u64; 2])| {
        [0, 1].map(|way: usize| {
            let more = crate::fair::headroom(taken[way], free[way], 1).min(free[way] / count);
            (taken[way] + more).min(group.bound[way])
        })
    };
    groups.values().zip(&taken).map(bound).collect()
}

/// `config` with a path's part of `buffers` in each direction.
fn bounded(config: &RelayConfig, buffers: Buffers) -> RelayConfig {
    let own = config.clone().with_memory(buffers.bytes / buffers.paths);
    let shared_credit = own.shared_credit.min(config.shared_credit);
    RelayConfig { shared_credit, ..own }
}

/// `config` with no more credit for young streams than the total allows all terminals that there
/// can be.
pub(super) fn within_total(config: &RelayConfig) -> RelayConfig {
    let Some(total) = config.total_memory else { return config.clone() };
    let places = match &config.security {
        Security::Noise(keys) => keys.known().len().min(config.max_terminals),
        _ => config.max_terminals,
    };
    let each = (total / SHARED_PART / places.max(1) as u64).max(SHARED_LEAST) / 1024 * 1024;
    RelayConfig { shared_credit: config.shared_credit.min(each), ..config.clone() }
}
