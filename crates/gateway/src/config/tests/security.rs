//! Messages for keys that are missing, wrong, or without effect.

use super::error_for;
use std::os::unix::fs::PermissionsExt;

use crate::{Config, KeySource, PrivateKey, Role, SecuritySection, SystemEntropy};

const PRIVATE: &str = "iHAS+5qpJcTxyPnoVmyQvWA9VWi7Ax2UYuaj5vMlFlc=";
const PUBLIC: &str = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";

fn terminal() -> String {
    format!(
        "role = \"terminal\"\nprivate_key_file = \"/etc/bentpipe/key\"\n[link]\n\
         peer = \"192.0.2.1:7000\"\npeer_public_key = \"{PUBLIC}\"\n[socks5]\n"
    )
}

fn hub() -> String {
    format!(
        "role = \"hub\"\nprivate_key = \"{PRIVATE}\"\n[link]\nlisten = \"0.0.0.0:7000\"\n\
         [[terminal]]\nname = \"boat\"\npublic_key = \"{PUBLIC}\"\n\
         preshared_key_file = \"/etc/bentpipe/boat\"\n"
    )
}

#[test]
fn links_are_encrypted_by_default() {
    let config = Config::parse("g.toml", &terminal()).unwrap();
    let SecuritySection::Noise(noise) = &config.security else { panic!("noise") };
    assert_eq!(noise.private, KeySource::File("/etc/bentpipe/key".into()));
    assert_eq!(noise.hub.as_ref().unwrap().public.to_string(), PUBLIC);
    assert_eq!(noise.hub.as_ref().unwrap().preshared, None);
    let config = Config::parse("g.toml", &format!("{}[hub]\n", hub())).unwrap();
    let SecuritySection::Noise(noise) = &config.security else { panic!("noise") };
    assert_eq!(noise.private, KeySource::Here(PRIVATE.parse().unwrap()));
    let Role::Hub(hub) = &config.role else { panic!("a hub") };
    let key = hub.terminals[0].key.as_ref().unwrap();
    assert_eq!(key.public.to_string(), PUBLIC);
    assert_eq!(key.preshared, Some(KeySource::File("/etc/bentpipe/boat".into())));
    let explicit = terminal().replacen("[link]", "security = \"noise\"\n[link]", 1);
    assert!(Config::parse("g.toml", &explicit).is_ok());
    let summary = config.to_string();
    assert!(summary.contains("terminals known by their keys: 1"), "{summary}");
    assert!(!summary.contains(PRIVATE) && !format!("{config:?}").contains(PRIVATE));
}

#[test]
fn a_hub_may_have_more_terminals_than_a_list_may_have_items() {
    let mut text = hub();
    for number in 0..300 {
        let key = PrivateKey::generate(&mut SystemEntropy).public();
        text += &format!("[[terminal]]\nname = \"site-{number}\"\npublic_key = \"{key}\"\n");
    }
    let config = Config::parse("g.toml", &text).unwrap();
    let Role::Hub(hub) = &config.role else { panic!("a hub") };
    assert_eq!(hub.terminals.len(), 301);
}

#[test]
fn a_world_readable_file_with_secrets_is_rejected() {
    let name = format!("bentpipe-{}-secrets.toml", std::process::id());
    let file = std::env::temp_dir().join(name);
    let load = |text: &str, mode: u32| {
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let loaded = Config::load(&file).map_err(|error| error.to_string());
        std::fs::remove_file(&file).unwrap();
        loaded.map(|_| ())
    };
    for (mode, taken) in [(0o600, true), (0o640, true), (0o644, false), (0o602, false)] {
        let loaded = load(&hub(), mode);
        assert_eq!(loaded.is_ok(), taken, "{mode:o}: {loaded:?}");
        if let Err(error) = loaded {
            assert!(error.contains("private_key: found a secret"), "{error}");
            assert!(error.contains("chmod 640"), "{error}");
        }
        assert_eq!(load(&terminal(), mode), Ok(()), "it names a file of its own");
    }
    let peer = format!("peer_public_key = \"{PUBLIC}\"\n");
    let shared = format!("{peer}preshared_key = \"{PRIVATE}\"\n");
    let error = load(&terminal().replace(&peer, &shared), 0o644).unwrap_err();
    assert!(error.contains("link.preshared_key: found a secret"), "{error}");
}

#[test]
fn missing_keys_are_named() {
    let missing = error_for(&terminal(), "private_key_file = \"/etc/bentpipe/key\"\n", "");
    assert!(missing.starts_with("g.toml:1: private_key_file: found nothing, expected the file"));
    assert!(missing.contains("`bentpipe key generate FILE`; or `security = \"none\"`"));
    let missing = error_for(&terminal(), &format!("peer_public_key = \"{PUBLIC}\"\n"), "");
    assert!(missing.starts_with("g.toml:3: link.peer_public_key: found nothing"), "{missing}");
    let missing = error_for(&hub(), &format!("public_key = \"{PUBLIC}\"\n"), "");
    assert!(missing.starts_with("g.toml:5: terminal.public_key: found nothing"), "{missing}");
    let text = hub();
    let terminals = text.find("[[terminal]]").unwrap();
    let missing = error_for(&text, &text[terminals..], "");
    assert!(missing.starts_with("g.toml:1: terminal: found nothing, expected the terminals"));
    // Also on loopback.
    let missing = error_for(&hub(), &format!("private_key = \"{PRIVATE}\"\n"), "");
    assert!(missing.starts_with("g.toml:1: private_key_file: found nothing"), "{missing}");
}

#[test]
fn invalid_keys_are_reported_and_secrets_are_not_quoted() {
    let cut = &PRIVATE[1..];
    let wrong = error_for(&hub(), PRIVATE, cut);
    assert!(wrong.starts_with("g.toml:2: private_key: found something else, expected a key"));
    assert!(!wrong.contains(&cut[..10]));
    let wrong = error_for(&terminal(), PUBLIC, "abc");
    assert!(wrong.starts_with("g.toml:5: link.peer_public_key: found \"abc\", expected a key"));
    let wrong = error_for(&terminal(), "/etc/bentpipe/key", "key");
    assert!(
        wrong.contains("private_key_file: found something else, expected an absolute path"),
        "{wrong}"
    );
    let both = format!("private_key_file = \"/a\"\nprivate_key = \"{PRIVATE}\"\n");
    let wrong = error_for(&hub(), &format!("private_key = \"{PRIVATE}\"\n"), &both);
    assert!(wrong.contains("the key itself or a file, not both"), "{wrong}");
}

#[test]
fn keys_without_encryption_are_rejected() {
    let none = "security = \"none\"\n[link]";
    let useless = error_for(&terminal(), "[link]", none);
    let lines: Vec<&str> = useless.lines().collect();
    assert_eq!(lines.len(), 2, "{useless}");
    assert!(lines[0].starts_with("g.toml:2: private_key_file: found a key, expected none beside"));
    assert!(lines[1].starts_with("g.toml:6: link.peer_public_key: found a key, expected none"));
    let useless = error_for(&hub(), "[link]", none);
    assert_eq!(useless.lines().count(), 3, "{useless}");
    assert!(!useless.contains(PRIVATE), "{useless}");
}

#[test]
fn inconsistent_keys_are_rejected() {
    let keys = |text: &str| Config::parse("g.toml", text).unwrap().keys();
    let plain = hub().replace("preshared_key_file = \"/etc/bentpipe/boat\"\n", "");
    let other = PrivateKey::generate(&mut SystemEntropy).public().to_string();
    // The public key above belongs to the private key itself.
    let own = PRIVATE.parse::<PrivateKey>().unwrap().public().to_string();
    let error = keys(&plain.replace(PUBLIC, &own)).unwrap_err().to_string();
    assert!(error.contains("this side's own"), "{error}");
    let twice = format!(
        "{}[[terminal]]\nname = \"buoy\"\npublic_key = \"{other}\"\n",
        plain.replace(PUBLIC, &other)
    );
    let error = keys(&twice).unwrap_err().to_string();
    assert!(error.contains("public key of \"buoy\" is there twice"), "{error}");
    let error = keys(&terminal()).unwrap_err().to_string();
    assert!(error.starts_with("/etc/bentpipe/key: "), "{error}");
}
