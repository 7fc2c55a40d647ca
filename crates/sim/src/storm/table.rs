//! What many storms reached, added up.

use super::fault::Fault;
use super::report::Report;
use core::fmt;
use units::Span;
use xstp::session::{Coverage, State, StateInput};

/// Cells of the state table that no run of a session can reach, and why. Tests hold that nothing
/// here is reached, and everything else is.
pub const UNREACHABLE: &[(State, StateInput, &str)] = {
    use State as A;
    use StateInput as S;
    const SETTLED: &str = "the handshake timer runs only while BGN or END waits for its answer";
    const CLOSED: &str = "only a connected session waits for signs of life";
    const CLIENT: &str = "a client takes no BGN";
    const ANSWER: &str = "ENDAK answers END, and the states in which END was sent lie behind this";
    &[
        (A::Listening, S::Begin, "a listener runs no incarnation yet: every BGN is a newer one"),
        (A::Listening, S::BeginAck, "a server takes no BGNAK"),
        (A::Opening, S::Begin, CLIENT),
        (A::Opening, S::BeginNewer, CLIENT),
        (A::Opening, S::EndAck, ANSWER),
        (A::Established, S::EndAck, ANSWER),
        (A::HalfClosedRemote, S::EndAck, ANSWER),
        (A::Closed, S::Retry, SETTLED),
        (A::Closed, S::GiveUp, SETTLED),
        (A::Listening, S::Retry, SETTLED),
        (A::Listening, S::GiveUp, SETTLED),
        (A::Established, S::Retry, SETTLED),
        (A::Established, S::GiveUp, SETTLED),
        (A::HalfClosedLocal, S::Retry, SETTLED),
        (A::HalfClosedLocal, S::GiveUp, SETTLED),
        (A::HalfClosedRemote, S::Retry, SETTLED),
        (A::HalfClosedRemote, S::GiveUp, SETTLED),
        (A::Closed, S::NoResponse, CLOSED),
        (A::Listening, S::NoResponse, CLOSED),
    ]
};

/// What storms were like, and what they reached.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Storms.
    pub runs: u64,
    /// Datagrams that were sent.
    pub packets: u64,
    /// Payload bytes that arrived.
    pub bytes: u64,
    /// Sessions that began.
    pub lives: u64,
    /// Those that died.
    pub deaths: u64,
    /// How long the storms were, together.
    pub storms: Span,
    /// The longest time until everything was finished, and the sum of all.
    pub slowest: Span,
    /// All such times together.
    pub healing: Span,
    pairs: [u64; Coverage::PAIRS],
    faults: [[u64; 2]; Fault::ALL.len()],
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            runs: 0,
            packets: 0,
            bytes: 0,
            lives: 0,
            deaths: 0,
            storms: Span::ZERO,
            slowest: Span::ZERO,
            healing: Span::ZERO,
            pairs: [0; Coverage::PAIRS],
            faults: [[0; 2]; Fault::ALL.len()],
        }
    }
}

impl Tally {
    /// Adds one storm.
    pub fn add(&mut self, report: &Report) {
        self.runs += 1;
        self.packets += report.packets;
        self.bytes += report.bytes;
        self.lives += report.lives;
        self.deaths += report.deaths;
        self.storms += report.storm;
        self.healing += report.healed;
        self.slowest = self.slowest.max(report.healed);
        for (count, (state, input)) in self.pairs.iter_mut().zip(Coverage::all()) {
            *count += u64::from(report.coverage.has(state, input));
        }
        for (counts, fault) in self.faults.iter_mut().zip(Fault::ALL) {
            let strikes = report.strikes.of(fault);
            counts[0] += u64::from(strikes > 0);
            counts[1] += strikes;
        }
    }

    /// Adds what was counted elsewhere.
    pub fn merge(&mut self, other: &Self) {
        self.runs += other.runs;
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.lives += other.lives;
        self.deaths += other.deaths;
        self.storms += other.storms;
        self.healing += other.healing;
        self.slowest = self.slowest.max(other.slowest);
        for (count, other) in self.pairs.iter_mut().zip(&other.pairs) {
            *count += other;
        }
        for (counts, other) in self.faults.iter_mut().zip(&other.faults) {
            counts[0] += other[0];
            counts[1] += other[1];
        }
    }

    /// In how many runs `input` was met in `state`.
    pub fn met(&self, state: State, input: StateInput) -> u64 {
        let pairs = Coverage::all().zip(&self.pairs);
        pairs.filter(|&(pair, _)| pair == (state, input)).map(|(_, &count)| count).sum()
    }

    /// In how many runs `fault` struck, and how often in all.
    pub fn struck(&self, fault: Fault) -> [u64; 2] {
        self.faults[fault as usize]
    }

    /// Pairs that can be reached and were not.
    pub fn missed(&self) -> Vec<(State, StateInput)> {
        let reachable = Coverage::all().filter(|&pair| !is_unreachable(pair));
        reachable.filter(|&(state, input)| self.met(state, input) == 0).collect()
    }

    /// Pairs that were reached although nothing can.
    pub fn surprising(&self) -> Vec<(State, StateInput)> {
        let unreachable = Coverage::all().filter(|&pair| is_unreachable(pair));
        unreachable.filter(|&(state, input)| self.met(state, input) > 0).collect()
    }
}

fn is_unreachable(pair: (State, StateInput)) -> bool {
    UNREACHABLE.iter().any(|&(state, input, _)| (state, input) == pair)
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.runs.max(1);
        writeln!(f, "storms              {:>12}", self.runs)?;
        writeln!(f, "datagrams           {:>12}  {} a storm", self.packets, self.packets / runs)?;
        writeln!(f, "sessions            {:>12}  {} died", self.lives, self.deaths)?;
        writeln!(f, "payload             {:>12}  bytes", self.bytes)?;
        writeln!(f, "storm               {:>12}  on average", (self.storms / runs).to_string())?;
        writeln!(
            f,
            "until all was done  {:>12}  on average, {} at most",
            (self.healing / runs).to_string(),
            self.slowest
        )?;
        writeln!(f, "\n{:<34} {:>9} {:>13}", "fault", "storms", "strikes")?;
        for fault in Fault::ALL {
            let [storms, strikes] = self.struck(fault);
            writeln!(f, "{:<34} {storms:>9} {strikes:>13}", fault.to_string())?;
        }
        write!(f, "\n{:<12}", "event")?;
        for state in State::ALL {
            write!(f, " {:>10.10}", format!("{state:?}"))?;
        }
        for input in StateInput::ALL {
            write!(f, "\n{:<12}", format!("{input:?}"))?;
            for state in State::ALL {
                let cell = match self.met(state, input) {
                    0 if is_unreachable((state, input)) => "-".to_owned(),
                    count => count.to_string(),
                };
                write!(f, " {cell:>10}")?;
            }
        }
        writeln!(f)
    }
}
