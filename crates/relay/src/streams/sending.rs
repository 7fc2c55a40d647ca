//! What goes under each number: frames into packets, and packets into frames again.

use super::Streams;
use super::grants::Grants;
use super::paths::Carries;
use crate::datagram::{Datagrams, Filled};
use crate::frame::{Frame, StreamHead, Writer};
use crate::headers::ContextUse;
use crate::scheduler::{Class, Entry, Place, Service};
use crate::send::Piece;
use crate::stream::{Opening, Stream};
use crate::target::StreamId;
use smallvec::SmallVec;

/// Bytes of a stream worth a frame of their own at the end of a packet.
const LEAST: usize = 32;

/// A frame that says all it has to say by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    Accept {
        id: StreamId,
    },
    Reset {
        id: StreamId,
        final_offset: u64,
        charged: u64,
        code: u8,
    },
    /// A stream's limit; when the frame is written it may say more.
    Credit {
        id: StreamId,
        limit: u64,
    },
    /// The bytes of a stream that have arrived in order; when the frame is written they may be more.
    Received {
        id: StreamId,
    },
    /// The shared credit returned; when the frame is written it may say more.
    Shared {
        returned: u64,
    },
    /// A terminal's rate on a path, or its queued data: the newest value when the frame is written.
    Rate {
        path: usize,
    },
    /// The address families that the hub reaches: the newest when the frame is written.
    Families,
    /// A terminal's state: the newest when the frame is written.
    Report,
    /// The number of contexts that this side stores.
    Contexts,
    /// This side does not have a context.
    Invalid {
        context: u8,
    },
    /// This side opens no more streams.
    GoAway,
}

/// A frame in a packet, as far as it is needed to write it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reference {
    Control(Control),
    Stream {
        id: StreamId,
        offset: u64,
        len: u32,
        open: bool,
        end: bool,
    },
    /// A packet that is carried as it is, or a part of one: not written again.
    Datagram,
    /// A packet with a context of compressed headers: not written again.
    Context(ContextUse),
}

/// What a number stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) frames: SmallVec<[Reference; 2]>,
    /// Bytes when it was last sent.
    pub(super) len: u32,
    /// The path whose session has its number.
    path: u32,
}

impl Packet {
    /// A packet of `len` bytes with one frame.
    pub(super) fn of_control(control: Control, len: usize, path: usize) -> Self {
        let frames = [Reference::Control(control)].into_iter().collect();
        Self { frames, len: len as u32, path: path as u32 }
    }

    pub(super) fn path(&self) -> usize {
        self.path as usize
    }
}

/// How filling from one stream went.
enum Turn {
    /// It has nothing to send now.
    Idle,
    /// The packet has no room for it.
    NoRoom,
    /// A frame was written.
    Sent,
}

impl Streams {
    /// Whether there is anything for a new number on the current path.
    pub(crate) fn has_fresh(&self) -> bool {
        let carries = self.carries();
        let waiting = match carries {
            Carries::All | Carries::Bulk => {
                !self.scheduler.is_empty() || self.announcement.due || self.report.due
            }
            Carries::Own => false,
        };
        (waiting || self.next_control(carries).is_some()) && !self.draining.finished
    }

    /// Whether the next new packet begins with a control frame, or with data of a class before
    /// bulk, that may precede retransmissions (XSTP-7.2.2).
    pub(crate) fn has_urgent(&self) -> bool {
        let carries = self.carries();
        let is_before_bulk = |(class, entry)| class < Class::Bulk && carries.takes(class, entry);
        !self.draining.finished
            && (self.next_control(carries).is_some()
                || self.scheduler.front().is_some_and(is_before_bulk))
    }

    /// Where the next control frame is that the current path may carry.
    fn next_control(&self, carries: Carries) -> Option<usize> {
        let path = self.paths.current();
        self.controls.iter().position(|control| control.goes_on(path, carries))
    }

    /// From its next turn on the stream is served as told.
    pub(crate) fn set_service(&mut self, id: StreamId, service: Service) {
        let Ok(stream) = self.live(id) else { return };
        stream.service = Some(service);
        if std::mem::take(&mut stream.scheduled) {
            let owner = stream.owner;
            self.scheduler.remove(owner, id);
            self.schedule(id);
        }
    }

    /// Whether what goes next should go before what others have: a word of control, or an urgent
    /// flow or stream.
    pub(crate) fn is_urgent(&self) -> bool {
        !self.controls.is_empty()
            || self.announcement.due
            || self.scheduler.front().is_some_and(|(class, _)| class == Class::Urgent)
    }

    /// Fills `room` for a new number; returns the bytes used and the packet's handle.
    pub(crate) fn fresh(&mut self, room: &mut [u8]) -> Option<(usize, u64)> {
        self.tell_need();
        let carries = self.carries();
        if carries == Carries::All
            && let Some(alone) = self.announcement_packet(room).or_else(|| self.report_packet(room))
        {
            return Some(alone);
        }
        let mut packet = Packet { path: self.paths.current() as u32, ..Packet::default() };
        let mut writer = Writer::new(room);
        while let Some(at) = self.next_control(carries) {
            let control = self.controls[at];
            if !self.write_control(&mut writer, control) {
                break;
            }
            self.controls.remove(at);
            packet.frames.push(Reference::Control(control));
        }
        self.controls_out += packet.frames.len();
        while let Some((class, entry)) = self.scheduler.front() {
            if !carries.takes(class, entry) {
                break;
            }
            if class < Class::Bulk && self.has_left_class(class, entry) {
                // Since it was queued its owner has had more than its share of that class.
                match entry {
                    Entry::Stream(id) => {
                        self.leave_queue(class, id);
                        self.schedule(id);
                    }
                    Entry::Flow(flow) => self.finish_flow(class, flow),
                }
                continue;
            }
            let before = writer.written();
            let turn = match entry {
                Entry::Stream(id) => self.fill_from(id, &mut writer, &mut packet),
                Entry::Flow(flow) => self.fill_datagram(flow, &mut writer, &mut packet),
            };
            if matches!(turn, Turn::Sent) {
                self.scheduler.charge(class, (writer.written() - before) as u64);
            }
            match (turn, entry) {
                (Turn::Sent, Entry::Stream(id)) => self.finish_turn(class, id),
                (Turn::Idle, Entry::Stream(id)) => self.leave_queue(class, id),
                (Turn::Sent, Entry::Flow(flow))
                    if self.datagrams.has_more(flow) && self.scheduler.goes_on(class) => {}
                (Turn::Sent | Turn::Idle, Entry::Flow(flow)) => self.finish_flow(class, flow),
                (Turn::NoRoom, Entry::Stream(_) | Entry::Flow(_)) => break,
            }
        }
        if packet.frames.is_empty() {
            return None;
        }
        packet.len = writer.written() as u32;
        Some((writer.written(), self.packets.insert(packet) as u64))
    }

    /// Whether packets of padding may be sent: while there is no stream whose data would wait for
    /// them, and not in a session that ends.
    pub(crate) fn accepts_padding(&self) -> bool {
        self.sends_padding && self.streams.is_empty() && !self.draining.is_draining()
    }

    /// Fills `room` for a new number with padding; returns the bytes used and the packet's handle.
    pub(crate) fn padding(&mut self, room: &mut [u8]) -> (usize, u64) {
        let mut writer = Writer::new(room);
        writer.padding();
        let (len, path) = (writer.written(), self.paths.current() as u32);
        let packet = Packet { len: len as u32, path, ..Packet::default() };
        (len, self.packets.insert(packet) as u64)
    }

    /// Whether an entry that asks to go before others waits in another class by now.
    fn has_left_class(&mut self, class: Class, entry: Entry) -> bool {
        let place = match entry {
            Entry::Stream(id) => self.place_of(self.now, id),
            Entry::Flow(flow) => self.flow_place(flow),
        };
        place.is_some_and(|place| place.promoted && place.class > class)
    }

    /// Where the flow waits for its turn.
    fn flow_place(&mut self, flow: usize) -> Option<Place> {
        let place = self.datagrams.place(self.now, flow)?;
        Some(self.within_share(self.now, place, self.datagrams.owner(flow)))
    }

    pub(super) fn write_control(&self, writer: &mut Writer<'_>, control: Control) -> bool {
        let frame = match control {
            Control::Accept { id } => Frame::Accept { id },
            Control::Reset { id, final_offset, charged, code } => {
                Frame::Reset { id, final_offset, charged, code }
            }
            Control::Credit { id, .. } => match self.streams.get(&id) {
                Some(stream) => Frame::Credit { id, limit: stream.announced },
                // Nobody asks any more: the frame counts as written.
                None => return true,
            },
            Control::Received { id } => match self.streams.get(&id) {
                Some(stream) => Frame::Received { id, offset: stream.receive.expected() },
                None => return true,
            },
            Control::Shared { .. } => Frame::Shared { returned: self.pool.shared_returned },
            Control::Rate { path } => {
                let (number, value) =
                    self.paths.grants_of(path).map(Grants::told).unwrap_or_default();
                if self.is_hub {
                    Frame::Grant { number, kbps: value }
                } else {
                    Frame::Need { number, units: value }
                }
            }
            Control::Families => self.announcement.frame(),
            Control::Report => return self.report.write(writer),
            Control::Contexts => Frame::Contexts { contexts: Datagrams::contexts() },
            Control::Invalid { context } => Frame::Invalid { context },
            Control::GoAway => self.go_away_frame(),
        };
        writer.control(&frame)
    }

    fn fill_from(&mut self, id: StreamId, writer: &mut Writer<'_>, packet: &mut Packet) -> Turn {
        let shared = self.shared.left();
        let others = self.scheduler.len() > 1;
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.is_ready(shared))
        else {
            return Turn::Idle;
        };
        let open = match &stream.opening {
            Opening::Wanted(open) => Some(open),
            Opening::Sent(_) | Opening::Accepted | Opening::Awaited | Opening::Known => None,
        };
        let bare = if open.is_some() { 0 } else { stream.send.sent() };
        let none = Piece { offset: bare, len: 0, charged: false };
        // The opening frame is at offset 0; what was requeued from elsewhere has to wait for it.
        let piece = match stream.send.piece(shared) {
            Some(piece) if open.is_none() || piece.offset == 0 => piece,
            Some(_) | None => none,
        };
        let end = stream.send.ends_at(piece.offset + piece.len);
        let (offset, charged, coded) = (piece.offset, piece.charged, stream.is_coded);
        let head = StreamHead { id, offset, open, end, charged, coded };
        let available = usize::try_from(piece.len).unwrap_or(usize::MAX);
        let least = if packet.frames.is_empty() { 1 } else { LEAST };
        let more = others || stream.send.has_more_than(piece);
        let (send, offset, start) = (&stream.send, piece.offset, writer.written());
        let written = writer.stream(head, available, least, more, |out| send.read(offset, out));
        let Some(len) = written else { return Turn::NoRoom };
        let end = end && len == available;
        let before = stream.send.sent();
        self.shared.charged += stream.send.take(piece, len as u64);
        // What was cut off from a packet that shrank was counted with that.
        let first = stream.send.sent() - before;
        self.statistics.bytes_sent += first;
        self.send_pool.unsent.sub(stream.owner, first);
        if end {
            stream.send.take_end();
        }
        let open = Self::opening_sent(stream);
        stream.lately.add(self.now, len as u64);
        // With the frame's head: octets that are written one by one take ten times as many.
        let octets = (writer.written() - start) as u64;
        self.senders.add(self.now, self.rate, stream.owner, octets);
        packet.frames.push(Reference::Stream { id, offset, len: len as u32, open, end });
        self.make_room_known(id);
        Turn::Sent
    }

    fn fill_datagram(&mut self, flow: usize, writer: &mut Writer<'_>, packet: &mut Packet) -> Turn {
        let place = (packet.frames.is_empty(), self.scheduler.len() > 1);
        let before = writer.written();
        match self.datagrams.fill(self.now, flow, self.rate, writer, place) {
            Filled::Idle => Turn::Idle,
            Filled::NoRoom => Turn::NoRoom,
            sent @ (Filled::Sent | Filled::SentIn(_)) => {
                packet.frames.push(match sent {
                    Filled::SentIn(carried) => Reference::Context(carried),
                    Filled::Sent | Filled::Idle | Filled::NoRoom => Reference::Datagram,
                });
                let (owner, len) = (self.datagrams.owner(flow), writer.written() - before);
                self.senders.add(self.now, self.rate, owner, len as u64);
                Turn::Sent
            }
        }
    }

    fn finish_flow(&mut self, class: Class, flow: usize) {
        let left = self.scheduler.finish_turn(class);
        debug_assert_eq!(left, Some(Entry::Flow(flow)));
        if let Some(place) = self.datagrams.finish_turn(self.now, flow) {
            let owner = self.datagrams.owner(flow);
            let place = self.within_share(self.now, place, owner);
            self.scheduler.push(place, owner, Entry::Flow(flow));
        }
    }

    /// Notes that the opening frame, if it was still to be sent, is in a packet.
    fn opening_sent(stream: &mut Stream) -> bool {
        if let Opening::Wanted(open) = &stream.opening {
            stream.opening = Opening::Sent(open.clone());
            return true;
        }
        false
    }

    /// After a frame: the stream goes on, or makes way, or leaves.
    fn finish_turn(&mut self, class: Class, id: StreamId) {
        let shared = self.shared.left();
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.is_ready(shared) && self.scheduler.goes_on(class) {
            return;
        }
        self.leave_queue(class, id);
        self.schedule(id);
    }

    fn leave_queue(&mut self, class: Class, id: StreamId) {
        let left = self.scheduler.finish_turn(class);
        debug_assert_eq!(left, Some(Entry::Stream(id)));
        let shared = self.shared.left();
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.scheduled = false;
            if !stream.is_ready(shared) && stream.send.waits_for_shared() {
                self.wait_shared.insert(id);
            }
        }
    }

    /// Bytes of the largest packet that the peer is known to have since this was last asked.
    pub(crate) fn take_released(&mut self) -> Option<usize> {
        Some(core::mem::take(&mut self.largest_released)).filter(|&len| len > 0)
    }

    /// Streams that the peer lets this side open beside those that there are.
    pub(crate) fn free_local(&self) -> usize {
        (self.peer.streams as usize).saturating_sub(self.open_local)
    }

    pub(crate) fn has(&self, id: StreamId) -> bool {
        self.streams.contains_key(&id)
    }

    /// The peer has had a frame of the stream.
    fn peer_has_seen(&mut self, id: StreamId) {
        if id.opened_by_hub() == self.is_hub {
            self.unseen.remove(&id.number());
        }
    }

    /// The peer has what went under a number.
    pub(crate) fn released(&mut self, handle: u64) {
        let Some(packet) = self.packets.try_remove(handle as usize) else { return };
        self.largest_released = self.largest_released.max(packet.len as usize);
        for reference in packet.frames {
            self.controls_out -= usize::from(matches!(reference, Reference::Control(_)));
            match reference {
                Reference::Control(Control::Credit { id, limit }) => self.credit_known(id, limit),
                Reference::Control(Control::Shared { returned }) => self.shared_known(returned),
                Reference::Control(Control::Received { id }) => {
                    if let Some(stream) = self.streams.get_mut(&id) {
                        stream.tells_received = false;
                    }
                }
                Reference::Control(Control::Reset { id, .. }) => self.peer_has_seen(id),
                Reference::Control(
                    Control::Accept { .. }
                    | Control::Rate { .. }
                    | Control::Families
                    | Control::Report
                    | Control::Contexts
                    | Control::GoAway,
                )
                | Reference::Datagram => {}
                Reference::Control(Control::Invalid { context }) => {
                    self.datagrams.refusal_known(context);
                }
                Reference::Context(carried) => self.datagrams.context_released(carried),
                Reference::Stream { id, offset, len, end, .. } => {
                    self.peer_has_seen(id);
                    self.release(id, offset, offset + u64::from(len), end);
                }
            }
        }
    }

    pub(super) fn release(&mut self, id: StreamId, offset: u64, stop: u64, end: bool) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.cut) else { return };
        let before = stream.send.held();
        stream.send.release(offset, stop);
        self.send_pool.replace(stream.owner, before, stream.send.held());
        if end {
            stream.send.release_end();
        }
        self.make_room_known(id);
        self.after_receiving(id);
        self.make_room_known_to_some();
    }
}
