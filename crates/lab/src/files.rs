//! Files, whole or not at all.

use crate::LabError;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Writes a whole file or none: first beside it, then in its place. Makes its folder.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> Result<(), LabError> {
    let failed = failed(path);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(&failed)?;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    fs::write(&beside, content).map_err(&failed)?;
    fs::rename(&beside, path).map_err(&failed)
}

/// The text of a file.
pub(crate) fn read(path: &Path) -> Result<String, LabError> {
    fs::read_to_string(path).map_err(failed(path))
}

/// What a folder holds, in the order of names.
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

/// The folders in a folder, in the order of names.
pub(crate) fn folders(folder: &Path) -> Result<Vec<PathBuf>, LabError> {
    Ok(listed(folder)?.into_iter().filter(|path| path.is_dir()).collect())
}

fn failed(path: &Path) -> impl Fn(io::Error) -> LabError + '_ {
    |source| LabError::File { path: path.to_path_buf(), source }
}

/// Rows as comma-separated values, quoted where needed.
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
