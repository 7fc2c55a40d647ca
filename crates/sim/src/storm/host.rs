//! An end with one session after another: a client that begins anew when a session is over, or a
//! server that listens again.

use super::arena::{End, Order};
use super::fault::{Fault, Strikes};
use super::report::{Damage, Record};
use super::weather::Flying;
use units::{BitRate, Instant, RngStream, Span};
use xstp::session::{Coverage, Event, Session, SessionConfig, State};
use xstp::wire::Profile;

/// Segments at one time, after which there is no end to them.
const BURST: u32 = 50_000;

/// A session with its source and its sink.
pub(crate) trait Life {
    /// A client's.
    fn connect(config: &SessionConfig, now: Instant, incarnation: u32) -> Self;
    /// A server's, which accepts incarnations after `last` only.
    fn listen(config: &SessionConfig, last: Option<u32>) -> Self;
    fn session(&self) -> &Session;
    /// From now on it sends `size` bytes of the pattern `tag`, and expects some of another.
    fn set_task(&mut self, size: u64, tag: u64, expected_tag: u64);
    fn receive(&mut self, now: Instant, bytes: &[u8]);
    fn transmit(&mut self, now: Instant, out: &mut [u8]) -> Option<usize>;
    fn timeout(&mut self, now: Instant);
    fn event(&mut self) -> Option<Event>;
    fn abort(&mut self, now: Instant);
    fn set_max_segment(&mut self, bytes: usize);
    /// Sets the window, where that is not the reader's.
    fn set_window(&mut self, numbers: u32);
    /// Writes, reads if `reading`, ends.
    fn work(&mut self, now: Instant, reading: bool);
    /// Bytes that have come and are right.
    fn delivered(&self) -> u64;
    /// Bytes of the task that were never sent.
    fn unsent(&self) -> u64;
    /// What was wrong with what came.
    fn wrong(&self) -> Option<&str>;
    /// Bytes held here.
    fn held(&self) -> usize;
}

/// What an end is set to.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) config: SessionConfig,
    pub(crate) is_client: bool,
    pub(crate) seed: u64,
    /// Where incarnations begin.
    pub(crate) incarnation: u32,
    /// Whether sessions may die: somebody gives up, starts anew, or has no patience.
    pub(crate) lethal: bool,
    /// How long a session that is over stays before the next one.
    pub(crate) linger: Span,
    /// A server that has nothing to say, and says so before anybody has called.
    pub(crate) silent: bool,
    /// Bytes of a task, at most.
    pub(crate) task: u64,
    /// Bytes that may be held here.
    pub(crate) memory: usize,
}

/// An end with one session after another.
pub(crate) struct Host<L> {
    setup: Setup,
    life: L,
    /// Incarnation of the present life once it is known, and the last one before.
    incarnation: Option<u32>,
    last: Option<u32>,
    record: Record,
    records: Vec<Record>,
    lives: u64,
    /// When the present life was over.
    over: Option<Instant>,
    /// The latest that its clock ever showed while a session lived.
    latest: Instant,
    /// When its sessions can have successors.
    renewable_at: Instant,
    reading: bool,
    calm: bool,
    closed_in_calm: bool,
    coverage: Coverage,
    half_closed: bool,
    /// The client has begun anew: nobody may find the server closed meanwhile.
    superseded: bool,
    damage: Option<Damage>,
}

impl<L: Life> Host<L> {
    pub(crate) fn new(setup: Setup, now: Instant) -> Self {
        let life = if setup.is_client {
            L::connect(&setup.config, now, setup.incarnation)
        } else {
            L::listen(&setup.config, None)
        };
        let last = setup.is_client.then_some(setup.incarnation);
        let mut host = Self {
            setup,
            life,
            incarnation: None,
            last,
            record: Record::default(),
            records: Vec::new(),
            lives: 1,
            over: None,
            latest: now,
            renewable_at: Instant::ZERO,
            reading: true,
            calm: false,
            closed_in_calm: false,
            coverage: Coverage::default(),
            half_closed: false,
            superseded: false,
            damage: None,
        };
        host.know_incarnation();
        host
    }

    /// Sets the task once it is known which incarnation this is.
    fn know_incarnation(&mut self) {
        if self.incarnation.is_some() || self.life.session().state() == State::Listening {
            return;
        }
        let Some(incarnation) = self.life.session().incarnation() else { return };
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
        self.life.set_task(sizes[own], tag | own as u64, tag | other as u64);
    }

    fn fail(&mut self, text: &str) {
        let name = if self.setup.is_client { "client" } else { "server" };
        self.damage.get_or_insert(Damage::new(format!("{name}: {text}")));
    }

    /// Everything that follows a call to the session.
    fn attend(&mut self, now: Instant) {
        if self.life.session().state().is_connected() {
            self.latest = self.latest.max(now);
            self.renewable_at = self.renewable_at.max(self.life.session().renewable_at());
        }
        self.know_incarnation();
        while let Some(event) = self.life.event() {
            self.on_event(now, event);
        }
        if self.setup.silent && !self.setup.is_client && self.incarnation.is_none() {
            self.life.work(now, true);
        }
        if self.incarnation.is_some() && self.over.is_none() {
            self.life.work(now, self.reading);
        }
        if self.life.session().state() == State::Closed && self.over.is_none() {
            // Its owner gave up, which is no event.
            self.over = Some(now);
            self.record.died |= !self.record.closed;
        }
        self.record.delivered = self.life.delivered();
        self.inspect();
    }

    fn on_event(&mut self, now: Instant, event: Event) {
        if self.over.is_some() {
            self.fail(&format!("{event:?} after the end"));
        }
        match event {
            Event::PeerEnded => {
                self.record.peer_ended = true;
                self.half_closed |= self.life.unsent() > 0;
                self.life.work(now, true);
                if self.life.delivered() != self.record.expected {
                    let (got, of) = (self.life.delivered(), self.record.expected);
                    self.fail(&format!("the peer ended, and {got} bytes of {of} have come"));
                }
            }
            Event::SelfEnded => self.record.self_ended = true,
            Event::Closed => {
                self.record.closed = true;
                self.closed_in_calm = self.calm;
                self.over = Some(now);
            }
            Event::Reset | Event::Refused | Event::Superseded | Event::NoResponse => {
                self.over = Some(now);
                self.record.died = true;
                self.superseded = event == Event::Superseded;
                // A client that knows that both directions are over begins anew before the
                // server knows it.
                let known = event == Event::Superseded && self.record.peer_ended;
                if !self.setup.lethal && !known {
                    self.fail(&format!("{event:?} although nobody gave up"));
                }
            }
            _ => {}
        }
    }

    /// Promises that hold at any time.
    fn inspect(&mut self) {
        let session = self.life.session();
        let window = u64::from(self.setup.config.number_window);
        let outstanding = session.outstanding_packets();
        if outstanding > window {
            self.fail(&format!("{outstanding} numbers are out where {window} may be"));
        }
        if self.life.held() > self.setup.memory {
            let held = self.life.held();
            self.fail(&format!("{held} bytes are held where {} may be", self.setup.memory));
        }
        if let Some(wrong) = self.life.wrong() {
            let text = wrong.to_owned();
            self.fail(&text);
        }
    }

    /// The present life is put into the books, and the next one begins.
    fn renew(&mut self, life: L) {
        self.bury();
        self.life = life;
        self.incarnation = None;
        self.over = None;
        self.superseded = false;
        self.lives += 1;
        self.know_incarnation();
    }

    fn bury(&mut self) {
        self.coverage.merge(self.life.session().coverage());
        let record = core::mem::take(&mut self.record);
        self.records.push(Record { packets: self.life.session().statistics().data_sent, ..record });
    }

    fn next_life(&mut self, now: Instant) {
        let life = if self.setup.is_client {
            let next = self.last.unwrap_or(self.setup.incarnation).wrapping_add(1);
            L::connect(&self.setup.config, now, next)
        } else {
            L::listen(&self.setup.config, self.last)
        };
        self.renew(life);
    }

    /// A life that is over is followed by another one, unless all is done.
    fn next_at(&self) -> Option<Instant> {
        // Who listens again at once does so when its last segments are sent.
        let over = self.over.filter(|_| !self.listens_at_once())?;
        (!self.is_done()).then_some((over + self.setup.linger).max(self.fresh_from()))
    }

    fn set_reading(&mut self, reading: bool) {
        self.reading = reading;
        self.life.set_window(if reading { self.setup.config.receive_window } else { 0 });
    }

    /// Where a segment says of which types it is.
    fn types_at(&self) -> usize {
        if matches!(self.setup.config.profile, Profile::Sealed) { 0 } else { 4 }
    }

    fn listens_at_once(&self) -> bool {
        !self.setup.is_client && (self.setup.linger.is_zero() || self.superseded)
    }

    /// A client is done when a session that saw the calm has come to its end.
    fn is_done(&self) -> bool {
        self.setup.is_client && self.closed_in_calm
    }

    fn is_stale(&self, flying: &Flying) -> bool {
        // What an association guards: only what names its incarnation may come from an old one.
        let names_itself = flying.bytes.first().is_some_and(|types| types & 0xf0 != 0);
        matches!(self.setup.config.profile, Profile::Sealed)
            && !names_itself
            && self.incarnation.is_some_and(|own| u64::from(own) != flying.incarnation)
    }
}

impl<L: Life> End for Host<L> {
    fn receive(&mut self, now: Instant, flying: &mut Flying) {
        if self.is_stale(flying) {
            return;
        }
        let begins = flying.bytes.get(self.types_at()).is_some_and(|types| types & 0x50 == 0x10);
        if begins && self.over.is_some() && self.listens_at_once() {
            self.next_life(now);
        }
        let listens = self.life.session().state() == State::Listening;
        if listens && self.lives > 1 && now < self.fresh_from() {
            return;
        }
        self.life.receive(now, &flying.bytes);
        self.attend(now);
    }

    fn transmit(&mut self, now: Instant, send: &mut dyn FnMut(&[u8], bool)) {
        self.attend(now);
        let mut out = [0; 1500];
        let at = self.types_at();
        let mut burst = 0;
        while let Some(len) = self.life.transmit(now, &mut out) {
            send(&out[..len], out[at] & 1 != 0);
            burst += 1;
            if burst > BURST {
                self.fail(&format!("more than {BURST} segments at once: {}", self.describe()));
                break;
            }
        }
        self.attend(now);
        if self.over.is_some() && self.listens_at_once() {
            self.next_life(now);
        }
    }

    fn due(&self) -> Option<Instant> {
        let session = self.life.session().poll_timeout();
        session.into_iter().chain(self.next_at()).min()
    }

    fn timeout(&mut self, now: Instant) {
        if self.next_at().is_some_and(|at| at <= now) {
            self.next_life(now);
        }
        self.life.timeout(now);
        self.attend(now);
    }

    fn obey(&mut self, now: Instant, order: Order, strikes: &mut Strikes) {
        match order {
            Order::Restart { amnesia } => {
                let kind =
                    if self.setup.is_client { Fault::ClientRestart } else { Fault::ServerRestart };
                strikes.count(kind);
                self.record.died |= !self.record.closed;
                if amnesia && !self.setup.is_client {
                    strikes.count(Fault::Amnesia);
                    self.last = None;
                }
                self.next_life(now);
            }
            Order::Abort => {
                if self.over.is_none() {
                    strikes.count(Fault::Abort);
                }
                self.life.abort(now);
            }
            Order::Segment(bytes) => {
                strikes.count(Fault::MtuChange);
                self.life.set_max_segment(bytes);
            }
            Order::Reading(reading) => {
                if !reading {
                    strikes.count(Fault::SlowReader);
                }
                self.set_reading(reading);
            }
            Order::Calm => {
                self.calm = true;
                self.set_reading(true);
                self.life.set_max_segment(usize::MAX);
            }
        }
        self.attend(now);
    }

    fn incarnation(&self) -> u64 {
        self.incarnation.map_or(u64::MAX, u64::from)
    }

    fn lives(&self) -> u64 {
        self.lives
    }

    fn promised_rate(&self) -> Option<(BitRate, Span)> {
        self.setup.config.max_rate.map(|rate| (rate, self.setup.config.pacing_burst))
    }

    /// When its clock can tell a new incarnation from the last one: published segments are known
    /// by their stamps, so no host may begin with those that it used before.
    fn fresh_from(&self) -> Instant {
        match self.setup.config.profile {
            Profile::Published(_) => self.latest.max(self.renewable_at) + Span::from_millis(2),
            Profile::Sealed => Instant::ZERO,
        }
    }

    fn verdict(&mut self, strikes: &mut Strikes) -> Result<(), Damage> {
        if core::mem::take(&mut self.half_closed) {
            strikes.count(Fault::HalfClose);
        }
        self.damage.clone().map_or(Ok(()), Err)
    }

    fn is_settled(&self) -> bool {
        if self.setup.is_client {
            self.is_done()
        } else {
            matches!(self.life.session().state(), State::Closed | State::Listening)
        }
    }

    fn records(&self) -> Vec<Record> {
        let packets = self.life.session().statistics().data_sent;
        let present = Record { packets, ..self.record.clone() };
        self.records.iter().cloned().chain([present]).collect()
    }

    fn coverage(&self) -> Coverage {
        let mut coverage = self.coverage;
        coverage.merge(self.life.session().coverage());
        coverage
    }

    fn describe(&self) -> String {
        let session = self.life.session();
        format!(
            "{:?}, {} of {} bytes came, {} unsent, {} numbers out, life {}, {:?}",
            session.state(),
            self.record.delivered,
            self.record.expected,
            self.life.unsent(),
            session.outstanding_packets(),
            self.lives,
            session.snapshot(self.latest),
        )
    }
}

/// Where incarnations begin: also about to wrap, where comparing them is harder.
pub(crate) fn incarnation_of(rng: &mut RngStream) -> u32 {
    match rng.below(4) {
        0 => u32::MAX - rng.below(3) as u32,
        1 => 254 + rng.below(3) as u32,
        _ => rng.next_u64() as u32,
    }
}

/// How many bytes the client and the server send in the life with this incarnation.
fn sizes(seed: u64, incarnation: u32, most: u64) -> [u64; 2] {
    let mut rng = RngStream::new(seed, u64::from(incarnation), "sim/storm/sizes");
    [(); 2].map(|()| match rng.below(8) {
        0 => 0,
        1 => 1 + rng.below(64.min(most)),
        2 | 3 => 1 + rng.below(most / 16 + 1),
        _ => most / 4 + rng.below(most * 3 / 4 + 1),
    })
}
