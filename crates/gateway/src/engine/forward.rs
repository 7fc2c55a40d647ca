//! Packets that are carried as they are: between the TUN interface and the relay.

use crate::config::terminal_of;
use crate::engine::accept::fallback::{Fate, RETRY};
use crate::engine::host::{SocketId, Source};
use crate::engine::limits::rates::Holder;
use crate::engine::peers::link_socket::Outlet;
use crate::engine::peers::relay_set::Peer;
use crate::engine::{Engine, Role};
use crate::forward::Forwarding;
use crate::forward::packet::{Ends, UDP};
use crate::report::ForwardCounters;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use units::Instant;

/// Packets that are read in one round.
const BUDGET: usize = 256;
/// The largest IP packet.
const LARGEST: usize = 65_536;

/// The interface at work.
#[derive(Debug)]
pub(super) struct Tunnel {
    forwarding: Forwarding,
    pub(super) readable: bool,
    buffer: Vec<u8>,
    /// Whether packets go their ordinary way, because no hub answers.
    passing: bool,
    /// When the kernel may be asked again, after it has refused.
    pub(super) retry: Option<Instant>,
}

impl Tunnel {
    /// Lets packets go their ordinary way, or carries them again, if that is news.
    fn let_pass(&mut self, now: Instant, pass: bool) {
        if pass == self.passing || self.retry.is_some_and(|at| now < at) {
            return;
        }
        self.retry = match self.forwarding.set_passing(pass) {
            Ok(()) => {
                self.passing = pass;
                tracing::info!(pass, "[forward]: packets go their ordinary way, or are carried");
                None
            }
            Err(error) => {
                tracing::error!(%error, pass, "[forward]: the kernel's rules stay, for now");
                Some(now + RETRY)
            }
        };
    }
}

impl Engine {
    /// Carries packets by `forwarding` from here on.
    pub(crate) fn set_forwarding(&mut self, forwarding: Forwarding) -> io::Result<()> {
        self.core.host.watch(SocketId(forwarding.tun.as_raw_fd()), Source::Packets)?;
        let buffer = vec![0; LARGEST];
        self.tunnel = Some(Box::new(Tunnel {
            forwarding,
            readable: true,
            buffer,
            passing: false,
            retry: None,
        }));
        Ok(())
    }

    /// Terminals have the networks now that `hub` says.
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

    /// While new connections of a terminal pass because no hub answers, packets do as well: else
    /// those of the connections would be carried to nowhere.
    pub(super) fn lead_packets(&mut self, now: Instant) {
        if let (Role::Terminal(terminal), Some(tunnel)) = (&self.role, &mut self.tunnel) {
            tunnel.let_pass(now, terminal.door.fail.fate() == Fate::Direct);
        }
    }

    /// Carries what the kernel sends out by the interface; true when there is more.
    pub(super) fn carry_out(&mut self, now: Instant) -> bool {
        let Some(mut tunnel) = self.tunnel.take() else { return false };
        for _ in 0..BUDGET {
            if !tunnel.readable {
                break;
            }
            match tunnel.forwarding.tun.receive(&mut tunnel.buffer) {
                Ok(len) => {
                    let (packet, homes) = (&tunnel.buffer[..len], &tunnel.forwarding.homes);
                    self.carry_packet(now, packet, homes);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    if error.kind() != io::ErrorKind::WouldBlock {
                        tracing::warn!(%error, "reading from the TUN interface");
                    }
                    tunnel.readable = false;
                }
            }
        }
        let more = tunnel.readable;
        self.tunnel = Some(tunnel);
        more
    }

    fn carry_packet(&mut self, now: Instant, packet: &[u8], homes: &crate::forward::Homes) {
        let own_port = |outlet: &Outlet| outlet.local_address().map_or(0, |at| at.port());
        let core = &mut self.core;
        let counters = &mut core.counters.forwarded;
        let Some(ends) = Ends::of(packet).filter(Ends::is_between_hosts) else {
            counters.left_alone += 1;
            return;
        };
        let ours =
            |outlet: &Outlet| is_ours(&ends, own_port(outlet), |at| core.carrier.is_peer(at));
        if self.outlets.iter().any(ours) {
            counters.left_alone += 1;
            return;
        }
        let peer: Option<Peer> = match &self.role {
            Role::Terminal(_) => Some(core.carrier.first_path()),
            Role::Hub(_) => {
                core.carrier.peer_at_home(|names| homes.home_of(ends.destination.ip(), names))
            }
        };
        let served = match &self.role {
            Role::Terminal(_) => (ends.source, None),
            Role::Hub(hub) => (ends.destination.ip(), hub.classes.of_packet(packet, &ends)),
        };
        match peer {
            Some(peer) if core.carrier.send_datagram(now, peer, packet, served) => {
                core.counters.forwarded.sent += 1;
            }
            Some(_) | None => core.counters.forwarded.nowhere += 1,
        }
    }

    /// Hands on what peers have carried here.
    pub(super) fn carry_in(&mut self, now: Instant) {
        while let Some((peer, packet)) = self.core.carrier.take_datagram() {
            let Some(tunnel) = &self.tunnel else {
                self.core.counters.forwarded.unwanted += 1;
                continue;
            };
            let name = terminal_of(self.core.carrier.name(peer));
            let counters = &mut self.core.counters.forwarded;
            let Some(ends) = Ends::of(&packet).filter(Ends::is_between_hosts) else {
                counters.left_alone += 1;
                continue;
            };
            if let Role::Hub(hub) = &mut self.role {
                if !tunnel.forwarding.homes.is_home(name, ends.source) {
                    counters.foreign_source += 1;
                    continue;
                }
                let holder = Holder::Terminal(name.into());
                if !hub.admission.may_carry(now, &holder, &ends) {
                    counters.denied += 1;
                    continue;
                }
            }
            match tunnel.forwarding.tun.send(&packet) {
                Ok(()) => counters.received += 1,
                Err(error) => {
                    tracing::debug!(%error, "the TUN interface did not take a packet");
                    counters.not_taken += 1;
                }
            }
        }
    }
}

/// Whether it is one of our own datagrams, which would be carried inside themselves: a network
/// that leads to its own terminal. Clients may have our port with others.
fn is_ours(ends: &Ends, own_port: u16, is_peer: impl FnOnce(SocketAddr) -> bool) -> bool {
    ends.protocol == UDP && ends.source_port == own_port && is_peer(ends.destination)
}

impl ForwardCounters {
    /// Packets that moved.
    pub(super) fn moved(&self) -> u64 {
        self.sent + self.received
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_goes_to_a_peer_is_ours() {
        let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, UDP, 0, 0, 10, 1, 0, 2, 10, 3, 0, 2];
        packet.extend([0x1b, 0x58, 0x1b, 0x58, 0, 8, 0, 0]);
        let ends = Ends::of(&packet).unwrap();
        let hub = SocketAddr::from(([10, 3, 0, 2], 7000));
        assert!(is_ours(&ends, 7000, |address| address == hub));
        assert!(!is_ours(&ends, 7001, |address| address == hub));
        // Somebody's game, or a tunnel of his own, on the same port.
        assert!(!is_ours(&ends, 7000, |address| address == SocketAddr::from(([10, 3, 0, 9], 7000))));
        packet[9] = 6;
        assert!(!is_ours(&Ends::of(&packet).unwrap(), 7000, |address| address == hub));
    }
}
