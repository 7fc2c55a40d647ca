//! Hostile peers and clients.

pub(super) mod client;
pub(super) mod hub;
pub(super) mod terminal;
mod wild;

use super::network::{Side, TestNetwork};
use crate::LabError;
use crate::live::Usage;

/// Memory in octets that an attack may use while it lasts. The limits allow more (`limits.memory`,
/// a terminal's credit); the test shows that an attacker does not determine the amount.
const MOST: u64 = 96 << 20;

/// Samples a gateway's resource usage during an attack and stores the maximum.
#[derive(Debug)]
struct Watch {
    side: Side,
    before: Usage,
    highest: Usage,
}

impl Watch {
    fn new(network: &mut TestNetwork, side: Side) -> Result<Self, LabError> {
        let before = network.usage(side)?;
        Ok(Self { side, before, highest: before })
    }

    fn look(&mut self, network: &mut TestNetwork) -> Result<(), LabError> {
        network.check()?;
        let now = network.usage(self.side)?;
        self.highest.resident = self.highest.resident.max(now.resident);
        self.highest.descriptors = self.highest.descriptors.max(now.descriptors);
        Ok(())
    }

    /// Evaluates the used resources, and whether they were released.
    fn evaluate(
        mut self,
        network: &mut TestNetwork,
        verdict: &mut super::Verdict,
    ) -> Result<(), LabError> {
        self.look(network)?;
        let after = network.usage(self.side)?;
        let name = self.side.name();
        let more = self.highest.resident.saturating_sub(self.before.resident);
        let mut figure = |what: &str, value: f64| verdict.figure(&format!("{name}_{what}"), value);
        figure("rss_before_mb", self.before.resident as f64 / 1e6);
        figure("rss_highest_mb", self.highest.resident as f64 / 1e6);
        figure("descriptors_before", self.before.descriptors as f64);
        figure("descriptors_highest", self.highest.descriptors as f64);
        figure("descriptors_after", after.descriptors as f64);
        figure("cpu_s", after.cpu - self.before.cpu);
        verdict.demand(more <= MOST, &format!("memory of the {name} is bounded"));
        verdict.demand(
            after.descriptors <= self.before.descriptors + 1,
            &format!("the {name} has let go of all connections"),
        );
        Ok(())
    }
}
