//! Paths that a peer may name.

use crate::wire::MAX_PATH;
use core::fmt;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Maximum number of names in a path.
const MAX_DEPTH: usize = 64;
/// Maximum octets of a name, as in common file systems.
const MAX_NAME: usize = 255;

/// A relative path inside a folder: names that are not empty, not `.` and not `..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SafePath {
    names: Vec<OsString>,
}

/// Why a path is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathError {
    /// It begins with `/`.
    Absolute,
    /// It has a name `.` or `..`.
    Dots,
    /// It has an empty name, or an octet 0.
    Name,
    /// It, or a name, is too long, or it has too many names.
    Long,
    /// It is that of the folder for incomplete files.
    Reserved,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Absolute => "the path is absolute",
            Self::Dots => "the path leads out of the folder",
            Self::Name => "the path has an empty or invalid name",
            Self::Long => "the path is too long",
            Self::Reserved => "the path is that of incomplete files",
        })
    }
}

impl std::error::Error for PathError {}

impl SafePath {
    /// Checks a path of the peer.
    ///
    /// # Errors
    /// If it could lead out of the folder, or no file system has it.
    pub fn new(path: &[u8]) -> Result<Self, PathError> {
        if path.first() == Some(&b'/') {
            return Err(PathError::Absolute);
        }
        if path.len() > MAX_PATH {
            return Err(PathError::Long);
        }
        let mut names = Vec::new();
        for name in path.split(|&octet| octet == b'/') {
            match name {
                b"." | b".." => return Err(PathError::Dots),
                b"" => return Err(PathError::Name),
                _ if name.contains(&0) => return Err(PathError::Name),
                _ if name.len() > MAX_NAME || names.len() == MAX_DEPTH => {
                    return Err(PathError::Long);
                }
                _ => names.push(OsString::from_vec(name.to_vec())),
            }
        }
        if names.first().is_some_and(|name| name == crate::folder::PARTIAL) {
            return Err(PathError::Reserved);
        }
        Ok(Self { names })
    }

    /// Returns the folders, and the last name.
    pub(crate) fn split(&self) -> (&[OsString], &OsStr) {
        let (last, folders) = self.names.split_last().expect("a path has a name");
        (folders, last)
    }
}

impl fmt::Display for SafePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.names.iter().enumerate() {
            let separator = if at == 0 { "" } else { "/" };
            let name = String::from_utf8_lossy(name.as_bytes());
            write!(f, "{separator}{}", name.escape_debug())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TRF-4.1
    #[test]
    fn paths_out_of_the_folder_are_refused() {
        let long = [b'a'; 256];
        let deep = [&b"a/".repeat(64)[..], b"a"].concat();
        for (path, error) in [
            (&b"/etc/passwd"[..], PathError::Absolute),
            (b"../x", PathError::Dots),
            (b"a/../../x", PathError::Dots),
            (b"./x", PathError::Dots),
            (b"", PathError::Name),
            (b"a//b", PathError::Name),
            (b"a/", PathError::Name),
            (b"a\0b", PathError::Name),
            (&long, PathError::Long),
            (&deep, PathError::Long),
            (b".bentpipe-partial/x", PathError::Reserved),
        ] {
            assert_eq!(SafePath::new(path), Err(error), "{:?}", String::from_utf8_lossy(path));
        }
        let good = SafePath::new(b"a/...b/\xff\n").unwrap();
        assert_eq!(good.split().1.as_bytes(), b"\xff\n");
        assert_eq!(good.to_string(), "a/...b/\u{fffd}\\n");
    }
}
