//! An endpoint with consecutive sessions: a client that opens a new session when one has ended, or
//! a server that listens again.

use super::channel::Datagram;
use super::fault::{Fault, FaultCounts};
use super::report::{Record, Violation};
use super::runner::{Command, End};
use units::{BitRate, Instant, RngStream, Span};
use xstp::session::{Coverage, Event, Session, SessionConfig, State};
use xstp::wire::Profile;

/// Segments per call after which the output counts as endless.
const BURST: u32 = 50_000;

/// A session with its source and its sink.
pub(crate) trait Instance {
    /// A client.
    fn connect(config: &SessionConfig, now: Instant, incarnation: u32) -> Self;
    /// A server that accepts only incarnations after `last`.
    fn listen(config: &SessionConfig, last: Option<u32>) -> Self;
    fn session(&self) -> &Session;
    /// Sends `size` octets of the pattern `tag`, and expects the pattern `expected_tag`.
    fn set_task(&mut self, size: u64, tag: u64, expected_tag: u64);
    fn receive(&mut self, now: Instant, bytes: &[u8]);
    fn transmit(&mut self, now: Instant, out: &mut [u8]) -> Option<usize>;
    fn timeout(&mut self, now: Instant);
    fn event(&mut self) -> Option<Event>;
    fn abort(&mut self, now: Instant);
    fn set_max_segment(&mut self, bytes: usize);
    /// Sets the receive window, unless the reader determines it.
    fn set_window(&mut self, numbers: u32);
    /// Writes, reads if `reading`, and ends the session when done.
    fn work(&mut self, now: Instant, reading: bool);
    /// Octets received and verified.
    fn delivered(&self) -> u64;
    /// Octets of the task that were never sent.
    fn unsent(&self) -> u64;
    /// The first error in the received data.
    fn error(&self) -> Option<&str>;
    /// Octets buffered here.
    fn held(&self) -> usize;
}

/// Parameters of an endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) config: SessionConfig,
    pub(crate) is_client: bool,
    pub(crate) seed: u64,
    /// The first incarnation number.
    pub(crate) incarnation: u32,
    /// Whether sessions may be aborted: a seed with aborts, restarts or short timeouts.
    pub(crate) may_abort: bool,
    /// Time between the end of a session and the next one.
    pub(crate) linger: Span,
    /// A server without data, which ends its direction before a client has connected.
    pub(crate) silent: bool,
    /// Maximum octets of a task.
    pub(crate) task: u64,
    /// Maximum octets that may be buffered here.
    pub(crate) memory: usize,
}

/// An endpoint with consecutive sessions.
pub(crate) struct Host<L> {
    setup: Setup,
    instance: L,
    /// Incarnation of the current session once it is known, and the previous one.
    incarnation: Option<u32>,
    last: Option<u32>,
    record: Record,
    records: Vec<Record>,
    sessions: u64,
    /// When the current session ended.
    ended_at: Option<Instant>,
    /// The latest clock reading during a connected session.
    latest: Instant,
    /// When its sessions can have successors.
    renewable_at: Instant,
    reading: bool,
    fault_free: bool,
    closed_in_calm: bool,
    coverage: Coverage,
    half_closed: bool,
    /// The client has restarted; the server must listen again immediately.
    superseded: bool,
    damage: Option<Violation>,
}

impl<L: Instance> Host<L> {
    pub(crate) fn new(setup: Setup, now: Instant) -> Self {
        let instance = if setup.is_client {
            L::connect(&setup.config, now, setup.incarnation)
        } else {
            L::listen(&setup.config, None)
        };
        let last = setup.is_client.then_some(setup.incarnation);
        let mut host = Self {
            setup,
            instance,
            incarnation: None,
            last,
            record: Record::default(),
            records: Vec::new(),
            sessions: 1,
            ended_at: None,
            latest: now,
            renewable_at: Instant::ZERO,
            reading: true,
            fault_free: false,
            closed_in_calm: false,
            coverage: Coverage::default(),
            half_closed: false,
            superseded: false,
            damage: None,
        };
        host.set_incarnation();
        host
    }

    /// Sets the task once the incarnation is known.
    fn set_incarnation(&mut self) {
        if self.incarnation.is_some() || self.instance.session().state() == State::Listening {
            return;
        }
        let Some(incarnation) = self.instance.session().incarnation() else { return };
        self.incarnation = Some(incarnation);
        self.last = Some(incarnation);
        let mut sizes = sizes(self.setup.seed, incarnation, self.setup.task);
        if self.setup.silent {
            sizes[1] = 0;
        }
        let (own, other) = if self.setup.is_client { (0, 1) } else { (1, 0) };
        let tag = u64::from(incarnation) << 1;
        self.record.incarnation = Some(incarnation);
        (self.record.task, self.record.expected) = (sizes[own], sizes[other]);
        self.instance.set_task(sizes[own], tag | own as u64, tag | other as u64);
    }

    fn fail(&mut self, text: &str) {
        let name = if self.setup.is_client { "client" } else { "server" };
        self.damage.get_or_insert(Violation::new(format!("{name}: {text}")));
    }

    /// Handles the results of every call to the session.
    fn process(&mut self, now: Instant) {
        if self.instance.session().state().is_connected() {
            self.latest = self.latest.max(now);
            self.renewable_at = self.renewable_at.max(self.instance.session().renewable_at());
        }
        self.set_incarnation();
        while let Some(event) = self.instance.event() {
            self.on_event(now, event);
        }
        if self.setup.silent && !self.setup.is_client && self.incarnation.is_none() {
            self.instance.work(now, true);
        }
        if self.incarnation.is_some() && self.ended_at.is_none() {
            self.instance.work(now, self.reading);
        }
        if self.instance.session().state() == State::Closed && self.ended_at.is_none() {
            // An abort by the endpoint itself has no event.
            self.ended_at = Some(now);
            self.record.aborted |= !self.record.closed;
        }
        self.record.delivered = self.instance.delivered();
        self.inspect();
    }

    fn on_event(&mut self, now: Instant, event: Event) {
        if self.ended_at.is_some() {
            self.fail(&format!("{event:?} after the end"));
        }
        match event {
            Event::PeerEnded => {
                self.record.peer_ended = true;
                self.half_closed |= self.instance.unsent() > 0;
                self.instance.work(now, true);
                if self.instance.delivered() != self.record.expected {
                    let (got, of) = (self.instance.delivered(), self.record.expected);
                    self.fail(&format!("the peer ended after {got} of {of} octets"));
                }
            }
            Event::SelfEnded => self.record.self_ended = true,
            Event::Closed => {
                self.record.closed = true;
                self.closed_in_calm = self.fault_free;
                self.ended_at = Some(now);
            }
            Event::Reset | Event::Refused | Event::Superseded | Event::NoResponse => {
                self.ended_at = Some(now);
                self.record.aborted = true;
                self.superseded = event == Event::Superseded;
                // A client that has seen both directions end restarts before the server has.
                let known = event == Event::Superseded && self.record.peer_ended;
                if !self.setup.may_abort && !known {
                    self.fail(&format!("{event:?} without an injected cause"));
                }
            }
            _ => {}
        }
    }

    /// Checks that hold at any time.
    fn inspect(&mut self) {
        let session = self.instance.session();
        let window = u64::from(self.setup.config.number_window);
        let outstanding = session.outstanding_packets();
        if outstanding > window {
            self.fail(&format!(
                "{outstanding} sequence numbers are outstanding; the limit is {window}"
            ));
        }
        if self.instance.held() > self.setup.memory {
            let held = self.instance.held();
            self.fail(&format!("{held} octets are buffered; the limit is {}", self.setup.memory));
        }
        if let Some(error) = self.instance.error() {
            let text = error.to_owned();
            self.fail(&text);
        }
    }

    /// Records the current session and starts the next one.
    fn renew(&mut self, instance: L) {
        self.close_record();
        self.instance = instance;
        self.incarnation = None;
        self.ended_at = None;
        self.superseded = false;
        self.sessions += 1;
        self.set_incarnation();
    }

    fn close_record(&mut self) {
        self.coverage.merge(self.instance.session().coverage());
        let record = core::mem::take(&mut self.record);
        self.records
            .push(Record { packets: self.instance.session().statistics().data_sent, ..record });
    }

    fn next_instance(&mut self, now: Instant) {
        let instance = if self.setup.is_client {
            let next = self.last.unwrap_or(self.setup.incarnation).wrapping_add(1);
            L::connect(&self.setup.config, now, next)
        } else {
            L::listen(&self.setup.config, self.last)
        };
        self.renew(instance);
    }

    /// When the next session starts, unless all work is done.
    fn next_at(&self) -> Option<Instant> {
        // A server that listens again immediately does so after its last segments are sent.
        let ended_at = self.ended_at.filter(|_| !self.listens_at_once())?;
        (!self.is_done()).then_some((ended_at + self.setup.linger).max(self.earliest_restart()))
    }

    fn set_reading(&mut self, reading: bool) {
        self.reading = reading;
        self.instance.set_window(if reading { self.setup.config.receive_window } else { 0 });
    }

    /// Offset of the type octet in a segment.
    fn types_at(&self) -> usize {
        if matches!(self.setup.config.profile, Profile::Sealed) { 0 } else { 4 }
    }

    fn listens_at_once(&self) -> bool {
        !self.setup.is_client && (self.setup.linger.is_zero() || self.superseded)
    }

    /// A client is done when a session that was open in the fault-free phase has closed.
    fn is_done(&self) -> bool {
        self.setup.is_client && self.closed_in_calm
    }

    fn is_stale(&self, datagram: &Datagram) -> bool {
        // As in an association: only segments that name their incarnation may be of an old one.
        let names_itself = datagram.bytes.first().is_some_and(|types| types & 0xf0 != 0);
        matches!(self.setup.config.profile, Profile::Sealed)
            && !names_itself
            && self.incarnation.is_some_and(|own| u64::from(own) != datagram.incarnation)
    }
}

impl<L: Instance> End for Host<L> {
    fn receive(&mut self, now: Instant, datagram: &mut Datagram) {
        if self.is_stale(datagram) {
            return;
        }
        let begins = datagram.bytes.get(self.types_at()).is_some_and(|types| types & 0x50 == 0x10);
        if begins && self.ended_at.is_some() && self.listens_at_once() {
            self.next_instance(now);
        }
        let listens = self.instance.session().state() == State::Listening;
        if listens && self.sessions > 1 && now < self.earliest_restart() {
            return;
        }
        self.instance.receive(now, &datagram.bytes);
        self.process(now);
    }

    fn transmit(&mut self, now: Instant, send: &mut dyn FnMut(&[u8], bool)) {
        self.process(now);
        let mut out = [0; 1500];
        let at = self.types_at();
        let mut burst = 0;
        while let Some(len) = self.instance.transmit(now, &mut out) {
            send(&out[..len], out[at] & 1 != 0);
            burst += 1;
            if burst > BURST {
                self.fail(&format!("more than {BURST} segments at once: {}", self.describe()));
                break;
            }
        }
        self.process(now);
        if self.ended_at.is_some() && self.listens_at_once() {
            self.next_instance(now);
        }
    }

    fn due(&self) -> Option<Instant> {
        let session = self.instance.session().poll_timeout();
        session.into_iter().chain(self.next_at()).min()
    }

    fn timeout(&mut self, now: Instant) {
        if self.next_at().is_some_and(|at| at <= now) {
            self.next_instance(now);
        }
        self.instance.timeout(now);
        self.process(now);
    }

    fn apply(&mut self, now: Instant, command: Command, fault_counts: &mut FaultCounts) {
        match command {
            Command::Restart { amnesia } => {
                let kind =
                    if self.setup.is_client { Fault::ClientRestart } else { Fault::ServerRestart };
                fault_counts.count(kind);
                self.record.aborted |= !self.record.closed;
                if amnesia && !self.setup.is_client {
                    fault_counts.count(Fault::Amnesia);
                    self.last = None;
                }
                self.next_instance(now);
            }
            Command::Abort => {
                if self.ended_at.is_none() {
                    fault_counts.count(Fault::Abort);
                }
                self.instance.abort(now);
            }
            Command::Segment(bytes) => {
                fault_counts.count(Fault::MtuChange);
                self.instance.set_max_segment(bytes);
            }
            Command::Reading(reading) => {
                if !reading {
                    fault_counts.count(Fault::SlowReader);
                }
                self.set_reading(reading);
            }
            Command::FaultsEnd => {
                self.fault_free = true;
                self.set_reading(true);
                self.instance.set_max_segment(usize::MAX);
            }
        }
        self.process(now);
    }

    fn incarnation(&self) -> u64 {
        self.incarnation.map_or(u64::MAX, u64::from)
    }

    fn sessions(&self) -> u64 {
        self.sessions
    }

    fn promised_rate(&self) -> Option<(BitRate, Span)> {
        self.setup.config.max_rate.map(|rate| (rate, self.setup.config.pacing_burst))
    }

    /// When its clock can distinguish a new incarnation from the last one. Published segments carry
    /// timestamps only, so no incarnation may start with timestamps that were used before.
    fn earliest_restart(&self) -> Instant {
        match self.setup.config.profile {
            Profile::Published(_) => self.latest.max(self.renewable_at) + Span::from_millis(2),
            Profile::Sealed => Instant::ZERO,
        }
    }

    fn check(&mut self, fault_counts: &mut FaultCounts) -> Result<(), Violation> {
        if core::mem::take(&mut self.half_closed) {
            fault_counts.count(Fault::HalfClose);
        }
        self.damage.clone().map_or(Ok(()), Err)
    }

    fn is_finished(&self) -> bool {
        if self.setup.is_client {
            self.is_done()
        } else {
            matches!(self.instance.session().state(), State::Closed | State::Listening)
        }
    }

    fn records(&self) -> Vec<Record> {
        let packets = self.instance.session().statistics().data_sent;
        let present = Record { packets, ..self.record.clone() };
        self.records.iter().cloned().chain([present]).collect()
    }

    fn coverage(&self) -> Coverage {
        let mut coverage = self.coverage;
        coverage.merge(self.instance.session().coverage());
        coverage
    }

    fn describe(&self) -> String {
        let session = self.instance.session();
        format!(
            "{:?}, {} of {} bytes came, {} unsent, {} numbers out, life {}, {:?}",
            session.state(),
            self.record.delivered,
            self.record.expected,
            self.instance.unsent(),
            session.outstanding_packets(),
            self.sessions,
            session.snapshot(self.latest),
        )
    }
}

/// The first incarnation number, in part of the seeds close to its wrap.
pub(crate) fn incarnation_of(rng: &mut RngStream) -> u32 {
    match rng.below(4) {
        0 => u32::MAX - rng.below(3) as u32,
        1 => 254 + rng.below(3) as u32,
        _ => rng.next_u64() as u32,
    }
}

/// Octets that client and server send in the session of this incarnation.
fn sizes(seed: u64, incarnation: u32, most: u64) -> [u64; 2] {
    let mut rng = RngStream::new(seed, u64::from(incarnation), "sim/storm/sizes");
    [(); 2].map(|()| match rng.below(8) {
        0 => 0,
        1 => 1 + rng.below(64.min(most)),
        2 | 3 => 1 + rng.below(most / 16 + 1),
        _ => most / 4 + rng.below(most * 3 / 4 + 1),
    })
}
