//! A Unix socket in the file system, created without a moment of wider permissions.

use mio::net::UnixListener;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Permissions: the owner and the group may connect.
const MODE: u32 = 0o660;

/// The socket's path, which is removed on drop.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    /// Device and inode, so that another gateway's socket at the same path is not removed.
    made: (u64, u64),
}

/// Listens at `path`. A socket without a listener is replaced; any other file there is kept. The
/// directory is created if only it is missing.
pub(super) fn listen(path: &Path) -> io::Result<(UnixListener, Place)> {
    if let Some(folder) = path.parent().filter(|folder| !folder.exists()) {
        fs::create_dir(folder)?;
    }
    make_way(path)?;
    // Created under another name until it has its mode, so that no client connects before.
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    let _ = fs::remove_file(&beside);
    let listener = UnixListener::bind(&beside)?;
    let placed = fs::set_permissions(&beside, Permissions::from_mode(MODE))
        .and_then(|()| fs::symlink_metadata(&beside))
        .and_then(|made| fs::rename(&beside, path).map(|()| made));
    match placed {
        Ok(made) => Ok((listener, Place { path: path.into(), made: (made.dev(), made.ino()) })),
        Err(error) => {
            let _ = fs::remove_file(&beside);
            Err(error)
        }
    }
}

/// Returns an error if there is a file that must be kept.
fn make_way(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(ErrorKind::AlreadyExists, "the path exists and is no socket"));
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(io::Error::new(ErrorKind::AddrInUse, "another gateway listens there")),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(()),
        Err(error) => Err(error),
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|found| (found.dev(), found.ino()) == self.made);
        if ours {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("bentpipe-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn stale_sockets_are_replaced_and_removed() {
        let folder = folder("socket");
        let path = folder.join("hub.sock");
        let (listener, place) = listen(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, MODE);
        UnixStream::connect(&path).unwrap();
        // A second gateway gets an error, and the first keeps its socket.
        assert_eq!(listen(&path).unwrap_err().kind(), ErrorKind::AddrInUse);
        // After a kill the socket exists without a listener.
        drop(listener);
        std::mem::forget(place);
        assert!(path.exists());
        let (_listener, place) = listen(&path).unwrap();
        UnixStream::connect(&path).unwrap();
        drop(place);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing is left");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn foreign_rules_are_not_removed() {
        let folder = folder("no-socket");
        fs::create_dir(&folder).unwrap();
        let path = folder.join("hub.sock");
        fs::write(&path, "precious").unwrap();
        assert_eq!(listen(&path).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        fs::remove_file(&path).unwrap();
        // A successor replaced the socket: the first one's end does not remove it.
        let (listener, place) = listen(&path).unwrap();
        drop(listener);
        let (_next, next_place) = listen(&path).unwrap();
        drop(place);
        UnixStream::connect(&path).unwrap();
        drop(next_place);
        assert!(!path.exists());
        fs::remove_dir_all(folder).unwrap();
    }
}
