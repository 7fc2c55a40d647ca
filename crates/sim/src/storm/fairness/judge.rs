//! Who had how much, and who should have had it.

use super::super::Damage;
use super::PROMISED;
use super::mix::{Client, Mix};
use super::network::Network;
use super::users::Carried;
use units::Instant;

/// Payload of a packet of 1,500 octets (RLY-1.3).
const PAYLOAD: f64 = 1_436.0 / 1_500.0;

/// What each client has had until some time, by line.
pub(super) struct Reading {
    at: Instant,
    carried: Vec<[Carried; 2]>,
    control: [u64; 2],
}

impl Reading {
    pub(super) fn take(network: &mut Network<'_>) -> Self {
        Self { at: network.now(), carried: network.carried(), control: network.control() }
    }

    /// Octets that were read by all.
    pub(super) fn read(&self) -> u64 {
        self.carried.iter().flatten().map(|carried| carried.read).sum()
    }
}

/// Whether each honest client had what it is promised between two readings.
pub(super) fn judge(mix: &Mix, before: &Reading, after: &Reading) -> Result<(), Damage> {
    let seconds = after.at.since(before.at).as_secs_f64();
    let rate = |from: u64, to: u64| (to - from) as f64 * 8.0 / seconds;
    for line in 0..2 {
        let had: Vec<f64> = each(before, after, line, |carried| carried.read, rate);
        let sent: Vec<f64> = each(before, after, line, |carried| carried.sent, rate);
        let demand = |(client, &sent): (&Client, &f64)| {
            if client.honest && client.direction.line() == line { f64::INFINITY } else { sent }
        };
        let demands: Vec<f64> = mix.clients.iter().zip(&sent).map(demand).collect();
        let setup = mix.lines[line];
        let control = rate(before.control[line], after.control[line]);
        let left = setup.rate.as_bps() as f64 - control;
        let capacity = left * (1.0 - setup.loss) * PAYLOAD;
        let shares = shares(mix, capacity, &demands);
        if std::env::var("SHOW").is_ok() {
            eprintln!("line {line}: control {control:.0} {capacity:.0} {shares:.0?} had {had:.0?} sent {sent:.0?}");
        }
        for (number, client) in mix.clients.iter().enumerate() {
            let (had, share) = (had[number], shares[number]);
            if client.honest && client.direction.line() == line && had < PROMISED * share {
                let text = format!(
                    "client {number} had {:.3} of its share, {share:.0} bit/s of {capacity:.0}; \
                     sent for each: {sent:.0?}",
                    had / share
                );
                return Err(Damage::new(text));
            }
        }
    }
    Ok(())
}

/// A rate for each client on a line.
fn each(
    before: &Reading,
    after: &Reading,
    line: usize,
    octets: impl Fn(&Carried) -> u64,
    rate: impl Fn(u64, u64) -> f64,
) -> Vec<f64> {
    let pairs = before.carried.iter().zip(&after.carried);
    pairs.map(|(before, after)| rate(octets(&before[line]), octets(&after[line]))).collect()
}

/// The max-min fair share of each client of a line with this capacity.
fn shares(mix: &Mix, capacity: f64, demands: &[f64]) -> Vec<f64> {
    let clients = |terminal| {
        let here = mix.clients.iter().enumerate().filter(move |(_, c)| c.terminal == terminal);
        here.map(|(number, _)| number).collect::<Vec<_>>()
    };
    let terminals: Vec<Vec<usize>> = (0..mix.terminals).map(clients).collect();
    let sums: Vec<f64> = terminals
        .iter()
        .map(|clients| clients.iter().map(|&client| demands[client]).sum())
        .collect();
    let mut shares = vec![0.0; demands.len()];
    for (clients, part) in terminals.iter().zip(fill(capacity, &sums)) {
        let wanted: Vec<f64> = clients.iter().map(|&client| demands[client]).collect();
        for (&client, share) in clients.iter().zip(fill(part, &wanted)) {
            shares[client] = share;
        }
    }
    shares
}

/// Divides `capacity` among `demands`: nobody has more than he demands, and who has less than that
/// has no less than anybody else.
fn fill(capacity: f64, demands: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..demands.len()).collect();
    order.sort_by(|&a, &b| demands[a].total_cmp(&demands[b]));
    let (mut left, mut parts) = (capacity, vec![0.0; demands.len()]);
    for (place, &number) in order.iter().enumerate() {
        let equal = left / (demands.len() - place) as f64;
        parts[number] = demands[number].min(equal);
        left -= parts[number];
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_does_not_use_the_others_get() {
        assert_eq!(fill(12.0, &[f64::INFINITY, 2.0, f64::INFINITY]), [5.0, 2.0, 5.0]);
        assert_eq!(fill(12.0, &[f64::INFINITY, 9.0, 1.0]), [5.5, 5.5, 1.0]);
        assert_eq!(fill(12.0, &[3.0, 2.0]), [3.0, 2.0]);
    }
}
