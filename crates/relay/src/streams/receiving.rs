//! What the peer's frames do.

use super::Streams;
use super::sending::Control;
use crate::datagram::Answer;
use crate::frame::{Frame, Open, PartialOffset, Reader};
use crate::receive::Violation;
use crate::stream::{Opening, Stream};
use crate::target::{Cut, Priority, StreamId};
use crate::{Event, RefuseReason, ResetReason};
use units::Instant;

/// Streams of the peer's that are kept in all, those included that are cut off or done at one
/// end, as a multiple of those that may be open, and some more: where few may be open, a word that
/// is lost again and again keeps several.
const KEPT: usize = 3;
const KEPT_MORE: usize = 64;

/// Control frames that wait to be sent or to be acknowledged before the peer's new streams are
/// passed over. One that takes what it causes never comes near.
const MAX_CONTROLS: usize = 1 << 17;

impl Streams {
    pub(crate) fn peek(&self, id: StreamId) -> &[u8] {
        match self.streams.get(&id) {
            Some(stream) if stream.is_readable() => stream.peek(),
            Some(_) | None => &[],
        }
    }

    pub(crate) fn peek_pieces<'a>(&'a self, id: StreamId, pieces: &mut [&'a [u8]]) {
        if let Some(stream) = self.streams.get(&id).filter(|stream| stream.is_readable()) {
            match (&stream.decoder, pieces.first_mut()) {
                (Some(decoder), Some(first)) => *first = decoder.output(),
                (_, _) => stream.receive.peek_pieces(pieces),
            }
        }
    }

    /// Takes what came under a number; each number comes once.
    pub(crate) fn deliver(&mut self, payload: &[u8]) {
        let mut reader = Reader::new(payload);
        while !reader.is_empty() {
            let first = reader.first();
            match reader.frame() {
                Ok(frame) => self.receive(frame),
                Err(_) => {
                    // Frames behind this one are lost, and their packet is acknowledged: the
                    // streams would stall. The session cannot continue (RLY-1.8).
                    self.statistics.bad_frames += 1;
                    self.unreadable.get_or_insert(first);
                    return;
                }
            }
        }
        if self.datagrams.take_definition().is_some() {
            self.statistics.bad_frames += 1;
        }
    }

    fn receive(&mut self, frame: Frame<'_>) {
        let definition = self.datagrams.take_definition();
        if definition.is_some() && !matches!(frame, Frame::Datagram { .. }) {
            self.statistics.bad_frames += 1;
        }
        match frame {
            Frame::Stream { id, open, offset, end, charged, coded, data } => {
                self.receive_stream(id, open, (offset, end, charged, coded), data);
            }
            Frame::Accept { id } => self.receive_accept(id),
            Frame::Reset { id, final_offset, charged, code } => {
                self.receive_reset(id, final_offset, charged, code);
            }
            Frame::Credit { id, limit } => self.receive_credit(id, limit),
            Frame::Shared { returned } => self.receive_shared(returned),
            Frame::Grant { number, kbps } if !self.is_hub => {
                self.paths.grants_mut().receive(number, kbps);
            }
            Frame::Need { number, units } if self.is_hub => {
                self.paths.grants_mut().receive(number, units);
            }
            Frame::Families { number, families } if !self.is_hub => {
                self.announcement.receive(number, families);
            }
            // A terminal grants and announces nothing, and a hub needs nothing.
            Frame::Grant { .. } | Frame::Need { .. } | Frame::Families { .. } => {
                self.statistics.bad_frames += 1;
            }
            Frame::GoAway { opened, leaves } => self.receive_go_away(opened, leaves),
            Frame::Padding => {}
            Frame::Received { id, offset } => self.receive_received(id, offset),
            Frame::Report { number, content } if self.is_hub => {
                self.report.receive(number, content);
            }
            Frame::Unknown { .. } | Frame::Report { .. } => self.statistics.unknown_frames += 1,
            Frame::BadOpening { id } => self.receive_bad_opening(id),
            Frame::Datagram { packet } => match definition {
                None => self.datagrams.receive(self.now, packet.to_vec()),
                Some(definition) => {
                    let answer = self.datagrams.receive_defining(self.now, definition, packet);
                    self.answer(answer);
                }
            },
            Frame::Define { context, rule } => self.datagrams.receive_define(context, rule),
            Frame::Compressed { content } => {
                let answer = self.datagrams.receive_compressed(self.now, content);
                self.answer(answer);
            }
            Frame::Contexts { contexts } => self.datagrams.receive_contexts(contexts),
            Frame::Invalid { context } => self.datagrams.receive_invalid(context),
            Frame::Piece { number, total, offset, piece } => {
                self.datagrams.receive_piece(self.now, (number, total, offset), piece);
            }
        }
    }

    /// Tells the peer what follows from a frame of header compression.
    fn answer(&mut self, answer: Option<Answer>) {
        self.controls.extend(answer.map(|answer| match answer {
            Answer::Contexts => Control::Contexts,
            Answer::Invalid(context) => Control::Invalid { context },
        }));
    }

    /// Whether this side opens the streams of this name.
    fn is_mine(&self, id: StreamId) -> bool {
        id.opened_by_hub() == self.is_hub
    }

    /// Makes sure that a stream which a frame speaks of exists, if it ever may have; false when
    /// the frame is to be passed over.
    fn admit(&mut self, id: StreamId) -> bool {
        if self.streams.contains_key(&id) {
            return true;
        }
        if self.is_mine(id) {
            if id.number() >= self.next_number {
                self.statistics.bad_frames += 1;
            }
            return false;
        }
        if self.seen.contains(id.number()) {
            return false;
        }
        if self.draining.excludes(id.number()) {
            self.statistics.bad_frames += 1;
            return false;
        }
        let full = self.open_remote >= KEPT * self.max_streams + KEPT_MORE
            || self.controls.len() + self.controls_out >= MAX_CONTROLS;
        if full || !self.seen.insert(id.number()) {
            self.statistics.bad_frames += 1;
            return false;
        }
        let minimum = u64::from(self.peer.minimum_credit);
        let stream = Stream::new(Opening::Awaited, Priority::Normal, minimum, self.receive_minimum);
        self.streams.insert(id, stream);
        self.open_remote += 1;
        self.recount(id);
        if self.unfinished_remote > self.max_streams {
            self.statistics.refused += 1;
            self.cut(id, Cut::Refused(RefuseReason::Limit));
        }
        true
    }

    fn receive_stream(
        &mut self,
        id: StreamId,
        open: Option<Open>,
        (offset, end, charged, coded): (PartialOffset, bool, bool, bool),
        data: &[u8],
    ) {
        if !self.admit(id) {
            return;
        }
        // Behind a reset there is nothing.
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.last.is_none()) else {
            return;
        };
        let offset = offset.resolve(stream.receive.expected());
        if !data.is_empty() && !stream.cut && !self.coding.receive(stream, coded) {
            self.violated(id, Violation::Coding);
            return;
        }
        let stop = offset + data.len() as u64;
        let repeats = !data.is_empty() && stop <= stream.receive.expected() && !stream.cut;
        if repeats
            && self.paths.are_several()
            && !std::mem::replace(&mut stream.tells_received, true)
        {
            self.controls.push_back(Control::Received { id });
        }
        match stream.receive.receive(offset, data, end, charged, &mut self.pool) {
            Ok(news) => {
                self.statistics.bytes_received += data.len() as u64;
                self.review_missing(id);
                self.decode(id);
                self.recount(id);
                if let Some(open) = open {
                    self.receive_open(id, open);
                }
                self.received(id, news);
            }
            Err(violation) => self.violated(id, violation),
        }
    }

    /// Sends RECEIVED when bytes are missing for longer than any path needs to repeat a lost packet:
    /// their path may have failed (RLY-12.8).
    fn review_missing(&mut self, id: StreamId) {
        if !self.paths.are_several() {
            return;
        }
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.cut) else { return };
        let expected = stream.receive.expected();
        if stream.receive.high() == expected {
            stream.missing_since = None;
        } else if stream.missing_since.is_none() || stream.first_missing != expected {
            (stream.missing_since, stream.first_missing) = (Some(self.now), expected);
        } else if stream.missing_since.is_some_and(|since| self.now.since(since) > self.round_trip)
        {
            // Once for each first missing byte.
            stream.missing_since = Some(Instant::FAR_FUTURE);
            if !std::mem::replace(&mut stream.tells_received, true) {
                self.controls.push_back(Control::Received { id });
            }
        }
    }

    /// Refuses a stream whose opening cannot be understood (RLY-1.5).
    fn receive_bad_opening(&mut self, id: StreamId) {
        self.statistics.bad_frames += 1;
        let is_new = self.admit(id)
            && self.streams.get(&id).is_some_and(|stream| {
                stream.opening == Opening::Awaited && !stream.cut && stream.last.is_none()
            });
        if is_new {
            self.cut(id, Cut::BadOpening);
        }
    }

    fn receive_open(&mut self, id: StreamId, open: Open) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.opening != Opening::Awaited || stream.cut {
            return;
        }
        stream.opening = Opening::Known;
        stream.priority = open.priority;
        self.statistics.accepted += 1;
        self.events.push_back(Event::Opened { stream: id, target: open.target });
        if !stream.peek().is_empty() {
            stream.readable_told = true;
            self.events.push_back(Event::Readable { stream: id });
        }
    }

    /// Tells the layer above what a STREAM frame has changed.
    fn received(&mut self, id: StreamId, news: bool) {
        // Whoever sends bytes has accepted: the ACCEPT may still be under way.
        self.receive_accept(id);
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.cut {
            if stream.receive.is_complete() {
                self.remove(id);
            }
            return;
        }
        let news = news && !stream.peek().is_empty();
        if news && stream.opening != Opening::Awaited && !stream.readable_told {
            stream.readable_told = true;
            self.events.push_back(Event::Readable { stream: id });
        }
        self.peer_used(id);
        self.review(id);
        self.after_receiving(id);
    }

    fn receive_accept(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        match stream.opening {
            Opening::Sent(_) | Opening::Wanted(_) => {
                stream.opening = Opening::Accepted;
                if !stream.cut {
                    self.events.push_back(Event::Accepted { stream: id });
                }
            }
            Opening::Accepted | Opening::Awaited | Opening::Known => {}
        }
    }

    /// The peer contradicted itself, or took what it was not given: the stream ends.
    pub(super) fn violated(&mut self, id: StreamId, violation: Violation) {
        match violation {
            Violation::Credit | Violation::Charge => self.statistics.credit_violations += 1,
            Violation::FinalOffset | Violation::Scattered => self.statistics.bad_frames += 1,
            Violation::Coding => self.coding.statistics.damaged += 1,
        }
        let Some(stream) = self.streams.get(&id).filter(|stream| !stream.cut) else { return };
        let told = stream.opening != Opening::Awaited;
        self.cut(id, Cut::Reset(ResetReason::Protocol));
        if told {
            self.events.push_back(Event::Reset { stream: id, reason: ResetReason::Protocol });
        }
    }

    fn receive_reset(&mut self, id: StreamId, final_offset: u64, charged: u64, code: u8) {
        if !self.streams.contains_key(&id) {
            // A stream that was cut before it was ever heard of: its number is used, and the
            // answer lets the peer forget it.
            if !self.is_mine(id) && !self.seen.contains(id.number()) && self.admit(id) {
                self.receive_reset(id, final_offset, charged, code);
            }
            return;
        }
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.last.is_none()) else {
            return;
        };
        self.statistics.resets_received += 1;
        let (was_cut, told) = (stream.cut, stream.opening != Opening::Awaited);
        let cut = Cut::from_code(code);
        if let Cut::Reset(reason) = cut
            && !was_cut
            && told
            && !stream.peek().is_empty()
        {
            self.end_behind(id, (final_offset, charged), reason);
            return;
        }
        if stream.receive.close(final_offset, charged, &mut self.pool).is_err() {
            self.statistics.bad_frames += 1;
        }
        if !was_cut {
            self.cut(id, cut);
            if told {
                self.events.push_back(match cut {
                    Cut::Reset(reason) => Event::Reset { stream: id, reason },
                    Cut::Refused(reason) => Event::Refused { stream: id, reason },
                    Cut::BadOpening => Event::Refused { stream: id, reason: RefuseReason::Other },
                });
            }
        }
        // That was the peer's final word.
        self.remove(id);
        self.shared_changed();
    }

    /// The peer has reset the stream, behind bytes that are still to be read. It is answered at
    /// once; here the stream stays until they have been consumed.
    fn end_behind(
        &mut self,
        id: StreamId,
        (final_offset, charged): (u64, u64),
        reason: ResetReason,
    ) {
        self.cut_sending(id, Cut::Reset(reason));
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.last = Some(reason);
        if stream.receive.close_behind(final_offset, charged, &mut self.pool).is_err() {
            self.statistics.bad_frames += 1;
        }
        self.recount(id);
        self.events.push_back(Event::Ending { stream: id, reason });
        self.shared_changed();
    }

    /// Takes a limit, also one that has overtaken the opening of its stream.
    fn receive_credit(&mut self, id: StreamId, limit: u64) {
        if !self.admit(id) {
            return;
        }
        if self.streams.get_mut(&id).is_some_and(|stream| stream.send.grant(limit)) {
            self.schedule(id);
            self.make_room_known(id);
        }
    }

    /// Handles the number of bytes that the peer has received in order: it has some of them from a
    /// path that no longer answers.
    fn receive_received(&mut self, id: StreamId, offset: u64) {
        let Some(stream) = self.streams.get(&id) else { return };
        if offset > stream.send.sent() {
            self.statistics.bad_frames += 1;
        } else if self.paths.are_several() {
            // The peer may know of the second path before this side does.
            self.release(id, 0, offset, false);
        }
    }

    fn receive_shared(&mut self, returned: u64) {
        // More than was charged is worth nothing, and is no reason to look at all that wait.
        let returned = returned.min(self.shared.charged);
        if returned > self.shared.returned {
            self.shared.returned = returned;
            let waiting = core::mem::take(&mut self.wait_shared);
            for id in waiting {
                self.schedule(id);
                self.make_room_known(id);
            }
        }
    }

    /// Takes a note that rode in a POLL or STAT.
    pub(crate) fn noted(&mut self, note: &[u8]) {
        let mut reader = Reader::new(note);
        while !reader.is_empty() {
            match reader.note() {
                Ok((Some(id), limit)) => self.receive_credit(id, limit),
                Ok((None, returned)) => self.receive_shared(returned),
                Err(_) => {
                    self.statistics.bad_frames += 1;
                    return;
                }
            }
        }
    }

    /// The peer sent beyond what it surely knew: it has heard.
    fn peer_used(&mut self, id: StreamId) {
        let later = self.now + self.confirmation_time();
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.known = stream.known.max(stream.receive.high());
        if stream.announce_by.is_some() {
            stream.announce_by = Some(later);
        }
        self.say_again(id);
        self.shared_changed();
    }
}
