//! Destinations that a hub permits: `allow`, `deny`, and `own_addresses`.

use super::reader::{Item, Reader, Section};
use crate::reach::{Destinations, Rule};
use std::net::IpAddr;

/// Expected form of a rule, for messages.
const RULE: &str = "a network, or \"any\", with or without ports, such as \"10.0.0.0/8\", \
                    \"192.0.2.1 port 443\" or \"any port 25\"";
/// Maximum number of rules in one list; each connection is compared with all of them.
const MAX_RULES: usize = 1_000;

/// Reads `allow` and `deny` of `section`.
pub(super) fn read_destinations(
    reader: &mut Reader<'_>,
    section: &mut Section<'_>,
) -> Option<Destinations> {
    let allow = section.or(reader, "allow", Vec::new(), rules);
    let deny = section.or(reader, "deny", Vec::new(), rules);
    Some(Destinations { allow: allow?, deny: deny? })
}

/// Reads `own_addresses` of `section`: whether they are refused to terminals.
pub(super) fn read_guarded(
    reader: &mut Reader<'_>,
    section: &mut Section<'_>,
    usual: bool,
) -> Option<bool> {
    const WORDS: [(&str, bool); 2] = [("deny", true), ("allow", false)];
    section.or(reader, "own_addresses", usual, |reader, item| item.word(reader, &WORDS))
}

/// Reads an address of this host.
pub(super) fn source_address(reader: &mut Reader<'_>, item: Item<'_>) -> Option<IpAddr> {
    item.parsed(reader, "a host's address, such as \"192.0.2.1\"", |text| {
        let address: IpAddr = text.parse().ok()?;
        (!address.is_unspecified() && !address.is_multicast()).then_some(address)
    })
}

fn rules(reader: &mut Reader<'_>, item: Item<'_>) -> Option<Vec<Rule>> {
    let (key, line) = (item.key().to_owned(), item.line());
    let list = item.list(reader, |r, i| i.parsed(r, RULE, |text| text.parse().ok()))?;
    if list.len() > MAX_RULES {
        reader.mistake(
            line,
            &key,
            &format!("{} rules", list.len()),
            &format!("at most {MAX_RULES}"),
        );
        return None;
    }
    Some(list)
}
