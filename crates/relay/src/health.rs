//! Selection of one of several paths to the peer for new streams.
//!
//! ```text
//!            criteria met for the hold time
//!      ┌───────────────────────────────────────────────────────────────┐
//!      │                                                               ▼
//!   Recovering ◀──criteria met──  Degraded  ◀──RTT or loss too high──  Up
//!      └────criteria not met───▶    Down    ◀──no response─────────────┘
//!                                           ──first response──────────▶
//! ```
//!
//! After a failure a path is used again only when it has met the criteria for the *hold* time, so
//! that a flapping path does not receive new streams each time. If no path is up, a recovering path
//! is preferred to a degraded one, and a degraded one to one without responses. Among paths of
//! equal state those of the first priority are used, in weighted round robin. Whether a path
//! responds is tracked in the same manner, separately from the other criteria.
//!
//! The selection sends nothing: it evaluates the POLLs and STATs of the session
//! ([`PathSample`]). Running streams are not moved to another path.

use units::{Instant, Span};

/// Minimum number of data packets in a loss measurement.
const MIN_SAMPLE_PACKETS: u64 = 100;
/// Minimum duration of a loss measurement.
const MIN_SAMPLE_TIME: Span = Span::from_secs(5);

/// Criteria of a usable path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthCriteria {
    /// Time for which a path has to meet the criteria after a failure before it is used again.
    pub hold: Span,
    /// Maximum percentage of data packets that are retransmissions; `None`: any.
    pub most_loss: Option<u32>,
    /// Maximum smoothed RTT; `None`: any.
    pub most_round_trip: Option<Span>,
}

impl Default for HealthCriteria {
    /// Returns a hold time of ten seconds and no limits on loss and RTT.
    fn default() -> Self {
        Self { hold: Span::from_secs(10), most_loss: None, most_round_trip: None }
    }
}

/// State of a path at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSample {
    /// Whether there is a session whose POLLs are answered in time.
    pub answered: bool,
    /// The smoothed RTT, once one was measured.
    pub round_trip: Option<Span>,
    /// First transmissions of data packets in total.
    pub sent: u64,
    /// Retransmissions of data packets in total.
    pub retransmitted: u64,
}

/// State of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthState {
    /// It meets the criteria.
    Up,
    /// It meets the criteria again, for less than the hold time.
    Recovering,
    /// It responds, but its RTT or loss exceeds the limit.
    Degraded,
    /// It does not respond.
    Down,
}

impl HealthState {
    /// All states, the best first.
    pub const ALL: [Self; 4] = [Self::Up, Self::Recovering, Self::Degraded, Self::Down];

    /// Returns the name of the state in status and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Up => "well",
            Self::Recovering => "recovering",
            Self::Degraded => "poor",
            Self::Down => "down",
        }
    }
}

/// The state of one path over time.
#[derive(Clone, Debug)]
pub struct Health {
    demands: HealthCriteria,
    /// State by all criteria.
    state: State,
    /// State by responses only.
    answers: State,
    /// First transmissions and retransmissions at the start of the present loss measurement, and
    /// its start.
    measured_from: (u64, u64, Instant),
    /// Whether the loss of the last complete measurement exceeded the limit.
    lossy: bool,
    failures: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It has never responded; the first response is sufficient.
    New,
    Down,
    Recovering {
        since: Instant,
    },
    Up,
}

impl State {
    /// Returns the state after an update that found the criteria met (`well`) or not.
    fn after(self, now: Instant, well: bool, hold: Span) -> Self {
        match (self, well) {
            (Self::New, false) => Self::New,
            (Self::New | Self::Up, true) => Self::Up,
            (Self::Up | Self::Down | Self::Recovering { .. }, false) => Self::Down,
            (Self::Down, true) => Self::Recovering { since: now },
            (Self::Recovering { since }, true) if now.since(since) >= hold => Self::Up,
            (Self::Recovering { since }, true) => Self::Recovering { since },
        }
    }

    fn state(self) -> HealthState {
        match self {
            Self::New | Self::Down => HealthState::Down,
            Self::Recovering { .. } => HealthState::Recovering,
            Self::Up => HealthState::Up,
        }
    }

    /// Returns when the hold time ends.
    fn due(self, hold: Span) -> Option<Instant> {
        match self {
            Self::Recovering { since } => Some(since + hold),
            Self::New | Self::Down | Self::Up => None,
        }
    }
}

impl Health {
    /// Creates the state of a new path.
    pub fn new(demands: HealthCriteria) -> Self {
        let measured_from = (0, 0, Instant::ZERO);
        let (state, answers) = (State::New, State::New);
        Self { demands, state, answers, measured_from, lossy: false, failures: 0 }
    }

    /// Changes the criteria. The state stays until the next update.
    pub fn set_demands(&mut self, demands: HealthCriteria) {
        if self.demands.most_loss != demands.most_loss {
            // Losses from before the change do not count; the next update starts a new measurement.
            (self.measured_from, self.lossy) = ((u64::MAX, u64::MAX, Instant::ZERO), false);
        }
        self.demands = demands;
    }

    /// Updates the state by `sample`; `now` never decreases.
    pub fn update(&mut self, now: Instant, sample: PathSample) {
        let well = self.meets_criteria(now, sample);
        let hold = self.demands.hold;
        self.failures += u64::from(self.state == State::Up && !well);
        self.state = self.state.after(now, well, hold);
        self.answers = self.answers.after(now, sample.answered, hold);
    }

    /// Returns the state as of the last update.
    pub fn state(&self) -> HealthState {
        match (self.state.state(), self.answers()) {
            (HealthState::Down, HealthState::Up | HealthState::Recovering) => HealthState::Degraded,
            (state, _) => state,
        }
    }

    /// Returns the state by responses only, never [`HealthState::Degraded`].
    pub fn answers(&self) -> HealthState {
        self.answers.state()
    }

    /// Returns the number of failures.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Returns when an update is due without an event, because the hold time ends.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let hold = self.demands.hold;
        self.state.due(hold).into_iter().chain(self.answers.due(hold)).min()
    }

    fn meets_criteria(&mut self, now: Instant, sample: PathSample) -> bool {
        let Some(most) = self.demands.most_loss else {
            return sample.answered && self.is_quick(sample);
        };
        let (sent, again, since) = self.measured_from;
        if !sample.answered || sample.sent < sent || sample.retransmitted < again {
            // Losses of an outage are no loss rate, and the counters of a new session start at
            // zero.
            (self.measured_from, self.lossy) = ((sample.sent, sample.retransmitted, now), false);
            return sample.answered && self.is_quick(sample);
        }
        let (fresh, lost) = (sample.sent - sent, sample.retransmitted - again);
        let all = fresh.saturating_add(lost);
        if all >= MIN_SAMPLE_PACKETS && now.since(since) >= MIN_SAMPLE_TIME {
            self.lossy = u128::from(lost) * 100 > u128::from(all) * u128::from(most);
            self.measured_from = (sample.sent, sample.retransmitted, now);
        } else if self.lossy && now.since(since) >= MIN_SAMPLE_TIME.max(self.demands.hold) {
            // Without new streams there is no data to measure: the path is used again.
            (self.measured_from, self.lossy) = ((sample.sent, sample.retransmitted, now), false);
        }
        !self.lossy && self.is_quick(sample)
    }

    fn is_quick(&self, sample: PathSample) -> bool {
        match (self.demands.most_round_trip, sample.round_trip) {
            (Some(most), Some(round_trip)) => round_trip <= most,
            (Some(_), None) | (None, _) => true,
        }
    }
}

/// Several ways, in an order that stays.
#[derive(Clone, Debug, Default)]
pub struct PathSelector {
    all: Vec<Candidate>,
}

#[derive(Clone, Debug)]
struct Candidate {
    priority: u32,
    weight: u32,
    health: Health,
    /// What its weight has earned it and it was not chosen for.
    earned: i64,
}

impl PathSelector {
    /// Adds a path; its number is how many there were before. PathSelector of the lowest `priority` are
    /// chosen first; of several with the same, each as often as its `weight`, at least 1, says.
    pub fn add(&mut self, priority: u32, weight: u32, demands: HealthCriteria) {
        let health = Health::new(demands);
        self.all.push(Candidate { priority, weight: weight.max(1), health, earned: 0 });
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns whether there are no paths.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Applies `demands` to all paths.
    pub fn set_demands(&mut self, demands: HealthCriteria) {
        self.all.iter_mut().for_each(|path| path.health.set_demands(demands));
    }

    /// Updates path `number` by `sample`; returns its state if it has changed.
    ///
    /// # Panics
    /// Panics if there is no such path.
    pub fn update(
        &mut self,
        now: Instant,
        number: usize,
        sample: PathSample,
    ) -> Option<HealthState> {
        let health = &mut self.all[number].health;
        let before = health.state();
        health.update(now, sample);
        Some(health.state()).filter(|after| *after != before)
    }

    /// Returns the state of path `number`.
    ///
    /// # Panics
    /// Panics if there is no such path.
    pub fn health(&self, number: usize) -> &Health {
        &self.all[number].health
    }

    /// Returns whether any path responds, whether or not it meets the other criteria.
    pub fn any_usable(&self) -> bool {
        self.all.iter().any(|path| path.health.state() != HealthState::Down)
    }

    /// Returns the path for a new stream; `None` if no path responds.
    pub fn choose(&mut self) -> Option<usize> {
        let best = self.best()?;
        let is_in = |path: &Candidate| (path.health.state(), path.priority) == best;
        let total: i64 =
            self.all.iter().filter(|path| is_in(path)).map(|w| i64::from(w.weight)).sum();
        // Each path is credited with its weight, and the one with the highest credit is debited by
        // the sum (smooth weighted round robin).
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

    /// Returns the first path among those that [`choose`](Self::choose) selects from; if there is
    /// none, the first path of the lowest priority number.
    pub fn first(&self) -> Option<usize> {
        self.first_of(|_| true)
    }

    /// Returns the first path as [`first`](Self::first) does; if none responds, one for which `may`
    /// is true, if there is one.
    pub fn first_of(&self, may: impl Fn(usize) -> bool) -> Option<usize> {
        let best = self.best();
        let is_in = |path: &Candidate| Some((path.health.state(), path.priority)) == best;
        let found = self.all.iter().position(is_in);
        let waits = |number: usize, path: &Candidate| (!may(number), path.priority);
        let numbered = || self.all.iter().enumerate().min_by_key(|(at, path)| waits(*at, path));
        found.or_else(|| numbered().map(|(number, _)| number))
    }

    /// Returns when an update is due without an event.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.all.iter().filter_map(|path| path.health.poll_timeout()).min()
    }

    /// Returns the best state of all paths, and its lowest priority number.
    fn best(&self) -> Option<(HealthState, u32)> {
        let mut answering =
            HealthState::ALL.into_iter().filter(|state| *state != HealthState::Down);
        answering.find_map(|state| {
            let like = self.all.iter().filter(|path| path.health.state() == state);
            like.map(|path| path.priority).min().map(|priority| (state, priority))
        })
    }
}

#[cfg(test)]
mod tests;
