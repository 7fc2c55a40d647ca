//! `[[path]]` and `[health]` at a terminal: the ways to its hubs, and what is asked of them.

use super::read::{
    any_port_for, interface, positive_span, read_controller, read_repair, same_family,
};
use super::reader::{Item, Reader, Section};
use super::security::{self, NoiseSection, Word};
use super::{HubAddress, KeySource, LinkSection, PeerKey, SecuritySection};
use relay::PrivateKey;
use relay::health::Demands;
use units::Span;

/// Most paths of one terminal.
pub(crate) const MOST: usize = 8;
/// How often a path that is not used is tried, unless said otherwise.
const PROBE: Span = Span::from_secs(2);
/// The same where nothing depends on it.
const SELDOM: Span = Span::from_secs(10);

/// One way from a terminal to a hub.
#[derive(Clone, Debug)]
pub struct PathSection {
    /// What it is called; empty where there is only `[link]`.
    pub name: String,
    /// The hub's address, where to send from, rates, and all that `[link]` would say.
    pub link: LinkSection,
    /// The network interface that its datagrams go by; what the routes say when `None`.
    pub interface: Option<String>,
    /// Paths with the lowest number are chosen from; the others stand by.
    pub priority: u32,
    /// Its part of the new connections among those of the same priority.
    pub weight: u32,
    /// This path's keys, where there are any.
    pub keys: Option<NoiseSection>,
}

/// Whose path a name is: a terminal's paths have keys of their own at a hub, and names that begin
/// with the terminal's, such as `boat/lte`.
pub(crate) fn terminal_of(name: &str) -> &str {
    name.split('/').next().unwrap_or(name)
}

/// What is asked of paths before new connections take them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealthSection {
    /// Of each path.
    pub demands: Demands,
    /// How often a path is tried that carries nothing; `None`: often where something depends on
    /// it, seldom elsewhere.
    pub probe: Option<Span>,
}

impl HealthSection {
    /// How often a path that carries nothing is tried, as that `matters` or does not.
    pub(crate) fn probe(&self, matters: bool) -> Span {
        self.probe.unwrap_or(if matters { PROBE } else { SELDOM })
    }
}

/// `[[path]]`; `link` has what holds for all unless one says otherwise, `keys` the terminal's own
/// and those of the hub in `[link]`.
pub(super) fn read(
    reader: &mut Reader<'_>,
    sections: Vec<Section<'_>>,
    terminal: &str,
    link: &LinkSection,
    keys: Option<(&SecuritySection, Word)>,
) -> Option<Vec<PathSection>> {
    if sections.len() > MOST {
        let found = format!("{} paths", sections.len());
        reader.mistake(1, "path", &found, &format!("at most {MOST}"));
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
    all
}

/// Two paths can be told apart: here by their names, and at one hub by their keys.
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
    let name = section.required(reader, "name", "what the path is called", path_name);
    let address = "the hub's address and port, here or as link.peer";
    let peer = match usual.peer.clone() {
        Some(peer) => section.or(reader, "peer", peer, |r, i| i.hub_address(r)),
        None => section.required(reader, "peer", address, |r, i| i.hub_address(r)),
    };
    let (any, own) = (any_port_for(peer.as_ref()), peer.as_ref().and_then(HubAddress::address));
    let listen = section.or(reader, "listen", any, |r, i| same_family(r, i, own, "peer"));
    let interface = section.or(reader, "interface", None, |r, i| {
        let name = interface(r, i)?;
        (!name.ends_with('*')).then_some(Some(name))
    });
    let keys = match keys {
        Some((security, word)) => read_keys(reader, section, security, word),
        // What is wrong with the keys was told.
        None => Some(None),
    };
    let priority = read_priority(reader, section);
    let weight = section.or(reader, "weight", 1, |r, i| i.integer(r, 1..=1000));
    let link = read_link(reader, section, usual);
    Some(PathSection {
        name: name?,
        link: LinkSection { peer: Some(peer?), listen: listen?, ..link? },
        interface: interface?,
        priority: priority?,
        weight: weight?,
        keys: keys?,
    })
}

/// What `[link]` says as well.
fn read_link(
    reader: &mut Reader<'_>,
    section: &mut Section<'_>,
    usual: &LinkSection,
) -> Option<LinkSection> {
    let rate_up = section.or(reader, "rate_up", usual.rate_up, |r, i| i.rate(r));
    let rate_down = section.or(reader, "rate_down", usual.rate_down, |r, i| i.rate(r));
    let controller = read_controller(reader, section, "rate_up", rate_up, usual.controller);
    let repair = read_repair(reader, section, usual.repair);
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

/// `[health]`.
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
        let expected = "the share of packets that may be lost, from \"1%\" to \"99%\"";
        i.parsed(r, expected, |text| {
            let percent: u32 = text.strip_suffix('%')?.trim().parse().ok()?;
            (1..=99).contains(&percent).then_some(percent)
        })
        .map(Some)
    });
    let most_round_trip = section
        .or(reader, "round_trip", None, |r, i| positive_span(r, i, Span::from_secs(60)).map(Some));
    section.finish(reader);
    let demands = Demands { hold: hold?, most_loss: most_loss?, most_round_trip: most_round_trip? };
    Some(HealthSection { demands, probe: probe? })
}

fn path_name(reader: &mut Reader<'_>, item: Item<'_>) -> Option<String> {
    item.parsed(reader, "1 to 32 letters, digits, hyphens and underscores", |text| {
        let fits = (1..=32).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        fits.then(|| text.to_owned())
    })
}
