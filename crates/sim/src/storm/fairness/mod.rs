//! Storms of clients: honest ones beside hostile ones, each of whom has the rights of an ordinary
//! client, and nothing more. The promise is *progress of others*.
//!
//! # What is promised
//!
//! A client that reads what comes and always has something to send gets, in its direction, at
//! least [`PROMISED`] of its max-min fair share (Bertsekas and Gallager, "Data Networks", section
//! 6.5.2), whatever others do, over [`measured`] after [`settle`]. In one direction of the link
//!
//! ```text
//!   capacity  what the same link carries, in IP packets, when only the honest clients are there;
//!             at least four fifths of the rate where that is told and kept
//!   terminal  demands without bound when it has an honest client of that direction; else what its
//!             packets took, and on a return link that is shared by grants half of that besides
//!   client    an honest one demands without bound, another what was sent for it
//!   share     the capacity is filled into the terminals' demands; each terminal's part, less its
//!             POLLs and STATs, less losses and the heads of full packets, into its clients': none
//!             has more than it demands, and who has less than that has no less than any other
//! ```
//!
//! A hostile client's demand is what it *got*. With a demand of which it got only a part the others'
//! shares would be smaller or the same; so this is the stricter promise: nobody has more than the
//! others, and what one does not use the others get. A client whose readers have stopped uses
//! nothing. All that is sent for a client counts, with the heads of small frames, openings and
//! resets at their largest.
//!
//! Where memory is less than what fills the link whatever others hold, down to the least that can
//! be told, each client is promised the same part of an equal share as the memory is of that: what
//! is in flight for it has to lie in its part of the buffer.
//!
//! Where the rate is looked for, the capacity is what was found with hostile clients, within a fifth
//! of what was found without. Left out are links that several terminals share without being told a
//! rate, where shares are what their congestion control finds.

mod judge;
mod line;
mod mix;
mod network;
mod users;

use super::report::{Damage, Report};
use judge::{Measured, Reading};
use mix::Mix;
use network::Network;
use relay::Owner;
use units::Span;

/// The part of its share that each honest client gets.
const PROMISED: f64 = 0.8;

/// Time after the last client's beginning from which on the promise holds: a handshake, windows
/// that double in each round trip, and the queues and windows of others that drain.
fn settle(mix: &Mix) -> Span {
    Span::from_secs(5) + mix.round_trip() * 20
}

/// The time over which is measured.
fn measured(mix: &Mix) -> Span {
    Span::from_secs(10) + mix.round_trip() * 10
}

/// The storm of `seed` in a few words, for people.
pub(super) fn describe(seed: u64) -> String {
    Mix::draw(seed).describe()
}

/// Runs the storm of `seed`.
pub(super) fn run(seed: u64) -> Result<Report, Damage> {
    run_with(&Mix::draw(seed), owner)
}

/// The account of a client.
fn owner(client: usize) -> Owner {
    Owner(client as u128 + 1)
}

fn run_with(mix: &Mix, owner: fn(usize) -> Owner) -> Result<Report, Damage> {
    let alone = mix.without_hostile();
    let (_, before, after) = play(&alone, owner)?;
    let usable = Measured::new(&alone, &before, &after).usable()?;
    let (network, before, after) = play(mix, owner)?;
    Measured::new(mix, &before, &after).judge(usable)?;
    Ok(Report {
        trace: network.trace(),
        flavour: "clients",
        packets: network.packets(),
        storm: mix.attack_ends() + settle(mix) + measured(mix),
        healed: Span::ZERO,
        lives: 2 * mix.terminals as u64,
        deaths: 0,
        bytes: after.read(),
        coverage: network.coverage(),
        strikes: network.strikes().clone(),
    })
}

/// Plays the storm, and reads what clients have had when the promise begins to hold and at the end.
fn play(mix: &Mix, owner: fn(usize) -> Owner) -> Result<(Network<'_>, Reading, Reading), Damage> {
    let mut network = Network::new(mix, owner);
    network.connect()?;
    let from = network.now() + mix.attack_ends() + settle(mix);
    network.run(from, false)?;
    let before = Reading::take(&mut network);
    network.run(from + measured(mix), false)?;
    let after = Reading::take(&mut network);
    Ok((network, before, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seeds that break no promise, of which some do without shares.
    const SEEDS: core::ops::Range<u64> = 0..24;

    #[test]
    fn honest_clients_get_their_share_whatever_hostile_ones_do() {
        for seed in SEEDS {
            if let Err(damage) = run(seed) {
                panic!("seed {seed}: {damage}\n  {}", describe(seed));
            }
        }
    }

    /// What storms are for: with all clients on one account, as if there were no shares, several of
    /// the same seeds break the promise.
    #[test]
    fn without_owners_the_promise_is_broken() {
        let broken = SEEDS.filter(|&seed| run_with(&Mix::draw(seed), |_| Owner(1)).is_err());
        assert!(broken.count() >= 4);
    }
}
