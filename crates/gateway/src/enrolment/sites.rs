//! At a hub: sites as files in the folder of drop-ins, `hub.d` beside `hub.toml`.

use super::registered::{self, Registered};
use super::token::{Token, is_site_name};
use crate::config::{Role, SecuritySection, drop_in_folder};
use crate::{Config, ConfigError, KeyError, SystemEntropy};
use relay::{PrivateKey, PublicKey, Security};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};

/// Keys of a `[[terminal]]` that another token replaces.
const KEYS: [&str; 5] =
    ["public_key", "preshared_key", "preshared_key_file", "enrol_key", "enrol_until"];

/// A site to be added.
#[derive(Clone, Debug)]
pub struct NewSite {
    /// Its name: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Its plan.
    pub plan: Option<String>,
    /// Until when its token is valid, in seconds since 1970.
    pub until_unix_s: u64,
}

/// A site of a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its name.
    pub name: String,
    /// Its plan, if the site names one.
    pub plan: Option<String>,
    /// Its key.
    pub state: SiteState,
}

/// Key of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SiteState {
    /// The configuration has its key.
    Configured(PublicKey),
    /// It has registered this key.
    Registered(PublicKey),
    /// Its token is valid until this time, in seconds since 1970.
    Token(u64),
    /// It has neither: the list is without keys.
    Named,
}

/// Errors of changes to the sites of a hub.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SiteError {
    /// The hub's configuration is wrong, or would be with the change, which is undone.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// It is not the configuration of a hub with keys.
    #[error("{}: sites have tokens at a hub with keys only", .0.display())]
    NotHub(PathBuf),
    /// The name cannot be that of a file.
    #[error("{0:?}: the name of a site has 1 to 64 letters, digits, `-`, `_` and `.`")]
    Name(String),
    /// The hub has a terminal of this name.
    #[error("{0:?} is there already; `bentpipe site token` makes another token for it")]
    Exists(String),
    /// The folder has no file for the site.
    #[error("{}: no such file; a [[terminal]] in the hub's own file is changed there", .0.display())]
    NoFile(PathBuf),
    /// The file has not one `[[terminal]]` with a line `name = ...`.
    #[error("{}: not one [[terminal]] with a line for its name; change the file by hand", .0.display())]
    NotOne(PathBuf),
    /// The hub's key, or the registered keys.
    #[error("{0}")]
    Key(#[from] KeyError),
    /// A file cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Adds a site to the hub with the configuration `config`, and returns its token. The running hub
/// then needs a reload.
///
/// # Errors
/// If the name is taken or unsuitable, the plan unknown, or the file cannot be written.
pub fn add_site(config: &Path, site: &NewSite) -> Result<Token, SiteError> {
    let NewSite { name, plan, until_unix_s } = site;
    // Without terminals and folder the configuration is incomplete.
    let is_new = make_folder(config)?;
    let hub = HubFile::open(config).inspect_err(|_| {
        if is_new {
            let _ = fs::remove_dir(drop_in_folder(config)); // The first error is reported.
        }
    })?;
    let file = hub.file(name)?;
    if hub.names().any(|known| known == name) || file.exists() {
        return Err(SiteError::Exists(name.clone()));
    }
    let token = hub.token(name);
    let plan = plan.as_ref().map(|plan| format!("plan = {plan:?}\n")).unwrap_or_default();
    let keys = key_lines(&token, *until_unix_s);
    let head = "# Added by `bentpipe site add`; a change needs a reload of the hub.\n";
    let text = format!("{head}[[terminal]]\nname = {name:?}\n{plan}{keys}");
    write(&file, &text, true)?;
    hub.check_or(|| fs::remove_file(&file))?;
    Ok(token)
}

/// Returns another token for a site that has a file. The key that it has registered, or that the
/// file has, is rejected from the next reload on.
///
/// # Errors
/// If there is no file, it has other terminals too, or cannot be written.
pub fn renew_token(config: &Path, name: &str, until_unix_s: u64) -> Result<Token, SiteError> {
    let hub = HubFile::open(config)?;
    let file = hub.file(name)?;
    let before = fs::read_to_string(&file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => SiteError::NoFile(file.clone()),
        _ => SiteError::Write { path: file.clone(), source: error },
    })?;
    let key_of = |line: &str| line.split('=').next().unwrap_or_default().trim().to_owned();
    let tables = before.lines().filter(|line| line.trim().starts_with("[[terminal]]")).count();
    let names = before.lines().filter(|line| key_of(line) == "name").count();
    if (tables, names) != (1, 1) {
        return Err(SiteError::NotOne(file));
    }
    let token = hub.token(name);
    let mut text = String::new();
    for line in before.lines().filter(|line| !KEYS.contains(&&*key_of(line))) {
        text += line;
        text += "\n";
        if key_of(line) == "name" {
            text += &key_lines(&token, until_unix_s);
        }
    }
    write(&file, &text, false)?;
    hub.check_or(|| fs::write(&file, &before))?;
    Ok(token)
}

/// Removes a site: its key is rejected from the next reload on.
///
/// # Errors
/// If there is no file for it.
pub fn remove_site(config: &Path, name: &str) -> Result<(), SiteError> {
    let hub = HubFile::open(config)?;
    let file = hub.file(name)?;
    fs::remove_file(&file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => SiteError::NoFile(file.clone()),
        _ => SiteError::Write { path: file, source: error },
    })
}

/// Returns the sites of a hub in the order of the configuration. Registered keys are beside the file
/// `state`, or the configured one.
///
/// # Errors
/// If a file cannot be read.
pub fn list_sites(config: &Path, state: Option<&Path>) -> Result<Vec<Site>, SiteError> {
    let hub = HubFile::open(config)?;
    let state = state.or(hub.config.state.as_deref());
    let registered = match state.map(registered::file_beside) {
        Some(path) => {
            Registered::read(&path).map_err(|source| KeyError::Registered { path, source })?
        }
        None => Registered::default(),
    };
    let Role::Hub(section) = &hub.config.role else { return Ok(Vec::new()) };
    let site = |entry: &crate::TerminalEntry| {
        let configured = entry.key.as_ref().map(|key| SiteState::Configured(key.public));
        let token = entry.enrolment.map(|one| SiteState::Token(one.until_unix_s));
        let state = registered.of(entry).map(SiteState::Registered);
        let state = state.or(configured).or(token).unwrap_or(SiteState::Named);
        Site { name: entry.name.clone(), plan: entry.plan.clone(), state }
    };
    Ok(section.terminals.iter().map(site).collect())
}

/// The configuration of a hub with keys.
struct HubFile<'a> {
    path: &'a Path,
    config: Config,
    public: PublicKey,
}

impl<'a> HubFile<'a> {
    fn open(path: &'a Path) -> Result<Self, SiteError> {
        let config = Config::load(path)?;
        let Config { role: Role::Hub(_), security: SecuritySection::Noise(_), .. } = &config else {
            return Err(SiteError::NotHub(path.into()));
        };
        let Security::Noise(keys) = config.keys()? else {
            return Err(SiteError::NotHub(path.into()));
        };
        Ok(Self { path, public: keys.public(), config })
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        let terminals = match &self.config.role {
            Role::Hub(section) => &section.terminals[..],
            Role::Terminal(_) | Role::Single(_) => &[],
        };
        terminals.iter().map(|entry| &entry.name)
    }

    fn file(&self, name: &str) -> Result<PathBuf, SiteError> {
        if !is_site_name(name) {
            return Err(SiteError::Name(name.into()));
        }
        Ok(drop_in_folder(self.path).join(format!("{name}.toml")))
    }

    fn token(&self, name: &str) -> Token {
        let private = PrivateKey::generate(&mut SystemEntropy);
        Token { name: name.into(), hub: self.public, private }
    }

    /// Reads the changed configuration; calls `undo` if it is wrong.
    fn check_or(&self, undo: impl FnOnce() -> io::Result<()>) -> Result<(), SiteError> {
        Config::load(self.path).map(drop).map_err(|error| {
            let _ = undo(); // The first error is reported.
            error.into()
        })
    }
}

/// Makes the folder of drop-ins for the same users as the one that it is in; returns whether it is
/// new.
fn make_folder(config: &Path) -> Result<bool, SiteError> {
    let folder = drop_in_folder(config);
    let failed = |source| SiteError::Write { path: folder.clone(), source };
    match fs::DirBuilder::new().mode(0o750).create(&folder) {
        Ok(()) => like_folder(&folder).map(|()| true).map_err(failed),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(failed(error)),
    }
}

fn key_lines(token: &Token, until_unix_s: u64) -> String {
    let key = token.private.public();
    format!("enrol_key = \"{key}\"\nenrol_until = {}\n", utc(until_unix_s))
}

/// Writes a file that the group of its folder can read; `create_new`: it must not exist.
fn write(path: &Path, text: &str, create_new: bool) -> Result<(), SiteError> {
    let mut options = fs::OpenOptions::new();
    options.write(true).mode(0o640).create_new(create_new).truncate(!create_new);
    let written = options.open(path).and_then(|mut file| {
        like_folder(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|source| SiteError::Write { path: path.into(), source })
}

/// Gives a file the group of the folder that it is in, if this user may: the gateway reads it.
fn like_folder(path: &Path) -> io::Result<()> {
    let Some(folder) = path.parent() else { return Ok(()) };
    let group = fs::metadata(folder)?.gid();
    let _ = chown(path, None, Some(group)); // Without the right it stays as it is.
    Ok(())
}

/// Returns `unix_s` seconds since 1970 as a date and time of RFC 3339, in UTC.
pub fn utc(unix_s: u64) -> String {
    // Years that begin in March (Hinnant, "chrono-Compatible Low-Level Date Algorithms",
    // civil_from_days).
    let days = unix_s / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let second = unix_s % 86_400;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate_key;

    struct Folder(PathBuf);

    impl Folder {
        /// A hub without terminals of its own.
        fn new(name: &str) -> (Self, PathBuf) {
            let name = format!("bentpipe-{}-{name}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir_all(folder.join("hub.d")).unwrap();
            let (key, hub) = (folder.join("key"), folder.join("hub.toml"));
            generate_key(&key).unwrap();
            let key = key.display();
            let text = format!(
                "role = \"hub\"\nprivate_key_file = \"{key}\"\n[link]\nlisten = \"127.0.0.1:1\"\n"
            );
            fs::write(&hub, text).unwrap();
            (Self(folder), hub)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn site(name: &str) -> NewSite {
        NewSite { name: name.into(), plan: None, until_unix_s: 1_800_000_000 }
    }

    #[test]
    fn the_first_site_makes_the_folder() {
        let (folder, hub) = Folder::new("first-site");
        let drop_ins = folder.0.join("hub.d");
        fs::remove_dir(&drop_ins).unwrap();
        let text = fs::read_to_string(&hub).unwrap();
        fs::write(&hub, text.replace("[link]", "[limk]")).unwrap();
        assert!(add_site(&hub, &site("boat")).is_err() && !drop_ins.exists());
        fs::write(&hub, text).unwrap();
        add_site(&hub, &site("boat")).unwrap();
        assert!(drop_ins.join("boat.toml").exists());
    }

    #[test]
    fn a_site_is_a_file_with_the_public_part_of_its_token() {
        let (folder, hub) = Folder::new("sites");
        assert_eq!(list_sites(&hub, None).unwrap(), []);
        let token = add_site(&hub, &site("boat")).unwrap();
        let file = folder.0.join("hub.d/boat.toml");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(&format!("enrol_key = \"{}\"", token.private.public())), "{text}");
        assert!(text.contains("enrol_until = 2027-01-15T08:00:00Z"), "{text}");
        assert!(!text.contains(&token.private.to_text()));
        let state = SiteState::Token(1_800_000_000);
        let expected = Site { name: "boat".into(), plan: None, state };
        assert_eq!(list_sites(&hub, None).unwrap(), [expected]);
        assert!(matches!(add_site(&hub, &site("boat")), Err(SiteError::Exists(_))));
        assert!(matches!(add_site(&hub, &site("../boat")), Err(SiteError::Name(_))));
        // A plan that does not exist leaves no file.
        let plan = NewSite { plan: Some("lead".into()), ..site("buoy") };
        assert!(matches!(add_site(&hub, &plan), Err(SiteError::Config(_))));
        assert!(!folder.0.join("hub.d/buoy.toml").exists());
        remove_site(&hub, "boat").unwrap();
        assert_eq!(list_sites(&hub, None).unwrap(), []);
        assert!(matches!(remove_site(&hub, "boat"), Err(SiteError::NoFile(_))));
    }

    #[test]
    fn another_token_replaces_the_key_and_nothing_else() {
        let (folder, hub) = Folder::new("tokens");
        let file = folder.0.join("hub.d/boat.toml");
        let key = PrivateKey::generate(&mut SystemEntropy).public();
        let text = format!("[[terminal]]\nname = \"boat\"\n# north\npublic_key = \"{key}\"\n");
        fs::write(&file, text).unwrap();
        assert_eq!(list_sites(&hub, None).unwrap()[0].state, SiteState::Configured(key));
        let token = renew_token(&hub, "boat", 5).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("# north") && !text.contains("public_key"), "{text}");
        assert!(text.contains(&token.private.public().to_string()));
        assert_eq!(list_sites(&hub, None).unwrap()[0].state, SiteState::Token(5));
        fs::write(&file, text.repeat(2)).unwrap();
        assert!(matches!(renew_token(&hub, "boat", 5), Err(SiteError::Config(_))), "boat twice");
        let other = PrivateKey::generate(&mut SystemEntropy).public();
        let path = format!("[[terminal]]\nname = \"boat/lte\"\npublic_key = \"{other}\"\n");
        fs::write(&file, text + &path).unwrap();
        assert!(matches!(renew_token(&hub, "boat", 5), Err(SiteError::NotOne(_))));
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (unix_s, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_798_761_600, "2027-01-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(unix_s), text);
        }
    }
}
