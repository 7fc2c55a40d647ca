//! Handshakes, seen from the path. Only a connection whose SYN, SYN with ACK and first ACK were
//! seen is spoofed.

use super::segment::{ACK, FIN, RST, SYN, Segment};
use super::shared::{Key, Toward};
use std::collections::{BTreeMap, VecDeque};
use units::{Instant, Span};

/// Maximum number of handshakes; a flood of SYNs replaces the oldest.
const MOST: usize = 1_024;

/// A SYN, or a SYN with ACK.
#[derive(Clone, Copy, Debug)]
struct Half {
    seq: u32,
    window: u16,
    scale: Option<u8>,
    sack: bool,
    timestamps: Option<u32>,
    at: Instant,
}

impl Half {
    /// `None` if the segment asks for what spoofing would break: Fast Open, Multipath TCP,
    /// signatures, AccECN, or data with the SYN.
    fn of(now: Instant, segment: &Segment) -> Option<Self> {
        let options = &segment.options;
        let is_plain = segment.payload == 0
            && !options.other
            && !segment.accurate_ecn
            && segment.flags & FIN == 0;
        is_plain.then_some(Self {
            seq: segment.seq,
            window: segment.window,
            scale: options.scale,
            sack: options.sack_permitted,
            timestamps: options.timestamps.map(|stamps| stamps.value),
            at: now,
        })
    }
}

/// What both ends have agreed on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agreed {
    /// Next sequence number of the near end and of the far end.
    pub(super) near: u32,
    pub(super) far: u32,
    /// Window field of the far end in its SYN, which is not scaled.
    pub(super) far_window: u16,
    pub(super) near_scale: u8,
    pub(super) far_scale: u8,
    pub(super) sack: bool,
    pub(super) timestamps: bool,
    /// TSval of the near and of the far end in their SYNs.
    pub(super) values: (u32, u32),
    /// Round trip from here to the far end and back.
    pub(super) round_trip: Span,
}

#[derive(Clone, Copy, Debug)]
struct Opening {
    /// Direction of the SYN.
    toward: Toward,
    first: Half,
    second: Option<Half>,
    is_repeated: bool,
}

/// Handshakes of connections.
#[derive(Debug, Default)]
pub(super) struct Openings {
    all: BTreeMap<Key, Opening>,
    order: VecDeque<Key>,
}

impl Openings {
    /// Takes a segment of a connection without state; returns what was agreed on at the end of a
    /// handshake.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        toward: Toward,
        key: Key,
        segment: &Segment,
    ) -> Option<Agreed> {
        if segment.has(RST) {
            self.all.remove(&key);
            return None;
        }
        match (segment.has(SYN), segment.has(ACK)) {
            (true, false) => self.begin(now, toward, key, segment),
            (true, true) => self.answer(now, toward, key, segment),
            (false, true) => return self.finish(now, toward, key, segment),
            (false, false) => {}
        }
        None
    }

    fn begin(&mut self, now: Instant, toward: Toward, key: Key, segment: &Segment) {
        let Some(first) = Half::of(now, segment) else {
            self.all.remove(&key);
            return;
        };
        if let Some(known) = self.all.get_mut(&key)
            && (known.toward, known.first.seq) == (toward, first.seq)
        {
            known.is_repeated = true;
            return;
        }
        let opening = Opening { toward, first, second: None, is_repeated: false };
        if self.all.insert(key, opening).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.all.remove(&oldest);
        }
    }

    fn answer(&mut self, now: Instant, toward: Toward, key: Key, segment: &Segment) {
        let Some(opening) = self.all.get_mut(&key) else { return };
        if opening.toward == toward || segment.ack != opening.first.seq.wrapping_add(1) {
            return;
        }
        opening.is_repeated |= opening.second.is_some();
        opening.second = Half::of(now, segment);
        if opening.second.is_none() {
            self.all.remove(&key);
        }
    }

    fn finish(
        &mut self,
        now: Instant,
        toward: Toward,
        key: Key,
        segment: &Segment,
    ) -> Option<Agreed> {
        let opening = self.all.get(&key)?;
        let (first, second) = (opening.first, opening.second?);
        let is_last = opening.toward == toward
            && segment.ack == second.seq.wrapping_add(1)
            && segment.seq == first.seq.wrapping_add(1);
        if !is_last {
            return None;
        }
        let (near, far, [from, to]) = match toward {
            Toward::Far => (first, second, [first.at, second.at]),
            Toward::Near => (second, first, [second.at, now]),
        };
        let scales = near.scale.zip(far.scale);
        // Of a repeated segment it is not known which transmission was answered.
        let round_trip = if opening.is_repeated { Span::from_secs(1) } else { to.since(from) };
        let agreed = Agreed {
            near: near.seq.wrapping_add(1),
            far: far.seq.wrapping_add(1),
            far_window: far.window,
            near_scale: scales.map_or(0, |(near, _)| near),
            far_scale: scales.map_or(0, |(_, far)| far),
            sack: near.sack && far.sack,
            timestamps: near.timestamps.is_some() && far.timestamps.is_some(),
            values: (near.timestamps.unwrap_or(0), far.timestamps.unwrap_or(0)),
            round_trip,
        };
        self.all.remove(&key);
        Some(agreed)
    }
}
