//! The packet that goes next, put into the buffer behind the room that its header takes.
//!
//! New data is cut to the room there is, where the layer above cuts it; what goes again is what
//! went before. What rides along is decided afterwards, in [`outgoing`](super::outgoing).

use super::Session;
use super::parts::Parts;
use super::sender::{Again, Sending};
use super::upper::{Filled, Upper};
use crate::Seq24;
use crate::wire::{Control, Delivery, Poll};
use units::Instant;

/// A packet that stands in the buffer.
pub(super) struct Loaded {
    pub(super) number: Seq24,
    /// Where its payload starts.
    pub(super) at: usize,
    pub(super) len: usize,
}

impl Session {
    /// The packet that goes next: one that goes again, or a new one.
    pub(super) fn load(
        &mut self,
        now: Instant,
        again: Option<Again>,
        parts: &Parts<'_>,
        upper: &mut impl Upper,
        out: &mut [u8],
    ) -> Option<Loaded> {
        let begins = matches!(parts.opening, Some(Control::Begin(_)));
        match again {
            Some(again) => self.load_again(now, again, parts, begins, upper, out),
            None => self.load_fresh(now, parts, begins, upper, out),
        }
    }

    /// Octets before the payload: of the parts, and of the POLL that goes with them.
    fn head(&self, parts: &Parts<'_>, with_poll: bool) -> usize {
        let mut parts = *parts;
        parts.data = Some(Seq24::ZERO);
        if with_poll {
            // A longer head than needed costs nothing: the payload is moved.
            parts.poll = Some(Poll { count: self.polling.next_count(None), next: Seq24::new(1) });
        }
        parts.overhead(&self.config.profile)
    }

    fn load_again(
        &mut self,
        now: Instant,
        again: Again,
        parts: &Parts<'_>,
        begins: bool,
        upper: &mut impl Upper,
        out: &mut [u8],
    ) -> Option<Loaded> {
        let at = self.head(parts, begins);
        // In order a packet cannot shrink: what was cut off would come too late.
        let room = match self.config.delivery {
            Delivery::InOrder => out.len(),
            Delivery::Immediate => out.len().min(self.max_segment),
        };
        if parts.opening.is_some() && at + again.size > room {
            return None;
        }
        let number = Seq24::of_count(again.count);
        let payload = out.get_mut(at..room)?;
        let room = payload.len();
        let len = upper.again(number, again.handle, &mut payload[..room.min(again.size)]);
        let len = len.min(again.size).min(room);
        self.sender.sent_again(again.count, len, self.sending(now));
        self.again_at_once = self.again_at_once.saturating_sub(1);
        self.last_data_sent = Some(now);
        self.statistics.data_retransmitted += 1;
        self.statistics.data_bytes_retransmitted += len as u64;
        self.polling.on_data_sent(len);
        Some(Loaded { number, at, len })
    }

    fn load_fresh(
        &mut self,
        now: Instant,
        parts: &Parts<'_>,
        begins: bool,
        upper: &mut impl Upper,
        out: &mut [u8],
    ) -> Option<Loaded> {
        let number = self.sender.next_number();
        let restart = self.sender.is_empty();
        let with_poll = begins || self.congestion.keeps_room();
        let mut filled = self.fill(number, parts, with_poll, upper, out);
        if filled.is_none() && !begins && with_poll {
            // What is never cut may fit only without.
            filled = self.fill(number, parts, false, upper, out);
        }
        let Some((at, Filled { len, handle })) = filled else {
            // Nothing after all, or nothing that fits beside a BGN; then that goes alone.
            self.fresh_waiting = parts.opening.is_some();
            if !self.fresh_waiting {
                self.pacer.idle();
                if self.config.stp.poll_when_app_limited && self.polling.bytes_since_poll() > 0 {
                    self.polling.want_when_dry(now, self.round_trip.smoothed());
                }
            }
            return None;
        };
        if restart {
            self.armed_at = now;
            if self.config.xstp.poll_first_burst {
                self.polling.want();
            }
            if let Some(last) = self.last_data_sent {
                self.congestion.on_restart(now.since(last));
            }
            self.replan(now);
        }
        self.last_data_sent = Some(now);
        self.sender.push(len, handle, self.sending(now));
        self.statistics.data_sent += 1;
        self.statistics.data_bytes_sent += len as u64;
        self.polling.on_data_sent(len);
        self.fresh_waiting = upper.has_fresh();
        Some(Loaded { number, at, len })
    }

    /// New data behind the octets of `parts`, and of a POLL beside them: where it begins.
    fn fill(
        &self,
        number: Seq24,
        parts: &Parts<'_>,
        with_poll: bool,
        upper: &mut impl Upper,
        out: &mut [u8],
    ) -> Option<(usize, Filled)> {
        let at = self.head(parts, with_poll);
        // As published there is always room for the POLL.
        let spare = if with_poll { 0 } else { self.config.data_overhead() - self.head_alone() };
        let end = out.len().min(self.max_segment).checked_sub(spare)?;
        let payload = out.get_mut(at..end)?;
        let room = payload.len();
        let filled = upper.fresh(number, payload)?;
        Some((at, Filled { len: filled.len.min(room), ..filled }))
    }

    fn sending(&self, now: Instant) -> Sending {
        Sending { poll: self.polling.count(), at: now }
    }

    /// Octets of a header with SD alone.
    fn head_alone(&self) -> usize {
        self.head(&Parts::new(Seq24::ZERO, 0, None), false)
    }
}
