//! One end of a relay: the streams and the session with one peer.

use crate::config::RelayConfig;
use crate::path_mtu::{Conditions, Outgoing, PathMtu};
use crate::session::{association_config, largest, session_config};
use crate::streams::Streams;
use crate::tap::{Direction, Tap};
use crate::{DisconnectReason, Event, Families, PathMetrics, Totals, Transmit, TransmitBatch};
use association::{
    Entropy, HEADER_LEN, Limits, OVERHEAD, Sealed, SendOrder, TAG_LEN, Terminal, TerminalReceived,
};
use core::fmt;
use session_order::SessionOrder;
use units::{Instant, Span};
use xstp::session::Session;

mod ending;
mod session_order;
mod settings;
mod shared_link;
mod status;
mod verbs;

pub use status::RelayStatus;

/// Reason for rejecting a datagram. It was counted; nothing else has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReceiveError {
    /// Rejected by the association.
    Association(association::OpenError),
    /// Rejected by the session.
    Session(xstp::session::ReceiveError),
}

impl fmt::Display for ReceiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Association(error) => write!(f, "association: {error}"),
            Self::Session(error) => write!(f, "session: {error}"),
        }
    }
}

impl std::error::Error for ReceiveError {}

/// Streams with one peer, over successive sessions.
///
/// A terminal's relay is driven directly; those of a hub by the [`Hub`](crate::Hub). The functions
/// for streams are the same at both ends.
#[derive(Debug)]
pub struct Relay {
    config: RelayConfig,
    /// A terminal's association; at a hub all associations are in the [`Hub`](crate::Hub).
    terminal: Option<Terminal>,
    session: Option<Session>,
    /// The previous session, closed, while it responds to late segments.
    ended: Option<Session>,
    /// The limits that the peer has announced.
    peer: Option<Limits>,
    /// Set while a hub's data waits for its turn on the link.
    is_held: bool,
    /// The peer's announcement that no session follows.
    peer_left: Option<ending::Left>,
    /// The address families that a hub announces in each session.
    families: Families,
    /// A terminal's report, which is sent in each session.
    report: Vec<u8>,
    /// Filter for segments of an earlier session in the association.
    order: SessionOrder,
    /// Number of sessions started.
    incarnation: u32,
    path: PathMtu,
    /// Path metrics of the last session, if it measured them.
    path_metrics: Option<PathMetrics>,
    /// Path metrics for the start of the next session, of this relay or of an earlier process.
    cached_metrics: Option<PathMetrics>,
    /// RTT of the handshake of the association, at a hub.
    handshake_rtt: Option<Span>,
    pub(crate) streams: Streams,
    connected: bool,
    connected_since: Option<Instant>,
    /// When a datagram of the peer was last decrypted.
    heard: Option<Instant>,
    /// Receives copies of a terminal's payloads.
    tap: Option<Box<Tap>>,
    /// Set until the `Connected` event is reported, which precedes those of the first segment.
    connected_news: bool,
    disconnected: Option<DisconnectReason>,
    /// The session is to end in order, and no other is started.
    draining: bool,
    /// Closed by this side: no session is started.
    closed: bool,
    /// Totals of past sessions.
    past: Totals,
}

/// Construction, input and output.
impl Relay {
    /// Creates a terminal's relay, whose Hello is due at `now`. Streams can be opened immediately;
    /// they wait for the hub.
    ///
    /// # Panics
    /// Panics if the configuration has keys, but none of a hub.
    pub fn terminal(config: &RelayConfig, now: Instant, entropy: impl Entropy + 'static) -> Self {
        let association = association_config(config);
        let terminal = Terminal::new(association, now, entropy);
        Self::new(config, Some(terminal), false, now)
    }

    /// Creates a hub's relay with a terminal that announced `limits`, with the path metrics `cached`
    /// of an earlier session. The handshake of the association took `handshake_rtt`.
    pub(crate) fn peer(
        config: &RelayConfig,
        limits: Limits,
        cached: Option<PathMetrics>,
        handshake_rtt: Option<Span>,
        now: Instant,
    ) -> Self {
        let relay = Self::new(config, None, true, now);
        let mut relay = Self { cached_metrics: cached, handshake_rtt, ..relay };
        relay.peer = Some(limits);
        relay.streams.set_peer(limits, relay.sends_padding());
        let session = session_config(config, limits, relay.cached_metrics);
        relay.session = Some(Session::listen(&session));
        relay.begin_path(limits);
        relay
    }

    fn new(config: &RelayConfig, terminal: Option<Terminal>, is_hub: bool, now: Instant) -> Self {
        Self {
            config: config.clone(),
            terminal,
            session: None,
            ended: None,
            order: SessionOrder::default(),
            peer: None,
            is_held: false,
            peer_left: None,
            families: Families::default(),
            report: Vec::new(),
            incarnation: 0,
            path: PathMtu::new(config.mtu),
            path_metrics: None,
            cached_metrics: config.path_metrics,
            handshake_rtt: None,
            streams: Streams::new(config, is_hub, now),
            connected: false,
            connected_since: None,
            heard: None,
            tap: None,
            connected_news: false,
            disconnected: None,
            draining: false,
            closed: false,
            past: Totals::default(),
        }
    }

    /// Returns whether a datagram from the hub belongs to this terminal's association, or to a
    /// handshake for it, judged by its index alone.
    pub fn is_addressed(&self, datagram: &[u8]) -> bool {
        self.terminal.as_ref().is_some_and(|terminal| terminal.is_addressed(datagram))
    }

    /// Handles a datagram from the hub.
    ///
    /// # Errors
    /// Returns an error if it is truncated, a replay, or not from the hub; also at a hub's relay,
    /// whose datagrams are handled by the hub.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        datagram: &mut [u8],
    ) -> Result<(), ReceiveError> {
        let Some(terminal) = &mut self.terminal else {
            return Err(ReceiveError::Association(association::OpenError::Unexpected));
        };
        match terminal.handle_datagram(now, datagram).map_err(ReceiveError::Association)? {
            TerminalReceived::Payload { kind, payload, order } => {
                self.heard = Some(now);
                // Ends the borrow of the association, since the range of the payload is known.
                let payload: &[u8] = payload;
                if let Some(tap) = self.tap.as_mut().filter(|_| kind == Sealed::Data) {
                    tap.take(now, (None, &self.config.name), Direction::In, payload);
                }
                if kind == Sealed::Data && self.order.is_earlier(order, payload) {
                    return Ok(());
                }
                let sessions = (&mut self.session, &mut self.ended);
                let streams = (&mut self.streams, &mut self.path);
                let result = Self::receive(sessions, streams, now, kind, payload);
                self.take_session_events(now);
                if self.connected && self.order.awaits_begin_ack() {
                    self.order.on_begun(order);
                }
                result?;
            }
            TerminalReceived::Established if !self.closed => self.begin(now),
            TerminalReceived::Established => {}
            TerminalReceived::Registered { .. } | TerminalReceived::Nothing => {}
        }
        Ok(())
    }

    /// Handles a decrypted payload.
    pub(crate) fn handle_payload(
        &mut self,
        now: Instant,
        (kind, order): (Sealed, SendOrder),
        payload: &[u8],
    ) -> Result<(), ReceiveError> {
        self.heard = Some(now);
        if kind == Sealed::Data {
            self.begin_anew(now, order, payload);
            if self.order.is_earlier(order, payload) {
                return Ok(());
            }
        }
        let sessions = (&mut self.session, &mut self.ended);
        let streams = (&mut self.streams, &mut self.path);
        let result = Self::receive(sessions, streams, now, kind, payload);
        self.take_session_events(now);
        result
    }

    fn receive(
        (session, ended): (&mut Option<Session>, &mut Option<Session>),
        (streams, path): (&mut Streams, &mut PathMtu),
        now: Instant,
        kind: Sealed,
        payload: &[u8],
    ) -> Result<(), ReceiveError> {
        if kind != Sealed::Data {
            path.handle(now, kind, payload, payload.len() + OVERHEAD);
            return Ok(());
        }
        // The first datagram under new keys may be empty.
        if payload.is_empty() {
            return Ok(());
        }
        let mut result = Ok(());
        if let Some(session) = session {
            streams.set_time(now, session.srtt(), session.rate(now));
            result = session.handle_segment(now, payload, streams);
            if let Some(granted) = streams.take_granted() {
                session.set_granted_rate(Some(granted));
            }
            if streams.has_fresh() {
                session.wake();
            }
        }
        let is_late = result == Err(xstp::session::ReceiveError::OtherIncarnation);
        if let Some(ended) = ended
            && (session.is_none() || is_late)
        {
            result = ended.handle_segment(now, payload, streams);
        }
        result.map_err(ReceiveError::Session)
    }

    /// Starts with a new association: the streams of an old session are reset, and those that
    /// waited for the first session belong to it.
    fn begin(&mut self, now: Instant) {
        let limits = self.terminal.as_ref().and_then(Terminal::hub_limits);
        let Some(limits) = limits else { return };
        if self.session.is_some() {
            self.lose(now, DisconnectReason::PeerRestarted);
        }
        self.ended = None;
        self.begin_session(now, limits);
        self.order = SessionOrder::default();
    }

    /// Starts path MTU discovery for a session with a peer that announced `limits`.
    fn begin_path(&mut self, limits: Limits) {
        if self.config.probe_mtu {
            self.path.begin(largest(&self.config, limits));
        }
        self.fit_path();
    }

    /// Fills `batch` with due datagrams; `None` if there are none.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        batch: &mut TransmitBatch<'_>,
    ) -> Option<Transmit> {
        let mut terminal = self.terminal.take()?;
        let hello = !self.closed && terminal.poll_transmit(now, batch);
        if !hello && terminal.is_established() {
            let mut tap = self.tap.take().map(|tap| (tap, self.config.name.clone()));
            self.transmit(now, batch, usize::MAX, |kind, datagram| {
                if let Some((tap, name)) = tap.as_mut().filter(|_| kind == Sealed::Data) {
                    tap.take(now, (None, name), Direction::Out, payload_of(datagram));
                }
                terminal.seal(now, kind, datagram)
            });
            self.tap = tap.map(|(tap, _)| tap);
        }
        self.terminal = Some(terminal);
        batch.transmit()
    }

    /// Fills `batch` with a path MTU message or with the session's segments, each sealed by `seal`,
    /// up to `most` bytes.
    pub(crate) fn transmit(
        &mut self,
        now: Instant,
        batch: &mut TransmitBatch<'_>,
        most_bytes: usize,
        mut seal: impl FnMut(Sealed, &mut [u8]) -> bool,
    ) {
        if self.transmit_path(now, batch, &mut seal) {
            return;
        }
        if self.transmit_late(now, batch, &mut seal) {
            return;
        }
        let (mtu, most) = (self.path.current(), self.max_segment());
        let Some(session) = &mut self.session else { return };
        fit(session, now, mtu, most);
        self.streams.set_time(now, session.srtt(), session.rate(now));
        let mut bytes = 0;
        while bytes < most_bytes
            && let Some(slot) = batch.slot(session.max_segment() + OVERHEAD)
        {
            let Some(room) = slot.len().checked_sub(OVERHEAD) else { break };
            let payload = &mut slot[HEADER_LEN..HEADER_LEN + room];
            let Some(len) = session.poll_transmit(now, &mut self.streams, payload) else { break };
            if !seal(Sealed::Data, &mut slot[..len + OVERHEAD]) {
                break;
            }
            batch.commit(len + OVERHEAD);
            bytes += len + OVERHEAD;
            self.path.data_sent(now, len + OVERHEAD + self.config.ip_overhead);
        }
        self.take_session_events(now);
    }

    /// Adds the closed session's response to a late segment to `batch`, if one is due; returns
    /// whether it did.
    fn transmit_late(
        &mut self,
        now: Instant,
        batch: &mut TransmitBatch<'_>,
        seal: &mut impl FnMut(Sealed, &mut [u8]) -> bool,
    ) -> bool {
        const ROOM: usize = 64;
        let Some(ended) = &mut self.ended else { return false };
        let mut segment = [0; ROOM];
        let Some(len) = ended.poll_transmit(now, &mut self.streams, &mut segment) else {
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
    fn transmit_path(
        &mut self,
        now: Instant,
        batch: &mut TransmitBatch<'_>,
        seal: &mut impl FnMut(Sealed, &mut [u8]) -> bool,
    ) -> bool {
        let way = self.conditions(now);
        let next = self.path.poll_transmit(now, &way);
        self.fit_path();
        if self.path.take_black_hole() {
            self.past.mtu_falls += 1;
            if let Some(session) = &mut self.session {
                session.exclude_mtu_losses(now);
            }
        }
        let Some(outgoing) = next else { return false };
        let room = PathMtu::room(outgoing, way.overhead);
        let len = room + OVERHEAD;
        let Some(slot) = batch.slot(len).filter(|slot| slot.len() == len) else {
            // It exceeds the driver's buffer, so it does not pass.
            if let Outgoing::Probe { size, .. } = outgoing {
                self.path.on_emsgsize(size);
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

    /// Returns when [`handle_timeout`](Self::handle_timeout) and
    /// [`poll_transmit`](Self::poll_transmit) have something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let sessions = self.session.iter().chain(&self.ended);
        let session = sessions.filter_map(Session::poll_timeout).min();
        let terminal = self.terminal.as_ref().filter(|_| !self.closed);
        let hello = terminal.and_then(Terminal::poll_timeout);
        let streams = self.session.as_ref().and_then(|_| self.streams.poll_timeout());
        let path = self.path.poll_timeout();
        session.into_iter().chain(hello).chain(streams).chain(path).min()
    }

    /// Processes the timers that have expired by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(session) = &mut self.session {
            self.streams.set_time(now, session.srtt(), session.rate(now));
            session.handle_timeout(now);
            self.streams.handle_timeout();
            if self.streams.has_fresh() {
                session.wake();
            }
        }
        self.take_session_events(now);
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some(reason) = self.disconnected.take() {
            return Some(Event::Disconnected { reason });
        }
        if core::mem::take(&mut self.connected_news) {
            return Some(Event::Connected);
        }
        self.streams.poll_event()
    }

    /// Returns the reason for the end of the session, once.
    pub(crate) fn take_disconnected(&mut self) -> Option<DisconnectReason> {
        self.disconnected.take()
    }

    /// Handles a change of the peer's address.
    pub(crate) fn on_path_change(&mut self) {
        self.path.on_path_change();
    }

    fn max_segment(&self) -> usize {
        self.path.current() - self.config.ip_overhead - OVERHEAD
    }

    fn fit_path(&mut self) {
        let bytes = self.max_segment();
        if let Some(session) = &mut self.session {
            session.set_max_segment(bytes);
        }
    }

    fn wake(&mut self) {
        if let Some(session) = &mut self.session {
            session.wake();
        }
    }
}

/// Returns the bytes between header and tag.
pub(crate) fn payload_of(datagram: &[u8]) -> &[u8] {
    datagram.get(HEADER_LEN..datagram.len().saturating_sub(TAG_LEN)).unwrap_or_default()
}

/// Limits the packet size on a slow link to the octets sent in one second, as far as the headers
/// allow it, because urgent packets wait for the one in transmission.
fn fit(session: &mut Session, now: Instant, mtu: usize, most: usize) {
    const LONGEST: Span = Span::from_secs(1);
    let Some(rate) = session.rate(now) else { return };
    let fits = usize::try_from(rate.bytes_in(LONGEST)).unwrap_or(usize::MAX).max(crate::MIN_MTU);
    session.set_max_segment(most.saturating_sub(mtu.saturating_sub(fits)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OpenError, Priority, StreamId, Target};
    use units::BitRate;
    use units::RngStream;

    /// Exchanges Hello and Welcome.
    fn greet(relay: &mut Relay, hub: &mut association::Hub, now: Instant) {
        let from = "192.0.2.1:4500".parse().expect("address");
        let mut buffer = [0; 1500];
        let mut batch = TransmitBatch::new(&mut buffer, 1);
        relay.poll_transmit(now, &mut batch).expect("a Hello");
        let mut hello = batch.datagrams().next().expect("one").to_vec();
        hub.handle_datagram(now, from, &mut hello).expect("taken");
        batch.clear();
        hub.poll_transmit(&mut batch).expect("a Welcome");
        let mut welcome = batch.datagrams().next().expect("one").to_vec();
        relay.handle_datagram(now, &mut welcome).expect("taken");
    }

    /// RLY-1.1
    #[test]
    fn exhausted_stream_numbers_cause_a_new_session() {
        let config = RelayConfig::new("boat");
        let now = Instant::ZERO + Span::from_secs(1);
        let mut relay = Relay::terminal(&config, now, RngStream::new(1, 0, "terminal"));
        let mut hub = association::Hub::new(association_config(&config), RngStream::new(1, 0, "h"));
        greet(&mut relay, &mut hub, now);
        relay.streams.use_up_numbers();
        let open = |relay: &mut Relay| relay.open(now, Target::name("x", 1), Priority::Normal);
        assert_eq!(open(&mut relay), Err(OpenError::Numbers));
        greet(&mut relay, &mut hub, now + Span::from_secs(1));
        let reason = DisconnectReason::PeerRestarted;
        assert_eq!(relay.poll_event(), Some(Event::Disconnected { reason }));
        assert_eq!(open(&mut relay), Ok(StreamId::new(0, false)));
    }

    #[test]
    fn cached_metrics_start_a_session_and_are_not_measurements() {
        let rate = BitRate::from_mbps(3);
        let path_metrics = Some(PathMetrics { rate, min_rtt: Span::from_millis(500) });
        let config = RelayConfig { path_metrics, ..RelayConfig::new("boat") };
        let now = Instant::ZERO + Span::from_secs(1);
        let mut relay = Relay::terminal(&config, now, RngStream::new(1, 0, "terminal"));
        let mut hub = association::Hub::new(association_config(&config), RngStream::new(1, 0, "h"));
        greet(&mut relay, &mut hub, now);
        assert_eq!(relay.rate(now), Some(rate));
        assert_eq!(relay.path_metrics(), None, "nothing was measured yet");
        relay.lose(now, DisconnectReason::NoResponse);
        assert_eq!(
            (relay.path_metrics(), relay.cached_metrics),
            (None, path_metrics),
            "nor in that session"
        );
    }

    /// XSTP-14.2.7
    #[test]
    fn a_hub_sends_padding_unless_the_handshake_took_long() {
        let config = RelayConfig { probe_rate: true, ..RelayConfig::new("hub") };
        let now = Instant::ZERO + Span::from_secs(5);
        for (millis, expected) in [(600, true), (1_000, true), (1_001, false)] {
            let rtt = Some(Span::from_millis(millis));
            let relay = Relay::peer(&config, config.limits(), None, rtt, now);
            assert_eq!(relay.sends_padding(), expected, "{millis} ms");
        }
        let terminal = Relay::terminal(&config, now, RngStream::new(1, 0, "terminal"));
        assert!(!terminal.sends_padding());
    }
}
