//! Staging of a packet: its payload is placed in the buffer before the header is known.
//!
//! New data is limited to the room that is left, if the upper layer can split it; a retransmission
//! has its old size. What is piggybacked is decided afterwards, in [`transmit`](super::transmit).

use super::Session;
use super::segment_parts::SegmentParts;
use super::sender::{Retransmission, Transmission};
use super::upper::{NewPacket, UpperLayer};
use crate::seq::Seq24;
use crate::wire::{Delivery, Poll};
use units::Instant;

/// A packet whose payload is in the buffer.
pub(super) struct StagedPacket {
    pub(super) number: Seq24,
    /// Offset of the payload.
    pub(super) at: usize,
    pub(super) len: usize,
    pub(super) is_padding: bool,
}

impl Session {
    /// Stages `retransmission`, or else a new packet.
    pub(super) fn stage(
        &mut self,
        now: Instant,
        retransmission: Option<Retransmission>,
        parts: &SegmentParts<'_>,
        upper: &mut impl UpperLayer,
        out: &mut [u8],
    ) -> Option<StagedPacket> {
        match retransmission {
            Some(packet) => self.stage_retransmission(now, packet, parts, upper, out),
            None => self.stage_new(now, parts, upper, out),
        }
    }

    /// Octets before the payload: of the parts, and of a POLL that is added to them.
    fn header_len(&self, parts: &SegmentParts<'_>, with_poll: bool) -> usize {
        let mut parts = *parts;
        parts.data = Some(Seq24::ZERO);
        if with_poll {
            // A header that is too long costs nothing: the payload is moved.
            parts.poll = Some(Poll { seq: self.polling.next_seq(None), next: Seq24::new(1) });
        }
        parts.overhead(&self.config.profile)
    }

    fn stage_retransmission(
        &mut self,
        now: Instant,
        packet: Retransmission,
        parts: &SegmentParts<'_>,
        upper: &mut impl UpperLayer,
        out: &mut [u8],
    ) -> Option<StagedPacket> {
        let at = self.header_len(parts, parts.has_begin());
        // In order a packet cannot become smaller: the rest would be received too late.
        let room = match self.config.delivery {
            Delivery::InOrder => out.len(),
            Delivery::Immediate => out.len().min(self.sender.max_segment()),
        };
        if parts.opening.is_some() && at + packet.size > room {
            return None;
        }
        let number = Seq24::from_extended(packet.seq);
        let payload = out.get_mut(at..room)?;
        let room = payload.len().min(packet.size);
        let len = upper.fill_retransmission(number, packet.handle, &mut payload[..room]).min(room);
        self.sender.on_retransmitted(packet.seq, len, self.transmission(now));
        self.statistics.data_retransmitted += 1;
        self.statistics.data_bytes_retransmitted += len as u64;
        self.polling.on_data_sent(len);
        // Of padding nothing is retransmitted but the number.
        Some(StagedPacket { number, at, len, is_padding: len == 0 })
    }

    /// Payload octets of the padding packet that is sent if there is no data, at most.
    pub(super) fn padding(&self, upper: &impl UpperLayer) -> Option<usize> {
        let may_send = self.lifecycle.is_connected() && !self.lifecycle.is_opening();
        let is_possible = may_send && !self.lifecycle.end_requested() && upper.accepts_padding();
        self.congestion.padding().filter(|_| is_possible)
    }

    fn stage_new(
        &mut self,
        now: Instant,
        parts: &SegmentParts<'_>,
        upper: &mut impl UpperLayer,
        out: &mut [u8],
    ) -> Option<StagedPacket> {
        let begins = parts.has_begin();
        let number = self.sender.table.next_number();
        let was_empty = self.sender.table.is_empty();
        let with_poll = begins || self.congestion.reserves_poll_space();
        let mut staged = self.fill(number, parts, with_poll, None, upper, out);
        if staged.is_none() && !begins && with_poll {
            // A packet that cannot be split may fit only without the POLL.
            staged = self.fill(number, parts, false, None, upper, out);
        }
        if staged.is_none() && self.repairing.stores_packets() {
            // One that cannot be split may not leave room for a symbol of its length.
            let flight = self.repairing.suspend();
            staged = self.fill(number, parts, false, None, upper, out);
            self.repairing.resume(flight);
        }
        let is_padding = staged.is_none();
        let padding = self.padding(upper).filter(|_| is_padding);
        let staged = staged.or_else(|| self.fill(number, parts, false, padding, upper, out));
        let Some((at, NewPacket { len, handle })) = staged else {
            // There is no data, or none that fits beside BGN, which is then sent alone.
            self.sender.has_new_data = parts.opening.is_some();
            if !self.sender.has_new_data {
                self.pacing.pause();
                if self.config.stp.poll_when_app_limited && self.polling.bytes_since_poll() > 0 {
                    self.polling.request_when_app_limited(now, self.rtt.smoothed());
                }
            }
            return None;
        };
        if was_empty {
            self.polling.on_nonempty(now);
            if self.config.xstp.poll_first_burst {
                self.polling.request();
            }
            if let Some(idle) = self.sender.idle_time(now) {
                self.congestion.on_restart(now, idle);
            }
            self.schedule_window(now);
        }
        self.sender.on_sent(len, handle, self.transmission(now));
        self.statistics.data_sent += 1;
        self.statistics.data_bytes_sent += len as u64;
        self.polling.on_data_sent(len);
        Some(StagedPacket { number, at, len, is_padding })
    }

    /// Places new data behind the octets of `parts`, and of a POLL if there is one; returns its
    /// offset.
    fn fill(
        &self,
        number: Seq24,
        parts: &SegmentParts<'_>,
        with_poll: bool,
        padding: Option<usize>,
        upper: &mut impl UpperLayer,
        out: &mut [u8],
    ) -> Option<(usize, NewPacket)> {
        let at = self.header_len(parts, with_poll);
        // As published there is always room for the POLL.
        let data_only = || self.header_len(&SegmentParts::new(Seq24::ZERO, 0, None), false);
        let spare = if with_poll { 0 } else { self.config.data_overhead() - data_only() };
        let end = out.len().min(self.sender.max_segment()).checked_sub(spare)?;
        let payload = out.get_mut(at..self.payload_end(at, end))?;
        let room = payload.len();
        let packet = match padding {
            Some(octets) => upper.fill_padding(&mut payload[..octets.min(room)])?,
            None => upper.fill_new(number, payload)?,
        };
        Some((at, NewPacket { len: packet.len.min(room), ..packet }))
    }

    fn transmission(&self, now: Instant) -> Transmission {
        Transmission { poll: self.polling.seq(), at: now }
    }
}
