//! Clients or servers at one end of one relay: what they write, read and leave unread.

use super::mix::{Client, Direction, Manner, Mix};
use crate::Pattern;
use relay::{Event, Priority, Relay, ResetReason, StreamId};
use std::collections::BTreeMap;
use units::Instant;

/// Octets that are written in one go.
const PIECE: usize = 16 << 10;
/// Octets that the header of a STREAM frame or a RESET takes at most (relay.md, section 2).
const FRAME: u64 = 24;
/// Octets of an opening: that header, with the target's and the client's address.
const OPENING: u64 = 64;

/// One stream at one end.
#[derive(Debug)]
struct Flow {
    client: usize,
    /// Octets that may still be written, and that were.
    to_write: u64,
    written: u64,
    /// Octets that were counted as sent.
    counted: u64,
    /// The half ends when all is written.
    ends: bool,
    /// Octets that may still be read, and that were.
    to_read: u64,
    read: u64,
}

/// What a client has had of the link in each direction, octets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Carried {
    /// Octets that were read from its streams, of the direction to this end.
    pub(super) read: u64,
    /// Octets that were sent for it by this end: payload that arrived, and what frames took.
    pub(super) sent: u64,
}

/// All users at one end of one relay.
#[derive(Debug)]
pub(super) struct Users {
    is_hub: bool,
    seed: u64,
    flows: BTreeMap<StreamId, Flow>,
    carried: Vec<Carried>,
    /// Octets of streams that are in `carried` as sent.
    counted: u64,
    wrong: Option<String>,
}

impl Users {
    pub(super) fn new(seed: u64, is_hub: bool, clients: usize) -> Self {
        let carried = vec![Carried::default(); clients];
        Self { is_hub, seed, flows: BTreeMap::new(), carried, counted: 0, wrong: None }
    }

    /// The first thing that was wrong.
    pub(super) fn wrong(&self) -> Option<&str> {
        self.wrong.as_deref()
    }

    /// A stream of `client`'s begins: what this end does with it follows from the client's manner.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        (client, direction, manner): (usize, Direction, Manner),
        stream: StreamId,
        relay: &mut Relay,
    ) {
        let writes = self.is_hub == (direction == Direction::Down);
        let (to_write, ends) = match manner {
            _ if !writes => (0, false),
            Manner::Bulk { .. }
            | Manner::Stall { .. }
            | Manner::Drip { .. }
            | Manner::HalfOpen { .. } => (u64::MAX, false),
            Manner::Churn { octets, .. } => (octets, true),
            Manner::Trickle { .. } | Manner::Flood { .. } => (0, false),
        };
        let to_read = match manner {
            Manner::Stall { after, .. } => after,
            Manner::Drip { .. } | Manner::HalfOpen { .. } => 0,
            Manner::Bulk { .. }
            | Manner::Churn { .. }
            | Manner::Trickle { .. }
            | Manner::Flood { .. } => u64::MAX,
        };
        let flow = Flow { client, to_write, written: 0, counted: 0, ends, to_read, read: 0 };
        if !self.is_hub {
            self.carried[client].sent += OPENING;
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
                self.carried[client].sent += FRAME;
            }
            self.work(now, stream, relay);
        }
    }

    /// Cuts the client's stream off.
    pub(super) fn reset(&mut self, stream: StreamId, relay: &mut Relay) {
        self.count(stream, relay.unsent(stream));
        self.forget(stream);
        // It is gone otherwise.
        let _ = relay.reset(stream, ResetReason::Aborted);
    }

    /// What each client has had until now, and octets of streams that were sent by this end for
    /// clients whose streams its peer has reset: nobody says how many each of them had sent.
    pub(super) fn carried(&mut self, relay: &Relay) -> (&[Carried], u64) {
        let streams: Vec<StreamId> = self.flows.keys().copied().collect();
        streams.into_iter().for_each(|stream| self.count(stream, relay.unsent(stream)));
        let lost = relay.statistics().bytes_sent - self.counted;
        (&self.carried, lost)
    }

    /// Counts what the stream has sent, of which it holds `unsent` octets more.
    fn count(&mut self, stream: StreamId, unsent: u64) {
        let Some(flow) = self.flows.get_mut(&stream) else { return };
        let sent = flow.written - unsent;
        let news = sent.saturating_sub(flow.counted);
        flow.counted += news;
        self.counted += news;
        self.carried[flow.client].sent += news;
    }

    /// Takes in what happened to a stream.
    pub(super) fn on_event(&mut self, now: Instant, event: &Event, relay: &mut Relay) {
        match *event {
            Event::Readable { stream }
            | Event::Writable { stream }
            | Event::Ending { stream, .. } => self.work(now, stream, relay),
            Event::Ended { stream } => {
                // A stream that is gone needs no end.
                let _ = relay.end(stream);
            }
            Event::Released { stream } => {
                // All that was written has arrived.
                self.count(stream, 0);
                self.forget(stream);
            }
            Event::Refused { stream, .. } | Event::Reset { stream, .. } => self.forget(stream),
            Event::Disconnected { .. } => {
                self.wrong.get_or_insert(format!("{event:?} although nobody gave up"));
            }
            Event::Connected | Event::Accepted { .. } | Event::Opened { .. } => {}
        }
    }

    /// The stream is gone.
    fn forget(&mut self, stream: StreamId) {
        if let Some(flow) = self.flows.remove(&stream) {
            // Both ends say a last word.
            self.carried[flow.client].sent += FRAME;
        }
    }

    /// Reads and writes what can be.
    fn work(&mut self, now: Instant, stream: StreamId, relay: &mut Relay) {
        let Some(flow) = self.flows.get_mut(&stream) else { return };
        let tag = self.seed << 24 ^ u64::from(stream.number()) << 1;
        let [own, other] = [self.is_hub, !self.is_hub].map(|hub| Pattern(tag | u64::from(hub)));
        match flow.read(now, (stream, other), relay) {
            Ok(octets) => self.carried[flow.client].read += octets,
            Err(text) => {
                self.wrong.get_or_insert(text);
            }
        }
        flow.write(now, (stream, own), relay);
    }
}

impl Flow {
    /// Reads what may be read; says how much.
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
            // It was there a line ago.
            let _ = relay.consume(now, stream, len);
        }
        Ok(self.read - before)
    }

    fn write(&mut self, now: Instant, (stream, pattern): (StreamId, Pattern), relay: &mut Relay) {
        let mut piece = [0; PIECE];
        while self.to_write > 0 {
            // Filling what is not taken is most of the work.
            let room = relay.room(stream).clamp(1, PIECE);
            let len = usize::try_from(self.to_write).map_or(room, |left| left.min(room));
            pattern.fill(self.written, &mut piece[..len]);
            // A stream that is gone takes nothing; its event follows.
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
            // As above.
            let _ = relay.end(stream);
        }
    }
}

/// Adds octets of packets beside streams that `relay` has sent and that did not arrive, as when the
/// link lost a piece: nobody says whose they were, so each flood has an equal part.
pub(super) fn add_lost_packets(
    mix: &Mix,
    sums: &mut [[Carried; 2]],
    (terminal, direction): (usize, Direction),
    relay: &Relay,
) {
    let line = direction.line();
    let is_flood = |client: &Client| {
        (client.terminal, client.direction) == (terminal, direction)
            && matches!(client.manner, Manner::Flood { .. })
    };
    let floods = || (0..mix.clients.len()).filter(|&number| is_flood(&mix.clients[number]));
    let arrived: u64 = floods().map(|number| sums[number][line].sent).sum();
    let lost = relay.totals().datagrams.bytes_sent.saturating_sub(arrived);
    let count = floods().count() as u64;
    floods().for_each(|number| sums[number][line].sent += lost / count);
}

/// The priority of every stream: a client does not choose one.
pub(super) const PRIORITY: Priority = Priority::Normal;
