//! Which file defines what a path names.

use super::modules::{Module, Tree, Use};
use std::collections::BTreeSet;

/// Re-exports of re-exports that are followed; more would be a ring.
const MAX_ALIASES: usize = 16;

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Named {
    Module(usize),
    /// An item, by the file that defines it.
    Item(usize),
    /// What another crate defines.
    Outside,
}

/// Every arrow of a crate: the file that names something, the file that defines it, and the name.
pub(super) fn arrows(tree: &Tree) -> BTreeSet<(usize, usize, String)> {
    let mut found = BTreeSet::new();
    for (at, module) in tree.modules.iter().enumerate() {
        // A name that is only handed on is no use of it.
        let is_used = |one: &&Use| !one.is_public || module.words.contains(&one.name);
        let imported = module.uses.iter().filter(is_used).map(|one| &one.path);
        for path in imported.chain(&module.paths) {
            if let Some(Named::Item(file)) = resolve(tree, at, path, MAX_ALIASES)
                && file != module.file
            {
                found.insert((module.file, file, path.last().cloned().unwrap_or_default()));
            }
        }
    }
    found
}

/// What `path`, written in the module `at`, leads to; `None` for what lies outside the crate.
fn resolve(tree: &Tree, at: usize, path: &[String], aliases: usize) -> Option<Named> {
    let (first, mut rest) = path.split_first()?;
    let mut found = match first.as_str() {
        "crate" => Named::Module(0),
        "self" => Named::Module(at),
        "super" => Named::Module(tree.modules[at].parent?),
        name => member(tree, at, name, rest.is_empty(), aliases)?,
    };
    while let (Named::Module(module), Some((name, after))) = (found, rest.split_first()) {
        rest = after;
        found = match name.as_str() {
            "super" => Named::Module(tree.modules[module].parent?),
            "self" | "*" => Named::Module(module),
            // What cannot be found is made by a macro, most likely where it is looked for.
            name => member(tree, module, name, rest.is_empty(), aliases)
                .unwrap_or(Named::Item(tree.modules[module].file)),
        };
    }
    Some(found)
}

/// What the module `at` calls `name`. As the last of a path an item comes before a module.
fn member(tree: &Tree, at: usize, name: &str, is_last: bool, aliases: usize) -> Option<Named> {
    let module: &Module = &tree.modules[at];
    if is_last && module.items.contains(name) {
        return Some(Named::Item(module.file));
    }
    if let Some(&child) = module.children.get(name) {
        return Some(Named::Module(child));
    }
    if module.items.contains(name) {
        return Some(Named::Item(module.file));
    }
    let Some(aliases) = aliases.checked_sub(1) else { return Some(Named::Outside) };
    // An extern crate may be called as the name that is imported from it.
    let leads_on = |one: &&Use| one.path.first().is_none_or(|first| first != name);
    let named = module.uses.iter().filter(|one| one.name == name);
    if named.clone().count() > 0 {
        let found = named.filter(leads_on).find_map(|one| resolve(tree, at, &one.path, aliases));
        return Some(found.unwrap_or(Named::Outside));
    }
    let all = module.uses.iter().filter(|one| one.name == "*");
    all.filter(leads_on).find_map(|one| match resolve(tree, at, &one.path, aliases)? {
        Named::Module(other) if other != at => member(tree, other, name, is_last, aliases),
        Named::Module(_) | Named::Item(_) | Named::Outside => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of `(module, its parent, its text)`, each in a file of its own.
    fn tree(modules: &[(&str, usize, &str)]) -> Tree {
        let mut tree = Tree::default();
        for (file, (name, parent, text)) in modules.iter().enumerate() {
            let at = tree.add_text(text, file, (file > 0).then_some(*parent));
            assert_eq!(at, file, "one module a file");
            if file > 0 {
                tree.modules[*parent].children.insert((*name).to_owned(), at);
            }
        }
        tree
    }

    #[test]
    fn re_exports_are_followed_to_the_definition_and_are_no_arrow_themselves() {
        let tree = tree(&[
            ("", 0, "pub use a::b::B; pub use other::Outcome; pub(crate) use a::*;"),
            ("a", 0, "pub use self::b::B as C; pub struct A;"),
            ("b", 1, "pub struct B; fn f() -> crate::Outcome { super::A; B::new() }"),
            ("d", 0, "use super::{B, a}; fn g(_: B, _: a::C, _: crate::A, _: other::B) {}"),
        ]);
        let found: Vec<(usize, usize, String)> = arrows(&tree).into_iter().collect();
        let arrow = |from, to, name: &str| (from, to, name.to_owned());
        assert_eq!(found, [arrow(2, 1, "A"), arrow(3, 1, "A"), arrow(3, 2, "B"), arrow(3, 2, "C")]);
    }

    #[test]
    fn a_ring_of_re_exports_ends() {
        let tree = tree(&[("", 0, "pub use a::X;"), ("a", 0, "pub use super::X; fn f(_: X) {}")]);
        assert!(arrows(&tree).is_empty());
    }
}
