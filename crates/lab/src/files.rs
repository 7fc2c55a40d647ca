//! Atomic file writes, folder listings and CSV.

use crate::LabError;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Writes a file atomically: to `PATH.part` and then by renaming. Creates the parent folder.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> Result<(), LabError> {
    let failed = failed(path);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(&failed)?;
    }
    write_part(path, content).map_err(&failed)
}

/// Writes a file atomically in an existing folder.
pub(crate) fn write_part(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    fs::write(&part, content)?;
    fs::rename(&part, path)
}

/// Returns the content of a text file.
pub(crate) fn read(path: &Path) -> Result<String, LabError> {
    fs::read_to_string(path).map_err(failed(path))
}

/// Returns the entries of a folder, sorted by name.
pub(crate) fn listed(folder: &Path) -> Result<Vec<PathBuf>, LabError> {
    let failed = failed(folder);
    let entries = fs::read_dir(folder).map_err(&failed)?;
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(&failed)?.path());
    }
    paths.sort();
    Ok(paths)
}

/// Returns the subfolders of a folder, sorted by name.
pub(crate) fn folders(folder: &Path) -> Result<Vec<PathBuf>, LabError> {
    Ok(listed(folder)?.into_iter().filter(|path| path.is_dir()).collect())
}

fn failed(path: &Path) -> impl Fn(io::Error) -> LabError + '_ {
    |source| LabError::File { path: path.to_path_buf(), source }
}

/// Formats rows as comma-separated values, quoted where necessary (RFC 4180).
pub(crate) fn csv(head: &[String], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let quoted = |word: &String| match word.contains([',', '"', '\n']) {
        true => format!("\"{}\"", word.replace('"', "\"\"")),
        false => word.clone(),
    };
    let line = |words: &[String]| words.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n";
    let mut text = line(head);
    for row in rows {
        text += &line(&row);
    }
    text
}
