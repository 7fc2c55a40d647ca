//! Packages for one or several architectures: `cargo run -p xtask -- packages [ARCH]... [--out DIR]`.
//!
//! One static program for each architecture is in all packages. nfpm packs deb, rpm, apk and ipk by
//! `packaging/nfpm.yaml`, tar a tarball, and buildah, where it is installed, an OCI image. Two runs
//! at one commit write the same octets: the program has no path of this machine, and all dates are
//! that of the commit.

use crate::binary;
use crate::files::{make, run, source_date, write};
use crate::stage::Stage;
use std::path::{Path, PathBuf};
use std::process::Command;

const USAGE: &str = "usage: cargo run -p xtask -- packages [amd64 | arm64 | armv7]... [--out DIR]";

/// An architecture of packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Architecture {
    /// As in the names of images and on the command line.
    name: &'static str,
    /// As the compiler calls it.
    target: &'static str,
    /// As nfpm calls it.
    nfpm: &'static str,
    /// As images call it, with its variant.
    platform: &'static str,
}

const ARCHITECTURES: [Architecture; 3] = [
    Architecture {
        name: "amd64",
        target: "x86_64-unknown-linux-musl",
        nfpm: "amd64",
        platform: "linux/amd64",
    },
    Architecture {
        name: "arm64",
        target: "aarch64-unknown-linux-musl",
        nfpm: "arm64",
        platform: "linux/arm64",
    },
    Architecture {
        name: "armv7",
        target: "armv7-unknown-linux-musleabihf",
        nfpm: "arm7",
        platform: "linux/arm/v7",
    },
];

/// Builds the packages, and prints and writes their checksums.
pub(crate) fn build(arguments: &[&str]) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no repository")?;
    let (names, out) = match arguments {
        [names @ .., "--out", folder] => (names, PathBuf::from(folder)),
        names => (names, root.join("target/packages")),
    };
    make(&out)?;
    let out = out.canonicalize().map_err(|error| format!("{}: {error}", out.display()))?;
    let native =
        ARCHITECTURES.iter().find(|known| known.target.starts_with(std::env::consts::ARCH));
    let native = native.ok_or("this machine's architecture has no packages")?;
    let chosen = choose(names, native)?;
    let date = source_date(root)?;
    let runs = binary::build(root, native.target)?;
    let version = binary::version(&runs)?;
    let mut made = Vec::new();
    for architecture in chosen {
        let program = binary::build(root, architecture.target)?;
        let folder = out.join("stage").join(architecture.name);
        let stage = Stage {
            root,
            program: &program,
            native: &runs,
            target: architecture.target,
            folder: &folder,
        };
        stage.write(&date)?;
        let package = Package { out: &out, stage: &folder, architecture, version: &version };
        made.extend(package.make(&date)?);
    }
    let sums = run(Command::new("sha256sum").args(&made).current_dir(&out))?;
    write(&out.join("SHA256SUMS"), &sums, 0o644)?;
    print!("{sums}");
    Ok(())
}

/// Returns the architectures with these names, and this machine's if there are none.
fn choose(names: &[&str], native: &Architecture) -> Result<Vec<Architecture>, String> {
    if names.is_empty() {
        return Ok(vec![*native]);
    }
    let find = |name: &&str| ARCHITECTURES.iter().find(|known| known.name == *name).copied();
    names.iter().map(find).collect::<Option<_>>().ok_or_else(|| USAGE.into())
}

/// What the packages of one architecture are made of.
struct Package<'a> {
    out: &'a Path,
    stage: &'a Path,
    architecture: Architecture,
    version: &'a str,
}

impl Package<'_> {
    /// Makes all of them; returns their names.
    fn make(&self, date: &str) -> Result<Vec<String>, String> {
        let mut made = Vec::new();
        for format in ["deb", "rpm", "apk", "ipk"] {
            made.push(self.pack(format, date)?);
        }
        made.push(self.tarball(date)?);
        if Command::new("buildah").arg("--version").output().is_ok() {
            made.push(self.image(date)?);
        } else {
            eprintln!("no image: buildah is not installed");
        }
        Ok(made)
    }

    fn pack(&self, format: &str, date: &str) -> Result<String, String> {
        let name = format!("bentpipe_{}_{}.{format}", self.version, self.architecture.name);
        let mut nfpm = Command::new("nfpm");
        nfpm.args(["package", "--config", "packaging/nfpm.yaml", "--packager", format]);
        nfpm.arg("--target").arg(self.out.join(&name)).current_dir(self.stage);
        nfpm.env("SOURCE_DATE_EPOCH", date);
        nfpm.env("VERSION", self.version).env("ARCHITECTURE", self.architecture.nfpm);
        run(&mut nfpm).map_err(|error| {
            format!("{error}\nnfpm: go install github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2")
        })?;
        Ok(name)
    }

    fn tarball(&self, date: &str) -> Result<String, String> {
        let name = format!("bentpipe_{}_{}.tar", self.version, self.architecture.name);
        let tar = self.out.join(&name);
        tar_up(self.stage, &["usr"], &tar, date)?;
        run(Command::new("gzip").args(["-9", "-n", "-f"]).arg(&tar))?;
        Ok(format!("{name}.gz"))
    }

    fn image(&self, date: &str) -> Result<String, String> {
        let name = format!("bentpipe_{}_{}.oci.tar", self.version, self.architecture.name);
        let tag = format!("localhost/bentpipe:{}-{}", self.version, self.architecture.name);
        let buildah = || {
            let mut buildah = Command::new("buildah");
            buildah.args(["--storage-driver", "vfs"]).current_dir(self.stage);
            buildah
        };
        let mut build = buildah();
        build.args(["build", "--isolation", "chroot", "--timestamp", date, "--tag", &tag]);
        build.args(["--platform", self.architecture.platform]);
        run(build.args(["--file", "packaging/container/Containerfile", "."]))?;
        // As a folder, since an archive has the present time.
        let layout = self.stage.join("layout");
        let to = format!("oci:{}:{}", layout.display(), self.version);
        run(buildah().args(["push", &tag, &to]))?;
        let files = ["blobs", "index.json", "oci-layout"];
        tar_up(&layout, &files, &self.out.join(&name), date)?;
        Ok(name)
    }
}

/// Packs files of a folder, with the same order, owners, modes and dates each time.
fn tar_up(folder: &Path, files: &[&str], to: &Path, date: &str) -> Result<(), String> {
    run(Command::new("tar")
        .args(["--sort=name", "--format=gnu", "--owner=0", "--group=0", "--numeric-owner"])
        .args(["--mode=u+rwX,go+rX,go-w".to_owned(), format!("--mtime=@{date}")])
        .arg("-C")
        .arg(folder)
        .arg("-cf")
        .arg(to)
        .args(files))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_are_chosen_by_name() {
        let native = &ARCHITECTURES[0];
        assert_eq!(choose(&[], native), Ok(vec![*native]));
        assert_eq!(choose(&["armv7", "amd64"], native), Ok(vec![ARCHITECTURES[2], *native]));
        assert!(choose(&["mips"], native).is_err());
    }

    #[test]
    fn files_of_packages_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let config = std::fs::read_to_string(root.join("packaging/nfpm.yaml")).unwrap();
        let words = config.split_whitespace().map(|word| word.trim_end_matches(','));
        let named = words.filter(|word| word.starts_with("packaging/"));
        let missing: Vec<&str> = named.clone().filter(|file| !root.join(file).is_file()).collect();
        assert!(named.count() > 5 && missing.is_empty(), "{missing:?}");
    }
}
