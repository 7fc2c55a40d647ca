//! One end of a relay: the streams and the session with one peer.

use crate::config::RelayConfig;
use crate::session::association_config;
use crate::streams::Streams;
use crate::tap::{Direction, Tap};
use crate::{DisconnectReason, Event, Families, PathMetrics, Totals, Transmit, TransmitBatch};
use association::{
    Entropy, HEADER_LEN, Limits, Sealed, SendOrder, TAG_LEN, Terminal, TerminalReceived,
};
use core::fmt;
pub(crate) use path::Path;
use session_order::SessionOrder;
use slab::Slab;
use units::{Instant, Span};

mod ending;
mod joining;
mod path;
mod session_order;
mod settings;
mod shared_link;
mod status;
mod verbs;
mod view;

pub use status::RelayStatus;
pub use view::PathView;

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
    /// The paths to the peer, by number.
    paths: Slab<Path>,
    /// The address families that a hub announces in each session.
    families: Families,
    /// A terminal's report, which is sent in each session.
    report: Vec<u8>,
    pub(crate) streams: Streams,
    is_hub: bool,
    /// Receives copies of a terminal's payloads.
    tap: Option<Box<Tap>>,
    /// Set until the `Connected` event is reported, which precedes those of the first segment.
    connected_news: bool,
    disconnected: Option<DisconnectReason>,
    /// The session is to end in order, and no other is started.
    draining: bool,
    /// Closed by this side: no session is started.
    closed: bool,
    /// Totals of past streams.
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
        Self::new(Path::new(0, config, Some(terminal)), false, now)
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
        let path = Path::listening(0, config, limits, cached, handshake_rtt);
        let sends_padding = path.sends_padding();
        let mut relay = Self::new(path, true, now);
        relay.streams.set_peer(limits, sends_padding);
        relay
    }

    fn new(path: Path, is_hub: bool, now: Instant) -> Self {
        Self {
            streams: Streams::new(&path.config, is_hub, now),
            paths: [(0, path)].into_iter().collect(),
            families: Families::default(),
            report: Vec::new(),
            is_hub,
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
        self.is_addressed_on(0, datagram)
    }

    /// As [`is_addressed`](Self::is_addressed), for the path with this number.
    pub fn is_addressed_on(&self, number: usize, datagram: &[u8]) -> bool {
        let terminal = self.paths.get(number).and_then(|path| path.terminal.as_ref());
        terminal.is_some_and(|terminal| terminal.is_addressed(datagram))
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
        self.handle_datagram_on(now, 0, datagram)
    }

    /// Handles a datagram from the hub on the path with this number.
    ///
    /// # Errors
    /// As [`handle_datagram`](Self::handle_datagram), and if there is no such path.
    pub fn handle_datagram_on(
        &mut self,
        now: Instant,
        number: usize,
        datagram: &mut [u8],
    ) -> Result<(), ReceiveError> {
        let path = self.paths.get_mut(number);
        let Some(path) = path.filter(|path| path.terminal.is_some()) else {
            return Err(ReceiveError::Association(association::OpenError::Unexpected));
        };
        let Some(terminal) = &mut path.terminal else { return Ok(()) };
        match terminal.handle_datagram(now, datagram).map_err(ReceiveError::Association)? {
            TerminalReceived::Payload { kind, payload, order } => {
                path.heard = Some(now);
                if let Some(tap) = self.tap.as_mut().filter(|_| kind == Sealed::Data) {
                    tap.take(now, ((None, number), &path.config.name), Direction::In, payload);
                }
                if kind == Sealed::Data && path.order.is_earlier(order, payload) {
                    return Ok(());
                }
                let result = path.receive(now, &mut self.streams, (kind, payload));
                self.take_session_events(now, number);
                self.wake_others();
                let path = &mut self.paths[number];
                if path.connected && path.order.awaits_begin_ack() {
                    path.order.on_begun(order);
                }
                result?;
            }
            TerminalReceived::Established if !self.closed => self.begin(now, number),
            TerminalReceived::Established => {}
            TerminalReceived::Registered { .. } | TerminalReceived::Nothing => {}
        }
        Ok(())
    }

    /// Handles a decrypted payload.
    pub(crate) fn handle_payload(
        &mut self,
        now: Instant,
        number: usize,
        (kind, order): (Sealed, SendOrder),
        payload: &[u8],
    ) -> Result<(), ReceiveError> {
        self.paths[number].heard = Some(now);
        if kind == Sealed::Data {
            self.begin_anew(now, number, order, payload);
            if self.paths[number].order.is_earlier(order, payload) {
                return Ok(());
            }
        }
        let result = self.paths[number].receive(now, &mut self.streams, (kind, payload));
        self.take_session_events(now, number);
        self.wake_others();
        result
    }

    /// Starts with a new association. If the hub has joined it to another path, the streams of that
    /// continue. Otherwise the streams of an old session are reset, and those that waited for the
    /// first session belong to it.
    fn begin(&mut self, now: Instant, number: usize) {
        let Some(terminal) = &self.paths[number].terminal else { return };
        let Some(limits) = terminal.hub_limits() else { return };
        match (self.has_others(number), terminal.joined()) {
            (true, (_, true)) => {
                if self.paths[number].session.is_some() {
                    self.leave(number);
                }
            }
            // The hub has joined it to streams that have ended here meanwhile.
            (false, (_, true)) => return self.request_joins(now),
            (true, (_, false)) if !self.is_connected() && self.paths[number].session.is_none() => {
                if !self.replace_unanswered(now) {
                    return self.request_joins(now);
                }
            }
            // The first session has begun on another path meanwhile.
            (true, (false, _)) if self.paths[number].session.is_none() => {
                return self.request_joins(now);
            }
            // The hub does not join paths, or has restarted, which the other paths detect as well.
            (true, (true, false)) if self.paths[number].session.is_none() => return,
            (_, (_, false)) => {
                if self.has_others(usize::MAX) {
                    self.lose(now, number, DisconnectReason::PeerRestarted);
                }
            }
        }
        let path = &mut self.paths[number];
        path.ended = None;
        path.association = path.terminal.as_ref().and_then(Terminal::association);
        self.begin_session(now, number, limits);
        self.paths[number].order = SessionOrder::default();
        self.request_joins(now);
    }

    /// Fills `batch` with due datagrams; `None` if there are none.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        batch: &mut TransmitBatch<'_>,
    ) -> Option<Transmit> {
        self.poll_transmit_on(now, 0, batch)
    }

    /// Fills `batch` with due datagrams of the path with this number; `None` if there are none.
    pub fn poll_transmit_on(
        &mut self,
        now: Instant,
        number: usize,
        batch: &mut TransmitBatch<'_>,
    ) -> Option<Transmit> {
        let mut terminal = self.paths.get_mut(number)?.terminal.take()?;
        let hello = !self.closed && terminal.poll_transmit(now, batch);
        if !hello && terminal.is_established() {
            let name = || self.paths[number].config.name.clone();
            let mut tap = self.tap.take().map(|tap| (tap, name()));
            self.transmit(now, number, batch, usize::MAX, |kind, datagram| {
                if let Some((tap, name)) = tap.as_mut().filter(|_| kind == Sealed::Data) {
                    tap.take(now, ((None, number), name), Direction::Out, payload_of(datagram));
                }
                terminal.seal(now, kind, datagram)
            });
            self.tap = tap.map(|(tap, _)| tap);
        }
        self.paths[number].terminal = Some(terminal);
        batch.transmit()
    }

    /// Fills `batch` with the datagrams of a path: see [`Path::transmit`].
    pub(crate) fn transmit(
        &mut self,
        now: Instant,
        number: usize,
        batch: &mut TransmitBatch<'_>,
        most_bytes: usize,
        seal: impl FnMut(Sealed, &mut [u8]) -> bool,
    ) {
        if self.paths[number].transmit(now, &mut self.streams, batch, most_bytes, seal) {
            self.take_session_events(now, number);
            // If nothing was sent, no other path has anything new to send either.
            if batch.transmit().is_some() {
                self.wake_others();
            }
        }
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) and
    /// [`poll_transmit`](Self::poll_transmit) have something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.paths.iter().filter_map(|(number, _)| self.poll_timeout_on(number)).min()
    }

    /// As [`poll_timeout`](Self::poll_timeout), for the path with this number.
    pub fn poll_timeout_on(&self, number: usize) -> Option<Instant> {
        let path = self.paths.get(number)?;
        let streams = path.session.as_ref().and_then(|_| self.streams.poll_timeout());
        path.poll_timeout(self.closed).into_iter().chain(streams).min()
    }

    /// Processes the timers that have expired by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        for number in 0..self.paths.capacity() {
            if let Some(path) = self.paths.get_mut(number) {
                path.handle_timeout(now, &mut self.streams);
                self.take_session_events(now, number);
            }
        }
        self.wake_others();
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
    pub(crate) fn on_path_change(&mut self, number: usize) {
        self.paths[number].mtu.on_path_change();
        self.paths[number].request_poll();
    }

    /// Notifies the sessions of data to send.
    fn wake(&mut self) {
        self.paths.iter_mut().for_each(|(_, path)| path.wake());
    }
}

/// Returns the bytes between header and tag.
pub(crate) fn payload_of(datagram: &[u8]) -> &[u8] {
    datagram.get(HEADER_LEN..datagram.len().saturating_sub(TAG_LEN)).unwrap_or_default()
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
        relay.lose(now, 0, DisconnectReason::NoResponse);
        assert_eq!(
            (relay.path_metrics(), relay.paths[0].cached_metrics),
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
            assert_eq!(relay.paths[0].sends_padding(), expected, "{millis} ms");
        }
        let terminal = Relay::terminal(&config, now, RngStream::new(1, 0, "terminal"));
        assert!(!terminal.paths[0].sends_padding());
    }
}
