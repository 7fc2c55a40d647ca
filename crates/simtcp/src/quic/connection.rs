//! One end of a connection.

use super::QuicConfig;
use super::acks::Received;
use super::congestion::Congestion;
use super::loss::{Content, Sent, SentPackets};
use super::round_trip::RoundTrip;
use super::stream::{ReceiveSide, SendSide};
use super::wire::{Ack, Frame, Malformed, Parameters, Reader, Writer, is_initial};
use crate::counters::Counters;
use crate::endpoint::{Snapshot, State};
use alloc::vec::Vec;
use units::{Instant, Span};

/// Probe packets when the probe timeout expires (RFC 9002, section 6.2.4).
const PROBES: u8 = 2;
/// Length of datagrams with an Initial (RFC 9000, section 14.1).
const INITIAL_LEN: usize = 1_200;
/// Octets of a packet that are not of its STREAM frame, at most; an ACK frame takes what is left.
const LEAST_ROOM: usize = 64;

/// One end of a connection with one stream.
///
/// Driven by [`handle_datagram`](Self::handle_datagram), [`poll_transmit`](Self::poll_transmit)
/// until it has nothing more, [`poll_timeout`](Self::poll_timeout) and
/// [`handle_timeout`](Self::handle_timeout).
#[derive(Clone, Debug)]
pub struct Connection {
    config: QuicConfig,
    server: bool,
    established: bool,
    broken: bool,
    send: SendSide,
    receive: ReceiveSide,
    received: Received,
    sent: SentPackets,
    round_trip: RoundTrip,
    congestion: Congestion,
    next_number: u64,
    /// The peer's `max_ack_delay` and `ack_delay_exponent`.
    peer_ack_delay: (Span, u64),
    crypto_due: bool,
    max_stream_data_due: bool,
    /// pto_count: consecutive probe timeouts.
    timeouts: u32,
    /// Probe packets to be sent regardless of the window.
    probes: u8,
    application_limited: bool,
    /// When pacing allows the next packet.
    paced_until: Option<Instant>,
    /// When the last packet of the peer arrived.
    heard: Instant,
    counters: Counters,
}

impl Connection {
    /// A client's end: its Initial is sent by the next [`poll_transmit`](Self::poll_transmit).
    pub fn connect(config: &QuicConfig, now: Instant) -> Self {
        Self::new(config, now, false)
    }

    /// A server's end, which waits for an Initial.
    pub fn listen(config: &QuicConfig, now: Instant) -> Self {
        Self::new(config, now, true)
    }

    fn new(config: &QuicConfig, now: Instant, server: bool) -> Self {
        Self {
            config: config.clone(),
            server,
            established: false,
            broken: false,
            send: SendSide::new(config.send_buffer),
            receive: ReceiveSide::new(config.receive_buffer),
            received: Received::default(),
            sent: SentPackets::default(),
            round_trip: RoundTrip::new(),
            congestion: Congestion::new(config.max_datagram as u64),
            next_number: 0,
            peer_ack_delay: (Span::from_millis(25), 3),
            crypto_due: !server,
            max_stream_data_due: false,
            timeouts: 0,
            probes: 0,
            application_limited: false,
            paced_until: None,
            heard: now,
            counters: Counters::default(),
        }
    }

    /// Whether a datagram opens a connection.
    pub fn opens(datagram: &[u8]) -> bool {
        is_initial(datagram)
    }

    /// Accepts some of `bytes` to send; returns how many.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        self.send.write(bytes)
    }

    /// Free octets of the send buffer.
    pub fn room(&self) -> u64 {
        self.send.room()
    }

    /// Ends the send side.
    pub fn end(&mut self) {
        self.send.end();
    }

    /// Octets received in order and not consumed.
    pub fn peek(&self) -> &[u8] {
        self.receive.peek()
    }

    /// Consumes the first `count` of them.
    pub fn consume(&mut self, count: usize) {
        self.receive.consume(count);
        self.max_stream_data_due |= self.receive.new_limit().is_some();
    }

    /// Whether the handshake is complete.
    pub fn is_established(&self) -> bool {
        self.established
    }

    /// Whether the peer has ended and everything from it was consumed.
    pub fn is_finished(&self) -> bool {
        self.receive.is_finished()
    }

    /// Whether both sides have ended and this one's data is acknowledged. It still responds to
    /// retransmissions of the peer.
    pub fn is_done(&self) -> bool {
        self.send.is_done() && self.is_finished()
    }

    /// Whether the peer has not responded for too long.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Variables.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            state: if self.established { State::Established } else { State::SynSent },
            congestion_window: self.congestion.window(),
            threshold: self.congestion.threshold(),
            flight: self.sent.in_flight(),
            in_flight: self.sent.in_flight(),
            unsent: self.send.unsent(),
            round_trip: self.round_trip.measured(),
            timeout: self.probe_timeout(),
            repairing: self.congestion.is_in_recovery(self.sent.last_sent()),
            segment: self.config.max_datagram as u64,
        }
    }

    /// Handles a datagram that arrived at `now`.
    ///
    /// # Errors
    /// If it cannot be decoded. Frames before the damaged one have been handled.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) -> Result<(), Malformed> {
        let mut reader = Reader::new(datagram)?;
        let mut eliciting = false;
        self.heard = now;
        while let Some(frame) = reader.frame()? {
            eliciting |= !matches!(frame, Frame::Ack(_));
            match frame {
                Frame::Ping => {}
                Frame::Ack(ack) => self.on_ack(now, &ack, reader.initial),
                Frame::Crypto(parameters) => self.on_parameters(parameters),
                Frame::Stream { offset, fin, bytes } => self.receive.on_stream(offset, bytes, fin),
                Frame::MaxStreamData(limit) => self.send.allow(limit),
            }
        }
        let delay = self.config.max_ack_delay;
        self.received.on_packet(now, reader.number, eliciting, delay);
        Ok(())
    }

    fn on_parameters(&mut self, parameters: Parameters) {
        let max = Span::from_millis(parameters.max_ack_delay_ms);
        self.peer_ack_delay = (max, parameters.ack_delay_exponent);
        self.send.allow(parameters.max_stream_data);
        self.crypto_due |= self.server && !self.established;
        self.established = true;
    }

    fn on_ack(&mut self, now: Instant, ack: &Ack, initial: bool) {
        if ack.ranges.first().is_none_or(|&(_, end)| end > self.next_number) {
            return;
        }
        let outcome = self.sent.on_ack(&ack.ranges);
        if let Some(largest) = outcome.largest {
            let (max, exponent) = self.peer_ack_delay;
            // RFC 9002, section 5.3: the delay is not used of Initials, and at most max_ack_delay.
            let reported = Span::from_micros(ack.delay.saturating_mul(1 << exponent.min(20)));
            let delay = if initial { Span::ZERO } else { reported.min(max) };
            self.round_trip.sample(now, now.since(largest.at), delay);
        }
        if !outcome.acknowledged.is_empty() {
            (self.timeouts, self.probes) = (0, 0);
        }
        for packet in outcome.acknowledged {
            let Content { data, fin, ack, .. } = packet.content;
            self.send.on_acknowledged(data, fin);
            self.congestion.on_acked(packet.at, packet.size, self.application_limited);
            if let Some(largest) = ack {
                self.received.on_ack_acknowledged(largest);
            }
        }
        self.detect_lost(now);
    }

    fn detect_lost(&mut self, now: Instant) {
        let lost = self.sent.detect_lost(now, &self.round_trip);
        for packet in &lost {
            self.send_again(packet);
        }
        // RFC 9002, appendix B.8: the last one decides whether a new recovery period starts.
        if let Some(last) = lost.last()
            && self.congestion.on_lost(now, last.at)
        {
            self.counters.recoveries += 1;
        }
        let period = SentPackets::persistent_period(&self.round_trip, self.peer_ack_delay.0);
        if self.sent.take_persistent(self.round_trip.first_sample(), period) {
            self.congestion.on_persistent_congestion();
            self.round_trip.restart_min();
        }
    }

    /// Schedules the content of a packet for a later one (RFC 9000, section 13.3).
    fn send_again(&mut self, packet: &Sent) {
        let Content { data, fin, crypto, max_stream_data, .. } = packet.content;
        self.send.on_lost(data, fin);
        self.crypto_due |= crypto;
        self.max_stream_data_due |= max_stream_data;
    }

    /// PTO with its backoff (RFC 9002, section 6.2.1); `max_ack_delay` counts after the handshake.
    fn probe_timeout(&self) -> Span {
        let delay = if self.established { self.peer_ack_delay.0 } else { Span::ZERO };
        self.round_trip.probe_timeout(delay) * (1 << self.timeouts.min(16))
    }

    /// The loss detection timer (RFC 9002, appendix A.8).
    fn loss_timer(&self) -> Option<Instant> {
        if self.broken || self.sent.outstanding().next().is_none() {
            return None;
        }
        self.sent.loss_time.or_else(|| Some(self.sent.last_sent() + self.probe_timeout()))
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        let timers = [self.received.timer(), self.loss_timer(), self.paced_until];
        timers.into_iter().flatten().min()
    }

    /// Handles the timers that have expired at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.paced_until = self.paced_until.filter(|&at| at > now);
        if self.loss_timer().is_none_or(|at| at > now) {
            return;
        }
        if self.sent.loss_time.is_some() {
            self.detect_lost(now);
            return;
        }
        if now.since(self.heard) > self.config.give_up {
            self.broken = true;
            return;
        }
        self.timeouts += 1;
        self.counters.timeouts += 1;
        self.probes = PROBES;
        if !self.has_new() {
            // Section 6.2.4: without new data the oldest is repeated.
            let oldest: Vec<Sent> = self.sent.outstanding().take(PROBES.into()).copied().collect();
            oldest.iter().for_each(|packet| self.send_again(packet));
        }
    }

    fn has_new(&self) -> bool {
        self.established && self.send.has_new()
    }

    /// Whether there is something to send beside acknowledgements.
    fn has_content(&self) -> bool {
        let stream = self.established && self.send.next(1).is_some();
        self.crypto_due || self.max_stream_data_due || stream
    }

    /// Whether the window and pacing allow a full packet now (RFC 9002, sections 7 and 7.7).
    fn may_send(&mut self, now: Instant) -> bool {
        let size = self.config.max_datagram as u64;
        if self.probes > 0 {
            return true;
        }
        if self.sent.in_flight() + size > self.congestion.window() {
            self.application_limited = false;
            return false;
        }
        if !self.has_content() {
            self.application_limited = self.established;
            return false;
        }
        self.application_limited = false;
        let at = self.congestion.paced_at(now, size, self.round_trip.measured());
        self.paced_until = (at > now).then_some(at);
        at <= now
    }

    /// Writes the next datagram that may be sent at `now` into `out`, which has room for
    /// [`max_datagram`](QuicConfig::max_datagram) octets; returns its length.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut [u8]) -> Option<usize> {
        if self.broken {
            return None;
        }
        // Before the handshake all probes are Initials (RFC 9002, section 6.2.2.1).
        self.crypto_due |= self.probes > 0 && !self.server && !self.established;
        let may_send = self.may_send(now);
        if !may_send && !self.received.is_due(now) {
            return None;
        }
        let number = self.next_number;
        self.next_number += 1;
        let initial = self.crypto_due && may_send;
        let len = out.len().min(self.config.max_datagram);
        let mut writer = Writer::new(&mut out[..len], number, initial);
        let mut content = Content::default();
        if self.received.has_news()
            && let Some(ack) = self.received.ack(now, self.config.ack_delay_exponent)
        {
            content.ack = ack.ranges.first().map(|&(_, end)| end - 1);
            writer.ack(&ack);
        }
        if !may_send {
            self.counters.acknowledgements += 1;
            return Some(writer.finish(0));
        }
        self.write_content(&mut writer, &mut content);
        let size = writer.finish(if initial { INITIAL_LEN } else { 0 });
        self.sent.on_sent(now, number, size as u64, content);
        self.congestion.on_sent(size as u64);
        self.probes = self.probes.saturating_sub(1);
        Some(size)
    }

    fn write_content(&mut self, writer: &mut Writer<'_>, content: &mut Content) {
        let before = writer.len();
        if core::mem::take(&mut self.crypto_due) {
            content.crypto = true;
            writer.crypto(Parameters {
                ack_delay_exponent: self.config.ack_delay_exponent,
                max_ack_delay_ms: self.config.max_ack_delay.as_millis(),
                max_stream_data: self.config.receive_buffer,
            });
        }
        if core::mem::take(&mut self.max_stream_data_due) && writer.room() > LEAST_ROOM {
            content.max_stream_data = true;
            let limit = self.receive.new_limit().unwrap_or(self.receive.limit());
            self.receive.announce(limit);
            writer.max_stream_data(limit);
        }
        // Data is not sent in Initials.
        if self.established && !content.crypto {
            self.write_stream(writer, content);
        }
        if writer.len() == before {
            writer.ping();
        }
    }

    fn write_stream(&mut self, writer: &mut Writer<'_>, content: &mut Content) {
        let Some((block, _)) = self.send.next(1) else { return };
        let room = writer.room().saturating_sub(Writer::stream_header(block.0));
        if room < LEAST_ROOM {
            return;
        }
        let Some((block, fin)) = self.send.next(room as u64) else { return };
        let (len, old) = ((block.1 - block.0) as usize, self.send.is_old(block.0));
        let send = &self.send;
        writer.stream(block.0, len, fin, |out| send.fill(block.0, out));
        self.send.on_sent(block, fin);
        (content.data, content.fin) = ((len > 0).then_some(block), fin);
        self.counters.data_segments += 1;
        if old && len > 0 {
            self.counters.retransmitted_segments += 1;
            self.counters.retransmitted_bytes += len as u64;
        } else {
            self.counters.data_bytes += len as u64;
        }
    }
}
