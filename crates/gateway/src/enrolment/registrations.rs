//! Registrations at a running hub, until they are stored.

use super::registered::{Registered, RegisteredKey};
use crate::config::{HubSection, TerminalEntry};
use relay::Registration;
use rt::Clock;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use units::{Instant, Span};

/// Minimum interval between two writes, which terminals that register again and again cannot exceed.
const INTERVAL: Span = Span::from_millis(250);
/// Interval of looking whether a write has finished.
const LOOK: Span = Span::from_millis(20);

/// Registered keys that are not stored yet, at most one for each terminal.
#[derive(Debug, Default)]
pub(crate) struct Registrations {
    /// The file; `None` if the hub has no place for it.
    path: Option<PathBuf>,
    pending: BTreeMap<String, RegisteredKey>,
    /// Result of the thread that writes.
    writer: Option<Receiver<io::Result<()>>>,
    /// Earliest time of the next write, or of the next look at a running one.
    next: Instant,
}

impl Registrations {
    /// Stores registered keys at `path`.
    pub(crate) fn new(path: Option<PathBuf>) -> Self {
        Self { path, ..Self::default() }
    }

    /// Adds a key that a terminal of `hub` has registered now.
    pub(crate) fn take(&mut self, hub: &HubSection, new: &Registration) {
        if let Some(entry) = hub.terminals.iter().find(|entry| *entry.name == *new.name) {
            self.add(entry, new, Clock::unix_s());
        }
    }

    /// Adds a key that the terminal of `entry` has registered at `unix_s` seconds since 1970.
    fn add(&mut self, entry: &TerminalEntry, new: &Registration, unix_s: u64) {
        let (terminal, enrolment) = (&entry.name, entry.enrolment);
        let Some(configured) = entry.configured_key() else { return };
        if self.path.is_none() {
            tracing::error!(%terminal, "key not registered: set `state`, beside which it is stored");
        } else if enrolment.is_some_and(|one| one.key == new.proved && one.until_unix_s <= unix_s) {
            tracing::warn!(
                %terminal,
                "key not registered: the token has expired; `bentpipe site token` makes another one"
            );
        } else {
            tracing::info!(%terminal, key = %new.key, "key registered");
            self.pending.insert(terminal.clone(), RegisteredKey { configured, current: new.key });
        }
    }

    /// Starts writing what is pending; returns true if a write has finished, so that the stored
    /// keys are to be used.
    pub(crate) fn poll(&mut self, now: Instant, hub: &HubSection) -> bool {
        if now < self.next {
            return false;
        }
        if let Some(writer) = &self.writer {
            match writer.try_recv() {
                Err(TryRecvError::Empty) => {
                    self.next = now + LOOK;
                    return false;
                }
                Ok(Ok(())) => {
                    (self.writer, self.next) = (None, now + INTERVAL);
                    return true;
                }
                // The terminals register again.
                Ok(Err(error)) => tracing::error!(%error, "registered keys not stored"),
                Err(TryRecvError::Disconnected) => tracing::error!("registered keys not stored"),
            }
            (self.writer, self.next) = (None, now + INTERVAL);
        } else if !self.pending.is_empty() {
            self.start(hub);
            self.next = now + LOOK;
        }
        false
    }

    /// Returns when [`Registrations::poll`] has something to do.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        (self.writer.is_some() || !self.pending.is_empty()).then_some(self.next)
    }

    /// Writes in a thread of its own: the packet loop does not wait for the disk.
    fn start(&mut self, hub: &HubSection) {
        let Some(path) = self.path.clone() else { return };
        let new = std::mem::take(&mut self.pending);
        let key = |entry: &TerminalEntry| Some((entry.name.clone(), entry.configured_key()?));
        let configured: BTreeMap<_, _> = hub.terminals.iter().filter_map(key).collect();
        let (done, writer) = mpsc::channel();
        let thread = std::thread::Builder::new().name("keys".into()).spawn(move || {
            let stored = Registered::read(&path).and_then(|mut all| {
                all.update(new, &configured);
                all.write(&path)
            });
            let _ = done.send(stored); // The gateway may have ended.
        });
        match thread {
            Ok(_) => self.writer = Some(writer),
            Err(error) => tracing::error!(%error, "registered keys not stored"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Enrolment;
    use crate::{Config, Role, SystemEntropy};
    use relay::{PrivateKey, PublicKey};
    use std::path::Path;

    fn key() -> PublicKey {
        PrivateKey::generate(&mut SystemEntropy).public()
    }

    /// A hub with the site `boat`, whose token is valid until 1000 s.
    fn hub(token: PublicKey) -> HubSection {
        let text = format!(
            "role = \"hub\"\nprivate_key_file = \"/k\"\n[link]\nlisten = \"127.0.0.1:7\"\n\
             [[terminal]]\nname = \"boat\"\nenrol_key = \"{token}\"\nenrol_until = 2027-01-31\n"
        );
        let Role::Hub(mut hub) = Config::parse("hub.toml", &text).unwrap().role else {
            panic!("a hub")
        };
        hub.terminals[0].enrolment = Some(Enrolment { key: token, until_unix_s: 1_000 });
        hub
    }

    /// Polls until a write has finished.
    fn store(registrations: &mut Registrations, hub: &HubSection) {
        let mut now = Instant::ZERO;
        while !registrations.poll(now, hub) {
            std::thread::yield_now();
            now = registrations.poll_timeout().expect("a write is pending").max(now);
        }
    }

    #[test]
    fn a_registered_key_is_stored_and_an_expired_token_registers_none() {
        let folder = std::env::temp_dir().join(format!("bentpipe-{}-stored", std::process::id()));
        let (path, token, [first, second]) = (folder.join("keys.toml"), key(), [key(), key()]);
        let hub = hub(token);
        let entry = &hub.terminals[0];
        let stored = |path: &Path| Registered::read(path).unwrap().of(entry);
        let new = |proved, key| Registration { name: "boat".into(), proved, key };
        let mut registrations = Registrations::new(Some(path.clone()));
        registrations.add(entry, &new(token, first), 1_000);
        assert_eq!(registrations.poll_timeout(), None, "expired");
        registrations.add(entry, &new(token, first), 999);
        store(&mut registrations, &hub);
        assert_eq!(stored(&path), Some(first));
        // A key of its own has no expiry.
        registrations.add(entry, &new(first, second), 2_000);
        store(&mut registrations, &hub);
        assert_eq!(stored(&path), Some(second));
        assert_eq!(registrations.poll_timeout(), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn without_a_place_nothing_is_pending() {
        let (token, mut registrations) = (key(), Registrations::new(None));
        let hub = hub(token);
        let new = Registration { name: "boat".into(), proved: token, key: key() };
        registrations.add(&hub.terminals[0], &new, 0);
        assert_eq!(registrations.poll_timeout(), None);
    }
}
