//! A Unix socket in the file system, created so that it never has wider permissions.

use mio::net::UnixListener;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Who may connect: the owner and the group.
const MODE: u32 = 0o660;

/// The socket's place, which is cleared when this goes.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    /// Device and inode: another gateway's socket at the same place is not ours to clear away.
    made: (u64, u64),
}

/// Listens at `path`. A socket without a listener is replaced; anything else that is there
/// stays. The folder is made if only it is missing.
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

/// An error when something is there that must stay.
fn make_way(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(
            ErrorKind::AlreadyExists,
            "something that is no socket is there",
        ));
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(io::Error::new(ErrorKind::AddrInUse, "another gateway answers there")),
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
    fn a_socket_is_made_replaced_when_stale_and_cleared_away() {
        let folder = folder("socket");
        let path = folder.join("hub.sock");
        let (listener, place) = listen(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, MODE);
        UnixStream::connect(&path).unwrap();
        // A second gateway gets an error, and the first keeps its socket.
        assert_eq!(listen(&path).unwrap_err().kind(), ErrorKind::AddrInUse);
        // Killed: the socket is there without a listener.
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
    fn what_is_not_ours_stays() {
        let folder = folder("no-socket");
        fs::create_dir(&folder).unwrap();
        let path = folder.join("hub.sock");
        fs::write(&path, "precious").unwrap();
        assert_eq!(listen(&path).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        fs::remove_file(&path).unwrap();
        // A successor took the place over: the first one's end leaves it alone.
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
