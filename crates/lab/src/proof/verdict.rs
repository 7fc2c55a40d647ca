//! The result of a system test.

use super::load::Tally;
use serde::Serialize;
use std::collections::BTreeMap;

/// The result of a system test.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Name of the test.
    pub proof: &'static str,
    /// Whether the test was shortened.
    pub quick: bool,
    /// Duration in seconds.
    pub seconds: f64,
    /// Violated guarantees.
    pub broken: Vec<String>,
    /// Guarantees that held.
    pub kept: Vec<String>,
    /// Results of the load, if there was one.
    pub load: Option<Tally>,
    /// Measured values; names end in the unit.
    pub figures: BTreeMap<String, f64>,
    /// Remarks.
    pub notes: Vec<String>,
}

impl Verdict {
    pub(super) fn new(proof: &'static str, quick: bool) -> Self {
        Self {
            proof,
            quick,
            seconds: 0.0,
            broken: Vec::new(),
            kept: Vec::new(),
            load: None,
            figures: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    /// Returns true if all guarantees held.
    pub fn passed(&self) -> bool {
        self.broken.is_empty()
    }

    /// Records a guarantee and whether it held.
    pub(super) fn demand(&mut self, holds: bool, promise: &str) {
        let list = if holds { &mut self.kept } else { &mut self.broken };
        list.push(promise.to_owned());
    }

    pub(super) fn figure(&mut self, name: &str, value: f64) {
        self.figures.insert(name.to_owned(), value);
    }

    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Records the guarantees of every load: no incorrect content, no premature end, no hanging
    /// connection, and some completed connections.
    pub(super) fn evaluate(&mut self, tally: Tally) {
        self.demand(tally.wrong == 0, "no byte is lost, duplicated or reordered");
        self.demand(tally.truncated == 0, "incomplete transfers end by a reset, never by a FIN");
        self.demand(tally.hung == 0, "no connection hangs");
        self.demand(tally.complete > 0, "connections are relayed");
        if !tally.troubles.is_empty() {
            self.note(format!("first errors: {}", tally.troubles.join("; ")));
        }
        self.load = Some(tally);
    }

    /// Formats the result as one line.
    pub fn line(&self) -> String {
        let word = if self.passed() { "holds" } else { "FAILS" };
        let mut text = format!("{:<17} {word}  {:6.1} s", self.proof, self.seconds);
        if let Some(load) = &self.load {
            text += &format!(
                "  {} connections: {} complete, {} reset, {} refused, {} left by the client; \
                 cut short silently {}, wrong {}, hung {}",
                load.started,
                load.complete,
                load.reset,
                load.refused,
                load.left,
                load.truncated,
                load.wrong,
                load.hung
            );
        }
        for (name, value) in &self.figures {
            text += &format!("; {name} {}", number(*value));
        }
        for promise in &self.broken {
            text += &format!("\n    broken: {promise}");
        }
        for note in &self.notes {
            text += &format!("\n    {note}");
        }
        text
    }
}

/// Formats integers without decimals, and other numbers with three.
fn number(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violated_guarantee_fails_and_is_named() {
        let mut verdict = Verdict::new("kill-hub", true);
        verdict.evaluate(Tally { started: 9, complete: 8, reset: 1, ..Tally::default() });
        assert!(verdict.passed());
        verdict.figure("hub_back_s", 1.25);
        assert!(verdict.line().contains("holds") && verdict.line().contains("hub_back_s 1.250"));
        verdict.evaluate(Tally { started: 9, complete: 8, truncated: 1, ..Tally::default() });
        assert!(!verdict.passed());
        assert!(verdict.line().contains("broken: incomplete transfers end by a reset"));
    }
}
