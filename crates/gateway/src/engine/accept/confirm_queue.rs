//! Deferred accept of intercepted connections: their SYNs are held until the hub has connected to
//! the server.
//!
//! ```text
//!   SYN ──▶ SynHeld ──accepted──▶ SYN reinjected ──the listener accepts──▶ Spliced
//!              └──────refused────▶ RST, ICMP or silence
//! ```
//!
//! A repeated SYN replaces the held packet and opens no second stream. If the client has reused its
//! port for a new connection, the newest SYN is reinjected. If the client is gone by then, no
//! connection is accepted, and the stream is reset after a timeout. Data that the server sends
//! first is buffered in the stream.

mod pending_table;

use crate::engine::accept::client_admission::ClientAdmission;
use crate::engine::accept::fallback::Disposition;
use crate::engine::accept::stage::{PendingSyn, TerminalCore, TerminalStage};
use crate::engine::defect::{self, Defect};
use crate::engine::host::HeldSyns;
use crate::engine::limits::client_network::client_network;
use crate::engine::limits::rates::QuotaOwner;
use crate::engine::transfer::connection_info::ConnectionInfo;
use crate::intercept::Syn;
use crate::proxy::{Destination, RefuseReason};
use crate::{ConfirmSection, WhenFull};
use pending_table::{AdmitDecision, Ends, PendingTable};
use relay::{ResetReason, Target};
use std::net::SocketAddr;
use units::{Instant, Span};

/// Maximum number of SYNs that are handled in one round.
const BUDGET: usize = 64;
/// Time allowed for the hub's response beyond `limits.connect`, which bounds the hub's attempts.
const GRACE: Span = Span::from_secs(10);
/// Maximum time from reinjecting a SYN to accepting its connection: a few retransmissions of the
/// kernel's SYN-ACK.
const ENTERING: Span = Span::from_secs(8);

/// The held SYNs, and the gate that holds and reinjects them.
#[derive(Debug)]
pub(crate) struct ConfirmQueue {
    gate: Box<dyn HeldSyns>,
    /// Clients with held SYNs, at most as many as `bounds` permits.
    waiting: PendingTable,
    bounds: ConfirmSection,
    readable: bool,
    closed: bool,
}

impl ConfirmQueue {
    /// A queue for the SYNs that `gate` holds, within `bounds`.
    pub(crate) fn new(gate: Box<dyn HeldSyns>, bounds: ConfirmSection) -> Self {
        Self { gate, waiting: PendingTable::default(), bounds, readable: true, closed: false }
    }

    /// Replaces the gate.
    pub(crate) fn replace_gate(&mut self, gate: Box<dyn HeldSyns>) {
        (self.gate, self.readable) = (gate, true);
    }

    /// Sets the bounds for new SYNs.
    pub(crate) fn set_bounds(&mut self, bounds: ConfirmSection) {
        self.bounds = bounds;
    }

    /// Notes that SYNs can be read.
    pub(crate) fn is_ready(&mut self) {
        self.readable = true;
    }

    /// Reads SYNs and opens streams for them; true when there may be more.
    pub(crate) fn receive_syns(
        &mut self,
        core: &mut TerminalCore,
        now: Instant,
        admission: &mut ClientAdmission,
    ) -> bool {
        if !std::mem::take(&mut self.readable) {
            return false;
        }
        let mut syns = Vec::new();
        let readable = self.gate.receive(BUDGET, &mut |syn| syns.push(syn));
        self.readable = readable.more;
        core.counters.syn_log_overruns += u64::from(readable.lost);
        for syn in syns {
            self.on_syn(core, now, admission, syn);
        }
        readable.more
    }

    /// Ends deferred accept because new connections bypass the gateway. Held SYNs are dropped,
    /// since a client whose SYN is retransmitted past the gateway would receive answers of two
    /// connections.
    pub(crate) fn close(&mut self, core: &mut TerminalCore) {
        self.closed = true;
        self.drop_pending(core);
    }

    /// Drops held SYNs whose servers have not answered: their retransmissions bypass the gateway.
    pub(crate) fn drop_pending(&mut self, core: &mut TerminalCore) {
        for index in self.waiting.all() {
            let Some(connection) = core.connections.get(index) else { continue };
            if matches!(&connection.stage, TerminalStage::SynHeld(pending) if !pending.reinjected) {
                if let Some(key) = connection.key {
                    core.relays.reset(key, ResetReason::Aborted);
                }
                self.forget(core, index);
            }
        }
    }

    /// Whether reinjected SYNs have not led to accepted connections yet.
    pub(crate) fn is_expecting(&self) -> bool {
        self.waiting.expects()
    }

    fn on_syn(
        &mut self,
        core: &mut TerminalCore,
        now: Instant,
        admission: &mut ClientAdmission,
        syn: Syn,
    ) {
        if let Some(index) = self.find(core, ends(syn.client, syn.server))
            && let TerminalStage::SynHeld(pending) = &mut core.connections[index].stage
        {
            pending.syn = syn;
            if pending.reinjected {
                // The kernel's SYN-ACK was lost, or the client has reused its port.
                self.gate.reinject(&pending.syn);
            }
            return;
        }
        // The retransmission of a SYN that was held before the bypass began bypasses the gateway.
        if self.closed || admission.fallback.is_bypassing() {
            return;
        }
        match admission.fallback.disposition() {
            Disposition::Relay => {}
            Disposition::Refuse => {
                self.reject(core, &syn, RefuseReason::NetworkUnreachable);
                return;
            }
            // The retransmission of the SYN bypasses the gateway.
            Disposition::Direct => return,
        }
        if admission.reachability.is_unreachable(syn.server.ip()) {
            self.reject(core, &syn, RefuseReason::NetworkUnreachable);
            return;
        }
        if self.gate.is_forged(&syn) {
            tracing::debug!(client = %syn.client, "SYN with a forged source address dropped");
            return;
        }
        let (client, server) = (syn.client, syn.server);
        let who = (client_network(client.ip(), core.limits.ipv6_prefix), syn.neighbour);
        let may_enter = || admission.admit(core, now, client);
        let verdict = self.waiting.decide(now, who, self.bounds, may_enter);
        let owner = match (verdict, self.bounds.when_full) {
            (AdmitDecision::Hold(owner, reclaimed), _) => {
                if let Some(index) = reclaimed {
                    core.reclaim(index);
                }
                owner
            }
            (AdmitDecision::Full, when_full) => {
                core.counters.limited("confirming");
                match when_full {
                    WhenFull::Early => self.gate.reinject(&syn),
                    WhenFull::Refuse => self.reject(core, &syn, RefuseReason::Limit),
                }
                return;
            }
            (AdmitDecision::OverQuota, _) => {
                self.reject(core, &syn, RefuseReason::Limit);
                return;
            }
        };
        core.counters.syns_held += 1;
        let target = Target { destination: Destination::Address(server), source: Some(client) };
        match core.open_stream(now, &owner, target) {
            Ok(key) => {
                core.counters.opened += 1;
                let pending = PendingSyn { syn, reinjected: false };
                let index = core.add(None, Some(key), TerminalStage::SynHeld(pending));
                let wanted = Some(Destination::Address(server));
                core.connections[index].info = ConnectionInfo::new(now, Some(client), wanted);
                core.hold(now, index, owner.clone(), QuotaOwner::Client(owner.client));
                core.set_due(index, Some(now + core.limits.connect + GRACE));
                self.waiting.insert(now, ends(client, server), who, index);
                if defect::has(Defect::EarlyAccept) {
                    self.accepted(core, now, index);
                }
            }
            Err(reason) => self.reject(core, &syn, reason),
        }
    }

    fn reject(&self, core: &mut TerminalCore, syn: &Syn, reason: RefuseReason) {
        core.counters.refused(reason);
        self.gate.reject(syn, reason);
    }

    /// Reinjects the SYN, because the hub has connected to the server.
    pub(crate) fn accepted(&mut self, core: &mut TerminalCore, now: Instant, index: usize) {
        let TerminalStage::SynHeld(pending) = &mut core.connections[index].stage else { return };
        pending.reinjected = true;
        self.waiting.reinject(ends(pending.syn.client, pending.syn.server));
        self.gate.reinject(&pending.syn);
        // Its connection has a slot although others may have to wait for one.
        core.room_again = true;
        core.set_due(index, Some(now + ENTERING));
    }

    /// Rejects the SYN because the stream is gone. If it was reinjected already, the connection is
    /// reset when it is accepted.
    pub(crate) fn refused(&mut self, core: &mut TerminalCore, index: usize, reason: RefuseReason) {
        let TerminalStage::SynHeld(pending) = &core.connections[index].stage else { return };
        if !pending.reinjected {
            self.gate.reject(&pending.syn, reason);
            self.forget(core, index);
        }
    }

    /// Rejects the SYN because its slot was reclaimed. A client whose SYN was reinjected may still
    /// be accepted, and then needs a new slot.
    pub(crate) fn reclaimed(&mut self, core: &mut TerminalCore, index: usize) {
        let connection = &core.connections[index];
        let TerminalStage::SynHeld(pending) = &connection.stage else { return };
        if let Some(key) = connection.key {
            core.relays.reset(key, ResetReason::Local);
        }
        core.counters.refused(RefuseReason::Limit);
        self.gate.reject(&pending.syn, RefuseReason::Limit);
        self.forget(core, index);
    }

    /// Handles the timeout of the hub's response or of accepting the client.
    pub(crate) fn expired(&mut self, core: &mut TerminalCore, index: usize) {
        let connection = &core.connections[index];
        let TerminalStage::SynHeld(pending) = &connection.stage else { return };
        if let Some(key) = connection.key {
            core.relays.reset(key, ResetReason::TimedOut);
        }
        if pending.reinjected {
            core.counters.syns_abandoned += 1;
            core.set_close_cause(index, "client gone before it was accepted");
        } else {
            tracing::debug!(server = %pending.syn.server, "no response from the hub");
            core.counters.refused(RefuseReason::NetworkUnreachable);
            self.gate.reject(&pending.syn, RefuseReason::NetworkUnreachable);
            core.set_close_cause(index, "no response from the hub");
        }
        self.forget(core, index);
    }

    /// Returns the connection of a newly accepted client whose SYN was reinjected.
    pub(crate) fn claim(
        &mut self,
        core: &TerminalCore,
        client: SocketAddr,
        server: SocketAddr,
    ) -> Option<usize> {
        let ends = ends(client, server);
        let found = self.find(core, ends);
        self.waiting.remove(ends);
        found
    }

    fn forget(&mut self, core: &mut TerminalCore, index: usize) {
        if let TerminalStage::SynHeld(pending) = &core.connections[index].stage {
            self.waiting.remove(ends(pending.syn.client, pending.syn.server));
        }
        core.remove(index);
    }

    fn find(&self, core: &TerminalCore, ends: Ends) -> Option<usize> {
        self.waiting.get(ends).filter(|&index| {
            let connection = core.connections.get(index);
            connection.is_some_and(|found| matches!(found.stage, TerminalStage::SynHeld(_)))
        })
    }
}

fn ends(client: SocketAddr, server: SocketAddr) -> Ends {
    let plain = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
    (plain(client), plain(server))
}
