//! Direct connections, which a terminal makes between two sockets while no hub responds, without
//! acceleration.
//!
//! ```text
//!   DirectConnect ──▶ client ⇄ server ──a socket fails──▶ last bytes to the other, and a reset
//!        └─ no address is reached: refused, as by a hub
//! ```
//!
//! They serve clients that were accepted early or that use a proxy. For all others the kernel
//! bypasses the gateway.

use crate::TerminalSection;
use crate::engine::accept::stage::{TerminalCore, TerminalStage};
use crate::engine::connect::server_connect::{Reached, ServerConnect, reason_of};
use crate::engine::connect::source_addresses::{SourceAddresses, is_out_of_ports};
use crate::engine::host::{Socket, Source};
use crate::engine::limits::rates::GLOBAL;
use crate::engine::resolver::{Answer, Owner, QueryId};
use crate::engine::transfer::connection::{self as transfer, Transfer};
use crate::engine::transfer::socket_pair::SocketPair;
use crate::proxy::{Destination, Handshake, RefuseReason};
use crate::reach::{Destinations, Reach};
use units::Instant;

/// Connector for direct connections.
#[derive(Debug)]
pub(crate) struct Direct {
    /// Permitted destinations. The host's own addresses are denied unless only its own programs can
    /// use the proxies; all are denied if the own addresses are unknown.
    reach: Option<Reach>,
    source_addresses: SourceAddresses,
}

/// A server that the terminal connects to.
#[derive(Debug)]
pub(crate) struct DirectConnect {
    server: ServerConnect,
    /// Bytes that the client has sent already.
    sent: Vec<u8>,
    /// The handshake of a proxy's client, and the replies that it has not taken yet.
    proxy: Option<(Handshake, Vec<u8>)>,
}

impl DirectConnect {
    /// Returns the query for the server's name, while it is not answered in full.
    pub(crate) fn query(&self) -> Option<QueryId> {
        self.server.query()
    }
}

impl Direct {
    /// A connector without permitted destinations.
    pub(crate) fn new() -> Self {
        Self { reach: None, source_addresses: SourceAddresses::default() }
    }

    /// Sets the permitted destinations for the clients of `section`.
    pub(crate) fn guard(&mut self, section: &TerminalSection) {
        let mut proxies = section.socks5.iter().chain(&section.connect);
        let guarded = proxies.any(|address| !address.ip().is_loopback());
        let reach = Reach::hub(&Destinations::default(), guarded);
        self.reach = reach
            .inspect_err(|error| {
                tracing::warn!(%error, "direct connections disabled: own addresses unknown");
            })
            .ok();
    }

    /// Connects to `destination` without a hub. `proxy` is the handshake of a proxy client, which
    /// has sent `pending_input` behind its request.
    pub(crate) fn begin(
        &mut self,
        core: &mut TerminalCore,
        now: Instant,
        index: usize,
        mut destination: Destination,
        proxy: Option<(Handshake, Vec<u8>)>,
        pending_input: Vec<u8>,
    ) {
        core.counters.direct += 1;
        if let Destination::Address(address) = destination {
            destination = core.names.destination(now, address).unwrap_or(destination);
        }
        let port = match &destination {
            Destination::Address(address) => address.port(),
            Destination::Name(_, port) => *port,
        };
        let mut server = ServerConnect::new(now, port, core.limits.connect);
        match destination {
            Destination::Address(address) => server.address(now, address),
            Destination::Name(name, _) => {
                let client = core.connections[index].quota_owner.clone().unwrap_or(GLOBAL);
                let owner = Owner { terminal: "".into(), client };
                let resolution = core.resolver.resolve(now, &owner, &name, index);
                server.resolution(now, &*core.host, resolution);
            }
        }
        let direct = DirectConnect { server, sent: pending_input, proxy };
        core.connections[index].stage = TerminalStage::DirectConnect(Box::new(direct));
        self.connecting(core, now, index);
    }

    /// Handles an answer of the resolver.
    pub(crate) fn answered(&mut self, core: &mut TerminalCore, now: Instant, answer: Answer) {
        let Answer { id, token: index, result } = answer;
        if let Some(connection) = core.connections.get_mut(index)
            && let TerminalStage::DirectConnect(direct) = &mut connection.stage
            && direct.query() == Some(id)
        {
            direct.server.answer(now, &*core.host, result);
            self.connecting(core, now, index);
        }
    }

    /// Continues connecting to the server.
    pub(crate) fn connecting(&mut self, core: &mut TerminalCore, now: Instant, index: usize) {
        let connection = &mut core.connections[index];
        let TerminalStage::DirectConnect(direct) = &mut connection.stage else { return };
        let reached = direct.server.turn(now, |address| {
            let checked = self.reach.as_mut().map(|reach| reach.check(address));
            if checked.is_none_or(|checked| checked.is_err()) {
                tracing::info!(server = %address, "direct connection denied by policy");
                return Err(RefuseReason::Policy);
            }
            core.counters.connect_attempts += 1;
            let own = (None, relay::Owner::default());
            let made = self.source_addresses.connect(now, &mut *core.host, own, address);
            let made = made.and_then(|(server, _)| {
                // All attempts are reported as one source: each event gives all of them a turn.
                server.prepare(&core.limits)?;
                core.host.watch(server.id(), Source::Connection(index))?;
                Ok(server)
            });
            made.map_err(|error| {
                if is_out_of_ports(&error) {
                    core.counters.limited("ports");
                }
                reason_of(&error)
            })
        });
        match reached {
            Reached::Pending(due) => core.set_due(index, Some(due)),
            Reached::Failed(reason) => refuse(core, now, index, reason),
            Reached::Connected(server) => open(core, now, index, server),
        }
    }
}

/// Begins the transfer between the client and the server, which has accepted.
fn open(core: &mut TerminalCore, now: Instant, index: usize, server: Socket) {
    core.cancel_query(index);
    let TerminalStage::DirectConnect(direct) = &mut core.connections[index].stage else { return };
    let reply = match direct.proxy.take() {
        Some((handshake, mut reply)) => {
            reply.extend_from_slice(&handshake.granted(None));
            reply
        }
        None => Vec::new(),
    };
    let pair = SocketPair::new(std::mem::take(&mut direct.sent), reply);
    let transfer = Transfer::Direct(Box::new(transfer::Direct { server: Some(server), pair }));
    core.connections[index].stage = transfer.into();
    core.set_due(index, None);
    core.run_transfer(now, index);
}

/// Refuses the client.
fn refuse(core: &mut TerminalCore, now: Instant, index: usize, reason: RefuseReason) {
    core.cancel_query(index);
    core.counters.refused(reason);
    core.set_close_cause(index, reason.words());
    let TerminalStage::DirectConnect(direct) = &mut core.connections[index].stage else { return };
    match direct.proxy.take() {
        Some((handshake, mut reply)) => {
            reply.extend(handshake.refused(reason, "connecting without the hub"));
            core.send_final_reply(now, index, reply);
        }
        None => core.reset_socket(index),
    }
}
