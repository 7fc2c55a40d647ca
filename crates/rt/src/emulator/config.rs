//! How an emulator is told what to be.

use crate::sched;
use satlink::{LinkConfig, words};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use units::Span;

/// Everything about an emulator.
#[derive(Clone, Debug)]
pub struct EmulatorConfig {
    /// The link.
    pub link: LinkConfig,
    /// What the link is, for the report; empty: as this program holds it.
    pub link_words: String,
    /// Seed of the link's randomness.
    pub seed: u64,
    /// Replication: another number, another course of the same chances.
    pub run: u64,
    /// What it is between.
    pub ports: Ports,
    /// Capture of side A, if wanted.
    pub pcap_a: Option<PathBuf>,
    /// Capture of side B, if wanted.
    pub pcap_b: Option<PathBuf>,
    /// What to ask of the scheduler.
    pub scheduling: sched::Request,
    /// How often to say on standard error how it goes; `None`: never.
    pub report_every: Option<Span>,
    /// How many events to log, for [`Summary::log`](super::Summary::log); `None`: none.
    pub log: Option<usize>,
    /// How long to run; `None`: until stopped.
    pub duration: Option<Span>,
    /// The most that packets in the link may take, bytes, in each direction.
    pub memory: u64,
    /// Kernel memory to ask for at each socket, bytes.
    pub socket_buffer: usize,
    /// The 99th percentile of lateness above which the emulator says that it has not kept up.
    pub lateness_limit: Span,
}

/// What an emulated link lies between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ports {
    /// Two Ethernet interfaces of the calling thread's network namespace. What comes in at `a`
    /// goes forward.
    Interfaces {
        /// The hub's side.
        a: String,
        /// The terminal's side.
        b: String,
    },
    /// No privileges needed: what clients send to `listen` takes the return direction to
    /// `target`, and what `target` answers comes forward to them. Each datagram counts with its
    /// IP and UDP headers.
    UdpRelay {
        /// Where clients, the terminals, send to.
        listen: SocketAddr,
        /// Where the hub listens.
        target: SocketAddr,
    },
}

impl EmulatorConfig {
    /// An emulator of `link` between `ports`, with the usual settings: seed 1, no captures,
    /// real-time priority if granted, silent, until stopped.
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

    /// An emulator from the words of a command line: `IF_A IF_B WORDS...` or
    /// `udp LISTEN TARGET WORDS...`, where the words are those of [`satlink::words`].
    ///
    /// # Errors
    /// Which word is wrong, and what was expected.
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

/// What is wrong with an emulator's words.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum WordsError {
    /// The two sides are not given.
    NoPorts,
    /// Both sides are the same interface.
    SameInterface {
        /// Which.
        found: String,
    },
    /// Not an address and port.
    Address {
        /// What was found.
        found: String,
    },
    /// A word of the link is wrong.
    Link(words::WordError),
    /// The words are right and the link is not.
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
    fn wrong_words_say_what_was_expected() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert!(error("eth0").contains("expected two interfaces"));
        assert!(error("udp 127.0.0.1:1").contains("udp LISTEN TARGET"));
        assert!(error("eth0 eth0 delay 1ms").contains("twice"));
        assert!(error("udp localhost 1.2.3.4:5").contains("found \"localhost\""));
        assert!(error("eth0 eth1 dely 1ms").contains("dely"));
        assert!(error("eth0 eth1 limit 0").contains("limit"));
    }
}
