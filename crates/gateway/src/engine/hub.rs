//! The role of a hub: connecting the streams of terminals to their servers.
//!
//! ```text
//!   opened, by name or by address ──▶ Connecting ──▶ Spliced
//!                                          └── no address can be reached: refused
//! ```

use crate::engine::connect::measurement::{self, Measurement};
use crate::engine::connect::server_connect::{Reached, ServerConnect, reason_of};
use crate::engine::connect::source_addresses::{SourceAddresses, is_out_of_ports};
use crate::engine::connect::terminal_admission::Admission;
use crate::engine::defect::{self, Defect};
use crate::engine::forward::PacketDenied;
use crate::engine::host::Source;
use crate::engine::limits::client_network::{self, client_network};
use crate::engine::limits::rates::QuotaOwner;
use crate::engine::limits::slots::reserve::is_out_of_descriptors;
use crate::engine::pair::Role;
use crate::engine::peers::classes::Classes;
use crate::engine::peers::family_watch::FamilyWatch;
use crate::engine::peers::peer::{Peer, StreamKey};
use crate::engine::peers::scheduler_notifier::SchedulerNotifier;
use crate::engine::resolver::QueryId;
use crate::engine::resolver::{Answer, Owner};
use crate::engine::transfer::connection::{Stage, Transfer};
use crate::engine::transfer::connection_info::ConnectionInfo;
use crate::engine::transfer::connections::Core;
use crate::forward::Homes;
use crate::forward::packet::Ends;
use crate::proxy::RefuseReason;
use crate::{Commitment, HubSection, SourceMode};
use relay::Service;
use relay::{Destination, DisconnectReason, Event, MEASUREMENT, NAME_SERVERS, ResetReason, Target};
use std::net::IpAddr;
use std::net::SocketAddr;
use units::Instant;

/// A hub's connections.
pub(crate) type HubCore = Core<HubStage>;

/// Stage of a hub's connection.
#[derive(Debug)]
pub(crate) enum HubStage {
    /// The server's name is being resolved, or the server is being connected to.
    Connecting(Box<HubConnect>),
    /// The terminal measures the path.
    Measurement(Box<Measurement>),
    /// Bytes are moved.
    Transfer(Transfer),
}

impl From<Transfer> for HubStage {
    fn from(transfer: Transfer) -> Self {
        Self::Transfer(transfer)
    }
}

impl Stage for HubStage {
    fn transfer(&self) -> Option<&Transfer> {
        if let Self::Transfer(transfer) = self { Some(transfer) } else { None }
    }

    fn transfer_mut(&mut self) -> Option<&mut Transfer> {
        if let Self::Transfer(transfer) = self { Some(transfer) } else { None }
    }

    fn query(&self) -> Option<QueryId> {
        if let Self::Connecting(onward) = self { onward.server.query() } else { None }
    }

    fn takes_socket_errors(&self) -> bool {
        self.transfer().is_some_and(Transfer::takes_socket_errors)
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Connecting(onward) if onward.server.is_resolving() => "resolving",
            Self::Connecting(_) => "connecting",
            Self::Measurement(_) => "measuring",
            Self::Transfer(transfer) => transfer.name(),
        }
    }
}

/// A server that a hub connects to.
#[derive(Debug)]
pub(crate) struct HubConnect {
    server: ServerConnect,
    /// The client's own address, from which to connect.
    source: Option<SocketAddr>,
    /// The owner of the client's connections.
    owner: relay::Owner,
    /// The servers are the hub's name servers, to which the rules for destinations do not apply.
    is_lookup: bool,
}

/// State of a hub.
#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) source: SourceMode,
    pub(crate) source_addresses: SourceAddresses,
    pub(crate) admission: Admission,
    /// Name servers for terminals' DNS forwarders.
    pub(crate) name_servers: Vec<SocketAddr>,
    /// Notifier of a MAC scheduler, if one is configured.
    pub(crate) scheduler: Option<SchedulerNotifier>,
    pub(crate) classes: Classes,
    /// Rates that its plans commit.
    pub(crate) commitments: Vec<Commitment>,
    /// Watch on the address families that it reaches.
    pub(crate) families: FamilyWatch,
}

impl Hub {
    /// A hub as `config` has it.
    pub(crate) fn new(config: &HubSection, admission: Admission) -> Self {
        let scheduler =
            config.mac.as_ref().and_then(|path| SchedulerNotifier::new(path, &config.id));
        let (classes, commitments) = (Classes::new(&config.classes), Vec::new());
        let (source, families) = (config.source, FamilyWatch::default());
        let source_addresses = SourceAddresses::new(&config.source_addresses);
        let name_servers = config.name_servers.clone();
        Self {
            source,
            source_addresses,
            admission,
            name_servers,
            classes,
            scheduler,
            commitments,
            families,
        }
    }

    fn opened(&mut self, core: &mut HubCore, now: Instant, key: StreamKey, target: Target) {
        core.counters.opened += 1;
        let terminal = || core.relays.describe(key.peer);
        tracing::debug!(terminal = %terminal(), server = %target.destination, "opened");
        if core.draining {
            core.counters.refused(RefuseReason::Other);
            core.relays.refuse(key, RefuseReason::Other);
            return;
        }
        let admitted = self.admission.admit(core, now, key.peer, target.source);
        reset_reclaimed(core);
        let Some((quota_owner, slot_owner)) = admitted else {
            core.counters.refused(RefuseReason::Limit);
            core.relays.refuse(key, RefuseReason::Limit);
            return;
        };
        core.relays.set_client(key, target.source);
        let is_lookup =
            matches!(&target.destination, Destination::Name(name, _) if name == NAME_SERVERS);
        let client = target.source.filter(|client| {
            !is_lookup
                && self.source == SourceMode::Client
                && self.admission.may_speak_for(Some(&quota_owner), client.ip())
        });
        if self.source == SourceMode::Client
            && target.source.is_some()
            && client.is_none()
            && !is_lookup
        {
            core.counters.source_fallbacks += 1;
        }
        if let Some(service) = self.classes.of_stream(&target.destination, target.source) {
            core.relays.set_service(key, service);
        }
        if is_lookup && self.name_servers.is_empty() {
            core.counters.refused(RefuseReason::Policy);
            core.relays.refuse(key, RefuseReason::Policy);
            return;
        }
        let info = ConnectionInfo::new(now, target.source, Some(target.destination.clone()));
        let port = match &target.destination {
            Destination::Address(address) => address.port(),
            Destination::Name(_, port) => *port,
        };
        let server = ServerConnect::new(now, port, core.limits.connect);
        let stream_owner = client_network::owner(target.source, core.limits.ipv6_prefix);
        let onward = HubConnect { server, source: client, owner: stream_owner, is_lookup };
        let index = core.add(None, Some(key), HubStage::Connecting(Box::new(onward)));
        core.connections[index].info = info;
        core.hold(now, index, slot_owner, quota_owner.clone());
        let HubStage::Connecting(onward) = &mut core.connections[index].stage else { return };
        match target.destination {
            Destination::Name(name, _) if name == MEASUREMENT => {
                core.counters.connected += 1;
                core.relays.accept(key);
                let stage = HubStage::Measurement(Box::new(Measurement::new()));
                core.connections[index].stage = stage;
                core.set_due(index, Some(now + measurement::MAX_TIME));
                return core.queue(index);
            }
            Destination::Address(address) => onward.server.address(now, address),
            Destination::Name(..) if is_lookup => {
                onward.server.addresses(now, &self.name_servers);
            }
            Destination::Name(name, _) => {
                let owner = owner(quota_owner, target.source, core.limits.ipv6_prefix);
                let resolution = core.resolver.resolve(now, &owner, &name, index);
                onward.server.resolution(now, &*core.host, resolution);
            }
        }
        self.connecting(core, now, index);
    }

    /// Continues connecting to the server.
    fn connecting(&mut self, core: &mut HubCore, now: Instant, index: usize) {
        let connection = &mut core.connections[index];
        let HubStage::Connecting(onward) = &mut connection.stage else { return };
        let HubConnect { server, source, owner, is_lookup } = &mut **onward;
        let reached = server.turn(now, |address| {
            // The policy is applied to the address that is connected to, not to the name.
            if !*is_lookup
                && !self.admission.may_reach(now, connection.quota_owner.as_ref(), address)
            {
                return Err(RefuseReason::Policy);
            }
            core.counters.connect_attempts += 1;
            let started =
                self.source_addresses.connect(now, &mut *core.host, (*source, *owner), address);
            let started = started.and_then(|(socket, own)| {
                core.counters.source_fallbacks += u64::from(own && source.is_some());
                // The same source: news of any of the sockets is a turn for all of them.
                // An attempt that is given up when its server has just accepted is reset, not
                // closed.
                if !defect::has(Defect::OrderlyAbandonment) {
                    socket.prepare(&core.limits)?;
                }
                core.host.watch(socket.id(), Source::Connection(index))?;
                Ok(socket)
            });
            started.map_err(|error| {
                tracing::debug!(%address, %error, "not connected");
                if is_out_of_descriptors(&error) {
                    // This connection is refused; the next one may reclaim a slot.
                    core.slots.descriptors_ran_out(now);
                    core.slots.restore_reserve();
                    core.counters.limited("descriptors");
                } else if is_out_of_ports(&error) {
                    core.counters.limited("ports");
                }
                reason_of(&error)
            })
        });
        let no_address = server.has_no_address();
        match reached {
            Reached::Pending(due) => core.set_due(index, Some(due)),
            Reached::Connected(socket) => {
                core.cancel_query(index);
                core.connections[index].socket = Some(socket);
                self.connected(core, index);
            }
            Reached::Failed(reason) => {
                if reason == RefuseReason::Limit && no_address {
                    core.counters.limited("names");
                }
                refuse(core, index, reason);
            }
        }
    }

    fn connected(&mut self, core: &mut HubCore, index: usize) {
        core.counters.connected += 1;
        if let Some(key) = core.connections[index].key {
            core.relays.accept(key);
        }
        core.splice(index, Vec::new(), Vec::new());
    }
}

impl Role for Hub {
    type Stage = HubStage;

    const IS_HUB: bool = true;

    /// Announces to terminals the address families that are reached, when they have changed.
    fn begin_round(&mut self, core: &mut HubCore, now: Instant) -> bool {
        if let Some(families) = self.families.poll_change(now, &*core.host) {
            core.relays.set_families(families);
        }
        false
    }

    fn on_event(&mut self, core: &mut HubCore, now: Instant, peer: Peer, event: Event) {
        let key = |stream| StreamKey { peer, stream };
        match event {
            Event::Connected => {
                tracing::info!(terminal = %core.relays.describe(peer), "terminal connected");
            }
            Event::Disconnected { reason } => {
                let terminal = core.relays.describe(peer);
                if reason == DisconnectReason::Closed {
                    tracing::info!(%terminal, "terminal session closed");
                } else {
                    tracing::warn!(%terminal, ?reason, "terminal session lost, connections reset");
                }
                for index in core.connections_to(peer) {
                    core.counters.lost_with_peer += 1;
                    core.set_close_cause(index, "terminal session lost");
                    core.detach(index);
                    core.reset_socket(index);
                }
            }
            Event::Opened { stream, target } => self.opened(core, now, key(stream), target),
            // Hubs send these.
            Event::Accepted { .. } | Event::Refused { .. } => {}
            Event::Readable { stream } | Event::Writable { stream } => {
                if let Some(index) = core.connection_of(key(stream))
                    && let HubStage::Transfer(_) | HubStage::Measurement(_) =
                        core.connections[index].stage
                {
                    core.queue(index);
                }
            }
            Event::Ended { stream } => {
                core.stream_ended(key(stream));
                if let Some(index) = core.connection_of(key(stream))
                    && let HubStage::Measurement(_) = core.connections[index].stage
                {
                    core.queue(index);
                }
            }
            Event::Ending { stream, reason } => {
                if let Some(index) = core.connection_of(key(stream)) {
                    let terminal = || core.relays.describe(peer);
                    tracing::debug!(terminal = %terminal(), %stream, ?reason, "stream reset by the terminal");
                    core.set_close_cause(index, "reset by the terminal");
                    core.stream_ending(index);
                    // Attempts to connect, and octets, are not needed any more.
                    if let HubStage::Connecting(_) | HubStage::Measurement(_) =
                        core.connections[index].stage
                    {
                        core.abort(index, ResetReason::Aborted);
                    }
                }
            }
            Event::Reset { stream, reason } => {
                if let Some(index) = core.connection_of(key(stream)) {
                    let terminal = || core.relays.describe(peer);
                    tracing::debug!(terminal = %terminal(), %stream, ?reason, "stream reset by the terminal");
                    core.set_close_cause(index, "reset by the terminal");
                    core.stream_reset(now, index);
                }
            }
            Event::Released { stream } => {
                // The end of the stream may still have to be passed on.
                if let Some(index) = core.connection_of(key(stream)) {
                    core.queue(index);
                }
            }
        }
    }

    fn on_answer(&mut self, core: &mut HubCore, now: Instant, answer: Answer) {
        let Answer { id, token: index, result } = answer;
        if let Some(connection) = core.connections.get_mut(index)
            && let HubStage::Connecting(onward) = &mut connection.stage
            && onward.server.query() == Some(id)
        {
            onward.server.answer(now, &*core.host, result);
            self.connecting(core, now, index);
        }
    }

    fn run(&mut self, core: &mut HubCore, now: Instant, index: usize) {
        match core.connections[index].stage {
            HubStage::Connecting(_) => self.connecting(core, now, index),
            HubStage::Measurement(_) => measure(core, now, index),
            HubStage::Transfer(_) => core.run_transfer(now, index),
        }
    }

    fn on_deadline(&mut self, core: &mut HubCore, now: Instant, index: usize) {
        match core.connections[index].stage {
            HubStage::Connecting(_) => self.connecting(core, now, index),
            HubStage::Measurement(_) => core.abort(index, ResetReason::TimedOut),
            HubStage::Transfer(_) => core.on_transfer_deadline(now, index),
        }
    }

    fn end_round(&mut self, core: &mut HubCore, now: Instant) {
        if let Some(scheduler) = &mut self.scheduler {
            scheduler.send_due(now, &mut core.slots.table, &mut core.counters);
        }
    }

    fn poll_timeout(&self, core: &HubCore, _: Instant) -> Option<Instant> {
        let scheduler = self.scheduler.as_ref().map(|one| one.poll_timeout(&core.slots.table));
        scheduler.into_iter().chain([self.families.next()]).min()
    }

    fn drain(&mut self, core: &mut HubCore, _: Instant) {
        core.draining = true;
    }

    fn peer_for(&self, core: &HubCore, homes: &Homes, ends: &Ends) -> Option<Peer> {
        core.relays.terminal_for_network(|names| homes.home_of(ends.destination.ip(), names))
    }

    fn service_of(&self, packet: &[u8], ends: &Ends) -> (IpAddr, Option<Service>) {
        (ends.destination.ip(), self.classes.of_packet(packet, ends))
    }

    fn admit_packet(
        &mut self,
        now: Instant,
        homes: &Homes,
        name: &str,
        ends: &Ends,
    ) -> Result<(), PacketDenied> {
        if !homes.is_home(name, ends.source) {
            return Err(PacketDenied::ForeignSource);
        }
        let quota_owner = QuotaOwner::Terminal(name.into());
        match self.admission.may_carry(now, &quota_owner, ends) {
            true => Ok(()),
            false => Err(PacketDenied::Policy),
        }
    }

    fn commitments(&self) -> &[Commitment] {
        &self.commitments
    }
}

/// Gives a stream of a measurement its turn.
fn measure(core: &mut HubCore, now: Instant, index: usize) {
    let connection = &mut core.connections[index];
    let (HubStage::Measurement(one), Some(key)) = (&mut connection.stage, connection.key) else {
        return;
    };
    match one.turn(&mut core.relays, now, key, connection.stream_ended) {
        measurement::Turn::Wait => core.slots.table.touch(now, index),
        measurement::Turn::More => core.queue(index),
        measurement::Turn::Done => {
            core.counters.completed += 1;
            core.finish(index);
        }
        measurement::Turn::Unknown => core.abort(index, ResetReason::Protocol),
    }
}

/// Returns the quota owner of a name lookup: the client of a terminal if the terminal sends its
/// address, otherwise the terminal.
fn owner(terminal: QuotaOwner, client: Option<SocketAddr>, ipv6_prefix: u32) -> Owner {
    let name = match &terminal {
        QuotaOwner::Terminal(name) => std::sync::Arc::clone(name),
        QuotaOwner::Client(_) | QuotaOwner::Neighbour(_) => "".into(),
    };
    let client = client.map(|client| client_network(client.ip(), ipv6_prefix));
    Owner { terminal: name, client: client.map_or(terminal, QuotaOwner::Client) }
}

fn refuse(core: &mut HubCore, index: usize, reason: RefuseReason) {
    core.counters.refused(reason);
    core.set_close_cause(index, reason.words());
    if let Some(key) = core.connections[index].key {
        core.relays.refuse(key, reason);
    }
    core.remove(index);
}

/// Resets the connections whose slots were reclaimed.
fn reset_reclaimed(core: &mut HubCore) {
    while let Some(index) = core.next_reclaimed() {
        if let HubStage::Connecting(_) = core.connections[index].stage {
            refuse(core, index, RefuseReason::Limit);
        } else {
            core.abort(index, ResetReason::Local);
        }
    }
}
