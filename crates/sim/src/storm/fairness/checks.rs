//! Compares each honest client's rate with its max-min fair share.

use super::super::report::Violation;
use super::PROMISED;
use super::network::Network;
use super::plan::StormPlan;
use super::users::ClientOctets;
use relay::Control;
use units::Instant;

/// Payload share of a 1,500-octet packet (RLY-1.3).
const PAYLOAD: f64 = 1_436.0 / 1_500.0;

/// Minimum utilization by gateways with a configured rate and the controller `fixed`. The rate that
/// other controllers find is not checked here.
const MIN_USABLE: f64 = 0.8;
/// On a shared return link a terminal is granted 1.5 times its recent rate while it can send more
/// (RLY-7).
const GRANTED: f64 = 1.5;

/// Octets of each client up to a point in time, by link direction.
pub(super) struct Reading {
    at: Instant,
    client_octets: Vec<[ClientOctets; 2]>,
    /// Octets of IP packets per link direction and terminal: all, and control traffic.
    octets: [Vec<[u64; 2]>; 2],
}

impl Reading {
    pub(super) fn take(network: &mut Network<'_>) -> Self {
        Self { at: network.now(), client_octets: network.client_octets(), octets: network.octets() }
    }

    /// Octets read by all applications.
    pub(super) fn read(&self) -> u64 {
        self.client_octets.iter().flatten().map(|client_octets| client_octets.read).sum()
    }
}

/// Differences between two readings, in bit/s.
pub(super) struct Measured<'m> {
    plan: &'m StormPlan,
    seconds: f64,
    readings: [&'m Reading; 2],
}

impl<'m> Measured<'m> {
    pub(super) fn new(plan: &'m StormPlan, before: &'m Reading, after: &'m Reading) -> Self {
        Self { plan, seconds: after.at.since(before.at).as_secs_f64(), readings: [before, after] }
    }

    fn rate(&self, octets: impl Fn(&Reading) -> u64) -> f64 {
        let [before, after] = self.readings.map(octets);
        (after - before) as f64 * 8.0 / self.seconds
    }

    /// Rates of IP packets per link direction with honest clients alone.
    ///
    /// # Errors
    ///
    /// The utilization is below the minimum.
    pub(super) fn usable(&self) -> Result<[f64; 2], Violation> {
        let mut usable = [0.0; 2];
        for (line, sum) in usable.iter_mut().enumerate() {
            *sum = (0..self.plan.terminals).map(|terminal| self.sent(line, terminal)[0]).sum();
            let is_full = self.plan.clients.iter().any(|client| client.is_measured(line));
            let max = self.plan.lines[line].rate.as_bps() as f64;
            let rates_configured =
                self.plan.rates_configured && self.plan.control == Control::Fixed;
            let rates_configured = rates_configured && self.plan.bound_by_memory().is_none();
            if rates_configured && is_full && *sum < MIN_USABLE * max {
                let text = format!("{sum:.0} of {max:.0} bit/s were sent for honest clients alone");
                return Err(Violation::new(text));
            }
        }
        Ok(usable)
    }

    /// Rates of IP packets and of control traffic for a terminal in one direction.
    fn sent(&self, line: usize, terminal: usize) -> [f64; 2] {
        [0, 1].map(|which| self.rate(|reading| reading.octets[line][terminal][which]))
    }

    /// The payload delivered at `rate` in full packets.
    fn payload(&self, line: usize, rate: f64) -> f64 {
        rate * (1.0 - self.plan.lines[line].loss) * PAYLOAD
    }

    /// Checks that each honest client has received the guaranteed part of its share of `usable`.
    pub(super) fn checks(&self, usable: [f64; 2]) -> Result<(), Violation> {
        for (line, usable) in usable.into_iter().enumerate() {
            let capacity = self.capacity(line, usable);
            let demands = self.demands(line);
            let shares = self.shares(line, capacity, &demands);
            for (number, client) in self.plan.clients.iter().enumerate() {
                let had = self.rate(|reading| reading.client_octets[number][line].read);
                let share =
                    self.plan.bound_by_memory().unwrap_or(f64::INFINITY).min(shares[number]);
                if client.is_measured(line) && had < PROMISED * share {
                    let text = format!(
                        "client {number} had {:.3} of its share, {share:.0} bit/s of \
                         {capacity:.0}; demands: {demands:.0?}",
                        had / share
                    );
                    return Err(Violation::new(text));
                }
            }
        }
        Ok(())
    }

    /// The capacity of a direction, of which honest clients alone used `usable`. A controller that
    /// searches for the rate may find less within the measured time, but at least the minimum
    /// utilization.
    fn capacity(&self, line: usize, usable: f64) -> f64 {
        if self.plan.control != Control::Steady {
            return usable;
        }
        let sent: f64 = (0..self.plan.terminals).map(|terminal| self.sent(line, terminal)[0]).sum();
        sent.clamp(MIN_USABLE * usable, usable)
    }

    /// The demand of each client in a direction.
    fn demands(&self, line: usize) -> Vec<f64> {
        let demand = |number: usize| match self.plan.clients[number].is_measured(line) {
            true => f64::INFINITY,
            false => self.rate(|reading| reading.client_octets[number][line].sent),
        };
        (0..self.plan.clients.len()).map(demand).collect()
    }

    /// The max-min fair share of each client of a direction with this capacity.
    fn shares(&self, line: usize, capacity: f64, demands: &[f64]) -> Vec<f64> {
        let of_terminal = |terminal: usize| {
            let wanted: Vec<f64> = self.clients(terminal).map(|number| demands[number]).collect();
            let sum: f64 = wanted.iter().sum();
            let room = if line == 0 && self.plan.terminals > 1 { GRANTED } else { 1.0 };
            if sum.is_infinite() { sum } else { room * self.sent(line, terminal)[0] }
        };
        let terminals: Vec<f64> = (0..self.plan.terminals).map(of_terminal).collect();
        let mut shares = vec![0.0; demands.len()];
        for (terminal, part) in fill(capacity, &terminals).into_iter().enumerate() {
            let part = self.payload(line, part - self.sent(line, terminal)[1]);
            let wanted: Vec<f64> = self.clients(terminal).map(|number| demands[number]).collect();
            for (number, share) in self.clients(terminal).zip(fill(part, &wanted)) {
                shares[number] = share;
            }
        }
        shares
    }

    /// The numbers of a terminal's clients.
    fn clients(&self, terminal: usize) -> impl Iterator<Item = usize> {
        let clients = self.plan.clients.iter().enumerate();
        clients.filter(move |(_, client)| client.terminal == terminal).map(|(number, _)| number)
    }
}

/// Divides `capacity` among `demands` by max-min fairness: no share exceeds its demand, and a share
/// below its demand is at least as large as every other.
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
    fn unused_shares_are_redistributed() {
        assert_eq!(fill(12.0, &[f64::INFINITY, 2.0, f64::INFINITY]), [5.0, 2.0, 5.0]);
        assert_eq!(fill(12.0, &[f64::INFINITY, 9.0, 1.0]), [5.5, 5.5, 1.0]);
        assert_eq!(fill(12.0, &[3.0, 2.0]), [3.0, 2.0]);
    }
}
