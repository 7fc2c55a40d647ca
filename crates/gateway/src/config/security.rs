//! `security` and its keys: this gateway's own key and those of its peers.

use super::reader::{Item, Reader, Section};
use super::{Config, ConfigError, Enrolment, Mistake, Role};
use relay::{PresharedKey, PrivateKey, PublicKey};
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The security suite of the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecuritySection {
    /// No encryption, by an explicit `security = "none"`.
    None,
    /// Noise, with these keys.
    Noise(NoiseSection),
}

/// The keys of a gateway. A hub has those of its terminals in [`super::TerminalEntry`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoiseSection {
    /// This gateway's private key.
    pub private: KeySource<PrivateKey>,
    /// At a terminal, the hub's keys.
    pub hub: Option<PeerKey>,
}

/// The keys of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerKey {
    /// The peer's public key.
    pub public: PublicKey,
    /// The preshared key, if there is one.
    pub preshared: Option<KeySource<PresharedKey>>,
}

impl PeerKey {
    /// Whether its preshared key is in the configuration itself.
    pub(super) fn has_secret_here(&self) -> bool {
        matches!(self.preshared, Some(KeySource::Here(_)))
    }
}

/// A secret key, or the file that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource<T> {
    /// The key itself.
    Here(T),
    /// A file that holds only the key.
    File(PathBuf),
}

impl Config {
    /// Returns the configuration if it holds no secret, or if only the owner and the group of
    /// `file` can read it, as is required of key files.
    pub(super) fn keeps_its_secrets(self, file: &Path) -> Result<Self, ConfigError> {
        let Some(key) = self.secret_here() else { return Ok(self) };
        let metadata = std::fs::metadata(file).ok().filter(std::fs::Metadata::is_file);
        let mode = metadata.map(|metadata| metadata.permissions().mode() & 0o777);
        let Some(mode) = mode.filter(|mode| mode & 0o007 != 0) else { return Ok(self) };
        let file = file.display().to_string();
        let found = format!("a secret in a file that all users can read or change ({mode:03o})");
        let expected = format!(
            "a file for its owner and its group alone: chmod 640 {file}; or the secret in a file \
             of its own"
        );
        let mistake = Mistake { file: file.clone(), line: 0, key: key.into(), found, expected };
        Err(ConfigError { file, mistakes: vec![mistake] })
    }

    /// Returns the first key of the configuration whose value is a secret.
    fn secret_here(&self) -> Option<&'static str> {
        let of = |noise: &NoiseSection| match &noise.private {
            KeySource::Here(_) => Some("private_key"),
            KeySource::File(_) => noise
                .hub
                .as_ref()
                .is_some_and(PeerKey::has_secret_here)
                .then_some("link.preshared_key"),
        };
        let own = match &self.security {
            SecuritySection::Noise(noise) => of(noise),
            SecuritySection::None => None,
        };
        let terminals = match &self.role {
            Role::Hub(hub) => &hub.terminals[..],
            Role::Terminal(_) | Role::Single(_) => &[],
        };
        let shared =
            terminals.iter().filter_map(|entry| entry.key.as_ref()).any(PeerKey::has_secret_here);
        own.or_else(|| self.paths.iter().filter_map(|path| path.keys.as_ref()).find_map(of))
            .or_else(|| shared.then_some("terminal.preshared_key"))
    }
}

/// The value of `security`, or `Wrong` after a mistake, which was reported.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    None,
    Noise,
    Wrong,
}

const PRIVATE: &str = "the file with this gateway's key, made by `bentpipe key generate FILE`; or \
                       `security = \"none\"` for an unencrypted link";
const HUB: &str = "the hub's public key, as `bentpipe key show FILE` prints it there";
const TERMINAL: &str = "the terminal's public key, as `bentpipe key show FILE` prints it there";
const PRESHARED: [&str; 2] = ["preshared_key", "preshared_key_file"];
const KEY: &str = "a key, 44 characters as `bentpipe key` prints them";
const FILE: &str = "an absolute path, such as \"/etc/bentpipe/key\"";

pub(super) fn word(reader: &mut Reader<'_>, top: &mut Section<'_>) -> Word {
    const WORDS: [(&str, Word); 2] = [("noise", Word::Noise), ("none", Word::None)];
    let word = top.or(reader, "security", Word::Noise, |reader, item| item.word(reader, &WORDS));
    word.unwrap_or(Word::Wrong)
}

/// Reads this gateway's private key, which is required with `security = "noise"`.
pub(super) fn read_private(
    reader: &mut Reader<'_>,
    top: &mut Section<'_>,
    word: Word,
) -> Option<Option<KeySource<PrivateKey>>> {
    let key = read_secret(reader, top, word, ["private_key", "private_key_file"])?;
    if key.is_none() && word == Word::Noise {
        reader.mistake(top.line(), "private_key_file", "nothing", PRIVATE);
        return None;
    }
    Some(key)
}

/// Reads the hub's keys in a terminal's `[link]`.
pub(super) fn read_hub(
    reader: &mut Reader<'_>,
    link: &mut Section<'_>,
    word: Word,
) -> Option<Option<PeerKey>> {
    read_peer(reader, link, word, "peer_public_key", HUB)
}

/// Reads the hub's keys as [`read_hub`] does; the default is `usual`.
pub(super) fn read_hub_or(
    reader: &mut Reader<'_>,
    path: &mut Section<'_>,
    word: Word,
    usual: Option<&PeerKey>,
) -> Option<Option<PeerKey>> {
    if word != Word::Noise || path.has("peer_public_key") {
        return read_hub(reader, path, word);
    }
    let Some(usual) = usual else { return read_hub(reader, path, word) };
    // The hub is the same, but this path may have its own preshared key.
    let own = read_secret(reader, path, word, PRESHARED)?;
    Some(Some(PeerKey { public: usual.public, preshared: own.or_else(|| usual.preshared.clone()) }))
}

/// Reads a terminal's keys in a hub's `[[terminal]]`.
pub(super) fn read_terminal(
    reader: &mut Reader<'_>,
    terminal: &mut Section<'_>,
    word: Word,
) -> Option<Option<PeerKey>> {
    read_peer(reader, terminal, word, "public_key", TERMINAL)
}

/// What `[[terminal]]` says of a terminal without a key that can register one.
pub(super) fn read_enrolment(
    reader: &mut Reader<'_>,
    terminal: &mut Section<'_>,
    word: Word,
) -> Option<Option<Enrolment>> {
    let key = terminal.or(reader, "enrol_key", None, |r, i| match word {
        Word::Noise => parse(r, i).map(Some),
        Word::None | Word::Wrong => unwanted(r, &i, word),
    })?;
    let until = terminal.or(reader, "enrol_until", None, |r, i| i.utc_seconds(r).map(Some))?;
    let line = terminal.line();
    match (key, until) {
        (None, None) => return Some(None),
        (Some(_), None) => {
            let expected = "the date until which a terminal can register with `enrol_key`";
            reader.mistake(line, "terminal.enrol_until", "nothing", expected);
            return None;
        }
        (None, Some(_)) => {
            let expected = "the key that `bentpipe site add` has written beside `enrol_until`";
            reader.mistake(line, "terminal.enrol_key", "nothing", expected);
            return None;
        }
        (Some(_), Some(_)) => {}
    }
    for other in ["public_key", "preshared_key", "preshared_key_file"] {
        if let Some(item) = terminal.take(reader, other) {
            let expected = "no other key beside `enrol_key`";
            reader.mistake(item.line(), item.key(), "both", expected);
        }
    }
    Some(key.zip(until).map(|(key, until_unix_s)| Enrolment { key, until_unix_s }))
}

/// Combines the keys when all are read.
pub(super) fn section(
    word: Word,
    private: Option<KeySource<PrivateKey>>,
    hub: Option<PeerKey>,
) -> Option<SecuritySection> {
    match word {
        Word::None => Some(SecuritySection::None),
        Word::Noise => Some(SecuritySection::Noise(NoiseSection { private: private?, hub })),
        Word::Wrong => None,
    }
}

fn read_peer(
    reader: &mut Reader<'_>,
    section: &mut Section<'_>,
    word: Word,
    key: &'static str,
    expected: &str,
) -> Option<Option<PeerKey>> {
    let public = match word {
        Word::Noise => section.required(reader, key, expected, parse).map(Some),
        Word::None | Word::Wrong => section.or(reader, key, None, |r, i| unwanted(r, &i, word)),
    };
    let preshared = read_secret(reader, section, word, PRESHARED);
    let (public, preshared) = (public?, preshared?);
    Some(public.map(|public| PeerKey { public, preshared }))
}

/// Reads a secret from the configuration or names the file that holds it.
pub(super) fn read_secret<T: FromStr>(
    reader: &mut Reader<'_>,
    section: &mut Section<'_>,
    word: Word,
    [here, file]: [&'static str; 2],
) -> Option<Option<KeySource<T>>> {
    let key = |r: &mut Reader<'_>, i: Item<'_>| match word {
        // The message does not quote the value, which may be a secret with one character too many.
        Word::Noise => match i.as_str().map(str::parse) {
            Some(Ok(key)) => Some(Some(KeySource::Here(key))),
            Some(Err(_)) | None => {
                r.mistake(i.line(), i.key(), "something else", KEY);
                None
            }
        },
        Word::None | Word::Wrong => unwanted(r, &i, word),
    };
    let here = section.or(reader, here, None, key);
    let file = match section.take(reader, file) {
        None => Some(None),
        Some(item) if word != Word::Noise => unwanted(reader, &item, word),
        Some(item) if matches!(here, Some(Some(_))) => {
            reader.mistake(item.line(), item.key(), "both", "the key itself or a file, not both");
            None
        }
        Some(item) => match item.as_str().map(PathBuf::from) {
            Some(path) if path.is_absolute() => Some(Some(KeySource::File(path))),
            // The value may be a secret key in the wrong place, so it is not quoted.
            Some(_) | None => {
                reader.mistake(item.line(), item.key(), "something else", FILE);
                None
            }
        },
    };
    Some(here?.or(file?))
}

fn parse<T: FromStr>(reader: &mut Reader<'_>, item: Item<'_>) -> Option<T> {
    item.parsed(reader, KEY, |text| text.parse().ok())
}

/// Records a key beside `security = "none"` as a mistake: a key that has no effect would suggest
/// that the link is encrypted.
fn unwanted<T>(reader: &mut Reader<'_>, item: &Item<'_>, word: Word) -> Option<Option<T>> {
    if word == Word::None {
        reader.mistake(item.line(), item.key(), "a key", "none beside `security = \"none\"`");
    }
    None
}

impl<T> fmt::Display for KeySource<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here(_) => f.write_str("(in the configuration)"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}
