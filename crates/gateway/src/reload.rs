//! Reloading the configuration of a running gateway.
//!
//! ```text
//!   read ──invalid──▶ logged, nothing changes
//!     └─▶ live changes ──▶ new listeners, the kernel's rules ──refused──▶ logged, nothing changes
//!                                          └─▶ active; the other changes need a restart
//! ```

use crate::config::Change;
use crate::engine::{Admission, HeldSyns, Kind, Listener};
use crate::gateway::{hub_rules, listen, log_promises, terminal_rules, transparent_listeners};
use crate::intercept::Interception;
use crate::syn_gate;
use crate::{
    Config, ConfigError, Error, Gateway, HubSection, KeyError, Role, SourceMode, TerminalSection,
    logging,
};
use relay::{Keys, Security};
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Gateway {
    /// Sets the file that a reload reads.
    #[must_use]
    pub fn reloading_from(mut self, file: PathBuf) -> Self {
        self.file = Some(file);
        self
    }

    /// Reloads the configuration. Nothing changes unless all of it is valid.
    pub(crate) fn reload(&mut self) {
        let Some(new) = read(self.file.as_deref()) else { return };
        let (merged, changes) = self.config.merged(&new);
        match self.put_in_force(merged) {
            Ok(()) => log_changes(&changes),
            Err(error) => {
                tracing::error!(%error, "reload refused: the old configuration stays active");
            }
        }
    }

    /// Steps that can be refused are done first.
    fn put_in_force(&mut self, config: Config) -> Result<(), Error> {
        let mut admission = None;
        let mut keys = None;
        let (send, receive) = match &config.role {
            Role::Terminal(section) => {
                let section = section.clone();
                self.change_terminal(&section)?;
                (config.link.rate_up, config.link.rate_down)
            }
            Role::Hub(section) => {
                let rules = Admission::new(section, &config.limits).map_err(Error::Addresses)?;
                admission = Some(rules);
                keys = self.new_keys(&config)?;
                self.change_hub(&config, section)?;
                (config.link.rate_down, config.link.rate_up)
            }
            Role::Single(_) => return Err(Error::NoPartner),
        };
        self.engine.apply(&config, admission);
        if let Role::Hub(section) = &config.role {
            log_promises(&config, section);
        }
        if let Some(keys) = keys {
            self.engine.set_keys(keys);
        }
        let (old, new) = (&self.config.link, &config.link);
        if (old.rate_up, old.rate_down) != (new.rate_up, new.rate_down) {
            self.engine.set_rates(send, receive);
        }
        for (old, new) in self.config.paths.iter().zip(&config.paths) {
            let (up, down) = (new.link.rate_up, new.link.rate_down);
            if (old.link.rate_up, old.link.rate_down) != (up, down) {
                self.engine.set_path_rates(&new.name, up, down);
            }
        }
        if self.config.log != config.log {
            logging::set_level(&config.log);
        }
        self.config = config;
        Ok(())
    }

    /// Reads a hub's list of terminals with their key files; its own key must be unchanged.
    pub(crate) fn new_keys(&self, config: &Config) -> Result<Option<Arc<Keys>>, Error> {
        match config.keys()? {
            Security::None => Ok(None),
            Security::Noise(keys) if self.engine.own_key() == Some(keys.public()) => Ok(Some(keys)),
            Security::Noise(_) => Err(Error::Keys(KeyError::OwnKey)),
        }
    }

    /// Opens the listeners of `section` that do not exist yet.
    fn new_listeners(&self, section: &TerminalSection) -> Result<Vec<Listener>, Error> {
        let mut new = Vec::new();
        let there = self.engine.listeners();
        let is_there = |kind, wanted| {
            there.iter().any(|listener| listener.kind == kind && listener.wanted == wanted)
        };
        for (key, kind, wanted) in proxies(section) {
            for &address in wanted {
                if !is_there(kind, address) {
                    let listener = crate::driver::bind(address, kind);
                    new.push(listener.map_err(|source| listen(key, address, source))?);
                }
            }
        }
        if let Some(intercept) = &section.intercept {
            let mut transparent = there.iter().filter(|there| there.kind == Kind::Transparent);
            if !transparent.any(|listener| listener.address.port() == intercept.port) {
                new.extend(transparent_listeners(intercept)?);
            }
        }
        Ok(new)
    }

    /// New listeners are opened before rules lead to them, and old ones are closed after the rules
    /// have changed. If the rules are refused, the new listeners are closed.
    fn change_terminal(&mut self, section: &TerminalSection) -> Result<(), Error> {
        let new = self.new_listeners(section)?;
        let opened = new.iter().find(|listener| listener.kind == Kind::Transparent);
        let opened = opened.map(|listener| listener.address.port());
        let numbers = self.engine.listen(new)?;
        if let Err(error) = self.change_terminal_rules(section, opened) {
            self.engine.listen_no_more(&numbers);
            return Err(error);
        }
        let now = self.driver.now();
        self.engine.close_listeners(now, |listener| match listener.kind {
            // Without rules there are no new connections, and queued ones are accepted.
            Kind::Transparent => opened.is_some_and(|port| listener.address.port() != port),
            Kind::Socks5 | Kind::HttpConnect | Kind::Dns => !proxies(section)
                .iter()
                .any(|(_, kind, all)| *kind == listener.kind && all.contains(&listener.wanted)),
        });
        Ok(())
    }

    /// `opened`: the port of the transparent listeners, if it has changed.
    fn change_terminal_rules(
        &mut self,
        section: &TerminalSection,
        opened: Option<u16>,
    ) -> Result<(), Error> {
        let Some(intercept) = &section.intercept else {
            // Existing intercepted connections still need their routing.
            if let Some(interception) = &mut self.interception {
                interception.suspend()?;
            }
            self.rules = None;
            self.engine.set_bypass(false, false);
            return Ok(());
        };
        let mut rules = terminal_rules(intercept, opened.unwrap_or(intercept.port));
        let mut active_gate = self.active_gate;
        rules.families = self.engine.applied_filter().families;
        // If interception begins now, the kernel's support is unknown.
        let optional = self.interception.is_none();
        let accept = &section.accept;
        let mut gate = syn_gate::prepare(&mut rules, accept, &mut active_gate, optional)?;
        if let Some(gate) = &gate {
            self.engine.watch_syn_gate(gate)?;
        }
        match &mut self.interception {
            Some(interception) => interception.change_terminal(&rules)?,
            None => {
                let installed = syn_gate::install(&mut rules, accept, &mut gate, &mut active_gate)?;
                self.interception = Some(installed);
            }
        }
        self.active_gate = active_gate;
        self.rules = Some(rules);
        // If new connections bypass the gateway, they do so under the new rules.
        self.engine.set_bypass(false, true);
        let gate = gate.map(|gate| Box::new(gate) as Box<dyn HeldSyns>);
        self.engine.set_syn_gate(gate, intercept.confirm);
        Ok(())
    }

    /// Changes both the routes to terminals' networks and the rules for servers' packets, or neither.
    fn change_hub(&mut self, config: &Config, section: &HubSection) -> Result<(), Error> {
        if let Some(forward) = &config.forward {
            self.engine.set_homes(forward, section)?;
        }
        let changed = change_hub_rules(&mut self.interception, section);
        let Err(refused) = changed else { return Ok(()) };
        if let (Some(forward), Role::Hub(before)) = (&self.config.forward, &self.config.role)
            && let Err(error) = self.engine.set_homes(forward, before)
        {
            tracing::error!(%error, "the routes to terminals' networks were not restored");
        }
        Err(refused)
    }
}

/// Changes a hub's rules for servers' packets to those of `section`.
pub(crate) fn change_hub_rules(
    interception: &mut Option<Interception>,
    section: &HubSection,
) -> Result<(), Error> {
    let rules = hub_rules(section);
    match (&mut *interception, section.source) {
        (Some(interception), SourceMode::Client) => interception.change_hub(&rules)?,
        (None, SourceMode::Client) => *interception = Some(Interception::hub(&rules)?),
        // Existing connections with clients' addresses still need their rules.
        (Some(_) | None, SourceMode::Own) => {}
    }
    Ok(())
}

/// Returns the proxies' listeners: key, kind, and addresses.
pub(crate) fn proxies(
    section: &TerminalSection,
) -> [(&'static str, Kind, &[std::net::SocketAddr]); 3] {
    let dns = section.dns.as_ref().map_or(&[][..], |dns| &dns.listen);
    [
        ("socks5.listen", Kind::Socks5, &section.socks5),
        ("connect.listen", Kind::HttpConnect, &section.connect),
        ("dns.listen", Kind::Dns, dns),
    ]
}

/// Reloads the configuration of a single gateway from `file`, and returns the active one. Nothing
/// changes unless all of it is valid.
pub(crate) fn read_again(old: &Config, file: Option<&Path>) -> Option<Config> {
    let new = read(file)?;
    let (merged, changes) = old.merged(&new);
    if old.log != merged.log {
        logging::set_level(&merged.log);
    }
    log_changes(&changes);
    Some(merged)
}

/// Reads `file`; `None` if it is invalid, which is logged.
pub(crate) fn read(file: Option<&Path>) -> Option<Config> {
    let Some(file) = file else {
        tracing::warn!("reload ignored: the configuration was not read from a file");
        return None;
    };
    let path = file.display();
    let wrong = |error: ConfigError| {
        for mistake in error.to_string().lines() {
            tracing::error!(%mistake, "the new configuration is invalid");
        }
        tracing::error!(%path, "reload refused: the old configuration stays active");
    };
    Config::load(file).map_err(wrong).ok()
}

pub(crate) fn log_changes(changes: &[Change]) {
    let nothing = || "nothing".to_owned();
    for Change { key, old, new, live } in changes {
        let (old, new) = (old.clone().unwrap_or_else(nothing), new.clone().unwrap_or_else(nothing));
        if *live {
            tracing::info!(%key, %old, %new, "changed");
        } else {
            tracing::warn!(%key, %old, %new, "needs a restart; the old value stays until then");
        }
    }
    let live = changes.iter().filter(|change| change.live).count();
    tracing::info!(changed = live, need_a_restart = changes.len() - live, "reloaded");
}
