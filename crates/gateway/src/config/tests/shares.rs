//! Destinations, quotas, and addresses of proxies.

use super::*;

fn hub(more: &str) -> HubSection {
    match Config::parse("g.toml", &format!("{HUB}{more}")).unwrap().role {
        Role::Hub(hub) => hub,
        Role::Terminal(_) | Role::Single(_) => panic!("a hub"),
    }
}

fn terminal(proxies: &str) -> TerminalSection {
    let text = TERMINAL.replace("[socks5]\nlisten = \"127.0.0.1:1080\"\n", "");
    let text = text.replace("[link]", &format!("{proxies}\n[link]"));
    match Config::parse("g.toml", &text).unwrap().role {
        Role::Terminal(terminal) => terminal,
        Role::Hub(_) | Role::Single(_) => panic!("a terminal"),
    }
}

#[test]
fn a_public_hub_refuses_its_own_addresses() {
    assert!(hub("").guarded);
    assert!(hub("[hub]\ndeny = []\n").guarded);
    assert!(!hub("[hub]\nown_addresses = \"allow\"\n").guarded);
    let text = HUB.replace("0.0.0.0:7000", "127.0.0.1:7000");
    let Role::Hub(inner) = Config::parse("g.toml", &text).unwrap().role else { panic!("a hub") };
    assert!(!inner.guarded);
    let error = error_for(HUB, "[link]", "[hub]\nown_addresses = \"maybe\"\n[link]");
    assert!(error.ends_with("found \"maybe\", expected \"deny\" or \"allow\""), "{error}");
}

#[test]
fn destinations_and_terminals_are_read() {
    let hub = hub(r#"
        [hub]
        allow = ["10.2.0.2 port 443"]
        deny = ["10.0.0.0/8", "any port 25"]
        clients = ["10.1.0.0/24"]
        [[terminal]]
        name = "boat"
        connections = 100
        rate = 20
        burst = 50
        memory = "8mb"
        deny = "any"
        allow = ["192.0.2.0/24"]
        clients = ["10.1.0.0/25"]
        [[terminal]]
        name = "hut"
    "#);
    assert_eq!(hub.destinations.allow, ["10.2.0.2 port 443".parse().unwrap()]);
    assert_eq!(hub.destinations.deny[1].to_string(), "any port 25");
    assert_eq!(hub.clients, ["10.1.0.0/24".parse().unwrap()]);
    let [boat, hut] = &hub.terminals[..] else { panic!("two") };
    let share = ShareLimits { connections: Some(100), rate: Some(20), burst: Some(50) };
    assert_eq!((boat.name.as_str(), boat.share, boat.memory), ("boat", share, Some(8_000_000)));
    assert_eq!(boat.destinations.deny, ["any".parse().unwrap()]);
    assert_eq!(boat.clients, Some(vec!["10.1.0.0/25".parse().unwrap()]));
    assert_eq!((hut.share, hut.memory, &hut.clients), (ShareLimits::default(), None, &None));
}

#[test]
fn mistakes_in_rules_and_terminals_have_their_lines() {
    let error_for = |more: &str| error_for(HUB, "[link]", &format!("{more}\n[link]"));
    assert_eq!(
        error_for("[hub]\ndeny = [\"10.0.0.0/8 22\"]"),
        "g.toml:4: hub.deny: found \"10.0.0.0/8 22\", expected a network, or \"any\", with or \
         without ports, such as \"10.0.0.0/8\", \"192.0.2.1 port 443\" or \"any port 25\""
    );
    assert_eq!(
        error_for("[[terminal]]\nname = \"a\"\n[[terminal]]\nname = \"a\""),
        "g.toml:5: terminal.name: found \"a\" again, expected each terminal once"
    );
    assert_eq!(
        error_for("[[terminal]]\nrate = 0\nname = \"a\""),
        "g.toml:4: terminal.rate: found 0, expected a whole number from 1 to 1000000"
    );
    assert!(error_for("[[terminal]]\nrate = 1").contains("terminal.name: found nothing"));
    assert!(
        error_for("[[terminal]]\nname = \"a\"\nfast = 1")
            .contains("terminal.fast: found an unknown key")
    );
    assert!(error_for("[terminal]\nname = \"a\"").contains("expected tables, each begun by"));
    assert!(error_for("terminal = [1]").contains("terminal: found 1, expected a table"));
}

#[test]
fn quotas_are_read() {
    let text = format!("{TERMINAL}[limits.client]\nconnections = 7\nrate = 5\n");
    let limits = Config::parse("g.toml", &text).unwrap().limits;
    let share = ShareLimits { connections: Some(7), rate: Some(5), burst: None };
    assert_eq!((limits.client, limits.terminal), (share, ShareLimits::default()));
    let wrong = error_for(&text, "rate = 5", "rate = \"5\"");
    assert!(wrong.starts_with("g.toml:11: limits.client.rate: found \"5\""), "{wrong}");
}

#[test]
fn idle_connections_and_the_prefix_of_ipv6_clients_are_read() {
    let limits = |more: &str| {
        let text = format!("{TERMINAL}[limits]\n{more}");
        Config::parse("g.toml", &text).map(|config| (config.limits.idle, config.limits.ipv6_prefix))
    };
    assert_eq!(limits(""), Ok((None, 64)));
    assert_eq!(limits("idle = \"off\"\nipv6_prefix = 48"), Ok((None, 48)));
    let text = format!("{TERMINAL}[limits]\nidle = \"30m\"\n");
    let config = Config::parse("g.toml", &text).unwrap();
    assert_eq!(config.limits.idle, Some(Span::from_secs(1_800)));
    assert!(config.to_string().contains("connections that move no byte for"), "{config}");
    for wrong in ["idle = \"0s\"", "idle = 5", "ipv6_prefix = 0", "ipv6_prefix = 129"] {
        assert!(limits(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn proxies_listen_on_loopback_by_default() {
    let own = |port: u16| vec![SocketAddr::from(([127, 0, 0, 1], port))];
    let both = terminal("socks5 = true\nconnect = true");
    assert_eq!((both.socks5, both.connect), (own(1080), own(3128)));
    let tables = terminal("[socks5]\n[connect]\n");
    assert_eq!((tables.socks5, tables.connect), (own(1080), own(3128)));
    let one = terminal("socks5 = false\nconnect = true");
    assert_eq!((one.socks5, one.connect), (vec![], own(3128)));
    let error_for = |to: &str| error_for(TERMINAL, "[socks5]\nlisten = \"127.0.0.1:1080\"", to);
    assert!(error_for("socks5 = 1080").contains("expected one of"));
    assert!(error_for("[socks5]\nlisten = []").contains("the addresses and ports to listen on"));
}
