//! Checks whether this machine provides what a configuration needs, without starting anything.
//!
//! A valid configuration may not work on this machine, or not yet: an interface is missing, a port
//! is in use, this user lacks a capability. The file is not wrong then, so all findings are
//! warnings. Ports are bound briefly; nothing else is changed.

use crate::{
    Config, Deprecated, HubAddress, InterceptSection, Role, SourceMode, intercept, privileges,
};
use crate::{driver, engine};
use caps::{CapSet, Capability};
use nix::unistd::{Uid, User};
use socket2::{Domain, Socket, Type};
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::Path;

/// A warning for the operator before the gateway starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The key in the configuration.
    pub key: String,
    /// The problem, and the remedy.
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "warning: {}: {}", self.key, self.text)
    }
}

/// Checks whether this machine provides what `config` needs, for the current user.
pub fn check(config: &Config) -> Vec<Warning> {
    let mut found = Findings::default();
    for Deprecated { former, present, .. } in &config.deprecated {
        found.add(former, format!("deprecated, use {present}"));
    }
    for key in &config.ignored {
        found.add(key, "unknown to this release, and ignored as `optional` permits");
    }
    ports(&mut found, config);
    rights(&mut found, config);
    kernel(&mut found, config);
    carrying(&mut found, config);
    promises(&mut found, config);
    if let Some(state) = &config.state {
        state_file(&mut found, state);
    }
    hub_addresses(&mut found, config);
    let (wanted, has) = (config.limits.connections, driver::raise_descriptor_limit());
    let needed = engine::descriptors_for(wanted, 1);
    if has < needed {
        let text = format!("{wanted} connections want {needed} descriptors, and {has} are allowed");
        found.add("limits.connections", text + "; see LimitNOFILE or ulimit -n");
    }
    found.warnings
}

#[derive(Default)]
struct Findings {
    warnings: Vec<Warning>,
}

impl Findings {
    fn add(&mut self, key: &str, text: impl Into<String>) {
        self.warnings.push(Warning { key: key.into(), text: text.into() });
    }
}

/// Whether every address can be listened on.
fn ports(found: &mut Findings, config: &Config) {
    let mut try_one = |key: &str, address: SocketAddr, kind: Type| {
        let error = match bind(address, kind) {
            Ok(()) => return,
            Err(error) => error,
        };
        let advice = match error.raw_os_error() {
            Some(libc::EADDRINUSE) => "; it is in use now, by a gateway that runs or another",
            Some(libc::EADDRNOTAVAIL) => "; this machine has no such address now: it is waited for",
            Some(libc::EACCES) => "; ports below 1024 need CAP_NET_BIND_SERVICE",
            Some(_) | None => "",
        };
        found.add(key, format!("cannot listen on {address}: {error}{advice}"));
    };
    for path in config.effective_paths() {
        let key = if path.name.is_empty() { "link.listen" } else { "path.listen" };
        try_one(key, path.link.listen, Type::DGRAM);
    }
    if let Role::Terminal(section) = &config.role {
        for (key, _, addresses) in crate::reload::proxies(section) {
            for &address in addresses {
                try_one(key, address, Type::STREAM);
            }
        }
        if let Some(InterceptSection { port, .. }) = &section.intercept {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
            try_one("intercept.port", address, Type::STREAM);
        }
    }
    if let Role::Hub(section) = &config.role {
        for &address in &section.source_addresses {
            try_one("hub.source_addresses", SocketAddr::new(address, 0), Type::STREAM);
        }
    }
    if let Role::Single(section) = &config.role {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, section.port));
        try_one("single.port", address, Type::STREAM);
    }
    if let Some(address) = config.metrics {
        try_one("metrics.listen", address, Type::STREAM);
    }
}

/// Binds as the gateway does, and closes.
fn bind(address: SocketAddr, kind: Type) -> io::Result<()> {
    let socket = Socket::new(Domain::for_address(address), kind, None)?;
    if kind == Type::STREAM {
        socket.set_reuse_address(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
    }
    socket.bind(&address.into())?;
    // Two sockets that do not listen may share an address.
    if kind == Type::STREAM { socket.listen(1) } else { Ok(()) }
}

/// Checks the capabilities of this user.
fn rights(found: &mut Findings, config: &Config) {
    let root = Uid::effective().is_root();
    if let Some(name) = &config.user {
        match User::from_name(name) {
            Ok(Some(user)) if !root && Uid::effective() != user.uid => {
                found.add("user", "only root can switch to another user, and this is not root");
            }
            Ok(Some(_)) => {}
            Ok(None) => found.add("user", format!("this system has no user {name:?}")),
            Err(error) => found.add("user", format!("{name:?} cannot be looked up: {error}")),
        }
    }
    for (capability, what) in privileges::needed(config) {
        let has = |capability: Capability| caps::has_cap(None, CapSet::Effective, capability);
        if !has(capability).unwrap_or(true) {
            found.add(what, format!("needs {capability}, which this user has not"));
        }
    }
}

/// Checks routes to the hubs, and whether hubs' names have addresses.
fn hub_addresses(found: &mut Findings, config: &Config) {
    for path in config.effective_paths() {
        let key = if path.name.is_empty() { "link.peer" } else { "path.peer" };
        if let Some(HubAddress::Name(name, port)) = &path.link.peer {
            // Name servers other than the system's are queried by the gateway only.
            if config.resolver.nameservers.is_empty()
                && let Err(error) = (&**name, *port).to_socket_addrs()
            {
                let text = format!("{name} has no address now ({error}): the path waits for one");
                found.add(key, text);
            }
            continue;
        }
        let Some(route) = crate::relay_settings::route(&path) else { continue };
        let Err(error) = driver::mtu(&route) else { continue };
        if let Some(interface) =
            route.interface.as_ref().filter(|_| error.raw_os_error() == Some(libc::ENODEV))
        {
            let text = format!("there is no interface {interface:?} now");
            found.add("path.interface", text + ": the path is down until there is");
            continue;
        }
        found.add(key, format!("no route to {} now: {error}", route.peer));
    }
}

/// Checks kernel settings and interfaces.
fn kernel(found: &mut Findings, config: &Config) {
    let notes = match &config.role {
        Role::Terminal(section) => match &section.intercept {
            Some(section) => intercept::notes_for_terminal(&section.interfaces),
            None => Vec::new(),
        },
        Role::Hub(section) if section.source == SourceMode::Client => {
            intercept::notes_for_hub(&section.interfaces)
        }
        Role::Hub(_) => Vec::new(),
        Role::Single(section) => {
            let interfaces: Vec<String> =
                section.satellite.iter().chain(&section.network).cloned().collect();
            intercept::notes_for_terminal(&interfaces)
        }
    };
    for note in notes {
        found.add("kernel", note);
    }
}

/// Checks whether a TUN interface can be created, where packets are forwarded.
fn carrying(found: &mut Findings, config: &Config) {
    const TUN: &str = "/dev/net/tun";
    let Some(section) = &config.forward else { return };
    if let Err(error) = std::fs::OpenOptions::new().read(true).write(true).open(TUN) {
        let advice = match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => "; modprobe tun",
            Some(libc::EACCES | libc::EPERM) => "; this user, or this container, may not use it",
            Some(_) | None => "",
        };
        found.add("forward.device", format!("{TUN}: {error}{advice}"));
    }
    let is_there = |name: &str| Path::new("/sys/class/net").join(name).exists();
    let device = &section.device;
    if is_there(device) {
        let text = format!(
            "an interface {device} exists already, of a running gateway or another program"
        );
        found.add("forward.device", text);
    }
    for name in section.interfaces.iter().filter(|name| !is_there(name)) {
        found.add("forward.interfaces", format!("there is no interface {name:?} now"));
    }
}

/// Checks for plans that commit more than the link has, or that have no effect.
fn promises(found: &mut Findings, config: &Config) {
    let Role::Hub(section) = &config.role else { return };
    for commitment in crate::config::commitments(&config.link, section) {
        if commitment.is_exceeded() {
            found.add("plan", commitment.describe());
        }
    }
    if matches!(config.security, crate::SecuritySection::Noise(_)) {
        for (plan, name) in crate::config::unknown_members(section) {
            let text = format!("{name:?} has plan {plan:?} but no [[terminal]]");
            found.add("plan.terminals", text);
        }
    }
    let rates = [("up", config.link.rate_up), ("down", config.link.rate_down)];
    for (direction, _) in rates.into_iter().filter(|(_, rate)| rate.is_none()) {
        if !section.plans.is_empty() {
            let text =
                "is not configured: in this direction plans have no effect, except for peaks down";
            found.add(&format!("link.rate_{direction}"), text);
        }
    }
}

/// Checks whether the cached path metrics can be read and written.
fn state_file(found: &mut Findings, path: &Path) {
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => found.add("state", "it is not a regular file"),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => found.add("state", format!("{}: {error}", path.display())),
    }
    let folder = path.ancestors().skip(1).find(|folder| folder.exists());
    let Some(folder) = folder else { return };
    if let Err(error) = nix::unistd::access(folder, nix::unistd::AccessFlags::W_OK) {
        let text = format!("files cannot be created in {}: {error}", folder.display());
        found.add("state", text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn warnings(text: &str) -> Vec<Warning> {
        check(&Config::parse("test.toml", text).unwrap_or_else(|error| panic!("{error}")))
    }

    fn terminal(more: &str) -> String {
        format!(
            "role = \"terminal\"\nsecurity = \"none\"\n[link]\npeer = \"127.0.0.1:7000\"\n\
             [limits]\nconnections = 10\n{more}"
        )
    }

    #[test]
    fn missing_prerequisites_are_reported_with_their_key() {
        let fine = terminal("[socks5]\nlisten = \"127.0.0.1:0\"\n");
        assert_eq!(warnings(&fine), []);
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = taken.local_addr().map(|address| (address, taken)).unwrap();
        let text = terminal(&format!(
            "[socks5]\nlisten = [\"{}\", \"192.0.2.77:1080\"]\n\
             [intercept]\ninterfaces = [\"nosuch0\"]\n",
            taken.0
        ));
        let text =
            format!("state = \"/proc/self/status/peers.toml\"\nuser = \"no-such-user\"\n{text}");
        let all = warnings(&text);
        for (key, words) in [
            ("socks5.listen", "in use now"),
            ("socks5.listen", "192.0.2.77:1080"),
            ("user", "no user \"no-such-user\""),
            ("kernel", "no interface \"nosuch0\""),
            ("state", "Not a directory"),
        ] {
            let found = all.iter().any(|found| found.key == key && found.text.contains(words));
            assert!(found, "{key}: {words}: {all:?}");
        }
    }

    #[test]
    fn a_hubs_name_is_looked_up() {
        let named = |name: &str| {
            let text = terminal("[socks5]\nlisten = \"127.0.0.1:0\"\n");
            warnings(&text.replace("127.0.0.1:7000", name))
        };
        assert_eq!(named("localhost:7000"), []);
        let [warning] = &named("no-such-hub.invalid:7000")[..] else { panic!("one warning") };
        assert_eq!(warning.key, "link.peer");
        assert!(warning.text.contains("no-such-hub.invalid has no address now"), "{warning}");
    }

    #[test]
    fn requirements_of_forwarding_are_checked() {
        let text = terminal(
            "[socks5]\nlisten = \"127.0.0.1:0\"\n\
             [forward]\ninterfaces = [\"nosuch0\"]\ndevice = \"lo\"\n",
        );
        let all = warnings(&text);
        for (key, words) in
            [("forward.device", "lo exists already"), ("forward.interfaces", "nosuch0")]
        {
            let found = all.iter().any(|found| found.key == key && found.text.contains(words));
            assert!(found, "{key}: {words}: {all:?}");
        }
        let has_tun = std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun");
        let found = all.iter().any(|found| found.text.contains("/dev/net/tun"));
        assert_eq!(found, has_tun.is_err());
    }

    #[test]
    fn a_check_leaves_ports_free() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let text = terminal(&format!("[socks5]\nlisten = \"{free}\"\n"));
        assert_eq!(warnings(&text), []);
        assert_eq!(warnings(&text), []);
        TcpListener::bind(free).unwrap();
    }
}
