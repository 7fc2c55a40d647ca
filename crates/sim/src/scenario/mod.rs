//! Experiments under virtual time whose results are guaranteed figures.
//!
//! Each function builds two gateways and a link, runs them, and returns the measured values. The
//! bounds are in `cargo run -p sim --example figures --release`, which prints all of them.

pub mod benchmark;
mod bulk;
pub mod controllers;
mod exchanges;
pub mod files;
mod outage;
mod requests;
pub mod shared;
pub mod single_session;
mod storm;

pub use bulk::{Bulk, bulk, file, full_rate_after};
pub use exchanges::{Exchanges, exchanges};
pub use outage::{Outage, Recovery, outage, recovery};
pub use requests::{Page, page, request};
pub(crate) use storm::storm_seen;
pub use storm::{Violation, storm};

use crate::gateways::{HubSide, Terminal, acquaint};
use crate::traffic::ConnectionPlan;
use crate::{Path, PathConfig};
use relay::{Control, PathMetrics, RelayConfig};
use satlink::LinkConfig;
use units::{BitRate, Instant, RngStream, Span};

/// Two gateways on a link.
pub type Rig = Path<Terminal, HubSide>;

/// Parameters of an experiment.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The link.
    pub link: LinkConfig,
    /// The rates configured at the gateways, forward and return.
    pub rates: [BitRate; 2],
    /// Whether the gateways have no rates configured and search for them.
    pub auto: bool,
    /// Whether padding estimates the forward rate before there is data, as by default.
    pub probe_rate: bool,
    /// Path metrics that the hub has cached for the terminal.
    pub path_metrics: Option<PathMetrics>,
    /// Maximum share of the rates for repair symbols, in percent.
    pub repair_percent: Option<u32>,
    /// The gateways' rate control.
    pub control: Control,
    /// Whether the link is encrypted, as by default.
    pub secure: bool,
    /// With `run` the source of all randomness.
    pub seed: u64,
}

impl Setting {
    /// The link of `profile`, changed by `words`, whose rates are configured at the gateways.
    ///
    /// # Panics
    /// If the profile does not exist, a word is unknown, or a direction has no rate.
    pub fn new(profile: &str, words: &str) -> Self {
        let mut link = satlink::profiles::by_name(profile).expect("the profile should exist");
        satlink::words::apply_link(&mut link, words).expect("the words should be understood");
        let rate = |rate: Option<BitRate>| rate.expect("the link should have a rate");
        let rates = [rate(link.forward.rate), rate(link.return_.rate)];
        Self::on(link, rates)
    }

    /// The link `link`, with `rates` configured at the gateways, forward and return.
    pub fn on(link: LinkConfig, rates: [BitRate; 2]) -> Self {
        let control = Control::default();
        Self {
            link,
            rates,
            auto: false,
            probe_rate: true,
            path_metrics: None,
            repair_percent: None,
            control,
            secure: true,
            seed: 1,
        }
    }

    /// Returns the setting with another seed.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Returns the setting with a configured forward rate of `percent` of the real one.
    #[must_use]
    pub fn with_configured_percent(mut self, percent: u64) -> Self {
        self.rates[0] = self.rates[0].mul_ratio(percent, 100);
        self
    }

    /// Returns the setting without configured rates.
    #[must_use]
    pub fn auto(mut self) -> Self {
        self.auto = true;
        self
    }

    /// Returns the setting with a hub that sends no padding.
    #[must_use]
    pub fn without_padding(mut self) -> Self {
        self.probe_rate = false;
        self
    }

    /// Returns the setting with a hub that has cached `rate` and the round trip.
    #[must_use]
    pub fn with_path_metrics(mut self, rate: BitRate) -> Self {
        self.path_metrics = Some(PathMetrics { rate, min_rtt: self.round_trip() });
        self
    }

    /// Returns the setting with repair symbols within `percent` of the rates.
    #[must_use]
    pub fn repairing(mut self, percent: Option<u32>) -> Self {
        self.repair_percent = percent;
        self
    }

    /// Returns the setting without encryption.
    #[must_use]
    pub fn open(mut self) -> Self {
        self.secure = false;
        self
    }

    /// Round-trip time without load.
    pub fn round_trip(&self) -> Span {
        self.link.round_trip()
    }

    /// Gateways on the link, with clients that follow `plans`.
    pub fn rig(&self, plans: Vec<ConnectionPlan>) -> Rig {
        let rng = |name| RngStream::new(self.seed, 0, name);
        let [forward, return_] = self.rates.map(|rate| (!self.auto).then_some(rate));
        let mut terminal = RelayConfig::new("terminal").with_rates(return_, forward);
        let mut hub = RelayConfig::new("hub").with_rates(forward, return_);
        (terminal.control, hub.control) = (self.control, self.control);
        // As gateways do by default.
        (terminal.probe_mtu, hub.probe_mtu) = (true, true);
        hub.probe_rate = self.probe_rate;
        terminal.repair_percent = self.repair_percent;
        hub.repair_percent = self.repair_percent;
        if self.secure {
            acquaint(&mut terminal, &mut hub, self.seed);
        }
        let mut hub = HubSide::new(&hub, rng("hub"));
        if let Some(metrics) = self.path_metrics {
            hub.hub.cache_path_metrics("terminal", metrics);
        }
        let mut config = PathConfig::new(self.link.clone());
        config.seed = self.seed;
        Path::new(&config, Terminal::new(&terminal, rng("terminal"), plans), hub)
            .expect("the link should be valid")
    }
}

/// Start of the experiments: the association is established by then.
pub const START: Instant = Instant::from_nanos(5_000_000_000);

#[cfg(test)]
mod tests;
