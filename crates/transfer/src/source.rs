//! The files that are sent.

use crate::wire::{Kind, MAX_PATH};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata, ReadDir};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum depth of folders.
const MAX_DEPTH: usize = 62;

/// A path that cannot be sent.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct SourceError {
    /// The path.
    pub path: PathBuf,
    /// Why not.
    pub reason: String,
}

/// The content of one entry.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Folder,
    File(PathBuf),
    Input,
}

/// A file or folder that was found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Its path at the receiver.
    pub(crate) path: Vec<u8>,
    pub(crate) content: Content,
    pub(crate) mode: u16,
    pub(crate) mtime: (i64, u32),
    /// `None` if it is not known.
    pub(crate) size: Option<u64>,
}

impl Found {
    pub(crate) fn kind(&self) -> Kind {
        match self.content {
            Content::Folder => Kind::Folder,
            Content::File(_) | Content::Input => Kind::File,
        }
    }
}

/// Files and folders to send, or an input.
pub struct Source {
    /// Paths here, and their names at the receiver.
    paths: Vec<(PathBuf, Vec<u8>)>,
    input: Option<(Box<dyn Read>, Vec<u8>)>,
}

impl Source {
    /// Creates a source of files and folders; each keeps its last name at the receiver.
    ///
    /// # Errors
    /// If a path does not exist or has no name.
    pub fn paths(paths: &[PathBuf]) -> Result<Self, SourceError> {
        let named = |path: &PathBuf| {
            let error = |reason: String| SourceError { path: path.clone(), reason };
            let whole = fs::canonicalize(path).map_err(|source| error(source.to_string()))?;
            let name = path.file_name().or(whole.file_name()).map(OsStr::as_bytes);
            let name = name.ok_or_else(|| error("it has no name".to_owned()))?.to_vec();
            Ok((whole, name))
        };
        Ok(Self { paths: paths.iter().map(named).collect::<Result<_, _>>()?, input: None })
    }

    /// Creates a source of one file of unknown size, called `name` at the receiver. It cannot be
    /// sent twice.
    pub fn input(input: impl Read + 'static, name: &str) -> Self {
        Self { paths: Vec::new(), input: Some((Box::new(input), name.as_bytes().to_vec())) }
    }

    /// Returns the number of files and their octets; errors are those of the transfer.
    pub fn total(&self) -> (u64, u64) {
        let found = self.walk().filter_map(Result::ok).filter_map(|found| found.size);
        found.fold((0, 0), |(files, octets), size| (files + 1, octets + size))
    }

    /// Returns whether the transfer can be started again.
    pub fn is_repeatable(&self) -> bool {
        self.input.is_none()
    }

    /// Takes the input.
    pub(crate) fn take_input(&mut self) -> Option<Box<dyn Read>> {
        self.input.take().map(|(input, _)| input)
    }

    pub(crate) fn walk(&self) -> Walk {
        let input = self.input.as_ref().map(|(_, name)| Found {
            path: name.clone(),
            content: Content::Input,
            mode: 0o644,
            mtime: (0, 0),
            size: None,
        });
        Walk { paths: self.paths.iter().cloned().collect(), input, folders: Vec::new() }
    }
}

/// Finds files and folders, one after another: the memory depends on the depth only.
pub(crate) struct Walk {
    paths: VecDeque<(PathBuf, Vec<u8>)>,
    input: Option<Found>,
    folders: Vec<(ReadDir, Vec<u8>)>,
}

impl Walk {
    fn inspect(&mut self, path: PathBuf, name: Vec<u8>) -> Result<Option<Found>, SourceError> {
        let refuse = |path: &Path, reason: &str| {
            Err(SourceError { path: path.into(), reason: reason.to_owned() })
        };
        if name.len() > MAX_PATH {
            return refuse(&path, "its path is too long");
        }
        let failed =
            |source: io::Error| SourceError { path: path.clone(), reason: source.to_string() };
        let metadata = fs::symlink_metadata(&path).map_err(failed)?;
        let kind = metadata.file_type();
        if kind.is_dir() {
            if self.folders.len() == MAX_DEPTH {
                return refuse(&path, "it is too deep");
            }
            let folder = fs::read_dir(&path).map_err(failed)?;
            self.folders.push((folder, name.clone()));
            return Ok(Some(found(name, Content::Folder, &metadata)));
        }
        if kind.is_symlink() {
            return refuse(&path, "symbolic links are not sent");
        }
        if !kind.is_file() {
            return refuse(&path, "only files and folders are sent");
        }
        Ok(Some(found(name, Content::File(path), &metadata)))
    }
}

fn found(path: Vec<u8>, content: Content, metadata: &Metadata) -> Found {
    let size = if metadata.is_dir() { 0 } else { metadata.len() };
    Found { path, content, mode: metadata.mode() as u16, mtime: mtime(metadata), size: Some(size) }
}

fn mtime(metadata: &Metadata) -> (i64, u32) {
    (metadata.mtime(), metadata.mtime_nsec() as u32)
}

/// Returns whether the open file has the size and time with which it was found.
pub(crate) fn is_unchanged(file: &File, found: &Found) -> io::Result<bool> {
    let metadata = file.metadata()?;
    Ok(Some(metadata.len()) == found.size && mtime(&metadata) == found.mtime)
}

impl Iterator for Walk {
    type Item = Result<Found, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(input) = self.input.take() {
            return Some(Ok(input));
        }
        loop {
            let Some((folder, name)) = self.folders.last_mut() else {
                let (path, name) = self.paths.pop_front()?;
                return self.inspect(path, name).transpose();
            };
            match folder.next() {
                None => {
                    self.folders.pop();
                }
                Some(Ok(entry)) => {
                    let mut whole = name.clone();
                    whole.push(b'/');
                    whole.extend(entry.file_name().as_bytes());
                    return self.inspect(entry.path(), whole).transpose();
                }
                Some(Err(error)) => {
                    let path = PathBuf::from(OsStr::from_bytes(name));
                    self.folders.pop();
                    return Some(Err(SourceError { path, reason: error.to_string() }));
                }
            }
        }
    }
}
