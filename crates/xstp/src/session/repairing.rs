//! Forward error correction of a session: repair symbols at the end of a flight, so that a packet
//! lost there does not wait for its retransmission (XSTP-15).
//!
//! ```text
//!   new packet ──▶ Encoder ──┐               REPAIR ──▶ Decoder ──▶ Receiver ──▶ upper layer
//!   POLL answered ─▶ loss ───┼──▶ REPAIR     new SD ──▶    │
//!   time, rate ──▶ allowance ┘
//! ```
//!
//! A *flight* is the packets that are sent without a pause. At its end, when neither new data nor
//! retransmissions can be sent, symbols follow, as many as the measured loss ratio requires for the
//! packets that are not acknowledged, within a share of the send rate.

use super::Session;
use super::lifecycle::State;
use super::receiver::Accept;
use super::upper::UpperLayer;
use crate::repair::{
    Covered, Decoder, Encoder, LENGTH_OCTETS, LossEstimator, MAX_COVERED, MAX_SYMBOLS,
    repairs_needed,
};
use crate::seq::Seq24;
use crate::wire::{Repair, Segment};
use alloc::collections::VecDeque;
use units::{BitRate, Instant, Span};

/// Packets of a flight that are stored. A longer flight is a bulk transfer, which retransmissions
/// do not delay; its packets are not shortened for a symbol.
const MAX_FLIGHT: u32 = 4 * MAX_COVERED as u32;
/// Limits of the pause after which a flight has ended, which is SRTT/32.
const PAUSE: (Span, Span) = (Span::from_millis(1), Span::from_millis(20));
/// Time for which the allowance accumulates.
const ALLOWANCE_TIME: Span = Span::from_secs(2);

/// State of forward error correction.
#[derive(Clone, Debug, Default)]
pub(super) struct Repairing {
    /// Maximum share of the send rate in percent; `None`: REPAIR is neither sent nor accepted.
    percent: Option<u32>,
    loss: LossEstimator,
    encoder: Encoder,
    decoder: Decoder,
    /// For each symbol that covers packets of the encoder: the extended sequence number after the
    /// last one.
    symbols: VecDeque<u64>,
    /// Number of packets of the flight.
    flight: u32,
    /// Time from which on symbols may follow.
    due: Option<Instant>,
    /// Octets of symbols that may be sent, and the time of the last addition.
    allowance: u64,
    allowance_at: Option<Instant>,
}

impl Repairing {
    pub(super) fn new(percent: Option<u32>) -> Self {
        Self { percent, ..Self::default() }
    }

    /// Whether the next new packet of the flight is stored.
    pub(super) fn stores_packets(&self) -> bool {
        self.percent.is_some() && self.flight < MAX_FLIGHT && self.loss.ppm() > 0
    }

    /// Packets are not shortened until [`resume`](Self::resume), which takes the returned value.
    pub(super) fn suspend(&mut self) -> u32 {
        core::mem::replace(&mut self.flight, MAX_FLIGHT)
    }

    pub(super) fn resume(&mut self, flight: u32) {
        self.flight = flight;
    }

    /// The path is clean: nothing is stored.
    fn pause(&mut self) {
        self.encoder.clear();
        self.symbols.clear();
        self.flight = 0;
        self.due = None;
    }

    /// Number of symbols that are missing for the packets of the encoder, and for those after each
    /// symbol that was sent.
    fn symbols_missing(&self) -> usize {
        let (ppm, end) = (self.loss.ppm(), self.encoder.end());
        let starts = core::iter::once(self.encoder.first()).chain(self.symbols.iter().copied());
        let mut last = None;
        let missing = starts.filter(|&start| last.replace(start) != Some(start)).map(|start| {
            let needed = repairs_needed((end - start) as usize, ppm, MAX_SYMBOLS);
            let sent = self.symbols.iter().filter(|&&symbol| symbol > start).count();
            needed.saturating_sub(sent)
        });
        missing.max().unwrap_or(0)
    }

    /// Adds to the allowance the share of `rate` since the last time.
    fn refill(&mut self, now: Instant, rate: BitRate, full_packet: usize) {
        let percent = u64::from(self.percent.unwrap_or(0));
        let share = |time| rate.bytes_in(time) * percent / 100;
        let max = share(ALLOWANCE_TIME).max(2 * full_packet as u64);
        let passed = self.allowance_at.map_or(ALLOWANCE_TIME, |at| now.since(at));
        let earned = if passed >= ALLOWANCE_TIME { max } else { share(passed) };
        // A short time may earn less than an octet.
        if earned > 0 {
            self.allowance = (self.allowance + earned).min(max);
            self.allowance_at = Some(now);
        }
    }
}

/// Sender.
impl Session {
    /// Octets of `out` after `at`, where the payload of a new packet begins, that may be used.
    pub(super) fn payload_end(&self, at: usize, end: usize) -> usize {
        if !self.repairing.stores_packets() {
            return end;
        }
        // The symbol fits into a segment too.
        let max = self.sender.max_segment() - Repair::OVERHEAD - LENGTH_OCTETS;
        end.min(at + max)
    }

    /// A new packet with `payload` was staged, or padding, which needs no repair.
    pub(super) fn protect(&mut self, now: Instant, payload: &[u8], is_padding: bool) {
        if self.repairing.percent.is_none() {
            return;
        }
        if self.repairing.loss.ppm() == 0 {
            self.repairing.pause();
            return;
        }
        let due = now + self.flight_pause();
        let max = self.sender.max_segment() - Repair::OVERHEAD - LENGTH_OCTETS;
        // A packet sent in OPENING may be retransmitted before it is reported missing.
        let is_opening = self.lifecycle.state() == State::Opening;
        let repairing = &mut self.repairing;
        if is_padding || is_opening || payload.len() > max || !repairing.stores_packets() {
            repairing.encoder.clear();
        } else {
            repairing.encoder.push(self.sender.table.next() - 1, payload);
        }
        repairing.flight = repairing.flight.saturating_add(1);
        repairing.due = Some(due);
    }

    /// Packet `seq` is retransmitted: it and those before it were reported, and a retransmission
    /// may have another payload.
    pub(super) fn exclude_from_repair(&mut self, seq: u64) {
        self.repairing.encoder.discard_below(seq + 1);
    }

    /// Pause after which a flight has ended.
    fn flight_pause(&self) -> Span {
        (self.rtt.smoothed() / 32).max(PAUSE.0).min(PAUSE.1)
    }

    /// Time at which a repair symbol is sent if the link scheduler has room.
    pub(super) fn unblocked_repair_at(&self) -> Option<Instant> {
        let due = self.repairing.due?;
        let state = self.lifecycle.state();
        let may_send = state.may_send() && state != State::Opening && !self.is_probing();
        if !may_send || self.congestion.is_poll_only() || self.unblocked_data_at().is_some() {
            return None;
        }
        Some(due.max(self.pacing.next_send()))
    }

    /// Time at which a repair symbol is sent.
    pub(super) fn repair_at(&self) -> Option<Instant> {
        if self.sender.is_blocked { None } else { self.unblocked_repair_at() }
    }

    /// Writes a REPAIR if one is due.
    pub(super) fn transmit_repair(&mut self, now: Instant, out: &mut [u8]) -> Option<usize> {
        if self.repair_at().is_none_or(|at| at > now) {
            return None;
        }
        self.repairing.flight = 0;
        let len = self.write_repair(now, out);
        if len.is_none() {
            self.repairing.due = None;
        }
        len
    }

    fn write_repair(&mut self, now: Instant, out: &mut [u8]) -> Option<usize> {
        // Without a rate a loss is a congestion signal, which repair must not hide (RFC 9265).
        let rate = self.congestion.pace(now)?;
        let below = self.config.packet_overhead;
        let full_packet = self.sender.max_segment() + below;
        let repairing = &mut self.repairing;
        repairing.encoder.discard_below(self.sender.table.oldest());
        let first = repairing.encoder.first();
        repairing.symbols.retain(|&end| end > first);
        if repairing.symbols.len() >= MAX_SYMBOLS || repairing.symbols_missing() == 0 {
            return None;
        }
        repairing.refill(now, rate, full_packet);
        let Some(allowance) = repairing.allowance.checked_sub(full_packet as u64) else {
            self.statistics.repairs_withheld += 1;
            return None;
        };
        let (covered, symbol) = repairing.encoder.symbol()?;
        let repair = Repair { count: covered.count as u8, key: covered.key, symbol };
        let segment = Segment::repair(Seq24::from_extended(covered.first), repair);
        let room = out.len().min(self.sender.max_segment());
        let len = segment.encode(&self.config.profile, &mut out[..room]).ok()?;
        // What the symbol is shorter than a full packet is left.
        repairing.allowance = allowance + (full_packet - below - len) as u64;
        repairing.symbols.push_back(repairing.encoder.end());
        self.statistics.repairs_sent += 1;
        self.charge(now, len, false);
        Some(len)
    }

    /// The first STAT for a POLL was received: `sent` octets had been sent up to that POLL, and
    /// `received` octets were received.
    pub(super) fn measure_loss(&mut self, sent: u64, received: u32) {
        if self.repairing.percent.is_some() {
            let packet = self.octets_sent() / self.statistics.segments_sent.max(1);
            self.repairing.loss.on_poll_answered(sent as u32, received, packet as u32);
        }
    }
}

/// Receiver.
impl Session {
    /// Whether REPAIR is sent and accepted.
    pub(super) fn has_repair(&self) -> bool {
        self.repairing.percent.is_some()
    }

    /// The payload of packet `number` was received.
    pub(super) fn store_for_repair(&mut self, number: Seq24, payload: &[u8]) {
        if !self.has_repair() {
            return;
        }
        let seq = self.receiver.extend(number);
        // One that was reported may be a retransmission, whose payload may be another one.
        if self.receiver.is_unreported(seq) {
            self.repairing.decoder.on_packet(seq, payload);
        }
    }

    /// Processes a REPAIR: packets that it recovers are received as if they had arrived.
    pub(super) fn on_repair(
        &mut self,
        now: Instant,
        first: Seq24,
        repair: Repair<'_>,
        upper: &mut impl UpperLayer,
    ) {
        self.statistics.repairs_received += 1;
        let first = self.receiver.extend(first);
        let covered = Covered { first, count: usize::from(repair.count), key: repair.key };
        let known = self.receiver.known();
        let Ok(recovered) = self.repairing.decoder.on_symbol(covered, repair.symbol, known) else {
            self.statistics.repair_errors += 1;
            return;
        };
        for seq in recovered {
            let number = Seq24::from_extended(seq);
            let Some(payload) = self.repairing.decoder.packet(seq) else { continue };
            if self.receiver.on_data(now, number) == Accept::New {
                self.statistics.data_received += 1;
                self.statistics.data_bytes_received += payload.len() as u64;
                self.statistics.packets_recovered += 1;
                upper.deliver(number, payload);
            }
        }
    }
}
