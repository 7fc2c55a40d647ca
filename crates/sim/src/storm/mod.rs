//! Storms: any mix of faults, drawn from a seed, over anything that carries data; then calm, and
//! all must come to its end.
//!
//! ```text
//!   seed ──▶ mix: which faults, how strong, when          judge
//!              │                                            ▲
//!   ┌──────────▼────────────────────────────────────────────┴───┐
//!   │ arena   client ── clock ── lane, weather ── clock ── server│
//!   │         Host<PacketLife>: sessions, immediate delivery     │
//!   │         Host<StreamLife>: connections, in order            │
//!   └───────────────────────────────────────────────────────────┘
//! ```
//!
//! Each kind of fault is on or off for a seed (a run in which everything goes wrong at once gets
//! nowhere, and finds little). Each end has its own clock. When the storm is over, what lives
//! must finish and what has died must begin anew and finish, in bounded time; and at any time
//! bytes are those that were sent, each once; no datagram is unaccounted for; promised rates and
//! bounds of memory are kept; and nothing happens after the end of a session.
//!
//! The same seed gives the same run, to the byte: [`Report::trace`].

mod arena;
mod clock;
mod fairness;
mod fault;
mod flavour;
mod gateways;
mod host;
mod mix;
mod packets;
mod ranges;
mod stream;
mod table;
mod weather;

pub use fault::{Fault, FaultSet, Strikes};
pub use table::{Tally, UNREACHABLE};

use crate::scenario;
use arena::{Arena, Cast, End};
use core::fmt;
use host::Host;
use mix::Mix;
use packets::PacketLife;
use stream::StreamLife;
use units::{Instant, RngStream, Span};
use xstp::session::Coverage;

/// What a storm rages over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Two sessions, sealed, with immediate delivery.
    Sessions,
    /// Two connections in order, as published.
    Connections,
    /// Two gateways with clients and servers, on a satellite link that does all that links and
    /// networks do, and no more: [`scenario::storm`].
    Links,
    /// Two gateways with clients and servers, and all that can befall them.
    Gateways,
    /// A hub and terminals on one link, and hostile clients beside honest ones.
    Fairness,
}

impl Subject {
    /// Every subject.
    pub const ALL: [Self; 5] =
        [Self::Sessions, Self::Connections, Self::Links, Self::Gateways, Self::Fairness];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Connections => "connections",
            Self::Links => "links",
            Self::Gateways => "gateways",
            Self::Fairness => "fairness",
        }
    }

    /// The subject of a seed when all take turns.
    pub fn of_seed(seed: u64) -> Self {
        match seed % 16 {
            // These take many times as long.
            15 if seed % 64 == 31 => Self::Fairness,
            // These take several times as long.
            7 => Self::Links,
            15 => Self::Gateways,
            odd if odd % 2 == 1 => Self::Connections,
            _ => Self::Sessions,
        }
    }
}

/// A promise that a storm broke, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage(String);

impl Damage {
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Damage {}

/// What a storm was like that broke no promise.
#[derive(Clone, Debug)]
pub struct Report {
    /// A number that two runs share only if they were the same.
    pub trace: u64,
    /// Configuration of the ends.
    pub flavour: &'static str,
    /// Datagrams that the ends sent.
    pub packets: u64,
    /// How long the storm raged.
    pub storm: Span,
    /// How long after it everything was finished.
    pub healed: Span,
    /// Sessions that began, and how many of them died.
    pub lives: u64,
    /// Sessions that did not come to their end in order.
    pub deaths: u64,
    /// Payload bytes that arrived.
    pub bytes: u64,
    /// States and events that sessions met.
    pub coverage: Coverage,
    /// Faults that struck.
    pub strikes: Strikes,
}

/// One life of an end, for the judge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    incarnation: Option<u32>,
    /// Bytes that it had to send, and that its peer had.
    task: u64,
    expected: u64,
    delivered: u64,
    peer_ended: bool,
    self_ended: bool,
    /// Came to its end in order.
    closed: bool,
    died: bool,
    packets: u64,
}

/// What the storm of `seed` over `subject` is made of, for people.
pub fn describe(subject: Subject, seed: u64) -> String {
    if subject == Subject::Links {
        return "gateways; all faults of links and networks".to_owned();
    }
    if subject == Subject::Gateways {
        return gateways::Mix::draw(seed).describe();
    }
    if subject == Subject::Fairness {
        return fairness::describe(seed);
    }
    Mix::draw(subject, seed).describe()
}

/// Runs `subject` through the storm of `seed`.
///
/// # Errors
/// The first promise that was broken.
///
/// # Panics
/// When something under test does.
pub fn run(subject: Subject, seed: u64) -> Result<Report, Damage> {
    if subject == Subject::Links {
        return links(seed);
    }
    if subject == Subject::Gateways {
        return gateways::run(seed);
    }
    if subject == Subject::Fairness {
        return fairness::run(seed);
    }
    let mix = Mix::draw(subject, seed);
    let [here, there] = mix.clocks.each_ref().map(|clock| clock.at(Instant::ZERO));
    let [client, server] = mix.setups();
    let ends: [Box<dyn End>; 2] = match subject {
        Subject::Sessions => [
            Box::new(Host::<PacketLife>::new(client, here)),
            Box::new(Host::<PacketLife>::new(server, there)),
        ],
        Subject::Connections | Subject::Links | Subject::Gateways | Subject::Fairness => [
            Box::new(Host::<StreamLife>::new(client, here)),
            Box::new(Host::<StreamLife>::new(server, there)),
        ],
    };
    let mut arena = Arena::new(Cast {
        ends,
        clocks: mix.clocks.clone(),
        lanes: mix.lanes(),
        calm: Default::default(),
        lag: mix.lag,
        rng: RngStream::new(seed, 0, "sim/storm/lag"),
    });
    for &(at, act) in &mix.acts {
        arena.plan(at, act);
    }
    mix.count_settings(arena.strikes());
    arena.run(mix.calm_at, false)?;
    arena.calm();
    if !arena.run(mix.calm_at + mix.patience(), true)? {
        let ends = [0, 1].map(|end| arena.ends()[end].describe());
        return Err(Damage::new(format!("{} after the storm: {ends:?}", mix.patience())));
    }
    judge(&arena)?;
    Ok(report(&mut arena, &mix))
}

/// Gateways on a satellite link.
fn links(seed: u64) -> Result<Report, Damage> {
    let seen = scenario::storm_seen(seed).map_err(|damage| Damage::new(damage.to_string()))?;
    Ok(Report {
        trace: seen.trace,
        flavour: "gateways on a link",
        packets: seen.packets,
        storm: seen.storm,
        healed: seen.healed,
        lives: 2,
        deaths: 0,
        bytes: seen.bytes,
        // They are drawn and checked there, and not counted one by one.
        coverage: Coverage::default(),
        strikes: Strikes::default(),
    })
}

/// What one end knows of each life must agree with what the other does.
fn judge(arena: &Arena) -> Result<(), Damage> {
    let [clients, servers] = arena.ends().each_ref().map(|end| end.records());
    for (records, others, name) in [(&clients, &servers, "client"), (&servers, &clients, "server")]
    {
        for record in records.iter().filter(|record| record.incarnation.is_some()) {
            let peers = || others.iter().filter(|peer| peer.incarnation == record.incarnation);
            // A server that forgot its incarnations may have had one more than once.
            let delivered = peers().map(|peer| peer.delivered).max().unwrap_or(0);
            // What a server had and nobody had read is gone when it starts anew.
            let whole = peers().any(|peer| !peer.died);
            if record.self_ended && whole && delivered != record.task {
                let text = format!("{name}: ended with {delivered} of {} at the peer", record.task);
                return Err(Damage::new(text));
            }
        }
    }
    Ok(())
}

fn report(arena: &mut Arena, mix: &Mix) -> Report {
    let records = arena.ends().iter().flat_map(|end| end.records());
    let wraps = |record: &Record| mix.wraps_after().is_some_and(|after| record.packets > after);
    for _ in 0..records.filter(wraps).count() {
        arena.strikes().count(Fault::Wrap);
    }
    summary(arena, mix.calm_at, mix.flavour.name())
}

/// What is told of a storm that has come to its end.
fn summary(arena: &mut Arena, calm_at: Instant, flavour: &'static str) -> Report {
    let mut coverage = Coverage::default();
    let (mut lives, mut deaths, mut bytes) = (0, 0, 0);
    for end in arena.ends() {
        coverage.merge(end.coverage());
        lives += end.lives();
        for record in end.records() {
            deaths += u64::from(record.died);
            bytes += record.delivered;
        }
    }
    let packets: u64 = arena.lanes().iter().map(|lane| lane.counts().offered).sum();
    Report {
        trace: arena.trace(),
        flavour,
        packets,
        storm: calm_at.since(Instant::ZERO),
        healed: arena.now().since(calm_at),
        lives,
        deaths,
        bytes,
        coverage,
        strikes: arena.strikes().clone(),
    }
}

/// How many bytes the client and the server send in the life with this incarnation.
pub(crate) fn sizes(seed: u64, incarnation: u32, most: u64) -> [u64; 2] {
    let mut rng = RngStream::new(seed, u64::from(incarnation), "sim/storm/sizes");
    [(); 2].map(|()| match rng.below(8) {
        0 => 0,
        1 => 1 + rng.below(64.min(most)),
        2 | 3 => 1 + rng.below(most / 16 + 1),
        _ => most / 4 + rng.below(most * 3 / 4 + 1),
    })
}

#[cfg(test)]
mod tests;
