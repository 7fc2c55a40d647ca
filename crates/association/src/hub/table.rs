//! A hub's associations and their keys, by index.
//!
//! ```text
//!   Hello ──▶ Pending ──first datagram──▶ Current ──renewed──▶ Previous ──a minute──▶ gone
//! ```
//!
//! An association has one current pair of keys, at most one previous, and its terminal at most
//! one pending.

use super::PeerId;
use crate::channel::{Channel, KeyPair};
use crate::entropy::{Entropy, draw};
use crate::wire::INDEX_MASK;
use crate::{Config, Limits, OpenError, PublicKey};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use units::Instant;

/// A terminal: what it is called, and the key that it has proved to own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) name: Arc<str>,
    pub(super) key: Option<PublicKey>,
}

/// An association in force.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) owner: Owner,
    pub(super) address: SocketAddr,
    pub(super) limits: Limits,
    /// Its name on the wire.
    association: u64,
    current: u32,
    previous: Option<u32>,
}

/// What was agreed on and is not in force yet.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) owner: Owner,
    pub(super) limits: Limits,
    pub(super) association: u64,
    /// The association that gets these keys; none: a new one.
    pub(super) continues: Option<PeerId>,
    /// The Hello without what changes when it comes again.
    pub(super) hello: Box<[u8]>,
    pub(super) welcome: Vec<u8>,
}

#[derive(Debug)]
enum Stage {
    Pending(Box<Pending>),
    Current(PeerId),
    /// Opens until then.
    Previous(PeerId, Instant),
}

#[derive(Debug)]
struct Held {
    channel: Channel,
    stage: Stage,
}

/// What a datagram that opened has done.
pub(super) struct InForce {
    pub(super) peer: PeerId,
    pub(super) first: bool,
    pub(super) replaced: Option<PeerId>,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    peers: BTreeMap<PeerId, Peer>,
    held: BTreeMap<u32, Held>,
    last_peer: u32,
}

impl Table {
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn kept(&self) -> usize {
        self.held.len()
    }

    pub(super) fn peer(&self, peer: PeerId) -> Option<&Peer> {
        self.peers.get(&peer)
    }

    /// The channel to seal under.
    pub(super) fn current(&mut self, peer: PeerId) -> Option<&mut Channel> {
        let index = self.peers.get(&peer)?.current;
        self.held.get_mut(&index).map(|held| &mut held.channel)
    }

    /// The channel to open what comes for `index`, if it is good at `now`.
    pub(super) fn channel(
        &mut self,
        now: Instant,
        config: &Config,
        index: u32,
    ) -> Option<&mut Channel> {
        let held = self.held.get(&index)?;
        let over = match held.stage {
            Stage::Pending(_) | Stage::Current(_) => false,
            Stage::Previous(_, until) => until <= now,
        };
        if over {
            self.held.remove(&index);
            return None;
        }
        let channel = &mut self.held.get_mut(&index)?.channel;
        (!config.is_expired(now, channel)).then_some(channel)
    }

    /// A datagram from `from` has opened under `index`, which puts its keys in force. `None`: they
    /// were to continue an association that is gone.
    pub(super) fn in_force(
        &mut self,
        now: Instant,
        config: &Config,
        index: u32,
        from: SocketAddr,
    ) -> Option<InForce> {
        let held = self.held.get_mut(&index)?;
        let known = |peer| Some(InForce { peer, first: false, replaced: None });
        match &held.stage {
            Stage::Current(peer) | Stage::Previous(peer, _) => return known(*peer),
            Stage::Pending(_) => {}
        }
        let next = PeerId(self.last_peer.wrapping_add(1));
        let Stage::Pending(pending) = core::mem::replace(&mut held.stage, Stage::Current(next))
        else {
            return None;
        };
        let Some(id) = pending.continues else {
            let replaced = self.begin(next, index, *pending, from);
            return Some(InForce { peer: next, first: true, replaced });
        };
        held.stage = Stage::Current(id);
        let Some(peer) = self.peers.get_mut(&id) else {
            self.held.remove(&index);
            return None;
        };
        peer.limits = pending.limits;
        let before = core::mem::replace(&mut peer.current, index);
        let older = peer.previous.replace(before);
        if let Some(before) = self.held.get_mut(&before) {
            before.stage = Stage::Previous(id, now + config.previous_lifetime);
        }
        if let Some(older) = older {
            self.held.remove(&older);
        }
        known(id)
    }

    /// A new association `id` is in force, in the place of the same terminal's others; returns the
    /// one that was.
    fn begin(
        &mut self,
        id: PeerId,
        index: u32,
        pending: Pending,
        from: SocketAddr,
    ) -> Option<PeerId> {
        let Pending { owner, limits, association, .. } = pending;
        let same = self.peers.iter().find(|(_, peer)| peer.owner.name == owner.name);
        let replaced = same.map(|(&id, _)| id);
        if let Some(replaced) = replaced {
            self.remove(replaced);
        }
        self.drop_pending(&owner);
        self.last_peer = id.0;
        let peer =
            Peer { owner, address: from, limits, association, current: index, previous: None };
        self.peers.insert(id, peer);
        replaced
    }

    /// The newest datagram under `index` came from `from`. Old keys move nobody.
    pub(super) fn moved(&mut self, peer: PeerId, index: u32, from: SocketAddr) {
        if let Some(peer) = self.peers.get_mut(&peer)
            && peer.current == index
        {
            peer.address = from;
        }
    }

    /// The Welcome to `hello`, while its keys are not in force.
    pub(super) fn welcome(&self, hello: &[u8]) -> Option<Vec<u8>> {
        self.held.values().find_map(|held| match &held.stage {
            Stage::Pending(pending) if *pending.hello == *hello => Some(pending.welcome.clone()),
            Stage::Pending(_) | Stage::Current(_) | Stage::Previous(..) => None,
        })
    }

    /// The association in force of `owner`, if it is `association`.
    pub(super) fn find(&self, owner: &Owner, association: u64) -> Option<PeerId> {
        let found = self.peers.iter().find(|(_, peer)| peer.owner == *owner)?;
        (association != 0 && found.1.association == association).then_some(*found.0)
    }

    /// Keeps what was agreed on until a datagram comes under it.
    pub(super) fn add(
        &mut self,
        now: Instant,
        index: u32,
        remote_index: u32,
        keys: KeyPair,
        pending: Pending,
    ) {
        let channel = Channel::new(remote_index, keys, now);
        self.held.insert(index, Held { channel, stage: Stage::Pending(Box::new(pending)) });
    }

    /// Forgets what was agreed on with `owner` and led nowhere.
    pub(super) fn drop_pending(&mut self, owner: &Owner) {
        self.held.retain(|_, held| match &held.stage {
            Stage::Pending(pending) => pending.owner != *owner,
            Stage::Current(_) | Stage::Previous(..) => true,
        });
    }

    /// Without keys, anyone may come under any name: forgets what was never put in force, and
    /// makes sure that one more fits.
    pub(super) fn make_room(
        &mut self,
        now: Instant,
        config: &Config,
        owner: &Owner,
    ) -> Result<(), OpenError> {
        self.held.retain(|_, held| match &held.stage {
            Stage::Pending(pending) => {
                let fresh = now.since(held.channel.made()) < config.pending_lifetime;
                // A newer Hello of the same terminal takes the place of one that led nowhere.
                fresh && pending.owner != *owner
            }
            Stage::Current(_) | Stage::Previous(..) => true,
        });
        let known = self.peers.values().any(|peer| peer.owner == *owner);
        if self.peers.len() >= config.max_terminals && !known {
            return Err(OpenError::Full);
        }
        let pending =
            || self.held.iter().filter(|(_, held)| matches!(held.stage, Stage::Pending(_)));
        if pending().count() >= config.max_pending {
            let oldest = pending().min_by_key(|(_, held)| held.channel.made());
            if let Some(index) = oldest.map(|(&index, _)| index) {
                self.held.remove(&index);
            }
        }
        Ok(())
    }

    /// Ends the associations of all who are not among `owners`; returns them.
    pub(super) fn keep_only(&mut self, owners: &[Owner]) -> Vec<PeerId> {
        let gone = |owner: &Owner| !owners.contains(owner);
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

    /// Drops the Welcomes that wait to be confirmed by terminals whose key `is_other`.
    pub(super) fn forget_answers(&mut self, is_other: impl Fn(&PublicKey) -> bool) {
        self.held.retain(|_, held| match &held.stage {
            Stage::Pending(pending) => !pending.owner.key.as_ref().is_some_and(&is_other),
            Stage::Current(_) | Stage::Previous(..) => true,
        });
    }

    pub(super) fn remove(&mut self, peer: PeerId) {
        if let Some(peer) = self.peers.remove(&peer) {
            self.held.remove(&peer.current);
            if let Some(previous) = peer.previous {
                self.held.remove(&previous);
            }
        }
    }

    /// An index that is not in use; never 0, which stands for none.
    pub(super) fn free_index(&self, entropy: &mut dyn Entropy) -> u32 {
        // There are 2²⁴ indices and at most a few hundred in use.
        loop {
            let index = u32::from_be_bytes(draw(entropy)) & INDEX_MASK;
            if index != 0 && !self.held.contains_key(&index) {
                return index;
            }
        }
    }
}
