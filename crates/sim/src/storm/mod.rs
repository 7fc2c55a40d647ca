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
mod judge;
mod mix;
mod packets;
mod ranges;
mod report;
mod stream;
mod table;
mod weather;

pub use fault::{Fault, FaultSet, Strikes};
pub use report::{Damage, Report, Subject};
pub use table::{Tally, UNREACHABLE};

use crate::scenario;
use arena::{Arena, Cast, End};
use host::Host;
use mix::Mix;
use packets::PacketLife;
use stream::StreamLife;
use units::{Instant, RngStream};
use xstp::session::Coverage;

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
    judge::judge(&arena)?;
    Ok(judge::report(&mut arena, &mix))
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

#[cfg(test)]
mod tests;
