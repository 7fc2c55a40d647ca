//! A queue is drained, and it is seen whether it was one of ours.
//!
//! ```text
//!   DRAINING   at half of what the link takes for 2 q, or at an eighth for 8/7 q where q is long
//!   SETTLING   until a POLL sent after that is answered
//!       q is gone                      it was a queue; on at what the link takes
//!       q stands still, nothing drops  the way is longer now; on as before, and from q on
//!       q moves                        somebody else keeps it
//! ```

use super::law::{Company, Law, is_congested};
use super::samples::{Sample, Window, as_micros, micros};
use super::{ENOUGH, LONGEST_HOLD, Phase, Steady};
use units::{Instant, Span};

/// A queue that is being drained.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    pub(super) rate: u64,
    pub(super) since: Instant,
    pub(super) until: Instant,
    /// Whether next to nothing is sent meanwhile, and not half.
    pub(super) deep: bool,
    /// What was seen to stand, microseconds.
    pub(super) queue: i64,
    /// The rate before it.
    pub(super) before: u64,
    /// Whether less passed than was sent while it stood.
    pub(super) choked: bool,
    pub(super) then: Then,
}

/// What comes after a queue that went away.
#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    /// Nobody else can have made it.
    Own,
    /// The link takes less than was thought.
    Cruise,
    /// Others may send too.
    Share(Law),
}

impl Drain {
    /// How long a queue takes to go away.
    fn time_for(&self, queue: Span) -> Span {
        if self.deep { queue.mul_ratio(8, 7) } else { queue * 2 }
    }
}

impl Steady {
    /// A queue stands, and the link takes `link`.
    pub(super) fn drain(&mut self, now: Instant, link: u64, then: Then) {
        let link = link.max(self.floor);
        let Some(last) = self.samples.last() else { return };
        let queue = self.samples.queue(last);
        // What has come to it since that POLL was sent.
        let since = as_micros(now.since(last.sent_at));
        let growing = |window: &Window| !window.drops(self.samples.error_ppm());
        let recent = self.samples.latest(self.span(), 2);
        let recent = recent.or_else(|| self.samples.latest(Span::ZERO, 2));
        let growth = recent.filter(growing).map_or(0, |window| {
            window.growth.max(0).saturating_mul(since) / (window.sending_us.max(1) as i64)
        });
        let waits = micros(queue.saturating_add(growth));
        // A long queue is drained by next to nothing, a short one by half.
        let greedy = matches!(then, Then::Share(law) if law.company == Company::Greedy);
        let deep = waits > self.round_trip / 2 && !greedy;
        let rate = if deep { link / 8 } else { link / 2 };
        let before = self.base;
        let busy = self.samples.busy(self.limit() / 2);
        let choked = busy.is_some_and(|busy| busy.passed_bps() < busy.sent_bps() / 16 * 15);
        if !greedy {
            self.note_fall(now, link);
        }
        let mut drain = Drain { rate, since: now, until: now, deep, queue, before, choked, then };
        drain.until = now + drain.time_for(waits);
        self.met |= matches!(then, Then::Share(_));
        self.base = self.below(link);
        self.is_cut = false;
        self.link = Some(link);
        self.phase = Phase::Draining(drain);
        self.ask = true;
    }

    /// What is known of the queue since tells better when it will be empty.
    pub(super) fn on_draining(&mut self, now: Instant, mut drain: Drain, sample: &Sample) {
        if sample.sent_at >= drain.since {
            let left = micros(self.samples.queue(sample));
            drain.until = drain.until.min(sample.sent_at + drain.time_for(left));
        }
        self.phase = Phase::Draining(drain);
        if now >= drain.until {
            self.phase = Phase::Settling(Drain { until: now, ..drain });
            self.ask = true;
        }
    }

    /// The queue has had time to go away: has it?
    pub(super) fn settle(&mut self, now: Instant, drain: &Drain) {
        let left = self.samples.last_queue();
        let greedy = matches!(drain.then, Then::Share(law) if law.company == Company::Greedy);
        let rest = if greedy { 0 } else { drain.queue / 4 };
        let gone = left < rest.max(self.limit() / 2);
        let sure = matches!(drain.then, Then::Own);
        let (count, range) = self.samples.range(drain.until);
        // A queue that was never seen is told from errors by what is lost at the lower rate.
        let unseen = drain.queue < self.limit() / 2 && !sure;
        if (!gone || unseen) && !sure && count < ENOUGH {
            return;
        }
        if gone && unseen && self.samples.learn_lost(drain.until) {
            self.base = drain.before;
            self.phase = Phase::Cruise;
            self.samples.restart();
            return;
        }
        // At this rate a queue of ours neither stays nor becomes longer by chance.
        let flat = range <= (self.limit() / 8).max(self.samples.jitter() * 4) && !self.drops();
        self.phase = Phase::Cruise;
        self.wait_until = now;
        if gone {
            self.stays = 0;
        }
        if gone && !greedy && self.has_collapsed() {
            self.look_again(now);
            return;
        }
        match drain.then {
            Then::Own => {}
            Then::Share(law) if greedy => self.compete(now, law, gone, flat),
            Then::Cruise if gone => {
                self.hold = Span::ZERO;
                self.schedule.soon(now, self.round_trip);
            }
            Then::Share(law) if gone => {
                self.hold = Span::ZERO;
                self.share(now, law);
            }
            Then::Cruise | Then::Share(_) if flat && now >= self.company_until => {
                // On a way that is merely longer what was sent has passed.
                let left = if drain.choked { self.base } else { drain.before };
                self.lengthen(now, left);
            }
            // Others of our kind drain too, but not at the same time: once more.
            Then::Cruise | Then::Share(_) if self.stays == 0 => {
                self.stays = 1;
                self.drain(now, self.base, drain.then);
                return;
            }
            Then::Cruise | Then::Share(_) => self.meet(now),
        }
        self.samples.restart();
    }

    /// The way is longer now; the rate was right.
    pub(super) fn lengthen(&mut self, now: Instant, before: u64) {
        self.samples.forget_least(now);
        self.base = before;
        let first = self.round_trip * 4;
        self.hold = if self.hold < first { first } else { (self.hold * 2).min(LONGEST_HOLD) };
        self.wait_until = now + self.hold;
    }

    /// Whether the newest window lost more than errors explain.
    fn drops(&self) -> bool {
        let window = self.samples.latest(self.span(), ENOUGH);
        window.is_some_and(|window| is_congested(&window, self.samples.error_ppm()))
    }

    /// What the way takes while a queue stands.
    pub(super) fn busy_link(&self, window: &Window) -> u64 {
        let link = self.samples.busy_link(self.limit() / 2);
        link.unwrap_or(window.link_bps(self.samples.error_ppm()))
    }

    /// A queue stands that no probe of ours has made.
    pub(super) fn uninvited(&mut self, now: Instant, window: &Window) {
        let link = self.busy_link(window);
        let then = match self.link {
            // A rate that was never seen to be the link's is merely too high; so is one that
            // makes a short queue.
            None => Then::Cruise,
            Some(_) if !self.is_queue(window) => Then::Cruise,
            Some(_) => {
                let mut law = Law::new(Company::Polite, link);
                law.event(link, self.round_trip, Span::ZERO);
                Then::Share(law)
            }
        };
        self.drain(now, link, then);
    }

    /// Whether a queue stands by three samples, or two where less passes than is sent, beyond
    /// doubt; or one overflows that is not seen.
    pub(super) fn is_queue(&self, window: &Window) -> bool {
        let standing = self.samples.standing(self.span(), ENOUGH).unwrap_or(0);
        standing > self.limit() || self.is_choked(window) || self.samples.overflows()
    }

    /// Whether a shorter one stands for eight round trips.
    pub(super) fn is_long(&self) -> bool {
        let standing = self.samples.standing(self.round_trip * 8, ENOUGH);
        standing.is_some_and(|standing| standing > self.limit() / 4)
    }
}
