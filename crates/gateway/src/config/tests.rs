//! Valid configurations, and the messages for mistakes.

use super::*;
use relay::Control;
use units::BitRate;

const TERMINAL: &str = r#"role = "terminal"
security = "none"
[link]
peer = "192.0.2.1:7000"
rate_up = "1mbit"
rate_down = "10mbit"
[socks5]
listen = "127.0.0.1:1080"
"#;

const HUB: &str = r#"role = "hub"
security = "none"
[link]
listen = "0.0.0.0:7000"
rate_up = "1mbit"
rate_down = "10mbit"
"#;

/// Returns the message for `text` with `from` replaced by `to`.
fn error_for(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "the text has no {from:?}");
    Config::parse("g.toml", &text.replacen(from, to, 1)).expect_err("a mistake").to_string()
}

#[test]
fn a_minimal_terminal_has_the_defaults() {
    let config = Config::parse("g.toml", TERMINAL).unwrap();
    assert_eq!(config.link.peer, Some("192.0.2.1:7000".parse().unwrap()));
    assert_eq!(config.link.listen, "0.0.0.0:0".parse().unwrap());
    assert_eq!(config.link.mtu, 1500);
    assert_eq!(config.limits.connections, 4096);
    let Role::Terminal(terminal) = config.role else { panic!("a terminal") };
    assert_eq!(terminal.accept.others, AcceptMode::Early);
    assert_eq!(terminal.socks5, ["127.0.0.1:1080".parse().unwrap()]);
    assert!(terminal.connect.is_empty() && terminal.intercept.is_none());
}

#[test]
fn every_key_of_a_terminal_is_read() {
    let text = r#"
        role = "terminal"
        accept = "confirm"
        security = "none"
        [link]
        listen = "[::]:7001"
        peer = "[2001:db8::1]:7000"
        rate_up = "512kbit"
        rate_down = "2.5mbit"
        round_trip = "550ms"
        mtu = 1400
        overhead = 18
        [intercept]
        port = 7999
        interfaces = ["lan0", "lan1"]
        include_ports = [80, "8000-8099"]
        exclude_ports = 22
        include = "0.0.0.0/0"
        exclude = ["10.0.0.0/8", "fd00::/8"]
        mark = 0x1234
        table = 99
        priority = 50
        [socks5]
        listen = ["127.0.0.1:1080", "[::1]:1080"]
        [connect]
        listen = "127.0.0.1:3128"
        [limits]
        connections = 10
        connect = "5s"
        first_data_wait = "0ms"
        handshake = "3s"
        keepalive = "30s"
        tcp_user_timeout = "1m"
    "#;
    let config = Config::parse("g.toml", text).unwrap();
    assert_eq!(config.link.rate_down, Some(BitRate::from_kbps(2_500)));
    assert_eq!((config.link.mtu, config.link.overhead), (1400, 18));
    assert_eq!(config.limits.tcp_user_timeout, Span::from_secs(60));
    assert_eq!(config.limits.first_data_wait, Span::ZERO);
    let Role::Terminal(terminal) = config.role else { panic!("a terminal") };
    assert_eq!(terminal.accept.others, AcceptMode::Confirm);
    assert_eq!(terminal.socks5.len(), 2);
    let intercept = terminal.intercept.unwrap();
    assert_eq!(intercept.include_ports, ["80", "8000-8099"].map(|text| text.parse().unwrap()));
    assert_eq!(intercept.exclude_ports, ["22".parse().unwrap()]);
    assert_eq!(intercept.exclude[1], "fd00::/8".parse().unwrap());
    assert_eq!(intercept.marking.mark, Some(0x1234));
}

#[test]
fn every_key_of_a_hub_is_read() {
    let text = format!(
        "{HUB}[hub]\nsource = \"client\"\nclients = [\"10.1.0.0/16\"]\ninterfaces = \"wan0\"\n\
         deny = [\"10.0.0.0/8\"]\ntable = 7\n"
    );
    let config = Config::parse("g.toml", &text).unwrap();
    let Role::Hub(hub) = config.role else { panic!("a hub") };
    assert_eq!(hub.source, SourceMode::Client);
    assert_eq!(hub.interfaces, ["wan0"]);
    assert_eq!(hub.destinations.deny, ["10.0.0.0/8".parse().unwrap()]);
    assert_eq!(hub.marking.table, Some(7));
}

#[test]
fn source_client_requires_client_networks() {
    let hub = format!("{HUB}[hub]\nsource = \"client\"\n");
    let error = Config::parse("g.toml", &hub).unwrap_err().to_string();
    let line = HUB.lines().count() + 1;
    let begins = format!("g.toml:{line}: hub.clients: found nothing, expected the networks of the");
    assert!(error.starts_with(&begins), "{error}");
    assert!(error.contains("clients = [\"10.1.0.0/16\", \"fd00:1::/32\"]"), "{error}");
    let is_right = |more: &str| Config::parse("g.toml", &format!("{hub}{more}")).is_ok();
    assert!(is_right("clients = [\"0.0.0.0/0\", \"::/0\"]\n"));
    let boat = "[[terminal]]\nname = \"boat\"\nclients = [\"10.1.0.0/24\"]\n";
    assert!(is_right(boat), "each terminal has its own");
    assert!(is_right(&format!("{boat}[[terminal]]\nname = \"boat/lte\"\n")), "a further path");
    assert!(!is_right(&format!("{boat}[[terminal]]\nname = \"bus\"\n")), "all but one have");
}

#[test]
fn rates_may_be_auto() {
    let auto = TERMINAL.replace("\"1mbit\"", "\"auto\"").replace("rate_down = \"10mbit\"\n", "");
    let config = Config::parse("g.toml", &auto).unwrap();
    assert_eq!((config.link.rate_up, config.link.rate_down), (None, None));
    let summary = config.to_string();
    assert!(summary.contains("rate up auto, rate down auto"), "{summary}");
    assert!(summary.contains("controller "), "{summary}");
    let config = Config::parse("g.toml", TERMINAL).unwrap().to_string();
    assert!(config.contains("rate up 1.000 Mbit/s, rate down 10.000 Mbit/s"), "{config}");
}

#[test]
fn controllers_and_the_path_cache_are_read() {
    let text = TERMINAL.replace("[link]", "name = \"boat\"\nstate = \"/tmp/p.toml\"\n[link]");
    for control in Control::ALL {
        let text = text.replace("rate_up", &format!("controller = \"{control}\"\nrate_up"));
        let text = format!("{text}[limits]\nmemory = \"16mb\"\n");
        let config = Config::parse("g.toml", &text).unwrap();
        assert_eq!(config.link.controller, control);
        assert_eq!(config.state.as_deref(), Some(Path::new("/tmp/p.toml")));
        assert_eq!(config.limits.memory, Some(16_000_000));
        let Role::Terminal(terminal) = config.role else { panic!("a terminal") };
        assert_eq!(terminal.name, "boat");
    }
    assert_eq!(
        error_for(&text, "/tmp/p.toml", "p.toml"),
        "g.toml:4: state: found \"p.toml\", expected an absolute path, such as \
         \"/var/lib/bentpipe/peers.toml\""
    );
    let name = "a name of 1 to 64 bytes without control characters";
    assert_eq!(
        error_for(&text, "\"boat\"", "\"\""),
        format!("g.toml:3: name: found \"\", expected {name}")
    );
    let fixed = "controller = \"fixed\"\nrate_up = \"auto\"";
    assert_eq!(
        error_for(TERMINAL, "rate_up = \"1mbit\"", fixed),
        "g.toml:5: link.controller: found \"fixed\", expected a rate in link.rate_up, which this \
         controller requires"
    );
    let error = error_for(TERMINAL, "rate_up = \"1mbit\"", "controller = \"cubic\"");
    assert!(
        error.starts_with("g.toml:5: link.controller: found \"cubic\", expected \"s"),
        "{error}"
    );
}

#[test]
fn the_share_for_repair_symbols_is_read() {
    for (value, percent) in [("\"off\"", None), ("\"auto\"", Some(10)), ("25", Some(25))] {
        let text = TERMINAL.replace("rate_up", &format!("repair = {value}\nrate_up"));
        assert_eq!(Config::parse("g.toml", &text).unwrap().link.repair, percent);
    }
    assert_eq!(Config::parse("g.toml", TERMINAL).unwrap().link.repair, None);
    for value in ["0", "51", "\"on\""] {
        assert_eq!(
            error_for(TERMINAL, "rate_up = \"1mbit\"", &format!("repair = {value}")),
            format!(
                "g.toml:5: link.repair: found {value}, expected \"off\", \"auto\", or a \
                 percentage from 1 to 50"
            )
        );
    }
}

#[test]
fn compression_is_off_unless_configured() {
    assert!(!Config::parse("g.toml", TERMINAL).unwrap().link.compress);
    for (value, compress) in [("off", false), ("auto", true)] {
        let text = TERMINAL.replace("rate_up", &format!("compress = \"{value}\"\nrate_up"));
        assert_eq!(Config::parse("g.toml", &text).unwrap().link.compress, compress);
    }
    assert_eq!(
        error_for(TERMINAL, "rate_up = \"1mbit\"", "compress = true"),
        "g.toml:5: link.compress: found true, expected \"off\" or \"auto\""
    );
}

#[test]
fn a_hub_sends_padding_unless_it_is_switched_off() {
    for (line, expected) in [("", true), ("padding = true\n", true), ("padding = false\n", false)] {
        let text = HUB.replace("[link]\n", &format!("[link]\n{line}"));
        assert_eq!(Config::parse("h.toml", &text).unwrap().link.padding, expected, "{line}");
    }
    let message = error_for(HUB, "[link]\n", "[link]\npadding = 4\n");
    assert!(message.ends_with("link.padding: found 4, expected true or false"), "{message}");
}

mod accept;
mod dns;
mod drop_ins;
mod forward;
mod paths;
mod plans;
mod quic;
mod resolver;
mod security;
mod shares;
mod single;

#[test]
fn words_and_roles_are_checked() {
    assert_eq!(
        error_for(TERMINAL, "\"terminal\"", "\"client\""),
        "g.toml:1: role: found \"client\", expected \"terminal\" or \"hub\" or \"single\""
    );
    assert_eq!(
        error_for(HUB, "role = \"hub\"\n", ""),
        "g.toml:1: role: found nothing, expected \"terminal\", \"hub\" or \"single\""
    );
    assert_eq!(
        error_for(TERMINAL, "security = \"none\"", "security = \"tls\""),
        "g.toml:2: security: found \"tls\", expected \"noise\" or \"none\""
    );
    assert_eq!(
        error_for(TERMINAL, "[link]", "accept = true\n[link]"),
        "g.toml:3: accept: found true, expected \"early\" or \"confirm\""
    );
}

#[test]
fn addresses_rates_and_numbers_are_checked() {
    let address = "an address and port, such as \"192.0.2.1:7000\" or \"[2001:db8::1]:7000\"";
    let rate = "a rate from \"1bit\" to \"10000gbit\", such as \"512kbit\", or \"auto\"";
    assert_eq!(
        error_for(TERMINAL, "192.0.2.1:7000", "hub.example"),
        "g.toml:4: link.peer: found \"hub.example\", expected an address or name and a port, such as \
         \"192.0.2.1:7000\" or \"hub.example:7000\""
    );
    assert_eq!(
        error_for(TERMINAL, "[link]", "[link]\nlisten = \"[::]:7001\""),
        "g.toml:4: link.listen: found \"[::]:7001\", expected an IPv4 address and port, the \
         family of link.peer"
    );
    assert_eq!(
        error_for(TERMINAL, "\"1mbit\"", "1"),
        format!("g.toml:5: link.rate_up: found 1, expected {rate}")
    );
    assert_eq!(
        error_for(TERMINAL, "\"10mbit\"", "\"10mb\""),
        format!("g.toml:6: link.rate_down: found \"10mb\", expected {rate}")
    );
    assert_eq!(
        error_for(TERMINAL, "[socks5]", "mtu = 100\n[socks5]"),
        "g.toml:7: link.mtu: found 100, expected a whole number from 576 to 9000"
    );
    assert_eq!(
        error_for(TERMINAL, "[socks5]", "round_trip = \"0ms\"\n[socks5]"),
        "g.toml:7: link.round_trip: found \"0ms\", expected a length of time, such as \"4ms\" or \
         \"20s\" above zero and at most 60.000 s"
    );
    assert_eq!(
        error_for(TERMINAL, "\"127.0.0.1:1080\"", "[\"127.0.0.1:1080\",\n\"localhost\"]"),
        format!("g.toml:9: socks5.listen: found \"localhost\", expected {address}")
    );
}

#[test]
fn a_hub_may_have_a_name() {
    let text = TERMINAL.replace("192.0.2.1:7000", "hub.example:7000");
    let config = Config::parse("g.toml", &text).unwrap();
    assert_eq!(config.link.peer, Some(HubAddress::Name("hub.example".into(), 7000)));
    assert_eq!(config.link.listen, "[::]:0".parse().unwrap(), "for both families");
    assert!(config.to_string().contains("of the hub at hub.example:7000"));
    for listen in ["0.0.0.0:7001", "[::]:7001"] {
        let text = text.replace("[link]", &format!("[link]\nlisten = \"{listen}\""));
        let config = Config::parse("g.toml", &text).unwrap();
        assert_eq!(config.link.listen, listen.parse().unwrap());
    }
}

#[test]
fn missing_keys_are_named() {
    assert_eq!(
        error_for(TERMINAL, "peer = \"192.0.2.1:7000\"\n", ""),
        "g.toml:3: link.peer: found nothing, expected the hub's address and port"
    );
    assert_eq!(
        error_for(HUB, "listen = \"0.0.0.0:7000\"\n", ""),
        "g.toml:3: link.listen: found nothing, expected the hub's address and port"
    );
    assert_eq!(
        error_for(TERMINAL, "[socks5]\nlisten = \"127.0.0.1:1080\"", ""),
        "g.toml:1: (file): found no listener for clients, expected at least one of [intercept], \
         [socks5] and [connect]"
    );
    assert_eq!(
        error_for("role = \"hub\"\nsecurity = \"none\"\n", "", ""),
        "g.toml:1: link: found nothing, expected a table, `[link]`, with the address of the \
         hub or of this gateway"
    );
}

#[test]
fn unknown_keys_are_reported_with_the_known_ones() {
    assert_eq!(
        error_for(TERMINAL, "[link]", "sekurity = \"none\"\n[link]"),
        "g.toml:3: sekurity: found an unknown key, expected one of accept, \
         accept_rule, connect, control, dns, fail, forward, health, intercept, limits, link, log, \
         metrics, name, optional, path, private_key, private_key_file, resolver, role, security, \
         socks5, state, tls, user"
    );
    assert_eq!(
        error_for(HUB, "rate_up", "rate_upp"),
        "g.toml:5: link.rate_upp: found an unknown key, expected one of compress, \
         controller, listen, mtu, overhead, padding, ports, rate_down, rate_up, repair, round_trip"
    );
    // A hub has no clients of its own.
    assert_eq!(
        error_for(HUB, "[link]", "[socks5]\nlisten = \"127.0.0.1:1080\"\n[link]"),
        "g.toml:3: socks5: found an unknown key, expected one of class, \
         control, dns, forward, hub, limits, link, log, mac, metrics, optional, plan, private_key, \
         private_key_file, resolver, role, security, state, terminal, tls, user"
    );
}

#[test]
fn deprecated_keys_are_read_and_reported() {
    let limits = "[limits]\nvanished = \"1m\"\n[socks5]";
    let config = Config::parse("g.toml", &TERMINAL.replace("[socks5]", limits)).unwrap();
    assert_eq!(config.limits.tcp_user_timeout, Span::from_secs(60));
    let [Deprecated { former, present, .. }] = &*config.deprecated else { panic!("one key") };
    assert_eq!((&**former, &**present), ("limits.vanished", "limits.tcp_user_timeout"));
    let both = "[limits]\ntcp_user_timeout = \"1m\"\nvanished = \"1m\"\n[socks5]";
    let refused = error_for(TERMINAL, "[socks5]", both);
    assert!(refused.contains("limits.vanished: found an unknown key"), "{refused}");
}

#[test]
fn unknown_keys_are_ignored_where_they_are_marked_as_optional() {
    let text = format!("optional = [\"link.colour\", \"lights\"]\n{TERMINAL}[lights]\non = 1\n")
        .replace("[link]\n", "[link]\ncolour = \"red\"\nshade = 2\n");
    let refused = error_for(&text, "", "");
    assert!(refused.contains("link.shade: found an unknown key"), "{refused}");
    assert!(!refused.contains("colour:") && !refused.contains("lights:"), "{refused}");
    let config = Config::parse("g.toml", &text.replace("shade = 2\n", "")).unwrap();
    assert_eq!(config.ignored, ["link.colour", "lights"]);
    // The keys of this release are read as usual.
    let known = format!("optional = \"link.rate_up\"\n{TERMINAL}");
    assert_eq!(Config::parse("g.toml", &known).unwrap().ignored, [""; 0]);
}

#[test]
fn tables_and_values_are_distinguished() {
    assert_eq!(
        error_for(TERMINAL, "[socks5]\nlisten = \"127.0.0.1:1080\"", "[link.peer2]"),
        "g.toml:1: (file): found no listener for clients, expected at least one of [intercept], \
         [socks5] and [connect]\n\
         g.toml:7: link.peer2: found an unknown key, expected one of compress, \
         controller, hop, listen, mtu, overhead, peer, peer_public_key, ports, preshared_key, preshared_key_file, \
         rate_down, rate_up, repair, round_trip"
    );
    assert_eq!(
        error_for(TERMINAL, "[link]", "limits = 4\n[link]"),
        "g.toml:3: limits: found 4, expected a table, `[limits]`"
    );
}

#[test]
fn interception_is_checked() {
    let text = format!("{TERMINAL}[intercept]\ninterfaces = [\"lan0\"]\nports = [80]\n");
    assert_eq!(
        error_for(&text, "ports = [80]", "include_ports = [80, \"9-8\"]"),
        "g.toml:11: intercept.include_ports: found \"9-8\", expected a port, such as 443, or a \
         range, such as \"8000-8099\""
    );
    assert_eq!(
        error_for(&text, "ports = [80]", "exclude = \"10.0.0.1/8\""),
        "g.toml:11: intercept.exclude: found \"10.0.0.1/8\", expected a network, such as \
         \"10.0.0.0/8\" or \"2001:db8::/32\""
    );
    assert_eq!(
        error_for(&text, "interfaces = [\"lan0\"]\nports = [80]", ""),
        "g.toml:9: intercept.interfaces: found nothing, expected the clients' interfaces, such as \
         [\"lan0\"]"
    );
}

#[test]
fn values_that_the_kernel_rejects_are_reported_with_their_line() {
    let text = format!("{TERMINAL}[intercept]\ninterfaces = [\"lan*\"]\ntable = 7\n");
    assert!(Config::parse("g.toml", &text).is_ok());
    for table in ["253", "255", "0"] {
        assert_eq!(
            error_for(&text, "table = 7", &format!("table = {table}")),
            format!(
                "g.toml:11: intercept.table: found {table}, expected a routing table's number \
                 other than 0 and 253 to 255, which the system uses"
            )
        );
    }
    for name in ["*", "a b", "sixteen-letters-", "l\u{e4}n"] {
        let error = error_for(&text, "lan*", name);
        assert!(error.starts_with("g.toml:10: intercept.interfaces: found "), "{error}");
    }
    let error = error_for(&text, "[\"lan*\"]", "[]");
    assert!(error.starts_with("g.toml:10: intercept.interfaces: found an empty list,"), "{error}");
    assert!(error.ends_with("expected the clients' interfaces, such as [\"lan0\"]"), "{error}");
}

#[test]
fn toml_errors_have_their_line() {
    let error = error_for(TERMINAL, "rate_up = \"1mbit\"", "rate_up = \"1mbit");
    assert!(error.starts_with("g.toml:5: (syntax): found `rate_up = \"1mbit`"), "{error}");
}

#[test]
fn all_mistakes_are_reported_in_order() {
    let error = error_for(TERMINAL, "security = \"none\"\n", "security = 1\nfoo = 2\n");
    let lines: Vec<&str> = error.lines().map(|line| &line[..9]).collect();
    assert_eq!(lines, ["g.toml:2:", "g.toml:3:"].map(|s| &s[..9]));
}

#[test]
fn a_missing_file_is_reported() {
    let error = Config::load(Path::new("/nonexistent/g.toml")).unwrap_err().to_string();
    assert!(error.starts_with("cannot read /nonexistent/g.toml: No such file"), "{error}");
}
