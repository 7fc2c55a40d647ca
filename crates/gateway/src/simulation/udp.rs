//! UDP sockets in memory.

use super::net::faults::Call;
use super::net::link::headers;
use super::net::{DATAGRAMS, Shared};
use crate::engine::{DatagramSocket, Delivered, Sent, SocketId};
use crate::report::UdpCounters;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// A datagram socket in memory.
#[derive(Debug)]
pub(super) struct MemoryUdp {
    pub(super) net: Shared,
    pub(super) node: usize,
    pub(super) number: usize,
    pub(super) counters: UdpCounters,
}

impl DatagramSocket for MemoryUdp {
    fn id(&self) -> SocketId {
        SocketId(DATAGRAMS + self.number as i32)
    }

    fn local_address(&self) -> io::Result<SocketAddr> {
        Ok(self.net.net().sockets[self.number].address)
    }

    fn is_bound_to(&self, _: &str) -> bool {
        true
    }

    fn counters(&self) -> &UdpCounters {
        &self.counters
    }

    fn max_batch(&self) -> usize {
        16
    }

    fn receive(
        &mut self,
        deliver: &mut dyn FnMut(SocketAddr, &mut [u8], bool) -> Delivered,
    ) -> io::Result<bool> {
        let arrived = {
            let mut net = self.net.net();
            // An interrupted call reads nothing, and the datagrams remain queued.
            if !net.sockets[self.number].arrived.is_empty()
                && let Some(error) = net.fault(Call::Receive)
            {
                return Err(error);
            }
            net.sockets[self.number].arrived.pop_front()
        };
        let Some((from, mut datagram)) = arrived else { return Ok(false) };
        self.counters.received += 1;
        self.counters.received_bytes += datagram.len() as u64;
        deliver(from, &mut datagram, true);
        Ok(true)
    }

    fn send(&mut self, destination: SocketAddr, contents: &[u8], segment_size: usize) -> Sent {
        let mut net = self.net.net();
        if segment_size + headers(destination) > net.path_mtu {
            self.counters.send_errors += 1;
            return Sent::TooBig;
        }
        if net.is_interrupted() {
            self.counters.send_full += 1;
            net.starve(self.number);
            return Sent::Full;
        }
        for datagram in contents.chunks(segment_size.max(1)) {
            net.send(self.number, destination, datagram);
            self.counters.sent += 1;
            self.counters.sent_bytes += datagram.len() as u64;
        }
        Sent::Done
    }

    fn renew(&mut self) {}

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl Drop for MemoryUdp {
    fn drop(&mut self) {
        let mut net = self.net.net();
        net.sockets[self.number].open = false;
        net.nodes[self.node].open -= 1;
    }
}
