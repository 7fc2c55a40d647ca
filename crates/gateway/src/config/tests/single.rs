//! `role = "single"`.

use super::*;
use units::BitRate;

const SINGLE: &str = r#"role = "single"
[single]
satellite = ["sat0"]
rate = "10mbit"
"#;

fn single(text: &str) -> SingleSection {
    match Config::parse("g.toml", text).unwrap().role {
        Role::Single(section) => section,
        Role::Hub(_) | Role::Terminal(_) => panic!("a single gateway"),
    }
}

#[test]
fn a_minimal_single_gateway_has_the_defaults() {
    let section = single(SINGLE);
    assert_eq!(section.satellite, ["sat0"]);
    assert_eq!(section.rate, Some(BitRate::from_mbps(10)));
    assert_eq!((section.source, section.port, section.mtu), (SourceMode::Client, 7900, 1500));
    assert_eq!((section.congestion, section.initial_window), (None, None));
    assert_eq!(section.burst, Span::from_millis(20));
}

#[test]
fn every_key_is_read() {
    let more = r#"network = ["lan0"]
networks = ["10.1.0.0/24"]
burst = "5ms"
round_trip = "550ms"
congestion = "bbr"
initial_window = 32
mtu = 1400
overhead = 18
source = "own"
port = 8000
id = "dish"
include_ports = [80]
exclude_ports = ["22-23"]
exclude = "10.0.0.0/8"
"#;
    let section = single(&format!("{SINGLE}{more}"));
    assert_eq!(section.congestion.as_deref(), Some("bbr"));
    assert_eq!((section.initial_window, section.mtu, section.overhead), (Some(32), 1400, 18));
    assert_eq!((section.burst, section.round_trip), (Span::from_millis(5), Span::from_millis(550)));
    assert_eq!((section.network.len(), section.networks.len(), section.port), (1, 1, 8000));
    assert_eq!(section.source, SourceMode::Own);
}

#[test]
fn keys_that_depend_on_networks_require_them() {
    for (more, key) in
        [("network = \"lan0\"", "network"), ("initial_window = 32", "initial_window")]
    {
        let error = error_for(SINGLE, "rate", &format!("{more}\nrate"));
        assert!(error.starts_with("g.toml:2: single.networks: found none"), "{error}");
        assert!(error.contains(&format!("single.{key} depends on them")), "{error}");
    }
    let error = error_for(SINGLE, "\"10mbit\"", "\"10mbit\"\n[link]\nlisten = \"0.0.0.0:7000\"");
    assert!(error.contains("link"), "a single gateway has no link: {error}");
    let error = error_for(SINGLE, "satellite = [\"sat0\"]", "congestion = \"b/r\"");
    assert!(error.contains("single.satellite") && error.contains("single.congestion"), "{error}");
}

#[test]
fn single_gateways_have_observers() {
    let text =
        format!("{SINGLE}[metrics]\nlisten = \"127.0.0.1:9999\"\n[control]\nsocket = \"/x/y\"\n");
    let config = Config::parse("g.toml", &text).unwrap();
    assert_eq!(config.metrics, Some("127.0.0.1:9999".parse().unwrap()));
    assert!(config.control.is_some());
}
