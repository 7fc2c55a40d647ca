//! A transfer during a whole system test.

use super::network::TestNetwork;
use super::{Verdict, sleep_ms};
use crate::LabError;
use rt::Clock;
use std::thread::JoinHandle;
use testbed::traffic::{self, File, Limits, Progress, Transfer, Way};
use units::Span;

/// Sampling interval of its rate in milliseconds.
const LOOK_MS: u64 = 500;

/// An unlimited download.
#[derive(Debug)]
pub(super) struct Long {
    progress: Progress,
    thread: JoinHandle<Transfer>,
}

impl Long {
    /// Starts a download on an intercepted connection.
    pub(super) fn start(network: &TestNetwork, seed: u64) -> Self {
        let progress = Progress::default();
        let (server, seen) = (network.server(), progress.clone());
        let thread = network.net.client.spawn("long download", move || {
            let hour = Span::from_secs(3_600);
            let limits = Limits { after_first_byte: hour, overall: hour };
            let file = File { seed, bytes: u64::MAX, congestion: "-" };
            traffic::download(Way::Direct, server, file, limits, &seen)
        });
        Self { progress, thread }
    }

    /// Octets received so far.
    pub(super) fn bytes(&self) -> u64 {
        self.progress.bytes()
    }

    /// Returns the rate over the next `milliseconds`, in Mbit/s.
    pub(super) fn rate(&self, milliseconds: u64) -> f64 {
        let clock = Clock::new();
        let (from, bytes) = (clock.now(), self.bytes());
        sleep_ms(milliseconds);
        (self.bytes() - bytes) as f64 * 8.0 / clock.now().since(from).as_secs_f64() / 1e6
    }

    /// Waits until the rate is at least `rate` Mbit/s. Returns the time that this took, if less
    /// than `patience`, and the highest observed rate.
    pub(super) fn await_rate(&self, rate: f64, patience: Span) -> (Option<Span>, f64) {
        let clock = Clock::new();
        let from = clock.now();
        let mut highest: f64 = 0.0;
        loop {
            let until = clock.now().since(from);
            highest = highest.max(self.rate(LOOK_MS));
            if highest >= rate {
                return (Some(until), highest);
            }
            if until >= patience {
                return (None, highest);
            }
        }
    }

    /// Ends the download and verifies it.
    pub(super) fn finish(self, verdict: &mut Verdict) -> Result<(), LabError> {
        self.progress.stop();
        let ended = self.thread.join();
        let transfer = ended.map_err(|_| LabError::Proof("the download panicked".to_owned()))?;
        verdict.figure("long_download_bytes", transfer.bytes as f64);
        let error = transfer.error.as_deref().unwrap_or("none");
        let lived = transfer.error.is_none() && transfer.matches;
        verdict.demand(lived, &format!("a download survives (error: {error})"));
        Ok(())
    }
}
