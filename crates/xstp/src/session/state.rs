//! The states of a session, and what each of them does with each event.
//!
//! ```text
//!           connect                     listen
//!   Closed ─────────▶ Beginning          Listening
//!                         │ BGNAK            │ BGN / BGNAK
//!                         ▼                  ▼
//!                        ─────── Established ───────
//!           drained / END │                         │ END / ENDAK
//!                         ▼                         ▼
//!                      Ending                   PeerEnded
//!               ENDAK │      │ END / ENDAK          │ drained / END
//!                     ▼      ▼                      ▼
//!                SelfEnded   └───────────────▶ PeerEndedEnding
//!        END / ENDAK  │                             │ ENDAK
//!                     └────────▶ Closed ◀───────────┘
//! ```
//!
//! Each direction ends on its own: a side ends its direction when nothing of it is
//! unacknowledged any more, and the other direction goes on (XSTP-6.4.1). The table below is
//! complete: a new state or event does not compile until every case of it is decided.

/// Where a session is between its beginning and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Nothing yet, or nothing any more.
    Closed,
    /// Waits for a BGN.
    Listening,
    /// BGN is sent, BGNAK has not come. Data may flow already.
    Beginning,
    /// Both directions are open.
    Established,
    /// END is sent, ENDAK has not come; the peer still sends.
    Ending,
    /// Our direction is over; the peer still sends.
    SelfEnded,
    /// The peer's direction is over; ours is open.
    PeerEnded,
    /// The peer's direction is over; our END is sent, its ENDAK has not come.
    PeerEndedEnding,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 8] = [
        Self::Closed,
        Self::Listening,
        Self::Beginning,
        Self::Established,
        Self::Ending,
        Self::SelfEnded,
        Self::PeerEnded,
        Self::PeerEndedEnding,
    ];

    /// Whether segments of the data phase may be sent and are understood.
    pub fn is_connected(self) -> bool {
        !matches!(self, Self::Closed | Self::Listening)
    }

    /// Whether new data may be sent.
    pub fn may_send(self) -> bool {
        matches!(self, Self::Beginning | Self::Established | Self::PeerEnded)
    }
}

/// What can happen to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stimulus {
    /// BGN of the incarnation that is running.
    Begin,
    /// BGN of an incarnation that is newer than the running one, or the first at all.
    BeginNewer,
    /// BGNAK of the running incarnation.
    BeginAck,
    /// END of the running incarnation, all data before it received.
    End,
    /// ENDAK of the running incarnation.
    EndAck,
    /// RST of the running incarnation, or in answer to it.
    Reset,
    /// SD.
    Data,
    /// POLL.
    Poll,
    /// STAT or USTAT.
    Report,
    /// The upper layer has ended, and everything it sent is acknowledged.
    Drained,
    /// The upper layer gives up.
    Abort,
    /// A handshake was not answered in time.
    Retry,
    /// A handshake was not answered however often it was sent.
    GiveUp,
    /// The peer is silent for too long.
    NoResponse,
}

impl Stimulus {
    /// Every event.
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

/// What is to be done about it, beside going to the next state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// Nothing: the event means nothing here, and that is normal.
    Nothing,
    /// The segment has no business here; count it.
    Unexpected,
    /// Take the data phase's segment in.
    Process,
    /// A client asks: begin, and send BGNAK.
    Accept,
    /// The BGNAK was lost: send it again.
    AcceptAgain,
    /// Our BGN was answered: tell the upper layer.
    Opened,
    /// The peer began anew: this session is over, the upper layer may listen again.
    Superseded,
    /// Our BGN was refused.
    Refused,
    /// Send END.
    SendEnd,
    /// Answer an END and tell the upper layer.
    PeerEnds,
    /// Answer an END, and both directions are over.
    PeerEndsLast,
    /// Answer an END that was answered before.
    AckEndAgain,
    /// Our END was answered; the peer still sends.
    OwnEnded,
    /// Our END was answered, and both directions are over.
    OwnEndedLast,
    /// There is no such session: answer with RST.
    SendReset,
    /// The peer reset the session.
    PeerReset,
    /// Send RST and close.
    AbortWithReset,
    /// Close without a word.
    AbortQuietly,
    /// Send the handshake that is waiting for an answer again.
    RepeatHandshake,
    /// The handshake failed: RST, and tell the upper layer.
    HandshakeFailed,
    /// The peer is gone: RST in case it is not, and tell the upper layer.
    PeerGone,
}

/// The next state and what to do on the way (XSTP-6.2.1).
pub(crate) fn step(state: State, stimulus: Stimulus) -> (State, Action) {
    match state {
        State::Closed => closed(stimulus),
        State::Listening => listening(stimulus),
        State::Beginning => beginning(stimulus),
        State::Established => peer_open(state, stimulus, (State::PeerEnded, Action::PeerEnds)),
        State::Ending => peer_open(state, stimulus, (State::PeerEndedEnding, Action::PeerEnds)),
        State::SelfEnded => peer_open(state, stimulus, (State::Closed, Action::PeerEndsLast)),
        State::PeerEnded | State::PeerEndedEnding => peer_ended(state, stimulus),
    }
}

fn closed(stimulus: Stimulus) -> (State, Action) {
    use Stimulus as S;
    let action = match stimulus {
        // A client asks where nobody listens, or the peer believes in a session that is gone.
        S::Begin | S::BeginNewer | S::Data | S::Poll => Action::SendReset,
        // The ENDAK was lost when this side had already closed.
        S::End => Action::AckEndAgain,
        S::BeginAck | S::EndAck | S::Report => Action::Unexpected,
        S::Reset | S::Drained | S::Abort | S::Retry | S::GiveUp | S::NoResponse => Action::Nothing,
    };
    (State::Closed, action)
}

fn listening(stimulus: Stimulus) -> (State, Action) {
    use Stimulus as S;
    match stimulus {
        S::Begin | S::BeginNewer => (State::Established, Action::Accept),
        S::Abort => (State::Closed, Action::AbortQuietly),
        // The peer of a session that this side has forgotten: let it close.
        S::End => (State::Listening, Action::AckEndAgain),
        // These may have overtaken their BGN, and they do not name their incarnation: a RST
        // could hit a session that is about to begin.
        S::Data | S::Poll => (State::Listening, Action::Unexpected),
        S::BeginAck | S::EndAck | S::Report => (State::Listening, Action::Unexpected),
        S::Reset | S::Drained | S::Retry | S::GiveUp | S::NoResponse => {
            (State::Listening, Action::Nothing)
        }
    }
}

fn beginning(stimulus: Stimulus) -> (State, Action) {
    use Stimulus as S;
    match stimulus {
        S::BeginAck => (State::Established, Action::Opened),
        S::Reset => (State::Closed, Action::Refused),
        // The peer may send before its BGNAK arrives here: paths reorder.
        S::Data | S::Poll | S::Report => (State::Beginning, Action::Process),
        S::Begin | S::BeginNewer | S::EndAck => (State::Beginning, Action::Unexpected),
        // The END is sent again after the BGNAK; nothing is lost by waiting for it.
        S::End | S::Drained => (State::Beginning, Action::Nothing),
        S::Abort => (State::Closed, Action::AbortWithReset),
        S::Retry => (State::Beginning, Action::RepeatHandshake),
        S::GiveUp => (State::Closed, Action::HandshakeFailed),
        S::NoResponse => (State::Closed, Action::PeerGone),
    }
}

/// Established, Ending and SelfEnded: the peer's direction is open; its end leads to `on_end`.
fn peer_open(state: State, stimulus: Stimulus, on_end: (State, Action)) -> (State, Action) {
    use Stimulus as S;
    match stimulus {
        S::Data | S::Poll | S::Report => (state, Action::Process),
        S::Begin => (state, Action::AcceptAgain),
        S::BeginNewer => (State::Closed, Action::Superseded),
        S::BeginAck => (state, Action::Nothing),
        S::End => on_end,
        S::EndAck if state == State::Ending => (State::SelfEnded, Action::OwnEnded),
        S::EndAck if state == State::SelfEnded => (state, Action::Nothing),
        S::EndAck => (state, Action::Unexpected),
        S::Reset => (State::Closed, Action::PeerReset),
        S::Drained if state == State::Established => (State::Ending, Action::SendEnd),
        S::Drained => (state, Action::Nothing),
        S::Abort => (State::Closed, Action::AbortWithReset),
        S::Retry if state == State::Ending => (state, Action::RepeatHandshake),
        S::GiveUp if state == State::Ending => (State::Closed, Action::HandshakeFailed),
        S::Retry | S::GiveUp => (state, Action::Nothing),
        S::NoResponse => (State::Closed, Action::PeerGone),
    }
}

/// PeerEnded and PeerEndedEnding: only our direction may still be open.
fn peer_ended(state: State, stimulus: Stimulus) -> (State, Action) {
    use Stimulus as S;
    let ending = state == State::PeerEndedEnding;
    match stimulus {
        // Copies of old data still arrive; POLLs are answered as long as the session lives.
        S::Data | S::Poll | S::Report => (state, Action::Process),
        S::Begin => (state, Action::AcceptAgain),
        S::BeginNewer => (State::Closed, Action::Superseded),
        S::BeginAck => (state, Action::Nothing),
        S::End => (state, Action::AckEndAgain),
        S::EndAck if ending => (State::Closed, Action::OwnEndedLast),
        S::EndAck => (state, Action::Unexpected),
        S::Reset => (State::Closed, Action::PeerReset),
        S::Drained if !ending => (State::PeerEndedEnding, Action::SendEnd),
        S::Drained => (state, Action::Nothing),
        S::Abort => (State::Closed, Action::AbortWithReset),
        S::Retry if ending => (state, Action::RepeatHandshake),
        S::GiveUp if ending => (State::Closed, Action::HandshakeFailed),
        S::Retry | S::GiveUp => (state, Action::Nothing),
        S::NoResponse => (State::Closed, Action::PeerGone),
    }
}
