//! Status of each path to a peer, and taps.

use super::{Peer, RelaySet, Side};
use crate::config::terminal_of;
use crate::engine::lifecycle::view::Taps;
use crate::engine::peers::naming::{hub_name, is_same, plain};
use crate::observe::{AssociationCounters, PathCounters, ReportStatus, TerminalStatus};
use crate::tls;
use relay::{PathReport, PeerId, Relay, Statistics, Tap, Tapped};
use std::net::SocketAddr;
use units::{BitRate, Instant, Span};

impl RelaySet {
    /// Returns the name of a terminal, with keys that of its key; empty if there is none.
    pub(crate) fn name(&self, peer: Peer) -> &str {
        match (&self.side, peer) {
            (Side::Hub(hub), Peer::Terminal(peer)) => hub.name(peer).unwrap_or_default(),
            (Side::Hub(_), Peer::Path(_) | Peer::Former(_)) | (Side::Terminal(_), _) => "",
        }
    }

    /// Returns what this side has measured of the path to a peer.
    pub(crate) fn path_report(&mut self, now: Instant, peer: Peer) -> PathReport {
        self.relay(peer).map(|relay| relay.path_report(now)).unwrap_or_default()
    }

    /// Describes a peer for the log: its name, number and address, while it is connected.
    pub(crate) fn describe(&self, peer: Peer) -> String {
        match (&self.side, peer) {
            (Side::Hub(hub), Peer::Terminal(peer)) => match (hub.name(peer), hub.address(peer)) {
                // Without keys the name is unauthenticated.
                (Some(name), Some(address)) => {
                    let address = plain(address);
                    let (address, carrier) = match tls::client_of(address) {
                        Some(client) => (plain(client), " by TLS"),
                        None => (address, ""),
                    };
                    format!("{} ({peer}) at {address}{carrier}", name.escape_debug())
                }
                (_, _) => peer.to_string(),
            },
            (Side::Terminal(paths), Peer::Path(number)) => match paths.first_of(number) {
                Some((path, false)) => path.cache_key(),
                Some((path, true)) => path.known_as(),
                None => "unknown".into(),
            },
            (Side::Terminal(_), Peer::Former(id)) => format!("former hub {id}"),
            (Side::Hub(_), Peer::Path(_) | Peer::Former(_))
            | (Side::Terminal(_), Peer::Terminal(_)) => "unknown".into(),
        }
    }

    /// Returns the status of the path to each terminal; a terminal returns its own, called `own`.
    /// `unix` turns times into seconds since 1970.
    pub(crate) fn terminals(
        &mut self,
        now: Instant,
        own: &str,
        unix: impl Fn(Instant) -> f64,
    ) -> Vec<TerminalStatus> {
        match &mut self.side {
            Side::Terminal(paths) => {
                let seen = paths.all.iter().enumerate().filter_map(|(number, path)| {
                    let relay = (&paths.present[path.seat.0], path.seat.1);
                    let name = if path.label.is_empty() { own } else { &path.label };
                    let hub = path.address().map_or_else(|| path.known_as(), hub_name);
                    Some(TerminalStatus {
                        health: Some(paths.health_state(number).as_str()),
                        failures: paths.failures(number),
                        carrier: carrier(path.uses_tls),
                        ..terminal(name.to_owned(), hub, now, relay, &unix)?
                    })
                });
                seen.collect()
            }
            Side::Hub(hub) => {
                let peers = hub.paths();
                let shares = hub.shares();
                let seen = peers.iter().filter_map(|&peer| {
                    let name = hub.name(peer)?.to_owned();
                    // Of several associations of a terminal the newest one has the new streams.
                    let is_same = |&other: &PeerId| other > peer && hub.name(other) == Some(&name);
                    if peers.iter().any(is_same) {
                        return None;
                    }
                    let address = plain(hub.address(peer)?);
                    let client = tls::client_of(address);
                    let address = plain(client.unwrap_or(address)).to_string();
                    let standing = hub.standing(peer);
                    let (relay, number) = hub.path(peer)?;
                    let seen = terminal(name, address, now, (relay, number), &unix)?;
                    Some(TerminalStatus {
                        carrier: carrier(client.is_some()),
                        plan: standing.plan,
                        share_bits_per_second: shares.get(&peer).copied(),
                        committed_bits_per_second: standing.committed.map(BitRate::as_bps),
                        granted_bits_per_second: standing.granted.map(BitRate::as_bps),
                        grant_overuse: standing.grant_overuse,
                        ..seen
                    })
                });
                seen.collect()
            }
        }
    }

    /// Whether a peer has the address.
    pub(crate) fn is_peer(&self, address: SocketAddr) -> bool {
        match &self.side {
            Side::Terminal(paths) => paths.all.iter().any(|path| is_same(path.route.peer, address)),
            Side::Hub(hub) => hub
                .paths()
                .into_iter()
                .filter_map(|peer| hub.address(peer))
                .any(|known| is_same(known, address)),
        }
    }

    /// Returns the counters of datagrams by result.
    pub(crate) fn association(&self) -> AssociationCounters {
        let counters = match &self.side {
            Side::Terminal(paths) => {
                let mut all = paths.past().1;
                let each = paths.relays().flat_map(Relay::paths);
                let each = each.filter_map(|(_, path)| path.association_counters().copied());
                each.for_each(|counters| all.add(&counters));
                all
            }
            Side::Hub(hub) => *hub.association_counters(),
        };
        let named = counters.malformed
            + counters.unknown_index
            + counters.replayed
            + counters.bad_tag
            + counters.unknown_keys
            + counters.stale
            + counters.busy
            + counters.full;
        let dropped = [
            ("malformed", counters.malformed),
            ("unknown_index", counters.unknown_index),
            ("replayed", counters.replayed),
            ("bad_tag", counters.bad_tag),
            ("stranger", counters.unknown_keys),
            ("stale_hello", counters.stale),
            ("busy", counters.busy),
            ("full", counters.full),
            // Datagrams from another address than the hub's, and valid ones with a malformed
            // payload.
            ("other", self.bad_datagrams.saturating_sub(named)),
        ];
        AssociationCounters {
            sealed: counters.sealed,
            opened: counters.opened,
            hellos: counters.hellos,
            unknowns: counters.unknowns,
            renewals: counters.renewals,
            cookies: counters.cookies,
            withheld: [
                ("cookie", counters.cookies_withheld),
                ("unknown", counters.unknowns_withheld),
            ]
            .into(),
            dropped: dropped.into(),
        }
    }

    /// Returns the name of a hub's peer; at a terminal that of the path, if there are several.
    pub(crate) fn name_of(&self, peer: Peer) -> Option<&str> {
        match (&self.side, peer) {
            (Side::Hub(hub), Peer::Terminal(peer)) => hub.name(peer),
            (Side::Terminal(paths), Peer::Path(number)) => {
                let (path, is_joined) = paths.first_of(number)?;
                let label = path.label.as_str();
                let name = if is_joined { terminal_of(label) } else { label };
                Some(name).filter(|name| !name.is_empty())
            }
            (Side::Hub(_), Peer::Path(_))
            | (_, Peer::Former(_))
            | (Side::Terminal(_), Peer::Terminal(_)) => None,
        }
    }
}

impl Taps for RelaySet {
    fn set_tap(&mut self, tap: Option<Tap>) {
        match &mut self.side {
            Side::Terminal(paths) => {
                paths.relays_mut().for_each(|relay| relay.set_tap(tap.clone()));
            }
            Side::Hub(hub) => hub.set_tap(tap),
        }
    }

    fn drain_tap(&mut self, take: &mut dyn FnMut(Option<&str>, Tapped<'_>)) -> u64 {
        // Names and tap cannot be borrowed from the hub at once.
        let names: Vec<(PeerId, String)> = match &self.side {
            Side::Terminal(_) => Vec::new(),
            Side::Hub(hub) => {
                let paths = hub.paths().into_iter();
                paths.filter_map(|peer| Some((peer, hub.name(peer)?.to_owned()))).collect()
            }
        };
        let mut dropped = 0;
        match &mut self.side {
            Side::Terminal(paths) => {
                for (number, relay) in paths.present.iter_mut().enumerate() {
                    let Some(tap) = relay.tap() else { continue };
                    for tapped in tap.held() {
                        let seat = (number, tapped.path);
                        let path = paths.all.iter().find(|path| path.seat == seat);
                        let label = path.map(|path| path.label.as_str());
                        take(label.filter(|label| !label.is_empty()), tapped);
                    }
                    tap.clear();
                    dropped += tap.dropped();
                }
            }
            Side::Hub(hub) => {
                let Some(tap) = hub.tap() else { return 0 };
                for tapped in tap.held() {
                    let name = names.iter().find(|(peer, _)| Some(*peer) == tapped.peer);
                    take(name.map(|(_, name)| name.as_str()), tapped);
                }
                tap.clear();
                dropped = tap.dropped();
            }
        }
        dropped
    }
}

/// Returns the name of a carrier in the status.
fn carrier(is_tls: bool) -> &'static str {
    if is_tls { "tls" } else { "udp" }
}

fn terminal(
    name: String,
    address: String,
    now: Instant,
    (relay, number): (&Relay, usize),
    unix: impl Fn(Instant) -> f64,
) -> Option<TerminalStatus> {
    let path = relay.path(number)?;
    let (sight, seen, totals) = (relay.status(), path.snapshot(now), path.totals());
    // Streams that several paths carry are those of the first one.
    let streams = if path.is_first() { relay.statistics() } else { Statistics::default() };
    let buffers = |bytes: u64| if path.is_first() { bytes } else { 0 };
    let seconds = |span: Option<Span>| span.map(Span::as_secs_f64);
    Some(TerminalStatus {
        terminal: name,
        address,
        carrier: carrier(false),
        bonded: relay.paths().nth(1).is_some(),
        health: None,
        failures: 0,
        connected: path.is_connected(),
        since_unix_seconds: path.connected_since().map(&unix),
        last_received_unix_seconds: path.heard().map(&unix),
        idle_seconds: seconds(path.heard().map(|heard| now.since(heard))),
        mode: seen.map_or("none", |seen| seen.mode),
        plan: None,
        share_bits_per_second: None,
        committed_bits_per_second: None,
        granted_bits_per_second: path.granted().map(BitRate::as_bps),
        grant_overuse: 0,
        rate_bits_per_second: path.rate(now).map(BitRate::as_bps),
        confirmed_rate_bits_per_second: path.path_metrics().map(|metrics| metrics.rate.as_bps()),
        round_trip_seconds: seconds(path.round_trip()),
        min_round_trip_seconds: seconds(seen.and_then(|seen| seen.min_rtt)),
        queuing_delay_seconds: seconds(seen.and_then(|seen| seen.queuing_delay)),
        outage_seconds: seconds(
            seen.and_then(|seen| seen.outage_since).map(|since| now.since(since)),
        ),
        mtu_bytes: path.mtu() as u64,
        streams: streams.streams as u64,
        outstanding_bytes: seen.map_or(0, |seen| seen.outstanding_bytes),
        retransmit_queue_packets: seen.map_or(0, |seen| seen.retransmit_queue),
        send_buffered_bytes: streams.send_buffered,
        send_buffer_limit_bytes: buffers(sight.send_pool),
        receive_credit_bytes: streams.receive_credit,
        receive_limit_bytes: buffers(sight.receive_pool),
        receive_memory_bytes: buffers(sight.receive_memory as u64),
        report: relay.report().filter(|_| path.is_first()).map(ReportStatus::new),
        counters: PathCounters {
            sessions: totals.sessions,
            segments_sent: totals.segments_sent,
            segment_bytes_sent: totals.octets_sent,
            segments_received: totals.segments_received,
            segment_bytes_received: totals.octets_received,
            data_sent: totals.data_sent,
            retransmitted: totals.retransmitted,
            duplicates: totals.duplicates,
            polls: totals.polls,
            stats: totals.stats,
            ustats: totals.ustats,
            repairs_sent: totals.repairs_sent,
            repairs_received: totals.repairs_received,
            packets_recovered: totals.packets_recovered,
            compression: totals.coding.into(),
            outages: totals.outages,
            streams_opened: totals.opened + totals.accepted,
            stream_bytes_sent: totals.bytes_sent,
            stream_bytes_received: totals.bytes_received,
            bad_frames: totals.bad_frames,
        },
    })
}
