//! Segments of the far end: acknowledgements, windows, losses.

use super::{Flow, Step, UPDATE, window_limit};
use crate::pep::segment::{ACK, FIN, MAX_BLOCKS, RST, SYN, Segment};
use crate::pep::serial::{after, before, distance, earlier, later, within};
use crate::pep::shared::Shared;
use units::Instant;

impl Flow {
    /// Handles a segment of the far end, and edits it if data was acknowledged early.
    pub(in crate::pep) fn handle_far(
        &mut self,
        now: Instant,
        segment: &Segment,
        packet: &mut [u8],
        shared: &mut Shared,
    ) -> Step {
        self.last = now;
        if segment.has(RST) {
            let is_next = segment.seq == self.near.ack || segment.seq == self.far_next;
            return if is_next { Step::Forget } else { Step::Pass };
        }
        if segment.has(SYN) || !segment.has(ACK) {
            return Step::Pass;
        }
        let near_window = u32::from(self.near.window) << self.agreed.near_scale;
        let near_end = self.near.ack.wrapping_add(near_window.max(1));
        let is_in_window = !before(segment.end(), self.near.ack)
            && !after(segment.seq, later(near_end, self.far_next));
        if !is_in_window || after(segment.ack, self.sent) {
            shared.statistics.implausible += 1;
            return Step::Pass;
        }
        self.heard = now;
        self.far_next = later(self.far_next, segment.end());
        if segment.has(FIN) {
            self.far_fin = Some(segment.end());
        }
        if let Some(stamps) = segment.options.timestamps {
            self.far_value = later(self.far_value, stamps.value);
        }
        let former = self.acked;
        if !before(segment.ack, self.acked) {
            self.take_ack(now, segment, shared);
        }
        if !self.is_spoofed {
            return self.pass_unspoofed(now, segment, packet, shared);
        }
        self.offer(former, shared);
        self.answer(segment, former, packet, shared)
    }

    /// Passes a segment of a connection that is not spoofed, spaced if it is an acknowledgement.
    fn pass_unspoofed(
        &mut self,
        now: Instant,
        segment: &Segment,
        packet: &[u8],
        shared: &mut Shared,
    ) -> Step {
        self.offered = later(self.offered, self.window_end);
        self.announced = (self.acked, self.offered);
        let is_taken = shared.config.space_acks
            && self.spacing.take(now, segment, packet, self.agreed.far_scale);
        if is_taken { Step::Taken } else { Step::Pass }
    }

    /// Takes the acknowledgement, the window and the SACK blocks of the far end.
    fn take_ack(&mut self, now: Instant, segment: &Segment, shared: &mut Shared) {
        let window = u32::from(segment.window) << self.agreed.far_scale;
        let former_end = self.window_end;
        self.window_end = segment.ack.wrapping_add(window);
        let has_advanced = after(segment.ack, self.acked);
        self.acked = segment.ack;
        let mut blocks = [(0, 0); MAX_BLOCKS];
        let mut count = 0;
        for &block in segment.options.sack.blocks() {
            let is_plausible = after(block.1, block.0)
                && within(block.0, self.acked, self.sent)
                && within(block.1, self.acked, self.sent);
            if is_plausible && self.agreed.sack {
                (blocks[count], count) = (block, count + 1);
            }
        }
        let min_rtt = self.round_trip.min();
        let is_duplicate = !has_advanced && segment.len() == 0 && self.window_end == former_end;
        let blocks = &blocks[..count];
        let progress = self.store.acknowledge(now, (segment.ack, is_duplicate), blocks, min_rtt);
        shared.statistics.stored -= progress.freed;
        self.stored = self.store.contiguous_from(later(self.stored, self.acked));
        if let Some(sample) = progress.sample {
            self.round_trip.sample(sample);
        }
        if !self.is_spoofed {
            return;
        }
        if self.agreed.sack {
            self.store.detect_by_sack(self.round_trip.min());
        } else if is_duplicate || has_advanced {
            self.store.detect_by_duplicates(segment.ack, self.sent);
        }
        if has_advanced {
            self.round_trip.recover();
            self.retransmit = None;
        }
    }

    /// Extends the window that is offered to the near end, never beyond that of the far end.
    /// `former` was acknowledged before.
    fn offer(&mut self, former: u32, shared: &mut Shared) {
        shared.committed -=
            u64::from(distance(former, self.offered).min(distance(former, self.acked)));
        if after(self.acked, self.offered) {
            self.offered = self.acked;
        }
        let limit = window_limit(shared.config.flow_memory) as u32;
        let end = earlier(self.window_end, self.acked.wrapping_add(limit));
        if after(end, self.offered) {
            let room = window_limit(shared.config.memory).saturating_sub(shared.committed);
            let growth = u64::from(distance(self.offered, end)).min(room);
            shared.committed += growth;
            self.offered = self.offered.wrapping_add(growth as u32);
        }
    }

    /// Decides on a segment of the far end of a spoofed connection.
    fn answer(
        &mut self,
        segment: &Segment,
        former: u32,
        packet: &mut [u8],
        shared: &mut Shared,
    ) -> Step {
        let early = self.early();
        if segment.is_plain_ack() {
            let window_left = distance(early, self.announced.1);
            let growth = distance(self.announced.1, self.offered);
            let is_update = growth > 0 && (growth >= UPDATE || window_left < UPDATE);
            let has_news = early != self.announced.0 || is_update;
            let has_outstanding = after(early, self.acked);
            // One that says nothing new answers a keep-alive probe or a doubtful segment.
            let is_mere_answer = segment.ack == former
                && segment.options.sack.blocks().is_empty()
                && self.agreed.sack
                && growth == 0;
            self.ack_due |= has_news;
            if self.reset.is_some()
                || has_news
                || (has_outstanding && !is_mere_answer)
                || segment.ack != former
            {
                shared.statistics.suppressed += 1;
                return Step::Taken;
            }
        }
        let places = segment.places();
        places.set_ack(packet, early, self.window_field(early));
        places.set_echo(packet, self.near.recent);
        if segment.options.sack.blocks().iter().any(|&(first, _)| before(first, early)) {
            segment.blank_sack(packet);
        }
        places.seal(packet);
        self.announced = (early, self.offered);
        self.ack_due = false;
        Step::Pass
    }
}
