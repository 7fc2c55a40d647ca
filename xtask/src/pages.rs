//! Pages of the documentation as they lie in a package: their links lead to where things are there.

use crate::links;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where files and folders lie in the repository, and where in the package.
pub(crate) type Places = BTreeMap<PathBuf, PathBuf>;

/// The text of the page `from`, for its place in the package. What a link leads to that the package
/// does not have is named without one.
pub(crate) fn moved(text: &str, from: &Path, places: &Places) -> String {
    let Some(to) = places.get(from) else { return text.to_owned() };
    let mut moved = text.to_owned();
    for at in links::links(text).into_iter().rev() {
        let link = &text[at.clone()];
        let (file, heading) = link.split_at(link.find('#').unwrap_or(link.len()));
        if file.is_empty() {
            continue;
        }
        if let Some(target) = places.get(&links::resolve(from, file)) {
            moved.replace_range(at, &format!("{}{heading}", way(to, target)));
        } else if let Some(open) = text[..at.start - 2].rfind('[') {
            let words = text[open + 1..at.start - 2].to_owned();
            let open = if text[..open].ends_with('!') { open - 1 } else { open };
            moved.replace_range(open..=at.end, &words);
        }
    }
    moved
}

/// The relative link from one page to another file.
fn way(from: &Path, to: &Path) -> String {
    let folder: Vec<_> = from.parent().unwrap_or(from).components().collect();
    let target: Vec<_> = to.components().collect();
    let common = folder.iter().zip(&target).take_while(|(one, other)| one == other).count();
    let up = std::iter::repeat_n("..".into(), folder.len() - common);
    let down = target[common..].iter().map(|part| part.as_os_str().to_string_lossy());
    let parts: Vec<_> = up.chain(down).collect();
    if parts.is_empty() { ".".into() } else { parts.join("/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_where_the_package_has_things() {
        let pairs = [
            ("/r/README.md", "/s/doc/README.md"),
            ("/r/docs/guide", "/s/doc/guide"),
            ("/r/docs/guide/a.md", "/s/doc/guide/a.md"),
            ("/r/packaging/x.service", "/s/lib/x.service"),
        ];
        let places: Places = pairs.map(|(from, to)| (from.into(), to.into())).into();
        let readme = "[a](docs/guide/a.md#b), [all](docs/guide/) and [c](CONTRIBUTING.md).\n";
        assert_eq!(
            moved(readme, Path::new("/r/README.md"), &places),
            "[a](guide/a.md#b), [all](guide) and c.\n"
        );
        let guide =
            "![p](../p.png) [unit](../../packaging/x.service) [up](../../README.md) [h](#h)\n";
        assert_eq!(
            moved(guide, Path::new("/r/docs/guide/a.md"), &places),
            "p [unit](../../lib/x.service) [up](../README.md) [h](#h)\n"
        );
    }
}
