//! End of sessions, and successive sessions in one association (RLY-10).
//!
//! ```text
//!   drain, GOAWAY of the peer ──▶ END in both directions ─┐
//!   RST, malformed frame, BGN of a new session ───────────┼─▶ `lose` ──▶ the next session
//!   no response ──────────────────────────────────────────┘              (terminal: BGN;
//!                                                                          hub: waits for BGN)
//! ```
//!
//! A closed session stays, without its packets, to respond to late segments: to END by ENDAK, to
//! POLL by RST. There is at most one. All streams, buffers and tables of a session are freed at its
//! end, so that a peer that starts one session after another uses the memory of one.

use super::Relay;
use super::session_order::SessionOrder;
use crate::DisconnectReason;
use crate::session::session_config;
use crate::streams::Streams;
use association::{Capabilities, Limits, SendOrder};
use units::{Instant, Span};
use xstp::Seq24;
use xstp::session::{Event as SessionEvent, Session, State};

/// Minimum duration of a session after which the next one starts in the same association. Otherwise
/// a hub that ended or refused sessions immediately would receive BGN without end; Hellos have a
/// minimum interval.
const MIN_SESSION: Span = Span::from_secs(1);

/// Time for which a hub keeps an association without a session. A terminal starts the next session
/// immediately.
const NEXT_SESSION_TIME: Span = Span::from_secs(10);
/// Time for which an association in which no session follows is kept, to respond to a retransmitted
/// END.
const LAST_END_TIME: Span = Span::from_secs(4);

/// Maximum RTT of the handshake of an association on whose path padding is sent. With 600 ms of
/// propagation, the first datagram of a terminal (about 130 octets) takes longer on a reverse path
/// below 3 kbit/s.
const MAX_PADDING_RTT: Span = Span::from_secs(1);

/// Reasons of a RST (RLY-10.6): the code in the upper octet of the number, a detail in the next.
const UNREADABLE: u32 = 1;
const LEFT: u32 = 2;

/// How the last session of an association has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// In order: the peer has announced it by GOAWAY, or does not begin further sessions at all.
    End,
    /// By a RST.
    Reset,
}

/// Returns the reason of a RST for a malformed frame that starts with this octet.
fn unreadable(frame: u8) -> Seq24 {
    Seq24::new(UNREADABLE << 16 | u32::from(frame) << 8)
}

impl Relay {
    /// Ends the session in order: no streams are opened any more, and END is sent when all streams
    /// are closed and the peer opens no more either. With a peer that does not support this, the
    /// session remains. No session is started afterwards.
    pub fn drain(&mut self) {
        self.draining = true;
        if self.can_end_in_order() {
            self.streams.go_away(true);
            self.wake();
        }
    }

    /// Returns whether [`drain`](Self::drain) has ended the session, or is not supported by the
    /// peer.
    pub fn has_drained(&self) -> bool {
        self.draining && (self.session.is_none() || !self.connected || !self.can_end_in_order())
    }

    /// Returns whether no more streams can be opened in this session.
    pub fn is_draining(&self) -> bool {
        self.streams.is_draining()
    }

    /// Returns whether the peer has announced that it ends the session and that none follows.
    pub fn is_left(&self) -> bool {
        self.connected && self.streams.peer_leaves()
    }

    /// Returns whether the terminal continues in another association while this session ends, and
    /// the hub keeps both (ASC-2.11).
    pub fn can_overlap(&self) -> bool {
        let both = Capabilities::ORDERLY_END.or(Capabilities::OVERLAP);
        self.capabilities().contains(both)
    }

    /// Returns whether both sides end sessions in order.
    fn can_end_in_order(&self) -> bool {
        self.capabilities().contains(Capabilities::ORDERLY_END)
    }

    /// Returns the features of both sides.
    pub(super) fn capabilities(&self) -> Capabilities {
        let peer = self.peer.map_or(Capabilities::NONE, |limits| limits.capabilities);
        peer.and(self.config.capabilities)
    }

    /// Returns whether padding estimates the rate: this is a hub, the reverse path is not too slow for
    /// the STATs that padding causes, and the peer skips extension frames.
    pub(super) fn sends_padding(&self) -> bool {
        let is_suitable = self.handshake_rtt.is_some_and(|rtt| rtt <= MAX_PADDING_RTT);
        self.config.probe_rate && is_suitable && self.can_end_in_order()
    }

    /// Resets the session, so that the peer detects the stop immediately. The caller polls for the
    /// final datagrams. Streams are closed without an event.
    pub fn close(&mut self, now: Instant) {
        self.closed = true;
        self.connected = false;
        if let Some(session) = &mut self.session {
            session.abort_for(now, Seq24::new(LEFT << 16));
        }
    }

    /// Returns the time for which a hub keeps the association of a session that has ended for this
    /// reason, so that the terminal can start another one in it; `None`: it is not kept.
    pub(crate) fn association_time(&self, reason: DisconnectReason) -> Option<Span> {
        match self.peer_left {
            _ if reason == DisconnectReason::NoResponse => None,
            Some(Left::Reset) => None,
            Some(Left::End) => Some(LAST_END_TIME),
            None => self.can_end_in_order().then_some(NEXT_SESSION_TIME),
        }
    }

    /// Returns whether another session may follow in the association of one that ended for this
    /// reason.
    fn has_next_session(&self, reason: DisconnectReason) -> bool {
        self.can_end_in_order() && reason != DisconnectReason::NoResponse
    }

    /// Handles a segment by which the terminal starts a new session; the present one ends.
    pub(super) fn begin_anew(&mut self, now: Instant, order: SendOrder, payload: &[u8]) {
        let session = self.session.as_ref().or(self.ended.as_ref());
        let is_hub = self.terminal.is_none();
        let Some(session) = session.filter(|session| session.is_begin_anew(payload)) else {
            return;
        };
        let (Some(limits), false) = (self.peer, self.closed || self.draining || !is_hub) else {
            return;
        };
        let last = session.incarnation().unwrap_or_default();
        if self.session.is_some() {
            self.lose(now, DisconnectReason::PeerRestarted);
        }
        let config = session_config(&self.config, limits, self.cached_metrics);
        self.streams.set_peer(limits, self.sends_padding());
        self.streams.announce_families(self.families);
        let mut session = Session::listen_after(&config, last);
        session.block_data(self.is_held);
        self.session = Some(session);
        (self.ended, self.peer_left) = (None, None);
        self.order = SessionOrder::default();
        self.order.on_begun(order);
        self.begin_path(limits);
    }

    /// Starts a terminal's session with a hub that announced `limits`.
    pub(super) fn begin_session(&mut self, now: Instant, limits: Limits) {
        (self.peer, self.peer_left) = (Some(limits), None);
        self.streams.set_peer(limits, self.sends_padding());
        self.send_report();
        self.incarnation += 1;
        let config = session_config(&self.config, limits, self.cached_metrics);
        self.session = Some(Session::connect(&config, now, self.incarnation));
        if self.draining {
            self.drain();
        }
        self.begin_path(limits);
    }

    pub(super) fn take_session_events(&mut self, now: Instant) {
        if let Some(len) = self.streams.take_released() {
            self.path.data_acknowledged(len + association::OVERHEAD + self.config.ip_overhead);
        }
        self.fit_path();
        if let Some(frame) = self.streams.take_unreadable()
            && let Some(session) = &mut self.session
        {
            session.abort_for(now, unreadable(frame));
            self.end_session(now, DisconnectReason::Unreadable { frame });
        }
        while let Some(event) = self.session.as_mut().and_then(Session::poll_event) {
            let reason = match event {
                SessionEvent::Established => {
                    self.connected = true;
                    self.connected_since = Some(now);
                    self.connected_news = true;
                    continue;
                }
                SessionEvent::PeerEnded => {
                    self.streams.on_peer_ended();
                    continue;
                }
                SessionEvent::NoResponse => DisconnectReason::NoResponse,
                SessionEvent::Superseded | SessionEvent::Refused => DisconnectReason::PeerRestarted,
                SessionEvent::Reset => self.reset_reason(),
                SessionEvent::Closed => {
                    if !self.can_end_in_order() {
                        self.peer_left = Some(Left::End);
                    }
                    DisconnectReason::Closed
                }
                _ => continue,
            };
            self.end_session(now, reason);
        }
        if self.connected
            && self.streams.has_finished()
            && let Some(session) = &mut self.session
        {
            self.streams.finish();
            session.end(now);
        }
    }

    /// Returns the reason in the peer's RST.
    fn reset_reason(&mut self) -> DisconnectReason {
        let named = self.session.as_ref().and_then(Session::peer_reset_reason);
        let named = named.map_or(0, Seq24::value);
        match named >> 16 {
            UNREADABLE if self.can_end_in_order() => {
                DisconnectReason::Rejected { frame: (named >> 8) as u8 }
            }
            LEFT if self.can_end_in_order() => {
                self.peer_left = Some(Left::Reset);
                DisconnectReason::Closed
            }
            _ => DisconnectReason::Closed,
        }
    }

    /// Handles the end of the session. A terminal starts the next one: in the same association if
    /// the hub keeps it, otherwise in a new one.
    fn end_session(&mut self, now: Instant, reason: DisconnectReason) {
        let lasted = self.connected_since().map(|since| now.since(since));
        self.lose(now, reason);
        self.closed |= self.draining;
        if self.closed || self.terminal.is_none() {
            return;
        }
        let may_continue = self.peer_left.is_none()
            && self.has_next_session(reason)
            && lasted.is_some_and(|lasted| lasted >= MIN_SESSION);
        if let Some(limits) = self.peer.filter(|_| may_continue) {
            self.begin_session(now, limits);
            self.order = SessionOrder::awaiting_begin_ack();
        } else if let Some(terminal) = &mut self.terminal {
            terminal.restart(now);
        }
    }

    /// Ends the session with its streams.
    pub(super) fn lose(&mut self, now: Instant, reason: DisconnectReason) {
        self.past = self.totals();
        self.path_metrics = self.path_metrics();
        self.cached_metrics = self.path_metrics.or(self.cached_metrics);
        let is_closed = |session: &Session| session.state() == State::Closed;
        let is_kept = self.has_next_session(reason) || self.peer_left == Some(Left::End);
        self.ended = self.session.take().filter(|session| is_kept && is_closed(session));
        if self.streams.peer_leaves() {
            self.peer_left.get_or_insert(Left::End);
        }
        if let Some(ended) = &mut self.ended {
            ended.release();
        }
        self.path.stop();
        self.connected = false;
        self.connected_news = false;
        self.streams = Streams::new(&self.config, self.terminal.is_none(), now);
        self.disconnected = Some(reason);
    }
}
