//! The proxy of TCP connections that are forwarded unsplit: its output, its timers, its counters.

use crate::ForwardTcp;
use crate::engine::forward::Tunnel;
use crate::engine::pair::{Pair, Role};
use crate::forward::packet::Ends;
use crate::report::ForwardedTcp;
use relay::pep::{PacketPep, PepConfig, PepStatistics, Toward};
use std::net::SocketAddr;
use units::Instant;

/// Protocol number of TCP.
const TCP: u8 = 6;
/// Maximum number of packets that the proxy sends in one round.
const BUDGET: usize = 256;
/// Share of the memory for one connection: an eighth.
const FLOWS_AT_LEAST: usize = 8;

/// The proxy that `tcp` configures.
pub(crate) fn open(tcp: ForwardTcp) -> Option<PacketPep> {
    let ForwardTcp { spoof, spoof_memory, space_acks, filter_acks: _ } = tcp;
    let memory = usize::try_from(spoof_memory).unwrap_or(usize::MAX);
    let flow_memory = memory / FLOWS_AT_LEAST;
    let config = PepConfig { spoof, space_acks, flow_memory, memory, ..PepConfig::default() };
    (spoof || space_acks).then(|| PacketPep::new(config))
}

impl Tunnel {
    /// Returns when the proxy has something to do.
    pub(crate) fn pep_timeout(&self) -> Option<Instant> {
        self.pep.as_ref().and_then(PacketPep::poll_timeout)
    }
}

impl<R: Role> Pair<R> {
    /// Sends what the proxy has made or stored, as far as the paths take it; true when packets to a
    /// peer were queued, and there may be more.
    pub(crate) fn carry_stored(&mut self, now: Instant) -> bool {
        let Some(mut tunnel) = self.tunnel.take() else { return false };
        let more = self.carry_stored_of(now, &mut tunnel);
        self.tunnel = Some(tunnel);
        more
    }

    /// Resets the senders whose data is stored, before the process ends.
    pub(crate) fn close_stored(&mut self, now: Instant) {
        if let Some(pep) = self.tunnel.as_mut().and_then(|tunnel| tunnel.pep.as_mut()) {
            pep.close();
            while self.carry_stored(now) {}
        }
    }

    fn carry_stored_of(&mut self, now: Instant, tunnel: &mut Tunnel) -> bool {
        let Some(mut pep) = tunnel.pep.take() else { return false };
        if pep.poll_timeout().is_some_and(|at| at <= now) {
            pep.handle_timeout(now);
        }
        let (core, role) = (&mut self.core, &self.role);
        let homes = &tunnel.forwarding.homes;
        let mut queued = false;
        let mut left = BUDGET;
        while left > 0 {
            left -= 1;
            let has_room = |near, far| {
                let peer = role.peer_for(core, homes, &between(near, far));
                peer.is_some_and(|peer| core.relays.has_datagram_room(peer))
            };
            let Some((toward, packet)) = pep.poll_output(now, has_room) else {
                left = BUDGET;
                break;
            };
            let ends = match toward {
                Toward::Far => Ends::of(&packet),
                Toward::Near => {
                    tunnel.send(&packet, &mut core.counters.forwarded);
                    continue;
                }
            };
            let Some(ends) = ends else { continue };
            let served = role.service_of(&packet, &ends);
            let peer = role.peer_for(core, homes, &ends);
            if peer.is_some_and(|peer| core.relays.send_datagram(now, peer, &packet, served)) {
                core.counters.forwarded.sent += 1;
                queued = true;
            }
        }
        core.counters.forwarded.tcp = counters(pep.statistics());
        tunnel.pep = Some(pep);
        queued || left == 0
    }
}

/// The ends of packets from `near` to `far`.
fn between(near: SocketAddr, far: SocketAddr) -> Ends {
    Ends {
        source: near.ip(),
        destination: far,
        protocol: TCP,
        source_port: near.port(),
        port_is_hidden: false,
        goes_on: false,
    }
}

fn counters(statistics: PepStatistics) -> ForwardedTcp {
    ForwardedTcp {
        flows: statistics.flows,
        stored_bytes: statistics.stored,
        opened: statistics.opened,
        spoofed: statistics.spoofed,
        early_acks: statistics.early_acks,
        suppressed: statistics.suppressed,
        retransmitted: statistics.retransmitted,
        duplicates: statistics.duplicates,
        regenerated: statistics.regenerated,
        no_room: statistics.no_room,
        implausible: statistics.implausible,
        aborted: statistics.aborted,
    }
}
