//! From which address and port a gateway answers each of its peers: those at which their datagrams
//! arrive.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// Where a datagram has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LocalEnd {
    /// The local address, if the sockets have a wildcard address.
    pub(super) ip: Option<IpAddr>,
    /// The index of the port.
    pub(super) port: usize,
}

/// The local address and port on which each source's datagrams arrive, used as those of replies.
#[derive(Debug, Default)]
pub(super) struct AnsweredFrom {
    /// Peers whose datagrams were authenticated.
    peers: BTreeMap<SocketAddr, LocalEnd>,
    /// The latest unvalidated sources, until they receive a response.
    unvalidated: VecDeque<(SocketAddr, LocalEnd)>,
}

/// Maximum number of peers with a stored local address; for others the kernel's route selects it.
const MAX_PEERS: usize = 4096;
/// Maximum number of unvalidated sources with a stored address: the maximum number of queued
/// responses, and sources of datagrams that arrive meanwhile.
const MAX_UNVALIDATED: usize = 256;

impl AnsweredFrom {
    /// Records that a datagram from `from` was received at `here`. An unvalidated datagram changes
    /// nothing for a peer, because a forged one must not change the source address of replies.
    pub(super) fn note(&mut self, from: SocketAddr, here: LocalEnd, is_peer: bool) {
        if is_peer {
            if self.peers.len() >= MAX_PEERS && !self.peers.contains_key(&from) {
                self.peers.clear();
            }
            self.peers.insert(from, here);
        } else if !self.peers.contains_key(&from) {
            if self.unvalidated.len() >= MAX_UNVALIDATED {
                self.unvalidated.pop_front();
            }
            self.unvalidated.push_back((from, here));
        }
    }

    pub(super) fn get(&self, to: SocketAddr) -> Option<LocalEnd> {
        let unvalidated = || self.unvalidated.iter().rev().find(|(from, _)| *from == to);
        self.peers.get(&to).copied().or_else(|| unvalidated().map(|(_, here)| *here))
    }

    pub(super) fn forget(&mut self, to: SocketAddr) {
        self.peers.remove(&to);
        self.unvalidated.retain(|(from, _)| *from != to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TLS-5.1
    #[test]
    fn unvalidated_sources_change_nothing_for_peers() {
        let here = |last: u8| LocalEnd { ip: Some([192, 0, 2, last].into()), port: 0 };
        let from = |number: u32| SocketAddr::from((std::net::Ipv4Addr::from_bits(number), 7000));
        let mut answered = AnsweredFrom::default();
        answered.note(from(1), here(1), true);
        for number in 0..100_000 {
            answered.note(from(number), here(2), false);
            if number != 1 {
                assert_eq!(answered.get(from(number)), Some(here(2)), "is answered");
            }
        }
        assert_eq!(answered.get(from(1)), Some(here(1)));
        assert!(answered.peers.len() + answered.unvalidated.len() <= 1 + MAX_UNVALIDATED);
        answered.note(from(1), here(3), true);
        assert_eq!(answered.get(from(1)), Some(here(3)), "it has moved");
        for number in 0..100_000 {
            answered.note(from(number), here(1), true);
        }
        assert!(answered.peers.len() <= MAX_PEERS);
    }
}
