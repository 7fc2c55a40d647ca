//! Clauses of the specifications, and the tests that name them.

use crate::report::Report;
use crate::sources;
use std::collections::BTreeSet;
use std::fs;

/// Each specification: its file, its clauses' prefix, and the crate whose tests prove it.
const SPECIFICATIONS: &[(&str, &str, &str)] = &[
    ("docs/spec/xstp.md", "XSTP-", "xstp"),
    ("docs/spec/relay.md", "RLY-", "relay"),
    ("docs/spec/association.md", "ASC-", "association"),
    ("docs/spec/compression.md", "CMP-", "satlink"),
];

pub(crate) fn check() -> Result<Report, String> {
    let mut violations = Vec::new();
    let mut remarks = Vec::new();
    let (mut clauses, mut proved) = (0, 0);
    for (file, prefix, crate_name) in SPECIFICATIONS {
        let path = sources::root().join(file);
        let Ok(text) = fs::read_to_string(&path) else {
            remarks.push(format!("{file}: not there yet"));
            continue;
        };
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
                    violations.push(format!("{shown}: names {clause}, which {file} lacks"));
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
}
