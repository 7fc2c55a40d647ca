//! States of a session, and the transition of each state for each input.
//!
//! ```text
//!           connect                     listen
//!   Closed ─────────▶ Opening            Listening
//!                         │ BGNAK            │ BGN / BGNAK
//!                         ▼                  ▼
//!                        ─────── Established ───────
//!           drained / END │                         │ END / ENDAK
//!                         ▼                         ▼
//!                      Closing              HalfClosedRemote
//!               ENDAK │      │ END / ENDAK          │ drained / END
//!                     ▼      ▼                      ▼
//!          HalfClosedLocal   └─────────────────▶ LastClosing
//!        END / ENDAK  │                             │ ENDAK
//!                     └────────▶ Closed ◀───────────┘
//! ```
//!
//! Each direction is closed separately: a side closes its direction when all its data is
//! acknowledged, and the other direction stays open (XSTP-6.4.1). The table is complete: a new
//! state or input does not compile until all its transitions are defined.

use crate::session::events::Event;

/// State of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// There is no session.
    Closed,
    /// The server waits for BGN.
    Listening,
    /// BGN is sent and not answered. Data may be sent already.
    Opening,
    /// Both directions are open.
    Established,
    /// END is sent and not answered; the direction of the peer is open.
    Closing,
    /// The own direction is closed; that of the peer is open.
    HalfClosedLocal,
    /// The direction of the peer is closed; the own one is open.
    HalfClosedRemote,
    /// The direction of the peer is closed; END is sent and not answered.
    LastClosing,
}

impl State {
    /// All states.
    pub const ALL: [Self; 8] = [
        Self::Closed,
        Self::Listening,
        Self::Opening,
        Self::Established,
        Self::Closing,
        Self::HalfClosedLocal,
        Self::HalfClosedRemote,
        Self::LastClosing,
    ];

    /// Whether segments of the data phase are sent and received.
    pub fn is_connected(self) -> bool {
        !matches!(self, Self::Closed | Self::Listening)
    }

    /// Whether new data may be sent.
    pub fn may_send(self) -> bool {
        matches!(self, Self::Opening | Self::Established | Self::HalfClosedRemote)
    }
}

/// Input of the state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateInput {
    /// BGN of the current incarnation.
    Begin,
    /// BGN of an incarnation that is newer than the current one, or the first one.
    BeginNewer,
    /// BGNAK of the current incarnation.
    BeginAck,
    /// END of the current incarnation, all data before it received.
    End,
    /// ENDAK of the current incarnation.
    EndAck,
    /// RST of the current incarnation.
    Reset,
    /// SD.
    Data,
    /// POLL.
    Poll,
    /// STAT or USTAT.
    Report,
    /// The upper layer has ended, and all its data is acknowledged.
    Drained,
    /// The upper layer aborts the session.
    Abort,
    /// The handshake timer has expired.
    Retry,
    /// The handshake timer has expired for the last time.
    GiveUp,
    /// The no-response timer has expired.
    NoResponse,
}

impl StateInput {
    /// All inputs.
    pub const ALL: [Self; 14] = [
        Self::Begin,
        Self::BeginNewer,
        Self::BeginAck,
        Self::End,
        Self::EndAck,
        Self::Reset,
        Self::Data,
        Self::Poll,
        Self::Report,
        Self::Drained,
        Self::Abort,
        Self::Retry,
        Self::GiveUp,
        Self::NoResponse,
    ];
}

/// Action of a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::session) enum Action {
    /// No action: the input is valid and has no effect.
    Nothing,
    /// Count the segment: it is not allowed here.
    Unexpected,
    /// Process the segment of the data phase.
    Process,
    /// Accept the session and send BGNAK.
    Accept,
    /// Retransmit BGNAK.
    RetransmitBeginAck,
    /// BGN was answered: report it to the upper layer.
    Opened,
    /// The peer has started a newer incarnation: the session is closed.
    Superseded,
    /// BGN was refused.
    Refused,
    /// Send END.
    SendEnd,
    /// Answer END and report it to the upper layer.
    PeerEnds,
    /// Answer END; both directions are closed.
    PeerEndsLast,
    /// Retransmit ENDAK.
    RetransmitEndAck,
    /// END was answered; the direction of the peer is open.
    OwnEnded,
    /// END was answered; both directions are closed.
    OwnEndedLast,
    /// There is no such session: send RST.
    SendReset,
    /// The peer has reset the session.
    PeerReset,
    /// Send RST and close.
    AbortWithReset,
    /// Close without a segment.
    AbortQuietly,
    /// Retransmit the handshake segment.
    RetransmitHandshake,
    /// The handshake failed: send RST and report it to the upper layer.
    HandshakeFailed,
    /// The peer does not respond: send RST and report it to the upper layer.
    PeerUnresponsive,
}

impl Action {
    /// Events that the action causes for the upper layer.
    pub(in crate::session) fn events(self) -> &'static [Event] {
        match self {
            Self::PeerEnds => &[Event::PeerEnded],
            Self::OwnEnded => &[Event::SelfEnded],
            Self::PeerEndsLast => &[Event::PeerEnded, Event::Closed],
            Self::OwnEndedLast => &[Event::SelfEnded, Event::Closed],
            Self::Superseded => &[Event::Superseded],
            Self::Refused => &[Event::Refused],
            Self::PeerReset => &[Event::Reset],
            Self::HandshakeFailed | Self::PeerUnresponsive => &[Event::NoResponse],
            Self::Nothing | Self::Unexpected | Self::Process | Self::Accept => &[],
            Self::RetransmitBeginAck | Self::Opened | Self::SendEnd | Self::RetransmitEndAck => &[],
            Self::SendReset | Self::AbortWithReset | Self::AbortQuietly => &[],
            Self::RetransmitHandshake => &[],
        }
    }
}

/// Returns the next state and the action (XSTP-6.2.1).
pub(in crate::session) fn step(state: State, input: StateInput) -> (State, Action) {
    match state {
        State::Closed => closed(input),
        State::Listening => listening(input),
        State::Opening => opening(input),
        State::Established => peer_open(state, input, (State::HalfClosedRemote, Action::PeerEnds)),
        State::Closing => peer_open(state, input, (State::LastClosing, Action::PeerEnds)),
        State::HalfClosedLocal => peer_open(state, input, (State::Closed, Action::PeerEndsLast)),
        State::HalfClosedRemote | State::LastClosing => half_closed_remote(state, input),
    }
}

fn closed(input: StateInput) -> (State, Action) {
    use StateInput as S;
    let action = match input {
        // There is no listener, or the session of the peer does not exist here any more.
        S::Begin | S::BeginNewer | S::Data | S::Poll => Action::SendReset,
        // The ENDAK was lost when this side had already closed.
        S::End => Action::RetransmitEndAck,
        S::BeginAck | S::EndAck | S::Report => Action::Unexpected,
        S::Reset | S::Drained | S::Abort | S::Retry | S::GiveUp | S::NoResponse => Action::Nothing,
    };
    (State::Closed, action)
}

fn listening(input: StateInput) -> (State, Action) {
    use StateInput as S;
    match input {
        S::Begin | S::BeginNewer => (State::Established, Action::Accept),
        S::Abort => (State::Closed, Action::AbortQuietly),
        // The session of the peer does not exist here any more; ENDAK closes it.
        S::End => (State::Listening, Action::RetransmitEndAck),
        // These may have overtaken their BGN, and do not name their incarnation: a RST could
        // close a session that is being opened.
        S::Data | S::Poll => (State::Listening, Action::Unexpected),
        S::BeginAck | S::EndAck | S::Report => (State::Listening, Action::Unexpected),
        S::Reset | S::Drained | S::Retry | S::GiveUp | S::NoResponse => {
            (State::Listening, Action::Nothing)
        }
    }
}

fn opening(input: StateInput) -> (State, Action) {
    use StateInput as S;
    match input {
        S::BeginAck => (State::Established, Action::Opened),
        S::Reset => (State::Closed, Action::Refused),
        // The peer may send before its BGNAK arrives here: paths reorder.
        S::Data | S::Poll | S::Report => (State::Opening, Action::Process),
        S::Begin | S::BeginNewer | S::EndAck => (State::Opening, Action::Unexpected),
        // The peer retransmits END after BGNAK.
        S::End | S::Drained => (State::Opening, Action::Nothing),
        S::Abort => (State::Closed, Action::AbortWithReset),
        S::Retry => (State::Opening, Action::RetransmitHandshake),
        S::GiveUp => (State::Closed, Action::HandshakeFailed),
        S::NoResponse => (State::Closed, Action::PeerUnresponsive),
    }
}

/// Established, Closing and HalfClosedLocal: the direction of the peer is open; END leads to
/// `on_end`.
fn peer_open(state: State, input: StateInput, on_end: (State, Action)) -> (State, Action) {
    use StateInput as S;
    match input {
        S::Data | S::Poll | S::Report => (state, Action::Process),
        S::Begin => (state, Action::RetransmitBeginAck),
        S::BeginNewer => (State::Closed, Action::Superseded),
        S::BeginAck => (state, Action::Nothing),
        S::End => on_end,
        S::EndAck if state == State::Closing => (State::HalfClosedLocal, Action::OwnEnded),
        S::EndAck if state == State::HalfClosedLocal => (state, Action::Nothing),
        S::EndAck => (state, Action::Unexpected),
        S::Reset => (State::Closed, Action::PeerReset),
        S::Drained if state == State::Established => (State::Closing, Action::SendEnd),
        S::Drained => (state, Action::Nothing),
        S::Abort => (State::Closed, Action::AbortWithReset),
        S::Retry if state == State::Closing => (state, Action::RetransmitHandshake),
        S::GiveUp if state == State::Closing => (State::Closed, Action::HandshakeFailed),
        S::Retry | S::GiveUp => (state, Action::Nothing),
        S::NoResponse => (State::Closed, Action::PeerUnresponsive),
    }
}

/// HalfClosedRemote and LastClosing: only the own direction may be open.
fn half_closed_remote(state: State, input: StateInput) -> (State, Action) {
    use StateInput as S;
    let ending = state == State::LastClosing;
    match input {
        // Duplicates of old data are received, and POLLs are answered, until the session is closed.
        S::Data | S::Poll | S::Report => (state, Action::Process),
        S::Begin => (state, Action::RetransmitBeginAck),
        S::BeginNewer => (State::Closed, Action::Superseded),
        S::BeginAck => (state, Action::Nothing),
        S::End => (state, Action::RetransmitEndAck),
        S::EndAck if ending => (State::Closed, Action::OwnEndedLast),
        S::EndAck => (state, Action::Unexpected),
        S::Reset => (State::Closed, Action::PeerReset),
        S::Drained if !ending => (State::LastClosing, Action::SendEnd),
        S::Drained => (state, Action::Nothing),
        S::Abort => (State::Closed, Action::AbortWithReset),
        S::Retry if ending => (state, Action::RetransmitHandshake),
        S::GiveUp if ending => (State::Closed, Action::HandshakeFailed),
        S::Retry | S::GiveUp => (state, Action::Nothing),
        S::NoResponse => (State::Closed, Action::PeerUnresponsive),
    }
}
