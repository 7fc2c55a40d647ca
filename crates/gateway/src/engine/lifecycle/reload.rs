//! What changes in a running engine when the configuration is read again.

use crate::config::commitments;
use crate::engine::accept::confirm_queue::ConfirmQueue;
use crate::engine::accept::listener::Listener;
use crate::engine::connect::source_addresses::SourceAddresses;
use crate::engine::connect::terminal_admission::Admission;
use crate::engine::host::{DatagramSocket, HeldSyns, Source};
use crate::engine::hub::Hub;
use crate::engine::pair::{Pair, Role};
use crate::engine::peers::classes::Classes;
use crate::engine::peers::link_socket::LinkSocket;
use crate::engine::peers::scheduler_notifier::SchedulerNotifier;
use crate::engine::terminal::Terminal;
use crate::engine::transfer::close_cause::ConnectionLog;
use crate::{Commitment, Config, ConfirmSection, HubSection, ResolverSection, TerminalSection};
use std::io;
use std::os::fd::BorrowedFd;
use units::{BitRate, Instant};

impl<R: Role> Pair<R> {
    /// Applies what both roles have of `config`. Running connections keep what they began with.
    fn apply_common(&mut self, config: &Config) {
        self.core.limits.clone_from(&config.limits);
        self.core.resolver.configure(&config.resolver);
        self.core.slots.set(&config.limits);
        self.core.relays.set_ipv6_prefix(config.limits.ipv6_prefix);
        self.log_ends(config);
        self.watch_addresses(config);
        // There may be room again, or none any more.
        self.core.room_again = true;
    }

    /// Resolves names as `section` has it.
    pub(crate) fn set_resolver(&mut self, section: &ResolverSection) {
        self.core.resolver.configure(section);
    }

    /// Logs the end of each connection, if `config` says so.
    pub(crate) fn log_ends(&mut self, config: &Config) {
        let name = match &config.role {
            crate::Role::Terminal(section) => section.name.clone(),
            crate::Role::Hub(_) | crate::Role::Single(_) => String::new(),
        };
        self.core.connection_log = ConnectionLog { wanted: config.log.connections, name };
    }

    /// Sets the rates of the link, as far as the peers have announced theirs.
    pub(crate) fn set_rates(&mut self, send: Option<BitRate>, receive: Option<BitRate>) {
        self.core.relays.set_rates(send, receive);
    }

    /// Sets the rates of a terminal's path, as far as its hub has announced its own.
    pub(crate) fn set_path_rates(
        &mut self,
        name: &str,
        up: Option<BitRate>,
        down: Option<BitRate>,
    ) {
        self.core.relays.set_path_rates(name, up, down);
    }

    /// Returns the UDP sockets, of which some may be missing.
    pub(crate) fn sockets(&self) -> Vec<Option<&dyn DatagramSocket>> {
        self.link_sockets.iter().map(LinkSocket::udp).collect()
    }
}

impl Pair<Hub> {
    /// Applies `config`, of which `section` is the hub's, and `admission`.
    pub(crate) fn apply(
        &mut self,
        section: &HubSection,
        config: &Config,
        admission: Option<Admission>,
    ) {
        self.apply_common(config);
        let hub = &mut self.role;
        hub.source = section.source;
        hub.source_addresses = SourceAddresses::new(&section.source_addresses);
        hub.classes = Classes::new(&section.classes);
        hub.name_servers.clone_from(&section.name_servers);
        self.core.relays.set_plans(section);
        hub.commitments = commitments(&config.link, section);
        if let Some(admission) = admission {
            hub.admission = admission;
        }
        if hub.scheduler.as_ref().map(SchedulerNotifier::path) != section.mac.as_deref() {
            hub.scheduler =
                section.mac.as_ref().and_then(|path| SchedulerNotifier::new(path, &section.id));
        }
    }

    /// Sets the rates that its plans commit, for the status.
    pub(crate) fn set_commitments(&mut self, commitments: Vec<Commitment>) {
        self.role.commitments = commitments;
    }
}

impl Pair<Terminal> {
    /// Applies `config`, of which `section` is the terminal's.
    pub(crate) fn apply(&mut self, section: &TerminalSection, config: &Config) {
        self.apply_common(config);
        self.role.admission.change(section, config);
        self.core.relays.set_health(config.health.demands, config.keep_alive());
    }

    /// Watches `gate`, which is not in use yet.
    ///
    /// # Errors
    /// Those of watching its socket.
    pub(crate) fn watch_syn_gate(&mut self, gate: &dyn HeldSyns) -> io::Result<()> {
        self.core.host.watch(gate.id(), Source::HeldSyns)
    }

    /// Holds SYNs by `gate`, if there is a new one (which is watched already), within `bounds`.
    pub(crate) fn set_syn_gate(&mut self, gate: Option<Box<dyn HeldSyns>>, bounds: ConfirmSection) {
        if let Some(gate) = gate {
            match &mut self.role.confirm_queue {
                Some(confirm) => confirm.replace_gate(gate),
                None => self.role.confirm_queue = Some(ConfirmQueue::new(gate, bounds)),
            }
        }
        if let Some(confirm) = &mut self.role.confirm_queue {
            confirm.set_bounds(bounds);
        }
    }

    /// Returns the listeners that are open.
    pub(crate) fn listeners(&self) -> Vec<&Listener> {
        self.role.listeners().collect()
    }

    /// Returns the descriptors of the sockets on which it accepts connections and queries.
    pub(crate) fn listening_descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.role.listening_descriptors().collect()
    }

    /// Accepts from all of `new` as well, or from none; returns their numbers.
    ///
    /// # Errors
    /// Those of watching their sockets, and too many listeners.
    pub(crate) fn listen(&mut self, new: Vec<Listener>) -> io::Result<Vec<usize>> {
        self.role.listen(&mut *self.core.host, new)
    }

    /// Closes listeners at which no client has been accepted.
    pub(crate) fn listen_no_more(&mut self, numbers: &[usize]) {
        self.role.listen_no_more(numbers);
    }

    /// Accepts the clients that are pending at the listeners that `go`, and closes these.
    pub(crate) fn close_listeners(&mut self, now: Instant, go: impl Fn(&Listener) -> bool) {
        self.core.now = now;
        self.role.close(&mut self.core, now, go);
    }
}

#[cfg(test)]
mod tests {
    use crate::Limits;
    use crate::config::MAX_PROXY_LISTENERS;
    use crate::engine::accept::client_admission::ClientAdmission;
    use crate::engine::accept::direct::Direct;
    use crate::engine::accept::fallback::FallbackPolicy;
    use crate::engine::accept::listener::Kind;
    use crate::engine::terminal::Terminal;

    fn terminal() -> Terminal {
        let rules = crate::AcceptRules { rules: Vec::new(), others: crate::AcceptMode::Early };
        let admission = ClientAdmission::new(
            rules,
            &Limits::default(),
            FallbackPolicy::default(),
            Direct::new(),
        );
        Terminal::new(admission, None)
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
        let old = terminal.listen(&mut host, many(MAX_PROXY_LISTENERS)).unwrap();
        assert!(terminal.listen(&mut host, many(MAX_PROXY_LISTENERS + 26)).is_err());
        assert_eq!(terminal.listeners().count(), MAX_PROXY_LISTENERS, "all or none");
        terminal.listen(&mut host, many(MAX_PROXY_LISTENERS)).unwrap();
        terminal.listen_no_more(&old);
        assert_eq!(terminal.listeners().count(), MAX_PROXY_LISTENERS);
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
