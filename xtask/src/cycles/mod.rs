//! No import cycle joins files of different folders.
//!
//! An arrow runs from a file to the file that defines what it names: re-exports are followed to
//! the definition, and a re-export alone is no arrow. A module's file counts to the folder of its
//! submodules, whether it is `folder/mod.rs` or `folder.rs`. Files of one folder may name each
//! other as they like; files of different folders that reach each other both ways are a violation.

mod modules;
mod names;
mod tokens;

use crate::report::Report;
use crate::sources;
use modules::{Tree, folder_of};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Arrows by file: which files it names, and one name of each as an example.
type Arrows = BTreeMap<String, BTreeMap<String, String>>;

pub(crate) fn check() -> Result<Report, String> {
    let mut violations = Vec::new();
    let mut files = 0;
    for root in roots()? {
        let arrows = arrows(&root)?;
        files += arrows.len();
        for cycle in cycles(&arrows) {
            let files: Vec<&str> = cycle.iter().copied().collect();
            let arrows = between_folders(&arrows, &cycle).join(", ");
            violations.push(format!("files in a cycle: {}; arrows: {arrows}", files.join(" ")));
        }
    }
    let looked_at = format!("{files} files");
    Ok(Report { name: "cycles", looked_at, violations, remarks: Vec::new() })
}

/// The root files of all crates.
fn roots() -> Result<Vec<PathBuf>, String> {
    let mut found = vec![sources::root().join("xtask/src/main.rs")];
    let crates = sources::root().join("crates");
    let entries = fs::read_dir(&crates).map_err(|e| format!("{}: {e}", crates.display()))?;
    for entry in entries {
        let folder = entry.map_err(|e| format!("{}: {e}", crates.display()))?.path().join("src");
        let roots = ["lib.rs", "main.rs"].map(|name| folder.join(name));
        found.extend(roots.into_iter().filter(|root| root.exists()));
    }
    found.sort();
    Ok(found)
}

/// All arrows between the files of the crate with this root.
fn arrows(root: &Path) -> Result<Arrows, String> {
    let tree = Tree::read(root)?;
    let shown: Vec<String> = tree.files.iter().map(|path| sources::relative(path)).collect();
    let mut found: Arrows = shown.iter().map(|file| (file.clone(), BTreeMap::new())).collect();
    for (from, to, name) in names::arrows(&tree) {
        found.entry(shown[from].clone()).or_default().entry(shown[to].clone()).or_insert(name);
    }
    Ok(found)
}

/// The groups of files that reach each other both ways and lie in more than one folder.
fn cycles(arrows: &Arrows) -> Vec<BTreeSet<&str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        arrows.keys().map(|file| (file.as_str(), reach(arrows, file))).collect();
    let mut found: Vec<BTreeSet<&str>> = Vec::new();
    for (file, ahead) in &reached {
        let group: BTreeSet<&str> =
            ahead.iter().copied().filter(|other| reached[other].contains(file)).collect();
        let folders: BTreeSet<_> = group.iter().map(|file| folder(file, arrows)).collect();
        if folders.len() > 1 && !found.contains(&group) {
            found.push(group);
        }
    }
    found
}

/// The files that arrows lead to from `file`, over any number of others.
fn reach<'a>(arrows: &'a Arrows, file: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut pending = vec![file];
    while let Some(next) = pending.pop() {
        for to in arrows[next].keys() {
            if found.insert(to.as_str()) {
                pending.push(to);
            }
        }
    }
    found
}

/// The folder to which a file counts: that of its submodules, where it has some.
fn folder(file: &str, arrows: &Arrows) -> String {
    let own = folder_of(Path::new(file)).display().to_string();
    let has_submodules = arrows.keys().any(|other| other.starts_with(&format!("{own}/")));
    let beside = Path::new(file).parent().map(|folder| folder.display().to_string());
    if has_submodules { own } else { beside.unwrap_or_default() }
}

/// The arrows of a cycle that lead from one folder to another.
fn between_folders(arrows: &Arrows, cycle: &BTreeSet<&str>) -> Vec<String> {
    let mut found = Vec::new();
    for from in cycle {
        for (to, name) in &arrows[*from] {
            if cycle.contains(to.as_str()) && folder(from, arrows) != folder(to, arrows) {
                found.push(format!("{from} -> {to} ({name})"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(pairs: &[(&str, &str)]) -> Arrows {
        let mut arrows = Arrows::new();
        for (from, to) in pairs {
            arrows.entry((*to).to_owned()).or_default();
            let from = arrows.entry((*from).to_owned()).or_default();
            from.insert((*to).to_owned(), "x".to_owned());
        }
        arrows
    }

    #[test]
    fn only_a_cycle_over_two_folders_counts() {
        let arrows = drawn(&[("s/a.rs", "s/b.rs"), ("s/b.rs", "s/a.rs"), ("s/b.rs", "s/c/d.rs")]);
        assert!(cycles(&arrows).is_empty());
        let arrows = drawn(&[("s/a.rs", "s/c/d.rs"), ("s/c/d.rs", "s/e.rs"), ("s/e.rs", "s/a.rs")]);
        let found = cycles(&arrows);
        assert_eq!(found, [BTreeSet::from(["s/a.rs", "s/c/d.rs", "s/e.rs"])]);
        let shown = between_folders(&arrows, &found[0]);
        assert_eq!(shown, ["s/a.rs -> s/c/d.rs (x)", "s/c/d.rs -> s/e.rs (x)"]);
    }

    #[test]
    fn a_module_s_file_counts_to_the_folder_of_its_submodules() {
        for file in ["s/c/mod.rs", "s/c.rs"] {
            let arrows = drawn(&[(file, "s/c/d.rs"), ("s/c/d.rs", file)]);
            assert!(cycles(&arrows).is_empty(), "{file}");
            assert_eq!(folder(file, &arrows), "s/c");
        }
    }
}
