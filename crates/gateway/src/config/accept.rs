//! When clients are told that their connection stands: `accept`, `[[accept_rule]]`, and what
//! bounds those that wait.

use super::read;
use super::reader::{Reader, Section};
use crate::intercept::{ConfirmRule, PortRange, Prefix};
use crate::proxy::{ClientProtocol, Destination, PROTOCOLS};

/// When a client is told that its connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptMode {
    /// At once: a round trip is saved; a refusal reaches the client as a reset.
    Early,
    /// Once the server has answered: a refusal is a refusal.
    Confirm,
}

/// When clients are told that their connections stand, by where they go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptRules {
    /// The first that fits decides.
    pub rules: Vec<AcceptRule>,
    /// For those that no rule fits.
    pub others: AcceptMode,
}

/// When clients are told, for connections to some networks and ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptRule {
    /// To these networks; to all, and to names, when empty.
    pub networks: Vec<Prefix>,
    /// To these ports; to all when empty.
    pub ports: Vec<PortRange>,
    /// Of clients by these protocols; by all when empty.
    pub protocols: Vec<ClientProtocol>,
    /// When they are told.
    pub accept: AcceptMode,
}

/// What bounds intercepted clients that wait for their server's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfirmSection {
    /// So many at once.
    pub max_pending: u32,
    /// So many new ones a second.
    pub rate: u32,
    /// What becomes of those beyond that.
    pub when_full: WhenFull,
}

/// What becomes of intercepted clients beyond the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// They are refused at once.
    Refuse,
    /// They are answered early.
    Early,
}

impl Default for ConfirmSection {
    /// 1,024 at once, 500 new ones a second; beyond that they are refused.
    fn default() -> Self {
        Self { max_pending: 1024, rate: 500, when_full: WhenFull::Refuse }
    }
}

impl AcceptRules {
    /// When a client is told that wants to be connected to `destination` by `protocol`.
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

    /// Whether any intercepted connection is confirmed.
    pub(crate) fn confirms_intercepted(&self) -> bool {
        let mut modes = self.intercepted().map(|rule| rule.accept).chain([self.others]);
        modes.any(|mode| mode == AcceptMode::Confirm)
    }

    /// The rules for intercepted connections.
    fn intercepted(&self) -> impl Iterator<Item = &AcceptRule> {
        self.rules.iter().filter(|rule| rule.is_for(ClientProtocol::Intercepted))
    }

    /// The same in the packet filter's words.
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

/// `accept` and `[[accept_rule]]`.
pub(super) fn read_rules(reader: &mut Reader<'_>, top: &mut Section<'_>) -> Option<AcceptRules> {
    let others = top.or(reader, "accept", AcceptMode::Early, |r, i| i.word(r, &MODES));
    let mut rules = Some(Vec::new());
    for mut section in top.sections(reader, "accept_rule")? {
        let networks = section.or(reader, "networks", Vec::new(), |r, i| i.list(r, read::network));
        let ports = section.or(reader, "ports", Vec::new(), |r, i| i.list(r, read::ports));
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

/// `confirm` of `[intercept]`.
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
