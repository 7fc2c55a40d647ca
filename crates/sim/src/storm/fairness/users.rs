//! Clients or servers at one end of a relay: what they write, read and leave unread.

use super::plan::{Behaviour, Client, Direction, StormPlan};
use crate::Pattern;
use relay::{Event, Priority, Relay, ResetReason, StreamId};
use std::collections::BTreeMap;
use units::Instant;

/// Octets per write.
const PIECE: usize = 16 << 10;
/// Maximum octets of a STREAM frame header or a RESET (relay.md, section 2).
const FRAME: u64 = 24;
/// Octets of a stream opening: that header, and the addresses of target and client.
const OPENING: u64 = 64;

/// One stream at one end.
#[derive(Debug)]
struct Flow {
    client: usize,
    /// Octets still to be written, and octets written.
    to_write: u64,
    written: u64,
    /// Octets already counted as sent.
    counted: u64,
    /// A FIN follows when all octets are written.
    ends: bool,
    /// Octets still to be read, and octets read.
    to_read: u64,
    read: u64,
}

/// Octets of a client on the link, by direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ClientOctets {
    /// Octets read from its streams at this end.
    pub(super) read: u64,
    /// Octets sent for it by this end: acknowledged payload and frame headers.
    pub(super) sent: u64,
}

/// All users at one end of a relay.
#[derive(Debug)]
pub(super) struct Users {
    is_hub: bool,
    seed: u64,
    flows: BTreeMap<StreamId, Flow>,
    client_octets: Vec<ClientOctets>,
    /// Octets of streams that `client_octets` already includes as sent.
    counted: u64,
    error: Option<String>,
}

impl Users {
    pub(super) fn new(seed: u64, is_hub: bool, clients: usize) -> Self {
        let client_octets = vec![ClientOctets::default(); clients];
        Self { is_hub, seed, flows: BTreeMap::new(), client_octets, counted: 0, error: None }
    }

    /// The first error.
    pub(super) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Starts a stream of `client`; its behaviour follows from the client's.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        (client, direction, behaviour): (usize, Direction, Behaviour),
        stream: StreamId,
        relay: &mut Relay,
    ) {
        let writes = self.is_hub == (direction == Direction::Down);
        let (to_write, ends) = match behaviour {
            _ if !writes => (0, false),
            Behaviour::Bulk { .. }
            | Behaviour::Stall { .. }
            | Behaviour::Drip { .. }
            | Behaviour::HalfOpen { .. } => (u64::MAX, false),
            Behaviour::Churn { octets, .. } => (octets, true),
            Behaviour::Trickle { .. } | Behaviour::Flood { .. } => (0, false),
        };
        let to_read = match behaviour {
            Behaviour::Stall { after, .. } => after,
            Behaviour::Drip { .. } | Behaviour::HalfOpen { .. } => 0,
            Behaviour::Bulk { .. }
            | Behaviour::Churn { .. }
            | Behaviour::Trickle { .. }
            | Behaviour::Flood { .. } => u64::MAX,
        };
        let flow = Flow { client, to_write, written: 0, counted: 0, ends, to_read, read: 0 };
        if !self.is_hub {
            self.client_octets[client].sent += OPENING;
        }
        self.flows.insert(stream, flow);
        self.work(now, stream, relay);
    }

    /// Lets each of the client's streams write or read so many octets more.
    pub(super) fn allow(
        &mut self,
        now: Instant,
        client: usize,
        (write, read): (u64, u64),
        relay: &mut Relay,
    ) {
        let mine = |(&stream, flow): (&StreamId, &Flow)| (flow.client == client).then_some(stream);
        let streams: Vec<StreamId> = self.flows.iter().filter_map(mine).collect();
        for stream in streams {
            let Some(flow) = self.flows.get_mut(&stream) else { continue };
            flow.to_write = flow.to_write.saturating_add(write);
            flow.to_read = flow.to_read.saturating_add(read);
            if write > 0 {
                self.client_octets[client].sent += FRAME;
            }
            self.work(now, stream, relay);
        }
    }

    /// Resets the client's stream.
    pub(super) fn reset(&mut self, stream: StreamId, relay: &mut Relay) {
        self.count(stream, relay.unsent(stream));
        self.forget(stream);
        // The stream is already closed.
        let _ = relay.reset(stream, ResetReason::Aborted);
    }

    /// The octets of each client so far, and the octets sent by this end on streams that the peer
    /// has reset: these cannot be attributed to a client.
    pub(super) fn client_octets(&mut self, relay: &Relay) -> (&[ClientOctets], u64) {
        let streams: Vec<StreamId> = self.flows.keys().copied().collect();
        streams.into_iter().for_each(|stream| self.count(stream, relay.unsent(stream)));
        let lost = relay.statistics().bytes_sent - self.counted;
        (&self.client_octets, lost)
    }

    /// Counts the octets that the stream has sent; `unsent` octets are still in its buffer.
    fn count(&mut self, stream: StreamId, unsent: u64) {
        let Some(flow) = self.flows.get_mut(&stream) else { return };
        let sent = flow.written - unsent;
        let news = sent.saturating_sub(flow.counted);
        flow.counted += news;
        self.counted += news;
        self.client_octets[flow.client].sent += news;
    }

    /// Handles an event of a stream.
    pub(super) fn on_event(&mut self, now: Instant, event: &Event, relay: &mut Relay) {
        match *event {
            Event::Readable { stream }
            | Event::Writable { stream }
            | Event::Ending { stream, .. } => self.work(now, stream, relay),
            Event::Ended { stream } => {
                // The stream is already closed.
                let _ = relay.end(stream);
            }
            Event::Released { stream } => {
                // All written octets are acknowledged.
                self.count(stream, 0);
                self.forget(stream);
            }
            Event::Refused { stream, .. } | Event::Reset { stream, .. } => self.forget(stream),
            Event::Disconnected { .. } => {
                self.error.get_or_insert(format!("{event:?} without an injected cause"));
            }
            Event::Connected | Event::Accepted { .. } | Event::Opened { .. } => {}
        }
    }

    /// Discards the state of a closed stream.
    fn forget(&mut self, stream: StreamId) {
        if let Some(flow) = self.flows.remove(&stream) {
            // Both ends send a final frame.
            self.client_octets[flow.client].sent += FRAME;
        }
    }

    /// Reads and writes as far as possible.
    fn work(&mut self, now: Instant, stream: StreamId, relay: &mut Relay) {
        let Some(flow) = self.flows.get_mut(&stream) else { return };
        let tag = self.seed << 24 ^ u64::from(stream.number()) << 1;
        let [own, other] = [self.is_hub, !self.is_hub].map(|hub| Pattern(tag | u64::from(hub)));
        match flow.read(now, (stream, other), relay) {
            Ok(octets) => self.client_octets[flow.client].read += octets,
            Err(text) => {
                self.error.get_or_insert(text);
            }
        }
        flow.write(now, (stream, own), relay);
    }
}

impl Flow {
    /// Reads up to the allowed octets; returns how many.
    fn read(
        &mut self,
        now: Instant,
        (stream, pattern): (StreamId, Pattern),
        relay: &mut Relay,
    ) -> Result<u64, String> {
        let before = self.read;
        while self.to_read > 0 {
            let bytes = relay.peek(stream);
            let len = bytes.len().min(usize::try_from(self.to_read).unwrap_or(usize::MAX));
            if len == 0 {
                break;
            }
            if let Some(place) = pattern.mismatch(self.read, &bytes[..len]) {
                return Err(format!("octet {place} of stream {stream} is wrong"));
            }
            self.read += len as u64;
            if self.to_read != u64::MAX {
                self.to_read -= len as u64;
            }
            // `peek` has just returned these octets.
            let _ = relay.consume(now, stream, len);
        }
        Ok(self.read - before)
    }

    fn write(&mut self, now: Instant, (stream, pattern): (StreamId, Pattern), relay: &mut Relay) {
        let mut piece = [0; PIECE];
        while self.to_write > 0 {
            // Filling a larger buffer than fits would dominate the run time.
            let room = relay.room(stream).clamp(1, PIECE);
            let len = usize::try_from(self.to_write).map_or(room, |left| left.min(room));
            pattern.fill(self.written, &mut piece[..len]);
            // A closed stream accepts nothing; its event follows.
            let taken = relay.write(now, stream, &piece[..len]).unwrap_or(0);
            self.written += taken as u64;
            if self.to_write != u64::MAX {
                self.to_write -= taken as u64;
            }
            if taken < len {
                return;
            }
        }
        if self.ends {
            self.ends = false;
            // The stream is already closed.
            let _ = relay.end(stream);
        }
    }
}

/// Counts unsplit packets that `relay` has sent and that did not arrive, for example because a
/// fragment was lost. They cannot be attributed, so each flood counts an equal part.
pub(super) fn add_lost_packets(
    plan: &StormPlan,
    sums: &mut [[ClientOctets; 2]],
    (terminal, direction): (usize, Direction),
    relay: &Relay,
) {
    let line = direction.line();
    let is_flood = |client: &Client| {
        (client.terminal, client.direction) == (terminal, direction)
            && matches!(client.behaviour, Behaviour::Flood { .. })
    };
    let floods = || (0..plan.clients.len()).filter(|&number| is_flood(&plan.clients[number]));
    let arrived: u64 = floods().map(|number| sums[number][line].sent).sum();
    let lost = relay.totals().datagrams.bytes_sent.saturating_sub(arrived);
    let count = floods().count() as u64;
    floods().for_each(|number| sums[number][line].sent += lost / count);
}

/// The priority of every stream: clients cannot select one.
pub(super) const PRIORITY: Priority = Priority::Normal;
