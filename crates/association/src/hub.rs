//! The hub's side: grants associations and keeps those of many terminals apart by index.

use crate::channel::{Channel, Side, UNKNOWN_KEY, write_tag};
use crate::handshake::{Hello, MAX_HANDSHAKE, Welcome};
use crate::terminal::random_bytes;
use crate::wire::{Header, INDEX_MASK, Kind, OVERHEAD};
use crate::{Config, Counters, Limits, OpenError, TransmitBatch};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use units::{Instant, RngStream, Span};

/// Answers that wait to be sent; more are not worth keeping.
const MAX_ANSWERS: usize = 64;
/// Unknowns per second, to all.
const UNKNOWN_INTERVAL: Span = Span::from_millis(20);
/// Unknowns that may go at once after a quiet time.
const UNKNOWN_BURST: u64 = 10;

/// An association at a hub, known by the index that the hub gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(u32);

impl core::fmt::Display for PeerId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:06x}", self.0)
    }
}

/// What a datagram meant to a hub.
#[derive(Debug, PartialEq, Eq)]
pub enum HubReceived<'d> {
    /// A payload from a terminal, opened in place.
    Payload {
        /// The terminal.
        peer: PeerId,
        /// What it sent.
        payload: &'d mut [u8],
        /// Whether it is the association's first, which puts it in force.
        first: bool,
        /// The association of the same terminal that ended with it.
        replaced: Option<PeerId>,
    },
    /// Nothing for the layer above (answers may wait to be sent).
    Nothing,
}

#[derive(Debug)]
struct Peer {
    channel: Channel,
    address: SocketAddr,
    name: String,
    limits: Limits,
    hello: Hello,
    welcome: Vec<u8>,
    /// In force: a payload has come under it.
    confirmed: bool,
    made: Instant,
}

/// The hub's side of its associations.
#[derive(Debug)]
pub struct Hub {
    config: Config,
    rng: RngStream,
    peers: BTreeMap<u32, Peer>,
    answers: VecDeque<(SocketAddr, Vec<u8>)>,
    /// When the next Unknown may go, if they had been sent evenly.
    unknown_at: Instant,
    counters: Counters,
}

impl Hub {
    /// A hub that knows no terminal yet.
    pub fn new(config: Config, rng: RngStream) -> Self {
        Self {
            config,
            rng,
            peers: BTreeMap::new(),
            answers: VecDeque::new(),
            unknown_at: Instant::ZERO,
            counters: Counters::default(),
        }
    }

    /// What happened to datagrams so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Associations that are kept, in force or not.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn peers(&self) -> usize {
        self.peers.len()
    }

    /// Where the terminal was last heard from.
    pub fn address(&self, peer: PeerId) -> Option<SocketAddr> {
        self.peers.get(&peer.0).map(|peer| peer.address)
    }

    /// What the terminal calls itself.
    pub fn name(&self, peer: PeerId) -> Option<&str> {
        self.peers.get(&peer.0).map(|peer| peer.name.as_str())
    }

    /// What the terminal announced.
    pub fn limits(&self, peer: PeerId) -> Option<Limits> {
        self.peers.get(&peer.0).map(|peer| peer.limits)
    }

    /// Takes a datagram that came from `from`.
    ///
    /// # Errors
    /// When it is not whole, not new or of no known association; it has been counted.
    pub fn handle_datagram<'d>(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &'d mut [u8],
    ) -> Result<HubReceived<'d>, OpenError> {
        let result = self.receive(now, from, datagram);
        match &result {
            Ok(HubReceived::Payload { .. }) => self.counters.opened += 1,
            Ok(HubReceived::Nothing) => {}
            Err(error) => self.counters.count(*error),
        }
        result
    }

    fn receive<'d>(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &'d mut [u8],
    ) -> Result<HubReceived<'d>, OpenError> {
        let header = Header::decode(datagram)?;
        match header.kind {
            Kind::Data => self.receive_data(now, from, header, datagram),
            Kind::Hello => self.receive_hello(now, from, header, datagram),
            Kind::Welcome | Kind::Unknown => Err(OpenError::Unexpected),
        }
    }

    fn receive_data<'d>(
        &mut self,
        now: Instant,
        from: SocketAddr,
        header: Header,
        datagram: &'d mut [u8],
    ) -> Result<HubReceived<'d>, OpenError> {
        let Some(peer) = self.peers.get_mut(&header.index) else {
            self.answer_unknown(now, from, header);
            return Err(OpenError::UnknownIndex { index: header.index });
        };
        let opened = peer.channel.open(header, datagram)?;
        // Who moves is found again by the first datagram from the new place. With the null suite
        // anyone can pretend to have moved; a real suite's tag forbids that.
        if opened.newest {
            peer.address = from;
        }
        let first = !peer.confirmed;
        peer.confirmed = true;
        let payload = opened.payload;
        let replaced = if first { self.replace_others(header.index) } else { None };
        Ok(HubReceived::Payload { peer: PeerId(header.index), payload, first, replaced })
    }

    /// Forgets the other associations of the terminal whose `index` came into force; returns the
    /// one that was in force.
    fn replace_others(&mut self, index: u32) -> Option<PeerId> {
        let name = self.peers.get(&index)?.name.clone();
        let mut replaced = None;
        self.peers.retain(|&other, peer| {
            if other == index || peer.name != name {
                return true;
            }
            if peer.confirmed {
                replaced = Some(PeerId(other));
            }
            false
        });
        replaced
    }

    fn receive_hello(
        &mut self,
        now: Instant,
        from: SocketAddr,
        header: Header,
        datagram: &[u8],
    ) -> Result<HubReceived<'static>, OpenError> {
        let hello = Hello::decode(header, datagram)?;
        // A Hello that comes again gets the same answer: the Welcome was lost or is on its way.
        if let Some(peer) = self.peers.values_mut().find(|peer| peer.hello == hello) {
            if !peer.confirmed {
                peer.address = from;
            }
            let welcome = peer.welcome.clone();
            self.answer(from, welcome);
            return Ok(HubReceived::Nothing);
        }
        self.make_room(now, &hello.name)?;
        let hub_index = self.free_index();
        let ephemeral = random_bytes(&mut self.rng);
        let welcome = Welcome {
            terminal_index: hello.index,
            hub_index,
            ephemeral,
            limits: self.config.limits,
        }
        .encode(&hello.ephemeral);
        let channel = Channel::new(Side::Hub, hello.index, &hello.ephemeral, &ephemeral);
        let peer = Peer {
            channel,
            address: from,
            name: hello.name.clone(),
            limits: hello.limits,
            hello,
            welcome: welcome.clone(),
            confirmed: false,
            made: now,
        };
        self.peers.insert(hub_index, peer);
        self.answer(from, welcome);
        Ok(HubReceived::Nothing)
    }

    /// Forgets what was never confirmed, and makes sure that one more association fits.
    fn make_room(&mut self, now: Instant, name: &str) -> Result<(), OpenError> {
        let lifetime = self.config.pending_lifetime;
        self.peers.retain(|_, peer| {
            // A newer Hello of the same terminal takes the place of one that led nowhere.
            peer.confirmed || (now.since(peer.made) < lifetime && peer.name != name)
        });
        let confirmed = self.peers.values().filter(|peer| peer.confirmed).count();
        let known = self.peers.values().any(|peer| peer.confirmed && peer.name == name);
        if confirmed >= self.config.max_terminals && !known {
            return Err(OpenError::Full);
        }
        if self.peers.len() - confirmed >= self.config.max_pending {
            let oldest =
                self.peers.iter().filter(|(_, peer)| !peer.confirmed).min_by_key(|(_, p)| p.made);
            if let Some(index) = oldest.map(|(&index, _)| index) {
                self.peers.remove(&index);
            }
        }
        Ok(())
    }

    fn free_index(&mut self) -> u32 {
        // There are 2²⁴ indices and at most a few hundred in use.
        loop {
            let index = self.rng.next_u64() as u32 & INDEX_MASK;
            if !self.peers.contains_key(&index) {
                return index;
            }
        }
    }

    /// Tells the sender of a datagram that its index is not known, no more often than
    /// [`UNKNOWN_INTERVAL`] allows. An Unknown is 24 bytes, the smallest datagram there is.
    fn answer_unknown(&mut self, now: Instant, from: SocketAddr, header: Header) {
        let burst = UNKNOWN_INTERVAL * UNKNOWN_BURST;
        if self.unknown_at > now + burst {
            return;
        }
        self.unknown_at = self.unknown_at.max(now) + UNKNOWN_INTERVAL;
        let mut bytes = vec![0; OVERHEAD];
        Header { kind: Kind::Unknown, ..header }.encode(&mut bytes);
        write_tag(UNKNOWN_KEY, &mut bytes);
        self.counters.unknowns += 1;
        self.answer(from, bytes);
    }

    fn answer(&mut self, to: SocketAddr, bytes: Vec<u8>) {
        debug_assert!(bytes.len() <= MAX_HANDSHAKE);
        if bytes.len() > OVERHEAD {
            self.counters.hellos += 1;
        }
        if self.answers.len() < MAX_ANSWERS {
            self.answers.push_back((to, bytes));
        }
    }

    /// Puts the next answer (a Welcome or an Unknown) into `batch`; returns where it goes.
    pub fn poll_transmit(&mut self, batch: &mut TransmitBatch<'_>) -> Option<SocketAddr> {
        let len = self.answers.front()?.1.len();
        let slot = batch.slot(len).filter(|slot| slot.len() == len)?;
        let (to, bytes) = self.answers.pop_front()?;
        slot.copy_from_slice(&bytes);
        batch.commit(len);
        Some(to)
    }

    /// Whether an answer waits to be sent.
    pub fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Seals `datagram` for `peer` in place, whose payload stands between 8 and 16 bytes of room;
    /// returns where it goes, or `None` when the association is gone.
    ///
    /// # Panics
    /// When `datagram` is shorter than [`OVERHEAD`].
    pub fn seal(&mut self, peer: PeerId, datagram: &mut [u8]) -> Option<SocketAddr> {
        let peer = self.peers.get_mut(&peer.0)?;
        peer.channel.seal(datagram);
        self.counters.sealed += 1;
        Some(peer.address)
    }

    /// Ends an association; what still comes under it is answered by Unknown.
    pub fn remove(&mut self, peer: PeerId) {
        self.peers.remove(&peer.0);
    }
}
