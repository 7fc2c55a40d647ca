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
use super::path::Path;
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

impl Path {
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

    /// Returns whether another session may follow in the association of one that ended for this
    /// reason.
    fn has_next_session(&self, reason: DisconnectReason) -> bool {
        self.can_end_in_order() && reason != DisconnectReason::NoResponse
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

    /// Ends the session; the peer may have announced that no other follows.
    pub(super) fn lose(&mut self, reason: DisconnectReason, peer_leaves: bool) {
        self.past = self.totals();
        self.path_metrics = self.path_metrics();
        self.cached_metrics = self.path_metrics.or(self.cached_metrics);
        let is_closed = |session: &Session| session.state() == State::Closed;
        let is_kept = self.has_next_session(reason) || self.peer_left == Some(Left::End);
        self.ended = self.session.take().filter(|session| is_kept && is_closed(session));
        if peer_leaves {
            self.peer_left.get_or_insert(Left::End);
        }
        if let Some(ended) = &mut self.ended {
            ended.release();
        }
        self.mtu.stop();
        self.connected = false;
    }
}

impl Relay {
    /// Ends the session in order: no streams are opened any more, and END is sent when all streams
    /// are closed and the peer opens no more either. With a peer that does not support this, the
    /// session remains. No session is started afterwards.
    pub fn drain(&mut self) {
        self.draining = true;
        if self.paths.iter().any(|(_, path)| path.can_end_in_order()) {
            self.streams.go_away(true);
            self.wake();
        }
    }

    /// Returns whether [`drain`](Self::drain) has ended the session, or is not supported by the
    /// peer.
    pub fn has_drained(&self) -> bool {
        let is_over =
            |path: &Path| path.session.is_none() || !path.connected || !path.can_end_in_order();
        self.draining && self.paths.iter().all(|(_, path)| is_over(path))
    }

    /// Returns whether no more streams can be opened in this session.
    pub fn is_draining(&self) -> bool {
        self.streams.is_draining()
    }

    /// Returns whether the peer has announced that it ends the session and that none follows.
    pub fn is_left(&self) -> bool {
        self.is_connected() && self.streams.peer_leaves()
    }

    /// Returns whether the terminal continues in another association while this session ends, and
    /// the hub keeps both (ASC-2.11).
    pub fn can_overlap(&self) -> bool {
        let both = Capabilities::ORDERLY_END.or(Capabilities::OVERLAP);
        self.first().capabilities().contains(both)
    }

    /// Resets the session, so that the peer detects the stop immediately. The caller polls for the
    /// final datagrams. Streams are closed without an event.
    pub fn close(&mut self, now: Instant) {
        self.closed = true;
        for (_, path) in &mut self.paths {
            path.connected = false;
            if let Some(session) = &mut path.session {
                session.abort_for(now, Seq24::new(LEFT << 16));
            }
        }
    }

    /// Returns the time for which a hub keeps the association of a session that has ended for this
    /// reason, so that the terminal can start another one in it; `None`: it is not kept.
    pub(crate) fn association_time(&self, reason: DisconnectReason) -> Option<Span> {
        let path = self.paths.iter().next().map(|(_, path)| path)?;
        match path.peer_left {
            _ if reason == DisconnectReason::NoResponse => None,
            Some(Left::Reset) => None,
            Some(Left::End) => Some(LAST_END_TIME),
            None => path.can_end_in_order().then_some(NEXT_SESSION_TIME),
        }
    }

    /// Handles a segment by which the terminal starts a new session; the present one ends.
    pub(super) fn begin_anew(
        &mut self,
        now: Instant,
        number: usize,
        order: SendOrder,
        payload: &[u8],
    ) {
        let path = &self.paths[number];
        let session = path.session.as_ref().or(path.ended.as_ref());
        let Some(session) = session.filter(|session| session.is_begin_anew(payload)) else {
            return;
        };
        let (Some(limits), false) = (path.peer, self.closed || self.draining || !self.is_hub)
        else {
            return;
        };
        let last = session.incarnation().unwrap_or_default();
        if path.session.is_some() {
            self.lose(now, number, DisconnectReason::PeerRestarted);
        }
        let path = &mut self.paths[number];
        let config = session_config(&path.config, limits, path.cached_metrics);
        self.streams.set_peer(limits, path.sends_padding());
        self.streams.announce_families(self.families);
        let mut session = Session::listen_after(&config, last);
        session.block_data(path.is_held);
        path.session = Some(session);
        (path.ended, path.peer_left) = (None, None);
        path.order = SessionOrder::default();
        path.order.on_begun(order);
        path.begin_mtu_search(limits);
    }

    /// Starts a terminal's session with a hub that announced `limits`.
    pub(super) fn begin_session(&mut self, now: Instant, number: usize, limits: Limits) {
        let is_replaceable = self.paths.len() > 1 && !self.has_others(number);
        let path = &mut self.paths[number];
        (path.peer, path.peer_left) = (Some(limits), None);
        path.incarnation += 1;
        path.begun = now;
        let config = session_config(&path.config, limits, path.cached_metrics);
        let mut session = Session::connect(&config, now, path.incarnation);
        // Another path may have to replace it, and data that the hub has would be retransmitted.
        session.block_data(is_replaceable);
        path.session = Some(session);
        path.begin_mtu_search(limits);
        let sends_padding = path.sends_padding();
        if !self.has_others(number) {
            self.streams.set_peer(limits, sends_padding);
            self.send_report();
        }
        if self.draining {
            self.drain();
        }
    }

    pub(super) fn take_session_events(&mut self, now: Instant, number: usize) {
        let path = &mut self.paths[number];
        if let Some(len) = self.streams.take_released() {
            path.mtu.data_acknowledged(len + association::OVERHEAD + path.config.ip_overhead);
        }
        path.fit_mtu();
        if let Some(frame) = self.streams.take_unreadable()
            && let Some(session) = &mut path.session
        {
            session.abort_for(now, unreadable(frame));
            self.end_session(now, number, DisconnectReason::Unreadable { frame });
        }
        while let Some(event) = self.paths[number].session.as_mut().and_then(Session::poll_event) {
            let path = &mut self.paths[number];
            let reason = match event {
                SessionEvent::Established => {
                    let is_first = !self.is_connected();
                    let path = &mut self.paths[number];
                    path.connected = true;
                    path.connected_since = Some(now);
                    let is_held = path.is_held;
                    path.session.iter_mut().for_each(|session| session.block_data(is_held));
                    self.connected_news |= is_first;
                    continue;
                }
                SessionEvent::PeerEnded => {
                    self.streams.on_peer_ended();
                    continue;
                }
                SessionEvent::NoResponse => DisconnectReason::NoResponse,
                SessionEvent::Superseded | SessionEvent::Refused => DisconnectReason::PeerRestarted,
                SessionEvent::Reset => path.reset_reason(),
                SessionEvent::Closed => {
                    if !path.can_end_in_order() {
                        path.peer_left = Some(Left::End);
                    }
                    DisconnectReason::Closed
                }
                _ => continue,
            };
            self.end_session(now, number, reason);
        }
        self.review_paths();
        let path = &mut self.paths[number];
        if path.connected
            && self.streams.has_finished()
            && let Some(session) = &mut path.session
        {
            self.streams.finish();
            session.end(now);
        }
    }

    /// Handles the end of the session. A terminal starts the next one: in the same association if
    /// the hub keeps it, otherwise in a new one.
    fn end_session(&mut self, now: Instant, number: usize, reason: DisconnectReason) {
        if reason == DisconnectReason::NoResponse && self.has_others(number) {
            self.leave(number);
            return self.request_joins(now);
        }
        let lasted = self.connected_since().map(|since| now.since(since));
        self.lose(now, number, reason);
        self.closed |= self.draining;
        if self.closed || self.is_hub {
            return;
        }
        if self.paths.len() > 1 {
            // Late packets of the other paths belong to the streams that have ended.
            return self.request_joins(now);
        }
        let path = &mut self.paths[number];
        let may_continue = path.peer_left.is_none()
            && path.has_next_session(reason)
            && lasted.is_some_and(|lasted| lasted >= MIN_SESSION);
        if let Some(limits) = path.peer.filter(|_| may_continue) {
            self.begin_session(now, number, limits);
            self.paths[number].order = SessionOrder::awaiting_begin_ack();
        } else if let Some(terminal) = &mut path.terminal {
            terminal.restart(now);
        }
    }

    /// Ends the session of a path with the streams, and the sessions of the other paths.
    pub(super) fn lose(&mut self, now: Instant, number: usize, reason: DisconnectReason) {
        self.past.add_streams(&self.streams.statistics());
        self.past.datagrams.add(&self.streams.datagrams.statistics());
        let peer_leaves = self.streams.peer_leaves();
        for (other, path) in &mut self.paths {
            let Some(session) = &mut path.session else { continue };
            if other != number {
                session.abort(now);
            }
            path.lose(reason, peer_leaves);
        }
        self.connected_news = false;
        self.streams = Streams::new(&self.paths[number].config, self.is_hub, now);
        self.sum_receive_rates();
        self.disconnected = Some(reason);
    }
}
