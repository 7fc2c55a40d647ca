//! Storms of clients: honest ones beside hostile ones, each of whom has the rights of an ordinary
//! client, and nothing more. The promise is *progress of others*.
//!
//! # What is promised
//!
//! A client that reads what comes and always has something to send gets, in its direction, at
//! least [`PROMISED`] of its max-min fair share (Bertsekas and Gallager, "Data Networks", section
//! 6.5.2) from [`settle`] on, whatever others do. Of a line in one direction,
//!
//! ```text
//!   capacity  C = (rate − POLL, STAT and USTAT) × (1 − loss) × payload of a packet / packet
//!   demand    d = ∞ for an honest client,
//!                 what was sent for it in the time that is measured for a hostile one
//!   share       = water-filling of C over the terminals, and of each terminal's part over its
//!                 clients; a terminal's demand is the sum of its clients'
//! ```
//!
//! A hostile client's demand is what it *used*, not what it would have liked. With a demand of
//! which it got only a part the others' shares would be smaller; so the promise is the stricter
//! one, that nobody has more than the others, and that what one does not use the others get. A
//! stalled client uses nothing once its readers have stopped. All that a client causes to be sent
//! counts as used: headers of frames, openings and resets, each at its largest.

mod judge;
mod mix;
mod network;
mod users;

use super::{Damage, Report};
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
    let mut network = Network::new(mix, owner);
    network.connect()?;
    let begun = network.now();
    let from = begun + mix.attack_ends() + settle(mix);
    network.run(from, false)?;
    let before = judge::Reading::take(&mut network);
    network.run(from + measured(mix), false)?;
    let after = judge::Reading::take(&mut network);
    judge::judge(mix, &before, &after)?;
    Ok(Report {
        trace: network.trace(),
        flavour: "clients",
        packets: network.packets(),
        storm: network.now().since(begun),
        healed: Span::ZERO,
        lives: 2 * mix.terminals as u64,
        deaths: 0,
        bytes: after.read(),
        coverage: network.coverage(),
        strikes: network.strikes().clone(),
    })
}
