//! A hub's associations and their keys, by index.
//!
//! ```text
//!   Hello ──▶ Pending ──first datagram──▶ Current ──renewed──▶ Previous ──a minute──▶ gone
//! ```
//!
//! An association has one current pair of keys and at most one previous pair; its terminal has at
//! most one pending pair.

use crate::channel::{Channel, KeyPair};
use crate::config::{Config, Limits};
use crate::entropy::{Entropy, draw};
use crate::error::OpenError;
use crate::keys::PublicKey;
use crate::part::Part;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use units::Instant;

/// Maximum number of earlier associations that a terminal keeps beside a new one.
const MAX_EARLIER: usize = 3;

/// Identifier of an association at a hub; it is kept when the keys are renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub(super) u32);

impl core::fmt::Display for PeerId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:06x}", self.0)
    }
}

/// A terminal: its name, and the key whose possession it has proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) name: Arc<str>,
    pub(super) key: Option<PublicKey>,
}

/// An active association.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) owner: Owner,
    pub(super) address: SocketAddr,
    pub(super) limits: Limits,
    /// Its identifier on the wire.
    association: u64,
    /// Indices of its stored keys.
    current: Option<u32>,
    previous: Option<u32>,
}

/// A completed handshake that is not active yet.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) owner: Owner,
    pub(super) limits: Limits,
    pub(super) association: u64,
    /// Whether earlier associations of the terminal remain.
    pub(super) is_beside: bool,
    /// The association that gets these keys; `None` for a new one.
    pub(super) continues: Option<PeerId>,
    /// The association of another path of the terminal to which a new one is joined.
    pub(super) joins: Option<PeerId>,
    /// The Hello without the fields that change when it is repeated.
    pub(super) hello: Box<[u8]>,
    pub(super) welcome: Vec<u8>,
}

/// Returns the terminal's name in the name of one of its paths, such as `boat/lte`.
fn site_of(name: &str) -> &str {
    name.split_once('/').map_or(name, |(site, _)| site)
}

#[derive(Debug)]
enum Stage {
    Pending(Box<Pending>),
    Current(PeerId),
    /// End of its validity.
    Previous(PeerId, Instant),
}

#[derive(Debug)]
struct Held {
    channel: Channel,
    stage: Stage,
}

impl Held {
    /// Returns when the keys expire.
    fn expiry(&self, config: &Config) -> Option<Instant> {
        let old = config.is_secret().then(|| self.channel.made() + config.expire_after);
        let late = match &self.stage {
            Stage::Pending(_) | Stage::Current(_) => None,
            Stage::Previous(_, until) => Some(*until),
        };
        old.into_iter().chain(late).min()
    }

    fn is_over(&self, now: Instant, config: &Config) -> bool {
        self.expiry(config).is_some_and(|at| at <= now)
    }
}

/// Effect of a decrypted datagram.
pub(super) struct InForce {
    pub(super) peer: PeerId,
    pub(super) first: bool,
    pub(super) replaced: Vec<PeerId>,
    /// The association to which a new one is joined.
    pub(super) joins: Option<PeerId>,
    /// An association continues under new keys.
    pub(super) renewed: bool,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    peers: BTreeMap<PeerId, Peer>,
    held: BTreeMap<u32, Held>,
    last_peer: u32,
    /// Number of pairs of keys created so far.
    keys_made: u64,
    /// Earliest expiry of keys.
    next_expiry: Option<Instant>,
}

impl Table {
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn kept(&self) -> usize {
        self.held.len()
    }

    pub(super) fn peer(&self, peer: PeerId) -> Option<&Peer> {
        self.peers.get(&peer)
    }

    /// Returns the channel for sending.
    pub(super) fn current(&mut self, peer: PeerId) -> Option<&mut Channel> {
        let index = self.peers.get(&peer)?.current?;
        self.held.get_mut(&index).map(|held| &mut held.channel)
    }

    /// Returns the channel for receiving under `index`, if it is valid at `now`.
    pub(super) fn channel(
        &mut self,
        now: Instant,
        config: &Config,
        index: u32,
    ) -> Option<&mut Channel> {
        if self.held.get(&index)?.is_over(now, config) {
            self.forget(index);
            return None;
        }
        self.held.get_mut(&index).map(|held| &mut held.channel)
    }

    /// Returns the earliest expiry of keys, or an earlier time.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.next_expiry
    }

    /// Removes expired keys, even if nothing is received under them.
    pub(super) fn expire(&mut self, now: Instant, config: &Config) {
        if self.next_expiry.is_none_or(|at| at > now) {
            return;
        }
        let over = |(&index, held): (&u32, &Held)| held.is_over(now, config).then_some(index);
        for index in self.held.iter().filter_map(over).collect::<Vec<_>>() {
            self.forget(index);
        }
        self.next_expiry = self.held.values().filter_map(|held| held.expiry(config)).min();
    }

    /// Removes the keys of `index`, also from their association, because the index may be reused.
    fn forget(&mut self, index: u32) {
        let Some(held) = self.held.remove(&index) else { return };
        let id = match held.stage {
            Stage::Pending(_) => return,
            Stage::Current(id) | Stage::Previous(id, _) => id,
        };
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.current.take_if(|current| *current == index);
            peer.previous.take_if(|previous| *previous == index);
        }
    }

    /// Requests a timeout at `at` or earlier.
    fn expire_by(&mut self, at: Option<Instant>) {
        self.next_expiry = self.next_expiry.into_iter().chain(at).min();
    }

    /// Activates the keys under which a datagram from `from` was decrypted.
    ///
    /// # Errors
    /// If their association has ended, or if all slots have been taken since the Welcome.
    pub(super) fn in_force(
        &mut self,
        now: Instant,
        config: &Config,
        index: u32,
        from: SocketAddr,
    ) -> Result<InForce, OpenError> {
        let gone = OpenError::UnknownIndex { index };
        let held = self.held.get_mut(&index).ok_or(gone)?;
        let known = |peer, renewed| {
            Ok(InForce { peer, first: false, replaced: Vec::new(), joins: None, renewed })
        };
        match &held.stage {
            Stage::Current(peer) | Stage::Previous(peer, _) => return known(*peer, false),
            Stage::Pending(_) => {}
        }
        let next = PeerId(self.last_peer.wrapping_add(1));
        let Stage::Pending(pending) = core::mem::replace(&mut held.stage, Stage::Current(next))
        else {
            return Err(gone);
        };
        let Some(id) = pending.continues else {
            if !self.has_place(config, &pending.owner) {
                self.held.remove(&index);
                return Err(OpenError::Full);
            }
            let joins = pending.joins;
            let replaced = self.begin(next, index, *pending, from);
            return Ok(InForce { peer: next, first: true, replaced, joins, renewed: false });
        };
        held.stage = Stage::Current(id);
        let Some(peer) = self.peers.get_mut(&id) else {
            self.held.remove(&index);
            return Err(gone);
        };
        peer.limits = pending.limits;
        let before = peer.current.replace(index);
        let older = core::mem::replace(&mut peer.previous, before);
        let until = now + config.previous_lifetime;
        if let Some(before) = before.and_then(|before| self.held.get_mut(&before)) {
            before.stage = Stage::Previous(id, until);
        }
        if let Some(older) = older {
            self.forget(older);
        }
        self.expire_by(Some(until));
        known(id, true)
    }

    /// Activates a new association `id` in place of the same terminal's previous ones, or beside
    /// the latest of them; returns those that have ended.
    fn begin(&mut self, id: PeerId, index: u32, pending: Pending, from: SocketAddr) -> Vec<PeerId> {
        let Pending { owner, limits, association, is_beside, .. } = pending;
        let same = self.peers.iter().filter(|(_, peer)| peer.owner.name == owner.name);
        let mut replaced: Vec<PeerId> = same.map(|(&id, _)| id).collect();
        let kept = if is_beside { MAX_EARLIER } else { 0 };
        replaced.truncate(replaced.len().saturating_sub(kept));
        replaced.iter().for_each(|&earlier| self.remove(earlier));
        self.drop_pending(&owner);
        self.last_peer = id.0;
        let peer = Peer {
            owner,
            address: from,
            limits,
            association,
            current: Some(index),
            previous: None,
        };
        self.peers.insert(id, peer);
        replaced
    }

    /// Migrates the path to `from`, the source of the newest datagram under `index`; returns
    /// whether it changed. Previous keys do not migrate it.
    pub(super) fn moved(&mut self, peer: PeerId, index: u32, from: SocketAddr) -> bool {
        let Some(peer) = self.peers.get_mut(&peer) else { return false };
        let moved = peer.current == Some(index) && peer.address != from;
        if moved {
            peer.address = from;
        }
        moved
    }

    /// Returns the Welcome to `hello` while its keys are not active.
    pub(super) fn welcome(&self, hello: &[u8]) -> Option<Vec<u8>> {
        self.held.values().find_map(|held| match &held.stage {
            Stage::Pending(pending) if *pending.hello == *hello => Some(pending.welcome.clone()),
            Stage::Pending(_) | Stage::Current(_) | Stage::Previous(..) => None,
        })
    }

    /// Returns the active association of `owner` if it is `association`.
    pub(super) fn find(&self, owner: &Owner, association: u64) -> Option<PeerId> {
        let mut its = self.peers.iter().filter(|(_, peer)| peer.owner == *owner);
        let found = its.find(|(_, peer)| association != 0 && peer.association == association)?;
        Some(*found.0)
    }

    /// Whether there is an active association with this identifier.
    pub(super) fn has(&self, association: u64) -> bool {
        self.peers.values().any(|peer| peer.association == association)
    }

    /// Returns the active association with this identifier if it is that of another path of the
    /// terminal: the names are equal before the first slash.
    pub(super) fn find_sibling(&self, owner: &Owner, association: u64) -> Option<PeerId> {
        let is_sibling = |peer: &Peer| {
            association != 0
                && peer.association == association
                && peer.owner.name != owner.name
                && site_of(&peer.owner.name) == site_of(&owner.name)
        };
        self.peers.iter().find(|(_, peer)| is_sibling(peer)).map(|(&id, _)| id)
    }

    /// Stores a completed handshake until the first datagram under its keys.
    pub(super) fn add(
        &mut self,
        now: Instant,
        config: &Config,
        (index, remote_index): (u32, u32),
        keys: KeyPair,
        pending: Pending,
    ) {
        self.keys_made += 1;
        let channel = Channel::new(remote_index, keys, now).numbered(self.keys_made);
        let held = Held { channel, stage: Stage::Pending(Box::new(pending)) };
        self.expire_by(held.expiry(config));
        self.held.insert(index, held);
    }

    /// Removes the pending handshake of `owner`.
    pub(super) fn drop_pending(&mut self, owner: &Owner) {
        self.held.retain(|_, held| match &held.stage {
            Stage::Pending(pending) => pending.owner != *owner,
            Stage::Current(_) | Stage::Previous(..) => true,
        });
    }

    /// Returns true if `owner` may have an association: it has one, or there is a free slot.
    pub(super) fn has_place(&self, config: &Config, owner: &Owner) -> bool {
        self.peers.len() < config.max_terminals
            || self.peers.values().any(|peer| peer.owner == *owner)
    }

    /// Removes a handshake that was never activated, because without keys anyone can use any name.
    pub(super) fn make_room(&mut self, now: Instant, config: &Config, owner: &Owner) {
        self.held.retain(|_, held| match &held.stage {
            Stage::Pending(pending) => {
                let fresh = now.since(held.channel.made()) < config.pending_lifetime;
                // A newer Hello of the same terminal replaces its pending handshake.
                fresh && pending.owner != *owner
            }
            Stage::Current(_) | Stage::Previous(..) => true,
        });
        let pending =
            || self.held.iter().filter(|(_, held)| matches!(held.stage, Stage::Pending(_)));
        if pending().count() >= config.max_pending {
            let oldest = pending().min_by_key(|(_, held)| held.channel.made());
            if let Some(index) = oldest.map(|(&index, _)| index) {
                self.held.remove(&index);
            }
        }
    }

    /// Ends the associations of all terminals that are `gone`; returns them.
    pub(super) fn end_all(&mut self, gone: impl Fn(&Owner) -> bool) -> Vec<PeerId> {
        let ended: Vec<PeerId> =
            self.peers.iter().filter(|(_, peer)| gone(&peer.owner)).map(|(&id, _)| id).collect();
        for &id in &ended {
            self.remove(id);
        }
        self.held.retain(|_, held| match &held.stage {
            Stage::Pending(pending) => !gone(&pending.owner),
            Stage::Current(_) | Stage::Previous(..) => true,
        });
        ended
    }

    /// Removes pending handshakes of terminals whose key `is_other`.
    pub(super) fn forget_answers(&mut self, is_other: impl Fn(&PublicKey) -> bool) {
        self.held.retain(|_, held| match &held.stage {
            Stage::Pending(pending) => !pending.owner.key.as_ref().is_some_and(&is_other),
            Stage::Current(_) | Stage::Previous(..) => true,
        });
    }

    pub(super) fn remove(&mut self, peer: PeerId) {
        if let Some(peer) = self.peers.remove(&peer) {
            for index in peer.current.into_iter().chain(peer.previous) {
                self.held.remove(&index);
            }
        }
    }

    /// Returns an unused index of `part`, which is never 0.
    pub(super) fn free_index(&self, part: &Part, entropy: &mut dyn Entropy) -> u32 {
        // There are 2²⁴ indices, of which at most some thousand are used.
        loop {
            let index = part.index(u32::from_be_bytes(draw(entropy)));
            if let Some(index) = index.filter(|index| !self.held.contains_key(index)) {
                return index;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Key;
    use crate::keys::{Keys, PrivateKey, Security};
    use units::{RngStream, Span};

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Span::from_secs(seconds)
    }

    fn from() -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], 4500))
    }

    fn config() -> Config {
        let key = PrivateKey::generate(&mut RngStream::new(1, 0, "hub"));
        let keys = Keys::new(key, Vec::new()).expect("keys");
        Config { security: Security::Noise(keys.into()), ..Config::new("hub") }
    }

    /// Activates keys under `index` for the terminal `name`.
    fn agree(
        table: &mut Table,
        now: Instant,
        (name, index): (&str, u32),
        continues: Option<PeerId>,
    ) -> PeerId {
        let owner = Owner { name: name.into(), key: None };
        let (limits, association) = (Limits::default(), 7);
        let (hello, welcome) = (Box::default(), Vec::new());
        let (is_beside, joins) = (false, None);
        let pending =
            Pending { owner, limits, association, is_beside, continues, joins, hello, welcome };
        let keys = KeyPair { send: Key::Null(1), receive: Key::Null(2) };
        table.add(now, &config(), (index, index), keys, pending);
        table.in_force(now, &config(), index, from()).expect("in force").peer
    }

    /// ASC-8.3, ASC-8.4
    #[test]
    fn keys_expire_without_received_datagrams() {
        let mut table = Table::default();
        let peer = agree(&mut table, at(0), ("boat", 1), None);
        agree(&mut table, at(120), ("boat", 2), Some(peer));
        assert_eq!((table.kept(), table.next_expiry()), (2, Some(at(180))));
        table.expire(at(179), &config());
        assert_eq!(table.kept(), 2);
        table.expire(at(180), &config());
        assert_eq!((table.kept(), table.next_expiry()), (1, Some(at(720))));
        table.expire(at(720), &config());
        assert_eq!((table.kept(), table.next_expiry()), (0, None));
        assert!(table.peer(peer).is_some() && table.current(peer).is_none());
        agree(&mut table, at(800), ("boat", 3), Some(peer));
        assert!(table.current(peer).is_some(), "it goes on");
    }

    #[test]
    fn a_reused_index_is_not_affected_by_expired_keys() {
        let mut table = Table::default();
        let boat = agree(&mut table, at(0), ("boat", 1), None);
        agree(&mut table, at(120), ("boat", 2), Some(boat));
        // A datagram arrives under expired keys, and another terminal gets their index.
        assert!(table.channel(at(181), &config(), 1).is_none());
        let ship = agree(&mut table, at(182), ("ship", 1), None);
        agree(&mut table, at(240), ("boat", 3), Some(boat));
        assert!(table.current(ship).is_some());
        table.remove(boat);
        assert!(table.current(ship).is_some());
        assert_eq!(table.kept(), 1);
    }
}
