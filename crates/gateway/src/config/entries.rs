//! A configuration as keys and values, for the comparison of two configurations.
//!
//! Every structure is destructured completely, so that a new field does not compile until it is
//! listed here. A secret is represented by a fingerprint, never by its value.

use super::{
    AcceptMode, AcceptRule, AcceptRules, ClassSection, Config, ConfirmSection, DnsSection,
    Enrolment, FailSection, ForwardSection, ForwardTcp, HealthSection, HubSection,
    InterceptSection, KeySource, Limits, LinkSection, LogSection, Marking, NoiseSection,
    PathSection, PeerKey, PlanSection, ResolverSection, Role, SecuritySection, ShareLimits,
    SingleSection, SourceMode, TerminalEntry, TerminalSection, WhenFull,
};
use crate::reach::Destinations;
use relay::PrivateKey;
use relay::health::HealthCriteria;
use relay::plan::{Plan, Rates};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Keys with the names of their tables, and values as they are written in a file.
type Entries = BTreeMap<String, String>;

impl Config {
    /// Returns all settings, including defaults.
    pub(crate) fn entries(&self) -> Entries {
        let all = &mut Entries::new();
        let Self {
            role,
            security,
            link,
            paths,
            health,
            fail: FailSection { unreachable, full },
            limits,
            resolver,
            state,
            control,
            metrics,
            log,
            user,
            forward,
            deprecated: _,
            ignored: _,
        } = self;
        paths.iter().for_each(|path| path_entries(all, path));
        health_entries(all, health);
        put(all, "fail.unreachable", unreachable.word().into());
        put(all, "fail.full", full.word().into());
        security_entries(all, security);
        forward_entries(all, forward.as_ref());
        link_entries(all, "link", link);
        limit_entries(all, limits);
        resolver_entries(all, resolver);
        let state = state.as_ref().map(|path| path.display());
        put(all, "state", optional(state, "none"));
        let control = control.as_ref().map(|control| format!("{control:?}"));
        put(all, "user", optional(user.as_ref(), "none"));
        put(all, "control.socket", optional(control, "usual"));
        put(all, "metrics.listen", optional(metrics.as_ref(), "none"));
        let LogSection { level, format, connections } = log;
        put(all, "log.level", level.name().into());
        put(all, "log.format", format.name().into());
        put(all, "log.connections", if *connections { "on" } else { "off" }.into());
        match role {
            Role::Terminal(section) => terminal_entries(all, section),
            Role::Hub(section) => hub_entries(all, section),
            Role::Single(section) => single_entries(all, section),
        }
        std::mem::take(all)
    }
}

fn put(all: &mut Entries, key: &str, value: String) {
    all.insert(key.to_owned(), value);
}

fn security_entries(all: &mut Entries, security: &SecuritySection) {
    let SecuritySection::Noise(NoiseSection { private, hub }) = security else {
        put(all, "security", "none".into());
        return;
    };
    put(all, "security", "noise".into());
    put(all, "private_key", private_entry(private));
    if let Some(hub) = hub {
        peer_entries(all, "link", "peer_public_key", Some(hub));
    }
}

fn private_entry(private: &KeySource<PrivateKey>) -> String {
    match private {
        KeySource::Here(key) => format!("that of {}", key.public()),
        KeySource::File(path) => path.display().to_string(),
    }
}

fn peer_entries(all: &mut Entries, table: &str, name: &str, peer: Option<&PeerKey>) {
    let Some(PeerKey { public, preshared }) = peer else { return };
    put(all, &format!("{table}.{name}"), public.to_string());
    let preshared = match preshared {
        Some(KeySource::Here(key)) => {
            let mut hasher = DefaultHasher::new();
            key.to_text().hash(&mut hasher);
            format!("one with fingerprint {:016x}", hasher.finish())
        }
        Some(KeySource::File(path)) => path.display().to_string(),
        None => "none".into(),
    };
    put(all, &format!("{table}.preshared_key"), preshared);
}

fn path_entries(all: &mut Entries, path: &PathSection) {
    let PathSection { name, link, interface, priority, weight, keys } = path;
    let table = format!("path.{name:?}");
    link_entries(all, &table, link);
    put(all, &format!("{table}.interface"), optional(interface.as_ref(), "by route"));
    put(all, &format!("{table}.priority"), priority.to_string());
    put(all, &format!("{table}.weight"), weight.to_string());
    if let Some(NoiseSection { private, hub }) = keys {
        put(all, &format!("{table}.private_key"), private_entry(private));
        peer_entries(all, &table, "peer_public_key", hub.as_ref());
    }
}

fn health_entries(all: &mut Entries, health: &HealthSection) {
    let HealthSection { demands: HealthCriteria { hold, most_loss, most_round_trip }, probe } =
        health;
    put(all, "health.hold", hold.to_string());
    put(all, "health.probe", optional(probe.as_ref(), "usual"));
    put(all, "health.loss", optional(most_loss.as_ref(), "any"));
    put(all, "health.round_trip", optional(most_round_trip.as_ref(), "any"));
}

fn link_entries(all: &mut Entries, table: &str, link: &LinkSection) {
    let LinkSection {
        listen,
        peer,
        ports,
        hop,
        rate_up,
        rate_down,
        controller,
        repair,
        compress,
        round_trip,
        mtu,
        overhead,
        padding,
        bond,
    } = link;
    put(all, &format!("{table}.listen"), listen.to_string());
    put(all, &format!("{table}.peer"), optional(peer.as_ref(), "none"));
    let ports = ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    put(all, &format!("{table}.ports"), ports);
    put(all, &format!("{table}.hop"), optional(hop.as_ref(), "none"));
    put(all, &format!("{table}.rate_up"), optional(rate_up.as_ref(), "auto"));
    put(all, &format!("{table}.rate_down"), optional(rate_down.as_ref(), "auto"));
    put(all, &format!("{table}.controller"), controller.to_string());
    put(all, &format!("{table}.repair"), optional(repair.as_ref(), "off"));
    put(all, &format!("{table}.compress"), if *compress { "auto" } else { "off" }.into());
    put(all, &format!("{table}.round_trip"), round_trip.to_string());
    put(all, &format!("{table}.mtu"), mtu.to_string());
    put(all, &format!("{table}.overhead"), overhead.to_string());
    put(all, &format!("{table}.padding"), padding.to_string());
    // It is a key of all paths together.
    if table == "link" {
        put(all, "link.bond", bond.to_string());
    }
}

fn forward_entries(all: &mut Entries, section: Option<&ForwardSection>) {
    let Some(section) = section else {
        put(all, "forward", "none".into());
        return;
    };
    let ForwardSection {
        id,
        device,
        mtu,
        interfaces,
        protocols,
        include,
        exclude,
        include_ports,
        exclude_ports,
        refuse,
        networks,
        marking,
        compress_headers,
        tcp,
    } = section;
    put(all, "forward.id", id.clone());
    put(all, "forward.device", device.clone());
    put(all, "forward.mtu", mtu.to_string());
    put(all, "forward.interfaces", list(interfaces));
    put(all, "forward.protocols", list(protocols));
    put(all, "forward.include", list(include));
    put(all, "forward.exclude", list(exclude));
    put(all, "forward.include_ports", list(include_ports));
    put(all, "forward.exclude_ports", list(exclude_ports));
    put(all, "forward.refuse", format!("{refuse:?}"));
    put(all, "forward.networks", list(networks));
    let ForwardTcp { spoof, spoof_memory, filter_acks, space_acks } = tcp;
    put(all, "forward.spoof", spoof.to_string());
    put(all, "forward.spoof_memory", spoof_memory.to_string());
    put(all, "forward.filter_acks", filter_acks.to_string());
    put(all, "forward.space_acks", space_acks.to_string());
    put(all, "forward.compress_headers", compress_headers.to_string());
    let Marking { mark, table, priority } = marking;
    put(all, "forward.mark", optional(mark.as_ref(), "usual"));
    put(all, "forward.table", optional(table.as_ref(), "usual"));
    put(all, "forward.priority", optional(priority.as_ref(), "usual"));
}

fn source_word(source: SourceMode) -> &'static str {
    match source {
        SourceMode::Own => "own",
        SourceMode::Client => "client",
    }
}

fn single_entries(all: &mut Entries, section: &SingleSection) {
    let SingleSection {
        id,
        satellite,
        network,
        networks,
        port,
        rate,
        burst,
        round_trip,
        congestion,
        initial_window,
        mtu,
        overhead,
        source,
        include_ports,
        exclude_ports,
        exclude,
    } = section;
    put(all, "role", "single".into());
    for (key, value) in [
        ("id", id.clone()),
        ("satellite", list(satellite)),
        ("network", list(network)),
        ("networks", list(networks)),
        ("port", port.to_string()),
        ("rate", optional(rate.as_ref(), "no bound")),
        ("burst", burst.to_string()),
        ("round_trip", round_trip.to_string()),
        ("congestion", optional(congestion.as_ref(), "the system's")),
        ("initial_window", optional(initial_window.as_ref(), "the system's")),
        ("mtu", mtu.to_string()),
        ("overhead", overhead.to_string()),
        ("source", source_word(*source).into()),
        ("include_ports", list(include_ports)),
        ("exclude_ports", list(exclude_ports)),
        ("exclude", list(exclude)),
    ] {
        put(all, &format!("single.{key}"), value);
    }
}

fn limit_entries(all: &mut Entries, limits: &Limits) {
    let Limits {
        connections,
        terminals,
        memory,
        memory_total,
        terminal,
        client,
        connect,
        first_data_wait,
        handshake,
        keepalive,
        tcp_user_timeout,
        outage,
        drain,
        idle,
        ipv6_prefix,
    } = limits;
    put(all, "limits.connections", connections.to_string());
    put(all, "limits.terminals", optional(terminals.as_ref(), "usual"));
    put(all, "limits.memory", optional(memory.as_ref(), "auto"));
    put(all, "limits.memory_total", optional(memory_total.as_ref(), "auto"));
    share_entries(all, "limits.terminal", *terminal);
    share_entries(all, "limits.client", *client);
    put(all, "limits.connect", connect.to_string());
    put(all, "limits.first_data_wait", first_data_wait.to_string());
    put(all, "limits.handshake", handshake.to_string());
    put(all, "limits.keepalive", keepalive.to_string());
    put(all, "limits.tcp_user_timeout", tcp_user_timeout.to_string());
    put(all, "limits.outage", outage.to_string());
    put(all, "limits.drain", drain.to_string());
    put(all, "limits.idle", optional(idle.as_ref(), "off"));
    put(all, "limits.ipv6_prefix", ipv6_prefix.to_string());
}

fn resolver_entries(all: &mut Entries, resolver: &ResolverSection) {
    let ResolverSection { nameservers, search, timeout, attempts } = resolver;
    put(all, "resolver.nameservers", list(nameservers));
    put(all, "resolver.search", search.as_ref().map_or_else(|| "usual".into(), |all| list(all)));
    put(all, "resolver.timeout", optional(timeout.as_ref(), "usual"));
    put(all, "resolver.attempts", optional(attempts.as_ref(), "usual"));
}

fn share_entries(all: &mut Entries, table: &str, share: ShareLimits) {
    let ShareLimits { connections, rate, burst } = share;
    for (key, value) in [("connections", connections), ("rate", rate), ("burst", burst)] {
        put(all, &format!("{table}.{key}"), optional(value.as_ref(), "usual"));
    }
}

fn terminal_entries(all: &mut Entries, section: &TerminalSection) {
    let TerminalSection { name, accept, socks5, connect, intercept, dns, tls } = section;
    put(all, "role", "terminal".into());
    put(all, "name", name.clone());
    accept_entries(all, accept);
    put(all, "socks5.listen", list(socks5));
    put(all, "connect.listen", list(connect));
    dns_entries(all, dns.as_ref());
    put(all, "tls", optional(tls.as_ref(), "none"));
    let Some(section) = intercept else {
        put(all, "intercept", "none".into());
        return;
    };
    let InterceptSection {
        id,
        port,
        interfaces,
        include_ports,
        exclude_ports,
        include,
        exclude,
        quic,
        confirm: ConfirmSection { max_pending, rate, when_full },
        marking,
    } = section;
    put(all, "intercept.confirm.max_pending", max_pending.to_string());
    put(all, "intercept.confirm.rate", rate.to_string());
    let when_full = match when_full {
        WhenFull::Refuse => "refuse",
        WhenFull::Early => "early",
    };
    put(all, "intercept.confirm.when_full", when_full.into());
    put(all, "intercept.quic", quic.name().into());
    put(all, "intercept.id", id.clone());
    put(all, "intercept.port", port.to_string());
    put(all, "intercept.interfaces", list(interfaces));
    put(all, "intercept.include_ports", list(include_ports));
    put(all, "intercept.exclude_ports", list(exclude_ports));
    put(all, "intercept.include", list(include));
    put(all, "intercept.exclude", list(exclude));
    let Marking { mark, table, priority } = marking;
    put(all, "intercept.mark", optional(mark.as_ref(), "usual"));
    put(all, "intercept.table", optional(table.as_ref(), "usual"));
    put(all, "intercept.priority", optional(priority.as_ref(), "usual"));
}

fn dns_entries(all: &mut Entries, section: Option<&DnsSection>) {
    let Some(section) = section else {
        put(all, "dns", "none".into());
        return;
    };
    let DnsSection { listen, memory, stale, prefetch, placeholders, open_by_name } = section;
    put(all, "dns.listen", list(listen));
    put(all, "dns.memory", memory.to_string());
    put(all, "dns.stale", stale.to_string());
    put(all, "dns.prefetch", prefetch.to_string());
    put(all, "dns.placeholders", optional(placeholders.as_ref(), "none"));
    put(all, "dns.open_by_name", open_by_name.to_string());
}

fn accept_entries(all: &mut Entries, accept: &AcceptRules) {
    let word = |mode| match mode {
        AcceptMode::Early => "early",
        AcceptMode::Confirm => "confirm",
    };
    let AcceptRules { rules, others } = accept;
    put(all, "accept", word(*others).into());
    for (index, AcceptRule { networks, ports, protocols, accept }) in rules.iter().enumerate() {
        let value = format!("{} to {} ports {}", word(*accept), list(networks), list(ports));
        let value = match &protocols[..] {
            [] => value,
            named => format!("{value} by {}", list(named)),
        };
        put(all, &format!("accept_rule {}", index + 1), value);
    }
}

fn hub_entries(all: &mut Entries, section: &HubSection) {
    let HubSection {
        id,
        source,
        source_addresses,
        clients,
        interfaces,
        destinations: Destinations { allow, deny },
        guarded,
        terminals,
        shards,
        mac,
        plans,
        classes,
        marking,
        name_servers,
        tls,
    } = section;
    put(all, "role", "hub".into());
    put(all, "dns.servers", list(name_servers));
    put(all, "tls", optional(tls.as_ref(), "none"));
    put(all, "hub.shards", shards.to_string());
    put(all, "mac.socket", optional(mac.as_ref().map(|path| path.display()), "none"));
    put(all, "hub.id", id.clone());
    put(all, "hub.source", source_word(*source).into());
    put(all, "hub.source_addresses", list(source_addresses));
    put(all, "hub.interfaces", list(interfaces));
    put(all, "hub.clients", list(clients));
    put(all, "hub.allow", list(allow));
    put(all, "hub.deny", list(deny));
    let own = if *guarded { "deny" } else { "allow" };
    put(all, "hub.own_addresses", own.into());
    for entry in terminals {
        known_terminal_entries(all, entry);
    }
    plans.iter().for_each(|plan| plan_entries(all, plan));
    classes.iter().enumerate().for_each(|(at, class)| class_entries(all, at, class));
    let Marking { mark, table, priority } = marking;
    put(all, "hub.mark", optional(mark.as_ref(), "usual"));
    put(all, "hub.table", optional(table.as_ref(), "usual"));
    put(all, "hub.priority", optional(priority.as_ref(), "usual"));
}

fn known_terminal_entries(all: &mut Entries, entry: &TerminalEntry) {
    let TerminalEntry { name, key, enrolment, plan, share, memory, destinations, clients } = entry;
    let Destinations { allow, deny } = destinations;
    let table = format!("terminal.{name:?}");
    share_entries(all, &table, *share);
    peer_entries(all, &table, "public_key", key.as_ref());
    let key = |key: &str| format!("{table}.{key}");
    if let Some(Enrolment { key: enrol_key, until_unix_s }) = enrolment {
        put(all, &key("enrol_key"), enrol_key.to_string());
        put(all, &key("enrol_until"), format!("{until_unix_s} s since 1970"));
    }
    put(all, &key("plan"), optional(plan.as_ref(), "as listed"));
    put(all, &key("memory"), optional(memory.as_ref(), "usual"));
    put(all, &key("allow"), list(allow));
    put(all, &key("deny"), list(deny));
    put(all, &key("clients"), clients.as_deref().map_or("usual".into(), list));
}

fn plan_entries(all: &mut Entries, section: &PlanSection) {
    let PlanSection { plan: Plan { name, down, up, weight, shared_weight }, terminals } = section;
    let table = format!("plan.{name:?}");
    for (way, Rates { committed, peak, total }) in [("up", up), ("down", down)] {
        put(all, &format!("{table}.committed_{way}"), optional(committed.as_ref(), "none"));
        put(all, &format!("{table}.peak_{way}"), optional(peak.as_ref(), "the link's"));
        put(all, &format!("{table}.total_{way}"), optional(total.as_ref(), "the link's"));
    }
    put(all, &format!("{table}.weight"), weight.to_string());
    put(all, &format!("{table}.shared_weight"), shared_weight.to_string());
    put(all, &format!("{table}.terminals"), list(terminals));
}

/// Adds class number `at`. The number is part of the key because the first matching class applies.
fn class_entries(all: &mut Entries, at: usize, class: &ClassSection) {
    let ClassSection { name, ports, networks, dscp, level, weight } = class;
    let levels = super::plans::LEVELS.iter().find(|(_, known)| known == level);
    let value = format!(
        "{name:?}: {} of weight {weight}, ports {}, networks {}, dscp {}",
        levels.map_or("", |(word, _)| word),
        list(ports),
        list(networks),
        list(dscp)
    );
    put(all, &format!("class {}", at + 1), value);
}

fn optional(value: Option<impl Display>, absent: &str) -> String {
    value.map_or_else(|| absent.to_owned(), |value| value.to_string())
}

fn list(values: &[impl Display]) -> String {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    format!("[{}]", values.join(", "))
}
