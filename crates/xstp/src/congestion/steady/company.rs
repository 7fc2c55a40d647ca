//! Others send too: the rate grows by the [law](super::law), and falls by what it is seen to do.
//!
//! ```text
//!   SHARING     an event: a queue stands ──▶ drain
//!                   what the way took is what it took at the last event, twice in a row: all have
//!                   equal shares, or there is nobody else ──▶ cruise
//!   COMPETING   an event: losses, while the queue is nearly as long as it gets ──▶ half the rate
//!               for as long as our part of the queue takes to go away, then 0.7 of it
//!                   the queue was gone twice in a row: nobody keeps it ──▶ sharing
//! ```

use super::law::{Company, Law, is_congested};
use super::queue::Then;
use super::samples::{Window, micros, mul};
use super::{ENOUGH, Phase, Steady, UNSURE};
use units::{Instant, Span};

/// What the way took is the same when it differs by less than one part in this.
const SAME: u64 = 96;
/// Events in a row that find the same; once may be chance.
const SURE: u32 = 2;
/// How long it is known that somebody fills the queue.
const REMEMBERED: Span = Span::from_secs(60);

impl Steady {
    /// A POLL was answered, `since` after the one before.
    pub(super) fn on_sharing(&mut self, now: Instant, mut law: Law, since: Span) {
        self.samples.learn_jitter();
        // Without answers nothing grows.
        law.pause(since.saturating_sub(self.round_trip * 2));
        let span = self.span();
        let Some(window) = self.samples.latest(span, ENOUGH) else {
            self.phase = Phase::Sharing(law);
            return;
        };
        if window.sent_bps() < self.base / 10 * 9 {
            // Who has not enough to send gains nothing by that.
            law.pause(since);
            self.phase = Phase::Sharing(law);
            return;
        }
        match law.company {
            Company::Polite => {
                self.samples.learn_errors(self.limit() / 4, span * 2);
                if self.is_queue(&window) {
                    self.on_shared_queue(now, law, &window);
                    return;
                }
            }
            Company::Greedy => {
                let queue = self.samples.last_queue();
                law.top = (law.top - law.top / 256).max(queue);
                if queue > law.top / 4 * 3 && is_congested(&window, self.samples.error_ppm()) {
                    self.on_congestion(now, law);
                    return;
                }
                if self
                    .samples
                    .standing(self.round_trip * 2, ENOUGH)
                    .is_some_and(|least| least < self.limit() / 4)
                {
                    // Whoever kept the queue has gone.
                    self.phase = Phase::Cruise;
                    self.schedule.soon(now, self.round_trip);
                    return;
                }
            }
        }
        self.grow(now, law);
        // No more than half above what arrives.
        let kept = 1_000_000_u64.saturating_sub(self.samples.error_ppm()).max(1);
        let arrives = mul(window.arrived_bps(), 1_500_000, kept);
        self.base = self.base.min(arrives).max(self.floor);
    }

    fn grow(&mut self, now: Instant, law: Law) {
        let queue = micros(self.samples.last_queue());
        self.base = law.rate(now, self.round_trip, queue).clamp(self.floor, self.most());
        self.phase = Phase::Sharing(law);
    }

    /// Polite company: a queue is an event.
    fn on_shared_queue(&mut self, now: Instant, mut law: Law, window: &Window) {
        let link = self.busy_link(window);
        let same = if self.samples.jitter() > UNSURE { SAME / 3 } else { SAME };
        let same = link.abs_diff(law.found) <= law.found / same;
        law.found = link;
        law.same = if same { law.same + 1 } else { 0 };
        if !same {
            // Others share it: what the rate was when nobody did is nothing to go back to.
            self.fall = None;
            self.shared_until = now + REMEMBERED;
        }
        law.event(link, self.round_trip, Span::ZERO);
        self.drain(now, link, if law.same >= SURE { Then::Cruise } else { Then::Share(law) });
    }

    /// Greedy company: losses in a full queue are an event.
    fn on_congestion(&mut self, now: Instant, mut law: Law) {
        self.company_until = now + REMEMBERED;
        let (rate, queue) = (self.base, micros(self.samples.last_queue()));
        let left = law.event(rate, self.round_trip, queue);
        self.drain(now, rate, Then::Share(law));
        self.base = left;
    }

    /// There is room, where others have been met: they may have made it, and all are to grow by
    /// the same.
    pub(super) fn join(&mut self, now: Instant) {
        let mut law = Law::new(Company::Polite, self.link.unwrap_or(self.base));
        let queue = micros(self.samples.last_queue());
        law.join(now, self.base, self.round_trip, queue);
        self.grow(now, law);
    }

    /// A queue went away, and others may have their part in it.
    pub(super) fn share(&mut self, now: Instant, mut law: Law) {
        law.begin(now);
        self.grow(now, law);
    }

    /// A queue became less but did not go away: somebody keeps it.
    pub(super) fn meet(&mut self, now: Instant) {
        self.stays = 0;
        self.company_until = now + REMEMBERED;
        let mut law = Law::new(Company::Greedy, self.base);
        let queue = micros(self.samples.last_queue());
        law.join(now, self.base, self.round_trip, queue);
        self.grow(now, law);
    }

    /// After an event in greedy company: was the queue gone?
    pub(super) fn compete(&mut self, now: Instant, mut law: Law, gone: bool, flat: bool) {
        law.gone = if gone { law.gone + 1 } else { 0 };
        law.flat = if flat && !gone { law.flat + 1 } else { 0 };
        if law.flat >= 3 {
            // Again and again it stands still at what is left: that is the way.
            self.lengthen(now, self.base);
            return;
        }
        if law.gone >= 2 {
            let link = self.below(self.base);
            law = Law::new(Company::Polite, link);
            law.event(link, self.round_trip, Span::ZERO);
        }
        self.share(now, law);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::SessionConfig;
    use units::BitRate;

    /// A peer may announce any rate, and a minimum may be the maximum, which has headroom.
    #[test]
    fn a_ceiling_below_every_floor_holds() {
        let usual = SessionConfig::gateway_auto();
        let told = |bps| Some(BitRate::from_bps(bps));
        let slow = SessionConfig { max_rate: told(500), ..usual.clone() };
        let narrow = SessionConfig { max_rate: told(9_000), min_rate: told(9_000), ..usual };
        for (config, most) in [(slow, 500), (narrow, 9_000)] {
            let now = Instant::ZERO + Span::from_secs(1);
            let mut steady = Steady::new(&config);
            steady.share(now, Law::new(Company::Polite, most));
            assert!((1..=most).contains(&steady.pace(now).as_bps()));
            steady.meet(now);
            assert!((1..=most).contains(&steady.pace(now).as_bps()));
        }
    }
}
