//! A tarball with a static program: `cargo run -p xtask -- tarball [--binary FILE] [--out DIR]`.
//!
//! Unpacked at `/` it has the program, the unit, manual pages, completions and documentation in the
//! places of the Debian package; the example configurations are with the documentation, so that
//! nothing is overwritten.

use crate::binary::{self, Linkage};
use crate::deb::{self, FILES};
use crate::files::{copy, make, run, source_date};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the tarball; returns where it is.
pub(crate) fn build(arguments: &[&str]) -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no repository")?;
    let (mut binary, mut out) = (None, root.join("target/tarball"));
    for pair in arguments.chunks(2) {
        match pair {
            ["--binary", file] => binary = Some(PathBuf::from(file)),
            ["--out", folder] => out = PathBuf::from(folder),
            _ => {
                return Err(
                    "usage: cargo run -p xtask -- tarball [--binary FILE] [--out DIR]".into()
                );
            }
        }
    }
    let binary = match binary {
        Some(binary) => binary,
        None => binary::build(root, Linkage::Static)?,
    };
    let headers = run(Command::new("objdump").arg("-p").arg(&binary))?;
    if headers.contains("NEEDED") {
        return Err(format!("{}: it needs shared libraries", binary.display()));
    }
    let stage = out.join("stage");
    if stage.exists() {
        fs::remove_dir_all(&stage).map_err(|error| format!("{}: {error}", stage.display()))?;
    }
    for (from, to, mode) in FILES {
        if let Some(to) = place(to) {
            copy(&root.join(from), &stage.join(to), mode)?;
        }
    }
    deb::lay_out(root, &binary, &stage)?;
    make(&out)?;
    let (version, machine) = (binary::version(&binary)?, std::env::consts::ARCH);
    let package = out.join(format!("bentpipe-{version}-{machine}-linux.tar.gz"));
    pack(&stage, &package, &source_date(root)?)?;
    Ok(package)
}

/// Returns where a file of the Debian package is in the tarball.
fn place(to: &str) -> Option<String> {
    if to.starts_with("DEBIAN/") || to == "etc/default/bentpipe" {
        return None;
    }
    match to.strip_prefix("etc/bentpipe/") {
        Some(name) => Some(format!("usr/share/doc/bentpipe/examples/{name}")),
        None => Some(to.to_owned()),
    }
}

/// Packs with the same order, owners, modes and dates each time.
fn pack(stage: &Path, package: &Path, date: &str) -> Result<(), String> {
    let tar = package.with_extension("");
    run(Command::new("tar")
        .args(["--sort=name", "--format=gnu", "--owner=0", "--group=0", "--numeric-owner"])
        .args(["--mode=u+rwX,go+rX,go-w".to_owned(), format!("--mtime=@{date}")])
        .arg("-C")
        .arg(stage)
        .arg("-cf")
        .arg(&tar)
        .arg("usr"))?;
    run(Command::new("gzip").args(["-9", "-n", "-f"]).arg(&tar))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_are_examples_and_scripts_of_packages_are_left_out() {
        let placed: Vec<String> = FILES.iter().filter_map(|(_, to, _)| place(to)).collect();
        assert!(placed.contains(&"usr/share/doc/bentpipe/examples/hub.toml".to_owned()));
        assert!(placed.contains(&"usr/lib/systemd/system/bentpipe@.service".to_owned()));
        assert!(placed.iter().all(|to| to.starts_with("usr/")), "{placed:?}");
    }
}
