//! One path of a relay: its association, its session, and its path MTU.
//!
//! ```text
//!   Streams ◀─ frames ─▶ Session ◀─ segments ─▶ association ◀─ datagrams ─▶ one path
//! ```
//!
//! The streams belong to the [`Relay`](super::Relay), which lends them to each call.

use super::ReceiveError;
use super::ending::Left;
use super::session_order::SessionOrder;
use crate::config::{RelayConfig, announced_rate};
use crate::path_mtu::{Conditions, Outgoing, PathMtu};
use crate::session::{largest, session_config};
use crate::streams::Streams;
use crate::{PathMetrics, Totals, TransmitBatch};
use association::{HEADER_LEN, Limits, OVERHEAD, Sealed, Terminal};
use units::{BitRate, Instant, Span};
use xstp::session::Session;

/// A path to the peer.
#[derive(Debug)]
pub(crate) struct Path {
    /// Its number among those of the relay.
    number: usize,
    /// Whether its session was answered when that was last reviewed.
    pub(super) was_answered: bool,
    pub(super) config: RelayConfig,
    /// A terminal's association; at a hub all associations are in the [`Hub`](crate::Hub).
    pub(super) terminal: Option<Terminal>,
    pub(super) session: Option<Session>,
    /// The previous session, closed, while it responds to late segments.
    pub(super) ended: Option<Session>,
    /// The hub's identifier of a terminal's association.
    pub(super) association: Option<u64>,
    /// The limits that the peer has announced.
    pub(super) peer: Option<Limits>,
    /// Set while a hub's data waits for its turn on the link.
    pub(super) is_held: bool,
    /// The peer's announcement that no session follows.
    pub(super) peer_left: Option<Left>,
    /// Filter for segments of an earlier session in the association.
    pub(super) order: SessionOrder,
    /// Number of sessions started, and when the last one was, at a terminal.
    pub(super) incarnation: u32,
    pub(super) begun: Instant,
    pub(super) mtu: PathMtu,
    /// Path metrics of the last session, if it measured them.
    pub(super) path_metrics: Option<PathMetrics>,
    /// Path metrics for the start of the next session, of this relay or of an earlier process.
    pub(super) cached_metrics: Option<PathMetrics>,
    /// RTT of the handshake of the association, at a hub.
    pub(super) handshake_rtt: Option<Span>,
    pub(super) connected: bool,
    pub(super) connected_since: Option<Instant>,
    /// When a datagram of the peer was last decrypted.
    pub(super) heard: Option<Instant>,
    /// Totals of past sessions.
    pub(super) past: Totals,
}

impl Path {
    pub(super) fn new(number: usize, config: &RelayConfig, terminal: Option<Terminal>) -> Self {
        Self {
            number,
            was_answered: false,
            config: config.clone(),
            terminal,
            session: None,
            ended: None,
            order: SessionOrder::default(),
            association: None,
            peer: None,
            is_held: false,
            peer_left: None,
            incarnation: 0,
            begun: Instant::ZERO,
            mtu: PathMtu::new(config.mtu),
            path_metrics: None,
            cached_metrics: config.path_metrics,
            handshake_rtt: None,
            connected: false,
            connected_since: None,
            heard: None,
            past: Totals::default(),
        }
    }

    /// Creates a hub's path to a terminal that announced `limits`: see [`Relay::peer`](super::Relay::peer).
    pub(crate) fn listening(
        number: usize,
        config: &RelayConfig,
        limits: Limits,
        cached: Option<PathMetrics>,
        handshake_rtt: Option<Span>,
    ) -> Self {
        let mut path = Self::new(number, config, None);
        (path.cached_metrics, path.handshake_rtt, path.peer) =
            (cached, handshake_rtt, Some(limits));
        path.session = Some(Session::listen(&session_config(config, limits, cached)));
        path.begin_mtu_search(limits);
        path
    }

    /// Returns its number in the relay.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// Has the streams serve the session of this path.
    pub(super) fn select(&self, now: Instant, streams: &mut Streams) {
        streams.set_path(self.number, self.is_answered());
        if let Some(session) = &self.session {
            // A hub sends nothing on a further path before it knows the RTT.
            let handshake_rtt = self.handshake_rtt.filter(|_| streams.has_several_paths());
            streams.set_time(now, session.srtt().or(handshake_rtt), session.rate(now));
        }
    }

    /// Returns whether there is a session with the peer, and no POLL has been unanswered for longer
    /// than the outage timeout.
    pub(super) fn is_answered(&self) -> bool {
        self.connected && self.session.as_ref().is_some_and(|session| !session.is_in_outage())
    }

    /// Handles a decrypted payload.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        streams: &mut Streams,
        (kind, payload): (Sealed, &[u8]),
    ) -> Result<(), ReceiveError> {
        if kind != Sealed::Data {
            self.mtu.handle(now, kind, payload, payload.len() + OVERHEAD);
            return Ok(());
        }
        // The first datagram under new keys may be empty.
        if payload.is_empty() {
            return Ok(());
        }
        let mut result = Ok(());
        self.select(now, streams);
        if let Some(session) = &mut self.session {
            result = session.handle_segment(now, payload, streams);
            if let Some(granted) = streams.take_granted() {
                session.set_granted_rate(Some(granted));
            }
            if streams.has_fresh() {
                session.wake();
            }
        }
        let is_late = result == Err(xstp::session::ReceiveError::OtherIncarnation);
        if let Some(ended) = &mut self.ended
            && (self.session.is_none() || is_late)
        {
            result = ended.handle_segment(now, payload, streams);
        }
        result.map_err(ReceiveError::Session)
    }

    /// Starts path MTU discovery for a session with a peer that announced `limits`.
    pub(super) fn begin_mtu_search(&mut self, limits: Limits) {
        if self.config.probe_mtu {
            self.mtu.begin(largest(&self.config, limits));
        }
        self.fit_mtu();
    }

    /// Fills `batch` with a path MTU message or with the session's segments, each sealed by `seal`,
    /// up to `most_bytes`. Returns whether the session was polled.
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        streams: &mut Streams,
        batch: &mut TransmitBatch<'_>,
        most_bytes: usize,
        mut seal: impl FnMut(Sealed, &mut [u8]) -> bool,
    ) -> bool {
        if self.transmit_mtu(now, batch, &mut seal)
            || self.transmit_late(now, streams, batch, &mut seal)
        {
            return false;
        }
        self.select(now, streams);
        let (mtu, most) = (self.mtu.current(), self.max_segment());
        let Some(session) = &mut self.session else { return false };
        fit(session, now, mtu, most);
        let mut bytes = 0;
        while bytes < most_bytes
            && let Some(slot) = batch.slot(session.max_segment() + OVERHEAD)
        {
            let Some(room) = slot.len().checked_sub(OVERHEAD) else { break };
            let payload = &mut slot[HEADER_LEN..HEADER_LEN + room];
            let Some(len) = session.poll_transmit(now, streams, payload) else { break };
            if !seal(Sealed::Data, &mut slot[..len + OVERHEAD]) {
                break;
            }
            batch.commit(len + OVERHEAD);
            bytes += len + OVERHEAD;
            self.mtu.data_sent(now, len + OVERHEAD + self.config.ip_overhead);
        }
        true
    }

    /// Adds the closed session's response to a late segment to `batch`, if one is due; returns
    /// whether it did.
    fn transmit_late(
        &mut self,
        now: Instant,
        streams: &mut Streams,
        batch: &mut TransmitBatch<'_>,
        seal: &mut impl FnMut(Sealed, &mut [u8]) -> bool,
    ) -> bool {
        const ROOM: usize = 64;
        let Some(ended) = &mut self.ended else { return false };
        let mut segment = [0; ROOM];
        let Some(len) = ended.poll_transmit(now, streams, &mut segment) else {
            return false;
        };
        let Some(slot) = batch.slot(len + OVERHEAD).filter(|slot| slot.len() == len + OVERHEAD)
        else {
            return false;
        };
        slot[HEADER_LEN..HEADER_LEN + len].copy_from_slice(&segment[..len]);
        if !seal(Sealed::Data, slot) {
            return false;
        }
        batch.commit(len + OVERHEAD);
        true
    }

    /// Adds a path MTU message to `batch`, if one is due; returns whether it did.
    fn transmit_mtu(
        &mut self,
        now: Instant,
        batch: &mut TransmitBatch<'_>,
        seal: &mut impl FnMut(Sealed, &mut [u8]) -> bool,
    ) -> bool {
        let conditions = self.conditions(now);
        let next = self.mtu.poll_transmit(now, &conditions);
        self.fit_mtu();
        if self.mtu.take_black_hole() {
            self.past.mtu_falls += 1;
            if let Some(session) = &mut self.session {
                session.exclude_mtu_losses(now);
            }
        }
        let Some(outgoing) = next else { return false };
        let room = PathMtu::room(outgoing, conditions.overhead);
        let len = room + OVERHEAD;
        let Some(slot) = batch.slot(len).filter(|slot| slot.len() == len) else {
            // It exceeds the driver's buffer, so it does not pass.
            if let Outgoing::Probe { size, .. } = outgoing {
                self.mtu.on_emsgsize(size);
            }
            return false;
        };
        let kind = PathMtu::write(outgoing, &mut slot[HEADER_LEN..HEADER_LEN + room]);
        if !seal(kind, slot) {
            return false;
        }
        batch.commit(len);
        self.past.mtu_probes += u64::from(kind == Sealed::Probe);
        if let Some(session) = &mut self.session {
            session.charge_external(now, room);
        }
        true
    }

    fn conditions(&self, now: Instant) -> Conditions {
        let session = self.session.as_ref().filter(|_| self.connected);
        let round_trip = session.and_then(Session::srtt);
        Conditions {
            round_trip: round_trip.unwrap_or(self.config.initial_rtt),
            rate: session.and_then(|session| session.rate(now)),
            back: self.config.receive_rate,
            overhead: self.config.ip_overhead + OVERHEAD,
        }
    }

    /// Returns when the path has something to do; `closed` if it sends no more Hellos.
    pub(super) fn poll_timeout(&self, closed: bool) -> Option<Instant> {
        let sessions = self.session.iter().chain(&self.ended);
        let session = sessions.filter_map(Session::poll_timeout).min();
        let terminal = self.terminal.as_ref().filter(|_| !closed);
        let hello = terminal.and_then(Terminal::poll_timeout);
        session.into_iter().chain(hello).chain(self.mtu.poll_timeout()).min()
    }

    /// Processes the timers of the session and of the streams that have expired by `now`.
    pub(super) fn handle_timeout(&mut self, now: Instant, streams: &mut Streams) {
        self.select(now, streams);
        if let Some(session) = &mut self.session {
            session.handle_timeout(now);
            streams.handle_timeout();
            if streams.has_fresh() {
                session.wake();
            }
        }
    }

    /// Returns the rate at which the peer can receive, as announced.
    pub(crate) fn peer_rate(&self) -> Option<BitRate> {
        self.peer.and_then(announced_rate)
    }

    /// Returns the path metrics that the present or last session has measured.
    pub(super) fn path_metrics(&self) -> Option<PathMetrics> {
        match &self.session {
            Some(session) => session.path_metrics(),
            None => self.path_metrics,
        }
    }

    /// Returns the totals of the sessions, including past ones.
    pub(super) fn totals(&self) -> Totals {
        let mut totals = self.past;
        if let Some(session) = &self.session {
            totals.add_session(session.statistics());
        }
        totals
    }

    /// Requests a POLL if there is an outage, which a new carrier or address may end.
    pub(super) fn request_poll(&mut self) {
        if let Some(session) = self.session.as_mut().filter(|session| session.is_in_outage()) {
            session.request_poll();
        }
    }

    fn max_segment(&self) -> usize {
        self.mtu.current() - self.config.ip_overhead - OVERHEAD
    }

    pub(super) fn fit_mtu(&mut self) {
        let bytes = self.max_segment();
        if let Some(session) = &mut self.session {
            session.set_max_segment(bytes);
        }
    }

    pub(super) fn wake(&mut self) {
        if let Some(session) = &mut self.session {
            session.wake();
        }
    }
}

/// Limits the packet size on a slow link to the octets sent in one second, as far as the headers
/// allow it, because urgent packets wait for the one in transmission.
fn fit(session: &mut Session, now: Instant, mtu: usize, most: usize) {
    const LONGEST: Span = Span::from_secs(1);
    let Some(rate) = session.rate(now) else { return };
    let fits = usize::try_from(rate.bytes_in(LONGEST)).unwrap_or(usize::MAX).max(crate::MIN_MTU);
    session.set_max_segment(most.saturating_sub(mtu.saturating_sub(fits)));
}
