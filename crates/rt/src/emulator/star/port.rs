//! One interface of a star.

use super::super::carried::Carried;
use super::super::ports::{SendFailures, send_frames};
use super::observe::Observer;
use crate::Clock;
use crate::packet::PacketSocket;
use units::Instant;

/// Packets sent per system call.
const BATCH: usize = 32;

/// One interface.
pub(super) struct Port {
    /// `None`: it was removed.
    pub(super) socket: Option<PacketSocket>,
    pub(super) name: String,
    pub(super) notes: Vec<String>,
    pub(super) received: u64,
    pub(super) kernel_dropped: u64,
    pub(super) pending: usize,
    pub(super) last: Instant,
    leaving: Vec<Carried>,
    leaving_at: Vec<Instant>,
    failures: SendFailures,
}

impl Port {
    pub(super) fn new(socket: PacketSocket) -> Self {
        Self {
            name: socket.interface().to_owned(),
            notes: socket.notes().iter().map(|n| format!("{}: {n}", socket.interface())).collect(),
            socket: Some(socket),
            received: 0,
            kernel_dropped: 0,
            pending: 0,
            last: Instant::ZERO,
            leaving: Vec::new(),
            leaving_at: Vec::new(),
            failures: SendFailures::default(),
        }
    }

    /// Whether the interface is down; it may be removed, which only reading detects.
    pub(super) fn is_down(&self) -> bool {
        self.socket.as_ref().is_some_and(PacketSocket::is_down)
    }

    /// Queues a packet for departure at `at`.
    pub(super) fn leave(
        &mut self,
        at: Instant,
        packet: Carried,
        clock: Clock,
        observer: &mut Observer,
    ) {
        self.leaving.push(packet);
        self.leaving_at.push(at);
        if self.leaving.len() == BATCH {
            self.flush(clock, observer);
        }
    }

    /// Sends the due packets.
    pub(super) fn flush(&mut self, clock: Clock, observer: &mut Observer) {
        let Some(socket) = self.socket.as_ref().filter(|_| !self.leaving.is_empty()) else {
            self.leaving.clear();
            self.leaving_at.clear();
            return;
        };
        send_frames(socket, &self.leaving, &mut self.failures);
        let now = clock.now();
        self.leaving_at.iter().for_each(|&at| observer.lateness.note(now.since(at)));
        self.leaving.clear();
        self.leaving_at.clear();
    }
}

/// Packets that interfaces rejected, and the last error.
pub(super) fn failed(ports: &[Port]) -> (u64, Option<String>) {
    let sum = ports.iter().map(|port| port.failures.packets).sum();
    (sum, ports.iter().rev().find_map(|port| port.failures.last_error.clone()))
}
