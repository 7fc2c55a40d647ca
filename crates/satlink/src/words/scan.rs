//! Words one after another, with their columns.

use alloc::string::{String, ToString};
use core::fmt;

/// A word that was not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordError {
    /// Where it stands: the column of its first character, from 1.
    pub column: usize,
    /// The word that it belongs to, as in `delay`; empty when it belongs to none.
    pub word: String,
    /// What was found; `None`: the end.
    pub found: Option<String>,
    /// What would have been understood.
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

/// The words of a text, and the last one that opened a phrase.
#[derive(Clone)]
pub(super) struct Words<'a> {
    text: &'a str,
    /// Byte offset of what is not read yet.
    at: usize,
    phrase: &'a str,
    phrase_at: usize,
}

impl<'a> Words<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, phrase: "", phrase_at: 0 }
    }

    /// The next word, which opens a phrase.
    pub(super) fn next_word(&mut self) -> Option<&'a str> {
        let (start, word) = self.peek()?;
        self.at = start + word.len();
        (self.phrase, self.phrase_at) = (word, start);
        Some(word)
    }

    /// Takes the next word if it is `word`.
    pub(super) fn take(&mut self, word: &str) -> bool {
        match self.peek() {
            Some((start, next)) if next == word => {
                self.at = start + next.len();
                true
            }
            Some(_) | None => false,
        }
    }

    /// The next word must be `word`.
    pub(super) fn expect(&mut self, word: &'static str) -> Result<(), WordError> {
        if self.take(word) { Ok(()) } else { Err(self.wrong(word)) }
    }

    /// The next word must be a value that `read` understands.
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

    /// The next word may be a value: it is, if it begins like a number.
    pub(super) fn optional<T>(
        &mut self,
        expected: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, WordError> {
        if self.number_follows() { self.value(expected, read).map(Some) } else { Ok(None) }
    }

    /// A number here would be a correlation, which is not modelled.
    pub(super) fn refuse_correlation(&mut self) -> Result<(), WordError> {
        if self.number_follows() {
            return Err(self.wrong("another word (correlations are not modelled)"));
        }
        Ok(())
    }

    /// The phrase's own word is not known.
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

    /// Where the next word starts, and the word.
    fn peek(&self) -> Option<(usize, &'a str)> {
        let rest = &self.text[self.at..];
        let start = self.at + rest.find(|c: char| !c.is_whitespace())?;
        let word = self.text[start..].split(char::is_whitespace).next()?;
        Some((start, word))
    }
}
