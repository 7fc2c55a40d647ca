//! The input of the link, read from the kernel's counters.
//!
//! The emulator's interfaces count every frame before the emulator receives it, so the values are
//! independent of the emulator.

use rt::Clock;
use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use testbed::Satellite;
use units::{Instant, Span};

/// Packets and their octets, including IP headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of packets.
    pub packets: u64,
    /// Octets at layer 3.
    pub bytes: u64,
}

impl Traffic {
    /// Returns the difference to `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(earlier.packets),
            bytes: self.bytes.saturating_sub(earlier.bytes),
        }
    }
}

/// Total input of the link at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Time of the reading, by [`Clock::new`].
    pub at: Instant,
    /// From the hub.
    pub forward: Traffic,
    /// From the terminal.
    pub return_: Traffic,
}

/// Interval between readings.
const PERIOD: Span = Span::from_millis(10);
/// Maximum number of readings: ten minutes.
const KEPT: usize = 60_000;

/// Reads the counters in a thread until dropped.
#[derive(Debug)]
pub(super) struct Meter {
    readings: Arc<Mutex<Vec<Reading>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Meter {
    pub(super) fn start(net: &Satellite) -> Self {
        let readings = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let thread = {
            let (readings, stop) = (Arc::clone(&readings), Arc::clone(&stop));
            net.space.spawn("meter", move || {
                let clock = Clock::new();
                while !stop.load(Ordering::Relaxed) {
                    let due = clock.now() + PERIOD;
                    // Counters are cumulative: a failed reading is only missing.
                    if let Ok(reading) = read(&clock) {
                        let mut readings = readings.lock().unwrap_or_else(PoisonError::into_inner);
                        if readings.len() < KEPT {
                            readings.push(reading);
                        }
                    }
                    clock.sleep_until(due);
                }
            })
        };
        Self { readings, stop, thread: Some(thread) }
    }

    /// Returns all readings since `from`, preceded by the last one before it.
    pub(super) fn since(&self, from: Instant) -> Vec<Reading> {
        let readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        let first = readings.partition_point(|reading| reading.at <= from).saturating_sub(1);
        readings[first..].to_vec()
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // A panic has already been printed.
        }
    }
}

fn read(clock: &Clock) -> io::Result<Reading> {
    // Not /proc/net, which is the namespace of the process.
    let text = fs::read_to_string("/proc/thread-self/net/dev")?;
    let of =
        |name| received(&text, name).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, name));
    let (forward, return_) = (of(Satellite::TO_HUB)?, of(Satellite::TO_TERMINAL)?);
    Ok(Reading { at: clock.now(), forward, return_ })
}

/// Returns what `interface` has received by `/proc/net/dev`, without the 14 octets of Ethernet
/// headers.
fn received(table: &str, interface: &str) -> Option<Traffic> {
    let (_, numbers) = table
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == interface)?;
    let mut numbers = numbers.split_whitespace().map(|number| number.parse::<u64>().ok());
    let (bytes, packets) = (numbers.next()??, numbers.next()??);
    Some(Traffic { packets, bytes: bytes.saturating_sub(14 * packets) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_is_read_without_ethernet_headers() {
        let table = "Inter-|   Receive  |  Transmit\n \
                     face |bytes    packets errs drop fifo frame compressed multicast|bytes\n    \
                     lo:       0       0    0    0    0     0          0         0        0\n  \
                     term:    3042       3    0    0    0     0          0         0     1514\n";
        assert_eq!(received(table, "term"), Some(Traffic { packets: 3, bytes: 3000 }));
        assert_eq!(received(table, "hub"), None);
    }
}
