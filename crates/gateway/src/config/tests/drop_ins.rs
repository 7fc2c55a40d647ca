//! Files of sites beside a hub's configuration.

use crate::{Config, Role};
use std::fs;
use std::path::PathBuf;

const KEY: &str = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
const OTHER: &str = "xkIMJWyn/xspNGo5qjHnn+SGC7S1eLi3kOC9LDaf/34=";

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("bentpipe-{}-{name}", std::process::id()));
        fs::create_dir_all(folder.join("hub.d")).unwrap();
        let hub = "role = \"hub\"\nprivate_key_file = \"/k\"\n[link]\nlisten = \"127.0.0.1:7\"\n";
        let plan = "[[plan]]\nname = \"gold\"\nweight = 2\n";
        fs::write(folder.join("hub.toml"), format!("{hub}{plan}")).unwrap();
        Self(folder)
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.0.join("hub.d").join(name), text).unwrap();
    }

    fn names(&self) -> Result<Vec<String>, String> {
        let config = Config::load(&self.0.join("hub.toml")).map_err(|error| error.to_string())?;
        let Role::Hub(hub) = config.role else { panic!("a hub") };
        Ok(hub.terminals.into_iter().map(|entry| entry.name).collect())
    }

    fn error(&self) -> String {
        self.names().expect_err("a mistake")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn terminal(name: &str, key: &str) -> String {
    format!("[[terminal]]\nname = \"{name}\"\npublic_key = \"{key}\"\n")
}

#[test]
fn terminals_of_all_files_are_on_the_list() {
    let folder = Folder::new("drop-ins");
    assert_eq!(folder.names(), Ok(vec![]), "an empty folder");
    folder.put("b.toml", &terminal("buoy", KEY));
    folder.put("a.toml", &format!("{}plan = \"gold\"\n", terminal("boat", OTHER)));
    folder.put("c.toml~", "[[");
    folder.put(".c.toml", "[[");
    assert_eq!(folder.names(), Ok(vec!["boat".into(), "buoy".into()]));
    let hub = folder.0.join("hub.toml");
    fs::remove_dir_all(folder.0.join("hub.d")).unwrap();
    let error = Config::load(&hub).unwrap_err().to_string();
    assert!(error.contains("terminal: found nothing"), "{error}");
}

#[test]
fn mistakes_name_the_file_and_its_line() {
    let folder = Folder::new("wrong-drop-ins");
    folder.put("a.toml", &terminal("boat", KEY));
    let at = |text: &str, words: &str| {
        folder.put("b.toml", text);
        let error = folder.error();
        let place = error.split("hub.d/").nth(1).unwrap_or(&error);
        assert!(place.starts_with(words), "{error}");
    };
    at(&format!("\n{}", terminal("boat", OTHER)), "b.toml:2: terminal.name: found \"boat\" again");
    at(&format!("{}plan = \"lead\"\n", terminal("buoy", OTHER)), "b.toml:4: terminal.plan");
    at("[link]\n", "b.toml:1: link: found an unknown key");
    at("[[terminal\n", "b.toml:1: (syntax)");
    at(
        &format!("{}preshared_key = \"{KEY}\"\n", terminal("buoy", OTHER)),
        "b.toml:1: terminal.preshared_key: found a secret",
    );
}

#[test]
fn an_enrolment_key_has_an_end_and_stands_alone() {
    let folder = Folder::new("enrolment-keys");
    let enrol = |more: &str| {
        folder.put("a.toml", &format!("[[terminal]]\nname = \"boat\"\n{more}"));
        folder.names()
    };
    let key = format!("enrol_key = \"{KEY}\"\n");
    for until in ["2027-01-31", "2027-01-31T12:00:00Z"] {
        assert_eq!(enrol(&format!("{key}enrol_until = {until}\n")), Ok(vec!["boat".into()]));
    }
    let error = |more: &str| enrol(more).unwrap_err();
    assert!(error(&key).contains("terminal.enrol_until: found nothing"));
    assert!(error("enrol_until = 2027-01-31\n").contains("terminal.enrol_key: found nothing"));
    for until in ["2027-01-31T12:00:00", "2027-01-31T12:00:00+01:00", "12:00:00", "\"soon\"", "5"] {
        let error = error(&format!("{key}enrol_until = {until}\n"));
        assert!(error.contains("terminal.enrol_until") && error.contains("in UTC"), "{error}");
    }
    let both = error(&format!("{key}enrol_until = 2027-01-31\npublic_key = \"{OTHER}\"\n"));
    assert!(both.contains("terminal.public_key: found both"), "{both}");
}
