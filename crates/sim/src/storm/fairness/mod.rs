//! Storms of honest and hostile clients. Hostile clients have the rights of an ordinary client. The
//! guarantee under test is progress of honest clients.
//!
//! # Guarantee
//!
//! An honest client, which reads all data and always has data to send, receives in its direction at
//! least [`PROMISED`] of its max-min fair share (Bertsekas and Gallager, "Data Networks", section
//! 6.5.2), measured over [`measured`] after [`settle`]. For one direction of the link:
//! ```text
//!   capacity  rate of IP packets on the same link with honest clients alone; at least 4/5 of the rate
//!             where it is configured and the controller is `fixed`
//!   terminal  unlimited demand if it has an honest client in this direction; otherwise the rate of its
//!             packets, on a return link shared by grants times 1.5
//!   client    unlimited demand if honest; otherwise the rate sent on its behalf
//!   share     max-min allocation of the capacity to the terminals; then of each terminal's share, less
//!             POLLs, STATs, losses and packet headers, to its clients
//! ```
//!
//! The demand of a hostile client is the rate that it received. If its actual demand is larger, the
//! shares of the others are smaller or equal, so the check is the stricter one. A client whose
//! receivers have stopped reading has no demand. Everything sent for a client counts, with headers
//! of small frames, openings and resets at their maximum size.
//! resets at their largest.
//!
//! Where memory is below the amount that fills the link, down to the configurable minimum, the
//! guarantee is scaled by the ratio of the two: the data in flight of each client has to fit into
//! its share of the buffer.
//!
//! Where the gateways search for the rate, the capacity is the one found with hostile clients, if
//! it is within 1/5 of the one without. Links that several terminals share without a configured
//! rate are excluded: there the shares depend on congestion control.

mod checks;
mod link_direction;
mod network;
mod plan;
mod users;

use super::report::{Report, Violation};
use checks::{Measured, Reading};
use network::Network;
use plan::StormPlan;
use relay::Owner;
use units::Span;

/// Guaranteed fraction of the fair share.
const PROMISED: f64 = 0.8;

/// Time from the last client's start until the guarantee holds: a handshake, slow start, and the
/// drain of other clients' queues and windows.
fn settle(plan: &StormPlan) -> Span {
    Span::from_secs(5) + plan.round_trip() * 20
}

/// Duration of the measurement.
fn measured(plan: &StormPlan) -> Span {
    Span::from_secs(10) + plan.round_trip() * 10
}

/// Describes the storm of `seed`.
pub(super) fn describe(seed: u64) -> String {
    StormPlan::draw(seed).describe()
}

/// Runs the storm of `seed`.
pub(super) fn run(seed: u64) -> Result<Report, Violation> {
    run_with(&StormPlan::draw(seed), owner)
}

/// The quota owner of a client's streams.
fn owner(client: usize) -> Owner {
    Owner(client as u128 + 1)
}

fn run_with(plan: &StormPlan, owner: fn(usize) -> Owner) -> Result<Report, Violation> {
    let alone = plan.without_hostile();
    let (_, before, after) = play(&alone, owner)?;
    let usable = Measured::new(&alone, &before, &after).usable()?;
    let (network, before, after) = play(plan, owner)?;
    Measured::new(plan, &before, &after).checks(usable)?;
    Ok(Report {
        trace: network.trace(),
        preset: "clients",
        packets: network.packets(),
        storm: plan.attack_ends() + settle(plan) + measured(plan),
        recovery: Span::ZERO,
        sessions: 2 * plan.terminals as u64,
        aborted: 0,
        bytes: after.read(),
        coverage: network.coverage(),
        fault_counts: network.fault_counts().clone(),
    })
}

/// Runs the storm and reads the octets of each client at the start and the end of the measurement.
fn play(
    plan: &StormPlan,
    owner: fn(usize) -> Owner,
) -> Result<(Network<'_>, Reading, Reading), Violation> {
    let mut network = Network::new(plan, owner);
    network.connect()?;
    let from = network.now() + plan.attack_ends() + settle(plan);
    network.run(from, false)?;
    let before = Reading::take(&mut network);
    network.run(from + measured(plan), false)?;
    let after = Reading::take(&mut network);
    Ok((network, before, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seeds without a violation; some of them violate the guarantee without quotas.
    const SEEDS: core::ops::Range<u64> = 0..24;

    #[test]
    fn honest_clients_get_their_share_whatever_hostile_ones_do() {
        for seed in SEEDS {
            if let Err(damage) = run(seed) {
                panic!("seed {seed}: {damage}\n  {}", describe(seed));
            }
        }
    }

    /// Checks the test itself: with one common quota owner, as if there were no quotas, several of
    /// the same seeds violate the guarantee.
    #[test]
    fn without_owners_the_promise_is_broken() {
        let broken = SEEDS.filter(|&seed| run_with(&StormPlan::draw(seed), |_| Owner(1)).is_err());
        assert!(broken.count() >= 4);
    }
}
