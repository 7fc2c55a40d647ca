//! How an emulated star is told what to be.

use crate::sched;
use satlink::mac::star::StarConfig;
use std::ffi::CStr;
use std::fmt;
use std::path::PathBuf;
use units::Span;

/// Everything about an emulated star.
#[derive(Clone, Debug)]
pub struct StarEmulatorConfig {
    /// The network.
    pub star: StarConfig,
    /// The same in words, for the report; may be empty.
    pub star_words: String,
    /// The hub's interface.
    pub hub: String,
    /// The terminals, in the order in which the report has them.
    pub terminals: Vec<TerminalPort>,
    /// Where a hub may say how many connections its terminals have; `None`: nowhere.
    pub counts: Option<PathBuf>,
    /// Seed of everything random.
    pub seed: u64,
    /// Replication: another number, another course of the same chances.
    pub run: u64,
    /// What to ask of the scheduler.
    pub scheduling: sched::Request,
    /// How often to say on standard error how it goes; `None`: never.
    pub report_every: Option<Span>,
    /// How many packets of the return link to log, for [`StarSummary::log`](super::StarSummary::log);
    /// `None`: none.
    pub log: Option<usize>,
    /// How long to run; `None`: until stopped.
    pub duration: Option<Span>,
    /// The most that packets on the forward link may take, bytes. What waits in a terminal is
    /// bounded by the return link's `limit`.
    pub memory: u64,
    /// Kernel memory to ask for at each socket, bytes.
    pub socket_buffer: usize,
    /// The 99th percentile of lateness above which the emulator says that it has not kept up.
    pub lateness_limit: Span,
}

/// A terminal's side of the star.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalPort {
    /// What it is called, in the star's description and by its hub.
    pub name: String,
    /// Its interface.
    pub interface: String,
}

impl StarEmulatorConfig {
    /// An emulator of `star` with the usual settings: seed 1, real-time priority if granted,
    /// silent, until stopped, no connection counts.
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

    /// The same, with interfaces as on a command line: `HUB TERMINAL...`, where a terminal is an
    /// interface, `NAME=INTERFACE`, or `PREFIX*` for all interfaces of the calling thread's
    /// network namespace whose names begin so, in alphabetical order.
    ///
    /// # Errors
    /// Which word is wrong, and what was expected.
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

/// What is wrong with the interfaces of a star.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PortsError {
    /// A hub or terminals are missing.
    NoPorts,
    /// An interface is given twice.
    SameInterface {
        /// Which.
        found: String,
    },
    /// A pattern that no interface is like.
    NoneLike {
        /// It.
        found: String,
    },
    /// Not a terminal.
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
        // Every machine has this one.
        assert_eq!(parse("hub0 l*").unwrap().names(), ["lo"]);
    }

    #[test]
    fn wrong_words_say_what_was_expected() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert!(error("").contains("the hub's interface") && error("hub0").contains("terminals"));
        assert!(error("hub0 eth1 boat=eth1").contains("\"eth1\" twice"));
        assert!(error("eth1 eth1").contains("twice"));
        assert!(error("hub0 nothing-like-it*").contains("expected interfaces that are called so"));
        assert!(error("hub0 =eth1").contains("expected an interface, NAME=INTERFACE"));
        assert!(error("hub0 a*b").contains("expected an interface"));
    }
}
