//! A gateway's life: it works, it drains, it ends.
//!
//! ```text
//!   open ──▶ work ──asked to stop──▶ drain ──all finished, or limits.drain is over──▶ end
//!                 └─────────────asked twice, or at once─────────────────────────────▶
//! ```

use crate::driver;
use crate::service::handed;
use crate::stop::Asked;
use crate::{Error, Gateway, Stop};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::BorrowedFd;
use units::Instant;

/// Why the loop has paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pause {
    /// To end: it was asked to, or what it was to finish is finished.
    End,
    /// It was asked to take no new connections, and to end when the running ones have.
    Drain,
    /// It was asked to read its configuration again.
    Reload,
    /// New connections are to pass from now on, or to be intercepted again.
    Pass(bool),
    /// The packet filter is to follow what is known of destinations.
    Filter,
    /// The time that it was to work until has come.
    Due,
}

impl Gateway {
    /// Works until it is asked to end; the kernel's tables are the caller's to clean.
    pub(crate) fn live(&mut self, stop: &Stop) -> Result<(), Error> {
        self.driver.watch(stop)?;
        self.keep_sockets();
        self.service.ready();
        loop {
            match self.work(stop, self.service.next())? {
                Pause::End => break,
                Pause::Drain => self.drain(),
                // What a drain has closed stays closed.
                Pause::Reload if self.engine.is_draining() => {
                    tracing::warn!("reload ignored: the gateway is stopping");
                }
                Pause::Reload => {
                    self.service.reloading();
                    self.reload();
                    self.keep_sockets();
                    self.service.ready();
                }
                Pause::Pass(pass) => self.pass(pass),
                Pause::Filter => self.filter(),
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

    /// Works until `stop` is asked for something, the kernel's tables are to change, or `until`.
    fn work(&mut self, stop: &Stop, until: Instant) -> io::Result<Pause> {
        loop {
            if self.driver.take_asked() {
                match stop.asked() {
                    Asked::Stop => return Ok(Pause::End),
                    Asked::Drain if !self.engine.is_draining() => return Ok(Pause::Drain),
                    Asked::Drain | Asked::Nothing => {}
                }
                if stop.take_reload() {
                    // There may be more to hear afterwards.
                    self.driver.ask_again();
                    return Ok(Pause::Reload);
                }
            }
            let now = self.driver.now();
            if self.engine.has_drained(now) {
                return Ok(Pause::End);
            }
            if let Some(pass) = self.engine.wanted_bypass(now) {
                return Ok(Pause::Pass(pass));
            }
            if self.engine.wants_filter(now) {
                return Ok(Pause::Filter);
            }
            if now >= until {
                return Ok(Pause::Due);
            }
            self.driver.step(&mut self.engine, until)?;
        }
    }

    /// Has the service manager keep what is to be there at the next start, and nothing else.
    pub(crate) fn keep_sockets(&mut self) {
        let mut all: Vec<(String, BorrowedFd<'_>)> = Vec::new();
        for (path, socket) in self.config.ways().iter().zip(self.engine.sockets()) {
            // Another port will do as well next time, and what is bound to an interface would
            // have to be bound again.
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

    /// Lets new connections pass, or intercepts them again.
    fn pass(&mut self, pass: bool) {
        let changed = match (&mut self.interception, &self.rules) {
            (Some(interception), _) if pass => interception.stop_intercepting(),
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

    /// Has the packet filter refuse or confirm new connections by what is known of their
    /// destinations.
    fn filter(&mut self) {
        let wanted = self.engine.filter();
        let changed = match (&mut self.interception, &mut self.rules) {
            (Some(interception), Some(rules)) => {
                let other = rules.families != wanted.families;
                rules.families = wanted.families;
                // While connections pass, the rules are put in place when that ends.
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

    /// New connections go their ordinary way or are refused; those that run may finish.
    fn drain(&mut self) {
        let limit = self.config.limits.drain;
        let connections = self.engine.connections();
        self.service.stopping(limit);
        tracing::info!(connections, %limit, "draining: running connections may finish");
        // First the kernel's rules, so that nobody is led to a listener that closes.
        if let Some(interception) = &mut self.interception
            && let Err(error) = interception.stop_intercepting()
        {
            tracing::warn!(%error, "interception not removed: new connections are still intercepted");
        }
        self.engine.drain(self.driver.now(), limit);
    }
}
