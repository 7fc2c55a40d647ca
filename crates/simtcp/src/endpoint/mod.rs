//! One end of a connection.

mod incoming;
mod outgoing;

use crate::config::TcpConfig;
use crate::counters::Counters;
use crate::open::{Handshake, PeerMemory};
use crate::receiver::{Piece, Receiver};
use crate::segment::{Ports, Probe, Segment};
use crate::sender::Sender;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use units::{Instant, Span};

/// The states of RFC 9293, section 3.3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Waiting for a SYN.
    Listen,
    /// A SYN was sent.
    SynSent,
    /// A SYN was received and answered.
    SynReceived,
    /// Open in both directions.
    Established,
    /// This end has closed; its FIN is not acknowledged.
    FinWait1,
    /// This end has closed; its FIN is acknowledged.
    FinWait2,
    /// The peer has closed.
    CloseWait,
    /// Both closed simultaneously; this end's FIN is not acknowledged.
    Closing,
    /// The peer has closed, then this end; its FIN is not acknowledged.
    LastAck,
    /// Both directions are closed; late segments are still answered.
    TimeWait,
    /// There is no connection.
    Closed,
}

/// An event for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is complete.
    Established,
    /// The peer's FIN has arrived, and all data before it.
    PeerClosed,
    /// The connection is closed.
    Closed(CloseReason),
}

/// Why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// Both ends closed.
    Done,
    /// The peer reset it.
    Reset,
    /// This end aborted it.
    Aborted,
    /// The peer did not respond.
    TimedOut,
}

/// Variables of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The state.
    pub state: State,
    /// cwnd, in bytes.
    pub congestion_window: u64,
    /// ssthresh, in bytes; `u64::MAX` before the first loss.
    pub threshold: u64,
    /// FlightSize: bytes that were sent and not acknowledged (RFC 5681, section 2).
    pub flight: u64,
    /// Octets estimated to be in flight; below `flight` with SACK or after a timeout.
    pub in_flight: u64,
    /// Octets written and never sent.
    pub unsent: u64,
    /// SRTT.
    pub round_trip: Option<Span>,
    /// RTO, with its backoff.
    pub timeout: Span,
    /// Loss recovery is in progress.
    pub repairing: bool,
    /// SMSS: octets of data in a full segment.
    pub segment: u64,
}

/// One end of one connection.
///
/// Driven by [`handle_segment`](Self::handle_segment), [`poll_transmit`](Self::poll_transmit)
/// until it has nothing more, [`poll_timeout`](Self::poll_timeout),
/// [`handle_timeout`](Self::handle_timeout) and [`poll_event`](Self::poll_event).
#[derive(Clone, Debug)]
pub struct Endpoint {
    config: TcpConfig,
    ports: Ports,
    content: u64,
    state: State,
    sender: Sender,
    receiver: Receiver,
    /// A SYN, or SYN and ACK, is to be sent.
    syn_due: bool,
    /// An RST is to be sent.
    reset_due: bool,
    /// The acknowledgement that is due is sent standalone, before anything else.
    alone: bool,
    /// Options enabled at both ends.
    timestamps: bool,
    sack: bool,
    scale: bool,
    ecn: bool,
    /// An ECN mark was received; echoed until the peer has reduced its window.
    marked: bool,
    /// With AccECN: r.cep, the number of marks received.
    marks: Option<u64>,
    /// The response to a probe is to be sent.
    probe_answer: Option<Probe>,
    time_wait: Option<Instant>,
    handshake: Handshake,
    /// Data of a SYN that waits for the end of the handshake.
    early: Option<Box<Segment>>,
    /// When the SYN was sent or received.
    opened: Instant,
    events: VecDeque<Event>,
}

impl Endpoint {
    /// A client's end: the SYN is sent by the next [`poll_transmit`](Self::poll_transmit). The
    /// octets that it sends are those of the content numbered `content`.
    ///
    /// # Panics
    /// When the configuration is not [valid](TcpConfig::validate).
    pub fn connect(config: &TcpConfig, ports: Ports, content: u64) -> Self {
        Self::new(config, ports, content, State::SynSent)
    }

    /// A server's end on `port`: waits for a SYN.
    ///
    /// # Panics
    /// When the configuration is not [valid](TcpConfig::validate).
    pub fn listen(config: &TcpConfig, port: u16, content: u64) -> Self {
        Self::new(config, Ports { from: port, to: 0 }, content, State::Listen)
    }

    fn new(config: &TcpConfig, ports: Ports, content: u64, state: State) -> Self {
        if let Err(error) = config.validate() {
            panic!("{error}");
        }
        Self {
            config: config.clone(),
            ports,
            content,
            state,
            sender: Sender::new(config),
            receiver: Receiver::new(config),
            syn_due: state == State::SynSent,
            reset_due: false,
            alone: false,
            timestamps: false,
            sack: false,
            scale: false,
            ecn: false,
            marked: false,
            marks: None,
            probe_answer: None,
            time_wait: None,
            handshake: Handshake::new(config.opening, PeerMemory::default(), 1, content),
            early: None,
            opened: Instant::ZERO,
            events: VecDeque::new(),
        }
    }

    /// Returns the endpoint with its host's data of the peer.
    pub(crate) fn with_handshake(self, handshake: Handshake) -> Self {
        Self { handshake, ..self }
    }

    /// The data of the peer learned since the last call.
    pub(crate) fn news(&mut self) -> Option<PeerMemory> {
        self.handshake.news()
    }

    /// Accepts up to `bytes` more octets to send; returns how many there was room for, none after
    /// [`close`](Self::close).
    pub fn write(&mut self, bytes: u64) -> u64 {
        match self.state {
            State::Closed | State::TimeWait => 0,
            State::Listen
            | State::SynSent
            | State::SynReceived
            | State::Established
            | State::CloseWait
            | State::FinWait1
            | State::FinWait2
            | State::Closing
            | State::LastAck => self.sender.write(bytes),
        }
    }

    /// Free octets of the send buffer.
    pub fn room(&self) -> u64 {
        self.sender.room()
    }

    /// Octets acknowledged by the peer.
    pub fn acknowledged(&self) -> u64 {
        self.sender.acknowledged()
    }

    /// Octets received in order and not read.
    pub fn readable(&self) -> u64 {
        self.receiver.readable()
    }

    /// Reads up to `most` octets in order; `None` if there are none.
    pub fn read(&mut self, most: u64) -> Option<Piece> {
        self.receiver.read(most)
    }

    /// Whether the peer has closed and everything from it was read.
    pub fn is_finished(&self) -> bool {
        self.receiver.is_finished() && self.receiver.readable() == 0
    }

    /// Ends the send side: a FIN follows the last octet. The receive side stays open.
    pub fn close(&mut self) {
        match self.state {
            State::Listen => self.end(CloseReason::Aborted),
            State::SynSent | State::SynReceived => self.sender.close(),
            State::Established => {
                self.sender.close();
                self.state = State::FinWait1;
            }
            State::CloseWait => {
                self.sender.close();
                self.state = State::LastAck;
            }
            State::FinWait1
            | State::FinWait2
            | State::Closing
            | State::LastAck
            | State::TimeWait
            | State::Closed => {}
        }
    }

    /// Aborts the connection: an RST is sent if there is a peer.
    pub fn abort(&mut self) {
        match self.state {
            State::Closed => return,
            State::Listen | State::SynSent | State::TimeWait => {}
            State::SynReceived
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck => self.reset_due = true,
        }
        self.end(CloseReason::Aborted);
    }

    /// The state.
    pub fn state(&self) -> State {
        self.state
    }

    /// The ports of the segments that it sends.
    pub fn ports(&self) -> Ports {
        self.ports
    }

    /// Counters.
    pub fn counters(&self) -> &Counters {
        &self.sender.counters
    }

    /// Variables.
    pub fn snapshot(&self) -> Snapshot {
        let (sender, flow) = (&self.sender, self.sender.flow());
        let levels = sender.window().levels();
        Snapshot {
            state: self.state,
            congestion_window: levels.window(),
            threshold: levels.threshold(),
            flight: flow.end - flow.oldest,
            in_flight: sender.in_flight(),
            unsent: sender.unsent(),
            round_trip: sender.round_trip().smoothed(),
            timeout: sender.round_trip().timeout(),
            repairing: sender.recovery().is_repairing(),
            segment: flow.segment,
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        let timers =
            [self.sender.timer(), self.sender.paced(), self.receiver.timer(), self.time_wait];
        timers.into_iter().flatten().min()
    }

    /// Handles the timers that have expired at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.receiver.handle_timeout(now);
        if self.time_wait.is_some_and(|at| at <= now) {
            self.end(CloseReason::Done);
        }
        if self.sender.timer().is_none_or(|at| at > now) {
            return;
        }
        self.sender.on_timeout(now);
        if self.sender.retries() > self.config.retries {
            self.end(CloseReason::TimedOut);
            return;
        }
        self.suspect_path(now);
        match self.state {
            State::SynSent | State::SynReceived => self.syn_due = true,
            State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck => self.syn_due = self.is_half_open(),
            State::Listen | State::TimeWait | State::Closed => {}
        }
    }

    /// Data on the SYN was accepted, but the response is not acknowledged: the starred states of
    /// RFC 1644, section 3.
    fn is_half_open(&self) -> bool {
        self.sender.flow().oldest == 0
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Closes the connection.
    fn end(&mut self, reason: CloseReason) {
        if self.state != State::Closed {
            self.state = State::Closed;
            self.events.push_back(Event::Closed(reason));
        }
        self.sender.stop();
        self.receiver.stop();
        self.syn_due = false;
        self.time_wait = None;
    }
}

#[cfg(test)]
mod tests;
