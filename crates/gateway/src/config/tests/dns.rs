//! `[dns]`.

use super::*;

#[test]
fn a_terminal_listens_and_a_hub_has_servers() {
    let text = format!("{TERMINAL}\n[dns]\nlisten = \"10.1.0.1:53\"\nstale = \"off\"\n");
    let config = Config::parse("g.toml", &text).unwrap();
    assert!(config.to_string().contains("DNS forwarder on 10.1.0.1:53"));
    let Role::Terminal(section) = config.role else { panic!("a terminal") };
    let dns = section.dns.unwrap();
    assert_eq!((dns.memory, dns.stale, dns.prefetch), (4_000_000, Span::ZERO, true));
    assert_eq!((dns.placeholders, dns.open_by_name), (None, false));
    let text = format!("{HUB}\n[dns]\nservers = [\"127.0.0.1\", \"[::1]:5353\"]\n");
    let Role::Hub(section) = Config::parse("g.toml", &text).unwrap().role else { panic!("a hub") };
    let servers: Vec<String> = section.name_servers.iter().map(ToString::to_string).collect();
    assert_eq!(servers, ["127.0.0.1:53", "[::1]:5353"]);
}

#[test]
fn invalid_dns_settings_are_reported() {
    for (base, lines, words) in [
        (TERMINAL, "memory = \"4mb\"", "1 to 16 addresses"),
        (TERMINAL, "listen = []", "1 to 16 addresses"),
        (TERMINAL, "listen = \"10.1.0.1\"", "an address and port"),
        (TERMINAL, "listen = \"10.1.0.1:53\"\nplaceholders = \"fd00::/64\"", "an IPv4 network"),
        (TERMINAL, "listen = \"10.1.0.1:53\"\nplaceholders = \"10.9.0.0/31\"", "an IPv4 network"),
        (TERMINAL, "listen = \"10.1.0.1:53\"\nstale = \"169h\"", "at most"),
        (TERMINAL, "servers = \"127.0.0.1\"", "an unknown key"),
        (HUB, "servers = []", "1 to 8 addresses"),
        (HUB, "listen = \"10.1.0.1:53\"", "an unknown key"),
    ] {
        let text = format!("{base}\n[dns]\n{lines}\n");
        let error = Config::parse("g.toml", &text).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}
