//! One connection whose handshake was seen.

use super::opening::Agreed;
use super::round_trip::RoundTrip;
use super::segment::{ACK, Bare, Block, FIN, RST, SYN, Segment, URG};
use super::serial::{after, before, distance, earlier, later};
use super::shared::{Key, Shared};
use super::spacing::Spacing;
use super::store::{Store, Stored, cost};
use units::{Instant, Span};

mod far;

/// Unacknowledged octets from which a sender is a bulk sender: its data is acknowledged early from
/// then on.
const BULK: u32 = 8 << 10;
/// Time without a valid segment from the far end after which a connection with stored data is
/// reset (R2 of RFC 9293, 3.8.3: at least 100 s).
const GIVE_UP: Span = Span::from_secs(120);
/// Growth of the window that is announced at once: two segments.
const UPDATE: u32 = 2 * 1_460;

/// What becomes of a segment, and of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Pass,
    Taken,
    /// The segment passes, and the connection has no state any more.
    Forget,
}

/// The latest of what an end has sent beside data.
#[derive(Clone, Copy, Debug)]
struct Near {
    ack: u32,
    window: u16,
    /// TSval and TSecr.
    stamps: (u32, u32),
    /// TSval to be echoed to it (TS.Recent of RFC 7323, 4.3).
    recent: u32,
}

/// State of a connection. "Acknowledged" is by the far end, if nothing else is said.
#[derive(Debug)]
pub(super) struct Flow {
    key: Key,
    agreed: Agreed,
    store: Store,
    near: Near,
    /// Next sequence number of the far end, and its latest TSval.
    far_next: u32,
    far_value: u32,
    /// First sequence number of the near end that is not acknowledged.
    acked: u32,
    /// End of what is stored without a gap from `acked` on.
    stored: u32,
    /// End of what the near end has sent.
    sent: u32,
    /// Sequence number of the near end's FIN.
    fin: Option<u32>,
    /// Sequence number after the far end's FIN.
    far_fin: Option<u32>,
    /// End of the far end's window.
    window_end: u32,
    /// End of the window that is offered to the near end; it does not go back.
    offered: u32,
    /// Acknowledgement and end of the window that the near end was sent last.
    announced: Block,
    is_spoofed: bool,
    ack_due: bool,
    /// A reset of the near end, which follows its data.
    reset: Option<Vec<u8>>,
    /// Whether that was sent.
    is_reset: bool,
    round_trip: RoundTrip,
    retransmit: Option<Instant>,
    spacing: Spacing,
    last: Instant,
    heard: Instant,
    /// When [`PacketPep`](super::PacketPep) calls `handle_timeout`.
    pub(super) scheduled: Option<Instant>,
    /// Whether it has a place in [`PacketPep`](super::PacketPep)'s turns.
    pub(super) has_turn: bool,
}

impl Flow {
    pub(super) fn new(now: Instant, key: Key, agreed: Agreed) -> Self {
        let window_end = agreed.near.wrapping_add(u32::from(agreed.far_window));
        Self {
            key,
            agreed,
            store: Store::new(agreed.near),
            near: Near {
                ack: agreed.far,
                window: 0,
                stamps: agreed.values,
                recent: agreed.values.0,
            },
            far_next: agreed.far,
            far_value: agreed.values.1,
            acked: agreed.near,
            stored: agreed.near,
            sent: agreed.near,
            fin: None,
            far_fin: None,
            window_end,
            offered: window_end,
            announced: (agreed.near, window_end),
            is_spoofed: false,
            ack_due: false,
            reset: None,
            is_reset: false,
            round_trip: RoundTrip::new(agreed.round_trip),
            retransmit: None,
            spacing: Spacing::new(agreed.near),
            last: now,
            heard: now,
            scheduled: None,
            has_turn: false,
        }
    }

    /// When its last segment was seen.
    pub(super) fn last(&self) -> Instant {
        self.last
    }

    /// Whether its state may be removed: nothing was acknowledged early that the far end lacks.
    pub(super) fn is_removable(&self) -> bool {
        self.reset.is_none() && (!self.is_spoofed || self.store.is_empty())
    }

    /// Whether both ends have closed, and both know it.
    pub(super) fn is_finished(&self) -> bool {
        let by_fins = self.fin.is_some_and(|fin| after(self.acked, fin))
            && self.far_fin.is_some_and(|end| !before(self.near.ack, end));
        self.is_reset || (by_fins && self.store.is_empty())
    }

    /// The number up to which the near end's data is acknowledged to it: what is stored without a
    /// gap, but no FIN.
    fn early(&self) -> u32 {
        let stored = if self.is_spoofed { later(self.acked, self.stored) } else { self.acked };
        match self.fin {
            Some(fin) if !after(self.acked, fin) => earlier(stored, fin),
            Some(_) | None => stored,
        }
    }

    /// Handles a segment of the near end.
    pub(super) fn handle_near(
        &mut self,
        now: Instant,
        segment: &Segment,
        packet: &[u8],
        shared: &mut Shared,
    ) -> Step {
        self.last = now;
        if segment.has(RST) {
            return self.reset_by_near(packet);
        }
        if self.reset.is_some() {
            return Step::Taken;
        }
        let is_far_away = distance(self.acked.wrapping_sub(1 << 30), segment.end()) > 2 << 30;
        if segment.has(SYN) || !segment.has(ACK) || is_far_away || !self.note_near(segment) {
            shared.statistics.implausible += u64::from(!segment.has(SYN));
            return Step::Pass;
        }
        self.spacing.note_payload(segment.payload);
        if segment.len() == 0 || segment.has(URG) {
            self.sent = later(self.sent, segment.end());
            return Step::Pass;
        }
        self.take_data(now, segment, packet, shared)
    }

    /// A reset follows all data that was acknowledged early.
    fn reset_by_near(&mut self, packet: &[u8]) -> Step {
        if self.is_removable() {
            return Step::Forget;
        }
        self.reset.get_or_insert_with(|| packet.to_vec());
        Step::Taken
    }

    /// Notes acknowledgement, window and timestamps; false if they cannot be the near end's.
    fn note_near(&mut self, segment: &Segment) -> bool {
        if after(segment.ack, self.far_next) {
            return false;
        }
        if !before(segment.ack, self.near.ack) {
            (self.near.ack, self.near.window) = (segment.ack, segment.window);
        }
        if let Some(stamps) = segment.options.timestamps
            && !before(stamps.value, self.near.stamps.0)
        {
            self.near.stamps = (stamps.value, stamps.echo);
        }
        true
    }

    fn take_data(
        &mut self,
        now: Instant,
        segment: &Segment,
        packet: &[u8],
        shared: &mut Shared,
    ) -> Step {
        let (seq, end) = (segment.seq, segment.end());
        let is_last = end == self.sent && segment.payload <= 1 && !segment.has(FIN);
        self.sent = later(self.sent, end);
        let from = later(seq, self.acked);
        let gaps = if after(end, from) { self.store.gaps((from, end)) } else { Vec::new() };
        if gaps.is_empty() {
            // A retransmission, or a keep-alive probe, which is for the far end.
            if !self.is_spoofed || is_last {
                return Step::Pass;
            }
            shared.statistics.duplicates += 1;
            self.send_ack(seq, shared);
            return Step::Taken;
        }
        if after(end, self.offered) || !shared.config.spoof {
            return Step::Pass;
        }
        let needed = gaps.len() * cost(packet.len());
        let room = shared.config.memory.saturating_sub(shared.statistics.stored);
        if needed > room || self.store.memory() + needed > shared.config.flow_memory {
            shared.statistics.no_room += 1;
            return Step::Pass;
        }
        if segment.has(FIN) {
            self.fin = Some(end.wrapping_sub(1));
        }
        if self.store.is_empty() {
            self.heard = now;
        }
        let sent = (!self.is_spoofed).then_some(now);
        for gap in gaps {
            let part = segment.part(packet, gap);
            shared.statistics.stored += cost(part.len());
            self.store.insert(Stored::new(gap, part, segment.places(), sent));
        }
        let former = self.stored;
        self.stored = self.store.contiguous_from(former);
        if let Some(stamps) = segment.options.timestamps
            && !after(seq, former)
        {
            self.near.recent = later(self.near.recent, stamps.value);
        }
        if !self.is_spoofed {
            self.begin_spoofing(shared);
            return Step::Pass;
        }
        if self.stored == end && self.stored == self.sent {
            self.ack_due = true;
        } else {
            // Out of order, or a gap was filled: each segment is answered (RFC 5681, 4.2).
            self.send_ack(seq, shared);
        }
        Step::Taken
    }

    /// Begins to acknowledge early, if the sender is a bulk sender and its window fits into the
    /// memory.
    fn begin_spoofing(&mut self, shared: &mut Shared) {
        let committed = u64::from(distance(self.acked, self.offered));
        let fits = committed <= window_limit(shared.config.flow_memory)
            && shared.committed + committed <= window_limit(shared.config.memory);
        if distance(self.acked, self.stored) < BULK || !fits {
            return;
        }
        shared.committed += committed;
        shared.statistics.spoofed += 1;
        self.is_spoofed = true;
        self.spacing.clear();
        self.ack_due = true;
    }

    /// The window field of a segment to the near end.
    fn window_field(&self, early: u32) -> u16 {
        let window = distance(early, later(early, self.offered)) >> self.agreed.far_scale;
        u16::try_from(window).unwrap_or(u16::MAX)
    }

    /// Sends the near end an acknowledgement of what is stored; `latest` has just arrived.
    fn send_ack(&mut self, latest: u32, shared: &mut Shared) {
        let early = self.early();
        let sack =
            if self.agreed.sack { self.store.runs_after(self.stored, latest) } else { Vec::new() };
        let ack = Bare {
            source: self.key.1,
            destination: self.key.0,
            seq: self.far_next,
            ack: early,
            flags: ACK,
            window: self.window_field(early),
            timestamps: self.agreed.timestamps.then_some((self.far_value, self.near.recent)),
            sack: &sack,
        };
        shared.push(ack.build());
        shared.statistics.early_acks += 1;
        self.announced = (early, self.offered);
        self.ack_due = false;
    }

    /// Sends the acknowledgement that is due.
    pub(super) fn acknowledge_early(&mut self, shared: &mut Shared) {
        if self.ack_due && self.is_spoofed && self.reset.is_none() {
            self.send_ack(self.stored, shared);
        }
    }

    /// Whether [`poll_far`](Self::poll_far) has a packet.
    pub(super) fn has_to_send(&self) -> bool {
        self.is_spoofed
            && (self.store.has_to_send() || (self.reset.is_some() && self.store.is_empty()))
    }

    /// Returns the next packet to the far end, with the latest acknowledgement, window and
    /// timestamps of the near end: older timestamps behind newer ones would be discarded (RFC 7323,
    /// 5).
    pub(super) fn poll_far(&mut self, now: Instant, shared: &mut Shared) -> Option<Vec<u8>> {
        let Some((mut packet, places, is_again)) = self.store.send(now) else {
            return self.take_reset();
        };
        shared.statistics.retransmitted += u64::from(is_again);
        places.set_ack(&mut packet, self.near.ack, self.near.window);
        places.set_value(&mut packet, self.near.stamps.0);
        places.set_echo(&mut packet, self.near.stamps.1);
        places.seal(&mut packet);
        Some(packet)
    }

    fn take_reset(&mut self) -> Option<Vec<u8>> {
        if !self.store.is_empty() {
            return None;
        }
        let reset = self.reset.take();
        self.is_reset = reset.is_some();
        reset
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub(super) fn poll_timeout(&mut self, now: Instant) -> Option<Instant> {
        if !self.is_spoofed || self.store.is_empty() {
            self.retransmit = None;
        } else if self.retransmit.is_none() {
            self.retransmit = Some(now + self.round_trip.timeout());
        }
        [self.retransmit, self.spacing.poll_timeout()].into_iter().flatten().min()
    }

    /// Retransmits after a timeout, or gives up; sends spaced acknowledgements.
    pub(super) fn handle_timeout(&mut self, now: Instant, shared: &mut Shared) -> Step {
        if let Some((ack, is_made)) = self.spacing.handle_timeout(now) {
            shared.statistics.regenerated += u64::from(is_made);
            shared.push(ack);
        }
        if self.retransmit.is_some_and(|at| at <= now) {
            if now.since(self.heard) >= GIVE_UP {
                self.abort(shared);
                return Step::Forget;
            }
            let timeout = self.round_trip.timeout();
            self.retransmit = match self.store.first_sent() {
                // It was sent or retransmitted after the timer had been started.
                Some(sent) if sent + timeout > now => Some(sent + timeout),
                Some(_) if self.store.mark_first_lost() => {
                    self.round_trip.back_off();
                    None
                }
                Some(_) | None => None,
            };
        }
        Step::Pass
    }

    /// Resets the near end: the far end lacks data that was acknowledged early, and will not get it.
    pub(super) fn abort(&mut self, shared: &mut Shared) {
        shared.statistics.aborted += 1;
        let (near, far) = self.key;
        let reset = Bare {
            source: far,
            destination: near,
            seq: self.near.ack,
            ack: self.early(),
            flags: RST | ACK,
            window: 0,
            timestamps: None,
            sack: &[],
        };
        shared.push(reset.build());
    }

    /// Gives back its memory and its share of the windows.
    pub(super) fn release(&mut self, shared: &mut Shared) {
        shared.statistics.stored -= self.store.memory();
        if self.is_spoofed {
            shared.committed -= u64::from(distance(self.acked, self.offered));
        }
    }
}

#[cfg(any(test, feature = "fuzzing"))]
impl Flow {
    /// Checks the connection; returns its memory and its share of the windows.
    ///
    /// # Panics
    /// If the near end was sent an acknowledgement of what is neither stored nor acknowledged by
    /// the far end.
    pub(super) fn check(&self) -> (usize, u64) {
        let early = self.announced.0;
        assert!(!before(self.early(), early), "an acknowledgement was taken back");
        if after(early, self.acked) {
            assert!(
                self.store.gaps((self.acked, early)).is_empty(),
                "acknowledged, but not stored"
            );
        }
        let share = if self.is_spoofed { distance(self.acked, self.offered) } else { 0 };
        (self.store.memory(), u64::from(share))
    }
}

/// Octets of window for `memory` octets of packets: headers and bookkeeping take the rest.
fn window_limit(memory: usize) -> u64 {
    (memory as u64 / 4 * 3).min(1 << 30)
}
