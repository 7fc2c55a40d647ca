//! What changes in a running engine when the configuration is read again.

use crate::engine::accept::confirm_queue::Confirm;
use crate::engine::host::{DatagramSocket, HeldSyns, Source};
use crate::engine::peers::classes::Classes;
use crate::engine::peers::scheduler_notifier::Mac;
use crate::engine::transfer::close_cause::EndLog;
use crate::engine::{Admission, Engine, Listener, Outlet, Role};
use crate::{Config, ConfirmSection, Promised, ResolverSection, Role as RoleConfig};
use std::io;
use units::{BitRate, Instant};

impl Engine {
    /// Takes over all that is plain values, and a hub's `admission`; connections that run keep what
    /// they began with.
    pub(crate) fn apply(&mut self, config: &Config, admission: Option<Admission>) {
        self.core.limits.clone_from(&config.limits);
        self.core.resolver.configure(&config.resolver);
        self.core.slots.set(&config.limits);
        self.core.carrier.set_ipv6_prefix(config.limits.ipv6_prefix);
        self.log_ends(config);
        self.watch_addresses(config);
        match (&mut self.role, &config.role) {
            (Role::Terminal(terminal), RoleConfig::Terminal(section)) => {
                terminal.door.change(section, config);
                self.core.carrier.set_health(config.health.demands, config.keep_alive());
            }
            (Role::Hub(hub), RoleConfig::Hub(section)) => {
                hub.source = section.source;
                hub.classes = Classes::new(&section.classes);
                self.core.carrier.set_plans(section);
                hub.promised = crate::config::promised(&config.link, section);
                if let Some(admission) = admission {
                    hub.admission = admission;
                }
                if hub.mac.as_ref().map(Mac::path) != section.mac.as_deref() {
                    hub.mac = section.mac.as_ref().and_then(|path| Mac::new(path, &section.id));
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

    /// Looks names up as `section` has it.
    pub(crate) fn set_resolver(&mut self, section: &ResolverSection) {
        self.core.resolver.configure(section);
    }

    /// A hub's plans promise so much: what an observer is told.
    pub(crate) fn set_promised(&mut self, promised: Vec<Promised>) {
        if let Role::Hub(hub) = &mut self.role {
            hub.promised = promised;
        }
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

    /// From here on a terminal's path takes these rates, as far as its hub has announced.
    pub(crate) fn set_path_rates(
        &mut self,
        name: &str,
        up: Option<BitRate>,
        down: Option<BitRate>,
    ) {
        self.core.carrier.set_path_rates(name, up, down);
    }

    /// Wakes for those who knock at `keeper`, who takes nobody in yet.
    pub(crate) fn watch_door(&mut self, keeper: &dyn HeldSyns) -> io::Result<()> {
        self.core.host.watch(keeper.id(), Source::Knocks)
    }

    /// Has intercepted connections confirmed by `keeper`, if it is a new one (which the loop
    /// watches already), within `bounds`.
    pub(crate) fn confirm(&mut self, keeper: Option<Box<dyn HeldSyns>>, bounds: ConfirmSection) {
        let Role::Terminal(terminal) = &mut self.role else { return };
        if let Some(keeper) = keeper {
            match &mut terminal.confirm {
                Some(confirm) => confirm.relieve(keeper),
                None => terminal.confirm = Some(Confirm::new(keeper, bounds)),
            }
        }
        if let Some(confirm) = &mut terminal.confirm {
            confirm.set_bounds(bounds);
        }
    }

    /// The listeners that are open.
    pub(crate) fn listeners(&self) -> Vec<&Listener> {
        match &self.role {
            Role::Terminal(terminal) => terminal.listeners().collect(),
            Role::Hub(_) => Vec::new(),
        }
    }

    /// The sockets for datagrams, of which some may not be there.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = Option<&dyn DatagramSocket>> {
        self.outlets.iter().map(Outlet::udp)
    }

    /// Accepts from all of `new` as well, or from none; returns their numbers.
    pub(crate) fn listen(&mut self, new: Vec<Listener>) -> io::Result<Vec<usize>> {
        match &mut self.role {
            Role::Terminal(terminal) => terminal.listen(&mut *self.core.host, new),
            Role::Hub(_) => Ok(Vec::new()),
        }
    }

    /// Closes listeners that were not to be: nobody has come by them.
    pub(crate) fn listen_no_more(&mut self, numbers: &[usize]) {
        if let Role::Terminal(terminal) = &mut self.role {
            terminal.listen_no_more(numbers);
        }
    }

    /// Takes in who waits at the listeners that `go`, and closes them.
    pub(crate) fn close_listeners(&mut self, now: Instant, go: impl Fn(&Listener) -> bool) {
        self.core.now = now;
        if let Role::Terminal(terminal) = &mut self.role {
            terminal.close(&mut self.core, now, go);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Limits;
    use crate::config::MOST_LISTENERS;
    use crate::engine::accept::client_admission::Door;
    use crate::engine::accept::fallback::Fail;
    use crate::engine::accept::listener::Kind;
    use crate::engine::connect::direct::Direct;
    use crate::engine::terminal::Terminal;

    fn terminal() -> Terminal {
        let rules = crate::AcceptRules { rules: Vec::new(), others: crate::AcceptMode::Early };
        let door = Door::new(rules, &Limits::default(), Fail::default(), Direct::new());
        Terminal::new(door, None)
    }

    #[test]
    fn more_listeners_than_there_is_room_for_are_refused() {
        crate::driver::raise_descriptor_limit();
        let driver = crate::driver::Driver::new().unwrap();
        let mut host = driver.host().unwrap();
        let mut terminal = terminal();
        let listener =
            || crate::driver::bind("127.0.0.1:0".parse().unwrap(), Kind::Socks5).unwrap();
        let many = |count: usize| (0..count).map(|_| listener()).collect::<Vec<_>>();
        // As many as a configuration may have, twice.
        let old = terminal.listen(&mut host, many(MOST_LISTENERS)).unwrap();
        assert!(terminal.listen(&mut host, many(MOST_LISTENERS + 26)).is_err());
        assert_eq!(terminal.listeners().count(), MOST_LISTENERS, "all or none");
        terminal.listen(&mut host, many(MOST_LISTENERS)).unwrap();
        terminal.listen_no_more(&old);
        assert_eq!(terminal.listeners().count(), MOST_LISTENERS);
    }

    #[test]
    fn new_listeners_are_all_there_or_none_of_them() {
        let driver = crate::driver::Driver::new().unwrap();
        let mut host = driver.host().unwrap();
        let mut terminal = terminal();
        let listener =
            || crate::driver::bind("127.0.0.1:0".parse().unwrap(), Kind::Socks5).unwrap();
        assert_eq!(terminal.listen(&mut host, vec![listener()]).unwrap(), [0]);
        // The kernel refuses to watch one of them.
        let (good, bad) = (listener(), listener());
        let address = good.address;
        bad.watch(&mut host, 99).unwrap();
        assert!(terminal.listen(&mut host, vec![good, bad]).is_err());
        assert_eq!(terminal.listeners().count(), 1);
        assert!(std::net::TcpStream::connect(address).is_err(), "it is closed");
        assert_eq!(terminal.listen(&mut host, vec![listener()]).unwrap(), [1]);
    }
}
