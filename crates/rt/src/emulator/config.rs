//! Configuration of the emulator.

use crate::sched;
use satlink::{LinkConfig, words};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use units::Span;

/// Parameters of an emulator.
#[derive(Clone, Debug)]
pub struct EmulatorConfig {
    /// The link.
    pub link: LinkConfig,
    /// Description of the link for the report; if empty it is generated.
    pub link_words: String,
    /// Seed of the link's random numbers.
    pub seed: u64,
    /// Replication: selects other random numbers with the same seed.
    pub run: u64,
    /// The ports that it connects.
    pub ports: Ports,
    /// Capture file of side A, if any.
    pub pcap_a: Option<PathBuf>,
    /// Capture file of side B, if any.
    pub pcap_b: Option<PathBuf>,
    /// Requested real-time scheduling.
    pub scheduling: sched::Request,
    /// Interval of status lines on standard error; `None`: none.
    pub report_every: Option<Span>,
    /// Maximum events to log, for [`Summary::log`](super::Summary::log); `None`: no log.
    pub log: Option<usize>,
    /// Duration; `None`: until stopped.
    pub duration: Option<Span>,
    /// Maximum memory for packets in the link, in octets per direction.
    pub memory: u64,
    /// Requested socket buffers in octets.
    pub socket_buffer: usize,
    /// Limit of the 99th percentile of lateness, above which the report states that the emulator
    /// did not keep up.
    pub lateness_limit: Span,
}

/// The ports of an emulated link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ports {
    /// Two Ethernet interfaces of the calling thread's network namespace. Forward is from `a` to
    /// `b`.
    Interfaces {
        /// The hub's side.
        a: String,
        /// The terminal's side.
        b: String,
    },
    /// A relay without privileges: datagrams from clients to `listen` take the return direction to
    /// `target`, and its responses the forward direction. Each datagram counts with its IP and UDP
    /// headers.
    UdpRelay {
        /// The address that clients, the terminals, send to.
        listen: SocketAddr,
        /// The address of the hub.
        target: SocketAddr,
    },
}

impl EmulatorConfig {
    /// An emulator of `link` between `ports` with default settings: seed 1, no captures, real-time
    /// priority if available, no status lines, until stopped.
    pub fn new(link: LinkConfig, ports: Ports) -> Self {
        Self {
            link,
            link_words: String::new(),
            seed: 1,
            run: 0,
            ports,
            pcap_a: None,
            pcap_b: None,
            scheduling: sched::Request::default(),
            report_every: None,
            log: None,
            duration: None,
            memory: 1 << 30,
            socket_buffer: 64 << 20,
            lateness_limit: Span::from_millis(1),
        }
    }

    /// Parses a command line: `IF_A IF_B WORDS...` or `udp LISTEN TARGET WORDS...`, with the link
    /// description of [`satlink::words`].
    ///
    /// # Errors
    /// The invalid word, and what was expected.
    pub fn from_words(words: &[String]) -> Result<Self, WordsError> {
        let (ports, rest) = match words {
            [word, listen, target, rest @ ..] if word == "udp" => {
                (Ports::UdpRelay { listen: address(listen)?, target: address(target)? }, rest)
            }
            [word, ..] if word == "udp" => return Err(WordsError::NoPorts),
            [a, b, rest @ ..] => (Ports::Interfaces { a: a.clone(), b: b.clone() }, rest),
            [] | [_] => return Err(WordsError::NoPorts),
        };
        if let Ports::Interfaces { a, b } = &ports
            && a == b
        {
            return Err(WordsError::SameInterface { found: a.clone() });
        }
        let text = rest.join(" ");
        let link = words::parse_link(&text).map_err(WordsError::Link)?;
        link.validate().map_err(WordsError::Config)?;
        Ok(Self { link_words: text, ..Self::new(link, ports) })
    }
}

fn address(word: &str) -> Result<SocketAddr, WordsError> {
    word.parse().map_err(|_| WordsError::Address { found: word.to_owned() })
}

/// An error in an emulator's command line.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum WordsError {
    /// The two sides are missing.
    NoPorts,
    /// Both sides are the same interface.
    SameInterface {
        /// The interface.
        found: String,
    },
    /// Not an address and port.
    Address {
        /// What was found.
        found: String,
    },
    /// The link description is invalid.
    Link(words::WordError),
    /// The link configuration is invalid.
    Config(satlink::ConfigError),
}

impl fmt::Display for WordsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPorts => f.write_str(
                "expected two interfaces (IF_A IF_B), or udp LISTEN TARGET, before the link",
            ),
            Self::SameInterface { found } => {
                write!(f, "found {found:?} twice, expected two different interfaces")
            }
            Self::Address { found } => write!(
                f,
                "found {found:?}, expected an address and port, such as 127.0.0.1:4500 or [::1]:4500"
            ),
            Self::Link(error) => write!(f, "link: {error}"),
            Self::Config(error) => write!(f, "link: {error}"),
        }
    }
}

impl std::error::Error for WordsError {}

#[cfg(test)]
mod tests {
    use super::*;
    use units::BitRate;

    fn parse(text: &str) -> Result<EmulatorConfig, WordsError> {
        let words: Vec<String> = text.split_whitespace().map(String::from).collect();
        EmulatorConfig::from_words(&words)
    }

    #[test]
    fn the_words_of_the_readme_are_understood() {
        let config = parse("eth0 eth1 delay 300ms rate 10mbit loss 0.1%").unwrap();
        let ports = Ports::Interfaces { a: "eth0".into(), b: "eth1".into() };
        assert_eq!(config.ports, ports);
        assert_eq!(config.link.forward.rate, Some(BitRate::from_mbps(10)));
        assert_eq!(config.link.forward, config.link.return_);
        let config = parse("udp 127.0.0.1:5000 [::1]:6000 forward delay 1ms").unwrap();
        let Ports::UdpRelay { listen, target } = config.ports else { panic!("not a relay") };
        assert_eq!((listen.port(), target.port()), (5000, 6000));
        assert!(config.link.return_.delay.is_zero());
    }

    #[test]
    fn invalid_words_are_errors_with_expectation() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert!(error("eth0").contains("expected two interfaces"));
        assert!(error("udp 127.0.0.1:1").contains("udp LISTEN TARGET"));
        assert!(error("eth0 eth0 delay 1ms").contains("twice"));
        assert!(error("udp localhost 1.2.3.4:5").contains("found \"localhost\""));
        assert!(error("eth0 eth1 dely 1ms").contains("dely"));
        assert!(error("eth0 eth1 limit 0").contains("limit"));
    }
}
