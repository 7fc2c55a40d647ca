//! Establishment of TCP connections: clients of listeners, SYNs in a packet filter, and connections
//! of gateways to servers.
//!
//! ```text
//!   proxy's client ── SYN ──▶ listener's backlog ──▶ accept
//!   intercepted ──── SYN ──▶ packet filter ─┬─ bypass ──▶ the server itself
//!                     ▲                      ├─ early ───▶ transparent listener's backlog
//!                     └─ 1, 2, 4, … s        └─ held ────▶ the gateway: reinject, or reject
//! ```

use super::tcp::{Conn, Owner};
use super::{Answer, Event, HELD_SYNS, LISTENERS, NO_TASK, Net, id_of};
use crate::engine::{Kind, LocalAddress, SocketId};
use crate::intercept::Syn;
use relay::RefuseReason;
use std::io;
use std::net::{IpAddr, SocketAddr};
use units::Span;

/// Time for which a host retransmits a SYN (tcp(7), `tcp_syn_retries`).
const SYN_TIMEOUT: Span = Span::from_secs(127);
/// Number of retransmissions of a SYN in that time.
const SYN_RETRIES: u32 = 6;
/// Length of a listener's backlog.
const BACKLOG: usize = 128;

/// Returns the address of gateways towards `server`.
pub(in crate::simulation) fn gateway_address(server: SocketAddr) -> SocketAddr {
    match server.is_ipv6() {
        true => SocketAddr::from(([0x2001, 0xdb8, 9, 0, 0, 0, 0, 1], 40_000)),
        false => SocketAddr::from(([10, 9, 0, 1], 40_000)),
    }
}

impl Net {
    fn delay(&mut self) -> Span {
        Span::from_micros(100 + self.rng.below(2_000))
    }

    /// Returns the open listener of that kind at a node's gateway.
    fn listener(&self, node: usize, kind: Kind) -> Option<usize> {
        self.listeners.iter().position(|it| it.open && it.node == node && it.kind == kind)
    }

    /// Connects the client of `task` to a proxy of the gateway `node`.
    pub(in crate::simulation) fn dial(
        &mut self,
        task: usize,
        from: SocketAddr,
        node: usize,
        kind: Kind,
    ) -> SocketId {
        let (delay, conn) = (self.delay(), self.conns.len());
        let owners = [Owner::Task(task), Owner::Node(node)];
        let to = SocketAddr::from(([127, 0, 0, 1], 1));
        let found = self.listener(node, kind);
        let to = found.map_or(to, |listener| self.listeners[listener].address);
        let error = found.is_none().then_some(libc::ECONNREFUSED);
        let outcome = (delay * 2, error);
        self.conns.push(Conn::new(self.now, (owners, [from, to]), delay, self.room, outcome));
        if let Some(listener) = found {
            self.schedule(self.now + delay, Event::Accept(conn));
            self.listeners[listener].backlog.push_back(conn);
        }
        self.touch(conn);
        id_of(conn, 0)
    }

    /// Connects the client of `task` to `server`, through the packet filter of `node`.
    pub(in crate::simulation) fn dial_through(
        &mut self,
        task: usize,
        (from, server): (SocketAddr, SocketAddr),
        node: usize,
    ) -> SocketId {
        let (delay, conn) = (self.delay(), self.conns.len());
        let owners = [Owner::Task(task), Owner::Node(node)];
        let outcome = (SYN_TIMEOUT, Some(libc::ETIMEDOUT));
        self.conns.push(Conn::new(self.now, (owners, [from, server]), delay, self.room, outcome));
        self.schedule(self.now + delay, Event::Syn(conn, 0));
        self.touch(conn);
        id_of(conn, 0)
    }

    /// Handles a client's SYN at a packet filter; `again` is the number of its retransmissions.
    pub(super) fn on_syn(&mut self, conn: usize, again: u32) {
        let its = &self.conns[conn];
        let Owner::Node(node) = its.ends[1].owner else { return };
        if !its.awaits_answer() || !its.is_open(0) && its.ends[0].vanished.is_none() {
            return;
        }
        let (client, server) = (its.ends[0].address, its.ends[1].address);
        if again < SYN_RETRIES {
            let after = Span::from_secs(1 << again);
            self.schedule(self.now + after, Event::Syn(conn, again + 1));
        }
        let filter = &self.nodes[node].filter;
        let held = filter.can_hold && (filter.confirm || filter.deferred.contains(&server));
        if filter.bypass {
            self.pass_on(conn, server);
        } else if held {
            if let Some(syn) = syn(client, server) {
                self.nodes[node].syns.push_back(syn);
                self.report(node, SocketId(HELD_SYNS + node as i32));
            }
        } else {
            self.enter(conn, node);
        }
    }

    /// Handles a SYN at the transparent listener of `node`.
    fn enter(&mut self, conn: usize, node: usize) {
        let Some(listener) = self.listener(node, Kind::Transparent) else {
            self.conns[conn].answer(self.now, Some(libc::ECONNREFUSED));
            self.touch(conn);
            return;
        };
        // A host that has vanished never completes the handshake; with a full backlog the SYN is
        // ignored.
        let gone = self.conns[conn].ends[0].vanished.is_some();
        let backlog = &mut self.listeners[listener].backlog;
        if gone || backlog.len() >= BACKLOG {
            return;
        }
        backlog.push_back(conn);
        self.conns[conn].answer(self.now, None);
        self.schedule(self.now, Event::Accept(conn));
        self.touch(conn);
    }

    /// Forwards a SYN to its server, which is the task's own.
    fn pass_on(&mut self, conn: usize, server: SocketAddr) {
        let (answer, task) = self.server(server);
        let error = match answer {
            Answer::Accept => None,
            Answer::Refuse => Some(libc::ECONNREFUSED),
            Answer::Unreachable => Some(libc::ENETUNREACH),
            Answer::Discard => return,
        };
        let accepts = answer == Answer::Accept && self.conns[conn].ends[0].vanished.is_none();
        self.conns[conn].ends[1].owner = Owner::Task(if accepts { task } else { NO_TASK });
        // The connection is between the two hosts, without a gateway.
        self.conns[conn].ends.iter_mut().for_each(|end| end.resets = true);
        self.conns[conn].answer(self.now, error);
        if accepts {
            self.schedule(self.now, Event::Accept(conn));
        }
        self.touch(conn);
    }

    fn server(&self, address: SocketAddr) -> (Answer, usize) {
        self.servers.get(&address).copied().unwrap_or((Answer::Refuse, NO_TASK))
    }

    /// Returns the connection of `node` whose SYN is held, if its client still waits.
    fn held(&self, syn: &Syn, node: usize) -> Option<usize> {
        self.conns.iter().rposition(|conn| {
            let [client, server] = &conn.ends;
            let is_its = (client.address, server.address) == (syn.client, syn.server);
            is_its && server.owner == Owner::Node(node) && conn.awaits_answer() && conn.is_open(0)
        })
    }

    /// Reinjects a held SYN, which arrives at the listener of `node`.
    pub(in crate::simulation) fn reinject(&mut self, node: usize, syn: &Syn) {
        if let Some(conn) = self.held(syn, node) {
            self.enter(conn, node);
        }
    }

    /// Rejects a held SYN at `node`.
    pub(in crate::simulation) fn reject(&mut self, node: usize, syn: &Syn, reason: RefuseReason) {
        let error = match reason {
            RefuseReason::ConnectionRefused | RefuseReason::Limit | RefuseReason::Other => {
                libc::ECONNREFUSED
            }
            RefuseReason::TimedOut => return,
            // ICMP "prohibited" has this error at the connecting host (icmp(7),
            // `icmp_err_convert`).
            RefuseReason::Policy | RefuseReason::HostUnreachable | RefuseReason::NameNotFound => {
                libc::EHOSTUNREACH
            }
            RefuseReason::NetworkUnreachable => libc::ENETUNREACH,
        };
        if let Some(conn) = self.held(syn, node) {
            self.conns[conn].answer(self.now, Some(error));
            self.touch(conn);
        }
    }

    /// Connects a gateway to a server from the address `local`.
    ///
    /// # Errors
    /// Returns the kernel's error if no descriptor or no route is available.
    pub(in crate::simulation) fn connect(
        &mut self,
        node: usize,
        local: LocalAddress,
        server: SocketAddr,
    ) -> io::Result<SocketId> {
        let (answer, task) = self.server(server);
        if answer == Answer::Unreachable {
            return Err(io::Error::from_raw_os_error(libc::ENETUNREACH));
        }
        self.take_descriptor(node)?;
        let (delay, conn) = (self.delay(), self.conns.len());
        let outcome = match answer {
            Answer::Accept => (delay * 2, None),
            Answer::Refuse | Answer::Unreachable => (delay * 2, Some(libc::ECONNREFUSED)),
            Answer::Discard => (SYN_TIMEOUT, Some(libc::ETIMEDOUT)),
        };
        // A server that does not accept never has the connection.
        let task = if answer == Answer::Accept { task } else { NO_TASK };
        let owners = [Owner::Node(node), Owner::Task(task)];
        let own = match local {
            LocalAddress::Any => gateway_address(server),
            LocalAddress::Own(address) => SocketAddr::new(address, gateway_address(server).port()),
            LocalAddress::Client(client) => client,
        };
        self.conns.push(Conn::new(self.now, (owners, [own, server]), delay, self.room, outcome));
        if answer == Answer::Accept {
            self.schedule(self.now + delay, Event::Accept(conn));
        }
        self.touch(conn);
        Ok(id_of(conn, 0))
    }

    /// Handles the end of the handshake at the host that was connected to.
    pub(super) fn on_arrival(&mut self, conn: usize) {
        match self.conns[conn].ends[1].owner {
            Owner::Node(node) => {
                let its = |listener: &super::Listener| listener.backlog.contains(&conn);
                if let Some(listener) = self.listeners.iter().position(its) {
                    self.report(node, SocketId(LISTENERS + listener as i32));
                }
            }
            Owner::Task(task) => {
                self.arrivals.entry(task).or_default().push_back(conn);
                self.notify(conn, 1);
            }
        }
        self.touch(conn);
    }

    /// Returns the next established connection to a task's server.
    pub(in crate::simulation) fn accepted(&mut self, task: usize) -> Option<SocketId> {
        let conn = self.arrivals.get_mut(&task)?.pop_front()?;
        Some(id_of(conn, 1))
    }

    /// Closes a gateway's listener; the kernel resets the clients in its backlog.
    pub(in crate::simulation) fn close_listener(&mut self, listener: usize) {
        self.listeners[listener].open = false;
        for conn in std::mem::take(&mut self.listeners[listener].backlog) {
            let node = self.listeners[listener].node;
            self.nodes[node].open += 1;
            self.close(id_of(conn, 1), true);
        }
    }

    /// Disconnects the host of `id`, which sends and receives nothing from then on.
    pub(in crate::simulation) fn vanish(&mut self, id: SocketId) {
        let (conn, end) = super::conn_of(id);
        self.conns[conn].ends[end].vanished = Some(self.now);
        self.touch(conn);
    }
}

/// Returns a SYN with a partial checksum, as network interfaces with checksum offload leave it.
fn syn(client: SocketAddr, server: SocketAddr) -> Option<Syn> {
    let (mut packet, addresses) = match (client.ip(), server.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let header = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0];
            (header, [from.octets(), to.octets()].concat())
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let header = vec![0x60, 0, 0, 0, 0, 20, 6, 64];
            (header, [from.octets(), to.octets()].concat())
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return None,
    };
    packet.extend(&addresses);
    let words = addresses.chunks_exact(2);
    let sum: u32 = words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let sum = sum + 6 + 20;
    let pseudo = (sum & 0xffff) + (sum >> 16);
    let checksum = ((pseudo & 0xffff) + (pseudo >> 16)) as u16;
    packet.extend(client.port().to_be_bytes());
    packet.extend(server.port().to_be_bytes());
    packet.extend([0, 0, 0, 7, 0, 0, 0, 0, 0x50, 0x02, 0xff, 0xff]);
    packet.extend(checksum.to_be_bytes());
    packet.extend([0, 0]);
    Syn::parse(&packet)
}
