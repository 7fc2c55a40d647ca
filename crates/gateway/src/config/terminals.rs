//! `[[terminal]]` at a hub: settings of single terminals.

use super::items;
use super::limits::read_share;
use super::paths::terminal_of;
use super::plans::{PlanSection, read_choice};
use super::reader::{MOST_TABLES, Reader, Section};
use super::security::{self, Word};
use super::{HubSection, PeerKey, ShareLimits, TerminalEntry, reach, values};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of configured terminals of a hub, those of drop-ins included.
const MAX_TERMINALS: usize = MOST_TABLES;

pub(super) fn read(
    reader: &mut Reader<'_>,
    top: &mut Section<'_>,
    word: Word,
    plans: &[PlanSection],
) -> Option<Vec<TerminalEntry>> {
    let sections = top.sections(reader, "terminal")?;
    let drop_ins = reader.drop_ins();
    if sections.is_empty() && word == Word::Noise && !drop_ins.exist {
        let expected = "the terminals, each begun by `[[terminal]]`, with name and public_key";
        reader.mistake(1, "terminal", "nothing", expected);
        return None;
    }
    let mut all: Option<Vec<TerminalEntry>> = Some(Vec::new());
    let mut names = BTreeSet::new();
    read_all(reader, sections, (word, plans), (&mut all, &mut names));
    for drop_in in &drop_ins.files {
        let before = all.as_ref().map_or(0, Vec::len);
        let read = reader.include(drop_in, |reader, mut top| {
            let sections = top.sections(reader, "terminal");
            top.finish(reader);
            read_all(reader, sections?, (word, plans), (&mut all, &mut names));
            let new = all.iter().flatten().skip(before);
            if new.filter_map(|entry| entry.key.as_ref()).any(PeerKey::has_secret_here) {
                let expected = "`preshared_key_file` in a drop-in";
                reader.mistake(1, "terminal.preshared_key", "a secret", expected);
            }
            Some(())
        });
        all = all.filter(|_| read.is_some());
    }
    for entry in all.iter().flatten().filter(|entry| terminal_of(&entry.name) != entry.name) {
        further_path(reader, all.iter().flatten(), entry);
    }
    all
}

fn read_all(
    reader: &mut Reader<'_>,
    sections: Vec<Section<'_>>,
    (word, plans): (Word, &[PlanSection]),
    (all, names): (&mut Option<Vec<TerminalEntry>>, &mut BTreeSet<String>),
) {
    let count = sections.len() + all.as_ref().map_or(0, Vec::len);
    if count > MAX_TERMINALS {
        let found = format!("{count} terminals");
        reader.mistake(1, "terminal", &found, &format!("at most {MAX_TERMINALS}"));
        *all = None;
        return;
    }
    for mut section in sections {
        let line = section.line();
        let entry = read_one(reader, &mut section, word, plans);
        section.finish(reader);
        match (&mut *all, entry) {
            (Some(list), Some(entry)) => {
                if !names.insert(entry.name.clone()) {
                    let found = format!("{:?} again", entry.name);
                    reader.mistake(line, "terminal.name", &found, "each terminal once");
                }
                list.push(entry);
            }
            (Some(_), None) | (None, _) => *all = None,
        }
    }
}

impl HubSection {
    /// Returns the buffer bytes of terminals with their own value, each with the names of the paths
    /// that share them. A path with its own value does not share; `usual` is the value of each
    /// terminal, if it is configured.
    pub(crate) fn memory(&self, usual: Option<u64>) -> Vec<(Vec<&str>, u64)> {
        let mut further: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for TerminalEntry { name, memory, .. } in &self.terminals {
            if terminal_of(name) != name && memory.is_none() {
                further.entry(terminal_of(name)).or_default().push(name);
            }
        }
        let mut all = Vec::new();
        for TerminalEntry { name, memory, .. } in &self.terminals {
            let mut names = vec![name.as_str()];
            names.extend(further.remove(name.as_str()).unwrap_or_default());
            let bytes = memory.or_else(|| usual.filter(|_| names.len() > 1));
            all.extend(bytes.map(|bytes| (names, bytes)));
        }
        all
    }
}

/// A further path of a terminal has that terminal's quota and rules.
fn further_path<'e>(
    reader: &mut Reader<'_>,
    mut all: impl Iterator<Item = &'e TerminalEntry>,
    entry: &TerminalEntry,
) {
    let TerminalEntry { name, key: _, enrolment: _, plan, share, memory: _, destinations, clients } =
        entry;
    let terminal = terminal_of(name);
    let found = format!("{name:?}");
    if !all.any(|other| other.name == terminal) {
        let expected =
            format!("a [[terminal]] with the name {terminal:?} as well, whose path it is");
        reader.mistake(1, "terminal.name", &found, &expected);
    }
    let own = *share != ShareLimits::default()
        || !destinations.allow.is_empty()
        || !destinations.deny.is_empty()
        || clients.is_some()
        || plan.is_some();
    if own {
        let expected = format!(
            "only `name`, keys and `memory` for a further path: shares and rules stand with \
             {terminal:?} and hold for all its paths together"
        );
        reader.mistake(1, "terminal", &found, &expected);
    }
}

fn read_one(
    reader: &mut Reader<'_>,
    section: &mut Section<'_>,
    word: Word,
    plans: &[PlanSection],
) -> Option<TerminalEntry> {
    let name = section.required(reader, "name", "the name of the terminal", items::name);
    let enrolment = security::read_enrolment(reader, section, word);
    let key = match enrolment {
        Some(None) => security::read_terminal(reader, section, word),
        Some(Some(_)) | None => Some(None),
    };
    let line = section.line();
    let plan = read_choice(reader, section, plans);
    let share = read_share(reader, section);
    let memory = section
        .or(reader, "memory", None, |r, i| i.parsed(r, values::MEMORY, values::memory).map(Some));
    let destinations = reach::read_destinations(reader, section);
    let clients = section.or(reader, "clients", None, |r, i| i.list(r, items::network).map(Some));
    let (name, plan) = (name?, plan?);
    let listed = plans.iter().find(|plan| plan.terminals.contains(&name));
    if let (Some(own), Some(listed)) = (&plan, listed)
        && *own != listed.plan.name
    {
        let found = format!("{own:?}, and {name:?} among the terminals of {:?}", listed.plan.name);
        reader.mistake(line, "terminal.plan", &found, "one plan for each terminal");
    }
    Some(TerminalEntry {
        name,
        key: key?,
        enrolment: enrolment?,
        plan,
        share: share?,
        memory: memory?,
        destinations: destinations?,
        clients: clients?,
    })
}
