//! Lifecycle of a session: state, incarnations, timestamps, and the handshakes BGN, END and RST.
//!
//! ```text
//!   StateInput ──▶ Lifecycle::apply ──▶ Action    the session executes it
//!                    state::step        next state and action (XSTP-6.2.1)
//!                    handshake          segments that are due, retransmission timer
//! ```

mod coverage;
mod handshake;
mod state;

pub use coverage::Coverage;
use handshake::Handshake;
pub(super) use state::{Action, step};
pub use state::{State, StateInput};

use crate::seq::Seq24;
use crate::wire::{Begin, BeginAck, Control, Delivery, End, Profile, Segment};
use units::{Instant, Span};

/// State of one session, its incarnation and its handshakes.
#[derive(Clone, Debug)]
pub(super) struct Lifecycle {
    profile: Profile,
    state: State,
    is_client: bool,
    /// Current incarnation; for a listener the last one that it does not accept again.
    incarnation: Option<u32>,
    /// Timestamp of the peer's BGN or BGNAK; advanced in long sessions.
    peer_begin_timestamp: Option<u32>,
    /// Latest time of a transmission.
    last_timestamp_at: Instant,
    end_requested: bool,
    /// Both directions were closed in order.
    closed_in_order: bool,
    /// Reason that RSTs of this side name.
    reset_reason: Seq24,
    coverage: Coverage,
    pub(super) handshake: Handshake,
}

/// Result of a state transition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transition {
    pub(super) action: Action,
    /// The session has just been closed.
    pub(super) has_closed: bool,
}

/// Reason why the lifecycle rejects a BGN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RejectedBegin {
    /// A client that is not closed has received it.
    Unexpected,
    /// It belongs to an older incarnation.
    OldIncarnation,
}

impl Lifecycle {
    /// A client in the state `Opening`: its BGN is due.
    pub(super) fn client(profile: Profile, incarnation: u32) -> Self {
        let mut client = Self { is_client: true, ..Self::new(profile, State::Opening) };
        client.incarnation = Some(client.trim_incarnation(incarnation));
        client.handshake.begin();
        client
    }

    /// A listener that accepts incarnations after `last`, or any.
    pub(super) fn listener(profile: Profile, last: Option<u32>) -> Self {
        let mut listener = Self::new(profile, State::Listening);
        listener.incarnation = last.map(|last| listener.trim_incarnation(last));
        listener
    }

    fn new(profile: Profile, state: State) -> Self {
        Self {
            profile,
            state,
            is_client: false,
            incarnation: None,
            peer_begin_timestamp: None,
            last_timestamp_at: Instant::ZERO,
            end_requested: false,
            closed_in_order: false,
            reset_reason: Seq24::ZERO,
            coverage: Coverage::default(),
            handshake: Handshake::default(),
        }
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    pub(super) fn is_connected(&self) -> bool {
        self.state.is_connected()
    }

    pub(super) fn is_opening(&self) -> bool {
        self.state == State::Opening
    }

    pub(super) fn incarnation(&self) -> Option<u32> {
        self.incarnation
    }

    pub(super) fn coverage(&self) -> Coverage {
        self.coverage
    }

    /// The upper layer sends no new data: END is sent when all data is acknowledged.
    pub(super) fn request_end(&mut self) {
        self.end_requested = true;
    }

    /// RSTs name this reason from now on.
    pub(super) fn set_reset_reason(&mut self, reason: Seq24) {
        self.reset_reason = reason;
    }

    pub(super) fn end_requested(&self) -> bool {
        self.end_requested
    }

    /// Feeds `input` to the state machine and updates the handshakes.
    pub(super) fn apply(&mut self, input: StateInput) -> Transition {
        self.coverage.mark(self.state, input);
        let (next, action) = step(self.state, input);
        let has_closed = next == State::Closed && self.state != State::Closed;
        self.state = next;
        if has_closed {
            self.handshake.clear();
        }
        match action {
            Action::SendEnd => self.handshake.end(),
            Action::RetransmitHandshake if next == State::Opening => self.handshake.begin(),
            Action::RetransmitHandshake => self.handshake.end(),
            Action::OwnEnded => self.handshake.clear(),
            Action::PeerEndsLast | Action::OwnEndedLast => self.closed_in_order = true,
            Action::AbortWithReset | Action::HandshakeFailed | Action::PeerUnresponsive => {
                self.handshake.reset(self.incarnation);
            }
            Action::Nothing | Action::Unexpected | Action::Process | Action::Accept => {}
            Action::RetransmitBeginAck | Action::Opened | Action::Superseded | Action::Refused => {}
            Action::PeerEnds | Action::RetransmitEndAck | Action::SendReset => {}
            Action::PeerReset | Action::AbortQuietly => {}
        }
        Transition { action, has_closed }
    }

    /// Schedules a RST for data that a closed session received. After an orderly end only an
    /// ENDAK was lost, and the END is answered. A BGN in the same segment is answered already,
    /// with its own incarnation.
    pub(super) fn reset_unless_ended(&mut self) {
        if !self.closed_in_order && !self.handshake.is_reset_due() {
            self.handshake.reset(self.incarnation);
        }
    }

    /// Input of the state machine for a BGN.
    pub(super) fn classify_begin(&self, begin: &Begin) -> Result<StateInput, RejectedBegin> {
        if self.is_client && self.state != State::Closed {
            return Err(RejectedBegin::Unexpected);
        }
        match self.incarnation {
            // For a listener that is the incarnation that it does not accept again.
            Some(current) if begin.incarnation == current && self.state != State::Listening => {
                Ok(StateInput::Begin)
            }
            Some(current) if !self.is_newer_incarnation(begin.incarnation, current) => {
                Err(RejectedBegin::OldIncarnation)
            }
            Some(_) | None => Ok(StateInput::BeginNewer),
        }
    }

    /// Accepts the incarnation of a BGN with `timestamp`; BGNAK is due.
    pub(super) fn accept(&mut self, incarnation: u32, timestamp: u32) {
        self.incarnation = Some(incarnation);
        self.peer_begin_timestamp = Some(timestamp);
        self.handshake.begin_ack(timestamp);
    }

    /// Whether a BGNAK answers this client's BGN.
    pub(super) fn is_own_begin(&self, ack: &BeginAck) -> bool {
        self.incarnation == Some(ack.begin.incarnation) && self.is_client
    }

    /// The BGNAK with `timestamp` answers the BGN with `echo`; returns when that BGN was sent.
    pub(super) fn on_opened(&mut self, timestamp: u32, echo: u32) -> Option<Instant> {
        let sent_at = self.handshake.begin_sent_at(echo);
        self.peer_begin_timestamp = Some(timestamp);
        self.handshake.clear();
        sent_at
    }

    /// Whether a segment that names `incarnation` belongs to the current one. A listener has none and
    /// accepts any.
    pub(super) fn is_current(&self, incarnation: u32) -> bool {
        let current = self.incarnation.filter(|_| self.state != State::Listening);
        current.is_none_or(|current| current == incarnation)
    }

    /// Whether a published segment was or may have been sent in an earlier incarnation.
    ///
    /// The reference is advanced to a quarter of the timestamp space behind. Otherwise a session
    /// would reject all segments after 25 days, half of that space.
    pub(super) fn is_stale_incarnation(&mut self, segment: &Segment<'_>) -> bool {
        let Profile::Published(_) = self.profile else { return false };
        if !self.is_connected() || segment.control().is_some() {
            // These segments name their incarnation.
            return false;
        }
        match self.peer_begin_timestamp {
            Some(began) => {
                let since = segment.timestamp().wrapping_sub(began) as i32;
                if since > 1 << 30 {
                    self.peer_begin_timestamp = Some(segment.timestamp().wrapping_sub(1 << 30));
                }
                since < 0
            }
            // Before BGNAK a client cannot tell which incarnation of the server sent it.
            None => true,
        }
    }

    /// BGN or BGNAK, if one is due with the next segment: `begin` as a BGN, or as the answer to
    /// the peer's. BGN is sent with every POLL until it is answered, and with every segment that
    /// would not name its incarnation otherwise.
    pub(super) fn opening(
        &self,
        begin: Begin,
        with_poll: bool,
        with_data: bool,
    ) -> Option<Control> {
        if self.is_opening() {
            let published = matches!(self.profile, Profile::Published(_));
            let unnamed = with_data && published && begin.delivery == Delivery::InOrder;
            let due = self.handshake.is_begin_due() || with_poll || unnamed;
            return due.then_some(Control::Begin(begin));
        }
        let echo = self.handshake.begin_ack_due()?;
        Some(Control::BeginAck(BeginAck { begin, echo }))
    }

    /// RST, ENDAK or END, if one is due: each is sent in a segment of its own. `next` is VT(S),
    /// and `timeout` the time until END is retransmitted.
    pub(super) fn take_standalone(
        &mut self,
        now: Instant,
        next: Seq24,
        timeout: Span,
    ) -> Option<Segment<'static>> {
        let segment = if let Some(incarnation) = self.handshake.take_reset() {
            Segment::reset(self.reset_reason, End { incarnation })
        } else if let Some((number, incarnation)) = self.handshake.take_end_ack() {
            Segment::end_ack(number, End { incarnation })
        } else if self.handshake.begin_ack_due().is_none() && self.handshake.take_end(now, timeout)
        {
            // The peer would ignore an END before BGNAK.
            Segment::end(next, End { incarnation: self.incarnation.unwrap_or_default() })
        } else {
            return None;
        };
        Some(segment.with_timestamp(self.timestamp(now)))
    }

    /// A segment of the data phase is sent at `now`.
    pub(super) fn on_transmit(&mut self, now: Instant) {
        self.last_timestamp_at = self.last_timestamp_at.max(now);
    }

    /// Timestamp of a segment sent at `now`. As published it never decreases, even if the clock
    /// is set back: a segment with a timestamp before that of BGN or BGNAK belongs to another
    /// incarnation for the peer.
    pub(super) fn timestamp(&self, now: Instant) -> u32 {
        let shown = match self.profile {
            Profile::Published(_) => now.max(self.last_timestamp_at),
            Profile::Sealed => now,
        };
        timestamp_of(&self.profile, shown)
    }

    /// Clock that the POLL sequence numbers follow: the timestamp as published, none when sealed.
    pub(super) fn poll_seq_clock(&self, now: Instant) -> Option<u32> {
        match self.profile {
            Profile::Published(_) => Some(self.timestamp(now)),
            Profile::Sealed => None,
        }
    }

    /// Earliest time at which another session between the same addresses can begin, where the
    /// last POLL had the sequence number `poll_seq` and was sent at `poll_at` (XSTP-4.1.4,
    /// XSTP-4.1.5).
    pub(super) fn renewable_at(&self, poll_seq: u32, poll_at: Option<Instant>) -> Instant {
        let Profile::Published(_) = &self.profile else { return Instant::ZERO };
        let tick = self.profile.tick();
        let stamped = self.last_timestamp_at + tick;
        poll_at.map_or(stamped, |sent| {
            let ahead = poll_seq.wrapping_sub(timestamp_of(&self.profile, sent));
            let ahead = u64::try_from(ahead as i32).unwrap_or(0);
            stamped.max(sent + tick * (ahead + 1))
        })
    }

    /// The bits of an incarnation that are sent.
    fn trim_incarnation(&self, incarnation: u32) -> u32 {
        match self.profile {
            Profile::Published(_) => incarnation & 0xff,
            Profile::Sealed => incarnation,
        }
    }

    /// Compares incarnations in serial number arithmetic (RFC 1982).
    fn is_newer_incarnation(&self, incarnation: u32, than: u32) -> bool {
        let ahead = incarnation.wrapping_sub(than);
        match self.profile {
            Profile::Published(_) => (ahead as u8 as i8) > 0,
            Profile::Sealed => (ahead as i32) > 0,
        }
    }
}

/// POLL sequence number before the first POLL. As published a POLL sequence number is its
/// timestamp, so packets sent before the first POLL have the one of the millisecond before.
pub(super) fn initial_poll_seq(profile: &Profile, now: Instant) -> u32 {
    match profile {
        Profile::Published(_) => timestamp_of(profile, now).wrapping_sub(1),
        Profile::Sealed => 0,
    }
}

/// `now` in ticks of the profile, modulo 2³².
fn timestamp_of(profile: &Profile, now: Instant) -> u32 {
    (now.as_nanos() / profile.tick().as_nanos()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(incarnation: u32) -> Begin {
        Begin { incarnation, window: 10, max_segment: 1_448, delivery: Delivery::Immediate }
    }

    /// XSTP-6.1.3
    #[test]
    fn a_listener_accepts_only_newer_incarnations() {
        let listener = Lifecycle::listener(Profile::Sealed, Some(7));
        assert_eq!(listener.classify_begin(&begin(7)), Err(RejectedBegin::OldIncarnation));
        assert_eq!(listener.classify_begin(&begin(6)), Err(RejectedBegin::OldIncarnation));
        assert_eq!(listener.classify_begin(&begin(8)), Ok(StateInput::BeginNewer));
        let wrapped = Lifecycle::listener(Profile::Sealed, Some(u32::MAX));
        assert_eq!(wrapped.classify_begin(&begin(0)), Ok(StateInput::BeginNewer));
    }

    #[test]
    fn a_client_rejects_begin_until_it_is_closed() {
        let mut client = Lifecycle::client(Profile::Sealed, 1);
        assert_eq!(client.classify_begin(&begin(2)), Err(RejectedBegin::Unexpected));
        assert!(client.apply(StateInput::Abort).has_closed);
        assert_eq!(client.classify_begin(&begin(2)), Ok(StateInput::BeginNewer));
        assert!(client.handshake.is_reset_due(), "an abort sends RST");
    }

    #[test]
    fn begin_is_repeated_with_every_poll_until_it_is_answered() {
        let mut client = Lifecycle::client(Profile::Sealed, 1);
        let now = Instant::ZERO;
        assert!(client.opening(begin(1), false, false).is_some());
        client.handshake.on_begin_sent(now, 5, Span::from_secs(1));
        assert_eq!(client.opening(begin(1), false, true), None);
        assert!(client.opening(begin(1), true, false).is_some());
        client.apply(StateInput::BeginAck);
        assert_eq!(client.on_opened(9, 5), Some(now));
        assert_eq!(client.opening(begin(1), true, false), None);
    }
}
