//! The point in time at which a client's connection is accepted: `accept`, `[[accept_rule]]`, and
//! the limits on intercepted connections that wait for their server (`intercept.confirm`).

use super::items;
use super::reader::{Reader, Section};
use crate::intercept::{ConfirmRule, PortRange, Prefix};
use crate::proxy::{ClientProtocol, Destination, PROTOCOLS};

/// When the gateway accepts a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptMode {
    /// Before the server has accepted. Saves one round trip over the satellite; a refusal by the
    /// server reaches the client as a reset.
    Early,
    /// After the server has accepted. A refusal by the server reaches the client as a refusal.
    Confirm,
}

/// Accept modes by destination and client protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptRules {
    /// Rules in the order of the file; the first matching rule applies.
    pub rules: Vec<AcceptRule>,
    /// The mode of connections that match no rule.
    pub others: AcceptMode,
}

/// The accept mode of connections to some networks and ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptRule {
    /// Destination networks; empty: any destination, also names.
    pub networks: Vec<Prefix>,
    /// Destination ports; empty: any.
    pub ports: Vec<PortRange>,
    /// Client protocols; empty: any.
    pub protocols: Vec<ClientProtocol>,
    /// The mode of connections that match.
    pub accept: AcceptMode,
}

/// Limits on intercepted connections in `confirm` mode that wait for their server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfirmSection {
    /// Maximum number of waiting connections.
    pub max_pending: u32,
    /// Maximum number of new ones per second.
    pub rate: u32,
    /// Treatment of connections above the limits.
    pub when_full: WhenFull,
}

/// Treatment of intercepted connections above the limits of [`ConfirmSection`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// They are refused immediately.
    Refuse,
    /// They are accepted early.
    Early,
}

impl Default for ConfirmSection {
    /// Returns 1,024 waiting connections, 500 new ones per second, and refusal above that.
    fn default() -> Self {
        Self { max_pending: 1024, rate: 500, when_full: WhenFull::Refuse }
    }
}

impl AcceptRules {
    /// Returns the mode of a connection to `destination` that a client requested by `protocol`.
    pub(crate) fn mode_for(
        &self,
        protocol: ClientProtocol,
        destination: &Destination,
    ) -> AcceptMode {
        let (address, port) = match destination {
            Destination::Address(address) => (Some(address.ip()), address.port()),
            Destination::Name(_, port) => (None, *port),
        };
        let fits = |rule: &&AcceptRule| {
            let network = |address| rule.networks.iter().any(|network| network.contains(address));
            rule.is_for(protocol)
                && (rule.networks.is_empty() || address.is_some_and(network))
                && (rule.ports.is_empty() || rule.ports.iter().any(|ports| ports.contains(port)))
        };
        self.rules.iter().find(fits).map_or(self.others, |rule| rule.accept)
    }

    /// Returns whether any intercepted connection is accepted in `confirm` mode.
    pub(crate) fn confirms_intercepted(&self) -> bool {
        let mut modes = self.intercepted().map(|rule| rule.accept).chain([self.others]);
        modes.any(|mode| mode == AcceptMode::Confirm)
    }

    /// Returns the rules that apply to intercepted connections.
    fn intercepted(&self) -> impl Iterator<Item = &AcceptRule> {
        self.rules.iter().filter(|rule| rule.is_for(ClientProtocol::Intercepted))
    }

    /// Returns the rules for intercepted connections in the form of the packet filter.
    pub(crate) fn for_interception(&self) -> Vec<ConfirmRule> {
        let rule = |rule: &AcceptRule| ConfirmRule {
            networks: rule.networks.clone(),
            ports: rule.ports.clone(),
            confirm: rule.accept == AcceptMode::Confirm,
        };
        self.intercepted().map(rule).collect()
    }
}

impl AcceptRule {
    fn is_for(&self, protocol: ClientProtocol) -> bool {
        self.protocols.is_empty() || self.protocols.contains(&protocol)
    }
}

const MODES: [(&str, AcceptMode); 2] =
    [("early", AcceptMode::Early), ("confirm", AcceptMode::Confirm)];

/// Reads `accept` and `[[accept_rule]]`.
pub(super) fn read_rules(reader: &mut Reader<'_>, top: &mut Section<'_>) -> Option<AcceptRules> {
    let others = top.or(reader, "accept", AcceptMode::Early, |r, i| i.word(r, &MODES));
    let mut rules = Some(Vec::new());
    for mut section in top.sections(reader, "accept_rule")? {
        let networks = section.or(reader, "networks", Vec::new(), |r, i| i.list(r, items::network));
        let ports = section.or(reader, "ports", Vec::new(), |r, i| i.list(r, items::ports));
        let protocols = section
            .or(reader, "protocols", Vec::new(), |r, i| i.list(r, |r, i| i.word(r, &PROTOCOLS)));
        let expected = "\"early\" or \"confirm\"";
        let accept = section.required(reader, "accept", expected, |r, i| i.word(r, &MODES));
        section.finish(reader);
        let rule = || {
            let (networks, ports, protocols) = (networks?, ports?, protocols?);
            Some(AcceptRule { networks, ports, protocols, accept: accept? })
        };
        match (&mut rules, rule()) {
            (Some(list), Some(rule)) => list.push(rule),
            (Some(_), None) | (None, _) => rules = None,
        }
    }
    Some(AcceptRules { rules: rules?, others: others? })
}

/// Reads `intercept.confirm`.
pub(super) fn read_confirm(
    reader: &mut Reader<'_>,
    intercept: &mut Section<'_>,
) -> Option<ConfirmSection> {
    const WHEN_FULL: [(&str, WhenFull); 2] =
        [("refuse", WhenFull::Refuse), ("early", WhenFull::Early)];
    let usual = ConfirmSection::default();
    let Some(mut section) = intercept.section(reader, "confirm") else { return Some(usual) };
    let max_pending =
        section.or(reader, "max_pending", usual.max_pending, |r, i| i.integer(r, 1..=65_536));
    let rate = section.or(reader, "rate", usual.rate, |r, i| i.integer(r, 1..=1_000_000));
    let when_full = section.or(reader, "when_full", usual.when_full, |r, i| i.word(r, &WHEN_FULL));
    section.finish(reader);
    Some(ConfirmSection { max_pending: max_pending?, rate: rate?, when_full: when_full? })
}
