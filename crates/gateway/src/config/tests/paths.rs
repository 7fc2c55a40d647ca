//! `[[path]]` and `[health]`.

use super::*;
use units::{BitRate, Span};

const OPEN: &str = r#"
role = "terminal"
security = "none"
name = "boat"
[link]
rate_up = "1mbit"
rate_down = "10mbit"
[[path]]
name = "sat"
peer = "192.0.2.1:7000"
interface = "wan0"
[[path]]
name = "lte"
role = "backup"
peer = "[2001:db8::1]:7000"
rate_down = "auto"
weight = 3
listen = "[::]:7100"
[health]
hold = "20s"
probe = "1s"
loss = "30%"
round_trip = "1500ms"
[socks5]
"#;

fn parse(text: &str) -> Config {
    Config::parse("g.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn paths_inherit_from_the_link() {
    let config = parse(OPEN);
    let [sat, lte] = &config.paths[..] else { panic!("two paths") };
    assert_eq!((sat.name.as_str(), sat.priority, sat.weight), ("sat", 1, 1));
    assert_eq!((lte.name.as_str(), lte.priority, lte.weight), ("lte", 2, 3));
    assert_eq!(sat.link.rate_down, Some(BitRate::from_mbps(10)));
    assert_eq!((lte.link.rate_down, lte.link.rate_up), (None, Some(BitRate::from_mbps(1))));
    assert_eq!((sat.interface.as_deref(), lte.interface.as_deref()), (Some("wan0"), None));
    assert_eq!(sat.link.listen, "0.0.0.0:0".parse().unwrap());
    assert_eq!(lte.link.listen, "[::]:7100".parse().unwrap());
    assert_eq!(config.health.probe, Some(Span::from_secs(1)));
    assert_eq!(config.health.demands.hold, Span::from_secs(20));
    assert_eq!(config.health.demands.most_loss, Some(30));
    assert_eq!(config.health.demands.most_round_trip, Some(Span::from_millis(1_500)));
    assert_eq!(config.effective_paths().len(), 2);
}

#[test]
fn fallback_actions_are_read() {
    let text = format!("{OPEN}[fail]\nunreachable = \"open\"\nfull = \"refuse\"\n");
    let fail = parse(&text).fail;
    assert_eq!((fail.unreachable, fail.full), (WhenFail::Open, WhenFail::Refuse));
    assert_eq!(parse(OPEN).fail, FailSection::default());
    let said_of = |text: &str, words: &str| parse(text).to_string().contains(words);
    assert!(said_of(&text, "while no hub answers, new connections bypass the gateway"));
    assert!(said_of(OPEN, "path \"sat\" to the hub at 192.0.2.1:7000 by wan0, priority 1"));
    let wrong = error_for(&text, "\"open\"", "\"opne\"");
    assert!(wrong.contains("fail.unreachable: found \"opne\""), "{wrong}");
}

#[test]
fn bonded_paths_have_one_hub_and_one_priority() {
    let bonded = OPEN.replacen("[link]", "[link]\nbond = true", 1);
    let error = Config::parse("g.toml", &bonded).unwrap_err().to_string();
    assert!(error.contains("two [[path]] with the same hub and priority"), "{error}");
    let third = |peer: &str| {
        format!(
            "[[path]]\nname = \"leo\"\npeer = \"{peer}\"\n[[path]]\nname = \"b\"\npriority = 2\n\
                 peer = \"192.0.2.1:7000\"\n[health]"
        )
    };
    let all = |text: &str| text.replacen("[health]", &third("192.0.2.1:7000"), 1);
    let config = parse(&all(&bonded));
    let joined: Vec<_> = (0..4).map(|number| joins(&config.paths, number)).collect();
    assert_eq!(joined, [None, None, Some(0), None]);
    let said = config.to_string();
    assert!(said.contains("bonded with path \"sat\": each connection uses both"), "{said}");
    let config = parse(&all(OPEN));
    assert!((0..4).all(|number| joins(&config.paths, number).is_none()));
    let error = error_for(TERMINAL, "[link]", "[link]\nbond = true");
    assert!(error.contains("link.bond: found an unknown key"), "{error}");
}

#[test]
fn one_link_is_one_unnamed_path() {
    let config = Config::parse("g.toml", TERMINAL).unwrap();
    let [path] = &config.effective_paths()[..] else { panic!("one path") };
    assert_eq!((path.name.as_str(), &path.link.peer), ("", &config.link.peer));
    assert!(config.paths.is_empty());
    assert_eq!(config.keep_alive(), Span::from_secs(10));
    let several = parse(&OPEN.replace("probe = \"1s\"\n", ""));
    assert_eq!(several.keep_alive(), Span::from_secs(2), "where something depends on it");
}

#[test]
fn mistakes_in_paths_are_reported() {
    for (from, to, words) in [
        ("name = \"lte\"", "name = \"sat\"", "path.name: found \"sat\" again"),
        ("name = \"lte\"", "name = \"l te\"", "expected 1 to 32 letters, digits, hyphens"),
        ("weight = 3", "priority = 3", "either `role` or `priority`, not both"),
        ("role = \"backup\"", "role = \"spare\"", "\"primary\" or \"backup\""),
        ("weight = 3", "weight = 0", "path.weight: found 0"),
        ("peer = \"192.0.2.1:7000\"\n", "", "path.peer: found nothing"),
        ("listen = \"[::]:7100\"", "listen = \"0.0.0.0:7100\"", "the family of peer"),
        ("loss = \"30%\"", "loss = \"0%\"", "from \"1%\" to \"99%\""),
        ("probe = \"1s\"", "probe = \"1ms\"", "from \"200ms\" to \"1m\""),
        ("interface = \"wan0\"", "private_key_file = \"/k\"", "none beside `security"),
    ] {
        let error = error_for(OPEN, from, to);
        assert!(error.contains(words), "{from} → {to}: {error}");
    }
}

fn keyed() -> (String, [String; 4]) {
    let mut rng = units::RngStream::new(3, 0, "keys");
    let keys = [(); 4].map(|()| relay::PrivateKey::generate(&mut rng));
    let text = format!(
        "role = \"terminal\"\nname = \"boat\"\nprivate_key = \"{}\"\n\
         [link]\npeer = \"192.0.2.1:7000\"\npeer_public_key = \"{}\"\n\
         [[path]]\nname = \"sat\"\n\
         [[path]]\nname = \"lte\"\nprivate_key = \"{}\"\n[socks5]\n",
        keys[0].to_text(),
        keys[1].public(),
        keys[2].to_text(),
    );
    let other = keys[3].public().to_string();
    let texts = [0, 1, 2].map(|at: usize| keys[at].to_text());
    let [one, two, three] = texts;
    (text, [one, two, three, other])
}

#[test]
fn two_paths_to_one_hub_need_different_keys() {
    let (text, [_, _, second, other_hub]) = keyed();
    let config = parse(&text);
    assert_ne!(config.paths[0].keys, config.paths[1].keys);
    config.keys().unwrap();
    let hub = config.paths[1].keys.as_ref().unwrap().hub.as_ref().unwrap().public.to_string();
    let (summary, error) = (config.to_string(), format!("the hub's public key is {hub}\n"));
    assert_eq!(summary.matches(&error).count(), 2, "one for each path: {summary}");
    let line = format!("private_key = \"{second}\"\n");
    let (before, after) = text.split_once(&line).unwrap();
    let same = Config::parse("g.toml", &format!("{before}{after}")).unwrap_err().to_string();
    assert!(same.contains("path.private_key_file: found the key of path \"sat\""), "{same}");
    let elsewhere = format!("{before}peer_public_key = \"{other_hub}\"\n{after}");
    parse(&elsewhere).keys().unwrap();
}

#[test]
fn a_path_may_have_its_own_preshared_key() {
    let (text, [one, two, ..]) = keyed();
    let with = |text: &str| {
        text.replace("name = \"lte\"\n", &format!("name = \"lte\"\npreshared_key = \"{one}\"\n"))
    };
    let config = parse(&with(&text));
    let hub = |config: &Config, at: usize| config.paths[at].keys.clone().unwrap().hub.unwrap();
    let error_for = |key: &str| Some(KeySource::Here(key.parse::<relay::PresharedKey>().unwrap()));
    assert_eq!(hub(&config, 1).public, hub(&config, 0).public);
    assert_eq!(hub(&config, 1).preshared, error_for(&one));
    assert_eq!(hub(&config, 0).preshared, None);
    // The link has a preshared key, which applies to paths without their own.
    let usual = "[[path]]\nname = \"sat\"\n";
    let both = with(&text).replace(usual, &format!("preshared_key = \"{two}\"\n{usual}"));
    let config = parse(&both);
    assert_eq!(
        (hub(&config, 0).preshared, hub(&config, 1).preshared),
        (error_for(&two), error_for(&one))
    );
}

#[test]
fn further_paths_belong_to_a_terminal() {
    let hub = |entries: &str| {
        let text = format!(
            "role = \"hub\"\nsecurity = \"none\"\n[link]\nlisten = \"127.0.0.1:7000\"\n{entries}"
        );
        Config::parse("g.toml", &text)
    };
    let both =
        "[[terminal]]\nname = \"boat\"\nconnections = 9\n[[terminal]]\nname = \"boat/lte\"\n";
    hub(both).unwrap();
    let alone = hub("[[terminal]]\nname = \"boat/lte\"\n").unwrap_err().to_string();
    assert!(alone.contains("a [[terminal]] with the name \"boat\" as well"), "{alone}");
    let own = hub(&format!("{both}connections = 5\n")).unwrap_err().to_string();
    assert!(own.contains("shares and rules stand with \"boat\""), "{own}");
}

#[test]
fn the_paths_of_a_terminal_share_its_memory() {
    let text = "role = \"hub\"\nsecurity = \"none\"\n[link]\nlisten = \"127.0.0.1:7000\"\n\
                [[terminal]]\nname = \"boat/lte\"\n[[terminal]]\nname = \"boat\"\nmemory = \"8mb\"\n\
                [[terminal]]\nname = \"boat/sat\"\nmemory = \"2mb\"\n\
                [[terminal]]\nname = \"ship\"\n[[terminal]]\nname = \"ship/lte\"\n\
                [[terminal]]\nname = \"car\"\n";
    let Role::Hub(hub) = parse(text).role else { panic!("a hub") };
    let expected = [(vec!["boat", "boat/lte"], 8_000_000), (vec!["boat/sat"], 2_000_000)];
    assert_eq!(hub.memory(None), expected);
    let usual = hub.memory(Some(5_000_000));
    assert_eq!(usual, [&expected[..], &[(vec!["ship", "ship/lte"], 5_000_000)]].concat());
}
