//! Max-min fair rates: commitments first, the rest by weight.
//!
//! The rest is computed by progressive filling (Bertsekas and Gallager, *Data Networks*, 6.5.2):
//! shares grow in proportion to the weights until the demand of each participant is met.

use super::{COMMITTED_MOST, Terms};
use units::BitRate;

/// A terminal's demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Index of its plan.
    pub plan: usize,
    /// The rate that it would use, bits per second; `u64::MAX`: unlimited.
    pub need: u64,
}

/// A participant in the sharing of the rate that commitments leave.
struct Vessel {
    weight: u64,
    /// Its maximum.
    room: u64,
    who: Who,
}

enum Who {
    One(usize),
    Group(usize),
}

/// Returns the rate of each claim in bits per second, on a link with `capacity`, in the order of
/// `claims`. A claim on a plan that does not exist gets zero.
///
/// Commitments above 95 % of the link ([`COMMITTED_MOST`]) are reduced in proportion.
pub fn allocate(capacity: BitRate, plans: &[Terms], claims: &[Claim]) -> Vec<u64> {
    let capacity = capacity.as_bps();
    let mut limit: Vec<u64> = Vec::with_capacity(claims.len());
    let mut rates: Vec<u64> = Vec::with_capacity(claims.len());
    for claim in claims {
        let terms = plans.get(claim.plan);
        let most = terms.map_or(0, |terms| claim.need.min(terms.peak_bps()));
        limit.push(most);
        rates.push(terms.map_or(0, |terms| most.min(terms.committed_bps())));
    }
    // A plan's aggregate rate also limits its committed rates.
    for (plan, terms) in plans.iter().enumerate() {
        scale(&mut rates, claims, |claim| claim.plan == plan, terms.total_bps());
    }
    let most = (u128::from(capacity) * u128::from(COMMITTED_MOST) / 100) as u64;
    scale(&mut rates, claims, |_| true, most);
    let left = capacity.saturating_sub(rates.iter().sum());
    share(left, plans, claims, &limit, &mut rates);
    rates
}

/// Reduces the rates of the claims that are `among` to a sum of `most`.
fn scale(rates: &mut [u64], claims: &[Claim], among: impl Fn(&Claim) -> bool, most: u64) {
    let its = |(claim, _): &(&Claim, &mut u64)| among(claim);
    let sum: u128 =
        claims.iter().zip(&*rates).filter(|(c, _)| among(c)).map(|(_, &r)| u128::from(r)).sum();
    if sum > u128::from(most) {
        for (_, rate) in claims.iter().zip(rates).filter(its) {
            *rate = (u128::from(*rate) * u128::from(most) / sum) as u64;
        }
    }
}

/// Shares `left` by weight among plans whose aggregate rate is not reached, until none exceeds its
/// own.
fn share(left: u64, plans: &[Terms], claims: &[Claim], limit: &[u64], rates: &mut [u64]) {
    let base = rates.to_vec();
    // Plans that are one participant: with a shared weight, or limited by their aggregate rate.
    let mut alone: Vec<bool> = plans.iter().map(|terms| terms.shared_weight).collect();
    let mut held: Vec<Option<u64>> = vec![None; plans.len()];
    loop {
        rates.copy_from_slice(&base);
        let mut left = left;
        for (plan, held) in held.iter().enumerate() {
            if let Some(part) = *held {
                left = left.saturating_sub(inside(plan, part, claims, limit, rates));
            }
        }
        let mut vessels = Vec::new();
        for (at, claim) in claims.iter().enumerate() {
            let Some(terms) = plans.get(claim.plan) else { continue };
            if !alone[claim.plan] {
                let room = limit[at] - rates[at];
                vessels.push(Vessel { weight: terms.weight(), room, who: Who::One(at) });
            }
        }
        for (plan, terms) in plans.iter().enumerate() {
            if alone[plan] && held[plan].is_none() {
                let room = sum_of(plan, claims, |at| limit[at] - rates[at]);
                let most = terms.total_bps().saturating_sub(sum_of(plan, claims, |at| rates[at]));
                let room = room.min(most);
                vessels.push(Vessel { weight: terms.weight(), room, who: Who::Group(plan) });
            }
        }
        for (who, part) in pour(left, vessels) {
            match who {
                Who::One(at) => rates[at] += part,
                Who::Group(plan) => {
                    inside(plan, part, claims, limit, rates);
                }
            }
        }
        // The aggregate rate limits a plan as a whole, also if its terminals share with all others.
        let beyond = plans.iter().enumerate().position(|(plan, terms)| {
            !alone[plan] && sum_of(plan, claims, |at| rates[at]) > terms.total_bps()
        });
        let Some(plan) = beyond else { return };
        alone[plan] = true;
        let committed = sum_of(plan, claims, |at| base[at]);
        held[plan] = Some(plans[plan].total_bps().saturating_sub(committed));
    }
}

fn sum_of(plan: usize, claims: &[Claim], what: impl Fn(usize) -> u64) -> u64 {
    let its = claims.iter().enumerate().filter(|(_, claim)| claim.plan == plan);
    its.fold(0, |sum: u64, (at, _)| sum.saturating_add(what(at)))
}

/// Shares `part` evenly among a plan's terminals; returns the rate that they use.
fn inside(plan: usize, part: u64, claims: &[Claim], limit: &[u64], rates: &mut [u64]) -> u64 {
    let its = claims.iter().enumerate().filter(|(_, claim)| claim.plan == plan);
    let vessels = its
        .map(|(at, _)| Vessel { weight: 1, room: limit[at] - rates[at], who: Who::One(at) })
        .collect();
    let mut taken = 0;
    for (who, more) in pour(part, vessels) {
        if let Who::One(at) = who {
            rates[at] += more;
            taken += more;
        }
    }
    taken
}

/// Distributes `left` among the participants; returns the rate of each, rounded down by less than 1
/// bit/s.
fn pour(mut left: u64, mut vessels: Vec<Vessel>) -> Vec<(Who, u64)> {
    // Those with the lowest maximum per weight come first.
    vessels.sort_by(|a, b| {
        let (a, b) = ((a.room, a.weight), (b.room, b.weight));
        (u128::from(a.0) * u128::from(b.1)).cmp(&(u128::from(b.0) * u128::from(a.1)))
    });
    let mut weights: u128 = vessels.iter().map(|vessel| u128::from(vessel.weight)).sum();
    let mut taken = Vec::with_capacity(vessels.len());
    for Vessel { weight, room, who } in vessels {
        let fair = u128::from(left) * u128::from(weight) / weights.max(1);
        let part = room.min(u64::try_from(fair).unwrap_or(u64::MAX));
        left -= part;
        weights -= u128::from(weight);
        taken.push((who, part));
    }
    taken
}
