//! What is reported of prepared faults.

use super::firewall::{DropChain, drop_chains, report};
use super::{Diagnosis, Finding, Status, clock, diagnose, remedy};
use crate::{Config, Role, generate_key};
use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("bentpipe-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        generate_key(&folder.join("key")).unwrap();
        Self(folder)
    }

    /// Diagnoses a terminal of a hub at `peer`.
    fn diagnose(&self, peer: &str) -> Diagnosis {
        let (file, key) = (self.0.join("terminal.toml"), self.0.join("key"));
        let hub = "soga3od0HBGnsDsqibbSxzeH+GAxNdNUDLCAAGp8MV8=";
        let text = format!(
            "role = \"terminal\"\nprivate_key_file = {key:?}\n[link]\npeer = \"{peer}\"\n\
             peer_public_key = \"{hub}\"\n[socks5]\nlisten = \"127.0.0.1:0\"\n\
             [control]\nsocket = \"off\"\n[limits]\nconnections = 10\n"
        );
        fs::write(&file, text).unwrap();
        diagnose(&file)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn finding<'d>(diagnosis: &'d Diagnosis, check: &str) -> &'d Finding {
    let found = diagnosis.findings.iter().find(|finding| finding.check == check);
    found.unwrap_or_else(|| panic!("{check}: {diagnosis}"))
}

#[test]
fn a_wrong_line_and_an_open_key_are_named() {
    let folder = Folder::new("doctor-files");
    let file = folder.0.join("wrong.toml");
    fs::write(&file, "role = \"terminal\"\n[link]\npeer = 5\n").unwrap();
    let wrong = diagnose(&file);
    assert!(wrong.failures() > 1);
    assert!(wrong.findings.iter().any(|finding| finding.found.contains("wrong.toml:3: link.peer")));
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let key = folder.0.join("key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let open = folder.diagnose(&port.to_string());
    assert_eq!(finding(&open, "keys").status, Status::Failed);
    assert!(finding(&open, "keys").found.contains("chmod 600"), "{open}");
}

#[test]
fn a_hub_that_does_not_run_is_told_from_a_name_without_address() {
    let folder = Folder::new("doctor-hubs");
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = folder.diagnose(&closed.to_string());
    let hub = finding(&refused, "hub");
    assert_eq!(hub.status, Status::Failed);
    assert!(hub.found.contains("no program receives on that port"), "{refused}");
    let unnamed = folder.diagnose("no-such-hub.invalid:7000");
    assert!(finding(&unnamed, "hub").found.contains("has no address"), "{unnamed}");
    assert_eq!(unnamed.failures(), 1, "{unnamed}");
    let json = serde_json::to_value(&unnamed).unwrap();
    let hub = json["findings"].as_array().unwrap().last().unwrap();
    assert_eq!((&hub["check"], &hub["status"]), (&"hub".into(), &"failed".into()));
    assert!(hub["remedy"].as_str().unwrap().contains("resolv.conf"));
}

#[test]
fn a_clock_before_the_program_is_a_warning() {
    let status = |unix_s, synchronized| {
        let mut diagnosis = Diagnosis { findings: Vec::new() };
        clock::check_at(&mut diagnosis, unix_s, synchronized);
        diagnosis.findings[0].status
    };
    assert_eq!(status(0, Some(true)), Status::Warning);
    assert_eq!(status(1_800_000_000, Some(false)), Status::Warning);
    assert_eq!(status(1_800_000_000, Some(true)), Status::Ok);
    assert_eq!(status(1_800_000_000, None), Status::Ok);
}

#[test]
fn a_chain_that_drops_intercepted_connections_is_reported_with_the_rule_to_add() {
    // As nft 1.0.6 prints.
    let listed = r#"{"nftables": [{"metainfo": {"version": "1.0.6", "json_schema_version": 1}},
        {"chain": {"family": "inet", "table": "filter", "name": "input", "handle": 1,
         "type": "filter", "hook": "input", "prio": 0, "policy": "drop"}},
        {"chain": {"family": "inet", "table": "filter", "name": "forward", "handle": 2,
         "type": "filter", "hook": "forward", "prio": 0, "policy": "drop"}},
        {"chain": {"family": "inet", "table": "filter", "name": "own", "handle": 3}},
        {"chain": {"family": "ip", "table": "nat", "name": "output", "handle": 1,
         "type": "nat", "hook": "output", "prio": -100, "policy": "accept"}}]}"#;
    let chains = drop_chains(listed);
    let chain = |name: &str| DropChain {
        family: "inet".into(),
        table: "filter".into(),
        name: name.into(),
        hook: name.into(),
    };
    assert_eq!(chains, [chain("input"), chain("forward")]);
    assert_eq!(drop_chains("not JSON"), []);
    let text = "role = \"terminal\"\nsecurity = \"none\"\n[link]\npeer = \"192.0.2.1:7\"\n\
                [intercept]\ninterfaces = [\"lan0\"]\nmark = 7\n";
    let Role::Terminal(terminal) = Config::parse("t.toml", text).unwrap().role else {
        panic!("a terminal")
    };
    let mut diagnosis = Diagnosis { findings: Vec::new() };
    report(&mut diagnosis, &chains, terminal.intercept.as_ref());
    let [found] = &diagnosis.findings[..] else { panic!("{diagnosis}") };
    assert_eq!(found.status, Status::Warning);
    let rule = "nft insert rule inet filter input meta mark 0x7 accept";
    assert!(found.remedy.as_ref().unwrap().contains(rule), "{diagnosis}");
    let mut without = Diagnosis { findings: Vec::new() };
    report(&mut without, &chains, None);
    assert_eq!(without.findings[0].status, Status::Ok);
}

#[test]
fn warnings_of_the_kernel_have_a_remedy() {
    let forward = "net.ipv4.ip_forward is 0: IPv4 traffic that is not intercepted is not forwarded";
    assert!(remedy(forward).unwrap().starts_with("sysctl -w net.ipv4.ip_forward=1"));
    let missing = remedy("there is no interface \"lan7\" yet; the rules wait for it").unwrap();
    assert!(missing.contains("\"lan7\""));
    assert_eq!(remedy("something else"), None);
}
