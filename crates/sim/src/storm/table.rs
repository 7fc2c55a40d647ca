//! Totals of many storms.

use super::fault::Fault;
use super::report::Report;
use core::fmt;
use units::Span;
use xstp::session::{Coverage, State, StateInput};

/// State and event pairs that no session can reach, with the reason. Tests hold that none of these
/// is reached and every other one is.
pub const UNREACHABLE: &[(State, StateInput, &str)] = {
    use State as A;
    use StateInput as S;
    const SETTLED: &str = "the handshake timer runs only while BGN or END is unanswered";
    const CLOSED: &str = "only a connected session has a response timeout";
    const CLIENT: &str = "a client ignores BGN";
    const ANSWER: &str = "ENDAK answers END, and the states in which END was sent precede this one";
    &[
        (A::Listening, S::Begin, "a listener runs no incarnation yet: every BGN is a newer one"),
        (A::Listening, S::BeginAck, "a server ignores BGNAK"),
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

/// Totals of storms.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Number of storms.
    pub runs: u64,
    /// Datagrams sent.
    pub packets: u64,
    /// Payload octets delivered.
    pub bytes: u64,
    /// Sessions started.
    pub sessions: u64,
    /// Sessions aborted.
    pub aborted: u64,
    /// Sum of the durations of the faults.
    pub storms: Span,
    /// Longest time from the end of the faults until everything was finished.
    pub max_recovery: Span,
    /// Sum of these times.
    pub recovery: Span,
    pairs: [u64; Coverage::PAIRS],
    faults: [[u64; 2]; Fault::ALL.len()],
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            runs: 0,
            packets: 0,
            bytes: 0,
            sessions: 0,
            aborted: 0,
            storms: Span::ZERO,
            max_recovery: Span::ZERO,
            recovery: Span::ZERO,
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
        self.sessions += report.sessions;
        self.aborted += report.aborted;
        self.storms += report.storm;
        self.recovery += report.recovery;
        self.max_recovery = self.max_recovery.max(report.recovery);
        for (count, (state, input)) in self.pairs.iter_mut().zip(Coverage::all()) {
            *count += u64::from(report.coverage.has(state, input));
        }
        for (counts, fault) in self.faults.iter_mut().zip(Fault::ALL) {
            let occurrences = report.fault_counts.of(fault);
            counts[0] += u64::from(occurrences > 0);
            counts[1] += occurrences;
        }
    }

    /// Adds the totals of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.runs += other.runs;
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.sessions += other.sessions;
        self.aborted += other.aborted;
        self.storms += other.storms;
        self.recovery += other.recovery;
        self.max_recovery = self.max_recovery.max(other.max_recovery);
        for (count, other) in self.pairs.iter_mut().zip(&other.pairs) {
            *count += other;
        }
        for (counts, other) in self.faults.iter_mut().zip(&other.faults) {
            counts[0] += other[0];
            counts[1] += other[1];
        }
    }

    /// Number of runs in which `input` occurred in `state`.
    pub fn met(&self, state: State, input: StateInput) -> u64 {
        let pairs = Coverage::all().zip(&self.pairs);
        pairs.filter(|&(pair, _)| pair == (state, input)).map(|(_, &count)| count).sum()
    }

    /// Number of runs with `fault`, and number of its occurrences.
    pub fn occurrences(&self, fault: Fault) -> [u64; 2] {
        self.faults[fault as usize]
    }

    /// Reachable pairs that no run reached.
    pub fn missed(&self) -> Vec<(State, StateInput)> {
        let reachable = Coverage::all().filter(|&pair| !is_unreachable(pair));
        reachable.filter(|&(state, input)| self.met(state, input) == 0).collect()
    }

    /// Pairs listed as unreachable that a run reached.
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
        writeln!(f, "sessions            {:>12}  {} aborted", self.sessions, self.aborted)?;
        writeln!(f, "payload             {:>12}  bytes", self.bytes)?;
        writeln!(f, "faults              {:>12}  on average", (self.storms / runs).to_string())?;
        writeln!(
            f,
            "until all finished  {:>12}  on average, {} at most",
            (self.recovery / runs).to_string(),
            self.max_recovery
        )?;
        writeln!(f, "\n{:<34} {:>9} {:>13}", "fault", "storms", "occurrences")?;
        for fault in Fault::ALL {
            let [storms, occurrences] = self.occurrences(fault);
            writeln!(f, "{:<34} {storms:>9} {occurrences:>13}", fault.to_string())?;
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
