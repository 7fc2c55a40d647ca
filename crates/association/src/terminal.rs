//! The terminal's side: asks for an association, keeps it, asks again when it is gone.

use crate::channel::{Channel, Side, UNKNOWN_KEY, tag_fits};
use crate::handshake::{Hello, Welcome};
use crate::wire::{Header, INDEX_MASK, Kind};
use crate::{Config, Counters, Limits, OpenError, TransmitBatch};
use units::{Instant, RngStream, Span};

/// Least time between two Hellos for different reasons: an Unknown that somebody forged must not
/// make a terminal busy.
const HELLO_QUIET: Span = Span::from_millis(500);

/// A Hello that waits for its Welcome. Every repetition is the same message, so that a Welcome to
/// any of them will do when the round trip is longer than the interval.
#[derive(Debug)]
struct Pending {
    hello: Hello,
    bytes: Vec<u8>,
    due: Instant,
    interval: Span,
}

/// What a datagram meant to a terminal.
#[derive(Debug, PartialEq, Eq)]
pub enum TerminalReceived<'d> {
    /// A payload from the hub, opened in place.
    Payload(&'d mut [u8]),
    /// A new association is in force; what was under the old one is gone.
    Established,
    /// Nothing for the layer above.
    Nothing,
}

/// The terminal's side of one association.
#[derive(Debug)]
pub struct Terminal {
    config: Config,
    rng: RngStream,
    local_index: u32,
    channel: Option<Channel>,
    hub_limits: Option<Limits>,
    pending: Option<Pending>,
    last_hello: Option<Instant>,
    counters: Counters,
}

impl Terminal {
    /// A terminal whose first Hello is due at `now`.
    pub fn new(config: Config, now: Instant, rng: RngStream) -> Self {
        let mut terminal = Self {
            config,
            rng,
            local_index: 0,
            channel: None,
            hub_limits: None,
            pending: None,
            last_hello: None,
            counters: Counters::default(),
        };
        terminal.say_hello(now);
        terminal
    }

    /// Whether payloads can be sealed.
    pub fn is_established(&self) -> bool {
        self.channel.is_some()
    }

    /// What the hub announced.
    pub fn hub_limits(&self) -> Option<Limits> {
        self.hub_limits
    }

    /// What happened to datagrams so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Asks for a new association: the hub does not answer under the old one.
    pub fn restart(&mut self, now: Instant) {
        if self.pending.is_none() {
            self.say_hello(now);
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
            Ok(TerminalReceived::Payload(_)) => self.counters.opened += 1,
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
        let header = Header::decode(datagram)?;
        match header.kind {
            Kind::Data => self.receive_data(header, datagram),
            Kind::Welcome => self.receive_welcome(header, datagram),
            Kind::Unknown => self.receive_unknown(now, header, datagram),
            Kind::Hello => Err(OpenError::Unexpected),
        }
    }

    fn receive_data<'d>(
        &mut self,
        header: Header,
        datagram: &'d mut [u8],
    ) -> Result<TerminalReceived<'d>, OpenError> {
        match &mut self.channel {
            Some(channel) if header.index == self.local_index => {
                Ok(TerminalReceived::Payload(channel.open(header, datagram)?.payload))
            }
            Some(_) | None => Err(OpenError::UnknownIndex { index: header.index }),
        }
    }

    fn receive_welcome(
        &mut self,
        header: Header,
        datagram: &[u8],
    ) -> Result<TerminalReceived<'static>, OpenError> {
        let Some(pending) = &self.pending else { return Err(OpenError::Unexpected) };
        if header.index != pending.hello.index {
            return Err(OpenError::UnknownIndex { index: header.index });
        }
        let welcome = Welcome::decode(header, datagram, &pending.hello.ephemeral)?;
        self.local_index = pending.hello.index;
        self.channel = Some(Channel::new(
            Side::Terminal,
            welcome.hub_index,
            &pending.hello.ephemeral,
            &welcome.ephemeral,
        ));
        self.hub_limits = Some(welcome.limits);
        self.pending = None;
        Ok(TerminalReceived::Established)
    }

    /// Anyone can send an Unknown; one that echoes an index and a counter in use costs a Hello,
    /// and the association stays in force until its answer.
    fn receive_unknown(
        &mut self,
        now: Instant,
        header: Header,
        datagram: &[u8],
    ) -> Result<TerminalReceived<'static>, OpenError> {
        let Some(channel) = &self.channel else { return Err(OpenError::Unexpected) };
        if !tag_fits(UNKNOWN_KEY, datagram) {
            return Err(OpenError::Tag);
        }
        if header.index != channel.remote_index() || !channel.sent_lately(header.counter) {
            return Err(OpenError::UnknownIndex { index: header.index });
        }
        if self.pending.is_none() {
            self.counters.unknowns += 1;
            self.say_hello(now);
        }
        Ok(TerminalReceived::Nothing)
    }

    /// Puts a Hello into `batch` when one is due; true when it did.
    pub fn poll_transmit(&mut self, now: Instant, batch: &mut TransmitBatch<'_>) -> bool {
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

    /// When the next Hello is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.pending.as_ref().map(|pending| pending.due)
    }

    /// Seals `datagram` in place, whose payload stands between 8 and 16 bytes of room; false when
    /// there is no association to seal it under.
    ///
    /// # Panics
    /// When `datagram` is shorter than [`crate::OVERHEAD`].
    pub fn seal(&mut self, datagram: &mut [u8]) -> bool {
        let Some(channel) = &mut self.channel else { return false };
        channel.seal(datagram);
        self.counters.sealed += 1;
        true
    }

    fn say_hello(&mut self, now: Instant) {
        let mut index = self.local_index;
        while index == self.local_index {
            index = self.rng.next_u64() as u32 & INDEX_MASK;
        }
        let hello = Hello {
            index,
            ephemeral: random_bytes(&mut self.rng),
            timestamp: self.config.wall_clock_ns.saturating_add(now.as_nanos()),
            limits: self.config.limits,
            name: self.config.name.clone(),
        };
        let due = self.last_hello.map_or(now, |last| now.max(last + HELLO_QUIET));
        let bytes = hello.encode();
        self.pending = Some(Pending { hello, bytes, due, interval: self.config.hello_interval });
    }
}

/// 32 random bytes.
pub(crate) fn random_bytes(rng: &mut RngStream) -> [u8; 32] {
    let mut out = [0; 32];
    for room in out.chunks_exact_mut(8) {
        room.copy_from_slice(&rng.next_u64().to_be_bytes());
    }
    out
}
