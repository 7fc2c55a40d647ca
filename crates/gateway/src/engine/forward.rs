//! Packets that are forwarded unsplit between the TUN interface and the relay.

use crate::ForwardTcp;
use crate::config::terminal_of;
use crate::engine::accept::fallback::RETRY;
use crate::engine::forwarded_tcp;
use crate::engine::host::{SocketId, Source};
use crate::engine::pair::{Pair, Role};
use crate::engine::peers::link_socket::LinkSocket;
use crate::forward::Forwarding;
use crate::forward::packet::{Ends, UDP};
use crate::report::ForwardCounters;
use relay::pep::{PacketPep, Toward, Verdict};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use units::Instant;

/// Maximum number of packets that are read in one round.
const BUDGET: usize = 256;
/// Maximum size of an IP packet in octets.
const LARGEST: usize = 65_536;

/// Why a packet of a terminal is not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketDenied {
    /// Its source address is of no network of the terminal.
    ForeignSource,
    /// The terminal may not reach its destination.
    Policy,
}

/// The TUN interface and its read buffer.
#[derive(Debug)]
pub(crate) struct Tunnel {
    pub(crate) forwarding: Forwarding,
    pub(crate) readable: bool,
    buffer: Vec<u8>,
    /// Whether packets bypass the gateway because no hub responds.
    bypassing: bool,
    /// The proxy of TCP connections among the packets, if it is configured.
    pub(crate) pep: Option<PacketPep>,
    /// Time of the next attempt to change the routes after a failure.
    pub(crate) retry: Option<Instant>,
}

impl Tunnel {
    /// Writes a packet to the interface.
    pub(crate) fn send(&self, packet: &[u8], counters: &mut ForwardCounters) {
        match self.forwarding.tun.send(packet) {
            Ok(()) => counters.received += 1,
            Err(error) => {
                tracing::debug!(%error, "writing to the TUN interface failed");
                counters.not_taken += 1;
            }
        }
    }

    /// Switches between bypassing the gateway and forwarding.
    fn set_bypass(&mut self, now: Instant, pass: bool) {
        if pass == self.bypassing || self.retry.is_some_and(|at| now < at) {
            return;
        }
        self.retry = match self.forwarding.set_bypass(pass) {
            Ok(()) => {
                self.bypassing = pass;
                tracing::info!(pass, "[forward]: bypass changed");
                None
            }
            Err(error) => {
                tracing::error!(%error, pass, "[forward]: bypass not changed, retried later");
                Some(now + RETRY)
            }
        };
    }
}

impl<R: Role> Pair<R> {
    /// Forwards packets by `forwarding` from now on.
    pub(crate) fn set_forwarding(
        &mut self,
        forwarding: Forwarding,
        tcp: ForwardTcp,
    ) -> io::Result<()> {
        self.core.host.watch(SocketId(forwarding.tun.as_raw_fd()), Source::Packets)?;
        let buffer = vec![0; LARGEST];
        self.tunnel = Some(Box::new(Tunnel {
            forwarding,
            readable: true,
            buffer,
            bypassing: false,
            pep: forwarded_tcp::open(tcp),
            retry: None,
        }));
        Ok(())
    }

    /// Changes the networks of terminals to those of `hub`.
    pub(crate) fn set_homes(
        &mut self,
        section: &crate::ForwardSection,
        hub: &crate::HubSection,
    ) -> Result<(), crate::forward::ForwardError> {
        match &mut self.tunnel {
            Some(tunnel) => tunnel.forwarding.set_homes(section, hub),
            None => Ok(()),
        }
    }

    /// Lets packets bypass the gateway while new connections do, since no hub would receive them.
    pub(crate) fn lead_packets(&mut self, now: Instant) {
        if let (Some(pass), Some(tunnel)) = (self.role.bypasses_packets(), &mut self.tunnel) {
            tunnel.set_bypass(now, pass);
        }
    }

    /// Forwards packets from the interface to peers; true when there are more.
    pub(crate) fn carry_out(&mut self, now: Instant) -> bool {
        let Some(mut tunnel) = self.tunnel.take() else { return false };
        for _ in 0..BUDGET {
            if !tunnel.readable {
                break;
            }
            match tunnel.forwarding.tun.receive(&mut tunnel.buffer) {
                Ok(len) => {
                    let Tunnel { buffer, forwarding, pep, .. } = &mut *tunnel;
                    self.carry_packet(now, &mut buffer[..len], &forwarding.homes, pep.as_mut());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    if error.kind() != io::ErrorKind::WouldBlock {
                        tracing::warn!(%error, "reading from the TUN interface failed");
                    }
                    tunnel.readable = false;
                }
            }
        }
        let more = tunnel.readable;
        self.tunnel = Some(tunnel);
        more
    }

    fn carry_packet(
        &mut self,
        now: Instant,
        packet: &mut [u8],
        homes: &crate::forward::Homes,
        pep: Option<&mut PacketPep>,
    ) {
        let own_port =
            |link_socket: &LinkSocket| link_socket.local_address().map_or(0, |at| at.port());
        let core = &mut self.core;
        let counters = &mut core.counters.forwarded;
        let Some(ends) = Ends::of(packet).filter(Ends::is_between_hosts) else {
            counters.left_alone += 1;
            return;
        };
        let ours = |link_socket: &LinkSocket| {
            is_ours(&ends, own_port(link_socket), |at| core.relays.is_peer(at))
        };
        if self.link_sockets.iter().any(ours) {
            counters.left_alone += 1;
            return;
        }
        let peer = self.role.peer_for(core, homes, &ends);
        if pep.is_some_and(|pep| pep.handle(now, Toward::Far, packet) == Verdict::Taken) {
            return;
        }
        let served = self.role.service_of(packet, &ends);
        match peer {
            Some(peer) if core.relays.send_datagram(now, peer, packet, served) => {
                core.counters.forwarded.sent += 1;
            }
            Some(_) | None => core.counters.forwarded.nowhere += 1,
        }
    }

    /// Writes the packets of peers to the interface.
    pub(crate) fn carry_in(&mut self, now: Instant) {
        while let Some((peer, mut packet)) = self.core.relays.take_datagram() {
            let Some(tunnel) = &mut self.tunnel else {
                self.core.counters.forwarded.unwanted += 1;
                continue;
            };
            let name = terminal_of(self.core.relays.name(peer));
            let counters = &mut self.core.counters.forwarded;
            let Some(ends) = Ends::of(&packet).filter(Ends::is_between_hosts) else {
                counters.left_alone += 1;
                continue;
            };
            match self.role.admit_packet(now, &tunnel.forwarding.homes, name, &ends) {
                Ok(()) => {}
                Err(PacketDenied::ForeignSource) => {
                    counters.foreign_source += 1;
                    continue;
                }
                Err(PacketDenied::Policy) => {
                    counters.denied += 1;
                    continue;
                }
            }
            let pep = tunnel.pep.as_mut();
            if pep.is_some_and(|pep| pep.handle(now, Toward::Near, &mut packet) == Verdict::Taken) {
                continue;
            }
            tunnel.send(&packet, counters);
        }
    }
}

/// Whether the packet is a datagram of this gateway, which would be forwarded inside itself.
/// Datagrams of clients may use the same port with other peers.
fn is_ours(ends: &Ends, own_port: u16, is_peer: impl FnOnce(SocketAddr) -> bool) -> bool {
    ends.protocol == UDP && ends.source_port == own_port && is_peer(ends.destination)
}

impl ForwardCounters {
    /// Returns the number of packets forwarded in both directions.
    pub(crate) fn moved(&self) -> u64 {
        self.sent + self.received
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packets_to_peers_are_forwarded() {
        let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, UDP, 0, 0, 10, 1, 0, 2, 10, 3, 0, 2];
        packet.extend([0x1b, 0x58, 0x1b, 0x58, 0, 8, 0, 0]);
        let ends = Ends::of(&packet).unwrap();
        let hub = SocketAddr::from(([10, 3, 0, 2], 7000));
        assert!(is_ours(&ends, 7000, |address| address == hub));
        assert!(!is_ours(&ends, 7001, |address| address == hub));
        // Another application on the same port.
        assert!(!is_ours(&ends, 7000, |address| address == SocketAddr::from(([10, 3, 0, 9], 7000))));
        packet[9] = 6;
        assert!(!is_ours(&Ends::of(&packet).unwrap(), 7000, |address| address == hub));
    }
}
