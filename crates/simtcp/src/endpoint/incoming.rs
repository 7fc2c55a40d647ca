//! Processing of received segments (RFC 9293, section 3.10.7).

use super::{CloseReason, Endpoint, Event, State};
use crate::config::Opening;
use crate::open::Answer;
use crate::probing::Prober;
use crate::segment::{Ecn, Ports, Probe, Segment};
use crate::sender::AckResult;
use alloc::boxed::Box;
use units::{Instant, Span};

/// Octets of timestamps in every segment (RFC 7323, appendix A).
const TIMESTAMPS: u64 = 12;
/// Octets of IP and TCP headers without options.
const HEADERS: u16 = 40;
/// Minimum MTU (RFC 791).
const LEAST_MTU: u16 = 68;
/// MTUs tried after two timeouts and after four (RFC 4821, section 7.7: 1024 octets; then RFC
/// 879's).
const BLACK_HOLE_MTUS: [u16; 2] = [1_024, 576];
/// Initial value of AccECN's counters (RFC 9768, section 3.2.1).
const FIRST_COUNT: u64 = 5;
/// Octets of a connection count in every segment, padding included (RFC 1644).
const COUNT: u64 = 8;
/// Default segment size of a peer without the option (RFC 9293, section 3.7.1).
pub(super) const DEFAULT_SEGMENT: u16 = 536;

impl Endpoint {
    /// Handles a segment that arrived at `now`.
    ///
    /// # Panics
    /// If its octets do not belong at its sequence number, which means that two connections were
    /// mixed up.
    pub fn handle_segment(&mut self, now: Instant, segment: &Segment) {
        match self.state {
            State::Closed => {}
            State::Listen => self.in_listen(now, segment),
            State::SynSent => self.in_syn_sent(now, segment),
            State::SynReceived
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait => self.in_order(now, segment),
        }
    }

    fn in_listen(&mut self, now: Instant, segment: &Segment) {
        if segment.flags.reset || segment.acknowledgement.is_some() || !segment.flags.syn {
            return;
        }
        self.ports = Ports { from: self.ports.from, to: segment.ports.from };
        self.opened = now;
        let taken = self.handshake.asked(segment);
        self.agree(now, segment);
        self.state = State::SynReceived;
        self.syn_due = true;
        let data = segment.without_syn();
        if taken {
            self.state = State::Established;
            self.events.push_back(Event::Established);
            self.take(now, &data);
        } else if self.handshake.keeps_early_data() && data.span() > 0 {
            self.early = Some(Box::new(data));
        }
    }

    fn in_syn_sent(&mut self, now: Instant, segment: &Segment) {
        let sent = self.sender.flow().end;
        let acceptable = segment.acknowledgement.is_none_or(|number| (1..=sent).contains(&number));
        if !acceptable {
            return;
        }
        if segment.flags.reset {
            if segment.acknowledgement.is_some() {
                self.end(CloseReason::Reset);
            }
            return;
        }
        if !segment.flags.syn {
            return;
        }
        let answer = match segment.acknowledgement {
            Some(_) => self.handshake.answered(now, segment, sent > 1),
            None => Answer::Open,
        };
        if answer == Answer::Foreign {
            return;
        }
        self.agree(now, segment);
        self.syn_due = false;
        if segment.acknowledgement.is_none() {
            // Simultaneous open.
            self.state = State::SynReceived;
            self.syn_due = true;
            return;
        }
        let echo = self.echoed(now, segment);
        self.sender.on_ack(now, segment, echo);
        self.sender.peer_window_of_syn(segment);
        self.established();
        if answer == Answer::WithoutData {
            self.sender.early_data_was_lost();
        }
        let data = segment.without_syn();
        if data.span() > 0 {
            self.take(now, &data);
        }
        self.receiver.acknowledge_now();
        self.alone = self.config.answers_first && self.config.opening == Opening::ThreeWay;
        self.after_own_fin(now);
    }

    /// Enables the options that both SYNs have.
    fn agree(&mut self, now: Instant, syn: &Segment) {
        let config = &self.config;
        self.timestamps = config.timestamps.is_some() && syn.options.timestamps.is_some();
        self.sack = config.sack && syn.options.sack_permitted;
        self.scale = config.window_scale && syn.options.window_scale.is_some();
        // ECN's response has ECE only (RFC 3168, section 6.1.1).
        let asks = syn.acknowledgement.is_none();
        let flags = if asks { 0b111 } else { 0b010 };
        let accurate = config.ecn && config.accurate_ecn && syn.flags.ace() == flags;
        self.marks = accurate.then_some(FIRST_COUNT);
        self.ecn = accurate || config.ecn && syn.flags.ece && syn.flags.cwr == asks;
        let peer_shift = if self.scale { syn.options.window_scale.unwrap_or(0).min(14) } else { 0 };
        let own_shift = if self.scale { self.receiver.wanted_shift() } else { 0 };
        let largest = syn.options.max_segment.unwrap_or(DEFAULT_SEGMENT).min(config.max_segment);
        self.handshake.remember_segment(largest);
        let path = self.handshake.path_mtu(now).filter(|_| config.path_mtu);
        let largest = path.map_or(largest, |mtu| largest.min(mtu.saturating_sub(HEADERS)));
        // Options of every segment are subtracted from the MSS (RFC 6691, section 2).
        let options = self.options_of_all();
        let segment = u64::from(largest).saturating_sub(options).max(1);
        self.sender.peer_opened(config, segment, self.sack, peer_shift);
        if let Some(probing) = config.probing.filter(|_| syn.options.probe.is_some()) {
            self.sender.probe_with(Prober::new(probing));
        }
        if accurate {
            self.sender.count_marks(FIRST_COUNT);
        }
        self.sender.peer_window_of_syn(syn);
        self.receiver.opened(syn, own_shift, self.sack && config.d_sack);
    }

    /// Octets of the options in every segment.
    fn options_of_all(&self) -> u64 {
        let timestamps = if self.timestamps { TIMESTAMPS } else { 0 };
        timestamps + if self.handshake.count().is_some() { COUNT } else { 0 }
    }

    /// Handles ICMP's "fragmentation needed" for the segment at `sequence`: the next link of a
    /// router has an MTU of `mtu` octets (RFC 1191, section 4). Messages about data that is not
    /// outstanding are ignored (RFC 5927, section 7.2).
    pub fn handle_too_big(&mut self, now: Instant, sequence: u64, mtu: u16) {
        let flow = self.sender.flow();
        let outstanding = (flow.oldest..flow.end).contains(&sequence);
        if self.config.path_mtu && outstanding {
            self.shrink(now, mtu.max(LEAST_MTU));
        }
    }

    fn shrink(&mut self, now: Instant, mtu: u16) {
        let segment = u64::from(mtu - HEADERS).saturating_sub(self.options_of_all());
        if self.sender.shrink(segment) {
            self.handshake.remember_path(now, mtu);
        }
    }

    /// Full segments time out without an ICMP message: a black hole (RFC 2923, section 2.1).
    pub(super) fn suspect_path(&mut self, now: Instant) {
        if !self.config.path_mtu {
            return;
        }
        match self.sender.retries() {
            2 => self.shrink(now, BLACK_HOLE_MTUS[0]),
            4 => self.shrink(now, BLACK_HOLE_MTUS[1]),
            0..=1 | 3 | 5.. => {}
        }
    }

    fn established(&mut self) {
        self.sender.established();
        self.events.push_back(Event::Established);
        self.state = if self.sender.is_closing() { State::FinWait1 } else { State::Established };
    }

    /// States with synchronized sequence numbers.
    fn in_order(&mut self, now: Instant, segment: &Segment) {
        if !self.handshake.belongs(segment) {
            self.receiver.acknowledge_now();
            return;
        }
        if self.timestamps && self.config.paws && self.receiver.is_stale(segment) {
            self.receiver.acknowledge_now();
            return;
        }
        self.note_marks(segment);
        if !self.receiver.accepts(segment) {
            if !segment.flags.reset {
                self.receiver.came_twice(segment);
                self.receiver.acknowledge_now();
                self.answer_again(now);
            }
            // Its acknowledgement still counts: it may respond to a probe, or to a SYN that crossed
            // the peer's.
            let opens = segment.flags.syn && self.state != State::SynReceived;
            if segment.flags.reset || opens {
                return;
            }
        } else if segment.flags.reset {
            self.end(CloseReason::Reset);
            return;
        } else if segment.flags.syn && self.state != State::SynReceived {
            self.receiver.acknowledge_now();
            return;
        }
        if segment.acknowledgement.is_none() {
            return;
        }
        let echo = self.echoed(now, segment);
        if self.sender.on_ack(now, segment, echo) == AckResult::Unsent {
            self.receiver.acknowledge_now();
            return;
        }
        if self.state == State::SynReceived && self.sender.flow().oldest > 0 {
            self.syn_due = false;
            self.established();
            self.handshake.confirmed();
            if let Some(early) = self.early.take() {
                self.take(now, &early);
            }
        }
        self.syn_due &= self.is_half_open();
        if self.receiver.accepts(segment) {
            self.take(now, segment);
        }
        self.after_own_fin(now);
    }

    /// Handles ECN marks and probes.
    fn note_marks(&mut self, segment: &Segment) {
        if let Some(marks) = &mut self.marks {
            *marks += u64::from(segment.ecn == Ecn::Congestion);
        } else if self.ecn {
            self.marked &= !segment.flags.cwr;
            self.marked |= segment.ecn == Ecn::Congestion;
        }
        if let Some(probe) = segment.options.probe.filter(|probe| !probe.answer)
            && !segment.flags.syn
        {
            self.probe_answer = Some(Probe { answer: true, ..probe });
        }
    }

    fn take(&mut self, now: Instant, segment: &Segment) {
        let was_finished = self.receiver.is_finished();
        self.receiver.take(now, segment);
        if was_finished || !self.receiver.is_finished() {
            return;
        }
        self.events.push_back(Event::PeerClosed);
        self.alone = self.config.answers_first;
        self.state = match self.state {
            State::SynReceived | State::Established => State::CloseWait,
            State::FinWait1 if self.sender.fin_is_acked() => self.wait(now),
            State::FinWait1 => State::Closing,
            State::FinWait2 => self.wait(now),
            same @ (State::Listen
            | State::SynSent
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait
            | State::Closed) => same,
        };
    }

    fn after_own_fin(&mut self, now: Instant) {
        if !self.sender.fin_is_acked() {
            return;
        }
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.state = self.wait(now),
            State::LastAck => self.end(CloseReason::Done),
            State::Listen
            | State::SynSent
            | State::SynReceived
            | State::Established
            | State::FinWait2
            | State::CloseWait
            | State::TimeWait
            | State::Closed => {}
        }
    }

    fn wait(&mut self, now: Instant) -> State {
        self.sender.stop();
        self.time_wait = Some(now + self.time_wait(now));
        State::TimeWait
    }

    /// 2 MSL. With connection counts, old segments are recognized, so a connection shorter than MSL
    /// waits for retransmissions only (RFC 1644, section 2.4).
    fn time_wait(&self, now: Instant) -> Span {
        let usual = self.config.time_wait;
        if self.handshake.count().is_some() && now.since(self.opened) < usual / 2 {
            return (self.sender.round_trip().timeout() * 8).min(usual);
        }
        usual
    }

    /// Handles a retransmitted FIN in TIME-WAIT, which restarts the timer (section 3.10.7.4).
    fn answer_again(&mut self, now: Instant) {
        if self.state == State::TimeWait {
            self.time_wait = Some(now + self.time_wait(now));
        }
    }

    /// The round trip measured by a timestamp (RFC 7323, section 4).
    fn echoed(&self, now: Instant, segment: &Segment) -> Option<Span> {
        let grain = self.config.timestamps.filter(|_| self.timestamps)?;
        let (_, echo) = segment.options.timestamps?;
        Some(grain * u64::from(self.ticks(now).wrapping_sub(echo)))
    }

    /// The timestamp clock.
    pub(super) fn ticks(&self, now: Instant) -> u32 {
        let grain = self.config.timestamps.map_or(1, Span::as_nanos);
        // The 32-bit clock wraps.
        (now.as_nanos() / grain) as u32
    }
}
