//! Drop-ins of a hub's configuration: `hub.d/*.toml` beside `hub.toml`, each with `[[terminal]]`
//! tables, so that a site is added and removed as a file.

use super::ConfigError;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum number of files in the folder.
const MAX_FILES: usize = 10_000;

/// Drop-ins of one configuration.
#[derive(Debug, Default)]
pub(crate) struct DropIns {
    /// Whether there is a folder for them, which may be empty.
    pub(crate) exist: bool,
    /// In the order of their names.
    pub(crate) files: Vec<DropIn>,
}

/// One file.
#[derive(Debug)]
pub(crate) struct DropIn {
    /// Its path.
    pub(crate) file: String,
    /// Its content.
    pub(crate) text: String,
}

/// Returns the folder with the drop-ins of the configuration at `path`.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    path.with_extension("d")
}

impl DropIns {
    /// Reads the drop-ins of the configuration at `path`.
    ///
    /// # Errors
    /// If a file cannot be read, or there are more than 10,000.
    pub(crate) fn beside(path: &Path) -> Result<Self, ConfigError> {
        let folder = folder_of(path);
        let unreadable =
            |path: &Path, error: io::Error| ConfigError::unreadable(path, error.to_string());
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(Self::default());
            }
            Err(error) => return Err(unreadable(&folder, error)),
        };
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| unreadable(&folder, error))?.path();
            let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes()[0] == b'.');
            if path.extension().is_some_and(|end| end == "toml") && !hidden {
                paths.push(path);
            }
            if paths.len() > MAX_FILES {
                let found = format!("more than {MAX_FILES} files");
                return Err(ConfigError::unreadable(&folder, found));
            }
        }
        paths.sort();
        let read = |path: PathBuf| {
            let text = fs::read_to_string(&path).map_err(|error| unreadable(&path, error))?;
            Ok(DropIn { file: path.display().to_string(), text })
        };
        let files = paths.into_iter().map(read).collect::<Result<_, ConfigError>>()?;
        Ok(Self { exist: true, files })
    }
}
