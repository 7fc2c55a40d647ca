//! A configuration in a few lines, for people who check one.

use super::{Config, Role};
use std::fmt;
use units::BitRate;

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (role, peer) = match &self.role {
            Role::Terminal(terminal) => (format!("terminal {:?}", terminal.name), self.link.peer),
            Role::Hub(_) => ("hub".to_owned(), None),
        };
        match peer {
            Some(hub) => writeln!(f, "{role}, of the hub at {hub}")?,
            None => writeln!(f, "{role}, on {}", self.link.listen)?,
        }
        let rate = |rate: Option<BitRate>| match rate {
            Some(rate) => rate.to_string(),
            None => "to be found".to_owned(),
        };
        let link = &self.link;
        writeln!(f, "controller {}", link.controller)?;
        writeln!(f, "rate up {}, rate down {}", rate(link.rate_up), rate(link.rate_down))?;
        match &self.state {
            Some(path) => writeln!(f, "rates are remembered in {}", path.display()),
            None => writeln!(f, "rates are not remembered: there is no `state`"),
        }
    }
}
