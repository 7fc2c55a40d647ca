//! What the layer above does with a relay's streams, and what it may know.

use super::Relay;
use crate::{
    Families, OpenError, Owner, PathMetrics, Priority, RefuseReason, ResetReason, Service,
    Statistics, StreamError, StreamId, Target, Totals, health,
};
use association::Terminal;
use units::{BitRate, Instant, Span};
use xstp::session::{Session, Snapshot};

/// Streams.
impl Relay {
    /// For fuzzing: as [`terminal`](Self::terminal), but what it announces is no word of what it does.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn announcing(
        limits: association::Limits,
        config: &crate::RelayConfig,
        now: Instant,
        entropy: impl association::Entropy + 'static,
    ) -> Self {
        let association =
            association::Config { limits, ..crate::session::association_config(config) };
        Self::new(config, Some(Terminal::new(association, now, entropy)), false, now)
    }

    /// Opens a stream to `target`. The opening goes with the next packet, and with it what has
    /// been written by then.
    ///
    /// Each session numbers its streams anew, so events are polled first:
    /// [`Event::Disconnected`](crate::Event::Disconnected) tells that those of the last are gone.
    ///
    /// # Errors
    /// When too many are open, or the target's name cannot be sent; and when the session's numbers
    /// are used up, which makes a terminal ask for a new association.
    pub fn open(
        &mut self,
        now: Instant,
        target: Target,
        priority: Priority,
    ) -> Result<StreamId, OpenError> {
        let opened = self.streams.open(now, target, priority);
        if opened == Err(OpenError::Numbers)
            && let Some(terminal) = &mut self.terminal
        {
            terminal.restart(now);
        }
        self.wake();
        opened
    }

    /// Puts the stream on the account of `owner`: buffer, credit and the link are divided among
    /// owners first, and then among the streams of each. Of a stream that is gone nothing is
    /// changed.
    pub fn set_owner(&mut self, stream: StreamId, owner: Owner) {
        self.streams.set_owner(stream, owner);
    }

    /// Tells the peer that the server has been connected to.
    ///
    /// # Errors
    /// When the stream is gone.
    pub fn accept(&mut self, stream: StreamId) -> Result<(), StreamError> {
        self.streams.accept(stream)?;
        self.wake();
        Ok(())
    }

    /// Tells the peer that the server could not be connected to; the stream is gone.
    ///
    /// # Errors
    /// When it was gone before.
    pub fn refuse(&mut self, stream: StreamId, reason: RefuseReason) -> Result<(), StreamError> {
        self.streams.refuse(stream, reason)?;
        self.wake();
        Ok(())
    }

    /// Cuts the stream off in both directions; it is gone.
    ///
    /// # Errors
    /// When it was gone before.
    pub fn reset(&mut self, stream: StreamId, reason: ResetReason) -> Result<(), StreamError> {
        self.streams.reset(stream, reason)?;
        self.wake();
        Ok(())
    }

    /// Bytes that [`write`](Self::write) would take now. When they are few,
    /// [`Event::Writable`](crate::Event::Writable) tells of more.
    pub fn room(&mut self, stream: StreamId) -> usize {
        self.streams.room(stream)
    }

    /// As [`room`](Self::room), or 0 as long as there is less than is worth a system call; then
    /// [`Event::Writable`](crate::Event::Writable) follows when there is more.
    pub fn ample_room(&mut self, stream: StreamId) -> usize {
        self.streams.ample_room(stream)
    }

    /// Takes as much of `data` as there is room for; returns how much. When that is not all,
    /// [`Event::Writable`](crate::Event::Writable) follows.
    ///
    /// # Errors
    /// When the stream is gone, or this side has ended its half.
    pub fn write(
        &mut self,
        now: Instant,
        stream: StreamId,
        data: &[u8],
    ) -> Result<usize, StreamError> {
        let taken = self.streams.write(now, stream, data)?;
        self.wake();
        Ok(taken)
    }

    /// Ends this side's half after what has been written; the other half goes on.
    ///
    /// # Errors
    /// When the stream is gone, or this side has ended its half before.
    pub fn end(&mut self, stream: StreamId) -> Result<(), StreamError> {
        self.streams.end(stream)?;
        self.wake();
        Ok(())
    }

    /// Bytes that were written and that the peer is not known to have; none when the stream is
    /// gone. A reset throws them away.
    pub fn held(&self, stream: StreamId) -> u64 {
        self.streams.held(stream)
    }

    /// Bytes that were written and were never in a packet; none when the stream is gone.
    pub fn unsent(&self, stream: StreamId) -> u64 {
        self.streams.unsent(stream)
    }

    /// Whether bytes of the stream are on the link or may be sent, so that nothing but the link keeps
    /// them from the peer.
    pub fn waits_for_link(&self, stream: StreamId) -> bool {
        self.streams.waits_for_link(stream)
    }

    /// The next bytes in order, as far as they lie in one piece; empty when there are none.
    pub fn peek(&self, stream: StreamId) -> &[u8] {
        self.streams.peek(stream)
    }

    /// The next bytes in order, in as many pieces as `pieces` has room for. Those that are not
    /// needed stay as they are.
    pub fn peek_pieces<'a>(&'a self, stream: StreamId, pieces: &mut [&'a [u8]]) {
        self.streams.peek_pieces(stream, pieces);
    }

    /// Frees the first `len` bytes of what [`peek`](Self::peek) showed, which makes room for
    /// more.
    ///
    /// # Errors
    /// When the stream is gone.
    ///
    /// # Panics
    /// When there are fewer bytes.
    pub fn consume(
        &mut self,
        now: Instant,
        stream: StreamId,
        len: usize,
    ) -> Result<(), StreamError> {
        self.streams.consume(now, stream, len)
    }

    /// Carries an IP packet as it is: it goes in its turn, with a bounded wait, and is not sent
    /// again when it is lost. False when there is no session; then it is gone.
    pub fn send_datagram(&mut self, now: Instant, packet: &[u8]) -> bool {
        self.send_datagram_as(now, packet, (Owner::default(), None))
    }

    /// As [`send_datagram`](Self::send_datagram), on behalf of an owner, and served as told and not
    /// as its DSCP asks.
    pub fn send_datagram_as(
        &mut self,
        now: Instant,
        packet: &[u8],
        (owner, service): (Owner, Option<Service>),
    ) -> bool {
        if !self.connected {
            return false;
        }
        self.streams.send_datagram(now, packet, (owner, service));
        self.wake();
        true
    }

    /// Serves what this side sends on the stream as told from now on, whatever priority it was
    /// opened with. Of a stream that is gone nothing is changed.
    pub fn set_service(&mut self, stream: StreamId, service: Service) {
        self.streams.set_service(stream, service);
    }

    /// The next IP packet that the peer has carried here as it was.
    pub fn take_datagram(&mut self) -> Option<Vec<u8>> {
        self.streams.datagrams.take()
    }

    /// When the peer has last carried an IP packet here, in this session.
    pub fn datagram_came(&self) -> Option<Instant> {
        self.streams.datagrams.came()
    }

    /// Whether [`take_datagram`](Self::take_datagram) has one.
    pub fn has_datagram(&self) -> bool {
        self.streams.datagrams.has_received()
    }

    /// Whether there is a session with the peer.
    pub fn is_connected(&self) -> bool {
        self.connected
    }

    /// Whether the peer answers: there is a session, and no POLL of it has waited for longer than
    /// round trips explain. While it is false nothing arrives, and nothing is lost either.
    pub fn is_answered(&self) -> bool {
        self.connected && self.session.as_ref().is_some_and(|session| !session.is_in_outage())
    }

    /// What is seen of the way to the peer, to judge its [health](crate::health).
    pub fn seen(&self) -> health::Seen {
        let counted = self.session.as_ref().map(Session::statistics);
        health::Seen {
            answered: self.is_answered(),
            round_trip: self.round_trip(),
            sent: counted.map_or(0, |counted| counted.data_sent),
            sent_again: counted.map_or(0, |counted| counted.data_retransmitted),
        }
    }

    /// What the hub has granted to this terminal, where it shares a return link by grants.
    pub fn granted(&self) -> Option<BitRate> {
        self.streams.granted()
    }

    /// The address families that the hub has announced to this terminal in this session. `None`
    /// when it has announced nothing, which means that it reaches both.
    pub fn families(&self) -> Option<Families> {
        self.streams.families()
    }

    /// The smoothed round trip, once one was measured.
    pub fn round_trip(&self) -> Option<Span> {
        self.session.as_ref().and_then(Session::srtt)
    }

    /// The smoothed round trip, or the configured one before any was measured.
    pub fn expected_round_trip(&self) -> Span {
        self.round_trip().unwrap_or(self.config.initial_rtt)
    }

    /// What the session, or the last one while there is none, has measured on the path: to be
    /// cached for the next one. Metrics that it began with are not measurements.
    pub fn path_metrics(&self) -> Option<PathMetrics> {
        match &self.session {
            Some(session) => session.path_metrics(),
            None => self.path_metrics,
        }
    }

    /// The rate at which this side may send by `now`, as far as there is one.
    pub fn rate(&self, now: Instant) -> Option<BitRate> {
        self.session.as_ref()?.rate(now)
    }

    /// The session's variables at `now`, while there is one: for time series and for people.
    pub fn snapshot(&self, now: Instant) -> Option<Snapshot> {
        self.session.as_ref().map(|session| session.snapshot(now))
    }

    /// The session, while there is one: for those who look on.
    pub fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// Streams that this side may open now, beside those that are open or not yet forgotten.
    pub fn free_streams(&self) -> usize {
        self.streams.free_local()
    }

    /// Whether the stream is open, or not yet forgotten by both sides.
    pub fn has_stream(&self, id: StreamId) -> bool {
        self.streams.has(id)
    }

    /// What has happened on the streams of this session.
    pub fn statistics(&self) -> Statistics {
        self.streams.statistics()
    }

    /// What the session has counted, while there is one.
    pub fn session_statistics(&self) -> Option<&xstp::session::Statistics> {
        self.session.as_ref().map(Session::statistics)
    }

    /// What has been done in all, past sessions included.
    pub fn totals(&self) -> Totals {
        let mut totals = self.past;
        if let Some(session) = &self.session {
            totals.add_session(session.statistics());
        }
        totals.add_streams(&self.streams.statistics());
        totals.datagrams.add(&self.streams.datagrams.statistics());
        totals
    }

    /// What a terminal's association has counted.
    pub fn association_counters(&self) -> Option<&association::Counters> {
        self.terminal.as_ref().map(Terminal::counters)
    }

    /// Bytes of memory that received data takes now.
    pub fn receive_allocated(&self) -> usize {
        self.streams.receive_allocated()
    }
}
