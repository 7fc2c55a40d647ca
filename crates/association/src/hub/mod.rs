//! The hub's side: accepts associations of many terminals and identifies them by index.

mod limits;
mod registration;
mod responses;
mod table;
mod terminals;

pub use registration::Registration;
pub use table::PeerId;

use crate::admission::{Admission, AdmissionDecision, RateLimit};
use crate::batch::TransmitBatch;
use crate::capabilities::Capabilities;
use crate::channel::SendOrder;
use crate::config::{Config, Limits};
use crate::cookie::MacKeys;
use crate::entropy::{Entropy, draw};
use crate::error::{Counters, OpenError};
use crate::handshake::{
    From, ReceivedHello, SUITE_NOISE, SUITE_NULL, WelcomePayload, check_len, check_suite,
};
use crate::keys::{Keys, PublicKey, Security};
use crate::noise;
use crate::null;
use crate::recent_senders::VerifiedSenders;
use crate::response_limit::ResponseLimiter;
use crate::wire::{Header, Kind, Sealed};
use responses::ResponseQueue;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use table::{InForce, Owner, Pending, Table};
use terminals::{Terminal, terminals};
use units::{Instant, Span};

/// Rate of Unknowns to one address (in IPv6 to one network of 64 bits), in each of its two slots,
/// so that a flood from other addresses does not hide a restart of the hub.
const UNKNOWN: RateLimit = RateLimit { interval: Span::from_millis(500), burst: 2 };

/// Result of a datagram at a hub.
#[derive(Debug, PartialEq, Eq)]
pub enum HubReceived<'d> {
    /// A payload from a terminal, decrypted in place.
    Payload {
        /// The terminal.
        peer: PeerId,
        /// Kind of the payload.
        kind: Sealed,
        /// The payload.
        payload: &'d mut [u8],
        /// Position among the datagrams of the terminal.
        order: SendOrder,
        /// Whether it is the association's first payload, which activates it.
        first: bool,
        /// Associations of the same terminal that it replaced.
        replaced: Vec<PeerId>,
        /// The association of another path of the terminal, to which this new one is joined.
        joins: Option<PeerId>,
    },
    /// Nothing for the upper layer (responses may be queued).
    Nothing,
}

/// Additional state of a hub with keys.
#[derive(Debug)]
struct Secrets {
    keys: Arc<Keys>,
    macs: MacKeys,
    terminals: BTreeMap<PublicKey, Terminal>,
    admission: Admission,
    /// Registrations that are not polled yet, by the key of the terminal.
    registrations: BTreeMap<PublicKey, Registration>,
}

/// The hub's side of its associations.
#[derive(Debug)]
pub struct Hub {
    config: Config,
    entropy: Box<dyn Entropy>,
    secrets: Option<Secrets>,
    table: Table,
    answers: ResponseQueue,
    /// Announced limits by terminal, where they differ from the default.
    limits: BTreeMap<String, Limits>,
    unknowns: ResponseLimiter,
    /// Addresses from which terminals were received.
    acquainted: VerifiedSenders,
    counters: Counters,
    /// Whether new associations are rejected.
    draining: bool,
    is_shared: bool,
}

impl Hub {
    /// Creates a hub without associations.
    pub fn new(config: Config, entropy: impl Entropy + 'static) -> Self {
        let mut entropy: Box<dyn Entropy> = Box::new(entropy);
        let secrets = match &config.security {
            Security::None => None,
            Security::Noise(keys) => Some(Secrets {
                keys: keys.clone(),
                macs: MacKeys::new(&keys.public()),
                terminals: terminals(keys, &BTreeMap::new()),
                admission: Admission::new(config.answer_rate, entropy.as_mut()),
                registrations: BTreeMap::new(),
            }),
        };
        let seed = u64::from_be_bytes(draw(entropy.as_mut()));
        // Every part sends Unknowns, and part 0 all Cookies.
        let unknowns = config.answer_rate.mul_ratio(1, config.part.count().into());
        Self {
            unknowns: ResponseLimiter::new(unknowns, UNKNOWN, seed),
            acquainted: config.part.verified().unwrap_or_else(|| VerifiedSenders::new(seed)),
            config,
            entropy,
            secrets,
            table: Table::default(),
            answers: ResponseQueue::default(),
            limits: BTreeMap::new(),
            counters: Counters::default(),
            draining: false,
            is_shared: false,
        }
    }

    /// Rejects new associations from now on: drops their Hellos, which terminals repeat until the
    /// successor of this hub responds. Existing associations continue, including key renewals.
    pub fn drain(&mut self) {
        self.draining = true;
    }

    /// Returns true if new associations are rejected.
    pub fn is_draining(&self) -> bool {
        self.draining
    }

    /// Sets whether another process of this hub gets [`OpenError::Elsewhere`] from the caller.
    pub fn set_shared(&mut self, is_shared: bool) {
        self.is_shared = is_shared;
    }

    /// Returns this hub's public key, if it has keys.
    pub fn public_key(&self) -> Option<PublicKey> {
        self.secrets.as_ref().map(|secrets| secrets.keys.public())
    }

    /// Replaces the configured keys, with the same private key. Associations of terminals that are
    /// no longer configured under the same name end, and are returned.
    ///
    /// # Panics
    /// If the hub has no keys, or the private key differs.
    pub fn set_keys(&mut self, keys: Arc<Keys>) -> Vec<PeerId> {
        let secrets = self.secrets.as_mut().expect("a hub with keys");
        assert!(secrets.keys.public() == keys.public(), "the private key is another");
        let before = std::mem::take(&mut secrets.terminals);
        secrets.terminals = terminals(&keys, &before);
        let is_other = |key: &PublicKey| match (before.get(key), secrets.terminals.get(key)) {
            (Some(old), Some(new)) => !old.is_like(new),
            (_, _) => true,
        };
        self.table.forget_answers(is_other);
        secrets.keys = keys.clone();
        self.config.security = Security::Noise(keys);
        let terminals = &secrets.terminals;
        self.table.end_all(|owner| {
            let terminal = owner.key.and_then(|key| terminals.get(&key));
            terminal.is_none_or(|terminal| terminal.name != owner.name)
        })
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) must be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.table.next_expiry()
    }

    /// Removes keys that have expired by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.table.expire(now, &self.config);
    }

    /// Returns the counters of datagrams.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the number of stored pairs of keys.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn kept(&self) -> usize {
        self.table.kept()
    }

    /// Returns the current address of a terminal.
    pub fn address(&self, peer: PeerId) -> Option<SocketAddr> {
        self.table.peer(peer).map(|peer| peer.address)
    }

    /// Returns the name of a terminal: the configured one, or its own without keys.
    pub fn name(&self, peer: PeerId) -> Option<&str> {
        self.table.peer(peer).map(|peer| &*peer.owner.name)
    }

    /// Returns the limits that a terminal announced.
    pub fn limits(&self, peer: PeerId) -> Option<Limits> {
        self.table.peer(peer).map(|peer| peer.limits)
    }

    /// Processes a datagram from `from`.
    ///
    /// # Errors
    /// If it is damaged, a replay, or of no known association; it has been counted.
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
        let header = match Header::decode(datagram) {
            Err(error @ OpenError::Version { .. }) => {
                self.answer_version(now, from, datagram);
                return Err(error);
            }
            result => result?,
        };
        match header.kind {
            Kind::Data => self.receive_sealed(now, from, Sealed::Data, header, datagram),
            Kind::Probe => self.receive_sealed(now, from, Sealed::Probe, header, datagram),
            Kind::ProbeAck => self.receive_sealed(now, from, Sealed::ProbeAck, header, datagram),
            Kind::Hello => self.receive_hello(now, from, header, datagram),
            Kind::Welcome | Kind::Unknown | Kind::Cookie => Err(OpenError::Unexpected),
        }
    }

    fn receive_sealed<'d>(
        &mut self,
        now: Instant,
        from: SocketAddr,
        kind: Sealed,
        header: Header,
        datagram: &'d mut [u8],
    ) -> Result<HubReceived<'d>, OpenError> {
        let index = header.index;
        let Some(channel) = self.table.channel(now, &self.config, index) else {
            if self.is_shared {
                return Err(OpenError::Elsewhere);
            }
            self.answer_unknown(now, from, header);
            return Err(OpenError::UnknownIndex { index });
        };
        let opened = channel.open(header, datagram)?;
        let (newest, payload, order) = (opened.newest, opened.payload, opened.order);
        let InForce { peer, first, replaced, joins, renewed } =
            match self.table.in_force(now, &self.config, index, from) {
                Ok(in_force) => in_force,
                Err(error) => {
                    self.answer_unknown(now, from, header);
                    return Err(error);
                }
            };
        self.counters.renewals += u64::from(renewed);
        // The first datagram from a new address migrates the path. In the null suite anyone can
        // forge it; the tag of another suite prevents this.
        if (newest && self.table.moved(peer, index, from)) || first || renewed {
            self.acquainted.put(from.ip());
        }
        Ok(HubReceived::Payload { peer, kind, payload, order, first, replaced, joins })
    }

    fn receive_hello(
        &mut self,
        now: Instant,
        from: SocketAddr,
        header: Header,
        datagram: &[u8],
    ) -> Result<HubReceived<'static>, OpenError> {
        let (heard, said) = match &mut self.secrets {
            None => {
                check_suite(header, SUITE_NULL)?;
                let heard = null::hear(header, datagram)?;
                if self.answer_again(from, datagram) {
                    return Ok(HubReceived::Nothing);
                }
                (heard, datagram)
            }
            Some(secrets) => {
                check_suite(header, SUITE_NOISE)?;
                check_len(datagram, noise::HELLO_LEN, "length of the hello")?;
                if !secrets.macs.first_fits(datagram) {
                    return Err(OpenError::Tag);
                }
                let entropy = self.entropy.as_mut();
                let known = self.acquainted.has(from.ip());
                let macs = &secrets.macs;
                let decision = match self.config.part.number() {
                    0 => secrets.admission.decide(now, (from, known), datagram, macs, entropy),
                    // Part 0 has decided.
                    _ => AdmissionDecision::Accept,
                };
                match decision {
                    AdmissionDecision::Accept => {}
                    AdmissionDecision::Drop => return Err(OpenError::Busy),
                    AdmissionDecision::Suppress => {
                        self.counters.cookies_withheld += 1;
                        return Err(OpenError::Busy);
                    }
                    AdmissionDecision::SendCookie(cookie) => {
                        self.counters.cookies += 1;
                        self.answers.push(from, cookie);
                        return Ok(HubReceived::Nothing);
                    }
                }
                let keys = secrets.keys.clone();
                let said = &datagram[..noise::MACS_AT];
                if self.answer_again(from, said) {
                    return Ok(HubReceived::Nothing);
                }
                let heard = noise::hear(&keys, header, datagram, self.entropy.as_mut())?;
                if let From::Key { key, .. } = &heard.from
                    && let Some(part) = keys.other_part(*key, self.config.part.number())
                {
                    return Err(OpenError::OtherPart { part });
                }
                (heard, said)
            }
        };
        self.answer_hello(now, from, heard, said)
    }

    /// A repeated Hello gets the same response: the Welcome was lost or is in flight.
    fn answer_again(&mut self, from: SocketAddr, hello: &[u8]) -> bool {
        let Some(welcome) = self.table.welcome(hello) else {
            return false;
        };
        self.welcome(from, welcome);
        true
    }

    fn answer_hello(
        &mut self,
        now: Instant,
        from: SocketAddr,
        heard: ReceivedHello,
        hello: &[u8],
    ) -> Result<HubReceived<'static>, OpenError> {
        if heard.registers.is_some() {
            return self.register(from, heard);
        }
        let said = heard.payload;
        if self.is_shared && said.continues != 0 && !self.table.has(said.continues) {
            return Err(OpenError::Elsewhere);
        }
        let (owner, before) = self.admit(now, &heard)?;
        if said.timestamp <= before {
            return self.answer_stale(from, heard, before);
        }
        let hub_index = self.table.free_index(&self.config.part, self.entropy.as_mut());
        let continues = self.table.find(&owner, said.continues);
        if self.draining && continues.is_none() {
            return Err(OpenError::Full);
        }
        let association = match continues {
            Some(_) => said.continues,
            None => u64::from_be_bytes(draw(self.entropy.as_mut())).max(1),
        };
        let mut limits = self.limits.get(&*owner.name).copied().unwrap_or(self.config.limits);
        let both = said.limits.capabilities.and(limits.capabilities);
        let may_join = continues.is_none() && both.contains(Capabilities::JOINS);
        let sibling = || self.table.find_sibling(&owner, said.continues);
        let joins = may_join.then(sibling).flatten();
        if joins.is_none() {
            limits.capabilities = limits.capabilities.without(Capabilities::JOINS);
        }
        let welcome = WelcomePayload { hub_index, association, latest: said.timestamp, limits };
        let (bytes, keys) = match heard.from {
            From::Name { ephemeral, .. } => {
                null::answer(heard.index, &ephemeral, &welcome, self.entropy.as_mut())
            }
            From::Key { key, answer } => {
                let terminal = self.terminal(key).ok_or(OpenError::UnknownKey { key })?;
                terminal.latest = said.timestamp;
                answer.welcome(heard.index, &terminal.preshared, &welcome)
            }
        };
        let pending = Pending {
            owner,
            limits: said.limits,
            association,
            is_beside: said.is_beside && continues.is_none(),
            continues,
            joins,
            hello: hello.into(),
            welcome: bytes.clone(),
        };
        self.table.add(now, &self.config, (hub_index, heard.index), keys, pending);
        self.welcome(from, bytes);
        Ok(HubReceived::Nothing)
    }

    /// Returns the sender of a Hello and its last timestamp, if there is a slot for it.
    fn admit(&mut self, now: Instant, heard: &ReceivedHello) -> Result<(Owner, u64), OpenError> {
        let (owner, latest) = match &heard.from {
            From::Name { name, .. } => (Owner { name: name.as_str().into(), key: None }, 0),
            From::Key { key, .. } => {
                let terminal = self.terminal(*key).filter(|terminal| !terminal.enrols);
                let terminal = terminal.ok_or(OpenError::UnknownKey { key: *key })?;
                let owner = Owner { name: terminal.name.clone(), key: Some(*key) };
                (owner, terminal.latest)
            }
        };
        if !self.table.has_place(&self.config, &owner) {
            return Err(OpenError::Full);
        }
        match &heard.from {
            From::Name { .. } => self.table.make_room(now, &self.config, &owner),
            From::Key { .. } => {
                if heard.payload.timestamp > latest {
                    self.table.drop_pending(&owner);
                }
            }
        }
        Ok((owner, latest))
    }

    fn terminal(&mut self, key: PublicKey) -> Option<&mut Terminal> {
        self.secrets.as_mut()?.terminals.get_mut(&key)
    }

    fn welcome(&mut self, to: SocketAddr, bytes: Vec<u8>) {
        self.counters.hellos += 1;
        self.answers.push_first(to, bytes);
    }

    /// Writes the next response (a Welcome, an Unknown or a Cookie) to `batch`; returns its
    /// destination.
    pub fn poll_transmit(&mut self, batch: &mut TransmitBatch<'_>) -> Option<SocketAddr> {
        self.answers.poll_transmit(batch)
    }

    /// Returns true if a response is queued.
    pub fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Encrypts `datagram` for `peer` in place, with the payload between 8 octets of header and 16
    /// of tag; returns its destination, or `None` if the association has ended or its keys have
    /// expired.
    ///
    /// # Panics
    /// If `datagram` is shorter than [`OVERHEAD`](crate::OVERHEAD).
    pub fn seal(
        &mut self,
        now: Instant,
        peer: PeerId,
        kind: Sealed,
        datagram: &mut [u8],
    ) -> Option<SocketAddr> {
        let address = self.table.peer(peer)?.address;
        let channel = self.table.current(peer)?;
        if self.config.is_expired(now, channel) || !channel.seal(kind.into(), datagram) {
            return None;
        }
        self.counters.sealed += 1;
        Some(address)
    }

    /// Ends an association; its further datagrams are answered by Unknown.
    pub fn remove(&mut self, peer: PeerId) {
        self.table.remove(peer);
    }
}
