//! Applying a changed configuration to a running gateway.

use super::{
    Config, HubSection, InterceptSection, Limits, LinkSection, LogSection, PathSection, Role,
    SecuritySection, TerminalEntry, TerminalSection,
};
use std::collections::{BTreeMap, BTreeSet};

/// The effect of a reload on one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The key, with the names of its tables.
    pub(crate) key: String,
    /// The value in force before the reload; `None` if the key did not exist.
    pub(crate) old: Option<String>,
    /// The value in the file.
    pub(crate) new: Option<String>,
    /// Whether the new value is in force after the reload; if not, it needs a restart.
    pub(crate) live: bool,
}

impl Config {
    /// Returns the configuration that is in force after `new` is read while `self` runs, and the
    /// changed keys. A value that cannot change in a running gateway keeps the value of `self`.
    pub(crate) fn merged(&self, new: &Self) -> (Self, Vec<Change>) {
        // Destructured completely, so that a new field does not compile until it is handled here.
        let Self {
            role,
            security: _,
            link,
            paths,
            health,
            fail,
            limits,
            resolver,
            state: _,
            control: _,
            metrics: _,
            log,
            user: _,
            forward: _,
            deprecated: _,
            ignored: _,
        } = new;
        // The security suite is chosen at the start; a hub's list of keys can change.
        let keyed = matches!(self.security, SecuritySection::Noise(_));
        let same = keyed == matches!(new.security, SecuritySection::Noise(_));
        let LinkSection {
            rate_up,
            rate_down,
            listen: _,
            peer: _,
            ports: _,
            hop: _,
            controller: _,
            repair: _,
            compress: _,
            round_trip: _,
            mtu: _,
            overhead: _,
            padding: _,
            bond: _,
        } = link;
        // The shards of a hub have no scheduler in common.
        let is_sharded = matches!(&self.role, Role::Hub(hub) if hub.shards > 1);
        let (rate_up, rate_down) = if is_sharded { (&None, &None) } else { (rate_up, rate_down) };
        let link = LinkSection { rate_up: *rate_up, rate_down: *rate_down, ..self.link.clone() };
        let paths = self.paths.iter().map(|path| path_like(path, paths)).collect();
        // Sessions were created with these buffers and timeouts, and the hub with this number of
        // terminals.
        let Limits { memory, memory_total, outage, terminals, .. } = self.limits;
        let limits = Limits { memory, memory_total, outage, terminals, ..limits.clone() };
        let LogSection { level, format: _, connections } = log;
        let log = LogSection { level: *level, connections: *connections, ..self.log.clone() };
        let role = match (&self.role, role) {
            (Role::Terminal(old), Role::Terminal(new)) => Role::Terminal(terminal(old, new)),
            (Role::Hub(old), Role::Hub(new)) => Role::Hub(hub(old, new, same)),
            // A single gateway applies no change while it runs, and a role never changes.
            (old @ Role::Single(_), _)
            | (old @ Role::Terminal(_), Role::Hub(_) | Role::Single(_))
            | (old @ Role::Hub(_), Role::Terminal(_) | Role::Single(_)) => old.clone(),
        };
        let merged = Self {
            role,
            link,
            paths,
            health: health.clone(),
            fail: *fail,
            limits,
            resolver: resolver.clone(),
            log,
            ..self.clone()
        };
        let changes = changes(self, new, &merged);
        (merged, changes)
    }
}

/// Returns the running path `old` with the rates of the path of the same name in `new`.
fn path_like(old: &PathSection, new: &[PathSection]) -> PathSection {
    let mut path = old.clone();
    if let Some(PathSection { link, .. }) = new.iter().find(|path| path.name == old.name) {
        (path.link.rate_up, path.link.rate_down) = (link.rate_up, link.rate_down);
    }
    path
}

fn terminal(old: &TerminalSection, new: &TerminalSection) -> TerminalSection {
    // The forwarder keeps its sockets and its cache.
    let TerminalSection { name: _, accept, socks5, connect, intercept, dns: _, tls: _ } =
        new.clone();
    let intercept: Option<InterceptSection> = intercept;
    let (name, dns, tls) = (old.name.clone(), old.dns.clone(), old.tls.clone());
    TerminalSection { name, accept, socks5, connect, intercept, dns, tls }
}

fn hub(old: &HubSection, new: &HubSection, same_security: bool) -> HubSection {
    // The new list is for the other security suite: its terminals have no keys, or keys that this
    // hub does not check.
    let (shards, tls) = (old.shards, old.tls.clone());
    if !same_security {
        return HubSection { terminals: old.terminals.clone(), shards, tls, ..new.clone() };
    }
    let earlier: BTreeMap<&str, &TerminalEntry> =
        old.terminals.iter().map(|entry| (entry.name.as_str(), entry)).collect();
    let terminals = new.terminals.iter().map(|entry| {
        let before = earlier.get(entry.name.as_str());
        let memory = before.and_then(|before| before.memory);
        TerminalEntry { memory, ..entry.clone() }
    });
    let mac = if shards > 1 { &old.mac } else { &new.mac };
    HubSection { terminals: terminals.collect(), shards, tls, mac: mac.clone(), ..new.clone() }
}

/// Returns the keys whose values differ between `old` and `new`, and whether `merged` has the new
/// value.
fn changes(old: &Config, new: &Config, merged: &Config) -> Vec<Change> {
    let (old, new, merged) = (old.entries(), new.entries(), merged.entries());
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    keys.into_iter()
        .filter(|&key| old.get(key) != new.get(key))
        .map(|key| Change {
            key: key.clone(),
            old: old.get(key).cloned(),
            new: new.get(key).cloned(),
            live: merged.get(key) == new.get(key),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(more: &str) -> Config {
        let base = "role = \"terminal\"\nsecurity = \"none\"\nname = \"boat\"\n";
        let text = format!("{base}{more}");
        Config::parse("test.toml", &text).unwrap_or_else(|error| panic!("{error}"))
    }

    const OLD: &str = "[link]\npeer = \"192.0.2.1:7000\"\nrate_up = \"1mbit\"\n\
                       [socks5]\nlisten = \"127.0.0.1:1080\"\n";

    #[test]
    fn a_reload_reports_keys_that_need_a_restart() {
        let old = config(OLD);
        let new = config(
            "accept = \"confirm\"\n[link]\npeer = \"192.0.2.2:7000\"\nrate_up = \"2mbit\"\n\
             [connect]\nlisten = \"127.0.0.1:3128\"\n[limits]\nconnections = 5\nmemory = \"9mb\"\n\
             [log]\nlevel = \"debug\"\nformat = \"json\"\n[health]\nprobe = \"1s\"\nhold = \"1s\"\n",
        );
        let (merged, changes) = old.merged(&new);
        let named = |live| -> Vec<&str> {
            let of = changes.iter().filter(|change| change.live == live);
            of.map(|change| change.key.as_str()).collect()
        };
        assert_eq!(named(false), ["limits.memory", "link.peer", "log.format"]);
        let live = ["accept", "connect.listen", "health.hold", "health.probe"];
        let more = ["limits.connections", "link.rate_up", "log.level", "socks5.listen"];
        assert_eq!(named(true), [live, more].concat());
        assert_eq!(merged.link.peer, old.link.peer);
        assert_eq!(merged.limits.connections, 5);
        let rate = changes.iter().find(|change| change.key == "link.rate_up").unwrap();
        let words = |text: &str| Some(text.to_owned());
        assert_eq!(rate.old, words("1.000 Mbit/s"));
        assert_eq!(rate.new, words("2.000 Mbit/s"));
        assert!(old.merged(&old).1.is_empty());
    }

    #[test]
    fn the_rates_of_paths_change_and_nothing_else_of_them() {
        let path = |more: &str| {
            config(&format!(
                "[link]\npeer = \"192.0.2.1:7000\"\nrate_up = \"1mbit\"\n[socks5]\n\
                 [[path]]\nname = \"ku\"\n{more}\n[[path]]\nname = \"lte\"\nrate_up = \"2mbit\"\n"
            ))
        };
        let old = path("");
        let (merged, changes) = old.merged(&path("rate_up = \"3mbit\"\nweight = 7"));
        let rates = merged.paths.iter().map(|path| path.link.rate_up.unwrap().to_string());
        assert_eq!(rates.collect::<Vec<_>>(), ["3.000 Mbit/s", "2.000 Mbit/s"]);
        assert_eq!(merged.paths[0].weight, 1);
        let reported: Vec<_> =
            changes.iter().map(|change| (change.key.as_str(), change.live)).collect();
        assert_eq!(reported, [("path.\"ku\".rate_up", true), ("path.\"ku\".weight", false)]);
    }

    #[test]
    fn bonds_and_paths_that_come_or_go_need_a_restart() {
        let with = |bond: bool, names: &[&str]| {
            let paths = names.iter().map(|name| format!("[[path]]\nname = \"{name}\"\n"));
            let bond = if bond { "bond = true\n" } else { "" };
            config(&format!(
                "[link]\npeer = \"192.0.2.1:7000\"\n{bond}[socks5]\n{}",
                paths.collect::<String>()
            ))
        };
        let changed = |old: &Config, new: &Config| {
            let (merged, changes) = old.merged(new);
            let running = |config: &Config| {
                let paths = config.paths.iter().map(|path| (path.name.clone(), path.link.bond));
                paths.collect::<Vec<_>>()
            };
            assert_eq!(running(&merged), running(old));
            assert!(!changes.is_empty() && changes.iter().all(|change| !change.live));
            changes.into_iter().map(|change| change.key).collect::<Vec<_>>()
        };
        let bonded = with(true, &["ku", "lte"]);
        assert_eq!(changed(&with(false, &["ku", "lte"]), &bonded), ["link.bond"]);
        assert_eq!(changed(&bonded, &with(false, &["ku", "lte"])), ["link.bond"]);
        let three = with(true, &["ku", "lte", "leo"]);
        assert!(changed(&bonded, &three).iter().all(|key| key.starts_with("path.\"leo\".")));
        assert!(changed(&three, &bonded).iter().all(|key| key.starts_with("path.\"leo\".")));
    }

    #[test]
    fn another_role_is_a_restart() {
        let old = config(OLD);
        let hub = "role = \"hub\"\nsecurity = \"none\"\n[link]\nlisten = \"127.0.0.1:7000\"\n";
        let (merged, changes) = old.merged(&Config::parse("hub.toml", hub).unwrap());
        assert!(matches!(merged.role, Role::Terminal(_)));
        let role = changes.iter().find(|change| change.key == "role").unwrap();
        assert!(!role.live);
    }

    #[test]
    fn a_list_for_another_suite_removes_no_terminal() {
        let key = relay::PrivateKey::generate(&mut crate::SystemEntropy);
        let public = key.public();
        let old = format!(
            "role = \"hub\"\nprivate_key = \"{}\"\n[link]\nlisten = \"127.0.0.1:7000\"\n\
             [[terminal]]\nname = \"boat\"\npublic_key = \"{public}\"\n",
            key.to_text()
        );
        let old = Config::parse("hub.toml", &old).unwrap();
        let open = "role = \"hub\"\nsecurity = \"none\"\n[link]\nlisten = \"127.0.0.1:7000\"\n";
        let (merged, changes) = old.merged(&Config::parse("hub.toml", open).unwrap());
        let Role::Hub(hub) = &merged.role else { panic!("a hub") };
        assert_eq!(hub.terminals.len(), 1, "as long as there are keys, the boat has its own");
        assert!(hub.terminals[0].key.is_some());
        let of_security =
            |change: &&Change| change.key == "security" || change.key.starts_with("terminal");
        let reported: Vec<&Change> = changes.iter().filter(of_security).collect();
        assert!(!reported.is_empty() && reported.iter().all(|change| !change.live), "{changes:?}");
    }
}
