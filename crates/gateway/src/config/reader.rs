//! Reading of a TOML document key by key, so that every mistake is reported with its line.
//!
//! A [`Section`] returns its keys one at a time and records the mistakes in each; a key that was
//! never taken is unknown. All mistakes of a file are collected, not only the first.

use super::drop_ins::{DropIn, DropIns};
use super::values;
use super::{ConfigError, Deprecated, HubAddress, Mistake};
use crate::intercept::LONGEST_LIST;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};
use units::{BitRate, Span};

/// Keys whose names have changed: table with the trailing dot, deprecated name, present name.
const RENAMED: &[(&str, &str, &str)] = &[
    ("intercept.confirm.", "most", "max_pending"),
    ("limits.", "first_bytes", "first_data_wait"),
    ("limits.", "vanished", "tcp_user_timeout"),
    ("plan.", "together", "shared_weight"),
];

/// Maximum number of tables with one name, such as `[[terminal]]`.
pub(super) const MOST_TABLES: usize = 10_000;

/// A document being read, and the mistakes found so far.
pub(super) struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    /// Offsets of the ends of its lines.
    line_ends: Vec<usize>,
    drop_ins: &'a DropIns,
    mistakes: Vec<Mistake>,
    deprecated: Vec<Deprecated>,
    /// Keys, with the names of their tables, that are ignored if they are unknown.
    optional: Vec<String>,
    /// Those that were.
    ignored: Vec<String>,
}

/// One table of the document.
pub(super) struct Section<'a> {
    /// The table's name with a trailing dot; empty at the top level.
    path: String,
    line: usize,
    table: DeTable<'a>,
    /// Keys that [`Section::take`] was called for, present or not.
    known: BTreeSet<&'static str>,
}

/// One value, with its key and line.
pub(super) struct Item<'a> {
    key: String,
    line: usize,
    value: DeValue<'a>,
}

impl<'a> Reader<'a> {
    /// Parses `text`; `file` is the name to use in messages.
    pub(super) fn open(
        file: &'a str,
        text: &'a str,
        drop_ins: &'a DropIns,
    ) -> Result<(Self, Section<'a>), ConfigError> {
        let (mistakes, deprecated) = (Vec::new(), Vec::new());
        let (optional, ignored) = (Vec::new(), Vec::new());
        let line_ends = Vec::new();
        let mut reader =
            Self { file, text, line_ends, drop_ins, mistakes, deprecated, optional, ignored };
        match reader.top() {
            Some(top) => Ok((reader, top)),
            None => Err(reader.close(None::<()>).expect_err("no document")),
        }
    }

    /// The text as a table.
    fn top(&mut self) -> Option<Section<'a>> {
        self.line_ends = self.text.match_indices('\n').map(|(end, _)| end).collect();
        match DeTable::parse(self.text) {
            Ok(table) => {
                let (path, known) = (String::new(), BTreeSet::new());
                Some(Section { path, line: 1, table: table.into_inner(), known })
            }
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start);
                let line = self.line_at(at);
                let found = self.text.lines().nth(line - 1).unwrap_or_default().trim();
                let found = format!("`{found}`");
                self.mistake(line, "(syntax)", &found, &format!("TOML: {}", error.message()));
                None
            }
        }
    }

    /// The drop-ins, which [`Reader::include`] reads.
    pub(super) fn drop_ins(&self) -> &'a DropIns {
        self.drop_ins
    }

    /// Reads a drop-in; mistakes in it name its file.
    pub(super) fn include<T>(
        &mut self,
        DropIn { file, text }: &'a DropIn,
        read: impl FnOnce(&mut Self, Section<'a>) -> Option<T>,
    ) -> Option<T> {
        let outer = (self.file, self.text, std::mem::take(&mut self.line_ends));
        (self.file, self.text) = (file, text);
        let result = self.top().and_then(|top| read(self, top));
        (self.file, self.text, self.line_ends) = outer;
        result
    }

    /// Returns the mistakes, or `value` if there are none.
    pub(super) fn close<T>(mut self, value: Option<T>) -> Result<T, ConfigError> {
        // Those of drop-ins come last.
        let main = self.file;
        self.mistakes.sort_by_key(|mistake| (mistake.file != main, mistake.line));
        match value {
            Some(value) if self.mistakes.is_empty() => Ok(value),
            _ => Err(ConfigError { file: self.file.into(), mistakes: self.mistakes }),
        }
    }

    /// Returns the deprecated keys found so far, and clears the list.
    pub(super) fn take_deprecated(&mut self) -> Vec<Deprecated> {
        std::mem::take(&mut self.deprecated)
    }

    /// Reads the names of keys, with those of their tables, that are ignored if they are unknown.
    pub(super) fn read_optional(&mut self, top: &mut Section<'_>) {
        let optional = top.or(self, "optional", Vec::new(), |reader, item| {
            let expected = "names of keys, such as \"link.mtu\"";
            item.list(reader, |reader, item| {
                item.parsed(reader, expected, |name| Some(name.to_owned()))
            })
        });
        self.optional = optional.unwrap_or_default();
    }

    /// Returns the unknown keys that were ignored so far, and clears the list.
    pub(super) fn take_ignored(&mut self) -> Vec<String> {
        std::mem::take(&mut self.ignored)
    }

    /// Records that `key` on `line` is wrong.
    pub(super) fn mistake(&mut self, line: usize, key: &str, found: &str, expected: &str) {
        self.mistakes.push(Mistake {
            file: self.file.into(),
            line,
            key: key.into(),
            found: found.into(),
            expected: expected.into(),
        });
    }

    /// Records that the value of `item` is wrong.
    pub(super) fn wrong<T>(&mut self, item: &Item<'_>, expected: &str) -> Option<T> {
        self.mistake(item.line, &item.key, &describe(&item.value), expected);
        None
    }

    fn line_at(&self, offset: usize) -> usize {
        1 + self.line_ends.partition_point(|&end| end < offset)
    }
}

impl<'a> Section<'a> {
    /// Returns the value of `key` by its present or its deprecated name, if it is present.
    pub(super) fn take(&mut self, reader: &mut Reader<'_>, key: &'static str) -> Option<Item<'a>> {
        self.known.insert(key);
        if !self.table.contains_key(key)
            && let Some((table, former, _)) =
                RENAMED.iter().find(|(table, _, present)| *table == self.path && *present == key)
            && let Some((name, value)) = self.table.remove_entry(*former)
        {
            let line = reader.line_at(name.span().start);
            let [former, present] = [former, key].map(|name| format!("{table}{name}"));
            reader.deprecated.push(Deprecated { line, former: former.clone(), present });
            return Some(Item { key: former, line, value: value.into_inner() });
        }
        let (name, value) = self.table.remove_entry(key)?;
        let line = reader.line_at(name.span().start);
        Some(Item { key: format!("{}{key}", self.path), line, value: value.into_inner() })
    }

    /// Returns the table `key`, if it is present.
    pub(super) fn section(
        &mut self,
        reader: &mut Reader<'_>,
        key: &'static str,
    ) -> Option<Section<'a>> {
        let item = self.take(reader, key)?;
        item.section(reader, &format!("a table, `[{key}]`"))
    }

    /// Returns the tables `[[key]]`; none if they are absent.
    pub(super) fn sections(
        &mut self,
        reader: &mut Reader<'_>,
        key: &'static str,
    ) -> Option<Vec<Section<'a>>> {
        let Some(item) = self.take(reader, key) else { return Some(Vec::new()) };
        if !matches!(item.value, DeValue::Array(_)) {
            return reader.wrong(&item, &format!("tables, each begun by `[[{key}]]`"));
        }
        let expected = format!("a table, begun by `[[{key}]]`");
        item.list_of(MOST_TABLES, reader, |reader, item| item.section(reader, &expected))
    }

    /// Returns whether `key` is present and was not taken yet.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Returns the table's first line.
    pub(super) fn line(&self) -> usize {
        self.line
    }

    /// Returns the value of `key` as read by `read`, or `default` if the key is absent.
    pub(super) fn or<T>(
        &mut self,
        reader: &mut Reader<'_>,
        key: &'static str,
        default: T,
        read: impl FnOnce(&mut Reader<'_>, Item<'a>) -> Option<T>,
    ) -> Option<T> {
        match self.take(reader, key) {
            Some(item) => read(reader, item),
            None => Some(default),
        }
    }

    /// Returns the value of `key` as read by `read`; a missing key is a mistake.
    pub(super) fn required<T>(
        &mut self,
        reader: &mut Reader<'_>,
        key: &'static str,
        expected: &str,
        read: impl FnOnce(&mut Reader<'_>, Item<'a>) -> Option<T>,
    ) -> Option<T> {
        match self.take(reader, key) {
            Some(item) => read(reader, item),
            None => {
                reader.mistake(self.line, &format!("{}{key}", self.path), "nothing", expected);
                None
            }
        }
    }

    /// Records a mistake for every key that was not taken, unless it is optional.
    pub(super) fn finish(self, reader: &mut Reader<'_>) {
        let known: Vec<&str> = self.known.iter().copied().collect();
        let expected = format!("one of {}", known.join(", "));
        for (name, _) in &self.table {
            let line = reader.line_at(name.span().start);
            let key = format!("{}{}", self.path, name.get_ref());
            if reader.optional.contains(&key) {
                reader.ignored.push(key);
                continue;
            }
            reader.mistake(line, &key, "an unknown key", &expected);
        }
    }
}

impl<'a> Item<'a> {
    /// Returns the key with the names of its tables.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Returns the line of the value.
    pub(super) fn line(&self) -> usize {
        self.line
    }

    /// Returns the value as a table.
    pub(super) fn section(self, reader: &mut Reader<'_>, expected: &str) -> Option<Section<'a>> {
        match self.value {
            DeValue::Table(table) => Some(Section {
                path: format!("{}.", self.key),
                line: self.line,
                table,
                known: BTreeSet::new(),
            }),
            _ => reader.wrong(&self, expected),
        }
    }

    /// Returns the value of a boolean.
    pub(super) fn as_bool(&self) -> Option<bool> {
        self.value.as_bool()
    }

    /// Returns the value of a string.
    pub(super) fn as_str(&self) -> Option<&str> {
        self.value.as_str()
    }

    /// Reads a string or an integer by `parse`, so that `443` and `"443"` are equivalent.
    pub(super) fn text<T>(
        self,
        reader: &mut Reader<'_>,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let parsed = match &self.value {
            DeValue::String(text) => parse(text),
            DeValue::Integer(number) => parse(&number.to_string()),
            DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => None,
        };
        match parsed {
            Some(value) => Some(value),
            None => reader.wrong(&self, expected),
        }
    }

    /// Reads one of the names in `words`.
    pub(super) fn word<T: Copy>(self, reader: &mut Reader<'_>, words: &[(&str, T)]) -> Option<T> {
        let found = self.as_str().and_then(|text| words.iter().find(|(word, _)| *word == text));
        match found {
            Some(&(_, value)) => Some(value),
            None => {
                let quoted: Vec<String> =
                    words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
                reader.wrong(&self, &quoted.join(" or "))
            }
        }
    }

    /// Reads a string by `parse`.
    pub(super) fn parsed<T>(
        self,
        reader: &mut Reader<'_>,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        match self.as_str().and_then(parse) {
            Some(value) => Some(value),
            None => reader.wrong(&self, expected),
        }
    }

    /// Reads an address with a port.
    pub(super) fn address(self, reader: &mut Reader<'_>) -> Option<SocketAddr> {
        let expected = "an address and port, such as \"192.0.2.1:7000\" or \"[2001:db8::1]:7000\"";
        self.parsed(reader, expected, |text| text.parse().ok())
    }

    /// Reads the hub's address or name, with its port.
    pub(super) fn hub_address(self, reader: &mut Reader<'_>) -> Option<HubAddress> {
        let expected =
            "an address or name and a port, such as \"192.0.2.1:7000\" or \"hub.example:7000\"";
        self.parsed(reader, expected, |text| text.parse().ok())
    }

    /// Reads a rate with its unit; the inner `None` stands for `auto`.
    pub(super) fn rate(self, reader: &mut Reader<'_>) -> Option<Option<BitRate>> {
        self.parsed(reader, values::RATE, |text| match text {
            "auto" => Some(None),
            text => values::rate(text).map(Some),
        })
    }

    /// Reads a length of time with its unit.
    pub(super) fn span(self, reader: &mut Reader<'_>) -> Option<Span> {
        self.parsed(reader, values::SPAN, values::span)
    }

    /// A date, or a date with a time in UTC, in seconds since 1970.
    pub(super) fn utc_seconds(self, reader: &mut Reader<'_>) -> Option<u64> {
        let time = match &self.value {
            DeValue::Datetime(time) => values::utc_seconds(time),
            _ => None,
        };
        let expected = "a date, or a date and time in UTC, such as 2027-01-31T12:00:00Z";
        time.or_else(|| reader.wrong(&self, expected))
    }

    /// Reads an integer in `range`.
    pub(super) fn integer(
        self,
        reader: &mut Reader<'_>,
        range: std::ops::RangeInclusive<u32>,
    ) -> Option<u32> {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        self.number(reader, &expected, |number| range.contains(&number))
    }

    /// Reads an integer that `fits`.
    pub(super) fn number(
        self,
        reader: &mut Reader<'_>,
        expected: &str,
        fits: impl FnOnce(u32) -> bool,
    ) -> Option<u32> {
        let number = match &self.value {
            DeValue::Integer(number) => u32::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        match number.filter(|&number| fits(number)) {
            Some(number) => Some(number),
            None => reader.wrong(&self, expected),
        }
    }

    /// Reads a list as [`Item::list`] does; an empty list is a mistake.
    pub(super) fn some<T>(
        self,
        reader: &mut Reader<'_>,
        expected: &str,
        read: impl FnMut(&mut Reader<'_>, Item<'a>) -> Option<T>,
    ) -> Option<Vec<T>> {
        if matches!(&self.value, DeValue::Array(items) if items.is_empty()) {
            return reader.wrong(&self, expected);
        }
        self.list(reader, read)
    }

    /// Reads a list of at most [`LONGEST_LIST`] items by `read`. A single value is a list of one.
    pub(super) fn list<T>(
        self,
        reader: &mut Reader<'_>,
        read: impl FnMut(&mut Reader<'_>, Item<'a>) -> Option<T>,
    ) -> Option<Vec<T>> {
        self.list_of(LONGEST_LIST, reader, read)
    }

    /// As [`Item::list`], of at most `most` items.
    fn list_of<T>(
        self,
        most: usize,
        reader: &mut Reader<'_>,
        mut read: impl FnMut(&mut Reader<'_>, Item<'a>) -> Option<T>,
    ) -> Option<Vec<T>> {
        if let DeValue::Array(items) = &self.value
            && items.len() > most
        {
            let found = format!("a list of {}", items.len());
            reader.mistake(self.line, &self.key, &found, &format!("at most {most}"));
            return None;
        }
        let Self { key, line, value } = self;
        let items: DeArray<'a> = match value {
            DeValue::Array(items) => items,
            single => std::iter::once(Spanned::new(0..0, single)).collect(),
        };
        let mut all = Some(Vec::new());
        for item in items {
            // An element that was made from a single value has no span of its own.
            let span = item.span();
            let line = if span.is_empty() { line } else { reader.line_at(span.start) };
            let read = read(reader, Item { key: key.clone(), line, value: item.into_inner() });
            match (&mut all, read) {
                (Some(list), Some(value)) => list.push(value),
                (Some(_), None) | (None, _) => all = None,
            }
        }
        all
    }
}

/// Returns a value as it is quoted in messages.
fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("\"{}\"", text.escape_debug()),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(items) if items.is_empty() => "an empty list".into(),
        DeValue::Array(_) => "a list".into(),
        DeValue::Table(_) => "a table".into(),
    }
}
