//! `[resolver]`.

use super::*;

#[test]
fn name_servers_default_to_port_53_and_the_systems_settings() {
    let text = format!(
        "{HUB}\n[resolver]\nnameservers = [\"192.0.2.53\", \"2001:db8::53\", \"192.0.2.54:5353\"]\n\
         search = \"example.org\"\ntimeout = \"1.5s\"\nattempts = 3\n"
    );
    let config = Config::parse("g.toml", &text).unwrap();
    let servers: Vec<String> =
        config.resolver.nameservers.iter().map(ToString::to_string).collect();
    assert_eq!(servers, ["192.0.2.53:53", "[2001:db8::53]:53", "192.0.2.54:5353"]);
    assert_eq!(config.resolver.search, Some(vec!["example.org".into()]));
    assert_eq!(config.resolver.timeout, Some(Span::from_millis(1_500)));
    assert_eq!(config.resolver.attempts, Some(3));
    let error = config.to_string();
    assert!(error.contains("names are looked up at 192.0.2.53:53, [2001:db8::53]:53"), "{error}");
    for base in [HUB, TERMINAL] {
        let config = Config::parse("g.toml", base).unwrap();
        assert_eq!(config.resolver, ResolverSection::default());
    }
}

#[test]
fn invalid_resolver_settings_are_reported() {
    for (lines, words) in [
        ("nameservers = \"ns.example.org\"", "a name server's address"),
        ("nameservers = \"192.0.2.1:0\"", "a name server's address"),
        ("nameservers = [1, 2]", "a name server's address"),
        ("search = \"a b\"", "a domain"),
        ("timeout = \"31s\"", "at most 30.000 s"),
        ("attempts = 0", "from 1 to 5"),
        ("ndots = 1", "an unknown key"),
    ] {
        let text = format!("{HUB}\n[resolver]\n{lines}\n");
        let error = Config::parse("g.toml", &text).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let many = ["\"192.0.2.1\""; 9].join(", ");
    let text = format!("{HUB}\n[resolver]\nnameservers = [{many}]\n");
    let error = Config::parse("g.toml", &text).unwrap_err().to_string();
    assert!(error.contains("9 of them, expected at most 8"), "{error}");
}

#[test]
fn name_servers_change_at_reload() {
    let old = Config::parse("g.toml", HUB).unwrap();
    let text = format!("{HUB}\n[resolver]\nnameservers = \"192.0.2.53\"\n");
    let (merged, changes) = old.merged(&Config::parse("g.toml", &text).unwrap());
    assert_eq!(merged.resolver.nameservers.len(), 1);
    let reported: Vec<_> =
        changes.iter().map(|change| (change.key.as_str(), change.live)).collect();
    assert_eq!(reported, [("resolver.nameservers", true)]);
}
