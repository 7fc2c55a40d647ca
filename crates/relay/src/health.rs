//! Which of several ways to the other side new streams take.
//!
//! ```text
//!            answered, not too slow, not too lossy, for the hold time
//!      ┌────────────────────────────────────────────────────────────┐
//!      │                                                            ▼
//!   Recovering ◀──as asked──  Poor  ◀──answered, slow or lossy──── Well
//!      └────not as asked───▶  Down  ◀──not answered─────────────────┘
//!                                         the first time as asked ──▶
//! ```
//!
//! A way that has failed is not trusted again before it was well for the *hold* time, so that one
//! that comes and goes does not take new streams along each time. Where no way is well, one that
//! recovers is better than none, and one that answers, slow or lossy as it is, is better than one
//! that does not. Among ways that are equally well those of the first priority are chosen from, in
//! turns by their weights. Whether it answers at all is judged in the same manner, beside it.
//!
//! Nothing is sent for this: what is looked at is what POLLs and STATs have told
//! ([`Relay::seen`](crate::Relay::seen)). Streams that run are not moved: they wait for their way.

use units::{Instant, Span};

/// Data packets in a look at losses, at least: of fewer nothing is concluded.
const LOOK_PACKETS: u64 = 100;
/// How long a look at losses takes, at least.
const LOOK_TIME: Span = Span::from_secs(5);

/// What is asked of ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demands {
    /// How long a way that has failed has to be well before it is trusted again.
    pub hold: Span,
    /// Data packets that may be sent again, in percent of all that are sent; `None`: any.
    pub most_loss: Option<u32>,
    /// The longest smoothed round trip; `None`: any.
    pub most_round_trip: Option<Span>,
}

impl Default for Demands {
    /// Ten seconds, and nothing asked but answers.
    fn default() -> Self {
        Self { hold: Span::from_secs(10), most_loss: None, most_round_trip: None }
    }
}

/// What is seen of a way at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// There is a session, and its POLLs are answered in time.
    pub answered: bool,
    /// The smoothed round trip, once one was measured.
    pub round_trip: Option<Span>,
    /// Data packets sent for the first time, in all.
    pub sent: u64,
    /// Data packets sent again, in all.
    pub sent_again: u64,
}

/// How a way is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is trusted.
    Well,
    /// It is well again, and not for long enough.
    Recovering,
    /// It answers, though too slowly or with too many losses.
    Poor,
    /// It does not answer.
    Down,
}

impl Verdict {
    /// All of them, the best first.
    pub const ALL: [Self; 4] = [Self::Well, Self::Recovering, Self::Poor, Self::Down];

    /// In a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Well => "well",
            Self::Recovering => "recovering",
            Self::Poor => "poor",
            Self::Down => "down",
        }
    }
}

/// How one way has been.
#[derive(Clone, Debug)]
pub struct Health {
    demands: Demands,
    /// Whether it is as is asked.
    state: State,
    /// Whether it answers, whatever else is asked.
    answers: State,
    /// What was sent when the present look at losses began, and when that was.
    look: (u64, u64, Instant),
    /// What the last whole look found, while the way answers.
    lossy: bool,
    failures: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It has never answered: the first answer is trusted.
    New,
    Down,
    Recovering {
        since: Instant,
    },
    Well,
}

impl State {
    /// What it is after a look that found it `well` or not.
    fn after(self, now: Instant, well: bool, hold: Span) -> Self {
        match (self, well) {
            (Self::New, false) => Self::New,
            (Self::New | Self::Well, true) => Self::Well,
            (Self::Well | Self::Down | Self::Recovering { .. }, false) => Self::Down,
            (Self::Down, true) => Self::Recovering { since: now },
            (Self::Recovering { since }, true) if now.since(since) >= hold => Self::Well,
            (Self::Recovering { since }, true) => Self::Recovering { since },
        }
    }

    fn verdict(self) -> Verdict {
        match self {
            Self::New | Self::Down => Verdict::Down,
            Self::Recovering { .. } => Verdict::Recovering,
            Self::Well => Verdict::Well,
        }
    }

    /// When it may be trusted.
    fn due(self, hold: Span) -> Option<Instant> {
        match self {
            Self::Recovering { since } => Some(since + hold),
            Self::New | Self::Down | Self::Well => None,
        }
    }
}

impl Health {
    /// A way of which nothing is known.
    pub fn new(demands: Demands) -> Self {
        let look = (0, 0, Instant::ZERO);
        let (state, answers) = (State::New, State::New);
        Self { demands, state, answers, look, lossy: false, failures: 0 }
    }

    /// Other things are asked of it from here on. What it was found to be stays until the next
    /// look.
    pub fn set_demands(&mut self, demands: Demands) {
        if self.demands.most_loss != demands.most_loss {
            // Losses of a time when nobody asked are no reason: the next look begins anew.
            (self.look, self.lossy) = ((u64::MAX, u64::MAX, Instant::ZERO), false);
        }
        self.demands = demands;
    }

    /// Takes in what is `seen` now; times never run back.
    pub fn look(&mut self, now: Instant, seen: Seen) {
        let well = self.judge(now, seen);
        let hold = self.demands.hold;
        self.failures += u64::from(self.state == State::Well && !well);
        self.state = self.state.after(now, well, hold);
        self.answers = self.answers.after(now, seen.answered, hold);
    }

    /// How it is, as of the last look.
    pub fn verdict(&self) -> Verdict {
        match (self.state.verdict(), self.answers()) {
            (Verdict::Down, Verdict::Well | Verdict::Recovering) => Verdict::Poor,
            (verdict, _) => verdict,
        }
    }

    /// How it would be if nothing were asked of it but answers: never [`Verdict::Poor`].
    pub fn answers(&self) -> Verdict {
        self.answers.verdict()
    }

    /// Times that it has failed after it was well.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// When to look again although nothing has happened: it may be trusted then.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let hold = self.demands.hold;
        self.state.due(hold).into_iter().chain(self.answers.due(hold)).min()
    }

    fn judge(&mut self, now: Instant, seen: Seen) -> bool {
        let Some(most) = self.demands.most_loss else {
            return seen.answered && self.is_quick(seen);
        };
        let (sent, again, since) = self.look;
        if !seen.answered || seen.sent < sent || seen.sent_again < again {
            // What an outage has lost is no loss rate, and a new session counts from zero.
            (self.look, self.lossy) = ((seen.sent, seen.sent_again, now), false);
            return seen.answered && self.is_quick(seen);
        }
        let (fresh, lost) = (seen.sent - sent, seen.sent_again - again);
        let all = fresh.saturating_add(lost);
        if all >= LOOK_PACKETS && now.since(since) >= LOOK_TIME {
            self.lossy = u128::from(lost) * 100 > u128::from(all) * u128::from(most);
            self.look = (seen.sent, seen.sent_again, now);
        } else if self.lossy && now.since(since) >= LOOK_TIME.max(self.demands.hold) {
            // Without new streams there is nothing to see it by: it gets another chance.
            (self.look, self.lossy) = ((seen.sent, seen.sent_again, now), false);
        }
        !self.lossy && self.is_quick(seen)
    }

    fn is_quick(&self, seen: Seen) -> bool {
        match (self.demands.most_round_trip, seen.round_trip) {
            (Some(most), Some(round_trip)) => round_trip <= most,
            (Some(_), None) | (None, _) => true,
        }
    }
}

/// Several ways, in an order that stays.
#[derive(Clone, Debug, Default)]
pub struct Ways {
    all: Vec<Way>,
}

#[derive(Clone, Debug)]
struct Way {
    priority: u32,
    weight: u32,
    health: Health,
    /// What its weight has earned it and it was not chosen for.
    earned: i64,
}

impl Ways {
    /// Adds a way; its number is how many there were before. Ways of the lowest `priority` are
    /// chosen first; of several with the same, each as often as its `weight`, at least 1, says.
    pub fn add(&mut self, priority: u32, weight: u32, demands: Demands) {
        let health = Health::new(demands);
        self.all.push(Way { priority, weight: weight.max(1), health, earned: 0 });
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Of all of them `demands` are made from here on.
    pub fn set_demands(&mut self, demands: Demands) {
        self.all.iter_mut().for_each(|way| way.health.set_demands(demands));
    }

    /// Takes in what is `seen` of way `number`; returns its new verdict if that is another.
    ///
    /// # Panics
    /// When there is no such way.
    pub fn look(&mut self, now: Instant, number: usize, seen: Seen) -> Option<Verdict> {
        let health = &mut self.all[number].health;
        let before = health.verdict();
        health.look(now, seen);
        Some(health.verdict()).filter(|after| *after != before)
    }

    /// How way `number` is.
    ///
    /// # Panics
    /// When there is no such way.
    pub fn health(&self, number: usize) -> &Health {
        &self.all[number].health
    }

    /// Whether any way answers, as is asked or not.
    pub fn any_usable(&self) -> bool {
        self.all.iter().any(|way| way.health.verdict() != Verdict::Down)
    }

    /// The way for a new stream; `None` when none answers.
    pub fn choose(&mut self) -> Option<usize> {
        let best = self.best()?;
        let is_in = |way: &Way| (way.health.verdict(), way.priority) == best;
        let total: i64 =
            self.all.iter().filter(|way| is_in(way)).map(|w| i64::from(w.weight)).sum();
        // Each earns its weight, and the richest pays for all: smooth turns by weight.
        let mut chosen: Option<usize> = None;
        for number in 0..self.all.len() {
            if !is_in(&self.all[number]) {
                self.all[number].earned = 0;
                continue;
            }
            self.all[number].earned += i64::from(self.all[number].weight);
            if chosen.is_none_or(|best| self.all[number].earned > self.all[best].earned) {
                chosen = Some(number);
            }
        }
        let chosen = chosen?;
        self.all[chosen].earned -= total;
        Some(chosen)
    }

    /// The first of those that [`choose`](Self::choose) would choose from; without any, the first
    /// of the lowest priority: where to wait.
    pub fn first(&self) -> Option<usize> {
        self.first_of(|_| true)
    }

    /// As [`first`](Self::first); where none answers it is one that `may` answer, if there is one.
    pub fn first_of(&self, may: impl Fn(usize) -> bool) -> Option<usize> {
        let best = self.best();
        let is_in = |way: &Way| Some((way.health.verdict(), way.priority)) == best;
        let found = self.all.iter().position(is_in);
        let waits = |number: usize, way: &Way| (!may(number), way.priority);
        let numbered = || self.all.iter().enumerate().min_by_key(|(at, way)| waits(*at, way));
        found.or_else(|| numbered().map(|(number, _)| number))
    }

    /// When to look again although nothing has happened.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.all.iter().filter_map(|way| way.health.poll_timeout()).min()
    }

    /// The best that there is: how well, and of which priority.
    fn best(&self) -> Option<(Verdict, u32)> {
        let mut answering = Verdict::ALL.into_iter().filter(|verdict| *verdict != Verdict::Down);
        answering.find_map(|verdict| {
            let like = self.all.iter().filter(|way| way.health.verdict() == verdict);
            like.map(|way| way.priority).min().map(|priority| (verdict, priority))
        })
    }
}

#[cfg(test)]
mod tests;
