//! Time series of variables.

use core::fmt;
use std::io::{self, Write};
use std::rc::Rc;
use units::{Instant, Span};
use xstp::session::Snapshot;

/// Maximum samples of a [`Series`]; beyond it every second one is dropped.
const LIMIT: usize = 1 << 16;

/// The values of a variable, at intervals or at its changes.
#[derive(Clone, Debug)]
pub struct Series {
    name: String,
    unit: &'static str,
    samples: Vec<(Instant, f64)>,
    /// One of so many values is kept.
    stride: u64,
    seen: u64,
    last: Option<f64>,
}

impl Series {
    /// A series without samples.
    pub fn new(name: &str, unit: &'static str) -> Self {
        Self { name: name.to_owned(), unit, samples: Vec::new(), stride: 1, seen: 0, last: None }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The unit of its values; empty for counts.
    pub fn unit(&self) -> &'static str {
        self.unit
    }

    /// Times and values, in order.
    pub fn samples(&self) -> &[(Instant, f64)] {
        &self.samples
    }

    /// Adds a value at `at`.
    pub fn push(&mut self, at: Instant, value: f64) {
        self.last = Some(value);
        if self.seen.is_multiple_of(self.stride) {
            if self.samples.len() == LIMIT {
                let mut keep = false;
                self.samples.retain(|_| {
                    keep = !keep;
                    keep
                });
                self.stride *= 2;
            }
            if self.seen.is_multiple_of(self.stride) {
                self.samples.push((at, value));
            }
        }
        self.seen += 1;
    }

    /// Adds a value at `at`, if it differs from the last one.
    pub fn push_changed(&mut self, at: Instant, value: f64) {
        if self.last.is_none_or(|last| last.to_bits() != value.to_bits()) {
            self.push(at, value);
        }
    }

    /// Writes it as CSV: a header, then a line for each sample.
    ///
    /// # Errors
    /// Returns the error of `out`.
    pub fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let name = self.name.replace([',', '"', '\n'], " ");
        let unit = if self.unit.is_empty() { String::new() } else { format!(" ({})", self.unit) };
        writeln!(out, "seconds,{name}{unit}")?;
        for (at, value) in &self.samples {
            let nanos = at.as_nanos();
            writeln!(out, "{}.{:09},{value}", nanos / 1_000_000_000, nanos % 1_000_000_000)?;
        }
        Ok(())
    }
}

/// Reads a variable of a run; `None` if it has no value.
type Read<R> = Box<dyn Fn(&R) -> Option<f64>>;

/// A series that is being recorded.
struct Recorder<R> {
    series: Series,
    /// The interval; `None`: at every change.
    every: Option<Span>,
    next: Instant,
    read: Read<R>,
}

/// All series of a run of a network or a path.
pub(crate) struct Recorders<R> {
    all: Vec<Recorder<R>>,
}

impl<R> Default for Recorders<R> {
    fn default() -> Self {
        Self { all: Vec::new() }
    }
}

impl<R> fmt::Debug for Recorders<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.series().map(Series::name)).finish()
    }
}

impl<R> Recorders<R> {
    /// The time of the next sample; the far future if there is none.
    pub(crate) fn next_at(&self) -> Instant {
        let times = self.all.iter().filter(|one| one.every.is_some()).map(|one| one.next);
        times.min().unwrap_or(Instant::FAR_FUTURE)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Takes the samples that are due at `now`.
    pub(crate) fn take(&mut self, now: Instant, run: &R) {
        for one in &mut self.all {
            match one.every {
                None => {
                    if let Some(value) = (one.read)(run) {
                        one.series.push_changed(now, value);
                    }
                }
                Some(every) if one.next <= now => {
                    one.next = now + every;
                    if let Some(value) = (one.read)(run) {
                        one.series.push(now, value);
                    }
                }
                Some(_) => {}
            }
        }
    }

    /// All series, in the order of their registration.
    pub(crate) fn series(&self) -> impl Iterator<Item = &Series> {
        self.all.iter().map(|one| &one.series)
    }

    /// Samples from `from` on at this interval, or with `None` at every change.
    ///
    /// # Panics
    /// If the interval is zero.
    pub(crate) fn add(
        &mut self,
        series: Series,
        every: Option<Span>,
        from: Instant,
        read: impl Fn(&R) -> Option<f64> + 'static,
    ) {
        assert!(every.is_none_or(|every| !every.is_zero()), "samples need some distance");
        self.all.push(Recorder { series, every, next: from, read: Box::new(read) });
    }

    /// Samples all variables of a session, named after `name`.
    pub(crate) fn add_session(
        &mut self,
        name: &str,
        every: Span,
        from: Instant,
        read: impl Fn(&R) -> Option<Snapshot> + 'static,
    ) where
        R: 'static,
    {
        type Variable = fn(&Snapshot) -> Option<f64>;
        let variables: [(&str, &'static str, Variable); 8] = [
            ("rate", "bit/s", |seen| seen.rate.map(|rate| rate.as_bps() as f64)),
            ("congestion window", "bytes", |seen| seen.congestion_window.map(|n| n as f64)),
            ("threshold", "bytes", |seen| seen.ssthresh.map(|n| n as f64)),
            ("outstanding", "bytes", |seen| Some(seen.outstanding_bytes as f64)),
            ("waiting again", "packets", |seen| Some(seen.retransmit_queue as f64)),
            ("round trip", "s", |seen| seen.srtt.map(Span::as_secs_f64)),
            ("queue", "s", |seen| seen.queuing_delay.map(Span::as_secs_f64)),
            ("probing", "", |seen| Some(f64::from(u8::from(seen.is_probing)))),
        ];
        let read = Rc::new(read);
        for (variable, unit, value) in variables {
            let read = Rc::clone(&read);
            let series = Series::new(&format!("{name} {variable}"), unit);
            self.add(series, Some(every), from, move |run| read(run).as_ref().and_then(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Network;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn variables_are_sampled_at_intervals_and_at_changes() {
        let mut net = Network::new(1, 0);
        let seconds = |net: &Network| net.now().as_nanos() / 1_000_000_000;
        net.sample(Span::from_millis(500), "time", "s", |net| Some(net.now().as_secs_f64()));
        net.watch("whole, seconds", "s", move |net| Some(seconds(net) as f64));
        net.watch("late", "", move |net| (seconds(net) > 1).then_some(1.0));
        net.run_until(at(2_100));
        let series: Vec<&Series> = net.series().collect();
        let times: Vec<f64> = series[0].samples().iter().map(|sample| sample.1).collect();
        assert_eq!(times, [0.0, 0.5, 1.0, 1.5, 2.0]);
        assert_eq!(series[1].samples(), [(at(0), 0.0), (at(1_000), 1.0), (at(2_000), 2.0)]);
        assert_eq!(series[2].samples(), [(at(2_000), 1.0)]);
        let mut csv = Vec::new();
        series[1].write_csv(&mut csv).expect("memory takes it");
        let expected = "seconds,whole  seconds (s)\n0.000000000,0\n1.000000000,1\n2.000000000,2\n";
        assert_eq!(String::from_utf8_lossy(&csv), expected);
    }

    #[test]
    fn number_of_samples_is_bounded() {
        let mut series = Series::new("long", "");
        for ms in 0..300_000 {
            series.push(at(ms), ms as f64);
            assert!(series.samples().len() <= LIMIT);
        }
        let first: Vec<f64> = series.samples().iter().take(3).map(|sample| sample.1).collect();
        assert_eq!(first, [0.0, 8.0, 16.0]);
        let (last, value) = series.samples()[series.samples().len() - 1];
        assert_eq!((last, value), (at(299_992), 299_992.0));
    }
}
