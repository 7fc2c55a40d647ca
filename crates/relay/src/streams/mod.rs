//! All streams of one session: what the layer above does to them.
//!
//! What the session asks of them is in [`sending`], what it brings in [`receiving`], and the
//! announcing of credit in [`credit`].

mod buffering;
mod coding;
mod credit;
mod draining;
mod families;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod grants;
mod paths;
mod receiving;
mod report;
mod resending;
mod scheduling;
mod sending;
mod table;

use crate::config::RelayConfig;
use crate::datagram::Datagrams;
use crate::fair::Owner;
use crate::frame::Open;
use crate::pool::Pool;
use crate::scheduler::{Entry, Scheduler, Senders, Service};
use crate::seen::{NUMBER_SPAN, SeenNumbers};
use crate::send::SharedCredit;
use crate::stream::{Encoding, Opening, Stream};
use crate::target::{Cut, Destination, MAX_NUMBER};
use crate::{
    Event, OpenError, Priority, RefuseReason, ResetReason, Statistics, StreamError, StreamId,
    Target,
};
use association::{Capabilities, Limits};
use buffering::SendPool;
use coding::Coding;
use credit::SharedAnnouncement;
use draining::Draining;
use families::Announcement;
pub(crate) use grants::LEAST_GRANT;
use paths::Paths;
use report::Report;
use sending::{Control, Packet};
use slab::Slab;
use std::collections::{BTreeSet, VecDeque};
use table::StreamTable;
use units::{BitRate, Instant, Span};

/// The streams of one session with one peer.
#[derive(Debug)]
pub(crate) struct Streams {
    /// Whether this side is the hub, which decides whose numbers are whose.
    is_hub: bool,
    max_streams: usize,
    receive_minimum: u64,
    send_pool: SendPool,
    /// Maximum sizes of the pools, receive and send, in bytes.
    pool_limits: [u64; 2],
    /// Bytes that one stream may hold unsent at any rate.
    unsent_most: u64,
    /// What the peer announced.
    peer: Limits,
    /// Packets of padding may be sent.
    sends_padding: bool,
    streams: StreamTable,
    /// Streams in the map that the peer opened, and that this side opened.
    open_remote: usize,
    open_local: usize,
    /// Streams that the peer opened and that can still hold received bytes.
    unfinished_remote: usize,
    next_number: u32,
    /// Numbers that this side has used and the peer may not have seen yet.
    unseen: BTreeSet<u32>,
    seen: SeenNumbers,
    scheduler: Scheduler,
    senders: Senders,
    controls: VecDeque<Control>,
    /// Control frames in packets that the peer may not have.
    controls_out: usize,
    packets: Slab<Packet>,
    pub(crate) datagrams: Datagrams,
    paths: Paths,
    announcement: Announcement,
    report: Report,
    draining: Draining,
    /// First octet of a frame that could not be read: the session cannot continue.
    unreadable: Option<u8>,
    /// See [`take_released`](Self::take_released).
    largest_released: usize,
    coding: Coding,
    shared: SharedCredit,
    /// Streams that wait for shared credit.
    wait_shared: BTreeSet<StreamId>,
    pool: Pool,
    announcing: BTreeSet<StreamId>,
    shared_announcement: SharedAnnouncement,
    shared_was_short: bool,
    /// When an announcement may have to become a frame.
    announce_at: Option<Instant>,
    /// When a note was last asked for.
    noted_at: Option<Instant>,
    /// Where the next note goes on.
    note_from: Option<StreamId>,
    events: VecDeque<Event>,
    statistics: Statistics,
    /// The time of the call that is being served, and the round trip and our own rate then.
    now: Instant,
    round_trip: Span,
    rate: Option<BitRate>,
    /// The configured rate of the other direction.
    receive_rate: Option<BitRate>,
}

impl Streams {
    pub(crate) fn new(config: &RelayConfig, is_hub: bool, now: Instant) -> Self {
        let shared = u64::from(config.limits().shared_credit);
        let size = config.receive_pool.saturating_sub(shared);
        Self {
            is_hub,
            max_streams: config.max_streams,
            receive_minimum: config.stream_minimum,
            send_pool: SendPool::new(config.send_pool),
            pool_limits: [size, config.send_pool],
            unsent_most: config.unsent_limit,
            peer: config.limits(),
            sends_padding: false,
            streams: StreamTable::default(),
            open_remote: 0,
            open_local: 0,
            unfinished_remote: 0,
            next_number: 0,
            unseen: BTreeSet::new(),
            seen: SeenNumbers::default(),
            scheduler: Scheduler::default(),
            senders: Senders::default(),
            controls: VecDeque::new(),
            controls_out: 0,
            packets: Slab::new(),
            datagrams: Datagrams::new(config.filter_acks, config.compress_headers),
            paths: Paths::default(),
            announcement: Announcement::default(),
            report: Report::default(),
            draining: Draining::default(),
            unreadable: None,
            largest_released: 0,
            coding: Coding::new(config),
            shared: SharedCredit::default(),
            wait_shared: BTreeSet::new(),
            pool: Pool { size, shared, ..Pool::default() },
            announcing: BTreeSet::new(),
            shared_announcement: SharedAnnouncement::new(shared),
            shared_was_short: false,
            announce_at: None,
            noted_at: None,
            note_from: None,
            events: VecDeque::new(),
            statistics: Statistics::default(),
            now,
            round_trip: config.initial_rtt,
            rate: config.send_rate,
            receive_rate: config.receive_rate,
        }
    }

    /// Takes what the peer announced. Nothing has been sent yet.
    pub(crate) fn set_peer(&mut self, limits: Limits, sends_padding: bool) {
        self.peer = limits;
        self.coding.set_peer(limits.capabilities);
        // With this capability it skips frames that it does not know.
        let skips = limits.capabilities.contains(Capabilities::ORDERLY_END);
        self.datagrams.permit_compression(skips);
        self.sends_padding = sends_padding;
        self.shared =
            SharedCredit { size: u64::from(limits.shared_credit), charged: 0, returned: 0 };
        for stream in self.streams.values_mut() {
            stream.send.set_minimum(u64::from(limits.minimum_credit));
        }
        // There is more credit than was assumed.
        let ids: Vec<StreamId> = self.streams.keys().copied().collect();
        for id in ids {
            self.make_room_known(id);
        }
    }

    /// First octet of a frame that could not be read, if there was one.
    pub(crate) fn take_unreadable(&mut self) -> Option<u8> {
        self.unreadable.take()
    }

    pub(crate) fn statistics(&self) -> Statistics {
        Statistics {
            streams: self.streams.len(),
            send_buffered: self.send_pool.buffered,
            receive_credit: self.pool.used(),
            coding: self.coding.statistics,
            ..self.statistics
        }
    }

    /// Queues a packet of `owner` that is carried as it is, to be served as told or as its DSCP
    /// asks.
    pub(crate) fn send_datagram(
        &mut self,
        now: Instant,
        packet: &[u8],
        (owner, service): (Owner, Option<Service>),
    ) {
        self.now = now;
        if self.draining.finished {
            return;
        }
        let pushed = self.datagrams.push(now, packet, self.rate, (owner, service));
        if let Some((place, flow)) = pushed {
            let place = self.within_share(self.now, place, owner);
            self.scheduler.push(place, owner, Entry::Flow(flow));
        }
    }

    /// Returns the sending rate, if it is known.
    pub(crate) fn rate(&self) -> Option<BitRate> {
        self.rate
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        while let Some(event) = self.events.pop_front() {
            match event {
                Event::Readable { stream } => match self.streams.get_mut(&stream) {
                    Some(state) if state.is_readable() => state.readable_told = false,
                    Some(_) | None => continue,
                },
                Event::Writable { stream }
                    if self.streams.get(&stream).is_none_or(|state| state.cut) =>
                {
                    continue;
                }
                _ => {}
            }
            return Some(event);
        }
        None
    }

    pub(crate) fn open(
        &mut self,
        now: Instant,
        target: Target,
        priority: Priority,
    ) -> Result<StreamId, OpenError> {
        self.now = now;
        if let Destination::Name(name, _) = &target.destination
            && (name.is_empty() || name.len() > 255)
        {
            return Err(OpenError::Name { len: name.len() });
        }
        if self.is_draining() {
            return Err(OpenError::Draining);
        }
        let limit = self.peer.streams as usize;
        // The peer refuses a number too far above the oldest that it has not seen.
        let oldest = self.unseen.first().copied().unwrap_or(self.next_number);
        if self.open_local >= limit || self.next_number - oldest >= NUMBER_SPAN {
            return Err(OpenError::Limit { open: self.open_local, limit });
        }
        if self.next_number > MAX_NUMBER {
            return Err(OpenError::Numbers);
        }
        let id = StreamId::new(self.next_number, self.is_hub);
        self.unseen.insert(self.next_number);
        self.next_number += 1;
        self.open_local += 1;
        self.statistics.opened += 1;
        let opening = Opening::Wanted(Open { priority, target });
        let minimum = u64::from(self.peer.minimum_credit);
        self.streams.insert(id, Stream::new(opening, priority, minimum, self.receive_minimum));
        self.schedule(id);
        Ok(id)
    }

    #[cfg(test)]
    pub(crate) fn use_up_numbers(&mut self) {
        self.next_number = MAX_NUMBER + 1;
    }

    /// The stream, unless it is cut off or was never told of.
    fn live(&mut self, id: StreamId) -> Result<&mut Stream, StreamError> {
        match self.streams.get_mut(&id) {
            Some(stream) if !stream.cut => Ok(stream),
            Some(_) | None => Err(StreamError::Unknown(id)),
        }
    }

    pub(crate) fn accept(&mut self, id: StreamId) -> Result<(), StreamError> {
        self.live(id)?;
        self.controls.push_back(Control::Accept { id });
        Ok(())
    }

    pub(crate) fn refuse(&mut self, id: StreamId, reason: RefuseReason) -> Result<(), StreamError> {
        self.live(id)?;
        self.cut(id, Cut::Refused(reason));
        Ok(())
    }

    pub(crate) fn reset(&mut self, id: StreamId, reason: ResetReason) -> Result<(), StreamError> {
        if self.is_ending(id) {
            // The peer was told before. What it sent is not wanted any more.
            self.remove(id);
            self.shared_changed();
            return Ok(());
        }
        self.live(id)?;
        self.cut(id, Cut::Reset(reason));
        Ok(())
    }

    pub(crate) fn end(&mut self, id: StreamId) -> Result<(), StreamError> {
        let stream = match self.streams.get_mut(&id) {
            Some(stream) if !stream.cut => stream,
            Some(_) | None => return Err(StreamError::Unknown(id)),
        };
        if !stream.send.is_open() {
            return Err(StreamError::Ended(id));
        }
        stream.send.finish();
        stream.encoding = Encoding::Plain;
        stream.wants_room = false;
        self.send_pool.stop_waiting(id, stream);
        self.schedule(id);
        Ok(())
    }

    /// Bytes that were written and that the peer is not known to have.
    pub(crate) fn held(&self, id: StreamId) -> u64 {
        match self.streams.get(&id) {
            Some(stream) if !stream.cut => stream.send.held(),
            Some(_) | None => 0,
        }
    }

    /// Bytes that were written and were never in a packet.
    pub(crate) fn unsent(&self, id: StreamId) -> u64 {
        match self.streams.get(&id) {
            Some(stream) if !stream.cut => stream.send.unsent(),
            Some(_) | None => 0,
        }
    }

    pub(crate) fn consume(
        &mut self,
        now: Instant,
        id: StreamId,
        len: usize,
    ) -> Result<(), StreamError> {
        self.now = now;
        match self.streams.get_mut(&id).filter(|stream| stream.is_readable()) {
            Some(stream) => match &mut stream.decoder {
                Some(decoder) => decoder.consume(len),
                None => stream.receive.consume(len as u64, &mut self.pool),
            },
            None => return Err(StreamError::Unknown(id)),
        }
        self.decode(id);
        self.recount(id);
        self.review(id);
        self.after_receiving(id);
        Ok(())
    }

    /// Whether the peer has reset it, behind bytes that are still to be read.
    fn is_ending(&self, id: StreamId) -> bool {
        self.streams.get(&id).is_some_and(|stream| stream.last.is_some())
    }

    /// Cuts both halves off: tells the peer, keeps nothing, and waits for the peer's final word
    /// on what it had sent.
    fn cut(&mut self, id: StreamId, cut: Cut) {
        self.cut_sending(id, cut);
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.receive.discard(&mut self.pool);
        stream.decoder = None;
        let complete = stream.receive.is_complete();
        self.recount(id);
        if complete {
            self.remove(id);
        }
        // What it held of the shared credit is free again, and nothing else may be about to tell.
        self.shared_changed();
    }

    /// Cuts this side's half off, and tells the peer.
    fn cut_sending(&mut self, id: StreamId, cut: Cut) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.cut = true;
        stream.encoding = Encoding::Plain;
        let (final_offset, charged) = (stream.send.sent(), stream.send.charged());
        self.controls.push_back(Control::Reset { id, final_offset, charged, code: cut.code() });
        self.statistics.resets_sent += 1;
        self.send_pool.discard(stream.owner, &mut stream.send);
        self.stop_waiting(id);
    }

    /// Counts the stream among those of the peer's that can still hold received bytes, or not.
    fn recount(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let counts = !stream.is_local() && stream.is_readable() && !stream.is_done();
        match (stream.counted, counts) {
            (false, true) => self.unfinished_remote += 1,
            (true, false) => self.unfinished_remote -= 1,
            (true, true) | (false, false) => {}
        }
        stream.counted = counts;
    }

    /// Takes the stream out of every queue.
    fn stop_waiting(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id) {
            if std::mem::take(&mut stream.scheduled) {
                self.scheduler.remove(stream.owner, id);
            }
            self.send_pool.stop_waiting(id, stream);
        }
        self.wait_shared.remove(&id);
        self.announcing.remove(&id);
    }

    /// Forgets the stream. What it held of the pools has been given back.
    fn remove(&mut self, id: StreamId) {
        self.stop_waiting(id);
        let Some(mut stream) = self.streams.remove(&id) else { return };
        self.send_pool.discard(stream.owner, &mut stream.send);
        stream.receive.forget(&mut self.pool);
        self.coding.forget(&stream);
        if stream.counted {
            self.unfinished_remote -= 1;
        }
        if stream.is_local() {
            // The peer has had its final word.
            self.unseen.remove(&id.number());
            self.open_local -= 1;
        } else {
            self.open_remote -= 1;
        }
    }

    /// Tells of the stream's last events, if it has come that far.
    fn after_receiving(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if let Some(reason) = stream.last.filter(|_| stream.is_done()) {
            self.remove(id);
            self.events.push_back(Event::Reset { stream: id, reason });
            return;
        }
        if stream.cut || stream.opening == Opening::Awaited {
            return;
        }
        if stream.is_done() && !stream.ended_told {
            stream.ended_told = true;
            self.announcing.remove(&id);
            self.events.push_back(Event::Ended { stream: id });
        }
        if stream.ended_told && stream.send.is_done() {
            self.remove(id);
            self.events.push_back(Event::Released { stream: id });
        }
    }
}

#[cfg(test)]
mod tests;
