//! A TOML document with positions, so that each error names file, line, key, found and expected.

use crate::LabError;
use serde::de::DeserializeOwned;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, Error};

/// A scenario file, or one point of its sweep: values that the sweep or the command line replaced
/// keep the position of their replacement.
#[derive(Clone, Debug)]
pub(crate) struct Document<'a> {
    file: &'a str,
    text: &'a str,
    table: DeTable<'a>,
}

/// A value that replaces another one in a document.
#[derive(Clone, Debug)]
pub(crate) struct Replacement<'a> {
    /// Path of the key: names joined by dots.
    pub(crate) path: String,
    pub(crate) value: Spanned<DeValue<'a>>,
}

impl<'a> Document<'a> {
    /// Parses `text`; `file` is the name for messages.
    pub(crate) fn parse(file: &'a str, text: &'a str) -> Result<Self, LabError> {
        match DeTable::parse(text) {
            Ok(table) => Ok(Self { file, text, table: table.into_inner() }),
            Err(error) => {
                let line = line_at(text, error.span().map_or(0, |span| span.start));
                let found = text.lines().nth(line - 1).unwrap_or_default().trim();
                let message = format!("found `{found}`: {}", error.message());
                Err(LabError::Input { file: file.to_owned(), line, key: String::new(), message })
            }
        }
    }

    /// Returns whether the top level has this key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Removes a key of the top level, with its value.
    pub(crate) fn take(&mut self, key: &str) -> Option<Spanned<DeValue<'a>>> {
        self.table.remove(key)
    }

    /// Replaces a value, or adds it. Where the path has no table, one is made; a text there becomes
    /// the key `words` of the table.
    pub(crate) fn replace(&mut self, replacement: &Replacement<'a>) {
        let Replacement { path, value } = replacement;
        let mut table = &mut self.table;
        let mut names = path.split('.').peekable();
        while let Some(name) = names.next() {
            let key = || Spanned::new(value.span(), name.to_owned().into());
            if names.peek().is_none() {
                table.insert(key(), value.clone());
                return;
            }
            let inner = table.entry(key());
            let inner =
                inner.or_insert_with(|| Spanned::new(value.span(), DeValue::Table(DeTable::new())));
            if matches!(inner.get_ref(), DeValue::String(_)) {
                let mut words = DeTable::new();
                words.insert(Spanned::new(inner.span(), "words".into()), inner.clone());
                *inner = Spanned::new(inner.span(), DeValue::Table(words));
            }
            if !matches!(inner.get_ref(), DeValue::Table(_)) {
                // The reader reports the type.
                *inner = value.clone();
                return;
            }
            let DeValue::Table(next) = inner.get_mut() else { return };
            table = next;
        }
    }

    /// Reads the document as a `T`.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, LabError> {
        let whole = Spanned::new(0..self.text.len(), self.table.clone());
        T::deserialize(Deserializer::from(whole)).map_err(|error| self.explain(&error))
    }

    /// The table at the top as text without positions: equal for documents with equal values.
    pub(crate) fn canonical(&self) -> String {
        canonical_table(&self.table)
    }

    /// Returns the error that the value of `path` is wrong.
    pub(crate) fn wrong(&self, path: &str, found: &str, expected: &str) -> LabError {
        let mut span = 0..0;
        let mut table = Some(&self.table);
        let names: Vec<&str> = path.split('.').collect();
        for (place, name) in names.iter().enumerate() {
            let Some((key, value)) = table.and_then(|table| table.get_key_value(*name)) else {
                break;
            };
            // Of a table the name is shown, of a replaced value the replacement.
            span = if place + 1 == names.len() { value.span() } else { key.span() };
            table = match value.get_ref() {
                DeValue::Table(table) => Some(table),
                _ => None,
            };
        }
        self.message(span.start, path, &format!("found {found}, expected {expected}"))
    }

    fn message(&self, at: usize, path: &str, what: &str) -> LabError {
        let line = line_at(self.text, at);
        let (file, key) = (self.file.to_owned(), path.to_owned());
        LabError::Input { file, line, key, message: what.to_owned() }
    }

    /// Returns the error of the deserializer in the form of all others.
    fn explain(&self, error: &Error) -> LabError {
        let span = error.span().unwrap_or(0..0);
        let mut best: (usize, String) = (usize::MAX, String::new());
        innermost(&self.table, "", &span, &mut best);
        let mut path = best.1;
        let message = error.message().trim_end();
        let quoted = |text: &str| text.split('`').nth(1).unwrap_or_default().to_owned();
        let what = if message.starts_with("unknown field ") {
            let known: Vec<&str> = message.split('`').skip(3).step_by(2).collect();
            let found = quoted(message);
            let near = nearest(&found, &known)
                .map_or(String::new(), |near| format!("; the nearest key is `{near}`"));
            format!("found an unknown key, expected one of {}{near}", known.join(", "))
        } else if message.starts_with("unknown variant ") {
            let known: Vec<&str> = message.split('`').skip(3).step_by(2).collect();
            format!("found \"{}\", expected one of {}", quoted(message), known.join(", "))
        } else if message.starts_with("missing field ") {
            let dot = if path.is_empty() { "" } else { "." };
            path = format!("{path}{dot}{}", quoted(message));
            "found nothing, expected a value".to_owned()
        } else if let Some(rest) = message.strip_prefix("invalid type: ") {
            format!("found {rest}")
        } else if let Some(rest) = message.strip_prefix("invalid value: ") {
            format!("found {rest}")
        } else {
            message.to_owned()
        };
        self.message(span.start, &path, &what)
    }
}

/// Finds the path of the smallest key or value that contains `span`.
fn innermost(table: &DeTable<'_>, at: &str, span: &Range<usize>, best: &mut (usize, String)) {
    let holds = |outer: &Range<usize>| outer.start <= span.start && span.end <= outer.end;
    for (key, value) in table {
        let dot = if at.is_empty() { "" } else { "." };
        let path = format!("{at}{dot}{}", key.get_ref());
        for outer in [key.span(), value.span()] {
            if holds(&outer) && outer.len() <= best.0 {
                *best = (outer.len(), path.clone());
            }
        }
        match value.get_ref() {
            DeValue::Table(inner) => innermost(inner, &path, span, best),
            DeValue::Array(items) => {
                for item in items {
                    if let DeValue::Table(inner) = item.get_ref() {
                        innermost(inner, &path, span, best);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Returns the known name with the fewest changes to `found`, if those are less than half of it.
pub(crate) fn nearest<'k>(found: &str, known: &[&'k str]) -> Option<&'k str> {
    let by_changes = |name: &&&str| changes(found, name);
    let near = known.iter().min_by_key(by_changes)?;
    (changes(found, near) * 2 <= found.chars().count()).then_some(*near)
}

/// The number of insertions, deletions and replacements between two names (Levenshtein 1966).
fn changes(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (place, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], place + 1);
        for (column, second) in other.chars().enumerate() {
            let replaced = diagonal + usize::from(letter != second);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[row.len() - 1]
}

fn line_at(text: &str, offset: usize) -> usize {
    let offset = offset.min(text.len());
    1 + text.as_bytes()[..offset].iter().filter(|&&byte| byte == b'\n').count()
}

/// A value as text, a string without its quotes.
pub(crate) fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        _ => canonical(value),
    }
}

fn canonical(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| canonical(item.get_ref())).collect();
            format!("[{}]", items.join(","))
        }
        DeValue::Table(table) => canonical_table(table),
    }
}

fn canonical_table(table: &DeTable<'_>) -> String {
    let mut pairs: Vec<String> = table
        .iter()
        .map(|(key, value)| format!("{:?}={}", key.get_ref(), canonical(value.get_ref())))
        .collect();
    pairs.sort();
    format!("{{{}}}", pairs.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_name_has_the_fewest_changes() {
        let known = ["goodput", "loss", "delay"];
        assert_eq!(nearest("los", &known), Some("loss"));
        assert_eq!(nearest("godput", &known), Some("goodput"));
        assert_eq!(nearest("xyz", &known), None);
        assert_eq!(changes("kitten", "sitting"), 3);
    }

    #[test]
    fn replaced_values_keep_the_position_of_their_replacement() {
        let text = "a = \"x\"\n[b]\nc = 1\n[sweep]\n\"b.c\" = [2, 3]\n";
        let mut document = Document::parse("f.toml", text).unwrap();
        let sweep = document.take("sweep").unwrap().into_inner();
        let DeValue::Table(sweep) = sweep else { panic!() };
        let DeValue::Array(list) = sweep["b.c"].get_ref() else { panic!() };
        document.replace(&Replacement { path: "b.c".into(), value: list[1].clone() });
        assert_eq!(document.canonical(), "{\"a\"=\"x\",\"b\"={\"c\"=3}}");
        let error = document.wrong("b.c", "3", "less").to_string();
        assert_eq!(error, "f.toml:5: b.c: found 3, expected less");
        document.replace(&Replacement { path: "a.loss".into(), value: list[0].clone() });
        let a = "{\"a\"={\"loss\"=2,\"words\"=\"x\"},\"b\"={\"c\"=3}}";
        assert_eq!(document.canonical(), a);
    }
}
