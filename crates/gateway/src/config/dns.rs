//! `[dns]`: a terminal's DNS forwarder, and the name servers that a hub asks for terminals.

use super::items::positive_span;
use super::read::read_bool;
use super::reader::{Item, Reader, Section};
use super::resolver::nameserver;
use super::values;
use crate::intercept::Prefix;
use std::net::SocketAddr;
use units::Span;

/// Maximum number of addresses to listen on, and of name servers.
pub(crate) const MAX_DNS_LISTENERS: usize = 16;
const MAX_SERVERS: usize = 8;

/// A terminal's DNS forwarder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsSection {
    /// Addresses for queries, by UDP and TCP.
    pub listen: Vec<SocketAddr>,
    /// Maximum memory of the cache, octets.
    pub memory: u64,
    /// Time for which an expired response is used while the name servers do not respond.
    pub stale: Span,
    /// Whether responses in use are renewed before they expire.
    pub prefetch: bool,
    /// Network of the addresses that stand for names that are not in the cache; they are opened by
    /// name at the hub.
    pub placeholders: Option<Prefix>,
    /// Whether connections to addresses of responses are opened by name at the hub.
    pub open_by_name: bool,
}

/// Reads a terminal's `[dns]`.
pub(super) fn read_forwarder(
    reader: &mut Reader<'_>,
    top: &mut Section<'_>,
) -> Option<Option<DnsSection>> {
    let Some(mut section) = top.section(reader, "dns") else { return Some(None) };
    let expected = "1 to 16 addresses and ports to listen on, such as [\"192.0.2.1:53\"]";
    let listen = section.required(reader, "listen", expected, |reader, item| {
        some(reader, item, MAX_DNS_LISTENERS, expected, |reader, item| item.address(reader))
    });
    let memory =
        section.or(reader, "memory", 4_000_000, |r, i| i.parsed(r, values::MEMORY, values::memory));
    let day = Span::from_secs(24 * 3600);
    let stale = section.or(reader, "stale", day, |reader, item| match item.as_str() {
        Some("off") => Some(Span::ZERO),
        Some(_) | None => positive_span(reader, item, day * 7),
    });
    let prefetch = section.or(reader, "prefetch", true, |r, i| read_bool(r, &i));
    let placeholders = section.or(reader, "placeholders", None, |reader, item| {
        let expected =
            "an IPv4 network of at most 30 bits that nobody uses, such as \"198.18.0.0/15\"";
        let network = |text: &str| {
            let network = text.parse::<Prefix>().ok()?;
            (network.network().is_ipv4() && network.length() <= 30).then_some(network)
        };
        item.parsed(reader, expected, network).map(Some)
    });
    let open_by_name = section.or(reader, "open_by_name", false, |r, i| read_bool(r, &i));
    section.finish(reader);
    Some(Some(DnsSection {
        listen: listen?,
        memory: memory?,
        stale: stale?,
        prefetch: prefetch?,
        placeholders: placeholders?,
        open_by_name: open_by_name?,
    }))
}

/// Reads a hub's `[dns]`.
pub(super) fn read_servers(
    reader: &mut Reader<'_>,
    top: &mut Section<'_>,
) -> Option<Vec<SocketAddr>> {
    let Some(mut section) = top.section(reader, "dns") else { return Some(Vec::new()) };
    let expected = "1 to 8 addresses of name servers, such as [\"127.0.0.1\"]";
    let servers = section.required(reader, "servers", expected, |reader, item| {
        some(reader, item, MAX_SERVERS, expected, nameserver)
    });
    section.finish(reader);
    servers
}

/// Reads a list of 1 to `most` addresses.
fn some(
    reader: &mut Reader<'_>,
    item: Item<'_>,
    most: usize,
    expected: &str,
    read: impl FnMut(&mut Reader<'_>, Item<'_>) -> Option<SocketAddr>,
) -> Option<Vec<SocketAddr>> {
    let (line, key) = (item.line(), item.key().to_owned());
    let list = item.some(reader, expected, read)?;
    if list.len() > most {
        reader.mistake(line, &key, &format!("{} of them", list.len()), expected);
        return None;
    }
    Some(list)
}
