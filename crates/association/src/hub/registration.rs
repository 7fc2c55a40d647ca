//! Hellos after which there is no association: registrations of keys, and Hellos of the past.

use super::{Hub, HubReceived};
use crate::config::Limits;
use crate::error::OpenError;
use crate::handshake::{
    From, REGISTRATION_RECEIVED, REGISTRATION_REFUSED, ReceivedHello, WelcomePayload,
};
use crate::keys::PublicKey;
use std::net::SocketAddr;
use std::sync::Arc;

/// A key that a terminal wants to replace its own. It is used after [`Hub::set_keys`] only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Name of the terminal.
    pub name: Arc<str>,
    /// The key that its Hello has proved.
    pub proved: PublicKey,
    /// The new key.
    pub key: PublicKey,
}

impl Hub {
    /// Processes a Hello that registers a key. It makes no association, and the response to its
    /// repetition is the same.
    pub(super) fn register(
        &mut self,
        from: SocketAddr,
        heard: ReceivedHello,
    ) -> Result<HubReceived<'static>, OpenError> {
        let (Some(secrets), From::Key { key, .. }, Some(new)) =
            (&mut self.secrets, &heard.from, heard.registers)
        else {
            return Err(OpenError::Unexpected);
        };
        let (key, timestamp) = (*key, heard.payload.timestamp);
        let terminal = secrets.terminals.get_mut(&key).ok_or(OpenError::UnknownKey { key })?;
        if timestamp < terminal.latest {
            let latest = terminal.latest;
            return self.answer_stale(from, heard, latest);
        }
        if self.draining {
            return Err(OpenError::Full);
        }
        terminal.latest = timestamp;
        let free = secrets.keys.is_free(new);
        if free {
            let name = terminal.name.clone();
            secrets.registrations.insert(key, Registration { name, proved: key, key: new });
        }
        let association = if free { REGISTRATION_RECEIVED } else { REGISTRATION_REFUSED };
        let limits = Limits::default();
        let welcome = WelcomePayload { hub_index: 0, association, latest: timestamp, limits };
        if let From::Key { answer, .. } = heard.from {
            let (bytes, _) = answer.welcome(heard.index, &terminal.preshared, &welcome);
            self.welcome(from, bytes);
        }
        Ok(HubReceived::Nothing)
    }

    /// Returns the next key that a terminal has registered.
    pub fn poll_registration(&mut self) -> Option<Registration> {
        Some(self.secrets.as_mut()?.registrations.pop_first()?.1)
    }

    /// Processes a Hello that is not later than the last: a replay, or a terminal whose clock was
    /// set back. The response creates no association, and contains the latest timestamp.
    pub(super) fn answer_stale(
        &mut self,
        from: SocketAddr,
        heard: ReceivedHello,
        latest: u64,
    ) -> Result<HubReceived<'static>, OpenError> {
        // A delayed duplicate of the last Hello, whose response is no longer needed.
        if heard.payload.timestamp == latest {
            return Err(OpenError::Stale);
        }
        if let From::Key { key, answer } = heard.from
            && let Some(terminal) = self.terminal(key)
        {
            let limits = Limits { receive_rate_bps: 0, ..Limits::default() };
            let welcome = WelcomePayload { hub_index: 0, association: 0, latest, limits };
            let (bytes, _) = answer.welcome(heard.index, &terminal.preshared, &welcome);
            self.answers.push(from, bytes);
        }
        Err(OpenError::Stale)
    }
}
