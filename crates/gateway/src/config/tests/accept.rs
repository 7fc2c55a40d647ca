//! Accept modes by destination and protocol.

use super::*;
use crate::proxy::Destination;
use crate::proxy::PROTOCOLS;

const RULES: &str = r#"
    accept = "early"
    [[accept_rule]]
    ports = [22, "8000-8099"]
    networks = ["10.0.0.0/8", "fd00::/8"]
    accept = "confirm"
    [[accept_rule]]
    networks = "10.0.0.0/8"
    accept = "early"
    [[accept_rule]]
    ports = 25
    accept = "confirm"
"#;

fn terminal(more: &str) -> TerminalSection {
    let text = TERMINAL.replace("[link]", &format!("{more}\n[link]"));
    match Config::parse("g.toml", &text).unwrap().role {
        Role::Terminal(terminal) => terminal,
        Role::Hub(_) | Role::Single(_) => panic!("a terminal"),
    }
}

#[test]
fn the_first_matching_rule_applies() {
    use AcceptMode::{Confirm, Early};
    let accept = terminal(RULES).accept;
    let address = |text: &str| Destination::Address(text.parse().unwrap());
    let name = |port| Destination::Name("example.org".into(), port);
    for (destination, mode) in [
        (address("10.1.1.1:22"), Confirm),
        (address("10.1.1.1:8050"), Confirm),
        (address("[fd00::1]:22"), Confirm),
        (address("10.1.1.1:25"), Early),
        (address("192.0.2.1:25"), Confirm),
        (address("192.0.2.1:22"), Early),
        // A rule with networks does not match a host name.
        (name(22), Early),
        (name(25), Confirm),
    ] {
        for (_, protocol) in PROTOCOLS {
            assert_eq!(accept.mode_for(protocol, &destination), mode, "{destination}");
        }
    }
    assert!(accept.confirms_intercepted());
    assert!(terminal("accept = \"confirm\"").accept.confirms_intercepted());
    assert!(!terminal("").accept.confirms_intercepted());
    assert_eq!(accept.for_interception().len(), 3);
}

#[test]
fn a_rule_may_be_for_some_protocols_only() {
    use AcceptMode::{Confirm, Early};
    let accept = terminal(
        "[[accept_rule]]\nprotocols = \"socks5\"\nports = 25\naccept = \"confirm\"\n\
         [[accept_rule]]\nprotocols = [\"connect\", \"intercepted\"]\nports = 26\n\
         accept = \"confirm\"",
    )
    .accept;
    let modes = |port| {
        let destination = Destination::Name("example.org".into(), port);
        PROTOCOLS.map(|(_, protocol)| accept.mode_for(protocol, &destination))
    };
    assert_eq!(modes(25), [Confirm, Early, Early]);
    assert_eq!(modes(26), [Early, Confirm, Confirm]);
    assert_eq!(modes(27), [Early, Early, Early]);
    assert!(accept.confirms_intercepted());
    assert_eq!(accept.for_interception().len(), 1, "the packet filter has only its own");
    let text = TERMINAL.replace(
        "[link]",
        "[[accept_rule]]\nprotocols = [\"socks5\", \"connect\"]\naccept = \"confirm\"\n[link]",
    );
    let summary = Config::parse("g.toml", &text).unwrap().to_string();
    assert!(summary.contains("rule 1 is for socks5 and connect only"), "{summary}");
    let proxies = "[[accept_rule]]\nprotocols = [\"socks5\", \"connect\"]\naccept = \"confirm\"";
    assert!(!terminal(proxies).accept.confirms_intercepted());
}

#[test]
fn pending_connections_are_limited() {
    let confirm = |text: &str| {
        let more = format!("[intercept]\ninterfaces = \"lan0\"\n{text}");
        terminal(&more).intercept.unwrap().confirm
    };
    assert_eq!(confirm(""), ConfirmSection::default());
    let section =
        confirm("[intercept.confirm]\nmax_pending = 10\nrate = 5\nwhen_full = \"early\"\n");
    assert_eq!(section, ConfirmSection { max_pending: 10, rate: 5, when_full: WhenFull::Early });
}

#[test]
fn mistakes_in_rules_have_their_lines() {
    let error_for = |more: &str| error_for(TERMINAL, "[link]", &format!("{more}\n[link]"));
    assert_eq!(
        error_for("[[accept_rule]]\nports = 22"),
        "g.toml:3: accept_rule.accept: found nothing, expected \"early\" or \"confirm\""
    );
    let protocols =
        error_for("[[accept_rule]]\nprotocols = [\"socks5\", \"http\"]\naccept = \"early\"");
    let expected = "found \"http\", expected \"socks5\" or \"connect\" or \"intercepted\"";
    assert!(protocols.contains(expected), "{protocols}");
    assert!(error_for("[[accept_rule]]\naccept = \"late\"").contains("found \"late\""));
    assert!(
        error_for("[[accept_rule]]\naccept = \"early\"\nport = 1").contains("accept_rule.port")
    );
}
