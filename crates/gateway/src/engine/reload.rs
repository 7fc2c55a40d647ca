//! What changes in a running engine when the configuration is read again.

use super::confirm::Confirm;
use super::door::Door;
use super::ending::EndLog;
use super::{Admission, Engine, KNOCKS, Listener, Role, Udp};
use crate::intercept::Doorkeeper;
use crate::{Config, ConfirmSection, Role as RoleConfig};
use std::io;
use units::BitRate;

impl Engine {
    /// Takes over all that is plain values, and a hub's `admission`; connections that run keep what
    /// they began with.
    pub(crate) fn apply(&mut self, config: &Config, admission: Option<Admission>) {
        self.core.limits.clone_from(&config.limits);
        self.log_ends(config);
        match (&mut self.role, &config.role) {
            (Role::Terminal(terminal), RoleConfig::Terminal(section)) => {
                terminal.door = Door::new(section.accept.clone(), &config.limits);
            }
            (Role::Hub(hub), RoleConfig::Hub(section)) => {
                hub.source = section.source;
                if let Some(admission) = admission {
                    hub.admission = admission;
                }
            }
            (Role::Terminal(_), RoleConfig::Hub(_) | RoleConfig::Single(_))
            | (Role::Hub(_), RoleConfig::Terminal(_) | RoleConfig::Single(_)) => {
                unreachable!("a running gateway keeps its role")
            }
        }
        // There may be room again, or none any more.
        self.core.room_again = true;
    }

    /// Logs each connection at its end, if that is wanted.
    pub(crate) fn log_ends(&mut self, config: &Config) {
        let name = match &config.role {
            RoleConfig::Terminal(section) => section.name.clone(),
            RoleConfig::Hub(_) | RoleConfig::Single(_) => String::new(),
        };
        self.core.end_log = EndLog { wanted: config.log.connections, name };
    }

    /// From here on the link takes these rates, as far as the peers have announced.
    pub(crate) fn set_rates(&mut self, send: Option<BitRate>, receive: Option<BitRate>) {
        self.core.carrier.set_rates(send, receive);
    }

    /// Has intercepted connections confirmed by `keeper`, if it is a new one, within `bounds`.
    pub(crate) fn confirm(
        &mut self,
        keeper: Option<Doorkeeper>,
        bounds: ConfirmSection,
    ) -> io::Result<()> {
        let Role::Terminal(terminal) = &mut self.role else { return Ok(()) };
        if let Some(keeper) = keeper {
            keeper.register(self.poll.registry(), KNOCKS)?;
            match &mut terminal.confirm {
                Some(confirm) => confirm.relieve(keeper),
                None => terminal.confirm = Some(Confirm::new(keeper, bounds)),
            }
        }
        if let Some(confirm) = &mut terminal.confirm {
            confirm.set_bounds(bounds);
        }
        Ok(())
    }

    /// The listeners that are open.
    pub(crate) fn listeners(&self) -> Vec<&Listener> {
        match &self.role {
            Role::Terminal(terminal) => terminal.listeners().collect(),
            Role::Hub(_) => Vec::new(),
        }
    }

    /// The socket for datagrams.
    pub(crate) fn udp(&self) -> &Udp {
        &self.udp
    }

    /// Accepts from `new` as well, and no more from those that `go`.
    pub(crate) fn exchange_listeners(
        &mut self,
        new: Vec<Listener>,
        go: impl Fn(&Listener) -> bool,
    ) -> io::Result<()> {
        let now = self.clock.now();
        if let Role::Terminal(terminal) = &mut self.role {
            terminal.close(&mut self.core, now, go);
            for listener in new {
                terminal.listen(self.poll.registry(), listener)?;
            }
        }
        Ok(())
    }
}
