//! Sites enrol at a running hub, replace their keys, and are removed.

use gateway::enrolment::{
    NewSite, SiteOptions, SiteState, Token, add_site, enroll, list_sites, remove_site, renew_token,
    rotate,
};
use gateway::{Config, Gateway, HubAddress, ShardedHub, Stop, doctor, generate_key, public_key};
use rt::Clock;
use std::fs;
use std::path::PathBuf;
use std::thread::JoinHandle;
use units::Span;

const SITES: usize = 5;

/// A running hub with its files, and the files of its sites.
struct Bed {
    folder: PathBuf,
    hub: HubAddress,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Bed {
    fn new(shards: u32) -> Self {
        let name = format!("bentpipe-{}-enrolment-{shards}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(folder.join("hub.d")).unwrap();
        generate_key(&folder.join("hub.key")).unwrap();
        let text = format!(
            "role = \"hub\"\nprivate_key_file = {:?}\nstate = {:?}\n\
             [link]\nlisten = \"127.0.0.1:0\"\n[hub]\nshards = {shards}\n[control]\nsocket = \"off\"\n\
             [[plan]]\nname = \"gold\"\nweight = 2\n",
            folder.join("hub.key"),
            folder.join("peers.toml"),
        );
        let file = folder.join("hub.toml");
        fs::write(&file, text).unwrap();
        let config = Config::load(&file).unwrap();
        let stop = Stop::new().unwrap();
        let request = stop.clone();
        let (hub, thread) = if shards > 1 {
            let hub = ShardedHub::open(&config).unwrap().reloading_from(file);
            let address = hub.addresses().link.unwrap();
            (address, std::thread::spawn(move || drop(hub.run(&request).unwrap())))
        } else {
            let hub = Gateway::open(&config).unwrap().reloading_from(file);
            let address = hub.addresses().link.unwrap();
            (address, std::thread::spawn(move || drop(hub.run(&request).unwrap())))
        };
        Self { folder, hub: HubAddress::Address(hub), stop, thread: Some(thread) }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Reloads the hub; what it has not reloaded yet is tried again by the commands.
    fn reload(&self) {
        self.stop.reload();
        let clock = Clock::new();
        clock.sleep_until(clock.now() + Span::from_millis(300));
    }

    fn enroll(&self, number: usize, token: Token) {
        let options = SiteOptions {
            hub: self.hub.clone(),
            token,
            config: self.file(&format!("{number}.toml")),
            key: self.file(&format!("{number}.key")),
            intercept: Vec::new(),
        };
        enroll(&options).unwrap();
    }

    fn states(&self) -> Vec<SiteState> {
        let state = self.file("peers.toml");
        let sites = list_sites(&self.file("hub.toml"), Some(&state)).unwrap();
        sites.into_iter().map(|site| site.state).collect()
    }

    /// Returns what the diagnosis of a site says about the hub.
    fn hub_as_seen_by(&self, number: usize) -> String {
        let diagnosis = doctor::diagnose(&self.file(&format!("{number}.toml")));
        diagnosis.findings.last().unwrap().found.clone()
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.stop.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        let _ = fs::remove_dir_all(&self.folder);
        if !std::thread::panicking() {
            assert!(ended.is_some_and(|result| result.is_ok()));
        }
    }
}

#[test]
fn sites_enrol_replace_their_keys_and_are_removed() {
    enrol_replace_and_remove(&Bed::new(1));
}

#[test]
fn sites_enrol_replace_their_keys_and_are_removed_at_a_hub_of_shards() {
    enrol_replace_and_remove(&Bed::new(2));
}

fn enrol_replace_and_remove(bed: &Bed) {
    let hub = bed.file("hub.toml");
    let site = |number| NewSite {
        name: format!("site-{number}"),
        plan: Some("gold".into()),
        until_unix_s: 4_000_000_000,
    };
    let tokens: Vec<Token> =
        (0..SITES).map(|number| add_site(&hub, &site(number)).unwrap()).collect();
    assert_eq!(bed.states(), vec![SiteState::Token(4_000_000_000); SITES]);
    bed.reload();
    for (number, token) in tokens.into_iter().enumerate() {
        bed.enroll(number, token);
    }
    let key = |number| public_key(&bed.file(&format!("{number}.key"))).unwrap();
    let registered: Vec<SiteState> =
        (0..SITES).map(|number| SiteState::Registered(key(number))).collect();
    assert_eq!(bed.states(), registered);
    let found = bed.hub_as_seen_by(0);
    assert!(found.contains("accepts this key"), "{found}");

    let old = key(0);
    let new = rotate(&bed.file("0.toml")).unwrap();
    assert!(new != old && new == key(0));
    assert_eq!(bed.states()[0], SiteState::Registered(new));

    // A removed site, and the key of one with another token, are rejected from the reload on.
    remove_site(&hub, "site-0").unwrap();
    let token = renew_token(&hub, "site-1", 4_000_000_000).unwrap();
    bed.reload();
    for number in [0, 1] {
        let found = bed.hub_as_seen_by(number);
        assert!(found.contains("does not accept this terminal's key"), "{found}");
    }
    // The configuration of the site stays, and its key is replaced.
    let before = (fs::read_to_string(bed.file("1.toml")).unwrap(), key(1));
    bed.enroll(1, token);
    assert_eq!(fs::read_to_string(bed.file("1.toml")).unwrap(), before.0);
    assert_eq!(bed.states()[0], SiteState::Registered(key(1)));
    assert_ne!(key(1), before.1);
}
