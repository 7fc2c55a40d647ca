//! `[resolver]`: which name servers are asked, where those of the system are not wanted.

use super::read::positive_span;
use super::reader::{Item, Reader, Section};
use crate::proxy::is_name;
use std::net::{IpAddr, SocketAddr};
use units::Span;

/// Name servers that are taken, at most.
const MAX_SERVERS: usize = 8;
/// Domains of a search list, at most; each may cost two DNS queries for a name.
const MAX_SEARCH: usize = 6;

/// Which name servers are asked, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolverSection {
    /// The name servers; those of `/etc/resolv.conf`, with its other settings, when empty.
    pub nameservers: Vec<SocketAddr>,
    /// Domains that names without a dot are looked up in. `None`: those of `/etc/resolv.conf`, or
    /// none where name servers are given here.
    pub search: Option<Vec<String>>,
    /// How long a name server may take to answer. `None`: as `/etc/resolv.conf` has it, or 5 s.
    pub timeout: Option<Span>,
    /// How often a name server is asked. `None`: as `/etc/resolv.conf` has it, or twice.
    pub attempts: Option<u32>,
}

pub(super) fn read(reader: &mut Reader<'_>, top: &mut Section<'_>) -> Option<ResolverSection> {
    let Some(mut section) = top.section(reader, "resolver") else {
        return Some(ResolverSection::default());
    };
    let nameservers = section.or(reader, "nameservers", Vec::new(), |reader, item| {
        let expected = format!("at most {MAX_SERVERS} addresses of name servers");
        at_most(reader, item, MAX_SERVERS, &expected, nameserver)
    });
    let search = section.or(reader, "search", None, |reader, item| {
        let expected = format!("at most {MAX_SEARCH} domains");
        at_most(reader, item, MAX_SEARCH, &expected, domain).map(Some)
    });
    let timeout = section.or(reader, "timeout", None, |reader, item| {
        positive_span(reader, item, Span::from_secs(30)).map(Some)
    });
    let attempts =
        section.or(reader, "attempts", None, |reader, item| item.integer(reader, 1..=5).map(Some));
    section.finish(reader);
    Some(ResolverSection {
        nameservers: nameservers?,
        search: search?,
        timeout: timeout?,
        attempts: attempts?,
    })
}

fn at_most<T>(
    reader: &mut Reader<'_>,
    item: Item<'_>,
    most: usize,
    expected: &str,
    read: impl FnMut(&mut Reader<'_>, Item<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let (line, key) = (item.line(), item.key().to_owned());
    let list: Vec<T> = item.list(reader, read)?;
    if list.len() > most {
        reader.mistake(line, &key, &format!("{} of them", list.len()), expected);
        return None;
    }
    Some(list)
}

/// An address, with or without a port; without one it is DNS's.
fn nameserver(reader: &mut Reader<'_>, item: Item<'_>) -> Option<SocketAddr> {
    let expected = "a name server's address, such as \"192.0.2.53\" or \"[2001:db8::53]:5353\"";
    item.parsed(reader, expected, |text| {
        let alone = text.parse::<IpAddr>().map(|address| SocketAddr::new(address, 53));
        alone.or_else(|_| text.parse()).ok().filter(|address| address.port() > 0)
    })
}

fn domain(reader: &mut Reader<'_>, item: Item<'_>) -> Option<String> {
    item.parsed(reader, "a domain, such as \"example.org\"", |text| {
        is_name(text.as_bytes()).then(|| text.to_owned())
    })
}
