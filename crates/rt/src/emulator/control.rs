//! Commands to a running emulator: from other threads, or as lines of text.
//!
//! | line | meaning |
//! |---|---|
//! | `set WORDS` | changes the link: `set forward rate 5mbit loss 1%` |
//! | `outage TIME` | starts an outage of this duration |
//! | `stop` | end, and report |
//!
//! Blank lines are ignored; `#` starts a comment.

use super::commands::{self, CommandReceiver, CommandSender};
use super::observe::Published;
use crate::Clock;
use satlink::{Counters, Direction, LinkConfig, words};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use units::Span;

/// A command.
#[derive(Clone, Debug)]
pub(super) enum Command {
    Reconfigure(Box<LinkConfig>),
    Outage(Span),
    Stop,
}

/// Controls a running emulator from any thread.
#[derive(Clone, Debug)]
pub struct Handle {
    commands: CommandSender<Command>,
    /// The current link configuration, for commands that change parts of it.
    config: Arc<Mutex<LinkConfig>>,
    counters: Published,
}

/// Why a command was rejected.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ControlError {
    /// The first word is unknown.
    UnknownOrder {
        /// The word.
        found: String,
    },
    /// The link description is invalid.
    Words(words::WordError),
    /// The link configuration is invalid.
    Config(satlink::ConfigError),
    /// The emulator has ended, or its command queue is full.
    NotListening,
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownOrder { found } => {
                write!(f, "found {found:?}, expected set, outage or stop")
            }
            Self::Words(error) => write!(f, "{error}"),
            Self::Config(error) => write!(f, "{error}"),
            Self::NotListening => f.write_str("the emulator has ended, or is overwhelmed"),
        }
    }
}

impl std::error::Error for ControlError {}

impl Handle {
    /// Replaces the link's configuration by `config` from now on.
    ///
    /// # Errors
    /// [`ControlError::Config`] if it is invalid.
    pub fn reconfigure(&self, config: LinkConfig) -> Result<(), ControlError> {
        let mut current = self.config.lock().unwrap_or_else(PoisonError::into_inner);
        self.replace(&mut current, config)
    }

    /// Starts an outage of `length` now.
    ///
    /// # Errors
    /// [`ControlError::NotListening`].
    pub fn outage(&self, length: Span) -> Result<(), ControlError> {
        self.send(Command::Outage(length))
    }

    /// The link's counters of one direction, at most some 10 ms old; after the end, the final ones.
    pub fn counters(&self, direction: Direction) -> Counters {
        let counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        counters[direction as usize].clone()
    }

    /// Stops the emulator.
    pub fn stop(&self) {
        // If it has ended there is nothing to do.
        let _ = self.send(Command::Stop);
    }

    /// Executes a line as in the table above.
    ///
    /// # Errors
    /// An error in the line, or [`ControlError::NotListening`].
    pub fn line(&self, line: &str) -> Result<(), ControlError> {
        let line = line.split('#').next().unwrap_or_default().trim();
        let (order, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match order {
            "" => Ok(()),
            "set" => {
                let mut current = self.config.lock().unwrap_or_else(PoisonError::into_inner);
                let mut config = current.clone();
                words::apply_link(&mut config, rest).map_err(ControlError::Words)?;
                self.replace(&mut current, config)
            }
            "outage" => {
                let mut scratch = LinkConfig::default();
                words::apply_link(&mut scratch, &format!("outage at 0s for {rest}"))
                    .map_err(ControlError::Words)?;
                let length = scratch.outages.first().map_or(Span::ZERO, |outage| outage.length);
                self.outage(length)
            }
            "stop" => self.send(Command::Stop),
            found => Err(ControlError::UnknownOrder { found: found.to_owned() }),
        }
    }

    /// Shared storage of the emulator's counters.
    pub(super) fn published(&self) -> Published {
        Arc::clone(&self.counters)
    }

    fn replace(&self, current: &mut LinkConfig, config: LinkConfig) -> Result<(), ControlError> {
        config.validate().map_err(ControlError::Config)?;
        self.send(Command::Reconfigure(Box::new(config.clone())))?;
        *current = config;
        Ok(())
    }

    fn send(&self, command: Command) -> Result<(), ControlError> {
        self.commands.send(command).map_err(|_| ControlError::NotListening)
    }
}

/// Creates both ends for an emulator that starts with `config` and uses `clock`.
pub(super) fn pair(
    config: &LinkConfig,
    clock: Clock,
) -> io::Result<(Handle, CommandReceiver<Command>)> {
    let (commands, receiver) = commands::channel(clock)?;
    let config = Arc::new(Mutex::new(config.clone()));
    Ok((Handle { commands, config, counters: Published::default() }, receiver))
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::BitRate;

    #[test]
    fn lines_change_only_the_named_parameters() {
        let start = words::parse_link("delay 300ms rate 10mbit").unwrap();
        let (handle, orders) = pair(&start, Clock::from_here()).unwrap();
        handle.line("set forward rate 5mbit # slower").unwrap();
        handle.line("set return loss 1%").unwrap();
        handle.line("   # nothing").unwrap();
        let next = || orders.fetch().next().map(|(_, order)| order);
        let Some(Command::Reconfigure(first)) = next() else { panic!("no first order") };
        assert_eq!(first.forward.rate, Some(BitRate::from_mbps(5)));
        assert_eq!(first.return_, start.return_);
        let Some(Command::Reconfigure(second)) = next() else { panic!("no second order") };
        // The second change applies to the result of the first.
        assert_eq!(second.forward, first.forward);
        assert!(second.return_.loss > 0.0);
        handle.line("outage 10s").unwrap();
        handle.line("stop").unwrap();
        assert!(matches!(next(), Some(Command::Outage(length)) if length == Span::from_secs(10)));
        assert!(matches!(next(), Some(Command::Stop)));
        assert!(next().is_none());
    }

    #[test]
    fn invalid_line_is_an_error_without_effect() {
        let (handle, orders) = pair(&LinkConfig::default(), Clock::from_here()).unwrap();
        let error = |line: &str| handle.line(line).unwrap_err().to_string();
        assert_eq!(error("sett rate 1mbit"), "found \"sett\", expected set, outage or stop");
        assert!(error("set rate fast").contains("found \"fast\""));
        assert!(error("outage soon").contains("found \"soon\""));
        assert!(error("set limit 0").contains("limit"));
        assert!(orders.fetch().next().is_none());
    }

    #[test]
    fn number_of_queued_commands_is_bounded() {
        let (handle, orders) = pair(&LinkConfig::default(), Clock::from_here()).unwrap();
        for _ in 0..commands::CAPACITY {
            handle.outage(Span::ZERO).unwrap();
        }
        assert_eq!(handle.outage(Span::ZERO), Err(ControlError::NotListening));
        drop(orders);
        assert_eq!(handle.outage(Span::ZERO), Err(ControlError::NotListening));
    }
}
