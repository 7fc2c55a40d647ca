//! Configuration of the star emulator.

use crate::sched;
use satlink::mac::star::StarConfig;
use std::ffi::CStr;
use std::fmt;
use std::path::PathBuf;
use units::Span;

/// Parameters of an emulated star.
#[derive(Clone, Debug)]
pub struct StarEmulatorConfig {
    /// The network.
    pub star: StarConfig,
    /// Description of the network for the report; may be empty.
    pub star_words: String,
    /// The hub's interface.
    pub hub: String,
    /// The terminals, in the order of the report.
    pub terminals: Vec<TerminalPort>,
    /// Path of the socket for connection counts; `None`: none.
    pub counts: Option<PathBuf>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Replication: selects other random numbers with the same seed.
    pub run: u64,
    /// Requested real-time scheduling.
    pub scheduling: sched::Request,
    /// Interval of status lines on standard error; `None`: none.
    pub report_every: Option<Span>,
    /// Maximum packets of the return link to log, for
    /// [`StarSummary::log`](super::StarSummary::log); `None`: no log.
    pub log: Option<usize>,
    /// Duration; `None`: until stopped.
    pub duration: Option<Span>,
    /// Maximum memory for packets on the forward link, in octets. The return link's `limit` bounds
    /// the terminals' queues.
    pub memory: u64,
    /// Requested socket buffers in octets.
    pub socket_buffer: usize,
    /// Limit of the 99th percentile of lateness, above which the report states that the emulator
    /// did not keep up.
    pub lateness_limit: Span,
}

/// A terminal's port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalPort {
    /// Its name, in the star's description and at the hub.
    pub name: String,
    /// Its interface.
    pub interface: String,
}

impl StarEmulatorConfig {
    /// An emulator of `star` with default settings: seed 1, real-time priority if available, no
    /// status lines, until stopped, no connection counts.
    pub fn new(star: StarConfig, hub: &str, terminals: Vec<TerminalPort>) -> Self {
        Self {
            star,
            star_words: String::new(),
            hub: hub.to_owned(),
            terminals,
            counts: None,
            seed: 1,
            run: 0,
            scheduling: sched::Request::default(),
            report_every: None,
            log: None,
            duration: None,
            memory: 1 << 30,
            socket_buffer: 16 << 20,
            lateness_limit: Span::from_millis(1),
        }
    }

    /// Parses the interfaces of a command line: `HUB TERMINAL...`, where a terminal is an
    /// interface, `NAME=INTERFACE`, or `PREFIX*` for all interfaces of the calling thread's network
    /// namespace whose names start with the prefix, in alphabetical order.
    ///
    /// # Errors
    /// The invalid word, and what was expected.
    pub fn from_words(star: StarConfig, words: &[String]) -> Result<Self, PortsError> {
        let [hub, rest @ ..] = words else { return Err(PortsError::NoPorts) };
        let mut terminals = Vec::new();
        for word in rest {
            terminals.extend(ports(word)?);
        }
        if terminals.is_empty() {
            return Err(PortsError::NoPorts);
        }
        let config = Self::new(star, hub, terminals);
        let interfaces = || config.terminals.iter().map(|port| &port.interface);
        for (place, found) in interfaces().enumerate() {
            if found == hub || interfaces().take(place).any(|other| other == found) {
                return Err(PortsError::SameInterface { found: found.clone() });
            }
        }
        Ok(config)
    }

    /// The terminals' names.
    pub(super) fn names(&self) -> Vec<String> {
        self.terminals.iter().map(|port| port.name.clone()).collect()
    }
}

fn ports(word: &str) -> Result<Vec<TerminalPort>, PortsError> {
    let port = |name: &str, interface: &str| TerminalPort {
        name: name.to_owned(),
        interface: interface.to_owned(),
    };
    if let Some(prefix) = word.strip_suffix('*') {
        let mut names = interfaces();
        names.retain(|name| name.starts_with(prefix));
        names.sort();
        if names.is_empty() {
            return Err(PortsError::NoneLike { found: word.to_owned() });
        }
        return Ok(names.iter().map(|name| port(name, name)).collect());
    }
    let (name, interface) = word.split_once('=').unwrap_or((word, word));
    if name.is_empty() || interface.is_empty() || interface.contains(['*', '=']) {
        return Err(PortsError::NotAPort { found: word.to_owned() });
    }
    Ok(vec![port(name, interface)])
}

/// The interfaces of the calling thread's network namespace.
fn interfaces() -> Vec<String> {
    // SAFETY: if_nameindex takes nothing and returns an array that ends with an empty entry, or
    // null.
    let all = unsafe { libc::if_nameindex() };
    let mut names = Vec::new();
    if all.is_null() {
        return names;
    }
    let mut next = all;
    // SAFETY: entries before the one without an index have a name that ends with a zero byte.
    unsafe {
        while (*next).if_index != 0 {
            names.push(CStr::from_ptr((*next).if_name).to_string_lossy().into_owned());
            next = next.add(1);
        }
        libc::if_freenameindex(all);
    }
    names
}

/// An error in the interfaces of a star.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PortsError {
    /// A hub or terminals are missing.
    NoPorts,
    /// An interface is listed twice.
    SameInterface {
        /// The interface.
        found: String,
    },
    /// A pattern that matches no interface.
    NoneLike {
        /// The pattern.
        found: String,
    },
    /// An invalid terminal.
    NotAPort {
        /// What was found.
        found: String,
    },
}

impl fmt::Display for PortsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPorts => {
                f.write_str("expected the hub's interface, then those of its terminals")
            }
            Self::SameInterface { found } => {
                write!(f, "found {found:?} twice, expected different interfaces")
            }
            Self::NoneLike { found } => {
                write!(f, "found {found:?}, expected interfaces that are called so")
            }
            Self::NotAPort { found } => write!(
                f,
                "found {found:?}, expected an interface, NAME=INTERFACE, or PREFIX* at its end"
            ),
        }
    }
}

impl std::error::Error for PortsError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<StarEmulatorConfig, PortsError> {
        let words: Vec<String> = text.split_whitespace().map(String::from).collect();
        StarEmulatorConfig::from_words(StarConfig::default(), &words)
    }

    #[test]
    fn interfaces_have_names_or_are_names() {
        let config = parse("hub0 eth1 boat=eth2").unwrap();
        assert_eq!(config.hub, "hub0");
        assert_eq!(config.names(), ["eth1", "boat"]);
        assert_eq!(config.terminals[1].interface, "eth2");
        // Every system has this interface.
        assert_eq!(parse("hub0 l*").unwrap().names(), ["lo"]);
    }

    #[test]
    fn invalid_words_are_errors_with_expectation() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert!(error("").contains("the hub's interface") && error("hub0").contains("terminals"));
        assert!(error("hub0 eth1 boat=eth1").contains("\"eth1\" twice"));
        assert!(error("eth1 eth1").contains("twice"));
        assert!(error("hub0 nothing-like-it*").contains("expected interfaces that are called so"));
        assert!(error("hub0 =eth1").contains("expected an interface, NAME=INTERFACE"));
        assert!(error("hub0 a*b").contains("expected an interface"));
    }
}
