//! Connections that a terminal makes by itself while no hub answers: two sockets, without
//! acceleration, which is better than nothing.
//!
//! ```text
//!   Connecting ──▶ Open: client ⇄ server ──one breaks──▶ Breaking: the other gets what came
//!        └─ refused, as the hub would have told           before, and a reset
//! ```
//!
//! A client that was answered early, or that asked a proxy, cannot go its ordinary way any more;
//! all others the kernel lets pass.

use crate::TerminalSection;
use crate::engine::accept::proxy_client::say_farewell;
use crate::engine::connect::server_connect::{Connecting, Reached};
use crate::engine::host::{Close, Socket, Source, TcpSocket};
use crate::engine::hub::reason_of;
use crate::engine::limits::rates::TOGETHER;
use crate::engine::resolver::{Answer, Owner, QueryId};
use crate::engine::single::pair::{BREAKING_LOOKS, End, LastBytes, Tally};
use crate::engine::transfer::connection::Phase;
use crate::engine::transfer::connections::Core;
use crate::engine::transfer::pipe::{Broken, Pipe};
use crate::engine::transfer::unresponsive;
use crate::proxy::{Destination, Handshake, RefuseReason};
use crate::reach::{Destinations, Reach};
use units::{Instant, Span};

/// Bytes that one connection moves in each direction before others have their turn.
const BUDGET: usize = 64 * 1024;

/// What makes them.
#[derive(Debug)]
pub(crate) struct Direct {
    /// Where they may go: not to what runs on this machine for itself, unless only this machine's
    /// own programs ask. Nowhere when it is not known what that is.
    reach: Option<Reach>,
}

/// One of them; its client's socket stands with the connection.
#[derive(Debug)]
pub(crate) struct Bypass {
    stage: Stage,
    server: Option<Socket>,
    /// From the client, and to it.
    up: Pipe,
    down: Pipe,
    /// How the client of a proxy is told, and what it is told before.
    proxy: Option<(Handshake, Vec<u8>)>,
    /// Since when the server was seen to owe TCP an answer.
    owing: Option<Instant>,
}

impl Bypass {
    /// The query for the server's name, while its answer is waited for.
    pub(crate) fn query(&self) -> Option<QueryId> {
        match &self.stage {
            Stage::Connecting(server) => server.query(),
            Stage::Open | Stage::Breaking { .. } => None,
        }
    }

    /// Whether the server has left TCP without an answer for `longest`.
    pub(crate) fn server_has_vanished(&mut self, now: Instant, longest: Span) -> bool {
        let Some(server) = self.server.as_ref().filter(|_| matches!(self.stage, Stage::Open))
        else {
            return false;
        };
        unresponsive::has_vanished(now, server.unanswered_for(), &mut self.owing, longest)
    }
}

#[derive(Debug)]
enum Stage {
    Connecting(Connecting),
    Open,
    /// A socket broke: the other gets what came before that, and then a reset.
    Breaking {
        towards_client: bool,
        last: LastBytes,
    },
}

impl Drop for Bypass {
    /// A connection that is given up is never ended in good order.
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.close(Close::Reset);
        }
    }
}

impl Direct {
    /// For nobody yet.
    pub(crate) fn new() -> Self {
        Self { reach: None }
    }

    /// For the clients of `section` from here on.
    pub(crate) fn guard(&mut self, section: &TerminalSection) {
        let mut proxies = section.socks5.iter().chain(&section.connect);
        let guarded = proxies.any(|address| !address.ip().is_loopback());
        let reach = Reach::hub(&Destinations::default(), guarded);
        self.reach = reach
            .inspect_err(|error| {
                tracing::warn!(%error, "no connection will be made without a hub");
            })
            .ok();
    }

    /// The connection, whose client wants `destination`, goes by itself from here on. A client of
    /// a proxy is told by `proxy` what becomes of it; it has sent `kept` already.
    pub(crate) fn begin(
        &mut self,
        core: &mut Core,
        now: Instant,
        index: usize,
        destination: Destination,
        proxy: Option<(Handshake, Vec<u8>)>,
        kept: Vec<u8>,
    ) {
        core.counters.direct += 1;
        let port = match &destination {
            Destination::Address(address) => address.port(),
            Destination::Name(_, port) => *port,
        };
        let mut server = Connecting::new(now, port, core.limits.connect);
        match destination {
            Destination::Address(address) => server.address(now, address),
            Destination::Name(name, _) => {
                let client = core.connections[index].holder.clone().unwrap_or(TOGETHER);
                let owner = Owner { terminal: "".into(), client };
                let resolution = core.resolver.resolve(now, &owner, &name, index);
                server.resolution(now, &*core.host, resolution);
            }
        }
        let bypass = Bypass {
            stage: Stage::Connecting(server),
            server: None,
            up: Pipe::with(kept),
            down: Pipe::new(),
            proxy,
            owing: None,
        };
        core.connections[index].phase = Phase::Direct(Box::new(bypass));
        self.connecting(core, now, index);
    }

    /// An answer of the resolver.
    pub(crate) fn answered(&mut self, core: &mut Core, now: Instant, answer: Answer) {
        let Answer { id, token: index, result } = answer;
        if let Some(connection) = core.connections.get_mut(index)
            && let Phase::Direct(bypass) = &mut connection.phase
            && let Stage::Connecting(server) = &mut bypass.stage
            && server.query() == Some(id)
        {
            server.answer(now, &*core.host, result);
            self.connecting(core, now, index);
        }
    }

    /// Goes on with connecting to the server.
    fn connecting(&mut self, core: &mut Core, now: Instant, index: usize) {
        let Phase::Direct(bypass) = &mut core.connections[index].phase else { return };
        let Stage::Connecting(server) = &mut bypass.stage else { return };
        let reached = server.turn(now, |address| {
            let judged = self.reach.as_mut().map(|reach| reach.judge(address));
            if judged.is_none_or(|judged| judged.is_err()) {
                tracing::info!(server = %address, "not reached directly");
                return Err(RefuseReason::Policy);
            }
            core.counters.connect_attempts += 1;
            let made = core.host.connect(None, address).and_then(|server| {
                // The same source: news of any of the sockets is a turn for all of them.
                server.prepare(&core.limits)?;
                core.host.watch(server.id(), Source::Connection(index))?;
                Ok(server)
            });
            made.map_err(|error| reason_of(&error))
        });
        match reached {
            Reached::Pending(due) => core.set_due(index, Some(due)),
            Reached::Failed(reason) => refuse(core, now, index, reason),
            Reached::Connected(server) => open(core, now, index, server),
        }
    }

    /// A turn of the connection.
    pub(crate) fn turn(&mut self, core: &mut Core, now: Instant, index: usize) {
        let Phase::Direct(bypass) = &mut core.connections[index].phase else { return };
        match &mut bypass.stage {
            Stage::Connecting(_) => self.connecting(core, now, index),
            Stage::Open => turn_open(core, now, index),
            Stage::Breaking { .. } => turn_breaking(core, now, index),
        }
    }

    /// The time for an answer is over.
    pub(crate) fn expired(&mut self, core: &mut Core, now: Instant, index: usize) {
        let Phase::Direct(bypass) = &mut core.connections[index].phase else { return };
        match &mut bypass.stage {
            Stage::Connecting(_) => self.connecting(core, now, index),
            Stage::Open => {}
            Stage::Breaking { .. } => turn_breaking(core, now, index),
        }
    }
}

/// The server has answered.
fn open(core: &mut Core, now: Instant, index: usize, server: Socket) {
    core.cancel_query(index);
    let Phase::Direct(bypass) = &mut core.connections[index].phase else { return };
    bypass.server = Some(server);
    if let Some((handshake, mut reply)) = bypass.proxy.take() {
        reply.extend_from_slice(&handshake.granted(None));
        bypass.down = Pipe::with(reply);
    }
    bypass.stage = Stage::Open;
    core.set_due(index, None);
    turn_open(core, now, index);
}

/// Moves what can be moved, both ways.
fn turn_open(core: &mut Core, now: Instant, index: usize) {
    let mut scratch = core.take_scratch();
    let turned = move_both(core, index, &mut scratch);
    core.put_scratch(scratch);
    match turned {
        Turned::Wait => {}
        Turned::More => core.queue(index),
        Turned::Done => {
            core.counters.completed += 1;
            core.because(index, "both ends had finished");
            // Everything was handed over, and the ends were told.
            if let Phase::Direct(bypass) = &mut core.connections[index].phase
                && let Some(server) = bypass.server.take()
            {
                server.close(Close::Graceful);
            }
            core.finish(index);
        }
        Turned::Broken { client, error } => {
            core.counters.reset_by_sockets += 1;
            core.because(index, error.to_string());
            let Phase::Direct(bypass) = &mut core.connections[index].phase else { return };
            // A server that answers and closes without having read the whole request resets, too,
            // and its answer must not be lost.
            let pipe = if client { &mut bypass.up } else { &mut bypass.down };
            pipe.source_is_broken();
            bypass.stage = Stage::Breaking { towards_client: !client, last: LastBytes::new(now) };
            turn_breaking(core, now, index);
        }
    }
}

/// Moves the last bytes of a broken connection, and resets once the other end has them.
fn turn_breaking(core: &mut Core, now: Instant, index: usize) {
    let mut scratch = core.take_scratch();
    let over = last_bytes(core, now, index, &mut scratch);
    core.put_scratch(scratch);
    if over {
        core.reset_socket(index);
    } else {
        core.set_due(index, Some(now + BREAKING_LOOKS));
    }
}

fn last_bytes(core: &mut Core, now: Instant, index: usize, scratch: &mut [u8]) -> bool {
    let connection = &mut core.connections[index];
    let (Phase::Direct(bypass), Some(client)) =
        (&mut connection.phase, connection.socket.as_deref())
    else {
        return true;
    };
    let Bypass { stage: Stage::Breaking { towards_client, last }, server, up, down, .. } =
        &mut **bypass
    else {
        return true;
    };
    let Some(server) = server.as_deref() else { return true };
    let (pipe, from, to) =
        if *towards_client { (down, server, client) } else { (up, client, server) };
    let mut tally = Tally::default();
    let over = last.turn(now, pipe, (from, to), scratch, &mut tally);
    core.counters.bytes_from_sockets += tally.read;
    core.counters.bytes_to_sockets += tally.written;
    over
}

enum Turned {
    Wait,
    More,
    Done,
    /// The client's socket broke, or the server's.
    Broken {
        client: bool,
        error: std::io::Error,
    },
}

fn move_both(core: &mut Core, index: usize, scratch: &mut [u8]) -> Turned {
    let connection = &mut core.connections[index];
    let (Phase::Direct(bypass), Some(client)) =
        (&mut connection.phase, connection.socket.as_deref())
    else {
        return Turned::Wait;
    };
    let Bypass { server: Some(server), up, down, .. } = &mut **bypass else { return Turned::Wait };
    let server: &dyn TcpSocket = &**server;
    let mut more = false;
    for (pipe, from, to, is_up) in
        [(&mut *up, client, server, true), (&mut *down, server, client, false)]
    {
        // Nothing is read any more where an end was read, and a reset behind it would go unseen.
        if pipe.has_ended()
            && let Some(error) = from.take_error()
        {
            return Turned::Broken { client: is_up, error };
        }
        // Which of the two sockets has news is not known: to try costs a call.
        pipe.source_is_readable();
        pipe.sink_is_writable();
        let mut budget = BUDGET;
        while pipe.has_work() {
            if budget == 0 {
                more = true;
                break;
            }
            match pipe.step(&mut End(from), &mut End(to), budget, scratch) {
                Ok(moved) => {
                    core.counters.bytes_from_sockets += moved.read as u64;
                    core.counters.bytes_to_sockets += moved.written as u64;
                    budget = budget.saturating_sub(moved.written);
                }
                Err(Broken::Source(error)) => return Turned::Broken { client: is_up, error },
                Err(Broken::Sink(error)) => return Turned::Broken { client: !is_up, error },
            }
        }
    }
    if up.is_over() && down.is_over() {
        Turned::Done
    } else if more {
        Turned::More
    } else {
        Turned::Wait
    }
}

/// The client is told as well as it can be.
fn refuse(core: &mut Core, now: Instant, index: usize, reason: RefuseReason) {
    core.cancel_query(index);
    core.counters.refused(reason);
    core.because(index, reason.words());
    let Phase::Direct(bypass) = &mut core.connections[index].phase else { return };
    match bypass.proxy.take() {
        Some((handshake, mut reply)) => {
            reply.extend(handshake.refused(reason, "connecting without the hub"));
            say_farewell(core, now, index, reply);
        }
        None => core.reset_socket(index),
    }
}
