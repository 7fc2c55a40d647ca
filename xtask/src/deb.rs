//! The Debian package: `cargo run -p xtask -- deb [--binary FILE] [--out DIR]`.
//!
//! Everything is staged as it will lie on the system, and packed by `dpkg-deb`. Manual pages and
//! completions are what the binary itself writes. Two builds of one commit are the same octets: the
//! program has no path of this machine, and all dates are that of the commit.

use crate::binary::{self, Linkage};
use crate::files::{copy, list, make, run, size_of, source_date, write};
use crate::links;
use crate::pages::{self, Places};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files of the package, from where in the repository, and how they may be used. (The folder of the
/// configurations is for root and the gateway only; `postinst` sees to it.)
pub(crate) const FILES: [(&str, &str, u32); 9] = [
    ("packaging/systemd/bentpipe@.service", "usr/lib/systemd/system/bentpipe@.service", 0o644),
    (
        "packaging/systemd/bentpipe-generator",
        "usr/lib/systemd/system-generators/bentpipe-generator",
        0o755,
    ),
    ("packaging/debian/hub.toml", "etc/bentpipe/hub.toml", 0o644),
    ("packaging/debian/terminal.toml", "etc/bentpipe/terminal.toml", 0o644),
    ("packaging/debian/bentpipe.default", "etc/default/bentpipe", 0o644),
    ("packaging/debian/copyright", "usr/share/doc/bentpipe/copyright", 0o644),
    ("packaging/debian/postinst", "DEBIAN/postinst", 0o755),
    ("packaging/debian/prerm", "DEBIAN/prerm", 0o755),
    ("packaging/debian/postrm", "DEBIAN/postrm", 0o755),
];

/// Pages that go with the documentation, and where.
const PAGES: [(&str, &str); 7] = [
    ("README.md", "README.md"),
    ("SECURITY.md", "SECURITY.md"),
    ("docs/compatibility.md", "compatibility.md"),
    ("docs/measurements.md", "measurements.md"),
    ("CHANGELOG.md", "CHANGELOG.md"),
    ("ARCHITECTURE.md", "ARCHITECTURE.md"),
    ("docs/reliability.md", "reliability.md"),
];

/// Folders whose files do, and where; what pages refer to in each other is found there.
const FOLDERS: [(&str, &str); 9] = [
    ("docs/guide", "guide"),
    ("docs/spec", "spec"),
    ("docs/decisions", "decisions"),
    ("docs/results", "results"),
    ("docs/images", "images"),
    ("packaging/container", "examples/container"),
    ("contrib/grafana", "examples/grafana"),
    ("contrib/prometheus", "examples/prometheus"),
    ("contrib/wireshark", "examples/wireshark"),
];

/// Shared libraries that the program may need, and the packages that they are in.
const LIBRARIES: [(&str, &str); 6] = [
    ("libc.so.6", "libc6"),
    ("libm.so.6", "libc6"),
    ("libpthread.so.0", "libc6"),
    ("libdl.so.2", "libc6"),
    ("ld-linux", "libc6"),
    ("libgcc_s.so.1", "libgcc-s1"),
];

/// Builds the package; tells where it is.
pub(crate) fn build(arguments: &[&str]) -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no repository")?;
    let (mut binary, mut out) = (None, root.join("target/debian"));
    for pair in arguments.chunks(2) {
        match pair {
            ["--binary", file] => binary = Some(PathBuf::from(file)),
            ["--out", folder] => out = PathBuf::from(folder),
            _ => return Err("usage: cargo run -p xtask -- deb [--binary FILE] [--out DIR]".into()),
        }
    }
    let binary = match binary {
        Some(binary) => binary,
        None => binary::build(root, Linkage::Dynamic)?,
    };
    let version = &binary::version(&binary)?;
    let architecture = run(Command::new("dpkg").arg("--print-architecture"))?;
    let architecture = architecture.trim();
    let stage = out.join("stage");
    if stage.exists() {
        fs::remove_dir_all(&stage).map_err(|error| format!("{}: {error}", stage.display()))?;
    }
    for (from, to, mode) in FILES {
        copy(&root.join(from), &stage.join(to), mode)?;
    }
    lay_out(root, &binary, &stage)?;
    let headers = run(Command::new("objdump").arg("-p").arg(stage.join("usr/bin/bentpipe")))?;
    write_control(&stage, version, architecture, &depends(&headers)?)?;
    let package = out.join(format!("bentpipe_{version}_{architecture}.deb"));
    let mut pack = Command::new("dpkg-deb");
    // The result of several threads depends on their number.
    pack.env("SOURCE_DATE_EPOCH", source_date(root)?).env("DPKG_DEB_THREADS_MAX", "1");
    run(pack.args(["-Zxz", "--root-owner-group", "--build"]).args([&stage, &package]))?;
    Ok(package)
}

/// Puts the program and its documentation where they will be.
pub(crate) fn lay_out(root: &Path, binary: &Path, stage: &Path) -> Result<(), String> {
    let program = stage.join("usr/bin/bentpipe");
    copy(binary, &program, 0o755)?;
    run(Command::new("strip").args(["--strip-unneeded"]).arg(&program))?;
    let documents = stage.join("usr/share/doc/bentpipe");
    document(root, stage, &documents)?;
    write(&documents.join("dependencies.txt"), binary::dependencies(root)?, 0o644)?;
    let pages = stage.join("usr/share/man/man1");
    make(&pages)?;
    run(Command::new(&program).arg("manual").arg(&pages))?;
    for page in list(&pages)? {
        run(Command::new("gzip").args(["-9", "-n"]).arg(&page))?;
    }
    for (shell, place) in [
        ("bash", "usr/share/bash-completion/completions/bentpipe"),
        ("zsh", "usr/share/zsh/vendor-completions/_bentpipe"),
        ("fish", "usr/share/fish/vendor_completions.d/bentpipe.fish"),
    ] {
        let text = run(Command::new(&program).args(["completions", shell]))?;
        write(&stage.join(place), &text, 0o644)?;
    }
    Ok(())
}

/// Puts the documentation into its folder.
fn document(root: &Path, stage: &Path, documents: &Path) -> Result<(), String> {
    let pages = PAGES.map(|(from, to)| (root.join(from), documents.join(to)));
    let mut files = Vec::from(pages);
    let mut places = Places::new();
    for (from, to) in FOLDERS {
        let (from, to) = (root.join(from), documents.join(to));
        for entry in list(&from)?.into_iter().filter(|entry| entry.is_file()) {
            let name = entry.file_name().unwrap_or_default().to_owned();
            files.push((entry, to.join(name)));
        }
        places.insert(from, to);
    }
    places.extend(files.iter().cloned());
    places.extend(FILES.map(|(from, to, _)| (root.join(from), stage.join(to))));
    for (from, to) in &files {
        if from.extension().is_some_and(|end| end == "md") {
            let failed = |error: std::io::Error| format!("{}: {error}", from.display());
            let text = fs::read_to_string(from).map_err(failed)?;
            write(to, pages::moved(&text, from, &places), 0o644)?;
        } else {
            copy(from, to, 0o644)?;
        }
    }
    for page in links::pages_in(documents, true)? {
        if let (_, Some(broken)) =
            links::broken_links(&page).map(|(n, all)| (n, all.first().cloned()))?
        {
            return Err(format!("{}:{broken}", page.display()));
        }
    }
    Ok(())
}

/// The packages that the program needs, by the libraries and the versions of their symbols that its
/// headers ask for, as `objdump -p` prints them.
fn depends(headers: &str) -> Result<String, String> {
    let mut packages = std::collections::BTreeSet::new();
    let needed = headers.lines().filter_map(|line| line.trim().strip_prefix("NEEDED"));
    for library in needed.map(str::trim) {
        let known = LIBRARIES.iter().find(|(name, _)| library.starts_with(name));
        let (_, package) = known.ok_or_else(|| format!("{library}: in which package is that?"))?;
        packages.insert(*package);
    }
    // 0x069691b4 0x00 14 GLIBC_2.34
    let version = |line: &str| {
        let (major, minor) =
            line.split_whitespace().last()?.strip_prefix("GLIBC_")?.split_once('.')?;
        // A third number never made a difference to a package.
        Some((major.parse::<u32>().ok()?, minor.split('.').next()?.parse::<u32>().ok()?))
    };
    let newest = headers.lines().filter_map(version).max();
    if packages.contains("libc6") && newest.is_none() {
        return Err("objdump names no version of a symbol of glibc".into());
    }
    let with_version = |package: &str| match newest {
        Some((major, minor)) if package == "libc6" => format!("libc6 (>= {major}.{minor})"),
        _ => package.to_owned(),
    };
    let all: Vec<String> = packages.iter().map(|package| with_version(package)).collect();
    Ok(all.join(", "))
}

fn write_control(
    stage: &Path,
    version: &str,
    architecture: &str,
    libraries: &str,
) -> Result<(), String> {
    let kilobytes = size_of(&stage.join("usr"))?.div_ceil(1024);
    let control = format!(
        "Package: bentpipe\n\
         Version: {version}\n\
         Architecture: {architecture}\n\
         Maintainer: The bentpipe authors <bentpipe@bentpipe.invalid>\n\
         Installed-Size: {kilobytes}\n\
         Depends: {libraries}, adduser\n\
         Recommends: systemd\n\
         Section: net\n\
         Priority: optional\n\
         Description: ordinary TCP over satellite links, by XSTP\n \
         Two gateways, one at the user's terminal and one at the hub, take TCP connections, carry\n \
         them over the satellite by XSTP, and hand them on as TCP.\n"
    );
    write(&stage.join("DEBIAN/control"), &control, 0o644)?;
    let conffiles: String = FILES
        .iter()
        .filter(|(_, to, _)| to.starts_with("etc/"))
        .map(|(_, to, _)| format!("/{to}\n"))
        .collect();
    write(&stage.join("DEBIAN/conffiles"), &conffiles, 0o644)?;
    let find = "find usr -type f -print0 | sort -z | xargs -0 md5sum";
    let sums = run(Command::new("sh").args(["-c", find]).current_dir(stage))?;
    write(&stage.join("DEBIAN/md5sums"), &sums, 0o644)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_needs_is_read_from_itself() {
        let headers = "Dynamic Section:\n  NEEDED               libgcc_s.so.1\n\
                       \x20 NEEDED               libm.so.6\n  NEEDED               libc.so.6\n\
                       \x20 NEEDED               ld-linux-x86-64.so.2\n\nVersion References:\n\
                       \x20 required from libc.so.6:\n    0x09691a75 0x00 03 GLIBC_2.2.5\n\
                       \x20   0x069691b9 0x00 05 GLIBC_2.39\n    0x069691b4 0x00 04 GLIBC_2.9\n\
                       \x20 required from libgcc_s.so.1:\n    0x0b792650 0x00 02 GCC_3.0\n";
        assert_eq!(depends(headers).as_deref(), Ok("libc6 (>= 2.39), libgcc-s1"));
        let more = headers.replace("libm.so.6", "libssl.so.3");
        assert!(depends(&more).is_err_and(|error| error.contains("libssl.so.3")));
        let none = headers.replace("GLIBC_", "OTHER_");
        assert!(depends(&none).is_err(), "no version");
    }
}
