//! Which way packets take to a terminal that is connected by several paths.

use super::{Carrier, Peer, Side, terminal_of};
use std::cmp::Reverse;
use units::Instant;

impl Carrier {
    /// At a hub, the terminal that `choose` chooses by the names of all that are here.
    pub(crate) fn peer_at_home(
        &self,
        choose: impl for<'n> FnOnce(&mut dyn Iterator<Item = &'n str>) -> Option<&'n str>,
    ) -> Option<Peer> {
        let Side::Hub(hub) = &self.side else { return None };
        let terminal = |peer| hub.name(peer).map(terminal_of);
        let chosen = choose(&mut hub.relays().filter_map(|(peer, _)| terminal(peer)))?;
        let its = hub.relays().filter(|(peer, _)| terminal(*peer) == Some(chosen));
        let best = its.max_by_key(|(peer, relay)| Way {
            answered: relay.is_answered(),
            carried: relay.datagram_came(),
            name: Reverse(hub.name(*peer)),
        });
        best.map(|(peer, _)| Peer::Terminal(peer))
    }
}

/// A way to a terminal that is here by several. The best is one that answers, and of those the one
/// by which it has last carried a packet here: the terminal knows which of them is its backup. Of
/// those that have carried nothing the first by name, which the terminal's own name precedes.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Way<'a> {
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
            let way =
                |(answered, carried, name)| Way { answered, carried, name: Reverse(Some(name)) };
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
