//! Division of the buffer memory among terminals, and among the paths of each.

use super::Hub;
use crate::{PeerId, Relay, RelayConfig};
use association::Security;
use std::collections::BTreeMap;

/// Divisor of a hub's total that gives the shared credit of all terminals.
const SHARED_PART: u64 = 4;
/// Minimum shared credit of a terminal.
const SHARED_LEAST: u64 = 64 << 10;

/// The memory of a terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffers {
    bytes: u64,
    /// Number of paths that share it.
    paths: u64,
}

/// The connected paths of a terminal, and the memory that they share.
struct Group<'h> {
    relays: Vec<&'h mut Relay>,
    bound: [u64; 2],
}

impl Hub {
    /// Limits the buffers of the terminal whose paths have `names`, in each direction, from its
    /// next association on: `bytes`, at least 1 MiB for each path, shared by all of them. At most a
    /// quarter of it is shared credit, which is announced to the terminal. See
    /// [`share_memory`](Self::share_memory).
    pub fn set_memory(&mut self, names: &[&str], bytes: u64) {
        let buffers = Buffers { bytes, paths: names.len().max(1) as u64 };
        self.buffers.push(buffers);
        for &name in names {
            self.buffered.insert(name.to_owned(), self.buffers.len() - 1);
            let limits = bounded(&self.config, buffers).limits();
            self.association.set_limits(name, limits);
        }
    }

    /// Divides the memory again: that of all terminals among them, if it is limited
    /// ([`RelayConfig::total_memory`]), and that of a terminal with several connected paths among
    /// these. The caller repeats this every few seconds.
    ///
    /// No terminal gets more than its own limit, nor more than what is left to all others together
    /// (a dynamic threshold), so that terminals that release nothing leave some to new ones. Bytes
    /// granted to a terminal, or stored for it, are not revoked. The minimum of each stream is not
    /// included: its receive minimum, and its first 16 KiB of send buffer.
    pub fn share_memory(&mut self) {
        if self.config.total_memory.is_none() && self.buffers.iter().all(|group| group.paths < 2) {
            return;
        }
        let total = self.config.total_memory;
        let usual = self.usual_bound();
        let mut groups: BTreeMap<Result<usize, PeerId>, Group<'_>> = BTreeMap::new();
        for (&id, peer) in &mut self.peers {
            let name = self.association.name(id).or(peer.name.as_deref());
            let own = name.and_then(|name| self.buffered.get(name)).copied();
            let bound = own.map_or(usual, |own| [self.buffers[own].bytes; 2]);
            let group = groups.entry(own.ok_or(id));
            if peer.relay.has_streams() {
                // Writers may have room now.
                self.due.touch(id);
            }
            group.or_insert(Group { relays: Vec::new(), bound }).relays.push(&mut peer.relay);
        }
        let (bounds, free) = bounds(total, &groups);
        self.free_memory = free;
        for (group, bound) in groups.into_values().zip(bounds) {
            let mut relays = group.relays;
            crate::share::divide(&mut relays, bound);
        }
    }

    /// Limits the buffers of a new association until memory is divided the next time. The memory of
    /// the others is not counted, so that the cost does not depend on their number.
    pub(super) fn begin_share(&mut self, id: PeerId) {
        if self.config.total_memory.is_none() {
            return;
        }
        let usual = self.usual_bound();
        let own = self.association.name(id).and_then(|name| self.buffered.get(name));
        let most = own.map_or(usual, |&own| [self.buffers[own].bytes; 2]);
        let count = self.peers.len().max(1) as u64;
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let bound = [0, 1].map(|way: usize| more(0, self.free_memory[way], count).min(most[way]));
        crate::share::divide(&mut [&mut peer.relay], bound);
        for (free, bound) in self.free_memory.iter_mut().zip(bound) {
            *free = free.saturating_sub(bound);
        }
    }

    fn usual_bound(&self) -> [u64; 2] {
        [self.config.receive_pool, self.config.send_pool]
    }

    /// Returns the configuration of a relay with the terminal.
    pub(super) fn config_for(&self, id: PeerId) -> RelayConfig {
        match self.association.name(id).and_then(|name| self.buffered.get(name)) {
            Some(&group) => bounded(&self.config, self.buffers[group]),
            None => self.config.clone(),
        }
    }
}

/// Returns the limit of each group in each direction, and the bytes that no group has taken.
fn bounds<K>(total: Option<u64>, groups: &BTreeMap<K, Group<'_>>) -> (Vec<[u64; 2]>, [u64; 2]) {
    let Some(total) = total else {
        return (groups.values().map(|group| group.bound).collect(), [0; 2]);
    };
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
            (taken[way] + more(taken[way], free[way], count)).min(group.bound[way])
        })
    };
    (groups.values().zip(&taken).map(bound).collect(), free)
}

/// Returns the bytes that one of `count` terminals, which has taken `taken`, may take of `free`.
fn more(taken: u64, free: u64, count: u64) -> u64 {
    crate::fair::headroom(taken, free, 1).min(free / count)
}

/// Returns `config` with a path's part of `buffers` in each direction.
fn bounded(config: &RelayConfig, buffers: Buffers) -> RelayConfig {
    let own = config.clone().with_memory(buffers.bytes / buffers.paths);
    let shared_credit = own.shared_credit.min(config.shared_credit);
    RelayConfig { shared_credit, ..own }
}

/// Returns `config` with the shared credit reduced to a value that the total permits for the
/// maximum number of terminals.
pub(super) fn within_total(config: &RelayConfig) -> RelayConfig {
    let Some(total) = config.total_memory else { return config.clone() };
    let places = match &config.security {
        Security::Noise(keys) => keys.known().len().min(config.max_terminals),
        _ => config.max_terminals,
    };
    let each = (total / SHARED_PART / places.max(1) as u64).max(SHARED_LEAST) / 1024 * 1024;
    RelayConfig { shared_credit: config.shared_credit.min(each), ..config.clone() }
}
