//! Commands to a running emulator: from other threads, or as lines of text.
//!
//! | line | meaning |
//! |---|---|
//!  `set WORDS`
//!  changes the link: `set forward rate 5mbit loss 1%`
//!
//! | `outage TIME` | from now on, nothing gets through for so long |
//! | `stop` | end, and report |
//!
//! Blank lines are ignored; `#` starts a comment.

use super::observe::Published;
use crate::Clock;
use satlink::{Counters, Direction, LinkConfig, words};
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use units::{Instant, Span};

/// Maximum queued commands.
const WAITING: usize = 64;

/// A command.
#[derive(Clone, Debug)]
pub(super) enum Order {
    Reconfigure(Box<LinkConfig>),
    Outage(Span),
    Stop,
}

/// Controls a running emulator from any thread.
#[derive(Clone, Debug)]
pub struct Handle {
    orders: SyncSender<(Instant, Order)>,
    clock: Clock,
    bell: Arc<Bell>,
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
        self.give(Order::Outage(length))
    }

    /// The link's counters of one direction, at most some 10 ms old; after the end, the final ones.
    pub fn counters(&self, direction: Direction) -> Counters {
        let counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        counters[direction as usize].clone()
    }

    /// Stops the emulator.
    pub fn stop(&self) {
        // If it has ended there is nothing to do.
        let _ = self.give(Order::Stop);
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
            "stop" => self.give(Order::Stop),
            found => Err(ControlError::UnknownOrder { found: found.to_owned() }),
        }
    }

    /// Shared storage of the emulator's counters.
    pub(super) fn published(&self) -> Published {
        Arc::clone(&self.counters)
    }

    fn replace(&self, current: &mut LinkConfig, config: LinkConfig) -> Result<(), ControlError> {
        config.validate().map_err(ControlError::Config)?;
        self.give(Order::Reconfigure(Box::new(config.clone())))?;
        *current = config;
        Ok(())
    }

    fn give(&self, order: Order) -> Result<(), ControlError> {
        self.orders.try_send((self.clock.now(), order)).map_err(|_| ControlError::NotListening)?;
        self.bell.ring();
        Ok(())
    }
}

/// The emulator's end.
pub(super) struct Orders {
    receiver: Receiver<(Instant, Order)>,
    bell: Arc<Bell>,
}

/// Creates both ends for an emulator that starts with `config` and uses `clock`.
pub(super) fn pair(config: &LinkConfig, clock: Clock) -> io::Result<(Handle, Orders)> {
    let (orders, receiver) = mpsc::sync_channel(WAITING);
    let bell = Arc::new(Bell::new()?);
    let config = Arc::new(Mutex::new(config.clone()));
    let counters = Published::default();
    let handle = Handle { orders, clock, bell: Arc::clone(&bell), config, counters };
    Ok((handle, Orders { receiver, bell }))
}

impl Orders {
    /// The commands received since the last call, with their times.
    pub(super) fn fetch(&self) -> impl Iterator<Item = (Instant, Order)> {
        self.receiver.try_iter()
    }

    /// A descriptor that is readable while a command is queued.
    pub(super) fn descriptor(&self) -> RawFd {
        self.bell.descriptor()
    }

    /// Resets the descriptor until the next command.
    pub(super) fn hush(&self) {
        self.bell.hush();
    }
}

/// An eventfd that wakes a thread waiting on descriptors.
#[derive(Debug)]
pub(super) struct Bell(OwnedFd);

impl Bell {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: eventfd takes two numbers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub(super) fn ring(&self) {
        let one = 1u64;
        // An overflow needs no further notification.
        // SAFETY: an eventfd takes eight bytes, which `one` is.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// A descriptor that is readable after a notification.
    pub(super) fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Resets the descriptor until the next notification.
    pub(super) fn hush(&self) {
        let mut count = 0u64;
        // SAFETY: an eventfd gives eight bytes, and `count` has room for them.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), 8) };
    }
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
        let Some(Order::Reconfigure(first)) = next() else { panic!("no first order") };
        assert_eq!(first.forward.rate, Some(BitRate::from_mbps(5)));
        assert_eq!(first.return_, start.return_);
        let Some(Order::Reconfigure(second)) = next() else { panic!("no second order") };
        // The second change applies to the result of the first.
        assert_eq!(second.forward, first.forward);
        assert!(second.return_.loss > 0.0);
        handle.line("outage 10s").unwrap();
        handle.line("stop").unwrap();
        assert!(matches!(next(), Some(Order::Outage(length)) if length == Span::from_secs(10)));
        assert!(matches!(next(), Some(Order::Stop)));
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
    fn orders_do_not_pile_up() {
        let (handle, orders) = pair(&LinkConfig::default(), Clock::from_here()).unwrap();
        for _ in 0..WAITING {
            handle.outage(Span::ZERO).unwrap();
        }
        assert_eq!(handle.outage(Span::ZERO), Err(ControlError::NotListening));
        drop(orders);
        assert_eq!(handle.outage(Span::ZERO), Err(ControlError::NotListening));
    }
}
