//! Bundles: scenarios, what produced their results, and the results, in one archive.
//!
//! ```text
//!   bundle.json          versions, seeds, replications and replaced keys
//!   CITATION.cff
//!   NAME/scenario/       NAME.toml and the traces that it names
//!   NAME/results/        all files of the results, without the store
//! ```
//!
//! The archive is a tar file (ustar) whose entries are sorted and have time, owner and mode of no
//! machine, so equal results make equal archives.

use super::{Report, Source, compare, read, run};
use crate::LabError;
use crate::experiments::{Options, scenario_code};
use crate::files;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const CITATION: &str = include_str!("../../../../CITATION.cff");
/// Version of the layout.
const FORMAT: u32 = 1;
/// File with the inputs.
const CONTENT: &str = "bundle.json";

/// `bundle.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Content {
    format: u32,
    version: String,
    /// Hash of the code that the results depend on.
    code: String,
    scenarios: Vec<Bundled>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Bundled {
    name: String,
    seed: u64,
    replications: u32,
    set: Vec<String>,
}

/// The inputs in `run.json`.
#[derive(Deserialize)]
struct Ran {
    seed: u64,
    replications: u32,
}

/// What a repetition found.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// Number of files with the same octets.
    pub same: usize,
    /// Files that differ, or that only one side has.
    pub different: Vec<String>,
    /// The result in words.
    pub text: String,
}

/// A folder that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, LabError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bentpipe-bundle-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).map_err(|source| LabError::File { path: path.clone(), source })?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What remains is in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs scenario files as [`run`] does and writes them with their results to `archive`; returns
/// whether all criteria are met.
///
/// # Errors
/// If a run fails, two files have one name, a trace is not in or below the folder of its file, or a
/// file cannot be read or written.
pub fn bundle(
    paths: &[PathBuf],
    options: &Options,
    seed: Option<u64>,
    archive: &Path,
) -> Result<bool, LabError> {
    if options.shard.is_some() {
        return wrong("--shard: found it with bundle, expected whole results".to_owned());
    }
    let scratch = Scratch::new()?;
    let mut entries: BTreeMap<String, PathBuf> = BTreeMap::new();
    let (mut scenarios, mut all_met) = (Vec::new(), true);
    for path in paths {
        let source = Source::read(path)?;
        let name = source.name.clone();
        if scenarios.iter().any(|known: &Bundled| known.name == name) {
            return wrong(format!("{}: found a second file {name}", path.display()));
        }
        let traces = read(&source, &options.set)?.traces;
        run(&source, options, seed)?;
        // Once more in an empty folder, which has no files of other settings.
        let store = scratch.0.join(&name).join("store");
        for file in files::listed(&options.out.join(&name).join("store"))? {
            copy(&file, &store.join(file.file_name().unwrap_or_default()))?;
        }
        let clean = Options { out: scratch.0.clone(), ..options.clone() };
        let Report::Whole { folder, met, .. } = run(&source, &clean, seed)? else {
            return wrong(format!("{name}: found missing jobs, expected none"));
        };
        all_met &= met;
        for file in below(&folder)?.into_iter().filter(|file| !file.starts_with("store/")) {
            entries.insert(format!("{name}/results/{file}"), folder.join(&file));
        }
        entries.insert(format!("{name}/scenario/{name}.toml"), path.clone());
        for trace in traces {
            if !is_below(Path::new(&trace)) {
                let expected = "a file in or below the folder of the scenario";
                let file = path.display();
                return wrong(format!("{file}: found the trace {trace:?}, expected {expected}"));
            }
            entries.insert(format!("{name}/scenario/{trace}"), source.folder.join(&trace));
        }
        let ran: Ran = parsed(&folder.join("run.json"))?;
        let Ran { seed, replications } = ran;
        scenarios.push(Bundled { name, seed, replications, set: options.set.clone() });
    }
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let content = Content { format: FORMAT, version, code: scenario_code(), scenarios };
    let text = serde_json::to_string_pretty(&content).map_err(|error| request(CONTENT, &error))?;
    for (name, text) in [(CONTENT, text + "\n"), ("CITATION.cff", CITATION.to_owned())] {
        let path = scratch.0.join(format!("{name}.text"));
        files::write_whole(&path, text.as_bytes())?;
        entries.insert(name.to_owned(), path);
    }
    pack(&entries, archive)?;
    Ok(all_met)
}

/// Runs the scenarios of an archive again, with `jobs` threads, and compares all files of the
/// results.
///
/// # Errors
/// If the archive is no bundle, or a run fails.
pub fn verify(archive: &Path, jobs: Option<usize>) -> Result<Checked, LabError> {
    let scratch = Scratch::new()?;
    let (there, again) = (scratch.0.join("bundle"), scratch.0.join("again"));
    unpack(archive, &there)?;
    let content: Content = parsed(&there.join(CONTENT))?;
    if content.format != FORMAT {
        let found = content.format;
        return wrong(format!("{CONTENT}: found the format {found}, expected {FORMAT}"));
    }
    let mut checked = Checked { same: 0, different: Vec::new(), text: String::new() };
    let ours = (env!("CARGO_PKG_VERSION"), scenario_code());
    if (content.version.as_str(), &content.code) != (ours.0, &ours.1) {
        let Content { version, code, .. } = &content;
        let _ = writeln!(
            checked.text,
            "made by version {version}, code {code}; this is version {}, code {}",
            ours.0, ours.1
        );
    }
    for Bundled { name, seed, replications, set } in &content.scenarios {
        if !is_below(Path::new(name)) {
            return wrong(format!("{CONTENT}: found the name {name:?}, expected one of a file"));
        }
        let file = there.join(name).join("scenario").join(format!("{name}.toml"));
        let source = Source { file: format!("{name}.toml"), ..Source::read(&file)? };
        let replications = Some(*replications);
        let options = Options { replications, set: set.clone(), jobs, ..Options::new(&again) };
        run(&source, &options, Some(*seed))?;
        let folders = [there.join(name).join("results"), again.join(name)];
        checked.compare(name, &folders)?;
    }
    let Checked { same, different, text } = &mut checked;
    let _ = writeln!(text, "{same} files are the same, {} differ", different.len());
    for file in different {
        let _ = writeln!(text, "  {file}");
    }
    Ok(checked)
}

impl Checked {
    /// Compares the results `name` in the archive with those of the repetition.
    fn compare(&mut self, name: &str, folders: &[PathBuf; 2]) -> Result<(), LabError> {
        let [one, other] = folders;
        let mut all = below(one)?;
        all.extend(below(other)?.into_iter().filter(|file| !file.starts_with("store/")));
        all.sort();
        all.dedup();
        for file in all {
            match fs::read(one.join(&file)).ok() == fs::read(other.join(&file)).ok() {
                true => self.same += 1,
                false => self.different.push(format!("{name}/results/{file}")),
            }
        }
        if self.different.contains(&format!("{name}/results/runs.csv")) {
            let table = compare(one, other)?;
            let table = table.split_once("\n\n").map_or("", |parts| parts.1);
            let _ = writeln!(self.text, "A: {name} in the archive, B: the repetition\n\n{table}");
        }
        Ok(())
    }
}

fn pack(entries: &BTreeMap<String, PathBuf>, archive: &Path) -> Result<(), LabError> {
    let mut part = archive.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let failed = |source| LabError::File { path: archive.to_path_buf(), source };
    let mut tar = tar::Builder::new(File::create(&part).map_err(failed)?);
    for (name, path) in entries {
        let failed = |source| LabError::File { path: path.clone(), source };
        let file = File::open(path).map_err(failed)?;
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_size(file.metadata().map_err(failed)?.len());
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        tar.append_data(&mut header, name, BufReader::new(file)).map_err(failed)?;
    }
    tar.into_inner().and_then(|file| file.sync_all()).map_err(failed)?;
    fs::rename(&part, archive).map_err(failed)
}

/// Unpacks regular files only, none outside of `folder`.
fn unpack(archive: &Path, folder: &Path) -> Result<(), LabError> {
    let failed = |source| LabError::File { path: archive.to_path_buf(), source };
    let mut tar = tar::Archive::new(BufReader::new(File::open(archive).map_err(failed)?));
    for entry in tar.entries().map_err(failed)? {
        let mut entry = entry.map_err(failed)?;
        let name = entry.path().map_err(failed)?.into_owned();
        if entry.header().entry_type() != tar::EntryType::Regular || !is_below(&name) {
            let (archive, name) = (archive.display(), name.display());
            return wrong(format!("{archive}: found {name}, expected files below the folder"));
        }
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        io::copy(&mut entry, &mut File::create(path).map_err(failed)?).map_err(failed)?;
    }
    Ok(())
}

fn is_below(path: &Path) -> bool {
    let mut parts = path.components();
    path.file_name().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// All files below a folder, with their paths in it.
fn below(folder: &Path) -> Result<Vec<String>, LabError> {
    let mut all = Vec::new();
    for path in files::listed(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match path.is_dir() {
            true => all.extend(below(&path)?.into_iter().map(|file| format!("{name}/{file}"))),
            false => all.push(name),
        }
    }
    Ok(all)
}

fn copy(from: &Path, to: &Path) -> Result<(), LabError> {
    let failed = |source| LabError::File { path: from.to_path_buf(), source };
    files::write_whole(to, &fs::read(from).map_err(failed)?)
}

fn parsed<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, LabError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    serde_json::from_str(&files::read(path)?).map_err(|error| request(&name, &error))
}

fn request(name: &str, error: &serde_json::Error) -> LabError {
    LabError::Request(format!("{name}: {error}"))
}

fn wrong<T>(message: String) -> Result<T, LabError> {
    Err(LabError::Request(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "duration = 4\nreplications = 2\n[links]\n\
        a-b = { rate = \"1mbit\", delay = \"50ms\", loss = \"1%\", trace = \"courses/c.csv\" }\n\
        [traffic.file]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n\
        [record]\nseries = \"1s\"\ncapture = [\"a-b\"]\n";

    #[test]
    fn bundles_repeat_octet_for_octet_and_show_changes() {
        let scratch = Scratch::new().unwrap();
        let at = |name: &str| scratch.0.join(name);
        files::write_whole(&at("courses/c.csv"), b"time_s,delay_ms\n0,50\n1,60\n").unwrap();
        files::write_whole(&at("small.toml"), TEXT.as_bytes()).unwrap();
        let paths = [at("small.toml")];
        let options = Options { set: vec!["links.a-b.loss=2%".into()], ..Options::new(at("out")) };
        for name in ["one.tar", "two.tar"] {
            assert!(bundle(&paths, &options, Some(7), &at(name)).unwrap());
        }
        let read = |name: &str| fs::read(at(name)).unwrap();
        assert!(read("one.tar") == read("two.tar"), "the second one has stored results");
        let checked = verify(&at("one.tar"), Some(1)).unwrap();
        assert_eq!(checked.different, [""; 0], "{}", checked.text);
        assert!(checked.same > 8, "{}", checked.text);

        // A changed value is found, and shown.
        unpack(&at("one.tar"), &at("changed")).unwrap();
        let runs = at("changed/small/results/runs.csv");
        let text = files::read(&runs).unwrap().replace(",0.", ",0.1");
        files::write_whole(&runs, text.as_bytes()).unwrap();
        let names = below(&at("changed")).unwrap().into_iter();
        let entries = names.map(|name| (name.clone(), at("changed").join(name))).collect();
        pack(&entries, &at("changed.tar")).unwrap();
        let checked = verify(&at("changed.tar"), None).unwrap();
        assert_eq!(checked.different, ["small/results/runs.csv"]);
        assert!(checked.text.contains("| differs |") || checked.text.contains("chance"));
    }

    #[test]
    fn archives_with_other_paths_are_rejected() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.0.join("evil.tar");
        let mut header = tar::Header::new_ustar();
        header.as_mut_bytes()[..9].copy_from_slice(b"../escape");
        header.set_size(1);
        header.set_cksum();
        let mut tar = tar::Builder::new(File::create(&path).unwrap());
        tar.append(&header, &b"x"[..]).unwrap();
        tar.into_inner().unwrap();
        let error = verify(&path, None).unwrap_err().to_string();
        assert!(error.contains("../escape"), "{error}");
    }

    #[test]
    fn scenarios_with_names_of_other_folders_are_rejected() {
        let scratch = Scratch::new().unwrap();
        let (content, archive) = (scratch.0.join(CONTENT), scratch.0.join("a.tar"));
        let text = "{\"format\": 1, \"version\": \"\", \"code\": \"\", \"scenarios\": [
            {\"name\": \"../x\", \"seed\": 1, \"replications\": 1, \"set\": []}]}";
        fs::write(&content, text).unwrap();
        pack(&BTreeMap::from([(CONTENT.to_owned(), content)]), &archive).unwrap();
        let error = verify(&archive, None).unwrap_err().to_string();
        assert_eq!(error, "bundle.json: found the name \"../x\", expected one of a file");
    }

    #[test]
    fn citation_has_the_version_of_the_program() {
        let line = format!("\nversion: {}\n", env!("CARGO_PKG_VERSION"));
        assert!(CITATION.contains(&line), "CITATION.cff lacks {line}");
    }
}
