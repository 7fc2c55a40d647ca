//! Transparent interception: TCP connections of others, taken over by TPROXY.
//!
//! ```text
//! client ─SYN→ [prerouting: tproxy, mark] ─→ [rule: mark → table] ─→ [local default] ─→ listener
//!                                                                     accepted.local_addr() is
//!                                                                     the server's address
//!
//! hub's socket, bound to the client's address ─SYN→ server
//! server ─SYN ACK→ [prerouting: socket transparent, mark] ─→ [rule] ─→ [local default] ─→ socket
//! ```
//!
//! An [`Interception`] is put into the kernel over netlink, without the `nft` and `ip` programs:
//! one nf_tables table of its own, `inet bentpipe_<id>`, and for IPv4 and IPv6 each one policy
//! rule and one route. It adds and removes these and touches nothing else. The table is owned by
//! this process, so it vanishes even if the process is killed; the rules and routes that a kill
//! leaves behind do nothing without the table's marks, and the next start takes them over.
//!
//! ```no_run
//! use gateway::intercept::{self, Interception, TerminalRules};
//!
//! let listeners = intercept::listen(0)?;
//! let port = listeners.v4.local_addr()?.port();
//! let interception = Interception::terminal(&TerminalRules::new("terminal", &["lan0"], port))?;
//! for note in interception.notes() {
//!     eprintln!("{note}");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Everything acts on the network namespace of the calling thread.

mod attributes;
mod confirm;
mod expressions;
mod families;
mod forwarding;
mod kernel;
mod nftables;
mod prefix;
mod quic;
mod ruleset;
mod socket;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::BorrowedFd;

use rt::netlink::{MarkRule, Netlink, NetlinkError, Route};

pub(crate) use confirm::{Neighbour, ReceiveStatus, Syn, SynGate};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use confirm::{Unreachable, logged_packets};
pub(crate) use families::is_global;
pub(crate) use forwarding::ForwardRules;
pub use prefix::{PortRange, Prefix};
pub(crate) use ruleset::LONGEST_LIST;
pub(crate) use ruleset::number_of;
pub use ruleset::{ConfirmRule, ConfirmRules, HubRules, TerminalRules};
pub(crate) use socket::LocalAddress;
pub(crate) use socket::connect_prepared;
pub use socket::{Listeners, connect_from, listen, original_destination};

use nftables::Nftables;
use ruleset::Plan;

/// Settings of the kernel that a terminal with clients on `interfaces` should know of.
pub(crate) fn notes_for_terminal(interfaces: &[String]) -> Vec<String> {
    kernel::notes(interfaces, kernel::Role::Terminal)
}

/// The same for a hub with servers on `interfaces`.
pub(crate) fn notes_for_hub(interfaces: &[String]) -> Vec<String> {
    kernel::notes(interfaces, kernel::Role::Hub)
}

/// Why an interception could not be put in place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InterceptError {
    /// The kernel refused a call of the packet filter.
    #[error("{call} was refused: {source}{advice}")]
    Refused {
        /// The call and what it was about.
        call: String,
        /// The errno.
        source: io::Error,
        /// What to do about it, for people; begins with a separator, or is empty.
        advice: String,
    },
    /// The kernel refused a policy rule or a route.
    #[error("{source}{advice}")]
    Routing {
        /// The call and the errno.
        source: NetlinkError,
        /// What to do about it, for people; begins with a separator, or is empty.
        advice: String,
    },
    /// Another process has a table of the same name.
    #[error(
        "table inet {table} belongs to a running process (netlink port {port}); \
             choose another id, or stop that process"
    )]
    InUse {
        /// The table's name.
        table: String,
        /// Its owner's netlink port, by custom the process id.
        port: u32,
    },
    /// The request is inconsistent.
    #[error("interception: {0}")]
    Configuration(String),
}

impl InterceptError {
    /// The errno, when the kernel gave one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Refused { source, .. } => source.raw_os_error(),
            Self::Routing { source, .. } => source.errno(),
            Self::InUse { .. } | Self::Configuration(_) => None,
        }
    }

    fn refused(call: impl Into<String>, source: io::Error, needs: &str) -> Self {
        let advice = advice(source.raw_os_error(), needs);
        Self::Refused { call: call.into(), source, advice }
    }

    fn routing(source: NetlinkError) -> Self {
        let advice = match source.errno() {
            Some(libc::ENETDOWN) => "; is the loopback interface up? (ip link set lo up)".into(),
            Some(libc::EOPNOTSUPP) => "; the kernel needs CONFIG_IP_MULTIPLE_TABLES".into(),
            errno => advice(errno, ""),
        };
        Self::Routing { source, advice }
    }
}

/// Returns advice for an errno, where the kernel modules `needs` may be missing.
fn advice(errno: Option<i32>, needs: &str) -> String {
    match errno {
        Some(libc::EPERM | libc::EACCES) => {
            "; interception needs CAP_NET_ADMIN (root, or a user namespace of its own)".into()
        }
        Some(
            libc::ENOENT
            | libc::EINVAL
            | libc::EOPNOTSUPP
            | libc::EPROTONOSUPPORT
            | libc::EAFNOSUPPORT,
        ) if !needs.is_empty() => format!("; the kernel seems to lack {needs}: try modprobe"),
        _ => String::new(),
    }
}

/// An installed interception, which is removed on drop.
#[derive(Debug)]
pub struct Interception {
    plan: Plan,
    /// The socket that owns the table; `None` while there is no table.
    nftables: Option<Nftables>,
    netlink: Netlink,
    /// Added rules and routes in order, to be removed.
    rules: Vec<MarkRule>,
    routes: Vec<Route>,
    notes: Vec<String>,
}

impl Interception {
    /// Installs the interception of a terminal gateway. The listeners should exist already:
    /// a connection without a listener bypasses the gateway.
    ///
    /// # Errors
    /// When the rules are invalid, another process uses the same id, or the kernel refuses a
    /// call; nothing remains installed then.
    pub fn terminal(rules: &TerminalRules) -> Result<Self, InterceptError> {
        let notes = kernel::notes(&rules.interfaces, kernel::Role::Terminal);
        Self::install(rules.plan()?, notes)
    }

    /// Installs the delivery of servers' packets to a hub gateway that connects with its clients'
    /// addresses ([`connect_from`]).
    ///
    /// # Errors
    /// As [`Interception::terminal`].
    pub fn hub(rules: &HubRules) -> Result<Self, InterceptError> {
        let notes = kernel::notes(&rules.interfaces, kernel::Role::Hub);
        Self::install(rules.plan()?, notes)
    }

    /// Routes packets that are forwarded unsplit to the TUN interface, which exists and is up.
    ///
    /// # Errors
    /// As [`Interception::terminal`].
    pub(crate) fn forward(rules: &ForwardRules) -> Result<Self, InterceptError> {
        Self::install(rules.plan()?, kernel::notes(&rules.interfaces, kernel::Role::Terminal))
    }

    /// Returns notes for the administrator: kernel settings that impair the interception, which are
    /// not changed, and rules of an earlier run, which were replaced.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Removes everything, as drop does, and returns the first failure.
    ///
    /// # Errors
    /// The first failure; the rest was attempted as well.
    pub fn remove(mut self) -> Result<(), InterceptError> {
        self.take_away()
    }

    /// Returns the connection to the packet filter, which owns the rules, for a process that replaces
    /// this one.
    pub(crate) fn filter(&self) -> Option<BorrowedFd<'_>> {
        self.nftables.as_ref().map(Nftables::descriptor)
    }

    /// Leaves everything installed to the process that has replaced this one.
    pub(crate) fn leave(mut self) {
        self.nftables = None;
        (self.rules, self.routes) = (Vec::new(), Vec::new());
    }

    /// Installs again what a process that was to replace this one may have changed or removed.
    ///
    /// # Errors
    /// As [`Interception::terminal`].
    pub(crate) fn restore(&mut self) -> Result<(), InterceptError> {
        (self.rules, self.routes) = (Vec::new(), Vec::new());
        self.add_all_routing()?;
        let Some(nftables) = &mut self.nftables else { return Ok(()) };
        let old = nftables.table(&self.plan.table)?.map(|_| self.plan.table.as_str());
        nftables.install(&self.plan, old)
    }

    /// Stops capturing new connections or packets; intercepted connections continue. The change is
    /// atomic: no packet meets a partial rule set.
    ///
    /// # Errors
    /// The kernel's error; nothing has changed then.
    pub fn suspend(&mut self) -> Result<(), InterceptError> {
        let plan = self.plan.without_capture();
        self.exchange(plan)
    }

    /// Replaces the rules, atomically as [`Interception::suspend`].
    ///
    /// # Errors
    /// As [`Interception::terminal`]; nothing has changed then.
    pub fn change_terminal(&mut self, rules: &TerminalRules) -> Result<(), InterceptError> {
        self.notes = kernel::notes(&rules.interfaces, kernel::Role::Terminal);
        let plan = rules.plan()?;
        // Recently failed destinations stay, where there are still sets for them.
        let deferred = plan.deferred.as_ref().and(self.plan.deferred.clone()).or(plan.deferred);
        self.change(Plan { deferred, ..plan })
    }

    /// Sets the destinations that are confirmed in addition to those of the rules. Without rules
    /// for confirming this has no effect.
    ///
    /// # Errors
    /// The kernel's error; nothing has changed then.
    pub(crate) fn set_deferred(&mut self, deferred: Vec<SocketAddr>) -> Result<(), InterceptError> {
        let Some(there) = &mut self.plan.deferred else { return Ok(()) };
        if let Some(nftables) = &mut self.nftables {
            nftables.set_deferred(&self.plan.table, &deferred)?;
        }
        *there = deferred;
        Ok(())
    }

    /// As [`Interception::change_terminal`], at a hub.
    ///
    /// # Errors
    /// As [`Interception::terminal`]; nothing has changed then.
    pub fn change_hub(&mut self, rules: &HubRules) -> Result<(), InterceptError> {
        self.notes = kernel::notes(&rules.interfaces, kernel::Role::Hub);
        self.change(rules.plan()?)
    }

    /// As [`Interception::change_terminal`], for packets that are forwarded unsplit.
    ///
    /// # Errors
    /// As [`Interception::terminal`]; nothing has changed then.
    pub(crate) fn change_forward(&mut self, rules: &ForwardRules) -> Result<(), InterceptError> {
        self.change(rules.plan()?)
    }

    /// Adds the new routing before the new marks take effect, and removes the old routing
    /// afterwards.
    fn change(&mut self, plan: Plan) -> Result<(), InterceptError> {
        let same_routing = |old: &Plan, new: &Plan| {
            (old.mark, old.routing_table, old.priority)
                == (new.mark, new.routing_table, new.priority)
        };
        if plan.table != self.plan.table {
            let mut nftables = Nftables::open()?;
            if let Some(nftables::Table { owner: Some(port) }) = nftables.table(&plan.table)? {
                return Err(InterceptError::InUse { table: plan.table, port });
            }
        }
        if same_routing(&self.plan, &plan) {
            return self.exchange(plan);
        }
        let old = (self.plan.clone(), self.rules.clone(), self.routes.clone());
        (self.rules, self.routes) = (Vec::new(), Vec::new());
        self.plan = plan.clone();
        let added = self.add_all_routing();
        self.plan = old.0;
        let result = added.and_then(|()| self.exchange(plan));
        // Routing of the plan that is not active is removed.
        let (mut rules, mut routes) = (old.1, old.2);
        if result.is_err() {
            std::mem::swap(&mut rules, &mut self.rules);
            std::mem::swap(&mut routes, &mut self.routes);
        }
        // Except the part that both plans share.
        rules.retain(|rule| !self.rules.contains(rule));
        routes.retain(|route| !self.routes.contains(route));
        if let Err(error) = self.delete_routing(&rules, &routes) {
            // The active rules are complete; routing that remains has no effect without its mark.
            tracing::warn!(%error, "an old rule or route was not removed");
        }
        result
    }

    /// Replaces the active plan by `plan`, whose marks and routes exist.
    fn exchange(&mut self, plan: Plan) -> Result<(), InterceptError> {
        if let Some(nftables) = &mut self.nftables {
            nftables.install(&plan, Some(&self.plan.table))?;
        }
        self.plan = plan;
        Ok(())
    }

    fn install(plan: Plan, notes: Vec<String>) -> Result<Self, InterceptError> {
        let mut nftables = Nftables::open()?;
        let netlink = Netlink::open().map_err(InterceptError::routing)?;
        let stale = match nftables.table(&plan.table)? {
            None => false,
            Some(table) if nftables.may_replace(table) => true,
            Some(nftables::Table { owner }) => {
                let port = owner.unwrap_or_default();
                return Err(InterceptError::InUse { table: plan.table, port });
            }
        };
        let mut this = Self { plan, nftables: None, netlink, rules: vec![], routes: vec![], notes };
        if stale {
            this.notes.push(format!("replaced table inet {} of an earlier run", this.plan.table));
        }
        // Routing exists before the first packet is marked.
        this.add_all_routing()?;
        let old = stale.then_some(this.plan.table.as_str());
        nftables.install(&this.plan, old)?;
        this.nftables = Some(nftables);
        Ok(this)
    }

    fn add_all_routing(&mut self) -> Result<(), InterceptError> {
        self.add_routing(Ipv4Addr::UNSPECIFIED.into())?;
        if kernel::has_ipv6(self.plan.device.as_deref().unwrap_or("lo")) {
            return self.add_routing(Ipv6Addr::UNSPECIFIED.into());
        }
        self.notes.push("this host has no IPv6; only IPv4 is intercepted".into());
        Ok(())
    }

    fn add_routing(&mut self, any: IpAddr) -> Result<(), InterceptError> {
        let route = match &self.plan.device {
            None => Route::local_default(any, self.plan.routing_table),
            Some(device) => {
                Route { table: self.plan.routing_table, ..Route::to(any, 0).on(device) }
            }
        };
        let added = self.netlink.add_route(&route);
        self.settle(added, &route.to_string())?;
        self.routes.push(route);
        let rule = MarkRule {
            v6: any.is_ipv6(),
            mark: self.plan.mark,
            mask: u32::MAX,
            table: self.plan.routing_table,
            priority: self.plan.priority,
        };
        let added = self.netlink.add_rule(&rule);
        self.settle(added, &rule.to_string())?;
        self.rules.push(rule);
        Ok(())
    }

    /// Handles the result of adding a rule or route: an equal one was left by an earlier run.
    fn settle(
        &mut self,
        added: Result<(), NetlinkError>,
        what: &str,
    ) -> Result<(), InterceptError> {
        match added {
            Err(error) if error.errno() == Some(libc::EEXIST) => {
                self.notes.push(format!("took over from an earlier run: {what}"));
                Ok(())
            }
            other => other.map_err(InterceptError::routing),
        }
    }

    fn take_away(&mut self) -> Result<(), InterceptError> {
        // First the marks, then their routing.
        let table = match self.nftables.take() {
            Some(mut nftables) => nftables.remove(&self.plan.table),
            None => Ok(()),
        };
        let (rules, routes) = (std::mem::take(&mut self.rules), std::mem::take(&mut self.routes));
        table.and(self.delete_routing(&rules, &routes))
    }

    /// Deletes all of these and returns the first failure.
    fn delete_routing(
        &mut self,
        rules: &[MarkRule],
        routes: &[Route],
    ) -> Result<(), InterceptError> {
        let mut first = Ok(());
        for rule in rules.iter().rev() {
            first = first.and(self.netlink.delete_rule(rule));
        }
        for route in routes.iter().rev() {
            first = first.and(self.netlink.delete_route(route));
        }
        first.map_err(InterceptError::routing)
    }
}

impl Drop for Interception {
    fn drop(&mut self) {
        if let Err(error) = self.take_away() {
            tracing::warn!(%error, "the interception was not removed completely");
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
