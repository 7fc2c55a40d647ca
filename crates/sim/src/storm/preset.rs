//! Session configurations of storms.

use super::report::Subject;
use units::{BitRate, RngStream, Span};
use xstp::congestion::Controller;
use xstp::session::{GatewayPolicy, LowRatePolicy, SessionConfig, Spread, StpPolicy};

/// A published preset or a variant of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preset {
    /// The gateway's, with the controller `fixed`.
    Fixed,
    /// The gateway's with a congestion window and no rate.
    NewReno,
    /// The gateway's with a congestion window and a rate cap.
    NewRenoPaced,
    /// STP as published in 1999.
    Stp,
    /// STP as published in 1999, with a rate cap.
    StpPaced,
    /// STP as published in 1999, with each window paced over the round trip.
    StpSpread,
    /// In-order delivery at a configured rate.
    FixedInOrder,
    /// XSTP as published in 2003, with probing.
    Xstp,
    /// XSTP as published in 2003, without probing.
    XstpOff,
    /// The gateway's without a configured rate.
    Steady,
    /// The same with a rate cap, and half of the time with cached path metrics.
    SteadyCapped,
}

impl Preset {
    /// The presets used for `subject`.
    pub(crate) fn of(subject: Subject) -> &'static [Self] {
        match subject {
            Subject::Sessions => &[
                Self::Fixed,
                Self::Fixed,
                Self::NewReno,
                Self::NewRenoPaced,
                Self::Steady,
                Self::SteadyCapped,
            ],
            Subject::Connections | Subject::Links | Subject::Gateways | Subject::Fairness => &[
                Self::Stp,
                Self::StpPaced,
                Self::StpSpread,
                Self::FixedInOrder,
                Self::Xstp,
                Self::Xstp,
                Self::XstpOff,
            ],
        }
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::NewReno => "newreno",
            Self::NewRenoPaced => "newreno, paced",
            Self::Stp => "stp-1999",
            Self::StpPaced => "stp-1999, paced",
            Self::StpSpread => "stp-1999, spread",
            Self::FixedInOrder => "fixed, in order",
            Self::Xstp => "xstp-2003",
            Self::XstpOff => "xstp-2003 without probing",
            Self::Steady => "steady",
            Self::SteadyCapped => "steady below a rate",
        }
    }

    /// The configuration, for a link of `rate`.
    pub(crate) fn config(self, rate: BitRate, rng: &mut RngStream) -> SessionConfig {
        let gateway = SessionConfig::gateway(rate);
        let stp = SessionConfig::stp_1999();
        let mut config = match self {
            Self::Xstp => SessionConfig::xstp_2003(),
            Self::XstpOff => SessionConfig::xstp_2003().with_probing(None),
            Self::Steady => SessionConfig::gateway_auto(),
            Self::SteadyCapped => SessionConfig {
                max_rate: Some(rate),
                initial_rate: rng.chance(0.5).then_some(rate),
                reverse_rate: rng.chance(0.5).then_some(rate),
                ..SessionConfig::gateway_auto()
            },
            Self::Fixed => gateway,
            Self::NewReno => SessionConfig {
                controller: Controller::NewReno,
                max_rate: None,
                stp: StpPolicy { small_window: 10, ..gateway.stp },
                ..gateway
            },
            Self::NewRenoPaced => SessionConfig { controller: Controller::NewReno, ..gateway },
            Self::Stp => stp,
            Self::StpPaced => SessionConfig { max_rate: Some(rate), ..stp }.with_low_rate_rules(4),
            Self::StpSpread => SessionConfig {
                initial_window: 4,
                stp: StpPolicy { spread: Spread::Window, ..stp.stp },
                ..stp
            },
            Self::FixedInOrder => SessionConfig {
                controller: Controller::Fixed,
                max_rate: Some(rate),
                gateway: GatewayPolicy {
                    detect_standing_queue: rng.chance(0.5),
                    low_rate: Some(LowRatePolicy { control_divisor: 2 }),
                    ..GatewayPolicy::default()
                },
                ..stp
            },
        };
        // Parameters whose values differ between the papers.
        if rng.chance(0.3) {
            config.ustat_threshold = 1 + rng.below(5) as u32;
            config.ustat_hold = Span::from_millis(rng.below(3) * 15);
        }
        if rng.chance(0.2) {
            config.gateway.release_early =
                !config.gateway.release_early && config.delivery == xstp::wire::Delivery::Immediate;
            config.gateway.duplicate_from_retransmission =
                [None, Some(1), Some(2)][rng.below(3) as usize];
            config.polls_per_round_trip = 1 + rng.below(6) as u32;
        }
        config
    }
}
