//! Files stay of a size that a reader can hold: a ratchet.
//!
//! A source file has at most [`FILE_LINES`] lines without its tests, a test module inside it
//! at most [`TEST_LINES`]. What exceeds a bound stands in `xtask/ratchet.txt` with its size,
//! may not grow, and leaves the list when it no longer exceeds. Functions are held below 70
//! lines by `clippy::too_many_lines`; each exception from that counts here as well.

use crate::report::Report;
use crate::sources;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const FILE_LINES: usize = 500;
const FILE_LINES_AT_MOST: usize = 800;
const TEST_LINES: usize = 150;
const TEST_FILE_LINES: usize = 800;
const RATCHET: &str = "xtask/ratchet.txt";
const EXCEPTION: &str = "clippy::too_many_lines";

pub(crate) fn check() -> Result<Report, String> {
    let allowed = read_ratchet()?;
    let mut unused = allowed.clone();
    let mut violations = Vec::new();
    let mut files = 0;
    for folder in ["crates", "xtask"] {
        for (path, text) in sources::rust_files(&sources::root().join(folder))? {
            files += 1;
            for (what, size, bound) in measure(&path, &text) {
                if size <= bound {
                    continue;
                }
                let key = format!("{} {what}", sources::relative(&path));
                unused.remove(&key);
                let listed = allowed.get(&key).copied().unwrap_or(0);
                if what == "lines" && size > FILE_LINES_AT_MOST {
                    violations.push(format!("{key}: {size}, at most {FILE_LINES_AT_MOST}"));
                } else if size > listed {
                    let bound = bound.max(listed);
                    violations.push(format!("{key}: {size}, at most {bound} ({RATCHET})"));
                }
            }
        }
    }
    for key in unused.keys() {
        violations.push(format!("{key}: exceeds nothing any more; take it off {RATCHET}"));
    }
    let looked_at = format!("{files} files, {} on the ratchet", allowed.len());
    Ok(Report { name: "sizes", looked_at, violations, remarks: Vec::new() })
}

/// What is counted in a file: its name, the count and the bound.
fn measure(path: &Path, text: &str) -> Vec<(&'static str, usize, usize)> {
    let total = text.lines().count();
    if sources::is_test_file(path) {
        return vec![("test-lines", total, TEST_FILE_LINES)];
    }
    let code = sources::split_tests(text).0.lines().count();
    let tests = total - code;
    // The check's own mention of the lint is no exception from it.
    let exceptions = if path.ends_with("xtask/src/sizes.rs") {
        0
    } else {
        text.lines()
            .filter(|line| line.trim_start().starts_with("#") && line.contains(EXCEPTION))
            .count()
    };
    vec![
        ("lines", code, FILE_LINES),
        ("test-lines", tests, TEST_LINES),
        ("long-functions", exceptions, 0),
    ]
}

/// `path what count` on each line; `#` begins a comment.
fn read_ratchet() -> Result<BTreeMap<String, usize>, String> {
    let path = sources::root().join(RATCHET);
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut allowed = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let wrong =
            || format!("{RATCHET}:{}: expected `path what count`, found {line:?}", index + 1);
        let (key, count) = line.rsplit_once(' ').ok_or_else(wrong)?;
        allowed.insert(key.to_owned(), count.parse().map_err(|_| wrong())?);
    }
    Ok(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_tests_and_long_functions_are_counted_apart() {
        let text = "#[expect(clippy::too_many_lines)]\nfn a() {}\n\n#[cfg(test)]\nmod tests {\n}\n";
        let measured = measure(Path::new("crates/a/src/lib.rs"), text);
        let count = |what| measured.iter().find(|(name, ..)| *name == what).unwrap().1;
        assert_eq!((count("lines"), count("long-functions")), (2, 1));
        assert_eq!(count("lines") + count("test-lines"), text.lines().count());
    }
}
