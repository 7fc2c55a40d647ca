//! Background web load: transfers with the sizes of the Berkeley traces.

use super::mah::{self, Size};
use super::{ConnectionPlan, Exchange};
use units::{BitRate, Instant, RngStream, Span};

/// Independent transfers at random times, each on a connection of its own, as the traffic
/// generators of Henderson and Katz 1999 (section 4): one of a page's files is primary and all
/// others are secondary, by Mah's quantiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WebLoad {
    /// Mean rate of responses in bit/s.
    pub rate: BitRate,
    /// Larger files are redrawn. Without a limit a few very large files make much of the load, so a
    /// mean over minutes is far from the long-term mean.
    pub largest: Option<u64>,
}

impl WebLoad {
    /// The connections that start from `start` until `until`.
    pub fn plans(
        &self,
        rng: &mut RngStream,
        start: Instant,
        until: Instant,
    ) -> Vec<ConnectionPlan> {
        let share = primary_share();
        let between = self.between(share);
        let mut plans = Vec::new();
        let mut at = start + rng.exponential_span(between);
        while at < until {
            plans.push(ConnectionPlan::single(at, self.draw(share, rng)));
            at += rng.exponential_span(between);
        }
        plans
    }

    /// Mean time between starts.
    fn between(&self, share: f64) -> Span {
        let largest = self.largest.unwrap_or(u64::MAX);
        let [(primary, fits), (secondary, others)] =
            [Size::PrimaryReply, Size::SecondaryReply].map(|size| mah::mean_up_to(size, largest));
        // A file above the limit is redrawn, primary or not.
        let weight = share * fits + (1.0 - share) * others;
        let mean = (share * fits * primary + (1.0 - share) * others * secondary) / weight;
        Span::from_secs_f64(mean * 8.0 / self.rate.as_bps() as f64)
    }

    fn draw(&self, share: f64, rng: &mut RngStream) -> Exchange {
        loop {
            let (ask, reply) = if rng.chance(share) {
                (Size::PrimaryRequest, Size::PrimaryReply)
            } else {
                (Size::SecondaryRequest, Size::SecondaryReply)
            };
            let one = Exchange { request: mah::draw(ask, rng), response: mah::draw(reply, rng) };
            if self.largest.is_none_or(|largest| one.response <= largest) {
                return one;
            }
        }
    }
}

/// One of a page's files is primary.
fn primary_share() -> f64 {
    1.0 / mah::mean_up_to(Size::Files, u64::MAX).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_has_the_configured_rate() {
        let hours = Instant::ZERO + Span::from_secs(100_000);
        for (largest, tolerance) in [(Some(146_000), 0.04), (None, 0.25)] {
            let load = WebLoad { rate: BitRate::from_kbps(80), largest };
            let plans = load.plans(&mut RngStream::new(1, 0, "web"), Instant::ZERO, hours);
            let sizes = plans.iter().flat_map(|plan| &plan.exchanges).map(|one| one.response);
            let bits = sizes.clone().sum::<u64>() as f64 * 8.0 / 100_000.0;
            assert!((bits / 80_000.0 - 1.0).abs() < tolerance, "{bits} {largest:?}");
            assert!(sizes.max() <= largest.or(Some(8_146_976)));
        }
    }
}
