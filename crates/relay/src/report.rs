//! Reports of terminals to their hubs (RLY-11): the content of REPORT frames.
//!
//! ```text
//! field   key varint, length varint, value
//! 1       release, UTF-8
//! 2       start of the process, seconds since 1970, varint
//! 3       path: state (1 octet), failures varint, name in UTF-8; once for each path
//! 4       counters: varints in the order of `Reported`
//! 5       message: seconds since 1970 varint, text in UTF-8; the newest first
//! ```

use crate::frame::{Reader, Writer};

/// Maximum length of a report, octets. It has room in a packet of the smallest MTU.
pub(crate) const MAX_REPORT: usize = 400;
/// Maximum length of a text in a report, octets.
const MAX_TEXT: usize = 120;
/// Maximum length of a release or a name, octets.
const MAX_NAME: usize = 32;
/// Maximum number of paths.
const MAX_PATHS: usize = 8;
/// Maximum number of messages.
const MAX_MESSAGES: usize = 3;

const RELEASE: u64 = 1;
const START: u64 = 2;
const PATH: u64 = 3;
const COUNTERS: u64 = 4;
const MESSAGE: u64 = 5;

/// State of a terminal, as it reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TerminalReport {
    /// Release of its gateway.
    pub release: String,
    /// Start of its process, seconds since 1970.
    pub started_unix_s: u64,
    /// Its paths, at most eight.
    pub paths: Vec<ReportedPath>,
    /// Its counters.
    pub counters: ReportedCounters,
    /// Its last warnings and errors, at most three, the newest first.
    pub messages: Vec<ReportedMessage>,
}

/// A path of a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportedPath {
    /// 0: up, 1: recovering, 2: degraded, 3: down.
    pub state: u8,
    /// Number of failures.
    pub failures: u64,
    /// Name in the terminal's configuration; empty if it has only one.
    pub name: String,
}

/// Counters since the start of a terminal's process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportedCounters {
    /// Open connections.
    pub open: u64,
    /// Connections opened.
    pub opened: u64,
    /// Connections refused.
    pub refused: u64,
    /// Connections lost with a session.
    pub lost: u64,
    /// Datagrams dropped.
    pub dropped: u64,
}

/// A warning or an error in a terminal's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportedMessage {
    /// Its time, seconds since 1970.
    pub unix_s: u64,
    /// Its text.
    pub text: String,
}

impl TerminalReport {
    /// Encodes the report in at most 400 octets. Texts are truncated, and what has no room is left
    /// out, the last message first.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut room = [0; MAX_REPORT];
        let mut out = Writer::new(&mut room);
        let ReportedCounters { open, opened, refused, lost, dropped } = self.counters;
        out.field(RELEASE, &[], prefix(&self.release, MAX_NAME));
        out.field(START, &[self.started_unix_s], "");
        out.field(COUNTERS, &[open, opened, refused, lost, dropped], "");
        for path in self.paths.iter().take(MAX_PATHS) {
            // A varint of one octet.
            let state = u64::from(path.state & 0x7f);
            out.field(PATH, &[state, path.failures], prefix(&path.name, MAX_NAME));
        }
        for message in self.messages.iter().take(MAX_MESSAGES) {
            out.field(MESSAGE, &[message.unix_s], prefix(&message.text, MAX_TEXT));
        }
        let len = out.written();
        room[..len].to_vec()
    }

    /// Decodes a report; what cannot be read ends it. Unknown fields are skipped, and texts are cut
    /// at the first octet that is not UTF-8.
    pub(crate) fn decode(octets: &[u8]) -> Self {
        let (mut report, mut fields) = (Self::default(), Reader::new(octets));
        while let Some((key, mut value)) = fields.field() {
            let mut number = || value.varint().unwrap_or_default();
            match key {
                RELEASE => report.release = text(value.rest(), MAX_NAME),
                START => report.started_unix_s = number(),
                PATH if report.paths.len() < MAX_PATHS => {
                    let (state, failures) = (number().min(3) as u8, number());
                    let name = text(value.rest(), MAX_NAME);
                    report.paths.push(ReportedPath { state, failures, name });
                }
                COUNTERS => {
                    let [open, opened, refused, lost, dropped] = std::array::from_fn(|_| number());
                    report.counters = ReportedCounters { open, opened, refused, lost, dropped };
                }
                MESSAGE if report.messages.len() < MAX_MESSAGES => {
                    let unix_s = number();
                    let text = text(value.rest(), MAX_TEXT);
                    report.messages.push(ReportedMessage { unix_s, text });
                }
                _ => {}
            }
        }
        report
    }
}

/// Returns the first octets of `text`, at most `len`, which end with a whole character.
fn prefix(text: &str, len: usize) -> &str {
    let end = (0..=len.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or_default()]
}

fn text(octets: &[u8], len: usize) -> String {
    let valid = octets.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    prefix(valid, len).to_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn example() -> TerminalReport {
        let name = |name: &str| name.to_owned();
        TerminalReport {
            release: name("0.2.0"),
            started_unix_s: 1_800_000_000,
            paths: vec![
                ReportedPath { state: 0, failures: 1, name: name("geo") },
                ReportedPath { state: 3, failures: 300, name: name("lte") },
            ],
            counters: ReportedCounters { open: 3, opened: 4000, refused: 1, lost: 2, dropped: 70 },
            messages: vec![ReportedMessage { unix_s: 1_800_000_500, text: name("path down") }],
        }
    }

    /// RLY-11.2
    #[test]
    fn a_report_is_read_as_it_was_written() {
        let report = example();
        let octets = report.encode();
        assert_eq!(TerminalReport::decode(&octets), report);
        assert_eq!(octets[..7], [1, 5, b'0', b'.', b'2', b'.', b'0']);
        // A field of a later release is skipped.
        let later = [&[200, 1, 2, 7, 7], &octets[..]].concat();
        assert_eq!(TerminalReport::decode(&later), report);
        assert_eq!(TerminalReport::decode(&octets[..7]).started_unix_s, 0);
    }

    /// RLY-11.2
    #[test]
    fn a_report_is_bounded_and_keeps_whole_characters() {
        let mut report = example();
        report.messages = vec![ReportedMessage { unix_s: 9, text: "ä".repeat(500) }; 9];
        report.release = "x".repeat(500);
        report.paths = vec![ReportedPath { state: 0, failures: 0, name: "y".repeat(99) }; 20];
        let octets = report.encode();
        assert!(octets.len() <= MAX_REPORT);
        let read = TerminalReport::decode(&octets);
        assert_eq!((read.release.len(), read.paths.len()), (MAX_NAME, MAX_PATHS));
        assert_eq!(read.counters, report.counters);
        report.paths.clear();
        let read = TerminalReport::decode(&report.encode());
        assert_eq!(read.messages[0].text, "ä".repeat(MAX_TEXT / 2));
        assert_eq!(read.messages.len(), 2, "the third has no room");
    }
}
