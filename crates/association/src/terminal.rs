//! The terminal's side: asks for an association, keeps it, asks again when it is gone.

use crate::batch::TransmitBatch;
use crate::channel::{Channel, Opened, SendOrder};
use crate::checksum::{UNKNOWN_KEY, tag_fits};
use crate::config::{Config, Limits};
use crate::cookie::{COOKIE_LIFETIME, Cookie, write_second};
use crate::entropy::{Entropy, draw};
use crate::error::{Counters, OpenError};
use crate::handshake::{HelloPayload, SentHello};
use crate::version;
use crate::wire::{Header, INDEX_MASK, Kind, OVERHEAD, Sealed};
use units::{Instant, Span};

/// Least time between two Hellos for different reasons: an Unknown that somebody forged must not
/// make a terminal busy.
const HELLO_QUIET: Span = Span::from_millis(500);
/// Time for which no Unknown is heeded after one that was not true.
const UNKNOWN_QUIET: Span = Span::from_secs(10);

/// Why a Hello is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// There is no association, or it is to be given up.
    Start,
    /// The keys are old.
    Age,
    /// Somebody says that the hub does not know the association.
    Unknown,
}

/// A Hello that waits for its Welcome. Every repetition is the same message but for its cookie,
/// so that a Welcome to any of them will do when the round trip is longer than the interval.
#[derive(Debug)]
struct Pending {
    asked: SentHello,
    index: u32,
    bytes: Vec<u8>,
    continues: u64,
    cause: Cause,
    due: Instant,
    interval: Span,
}

/// Keys and the index under which the hub sends.
#[derive(Debug)]
struct Held {
    index: u32,
    channel: Channel,
}

/// What a datagram meant to a terminal.
#[derive(Debug, PartialEq, Eq)]
pub enum TerminalReceived<'d> {
    /// A payload from the hub, opened in place.
    Payload {
        /// What it is for.
        kind: Sealed,
        /// What the hub sent.
        payload: &'d mut [u8],
        /// Its position among the datagrams of the hub.
        order: SendOrder,
    },
    /// A new association is in force; what was under the old one is gone.
    Established,
    /// Nothing for the layer above.
    Nothing,
}

/// The terminal's side of one association.
#[derive(Debug)]
pub struct Terminal {
    config: Config,
    entropy: Box<dyn Entropy>,
    current: Option<Held>,
    /// The keys before, and until when they open.
    previous: Option<(Held, Instant)>,
    /// The hub's name for the association; 0: there is none.
    association: u64,
    hub_limits: Option<Limits>,
    pending: Option<Pending>,
    /// Pairs of keys made so far.
    keys_made: u64,
    last_hello: Option<Instant>,
    /// Of the last Hello.
    timestamp: u64,
    /// The last cookie, and until when it is of use.
    cookie: Option<(Cookie, Instant)>,
    /// Since when the hub waits for the first datagram under new keys.
    confirm: Option<Instant>,
    /// Unknowns are not heeded before.
    heed_again: Instant,
    counters: Counters,
}

impl Terminal {
    /// A terminal whose first Hello is due at `now`.
    ///
    /// # Panics
    /// When it has keys, but none of a hub's.
    pub fn new(config: Config, now: Instant, entropy: impl Entropy + 'static) -> Self {
        let mut terminal = Self {
            config,
            entropy: Box::new(entropy),
            current: None,
            previous: None,
            association: 0,
            hub_limits: None,
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

    /// Whether there is an association to seal payloads under.
    pub fn is_established(&self) -> bool {
        self.current.is_some()
    }

    /// Announces to the hub, from the next association on, that this side's link takes `bps` bits
    /// per second from it; 0: that this is not known.
    pub fn set_receive_rate(&mut self, bps: u64) {
        self.config.limits.receive_rate_bps = bps;
    }

    /// What the hub announced.
    pub fn hub_limits(&self) -> Option<Limits> {
        self.hub_limits
    }

    /// What happened to datagrams so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Asks for a new association: what is above the old one is over.
    pub fn restart(&mut self, now: Instant) {
        if self.pending.as_ref().is_none_or(|pending| pending.continues != 0) {
            self.say_hello(now, Cause::Start);
        }
    }

    /// Takes a datagram from the network.
    ///
    /// # Errors
    /// When it is not whole, not new or not for this terminal; it has been counted.
    pub fn handle_datagram<'d>(
        &mut self,
        now: Instant,
        datagram: &'d mut [u8],
    ) -> Result<TerminalReceived<'d>, OpenError> {
        let result = self.receive(now, datagram);
        match &result {
            Ok(TerminalReceived::Payload { .. }) => self.counters.opened += 1,
            Ok(TerminalReceived::Established | TerminalReceived::Nothing) => {}
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
        self.pending = None;
        if welcome.hub_index == 0 {
            // The hub has had a later Hello of this key: the clock was set back since.
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
        Ok(TerminalReceived::Established)
    }

    /// Anyone can send an Unknown; one that echoes an index and a counter in use costs a Hello,
    /// and the association goes on, under new keys, if the hub knows it after all.
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

    /// The hub does not understand the version of this side. Anyone can send a Version, so the
    /// terminal reports it and continues to say Hello.
    fn receive_version(&self, datagram: &[u8]) -> OpenError {
        match &self.pending {
            Some(pending) => version::read(datagram, &pending.bytes).unwrap_or_else(|error| error),
            None => OpenError::Unexpected,
        }
    }

    /// Puts what is due of the association's own into `batch`, a Hello or the first datagram
    /// under new keys; true when it did.
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
        pending.due = now + pending.interval;
        let longer = pending.interval.mul_ratio(3, 2);
        pending.interval = longer.min(self.config.hello_interval_max);
        self.last_hello = Some(now);
        self.counters.hellos += 1;
        true
    }

    /// When [`poll_transmit`](Self::poll_transmit) has something to do again.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let hello = self.pending.as_ref().map(|pending| pending.due);
        hello.into_iter().chain(self.confirm).chain(self.renewal_due()).min()
    }

    /// When the keys are to be renewed; `None` while that is under way.
    fn renewal_due(&self) -> Option<Instant> {
        let held = self.current.as_ref().filter(|_| self.pending.is_none())?;
        if !self.config.is_secret() {
            return None;
        }
        let made = held.channel.made();
        let used_up = held.channel.used() >= self.config.renew_after_datagrams;
        Some(if used_up { made } else { made + self.config.renew_after })
    }

    /// Seals `datagram` in place, whose payload stands between 8 and 16 bytes of room; false when
    /// there is no association to seal it under, or its keys are too old.
    ///
    /// # Panics
    /// When `datagram` is shorter than [`OVERHEAD`].
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
        let continues = match cause {
            Cause::Start => 0,
            Cause::Age | Cause::Unknown => self.association,
        };
        let (timestamp, limits) = (self.timestamp, self.config.limits);
        let payload = HelloPayload { timestamp, continues, limits };
        let Config { security, name, .. } = &self.config;
        let (asked, mut bytes) =
            SentHello::new(security, index, payload, name, self.entropy.as_mut());
        if let Some((cookie, until)) = &self.cookie
            && now < *until
        {
            write_second(cookie, &mut bytes);
        }
        let due = self.last_hello.map_or(now, |last| now.max(last + HELLO_QUIET));
        let interval = self.config.hello_interval;
        self.pending = Some(Pending { asked, index, bytes, continues, cause, due, interval });
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
