//! `intercept.quic`.

use super::*;

fn parse(intercept: &str, forward: &str) -> Result<Config, String> {
    let forward = match forward {
        "none" => String::new(),
        more => format!("[forward]\ninterfaces = \"lan0\"\n{more}\n"),
    };
    let text = format!("{TERMINAL}\n[intercept]\ninterfaces = \"lan0\"\n{intercept}\n{forward}");
    Config::parse("g.toml", &text).map_err(|error| error.to_string())
}

fn mode(intercept: &str, forward: &str) -> QuicMode {
    let config = parse(intercept, forward).unwrap_or_else(|error| panic!("{error}"));
    let Role::Terminal(terminal) = config.role else { panic!("a terminal") };
    terminal.intercept.unwrap().quic
}

#[test]
fn quic_is_refused_by_default_unless_forwarded() {
    assert_eq!(mode("", "none"), QuicMode::Refuse);
    assert_eq!(mode("quic = \"bypass\"", "none"), QuicMode::Bypass);
    assert_eq!(mode("", ""), QuicMode::Forward);
    assert_eq!(mode("quic = \"forward\"", ""), QuicMode::Forward);
    assert_eq!(mode("quic = \"refuse\"", ""), QuicMode::Refuse);
    // A [forward] that does not select QUIC.
    for forward in [
        "protocols = [\"icmp\"]",
        "include_ports = [53]",
        "exclude_ports = [443]",
        "refuse = [\"udp/443\"]",
    ] {
        assert_eq!(mode("", forward), QuicMode::Refuse, "{forward}");
        assert_eq!(mode("quic = \"bypass\"", forward), QuicMode::Bypass, "{forward}");
        assert!(parse("quic = \"forward\"", forward).is_err(), "{forward}");
    }
    assert_eq!(mode("", "protocols = [\"udp\"]\ninclude_ports = [\"400-500\"]"), QuicMode::Forward);
}

#[test]
fn contradictions_are_reported() {
    let error_for = |intercept, forward| parse(intercept, forward).unwrap_err();
    let expected = "expected a [forward] that carries UDP to port 443";
    assert!(error_for("quic = \"forward\"", "none").contains(expected));
    let expected = "expected forward.exclude_ports = [443] as well";
    assert!(error_for("quic = \"bypass\"", "").contains(expected));
    let expected = "expected \"refuse\" or \"forward\" or \"bypass\"";
    assert!(error_for("quic = \"drop\"", "none").contains(expected));
}

#[test]
fn the_summary_lists_the_quic_mode() {
    for (intercept, words) in [("", "refused, so that"), ("quic = \"bypass\"", "bypasses the")] {
        let summary = parse(intercept, "none").unwrap().to_string();
        assert!(summary.contains("QUIC (UDP port 443) from these"), "{summary}");
        assert!(summary.contains(words), "{summary}");
    }
}
