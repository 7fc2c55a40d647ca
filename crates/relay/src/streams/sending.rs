//! What goes under each number: frames into packets, and packets into frames again.

use super::Streams;
use crate::datagram::Filled;
use crate::frame::{Frame, StreamHead, Writer};
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
    /// The shared credit returned; when the frame is written it may say more.
    Shared {
        returned: u64,
    },
    /// A terminal's rate, or what waits at it: the newest when the frame is written.
    Rate,
    /// The address families that the hub reaches: the newest when the frame is written.
    Families,
    /// A terminal's state: the newest when the frame is written.
    Report,
    /// This side opens no more streams.
    GoAway,
}

/// A frame in a packet, as far as it is needed to write it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reference {
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
}

/// What a number stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Packet {
    frames: SmallVec<[Reference; 2]>,
    /// Bytes when it was last sent.
    len: usize,
}

impl Packet {
    /// A packet of `len` bytes with one frame.
    pub(super) fn of_control(control: Control, len: usize) -> Self {
        Self { frames: [Reference::Control(control)].into_iter().collect(), len }
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
    /// Whether there is anything for a new number.
    pub(crate) fn has_fresh(&self) -> bool {
        let waiting = !self.controls.is_empty()
            || !self.scheduler.is_empty()
            || self.announcement.due
            || self.report.due;
        waiting && !self.draining.finished
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
        if let Some(alone) = self.announcement_packet(room) {
            return Some(alone);
        }
        if let Some(alone) = self.report_packet(room) {
            return Some(alone);
        }
        let mut packet = Packet::default();
        let mut writer = Writer::new(room);
        while let Some(&control) = self.controls.front() {
            if !self.write_control(&mut writer, control) {
                break;
            }
            self.controls.pop_front();
            packet.frames.push(Reference::Control(control));
        }
        self.controls_out += packet.frames.len();
        while let Some((class, entry)) = self.scheduler.front() {
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
        packet.len = writer.written();
        Some((packet.len, self.packets.insert(packet) as u64))
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
        let packet = Packet { len: writer.written(), ..Packet::default() };
        (packet.len, self.packets.insert(packet) as u64)
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

    fn write_control(&self, writer: &mut Writer<'_>, control: Control) -> bool {
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
            Control::Shared { .. } => Frame::Shared { returned: self.pool.shared_returned },
            Control::Rate => {
                let (number, value) = self.grants.told();
                if self.is_hub {
                    Frame::Grant { number, kbps: value }
                } else {
                    Frame::Need { number, units: value }
                }
            }
            Control::Families => self.announcement.frame(),
            Control::Report => return self.report.write(writer),
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
            Filled::Sent => {
                packet.frames.push(Reference::Datagram);
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

    /// Fills `room` with what goes under an old number now; returns the bytes used. What no
    /// longer fits will go under new numbers.
    pub(crate) fn again(&mut self, handle: u64, room: &mut [u8]) -> usize {
        let Some(packet) = self.packets.get_mut(handle as usize) else { return 0 };
        let old = core::mem::take(packet);
        let mut frames = SmallVec::new();
        let mut writer = Writer::new(room);
        let alive = |reference: &Reference| match reference {
            Reference::Control(_) => true,
            Reference::Datagram => false,
            Reference::Stream { id, .. } => self.streams.get(id).is_some_and(|stream| !stream.cut),
        };
        let old: SmallVec<[Reference; 2]> = old.frames.into_iter().filter(alive).collect();
        for (at, reference) in old.iter().enumerate() {
            let more = at + 1 < old.len();
            match *reference {
                Reference::Control(control) => {
                    if self.write_control(&mut writer, control) {
                        frames.push(*reference);
                    } else {
                        self.controls_out -= 1;
                        self.put_off(control);
                    }
                }
                Reference::Datagram => {}
                Reference::Stream { .. } => {
                    if let Some(left) = self.write_again(&mut writer, *reference, more) {
                        frames.push(left);
                    }
                }
            }
        }
        if let Some(packet) = self.packets.get_mut(handle as usize) {
            *packet = Packet { frames, len: writer.written() };
        }
        writer.written()
    }

    /// Has a control frame go under a new number, since the packet that carried it has no room.
    fn put_off(&mut self, control: Control) {
        match control {
            Control::Families => self.announcement.due = true,
            Control::Report => self.report.due = true,
            Control::Accept { .. }
            | Control::Reset { .. }
            | Control::Credit { .. }
            | Control::Shared { .. }
            | Control::GoAway
            | Control::Rate => self.controls.push_back(control),
        }
    }

    /// Writes a STREAM frame again, as much of it as fits; returns what the packet holds of it.
    fn write_again(
        &mut self,
        writer: &mut Writer<'_>,
        reference: Reference,
        more: bool,
    ) -> Option<Reference> {
        let Reference::Stream { id, offset, len, open, end } = reference else { return None };
        let stream = self.streams.get_mut(&id)?;
        let opening = match &stream.opening {
            Opening::Sent(opening) if open => Some(opening),
            // An opening that was accepted meanwhile needs no repeating.
            Opening::Sent(_)
            | Opening::Wanted(_)
            | Opening::Accepted
            | Opening::Awaited
            | Opening::Known => None,
        };
        let charged = stream.send.is_charged(offset);
        let head = StreamHead { id, offset, open: opening, end, charged, coded: stream.is_coded };
        let send = &stream.send;
        let fill = |out: &mut [u8]| send.read(offset, out);
        let written = writer.stream(head, len as usize, 0, more, fill);
        let sent = written.unwrap_or(0) as u32;
        let (cut_short, lost) = (sent < len, written.is_none());
        if cut_short {
            stream.send.requeue(offset + u64::from(sent), offset + u64::from(len));
        }
        if end && (cut_short || lost) {
            stream.send.requeue_end();
        }
        if lost
            && open
            && let Opening::Sent(opening) = &stream.opening
        {
            stream.opening = Opening::Wanted(opening.clone());
        }
        if cut_short || lost {
            self.schedule(id);
        }
        (!lost).then_some(Reference::Stream { id, offset, len: sent, open, end: end && !cut_short })
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
        self.largest_released = self.largest_released.max(packet.len);
        for reference in packet.frames {
            self.controls_out -= usize::from(matches!(reference, Reference::Control(_)));
            match reference {
                Reference::Control(Control::Credit { id, limit }) => self.credit_known(id, limit),
                Reference::Control(Control::Shared { returned }) => self.shared_known(returned),
                Reference::Control(Control::Reset { id, .. }) => self.peer_has_seen(id),
                Reference::Control(
                    Control::Accept { .. }
                    | Control::Rate
                    | Control::Families
                    | Control::Report
                    | Control::GoAway,
                )
                | Reference::Datagram => {}
                Reference::Stream { id, offset, len, end, .. } => {
                    self.peer_has_seen(id);
                    self.release(id, offset, offset + u64::from(len), end);
                }
            }
        }
    }

    fn release(&mut self, id: StreamId, offset: u64, stop: u64, end: bool) {
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
