//! The files of packages, in a folder as they are on the system: the program, manual pages and
//! completions that it writes, units, and documentation with links as they are there.

use crate::binary;
use crate::files::{copy, list, make, run, write};
use crate::links;
use crate::pages::{self, Places};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Files, from where in the repository to where on the system, and their modes. Files in `/etc` and
/// scripts of packages are in `packaging/nfpm.yaml`.
const FILES: [(&str, &str, u32); 5] = [
    ("packaging/systemd/bentpipe@.service", "usr/lib/systemd/system/bentpipe@.service", 0o644),
    (
        "packaging/systemd/bentpipe-generator",
        "usr/lib/systemd/system-generators/bentpipe-generator",
        0o755,
    ),
    ("packaging/debian/hub.toml", "usr/share/doc/bentpipe/examples/hub.toml", 0o644),
    ("packaging/debian/terminal.toml", "usr/share/doc/bentpipe/examples/terminal.toml", 0o644),
    ("packaging/debian/copyright", "usr/share/doc/bentpipe/copyright", 0o644),
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

/// Programs and files of one architecture.
pub(crate) struct Stage<'a> {
    /// The repository.
    pub(crate) root: &'a Path,
    /// The program of the package.
    pub(crate) program: &'a Path,
    /// The same program for this machine, which writes manual pages and completions.
    pub(crate) native: &'a Path,
    /// The compiler's name of the architecture.
    pub(crate) target: &'a str,
    /// Where everything is written.
    pub(crate) folder: &'a Path,
}

impl Stage<'_> {
    /// Writes all files, with dates of `seconds` since 1970.
    pub(crate) fn write(&self, seconds: &str) -> Result<(), String> {
        if self.folder.exists() {
            let failed = |error| format!("{}: {error}", self.folder.display());
            fs::remove_dir_all(self.folder).map_err(failed)?;
        }
        for (from, to, mode) in FILES {
            copy(&self.root.join(from), &self.folder.join(to), mode)?;
        }
        copy(self.program, &self.folder.join("usr/bin/bentpipe"), 0o755)?;
        let documents = self.folder.join("usr/share/doc/bentpipe");
        self.document(&documents)?;
        let components = binary::components(self.root, self.target)?;
        write(&documents.join("bentpipe.cdx.json"), components, 0o644)?;
        self.generate()?;
        // With the dates of everything else.
        let (from, to) = (self.root.join("packaging"), self.folder.join("packaging"));
        run(Command::new("cp").arg("-r").args([&from, &to]))?;
        run(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&to))?;
        // For the image, which has nothing else: the user, and an empty folder.
        let (users, groups) = ("image/etc/passwd", "image/etc/group");
        write(&self.folder.join(users), "bentpipe:x:999:999::/:/sbin/nologin\n", 0o644)?;
        write(&self.folder.join(groups), "bentpipe:x:999:\n", 0o644)?;
        make(&self.folder.join("state"))?;
        let date = format!("--date=@{seconds}");
        run(Command::new("find").arg(self.folder).args(["-exec", "touch", &date, "{}", "+"]))?;
        Ok(())
    }

    /// Writes what the program generates from its arguments.
    fn generate(&self) -> Result<(), String> {
        let pages = self.folder.join("usr/share/man/man1");
        make(&pages)?;
        run(Command::new(self.native).arg("manual").arg(&pages))?;
        for page in list(&pages)? {
            run(Command::new("gzip").args(["-9", "-n"]).arg(&page))?;
        }
        for (shell, place) in [
            ("bash", "usr/share/bash-completion/completions/bentpipe"),
            ("zsh", "usr/share/zsh/vendor-completions/_bentpipe"),
            ("fish", "usr/share/fish/vendor_completions.d/bentpipe.fish"),
        ] {
            let text = run(Command::new(self.native).args(["completions", shell]))?;
            write(&self.folder.join(place), &text, 0o644)?;
        }
        Ok(())
    }

    /// Puts the documentation into its folder.
    fn document(&self, documents: &Path) -> Result<(), String> {
        let pages = PAGES.map(|(from, to)| (self.root.join(from), documents.join(to)));
        let mut files = Vec::from(pages);
        let mut places = Places::new();
        for (from, to) in FOLDERS {
            let (from, to) = (self.root.join(from), documents.join(to));
            for entry in list(&from)?.into_iter().filter(|entry| entry.is_file()) {
                let name = entry.file_name().unwrap_or_default().to_owned();
                files.push((entry, to.join(name)));
            }
            places.insert(from, to);
        }
        places.extend(files.iter().cloned());
        places.extend(FILES.map(|(from, to, _)| (self.root.join(from), self.folder.join(to))));
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
}
