//! `[[terminal]]` at a hub: what it knows of each of its terminals.

use super::limits::read_share;
use super::reader::{Reader, Section};
use super::security::{self, Word};
use super::{TerminalEntry, reach, read, values};

/// Most terminals that a hub may be told of.
const MOST: usize = 10_000;

pub(super) fn read(
    reader: &mut Reader<'_>,
    top: &mut Section<'_>,
    word: Word,
) -> Option<Vec<TerminalEntry>> {
    let sections = top.sections(reader, "terminal")?;
    if sections.is_empty() && word == Word::Noise {
        let expected = "the terminals, each begun by `[[terminal]]`, with name and public_key";
        reader.mistake(1, "terminal", "nothing", expected);
        return None;
    }
    if sections.len() > MOST {
        let found = format!("{} terminals", sections.len());
        reader.mistake(1, "terminal", &found, &format!("at most {MOST}"));
        return None;
    }
    let mut all: Option<Vec<TerminalEntry>> = Some(Vec::new());
    for mut section in sections {
        let line = section.line();
        let entry = read_one(reader, &mut section, word);
        section.finish(reader);
        match (&mut all, entry) {
            (Some(list), Some(entry)) => {
                if list.iter().any(|other| other.name == entry.name) {
                    let found = format!("{:?} again", entry.name);
                    reader.mistake(line, "terminal.name", &found, "each terminal once");
                }
                list.push(entry);
            }
            (Some(_), None) | (None, _) => all = None,
        }
    }
    all
}

fn read_one(
    reader: &mut Reader<'_>,
    section: &mut Section<'_>,
    word: Word,
) -> Option<TerminalEntry> {
    let name = section.required(reader, "name", "what the terminal is called", read::name);
    let key = security::read_terminal(reader, section, word);
    let share = read_share(reader, section);
    let memory = section
        .or(reader, "memory", None, |r, i| i.parsed(r, values::MEMORY, values::memory).map(Some));
    let destinations = reach::read_destinations(reader, section);
    let clients = section.or(reader, "clients", None, |r, i| i.list(r, read::network).map(Some));
    Some(TerminalEntry {
        name: name?,
        key: key?,
        share: share?,
        memory: memory?,
        destinations: destinations?,
        clients: clients?,
    })
}
