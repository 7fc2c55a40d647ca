//! What goes under an old number: the frames of a packet that is retransmitted, or that is moved to
//! another path.

use super::Streams;
use super::sending::{Control, Reference};
use crate::frame::{StreamHead, Writer};
use crate::stream::Opening;
use smallvec::SmallVec;

impl Streams {
    /// Fills `room` with what goes under an old number now; returns the bytes used. What no
    /// longer fits will go under new numbers.
    pub(crate) fn again(&mut self, handle: u64, room: &mut [u8]) -> usize {
        let Some(packet) = self.packets.get_mut(handle as usize) else { return 0 };
        let old = core::mem::take(&mut packet.frames);
        let mut frames = SmallVec::new();
        let mut writer = Writer::new(room);
        let alive = |reference: &Reference| match reference {
            Reference::Control(_) => true,
            Reference::Datagram => false,
            Reference::Context(_) => true,
            Reference::Stream { id, .. } => self.streams.get(id).is_some_and(|stream| !stream.cut),
        };
        let old: SmallVec<[Reference; 2]> = old.into_iter().filter(alive).collect();
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
                Reference::Context(carried) => {
                    frames.push(Reference::Context(self.datagrams.context_lost(carried)));
                }
                Reference::Stream { .. } => {
                    if let Some(left) = self.write_again(&mut writer, *reference, more) {
                        frames.push(left);
                    }
                }
            }
        }
        if let Some(packet) = self.packets.get_mut(handle as usize) {
            (packet.frames, packet.len) = (frames, writer.written() as u32);
        }
        writer.written()
    }

    /// Has what a packet carries go under new numbers, except for what concerns its path.
    pub(super) fn move_packet(&mut self, handle: usize) {
        let Some(packet) = self.packets.get_mut(handle) else { return };
        let frames = core::mem::take(&mut packet.frames);
        let mut kept = SmallVec::new();
        for reference in frames {
            match reference {
                Reference::Control(Control::Rate { .. }) => kept.push(reference),
                Reference::Control(control) => {
                    self.controls_out -= 1;
                    self.put_off(control);
                }
                Reference::Stream { id, .. } => {
                    if self.streams.get(&id).is_some_and(|stream| !stream.cut) {
                        self.write_again(&mut Writer::new(&mut []), reference, false);
                    }
                }
                Reference::Datagram => {}
                Reference::Context(carried) => {
                    kept.push(Reference::Context(self.datagrams.context_lost(carried)));
                }
            }
        }
        if let Some(packet) = self.packets.get_mut(handle) {
            packet.frames = kept;
        }
    }

    /// Forgets the packets of a path whose session has ended.
    pub(super) fn drop_packets(&mut self, path: usize) {
        let (controls_out, datagrams) = (&mut self.controls_out, &mut self.datagrams);
        self.packets.retain(|_, packet| {
            if packet.path() != path {
                return true;
            }
            for reference in &packet.frames {
                match *reference {
                    // No copy of the packet can arrive any more.
                    Reference::Context(carried) => {
                        let carried = datagrams.context_lost(carried);
                        datagrams.context_released(carried);
                    }
                    Reference::Control(_) => *controls_out -= 1,
                    Reference::Stream { .. } | Reference::Datagram => {}
                }
            }
            false
        });
    }

    /// Has a control frame go under a new number, since the packet that carried it has no room.
    fn put_off(&mut self, control: Control) {
        match control {
            Control::Families => self.announcement.due = true,
            Control::Report => self.report.due = true,
            Control::Accept { .. }
            | Control::Reset { .. }
            | Control::Credit { .. }
            | Control::Received { .. }
            | Control::Shared { .. }
            | Control::GoAway
            | Control::Contexts
            | Control::Invalid { .. }
            | Control::Rate { .. } => self.controls.push_back(control),
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
        // The peer may have these bytes from an earlier packet, on another path (RLY-12.8).
        let received = stream.send.first_held().saturating_sub(offset).min(u64::from(len)) as u32;
        if received > 0 && received == len && !end {
            return None;
        }
        let (offset, len) = (offset + u64::from(received), len - received);
        let open = open && received == 0;
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
}
