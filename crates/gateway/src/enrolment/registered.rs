//! Keys that terminals have registered: `keys.toml` beside the hub's `state` file.
//!
//! ```toml
//! [[terminal]]
//! name = "boat"
//! configured_key = "..."    # enrol_key or public_key of the configuration
//! registered_key = "..."    # the key that replaces it
//! ```
//!
//! An entry holds only while the configuration has the same key: another `enrol_key` or `public_key`
//! revokes it, and so does the removal of the terminal.

use crate::config::TerminalEntry;
use relay::PublicKey;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Maximum size of the file in octets: 10,000 terminals with the longest names.
const MAX_BYTES: u64 = 4 << 20;
const HEAD: &str = "# Keys that terminals have registered, written by the hub. They are not secret.\n\
                    # To revoke one use `bentpipe site remove` or `bentpipe site token`.\n\n";

/// Keys of one terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegisteredKey {
    /// The key in the configuration when it was registered.
    pub(crate) configured: PublicKey,
    /// The key that replaces it.
    pub(crate) current: PublicKey,
}

/// Registered keys by the name of the terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Registered(BTreeMap<String, RegisteredKey>);

#[derive(Default, Serialize, Deserialize)]
struct Content {
    #[serde(default)]
    terminal: Vec<Record>,
}

#[derive(Serialize, Deserialize)]
struct Record {
    name: String,
    configured_key: String,
    registered_key: String,
}

/// Returns the file of registered keys beside the `state` file of a hub.
pub(crate) fn file_beside(state: &Path) -> PathBuf {
    state.with_file_name("keys.toml")
}

impl Registered {
    /// Reads the file at `path`; without a file there are no registered keys.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged: without it a key that was replaced would be
    /// accepted again.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        let mut text = String::new();
        file.take(MAX_BYTES).read_to_string(&mut text)?;
        let content: Content =
            toml::from_str(&text).map_err(|error| io::Error::other(error.message().to_owned()))?;
        let key = |text: &str| text.parse::<PublicKey>().map_err(io::Error::other);
        let entry = |Record { name, configured_key, registered_key }: Record| {
            let (configured, current) = (key(&configured_key)?, key(&registered_key)?);
            Ok((name, RegisteredKey { configured, current }))
        };
        content.terminal.into_iter().map(entry).collect::<io::Result<_>>().map(Self)
    }

    /// Replaces the file at `path`, and returns when the content is on the disk.
    ///
    /// # Errors
    /// Those of the file system; the old content is then kept.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let record = |(name, key): (&String, &RegisteredKey)| Record {
            name: name.clone(),
            configured_key: key.configured.to_string(),
            registered_key: key.current.to_string(),
        };
        let content = Content { terminal: self.0.iter().map(record).collect() };
        let body = toml::to_string(&content).map_err(io::Error::other)?;
        crate::state::replace(path, format!("{HEAD}{body}").as_bytes())?;
        // The new name is on the disk with the folder.
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    }

    /// Returns the key that the terminal of `entry` has registered, if it has.
    pub(crate) fn of(&self, entry: &TerminalEntry) -> Option<PublicKey> {
        let key = self.0.get(&entry.name)?;
        (Some(key.configured) == entry.configured_key()).then_some(key.current)
    }

    /// Adds `new` and removes entries that hold for none of `configured`, by name.
    pub(crate) fn update(
        &mut self,
        new: BTreeMap<String, RegisteredKey>,
        configured: &BTreeMap<String, PublicKey>,
    ) {
        self.0.extend(new);
        self.0.retain(|name, key| configured.get(name) == Some(&key.configured));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemEntropy;
    use relay::PrivateKey;
    use std::fs;

    #[test]
    fn keys_are_read_back_and_a_damaged_file_is_an_error() {
        let folder = std::env::temp_dir().join(format!("bentpipe-{}-keys", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("keys.toml");
        assert_eq!(Registered::read(&path).unwrap(), Registered::default());
        let key = || PrivateKey::generate(&mut SystemEntropy).public();
        let (boat, buoy) = (key(), key());
        let configured = [("boat".to_owned(), boat), ("buoy".to_owned(), buoy)].into();
        let mut all = Registered::default();
        let new = |configured| RegisteredKey { configured, current: key() };
        all.update(
            [("boat".to_owned(), new(boat)), ("buoy".to_owned(), new(boat))].into(),
            &configured,
        );
        assert_eq!(all.0.keys().collect::<Vec<_>>(), ["boat"], "the buoy's is another key's");
        all.write(&path).unwrap();
        assert_eq!(Registered::read(&path).unwrap(), all);
        for damaged in ["[[terminal", "[[terminal]]\nname = \"boat\"", "terminal = 3"] {
            fs::write(&path, damaged).unwrap();
            assert!(Registered::read(&path).is_err(), "{damaged}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
