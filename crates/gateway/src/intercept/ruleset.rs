//! Packet filter rules of both roles.
//!
//! ```text
//! terminal                                           hub
//! prerouting ── TCP from a LAN interface ─▶ lan      prerouting ── TCP of a transparent socket:
//! lan        known connection: mark, accept                        mark, accept
//!            not a SYN: leave
//!            to this host: leave
//!            excluded network or port: leave
//!            included network (or any) ─▶ ports
//! ports      included port (or any) ─▶ capture
//! capture    tproxy to the listener, mark, accept
//! ```
//! Where some connections are confirmed, `capture` sends each to one of two chains, and a held SYN
//! arrives on `lo` when it is reinjected:
//! ```text
//! prerouting ── SYN from lo with our mark ─▶ early
//! capture    first matching rule ─▶ confirm, or early
//! confirm    log to the SYN gate, drop
//! early      tproxy to the listener, mark, accept
//! ```
//! [`families`] has the rules that precede these in `capture`, and [`quic`] those that refuse QUIC.
//! The policy route delivers marked packets locally. Only a SYN begins an interception: existing
//! connections are not affected, nor is anything other than TCP.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use super::InterceptError;
use super::expressions::{Expressions, Verdict};
use super::families;
use super::prefix::{PortRange, Prefix};
use super::quic;

/// Maximum number of networks, ports or interfaces in one list, which bounds the rule set.
pub(crate) const LONGEST_LIST: usize = 256;
/// The chain that takes new connections.
const CAPTURE: &str = "capture";
/// The chain that marks packets to be forwarded unsplit.
pub(super) const CARRY: &str = "carry";
/// The chain that accepts early, where some connections are confirmed.
const EARLY: &str = "early";
/// The chain that holds SYNs.
const CONFIRM: &str = "confirm";
/// Maximum number of pairs of network and port range in all rules on confirming.
const MOST_PAIRS: usize = 1024;
/// Priority of the policy rules: before the main table (32766).
const PRIORITY: u32 = 2520;

/// What a terminal gateway intercepts.
#[derive(Clone, Debug)]
pub struct TerminalRules {
    /// Names the table (`inet bentpipe_<id>`): letters, digits and `_`, at most 32.
    pub id: String,
    /// The LAN interfaces whose clients are intercepted; `lan*` matches by prefix.
    pub interfaces: Vec<String>,
    /// The port on which [`listen`](super::listen) listens.
    pub port: u16,
    /// The firewall mark of intercepted packets.
    pub mark: u32,
    /// The routing table that delivers marked packets here.
    pub table: u32,
    /// Priority of the policy rule for that table.
    pub priority: u32,
    /// Only connections to these networks; empty for all.
    pub include_destinations: Vec<Prefix>,
    /// No connections to these networks.
    pub exclude_destinations: Vec<Prefix>,
    /// Only connections to these ports; empty for all.
    pub include_ports: Vec<PortRange>,
    /// No connections to these ports.
    pub exclude_ports: Vec<PortRange>,
    /// Connections whose SYN is held until the server has answered; `None`: none.
    pub confirm: Option<ConfirmRules>,
    /// The address families that the hub reaches; others are refused.
    pub families: relay::Families,
    /// Whether QUIC is refused where TCP to its port is intercepted.
    pub refuse_quic: bool,
}

/// Rules on connections whose SYN is held until the server has answered.
#[derive(Clone, Debug)]
pub struct ConfirmRules {
    /// The NFLOG group that receives them.
    pub group: u16,
    /// Rules in order; the first match decides.
    pub rules: Vec<ConfirmRule>,
    /// Whether connections that match no rule are confirmed.
    pub others: bool,
}

/// One rule on confirming.
#[derive(Clone, Debug)]
pub struct ConfirmRule {
    /// Destination networks; all when empty.
    pub networks: Vec<Prefix>,
    /// Destination ports; all when empty.
    pub ports: Vec<PortRange>,
    /// Whether the connections are confirmed.
    pub confirm: bool,
}

impl TerminalRules {
    /// Rules for all TCP from `interfaces` that is not for this host. Mark and table are derived from
    /// the id, so that several gateways on one host do not interfere.
    pub fn new(id: &str, interfaces: &[&str], port: u16) -> Self {
        Self {
            id: id.into(),
            interfaces: interfaces.iter().map(|&name| name.into()).collect(),
            port,
            mark: number_of(id),
            table: number_of(id),
            priority: PRIORITY,
            include_destinations: Vec::new(),
            exclude_destinations: Vec::new(),
            include_ports: Vec::new(),
            exclude_ports: Vec::new(),
            confirm: None,
            families: relay::Families::default(),
            refuse_quic: false,
        }
    }

    /// An NFLOG group that other programs are unlikely to use.
    pub(crate) fn group(&self) -> u16 {
        // Administrators tend to choose small numbers.
        number_of(&self.id) as u16 | 0x4000
    }

    pub(super) fn plan(&self) -> Result<Plan, InterceptError> {
        check_interfaces(&self.interfaces)?;
        let bounded = |what: &str, length: usize| match length {
            0..=LONGEST_LIST => Ok(()),
            _ => Err(InterceptError::Configuration(format!(
                "{length} {what}; at most {LONGEST_LIST} are allowed"
            ))),
        };
        bounded("included networks", self.include_destinations.len())?;
        bounded("excluded networks", self.exclude_destinations.len())?;
        bounded("included ranges of ports", self.include_ports.len())?;
        bounded("excluded ranges of ports", self.exclude_ports.len())?;
        if self.interfaces.is_empty() {
            return Err(InterceptError::Configuration("no LAN interface is named".into()));
        }
        if self.port == 0 {
            return Err(InterceptError::Configuration("the listener's port is 0".into()));
        }
        let ports = Chain { name: "ports", hooked: false, rules: self.ports() };
        let lan = Chain { name: "lan", hooked: false, rules: self.lan() };
        let jump = |name: &String| Rule {
            needs: "",
            expressions: Expressions::new().tcp().arrived_on(name).verdict(Verdict::Jump("lan")),
        };
        let mut chains = self.capture_chains()?;
        let mut rules: Vec<Rule> = self.interfaces.iter().map(jump).collect();
        if self.confirm.is_some() {
            let sent_in = Expressions::new().tcp().arrived_on("lo").marked(self.mark).opening();
            let rule = Rule { needs: "", expressions: sent_in.verdict(Verdict::Goto(EARLY)) };
            rules.insert(0, rule);
        }
        if let Some(refusal) = self.quic_refusal() {
            chains.push(refusal);
            rules.extend(self.interfaces.iter().filter_map(|name| quic::jump(name)));
        }
        chains.extend([ports, lan, Chain { name: "prerouting", hooked: true, rules }]);
        let plan = Plan::new(&self.id, self.mark, self.table, self.priority, chains)?;
        Ok(Plan { deferred: self.confirm.as_ref().map(|_| Vec::new()), ..plan })
    }

    /// Returns the chains of captured connections; the last is `capture`.
    fn capture_chains(&self) -> Result<Vec<Chain>, InterceptError> {
        let chain = |name, rules| Chain { name, hooked: false, rules };
        let mut chains: Vec<Chain> = families::refusals(self.families).into_iter().collect();
        let mut capture: Vec<Rule> = chains.iter().map(|_| families::jump()).collect();
        let Some(confirm) = &self.confirm else {
            capture.extend(self.capture());
            chains.push(chain(CAPTURE, capture));
            return Ok(chains);
        };
        let keep = Rule {
            needs: "nft_log and nfnetlink_log",
            expressions: Expressions::new().log(confirm.group).verdict(Verdict::Drop),
        };
        capture.extend(families::deferrals(self.families, CONFIRM));
        capture.extend(confirm.choose()?);
        let early = chain(EARLY, self.capture());
        chains.extend([early, chain(CONFIRM, vec![keep]), chain(CAPTURE, capture)]);
        Ok(chains)
    }

    fn lan(&self) -> Vec<Rule> {
        let tcp = || Expressions::new().tcp();
        let leave = |needs, matched: Expressions| Rule {
            needs,
            expressions: matched.verdict(Verdict::Return),
        };
        let known = tcp().not_opening().transparent_socket();
        let mut rules = vec![
            leave("nft_socket", tcp().not_opening().wildcard_listener()),
            Rule {
                needs: "nft_socket",
                expressions: known.set_mark(self.mark).verdict(Verdict::Accept),
            },
            leave("", tcp().not_opening()),
            leave(
                "nft_fib_inet, nft_fib_ipv4 and nft_fib_ipv6",
                Expressions::new().destined_here(),
            ),
        ];
        for network in &self.exclude_destinations {
            rules.push(leave("", Expressions::new().destined_to(network)));
        }
        for &range in &self.exclude_ports {
            rules.push(leave("", tcp().destined_to_ports(range)));
        }
        let on = |matched: Expressions| Rule {
            needs: "",
            expressions: matched.verdict(Verdict::Goto("ports")),
        };
        if self.include_destinations.is_empty() {
            rules.push(on(Expressions::new()));
        }
        for network in &self.include_destinations {
            rules.push(on(Expressions::new().destined_to(network)));
        }
        rules
    }

    fn ports(&self) -> Vec<Rule> {
        let on = |matched: Expressions| Rule {
            needs: "",
            expressions: matched.verdict(Verdict::Goto(CAPTURE)),
        };
        if self.include_ports.is_empty() {
            return vec![on(Expressions::new())];
        }
        let to = |&range: &PortRange| on(Expressions::new().tcp().destined_to_ports(range));
        self.include_ports.iter().map(to).collect()
    }

    fn capture(&self) -> Vec<Rule> {
        let listeners = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        let rule = |address| Rule {
            needs: "nft_tproxy, nf_tproxy_ipv4 and nf_tproxy_ipv6",
            expressions: Expressions::new()
                .family(address)
                .tcp()
                .tproxy(SocketAddr::new(address, self.port))
                .set_mark(self.mark)
                .verdict(Verdict::Accept),
        };
        listeners.into_iter().map(rule).collect()
    }
}

impl ConfirmRules {
    fn choose(&self) -> Result<Vec<Rule>, InterceptError> {
        let pairs: usize = self
            .rules
            .iter()
            .map(|rule| rule.networks.len().max(1) * rule.ports.len().max(1))
            .sum();
        if pairs > MOST_PAIRS {
            return Err(InterceptError::Configuration(format!(
                "{pairs} pairs of networks and ports to confirm or not; at most {MOST_PAIRS} are \
                 allowed"
            )));
        }
        let on = |matched: Expressions, confirm| {
            let next = if confirm { CONFIRM } else { EARLY };
            Rule { needs: "", expressions: matched.verdict(Verdict::Goto(next)) }
        };
        let mut chosen = Vec::new();
        for rule in &self.rules {
            for network in each(&rule.networks) {
                for ports in each(&rule.ports) {
                    let mut matched = Expressions::new();
                    if let Some(network) = network {
                        matched = matched.destined_to(network);
                    }
                    if let Some(&ports) = ports {
                        matched = matched.tcp().destined_to_ports(ports);
                    }
                    chosen.push(on(matched, rule.confirm));
                }
            }
        }
        chosen.push(on(Expressions::new(), self.others));
        Ok(chosen)
    }
}

/// Returns each item of the list, or `None` (any) once if it is empty.
fn each<T>(list: &[T]) -> impl Iterator<Item = Option<&T>> {
    list.iter().map(Some).chain(list.is_empty().then_some(None))
}

/// Rules of a hub gateway that connects with its clients' addresses: servers' packets to the
/// clients are delivered locally.
#[derive(Clone, Debug)]
pub struct HubRules {
    /// Names the table (`inet bentpipe_<id>`): letters, digits and `_`, at most 32.
    pub id: String,
    /// The interfaces towards the servers; empty for all.
    pub interfaces: Vec<String>,
    /// The firewall mark of the servers' packets.
    pub mark: u32,
    /// The routing table that delivers marked packets here.
    pub table: u32,
    /// Priority of the policy rule for that table.
    pub priority: u32,
}

impl HubRules {
    /// Rules for all interfaces; mark and table are derived from the id.
    pub fn new(id: &str) -> Self {
        Self {
            id: id.into(),
            interfaces: Vec::new(),
            mark: number_of(id),
            table: number_of(id),
            priority: PRIORITY,
        }
    }

    pub(super) fn plan(&self) -> Result<Plan, InterceptError> {
        check_interfaces(&self.interfaces)?;
        let rule = |arrived: Expressions| Rule {
            needs: "nft_socket",
            expressions: arrived.transparent_socket().set_mark(self.mark).verdict(Verdict::Accept),
        };
        let tcp = || Expressions::new().tcp();
        let mut rules = vec![Rule {
            needs: "nft_socket",
            expressions: tcp().wildcard_listener().verdict(Verdict::Return),
        }];
        match &self.interfaces[..] {
            [] => rules.push(rule(tcp())),
            names => rules.extend(names.iter().map(|name| rule(tcp().arrived_on(name)))),
        }
        let prerouting = Chain { name: "prerouting", hooked: true, rules };
        Plan::new(&self.id, self.mark, self.table, self.priority, vec![prerouting])
    }
}

/// One rule, and the kernel modules that it needs beyond nf_tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) needs: &'static str,
    pub(super) expressions: Expressions,
}

/// One chain; a hooked one processes every received packet before routing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) name: &'static str,
    pub(super) hooked: bool,
    pub(super) rules: Vec<Rule>,
}

/// The complete set of rules and routing.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The nf_tables table.
    pub(super) table: String,
    /// Its chains; targets of jumps precede the jumps.
    pub(super) chains: Vec<Chain>,
    pub(super) mark: u32,
    pub(super) routing_table: u32,
    pub(super) priority: u32,
    /// Output interface of marked packets; `None`: local delivery.
    pub(super) device: Option<String>,
    /// Destinations in the sets of confirmed ones; `None`: there are no sets.
    pub(super) deferred: Option<Vec<SocketAddr>>,
}

impl Plan {
    pub(super) fn new(
        id: &str,
        mark: u32,
        routing_table: u32,
        priority: u32,
        chains: Vec<Chain>,
    ) -> Result<Self, InterceptError> {
        let wrong = |what: String| Err(InterceptError::Configuration(what));
        let letter = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        if !(1..=32).contains(&id.len()) || !id.bytes().all(letter) {
            return wrong(format!("the id {id:?} is not 1 to 32 of letters, digits and _"));
        }
        if mark == 0 {
            return wrong("the firewall mark is 0, which every packet has".into());
        }
        // 253 to 255 are the system's own, and 0 means "none".
        if matches!(routing_table, 0 | 253..=255) {
            return wrong(format!("routing table {routing_table} belongs to the system"));
        }
        let table = format!("bentpipe_{id}");
        let (device, deferred) = (None, None);
        Ok(Self { table, chains, mark, routing_table, priority, device, deferred })
    }

    /// Returns the plan without the capture of new connections: their packets continue as if there
    /// were no rules.
    pub(super) fn without_capture(&self) -> Self {
        let mut plan = self.clone();
        let takes = |chain: &&mut Chain| [CAPTURE, CARRY, quic::QUIC].contains(&chain.name);
        for chain in plan.chains.iter_mut().filter(takes) {
            chain.rules.clear();
        }
        plan
    }
}

pub(super) fn check_interfaces(names: &[String]) -> Result<(), InterceptError> {
    if names.len() > LONGEST_LIST {
        let message = format!("{} interfaces; at most {LONGEST_LIST} are allowed", names.len());
        return Err(InterceptError::Configuration(message));
    }
    let fits = |name: &&String| {
        let stem = name.strip_suffix('*').unwrap_or(name);
        (1..libc::IFNAMSIZ).contains(&stem.len())
            && stem.bytes().all(|b| b.is_ascii_graphic() && b != b'/')
    };
    match names.iter().find(|name| !fits(name)) {
        None => Ok(()),
        Some(name) => Err(InterceptError::Configuration(format!(
            "{name:?} is not the name of an interface (1 to 15 visible characters)"
        ))),
    }
}

/// Returns a mark or table number that other programs are unlikely to use and that differs between
/// ids: "bp" and a hash (FNV-1a, folded to 16 bits) of the id.
pub(crate) fn number_of(id: &str) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let hash = id.bytes().fold(0x811c_9dc5, step);
    0x6270_0000 | ((hash >> 16) ^ (hash & 0xffff))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(rules: &TerminalRules) -> String {
        rules.plan().unwrap_err().to_string()
    }

    #[test]
    fn lists_become_rules_in_the_order_of_the_picture() {
        let mut rules = TerminalRules::new("x", &["lan0", "wlan*"], 1080);
        let plan = rules.plan().unwrap();
        let sizes = |plan: &Plan| -> Vec<usize> {
            plan.chains.iter().map(|chain| chain.rules.len()).collect()
        };
        assert_eq!(plan.table, "bentpipe_x");
        assert_eq!(sizes(&plan), [2, 1, 5, 2]);
        rules.include_ports = vec!["80".parse().unwrap(), "8000-8080".parse().unwrap()];
        rules.exclude_ports = vec!["22".parse().unwrap()];
        rules.include_destinations = vec!["10.0.0.0/8".parse().unwrap(), "::/0".parse().unwrap()];
        rules.exclude_destinations = vec!["10.1.0.0/16".parse().unwrap()];
        assert_eq!(sizes(&rules.plan().unwrap()), [2, 2, 8, 2]);
    }

    #[test]
    fn deferred_connections_are_selected_by_rules() {
        let mut rules = TerminalRules::new("x", &["lan0"], 1080);
        let rule = |networks: &[&str], ports: &[&str]| ConfirmRule {
            networks: networks.iter().map(|text| text.parse().unwrap()).collect(),
            ports: ports.iter().map(|text| text.parse().unwrap()).collect(),
            confirm: true,
        };
        let confirm = |rules| Some(ConfirmRules { group: 7, rules, others: false });
        rules.confirm = confirm(vec![
            rule(&["10.0.0.0/8", "fd00::/8"], &["22", "25", "80-90"]),
            rule(&[], &["443"]),
            rule(&[], &[]),
        ]);
        let plan = rules.plan().unwrap();
        let sizes: Vec<_> =
            plan.chains.iter().map(|chain| (chain.name, chain.rules.len())).collect();
        let expected = [("early", 2), ("confirm", 1), ("capture", 11), ("ports", 1), ("lan", 5)];
        assert_eq!(sizes[..5], expected);
        assert_eq!(sizes[5], ("prerouting", 2));
        // At the end new connections bypass the gateway, and held SYNs are still reinjected.
        let plan = plan.without_capture();
        assert_eq!((plan.chains[0].rules.len(), plan.chains[2].rules.len()), (2, 0));
        rules.confirm = confirm(vec![rule(&["10.0.0.0/8"; 33], &["22"; 32])]);
        assert!(complaint(&rules).contains("1056 pairs"));
    }

    #[test]
    fn invalid_combinations_are_reported() {
        let good = TerminalRules::new("x", &["lan0"], 1080);
        assert!(complaint(&TerminalRules { port: 0, ..good.clone() }).contains("port is 0"));
        assert!(complaint(&TerminalRules { mark: 0, ..good.clone() }).contains("mark is 0"));
        assert!(complaint(&TerminalRules { table: 254, ..good.clone() }).contains("254"));
        assert!(complaint(&TerminalRules { id: "a-b".into(), ..good.clone() }).contains("a-b"));
        assert!(complaint(&TerminalRules { interfaces: vec![], ..good.clone() }).contains("LAN"));
        for name in ["", "*", "sixteen-letters-", "a b", "a/b"] {
            let rules = TerminalRules { interfaces: vec![name.into()], ..good.clone() };
            assert!(complaint(&rules).contains("not the name"), "{name}");
        }
        let many = vec!["10.0.0.0/8".parse().unwrap(); LONGEST_LIST + 1];
        let rules = TerminalRules { include_destinations: many, ..good };
        assert!(complaint(&rules).contains("257 included networks"));
    }

    #[test]
    fn ids_have_numbers_of_their_own() {
        assert_ne!(number_of("terminal"), number_of("hub"));
        assert_eq!(number_of("terminal") >> 16, 0x6270);
    }
}
