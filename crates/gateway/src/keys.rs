//! Keys in files, and randomness from the system.

use crate::config::{KeySource, NoiseSection, PeerKey, SecuritySection};
use crate::enrolment::registered::{self, Registered};
use crate::{Config, HubSection, PathSection, Role, TerminalEntry};
use relay::{
    Entropy, KeyTextError, Keys, KeysError, Known, PresharedKey, PrivateKey, PublicKey, Security,
};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// Maximum size of a key file in bytes.
const MOST_BYTES: u64 = 4096;

/// Errors of key files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file cannot be read.
    #[error("{}: {source}{}", path.display(), advice(path, source))]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is world-readable or world-writable.
    #[error("{}: not only its owner can read or change it (mode {mode:03o}): \
             chmod 600 {}, or 640 where the gateway reads it by its group", path.display(),
             path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The file has another content.
    #[error("{}: {source}", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// The expected content.
        source: KeyTextError,
    },
    /// The file exists already.
    #[error("{}: is there already; a key is never overwritten", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file's directory does not exist.
    #[error("{}: there is no folder {}: make it first, for root and the gateway alone: \
             install -d -m 750 -o root -g bentpipe {}", path.display(), folder.display(),
             folder.display())]
    NoFolder {
        /// The file.
        path: PathBuf,
        /// Its directory.
        folder: PathBuf,
    },
    /// The file cannot be created.
    #[error("{}: cannot be written: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file of registered keys cannot be read. Without it keys that were replaced would be
    /// accepted again.
    #[error("{}: {source}: restore the file; without it all enrolled sites need new tokens",
             path.display())]
    Registered {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The gateway's own key differs from the one that it runs with.
    #[error("this gateway's own key has changed; that needs a restart")]
    OwnKey,
    /// The keys do not match.
    #[error("{0}")]
    Keys(#[from] KeysError),
}

/// Returns advice for a file that this user may not read.
fn advice(path: &Path, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            let path = path.display();
            format!(
                "; a gateway that runs as the user bentpipe reads it by its group: \
                 chown root:bentpipe {path} && chmod 640 {path}"
            )
        }
        _ => String::new(),
    }
}

/// The operating system's random number generator.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    /// # Panics
    /// When the system provides no random numbers.
    fn fill(&mut self, out: &mut [u8]) {
        getrandom::fill(out).expect("the system gives random bytes");
    }
}

/// Writes a new private key to a new file at `path` that only its owner can read.
///
/// # Errors
/// When `path` exists, or cannot be written.
pub fn generate_key(path: &Path) -> Result<PublicKey, KeyError> {
    let key = PrivateKey::generate(&mut SystemEntropy);
    write(path, &key.to_text())?;
    Ok(key.public())
}

/// Reads the private key at `path`, or writes a new one there.
///
/// # Errors
/// When the file cannot be read or written, is accessible to others, or has no key.
pub fn private_key(path: &Path) -> Result<PrivateKey, KeyError> {
    match generate_key(path) {
        Ok(_) | Err(KeyError::Exists { .. }) => read(path),
        Err(error) => Err(error),
    }
}

/// Writes a new preshared key, as [`generate_key`].
///
/// # Errors
/// As [`generate_key`].
pub fn generate_preshared_key(path: &Path) -> Result<(), KeyError> {
    write(path, &PresharedKey::generate(&mut SystemEntropy).to_text())
}

/// Returns the public key of the private key in the file at `path`.
///
/// # Errors
/// When the file cannot be read, is accessible to others, or has no key.
pub fn public_key(path: &Path) -> Result<PublicKey, KeyError> {
    read::<PrivateKey>(path).map(|key| key.public())
}

impl Config {
    /// Reads the keys of this configuration.
    ///
    /// # Errors
    /// When a file cannot be read, or the keys do not match.
    pub fn keys(&self) -> Result<Security, KeyError> {
        let SecuritySection::Noise(NoiseSection { private, hub }) = &self.security else {
            return Ok(Security::None);
        };
        let known = match &self.role {
            Role::Terminal(_) => hub.iter().map(|key| known("hub", key)).collect(),
            // It has no peer.
            Role::Single(_) => Ok(Vec::new()),
            Role::Hub(section) => {
                let keys = Keys::new(secret(private)?, self.known_terminals(section)?)?;
                let keys = keys.with_enrolment(self.enrolment_keys(section)?)?;
                return Ok(Security::Noise(Arc::new(keys)));
            }
        };
        for path in &self.paths {
            path.security()?;
        }
        let known: Result<Vec<Known>, KeyError> = known;
        Ok(Security::Noise(Arc::new(Keys::new(secret(private)?, known?)?)))
    }

    /// Returns the file of registered keys of a hub.
    pub(crate) fn registered_keys(&self) -> Option<PathBuf> {
        self.state.as_deref().map(registered::file_beside)
    }

    fn registered(&self) -> Result<Registered, KeyError> {
        let Some(path) = self.registered_keys() else { return Ok(Registered::default()) };
        Registered::read(&path).map_err(|source| KeyError::Registered { path, source })
    }

    /// Returns the terminals with a key, configured or registered.
    fn known_terminals(&self, section: &HubSection) -> Result<Vec<Known>, KeyError> {
        let registered = self.registered()?;
        let one = |entry: &TerminalEntry| {
            let preshared = entry.key.as_ref().and_then(|key| key.preshared.clone());
            let configured = entry.key.as_ref().map(|key| key.public);
            let public = registered.of(entry).or(configured)?;
            Some(known(&entry.name, &PeerKey { public, preshared }))
        };
        section.terminals.iter().filter_map(one).collect()
    }

    /// Returns the enrolment keys of terminals that have registered no key yet.
    fn enrolment_keys(&self, section: &HubSection) -> Result<Vec<Known>, KeyError> {
        let registered = self.registered()?;
        let open = section.terminals.iter().filter(|entry| registered.of(entry).is_none());
        let one = |entry: &TerminalEntry| {
            let public = entry.enrolment?.key;
            Some(Known { name: entry.name.clone(), public, preshared: PresharedKey::NONE })
        };
        Ok(open.filter_map(one).collect())
    }
}

impl PathSection {
    /// Reads this path's keys.
    pub(crate) fn security(&self) -> Result<Security, KeyError> {
        let Some(NoiseSection { private, hub }) = &self.keys else { return Ok(Security::None) };
        let known: Result<Vec<Known>, KeyError> = hub.iter().map(|key| known("hub", key)).collect();
        Ok(Security::Noise(Arc::new(Keys::new(secret(private)?, known?)?)))
    }
}

fn known(name: &str, key: &PeerKey) -> Result<Known, KeyError> {
    let preshared = match &key.preshared {
        Some(source) => secret(source)?,
        None => PresharedKey::NONE,
    };
    Ok(Known { name: name.into(), public: key.public, preshared })
}

/// Returns a secret key.
pub(crate) fn secret<T: FromStr<Err = KeyTextError> + Clone>(
    source: &KeySource<T>,
) -> Result<T, KeyError> {
    match source {
        KeySource::Here(key) => Ok(key.clone()),
        KeySource::File(path) => read(path),
    }
}

/// Reads a key from a file that only its owner and its group can read.
pub(crate) fn read<T: FromStr<Err = KeyTextError>>(path: &Path) -> Result<T, KeyError> {
    let failed = |source| KeyError::Read { path: path.into(), source };
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    let mode = metadata.permissions().mode() & 0o777;
    // Only regular files have lasting permissions. The group may be the gateway's own.
    if metadata.is_file() && mode & 0o007 != 0 {
        return Err(KeyError::Open { path: path.into(), mode });
    }
    let mut text = String::new();
    file.take(MOST_BYTES).read_to_string(&mut text).map_err(failed)?;
    text.parse().map_err(|source| KeyError::Text { path: path.into(), source })
}

/// Writes a new file, and removes it if writing fails.
fn write(path: &Path, text: &str) -> Result<(), KeyError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => KeyError::Exists { path: path.into() },
        io::ErrorKind::NotFound => {
            let folder = path.parent().unwrap_or(path).to_owned();
            KeyError::NoFolder { path: path.into(), folder }
        }
        _ => KeyError::Write { path: path.into(), source },
    };
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    let written = writeln!(file, "{text}").and_then(|()| file.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(path); // The first error is reported.
    }
    written.map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("bentpipe-{}-{name}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn file(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_key_is_made_once_and_only_its_owner_reads_it() {
        let folder = Folder::new("keys");
        let path = folder.file("key");
        let public = generate_key(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(public_key(&path).unwrap(), public);
        let before = fs::read(&path).unwrap();
        assert!(matches!(generate_key(&path), Err(KeyError::Exists { .. })));
        assert!(matches!(generate_preshared_key(&path), Err(KeyError::Exists { .. })));
        assert_eq!(fs::read(&path).unwrap(), before);
        generate_preshared_key(&folder.file("psk")).unwrap();
        let keys = [&before, &fs::read(folder.file("psk")).unwrap()].map(Vec::len);
        assert_eq!(keys, [45, 45]);
    }

    #[test]
    fn obstacles_for_a_key_are_reported_with_a_remedy() {
        let folder = Folder::new("no-folder");
        let error = generate_key(&folder.file("etc/bentpipe/key")).unwrap_err().to_string();
        let missing = folder.file("etc/bentpipe");
        assert!(error.contains(&format!("there is no folder {}", missing.display())), "{error}");
        assert!(error.contains("install -d -m 750"), "{error}");
        let (path, source) = (folder.file("key"), io::ErrorKind::PermissionDenied.into());
        let error = KeyError::Read { path, source }.to_string();
        assert!(error.contains("chown root:bentpipe") && error.contains("chmod 640"), "{error}");
    }

    #[test]
    fn a_key_that_others_read_or_that_is_none_is_refused() {
        let folder = Folder::new("open-keys");
        let path = folder.file("key");
        generate_key(&path).unwrap();
        for (mode, taken) in [(0o600, true), (0o400, true), (0o640, true), (0o604, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let result = public_key(&path);
            assert_eq!(result.is_ok(), taken, "{mode:o}");
            if let Err(error) = result {
                assert!(error.to_string().contains("chmod 600"), "{error}");
            }
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        for wrong in ["", "abc\n", "\0", &"A".repeat(5000)] {
            fs::write(&path, wrong).unwrap();
            assert!(matches!(public_key(&path), Err(KeyError::Text { .. })), "{wrong:?}");
        }
        assert!(matches!(public_key(&folder.file("none")), Err(KeyError::Read { .. })));
    }

    #[test]
    fn the_systems_randomness_does_not_repeat() {
        let key = || PrivateKey::generate(&mut SystemEntropy).to_text();
        assert_ne!(key(), key());
    }
}
