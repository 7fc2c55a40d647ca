//! Commands to a running star, as lines of text.
//!
//! | line | meaning |
//! |---|---|
//! | `forward WORDS` | changes the forward link |
//! | `weight NAME N` | sets the terminal's weight, until another one is announced |
//! | `off NAME`, `on NAME` | logs it off; logs it on |
//! | `vanish NAME` | it disappears without logging off, with its granted slots |
//! | `claim NAME SLOTS`, `claim NAME honest` | it always requests this many slots; it requests what it needs |
//! | `intrude NAME [CARRIER]` | it sends an unauthorized burst now; default carrier 0 |
//! | `stop` | end, and report |
//!
//! Blank lines are ignored; `#` starts a comment.

use super::super::commands::{self, CommandReceiver, CommandSender};
use crate::Clock;
use satlink::mac::mf_tdma::Claim;
use satlink::mac::schedule::Request;
use satlink::{DirectionConfig, LinkConfig, words};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// A command; terminals by number.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Command {
    Forward(Box<LinkConfig>),
    Weight(usize, u32),
    Off(usize),
    On(usize),
    Vanish(usize),
    Claim(usize, Claim),
    Intrude(usize, u32),
    Stop,
}

/// Controls a running star from any thread.
#[derive(Clone, Debug)]
pub struct StarHandle {
    commands: CommandSender<Command>,
    terminals: Arc<[String]>,
    carriers: u32,
    forward: Arc<Mutex<LinkConfig>>,
}

/// Why a command was rejected.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StarOrderError {
    /// An unknown word.
    Unknown {
        /// The word.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
    /// The description of the forward link is invalid.
    Words(words::WordError),
    /// The configuration of the forward link is invalid.
    Config(satlink::ConfigError),
    /// The emulator has ended, or its command queue is full.
    NotListening,
}

impl fmt::Display for StarOrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { found, expected } => write!(f, "found {found:?}, expected {expected}"),
            Self::Words(error) => write!(f, "{error}"),
            Self::Config(error) => write!(f, "{error}"),
            Self::NotListening => f.write_str("the emulator has ended, or is overwhelmed"),
        }
    }
}

impl std::error::Error for StarOrderError {}

impl StarHandle {
    /// Stops the emulator.
    pub fn stop(&self) {
        // If it has ended there is nothing to do.
        let _ = self.send(Command::Stop);
    }

    /// Executes a line as in the table above.
    ///
    /// # Errors
    /// An error in the line, or [`StarOrderError::NotListening`].
    pub fn line(&self, line: &str) -> Result<(), StarOrderError> {
        let line = line.split('#').next().unwrap_or_default().trim();
        let (order, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match order {
            "" => Ok(()),
            "forward" => self.forward(rest),
            "stop" => self.send(Command::Stop),
            _ => self.send(self.about_a_terminal(order, rest)?),
        }
    }

    fn about_a_terminal(&self, order: &str, rest: &str) -> Result<Command, StarOrderError> {
        const ORDERS: &str = "forward, weight, off, on, vanish, claim, intrude or stop";
        let unknown = |found: &str, expected| {
            Err(StarOrderError::Unknown { found: found.to_owned(), expected })
        };
        if !["weight", "off", "on", "vanish", "claim", "intrude"].contains(&order) {
            return unknown(order, ORDERS);
        }
        let mut rest = rest.split_whitespace();
        let name = rest.next().unwrap_or_default();
        let Some(terminal) = self.terminals.iter().position(|other| other == name) else {
            return unknown(name, "the name of a terminal");
        };
        let value = rest.next();
        let number = value.and_then(|value| value.parse::<u32>().ok());
        if let Some(more) = rest.next() {
            return unknown(more, "the end of the line");
        }
        let found = value.unwrap_or_default();
        Ok(match (order, value, number) {
            ("weight", _, Some(weight)) => {
                Command::Weight(terminal, weight.min(satlink::mac::weights::MOST))
            }
            ("weight", ..) => return unknown(found, "a weight from 0 to 1000000"),
            ("claim", Some("honest"), _) => Command::Claim(terminal, Claim::Honest),
            ("claim", _, Some(slots)) => {
                Command::Claim(terminal, Claim::Always(Request::Absolute(slots)))
            }
            ("claim", ..) => return unknown(found, "a number of slots, or honest"),
            ("intrude", None, _) => Command::Intrude(terminal, 0),
            ("intrude", _, Some(carrier)) if carrier < self.carriers => {
                Command::Intrude(terminal, carrier)
            }
            ("intrude", ..) => return unknown(found, "a carrier that there is, from 0"),
            (_, Some(more), _) => return unknown(more, "the end of the line"),
            ("off", None, _) => Command::Off(terminal),
            ("on", None, _) => Command::On(terminal),
            (_, None, _) => Command::Vanish(terminal),
        })
    }

    fn forward(&self, text: &str) -> Result<(), StarOrderError> {
        let mut current = self.forward.lock().unwrap_or_else(PoisonError::into_inner);
        let mut config = current.clone();
        words::apply_direction(&mut config.forward, text).map_err(StarOrderError::Words)?;
        config.validate().map_err(StarOrderError::Config)?;
        self.send(Command::Forward(Box::new(config.clone())))?;
        *current = config;
        Ok(())
    }

    fn send(&self, command: Command) -> Result<(), StarOrderError> {
        self.commands.send(command).map_err(|_| StarOrderError::NotListening)
    }
}

/// A link whose return direction is unused.
pub(super) fn forward_only(forward: DirectionConfig) -> LinkConfig {
    LinkConfig { forward, ..LinkConfig::default() }
}

/// Creates both ends for a star with these terminals.
pub(super) fn pair(
    terminals: Vec<String>,
    carriers: u32,
    forward: &LinkConfig,
    clock: Clock,
) -> io::Result<(StarHandle, CommandReceiver<Command>)> {
    let (commands, receiver) = commands::channel(clock)?;
    let forward = Arc::new(Mutex::new(forward.clone()));
    let terminals = terminals.into();
    Ok((StarHandle { commands, terminals, carriers, forward }, receiver))
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::BitRate;

    fn ends() -> (StarHandle, CommandReceiver<Command>) {
        let names = ["boat", "hut"].map(String::from).to_vec();
        pair(names, 2, &LinkConfig::default(), Clock::from_here()).unwrap()
    }

    #[test]
    fn lines_are_orders() {
        let (handle, orders) = ends();
        for line in [
            "weight hut 7",
            "off boat # for the night",
            "on boat",
            "vanish hut",
            "claim hut 4000",
            "claim hut honest",
            "intrude boat",
            "intrude boat 1",
            "",
            "stop",
        ] {
            handle.line(line).unwrap();
        }
        let all: Vec<Command> = orders.fetch().map(|(_, order)| order).collect();
        let expected = [
            Command::Weight(1, 7),
            Command::Off(0),
            Command::On(0),
            Command::Vanish(1),
            Command::Claim(1, Claim::Always(Request::Absolute(4_000))),
            Command::Claim(1, Claim::Honest),
            Command::Intrude(0, 0),
            Command::Intrude(0, 1),
            Command::Stop,
        ];
        assert_eq!(all, expected);
        handle.line("forward rate 3mbit").unwrap();
        handle.line("forward loss 1%").unwrap();
        let Some((_, Command::Forward(link))) = orders.fetch().last() else { panic!("an order") };
        assert_eq!(link.forward.rate, Some(BitRate::from_mbps(3)));
        assert!(link.forward.loss > 0.0);
    }

    #[test]
    fn invalid_line_is_an_error_with_reason() {
        let (handle, orders) = ends();
        for (line, expected) in [
            ("fly", "found \"fly\", expected forward, weight, off"),
            ("off", "found \"\", expected the name of a terminal"),
            ("off plane", "found \"plane\", expected the name of a terminal"),
            ("off hut now", "found \"now\", expected the end of the line"),
            ("weight hut", "expected a weight"),
            ("weight hut 3 4", "found \"4\", expected the end of the line"),
            ("claim hut -1", "found \"-1\", expected a number of slots, or honest"),
            ("intrude hut 2", "found \"2\", expected a carrier that there is"),
            ("forward fast", "found \"fast\""),
            ("forward limit 0", "limit"),
        ] {
            let found = handle.line(line).unwrap_err().to_string();
            assert!(found.contains(expected), "{line}: {found}");
        }
        assert!(orders.fetch().next().is_none());
    }
}
