//! Requests and responses of the control socket: one JSON object per line.

use super::former_names::to_json;
use serde::{Deserialize, Serialize};

/// Version of requests and responses; additions do not change it.
pub const VERSION: u32 = 1;
/// Maximum size of a request in bytes.
pub(super) const MAX_LINE: usize = 4096;
/// Maximum number of connections in one response.
pub(super) const MAX_PAGE: usize = 500;

/// A request.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Question {
    /// Status of the gateway and its terminals.
    Status {},
    /// Connections in the order of their numbers.
    Connections {
        /// Only those with a higher number.
        #[serde(default)]
        after: u64,
        /// Maximum number, at most [`MAX_PAGE`].
        #[serde(default = "usual_page")]
        most: usize,
        /// Only those of one terminal.
        terminal: Option<String>,
    },
    /// Decrypted traffic of associations, as pcapng after the response.
    Capture {
        /// Only that of one terminal.
        terminal: Option<String>,
        /// Number of packets after which it ends.
        count: Option<u64>,
        /// Number of seconds after which it ends.
        seconds: Option<f64>,
    },
}

fn usual_page() -> usize {
    100
}

/// A request line.
pub(crate) fn parse(line: &[u8]) -> Result<Question, String> {
    serde_json::from_slice(line).map_err(|error| format!("not understood: {error}"))
}

/// Returns a response line.
pub(super) fn answer(to: &'static str, value: &impl Serialize, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Answer<'a, T> {
        version: u32,
        answer: &'static str,
        #[serde(flatten)]
        value: &'a T,
    }
    // Only maps with non-string keys cannot be serialized; there are none.
    let answer = to_json(&Answer { version: VERSION, answer: to, value }).unwrap_or_default();
    line(&answer, out);
}

/// Returns an error response.
pub(super) fn refuse(message: &str, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Refusal<'a> {
        version: u32,
        error: &'a str,
    }
    line(&Refusal { version: VERSION, error: message }, out);
}

fn line(value: &impl Serialize, out: &mut Vec<u8>) {
    let before = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        // Only maps with non-string keys cannot be serialized; there are none.
        out.truncate(before);
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_understood_or_refused_with_a_reason() {
        assert_eq!(parse(br#"{"ask":"status"}"#), Ok(Question::Status {}));
        let page = Question::Connections { after: 7, most: 100, terminal: None };
        assert_eq!(parse(br#"{"ask":"connections","after":7}"#), Ok(page));
        let capture =
            Question::Capture { terminal: Some("boat".into()), count: None, seconds: Some(1.5) };
        let line = br#"{"ask":"capture","terminal":"boat","seconds":1.5}"#;
        assert_eq!(parse(line), Ok(capture));
        for wrong in
            ["", "{}", "status", r#"{"ask":"fire"}"#, r#"{"ask":"status","x":1}"#, "\u{feff}", "[]"]
        {
            assert!(parse(wrong.as_bytes()).unwrap_err().starts_with("not understood: "));
        }
    }

    #[test]
    fn an_answer_is_one_line() {
        let mut out = Vec::new();
        refuse("a \"reason\"\nof two lines", &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "{\"version\":1,\"error\":\"a \\\"reason\\\"\\nof two lines\"}\n");
    }
}
