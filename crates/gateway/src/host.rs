//! Configured addresses that this host does not have yet, or has lost.
//!
//! ```text
//!   missing ──address added to the host──▶ present ──address removed──▶ missing
//! ```
//!
//! A gateway starts without them: sockets bind to them nevertheless (`IP_FREEBIND`, ip(7)), and
//! work from the moment the host has them, also after a removal. Missing addresses are looked up
//! once per second, for the log, for `bentpipe status`, and for sending, which needs a source
//! address.

use crate::{Config, Role};
use socket2::{Domain, Socket, Type};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use units::{Instant, Span};

/// Interval of the check for interfaces and addresses: short, because an operator may have just
/// connected one.
pub(crate) const LOOK: Span = Span::from_secs(1);

/// Binds `socket` to `address`, which this host may not have yet.
pub(crate) fn bind(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    let free = match address {
        SocketAddr::V4(_) => socket.set_freebind_v4(true),
        SocketAddr::V6(_) => socket.set_freebind_v6(true),
    };
    if let Err(error) = free {
        tracing::debug!(%address, %error, "IP_FREEBIND not available: address must exist");
    }
    socket.bind(&address.into())
}

/// The configured addresses, and whether this host has them.
#[derive(Debug)]
pub(crate) struct HostAddresses {
    all: Vec<Watched>,
    /// Time of the next check.
    due: Instant,
}

#[derive(Debug)]
struct Watched {
    /// The address; its port is ignored.
    address: SocketAddr,
    /// The keys of the address in the configuration.
    keys: Vec<&'static str>,
    missing: bool,
}

impl Default for HostAddresses {
    /// Creates it for a configuration without addresses.
    fn default() -> Self {
        Self { all: Vec::new(), due: Instant::ZERO }
    }
}

impl HostAddresses {
    /// Replaces the watched addresses by those of `config`.
    pub(crate) fn watch(&mut self, config: &Config) {
        self.due = Instant::ZERO;
        let before = std::mem::take(&mut self.all);
        for (key, address) in named(config) {
            let ip = address.ip();
            if ip.is_unspecified() || ip.is_loopback() {
                continue;
            }
            let is_same = |other: &&mut Watched| other.address.ip() == ip;
            match self.all.iter_mut().find(is_same) {
                Some(watched) if watched.keys.contains(&key) => {}
                Some(watched) => watched.keys.push(key),
                None => {
                    let missing = before.iter().any(|old| old.address.ip() == ip && old.missing);
                    self.all.push(Watched { address, keys: vec![key], missing });
                }
            }
        }
    }

    /// Returns the time of the next check.
    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// Schedules the next check for `due` at the latest.
    pub(crate) fn look_by(&mut self, due: Instant) {
        self.due = self.due.min(due);
    }

    /// Checks the addresses if that is due, and logs changes; returns whether it was due.
    pub(crate) fn review(
        &mut self,
        now: Instant,
        has: impl Fn(SocketAddr) -> Option<bool>,
    ) -> bool {
        if now < self.due {
            return false;
        }
        self.due = if self.all.is_empty() { Instant::FAR_FUTURE } else { now + LOOK };
        self.look(has);
        true
    }

    fn look(&mut self, has: impl Fn(SocketAddr) -> Option<bool>) {
        for watched in &mut self.all {
            let Some(is_there) = has(watched.address) else { continue };
            if watched.missing != is_there {
                continue;
            }
            watched.missing = !is_there;
            let (address, keys) = (watched.address.ip(), watched.keys.join(", "));
            if is_there {
                tracing::info!(%address, keys, "this host has the address now");
            } else {
                tracing::warn!(%address, keys, "waiting for an address that this host does not have");
            }
        }
    }

    /// Whether this host lacked `address` at the last check.
    pub(crate) fn lacks(&self, address: SocketAddr) -> bool {
        self.all.iter().any(|watched| watched.missing && watched.address.ip() == address.ip())
    }

    /// Returns the missing addresses.
    pub(crate) fn missing(&self) -> impl Iterator<Item = String> {
        self.all.iter().filter(|watched| watched.missing).map(ToString::to_string)
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "address {} ({})", self.address.ip(), self.keys.join(", "))
    }
}

/// Returns the addresses of `config` with their keys.
fn named(config: &Config) -> Vec<(&'static str, SocketAddr)> {
    let mut all = Vec::new();
    if !matches!(config.role, Role::Single(_)) {
        let key = |name: &str| if name.is_empty() { "link.listen" } else { "path.listen" };
        all.extend(config.effective_paths().iter().map(|path| (key(&path.name), path.link.listen)));
    }
    if let Role::Terminal(section) = &config.role {
        let proxies = [("socks5.listen", &section.socks5), ("connect.listen", &section.connect)];
        for (key, addresses) in proxies {
            all.extend(addresses.iter().map(|&address| (key, address)));
        }
        let dns = section.dns.iter().flat_map(|dns| &dns.listen);
        all.extend(dns.map(|&address| ("dns.listen", address)));
    }
    if let Role::Hub(section) = &config.role {
        all.extend(section.tls.iter().map(|tls| ("tls.listen", tls.listen)));
    }
    all.extend(config.metrics.map(|address| ("metrics.listen", address)));
    all
}

/// Whether this host has `address`; `None` if that cannot be determined, for example without a
/// free descriptor.
pub(crate) fn has(mut address: SocketAddr) -> Option<bool> {
    address.set_port(0);
    let probe = Socket::new(Domain::for_address(address), Type::DGRAM, None).ok()?;
    match probe.bind(&address.into()) {
        Ok(()) => Some(true),
        Err(error) if error.raw_os_error() == Some(libc::EADDRNOTAVAIL) => Some(false),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(listen: &str, metrics: &str) -> Config {
        let text = format!(
            "role = \"hub\"\nsecurity = \"none\"\n[link]\nlisten = \"{listen}\"\n\
             [metrics]\nlisten = \"{metrics}\"\n"
        );
        Config::parse("test.toml", &text).unwrap()
    }

    #[test]
    fn missing_capabilities_are_reported_with_their_keys() {
        let mut host = HostAddresses::default();
        host.watch(&config("192.0.2.77:7000", "192.0.2.77:9100"));
        assert_eq!(host.missing().count(), 0, "not looked yet");
        assert!(host.review(Instant::ZERO, has) && !host.review(Instant::ZERO, has));
        let missing: Vec<String> = host.missing().collect();
        assert_eq!(missing, ["address 192.0.2.77 (link.listen, metrics.listen)"]);
        assert!(host.lacks("192.0.2.77:1".parse().unwrap()));
        // Another configuration keeps the state of an address.
        host.watch(&config("192.0.2.77:7000", "[2001:db8::77]:9100"));
        assert_eq!(host.missing().collect::<Vec<_>>(), ["address 192.0.2.77 (link.listen)"]);
        assert!(host.review(Instant::ZERO, has));
        assert_eq!((host.missing().count(), host.due()), (2, Instant::ZERO + LOOK));
        host.watch(&config("0.0.0.0:7000", "127.0.0.1:9100"));
        assert!(host.review(Instant::ZERO, has));
        assert_eq!(host.due(), Instant::FAR_FUTURE, "these are always there");
    }

    #[test]
    fn sockets_bind_to_an_address_that_is_not_there_and_not_to_a_port_that_is_taken() {
        for address in ["192.0.2.77:0", "[2001:db8::77]:0"] {
            let address: SocketAddr = address.parse().unwrap();
            assert_eq!(has(address), Some(false));
            let socket = || Socket::new(Domain::for_address(address), Type::STREAM, None).unwrap();
            let (first, second) = (socket(), socket());
            bind(&first, address).unwrap();
            let taken = first.local_addr().unwrap().as_socket().unwrap();
            let refused = bind(&second, taken).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
        }
    }
}
