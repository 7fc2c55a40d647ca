//! `[[path]]` and `[health]` at a terminal: the paths to its hubs and their health criteria.

use super::items::{interface, positive_span};
use super::link::{read_hop, read_ports};
use super::read::{any_port_for, read_compress, read_controller, read_repair, same_family};
use super::reader::{Item, Reader, Section};
use super::security::{self, NoiseSection, Word};
use super::{HubAddress, KeySource, LinkSection, PeerKey, SecuritySection};
use relay::PrivateKey;
use relay::health::HealthCriteria;
use units::Span;

/// Maximum number of paths of one terminal.
pub(crate) const MAX_PATHS: usize = 8;
/// Default interval of probes on an idle path.
const PROBE_INTERVAL: Span = Span::from_secs(2);
/// Default interval of probes if no other path and no fallback depends on the result.
const IDLE_PROBE_INTERVAL: Span = Span::from_secs(10);

/// One path from a terminal to a hub.
#[derive(Clone, Debug)]
pub struct PathSection {
    /// The path's name; empty if there is only `[link]`.
    pub name: String,
    /// The hub's address, the local address, rates, and all other keys of `[link]`.
    pub link: LinkSection,
    /// The network interface for the path's datagrams; `None`: selected by the routing table.
    pub interface: Option<String>,
    /// New connections use the usable paths with the lowest number.
    pub priority: u32,
    /// Relative share of new connections among paths of the same priority.
    pub weight: u32,
    /// The path's keys; `None` without encryption.
    pub keys: Option<NoiseSection>,
}

/// Returns the earlier path to which path `number` is joined: the first one with the same hub and
/// priority, if `bond` is set.
pub(crate) fn joins(paths: &[PathSection], number: usize) -> Option<usize> {
    let key = |path: &PathSection| (path.link.peer.clone(), path.priority);
    let own = paths.get(number).filter(|path| path.link.bond).map(key)?;
    paths[..number].iter().position(|path| key(path) == own)
}

/// Returns the terminal's name in the name of a path. At a hub each path of a terminal has a key of
/// its own and a name that begins with the terminal's, such as `boat/lte`.
pub(crate) fn terminal_of(name: &str) -> &str {
    name.split('/').next().unwrap_or(name)
}

/// Criteria for paths that new connections use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealthSection {
    /// The criteria of each path.
    pub demands: HealthCriteria,
    /// Interval of probes on an idle path; `None`: 2 s if new connections depend on the result, 10
    /// s otherwise.
    pub probe: Option<Span>,
}

impl HealthSection {
    /// Returns the interval of probes on an idle path; `matters` if new connections depend on the
    /// result.
    pub(crate) fn probe(&self, matters: bool) -> Span {
        self.probe.unwrap_or(if matters { PROBE_INTERVAL } else { IDLE_PROBE_INTERVAL })
    }
}

/// Reads all `[[path]]`. `link` has the values for keys that a path does not set, `keys` the
/// terminal's own key and the one of the hub in `[link]`.
pub(super) fn read(
    reader: &mut Reader<'_>,
    sections: Vec<Section<'_>>,
    terminal: &str,
    link: &LinkSection,
    keys: Option<(&SecuritySection, Word)>,
) -> Option<Vec<PathSection>> {
    if sections.len() > MAX_PATHS {
        let found = format!("{} paths", sections.len());
        reader.mistake(1, "path", &found, &format!("at most {MAX_PATHS}"));
        return None;
    }
    let mut all: Option<Vec<PathSection>> = Some(Vec::new());
    for mut section in sections {
        let line = section.line();
        let path = read_one(reader, &mut section, link, keys);
        section.finish(reader);
        let (Some(list), Some(path)) = (&mut all, path) else {
            all = None;
            continue;
        };
        if terminal.len() + 1 + path.name.len() > 64 {
            let found = format!("{:?} of the terminal {terminal:?}", path.name);
            reader.mistake(line, "path.name", &found, "at most 63 bytes together");
        }
        for other in list.iter() {
            agree(reader, line, other, &path);
        }
        list.push(path);
    }
    if let Some(list) = all.as_ref().filter(|_| link.bond)
        && !(0..list.len()).any(|number| joins(list, number).is_some())
    {
        reader.mistake(1, "link.bond", "true", "two [[path]] with the same hub and priority");
    }
    all
}

/// Checks that two paths can be distinguished: at the terminal by their names, and at one hub by
/// their keys.
fn agree(reader: &mut Reader<'_>, line: usize, one: &PathSection, other: &PathSection) {
    if one.name == other.name {
        let found = format!("{:?} again", other.name);
        reader.mistake(line, "path.name", &found, "each path once");
    }
    let hub = |path: &PathSection| path.keys.as_ref()?.hub.as_ref().map(|hub| hub.public);
    let own = |path: &PathSection| path.keys.as_ref().map(|keys| keys.private.clone());
    if hub(one).is_some() && hub(one) == hub(other) && own(one) == own(other) {
        let found = format!("the key of path {:?}, which goes to the same hub", one.name);
        let expected = format!(
            "a key of its own, made by `bentpipe key generate`, whose public key the hub lists as \
             another [[terminal]] with a name such as \"NAME/{}\"",
            other.name
        );
        reader.mistake(line, "path.private_key_file", &found, &expected);
    }
}

fn read_one(
    reader: &mut Reader<'_>,
    section: &mut Section<'_>,
    usual: &LinkSection,
    keys: Option<(&SecuritySection, Word)>,
) -> Option<PathSection> {
    let name = section.required(reader, "name", "the name of the path", path_name);
    let address = "the hub's address and port, here or as link.peer";
    let peer = match usual.peer.clone() {
        Some(peer) => section.or(reader, "peer", peer, |r, i| i.hub_address(r)),
        None => section.required(reader, "peer", address, |r, i| i.hub_address(r)),
    };
    let ports = read_ports(reader, section, usual.ports.clone());
    let hop = read_hop(reader, section, ports.as_deref(), usual.hop);
    let (any, own) = (any_port_for(peer.as_ref()), peer.as_ref().and_then(HubAddress::address));
    let listen = section.or(reader, "listen", any, |r, i| same_family(r, i, own, "peer"));
    let interface = section.or(reader, "interface", None, |r, i| {
        let name = interface(r, i)?;
        (!name.ends_with('*')).then_some(Some(name))
    });
    let keys = match keys {
        Some((security, word)) => read_keys(reader, section, security, word),
        // The mistake in the keys was reported before.
        None => Some(None),
    };
    let priority = read_priority(reader, section);
    let weight = section.or(reader, "weight", 1, |r, i| i.integer(r, 1..=1000));
    let link = read_link(reader, section, usual);
    Some(PathSection {
        name: name?,
        link: LinkSection { peer: Some(peer?), listen: listen?, ports: ports?, hop: hop?, ..link? },
        interface: interface?,
        priority: priority?,
        weight: weight?,
        keys: keys?,
    })
}

/// Reads the keys that a path shares with `[link]`.
fn read_link(
    reader: &mut Reader<'_>,
    section: &mut Section<'_>,
    usual: &LinkSection,
) -> Option<LinkSection> {
    let rate_up = section.or(reader, "rate_up", usual.rate_up, |r, i| i.rate(r));
    let rate_down = section.or(reader, "rate_down", usual.rate_down, |r, i| i.rate(r));
    let controller = read_controller(reader, section, "rate_up", rate_up, usual.controller);
    let repair = read_repair(reader, section, usual.repair);
    let compress = read_compress(reader, section, usual.compress);
    let round_trip = section.or(reader, "round_trip", usual.round_trip, |r, i| {
        positive_span(r, i, Span::from_secs(60))
    });
    let mtu = section.or(reader, "mtu", usual.mtu, |r, i| i.integer(r, 576..=9000));
    let overhead = section.or(reader, "overhead", usual.overhead, |r, i| i.integer(r, 0..=500));
    Some(LinkSection {
        rate_up: rate_up?,
        rate_down: rate_down?,
        controller: controller?,
        repair: repair?,
        compress: compress?,
        round_trip: round_trip?,
        mtu: mtu?,
        overhead: overhead?,
        ..usual.clone()
    })
}

fn read_priority(reader: &mut Reader<'_>, section: &mut Section<'_>) -> Option<u32> {
    const ROLES: [(&str, u32); 2] = [("primary", 1), ("backup", 2)];
    let role = section.or(reader, "role", None, |r, i| i.word(r, &ROLES).map(Some));
    let usual = role.flatten().unwrap_or(1);
    let priority = section.or(reader, "priority", usual, |r, i| {
        if role.flatten().is_some() {
            return r.wrong(&i, "either `role` or `priority`, not both");
        }
        i.integer(r, 1..=100)
    });
    role.and(priority)
}

fn read_keys(
    reader: &mut Reader<'_>,
    section: &mut Section<'_>,
    security: &SecuritySection,
    word: Word,
) -> Option<Option<NoiseSection>> {
    let names = ["private_key", "private_key_file"];
    let own: Option<Option<KeySource<PrivateKey>>> =
        security::read_secret(reader, section, word, names);
    let usual: Option<&PeerKey> = match security {
        SecuritySection::Noise(noise) => noise.hub.as_ref(),
        SecuritySection::None => None,
    };
    let hub = security::read_hub_or(reader, section, word, usual);
    let (own, hub) = (own?, hub?);
    Some(match security {
        SecuritySection::None => None,
        SecuritySection::Noise(noise) => {
            Some(NoiseSection { private: own.unwrap_or_else(|| noise.private.clone()), hub })
        }
    })
}

/// Reads `[health]`.
pub(super) fn read_health(reader: &mut Reader<'_>, top: &mut Section<'_>) -> Option<HealthSection> {
    let usual = HealthSection::default();
    let Some(mut section) = top.section(reader, "health") else { return Some(usual) };
    let hour = Span::from_secs(3600);
    let hold = section.or(reader, "hold", usual.demands.hold, |r, i| positive_span(r, i, hour));
    let probe = section.or(reader, "probe", None, |r, i| {
        let expected = "a length of time from \"200ms\" to \"1m\"";
        let range = Span::from_millis(200)..=Span::from_secs(60);
        i.parsed(r, expected, |text| super::values::span(text).filter(|span| range.contains(span)))
            .map(Some)
    });
    let most_loss = section.or(reader, "loss", None, |r, i| {
        let expected = "a loss ratio from \"1%\" to \"99%\"";
        i.parsed(r, expected, |text| {
            let percent: u32 = text.strip_suffix('%')?.trim().parse().ok()?;
            (1..=99).contains(&percent).then_some(percent)
        })
        .map(Some)
    });
    let most_round_trip = section
        .or(reader, "round_trip", None, |r, i| positive_span(r, i, Span::from_secs(60)).map(Some));
    section.finish(reader);
    let demands =
        HealthCriteria { hold: hold?, most_loss: most_loss?, most_round_trip: most_round_trip? };
    Some(HealthSection { demands, probe: probe? })
}

fn path_name(reader: &mut Reader<'_>, item: Item<'_>) -> Option<String> {
    item.parsed(reader, "1 to 32 letters, digits, hyphens and underscores", |text| {
        let fits = (1..=32).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        fits.then(|| text.to_owned())
    })
}
