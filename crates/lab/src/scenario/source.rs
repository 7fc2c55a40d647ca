//! Where the text of a scenario comes from.

use crate::LabError;
use crate::files;
use std::path::{Path, PathBuf};

/// The text of a scenario: a file, or what a program has made.
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

    /// A scenario without a file. Files of traces are relative to `folder`; `<NAME>` stands for the
    /// file in messages.
    ///
    /// # Errors
    /// If `name` is not that of a folder: letters, digits, dashes, dots and underscores.
    pub fn new(
        name: &str,
        folder: impl Into<PathBuf>,
        text: impl Into<String>,
    ) -> Result<Self, LabError> {
        let fits = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(fits) {
            let expected = "letters, digits, dashes, dots and underscores";
            return Err(LabError::Request(format!("name: found {name:?}, expected {expected}")));
        }
        let file = format!("<{name}>");
        Ok(Self { name: name.to_owned(), file, folder: folder.into(), text: text.into() })
    }
}
