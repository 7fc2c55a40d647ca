//! The text of a scenario file, with its names.

use crate::LabError;
use crate::files;
use std::path::{Path, PathBuf};

/// A scenario file.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// The name of the results' folder.
    pub(super) name: String,
    /// The name in messages.
    pub(super) file: String,
    /// The folder that files of traces are relative to.
    pub(super) folder: PathBuf,
    pub(super) text: String,
}

impl Source {
    /// Reads a file. The scenario has its name without the ending.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(path: &Path) -> Result<Self, LabError> {
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
        Ok(Self {
            name: name.unwrap_or_default(),
            file: path.display().to_string(),
            folder: path.parent().unwrap_or(Path::new("")).to_path_buf(),
            text: files::read(path)?,
        })
    }
}
