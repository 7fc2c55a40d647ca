//! Packet filter rules for global destinations that the hub does not reach (RLY-9), and for
//! destinations that are confirmed because they have failed recently.
//!
//! ```text
//! capture    ─▶ families: global address of a family that the hub lacks: refuse by a reset
//!            global IPv6 address while the hub's reach is unknown: confirm
//!            address and port in the set of recent failures: confirm
//!            (then the configured rules)
//! ```
//!
//! A listener answers a SYN by itself, so only the packet filter can refuse a connection. It
//! refuses by a TCP reset, not by ICMP: a reset is final for every client, while many retry
//! after an ICMP "no route" (RFC 5461, section 2.2) and fall back late.

use super::expressions::{Expressions, Verdict};
use super::prefix::Prefix;
use super::ruleset::{Chain, Rule};
use relay::{Families, FamilyReach};
use std::net::{IpAddr, SocketAddr};
use std::sync::LazyLock;

/// Name of the chain that refuses.
const FAMILIES: &str = "families";
/// The sets of addresses and ports that are confirmed, for IPv4 and IPv6.
const DEFERRED: [&str; 2] = ["deferred4", "deferred6"];
/// Global unicast addresses of IPv6 (RFC 4291 §2.4).
const GLOBAL_V6: &str = "2000::/3";
/// Addresses of IPv4 that are not global (RFC 6890).
const LOCAL_V4: [&str; 14] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/3",
];

static LOCAL_V4_PREFIXES: LazyLock<Vec<Prefix>> =
    LazyLock::new(|| LOCAL_V4.iter().filter_map(|text| text.parse().ok()).collect());
static GLOBAL_V6_PREFIX: LazyLock<Option<Prefix>> = LazyLock::new(|| GLOBAL_V6.parse().ok());

/// Whether `address` is global, so that announced address families apply to it.
pub(crate) fn is_global(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(_) => !LOCAL_V4_PREFIXES.iter().any(|local| local.contains(address)),
        IpAddr::V6(_) => GLOBAL_V6_PREFIX.is_some_and(|global| global.contains(address)),
    }
}

/// The name of the set for the family of `address`.
pub(super) fn set_for(address: IpAddr) -> &'static str {
    if address.is_ipv4() { DEFERRED[0] } else { DEFERRED[1] }
}

/// Names and key lengths of the sets of destinations that are confirmed. A key is an address and
/// a port, each padded to a multiple of 4 octets.
pub(super) const SETS: [(&str, u32); 2] = [(DEFERRED[0], 4 + 4), (DEFERRED[1], 16 + 4)];

/// The key of a destination in its set.
pub(super) fn key(destination: SocketAddr) -> Vec<u8> {
    let mut key = match destination.ip() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    key.extend(destination.port().to_be_bytes());
    key.extend([0, 0]);
    key
}

/// Returns the chain that refuses families that the hub lacks; `None` if it reaches both.
pub(super) fn refusals(families: Families) -> Option<Chain> {
    let refuse = |matched: Expressions| Rule {
        needs: "nft_reject_inet",
        expressions: matched.tcp().reject_by_reset(),
    };
    let leave = |local: &Prefix| Rule {
        needs: "",
        expressions: Expressions::new().destined_to(local).verdict(Verdict::Return),
    };
    let mut rules = Vec::new();
    if let Some(global) = GLOBAL_V6_PREFIX.filter(|_| families.ipv6 == FamilyReach::None) {
        rules.push(refuse(Expressions::new().destined_to(&global)));
    }
    if families.ipv4 == FamilyReach::None {
        rules.extend(LOCAL_V4_PREFIXES.iter().map(leave));
        let any = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);
        rules.push(refuse(Expressions::new().family(any)));
    }
    (!rules.is_empty()).then_some(Chain { name: FAMILIES, hooked: false, rules })
}

/// Returns the rule that sends packets through the chain of [`refusals`].
pub(super) fn jump() -> Rule {
    Rule { needs: "", expressions: Expressions::new().verdict(Verdict::Jump(FAMILIES)) }
}

/// Returns the rules that confirm destinations independently of the configuration, by the chain
/// `confirm`.
pub(super) fn deferrals(families: Families, confirm: &'static str) -> Vec<Rule> {
    let rule = |needs, matched: Expressions| Rule {
        needs,
        expressions: matched.verdict(Verdict::Goto(confirm)),
    };
    let mut rules = Vec::new();
    // Not for IPv4: no client falls back from it, so the round trip would bring little.
    if let Some(global) = GLOBAL_V6_PREFIX.filter(|_| families.ipv6 == FamilyReach::Partial) {
        rules.push(rule("", Expressions::new().destined_to(&global)));
    }
    for any in [IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), std::net::Ipv6Addr::UNSPECIFIED.into()]
    {
        let matched = Expressions::new().family(any).tcp();
        rules.push(rule("nft_set_hash", matched.destination_and_port_in(any, set_for(any))));
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_internet_are_global() {
        assert_eq!(LOCAL_V4_PREFIXES.len(), LOCAL_V4.len());
        let global = |text: &str| is_global(text.parse().unwrap());
        for text in ["1.1.1.1", "172.32.0.1", "198.20.0.1", "2001:db8::1", "::ffff:8.8.8.8"] {
            assert!(global(text), "{text}");
        }
        for text in [
            "10.1.1.1",
            "127.0.0.1",
            "100.64.0.1",
            "172.31.255.255",
            "192.0.2.1",
            "240.0.0.1",
            "fd00::1",
            "fe80::1",
            "::1",
            "64:ff9b::808:808",
            "ff02::1",
            "::ffff:10.0.0.1",
        ] {
            assert!(!global(text), "{text}");
        }
    }

    #[test]
    fn rules_follow_the_reachable_families() {
        let families = |ipv4, ipv6| Families { ipv4, ipv6 };
        let refused = |ipv4, ipv6| refusals(families(ipv4, ipv6)).map_or(0, |c| c.rules.len());
        let deferred = |ipv4, ipv6| deferrals(families(ipv4, ipv6), "confirm").len();
        use FamilyReach::{Global, None, Partial};
        assert_eq!((refused(Global, Global), deferred(Global, Global)), (0, 2));
        assert_eq!((refused(Global, Partial), deferred(Global, Partial)), (0, 3));
        assert_eq!((refused(Global, None), deferred(Global, None)), (1, 2));
        assert_eq!((refused(Partial, Global), deferred(Partial, Global)), (0, 2));
        assert_eq!((refused(None, Global), deferred(None, Global)), (15, 2));
        assert_eq!((refused(None, None), deferred(None, None)), (16, 2));
    }

    #[test]
    fn keys_are_filled_up_to_whole_registers() {
        assert_eq!(key("192.0.2.1:80".parse().unwrap()), [192, 0, 2, 1, 0, 80, 0, 0]);
        assert_eq!(key("[2001:db8::1]:443".parse().unwrap()).len(), 20);
        for (address, (name, len)) in ["192.0.2.1:80", "[::1]:80"].into_iter().zip(SETS) {
            let address: SocketAddr = address.parse().unwrap();
            assert_eq!((set_for(address.ip()), key(address).len() as u32), (name, len));
        }
    }
}
