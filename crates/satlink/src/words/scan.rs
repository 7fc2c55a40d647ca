//! Tokens of a link description with their columns.

use alloc::string::{String, ToString};
use core::fmt;

/// A token that is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordError {
    /// Column of its first character, from 1.
    pub column: usize,
    /// The keyword that it belongs to, such as `delay`; empty if there is none.
    pub word: String,
    /// What was found; `None`: the end of the text.
    pub found: Option<String>,
    /// What was expected.
    pub expected: &'static str,
}

impl fmt::Display for WordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: ", self.column)?;
        if !self.word.is_empty() {
            write!(f, "{}: ", self.word)?;
        }
        match &self.found {
            Some(found) => write!(f, "found \"{found}\"")?,
            None => f.write_str("found the end")?,
        }
        write!(f, ", expected {}", self.expected)
    }
}

impl core::error::Error for WordError {}

/// The tokens of a text, and the current keyword.
#[derive(Clone)]
pub(super) struct Words<'a> {
    text: &'a str,
    /// Octet offset of the unread text.
    at: usize,
    phrase: &'a str,
    phrase_at: usize,
}

impl<'a> Words<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, phrase: "", phrase_at: 0 }
    }

    /// The next token, as a keyword.
    pub(super) fn next_word(&mut self) -> Option<&'a str> {
        let (start, word) = self.peek()?;
        self.at = start + word.len();
        (self.phrase, self.phrase_at) = (word, start);
        Some(word)
    }

    /// Consumes the next token if it is `word`.
    pub(super) fn take(&mut self, word: &str) -> bool {
        match self.peek() {
            Some((start, next)) if next == word => {
                self.at = start + next.len();
                true
            }
            Some(_) | None => false,
        }
    }

    /// Requires `word` as the next token.
    pub(super) fn expect(&mut self, word: &'static str) -> Result<(), WordError> {
        if self.take(word) { Ok(()) } else { Err(self.wrong(word)) }
    }

    /// Requires a value that `read` accepts as the next token.
    pub(super) fn value<T>(
        &mut self,
        expected: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, WordError> {
        let value = self.peek().and_then(|(start, word)| Some((start + word.len(), read(word)?)));
        let (end, value) = value.ok_or_else(|| self.wrong(expected))?;
        self.at = end;
        Ok(value)
    }

    /// Reads an optional value: one is present if the next token starts like a number.
    pub(super) fn optional<T>(
        &mut self,
        expected: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, WordError> {
        if self.number_follows() { self.value(expected, read).map(Some) } else { Ok(None) }
    }

    /// A number here would be a correlation, which is not supported.
    pub(super) fn refuse_correlation(&mut self) -> Result<(), WordError> {
        if self.number_follows() {
            return Err(self.wrong("another word (correlations are not modelled)"));
        }
        Ok(())
    }

    /// The error for an unknown keyword.
    pub(super) fn unknown(&self, word: &str, expected: &'static str) -> WordError {
        WordError {
            column: self.column(self.phrase_at),
            word: String::new(),
            found: Some(word.to_string()),
            expected,
        }
    }

    fn wrong(&self, expected: &'static str) -> WordError {
        let (at, found) = match self.peek() {
            Some((start, word)) => (start, Some(word.to_string())),
            None => (self.text.trim_end().len(), None),
        };
        WordError { column: self.column(at), word: self.phrase.to_string(), found, expected }
    }

    fn number_follows(&self) -> bool {
        self.peek().is_some_and(|(_, word)| {
            word.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'))
        })
    }

    fn column(&self, at: usize) -> usize {
        self.text[..at].chars().count() + 1
    }

    /// The position of the next token, and the token.
    fn peek(&self) -> Option<(usize, &'a str)> {
        let rest = &self.text[self.at..];
        let start = self.at + rest.find(|c: char| !c.is_whitespace())?;
        let word = self.text[start..].split(char::is_whitespace).next()?;
        Some((start, word))
    }
}
