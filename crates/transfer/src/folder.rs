//! The folder into which files are received.
//!
//! Every name is opened relative to the folder above it and without following symbolic links, so
//! nothing outside the folder is reached. Incomplete files are in [`PARTIAL`], under a name that is
//! computed from path, size and time; a complete one is renamed to its place, with its content,
//! permissions and time.

use crate::path::SafePath;
use crate::receiving::Store;
use crate::wire::{Answer, Entry, Hash, Kind};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, syncfs, unlinkat};
use ring::digest::{Context, SHA256, digest};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Name of the folder for incomplete files.
pub(crate) const PARTIAL: &str = ".bentpipe-partial";
/// Time for which an incomplete file in use is waited for: an interrupted transfer that was started
/// again may arrive before the end of the first is noticed.
const RELEASE_TIME: Duration = Duration::from_secs(2);
/// Maximum number of incomplete files that are kept; the oldest are removed.
const MAX_PARTIAL: usize = 64;

const OPEN_FOLDER: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// A folder that receives files, from any number of senders.
#[derive(Debug)]
pub struct Folder {
    root: OwnedFd,
    /// The folder of incomplete files, locked against other processes.
    partial: File,
    /// Names of incomplete files that are in use.
    active: Mutex<BTreeSet<String>>,
    /// Signalled when one is not in use any more.
    released: Condvar,
}

impl Folder {
    /// Opens the folder at `path`, and creates it if it does not exist.
    ///
    /// # Errors
    /// If it cannot be opened, or another process receives into it.
    pub fn open(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        // The folder itself may be a symbolic link of the user.
        let mut options = fs::OpenOptions::new();
        let root: OwnedFd =
            options.read(true).custom_flags(OFlag::O_DIRECTORY.bits()).open(path)?.into();
        let partial = File::from(open_folder(root.as_fd(), OsStr::new(PARTIAL), Some(0o700))?);
        partial.try_lock().map_err(|error| match error {
            fs::TryLockError::WouldBlock => {
                let text = format!("{}: another process receives into it", path.display());
                io::Error::new(io::ErrorKind::ResourceBusy, text)
            }
            fs::TryLockError::Error(error) => error,
        })?;
        remove_old(&path.join(PARTIAL))?;
        Ok(Self { root, partial, active: Mutex::default(), released: Condvar::new() })
    }

    /// Returns the store for one sender.
    pub fn store(&self) -> impl Store + '_ {
        FolderStore { folder: self, wanted: BTreeMap::new(), open: None }
    }

    /// Reserves an incomplete file for one store; returns false if another has it.
    fn reserve(&self, partial: &str) -> bool {
        let active = self.active.lock().unwrap_or_else(PoisonError::into_inner);
        let in_use = |active: &mut BTreeSet<String>| active.contains(partial);
        let waited = self.released.wait_timeout_while(active, RELEASE_TIME, in_use);
        waited.unwrap_or_else(PoisonError::into_inner).0.insert(partial.to_owned())
    }

    /// Opens the folder of `path`; `None` if it does not exist and `create` is not set.
    fn parent(&self, path: &SafePath, create: bool) -> Result<Option<OwnedFd>, Errno> {
        let mut folder = self.root.try_clone().map_err(|_| Errno::EMFILE)?;
        for name in path.split().0 {
            match open_folder(folder.as_fd(), name, create.then_some(0o777)) {
                Ok(next) => folder = next,
                Err(Errno::ENOENT) if !create => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(folder))
    }
}

/// Removes incomplete files beyond [`MAX_PARTIAL`], the oldest first.
fn remove_old(partial: &Path) -> io::Result<()> {
    let mut all = Vec::new();
    for file in fs::read_dir(partial)? {
        let file = file?;
        all.push((file.metadata()?.modified()?, file.path()));
    }
    all.sort();
    let excess = all.len().saturating_sub(MAX_PARTIAL);
    all.into_iter().take(excess).try_for_each(|(_, path)| fs::remove_file(path))
}

/// Opens the folder `name` in `folder`, and creates it with `mode` if that is given.
fn open_folder(folder: BorrowedFd<'_>, name: &OsStr, mode: Option<u32>) -> Result<OwnedFd, Errno> {
    match openat(folder, name, OPEN_FOLDER, Mode::empty()) {
        Err(Errno::ENOENT) if let Some(mode) = mode => {
            match mkdirat(folder, name, Mode::from_bits_truncate(mode)) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(error) => return Err(error),
            }
            openat(folder, name, OPEN_FOLDER, Mode::empty())
        }
        other => other,
    }
}

/// A file whose content is expected.
#[derive(Debug)]
struct Wanted {
    entry: Entry,
    path: SafePath,
    /// Name of the incomplete file.
    partial: String,
    offset: u64,
}

/// An incomplete file that is being written.
struct Open {
    number: u32,
    file: File,
    hash: Context,
}

struct FolderStore<'f> {
    folder: &'f Folder,
    wanted: BTreeMap<u32, Wanted>,
    open: Option<Open>,
}

impl Store for FolderStore<'_> {
    fn offer(&mut self, entry: Entry) -> Answer {
        let path = match SafePath::new(&entry.path) {
            Ok(path) => path,
            Err(error) => return Answer::Refused(error.to_string()),
        };
        let answer = match entry.kind {
            Kind::Folder => self.offer_folder(&path),
            Kind::File => self.offer_file(entry, path),
        };
        answer.unwrap_or_else(|error| Answer::Refused(describe(error)))
    }

    fn write(&mut self, number: u32, bytes: &[u8]) -> io::Result<()> {
        let open = self.open(number)?;
        open.file.write_all(bytes)?;
        open.hash.update(bytes);
        Ok(())
    }

    fn finish(&mut self, number: u32, hash: &Hash) -> io::Result<bool> {
        self.open(number)?;
        let Some(Open { file, hash: received, .. }) = self.open.take() else { return Ok(false) };
        let Some(wanted) = self.wanted.get_mut(&number) else { return Ok(false) };
        if received.finish().as_ref() != hash {
            wanted.offset = 0;
            file.set_len(0)?;
            return Ok(false);
        }
        file.set_permissions(Permissions::from_mode(permissions(wanted.entry.mode)))?;
        let modified = system_time(&wanted.entry);
        file.set_times(FileTimes::new().set_modified(modified))?;
        let parent = self.folder.parent(&wanted.path, true)?.ok_or(Errno::ENOENT)?;
        let name = wanted.path.split().1;
        renameat(&self.folder.partial, wanted.partial.as_str(), parent, name)?;
        self.release(number);
        Ok(true)
    }

    fn abandon(&mut self, number: u32) {
        self.open.take_if(|open| open.number == number);
        self.release(number);
    }

    fn close(&mut self) -> io::Result<()> {
        Ok(syncfs(&self.folder.root)?)
    }
}

impl FolderStore<'_> {
    fn offer_folder(&self, path: &SafePath) -> Result<Answer, Errno> {
        let parent = self.folder.parent(path, true)?.ok_or(Errno::ENOENT)?;
        open_folder(parent.as_fd(), path.split().1, Some(0o777))?;
        Ok(Answer::Present)
    }

    fn offer_file(&mut self, entry: Entry, path: SafePath) -> Result<Answer, Errno> {
        if let Some(parent) = self.folder.parent(&path, false)?
            && let Some(found) = status(parent.as_fd(), path.split().1)?
        {
            if is_same(&found, &entry) {
                return Ok(Answer::Present);
            }
            if kind_of(&found) == SFlag::S_IFDIR {
                return Err(Errno::EISDIR);
            }
        }
        let partial = partial_name(&entry);
        if !self.folder.reserve(&partial) {
            return Ok(Answer::Refused("it is being received already".to_owned()));
        }
        let found = status(self.folder.partial.as_fd(), OsStr::new(&partial));
        let len = found.ok().flatten().map_or(0, |found| found.st_size as u64);
        let offset = if entry.known_size().is_some_and(|size| len <= size) { len } else { 0 };
        self.wanted.insert(entry.number, Wanted { entry, path, partial, offset });
        Ok(Answer::Send(offset))
    }

    /// Returns the incomplete file of an entry, open at its offset.
    fn open(&mut self, number: u32) -> io::Result<&mut Open> {
        if self.open.as_ref().is_none_or(|open| open.number != number) {
            let wanted = self.wanted.get(&number).ok_or(Errno::EBADF)?;
            let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            let mode = Mode::S_IRUSR | Mode::S_IWUSR;
            let file = openat(&self.folder.partial, wanted.partial.as_str(), flags, mode)?;
            let mut file = File::from(file);
            file.set_len(wanted.offset)?;
            let mut hash = Context::new(&SHA256);
            hash_prefix(&mut file, wanted.offset, &mut hash)?;
            self.open = Some(Open { number, file, hash });
        }
        Ok(self.open.as_mut().expect("it was opened"))
    }

    fn release(&mut self, number: u32) {
        if let Some(wanted) = self.wanted.remove(&number) {
            let active = &self.folder.active;
            active.lock().unwrap_or_else(PoisonError::into_inner).remove(&wanted.partial);
            self.folder.released.notify_all();
        }
    }
}

impl Drop for FolderStore<'_> {
    fn drop(&mut self) {
        let numbers: Vec<u32> = self.wanted.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.release(number));
    }
}

/// Adds the first `len` octets of `file` to `hash`; its position is after them.
pub(crate) fn hash_prefix(file: &mut File, len: u64, hash: &mut Context) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    let mut buffer = vec![0; 1 << 20];
    let mut left = len;
    while left > 0 {
        let want = left.min(buffer.len() as u64) as usize;
        let read = file.read(&mut buffer[..want])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        hash.update(&buffer[..read]);
        left -= read as u64;
    }
    Ok(())
}

/// Returns the name of the incomplete file of an entry. Another size or time is another file.
fn partial_name(entry: &Entry) -> String {
    let mut identity = entry.path.clone();
    identity.push(0);
    identity.extend(entry.size.to_be_bytes());
    identity.extend(entry.mtime_s.to_be_bytes());
    identity.extend(entry.mtime_ns.to_be_bytes());
    let hash = digest(&SHA256, &identity);
    hash.as_ref().iter().take(16).map(|octet| format!("{octet:02x}")).collect()
}

fn status(folder: BorrowedFd<'_>, name: &OsStr) -> Result<Option<FileStat>, Errno> {
    match fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

fn kind_of(found: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(found.st_mode & SFlag::S_IFMT.bits())
}

/// Returns whether a file has the size and time of an entry, so that it is not sent.
fn is_same(found: &FileStat, entry: &Entry) -> bool {
    kind_of(found) == SFlag::S_IFREG
        && entry.known_size() == Some(found.st_size as u64)
        && (found.st_mtime, found.st_mtime_nsec) == (entry.mtime_s, i64::from(entry.mtime_ns))
}

/// Returns the permissions of a received file: no set-user-ID, and nobody but the owner writes.
fn permissions(mode: u16) -> u32 {
    u32::from(mode) & 0o755 | 0o600
}

fn system_time(entry: &Entry) -> SystemTime {
    let seconds = Duration::from_secs(entry.mtime_s.unsigned_abs());
    let whole = match entry.mtime_s {
        0.. => UNIX_EPOCH.checked_add(seconds),
        _ => UNIX_EPOCH.checked_sub(seconds),
    };
    let rest = Duration::from_nanos(entry.mtime_ns.into());
    whole.and_then(|whole| whole.checked_add(rest)).unwrap_or(UNIX_EPOCH)
}

fn describe(error: Errno) -> String {
    match error {
        Errno::ELOOP => "a symbolic link is in its place".to_owned(),
        Errno::ENOTDIR => "a file or a symbolic link is in the place of a folder".to_owned(),
        Errno::EISDIR => "a folder is in its place".to_owned(),
        other => other.desc().to_owned(),
    }
}

/// Removes an empty folder of incomplete files at the end.
impl Drop for Folder {
    fn drop(&mut self) {
        // It is not empty after an interrupted transfer.
        let _ = unlinkat(&self.root, PARTIAL, UnlinkatFlags::RemoveDir);
    }
}
