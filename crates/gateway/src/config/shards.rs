//! `hub.shards`: division of a hub's terminals among threads.

use super::reader::{Reader, Section};
use super::security::Word;
use super::{Config, ForwardSection, LinkSection, Role, terminal_of};
use std::path::PathBuf;

/// Maximum number of shards.
const MAX_SHARDS: u32 = 64;

/// Reads the number of shards. Other settings need all terminals in one thread; they are `None` after
/// a mistake.
pub(super) fn read(
    reader: &mut Reader<'_>,
    section: &mut Section<'_>,
    (link, word): (Option<&LinkSection>, Word),
    (mac, forward): (&Option<Option<PathBuf>>, &Option<Option<ForwardSection>>),
) -> Option<u32> {
    let shards = section.or(reader, "shards", 1, |r, i| i.integer(r, 1..=MAX_SHARDS))?;
    let has_rate = |link: &LinkSection| link.rate_up.is_some() || link.rate_down.is_some();
    let excluded = [
        (word == Word::None, "keys of its terminals, by which they are divided"),
        (link.is_some_and(has_rate), "no link.rate_up and link.rate_down"),
        (mac.as_ref().is_some_and(Option::is_some), "no [mac]"),
        (forward.as_ref().is_some_and(Option::is_some), "no [forward]"),
    ];
    let excluded = excluded.into_iter().find(|(is_set, _)| *is_set && shards > 1);
    if let Some((_, expected)) = excluded {
        let expected = format!("1; a hub of several shards has {expected}");
        reader.mistake(section.line(), "hub.shards", &shards.to_string(), &expected);
        return None;
    }
    Some(shards)
}

/// Returns the shard of the terminal `name`, of `count`: the same for all its paths, in each process
/// and on each machine.
pub(crate) fn shard_of(name: &str, count: u32) -> u32 {
    // FNV-1a, and the finalizer of MurmurHash3, without which similar names have similar hashes.
    let step = |hash: u64, octet: u8| (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
    let hash = terminal_of(name).bytes().fold(0xcbf2_9ce4_8422_2325, step);
    let mix = |hash: u64, factor: u64| (hash ^ (hash >> 33)).wrapping_mul(factor);
    let hash = mix(mix(hash, 0xff51_afd7_ed55_8ccd), 0xc4ce_b9fe_1a85_ec53);
    ((hash ^ (hash >> 33)) % u64::from(count.max(1))) as u32
}

impl Config {
    /// Returns the number of shards of a hub; 1 of another gateway.
    pub(crate) fn shards(&self) -> u32 {
        match &self.role {
            Role::Hub(hub) => hub.shards,
            Role::Terminal(_) | Role::Single(_) => 1,
        }
    }

    /// Returns the configuration of the shard `number` of a hub. It has its own terminals, equal
    /// parts of the bounds of the whole, and its own file of path metrics.
    pub(crate) fn of_shard(&self, number: u32) -> Self {
        let mut config = self.clone();
        let Role::Hub(hub) = &mut config.role else { return config };
        let count = hub.shards;
        hub.terminals.retain(|entry| shard_of(&entry.name, count) == number);
        let limits = &mut config.limits;
        limits.connections = limits.connections.div_ceil(count);
        limits.terminals = limits.terminals.map(|terminals| terminals.div_ceil(count));
        let total = limits.memory_total.or_else(crate::memory::usual_total);
        limits.memory_total = total.map(|total| total / u64::from(count));
        if number > 0
            && let Some(state) = &mut config.state
        {
            state.as_mut_os_string().push(format!(".{number}"));
        }
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HubSection;

    const HUB: &str = "role = \"hub\"\nprivate_key_file = \"/k\"\nstate = \"/s/peers.toml\"\n\
                       [link]\nlisten = \"127.0.0.1:7\"\n";

    fn hub(more: &str) -> Result<Config, String> {
        let key = |seed| {
            let mut rng = units::RngStream::new(seed, 0, "key");
            relay::PrivateKey::generate(&mut rng).public()
        };
        let entry = |(seed, name): (u64, &str)| {
            format!("[[terminal]]\nname = {name:?}\npublic_key = \"{}\"\n", key(seed))
        };
        let names = ["ship", "ship/lte", "boat", "buoy", "site"];
        let terminals: String = (1..).zip(names).map(entry).collect();
        let text = format!("{HUB}{more}{terminals}");
        Config::parse("hub.toml", &text).map_err(|error| error.to_string())
    }

    fn section(config: &Config) -> &HubSection {
        let Role::Hub(hub) = &config.role else { panic!("a hub") };
        hub
    }

    #[test]
    fn shards_divide_terminals_and_bounds() {
        let limits = "[limits]\nconnections = 5\nterminals = 4\nmemory_total = \"64mb\"\n";
        let whole = hub(&format!("[hub]\nshards = 2\n{limits}")).unwrap();
        let shards = [whole.of_shard(0), whole.of_shard(1)];
        let mut names = Vec::new();
        for (number, shard) in shards.iter().enumerate() {
            let own: Vec<&str> =
                section(shard).terminals.iter().map(|entry| entry.name.as_str()).collect();
            assert!(!own.is_empty(), "{number}");
            assert_eq!(own.contains(&"ship"), own.contains(&"ship/lte"), "paths stay together");
            assert_eq!((shard.limits.connections, shard.limits.terminals), (3, Some(2)));
            assert_eq!(shard.limits.memory_total, Some(32_000_000));
            names.extend(own);
        }
        assert_eq!(names.len(), 5);
        let files = shards.each_ref().map(|shard| shard.state.clone().unwrap());
        assert_eq!(files, ["/s/peers.toml", "/s/peers.toml.1"].map(PathBuf::from));
    }

    #[test]
    fn names_are_distributed_evenly() {
        for count in [2, 3, 8] {
            let mut found = vec![0_u32; count as usize];
            for number in 0..8_000 {
                found[shard_of(&format!("site-{number}"), count) as usize] += 1;
            }
            let usual = 8_000 / count;
            // Five standard deviations of a binomial distribution are below 5 × √usual.
            let most = 5.0 * f64::from(usual).sqrt();
            for got in found {
                assert!(f64::from(got.abs_diff(usual)) < most, "{got} of {usual}");
            }
        }
    }

    #[test]
    fn settings_that_need_one_thread_are_rejected() {
        assert_eq!(hub("").unwrap().shards(), 1);
        for (more, expected) in [
            ("[mac]\nsocket = \"/run/mac\"\n[hub]\nshards = 2\n", "no [mac]"),
            ("[forward]\nnetworks = [\"10.0.0.0/8\"]\n[hub]\nshards = 2\n", "no [forward]"),
            ("rate_down = \"1gbit\"\n[hub]\nshards = 2\n", "no link.rate_up"),
            ("[hub]\nshards = 0\n", "1 to 64"),
        ] {
            let error = hub(more).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        let open = "role = \"hub\"\nsecurity = \"none\"\n[link]\nlisten = \"127.0.0.1:7\"\n";
        let error = Config::parse("hub.toml", &format!("{open}[hub]\nshards = 2\n")).unwrap_err();
        assert!(error.to_string().contains("keys of its terminals"), "{error}");
    }

    #[test]
    fn what_the_shards_were_started_with_needs_a_restart() {
        let old = hub("[hub]\nshards = 2\n").unwrap();
        let new = "rate_down = \"1gbit\"\n[mac]\nsocket = \"/run/mac\"\n[hub]\nshards = 1\n";
        let (merged, changes) = old.merged(&hub(new).unwrap());
        assert_eq!((merged.shards(), merged.link.rate_down), (2, None));
        assert_eq!(section(&merged).mac, None);
        let keys: Vec<_> = changes.iter().map(|one| (one.key.as_str(), one.live)).collect();
        assert_eq!(keys, [("hub.shards", false), ("link.rate_down", false), ("mac.socket", false)]);
    }
}
