//! Public functions for streams, packets and status.

use super::Relay;
use crate::{
    Class, DisconnectReason, Families, OpenError, Owner, PathMetrics, Priority, RefuseReason,
    ResetReason, Service, Statistics, StreamError, StreamId, Target, TerminalReport, Totals,
};
use association::{Capabilities, Terminal};
use units::{BitRate, Instant, Span};
use xstp::session::{Session, Snapshot};

/// Streams.
impl Relay {
    /// Creates a terminal as [`terminal`](Self::terminal) does, but with false announced limits,
    /// for fuzzing.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn announcing(
        limits: association::Limits,
        config: &crate::RelayConfig,
        now: Instant,
        entropy: impl association::Entropy + 'static,
    ) -> Self {
        let association =
            association::Config { limits, ..crate::session::association_config(config) };
        let terminal = Terminal::new(association, now, entropy);
        Self::new(super::Path::new(0, config, Some(terminal)), false, now)
    }

    /// Opens a stream to `target`. The next packet contains the opening, and the data that was
    /// written by then.
    ///
    /// Stream numbers start again in each session, so events are polled first:
    /// [`Event::Disconnected`](crate::Event::Disconnected) reports that the previous streams are
    /// closed.
    ///
    /// # Errors
    /// Returns an error if too many streams are open, or if the target's name is invalid. If the
    /// session's numbers are used up, a terminal also requests a new association.
    pub fn open(
        &mut self,
        now: Instant,
        target: Target,
        priority: Priority,
    ) -> Result<StreamId, OpenError> {
        let opened = self.streams.open(now, target, priority);
        if opened == Err(OpenError::Numbers) && !self.is_hub {
            if self.paths.len() > 1 {
                self.lose(now, 0, DisconnectReason::Closed);
                self.request_joins(now);
            } else if let Some(terminal) = &mut self.paths[0].terminal {
                terminal.restart(now);
            }
        }
        self.wake();
        opened
    }

    /// Accounts the stream to `owner`: buffer, credit and link rate are divided among owners first,
    /// and then among the streams of each. Has no effect for a closed stream.
    pub fn set_owner(&mut self, stream: StreamId, owner: Owner) {
        self.streams.set_owner(stream, owner);
    }

    /// Notifies the peer that the server has accepted the connection.
    ///
    /// # Errors
    /// Returns an error if the stream is closed.
    pub fn accept(&mut self, stream: StreamId) -> Result<(), StreamError> {
        self.streams.accept(stream)?;
        self.wake();
        Ok(())
    }

    /// Notifies the peer that the connection to the server has failed, and closes the stream.
    ///
    /// # Errors
    /// Returns an error if the stream is closed already.
    pub fn refuse(&mut self, stream: StreamId, reason: RefuseReason) -> Result<(), StreamError> {
        self.streams.refuse(stream, reason)?;
        self.wake();
        Ok(())
    }

    /// Resets the stream in both directions and closes it.
    ///
    /// # Errors
    /// Returns an error if the stream is closed already.
    pub fn reset(&mut self, stream: StreamId, reason: ResetReason) -> Result<(), StreamError> {
        self.streams.reset(stream, reason)?;
        self.wake();
        Ok(())
    }

    /// Returns the number of bytes that [`write`](Self::write) would accept now. If there are few,
    /// an [`Event::Writable`](crate::Event::Writable) follows.
    pub fn room(&mut self, stream: StreamId) -> usize {
        self.streams.room(stream)
    }

    /// As [`room`](Self::room), or 0 as long as there is less than is worth a system call; then
    /// [`Event::Writable`](crate::Event::Writable) follows when there is more.
    pub fn ample_room(&mut self, stream: StreamId) -> usize {
        self.streams.ample_room(stream)
    }

    /// Writes as much of `data` as there is room for; returns the number of bytes. If it is less
    /// than all, an [`Event::Writable`](crate::Event::Writable) follows.
    ///
    /// # Errors
    /// Returns an error if the stream is closed, or if this side has finished it.
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

    /// Finishes this side of the stream after the written data; the other direction continues.
    ///
    /// # Errors
    /// Returns an error if the stream is closed, or if this side has finished it already.
    pub fn end(&mut self, stream: StreamId) -> Result<(), StreamError> {
        self.streams.end(stream)?;
        self.wake();
        Ok(())
    }

    /// Returns the number of written bytes without an acknowledgment; zero for a closed stream. A
    /// reset discards them.
    pub fn held(&self, stream: StreamId) -> u64 {
        self.streams.held(stream)
    }

    /// Returns the number of written bytes that were not sent yet; zero for a closed stream.
    pub fn unsent(&self, stream: StreamId) -> u64 {
        self.streams.unsent(stream)
    }

    /// Returns whether bytes of the stream are in flight or may be sent, so that only the link
    /// delays their delivery.
    pub fn waits_for_link(&self, stream: StreamId) -> bool {
        self.streams.waits_for_link(stream)
    }

    /// Returns the next bytes in order that are contiguous in memory; empty if there are none.
    pub fn peek(&self, stream: StreamId) -> &[u8] {
        self.streams.peek(stream)
    }

    /// The next bytes in order, in as many pieces as `pieces` has room for. Those that are not
    /// needed stay as they are.
    pub fn peek_pieces<'a>(&'a self, stream: StreamId, pieces: &mut [&'a [u8]]) {
        self.streams.peek_pieces(stream, pieces);
    }

    /// Frees the first `len` bytes returned by [`peek`](Self::peek), which makes room for more.
    ///
    /// # Errors
    /// Returns an error if the stream is closed.
    ///
    /// # Panics
    /// Panics if there are fewer bytes.
    pub fn consume(
        &mut self,
        now: Instant,
        stream: StreamId,
        len: usize,
    ) -> Result<(), StreamError> {
        self.streams.consume(now, stream, len)
    }

    /// Forwards an IP packet unsplit: with a bounded queuing delay and without retransmission.
    /// Returns false and drops the packet if there is no session.
    pub fn send_datagram(&mut self, now: Instant, packet: &[u8]) -> bool {
        self.send_datagram_as(now, packet, (Owner::default(), None))
    }

    /// Forwards a packet as [`send_datagram`](Self::send_datagram) does, accounted to an owner and
    /// in the class of `service` instead of that of its DSCP.
    pub fn send_datagram_as(
        &mut self,
        now: Instant,
        packet: &[u8],
        (owner, service): (Owner, Option<Service>),
    ) -> bool {
        if !self.is_connected() {
            return false;
        }
        self.streams.send_datagram(now, packet, (owner, service));
        self.wake();
        true
    }

    /// Returns whether a packet forwarded now would be sent after a short queue only, of 20 ms at
    /// the path's rate. A sender that can wait sends then: its packets are not dropped as late.
    pub fn has_datagram_room(&self) -> bool {
        self.is_connected() && self.streams.datagrams.has_room(self.streams.rate())
    }

    /// Assigns the stream's data to a class, instead of the priority with which it was opened. Has
    /// no effect for a closed stream.
    pub fn set_service(&mut self, stream: StreamId, service: Service) {
        self.streams.set_service(stream, service);
    }

    /// Returns the next IP packet that the peer has forwarded.
    pub fn take_datagram(&mut self) -> Option<Vec<u8>> {
        self.streams.datagrams.take()
    }

    /// Returns when the peer last forwarded an IP packet in this session.
    pub fn datagram_came(&self) -> Option<Instant> {
        self.streams.datagrams.came()
    }

    /// Returns whether [`take_datagram`](Self::take_datagram) has a packet.
    pub fn has_datagram(&self) -> bool {
        self.streams.datagrams.has_received()
    }

    /// Returns whether there is a session with the peer.
    pub fn is_connected(&self) -> bool {
        self.paths.iter().any(|(_, path)| path.connected)
    }

    /// Returns whether the peer responds: there is a session, and no POLL has been unanswered for
    /// longer than the outage timeout. While it is false nothing arrives, and data is kept.
    pub fn is_answered(&self) -> bool {
        self.paths.iter().any(|(_, path)| path.is_answered())
    }

    /// Handles a change of what carries the datagrams of the path with this number.
    pub fn on_carrier_change(&mut self, number: usize) {
        if let Some(path) = self.paths.get_mut(number) {
            path.request_poll();
        }
    }

    /// Returns the hub's rate grant for this terminal, if there is one.
    pub fn granted(&self) -> Option<BitRate> {
        self.streams.granted()
    }

    /// Sets this terminal's report, which the hub has in each session (RLY-11). The caller sets one
    /// in a minute at most.
    pub fn set_report(&mut self, report: &TerminalReport) {
        self.report = report.encode();
        self.send_report();
        self.wake();
    }

    /// Sends the report if the hub reads reports and does not have this one.
    pub(super) fn send_report(&mut self) {
        if self.first().capabilities().contains(Capabilities::REPORTS) {
            self.streams.send_report(&self.report);
        }
    }

    /// Returns the terminal's newest report in this session, at a hub.
    pub fn report(&self) -> Option<TerminalReport> {
        self.streams.report().map(TerminalReport::decode)
    }

    /// Returns the address families that the hub has announced to this terminal in this session.
    /// `None` without an announcement, which means that it reaches both.
    pub fn families(&self) -> Option<Families> {
        self.streams.families()
    }

    /// Returns the smoothed RTT, once one was measured.
    pub fn round_trip(&self) -> Option<Span> {
        self.session().and_then(Session::srtt)
    }

    /// Returns the path metrics that the present or last session has measured, to be cached for the
    /// next one. Cached metrics with which it started are not returned.
    pub fn path_metrics(&self) -> Option<PathMetrics> {
        self.first().path_metrics()
    }

    /// As [`path_metrics`](Self::path_metrics), for the path with this number.
    pub(crate) fn path_metrics_on(&self, number: usize) -> Option<PathMetrics> {
        self.paths.get(number)?.path_metrics()
    }

    /// Returns the sending rate at `now`, if there is one.
    pub fn rate(&self, now: Instant) -> Option<BitRate> {
        self.session()?.rate(now)
    }

    /// Returns the session's state variables at `now`, if there is a session.
    pub fn snapshot(&self, now: Instant) -> Option<Snapshot> {
        self.session().map(|session| session.snapshot(now))
    }

    /// Returns the session, read-only, if there is one.
    pub fn session(&self) -> Option<&Session> {
        self.first().session.as_ref()
    }

    /// Returns the number of streams that this side may open, in addition to those whose state is
    /// not discarded yet.
    pub fn free_streams(&self) -> usize {
        self.streams.free_local()
    }

    /// Returns whether the stream is open, or its state is not discarded yet.
    pub fn has_stream(&self, id: StreamId) -> bool {
        self.streams.has(id)
    }

    /// Returns the counters of the streams of this session.
    pub fn statistics(&self) -> Statistics {
        self.streams.statistics()
    }

    /// Returns the class in which data of a stream would be sent now, if the stream exists.
    pub fn class_of(&self, now: Instant, stream: StreamId) -> Option<Class> {
        self.streams.class_of(now, stream)
    }

    /// Whether there are streams.
    pub(crate) fn has_streams(&self) -> bool {
        self.streams.statistics().streams > 0
    }

    /// Returns the session's counters, if there is a session.
    pub fn session_statistics(&self) -> Option<&xstp::session::Statistics> {
        self.session().map(Session::statistics)
    }

    /// Returns the totals, including past sessions.
    pub fn totals(&self) -> Totals {
        let mut totals = self.stream_totals();
        self.paths.iter().for_each(|(_, path)| totals.add(&path.totals()));
        totals
    }

    /// Returns the totals of the streams, including past sessions.
    pub(super) fn stream_totals(&self) -> Totals {
        let mut totals = self.past;
        totals.add_streams(&self.streams.statistics());
        totals.datagrams.add(&self.streams.datagrams.statistics());
        totals
    }

    /// Returns the counters of a terminal's association.
    pub fn association_counters(&self) -> Option<&association::Counters> {
        self.first().terminal.as_ref().map(Terminal::counters)
    }

    /// Returns the bytes of memory that received data uses now.
    pub fn receive_allocated(&self) -> usize {
        self.streams.receive_allocated()
    }
}
