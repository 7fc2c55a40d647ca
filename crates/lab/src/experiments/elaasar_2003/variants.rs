//! Other interpretations of the paper, and the mechanism without single parts.

use super::trial::Trial;
use satlink::Limit;
use units::{BitRate, Span};
use xstp::session::{Halve, LossRoundTrip, ProbingConfig, RetransmitRule, Spread};

/// An interpretation.
#[derive(Clone, Copy)]
pub(super) struct Variant {
    /// Name in keys.
    pub(super) name: &'static str,
    /// Description.
    pub(super) about: &'static str,
    change: fn(&mut Trial),
}

/// Parts of the mechanism that claims concern, removed.
pub(super) const PARTS: [Variant; 6] =
    [NO_RECOVERY, NO_EARLY_TIMEOUT, NO_BACKOFF, NO_IDLE, NO_OUTAGE_PAUSE, NO_SLOT];

impl Variant {
    /// Returns true if cells depend on it.
    pub(super) fn judged(&self) -> bool {
        let mut judged = PARTS.into_iter().chain([AS_CHOSEN]);
        judged.any(|variant| variant.name == self.name)
    }

    /// Applies the interpretation to `trial`.
    pub(super) fn of(&self, mut trial: Trial) -> Trial {
        (self.change)(&mut trial);
        trial
    }
}

const fn variant(name: &'static str, about: &'static str, change: fn(&mut Trial)) -> Variant {
    Variant { name, about, change }
}

fn probing(trial: &mut Trial, change: fn(&mut ProbingConfig)) {
    if let Some(config) = &mut trial.source.xstp.probing {
        change(config);
    }
}

/// Limits the link rate, with a queue for the paper's windows.
fn rate(trial: &mut Trial, kbps: u64) {
    for direction in [&mut trial.link.forward, &mut trial.link.return_] {
        direction.rate = Some(BitRate::from_kbps(kbps));
        direction.queue.limit = Limit::Packets(64);
    }
}

/// Questions that the paper leaves open (protocol facts 3.3 and 8).
pub(super) const READINGS: &[Variant] = &[
    variant("tolerance-0", "tolerance 0", |trial| {
        probing(trial, |config| config.tolerance_millionths = 0);
    }),
    variant("tolerance-25", "tolerance 0.25", |trial| {
        probing(trial, |config| config.tolerance_millionths = 250_000);
    }),
    variant("tolerance-50", "tolerance 0.5: all delays pass", |trial| {
        probing(trial, |config| config.tolerance_millionths = 500_000);
    }),
    variant("idle-1", "idle threshold 1 s", |trial| idle(trial, Some(1))),
    variant("idle-10", "idle threshold 10 s", |trial| idle(trial, Some(10))),
    NO_IDLE,
    variant("last-round-trip", "compared with the last round trip, not the smoothed", |trial| {
        probing(trial, |config| config.loss_round_trip = LossRoundTrip::Last);
    }),
    variant("restore-window", "the window restored to what it was before", |trial| {
        probing(trial, |config| config.restore_window = true);
    }),
    variant("halve-flight", "congestion halves what is outstanding", |trial| {
        probing(trial, |config| config.halve = Halve::Flight);
    }),
    variant("three-probes", "REQ_PROBES 3 (the paper has 2)", |trial| {
        probing(trial, |config| config.required_probes = 3);
    }),
    NO_SLOT,
    variant("poll-order", "retransmitted if sent before the POLL, as STP", |trial| {
        trial.source.xstp.retransmit_rule = RetransmitRule::PollOrder;
    }),
    variant("round-trip", "retransmitted after a round trip that does not back off", |trial| {
        trial.source.xstp.retransmit_rule = RetransmitRule::RoundTrip;
    }),
    variant("spread-window", "a full window spread over a round trip", |trial| {
        trial.source.stp.spread = Spread::Window;
    }),
    variant("one-burst-again", "all that is retransmitted in one burst", |trial| {
        trial.source.xstp.retransmit_burst = u32::MAX;
    }),
    NO_OUTAGE_PAUSE,
    variant("backoff-2", "polling backs off to 4 times at most", |trial| {
        trial.source.poll_backoff_cap = 2;
    }),
    variant("backoff-7", "polling backs off to 128 times at most", |trial| {
        trial.source.poll_backoff_cap = 7;
    }),
    variant("backoff-8", "polling backs off to 64 round trips, not 64 intervals", |trial| {
        trial.source.poll_backoff_cap = 8;
    }),
    variant("reordered", "after a slow stay later packets overtake earlier ones", |trial| {
        (trial.link.forward.keep_order, trial.link.return_.keep_order) = (false, false);
    }),
    variant("rate-1500", "a line of 1.5 Mbit/s", |trial| rate(trial, 1_500)),
    variant("rate-2560", "a line of 2.56 Mbit/s: 64 segments each 200 ms", |trial| {
        rate(trial, 2_560);
    }),
    variant("rate-10000", "a line of 10 Mbit/s", |trial| rate(trial, 10_000)),
];

/// Parts of the mechanism removed, to measure their effect.
pub(super) const WITHOUT: &[Variant] = &[NO_RECOVERY, NO_EARLY_TIMEOUT, NO_BACKOFF];

/// The chosen interpretation.
pub(super) const AS_CHOSEN: Variant = variant("as-chosen", "as chosen for this report", |_| {});

pub(super) const NO_RECOVERY: Variant =
    variant("no-recovery", "no immediate recovery: every cycle is taken for congestion", |trial| {
        probing(trial, |config| config.immediate_recovery = false);
    });

pub(super) const NO_EARLY_TIMEOUT: Variant =
    variant("no-early-timeout", "no early timeout", |trial| {
        probing(trial, |config| config.early_timeout = false);
    });

pub(super) const NO_BACKOFF: Variant =
    variant("no-backoff", "polling never backs off", |trial| trial.source.poll_backoff_cap = 0);

/// Without the slot of the map for responses from before the loss.
pub(super) const NO_SLOT: Variant =
    variant("no-slot-before", "no slot for answers from before the loss", |trial| {
        probing(trial, |config| config.before_loss = false);
    });

/// Without slow start after idle periods, for both senders.
pub(super) const NO_IDLE: Variant =
    variant("idle-never", "no idle threshold", |trial| idle(trial, None));

/// Without slow start after an outage, which only OFF performs.
pub(super) const NO_OUTAGE_PAUSE: Variant =
    variant("outage-no-pause", "an outage is no pause: OFF never slow-starts again", |trial| {
        trial.source.xstp.outage_is_idle = false;
    });

fn idle(trial: &mut Trial, seconds: Option<u64>) {
    let long = Span::from_secs(seconds.unwrap_or(1_000_000_000));
    trial.source.xstp.slow_start_after_idle = seconds.map(Span::from_secs);
    if let Some(config) = &mut trial.source.xstp.probing {
        config.idle_threshold = long;
    }
}

pub(super) fn all() -> impl Iterator<Item = &'static Variant> {
    const CHOSEN: &[Variant] = &[AS_CHOSEN];
    CHOSEN.iter().chain(READINGS).chain(WITHOUT)
}
