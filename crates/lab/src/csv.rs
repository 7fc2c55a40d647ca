//! Reading of the CSV files that the lab writes.

use crate::LabError;
use crate::files;
use std::path::Path;

/// A table with a header.
pub(crate) struct Table {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    /// Reads a file (RFC 4180).
    pub(crate) fn read(path: &Path) -> Result<Self, LabError> {
        let mut rows = parse(&files::read(path)?).into_iter();
        let head = rows.next().unwrap_or_default();
        let rows: Vec<Vec<String>> = rows.collect();
        if let Some(place) = rows.iter().position(|row| row.len() != head.len()) {
            let (path, line) = (path.display(), place + 2);
            let (found, expected) = (rows[place].len(), head.len());
            let message = format!("{path}:{line}: found {found} fields, expected {expected}");
            return Err(LabError::Request(message));
        }
        Ok(Self { head, rows })
    }

    /// The place of a column.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.head.iter().position(|known| known == name)
    }
}

/// The rows of a text, the header first.
pub(crate) fn parse(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut quoted = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut field)),
            '\r' if !quoted => {}
            '\n' if !quoted => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            letter => field.push(letter),
        }
    }
    if !field.is_empty() || !row.is_empty() {
        row.push(field);
        rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_tables_are_read_back() {
        let head = ["a".to_owned(), "b (s)".to_owned()];
        let rows =
            [["1,5".to_owned(), "say \"no\"".to_owned()], ["".to_owned(), "x\ny".to_owned()]];
        let text = files::csv(&head, rows.clone().map(Vec::from));
        let read = parse(&text);
        assert_eq!(read[0], head);
        assert_eq!((&read[1][..], &read[2][..]), (&rows[0][..], &rows[1][..]));
        assert_eq!(parse("a,b\n1,2"), [["a", "b"], ["1", "2"]]);
    }
}
