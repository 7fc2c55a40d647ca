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
mod entries;
mod fail;
mod forward;
mod hub_address;
mod limits;
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
mod share;
mod single;
mod summary;
mod terminals;
mod values;

pub use fail::{FailSection, WhenFail};
pub use hub_address::HubAddress;
pub use observe::ControlSocket;

use crate::intercept::{PortRange, Prefix};
use crate::reach::Destinations;
pub use log::{LogFormat, LogLevel, LogSection};
pub(crate) use merged::Change;
use reader::Reader;
use relay::Control;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use units::{BitRate, Span};

pub use accept::{AcceptMode, AcceptRule, AcceptRules, ConfirmSection, WhenFull};
pub use paths::{HealthSection, PathSection};
pub(crate) use paths::{MOST as MOST_PATHS, terminal_of};
pub use plans::{ClassSection, Commitment, PlanSection};
pub(crate) use plans::{commitments, for_relay, strangers};
pub use quic::QuicMode;
pub(crate) use read::MOST_LISTENERS;
pub use resolver::ResolverSection;
pub use security::{KeySource, NoiseSection, PeerKey, SecuritySection};
pub(crate) use share::Terms;
pub use share::{ShareLimits, TerminalEntry};
pub use single::SingleSection;

/// Everything that a gateway is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which end of the satellite link this is.
    pub role: Role,
    /// What secures the link.
    pub security: SecuritySection,
    /// The link between the two gateways.
    pub link: LinkSection,
    /// A terminal's ways to its hubs, where there are more than the one in `link`.
    pub paths: Vec<PathSection>,
    /// What is asked of a terminal's ways.
    pub health: HealthSection,
    /// What becomes of a terminal's new connections that cannot be carried.
    pub fail: FailSection,
    /// Bounds and times.
    pub limits: Limits,
    /// Which name servers are asked.
    pub resolver: ResolverSection,
    /// Where rates that were found are remembered.
    pub state: Option<PathBuf>,
    /// Where the control socket is; `None`: the configuration says nothing of it.
    pub control: Option<ControlSocket>,
    /// Where metrics are had; nowhere when `None`.
    pub metrics: Option<SocketAddr>,
    /// What is written about what happens, and how.
    pub log: LogSection,
    /// Whom a gateway becomes that root has started; nobody else when `None`.
    pub user: Option<String>,
    /// What is carried as it is; nothing when `None`.
    pub forward: Option<ForwardSection>,
    /// Keys of the file whose names are deprecated.
    pub deprecated: Vec<Deprecated>,
}

/// A key under a deprecated name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deprecated {
    /// The line, counted from one.
    pub line: usize,
    /// The deprecated name, with the names of its tables.
    pub former: String,
    /// The present name.
    pub present: String,
}

/// What is carried as it is, beside the connections.
#[derive(Clone, Debug, Default)]
pub struct ForwardSection {
    /// Names what is written into the kernel's tables.
    pub id: String,
    /// The TUN interface.
    pub device: String,
    /// Its MTU, bytes.
    pub mtu: u32,
    /// A terminal's: the clients' interfaces; `lan*` is allowed.
    pub interfaces: Vec<String>,
    /// Numbers of protocols that are carried; all when empty.
    pub protocols: Vec<u8>,
    /// Destinations to carry to; all when empty.
    pub include: Vec<Prefix>,
    /// Destinations to leave alone.
    pub exclude: Vec<Prefix>,
    /// Ports of TCP and UDP to carry to; all when empty.
    pub include_ports: Vec<PortRange>,
    /// Ports of TCP and UDP to leave alone.
    pub exclude_ports: Vec<PortRange>,
    /// Protocol and ports that are refused with an ICMP message.
    pub refuse: Vec<(u8, PortRange)>,
    /// A hub's: the networks of its terminals.
    pub networks: Vec<Prefix>,
    /// Mark, routing table and rule priority, when not the usual.
    pub marking: Marking,
}

/// Which end of the satellite link this is, and what only that end is told.
#[derive(Clone, Debug)]
pub enum Role {
    /// At the user's satellite terminal: takes the clients' connections.
    Terminal(TerminalSection),
    /// At the hub: connects on to the servers.
    Hub(HubSection),
    /// At the sending earth station, with nothing at the other end: TCP on both sides.
    Single(SingleSection),
}

/// What only a terminal is told.
#[derive(Clone, Debug)]
pub struct TerminalSection {
    /// By what the hub tells it from other terminals.
    pub name: String,
    /// When clients are told that their connections stand.
    pub accept: AcceptRules,
    /// Where SOCKS5 is spoken.
    pub socks5: Vec<SocketAddr>,
    /// Where HTTP CONNECT is spoken.
    pub connect: Vec<SocketAddr>,
    /// Transparent interception, when wanted.
    pub intercept: Option<InterceptSection>,
}

/// Transparent interception at a terminal.
#[derive(Clone, Debug)]
pub struct InterceptSection {
    /// Names what is written into the kernel's tables.
    pub id: String,
    /// The port of the transparent listeners.
    pub port: u16,
    /// The clients' interfaces; `lan*` is allowed.
    pub interfaces: Vec<String>,
    /// Ports to take; all when empty.
    pub include_ports: Vec<PortRange>,
    /// Ports to leave alone.
    pub exclude_ports: Vec<PortRange>,
    /// Destinations to take; all when empty.
    pub include: Vec<Prefix>,
    /// Destinations to leave alone.
    pub exclude: Vec<Prefix>,
    /// What becomes of QUIC from the same interfaces.
    pub quic: QuicMode,
    /// What bounds clients that wait for their server's answer.
    pub confirm: ConfirmSection,
    /// Mark, routing table and rule priority, when not the usual.
    pub marking: Marking,
}

/// The numbers that interception writes into the kernel's tables, where they are not the usual.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marking {
    /// The firewall mark.
    pub mark: Option<u32>,
    /// The routing table.
    pub table: Option<u32>,
    /// The priority of the policy rule.
    pub priority: Option<u32>,
}

/// What only a hub is told.
#[derive(Clone, Debug)]
pub struct HubSection {
    /// Names what is written into the kernel's tables.
    pub id: String,
    /// Whose address servers see.
    pub source: SourceMode,
    /// Whose addresses terminals may have servers see; any when empty.
    pub clients: Vec<Prefix>,
    /// Interfaces towards the servers, for replies to clients' addresses; all when empty.
    pub interfaces: Vec<String>,
    /// Destinations that are refused, and exceptions from that.
    pub destinations: Destinations,
    /// Whether the hub's own addresses and its links' are refused where no rule names them; unless
    /// said otherwise they are when the hub listens beyond loopback.
    pub guarded: bool,
    /// What is known of terminals, and not the same for all.
    pub terminals: Vec<TerminalEntry>,
    /// Where a MAC scheduler is told how many connections each terminal has; nowhere when `None`.
    pub mac: Option<PathBuf>,
    /// Who may have how much of the link.
    pub plans: Vec<PlanSection>,
    /// What goes first on the way from the hub.
    pub classes: Vec<ClassSection>,
    /// Mark, routing table and rule priority, when not the usual.
    pub marking: Marking,
}

/// Whose address servers see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceMode {
    /// The hub's own.
    Own,
    /// The client's, where the client's address is known and of the server's family.
    Client,
}

/// The link between the two gateways.
#[derive(Clone, Debug)]
pub struct LinkSection {
    /// Where datagrams are received.
    pub listen: SocketAddr,
    /// Where the hub is, at a terminal.
    pub peer: Option<HubAddress>,
    /// The rate from terminal to hub: IP bytes and [`LinkSection::overhead`]. `None`: it is found.
    pub rate_up: Option<BitRate>,
    /// The rate from hub to terminal: IP bytes and [`LinkSection::overhead`]. `None`: it is found.
    pub rate_down: Option<BitRate>,
    /// What decides how fast this side sends.
    pub controller: Control,
    /// The round trip to reckon with before one was measured.
    pub round_trip: Span,
    /// The largest IP packet that is tried, in bytes; what the path takes of it is found.
    pub mtu: u32,
    /// Bytes that the link adds to each IP packet.
    pub overhead: u32,
    /// Whether a hub measures an unknown rate by packets without data while the link is idle.
    pub padding: bool,
}

/// Bounds and times.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at once.
    pub connections: u32,
    /// Terminals at once, at a hub; `None`: 256, or as many as it knows if those are more.
    pub terminals: Option<u32>,
    /// Bytes of buffer for each peer in each direction, beside 16 KiB for each connection; `None`:
    /// what the rates ask for.
    pub memory: Option<u64>,
    /// Bytes of buffer for all terminals of a hub together, in each direction, beside 16 KiB for each
    /// connection; `None`: a quarter of the machine's memory.
    pub memory_total: Option<u64>,
    /// What each terminal of a hub may take.
    pub terminal: ShareLimits,
    /// What each client of a terminal may take.
    pub client: ShareLimits,
    /// How long the hub tries to reach a server.
    pub connect: Span,
    /// How long an opening waits for the client's first bytes to ride with it.
    pub first_data_wait: Span,
    /// How long a client may take to say to a proxy what it wants.
    pub handshake: Span,
    /// Idle time after which TCP asks whether the other end is still there.
    pub keepalive: Span,
    /// How long the other end of a TCP connection may leave TCP without an answer.
    pub tcp_user_timeout: Span,
    /// How long the link may be out before the connections over it are given up.
    pub outage: Span,
    /// How long running connections may take to finish when the gateway is asked to stop.
    pub drain: Span,
    /// How long a connection may move no byte before it is ended; `None`: for ever.
    pub idle: Option<Span>,
    /// Length of the prefix by which IPv6 clients are counted, bits.
    pub ipv6_prefix: u32,
}

/// Why a configuration was not taken: every mistake in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file.
    pub file: String,
    /// What is wrong with it, by line.
    pub mistakes: Vec<Mistake>,
}

/// One thing that is wrong in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The line, counted from one.
    pub line: usize,
    /// The key, with the names of its tables.
    pub key: String,
    /// What stands there.
    pub found: String,
    /// What should.
    pub expected: String,
}

impl Default for HubSection {
    fn default() -> Self {
        Self {
            id: "hub".into(),
            source: SourceMode::Own,
            clients: Vec::new(),
            interfaces: Vec::new(),
            destinations: Destinations::default(),
            guarded: false,
            terminals: Vec::new(),
            mac: None,
            plans: Vec::new(),
            classes: Vec::new(),
            marking: Marking::default(),
        }
    }
}

impl Default for LinkSection {
    /// Any port, rates to be found, packets of 1,500 bytes, a round trip of 600 ms.
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            peer: None,
            rate_up: None,
            rate_down: None,
            controller: Control::default(),
            round_trip: Span::from_millis(600),
            mtu: 1500,
            overhead: 0,
            padding: true,
        }
    }
}

impl Default for Limits {
    /// 4,096 connections; 20 s to connect, 4 ms for first bytes, 10 s for a proxy's handshake,
    /// keep-alive after 60 s, a peer that says nothing for 120 s has vanished, outages of up to
    /// 120 s, and 10 s to finish. Idle connections stay, and IPv6 clients count by their /64.
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
    /// Every mistake in the file, or the one that it cannot be read.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&file, &text)
                .and_then(|config| config.keeps_its_secrets(path))
                .map(Self::with_state_directory)
                .map(Self::with_control_socket),
            Err(error) => {
                let mistake = Mistake {
                    line: 0,
                    key: "(file)".into(),
                    found: error.to_string(),
                    expected: "a readable TOML file".into(),
                };
                Err(ConfigError { file, mistakes: vec![mistake] })
            }
        }
    }

    /// The service manager's folder for state is where rates are remembered, unless another place
    /// was named.
    fn with_state_directory(mut self) -> Self {
        let folder = std::env::var_os("STATE_DIRECTORY").unwrap_or_default();
        // There may be several, with colons between them.
        let folder = std::env::split_paths(&folder).next().filter(|path| path.is_absolute());
        self.state = self.state.or_else(|| folder.map(|folder| folder.join("peers.toml")));
        self
    }

    /// The ways to other gateways: those of `[[path]]`, or the one of `[link]`.
    pub(crate) fn ways(&self) -> Vec<PathSection> {
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

    /// How long a terminal's path may be idle before it is tried.
    pub(crate) fn keep_alive(&self) -> Span {
        let several = self.paths.len() > 1;
        self.health.probe(several || self.fail.depends_on_paths())
    }

    /// What the gateway is called on its machine.
    fn id(&self) -> &str {
        match &self.role {
            Role::Hub(hub) => &hub.id,
            Role::Single(single) => &single.id,
            Role::Terminal(terminal) => {
                terminal.intercept.as_ref().map_or("terminal", |intercept| &intercept.id)
            }
        }
    }

    /// A file's configuration has a control socket unless it says otherwise.
    fn with_control_socket(mut self) -> Self {
        self.control = self.control.take().or_else(|| Some(ControlSocket::usual(self.id())));
        self
    }

    /// Checks `text`; `file` is the name to use in messages.
    ///
    /// # Errors
    /// Every mistake in the text.
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        let (mut reader, top) = Reader::open(file, text)?;
        let config = read::config(&mut reader, top);
        reader.close(config)
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.mistakes.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            let Mistake { line, key, found, expected } = mistake;
            write!(f, "{}:{line}: {key}: found {found}, expected {expected}", self.file)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests;
