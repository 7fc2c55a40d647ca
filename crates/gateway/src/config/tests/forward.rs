//! `[forward]`.

use super::*;

#[test]
fn forwarded_packets_are_read_for_each_role() {
    let text = format!(
        "{TERMINAL}\n[forward]\ninterfaces = \"lan0\"\nprotocols = [\"udp\", \"icmp\", 50]\n\
         refuse = [\"udp/443\"]\ninclude_ports = [53]\nmark = 7\n"
    );
    let forward = Config::parse("g.toml", &text).unwrap().forward.unwrap();
    assert_eq!((forward.id.as_str(), forward.device.as_str()), ("terminal_forward", "bentpipe0"));
    assert_eq!(forward.protocols, [17, 1, 58, 50]);
    assert_eq!(forward.refuse, [(17, "443".parse().unwrap())]);
    assert_eq!((forward.mtu, forward.marking.mark), (1500, Some(7)));
    assert!(!forward.compress_headers);
    let text = format!("{HUB}\n[forward]\nnetworks = [\"10.1.0.0/24\"]\n");
    let forward = Config::parse("g.toml", &text).unwrap().forward.unwrap();
    assert_eq!((forward.id.as_str(), forward.networks.len()), ("hub_forward", 1));
    assert!(Config::parse("g.toml", HUB).unwrap().forward.is_none());
}

#[test]
fn headers_are_compressed_only_where_configured() {
    for (base, lines) in
        [(TERMINAL, "interfaces = \"lan0\""), (HUB, "networks = [\"10.1.0.0/24\"]")]
    {
        for (key, compresses) in
            [("", false), ("compress_headers = false", false), ("compress_headers = true", true)]
        {
            let text = format!("{base}\n[forward]\n{lines}\n{key}\n");
            let config = Config::parse("g.toml", &text).unwrap();
            let relay = crate::relay_settings::relay_config(&config, &config.link);
            assert_eq!(relay.compress_headers, compresses, "{text}");
        }
        let without = Config::parse("g.toml", base).unwrap();
        assert!(!crate::relay_settings::relay_config(&without, &without.link).compress_headers);
    }
}

#[test]
fn invalid_forward_settings_are_reported() {
    let error_for = |base: &str, lines: &str| {
        Config::parse("g.toml", &format!("{base}\n[forward]\n{lines}")).unwrap_err().to_string()
    };
    assert!(error_for(TERMINAL, "").contains("forward.interfaces: found nothing"));
    assert!(error_for(HUB, "").contains("forward.networks: found nothing"));
    assert!(error_for(HUB, "networks = []").contains("the terminals' networks"));
    assert!(error_for(HUB, "networks = \"::/0\"\ninterfaces = \"lan\"").contains("an unknown key"));
    for (lines, words) in [
        ("protocols = \"udpp\"", "a protocol"),
        ("protocols = 256", "a protocol"),
        ("refuse = \"icmp/8\"", "\"udp/\" or \"tcp/\""),
        ("device = \"a/b\"", "a name for an interface"),
        ("mtu = 1000", "from 1280 to 9000"),
        ("compress_headers = \"yes\"", "true or false"),
    ] {
        let error = error_for(TERMINAL, &format!("interfaces = \"lan0\"\n{lines}\n"));
        assert!(error.contains(words), "{error}");
    }
}
