//! What may be reached through a hub: `allow`, `deny`, and whether the hub's own addresses may.

use super::reader::{Item, Reader, Section};
use crate::reach::{Destinations, Rule};

/// What a rule looks like, for messages.
const RULE: &str = "a network, or \"any\", with or without ports, such as \"10.0.0.0/8\", \
                    \"192.0.2.1 port 443\" or \"any port 25\"";
/// Rules in one list: each connection is held against all of them.
const MOST: usize = 1_000;

/// `allow` and `deny` of `section`.
pub(super) fn read_destinations(
    reader: &mut Reader<'_>,
    section: &mut Section<'_>,
) -> Option<Destinations> {
    let allow = section.or(reader, "allow", Vec::new(), rules);
    let deny = section.or(reader, "deny", Vec::new(), rules);
    Some(Destinations { allow: allow?, deny: deny? })
}

/// `own_addresses` of `section`: whether they are kept from terminals.
pub(super) fn read_guarded(
    reader: &mut Reader<'_>,
    section: &mut Section<'_>,
    usual: bool,
) -> Option<bool> {
    const WORDS: [(&str, bool); 2] = [("deny", true), ("allow", false)];
    section.or(reader, "own_addresses", usual, |reader, item| item.word(reader, &WORDS))
}

fn rules(reader: &mut Reader<'_>, item: Item<'_>) -> Option<Vec<Rule>> {
    let (key, line) = (item.key().to_owned(), item.line());
    let list = item.list(reader, |r, i| i.parsed(r, RULE, |text| text.parse().ok()))?;
    if list.len() > MOST {
        reader.mistake(line, &key, &format!("{} rules", list.len()), &format!("at most {MOST}"));
        return None;
    }
    Some(list)
}
