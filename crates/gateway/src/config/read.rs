//! Reading of all top-level keys and tables, with their checks.

use super::items::{id, interface, name, network, ports, positive_span};
use super::link::{read_hop, read_ports};
use super::reader::{Item, Reader, Section};
use super::security::{self, PeerKey, Word};
use super::single::read_single;
use super::{
    Config, FailSection, ForwardSection, HealthSection, HubAddress, HubSection, InterceptSection,
    LinkSection, Marking, ResolverSection, Role, SecuritySection, SourceMode, TerminalEntry,
    TerminalSection, terminal_of,
};
use super::{
    accept, dns, fail, forward, limits, paths, plans, quic, reach, resolver, terminals, tls,
};
use crate::intercept::Prefix;
use relay::Control;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use units::{BitRate, Span};

/// Maximum number of addresses on which a terminal's proxies listen. During a reload twice as many
/// may be open, for which the engine has room.
pub(crate) const MAX_PROXY_LISTENERS: usize = 500;

#[derive(Clone, Copy, PartialEq)]
enum RoleWord {
    Terminal,
    Hub,
    Single,
}

pub(super) fn config(reader: &mut Reader<'_>, mut top: Section<'_>) -> Option<Config> {
    const ROLES: [(&str, RoleWord); 3] =
        [("terminal", RoleWord::Terminal), ("hub", RoleWord::Hub), ("single", RoleWord::Single)];
    reader.read_optional(&mut top);
    // The other keys depend on the role.
    let expected = "\"terminal\", \"hub\" or \"single\"";
    let role = top.required(reader, "role", expected, |reader, item| item.word(reader, &ROLES))?;
    if role == RoleWord::Single {
        return single(reader, top);
    }
    let word = security::word(reader, &mut top);
    let private = security::read_private(reader, &mut top, word);
    let paths = match role {
        RoleWord::Terminal => top.sections(reader, "path"),
        RoleWord::Hub | RoleWord::Single => Some(Vec::new()),
    };
    let several = paths.as_ref().is_none_or(|paths| !paths.is_empty());
    let (link, hub_key) = read_link(reader, &mut top, role, word, several).unzip();
    let health = match role {
        RoleWord::Terminal => paths::read_health(reader, &mut top),
        RoleWord::Hub | RoleWord::Single => Some(HealthSection::default()),
    };
    let fail = match role {
        RoleWord::Terminal => fail::read(reader, &mut top),
        RoleWord::Hub | RoleWord::Single => Some(FailSection::default()),
    };
    let limits = limits::read(reader, &mut top);
    let resolver = resolver::read(reader, &mut top);
    let state = top.or(reader, "state", None, |r, i| state(r, i).map(Some));
    let control = super::observe::control(reader, &mut top);
    let metrics = super::observe::metrics(reader, &mut top);
    let log = super::log::read(reader, &mut top);
    let forward = forward::read(reader, &mut top, role == RoleWord::Hub);
    let user = top.or(reader, "user", None, |r, i| user(r, i).map(Some));
    let role = match role {
        RoleWord::Terminal => read_terminal(reader, &mut top, forward.as_ref()).map(Role::Terminal),
        RoleWord::Hub => read_hub(reader, &mut top, link.as_ref(), word, &forward).map(Role::Hub),
        RoleWord::Single => unreachable!("it was read above"),
    };
    top.finish(reader);
    let security =
        private.zip(hub_key).and_then(|(private, hub)| security::section(word, private, hub));
    let name = match &role {
        Some(Role::Terminal(terminal)) => terminal.name.as_str(),
        Some(Role::Hub(_) | Role::Single(_)) | None => "",
    };
    let usual = link.clone().unwrap_or_default();
    let keys = security.as_ref().map(|security| (security, word));
    let paths = paths.and_then(|paths| paths::read(reader, paths, name, &usual, keys));
    Some(Config {
        role: role?,
        security: security?,
        link: link?,
        paths: paths?,
        health: health?,
        fail: fail?,
        limits: limits?,
        resolver: resolver?,
        state: state?,
        control: control?,
        metrics: metrics?,
        log: log?,
        user: user?,
        forward: forward?,
        deprecated: reader.take_deprecated(),
        ignored: reader.take_ignored(),
    })
}

/// Reads the configuration of a single gateway, which has no link to a peer, no keys and no cached
/// path metrics.
fn single(reader: &mut Reader<'_>, mut top: Section<'_>) -> Option<Config> {
    let limits = limits::read(reader, &mut top);
    let log = super::log::read(reader, &mut top);
    let user = top.or(reader, "user", None, |r, i| user(r, i).map(Some));
    let control = super::observe::control(reader, &mut top);
    let metrics = super::observe::metrics(reader, &mut top);
    let section = read_single(reader, &mut top);
    top.finish(reader);
    Some(Config {
        role: Role::Single(section?),
        security: SecuritySection::None,
        link: LinkSection::default(),
        paths: Vec::new(),
        health: HealthSection::default(),
        fail: FailSection::default(),
        limits: limits?,
        resolver: ResolverSection::default(),
        state: None,
        control: control?,
        metrics: metrics?,
        log: log?,
        user: user?,
        forward: None,
        deprecated: reader.take_deprecated(),
        ignored: reader.take_ignored(),
    })
}

fn read_link(
    reader: &mut Reader<'_>,
    top: &mut Section<'_>,
    role: RoleWord,
    word: Word,
    several: bool,
) -> Option<(LinkSection, Option<PeerKey>)> {
    let Some(mut section) = top.section(reader, "link") else {
        if several {
            return Some((LinkSection::default(), None));
        }
        let expected = "a table, `[link]`, with the address of the hub or of this gateway";
        top.required(reader, "link", expected, |_, _| Some(()));
        return None;
    };
    let hub = role == RoleWord::Hub;
    let address = "the hub's address and port";
    let (listen, peer) = if hub {
        let listen = section.required(reader, "listen", address, |r, i| i.address(r));
        (listen, Some(None))
    } else if several {
        // Each path sets the others.
        let peer = section.or(reader, "peer", None, |r, i| i.hub_address(r).map(Some));
        (Some(any_port_for(peer.as_ref().and_then(Option::as_ref))), peer)
    } else {
        let peer = section.required(reader, "peer", address, |r, i| i.hub_address(r));
        let usual = any_port_for(peer.as_ref());
        let own = peer.as_ref().and_then(HubAddress::address);
        (
            section.or(reader, "listen", usual, |r, i| same_family(r, i, own, "link.peer")),
            peer.map(Some),
        )
    };
    let ports = read_ports(reader, &mut section, Vec::new());
    let hop = if hub { Some(None) } else { read_hop(reader, &mut section, ports.as_deref(), None) };
    let needs_key = !several || section.has("peer_public_key");
    let hub_key =
        if hub || !needs_key { Some(None) } else { security::read_hub(reader, &mut section, word) };
    let rate_up = section.or(reader, "rate_up", None, |r, i| i.rate(r));
    let rate_down = section.or(reader, "rate_down", None, |r, i| i.rate(r));
    let (key, own) = if hub { ("link.rate_down", rate_down) } else { ("link.rate_up", rate_up) };
    let usual = Control::default();
    let controller = read_controller(reader, &mut section, key, own, usual);
    let repair = read_repair(reader, &mut section, None);
    let compress = read_compress(reader, &mut section, false);
    let round_trip = section.or(reader, "round_trip", Span::from_millis(600), |r, i| {
        positive_span(r, i, Span::from_secs(60))
    });
    let mtu = section.or(reader, "mtu", 1500, |r, i| i.integer(r, 576..=9000));
    let overhead = section.or(reader, "overhead", 0, |r, i| i.integer(r, 0..=500));
    let padding =
        if hub { section.or(reader, "padding", true, |r, i| read_bool(r, &i)) } else { Some(true) };
    let bond = if several && !hub {
        section.or(reader, "bond", false, |r, i| read_bool(r, &i))
    } else {
        Some(false)
    };
    section.finish(reader);

    let link = LinkSection {
        listen: listen?,
        peer: peer?,
        ports: ports?,
        hop: hop?,
        rate_up: rate_up?,
        rate_down: rate_down?,
        controller: controller?,
        repair: repair?,
        compress: compress?,
        round_trip: round_trip?,
        mtu: mtu?,
        overhead: overhead?,
        padding: padding?,
        bond: bond?,
    };
    Some((link, hub_key?))
}

pub(super) fn read_bool(reader: &mut Reader<'_>, item: &Item<'_>) -> Option<bool> {
    item.as_bool().or_else(|| reader.wrong(item, "true or false"))
}

/// Reads the controller. `own` in `key` is this side's sending rate; it is `None` after a mistake.
pub(super) fn read_controller(
    reader: &mut Reader<'_>,
    section: &mut Section<'_>,
    key: &str,
    own: Option<Option<BitRate>>,
    usual: Control,
) -> Option<Control> {
    section.or(reader, "controller", usual, |reader, item| {
        let found = item.as_str().and_then(|text| text.parse().ok());
        if found == Some(Control::Fixed) && own == Some(None) {
            return reader
                .wrong(&item, &format!("a rate in {key}, which this controller requires"));
        }
        let words = Control::ALL.map(|control| (control.name(), control));
        item.word(reader, &words)
    })
}

/// Maximum share of the rate for repair symbols, in percent.
pub(super) fn read_repair(
    reader: &mut Reader<'_>,
    section: &mut Section<'_>,
    usual: Option<u32>,
) -> Option<Option<u32>> {
    const AUTO: u32 = 10;
    section.or(reader, "repair", usual, |reader, item| match item.as_str() {
        Some("off") => Some(None),
        Some("auto") => Some(Some(AUTO)),
        Some(_) | None => {
            let expected = "\"off\", \"auto\", or a percentage from 1 to 50";
            item.number(reader, expected, |percent| (1..=50).contains(&percent)).map(Some)
        }
    })
}

/// Whether streams are compressed as far as their content allows it.
pub(super) fn read_compress(
    reader: &mut Reader<'_>,
    section: &mut Section<'_>,
    usual: bool,
) -> Option<bool> {
    const WORDS: [(&str, bool); 2] = [("off", false), ("auto", true)];
    section.or(reader, "compress", usual, |r, i| i.word(r, &WORDS))
}

/// Checks that a terminal's local address is of its hub's address family.
pub(super) fn same_family(
    reader: &mut Reader<'_>,
    item: Item<'_>,
    peer: Option<SocketAddr>,
    key: &str,
) -> Option<SocketAddr> {
    let address = item.as_str().and_then(|text| text.parse::<SocketAddr>().ok());
    match (address, peer) {
        (Some(address), Some(peer)) if address.is_ipv4() != peer.is_ipv4() => {
            let family = if peer.is_ipv4() { "IPv4" } else { "IPv6" };
            reader.wrong(&item, &format!("an {family} address and port, the family of {key}"))
        }
        (Some(_), Some(_) | None) | (None, _) => item.address(reader),
    }
}

/// Returns the wildcard address and any port, in the address family of `peer`.
pub(super) fn any_port_for(peer: Option<&HubAddress>) -> SocketAddr {
    peer.map_or_else(|| (Ipv4Addr::UNSPECIFIED, 0).into(), HubAddress::any_port)
}

fn read_terminal(
    reader: &mut Reader<'_>,
    top: &mut Section<'_>,
    forward: Option<&Option<ForwardSection>>,
) -> Option<TerminalSection> {
    let accept = accept::read_rules(reader, top);
    let name = top.or(reader, "name", own_name(), name);
    let socks5 = read_listeners(reader, top, "socks5", 1080);
    let connect = read_listeners(reader, top, "connect", 3128);
    let intercept = match top.section(reader, "intercept") {
        Some(section) => read_intercept(reader, section, forward).map(Some),
        None => Some(None),
    };
    let dns = dns::read_forwarder(reader, top);
    let tls = tls::read_terminal(reader, top);
    let terminal = TerminalSection {
        name: name?,
        accept: accept?,
        socks5: socks5?,
        connect: connect?,
        intercept: intercept?,
        dns: dns?,
        tls: tls?,
    };
    let listeners = terminal.socks5.len() + terminal.connect.len();
    if listeners > MAX_PROXY_LISTENERS {
        let expected = format!("at most {MAX_PROXY_LISTENERS} in socks5.listen and connect.listen");
        reader.mistake(1, "connect.listen", &format!("{listeners} addresses"), &expected);
    }
    if terminal.intercept.is_none() && terminal.socks5.is_empty() && terminal.connect.is_empty() {
        let expected = "at least one of [intercept], [socks5] and [connect]";
        reader.mistake(1, "(file)", "no listener for clients", expected);
    }
    Some(terminal)
}

/// Reads the addresses of a proxy: `key = true` and a table without `listen` mean loopback.
fn read_listeners(
    reader: &mut Reader<'_>,
    top: &mut Section<'_>,
    key: &'static str,
    port: u16,
) -> Option<Vec<SocketAddr>> {
    let own = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))];
    // The key is optional.
    let Some(item) = top.take(reader, key) else { return Some(Vec::new()) };
    match item.as_bool() {
        Some(true) => return Some(own),
        Some(false) => return Some(Vec::new()),
        None => {}
    }
    let mut section = item.section(reader, &format!("true, false, or a table, `[{key}]`"))?;
    let listen = section.or(reader, "listen", own, |reader, item| {
        let expected = "the addresses and ports to listen on";
        item.some(reader, expected, |reader, item| item.address(reader))
    });
    section.finish(reader);
    listen
}

/// Reads `[intercept]`; `forward` is `None` after a mistake in that section.
fn read_intercept(
    reader: &mut Reader<'_>,
    mut section: Section<'_>,
    forward: Option<&Option<ForwardSection>>,
) -> Option<InterceptSection> {
    let id = section.or(reader, "id", "terminal".into(), id);
    let port = section.or(reader, "port", 7900, |r, i| i.integer(r, 1..=65_535));
    let expected = "the clients' interfaces, such as [\"lan0\"]";
    let interfaces =
        section.required(reader, "interfaces", expected, |r, i| i.some(r, expected, interface));
    let include_ports = section.or(reader, "include_ports", Vec::new(), |r, i| i.list(r, ports));
    let exclude_ports = section.or(reader, "exclude_ports", Vec::new(), |r, i| i.list(r, ports));
    let include = section.or(reader, "include", Vec::new(), |r, i| i.list(r, network));
    let exclude = section.or(reader, "exclude", Vec::new(), |r, i| i.list(r, network));
    let quic = quic::read(reader, &mut section, forward.and_then(Option::as_ref));
    let confirm = accept::read_confirm(reader, &mut section);
    let marking = read_marking(reader, &mut section);
    section.finish(reader);
    Some(InterceptSection {
        id: id?,
        port: port? as u16,
        interfaces: interfaces?,
        include_ports: include_ports?,
        exclude_ports: exclude_ports?,
        include: include?,
        exclude: exclude?,
        quic: quic?,
        confirm: confirm?,
        marking: marking?,
    })
}

fn read_hub(
    reader: &mut Reader<'_>,
    top: &mut Section<'_>,
    link: Option<&LinkSection>,
    word: Word,
    forward: &Option<Option<ForwardSection>>,
) -> Option<HubSection> {
    const SOURCES: [(&str, SourceMode); 2] =
        [("own", SourceMode::Own), ("client", SourceMode::Client)];
    // Services on the hub itself are not meant for the terminals' clients. A hub that listens on
    // loopback serves only its own machine.
    let guarded = link.is_some_and(|link| !link.listen.ip().is_loopback());
    let name_servers = dns::read_servers(reader, top)?;
    let tls = tls::read_hub(reader, top, link.map(|link| link.listen))?;
    let usual = HubSection { guarded, name_servers, tls, ..HubSection::default() };
    let plans = plans::read_plans(reader, top, link);
    let classes = plans::read_classes(reader, top);
    let known = plans.as_deref().unwrap_or_default();
    let terminals = terminals::read(reader, top, word, known);
    let mac = super::observe::mac(reader, top);
    let Some(mut section) = top.section(reader, "hub") else {
        let (plans, classes) = (plans?, classes?);
        return Some(HubSection { terminals: terminals?, plans, classes, mac: mac?, ..usual });
    };
    let id = section.or(reader, "id", usual.id, id);
    let source = section.or(reader, "source", SourceMode::Own, |r, i| i.word(r, &SOURCES));
    let source_addresses =
        section.or(reader, "source_addresses", Vec::new(), |r, i| i.list(r, reach::source_address));
    let clients = section.or(reader, "clients", Vec::new(), |r, i| i.list(r, network));
    let interfaces = section.or(reader, "interfaces", Vec::new(), |r, i| i.list(r, interface));
    let destinations = reach::read_destinations(reader, &mut section);
    let guarded = reach::read_guarded(reader, &mut section, usual.guarded);
    let marking = read_marking(reader, &mut section);
    let shards = super::shards::read(reader, &mut section, (link, word), (&mac, forward));
    let line = section.line();
    section.finish(reader);
    if source == Some(SourceMode::Client)
        && let (Some(clients), Some(terminals)) = (&clients, &terminals)
    {
        clients_are_named(reader, line, clients, terminals);
    }
    Some(HubSection {
        id: id?,
        source: source?,
        source_addresses: source_addresses?,
        clients: clients?,
        interfaces: interfaces?,
        destinations: destinations?,
        guarded: guarded?,
        terminals: terminals?,
        shards: shards?,
        mac: mac?,
        plans: plans?,
        classes: classes?,
        marking: marking?,
        name_servers: usual.name_servers,
        tls: usual.tls,
    })
}

/// Checks that a hub with `source = "client"` lists the client addresses of each terminal, since
/// servers may trust addresses.
fn clients_are_named(
    reader: &mut Reader<'_>,
    line: usize,
    clients: &[Prefix],
    terminals: &[TerminalEntry],
) {
    // A further path of a terminal has that terminal's list.
    let mut own = terminals.iter().filter(|entry| terminal_of(&entry.name) == entry.name);
    let each_has_its_own = !terminals.is_empty() && own.all(|entry| entry.clients.is_some());
    if clients.is_empty() && !each_has_its_own {
        let expected = "the networks of the terminals' clients, for `source = \"client\"`, such \
                        as clients = [\"10.1.0.0/16\", \"fd00:1::/32\"]; \
                        [\"0.0.0.0/0\", \"::/0\"] is any";
        reader.mistake(line, "hub.clients", "nothing", expected);
    }
}

pub(super) fn read_marking(reader: &mut Reader<'_>, section: &mut Section<'_>) -> Option<Marking> {
    let number = |r: &mut Reader<'_>, i: Item<'_>| i.integer(r, 1..=u32::MAX).map(Some);
    let mark = section.or(reader, "mark", None, number);
    let table = section.or(reader, "table", None, |r, i| {
        let expected =
            "a routing table's number other than 0 and 253 to 255, which the system uses";
        i.number(r, expected, |number| !matches!(number, 0 | 253..=255)).map(Some)
    });
    let priority = section.or(reader, "priority", None, number);
    Some(Marking { mark: mark?, table: table?, priority: priority? })
}

/// Reads the path of a writable file. It is absolute; its directory need not exist yet.
fn state(reader: &mut Reader<'_>, item: Item<'_>) -> Option<PathBuf> {
    item.parsed(reader, "an absolute path, such as \"/var/lib/bentpipe/peers.toml\"", |text| {
        let path = PathBuf::from(text);
        (path.is_absolute() && path.file_name().is_some()).then_some(path)
    })
}

/// Reads the name of a user; whether it exists is checked at the start.
fn user(reader: &mut Reader<'_>, item: Item<'_>) -> Option<String> {
    item.parsed(reader, "the name of a user of this system", |text| {
        let fits = (1..=32).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.$".contains(&b));
        fits.then(|| text.to_owned())
    })
}

/// Returns the machine's name. The terminals of one hub need different names.
fn own_name() -> String {
    let found = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name: String = found.trim().chars().filter(|c| !c.is_control()).collect();
    if (1..=64).contains(&name.len()) { name } else { "terminal".into() }
}
