//! IP packets that are forwarded unsplit: in flows, with a bound on their queuing delay, never
//! retransmitted.
//!
//! ```text
//!   send ─▶ flow by hash of addresses, protocol, ports ─▶ scheduler, beside the streams ─▶ packet
//!             └── older than it may be: dropped from the front
//! ```
//!
//! Flows are scheduled together with streams, and sparse flows precede bulk, as sparse streams do.
//! A packet that is queued for too long is dropped, the oldest first: a late voice packet has no
//! use, and senders detect congestion by the loss.

use crate::fair::Owner;
use crate::frame::Writer;
use crate::headers::{ContextUse, Receiver, Sender};
use crate::pep::filter::PlainAck;
use crate::scheduler::{Class, Lately, Level, Place, Service, place};
use flow::{Flow, Mark};
use pieces::Pieces;
use std::collections::VecDeque;
use units::{BitRate, Instant, Span};

mod compressing;
mod flow;
mod pieces;

pub(crate) use compressing::Answer;

/// Number of queues; flows with the same hash share one.
const FLOWS: usize = 128;
/// Maximum queuing delay of a packet of an urgent flow, and of another flow.
const URGENT: Span = Span::from_millis(150);
const USUAL: Span = Span::from_millis(300);
/// Queuing delay up to which a sender that can wait sends.
const SHORT: Span = Span::from_millis(20);
/// Bytes whose transmission may exceed the maximum delay: two full packets.
const TWO: u64 = 3_000;
/// Bounds of the bytes in all queues, which are otherwise those of [`USUAL`] at the rate.
const LEAST_BYTES: u64 = 64 << 10;
const MOST_BYTES: u64 = 4 << 20;
/// Bounds of the received packets that the upper layer has not taken yet.
const MOST_RECEIVED: usize = 4096;
const MOST_RECEIVED_BYTES: usize = 4 << 20;
/// Queued packets among which an acknowledgement looks for one that it supersedes.
const FILTER_DEPTH: usize = 16;
/// Maximum size of an IP packet.
pub(crate) const LARGEST: usize = 65_535;

/// Packets in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramStatistics {
    /// Packets sent.
    pub sent: u64,
    /// Bytes of these.
    pub bytes_sent: u64,
    /// Packets received.
    pub received: u64,
    /// Bytes of these.
    pub bytes_received: u64,
    /// Packets dropped because their queuing delay exceeded the maximum.
    pub late: u64,
    /// Packets dropped for lack of room, before sending or after receiving.
    pub no_room: u64,
    /// Packets received in pieces of which some were lost.
    pub incomplete: u64,
    /// Acknowledgements of TCP that were replaced by a later one in the queue.
    pub acks_filtered: u64,
    /// Packets sent with a compressed header.
    pub headers_compressed: u64,
    /// Bytes of headers that were not sent because of that.
    pub header_bytes_saved: u64,
    /// Packets received with a compressed header.
    pub headers_restored: u64,
    /// Packets received whose compressed header could not be restored; these were dropped.
    pub headers_damaged: u64,
}

impl DatagramStatistics {
    pub(crate) fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.bytes_sent += other.bytes_sent;
        self.received += other.received;
        self.bytes_received += other.bytes_received;
        self.late += other.late;
        self.no_room += other.no_room;
        self.incomplete += other.incomplete;
        self.acks_filtered += other.acks_filtered;
        self.headers_compressed += other.headers_compressed;
        self.header_bytes_saved += other.header_bytes_saved;
        self.headers_restored += other.headers_restored;
        self.headers_damaged += other.headers_damaged;
    }
}

#[derive(Debug)]
struct Waiting {
    packet: Vec<u8>,
    since: Instant,
    /// The packet as a pure acknowledgement, and whether a later one may replace it.
    ack: Option<(PlainAck, bool)>,
}

/// Queued packets of one flow.
#[derive(Debug, Default)]
struct Queue {
    packets: VecDeque<Waiting>,
    bytes: u64,
    /// Number of the first packet and bytes of it that were sent, if it was sent in part.
    begun: Option<(u16, usize)>,
    mark: Option<Mark>,
    /// Its class, if it was assigned by a rule instead of the packet's DSCP.
    service: Option<Service>,
    /// The owner to whom it is accounted.
    owner: Owner,
    scheduled: bool,
    lately: Lately,
    /// The last pure acknowledgement that was queued, if acknowledgements are filtered.
    last_ack: Option<PlainAck>,
}

/// Result of filling a packet from a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// The flow has nothing to send now.
    Idle,
    /// The flow's next packet does not fit any more.
    NoRoom,
    /// A frame was written.
    Sent,
    /// A packet that refers to a context was written, or that defines one.
    SentIn(ContextUse),
}

/// The forwarded packets of one session, in both directions.
#[derive(Debug, Default)]
pub(crate) struct Datagrams {
    queues: Vec<Queue>,
    /// Bytes in all queues.
    waiting: u64,
    numbers: u16,
    received: VecDeque<Vec<u8>>,
    received_bytes: usize,
    /// When the last packet arrived.
    came: Option<Instant>,
    pieces: Pieces,
    statistics: DatagramStatistics,
    /// Whether superseded acknowledgements of TCP are removed from the queues.
    filters_acks: bool,
    /// Contexts of compressed headers, of this side and of the peer.
    contexts: Sender,
    peer_contexts: Receiver,
    /// The peer has been notified how many contexts this side stores.
    announced: bool,
}

impl Datagrams {
    /// Empty queues; `filters_acks`: superseded acknowledgements of TCP are removed from them;
    /// `compresses`: headers are compressed if the peer permits it.
    pub(crate) fn new(filters_acks: bool, compresses: bool) -> Self {
        Self { filters_acks, contexts: Sender::new(compresses), ..Self::default() }
    }

    /// Returns whether a packet would wait for less than [`SHORT`] at `rate`.
    pub(crate) fn has_room(&self, rate: Option<BitRate>) -> bool {
        let limit = rate.map_or(0, |rate| rate.bytes_in(SHORT));
        self.waiting < limit.max(TWO)
    }

    /// Returns the bytes of queued packets.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting
    }

    pub(crate) fn statistics(&self) -> DatagramStatistics {
        DatagramStatistics { incomplete: self.pieces.lost, ..self.statistics }
    }

    /// Queues a packet in its flow, on a path with the rate `rate`. Returns the flow and its class
    /// if it is to be scheduled.
    pub(crate) fn push(
        &mut self,
        now: Instant,
        packet: &[u8],
        rate: Option<BitRate>,
        (owner, service): (Owner, Option<Service>),
    ) -> Option<(Place, usize)> {
        if packet.is_empty() || packet.len() > LARGEST {
            self.statistics.no_room += 1;
            return None;
        }
        if self.queues.is_empty() {
            self.queues.resize_with(FLOWS, Queue::default);
        }
        let flow = Flow::of(packet);
        let at = (flow.hash % FLOWS as u64) as usize;
        let queue = &mut self.queues[at];
        (queue.mark, queue.service, queue.owner) = (Some(flow.mark), service, owner);
        let waiting = Waiting { packet: packet.to_vec(), since: now, ack: None };
        let replaced =
            if self.filters_acks { queue.push_filtered(waiting) } else { queue.push(waiting) };
        self.statistics.acks_filtered += u64::from(replaced > 0);
        self.waiting += packet.len() as u64;
        self.waiting -= replaced;
        let most = rate.map_or(LEAST_BYTES, |rate| rate.bytes_in(USUAL));
        self.make_room(most.clamp(LEAST_BYTES, MOST_BYTES));
        let queue = &mut self.queues[at];
        if queue.scheduled || queue.packets.is_empty() {
            return None;
        }
        queue.scheduled = true;
        Some((queue.place(now), at))
    }

    /// Drops packets of the longest queue until at most `most` bytes are queued.
    fn make_room(&mut self, most: u64) {
        while self.waiting > most {
            let Some(queue) = self.queues.iter_mut().max_by_key(|queue| queue.bytes) else {
                return;
            };
            self.waiting -= queue.drop_oldest();
            self.statistics.no_room += 1;
        }
    }

    /// Writes a frame of the flow `at`; `alone` if the packet has none yet, `others` if more may
    /// follow.
    pub(crate) fn fill(
        &mut self,
        now: Instant,
        at: usize,
        rate: Option<BitRate>,
        writer: &mut Writer<'_>,
        (alone, others): (bool, bool),
    ) -> Filled {
        let Some(queue) = self.queues.get_mut(at) else { return Filled::Idle };
        while let Some(first) = queue.packets.front() {
            if queue.begun.is_some() || now.since(first.since) <= queue.patience(rate) {
                break;
            }
            self.waiting -= queue.drop_first();
            self.statistics.late += 1;
        }
        let Some(first) = queue.packets.front() else { return Filled::Idle };
        let more = others || queue.packets.len() > 1;
        let len = first.packet.len();
        let whole = match queue.begun {
            Some(_) => None,
            None => {
                let (contexts, statistics) = (&mut self.contexts, &mut self.statistics);
                compressing::write_whole(contexts, statistics, writer, &first.packet, more)
            }
        };
        let (sent, done) = match (whole, queue.begun) {
            (Some(_), _) => (len, true),
            // The piece would use only a small part of this packet; it fits into the next one.
            (None, None) if !alone => return Filled::NoRoom,
            (None, begun) => {
                let (number, from) = begun.unwrap_or_else(|| {
                    self.numbers = self.numbers.wrapping_add(1);
                    (self.numbers, 0)
                });
                let Some(sent) = writer.piece(number, len, from, &first.packet[from..], more)
                else {
                    return Filled::NoRoom;
                };
                queue.begun = Some((number, from + sent));
                (sent, from + sent == len)
            }
        };
        queue.lately.add(now, sent as u64);
        if done {
            self.waiting -= queue.drop_first();
            self.statistics.sent += 1;
            self.statistics.bytes_sent += len as u64;
        }
        whole.flatten().map_or(Filled::Sent, Filled::SentIn)
    }

    /// Returns the owner to whom the flow is accounted.
    pub(crate) fn owner(&self, at: usize) -> Owner {
        self.queues.get(at).map_or_else(Owner::default, |queue| queue.owner)
    }

    /// Returns the class in which the flow is queued now.
    pub(crate) fn place(&mut self, now: Instant, at: usize) -> Option<Place> {
        self.queues.get_mut(at).map(|queue| queue.place(now))
    }

    /// Returns whether the flow has more to send.
    pub(crate) fn has_more(&self, at: usize) -> bool {
        self.queues.get(at).is_some_and(|queue| !queue.packets.is_empty())
    }

    /// Ends the flow's turn; returns the class in which it is queued for the next one, if any.
    pub(crate) fn finish_turn(&mut self, now: Instant, at: usize) -> Option<Place> {
        let queue = self.queues.get_mut(at)?;
        queue.scheduled = !queue.packets.is_empty();
        queue.scheduled.then(|| queue.place(now))
    }

    /// Stores a received packet.
    pub(crate) fn receive(&mut self, now: Instant, packet: Vec<u8>) {
        let bytes = self.received_bytes + packet.len();
        if packet.is_empty() || self.received.len() >= MOST_RECEIVED || bytes > MOST_RECEIVED_BYTES
        {
            self.statistics.no_room += 1;
            return;
        }
        self.received_bytes = bytes;
        self.statistics.received += 1;
        self.came = Some(now);
        self.statistics.bytes_received += packet.len() as u64;
        self.received.push_back(packet);
    }

    /// Stores a received piece of a packet, which lies within the packet.
    pub(crate) fn receive_piece(
        &mut self,
        now: Instant,
        (number, total, offset): (u16, usize, usize),
        piece: &[u8],
    ) {
        if let Some(packet) = self.pieces.take(now, number, total, offset, piece) {
            self.receive(now, packet);
        }
    }

    /// Returns when the last packet arrived.
    pub(crate) fn came(&self) -> Option<Instant> {
        self.came
    }

    /// Returns the next received packet.
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        let packet = self.received.pop_front()?;
        self.received_bytes -= packet.len();
        Some(packet)
    }

    /// Returns whether a received packet is queued.
    pub(crate) fn has_received(&self) -> bool {
        !self.received.is_empty()
    }
}

impl Queue {
    /// Queues a packet; returns the bytes of packets that it replaces: none.
    fn push(&mut self, waiting: Waiting) -> u64 {
        self.bytes += waiting.packet.len() as u64;
        self.packets.push_back(waiting);
        0
    }

    /// Queues a packet in the place of the acknowledgement that it supersedes, if there is one and
    /// no other one of the connection is behind it; returns the bytes of that. Only the last
    /// [`FILTER_DEPTH`] packets are compared.
    fn push_filtered(&mut self, mut waiting: Waiting) -> u64 {
        let Some(ack) = PlainAck::of(&waiting.packet) else { return self.push(waiting) };
        let is_duplicate = self.last_ack.is_some_and(|last| ack.is_duplicate_of(&last));
        self.last_ack = Some(ack);
        // Senders count duplicates, so none is replaced.
        waiting.ack = Some((ack, !is_duplicate));
        let last = self.packets.len();
        let from = last.saturating_sub(FILTER_DEPTH).max(usize::from(self.begun.is_some()));
        let of_connection =
            |other: &&mut Waiting| other.ack.is_some_and(|(other, _)| ack.is_of_connection(&other));
        let previous = self.packets.range_mut(from.min(last)..).rev().find(of_connection);
        let old = previous.filter(|previous| {
            previous.ack.is_some_and(|(old, removable)| removable && ack.supersedes(&old))
        });
        let Some(old) = old else { return self.push(waiting) };
        self.bytes += waiting.packet.len() as u64;
        let old = core::mem::replace(old, waiting).packet.len() as u64;
        self.bytes -= old;
        old
    }

    /// Drops the oldest packet that was not sent in part, if there is another one.
    fn drop_oldest(&mut self) -> u64 {
        if self.begun.is_none() || self.packets.len() < 2 {
            return self.drop_first();
        }
        let len = self.packets.remove(1).map_or(0, |oldest| oldest.packet.len() as u64);
        self.bytes -= len;
        len
    }

    fn drop_first(&mut self) -> u64 {
        self.begun = None;
        let len = self.packets.pop_front().map_or(0, |first| first.packet.len() as u64);
        self.bytes -= len;
        len
    }

    fn patience(&self, rate: Option<BitRate>) -> Span {
        let urgent = self.service.map(|service| service.level == Level::Urgent);
        let usual = if urgent.unwrap_or(self.mark == Some(Mark::Urgent)) { URGENT } else { USUAL };
        usual.max(rate.map_or(Span::ZERO, |rate| rate.time_for(TWO)))
    }

    fn place(&mut self, now: Instant) -> Place {
        let little = self.lately.is_little(now);
        let asked = match (self.mark, little) {
            (Some(Mark::Urgent), true) => Level::Urgent,
            (Some(Mark::Urgent), false) => Level::Interactive,
            (Some(Mark::Background), _) => Level::Background,
            (Some(Mark::None) | None, _) => Level::Normal,
        };
        match self.service {
            Some(service) => place(service, little),
            None => {
                let asked = place(Service { level: asked, class: 0, weight: 1 }, little);
                let promoted = matches!(asked.class, Class::Urgent | Class::Interactive);
                Place { promoted, ..asked }
            }
        }
    }
}

#[cfg(test)]
mod tests;
