//! `[fail]` at a terminal: what becomes of new connections while no hub answers, and beyond the
//! limit on connections.

use super::reader::{Reader, Section};

/// What becomes of new connections that the gateway cannot carry now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFail {
    /// They wait until it can.
    Wait,
    /// They are refused at once.
    Refuse,
    /// They go their ordinary way, without the gateway.
    Open,
}

impl WhenFail {
    /// As the configuration says it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Refuse => "refuse",
            Self::Open => "open",
        }
    }
}

/// What becomes of new connections, when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailSection {
    /// While no path has a hub that answers.
    pub unreachable: WhenFail,
    /// Beyond `limits.connections`.
    pub full: WhenFail,
}

impl FailSection {
    /// Whether the disposition of new connections depends on the state of the paths.
    pub(crate) fn depends_on_paths(self) -> bool {
        self.unreachable != WhenFail::Wait
    }
}

impl Default for FailSection {
    /// An outage ends, so new connections wait for that; a table may stay full, so clients hear at
    /// once that it is.
    fn default() -> Self {
        Self { unreachable: WhenFail::Wait, full: WhenFail::Refuse }
    }
}

const WORDS: [(&str, WhenFail); 3] =
    [("wait", WhenFail::Wait), ("refuse", WhenFail::Refuse), ("open", WhenFail::Open)];

pub(super) fn read(reader: &mut Reader<'_>, top: &mut Section<'_>) -> Option<FailSection> {
    let usual = FailSection::default();
    let Some(mut section) = top.section(reader, "fail") else { return Some(usual) };
    let unreachable =
        section.or(reader, "unreachable", usual.unreachable, |r, i| i.word(r, &WORDS));
    let full = section.or(reader, "full", usual.full, |r, i| i.word(r, &WORDS));
    section.finish(reader);
    Some(FailSection { unreachable: unreachable?, full: full? })
}
