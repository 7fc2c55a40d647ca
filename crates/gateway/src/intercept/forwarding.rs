//! Packet filter rules for packets that a terminal forwards unsplit.
//!
//! ```text
//! prerouting ── from a LAN interface ─▶ lan
//! lan        already marked: leave
//!            to this host, or broadcast or multicast: leave
//!            excluded network: leave
//!            refused: ICMP "port unreachable"
//!            included protocol (or any) ─▶ networks
//! networks   included network (or any) ─▶ ports
//! ports      TCP or UDP to an excluded port: leave
//!            to an included port (or any), or without ports ─▶ carry
//! carry      mark, accept
//! ```
//! The policy route sends marked packets to the TUN interface. Interception marks its packets, so
//! each packet takes one path only, in either order of the two tables.

use super::InterceptError;
use super::expressions::{Expressions, Verdict};
use super::prefix::{PortRange, Prefix};
use super::ruleset::{CARRY, Chain, Plan, Rule, check_interfaces, number_of};

const TCP: u8 = 6;
const UDP: u8 = 17;
/// Priority of the policy rule: after that of interception.
const PRIORITY: u32 = 2530;
/// Destinations that are never forwarded to the hub.
const HERE: [&str; 4] = ["224.0.0.0/4", "255.255.255.255", "ff00::/8", "fe80::/10"];

/// Packets that a terminal gateway forwards unsplit.
#[derive(Clone, Debug)]
pub(crate) struct ForwardRules {
    pub(crate) id: String,
    pub(crate) interfaces: Vec<String>,
    /// The TUN interface.
    pub(crate) device: String,
    pub(crate) mark: u32,
    pub(crate) table: u32,
    pub(crate) priority: u32,
    /// Protocol numbers; empty for all.
    pub(crate) protocols: Vec<u8>,
    pub(crate) include: Vec<Prefix>,
    pub(crate) exclude: Vec<Prefix>,
    pub(crate) include_ports: Vec<PortRange>,
    pub(crate) exclude_ports: Vec<PortRange>,
    /// Protocols and ports that are refused.
    pub(crate) refuse: Vec<(u8, PortRange)>,
}

impl ForwardRules {
    /// Rules for all packets from `interfaces` that are not intercepted.
    pub(crate) fn new(id: &str, interfaces: &[String], device: &str) -> Self {
        Self {
            id: id.into(),
            interfaces: interfaces.to_vec(),
            device: device.into(),
            mark: number_of(id),
            table: number_of(id),
            priority: PRIORITY,
            protocols: Vec::new(),
            include: Vec::new(),
            exclude: Vec::new(),
            include_ports: Vec::new(),
            exclude_ports: Vec::new(),
            refuse: Vec::new(),
        }
    }

    pub(super) fn plan(&self) -> Result<Plan, InterceptError> {
        check_interfaces(&self.interfaces)?;
        let carry = matched(Expressions::new().set_mark(self.mark), Verdict::Accept);
        let chain = |name, rules| Chain { name, hooked: false, rules };
        let jump =
            |name: &String| matched(Expressions::new().arrived_on(name), Verdict::Jump("lan"));
        let prerouting = Chain {
            name: "prerouting",
            hooked: true,
            rules: self.interfaces.iter().map(jump).collect(),
        };
        let chains = vec![
            chain(CARRY, vec![carry]),
            chain("ports", self.ports()),
            chain("networks", self.networks()),
            chain("lan", self.lan()),
            prerouting,
        ];
        let plan = Plan::new(&self.id, self.mark, self.table, self.priority, chains)?;
        Ok(Plan { device: Some(self.device.clone()), ..plan })
    }

    fn lan(&self) -> Vec<Rule> {
        let here = HERE.iter().filter_map(|text| text.parse::<Prefix>().ok());
        let mut rules = vec![matched(Expressions::new().marked_already(), Verdict::Return)];
        rules.push(Rule {
            needs: "nft_fib_inet, nft_fib_ipv4 and nft_fib_ipv6",
            expressions: Expressions::new().destined_here().verdict(Verdict::Return),
        });
        for network in here.chain(self.exclude.iter().copied()) {
            rules.push(matched(Expressions::new().destined_to(&network), Verdict::Return));
        }
        for &(protocol, ports) in &self.refuse {
            let refused = Expressions::new().protocol(protocol).destined_to_ports(ports);
            rules.push(Rule { needs: "nft_reject_inet", expressions: refused.reject() });
        }
        let on = Verdict::Goto("networks");
        if self.protocols.is_empty() {
            rules.push(matched(Expressions::new(), on));
        }
        for &protocol in &self.protocols {
            rules.push(matched(Expressions::new().protocol(protocol), on));
        }
        rules
    }

    fn networks(&self) -> Vec<Rule> {
        let on = Verdict::Goto("ports");
        if self.include.is_empty() {
            return vec![matched(Expressions::new(), on)];
        }
        let to = |network| matched(Expressions::new().destined_to(network), on);
        self.include.iter().map(to).collect()
    }

    fn ports(&self) -> Vec<Rule> {
        let to = |protocol, &ports: &PortRange, verdict| {
            matched(Expressions::new().protocol(protocol).destined_to_ports(ports), verdict)
        };
        let with_ports = [TCP, UDP];
        let mut rules = Vec::new();
        for protocol in with_ports {
            rules.extend(self.exclude_ports.iter().map(|p| to(protocol, p, Verdict::Return)));
        }
        if !self.include_ports.is_empty() {
            for protocol in with_ports {
                let on = |ports| to(protocol, ports, Verdict::Goto(CARRY));
                rules.extend(self.include_ports.iter().map(on));
                rules.push(matched(Expressions::new().protocol(protocol), Verdict::Return));
            }
        }
        rules.push(matched(Expressions::new(), Verdict::Goto(CARRY)));
        rules
    }
}

fn matched(expressions: Expressions, verdict: Verdict) -> Rule {
    Rule { needs: "", expressions: expressions.verdict(verdict) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_become_rules_in_the_order_of_the_picture() {
        let mut rules = ForwardRules::new("x", &["lan0".into(), "lan1".into()], "tun0");
        let sizes = |rules: &ForwardRules| -> Vec<usize> {
            let plan = rules.plan().unwrap();
            assert_eq!((plan.table.as_str(), plan.device.as_deref()), ("bentpipe_x", Some("tun0")));
            plan.chains.iter().map(|chain| chain.rules.len()).collect()
        };
        assert_eq!(sizes(&rules), [1, 1, 1, 7, 2]);
        rules.refuse = vec![(UDP, "443".parse().unwrap())];
        rules.protocols = vec![UDP, 50];
        rules.exclude = vec!["10.0.0.0/8".parse().unwrap()];
        rules.include = vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()];
        rules.include_ports = vec!["53".parse().unwrap()];
        rules.exclude_ports = vec!["5353".parse().unwrap()];
        assert_eq!(sizes(&rules), [1, 7, 2, 10, 2]);
        rules.interfaces = vec!["a/b".into()];
        assert!(rules.plan().is_err());
    }
}
