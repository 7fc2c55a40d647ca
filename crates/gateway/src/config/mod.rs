//! The daemon's configuration: a TOML file, checked in full before anything starts.
//!
//! ```
//! let text = r#"
//!     role = "terminal"
//!     accept = "early"
//!     security = "none"
//!     [link]
//!     peer = "192.0.2.1:7000"
//!     rate_up = "1mbit"
//!     rate_down = "10mbit"
//!     [socks5]
//!     listen = "127.0.0.1:1080"
//! "#;
//! let config = gateway::Config::parse("terminal.toml", text).unwrap();
//! assert_eq!(config.link.rate_up, Some(units::BitRate::from_mbps(1)));
//!
//! let wrong = text.replace("10mbit", "10mb");
//! let error = gateway::Config::parse("terminal.toml", &wrong).unwrap_err();
//! assert!(error.to_string().starts_with("terminal.toml:8: link.rate_down: found \"10mb\""));
//! ```

mod accept;
mod dns;
mod drop_ins;
mod entries;
mod fail;
mod forward;
mod hub_address;
mod items;
mod limits;
mod link;
mod log;
mod merged;
mod observe;
mod paths;
mod plans;
mod quic;
mod reach;
mod read;
mod reader;
mod resolver;
mod security;
mod shards;
mod share;
mod single;
mod summary;
mod terminals;
mod tls;
mod values;

pub use fail::{FailSection, WhenFail};
pub use forward::{ForwardSection, ForwardTcp};
pub use hub_address::HubAddress;
pub use observe::ControlSocket;

use crate::intercept::{PortRange, Prefix};
use crate::reach::Destinations;
pub(crate) use drop_ins::{DropIns, folder_of as drop_in_folder};
pub use link::LinkSection;
pub use log::{LogFormat, LogLevel, LogSection};
pub(crate) use merged::Change;
use reader::Reader;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use units::Span;

pub use accept::{AcceptMode, AcceptRule, AcceptRules, ConfirmSection, WhenFull};
pub use dns::DnsSection;
pub(crate) use dns::MAX_DNS_LISTENERS;
pub use paths::{HealthSection, PathSection};
pub(crate) use paths::{MAX_PATHS, joins, terminal_of};
pub use plans::{ClassSection, Commitment, PlanSection};
pub(crate) use plans::{commitments, for_relay, unknown_members};
pub use quic::QuicMode;
pub(crate) use read::MAX_PROXY_LISTENERS;
pub use resolver::ResolverSection;
pub use security::{KeySource, NoiseSection, PeerKey, SecuritySection};
pub(crate) use shards::shard_of;
pub(crate) use share::Terms;
pub use share::{Enrolment, ShareLimits, TerminalEntry};
pub use single::SingleSection;
pub use tls::{TlsCertificate, TlsCongestion, TlsListen, TlsSection};

/// The configuration of a gateway.
#[derive(Clone, Debug)]
pub struct Config {
    /// The function of this gateway, with the settings of that function.
    pub role: Role,
    /// The security suite of the link, with its keys.
    pub security: SecuritySection,
    /// The link between the two gateways.
    pub link: LinkSection,
    /// A terminal's paths to its hubs, if there are more than the one in `link`.
    pub paths: Vec<PathSection>,
    /// Health criteria of a terminal's paths.
    pub health: HealthSection,
    /// Treatment of a terminal's new connections that cannot be relayed.
    pub fail: FailSection,
    /// Bounds and timeouts.
    pub limits: Limits,
    /// Name servers and their settings.
    pub resolver: ResolverSection,
    /// The file in which path metrics are cached.
    pub state: Option<PathBuf>,
    /// The control socket; `None` if the configuration does not set it.
    pub control: Option<ControlSocket>,
    /// The address that serves metrics; `None`: metrics are not served.
    pub metrics: Option<SocketAddr>,
    /// Settings of the log.
    pub log: LogSection,
    /// The user that a gateway started by root switches to; `None`: it does not switch.
    pub user: Option<String>,
    /// Packets that are forwarded unsplit; `None`: none.
    pub forward: Option<ForwardSection>,
    /// Deprecated names of keys in the file.
    pub deprecated: Vec<Deprecated>,
    /// Unknown keys in the file that `optional` permits, with the names of their tables.
    pub ignored: Vec<String>,
}

/// A key under a deprecated name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deprecated {
    /// The line number, from 1.
    pub line: usize,
    /// The deprecated name, with the names of its tables.
    pub former: String,
    /// The present name.
    pub present: String,
}

/// The function of a gateway, with the settings of that function.
#[derive(Clone, Debug)]
pub enum Role {
    /// At the user's satellite terminal: accepts the clients' connections.
    Terminal(TerminalSection),
    /// At the hub: opens connections to the servers.
    Hub(HubSection),
    /// At the sending earth station, without a peer gateway: TCP on both sides.
    Single(SingleSection),
}

/// Settings of a terminal.
#[derive(Clone, Debug)]
pub struct TerminalSection {
    /// The name by which the hub identifies this terminal.
    pub name: String,
    /// When clients' connections are accepted.
    pub accept: AcceptRules,
    /// Addresses of the SOCKS5 proxy.
    pub socks5: Vec<SocketAddr>,
    /// Addresses of the HTTP CONNECT proxy.
    pub connect: Vec<SocketAddr>,
    /// Transparent interception; `None`: off.
    pub intercept: Option<InterceptSection>,
    /// DNS forwarder; `None`: there is none.
    pub dns: Option<DnsSection>,
    /// TLS where UDP does not work; `None`: never.
    pub tls: Option<TlsSection>,
}

/// Transparent interception at a terminal.
#[derive(Clone, Debug)]
pub struct InterceptSection {
    /// Identifies this gateway's entries in the kernel's tables.
    pub id: String,
    /// The port of the transparent listeners.
    pub port: u16,
    /// The clients' interfaces; `lan*` is allowed.
    pub interfaces: Vec<String>,
    /// Ports that are intercepted; empty: all.
    pub include_ports: Vec<PortRange>,
    /// Ports that are not intercepted.
    pub exclude_ports: Vec<PortRange>,
    /// Destinations that are intercepted; empty: all.
    pub include: Vec<Prefix>,
    /// Destinations that are not intercepted.
    pub exclude: Vec<Prefix>,
    /// Treatment of QUIC from the same interfaces.
    pub quic: QuicMode,
    /// Limits on connections that wait for their server.
    pub confirm: ConfirmSection,
    /// Mark, routing table and rule priority, where they are not the defaults.
    pub marking: Marking,
}

/// The numbers that interception uses in the kernel's tables, where they are not the defaults.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marking {
    /// The firewall mark.
    pub mark: Option<u32>,
    /// The routing table.
    pub table: Option<u32>,
    /// The priority of the policy rule.
    pub priority: Option<u32>,
}

/// Settings of a hub.
#[derive(Clone, Debug)]
pub struct HubSection {
    /// Identifies this gateway's entries in the kernel's tables.
    pub id: String,
    /// The source address of connections to servers.
    pub source: SourceMode,
    /// This host's addresses for connections to servers; if none is of a server's family, the
    /// routing table selects one.
    pub source_addresses: Vec<IpAddr>,
    /// Client addresses that terminals may use as source addresses; empty: any.
    pub clients: Vec<Prefix>,
    /// Interfaces towards the servers, for replies to client addresses; empty: all.
    pub interfaces: Vec<String>,
    /// Destinations that are refused, and exceptions.
    pub destinations: Destinations,
    /// Whether the hub's own addresses and those of its interfaces are refused if no rule names
    /// them. The default is `true` if the hub listens on an address other than loopback.
    pub guarded: bool,
    /// Settings of single terminals.
    pub terminals: Vec<TerminalEntry>,
    /// Number of shards: threads, each with the associations of some of the terminals.
    pub shards: u32,
    /// The socket of a MAC scheduler that receives the number of connections of each terminal;
    /// `None`: not sent.
    pub mac: Option<PathBuf>,
    /// Rate plans.
    pub plans: Vec<PlanSection>,
    /// Traffic classes, in the direction from the hub.
    pub classes: Vec<ClassSection>,
    /// Mark, routing table and rule priority, where they are not the defaults.
    pub marking: Marking,
    /// Name servers that answer terminals' DNS forwarders; empty: those are refused.
    pub name_servers: Vec<SocketAddr>,
    /// TLS from terminals; `None`: not accepted.
    pub tls: Option<TlsListen>,
}

/// The source address of connections to servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceMode {
    /// The hub's own address.
    Own,
    /// The client's address, if it is known and of the server's address family.
    Client,
}

/// Bounds and timeouts.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum number of connections.
    pub connections: u32,
    /// At a hub, maximum number of connected terminals; `None`: 256, or the number of configured
    /// terminals if that is greater.
    pub terminals: Option<u32>,
    /// Buffer bytes for each peer in each direction, in addition to 16 KiB for each connection;
    /// `None`: computed from the rates.
    pub memory: Option<u64>,
    /// Buffer bytes for all terminals of a hub together, in each direction, in addition to 16 KiB
    /// for each connection; `None`: a quarter of the machine's memory.
    pub memory_total: Option<u64>,
    /// Quota of each terminal of a hub.
    pub terminal: ShareLimits,
    /// Quota of each client of a terminal.
    pub client: ShareLimits,
    /// Timeout of the hub's connection to a server.
    pub connect: Span,
    /// Maximum delay of a stream's opening, so that the client's first bytes are sent with it.
    pub first_data_wait: Span,
    /// Timeout of a client's proxy handshake.
    pub handshake: Span,
    /// Idle time after which TCP sends a keep-alive segment.
    pub keepalive: Span,
    /// Time after which TCP gives up a connection with unacknowledged data (RFC 5482).
    pub tcp_user_timeout: Span,
    /// Duration of an outage of the link after which its connections are reset.
    pub outage: Span,
    /// Time for running connections to finish after the gateway was ordered to stop.
    pub drain: Span,
    /// Time without a transferred byte after which a connection is ended; `None`: unlimited.
    pub idle: Option<Span>,
    /// Length in bits of the prefix by which IPv6 clients are counted.
    pub ipv6_prefix: u32,
}

/// A rejected configuration, with every mistake in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file.
    pub file: String,
    /// The mistakes, by line.
    pub mistakes: Vec<Mistake>,
}

/// One mistake in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The file: the configuration, or a drop-in of it.
    pub file: String,
    /// The line number, from 1.
    pub line: usize,
    /// The key, with the names of its tables.
    pub key: String,
    /// What the file has.
    pub found: String,
    /// What is valid there.
    pub expected: String,
}

impl Default for HubSection {
    fn default() -> Self {
        Self {
            id: "hub".into(),
            source: SourceMode::Own,
            source_addresses: Vec::new(),
            clients: Vec::new(),
            interfaces: Vec::new(),
            destinations: Destinations::default(),
            guarded: false,
            terminals: Vec::new(),
            shards: 1,
            mac: None,
            plans: Vec::new(),
            classes: Vec::new(),
            marking: Marking::default(),
            name_servers: Vec::new(),
            tls: None,
        }
    }
}

impl Default for Limits {
    /// Returns 4,096 connections; 20 s to connect, 4 ms for first bytes, 10 s for a proxy
    /// handshake, keep-alive after 60 s, a TCP user timeout of 120 s, outages of up to 120 s, and
    /// 10 s to finish. Idle connections are not ended, and IPv6 clients are counted by their /64.
    fn default() -> Self {
        Self {
            connections: 4096,
            terminals: None,
            memory: None,
            memory_total: None,
            terminal: ShareLimits::default(),
            client: ShareLimits::default(),
            connect: Span::from_secs(20),
            first_data_wait: Span::from_millis(4),
            handshake: Span::from_secs(10),
            keepalive: Span::from_secs(60),
            tcp_user_timeout: Span::from_secs(120),
            outage: Span::from_secs(120),
            drain: Span::from_secs(10),
            idle: None,
            ipv6_prefix: 64,
        }
    }
}

impl Config {
    /// Reads and checks the file at `path`.
    ///
    /// # Errors
    /// Returns every mistake in the file, or the failure to read it.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => DropIns::beside(path)
                .and_then(|drop_ins| Self::parse_with(&file, &text, &drop_ins))
                .and_then(|config| config.keeps_its_secrets(path))
                .map(Self::with_state_directory)
                .map(Self::with_control_socket),
            Err(error) => Err(ConfigError::unreadable(path, error.to_string())),
        }
    }

    /// Caches path metrics in the service manager's state directory, unless `state` names another
    /// file.
    fn with_state_directory(mut self) -> Self {
        let folder = std::env::var_os("STATE_DIRECTORY").unwrap_or_default();
        // The variable may list several directories, separated by colons.
        let folder = std::env::split_paths(&folder).next().filter(|path| path.is_absolute());
        self.state = self.state.or_else(|| folder.map(|folder| folder.join("peers.toml")));
        self
    }

    /// Returns the paths to other gateways: those of `[[path]]`, or the one of `[link]`.
    pub(crate) fn effective_paths(&self) -> Vec<PathSection> {
        if !self.paths.is_empty() {
            return self.paths.clone();
        }
        let keys = match &self.security {
            SecuritySection::Noise(keys) => Some(keys.clone()),
            SecuritySection::None => None,
        };
        let (name, link) = (String::new(), self.link.clone());
        vec![PathSection { name, link, interface: None, priority: 1, weight: 1, keys }]
    }

    /// Returns the idle time after which a terminal's path is probed.
    pub(crate) fn keep_alive(&self) -> Span {
        let several = self.paths.len() > 1;
        self.health.probe(several || self.fail.depends_on_paths())
    }

    /// Returns the gateway's identifier on this machine.
    fn id(&self) -> &str {
        match &self.role {
            Role::Hub(hub) => &hub.id,
            Role::Single(single) => &single.id,
            Role::Terminal(terminal) => {
                terminal.intercept.as_ref().map_or("terminal", |intercept| &intercept.id)
            }
        }
    }

    /// Sets the default control socket, unless the configuration sets or disables it.
    fn with_control_socket(mut self) -> Self {
        self.control = self.control.take().or_else(|| Some(ControlSocket::usual(self.id())));
        self
    }

    /// Checks `text`; `file` is the name to use in messages.
    ///
    /// # Errors
    /// Returns every mistake in the text.
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        Self::parse_with(file, text, &DropIns::default())
    }

    fn parse_with(file: &str, text: &str, drop_ins: &DropIns) -> Result<Self, ConfigError> {
        let (mut reader, top) = Reader::open(file, text, drop_ins)?;
        let config = read::config(&mut reader, top);
        reader.close(config)
    }
}

impl ConfigError {
    /// A file or folder that cannot be read, because of `found`.
    fn unreadable(path: &Path, found: String) -> Self {
        let (file, key) = (path.display().to_string(), "(file)".to_owned());
        let expected = "a readable TOML file".to_owned();
        Self { file: file.clone(), mistakes: vec![Mistake { file, line: 0, key, found, expected }] }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.mistakes.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            let Mistake { file, line, key, found, expected } = mistake;
            match (line, &**key) {
                (0, "(file)") => write!(f, "cannot read {file}: {found}")?,
                (0, key) => write!(f, "{file}: {key}: found {found}, expected {expected}")?,
                _ => write!(f, "{file}:{line}: {key}: found {found}, expected {expected}")?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests;
