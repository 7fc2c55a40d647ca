//! `[fail]` at a terminal: treatment of new connections while no hub is reachable, and above the
//! limit on connections.

use super::reader::{Reader, Section};

/// Treatment of new connections that the gateway cannot relay now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFail {
    /// They wait until the gateway can relay them.
    Wait,
    /// They are refused immediately.
    Refuse,
    /// They bypass the gateway.
    Open,
}

impl WhenFail {
    /// Returns the value as it is written in the configuration.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Refuse => "refuse",
            Self::Open => "open",
        }
    }
}

/// The treatment of new connections in each case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailSection {
    /// While no path has a reachable hub.
    pub unreachable: WhenFail,
    /// Above `limits.connections`.
    pub full: WhenFail,
}

impl FailSection {
    /// Returns whether the treatment of new connections depends on the state of the paths.
    pub(crate) fn depends_on_paths(self) -> bool {
        self.unreachable != WhenFail::Wait
    }
}

impl Default for FailSection {
    /// Returns `wait` for an outage, which is expected to end, and `refuse` for a full table, which
    /// may stay full.
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
