//! Who had how much, and who should have had it.

use super::super::report::Damage;
use super::PROMISED;
use super::mix::Mix;
use super::network::Network;
use super::users::Carried;
use relay::Control;
use units::Instant;

/// Payload of a packet of 1,500 octets (RLY-1.3).
const PAYLOAD: f64 = 1_436.0 / 1_500.0;

/// The part of a rate that is used at least by gateways that are told it and keep to it. Those that
/// look for it have what their congestion control finds, which is not judged here.
const LEAST_USABLE: f64 = 0.8;
/// A terminal on a shared return link is granted this many times what it sends of late while it could
/// send more, so that it can become more (RLY-7).
const GRANTED: f64 = 1.5;

/// What each client has had until some time, by line.
pub(super) struct Reading {
    at: Instant,
    carried: Vec<[Carried; 2]>,
    /// Octets of IP packets on each line, by terminal: all, and those of control.
    octets: [Vec<[u64; 2]>; 2],
}

impl Reading {
    pub(super) fn take(network: &mut Network<'_>) -> Self {
        Self { at: network.now(), carried: network.carried(), octets: network.octets() }
    }

    /// Octets that were read by all.
    pub(super) fn read(&self) -> u64 {
        self.carried.iter().flatten().map(|carried| carried.read).sum()
    }
}

/// What happened between two readings, in bits per second.
pub(super) struct Measured<'m> {
    mix: &'m Mix,
    seconds: f64,
    readings: [&'m Reading; 2],
}

impl<'m> Measured<'m> {
    pub(super) fn new(mix: &'m Mix, before: &'m Reading, after: &'m Reading) -> Self {
        Self { mix, seconds: after.at.since(before.at).as_secs_f64(), readings: [before, after] }
    }

    fn rate(&self, octets: impl Fn(&Reading) -> u64) -> f64 {
        let [before, after] = self.readings.map(octets);
        (after - before) as f64 * 8.0 / self.seconds
    }

    /// What is sent on each line for honest clients, in IP packets, which are alone.
    ///
    /// # Errors
    /// When that is too little of what the link carries.
    pub(super) fn usable(&self) -> Result<[f64; 2], Damage> {
        let mut usable = [0.0; 2];
        for (line, sum) in usable.iter_mut().enumerate() {
            *sum = (0..self.mix.terminals).map(|terminal| self.sent(line, terminal)[0]).sum();
            let is_full = self.mix.clients.iter().any(|client| client.is_measured(line));
            let most = self.mix.lines[line].rate.as_bps() as f64;
            let told = self.mix.told && self.mix.control == Control::Fixed;
            let told = told && self.mix.bound_by_memory().is_none();
            if told && is_full && *sum < LEAST_USABLE * most {
                let text =
                    format!("{sum:.0} of {most:.0} bit/s were sent for honest clients alone");
                return Err(Damage::new(text));
            }
        }
        Ok(usable)
    }

    /// What was sent on a line for a terminal in IP packets, and what of it was control.
    fn sent(&self, line: usize, terminal: usize) -> [f64; 2] {
        [0, 1].map(|which| self.rate(|reading| reading.octets[line][terminal][which]))
    }

    /// The payload that arrives of `rate` on a line, in full packets.
    fn payload(&self, line: usize, rate: f64) -> f64 {
        rate * (1.0 - self.mix.lines[line].loss) * PAYLOAD
    }

    /// Holds that each honest client had what it is promised of the `usable` capacity.
    pub(super) fn judge(&self, usable: [f64; 2]) -> Result<(), Damage> {
        for (line, usable) in usable.into_iter().enumerate() {
            let capacity = self.capacity(line, usable);
            let demands = self.demands(line);
            let shares = self.shares(line, capacity, &demands);
            for (number, client) in self.mix.clients.iter().enumerate() {
                let had = self.rate(|reading| reading.carried[number][line].read);
                let share = self.mix.bound_by_memory().unwrap_or(f64::INFINITY).min(shares[number]);
                if client.is_measured(line) && had < PROMISED * share {
                    let text = format!(
                        "client {number} had {:.3} of its share, {share:.0} bit/s of \
                         {capacity:.0}; demands: {demands:.0?}",
                        had / share
                    );
                    return Err(Damage::new(text));
                }
            }
        }
        Ok(())
    }

    /// What the line carries, of which `usable` was used when honest clients were alone. A
    /// controller that looks for its rate may find less in the same time; no less than what one
    /// uses that is told it.
    fn capacity(&self, line: usize, usable: f64) -> f64 {
        if self.mix.control != Control::Steady {
            return usable;
        }
        let sent: f64 = (0..self.mix.terminals).map(|terminal| self.sent(line, terminal)[0]).sum();
        sent.clamp(LEAST_USABLE * usable, usable)
    }

    /// What each client demands of a line.
    fn demands(&self, line: usize) -> Vec<f64> {
        let demand = |number: usize| match self.mix.clients[number].is_measured(line) {
            true => f64::INFINITY,
            false => self.rate(|reading| reading.carried[number][line].sent),
        };
        (0..self.mix.clients.len()).map(demand).collect()
    }

    /// The max-min fair share of each client of a line with this capacity.
    fn shares(&self, line: usize, capacity: f64, demands: &[f64]) -> Vec<f64> {
        let of_terminal = |terminal: usize| {
            let wanted: Vec<f64> = self.clients(terminal).map(|number| demands[number]).collect();
            let sum: f64 = wanted.iter().sum();
            let room = if line == 0 && self.mix.terminals > 1 { GRANTED } else { 1.0 };
            if sum.is_infinite() { sum } else { room * self.sent(line, terminal)[0] }
        };
        let terminals: Vec<f64> = (0..self.mix.terminals).map(of_terminal).collect();
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
        let clients = self.mix.clients.iter().enumerate();
        clients.filter(move |(_, client)| client.terminal == terminal).map(|(number, _)| number)
    }
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
