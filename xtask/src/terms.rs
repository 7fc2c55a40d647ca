//! Finds retired terms.
//!
//! `xtask/terms.txt` has each retired term with the standard one, and the places that still use it.
//! A use anywhere else is a violation, and so is a place that no longer uses it: the list of places
//! only shrinks. Line breaks and comment marks between the words of a term do not hide it.

use crate::report::Report;
use crate::sources;
use std::fs;
use std::path::{Path, PathBuf};

const TERMS: &str = "xtask/terms.txt";
/// Files and folders that are searched. The changelog is not.
const LOOKED_AT: [&str; 9] = [
    "crates",
    "docs",
    "contrib",
    "packaging",
    "fuzz/README.md",
    "fuzz/fuzz_targets",
    "README.md",
    "CONTRIBUTING.md",
    "ARCHITECTURE.md",
];
const ENDINGS: [&str; 7] = ["rs", "md", "toml", "py", "lua", "json", "yml"];

/// A line of the list.
#[derive(Debug, PartialEq)]
struct Term {
    retired: String,
    standard: String,
    /// Files and folders that still use it.
    places: Vec<String>,
}

pub(crate) fn check() -> Result<Report, String> {
    let path = sources::root().join(TERMS);
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let terms = parse(&text)?;
    let mut files = Vec::new();
    for place in LOOKED_AT {
        files_below(&sources::root().join(place), &mut files)?;
    }
    let read = |path: &PathBuf| {
        let shown = sources::relative(path);
        let text = fs::read_to_string(path).map_err(|e| format!("{shown}: {e}"))?;
        Ok((shown, text))
    };
    let texts = files.iter().map(read).collect::<Result<Vec<_>, String>>()?;
    let looked_at = format!("{} terms in {} files", terms.len(), files.len());
    let violations = violations(&terms, &texts);
    Ok(Report { name: "terms", looked_at, violations, remarks: Vec::new() })
}

/// Uses of a term outside its places, and places that do not use it; `files` have paths and texts.
fn violations(terms: &[Term], files: &[(String, String)]) -> Vec<String> {
    let mut violations = Vec::new();
    let mut used: Vec<Vec<bool>> = terms.iter().map(|one| vec![false; one.places.len()]).collect();
    for (shown, text) in files {
        let prose = Prose::of(text);
        for (term, used) in terms.iter().zip(&mut used) {
            let lines = prose.lines_with(&term.retired);
            let place = term.places.iter().position(|place| Path::new(shown).starts_with(place));
            match place {
                Some(place) => used[place] |= !lines.is_empty(),
                None => violations.extend(lines.into_iter().map(|line| {
                    format!("{shown}:{line}: {:?}; say {:?}", term.retired, term.standard)
                })),
            }
        }
    }
    for (term, used) in terms.iter().zip(&used) {
        for (place, _) in term.places.iter().zip(used).filter(|(_, used)| !**used) {
            let retired = &term.retired;
            violations.push(format!("{TERMS}: {place} does not use {retired:?} any more"));
        }
    }
    violations
}

/// `retired -> standard`, or `retired -> standard | places`; `#` begins a comment.
fn parse(text: &str) -> Result<Vec<Term>, String> {
    let mut terms = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let wrong = || format!("{TERMS}:{}: expected `retired -> standard | places`", index + 1);
        let (retired, rest) = line.split_once("->").ok_or_else(wrong)?;
        let (standard, places) = rest.split_once('|').unwrap_or((rest, ""));
        if retired.trim().is_empty() || standard.trim().is_empty() {
            return Err(wrong());
        }
        terms.push(Term {
            retired: retired.trim().to_owned(),
            standard: standard.trim().to_owned(),
            places: places.split_whitespace().map(str::to_owned).collect(),
        });
    }
    Ok(terms)
}

fn files_below(path: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    if path.is_dir() {
        let failed = |e| format!("{}: {e}", path.display());
        let mut entries = fs::read_dir(path)
            .and_then(|entries| {
                entries.map(|entry| entry.map(|one| one.path())).collect::<Result<Vec<_>, _>>()
            })
            .map_err(failed)?;
        entries.sort();
        for entry in entries.iter().filter(|entry| !entry.ends_with("target")) {
            files_below(entry, found)?;
        }
    } else if path.extension().is_some_and(|end| ENDINGS.iter().any(|known| end == *known)) {
        found.push(path.to_path_buf());
    }
    Ok(())
}

/// A text as words, each with the line that it stands on.
struct Prose<'a> {
    words: Vec<(&'a str, usize)>,
}

impl<'a> Prose<'a> {
    fn of(text: &'a str) -> Self {
        let is_mark = |word: &&str| !["//", "///", "//!", "#", "\\", "*"].contains(word);
        let lines = text.lines().enumerate();
        let words = lines.flat_map(|(index, line)| {
            line.split_whitespace().filter(is_mark).map(move |word| (word, index + 1))
        });
        Self { words: words.collect() }
    }

    /// The lines on which `term` begins, whatever punctuation stands around it.
    fn lines_with(&self, term: &str) -> Vec<usize> {
        let term: Vec<&str> = term.split_whitespace().collect();
        let last = term.len() - 1;
        let fits = |window: &&[(&str, usize)]| {
            window.iter().zip(&term).enumerate().all(|(at, ((word, _), wanted))| {
                // Only the outer words may have punctuation, and only on their outer sides.
                let is_end = |c: char| !c.is_alphanumeric() && c != '_';
                let word = if at == 0 { word.trim_start_matches(is_end) } else { word };
                let word = if at == last { word.trim_end_matches(is_end) } else { word };
                word == *wanted
            })
        };
        self.words.windows(term.len()).filter(fits).map(|window| window[0].1).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_is_found_over_line_breaks_and_within_punctuation() {
        let text =
            "/// What was (sent\n    /// again), and AGAIN.\nlet sent_again = 1; // resent again\n";
        let prose = Prose::of(text);
        assert_eq!(prose.lines_with("sent again"), [1]);
        assert_eq!(prose.lines_with("AGAIN"), [2]);
        assert!(Prose::of("sent, again").lines_with("sent again").is_empty());
    }

    #[test]
    fn a_line_of_the_list_has_a_term_its_standard_and_places() {
        let terms = parse("# list\nway back -> reverse path | crates/a docs/b.md # soon\nx -> y\n");
        let term = |retired: &str, standard: &str, places: &[&str]| Term {
            retired: retired.to_owned(),
            standard: standard.to_owned(),
            places: places.iter().map(|&place| place.to_owned()).collect(),
        };
        let expected =
            [term("way back", "reverse path", &["crates/a", "docs/b.md"]), term("x", "y", &[])];
        assert_eq!(terms.unwrap(), expected);
        assert!(parse("way back\n").unwrap_err().contains("terms.txt:1"));
    }
    #[test]
    fn a_use_outside_its_places_and_a_place_without_a_use_are_violations() {
        let terms = parse("way back -> reverse path | crates/a crates/b\n").unwrap();
        let files = ["crates/a/c.rs", "crates/ab.rs"].map(|path| (path.to_owned(), "\nway back"));
        let found = violations(&terms, &files.map(|(path, text)| (path, text.to_owned())));
        let expected = [
            "crates/ab.rs:2: \"way back\"; say \"reverse path\"",
            "xtask/terms.txt: crates/b does not use \"way back\" any more",
        ];
        assert_eq!(found, expected);
    }
}
