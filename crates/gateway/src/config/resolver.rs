//! `[resolver]`: name servers and their settings, in place of those of the system.

use super::items::positive_span;
use super::reader::{Item, Reader, Section};
use crate::proxy::is_name;
use std::net::{IpAddr, SocketAddr};
use units::Span;

/// Maximum number of name servers.
const MAX_SERVERS: usize = 8;
/// Maximum number of domains of a search list; each can cost two DNS queries per name.
const MAX_SEARCH: usize = 6;

/// Name servers and their settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolverSection {
    /// The name servers; empty: those of `/etc/resolv.conf`, with its other settings.
    pub nameservers: Vec<SocketAddr>,
    /// Domains that are appended to names without a dot. `None`: those of `/etc/resolv.conf`, or
    /// none if name servers are configured.
    pub search: Option<Vec<String>>,
    /// Timeout of a query to one name server. `None`: that of `/etc/resolv.conf`, or 5 s.
    pub timeout: Option<Span>,
    /// Number of queries to each name server. `None`: that of `/etc/resolv.conf`, or two.
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

/// Reads an address with or without a port; the default port is that of DNS.
pub(super) fn nameserver(reader: &mut Reader<'_>, item: Item<'_>) -> Option<SocketAddr> {
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
