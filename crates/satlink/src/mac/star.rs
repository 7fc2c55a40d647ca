//! Description of a star: a broadcast forward link, a shared return link, and the terminals by
//! name. [`words::parse_star`](crate::words::parse_star) reads one from a file.

use super::mf_tdma::{Class, MfTdmaConfig, TerminalConfig};
use super::schedule::ScheduleError;
use crate::DirectionConfig;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use units::Span;

/// A star whose number of terminals is determined later by [`StarConfig::with_terminals`].
#[derive(Clone, Debug, PartialEq)]
pub struct StarConfig {
    /// From the hub to every terminal.
    pub forward: DirectionConfig,
    /// From the terminals to the hub; its list of terminals is set by
    /// [`StarConfig::with_terminals`].
    pub mac: MfTdmaConfig,
    /// The default terminal.
    pub usual: TerminalConfig,
    /// Configured terminals, by name.
    pub named: Vec<(String, TerminalConfig)>,
    /// Packets of at most so many IP octets are [`Class::Control`]; others, and with 0 all, are
    /// data.
    pub short: usize,
    /// Time after which a connection count that is not repeated expires.
    pub keep: Span,
}

impl Default for StarConfig {
    /// The return link of Mhatre and Rosenberg, 50 Mbit/s and 270 ms on the forward link;
    /// connection counts expire after 5 s.
    fn default() -> Self {
        let mut mac = MfTdmaConfig::mhatre_rosenberg(1);
        let usual = mac.terminals.remove(0);
        let forward = DirectionConfig {
            rate: Some(units::BitRate::from_mbps(50)),
            delay: Span::from_millis(270),
            ..DirectionConfig::default()
        };
        let keep = Span::from_secs(5);
        Self { forward, mac, usual, named: Vec::new(), short: 0, keep }
    }
}

impl StarConfig {
    /// The return link of these terminals, in this order.
    ///
    /// A duplicate terminal, a configured one that is not in `names`, or an invalid setting.
    pub fn with_terminals(&self, names: &[String]) -> Result<MfTdmaConfig, StarError> {
        for (place, name) in names.iter().enumerate() {
            if names[..place].contains(name) {
                return Err(StarError::Twice { name: name.clone() });
            }
        }
        if let Some((name, _)) = self.named.iter().find(|(name, _)| !names.contains(name)) {
            return Err(StarError::NotThere { name: name.clone() });
        }
        let of = |name: &String| {
            let named = self.named.iter().find(|(other, _)| other == name);
            named.map_or_else(|| self.usual.clone(), |(_, terminal)| terminal.clone())
        };
        let mac = MfTdmaConfig { terminals: names.iter().map(of).collect(), ..self.mac.clone() };
        mac.validate().map_err(StarError::Mac)?;
        Ok(mac)
    }

    /// The class of a packet of so many IP octets.
    pub fn class_of(&self, bytes: usize) -> Class {
        if bytes <= self.short { Class::Control } else { Class::Data }
    }
}

/// Why a star cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StarError {
    /// Two terminals have the same name.
    Twice {
        /// The name.
        name: String,
    },
    /// A configured terminal is not in the list.
    NotThere {
        /// The name.
        name: String,
    },
    /// An invalid setting of the return link.
    Mac(ScheduleError),
}

impl fmt::Display for StarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice { name } => {
                write!(f, "terminal {name}: found twice, expected each terminal once")
            }
            Self::NotThere { name } => write!(
                f,
                "terminal {name} is described, expected it among the terminals that are there"
            ),
            Self::Mac(ScheduleError { setting, expected }) => {
                write!(f, "return link: {}: expected {expected}", word_for(setting))
            }
        }
    }
}

/// The name of a setting in a file.
fn word_for(setting: &'static str) -> &'static str {
    match setting {
        "period" => "frame",
        "queue" => "limit",
        "burst_loss" => "lose bursts",
        "log_on" => "log-on",
        "request_loss" => "lose requests",
        "plan_loss" => "lose plans",
        "slots" => "slots of a frame on all carriers",
        other => other,
    }
}

impl core::error::Error for StarError {}
