//! A session with immediate delivery and a source and a sink of packets.

use super::host::Instance;
use super::ranges::Ranges;
use crate::Pattern;
use std::collections::{BTreeMap, VecDeque};
use units::Instant;
use xstp::Seq24;
use xstp::session::{Event, NewPacket, Session, SessionConfig, UpperLayer};

/// Octets before the pattern in a packet: pattern, packet number, and offset of its octets.
const HEAD: usize = 8 + 4 + 8;

/// A session with packets above it.
pub(crate) struct PacketInstance {
    session: Session,
    packets: Packets,
}

/// The application.
#[derive(Default)]
struct Packets {
    tag: u64,
    size: u64,
    /// Octets of the task that were put into packets.
    taken: u64,
    /// Tails of packets that had to shrink at a retransmission.
    rest: VecDeque<(u64, u64)>,
    /// Offset and length of each unacknowledged packet, by handle.
    kept: BTreeMap<u64, (u64, u64)>,
    made: u32,
    /// The packets and octets that have arrived.
    came: Vec<bool>,
    bytes: Ranges,
    /// The pattern of packets that arrived before the expected pattern was known.
    came_tag: Option<u64>,
    error: Option<String>,
}

impl Packets {
    fn write(&self, handle: u64, place: u64, room: &mut [u8]) {
        room[..8].copy_from_slice(&self.tag.to_be_bytes());
        room[8..12].copy_from_slice(&(handle as u32).to_be_bytes());
        room[12..HEAD].copy_from_slice(&place.to_be_bytes());
        Pattern(self.tag).fill(place, &mut room[HEAD..]);
    }

    fn next_piece(&mut self, most: u64) -> Option<(u64, u64)> {
        if let Some((place, len)) = self.rest.pop_front() {
            let now = len.min(most);
            if now < len {
                self.rest.push_front((place + now, len - now));
            }
            return Some((place, now));
        }
        let len = (self.size - self.taken).min(most);
        let place = self.taken;
        self.taken += len;
        (len > 0).then_some((place, len))
    }

    fn check(&mut self, payload: &[u8]) -> Result<(), String> {
        if payload.is_empty() {
            return Ok(());
        }
        let (head, bytes) = payload.split_at_checked(HEAD).ok_or("a packet without a head")?;
        let word =
            |from: usize, to| head[from..to].iter().fold(0, |sum, &o| sum << 8 | u64::from(o));
        let (tag, packet, place) = (word(0, 8), word(8, 12) as usize, word(12, HEAD));
        let expected = *self.came_tag.get_or_insert(tag);
        if tag != expected {
            return Err(format!("a packet of {tag:x}, not {expected:x}"));
        }
        if let Some(offset) = Pattern(tag).mismatch(place, bytes) {
            return Err(format!("byte {offset} is wrong"));
        }
        if self.came.len() <= packet {
            self.came.resize(packet + 1, false);
        }
        if core::mem::replace(&mut self.came[packet], true) {
            return Err(format!("packet {packet} was delivered twice"));
        }
        self.bytes.insert(place, place + bytes.len() as u64);
        Ok(())
    }
}

impl UpperLayer for Packets {
    fn has_new_data(&self) -> bool {
        self.taken < self.size || !self.rest.is_empty()
    }

    fn has_urgent_data(&self) -> bool {
        self.tag.is_multiple_of(2) && self.has_new_data()
    }

    fn fill_new(&mut self, _: Seq24, room: &mut [u8]) -> Option<NewPacket> {
        let most = room.len().checked_sub(HEAD)? as u64;
        if most == 0 || !self.has_new_data() {
            return None;
        }
        let (place, len) = self.next_piece(most)?;
        let handle = u64::from(self.made);
        self.made += 1;
        self.kept.insert(handle, (place, len));
        let whole = HEAD + len as usize;
        self.write(handle, place, &mut room[..whole]);
        Some(NewPacket { len: whole, handle })
    }

    fn fill_retransmission(&mut self, _: Seq24, handle: u64, room: &mut [u8]) -> usize {
        let Some(&(place, len)) = self.kept.get(&handle) else {
            self.error.get_or_insert(format!(
                "packet {handle} is retransmitted after its acknowledgement"
            ));
            return 0;
        };
        let most = room.len().saturating_sub(HEAD) as u64;
        if len > most {
            self.kept.insert(handle, (place, most));
            self.rest.push_back((place + most, len - most));
        }
        let len = len.min(most);
        if len == 0 {
            return 0;
        }
        let whole = HEAD + len as usize;
        self.write(handle, place, &mut room[..whole]);
        whole
    }

    fn on_acknowledged(&mut self, _: Seq24, handle: u64) {
        if self.kept.remove(&handle).is_none() {
            self.error.get_or_insert(format!("packet {handle} is acknowledged twice"));
        }
    }

    fn deliver(&mut self, _: Seq24, payload: &[u8]) {
        if let Err(error) = self.check(payload) {
            self.error.get_or_insert(error);
        }
    }

    fn fill_note(&mut self, room: &mut [u8]) -> usize {
        let note = self.taken.to_be_bytes();
        let Some(room) = room.get_mut(..note.len()) else { return 0 };
        room.copy_from_slice(&note);
        note.len()
    }
}

impl Instance for PacketInstance {
    fn connect(config: &SessionConfig, now: Instant, incarnation: u32) -> Self {
        Self { session: Session::connect(config, now, incarnation), packets: Packets::default() }
    }

    fn listen(config: &SessionConfig, last: Option<u32>) -> Self {
        let session = match last {
            Some(last) => Session::listen_after(config, last),
            None => Session::listen(config),
        };
        Self { session, packets: Packets::default() }
    }

    fn session(&self) -> &Session {
        &self.session
    }

    fn set_task(&mut self, size: u64, tag: u64, expected_tag: u64) {
        self.packets.size = size;
        self.packets.tag = tag;
        let came = *self.packets.came_tag.get_or_insert(expected_tag);
        if came != expected_tag {
            let text = format!("packets of {came:x}, not {expected_tag:x}");
            self.packets.error.get_or_insert(text);
        }
        self.session.wake();
    }

    fn receive(&mut self, now: Instant, bytes: &[u8]) {
        // The session counts rejected segments.
        let _ = self.session.handle_segment(now, bytes, &mut self.packets);
        if self.packets.has_new_data() {
            self.session.wake();
        }
    }

    fn transmit(&mut self, now: Instant, out: &mut [u8]) -> Option<usize> {
        let room = self.session.max_segment().min(out.len());
        self.session.poll_transmit(now, &mut self.packets, &mut out[..room])
    }

    fn timeout(&mut self, now: Instant) {
        self.session.handle_timeout(now);
    }

    fn event(&mut self) -> Option<Event> {
        self.session.poll_event()
    }

    fn abort(&mut self, now: Instant) {
        self.session.abort(now);
    }

    fn set_max_segment(&mut self, bytes: usize) {
        self.session.set_max_segment(bytes);
    }

    fn set_window(&mut self, numbers: u32) {
        self.session.set_receive_window(numbers);
    }

    fn work(&mut self, now: Instant, _: bool) {
        // While packets are outstanding, a retransmission may still produce a tail to send.
        if self.packets.taken == self.packets.size {
            self.session.end(now);
        }
    }

    fn delivered(&self) -> u64 {
        self.packets.bytes.total()
    }

    fn unsent(&self) -> u64 {
        self.packets.size - self.packets.taken
    }

    fn error(&self) -> Option<&str> {
        self.packets.error.as_deref()
    }

    fn held(&self) -> usize {
        self.packets.kept.len()
    }
}
