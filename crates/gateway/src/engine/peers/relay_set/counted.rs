//! Counters and path metrics of the relays.

use super::{Peer, RelaySet, Side, StreamKey};
use crate::engine::peers::paths::Path;
use crate::report::{PeerReport, Traffic};
use crate::state::State;
use relay::{PathView, PeerId, Relay, Statistics};
use units::Instant;

impl RelaySet {
    /// Stores the path metrics of all sessions in `state`; `unix` turns times into seconds since
    /// 1970.
    pub(crate) fn remember(
        &mut self,
        now: Instant,
        state: &mut State,
        unix: impl Fn(Instant) -> u64,
    ) {
        match &mut self.side {
            Side::Terminal(paths) => {
                for (number, path) in paths.all.iter().enumerate() {
                    let view = paths.view(number).filter(PathView::is_connected);
                    if let Some(metrics) = view.and_then(|view| view.path_metrics()) {
                        state.put(&path.cache_key(), metrics, unix(now));
                    }
                }
            }
            Side::Hub(hub) => {
                for (name, metrics, at) in hub.path_metrics(now) {
                    state.put(name, metrics, unix(at));
                }
            }
        }
    }

    /// Returns the path metrics of the connected peers.
    pub(crate) fn peers(&mut self, now: Instant) -> Vec<PeerReport> {
        const MOST: usize = 100;
        match &mut self.side {
            Side::Terminal(paths) => {
                let all = paths.all.iter().enumerate();
                let report = |(number, path): (usize, &Path)| {
                    PeerReport::of(path.cache_key(), now, paths.view(number)?)
                };
                all.filter_map(report).collect()
            }
            Side::Hub(hub) => {
                let peers = hub.paths();
                let report = |peer| {
                    let name = hub.name(peer)?.to_owned();
                    let (relay, number) = hub.path(peer)?;
                    PeerReport::of(name, now, relay.path(number)?)
                };
                peers.into_iter().take(MOST).filter_map(report).collect()
            }
        }
    }

    /// Whether a terminal's stream counts against the limit of its hub.
    pub(crate) fn has_opened(&mut self, key: StreamKey) -> bool {
        matches!(key.peer, Peer::Path(_) | Peer::Former(_))
            && self.relay(key.peer).is_some_and(|relay| relay.has_stream(key.stream))
    }

    /// Returns the number of streams that have not ended at both gateways.
    pub(crate) fn open_streams(&mut self) -> usize {
        self.all_statistics().iter().map(|all| all.streams).sum()
    }

    /// Returns the octets in the send buffers of all streams.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn buffered(&mut self) -> u64 {
        self.all_statistics().iter().map(|all| all.send_buffered).sum()
    }

    fn all_statistics(&mut self) -> Vec<Statistics> {
        match &mut self.side {
            Side::Terminal(paths) => paths.relays().map(Relay::statistics).collect(),
            Side::Hub(hub) => hub.relays().map(|(_, relay)| relay.statistics()).collect(),
        }
    }

    /// Returns the counters of sessions and streams.
    pub(crate) fn traffic(&mut self) -> Traffic {
        let mut traffic = Traffic { bad_datagrams: self.bad_datagrams, ..Traffic::default() };
        match &mut self.side {
            Side::Terminal(paths) => {
                traffic.add_totals(&paths.past().0);
                for relay in paths.relays() {
                    traffic.add_totals(&relay.totals());
                    traffic.add(relay);
                }
            }
            Side::Hub(hub) => {
                traffic.add_totals(&hub.totals());
                let peers: Vec<PeerId> = hub.peers().collect();
                for peer in peers {
                    if let Some(relay) = hub.peer(peer) {
                        traffic.add(relay);
                    }
                }
            }
        }
        traffic
    }
}
