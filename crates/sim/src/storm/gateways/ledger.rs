//! Counters of a gateway during a storm, and checks that those of both ends match.

use super::super::report::{Record, Violation};
use super::users::UserTotals;
use crate::invariants::SessionWatch;
use association::Counters;
use relay::{Event, PeerId, RefuseReason, Relay, RelayConfig, Totals};
use std::collections::BTreeMap;
use units::Instant;
use xstp::session::{Coverage, Statistics};

/// Send buffer that each stream may use when the pool is exhausted, in octets.
const MIN_STREAM_BUFFER: u64 = 16 << 10;
/// Maximum transmissions of a handshake's first packet.
const MAX_HANDSHAKES: u64 = 30;

/// Counters and violations of one end.
#[derive(Debug)]
pub(crate) struct Ledger {
    may_abort: bool,
    /// Streams refused because of the hub's limit, which is no violation.
    refused: u64,
    watches: BTreeMap<Option<PeerId>, SessionWatch>,
    coverage: Coverage,
    delivered: u64,
    lost: u64,
    disconnected: u64,
    restarts: u64,
    /// Sessions of earlier instances.
    sessions: u64,
    /// Datagrams passed to the current instance.
    on_datagram: u64,
    latest: Instant,
    damage: Option<String>,
}

/// Counters of the current instance and session at the end of a storm.
#[derive(Clone, Debug)]
pub(crate) struct FinalCounters {
    incarnation: Option<u32>,
    session: Statistics,
    streams: relay::Statistics,
    association: Counters,
    /// Segments sent by all sessions of this instance.
    segments: u64,
    on_datagram: u64,
    allocated: usize,
}

impl Ledger {
    pub(crate) fn new(may_abort: bool) -> Self {
        Self {
            may_abort,
            refused: 0,
            watches: BTreeMap::new(),
            coverage: Coverage::default(),
            delivered: 0,
            lost: 0,
            disconnected: 0,
            restarts: 0,
            sessions: 0,
            on_datagram: 0,
            latest: Instant::ZERO,
            damage: None,
        }
    }

    pub(crate) fn fail(&mut self, text: &str) {
        self.damage.get_or_insert(text.to_owned());
    }

    pub(crate) fn on_datagram(&mut self) {
        self.on_datagram += 1;
    }

    pub(crate) fn restarts(&self) -> u64 {
        self.restarts
    }

    pub(crate) fn sessions(&self) -> u64 {
        self.sessions
    }

    pub(crate) fn coverage(&self) -> Coverage {
        self.coverage
    }

    pub(crate) fn latest(&self) -> Instant {
        self.latest
    }

    /// Counts an event of a relay.
    pub(crate) fn on_event(&mut self, event: &Event) {
        if let Event::Disconnected { reason } = event {
            self.disconnected += 1;
            if !self.may_abort {
                self.fail(&format!("{reason:?} without an injected cause"));
            }
        }
        // The hub may keep a stream that its opener has discarded until its reader is done
        // (RLY-2.6).
        let full = RefuseReason::Limit;
        self.refused +=
            u64::from(matches!(event, Event::Refused { reason, .. } if *reason == full));
    }

    /// Discards the state of a closed session.
    pub(crate) fn forget(&mut self, peer: PeerId) {
        self.watches.remove(&Some(peer));
    }

    /// Records the restart of an instance with the counters `totals`.
    pub(crate) fn on_restart(&mut self, totals: &Totals, restarts: u64) {
        self.sessions += totals.sessions;
        self.restarts += restarts;
        self.on_datagram = 0;
        self.watches.clear();
    }

    /// Checks window, rate and memory limits of a relay after each call to it.
    pub(crate) fn check_limits(
        &mut self,
        now: Instant,
        peer: Option<PeerId>,
        relay: &Relay,
        config: &RelayConfig,
    ) {
        self.latest = now;
        let Some(session) = relay.session() else { return };
        self.coverage.merge(session.coverage());
        self.watches.entry(peer).or_default().check_sent(now, session);
        let statistics = relay.statistics();
        let (held, bound) = (relay.receive_allocated() as u64, config.receive_bound());
        if held > bound {
            self.fail(&format!("{held} octets are buffered for readers; the limit is {bound}"));
        }
        let bound = config.send_pool + MIN_STREAM_BUFFER * (statistics.streams as u64 + 1);
        if statistics.send_buffered > bound {
            let held = statistics.send_buffered;
            self.fail(&format!("{held} octets are buffered for sending; the limit is {bound}"));
        }
        if statistics.bad_frames + statistics.credit_violations > 0 {
            self.fail(&format!("frames of an honest peer were rejected: {statistics:?}"));
        }
        let seen = session.snapshot(now);
        let numbers = session.outstanding_packets();
        if seen.retransmit_queue > numbers || (seen.outstanding_bytes > 0 && numbers == 0) {
            self.fail(&format!("{numbers} sequence numbers are outstanding: {seen:?}"));
        }
    }

    /// Adds the counters of the applications.
    pub(crate) fn add(&mut self, user_totals: UserTotals, error: Option<&str>) {
        self.delivered += user_totals.delivered;
        self.lost += user_totals.lost;
        if let Some(error) = error {
            self.fail(error);
        }
        if self.lost > self.refused && !self.may_abort {
            self.fail(&format!("{} streams were lost without an injected cause", self.lost));
        }
    }

    pub(crate) fn check(&self, name: &str) -> Result<(), Violation> {
        match &self.damage {
            Some(text) => Err(Violation::new(format!("{name}: {text}"))),
            None => Ok(()),
        }
    }

    /// One record for each aborted session, and one with all delivered octets.
    pub(crate) fn records(&self) -> Vec<Record> {
        let aborted = (self.disconnected + self.restarts) as usize;
        let mut records = vec![Record { aborted: true, ..Record::default() }; aborted];
        records.push(Record { delivered: self.delivered, ..Record::default() });
        records
    }

    pub(crate) fn final_counters(
        &self,
        relay: &Relay,
        association: Counters,
        segments: u64,
    ) -> Option<FinalCounters> {
        // Only counters of the same session can match; the peer may not know a new session yet.
        let session = relay.session().filter(|_| relay.is_connected())?;
        Some(FinalCounters {
            incarnation: session.incarnation(),
            session: *session.statistics(),
            streams: relay.statistics(),
            association,
            segments,
            on_datagram: self.on_datagram,
            allocated: relay.receive_allocated(),
        })
    }
}

impl FinalCounters {
    /// Data packets of the session.
    pub(crate) fn packets(&self) -> u64 {
        self.session.data_sent
    }

    /// Checks that the counters of two idle ends match.
    pub(crate) fn agrees(&self, peer: &Self) -> Result<(), Violation> {
        if self.incarnation != peer.incarnation {
            let text = format!("sessions {:?} and {:?}", self.incarnation, peer.incarnation);
            return Err(Violation::new(text));
        }
        let cut = |final_counters: &Self| {
            final_counters.streams.resets_sent + final_counters.streams.resets_received
        };
        let clean = cut(self) + cut(peer) == 0;
        for (name, here, there) in [("terminal", self, peer), ("hub", peer, self)] {
            here.is_sound().and_then(|()| here.sent_to(there, clean)).map_err(|text| {
                Violation::new(format!("{name}: {text}: {here:?}, and the peer {there:?}"))
            })?;
        }
        Ok(())
    }

    /// Checks that the counters of this end are consistent.
    fn is_sound(&self) -> Result<(), &'static str> {
        let Self { session, association, .. } = self;
        let errors = association.malformed
            + association.unknown_index
            + association.replayed
            + association.bad_tag
            + association.unknown_keys
            + association.stale
            + association.busy
            + association.full;
        let checks = [
            (self.segments <= association.sealed, "more segments were sent than sealed"),
            (
                association.opened + errors <= self.on_datagram,
                "more datagrams were opened than received",
            ),
            (
                // From the third transmission on each is duplicated.
                session.data_retransmitted <= 2 * session.reported_missing + MAX_HANDSHAKES,
                "more was retransmitted than was reported missing",
            ),
            (self.allocated == 0, "receive memory is still allocated without streams"),
            (self.streams.send_buffered == 0, "a send buffer is still allocated without streams"),
        ];
        checks.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, text)| Err(text))
    }

    /// Checks that `peer` received what this end sent; nothing is outstanding.
    fn sent_to(&self, peer: &Self, clean: bool) -> Result<(), &'static str> {
        let (here, there) = (&self.session, &peer.session);
        let copies = there.data_received + there.duplicates_received + there.beyond_window_received;
        let stats = there.stats_received + there.stat_poll_errors;
        let ustats = there.ustats_received + there.ustat_errors + there.probing.ustats_ignored;
        let checks = [
            (here.data_sent == there.data_received, "packets sent are not those received"),
            (
                copies <= here.data_sent + here.data_retransmitted + there.packets_recovered,
                "more packets received than sent",
            ),
            (there.data_bytes_received <= here.data_bytes_sent, "more octets received than sent"),
            (there.segments_received <= here.segments_sent, "more segments received than sent"),
            (
                there.octets_received <= here.octets_sent,
                "more octets of segments received than sent",
            ),
            (there.polls_received <= here.polls_sent, "more POLLs received than sent"),
            (stats <= here.stats_sent, "more STATs received than sent"),
            (ustats <= here.ustats_sent, "more USTATs received than sent"),
            (
                // The tail of a packet that shrinks at its retransmission may arrive twice.
                !clean || self.streams.bytes_sent <= peer.streams.bytes_received,
                "octets of streams are missing",
            ),
            (!clean || self.streams.opened == peer.streams.accepted, "streams are missing"),
        ];
        checks.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, text)| Err(text))
    }
}
