//! The tree's source files.

use std::fs;
use std::path::{Path, PathBuf};

/// The workspace's root folder.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().expect("xtask lies in the workspace").to_path_buf()
}

/// Every Rust source below `folder`, sorted, as path and text.
pub(crate) fn rust_files(folder: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_path_buf()];
    while let Some(next) = pending.pop() {
        let entries = fs::read_dir(&next).map_err(|e| format!("{}: {e}", next.display()))?;
        for entry in entries {
            let path = entry.map_err(|e| format!("{}: {e}", next.display()))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "target" {
                    pending.push(path);
                }
            } else if name.ends_with(".rs") {
                let text =
                    fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
                found.push((path, text));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// `path` as written from the workspace's root.
pub(crate) fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// Whether a file holds nothing but tests.
pub(crate) fn is_test_file(path: &Path) -> bool {
    let shown = relative(path);
    shown.contains("/tests/") || shown.ends_with("/tests.rs") || shown.contains("/benches/")
}

/// A file's text without the test module at its end, and that module.
pub(crate) fn split_tests(text: &str) -> (&str, &str) {
    const MARKS: [&str; 2] =
        ["\n#[cfg(test)]\nmod tests {", "\n#[cfg(test)]\npub(crate) mod tests {"];
    let at = MARKS.iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
    text.split_at(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_split_at_its_test_module_only() {
        let text = "#[cfg(test)]\nextern crate std;\nfn a() {}\n#[cfg(test)]\nmod tests {\n}\n";
        let (code, tests) = split_tests(text);
        assert!(code.ends_with("fn a() {}"), "{code:?}");
        assert!(tests.contains("mod tests"), "{tests:?}");
        assert_eq!(split_tests("fn a() {}\n"), ("fn a() {}\n", ""));
    }

    #[test]
    fn files_of_tests_are_known_by_their_place() {
        for (path, is) in [
            ("crates/a/tests/b.rs", true),
            ("crates/a/src/b/tests.rs", true),
            ("crates/a/src/b/tests/c.rs", true),
            ("crates/a/src/tester.rs", false),
        ] {
            assert_eq!(is_test_file(&root().join(path)), is, "{path}");
        }
    }
}
