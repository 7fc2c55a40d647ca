//! The terminal's side: initiates an association, maintains it, and replaces a lost one.

use crate::batch::TransmitBatch;
use crate::capabilities::Capabilities;
use crate::channel::{Channel, Opened, SendOrder};
use crate::checksum::{UNKNOWN_KEY, tag_fits};
use crate::config::{Config, Limits};
use crate::cookie::{COOKIE_LIFETIME, Cookie, write_second};
use crate::entropy::{Entropy, draw};
use crate::error::{Counters, OpenError};
use crate::handshake::{HelloPayload, REGISTRATION_RECEIVED, SentHello};
use crate::keys::Security;
use crate::version;
use crate::wire::{Header, INDEX_MASK, Kind, OVERHEAD, Sealed};
use units::{Instant, Span};

/// Minimum interval between two Hellos for different reasons, which limits the effect of forged
/// Unknowns.
const HELLO_QUIET: Span = Span::from_millis(500);
/// Time for which Unknowns are ignored after a false one.
const UNKNOWN_QUIET: Span = Span::from_secs(10);

/// Reason of a Hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// There is no association, or it is to be replaced.
    Start,
    /// The keys need renewal.
    Age,
    /// An Unknown reported that the hub has no such association.
    Unknown,
}

/// A Hello without its Welcome. All repetitions are the same message except for the cookie, so that
/// a Welcome to any of them is valid if the round trip is longer than the interval.
#[derive(Debug)]
struct Pending {
    asked: SentHello,
    index: u32,
    bytes: Vec<u8>,
    continues: u64,
    /// `continues` is the association of another path.
    joins: bool,
    cause: Cause,
    due: Instant,
    interval: Span,
}

/// Keys, and the index for the hub's direction.
#[derive(Debug)]
struct Held {
    index: u32,
    channel: Channel,
}

/// Result of a datagram at a terminal.
#[derive(Debug, PartialEq, Eq)]
pub enum TerminalReceived<'d> {
    /// A payload from the hub, decrypted in place.
    Payload {
        /// Kind of the payload.
        kind: Sealed,
        /// The payload.
        payload: &'d mut [u8],
        /// Position among the datagrams of the hub.
        order: SendOrder,
    },
    /// A new association is active; the state above the previous one is lost.
    Established,
    /// The hub has responded to the registration of a key. Received means that the hub will store
    /// it: the terminal can connect with it shortly after.
    Registered {
        /// Whether the key can be registered.
        received: bool,
    },
    /// Nothing for the upper layer.
    Nothing,
}

/// The terminal's side of one association.
#[derive(Debug)]
pub struct Terminal {
    config: Config,
    entropy: Box<dyn Entropy>,
    current: Option<Held>,
    /// Previous keys, and the end of their validity.
    previous: Option<(Held, Instant)>,
    /// The hub's identifier of the association; 0 for none.
    association: u64,
    hub_limits: Option<Limits>,
    /// The association of another path, to which a new one is to be joined.
    sibling: Option<u64>,
    /// The Hello of the association named a sibling.
    named_sibling: bool,
    pending: Option<Pending>,
    /// Number of pairs of keys created so far.
    keys_made: u64,
    last_hello: Option<Instant>,
    /// Timestamp of the last Hello.
    timestamp: u64,
    /// The last cookie, and the end of its validity.
    cookie: Option<(Cookie, Instant)>,
    /// Since when the hub lacks the first datagram under new keys.
    confirm: Option<Instant>,
    /// Unknowns are ignored until then.
    heed_again: Instant,
    counters: Counters,
}

impl Terminal {
    /// Creates a terminal whose first Hello is due at `now`.
    ///
    /// # Panics
    /// If it has keys, but not a hub's.
    pub fn new(config: Config, now: Instant, entropy: impl Entropy + 'static) -> Self {
        let mut terminal = Self {
            config,
            entropy: Box::new(entropy),
            current: None,
            previous: None,
            association: 0,
            hub_limits: None,
            sibling: None,
            named_sibling: false,
            pending: None,
            keys_made: 0,
            last_hello: None,
            timestamp: 0,
            cookie: None,
            confirm: None,
            heed_again: Instant::ZERO,
            counters: Counters::default(),
        };
        terminal.say_hello(now, Cause::Start);
        terminal
    }

    /// Returns true if there is an association.
    pub fn is_established(&self) -> bool {
        self.current.is_some()
    }

    /// Sets the rate that this side's link receives, in bits/s, announced from the next association
    /// on; 0 if unknown.
    pub fn set_receive_rate(&mut self, bps: u64) {
        self.config.limits.receive_rate_bps = bps;
    }

    /// Returns the limits that the hub announced.
    pub fn hub_limits(&self) -> Option<Limits> {
        self.hub_limits
    }

    /// Returns the hub's identifier of the association, if there is one.
    pub fn association(&self) -> Option<u64> {
        (self.association != 0).then_some(self.association)
    }

    /// Has new associations joined to the one with this identifier, which is that of another path
    /// to the same hub (ASC-2.12). `None` ends this.
    pub fn set_sibling(&mut self, association: Option<u64>) {
        self.sibling = association;
    }

    /// Returns whether the Hello of the association requested that it be joined, and whether the
    /// hub has done it.
    pub fn joined(&self) -> (bool, bool) {
        let hub = self.hub_limits.map_or(Capabilities::NONE, |limits| limits.capabilities);
        (self.named_sibling, self.named_sibling && hub.contains(Capabilities::JOINS))
    }

    /// Returns the counters of datagrams.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Requests a new association: the session above the current one has ended.
    pub fn restart(&mut self, now: Instant) {
        let named = self.sibling.unwrap_or(0);
        let is_other =
            |pending: &Pending| pending.cause == Cause::Age || pending.continues != named;
        if self.pending.as_ref().is_none_or(is_other) {
            self.say_hello(now, Cause::Start);
        }
    }

    /// Whether a received datagram has the index of this association, or of a handshake for it.
    pub fn is_addressed(&self, datagram: &[u8]) -> bool {
        let Ok(Header { kind, index, .. }) = Header::decode(datagram) else { return true };
        let previous = self.previous.as_ref().map(|(held, _)| held);
        let mut held = self.current.iter().chain(previous);
        match kind {
            Kind::Unknown => held.any(|held| held.channel.remote_index() == index),
            _ => {
                held.any(|held| held.index == index)
                    || self.pending.as_ref().is_some_and(|pending| pending.index == index)
            }
        }
    }

    /// Processes a received datagram.
    ///
    /// # Errors
    /// If it is damaged, a replay, or not for this terminal; it has been counted.
    pub fn handle_datagram<'d>(
        &mut self,
        now: Instant,
        datagram: &'d mut [u8],
    ) -> Result<TerminalReceived<'d>, OpenError> {
        let result = self.receive(now, datagram);
        match &result {
            Ok(TerminalReceived::Payload { .. }) => self.counters.opened += 1,
            Ok(
                TerminalReceived::Established
                | TerminalReceived::Registered { .. }
                | TerminalReceived::Nothing,
            ) => {}
            Err(error) => self.counters.count(*error),
        }
        result
    }

    fn receive<'d>(
        &mut self,
        now: Instant,
        datagram: &'d mut [u8],
    ) -> Result<TerminalReceived<'d>, OpenError> {
        let header = match Header::decode(datagram) {
            Err(OpenError::Version { found: 0, .. }) => return Err(self.receive_version(datagram)),
            result => result?,
        };
        match header.kind {
            Kind::Data => self.receive_sealed(now, Sealed::Data, header, datagram),
            Kind::Probe => self.receive_sealed(now, Sealed::Probe, header, datagram),
            Kind::ProbeAck => self.receive_sealed(now, Sealed::ProbeAck, header, datagram),
            Kind::Welcome => self.receive_welcome(now, header, datagram),
            Kind::Unknown => self.receive_unknown(now, header, datagram),
            Kind::Cookie => self.receive_cookie(now, header, datagram),
            Kind::Hello => Err(OpenError::Unexpected),
        }
    }

    fn receive_sealed<'d>(
        &mut self,
        now: Instant,
        kind: Sealed,
        header: Header,
        datagram: &'d mut [u8],
    ) -> Result<TerminalReceived<'d>, OpenError> {
        self.previous.take_if(|(_, until)| *until <= now);
        let previous = self.previous.as_mut().map(|(held, _)| held);
        let mut all = self.current.as_mut().into_iter().chain(previous);
        match all.find(|held| held.index == header.index) {
            Some(held) if !self.config.is_expired(now, &held.channel) => {
                let Opened { payload, order, .. } = held.channel.open(header, datagram)?;
                Ok(TerminalReceived::Payload { kind, payload, order })
            }
            Some(_) | None => Err(OpenError::UnknownIndex { index: header.index }),
        }
    }

    fn receive_welcome(
        &mut self,
        now: Instant,
        header: Header,
        datagram: &[u8],
    ) -> Result<TerminalReceived<'static>, OpenError> {
        let Some(pending) = &mut self.pending else { return Err(OpenError::Unexpected) };
        if header.index != pending.index {
            return Err(OpenError::UnknownIndex { index: header.index });
        }
        let (welcome, keys) = pending.asked.answered(header, datagram)?;
        let (index, continues, cause) = (pending.index, pending.continues, pending.cause);
        let joins = pending.joins;
        self.pending = None;
        if self.config.registers.is_some() && (welcome.hub_index, welcome.association) != (0, 0) {
            // A hub of a release without registrations makes an association.
            let response = (welcome.hub_index, welcome.association);
            let received = response == (0, REGISTRATION_RECEIVED);
            return Ok(TerminalReceived::Registered { received });
        }
        if welcome.hub_index == 0 {
            // The hub has received a later Hello of this key: the clock was set back since.
            self.timestamp = self.timestamp.max(welcome.latest);
            self.say_hello(now, cause);
            return Err(OpenError::Stale);
        }
        self.hub_limits = Some(welcome.limits);
        self.keys_made += 1;
        let channel = Channel::new(welcome.hub_index, keys, now).numbered(self.keys_made);
        let before = self.current.replace(Held { index, channel });
        if continues != 0 && continues == welcome.association {
            self.previous = before.map(|held| (held, now + self.config.previous_lifetime));
            self.confirm = Some(now);
            self.counters.renewals += 1;
            if cause == Cause::Unknown {
                self.heed_again = now + UNKNOWN_QUIET;
            }
            return Ok(TerminalReceived::Nothing);
        }
        self.previous = None;
        self.confirm = None;
        self.association = welcome.association;
        self.named_sibling = joins;
        Ok(TerminalReceived::Established)
    }

    /// Processes an Unknown, which anyone can forge. If it echoes a current index and counter, the
    /// terminal sends a Hello, and the association continues under new keys if the hub still has
    /// it.
    fn receive_unknown(
        &mut self,
        now: Instant,
        header: Header,
        datagram: &[u8],
    ) -> Result<TerminalReceived<'static>, OpenError> {
        let Some(Held { channel, .. }) = &self.current else { return Err(OpenError::Unexpected) };
        if !tag_fits(UNKNOWN_KEY, datagram) {
            return Err(OpenError::Tag);
        }
        if header.index != channel.remote_index() || !channel.sent_lately(header.counter) {
            return Err(OpenError::UnknownIndex { index: header.index });
        }
        if self.pending.is_none() && now >= self.heed_again {
            self.counters.unknowns += 1;
            self.say_hello(now, Cause::Unknown);
        }
        Ok(TerminalReceived::Nothing)
    }

    fn receive_cookie(
        &mut self,
        now: Instant,
        header: Header,
        datagram: &[u8],
    ) -> Result<TerminalReceived<'static>, OpenError> {
        let Some(pending) = &mut self.pending else { return Err(OpenError::Unexpected) };
        let SentHello::Noise(asked) = &pending.asked else { return Err(OpenError::Unexpected) };
        if header.index != pending.index {
            return Err(OpenError::UnknownIndex { index: header.index });
        }
        let cookie = asked.macs.open(header, datagram, &pending.bytes)?;
        write_second(&cookie, &mut pending.bytes);
        pending.due = self.last_hello.map_or(now, |last| now.max(last + HELLO_QUIET));
        self.cookie = Some((cookie, now + COOKIE_LIFETIME));
        self.counters.cookies += 1;
        Ok(TerminalReceived::Nothing)
    }

    /// Processes a Version: the hub does not support the version of this side. Anyone can send it,
    /// so the terminal reports it and continues to send Hellos.
    fn receive_version(&self, datagram: &[u8]) -> OpenError {
        match &self.pending {
            Some(pending) => version::read(datagram, &pending.bytes).unwrap_or_else(|error| error),
            None => OpenError::Unexpected,
        }
    }

    /// Writes the association's next own message to `batch`, a Hello or the first datagram under
    /// new keys; returns true if it did.
    pub fn poll_transmit(&mut self, now: Instant, batch: &mut TransmitBatch<'_>) -> bool {
        self.previous.take_if(|(_, until)| *until <= now);
        if self.confirm.is_some() {
            let Some(slot) = batch.slot(OVERHEAD).filter(|slot| slot.len() == OVERHEAD) else {
                return false;
            };
            if self.seal(now, Sealed::Data, slot) {
                batch.commit(OVERHEAD);
                return true;
            }
        }
        if self.renewal_due().is_some_and(|due| due <= now) {
            self.say_hello(now, Cause::Age);
        }
        let Some(pending) = &mut self.pending else { return false };
        if pending.due > now {
            return false;
        }
        let Some(slot) = batch.slot(pending.bytes.len()) else { return false };
        if slot.len() < pending.bytes.len() {
            return false;
        }
        slot.copy_from_slice(&pending.bytes);
        batch.commit(pending.bytes.len());
        // Terminals that began together do not repeat their Hellos together: a hub answers few of
        // the Hellos that arrive at the same time (ASC-7.6).
        let repeats = pending.interval > self.config.hello_interval;
        let part = if repeats { u64::from(draw::<1>(self.entropy.as_mut())[0]) } else { 0 };
        pending.due = now + pending.interval.mul_ratio(1_024 - part, 1_024);
        let longer = pending.interval.mul_ratio(3, 2);
        pending.interval = longer.min(self.config.hello_interval_max);
        self.last_hello = Some(now);
        self.counters.hellos += 1;
        true
    }

    /// Returns when [`poll_transmit`](Self::poll_transmit) must be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let hello = self.pending.as_ref().map(|pending| pending.due);
        hello.into_iter().chain(self.confirm).chain(self.renewal_due()).min()
    }

    /// Returns when the keys need renewal; `None` during one.
    fn renewal_due(&self) -> Option<Instant> {
        let held = self.current.as_ref().filter(|_| self.pending.is_none())?;
        if !self.config.is_secret() {
            return None;
        }
        let made = held.channel.made();
        let used_up = held.channel.used() >= self.config.renew_after_datagrams;
        Some(if used_up { made } else { made + self.config.renew_after })
    }

    /// Encrypts `datagram` in place, with the payload between 8 octets of header and 16 of tag;
    /// false without an association, or if its keys have expired.
    ///
    /// # Panics
    /// If `datagram` is shorter than [`OVERHEAD`].
    pub fn seal(&mut self, now: Instant, kind: Sealed, datagram: &mut [u8]) -> bool {
        let Some(held) = &mut self.current else { return false };
        self.confirm = None;
        if self.config.is_expired(now, &held.channel) || !held.channel.seal(kind.into(), datagram) {
            return false;
        }
        self.counters.sealed += 1;
        true
    }

    fn say_hello(&mut self, now: Instant, cause: Cause) {
        let index = self.free_index();
        let clock = self.config.wall_clock_ns.saturating_add(now.as_nanos());
        self.timestamp = clock.max(self.timestamp.saturating_add(1));
        let sibling = self.sibling.filter(|_| cause != Cause::Age);
        let continues = match cause {
            Cause::Start => sibling.unwrap_or(0),
            Cause::Age | Cause::Unknown => sibling.unwrap_or(self.association),
        };
        let joins = sibling.is_some();
        let Config { is_beside, limits, .. } = self.config;
        // The associations of this terminal itself follow each other. A path that joins again may
        // be another one of the process that this one has replaced.
        let is_beside = is_beside && (self.association == 0 || joins);
        let timestamp = self.timestamp;
        let payload = HelloPayload { timestamp, continues, is_beside, limits };
        let entropy = self.entropy.as_mut();
        let (asked, mut bytes) = match &self.config {
            Config { security: Security::Noise(keys), registers: Some(key), .. } => {
                SentHello::registering(keys, index, timestamp, key, entropy)
            }
            Config { security, name, .. } => {
                SentHello::new(security, index, payload, name, entropy)
            }
        };
        if let Some((cookie, until)) = &self.cookie
            && now < *until
        {
            write_second(cookie, &mut bytes);
        }
        let due = self.last_hello.map_or(now, |last| now.max(last + HELLO_QUIET));
        let interval = self.config.hello_interval;
        self.pending =
            Some(Pending { asked, index, bytes, continues, joins, cause, due, interval });
    }

    fn free_index(&mut self) -> u32 {
        let previous = self.previous.as_ref().map(|(held, _)| held);
        let used: Vec<u32> = self.current.iter().chain(previous).map(|held| held.index).collect();
        loop {
            let index = u32::from_be_bytes(draw(self.entropy.as_mut())) & INDEX_MASK;
            if !used.contains(&index) {
                return index;
            }
        }
    }
}
