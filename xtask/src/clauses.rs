//! Clauses of the specifications, and the tests that name them.

use crate::report::Report;
use crate::sources;
use std::collections::BTreeSet;
use std::fs;

/// Each specification: its files in the order of their numbers, its clauses' prefix, and the crate
/// whose tests prove it.
const SPECIFICATIONS: &[(&[&str], &str, &str)] = &[
    (&["xstp", "wire", "session", "profiles", "steady", "repair"], "XSTP-", "xstp"),
    (&["relay"], "RLY-", "relay"),
    (&["pep"], "PEP-", "relay"),
    (&["headers"], "HDR-", "relay"),
    (&["association"], "ASC-", "association"),
    (&["compression"], "CMP-", "satlink"),
    (&["tls"], "TLS-", "gateway"),
    (&["transfer"], "TRF-", "transfer"),
    (&["radio"], "RAD-", "endpoint"),
];

/// The key words of BCP 14.
const KEY_WORDS: [&str; 7] =
    ["MUST", "SHALL", "SHOULD", "MAY", "REQUIRED", "RECOMMENDED", "OPTIONAL"];

pub(crate) fn check() -> Result<Report, String> {
    let mut violations = Vec::new();
    let mut remarks = Vec::new();
    let (mut clauses, mut proved) = (0, 0);
    for (files, prefix, crate_name) in SPECIFICATIONS {
        let mut text = String::new();
        for file in *files {
            let page = format!("docs/spec/{file}.md");
            let path = sources::root().join(&page);
            let part = fs::read_to_string(&path).map_err(|error| format!("{page}: {error}"))?;
            let unbound = requirements_outside_clauses(&part, prefix);
            violations.extend(unbound.map(|what| format!("{page}: no clause contains: {what}")));
            text.push_str(&part);
        }
        violations.extend(misnumbered_clauses(&text, prefix));
        let defined = defined_clauses(&text, prefix);
        let mut named = BTreeSet::new();
        for (source, text) in sources::rust_files(&sources::root().join("crates"))? {
            let in_tests = if sources::is_test_file(&source) {
                text.as_str()
            } else {
                sources::split_tests(&text).1
            };
            for clause in mentioned_clauses(in_tests, prefix) {
                if !defined.contains(&clause) {
                    let shown = sources::relative(&source);
                    violations.push(format!("{shown}: names {clause}, which docs/spec lacks"));
                }
                named.insert(clause);
            }
        }
        clauses += defined.len();
        proved += defined.intersection(&named).count();
        let missing: Vec<&str> = defined.difference(&named).map(String::as_str).collect();
        if !missing.is_empty() {
            remarks.push(format!("{crate_name}: no test names {}", missing.join(", ")));
        }
    }
    let looked_at = format!("{proved} of {clauses} clauses named by a test");
    Ok(Report { name: "clauses", looked_at, violations, remarks })
}

/// The first words of each paragraph that has a key word of BCP 14 and belongs to no clause. A
/// clause has the paragraph with its number, the lists, tables and drawings after it, and the
/// paragraph after these.
fn requirements_outside_clauses(text: &str, prefix: &str) -> impl Iterator<Item = String> {
    let marker = format!("**{prefix}");
    let (mut in_clause, mut after_block) = (false, false);
    text.split("\n\n").filter_map(move |paragraph| {
        let begins = |marks: &[&str]| marks.iter().any(|mark| paragraph.starts_with(mark));
        let is_block = begins(&["* ", "1. ", "|", "```"]);
        in_clause = begins(&[&marker]) || (in_clause && (is_block || after_block));
        after_block = is_block;
        let is_word =
            |word: &str| KEY_WORDS.contains(&word.trim_matches(|c: char| !c.is_alphabetic()));
        let is_outside = !in_clause && !begins(&["The key words"]);
        let binds = is_outside && paragraph.split_whitespace().any(is_word);
        binds.then(|| paragraph.chars().take(60).collect())
    })
}

/// Clauses whose number does not follow that of the clause before.
fn misnumbered_clauses(text: &str, prefix: &str) -> Vec<String> {
    let marker = format!("**{prefix}");
    let numbers: Vec<Vec<u32>> = text
        .match_indices(&marker)
        .map(|(at, _)| clause_at(&text[at + 2..], prefix))
        .map(|clause| clause[prefix.len()..].split('.').filter_map(|n| n.parse().ok()).collect())
        .collect();
    let shown = |number: &[u32]| {
        let parts: Vec<String> = number.iter().map(u32::to_string).collect();
        format!("{prefix}{}", parts.join("."))
    };
    let follows = |last: &[u32], next: &[u32]| {
        let (Some((before, section)), Some((after, rest))) = (last.split_last(), next.split_last())
        else {
            return false;
        };
        if section == rest { *before + 1 == *after } else { *after == 1 && rest > section }
    };
    let pairs = numbers.windows(2).filter(|pair| !follows(&pair[0], &pair[1]));
    pairs.map(|pair| format!("{} follows {}", shown(&pair[1]), shown(&pair[0]))).collect()
}

/// A clause is defined where its number stands in bold: `**XSTP-4.3.2**`.
fn defined_clauses(text: &str, prefix: &str) -> BTreeSet<String> {
    let marker = format!("**{prefix}");
    text.match_indices(&marker).map(|(at, _)| clause_at(&text[at + 2..], prefix)).collect()
}

fn mentioned_clauses(text: &str, prefix: &str) -> BTreeSet<String> {
    text.match_indices(prefix)
        .filter(|(at, _)| text[at + prefix.len()..].starts_with(|c: char| c.is_ascii_digit()))
        .map(|(at, _)| clause_at(&text[at..], prefix))
        .collect()
}

fn clause_at(text: &str, prefix: &str) -> String {
    let number: String =
        text[prefix.len()..].chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    format!("{prefix}{}", number.trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clause_is_defined_in_bold_and_named_anywhere() {
        let text = "**XSTP-4.3.2** As XSTP-4.3.1 says.\nXSTP-probing is no clause.";
        assert_eq!(defined_clauses(text, "XSTP-"), BTreeSet::from(["XSTP-4.3.2".to_owned()]));
        let named = mentioned_clauses(text, "XSTP-");
        assert_eq!(named, BTreeSet::from(["XSTP-4.3.1".to_owned(), "XSTP-4.3.2".to_owned()]));
    }

    #[test]
    fn numbers_have_no_holes_and_are_in_order() {
        let text =
            "**RLY-1.1** a\n\n**RLY-1.2** b\n\n**RLY-2.1** c\n\n**RLY-2.3** d\n\n**RLY-1.3** e";
        let expected = ["RLY-2.3 follows RLY-2.1", "RLY-1.3 follows RLY-2.3"];
        assert_eq!(misnumbered_clauses(text, "RLY-"), expected);
    }

    #[test]
    fn requirements_belong_to_clauses() {
        let text = "It MUST.\n\n**RLY-1.1** It MUST:\n\n* it MAY\n\nMAY it?\n\nIt `SHOULD`, too.";
        let found: Vec<String> = requirements_outside_clauses(text, "RLY-").collect();
        assert_eq!(found, ["It MUST.", "It `SHOULD`, too."]);
    }
}
