use super::*;

fn rules(texts: &[&str]) -> Vec<Rule> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn lists(allow: &[&str], deny: &[&str]) -> Destinations {
    Destinations { allow: rules(allow), deny: rules(deny) }
}

fn is_open(reach: &mut Reach, server: &str) -> bool {
    reach.check(server.parse().unwrap()).is_ok()
}

#[test]
fn rules_are_read_and_shown() {
    for (text, shown) in [
        ("any", "any"),
        ("any port 25", "any port 25"),
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.0.0.1", "10.0.0.1/32"),
        ("fd00::/8 ports 8000-8099", "fd00::/8 port 8000-8099"),
    ] {
        assert_eq!(text.parse::<Rule>().unwrap().to_string(), shown);
    }
    for wrong in ["", "port 25", "10.0.0.0/8 22", "10.0.0.1/8", "any port 0", "any port a b"] {
        assert!(wrong.parse::<Rule>().is_err(), "{wrong}");
    }
}

#[test]
fn the_most_specific_rule_wins() {
    let lists = lists(
        &["10.5.0.0/16", "10.6.0.0/16 port 443", "2001:db8::/32"],
        &["10.0.0.0/8", "any port 25", "10.5.5.5", "::/0", "10.7.0.0/16", "10.5.0.0/16 port 22"],
    );
    let mut reach = Reach::listed(&lists);
    for (server, open) in [
        ("192.0.2.1:80", true),
        ("192.0.2.1:25", false),
        ("10.1.0.1:80", false),
        ("10.5.0.1:80", true),
        ("10.5.0.1:22", false),
        // A network that is named is more specific than a port of any.
        ("10.5.0.1:25", true),
        ("10.5.5.5:80", false),
        ("10.6.0.1:443", true),
        ("10.6.0.1:80", false),
        ("[2001:db8::1]:80", true),
        ("[2001:db9::1]:80", false),
    ] {
        assert_eq!(is_open(&mut reach, server), open, "{server}");
    }
    // Of two that are as specific, the one that denies.
    let mut reach = Reach::listed(&self::lists(&["192.0.2.1"], &["192.0.2.1"]));
    assert!(!is_open(&mut reach, "192.0.2.1:80"));
}

#[test]
fn a_port_that_is_not_shown_may_be_any() {
    let open = |allow: &[&str], deny: &[&str], address: &str| {
        Reach::listed(&lists(allow, deny)).check_all_ports(address.parse().unwrap()).is_ok()
    };
    assert!(open(&[], &["10.0.0.0/8"], "192.0.2.1"));
    assert!(!open(&[], &["192.0.2.0/24 port 22"], "192.0.2.1"), "it may be 22");
    assert!(open(&[], &["192.0.2.0/24 port 22"], "198.51.100.1"), "a rule for others");
    assert!(!open(&[], &["any port 65535"], "2001:db8::1"));
    assert!(!open(&["192.0.2.1 port 443"], &["192.0.2.0/24"], "192.0.2.1"), "it may not be 443");
    assert!(open(&["192.0.2.1"], &["192.0.2.0/24", "any port 22"], "192.0.2.1"));
    let with_gap = ["192.0.2.1 port 1-21", "192.0.2.1 port 23-65535"];
    assert!(!open(&with_gap, &["192.0.2.1"], "192.0.2.1"));
    let whole = ["192.0.2.1 port 1-22", "192.0.2.1 port 23-65535"];
    assert!(open(&whole, &["192.0.2.1"], "192.0.2.1"));
    assert!(!open(&[], &["192.0.2.1 port 22"], "64:ff9b::192.0.2.1"), "its other form");
}

#[test]
fn other_forms_of_a_denied_address_are_denied() {
    let mut reach = Reach::listed(&lists(&[], &["10.0.0.0/8"]));
    for server in [
        "[::ffff:10.0.0.1]:80",
        "[::10.0.0.1]:80",
        "[::ffff:0:10.0.0.1]:80",
        "[64:ff9b::10.0.0.1]:80",
        "[64:ff9b:1::10.0.0.1]:80",
        // RFC 6052 2.4: 48, 56 and 64 bits of prefix, with the byte in the middle left out.
        "[64:ff9b:1:a00:0:100::]:80",
        "[64:ff9b:1:a:0:1::]:80",
        "[64:ff9b:1:7:a:0:100:0]:80",
        "[2002:a00:1::1]:80",
        "[2001:0:a00:1::1]:80",
        "[2001:0:c000:201::f5ff:fffe]:80",
        "[2001:db8::5efe:10.0.0.1]:80",
        "[2001:db8::200:5efe:10.0.0.1]:80",
    ] {
        let because = reach.check(server.parse().unwrap()).expect_err(server).to_string();
        assert!(because.contains("10.0.0.0/8 is denied"), "{server}: {because}");
    }
    for server in ["[64:ff9b::192.0.2.1]:80", "[2002:c000:201::1]:80", "[2001:db8::a00:1]:80"] {
        assert!(is_open(&mut reach, server), "{server}");
    }
    // By a prefix of the operator's own: 192.0.2.1 in each of the four forms.
    let mut hub = Reach::hub(&lists(&[], &["10.0.0.0/8"]), true).unwrap();
    for server in [
        "[64:ff9b:1::192.0.2.1]:80",
        "[64:ff9b:1:c000:2:100::]:80",
        "[64:ff9b:1:c0:0:201::]:80",
        "[64:ff9b:1:0:c0:2:100:0]:80",
    ] {
        assert!(is_open(&mut hub, server), "{server}");
    }
    for server in ["[64:ff9b:1::]:80", "[64:ff9b:1::127.0.0.1]:80", "[64:ff9b:1:7f00:0:100::]:80"] {
        assert!(!is_open(&mut hub, server), "{server}");
    }
}

/// Metadata services, by what their providers document.
const METADATA_SERVICES: [&str; 17] = [
    "169.254.169.254", // Amazon, Azure, Google, Oracle, IBM, DigitalOcean, Hetzner, Huawei, ...
    "169.254.170.2",   // Amazon ECS
    "169.254.170.23",  // Amazon EKS
    "169.254.0.23",    // Tencent
    "169.254.42.42",   // Scaleway
    "fe80::a9fe:a9fe", // OpenStack
    "fd00:ec2::254",   // Amazon
    "fd00:ec2::23",    // Amazon EKS
    "fd20:ce::254",    // Google
    "fd00:c1::a9fe:a9fe", // Oracle
    "192.0.0.192",     // Oracle Cloud Classic
    "168.63.129.16",   // Azure
    "100.100.100.200", // Alibaba
    "fd00:100::100:200", // Alibaba
    "fd00:a9fe:a9fe::1", // Akamai
    "fd00:42::42",     // Scaleway
    "100.96.0.96",     // Volcano Engine
];

/// All that a translator or a tunnel would take for `address`.
fn forms(address: std::net::Ipv4Addr) -> Vec<String> {
    let [a, b, c, d] = address.octets();
    let hex = format!("{:x}:{:x}", u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    let turned = format!("{:x}:{:x}", !u16::from_be_bytes([a, b]), !u16::from_be_bytes([c, d]));
    vec![
        format!("::ffff:{address}"),
        format!("2002:{hex}::1"),
        format!("64:ff9b::{address}"),
        format!("64:ff9b:1::{address}"),
        format!("2001:0:c000:201::{turned}"),
        format!("2001:0:{hex}::1"),
    ]
}

#[test]
fn metadata_services_of_clouds_are_refused_in_every_form_unless_they_are_allowed() {
    // Its own addresses are open, and so is all else.
    let mut reach = Reach::hub(&lists(&["any", "100.64.0.0/10", "fc00::/7"], &[]), false).unwrap();
    for service in METADATA_SERVICES {
        let address: IpAddr = service.parse().unwrap();
        let mut all = vec![service.to_owned()];
        if let IpAddr::V4(address) = address {
            all.extend(forms(address));
        }
        for form in all {
            let server = SocketAddr::new(form.parse().unwrap(), 80);
            let because = reach.check(server).expect_err(&form).to_string();
            assert!(because.contains("is denied"), "{form}: {because}");
            assert!(reach.check_all_ports(server.ip()).is_err(), "{form}");
        }
        let mut allowed = Reach::hub(&lists(&[service], &[]), true).unwrap();
        assert!(allowed.check(SocketAddr::new(address, 80)).is_ok(), "{service}");
    }
    // Their neighbours are servers like others.
    for server in ["168.63.129.17:80", "192.0.0.193:80", "100.100.100.201:80", "[fd20:ce::253]:80"]
    {
        assert!(is_open(&mut reach, server), "{server}");
    }
}

#[test]
fn a_hub_refuses_its_own_addresses() {
    let mut reach = Reach::hub(&lists(&[], &[]), true).unwrap();
    for server in [
        "127.0.0.1:22",
        "127.9.9.9:22",
        "[::1]:22",
        "[::ffff:127.0.0.1]:22",
        "[::127.0.0.1]:22",
        "[64:ff9b::7f00:1]:22",
        "[2002:7f00:1::]:22",
        "0.0.0.0:22",
        "0.1.2.3:22",
        "[::]:22",
        "169.254.169.254:80",
        "[fe80::1]:80",
        "224.0.0.1:80",
        "255.255.255.255:80",
        "240.0.0.1:80",
        "[ff02::1]:80",
    ] {
        assert!(!is_open(&mut reach, server), "{server}");
    }
    assert!(is_open(&mut reach, "192.0.2.1:80"));
    // Only the named port is open.
    let mut reach = Reach::hub(&lists(&["127.0.0.1 port 8080"], &[]), true).unwrap();
    assert!(is_open(&mut reach, "127.0.0.1:8080"));
    assert!(!is_open(&mut reach, "127.0.0.1:22"));
    // Without the guard only what is nowhere at all is refused.
    let mut reach = Reach::hub(&lists(&[], &[]), false).unwrap();
    assert!(is_open(&mut reach, "127.0.0.1:22") && is_open(&mut reach, "[::1]:22"));
    assert!(!is_open(&mut reach, "0.0.0.0:22") && !is_open(&mut reach, "224.0.0.1:22"));
}

/// In a network namespace of its own, where addresses come and go.
#[test]
fn own_addresses_are_read_from_the_kernel() {
    use nix::sched::{CloneFlags, unshare};
    use rt::netlink::VethEnd;
    let thread = std::thread::spawn(|| {
        if let Err(why) = unshare(CloneFlags::CLONE_NEWNET) {
            eprintln!("skipped: unshare(CLONE_NEWNET) was refused: {why}");
            return;
        }
        let mut net = Netlink::open().unwrap();
        net.set_up("lo").unwrap();
        net.create_veth(&VethEnd::new("a"), &VethEnd::new("b")).unwrap();
        net.set_up("a").unwrap();
        net.set_up("b").unwrap();
        let lists = lists(&["10.8.0.1 port 80", "10.9.0.0/24"], &[]);
        let mut reach = Reach::hub(&lists, true).unwrap();
        assert!(is_open(&mut reach, "10.8.0.1:22"), "not its own yet");
        for (address, prefix) in [("10.8.0.1", 24), ("10.9.0.1", 24), ("fd00:8::1", 64)] {
            net.add_address("a", address.parse().unwrap(), prefix).unwrap();
            net.await_address(address.parse().unwrap()).unwrap();
        }
        let own = reach.check("10.8.0.1:22".parse().unwrap());
        assert_eq!(own, Err(DenyReason::Own));
        assert!(is_open(&mut reach, "10.8.0.1:80"), "named with its port");
        assert!(!is_open(&mut reach, "10.9.0.1:80"), "a network does not name what is its own");
        assert!(!is_open(&mut reach, "10.8.0.255:80"), "a broadcast address");
        assert!(is_open(&mut reach, "10.8.0.2:22"));
        assert!(!is_open(&mut reach, "[fd00:8::1]:22"));
        assert!(!is_open(&mut reach, "[64:ff9b::10.8.0.1]:22"));
        assert!(is_open(&mut reach, "[fd00:8::2]:22"));
        // A missing route is reported by the attempt to connect.
        assert!(is_open(&mut reach, "192.0.2.1:22"));
        net.delete_link("a").unwrap();
        assert!(is_open(&mut reach, "10.8.0.1:22"), "no longer its own");
    });
    thread.join().expect("the test in the namespace failed");
}

#[test]
fn terminals_speak_for_their_own_clients() {
    let networks = ["10.1.0.0/24".parse().unwrap(), "fd00:1::/64".parse().unwrap()];
    let may = |networks: &[Prefix], client: &str| may_speak_for(networks, client.parse().unwrap());
    assert!(may(&networks, "10.1.0.7") && may(&networks, "fd00:1::7"));
    assert!(may(&networks, "::ffff:10.1.0.7"));
    assert!(!may(&networks, "10.2.0.7") && !may(&networks, "127.0.0.1"));
    assert!(!may(&[], "192.0.2.1"), "nobody without networks");
    let any = ["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()];
    assert!(may(&any, "192.0.2.1") && may(&any, "2001:db8::1"));
    for never in ["127.0.0.1", "0.0.0.0", "ff02::1", "::1"] {
        assert!(!may(&any, never), "{never}");
    }
}
