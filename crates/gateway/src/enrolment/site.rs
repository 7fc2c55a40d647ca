//! At a site: enrolment with a token, and replacement of the key.

use super::register::{EnrolError, register};
use super::token::Token;
use crate::config::{HubAddress, KeySource, NoiseSection, PeerKey, Role, SecuritySection};
use crate::{Config, keys};
use nix::unistd::{Group, Uid};
use relay::{Known, PresharedKey, PrivateKey, PublicKey};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// The group of the package's gateways.
const GROUP: &str = "bentpipe";
/// The package's example, which an enrolment replaces.
const EXAMPLE: &str = include_str!("../../../../packaging/debian/terminal.toml");

/// What a site is enrolled with.
#[derive(Clone, Debug)]
pub struct SiteOptions {
    /// The hub.
    pub hub: HubAddress,
    /// The token.
    pub token: Token,
    /// The configuration to write.
    pub config: PathBuf,
    /// The private key to write.
    pub key: PathBuf,
    /// Interfaces whose connections are intercepted; when empty there are explicit proxies on
    /// loopback.
    pub intercept: Vec<String>,
}

/// Makes a key, registers it, and writes a configuration. A configuration for the same hub and key
/// file is kept. The command can be repeated after a failure: the new key, in a file that ends in
/// `.new`, is used again.
///
/// # Errors
/// If the hub does not register the key, or a file cannot be written.
pub fn enroll(options: &SiteOptions) -> Result<PublicKey, EnrolError> {
    let SiteOptions { hub, token, config, key, intercept } = options;
    let is_new = is_to_be_written(config, token, key)?;
    let new_file = beside(key);
    let new = keys::private_key(&new_file)?;
    give_to_group(&new_file, 0o640)?;
    let known = Known { name: "hub".into(), public: token.hub, preshared: PresharedKey::NONE };
    register(hub, &known, &token.private, &new)?;
    rename(&new_file, key)?;
    if is_new {
        let text = configuration(hub, token, key, intercept);
        let failed = |source| EnrolError::Write { path: config.clone(), source };
        crate::state::replace(config, text.as_bytes()).map_err(failed)?;
        give_to_group(config, 0o640)?;
    }
    Ok(new.public())
}

/// Replaces the key of the terminal that is configured in the file `config`: registers a new one by
/// the old one, and writes it in its place. The gateway then needs a restart.
///
/// # Errors
/// If the configuration has no key file of its own, the hub does not register the key, or a file
/// cannot be written.
pub fn rotate(config: &Path) -> Result<PublicKey, EnrolError> {
    let not = |found| EnrolError::NotReplaceable { path: config.into(), found };
    let loaded = Config::load(config)?;
    if !loaded.paths.is_empty() {
        return Err(not("it has [[path]]; replace the key of each path as the guide says"));
    }
    let (Role::Terminal(_), Some(hub)) = (&loaded.role, &loaded.link.peer) else {
        return Err(not("it is not a terminal's; a hub's key is replaced as the guide says"));
    };
    let SecuritySection::Noise(NoiseSection {
        private: KeySource::File(file),
        hub: Some(PeerKey { public, preshared }),
    }) = &loaded.security
    else {
        return Err(not("it has no `private_key_file`"));
    };
    let preshared = match preshared {
        Some(source) => keys::secret(source)?,
        None => PresharedKey::NONE,
    };
    let old: PrivateKey = keys::read(file)?;
    let new_file = beside(file);
    let new = keys::private_key(&new_file)?;
    let like =
        fs::metadata(file).map_err(|source| EnrolError::Write { path: file.clone(), source })?;
    set_access(&new_file, like.mode() & 0o777, (like.uid(), like.gid()))?;
    let known = Known { name: "hub".into(), public: *public, preshared };
    register(hub, &known, &old, &new)?;
    rename(&new_file, file)?;
    Ok(new.public())
}

/// Returns whether the configuration does not exist or is the package's example; false if it is
/// that of a terminal of the same hub, which is kept.
fn is_to_be_written(config: &Path, token: &Token, key: &Path) -> Result<bool, EnrolError> {
    let exists = |found| Err(EnrolError::Exists { path: config.into(), found });
    match fs::read_to_string(config) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(source) => return Err(EnrolError::Write { path: config.into(), source }),
        Ok(text) if text == EXAMPLE => return Ok(true),
        Ok(_) => {}
    }
    let Config { role: Role::Terminal(_), security: SecuritySection::Noise(noise), .. } =
        Config::load(config)?
    else {
        return exists("it is not the configuration of a terminal with keys");
    };
    if noise.hub.is_none_or(|hub| hub.public != token.hub) {
        return exists("it is the configuration for another hub");
    }
    if noise.private != KeySource::File(key.into()) {
        return exists("its private_key_file is another one");
    }
    Ok(false)
}

fn configuration(hub: &HubAddress, token: &Token, key: &Path, intercept: &[String]) -> String {
    let mut text = format!(
        "# Written by `bentpipe enroll`. The guide: docs/guide/gateway.md.\n\
         role = \"terminal\"\n\
         name = \"{}\"\n\
         private_key_file = {:?}\n\n\
         [link]\n\
         peer = \"{hub}\"\n\
         peer_public_key = \"{}\"\n",
        token.name,
        key.display().to_string(),
        token.hub
    );
    if intercept.is_empty() {
        text +=
            "\n[socks5]\nlisten = \"127.0.0.1:1080\"\n\n[connect]\nlisten = \"127.0.0.1:3128\"\n";
    } else {
        let _ = write!(text, "\n[intercept]\ninterfaces = {intercept:?}\n"); // A String takes all.
    }
    text
}

/// The file of a key that is not registered yet.
fn beside(key: &Path) -> PathBuf {
    let mut name = key.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

fn rename(from: &Path, to: &Path) -> Result<(), EnrolError> {
    fs::rename(from, to).map_err(|source| EnrolError::Write { path: to.into(), source })
}

/// Lets the package's gateway read a file, if this is root and the group exists.
fn give_to_group(path: &Path, mode: u32) -> Result<(), EnrolError> {
    let group = Group::from_name(GROUP).ok().flatten().filter(|_| Uid::effective().is_root());
    match group {
        Some(group) => set_access(path, mode, (0, group.gid.as_raw())),
        None => Ok(()),
    }
}

fn set_access(path: &Path, mode: u32, (uid, gid): (u32, u32)) -> Result<(), EnrolError> {
    let failed = |source: io::Error| EnrolError::Write { path: path.into(), source };
    chown(path, Some(uid), Some(gid)).map_err(failed)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(failed)
}
