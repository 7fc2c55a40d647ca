//! Packet filter rules that refuse QUIC from a LAN interface, so that browsers use TCP.
//!
//! ```text
//! prerouting ── UDP to port 443 from a LAN interface ─▶ quic
//! quic       to this host: leave
//!            excluded network: leave
//!            included network (or any): ICMP "port unreachable"
//! ```
//!
//! QUIC is refused only where TCP is intercepted: elsewhere the fallback gains nothing.

use super::expressions::{Expressions, Verdict};
use super::prefix::PortRange;
use super::ruleset::{Chain, Rule, TerminalRules};

/// Name of the chain that refuses.
pub(super) const QUIC: &str = "quic";
/// Protocol number of UDP.
const UDP: u8 = 17;
/// The port of HTTP/3, in either transport.
const PORT: u16 = 443;

impl TerminalRules {
    /// Returns the chain that refuses QUIC; `None` where TCP to its port is not intercepted.
    pub(super) fn quic_refusal(&self) -> Option<Chain> {
        let has = |list: &[PortRange]| list.iter().any(|ports| ports.contains(PORT));
        let intercepted = self.include_ports.is_empty() || has(&self.include_ports);
        if !self.refuse_quic || !intercepted || has(&self.exclude_ports) {
            return None;
        }
        let mut rules = vec![Rule {
            needs: "nft_fib_inet, nft_fib_ipv4 and nft_fib_ipv6",
            expressions: Expressions::new().destined_here().verdict(Verdict::Return),
        }];
        for network in &self.exclude_destinations {
            let excluded = Expressions::new().destined_to(network);
            rules.push(Rule { needs: "", expressions: excluded.verdict(Verdict::Return) });
        }
        let refuse =
            |matched: Expressions| Rule { needs: "nft_reject_inet", expressions: matched.reject() };
        if self.include_destinations.is_empty() {
            rules.push(refuse(Expressions::new()));
        }
        let included = self.include_destinations.iter();
        rules.extend(included.map(|network| refuse(Expressions::new().destined_to(network))));
        Some(Chain { name: QUIC, hooked: false, rules })
    }
}

/// Returns the rule that sends QUIC from `interface` through the chain of
/// [`TerminalRules::quic_refusal`].
pub(super) fn jump(interface: &str) -> Option<Rule> {
    let port: PortRange = PORT.to_string().parse().ok()?;
    let matched = Expressions::new().protocol(UDP).arrived_on(interface).destined_to_ports(port);
    Some(Rule { needs: "", expressions: matched.verdict(Verdict::Jump(QUIC)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(rules: &TerminalRules) -> Vec<(&'static str, usize)> {
        let plan = rules.plan().unwrap();
        let named = |chain: &&Chain| [QUIC, "prerouting"].contains(&chain.name);
        plan.chains.iter().filter(named).map(|chain| (chain.name, chain.rules.len())).collect()
    }

    #[test]
    fn quic_is_refused_where_tcp_is_intercepted() {
        let mut rules = TerminalRules::new("x", &["lan0", "lan1"], 1080);
        assert_eq!(sizes(&rules), [("prerouting", 2)]);
        rules.refuse_quic = true;
        assert_eq!(sizes(&rules), [(QUIC, 2), ("prerouting", 4)]);
        rules.exclude_destinations = vec!["10.0.0.0/8".parse().unwrap()];
        rules.include_destinations = vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()];
        assert_eq!(sizes(&rules), [(QUIC, 4), ("prerouting", 4)]);
        // New connections bypass the gateway: so does QUIC.
        let passing = rules.plan().unwrap().without_capture();
        let quic = passing.chains.iter().find(|chain| chain.name == QUIC).unwrap();
        assert_eq!(quic.rules, []);
        for (include, exclude) in [(vec!["80"], vec![]), (vec![], vec!["400-500"])] {
            let ports = |list: Vec<&str>| list.iter().map(|ports| ports.parse().unwrap()).collect();
            rules.include_ports = ports(include);
            rules.exclude_ports = ports(exclude);
            assert_eq!(sizes(&rules), [("prerouting", 2)]);
        }
    }
}
