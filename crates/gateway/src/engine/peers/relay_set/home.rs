//! Selection of a path for packets to a terminal that is connected by several.

use super::{Peer, RelaySet, Side, terminal_of};
use std::cmp::Reverse;
use units::Instant;

impl RelaySet {
    /// Returns the terminal that `choose` selects by the names of all connected ones, at a hub.
    pub(crate) fn terminal_for_network(
        &self,
        choose: impl for<'n> FnOnce(&mut dyn Iterator<Item = &'n str>) -> Option<&'n str>,
    ) -> Option<Peer> {
        let Side::Hub(hub) = &self.side else { return None };
        let terminal = |peer| hub.name(peer).map(terminal_of);
        let chosen = choose(&mut hub.relays().filter_map(|(peer, _)| terminal(peer)))?;
        let its = hub.relays().filter(|(peer, _)| terminal(*peer) == Some(chosen));
        let best = its.max_by_key(|(peer, relay)| PathRank {
            answered: relay.is_answered(),
            carried: relay.datagram_came(),
            name: Reverse(hub.name(*peer)),
        });
        best.map(|(peer, _)| Peer::Terminal(peer))
    }
}

/// Rank of a path to a terminal. The best path responds, and has most recently delivered a packet
/// from the terminal, which knows its backup paths. Of paths without packets it is the first by
/// name; the terminal's own name precedes those of its further paths.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PathRank<'a> {
    answered: bool,
    carried: Option<Instant>,
    name: Reverse<Option<&'a str>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Span;

    #[test]
    fn packets_go_back_by_the_path_they_came_by() {
        let at = |ms| Some(Instant::ZERO + Span::from_millis(ms));
        let best = |ways: [(bool, Option<Instant>, &'static str); 2]| {
            let way = |(answered, carried, name)| PathRank {
                answered,
                carried,
                name: Reverse(Some(name)),
            };
            ways.map(way).into_iter().max().unwrap().name.0.unwrap()
        };
        for turned in [false, true] {
            let best = |mut ways: [(bool, Option<Instant>, &'static str); 2]| {
                if turned {
                    ways.reverse();
                }
                best(ways)
            };
            assert_eq!(best([(true, None, "boat"), (true, None, "boat/lte")]), "boat");
            assert_eq!(best([(true, at(5), "boat"), (true, None, "boat/lte")]), "boat");
            assert_eq!(best([(true, at(5), "boat"), (true, at(6), "boat/lte")]), "boat/lte");
            assert_eq!(best([(true, None, "boat"), (false, at(6), "boat/lte")]), "boat");
            assert_eq!(best([(false, at(7), "boat"), (true, None, "boat/lte")]), "boat/lte");
        }
    }
}
