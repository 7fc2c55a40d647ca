//! Checks that the files and headings of links in Markdown exist.

use crate::report::Report;
use crate::sources;
use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

pub(crate) fn check() -> Result<Report, String> {
    let root = sources::root();
    let mut pages = Vec::new();
    // Untracked folders, such as a build's, are excluded.
    for (folder, below) in [(".", false), ("docs", true), ("packaging", true), ("fuzz", false)] {
        pages.extend(pages_in(&root.join(folder), below)?);
    }
    let (mut links, mut violations) = (0, Vec::new());
    for page in &pages {
        let (count, broken) = broken_links(page)?;
        links += count;
        let shown = sources::relative(page);
        violations.extend(broken.into_iter().map(|what| format!("{shown}:{what}")));
    }
    let looked_at = format!("{links} links of {} pages", pages.len());
    Ok(Report { name: "links", looked_at, violations, remarks: Vec::new() })
}

/// The Markdown files of a folder, and of all below it if so wanted.
pub(crate) fn pages_in(folder: &Path, below: bool) -> Result<Vec<PathBuf>, String> {
    let failed = |error| format!("{}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() && below {
            found.extend(pages_in(&path, true)?);
        } else if path.extension().is_some_and(|end| end == "md") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// How many links to files a page has, and those that lead nowhere: `line: link: what is not there`.
pub(crate) fn broken_links(page: &Path) -> Result<(usize, Vec<String>), String> {
    let read = |path: &Path| {
        fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let text = read(page)?;
    let mut broken = Vec::new();
    let all = links(&text);
    for at in &all {
        let link = &text[at.clone()];
        let (file, heading) = link.split_once('#').unwrap_or((link, ""));
        let to = if file.is_empty() { page.to_path_buf() } else { resolve(page, file) };
        let line = text[..at.start].matches('\n').count() + 1;
        if !to.exists() {
            broken.push(format!("{line}: {link}: there is no such file"));
        } else if !heading.is_empty()
            && to.extension().is_some_and(|end| end == "md")
            && !headings(&read(&to)?).contains(heading)
        {
            broken.push(format!("{line}: {link}: there is no such heading"));
        }
    }
    Ok((all.len(), broken))
}

/// Where a page's links to files and headings stand, without those to other places (`https:`).
pub(crate) fn links(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (start, line) in prose(text) {
        for (at, mark) in line.match_indices("](") {
            let from = at + mark.len();
            let Some(length) = line[from..].find(')') else { continue };
            let link = &line[from..from + length];
            if !link.is_empty() && !link.contains(':') && !link.contains(' ') {
                found.push(start + from..start + from + length);
            }
        }
    }
    found
}

/// The path that a link from `page` means.
pub(crate) fn resolve(page: &Path, link: &str) -> PathBuf {
    let mut path = page.parent().unwrap_or(page).to_path_buf();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    path
}

/// The names by which a page's headings are linked to: as GitHub makes them.
fn headings(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let name: String = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let again = (1..).map(|count| format!("{name}-{count}"));
        let names = std::iter::once(name.clone()).chain(again);
        if let Some(free) = names.into_iter().find(|name| !found.contains(name)) {
            found.insert(free);
        }
    }
    found
}

/// The lines that are not in a fence, and where each begins.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let (mut start, mut fenced) = (0, false);
    text.split_inclusive('\n').filter_map(move |line| {
        let at = start;
        start += line.len();
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        (!fenced && !is_fence).then_some((at, line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_but_for_those_in_fences_and_to_elsewhere() {
        let text = "See [a](b.md#c) and [d](https://e/), ![f](g.png).\n```\n[h](i)\n```\n[j](#k)\n";
        let found: Vec<&str> = links(text).into_iter().map(|at| &text[at]).collect();
        assert_eq!(found, ["b.md#c", "g.png", "#k"]);
    }

    #[test]
    fn headings_are_named_as_github_names_them() {
        let text = "# The link's `rate`\n## All keys\n## All keys\n```\n# no\n```\n#!x\n";
        let names = headings(text);
        let expected = ["all-keys", "all-keys-1", "the-links-rate"].map(String::from);
        assert_eq!(names, BTreeSet::from(expected));
    }

    #[test]
    fn broken_links_are_reported_with_their_line() {
        let folder = std::env::temp_dir().join(format!("bentpipe-links-{}", std::process::id()));
        fs::create_dir_all(folder.join("sub")).unwrap();
        fs::write(folder.join("sub/b.md"), "# Here\n").unwrap();
        let page = folder.join("a.md");
        fs::write(&page, "[1](sub/b.md#here)\n[2](sub/b.md#there)\n[3](sub/../c.md)\n").unwrap();
        let found = broken_links(&page);
        fs::remove_dir_all(&folder).unwrap();
        let (count, broken) = found.unwrap();
        assert_eq!(count, 3);
        assert_eq!(
            broken,
            [
                "2: sub/b.md#there: there is no such heading",
                "3: sub/../c.md: there is no such file"
            ]
        );
    }

    #[test]
    fn the_pages_here_lead_somewhere() {
        assert_eq!(check().unwrap().violations, Vec::<String>::new());
    }
}
