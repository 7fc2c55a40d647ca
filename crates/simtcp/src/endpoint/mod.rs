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
    /// Waits for a SYN.
    Listen,
    /// Sent a SYN.
    SynSent,
    /// Got a SYN and answered it.
    SynReceived,
    /// Open in both directions.
    Established,
    /// This end closed; its FIN is not acknowledged.
    FinWait1,
    /// This end closed; its FIN is acknowledged.
    FinWait2,
    /// The peer closed.
    CloseWait,
    /// Both closed at once; this end's FIN is not acknowledged.
    Closing,
    /// The peer closed, then this end; its FIN is not acknowledged.
    LastAck,
    /// All is over; late segments are still answered.
    TimeWait,
    /// There is no connection.
    Closed,
}

/// What the owner should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is done.
    Established,
    /// The peer's FIN arrived, and all before it.
    PeerClosed,
    /// The connection is over.
    Closed(CloseReason),
}

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// Both ends closed.
    Done,
    /// The peer reset it.
    Reset,
    /// This end aborted it.
    Aborted,
    /// The peer did not answer any more.
    TimedOut,
}

/// The variables of interest at one moment.
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
    /// Bytes that count as being on the way; below `flight` with SACK or after a timeout.
    pub in_flight: u64,
    /// Bytes that were written and never sent.
    pub unsent: u64,
    /// SRTT.
    pub round_trip: Option<Span>,
    /// RTO, with its back-off.
    pub timeout: Span,
    /// A loss is being repaired.
    pub repairing: bool,
    /// SMSS: bytes of data in a full segment.
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
    /// SYN, or SYN and ACK, is to go.
    syn_due: bool,
    /// RST is to go.
    reset_due: bool,
    /// The acknowledgement that is due goes before anything else.
    alone: bool,
    /// Options that both ends have.
    timestamps: bool,
    sack: bool,
    scale: bool,
    ecn: bool,
    /// A queue has marked what came; told until the peer has reduced its window.
    marked: bool,
    /// The answer to a probe is to go.
    probe_answer: Option<Probe>,
    time_wait: Option<Instant>,
    handshake: Handshake,
    /// Data of a SYN that waits for the handshake's end.
    early: Option<Box<Segment>>,
    /// When SYN went or came.
    opened: Instant,
    events: VecDeque<Event>,
}

impl Endpoint {
    /// A client's end: SYN goes with the next [`poll_transmit`](Self::poll_transmit). The bytes
    /// that it sends are those of the content numbered `content`.
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
            probe_answer: None,
            time_wait: None,
            handshake: Handshake::new(config.opening, PeerMemory::default(), 1, content),
            early: None,
            opened: Instant::ZERO,
            events: VecDeque::new(),
        }
    }

    /// The same with what its host knows of the peer.
    pub(crate) fn with_handshake(self, handshake: Handshake) -> Self {
        Self { handshake, ..self }
    }

    /// What it has learnt of the peer since this was asked last.
    pub(crate) fn news(&mut self) -> Option<PeerMemory> {
        self.handshake.news()
    }

    /// Takes up to `bytes` more bytes to send; returns how many there was room for, none after
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

    /// Bytes for which the send buffer has room.
    pub fn room(&self) -> u64 {
        self.sender.room()
    }

    /// Bytes that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.sender.acknowledged()
    }

    /// Bytes that arrived in order and were not read.
    pub fn readable(&self) -> u64 {
        self.receiver.readable()
    }

    /// Hands over up to `most` of the bytes that are in order; None when there are none now.
    pub fn read(&mut self, most: u64) -> Option<Piece> {
        self.receiver.read(most)
    }

    /// Whether the peer has closed and everything from it was read.
    pub fn is_finished(&self) -> bool {
        self.receiver.is_finished() && self.receiver.readable() == 0
    }

    /// Nothing more is written: FIN goes after the last byte. The peer's direction goes on.
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

    /// Gives up: RST goes out where there is a peer, and the connection is closed.
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

    /// What it did so far.
    pub fn counters(&self) -> &Counters {
        &self.sender.counters
    }

    /// The variables of interest.
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

    /// When [`handle_timeout`](Self::handle_timeout) is to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let timers =
            [self.sender.timer(), self.sender.paced(), self.receiver.timer(), self.time_wait];
        timers.into_iter().flatten().min()
    }

    /// Does what is due at `now`.
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

    /// Data came with SYN and was taken, but the answer is not acknowledged: the starred states
    /// of RFC 1644, section 3.
    fn is_half_open(&self) -> bool {
        self.sender.flow().oldest == 0
    }

    /// The next thing that the owner should know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The connection is over.
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
