//! The configured name servers, and the addresses in `/etc/hosts`.

use crate::ResolverSection;
use crate::engine::resolver::name;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ProtocolConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::system_conf::parse_resolv_conf;
use hickory_resolver::{Hosts, TokioResolver};
use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use units::Span;

const RESOLV_CONF: &str = "/etc/resolv.conf";
const HOSTS: &str = "/etc/hosts";

/// The configuration of lookups.
pub(super) struct System {
    section: ResolverSection,
    read: [Option<Stamp>; 2],
    resolver: Option<TokioResolver>,
    search: Vec<Name>,
    ndots: usize,
    hosts: Hosts,
}

/// Modification time and size, by which a change of a file is detected.
type Stamp = (SystemTime, u64);

impl System {
    /// Returns the configuration of `section`, and that of the system's files if it names no
    /// servers.
    pub(super) fn new(section: ResolverSection) -> Self {
        let files = [RESOLV_CONF, HOSTS].map(stamp);
        let (config, options) = configuration(&section);
        let search = match config.search() {
            [] => config.domain().cloned().into_iter().collect(),
            search => search.to_vec(),
        };
        let ndots = options.ndots;
        let mut builder =
            TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        *builder.options_mut() = options;
        let resolver = builder.build();
        if let Err(error) = &resolver {
            tracing::error!(%error, "name lookups unavailable");
        }
        let mut hosts = Hosts::default();
        if let Ok(file) = fs::File::open(HOSTS)
            && let Err(error) = hosts.read_hosts_conf(file)
        {
            tracing::warn!(file = HOSTS, %error, "file not read completely");
        }
        Self { section, read: files, resolver: resolver.ok(), search, ndots, hosts }
    }

    /// Reads the files again if they have changed; returns whether they have.
    pub(super) fn refresh(&mut self) -> bool {
        let changed = [RESOLV_CONF, HOSTS].map(stamp) != self.read;
        if changed {
            tracing::info!("resolver configuration reloaded");
            *self = Self::new(self.section.clone());
        }
        changed
    }

    /// Returns the resolver; `None` if the configuration cannot be used.
    pub(super) fn resolver(&self) -> Option<&TokioResolver> {
        self.resolver.as_ref()
    }

    /// Returns the names that are looked up for `name`.
    pub(super) fn candidates(&self, name: &str) -> Vec<Name> {
        name::candidates(name, &self.search, self.ndots)
    }

    /// Returns the addresses of `name` in `/etc/hosts`, of both families.
    pub(super) fn of_hosts(&self, name: &str) -> Option<Arc<[IpAddr]>> {
        let name = Name::from_ascii(name).ok()?;
        let found = [RecordType::AAAA, RecordType::A]
            .into_iter()
            .filter_map(|kind| self.hosts.lookup_static_host(&Query::query(name.clone(), kind)));
        let found = found.flat_map(|lookup| {
            let addresses = lookup.answers().iter().filter_map(|record| record.data.ip_addr());
            addresses.collect::<Vec<_>>()
        });
        let found: Vec<IpAddr> = found.collect();
        (!found.is_empty()).then(|| found.into())
    }
}

fn stamp(file: impl AsRef<Path>) -> Option<Stamp> {
    let metadata = fs::metadata(file).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// Returns the name servers of `section`, or the system's.
fn configuration(section: &ResolverSection) -> (ResolverConfig, ResolverOpts) {
    let (mut config, mut options) = if section.nameservers.is_empty() {
        of_system(&fs::read(RESOLV_CONF).unwrap_or_default())
    } else {
        let servers = section.nameservers.iter().map(|address| {
            let connections = [ProtocolConfig::Udp, ProtocolConfig::Tcp].map(|protocol| {
                let mut connection = ConnectionConfig::new(protocol);
                connection.port = address.port();
                connection
            });
            NameServerConfig::new(address.ip(), true, connections.into())
        });
        (ResolverConfig::from_parts(None, Vec::new(), servers.collect()), ResolverOpts::default())
    };
    if let Some(search) = &section.search {
        let names = search.iter().filter_map(|name| Name::from_ascii(name).ok()).collect();
        config = ResolverConfig::from_parts(None, names, config.name_servers().to_vec());
    }
    if let Some(timeout) = section.timeout {
        options.timeout = duration(timeout);
    }
    if let Some(attempts) = section.attempts {
        options.attempts = attempts as usize;
    }
    // The resolver counts attempts after the first.
    options.attempts = options.attempts.saturating_sub(1);
    options.use_hosts_file = ResolveHosts::Never;
    // The loop has the only cache, which also needs the TTL of aliases.
    options.cache_size = 0;
    options.preserve_intermediates = true;
    (config, options)
}

/// Returns the contents of `resolv.conf`. Without a name server in it, 127.0.0.1 is queried, as by
/// the C library.
fn of_system(text: &[u8]) -> (ResolverConfig, ResolverOpts) {
    let with_local = [text, b"\nnameserver 127.0.0.1\n"].concat();
    let parsed = parse_resolv_conf(text)
        .or_else(|_| parse_resolv_conf(&with_local))
        .or_else(|_| parse_resolv_conf("nameserver 127.0.0.1\n"));
    parsed.unwrap_or_default()
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(config: &ResolverConfig) -> Vec<String> {
        config.name_servers().iter().map(|server| server.ip.to_string()).collect()
    }

    #[test]
    fn resolv_conf_is_applied() {
        let text = b"# comment\nnameserver 192.0.2.53\nnameserver 2001:db8::53\n\
                     search lan example.org\noptions ndots:2 timeout:3 attempts:4\n";
        let (config, options) = of_system(text);
        assert_eq!(servers(&config), ["192.0.2.53", "2001:db8::53"]);
        let search: Vec<String> = config.search().iter().map(Name::to_ascii).collect();
        assert_eq!(search, ["lan", "example.org"]);
        let read = (options.ndots, options.timeout, options.attempts);
        assert_eq!(read, (2, Duration::from_secs(3), 4));
    }

    #[test]
    fn without_a_name_server_localhost_is_queried() {
        for text in ["", "search lan\n", "nameserver nonsense\n"] {
            let (config, _) = of_system(text.as_bytes());
            assert_eq!(servers(&config), ["127.0.0.1"], "{text:?}");
        }
        let search: Vec<String> =
            of_system(b"search lan\n").0.search().iter().map(Name::to_ascii).collect();
        assert_eq!(search, ["lan"]);
    }

    #[test]
    fn the_configuration_replaces_resolv_conf() {
        let section = ResolverSection {
            nameservers: vec!["192.0.2.1:5353".parse().unwrap()],
            search: Some(vec!["lan".into()]),
            timeout: Some(Span::from_millis(1_500)),
            attempts: Some(1),
        };
        let (config, options) = configuration(&section);
        assert_eq!(servers(&config), ["192.0.2.1"]);
        let ports = config.name_servers()[0].connections.iter().map(|one| one.port);
        assert_eq!(ports.collect::<Vec<_>>(), [5353, 5353]);
        assert_eq!(config.search().len(), 1);
        assert_eq!((options.timeout, options.attempts), (Duration::from_millis(1_500), 0));
    }

    #[test]
    fn the_hosts_file_has_both_families() {
        let mut system = System::new(ResolverSection::default());
        let text = "192.0.2.9 nas nas.lan # comment\n2001:db8::9 nas\n192.0.2.10 v4only\n";
        system.hosts = Hosts::default();
        system.hosts.read_hosts_conf(text.as_bytes()).unwrap();
        let of = |name| system.of_hosts(name).map(|all| all.to_vec());
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(of("nas"), Some(vec![ip("2001:db8::9"), ip("192.0.2.9")]));
        assert_eq!(of("NAS.lan."), Some(vec![ip("192.0.2.9")]));
        assert_eq!(of("v4only"), Some(vec![ip("192.0.2.10")]));
        assert_eq!(of("other"), None);
    }
}
