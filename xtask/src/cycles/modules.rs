//! A crate's modules as its source declares them: what each defines, imports and names.

use super::tokens::tokens;
use crate::sources;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// One module: a file, or a block inside one.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// The file, by its number.
    pub(super) file: usize,
    pub(super) parent: Option<usize>,
    pub(super) children: BTreeMap<String, usize>,
    /// Names of the items that it defines.
    pub(super) items: BTreeSet<String>,
    pub(super) uses: Vec<Use>,
    /// Qualified paths outside of `use`, such as `super::wire::Header`.
    pub(super) paths: BTreeSet<Vec<String>>,
    /// Every identifier that stands outside of `use`.
    pub(super) words: BTreeSet<String>,
}

/// One name that a `use` declaration brings in; `*` stands for all of them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Use {
    pub(super) name: String,
    pub(super) path: Vec<String>,
    /// Whether other modules are given the name as well.
    pub(super) is_public: bool,
}

/// All modules of a crate; the first is its root.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) modules: Vec<Module>,
    pub(super) files: Vec<PathBuf>,
}

/// Keywords that the name of an item follows.
const ITEMS: [&str; 9] =
    ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "macro_rules"];

impl Tree {
    /// Reads the crate whose root is the file `root`, without modules that only tests have.
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let mut tree = Self::default();
        tree.read_file(root, None)?;
        Ok(tree)
    }

    fn read_file(&mut self, path: &Path, parent: Option<usize>) -> Result<usize, String> {
        let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        self.files.push(path.to_path_buf());
        let file = self.files.len() - 1;
        let declared = self.add(&tokens(&text), file, parent);
        for (module, name, inside) in declared.files {
            let mut folder = folder_of(path);
            folder.extend(inside);
            let beside = folder.join(format!("{name}.rs"));
            let child = if beside.exists() { beside } else { folder.join(&name).join("mod.rs") };
            if !sources::is_test_file(&child) {
                let child = self.read_file(&child, Some(module))?;
                self.modules[module].children.insert(name, child);
            }
        }
        Ok(declared.module)
    }

    /// Adds the module of these tokens and those inside it.
    fn add(&mut self, tokens: &[&str], file: usize, parent: Option<usize>) -> Declared {
        let module = self.modules.len();
        let mut declared = Declared { module, files: Vec::new() };
        let mut found = Module { file, parent, ..Module::default() };
        self.modules.push(Module::default());
        let (mut at, mut depth) = (0, 0_usize);
        while at < tokens.len() {
            let after = |n: usize| tokens.get(at + n).copied().unwrap_or_default();
            match tokens[at] {
                "#" if is_for_tests(&tokens[at..]) => {
                    at += length_of_item(&tokens[at..]);
                    continue;
                }
                "mod" if after(2) == ";" => {
                    declared.files.push((module, after(1).to_owned(), Vec::new()));
                    at += 2;
                }
                "mod" if after(2) == "{" => {
                    let length = length_of_block(&tokens[at + 2..]);
                    let inside = &tokens[at + 3..at + 1 + length];
                    let inner = self.add(inside, file, Some(module));
                    found.children.insert(after(1).to_owned(), inner.module);
                    let deeper = inner.files.into_iter().map(|(module, name, mut inside)| {
                        inside.insert(0, after(1).to_owned());
                        (module, name, inside)
                    });
                    declared.files.extend(deeper);
                    at += 1 + length;
                }
                "use" if after(1) != "<" => {
                    let is_public = at > 0 && ["pub", ")"].contains(&tokens[at - 1]);
                    let length = tokens[at..].iter().position(|t| *t == ";").unwrap_or(0);
                    names(&tokens[at + 1..at + length.max(1)], is_public, &mut found.uses);
                    at += length;
                }
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                word if is_word(word) => {
                    if depth == 0 && ITEMS.contains(&word) {
                        let name = if after(1) == "!" { after(2) } else { after(1) };
                        found.items.insert(name.to_owned());
                    }
                    let length = found.take_path(tokens, at);
                    at += length - 1;
                }
                _ => {}
            }
            at += 1;
        }
        // Blocks inside have become modules by now.
        self.modules[module] = found;
        declared
    }
}

/// A module that was added, and the files that it and the blocks inside it declare: the declaring
/// module, the name, and the blocks around it.
struct Declared {
    module: usize,
    files: Vec<(usize, String, Vec<String>)>,
}

impl Module {
    /// Notes the identifier or qualified path at `at`; returns its length in tokens.
    fn take_path(&mut self, tokens: &[&str], at: usize) -> usize {
        self.words.insert(tokens[at].to_owned());
        let mut path = vec![tokens[at].to_owned()];
        let mut end = at + 1;
        while end + 1 < tokens.len() && tokens[end] == "::" && is_word(tokens[end + 1]) {
            path.push(tokens[end + 1].to_owned());
            end += 2;
        }
        let is_whole = at == 0 || !["::", "."].contains(&tokens[at - 1]);
        if path.len() > 1 && is_whole {
            self.paths.insert(path);
        }
        end - at
    }
}

/// The folder in which the modules of the file `path` lie.
pub(super) fn folder_of(path: &Path) -> PathBuf {
    let is_root = ["mod.rs", "lib.rs", "main.rs"].iter().any(|name| path.ends_with(name));
    if is_root { path.parent().unwrap_or(path).to_path_buf() } else { path.with_extension("") }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c == '_' || c.is_alphabetic())
}

/// Whether an attribute begins here that leaves what follows to tests.
fn is_for_tests(tokens: &[&str]) -> bool {
    let attribute = &tokens[..length_of_brackets(tokens)];
    attribute.starts_with(&["#", "[", "cfg"])
        && attribute.contains(&"test")
        && !attribute.contains(&"not")
}

/// The length of an attribute: up to its closing bracket.
fn length_of_brackets(tokens: &[&str]) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "[" => depth += 1,
            "]" if depth == 1 => return at + 1,
            "]" => depth -= 1,
            _ => {}
        }
    }
    tokens.len()
}

/// The length of an item with its attributes: up to its `;`, its block, or the `,` of a field.
fn length_of_item(tokens: &[&str]) -> usize {
    let mut at = 0;
    while tokens.get(at) == Some(&"#") {
        at += length_of_brackets(&tokens[at..]);
    }
    let is_field = !tokens[at..]
        .iter()
        .take(6)
        .any(|t| ITEMS.contains(t) || ["mod", "use", "impl", "extern"].contains(t));
    let mut depth = 0_usize;
    while at < tokens.len() {
        match tokens[at] {
            "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            "{" => return at + length_of_block(&tokens[at..]),
            ";" if depth == 0 => return at + 1,
            "," if depth == 0 && is_field => return at + 1,
            // The end of what the field stands in.
            "}" => return at,
            _ => {}
        }
        at += 1;
    }
    at
}

/// The length of a block from its opening brace to its closing one.
fn length_of_block(tokens: &[&str]) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "{" => depth += 1,
            "}" if depth == 1 => return at + 1,
            "}" => depth -= 1,
            _ => {}
        }
    }
    tokens.len()
}

/// Adds the names that the tree of a `use` declaration brings in.
fn names(tree: &[&str], is_public: bool, found: &mut Vec<Use>) {
    let mut open: Vec<Vec<String>> = vec![Vec::new()];
    let mut path = Vec::new();
    let mut name = None;
    let mut at = 0;
    while at <= tree.len() {
        match tree.get(at).copied().unwrap_or(",") {
            "{" => open.push(path.clone()),
            end @ ("," | "}") => {
                let prefix = open.last().map_or(0, Vec::len);
                if path.len() > prefix {
                    found.push(one(&path, name.take(), is_public));
                }
                if end == "}" {
                    open.pop();
                }
                path = open.last().cloned().unwrap_or_default();
            }
            "as" => {
                name = tree.get(at + 1).map(|&name| name.to_owned());
                at += 1;
            }
            "::" => {}
            word => path.push(word.to_owned()),
        }
        at += 1;
    }
}

fn one(path: &[String], name: Option<String>, is_public: bool) -> Use {
    let mut path = path.to_vec();
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let name = name.or_else(|| path.last().cloned()).unwrap_or_default();
    Use { name, path, is_public }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Tree {
        /// Adds a module without files of its own.
        pub(in super::super) fn add_text(
            &mut self,
            text: &str,
            file: usize,
            parent: Option<usize>,
        ) -> usize {
            self.add(&tokens(text), file, parent).module
        }
    }

    fn module(text: &str) -> Tree {
        let mut tree = Tree::default();
        tree.add_text(text, 0, None);
        tree
    }

    #[test]
    fn a_tree_of_imports_is_taken_apart() {
        let tree = module("pub(crate) use super::{a::{self, B, c::D as E}, f::*}; use g;");
        let found: Vec<(String, String)> = (tree.modules[0].uses.iter())
            .map(|one| (one.name.clone(), one.path.join("::")))
            .collect();
        let expected = [
            ("a", "super::a"),
            ("B", "super::a::B"),
            ("E", "super::a::c::D"),
            ("*", "super::f::*"),
            ("g", "g"),
        ];
        assert_eq!(found, expected.map(|(name, path)| (name.to_owned(), path.to_owned())));
        let public: Vec<bool> = tree.modules[0].uses.iter().map(|one| one.is_public).collect();
        assert_eq!(public, [true, true, true, true, false]);
    }

    #[test]
    fn items_paths_and_blocks_are_found_except_those_of_tests() {
        let tree = module(
            "#[cfg(test)] use gone::Gone; fn f(x: super::wire::Header<'_>) -> u8 { g::h(x.y) }
             struct S { #[cfg(test)] seen: gone::Too, kept: a::B }
             mod inner { const C: u8 = super::f(); }
             #[cfg(test)] mod tests { fn no() { gone::again() } }
             #[cfg(not(test))] const K: u8 = j::L;",
        );
        let root = &tree.modules[0];
        let words = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
        let paths: Vec<String> = root.paths.iter().map(|path| path.join("::")).collect();
        assert_eq!(paths, words(&["a::B", "g::h", "j::L", "super::wire::Header"]));
        assert_eq!(root.items.iter().cloned().collect::<Vec<_>>(), words(&["K", "S", "f"]));
        assert_eq!(root.uses, []);
        let inner = &tree.modules[root.children["inner"]];
        assert_eq!(inner.parent, Some(0));
        assert!(inner.items.contains("C") && inner.paths.len() == 1, "{inner:?}");
    }
}
