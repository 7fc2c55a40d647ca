//! The life cycle of a gateway: work, drain, end.
//!
//! ```text
//!   open ──▶ work ──stop requested──▶ drain ──all finished, or limits.drain is over──▶ end
//!                 └─────────────second request, or immediate stop───────────────────▶
//! ```
//!
//! [`upgrade`](crate::upgrade) has the replacement by another process.

use crate::driver;
use crate::service::{handed, handover};
use crate::stop::Asked;
use crate::{Error, Gateway, Role, Stop};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::BorrowedFd;
use units::Instant;

/// Reason for which the loop has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pause {
    /// A stop was requested, or the drain is over.
    End,
    /// A drain was requested.
    Drain,
    /// A reload was requested.
    Reload,
    /// The replacement by another process was requested.
    Upgrade,
    /// Bypassing of new connections is to begin or end.
    Pass(bool),
    /// The packet filter's rules on destinations are to be updated.
    Filter,
    /// Keys that terminals have registered are stored.
    Keys,
    /// The time limit has passed.
    Due,
}

impl Gateway {
    /// Runs until a stop is requested; the caller removes the kernel's rules.
    pub(crate) fn live(&mut self, stop: &Stop) -> Result<(), Error> {
        self.driver.watch(stop)?;
        handover::take_over()?;
        self.keep_sockets();
        self.service.ready();
        loop {
            match self.work(stop, self.service.next())? {
                Pause::End => break,
                Pause::Drain => self.drain(),
                // Listeners that a drain has closed stay closed.
                Pause::Reload if self.engine.is_draining() => {
                    tracing::warn!("reload ignored: the gateway is stopping");
                }
                Pause::Reload => {
                    self.service.reloading();
                    self.reload();
                    self.keep_sockets();
                    self.service.ready();
                }
                Pause::Upgrade => self.begin_upgrade(),
                Pause::Pass(pass) => self.pass(pass),
                Pause::Filter => self.filter(),
                Pause::Keys => self.use_registered_keys(),
                Pause::Due => self.service.beat(self.engine.connections(), &self.engine.waiting()),
            }
        }
        let left = self.engine.connections();
        if left > 0 {
            tracing::warn!(connections = left, "stopping: remaining connections are reset");
        }
        self.driver.close_observer(&mut self.engine);
        self.engine.end(self.driver.now());
        while let Some(due) = self.engine.transmit_close(self.driver.now()) {
            self.driver.sleep_until(due);
        }
        self.engine.save();
        Ok(())
    }

    /// Runs until a request of `stop`, a change of the kernel's rules, or `until`.
    fn work(&mut self, stop: &Stop, until: Instant) -> io::Result<Pause> {
        loop {
            if self.driver.take_requested() {
                match stop.asked() {
                    Asked::Stop => return Ok(Pause::End),
                    Asked::Drain if !self.engine.is_draining() || self.is_replaced => {
                        return Ok(Pause::Drain);
                    }
                    Asked::Drain | Asked::Nothing => {}
                }
                if stop.take_reload() {
                    // There may be further requests.
                    self.driver.request_again();
                    return Ok(Pause::Reload);
                }
                if stop.take_upgrade() {
                    self.driver.request_again();
                    return Ok(Pause::Upgrade);
                }
            }
            let now = self.driver.now();
            self.review_upgrade(now);
            if self.engine.has_drained(now) {
                return Ok(Pause::End);
            }
            // The packet filter belongs to the process that replaces this one.
            let has_filter = self.upgrade.is_none() && !self.is_replaced;
            if let Some(pass) = self.engine.wanted_bypass(now).filter(|_| has_filter) {
                return Ok(Pause::Pass(pass));
            }
            if has_filter && self.engine.wants_filter(now) {
                return Ok(Pause::Filter);
            }
            if self.store_registrations(now) {
                return Ok(Pause::Keys);
            }
            if now >= until {
                return Ok(Pause::Due);
            }
            let due = self.registrations.poll_timeout();
            let due = due.into_iter().chain(self.upgrade_limit()).chain([until]).min();
            self.driver.step(&mut self.engine, due.unwrap_or(until))?;
        }
    }

    /// Stores keys that a hub's terminals have registered; true when that has finished.
    fn store_registrations(&mut self, now: Instant) -> bool {
        let Role::Hub(hub) = &self.config.role else { return false };
        while let Some(registration) = self.engine.poll_registration() {
            self.registrations.take(hub, &registration);
        }
        self.registrations.poll(now, hub)
    }

    /// Replaces the keys of terminals by those that they have registered.
    fn use_registered_keys(&mut self) {
        match self.new_keys(&self.config) {
            Ok(Some(keys)) => self.engine.set_keys(keys),
            Ok(None) => {}
            Err(error) => tracing::error!(%error, "registered keys not used: reload to try again"),
        }
    }

    /// Stores the sockets for the next start with the service manager, and removes others.
    pub(crate) fn keep_sockets(&mut self) {
        let mut all: Vec<(String, BorrowedFd<'_>)> = Vec::new();
        for (path, socket) in self.config.effective_paths().iter().zip(self.engine.sockets()) {
            // The next start may use another port, and a socket bound to an interface must be bound
            // again.
            if path.link.listen.port() == 0 || path.interface.is_some() {
                continue;
            }
            let Some(socket) = socket else { continue };
            match (socket.local_address(), socket.descriptor()) {
                (Ok(address), Some(descriptor)) => {
                    all.push((handed::name_of("link", address), descriptor));
                }
                (Err(error), _) => {
                    tracing::debug!(%error, "datagram socket not stored with the service manager");
                }
                (Ok(_), None) => {}
            }
        }
        all.extend(self.engine.listeners().into_iter().filter_map(driver::to_keep));
        let mut names = BTreeSet::new();
        for (name, socket) in all {
            if !self.kept.contains(&name) {
                self.service.keep(&name, socket);
            }
            names.insert(name);
        }
        for name in self.kept.difference(&names).chain(&handed::close_rest()) {
            self.service.forget(name);
        }
        self.kept = names;
    }

    /// Starts or ends bypassing of new connections.
    fn pass(&mut self, pass: bool) {
        let changed = match (&mut self.interception, &self.rules) {
            (Some(interception), _) if pass => interception.suspend(),
            (Some(interception), Some(rules)) => interception.change_terminal(rules),
            (Some(_) | None, _) => Ok(()),
        };
        let intercepted = self.rules.is_some();
        match changed {
            Ok(()) if !intercepted => {}
            Ok(()) if pass => tracing::warn!("bypass enabled: new connections are not accelerated"),
            Ok(()) => tracing::info!("bypass disabled: intercepting again"),
            Err(error) => {
                tracing::error!(%error, pass, "bypass not changed, retried later");
                self.engine.on_bypass_refused(self.driver.now());
                return;
            }
        }
        self.engine.set_bypass(pass, intercepted);
    }

    /// Updates the packet filter's rules that refuse or confirm connections by destination.
    fn filter(&mut self) {
        let wanted = self.engine.filter();
        let changed = match (&mut self.interception, &mut self.rules) {
            (Some(interception), Some(rules)) => {
                let other = rules.families != wanted.families;
                rules.families = wanted.families;
                // While connections bypass the gateway, the rules are installed when that ends.
                let change = match other && !self.engine.is_bypassing() {
                    true => interception.change_terminal(rules),
                    false => Ok(()),
                };
                change.and_then(|()| interception.set_deferred(wanted.deferred.clone()))
            }
            (_, _) => Ok(()),
        };
        if let Err(error) = &changed {
            tracing::error!(%error, "packet filter not updated with reachable destinations, retried later");
        }
        self.engine.set_applied_filter(self.driver.now(), changed.is_ok().then_some(wanted));
    }

    /// Starts a drain: new connections bypass the gateway or are refused; running ones may finish.
    fn drain(&mut self) {
        let limit = self.config.limits.drain;
        // Also if it is to end while another process has replaced it.
        self.is_replaced = false;
        let connections = self.engine.connections();
        self.service.stopping(limit);
        tracing::info!(connections, %limit, "draining: running connections may finish");
        // First the kernel's rules, so that no client is redirected to a closed listener.
        if let Some(interception) = &mut self.interception
            && let Err(error) = interception.suspend()
        {
            tracing::warn!(%error, "interception not removed: new connections are still intercepted");
        }
        self.engine.drain(self.driver.now(), limit);
    }
}
