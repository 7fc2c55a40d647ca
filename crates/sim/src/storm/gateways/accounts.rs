//! What an end of a storm over gateways puts into its books, and whether two ends' books agree.

use super::super::report::{Damage, Record};
use super::users::Tale;
use crate::invariants::SessionWatch;
use association::Counters;
use relay::{Event, PeerId, RefuseReason, Relay, RelayConfig, Totals};
use std::collections::BTreeMap;
use units::Instant;
use xstp::session::{Coverage, Statistics};

/// Send buffer that each stream may use however full the pool is.
const EACH: u64 = 16 << 10;
/// Times that a handshake's first packet is repeated, at most.
const BEGINNINGS: u64 = 30;

/// One end's books.
#[derive(Debug)]
pub(crate) struct Books {
    lethal: bool,
    /// Streams that were lost because too many were open: nobody's fault.
    refused: u64,
    watches: BTreeMap<Option<PeerId>, SessionWatch>,
    coverage: Coverage,
    delivered: u64,
    lost: u64,
    disconnected: u64,
    restarts: u64,
    /// Sessions of earlier lives.
    sessions: u64,
    /// Datagrams that this life was given.
    handled: u64,
    latest: Instant,
    damage: Option<String>,
}

/// What one end says at the end of a storm, of its present life and session.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    incarnation: Option<u32>,
    session: Statistics,
    streams: relay::Statistics,
    association: Counters,
    /// Segments that this life's sessions sent.
    segments: u64,
    handled: u64,
    allocated: usize,
}

impl Books {
    pub(crate) fn new(lethal: bool) -> Self {
        Self {
            lethal,
            refused: 0,
            watches: BTreeMap::new(),
            coverage: Coverage::default(),
            delivered: 0,
            lost: 0,
            disconnected: 0,
            restarts: 0,
            sessions: 0,
            handled: 0,
            latest: Instant::ZERO,
            damage: None,
        }
    }

    pub(crate) fn fail(&mut self, text: &str) {
        self.damage.get_or_insert(text.to_owned());
    }

    pub(crate) fn handled(&mut self) {
        self.handled += 1;
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

    /// Something happened on a relay.
    pub(crate) fn note(&mut self, event: &Event) {
        if let Event::Disconnected { reason } = event {
            self.disconnected += 1;
            if !self.lethal {
                self.fail(&format!("{reason:?} although nobody gave up"));
            }
        }
        // A stream that its opener has forgotten may wait for its reader: RLY-2.6.
        let full = RefuseReason::Limit;
        self.refused +=
            u64::from(matches!(event, Event::Refused { reason, .. } if *reason == full));
    }

    /// A session is gone.
    pub(crate) fn forget(&mut self, peer: PeerId) {
        self.watches.remove(&Some(peer));
    }

    /// The end starts anew; what it has done is `totals`.
    pub(crate) fn bury(&mut self, totals: &Totals, restarts: u64) {
        self.sessions += totals.sessions;
        self.restarts += restarts;
        self.handled = 0;
        self.watches.clear();
    }

    /// Looks at a relay after each call to it.
    pub(crate) fn look(
        &mut self,
        now: Instant,
        peer: Option<PeerId>,
        relay: &Relay,
        config: &RelayConfig,
    ) {
        self.latest = now;
        let Some(session) = relay.session() else { return };
        self.coverage.merge(session.coverage());
        self.watches.entry(peer).or_default().look(now, session);
        let statistics = relay.statistics();
        let (held, bound) = (relay.receive_allocated() as u64, config.receive_bound());
        if held > bound {
            self.fail(&format!("{held} octets are kept for readers where {bound} may be"));
        }
        let bound = config.send_pool + EACH * (statistics.streams as u64 + 1);
        if statistics.send_buffered > bound {
            let held = statistics.send_buffered;
            self.fail(&format!("{held} octets are kept to be sent where {bound} may be"));
        }
        if statistics.bad_frames + statistics.credit_violations > 0 {
            self.fail(&format!("frames of an honest peer were refused: {statistics:?}"));
        }
        let seen = session.snapshot(now);
        let numbers = session.outstanding_packets();
        if seen.retransmit_queue > numbers || (seen.outstanding_bytes > 0 && numbers == 0) {
            self.fail(&format!("{numbers} numbers are out, and {seen:?}"));
        }
    }

    /// What users told.
    pub(crate) fn take(&mut self, tale: Tale, wrong: Option<&str>) {
        self.delivered += tale.delivered;
        self.lost += tale.lost;
        if let Some(wrong) = wrong {
            self.fail(wrong);
        }
        if self.lost > self.refused && !self.lethal {
            self.fail(&format!("{} streams were lost although nobody gave up", self.lost));
        }
    }

    pub(crate) fn verdict(&self, name: &str) -> Result<(), Damage> {
        match &self.damage {
            Some(text) => Err(Damage::new(format!("{name}: {text}"))),
            None => Ok(()),
        }
    }

    /// One record for each session that died, and one with all that was delivered.
    pub(crate) fn records(&self) -> Vec<Record> {
        let deaths = (self.disconnected + self.restarts) as usize;
        let mut records = vec![Record { died: true, ..Record::default() }; deaths];
        records.push(Record { delivered: self.delivered, ..Record::default() });
        records
    }

    pub(crate) fn account(
        &self,
        relay: &Relay,
        association: Counters,
        segments: u64,
    ) -> Option<Account> {
        // Books are compared of one session; of one that has just begun the peer has not heard.
        let session = relay.session().filter(|_| relay.is_connected())?;
        Some(Account {
            incarnation: session.incarnation(),
            session: *session.statistics(),
            streams: relay.statistics(),
            association,
            segments,
            handled: self.handled,
            allocated: relay.receive_allocated(),
        })
    }
}

impl Account {
    /// Data packets of the session.
    pub(crate) fn packets(&self) -> u64 {
        self.session.data_sent
    }

    /// Whether what two ends at rest say agrees.
    pub(crate) fn agrees(&self, peer: &Self) -> Result<(), Damage> {
        if self.incarnation != peer.incarnation {
            let text = format!("sessions {:?} and {:?}", self.incarnation, peer.incarnation);
            return Err(Damage::new(text));
        }
        let cut = |account: &Self| account.streams.resets_sent + account.streams.resets_received;
        let clean = cut(self) + cut(peer) == 0;
        for (name, here, there) in [("terminal", self, peer), ("hub", peer, self)] {
            here.is_sound().and_then(|()| here.sent_to(there, clean)).map_err(|text| {
                Damage::new(format!("{name}: {text}: {here:?}, and the peer {there:?}"))
            })?;
        }
        Ok(())
    }

    /// Whether this side's numbers agree with each other.
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
            (association.opened + errors <= self.handled, "more was opened than came"),
            (
                // What is lost for the third time goes twice.
                session.data_retransmitted <= 2 * session.reported_missing + BEGINNINGS,
                "more was retransmitted than was reported lost",
            ),
            (self.allocated == 0, "memory is kept for streams that are gone"),
            (self.streams.send_buffered == 0, "a send buffer is kept for streams that are gone"),
        ];
        checks.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, text)| Err(text))
    }

    /// Whether what this side sent is what `peer` received; nothing is outstanding any more.
    fn sent_to(&self, peer: &Self, clean: bool) -> Result<(), &'static str> {
        let (here, there) = (&self.session, &peer.session);
        let copies = there.data_received + there.duplicates_received + there.beyond_window_received;
        let stats = there.stats_received + there.stat_poll_errors;
        let ustats = there.ustats_received + there.ustat_errors + there.probing.ustats_ignored;
        let checks = [
            (here.data_sent == there.data_received, "packets sent are not those received"),
            (copies <= here.data_sent + here.data_retransmitted, "more packets came than went"),
            (there.data_bytes_received <= here.data_bytes_sent, "more octets came than went"),
            (there.segments_received <= here.segments_sent, "more segments came than went"),
            (there.octets_received <= here.octets_sent, "more octets of segments came than went"),
            (there.polls_received <= here.polls_sent, "more POLLs came than went"),
            (stats <= here.stats_sent, "more STATs came than went"),
            (ustats <= here.ustats_sent, "more USTATs came than went"),
            (
                // What is cut off from a packet that shrinks may come a second time.
                !clean || self.streams.bytes_sent <= peer.streams.bytes_received,
                "octets of streams are missing",
            ),
            (!clean || self.streams.opened == peer.streams.accepted, "streams are missing"),
        ];
        checks.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, text)| Err(text))
    }
}
