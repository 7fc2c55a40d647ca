//! Packets that are carried as they are: between the TUN interface and the relay.

use super::carrier::Peer;
use super::quota::Holder;
use super::{Engine, Role};
use crate::forward::Forwarding;
use crate::forward::packet::{Ends, UDP};
use crate::report::ForwardCounters;
use mio::unix::SourceFd;
use mio::{Interest, Token};
use std::io;
use std::os::fd::AsRawFd;
use units::Instant;

/// The TUN interface.
pub(super) const TUN: Token = Token(6);
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
}

impl Engine {
    /// Carries packets by `forwarding` from here on.
    pub(crate) fn set_forwarding(&mut self, forwarding: Forwarding) -> io::Result<()> {
        let descriptor = forwarding.tun.as_raw_fd();
        self.poll.registry().register(&mut SourceFd(&descriptor), TUN, Interest::READABLE)?;
        let buffer = vec![0; LARGEST];
        self.tunnel = Some(Box::new(Tunnel { forwarding, readable: true, buffer }));
        Ok(())
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
        let own_port = self.udp.local_address().map_or(0, |address| address.port());
        let core = &mut self.core;
        let counters = &mut core.counters.forwarded;
        let Some(ends) = Ends::of(packet).filter(Ends::is_between_hosts) else {
            counters.left_alone += 1;
            return;
        };
        // Our own datagrams inside themselves: a network that leads to its own terminal.
        if ends.protocol == UDP && ends.source_port == own_port {
            counters.left_alone += 1;
            return;
        }
        let peer: Option<Peer> = match &self.role {
            Role::Terminal(_) => Some(None),
            Role::Hub(_) => {
                core.carrier.peer_at_home(|names| homes.home_of(ends.destination.ip(), names))
            }
        };
        match peer {
            Some(peer) if core.carrier.send_datagram(now, peer, packet) => {
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
            let name = self.core.carrier.name(peer);
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
                if !hub.admission.may_reach(now, Some(&holder), ends.destination) {
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

impl ForwardCounters {
    /// Packets that moved.
    pub(super) fn moved(&self) -> u64 {
        self.sent + self.received
    }
}
