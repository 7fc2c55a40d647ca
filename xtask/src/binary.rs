//! The program of packages, built so that two builds of one commit are the same octets.

use crate::files::run;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How the program is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linkage {
    /// To the shared libraries of the build machine's release.
    Dynamic,
    /// Without shared libraries: for any Linux of the architecture.
    Static,
}

/// Builds the program in a folder of its own, and returns where it is.
pub(crate) fn build(root: &Path, linkage: Linkage) -> Result<PathBuf, String> {
    let target = target()?;
    let folder = root.join("target").join(match linkage {
        Linkage::Dynamic => "package",
        Linkage::Static => "package-static",
    });
    let mut build = Command::new("cargo");
    build.args(["build", "--release", "--locked", "--package", "bentpipe", "--target", &target]);
    build.arg("--target-dir").arg(&folder).current_dir(root);
    build.env("CARGO_ENCODED_RUSTFLAGS", flags(root, linkage)?.join("\u{1f}"));
    run(&mut build)?;
    Ok(folder.join(&target).join("release/bentpipe"))
}

/// Returns the flags of the compiler: paths of this machine are replaced, which the messages of
/// panics would have.
fn flags(root: &Path, linkage: Linkage) -> Result<Vec<String>, String> {
    let sysroot = run(Command::new("rustc").args(["--print", "sysroot"]))?;
    let home = std::env::var("CARGO_HOME").ok().map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let home = home.ok_or("neither CARGO_HOME nor HOME is set")?;
    let map = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    // The last one that fits holds.
    let mut flags =
        vec![map(&home, "/cargo"), map(Path::new(sysroot.trim()), "/rust"), map(root, "/source")];
    if linkage == Linkage::Static {
        flags.push("-Ctarget-feature=+crt-static".into());
        flags.push("-Crelocation-model=static".into());
    }
    Ok(flags)
}

/// Returns the compiler's own target: with another one flags hold for the program only, and not for
/// build scripts.
fn target() -> Result<String, String> {
    let about = run(Command::new("rustc").arg("-vV"))?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc -vV names no host".into())
}

/// Returns the version that a program prints.
pub(crate) fn version(binary: &Path) -> Result<String, String> {
    let version = run(Command::new(binary).arg("version"))?;
    let version = version.trim().strip_prefix("bentpipe ").ok_or("a binary without a version")?;
    Ok(version.to_owned())
}

/// Returns the crates in the program with their versions and licences, one on each line.
pub(crate) fn dependencies(root: &Path) -> Result<String, String> {
    let tree = ["tree", "--locked", "--package", "bentpipe", "--edges", "normal"];
    let format = ["--prefix", "none", "--no-dedupe", "--format", "{p} | {l}"];
    let listed = run(Command::new("cargo").args(tree).args(format).current_dir(root))?;
    Ok(sorted(&listed))
}

/// Sorts lines, and removes the paths of this repository's crates.
fn sorted(listed: &str) -> String {
    let line = |line: &str| match (line.find(" (/"), line.find(" | ")) {
        (Some(path), Some(licence)) if path < licence => {
            format!("{}{}\n", &line[..path], &line[licence..])
        }
        (_, _) => format!("{line}\n"),
    };
    let all: std::collections::BTreeSet<String> = listed.lines().map(line).collect();
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_sorted_and_have_no_path() {
        let listed = "bentpipe v0.1.0 (/home/a/crates/cli) | MIT\nlibc v0.2.1 | MIT OR Apache-2.0\n\
                      cc v1.0.0 | MIT\nlibc v0.2.1 | MIT OR Apache-2.0\n";
        let expected = "bentpipe v0.1.0 | MIT\ncc v1.0.0 | MIT\nlibc v0.2.1 | MIT OR Apache-2.0\n";
        assert_eq!(sorted(listed), expected);
    }

    #[test]
    fn no_path_of_this_machine_is_left() {
        let flags = flags(Path::new("/build/here"), Linkage::Static).unwrap();
        assert!(flags.contains(&"--remap-path-prefix=/build/here=/source".to_owned()), "{flags:?}");
        assert!(flags.contains(&"-Ctarget-feature=+crt-static".to_owned()));
    }
}
