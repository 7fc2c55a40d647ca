//! Intercepted connections whose clients are answered only when their server has answered.
//!
//! ```text
//!   SYN ──▶ Knocking ──accepted──▶ SYN sent in ──the listener accepts──▶ Spliced
//!              └──────refused────▶ RST, ICMP or silence
//! ```
//!
//! A SYN that comes again while its server is being asked changes only what is sent in later, so
//! nothing is opened twice, and a client that has begun anew from the same port is the one that
//! is let in. A client that is gone by then never comes out of the listener, and its connection to
//! the server is given up. What the server says first waits in the stream.

mod pending_table;

use crate::engine::accept::client_admission::Door;
use crate::engine::accept::fallback::Fate;
use crate::engine::defect::{self, Defect};
use crate::engine::host::HeldSyns;
use crate::engine::limits::client_network::client_network;
use crate::engine::limits::rates::Holder;
use crate::engine::peers::relay_set::target;
use crate::engine::transfer::connection::Phase;
use crate::engine::transfer::connection_info::About;
use crate::engine::transfer::connections::Core;
use crate::intercept::Syn;
use crate::proxy::{Destination, RefuseReason};
use crate::{ConfirmSection, WhenFull};
use pending_table::{Ends, Places, Verdict};
use relay::ResetReason;
use std::net::SocketAddr;
use units::{Instant, Span};

/// SYNs that are taken before others have their turn.
const BUDGET: usize = 64;
/// What the hub's answer may take beyond the time that the hub gives the server.
const GRACE: Span = Span::from_secs(10);
/// How long a client that was let in may take to come out of the listener: as long as the kernel
/// repeats its answer a few times.
const ENTERING: Span = Span::from_secs(8);

/// A client that waits for its server's answer.
#[derive(Debug)]
pub(crate) struct Knock {
    /// The last that came.
    syn: Syn,
    /// The server has answered.
    let_in: bool,
}

/// The clients that wait, and who lets them in.
#[derive(Debug)]
pub(crate) struct Confirm {
    keeper: Box<dyn HeldSyns>,
    /// Bounded by `bounds`.
    waiting: Places,
    bounds: ConfirmSection,
    heard: bool,
    closed: bool,
}

impl Confirm {
    /// Clients that `keeper` keeps back, within `bounds`.
    pub(crate) fn new(keeper: Box<dyn HeldSyns>, bounds: ConfirmSection) -> Self {
        Self { keeper, waiting: Places::default(), bounds, heard: true, closed: false }
    }

    /// Another takes the doorkeeper's place.
    pub(crate) fn relieve(&mut self, keeper: Box<dyn HeldSyns>) {
        (self.keeper, self.heard) = (keeper, true);
    }

    /// Bounds those that come from now on.
    pub(crate) fn set_bounds(&mut self, bounds: ConfirmSection) {
        self.bounds = bounds;
    }

    /// Somebody knocks.
    pub(crate) fn is_ready(&mut self) {
        self.heard = true;
    }

    /// Takes who has knocked; true when there may be more.
    pub(crate) fn answer(&mut self, core: &mut Core, now: Instant, door: &mut Door) -> bool {
        if !std::mem::take(&mut self.heard) {
            return false;
        }
        let mut knocks = Vec::new();
        let heard = self.keeper.receive(BUDGET, &mut |syn| knocks.push(syn));
        self.heard = heard.more;
        core.counters.knocks_lost += u64::from(heard.lost);
        for syn in knocks {
            self.knock(core, now, door, syn);
        }
        heard.more
    }

    /// New connections pass by from now on, and for good. Those that wait for an answer will as
    /// well, so nobody is let in for whom two servers' answers would come.
    pub(crate) fn close(&mut self, core: &mut Core) {
        self.closed = true;
        self.let_go(core);
    }

    /// Those that wait for an answer pass by when their clients try again: forgets them.
    pub(crate) fn let_go(&mut self, core: &mut Core) {
        for index in self.waiting.all() {
            let Some(connection) = core.connections.get(index) else { continue };
            if matches!(&connection.phase, Phase::Knocking(knock) if !knock.let_in) {
                if let Some(key) = connection.key {
                    core.carrier.reset(key, ResetReason::Aborted);
                }
                self.forget(core, index);
            }
        }
    }

    /// Clients that have been let in and that the listener has not handed over yet.
    pub(crate) fn is_expecting(&self) -> bool {
        self.waiting.expects()
    }

    fn knock(&mut self, core: &mut Core, now: Instant, door: &mut Door, syn: Syn) {
        if let Some(index) = self.find(core, ends(syn.client, syn.server))
            && let Phase::Knocking(knock) = &mut core.connections[index].phase
        {
            knock.syn = syn;
            if knock.let_in {
                // The kernel's answer was lost, or the client has begun anew.
                self.keeper.reinject(&knock.syn);
            }
            return;
        }
        // One that came before passing began is let pass when its client tries again.
        if self.closed || door.fail.is_passing() {
            return;
        }
        match door.fail.fate() {
            Fate::Carried => {}
            Fate::Refused => {
                self.turn_away(core, &syn, RefuseReason::NetworkUnreachable);
                return;
            }
            // When the client tries again the kernel lets it pass.
            Fate::Direct => return,
        }
        if door.reachability.is_unreachable(syn.server.ip()) {
            self.turn_away(core, &syn, RefuseReason::NetworkUnreachable);
            return;
        }
        if self.keeper.is_forged(&syn) {
            tracing::debug!(client = %syn.client, "a SYN from an address of our own");
            return;
        }
        let (client, server) = (syn.client, syn.server);
        let who = (client_network(client.ip(), core.limits.ipv6_prefix), syn.neighbour);
        let may_enter = || door.one_more(core, now, client);
        let verdict = self.waiting.judge(now, who, self.bounds, may_enter);
        let owner = match (verdict, self.bounds.when_full) {
            (Verdict::Ask(owner, reclaimed), _) => {
                if let Some(index) = reclaimed {
                    core.reclaim(index);
                }
                owner
            }
            (Verdict::Full, when_full) => {
                core.counters.limited("confirming");
                match when_full {
                    WhenFull::Early => self.keeper.reinject(&syn),
                    WhenFull::Refuse => self.turn_away(core, &syn, RefuseReason::Limit),
                }
                return;
            }
            (Verdict::TurnAway, _) => {
                self.turn_away(core, &syn, RefuseReason::Limit);
                return;
            }
        };
        core.counters.knocked += 1;
        let wanted = target(Destination::Address(server), Some(client));
        match core.open_stream(now, &owner, wanted) {
            Ok(key) => {
                core.counters.opened += 1;
                let index =
                    core.add(None, Some(key), Phase::Knocking(Knock { syn, let_in: false }));
                let wanted = Some(relay::Destination::Address(server));
                core.connections[index].about = About::new(now, Some(client), wanted);
                core.hold(now, index, owner.clone(), Holder::Client(owner.client));
                core.set_due(index, Some(now + core.limits.connect + GRACE));
                self.waiting.insert(now, ends(client, server), who, index);
                if defect::has(Defect::EarlyAccept) {
                    self.accepted(core, now, index);
                }
            }
            Err(reason) => self.turn_away(core, &syn, reason),
        }
    }

    fn turn_away(&self, core: &mut Core, syn: &Syn, reason: RefuseReason) {
        core.counters.refused(reason);
        self.keeper.reject(syn, reason);
    }

    /// The server has answered: the client may come in.
    pub(crate) fn accepted(&mut self, core: &mut Core, now: Instant, index: usize) {
        let Phase::Knocking(knock) = &mut core.connections[index].phase else { return };
        knock.let_in = true;
        self.waiting.let_in(ends(knock.syn.client, knock.syn.server));
        self.keeper.reinject(&knock.syn);
        // It has a place, also where there are no others.
        core.room_again = true;
        core.set_due(index, Some(now + ENTERING));
    }

    /// The stream is gone: the client hears why, if it has not been let in yet. One that has will
    /// come out of the listener, and is reset there.
    pub(crate) fn refused(&mut self, core: &mut Core, index: usize, reason: RefuseReason) {
        let Phase::Knocking(knock) = &core.connections[index].phase else { return };
        if !knock.let_in {
            self.keeper.reject(&knock.syn, reason);
            self.forget(core, index);
        }
    }

    /// Another has its slot. A client that has been let in may still come out of the listener, and
    /// is judged there as any other.
    pub(crate) fn reclaimed(&mut self, core: &mut Core, index: usize) {
        let connection = &core.connections[index];
        let Phase::Knocking(knock) = &connection.phase else { return };
        if let Some(key) = connection.key {
            core.carrier.reset(key, ResetReason::Local);
        }
        core.counters.refused(RefuseReason::Limit);
        self.keeper.reject(&knock.syn, RefuseReason::Limit);
        self.forget(core, index);
    }

    /// Neither an answer of the hub's nor the client has come.
    pub(crate) fn expired(&mut self, core: &mut Core, index: usize) {
        let connection = &core.connections[index];
        let Phase::Knocking(knock) = &connection.phase else { return };
        if let Some(key) = connection.key {
            core.carrier.reset(key, ResetReason::TimedOut);
        }
        if knock.let_in {
            core.counters.gone_before_accepted += 1;
            core.because(index, "the client was gone when its server had answered");
        } else {
            tracing::debug!(server = %knock.syn.server, "the hub gave no answer");
            core.counters.refused(RefuseReason::NetworkUnreachable);
            self.keeper.reject(&knock.syn, RefuseReason::NetworkUnreachable);
            core.because(index, "the hub gave no answer");
        }
        self.forget(core, index);
    }

    /// The connection of a client that comes out of the listener, if it was let in for that.
    pub(crate) fn claim(
        &mut self,
        core: &Core,
        client: SocketAddr,
        server: SocketAddr,
    ) -> Option<usize> {
        let ends = ends(client, server);
        let found = self.find(core, ends);
        self.waiting.remove(ends);
        found
    }

    fn forget(&mut self, core: &mut Core, index: usize) {
        if let Phase::Knocking(knock) = &core.connections[index].phase {
            self.waiting.remove(ends(knock.syn.client, knock.syn.server));
        }
        core.remove(index);
    }

    fn find(&self, core: &Core, ends: Ends) -> Option<usize> {
        self.waiting.get(ends).filter(|&index| {
            let connection = core.connections.get(index);
            connection.is_some_and(|found| matches!(found.phase, Phase::Knocking(_)))
        })
    }
}

fn ends(client: SocketAddr, server: SocketAddr) -> Ends {
    let plain = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
    (plain(client), plain(server))
}
