//! The program of packages, built so that two builds of one commit are the same octets.

use crate::files::run;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the program for an architecture, without shared libraries, and returns where it is. A C
/// compiler for it is found as the crate `cc` does (`CC_TARGET`); the linker is the one that comes
/// with Rust.
pub(crate) fn build(root: &Path, target: &str) -> Result<PathBuf, String> {
    let folder = root.join("target/dist");
    let mut build = Command::new("cargo");
    build.args(["build", "--profile", "dist", "--locked", "--package", "bentpipe"]);
    build.args(["--target", target, "--target-dir"]).arg(&folder).current_dir(root);
    build.env("CARGO_ENCODED_RUSTFLAGS", flags(root)?.join("\u{1f}"));
    let variable = target.replace('-', "_");
    let linker = format!("CARGO_TARGET_{}_LINKER", variable.to_uppercase());
    set_unless_set(&mut build, &linker, "rust-lld");
    if let Some((_, compiler)) = C_COMPILERS.iter().find(|(known, _)| *known == target) {
        set_unless_set(&mut build, &format!("CC_{variable}"), compiler);
    }
    set_unless_set(&mut build, &format!("CFLAGS_{variable}"), &without_compressors());
    run(&mut build)?;
    Ok(folder.join(target).join("dist/bentpipe"))
}

/// Debian's C compilers, for the assembly and C of ring, which needs no library.
const C_COMPILERS: [(&str, &str); 3] = [
    ("x86_64-unknown-linux-musl", "x86_64-linux-gnu-gcc"),
    ("aarch64-unknown-linux-musl", "aarch64-linux-gnu-gcc"),
    ("armv7-unknown-linux-musleabihf", "arm-linux-gnueabihf-gcc"),
];

/// Returns the flags that leave out the strategies of libzstd that streams do not use: level 3
/// is `dfast` at every size (`ZSTD_defaultCParameters`).
fn without_compressors() -> String {
    let unused = ["GREEDY", "LAZY", "LAZY2", "BTLAZY2", "BTOPT", "BTULTRA"];
    unused.map(|name| format!("-DZSTD_EXCLUDE_{name}_BLOCK_COMPRESSOR")).join(" ")
}

fn set_unless_set(command: &mut Command, variable: &str, value: &str) {
    if std::env::var_os(variable).is_none() {
        command.env(variable, value);
    }
}

/// Returns the flags of the compiler: paths of this machine are replaced, which the messages of
/// panics would have.
fn flags(root: &Path) -> Result<Vec<String>, String> {
    let sysroot = run(Command::new("rustc").args(["--print", "sysroot"]))?;
    let home = std::env::var("CARGO_HOME").ok().map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let home = home.ok_or("neither CARGO_HOME nor HOME is set")?;
    let map = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    // The last one that fits holds.
    let mut flags =
        vec![map(&home, "/cargo"), map(Path::new(sysroot.trim()), "/rust"), map(root, "/source")];
    // Without symbols, with relocations in short, equal functions once, and without tables for
    // unwinding: panics abort.
    let small = ["-s", "-zpack-relative-relocs", "--icf=all"];
    flags.extend(small.map(|argument| format!("-Clink-arg={argument}")));
    let script = root.join("packaging/no-unwinding.ld");
    flags.push(format!("-Clink-arg=-T{}", script.display()));
    flags.push("-Cforce-unwind-tables=no".into());
    Ok(flags)
}

/// Returns the version that a program prints.
pub(crate) fn version(binary: &Path) -> Result<String, String> {
    let version = run(Command::new(binary).arg("version"))?;
    let version = version.trim().strip_prefix("bentpipe ").ok_or("a binary without a version")?;
    Ok(version.to_owned())
}

/// Returns the list of all crates in the program, with versions and licences, as CycloneDX.
pub(crate) fn components(root: &Path, target: &str) -> Result<String, String> {
    let tree = ["tree", "--locked", "--package", "bentpipe", "--edges", "normal"];
    let format = ["--prefix", "none", "--no-dedupe", "--format", "{p}|{l}"];
    let mut list = Command::new("cargo");
    list.args(tree).args(format).args(["--target", target]).current_dir(root);
    let components = listed(&run(&mut list)?);
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "components": components,
    });
    Ok(format!("{document:#}\n"))
}

/// Returns the components that `cargo tree` lists, each once and in order.
fn listed(tree: &str) -> Vec<Value> {
    let all: std::collections::BTreeSet<&str> = tree.lines().collect();
    let component = |line: &str| {
        let mut fields = line.split('|');
        let mut package = fields.next()?.split(' ');
        let (name, version) = (package.next()?, package.next()?.strip_prefix('v')?);
        let licence = fields.next()?.replace('/', " OR ");
        Some(json!({
            "type": "library",
            "name": name,
            "version": version,
            "licenses": [{ "expression": licence }],
            "purl": format!("pkg:cargo/{name}@{version}"),
        }))
    };
    all.into_iter().filter_map(component).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_listed_once_and_without_paths() {
        let tree = "bentpipe v0.1.0 (/home/a/crates/cli)|MIT\nlibc v0.2.1|MIT/Apache-2.0\n\
                    cc v1.0.0 (proc-macro)|MIT\nlibc v0.2.1|MIT/Apache-2.0\n";
        let listed = listed(tree);
        let names: Vec<_> = listed.iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["bentpipe", "cc", "libc"]);
        assert_eq!(listed[2]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(listed[0]["purl"], "pkg:cargo/bentpipe@0.1.0");
        assert!(!format!("{listed:?}").contains("/home"));
    }

    #[test]
    fn no_path_of_this_machine_is_left() {
        let flags = flags(Path::new("/build/here")).unwrap();
        assert!(flags.contains(&"--remap-path-prefix=/build/here=/source".to_owned()), "{flags:?}");
    }
}
