//! One end of a session: the state machine, transmission and reception.
//!
//! ```text
//!                      upper layer (UpperLayer)
//!        fill_new, fill_retransmission │   ▲ deliver, on_acknowledged
//!  ┌───────────────────────────────────▼───┴─────────────────────────┐
//!  │ Session                                                         │
//!  │  Lifecycle   state, incarnation, handshakes                     │
//!  │  Sender      packets in flight, retransmissions, peer's window  │
//!  │  Receiver    received packets, gaps, pending STAT and USTAT     │
//!  │  Polling     POLL timer, requests, POLLs that are not answered  │
//!  │  RttEstimator, Liveness, Probing       loss detection           │
//!  │  Pacing      time of the next packet, control budget            │
//!  │  Congestion  the controller: rate or window                     │
//!  │  Repairing   forward error correction                           │
//!  └──────────────────┬──────────────────────────▲───────────────────┘
//!       poll_transmit ▼         segments         │ handle_segment
//! ```
//!
//! Each of these types owns its state; `Session` connects them, in `transmit.rs`, `receive.rs`,
//! `losses.rs` and `timing.rs`. A session has no clock and no I/O. Its driver passes it the
//! received segments with the time, calls `poll_transmit` until it returns `None`, and calls it
//! again at the time that `poll_timeout` returns. A session delivers each packet when it is
//! received; a [`Connection`](crate::Connection) adds delivery in order.

mod arrivals;
mod events;
mod lifecycle;
mod loss;
mod losses;
mod pacing;
mod packetizer;
mod polling;
mod receive;
pub mod receiver;
mod repairing;
mod segment_parts;
pub(crate) mod sender;
mod snapshot;
mod timing;
mod transmit;
mod upper;

pub use crate::config::{
    ConfigError, GatewayPolicy, Halve, LossRoundTrip, LowRatePolicy, ProbingConfig, RetransmitRule,
    SessionConfig, Spread, StpPolicy, XstpPolicy,
};
pub use events::{Event, Statistics};
pub use lifecycle::{Coverage, State, StateInput};
pub use loss::ProbingStatistics;
pub use receive::ReceiveError;
pub use snapshot::{PathMetrics, Snapshot};
pub use upper::{NewPacket, UpperLayer};

use crate::config::Controller;
use crate::congestion::Congestion;
use crate::seq::Seq24;
use crate::wire::{Control, Segment};
use arrivals::Arrivals;
use events::EventQueue;
use lifecycle::{Action, Lifecycle, Transition, initial_poll_seq};
use loss::{Liveness, Probing, RttEstimator};
use pacing::Pacing;
use polling::{Polling, PollingConfig};
use receiver::{Receiver, ReceiverConfig};
use repairing::Repairing;
use sender::Sender;
use units::{BitRate, Instant, Span};

/// One end of an XSTP session, without I/O and without a clock.
#[derive(Clone, Debug)]
pub struct Session {
    config: SessionConfig,
    lifecycle: Lifecycle,
    sender: Sender,
    receiver: Receiver,
    polling: Polling,
    rtt: RttEstimator,
    arrivals: Arrivals,
    liveness: Liveness,
    probing: Probing,
    pacing: Pacing,
    congestion: Congestion,
    repairing: Repairing,
    /// Sequence number of a POLL in the segment that is written: it is reported to the controller
    /// with the octets of that segment.
    poll_to_report: Option<u32>,
    peer_reset_reason: Option<Seq24>,
    events: EventQueue,
    statistics: Statistics,
}

/// Creation, end, and state transitions.
impl Session {
    /// Creates the session of a client. BGN is sent with the first segment, and with data if there
    /// is any.
    ///
    /// `incarnation` must be newer (in serial number arithmetic) than that of any earlier session
    /// between the same addresses; as published 8 bits of it are used, and 32 when sealed.
    ///
    /// # Panics
    /// If the configuration is not [valid](SessionConfig::validate).
    pub fn connect(config: &SessionConfig, now: Instant, incarnation: u32) -> Self {
        let mut session = Self::new(config, now, Lifecycle::client(config.profile, incarnation));
        session.polling.request();
        session
    }

    /// Creates the session of a server, which waits for a BGN.
    ///
    /// # Panics
    /// If the configuration is not [valid](SessionConfig::validate).
    pub fn listen(config: &SessionConfig) -> Self {
        Self::new(config, Instant::ZERO, Lifecycle::listener(config.profile, None))
    }

    /// As [`Session::listen`], but accepts only incarnations newer than `last`: a late segment of
    /// an older session cannot start a new one.
    ///
    /// # Panics
    /// If the configuration is not [valid](SessionConfig::validate).
    pub fn listen_after(config: &SessionConfig, last: u32) -> Self {
        Self::new(config, Instant::ZERO, Lifecycle::listener(config.profile, Some(last)))
    }

    fn new(config: &SessionConfig, now: Instant, lifecycle: Lifecycle) -> Self {
        if let Err(error) = config.validate() {
            panic!("session configuration: {error}");
        }
        let polling = PollingConfig {
            per_round_trip: config.polls_per_round_trip,
            round_trips: config.poll_round_trips,
            backoff_cap: config.poll_backoff_cap,
            tick: config.tick,
            spacing: config.control_spacing,
        };
        let receiver = ReceiverConfig {
            first: config.first_number,
            window: config.receive_window.min(config.profile.max_window()),
            ustat_threshold: config.ustat_threshold,
            ustat_hold: config.ustat_hold,
        };
        Self {
            lifecycle,
            sender: Sender::new(config),
            receiver: Receiver::new(&receiver),
            polling: Polling::new(polling, initial_poll_seq(&config.profile, now), now),
            rtt: RttEstimator::new(config.initial_rtt),
            arrivals: Arrivals::default(),
            liveness: Liveness::new(now),
            probing: Probing::new(config.xstp.probing, config.gateway.low_rate.is_some()),
            pacing: Pacing::new(config),
            congestion: Congestion::new(config),
            repairing: Repairing::new(config.gateway.repair_percent),
            poll_to_report: None,
            peer_reset_reason: None,
            events: EventQueue::default(),
            statistics: Statistics::default(),
            config: config.clone(),
        }
    }

    /// The upper layer sends no new data: END is sent when all data is acknowledged. The
    /// direction of the peer stays open.
    pub fn end(&mut self, now: Instant) {
        let _ = now;
        self.lifecycle.request_end();
    }

    /// Aborts the session: it is closed, and RST is sent.
    pub fn abort(&mut self, now: Instant) {
        self.apply(now, StateInput::Abort);
    }

    /// As [`Session::abort`]. This RST and later ones name `reason` (XSTP-6.5.3), whose meaning is
    /// that of the upper layer.
    pub fn abort_for(&mut self, now: Instant, reason: Seq24) {
        self.lifecycle.set_reset_reason(reason);
        self.abort(now);
    }

    /// Reason that the RST of the peer named, after one.
    pub fn peer_reset_reason(&self) -> Option<Seq24> {
        self.peer_reset_reason
    }

    /// Whether this is a BGN with which the peer begins a session after this one, which is or has
    /// been a server (XSTP-6.3.1). [`Session::listen_after`] with the incarnation of this session
    /// creates the session that accepts it.
    pub fn is_begin_anew(&self, bytes: &[u8]) -> bool {
        let Ok(segment) = Segment::decode(&self.config.profile, bytes) else { return false };
        let Some(Control::Begin(begin)) = segment.control() else { return false };
        self.state() != State::Listening
            && self.lifecycle.classify_begin(&begin) == Ok(StateInput::BeginNewer)
    }

    /// Releases the memory of a closed session, which only answers late segments from now on.
    ///
    /// # Panics
    /// If the session is not closed.
    pub fn release(&mut self) {
        assert!(self.state() == State::Closed, "only a closed session is released");
        let closed = Self::listen(&self.config);
        self.sender = closed.sender;
        self.receiver = closed.receiver;
        self.polling = closed.polling;
        self.congestion = closed.congestion;
        self.arrivals = closed.arrivals;
        self.repairing = closed.repairing;
        self.events = closed.events;
    }

    /// Feeds `input` to the state machine and executes its action, except for the parts that need
    /// the segment. Returns the action.
    fn apply(&mut self, now: Instant, input: StateInput) -> Action {
        let Transition { action, has_closed } = self.lifecycle.apply(input);
        if has_closed {
            self.probing.stop();
            self.liveness.stop();
            self.end_outage(now);
        }
        match action {
            Action::Unexpected => self.statistics.unexpected += 1,
            Action::SendEnd => self.probing.stop(),
            Action::RetransmitHandshake if self.lifecycle.is_opening() => {
                // Without BGN the peer has dropped all packets: the first one is sent with it.
                self.sender.table.retransmit_first();
                self.polling.request();
            }
            Action::HandshakeFailed => self.statistics.handshakes_failed += 1,
            Action::PeerUnresponsive => self.statistics.no_response += 1,
            _ => {}
        }
        for &event in action.events() {
            self.emit(event);
        }
        action
    }

    fn emit(&mut self, event: Event) {
        self.statistics.events_dropped += u64::from(!self.events.push(event));
    }

    /// Takes the next event for the upper layer.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }
}

/// Inputs of the upper layer and of the link.
impl Session {
    /// The upper layer has new data to send.
    pub fn wake(&mut self) {
        self.sender.has_new_data = true;
    }

    /// Requests a POLL without spacing from the last one: the path may be another.
    pub fn request_poll(&mut self) {
        self.polling.request_immediate();
    }

    /// Blocks or unblocks the data of this session, which shares its link with others, until it is
    /// its turn (XSTP-8.1.8). Segments without data are not blocked.
    pub fn block_data(&mut self, blocked: bool) {
        self.sender.is_blocked = blocked;
    }

    /// Sets the maximum segment size for a new MTU of the path. It is limited to the configured
    /// one and to the peer's, and is at least a header with 64 payload octets.
    pub fn set_max_segment(&mut self, bytes: usize) {
        self.sender.set_max_segment(bytes, &self.config);
    }

    /// Recent losses were caused by packets larger than the path MTU, and are no congestion
    /// signal. The new size is set with [`set_max_segment`](Self::set_max_segment).
    pub fn exclude_mtu_losses(&mut self, now: Instant) {
        self.congestion.on_mtu_black_hole(now);
        // The schedule was made for a rate that the losses had reduced.
        self.pacing.reset(now);
        self.polling.request();
    }

    /// Accounts a datagram of another protocol with `len` octets in place of a segment to the
    /// pacer of this session.
    pub fn charge_external(&mut self, now: Instant, len: usize) {
        self.charge(now, len, false);
    }

    /// Sets the rate cap; `None` leaves the rate to the controller. The controller `fixed` keeps
    /// its rate in that case.
    pub fn set_max_rate(&mut self, rate: Option<BitRate>) {
        if rate.is_some() || self.config.controller != Controller::Fixed {
            self.config.max_rate = rate;
            self.congestion.set_max_rate(self.config.paced_rate());
            if self.pacing.granted().is_some() {
                self.set_granted_rate(self.pacing.granted());
            }
        }
    }

    /// Sets the rate that the peer grants within the rate cap. A controller that sends at its
    /// bound continues at the new one without probing for it.
    pub fn set_granted_rate(&mut self, rate: Option<BitRate>) {
        self.pacing.set_granted(rate);
        let granted = rate.map(|rate| self.config.less_headroom(rate));
        self.congestion
            .apply_grant([self.config.paced_rate(), granted].into_iter().flatten().min());
    }

    /// Sets the rate of the reverse path, if known, as [`SessionConfig::reverse_rate`].
    pub fn set_reverse_rate(&mut self, rate: Option<BitRate>) {
        self.config.reverse_rate = rate;
    }

    /// Sets the time without received segments after which an idle session sends a POLL, as
    /// [`SessionConfig::keep_alive`].
    pub fn set_keep_alive(&mut self, time: Span) {
        self.config.keep_alive = time.max(Span::from_nanos(1));
    }

    /// Sets the receive window, in packets. Packets within an earlier window are still accepted.
    pub fn set_receive_window(&mut self, numbers: u32) {
        self.receiver.set_window(numbers.min(self.config.profile.max_window()));
    }
}

/// State and measurements.
impl Session {
    /// State of the session.
    pub fn state(&self) -> State {
        self.lifecycle.state()
    }

    /// Current incarnation, if there is one.
    pub fn incarnation(&self) -> Option<u32> {
        self.lifecycle.incarnation()
    }

    /// Earliest time at which another session between the same addresses can begin, on the clock
    /// of this one: as published its timestamps must be after all that this session used. POLLs in
    /// quick succession run ahead of the clock, and a clock that was set back is behind all of
    /// them (XSTP-4.1.4, XSTP-4.1.5).
    pub fn renewable_at(&self) -> Instant {
        self.lifecycle.renewable_at(self.polling.seq(), self.polling.last_sent())
    }

    /// Pairs of state and input that have occurred in the session.
    pub fn coverage(&self) -> Coverage {
        self.lifecycle.coverage()
    }

    /// Counters.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Configuration, with the values set since.
    pub fn config(&self) -> &SessionConfig {
        &self.config
    }

    /// Maximum segment size now, in octets with the header of XSTP.
    pub fn max_segment(&self) -> usize {
        self.sender.max_segment()
    }

    /// Time from which on data or a repair symbol is sent if it is not [blocked](Self::block_data); `None` if there is
    /// none that may be sent.
    pub fn data_due(&self) -> Option<Instant> {
        let due = || self.unblocked_data_at().or_else(|| self.unblocked_repair_at());
        self.lifecycle.is_connected().then(due).flatten()
    }

    /// Smoothed RTT (RFC 9002 section 5.3), if it was measured.
    pub fn srtt(&self) -> Option<Span> {
        self.rtt.measured()
    }

    /// Minimum RTT so far (RFC 9002 section 5.2).
    pub fn min_rtt(&self) -> Option<Span> {
        self.rtt.min()
    }

    /// Payload octets sent and not released.
    pub fn outstanding_bytes(&self) -> u64 {
        self.sender.table.unreleased_bytes()
    }

    /// Packets sent and not released.
    pub fn outstanding_packets(&self) -> u64 {
        self.sender.table.unreleased()
    }

    /// Congestion window in octets, if the controller has one.
    pub fn congestion_window(&self) -> Option<u64> {
        self.congestion.window()
    }

    /// Metrics of the path for the next session on it (RFC 9040); `None` if the rate is not
    /// confirmed.
    pub fn path_metrics(&self) -> Option<PathMetrics> {
        let min_rtt = self.rtt.min()?;
        self.congestion.confirmed_rate().map(|rate| PathMetrics { rate, min_rtt })
    }

    /// Whether there is an outage: POLLs are unanswered for longer than the outage timeout.
    pub fn is_in_outage(&self) -> bool {
        self.outage_since().is_some()
    }

    /// Start of the outage, during one.
    pub fn outage_since(&self) -> Option<Instant> {
        self.liveness.outage_since()
    }

    /// Maximum rate at which this side sends now, if there is one: the rate of the controller, or
    /// its window per RTT.
    pub fn rate(&self, now: Instant) -> Option<BitRate> {
        self.congestion.estimated_pace(now).or_else(|| {
            let rtt = self.rtt.measured()?.as_micros().max(1);
            let bps = self.congestion.window()?.saturating_mul(8_000_000) / rtt;
            let rate = BitRate::new(bps)?;
            Some(self.config.paced_rate().map_or(rate, |cap| rate.min(cap)))
        })
    }

    /// Variables of the session at `now`, for time series and displays.
    pub fn snapshot(&self, now: Instant) -> Snapshot {
        Snapshot {
            mode: if self.is_probing() { "probing" } else { self.congestion.mode(now) },
            rate: self.congestion.pace(now),
            congestion_window: self.congestion.window(),
            ssthresh: self.congestion.ssthresh(),
            outstanding_bytes: self.sender.table.unreleased_bytes(),
            retransmit_queue: self.sender.table.queued() as u64,
            srtt: self.rtt.measured(),
            min_rtt: self.rtt.min(),
            queuing_delay: self.congestion.queuing_delay(),
            jitter: self.congestion.jitter(),
            error_ppm: self.congestion.error_ppm(),
            is_probing: self.is_probing(),
            outage_since: self.outage_since(),
        }
    }
}

#[cfg(test)]
mod tests;
