//! Runs of the scenarios, and their metrics.

use super::scenarios::{
    FULL_RATE, MATCHES, PAGE_ROUND_TRIPS, RECOVERY, RETURN, ROUND_TRIPS, SHARE, Scenario, What,
    bound, page_transmission,
};
use super::{BenchConfig, Run};
use crate::LabError;
use crate::live::{CrossTraffic, Outcome, Reading, TestNetwork, TestNetworkConfig, Way};
use crate::threads::{joined, sleep};
use rt::Clock;
use satlink::{Direction, LinkConfig};
use std::thread;
use testbed::traffic::{self, Exchange, File, Limits, Progress, Transfer};
use units::{BitRate, Instant, Span};

/// The size of a file that no client receives completely.
const ENDLESS: u64 = u64::MAX;
/// Time limit for the first octet of a transfer.
const PATIENCE: Span = Span::from_secs(30);
/// Time for which a download fills the link before requests start.
const FILLING: Span = Span::from_secs(10);
/// Length of the outage.
const OUTAGE: Span = Span::from_secs(10);

pub(super) fn scenario(
    scenario: &Scenario,
    link: &LinkConfig,
    way: Way,
    config: &BenchConfig,
    run: &mut Run,
) -> Result<(), LabError> {
    let network = TestNetwork::new(&TestNetworkConfig {
        link: link.clone(),
        way,
        rates: Some(scenario.rates(link)?),
        keys: scenario.keys.map(str::to_owned),
        beside: CrossTraffic::Nothing,
        seed: config.seed,
    })?;
    let mut bench = Bench { network: &network, link, config, run };
    match scenario.what {
        What::Bulk { downloads } => bench.bulk(downloads, false),
        What::BothWays => bench.bulk(1, true),
        What::Requests { beside_bulk } => bench.requests(beside_bulk),
        What::Page { pipelined } => bench.page(pipelined),
        What::Outage => bench.outage()?,
    }
    let outcome = network.close()?;
    note_outcome(&outcome, link, run);
    Ok(())
}

struct Bench<'a> {
    network: &'a TestNetwork,
    link: &'a LinkConfig,
    config: &'a BenchConfig,
    run: &'a mut Run,
}

impl Bench<'_> {
    /// Downloads, measured from the first octet of the first of them.
    fn bulk(&mut self, downloads: usize, beside_upload: bool) {
        let (network, window) = (self.network, self.config.window);
        let limits = Limits { after_first_byte: window, overall: window + PATIENCE };
        let head_start = self.link.round_trip() * 3;
        let (transfers, upload) = thread::scope(|scope| {
            let uploading = Progress::default();
            let upload = beside_upload.then(|| {
                let progress = uploading.clone();
                let task = scope.spawn(move || upload(network, window + PATIENCE, &progress));
                sleep(head_start);
                task
            });
            let tasks: Vec<_> = (1..=downloads as u64)
                .map(|seed| {
                    scope.spawn(move || download(network, seed, limits, &Progress::default()))
                })
                .collect();
            let transfers: Vec<Transfer> =
                tasks.into_iter().map(|task| joined(task.join())).collect();
            uploading.stop();
            (transfers, upload.map(|task| joined(task.join())))
        });
        if let Some(upload) = upload {
            // Counted until the server has confirmed the received data: buffered octets do not
            // count.
            let seconds = upload.ended.as_secs_f64();
            self.figure("upload_bits_per_second", upload.bytes as f64 * 8.0 / seconds);
            self.figure("upload_matches", f64::from(u8::from(upload.matches)));
            self.fail_on(&upload);
        }
        self.bulk_figures(&transfers, window);
        if let [transfer] = &transfers[..] {
            let enough = 0.95 * self.bound();
            if let Some(at) = full_rate_after(transfer, self.link.round_trip(), enough) {
                let round_trips = at.as_secs_f64() / self.link.round_trip().as_secs_f64();
                self.figure(FULL_RATE, round_trips);
            }
        }
    }

    fn bulk_figures(&mut self, transfers: &[Transfer], window: Span) {
        let goodput: f64 = transfers.iter().map(|transfer| transfer.goodput(window)).sum();
        self.figure("goodput_bits_per_second", goodput);
        self.figure(SHARE, goodput / self.bound());
        let matches = transfers.iter().all(|transfer| transfer.matches && transfer.bytes > 0);
        self.figure(MATCHES, f64::from(u8::from(matches)));
        let first = transfers
            .iter()
            .filter_map(|transfer| Some((transfer.started, transfer.first_byte?)))
            .min_by_key(|(started, first)| *started + *first);
        if let Some((started, first)) = first {
            self.figure("first_byte_seconds", first.as_secs_f64());
            self.return_channel(started + first, window);
        }
        for transfer in transfers {
            self.fail_on(transfer);
        }
        let again: Option<u64> = (1..=transfers.len() as u64)
            .map(|seed| Some(self.network.served(seed)?.retransmissions))
            .sum();
        if let (Some(again), Way::Cubic | Way::Bbr) = (again, self.network.way()) {
            self.figure("retransmissions", again as f64);
        }
    }

    fn requests(&mut self, beside_bulk: bool) {
        let network = self.network;
        let repetitions = self.config.repetitions as u64;
        let forever =
            Limits { after_first_byte: Span::from_secs(600), overall: Span::from_secs(600) };
        let (exchanges, bulk) = thread::scope(|scope| {
            let progress = Progress::default();
            let bulk = beside_bulk.then(|| {
                let progress = progress.clone();
                let task = scope.spawn(move || download(network, 1, forever, &progress));
                sleep(FILLING);
                task
            });
            let exchanges: Vec<Exchange> = (0..repetitions)
                .map(|number| {
                    // At times that are not synchronized with the link.
                    sleep(Span::from_millis(300 + 70 * number));
                    let (way, server) = network.reach(network.files());
                    network.net().client.run(|| traffic::ask(way, server, (4096, 4096), PATIENCE))
                })
                .collect();
            progress.stop();
            (exchanges, bulk.map(|task| joined(task.join())))
        });
        if let Some(bulk) = bulk {
            self.fail_on(&bulk);
        }
        let mut times = Vec::new();
        for exchange in exchanges {
            times.extend(exchange.took);
            self.run.notes.extend(exchange.error);
        }
        self.timing(&mut times);
    }

    fn page(&mut self, pipelined: bool) {
        let mut times = Vec::new();
        let mut matches = true;
        for _ in 0..self.config.repetitions.min(3) {
            let (way, server) = self.network.reach(self.network.web());
            let page = self.network.net().client.run(|| match pipelined {
                true => traffic::load_page_pipelined(way, server),
                false => traffic::load_page(way, server, 6),
            });
            matches &= page.matches;
            times.extend(page.took);
            self.run.notes.extend(page.error);
            sleep(Span::from_millis(500));
        }
        self.figure(MATCHES, f64::from(u8::from(matches)));
        self.timing(&mut times);
        if let Some(seconds) = self.run.figures.get("seconds") {
            let waiting = seconds - page_transmission(self.link);
            self.figure(PAGE_ROUND_TRIPS, waiting / self.link.round_trip().as_secs_f64());
        }
    }

    /// Measures the time after an outage until packets enter the link at full rate.
    fn outage(&mut self) -> Result<(), LabError> {
        let network = self.network;
        let clock = Clock::new();
        let progress = Progress::default();
        let limits = Limits { after_first_byte: Span::from_secs(60), overall: Span::from_secs(90) };
        let (transfer, back) = thread::scope(|scope| {
            let task = scope.spawn(|| download(network, 1, limits, &progress));
            sleep(FILLING);
            network.emulation().outage(OUTAGE)?;
            let back = clock.now() + OUTAGE;
            sleep(OUTAGE + FILLING);
            progress.stop();
            Ok::<_, LabError>((joined(task.join()), back))
        })?;
        self.figure(MATCHES, f64::from(u8::from(transfer.matches && transfer.bytes > 0)));
        self.fail_on(&transfer);
        let rate = self.rate(Direction::Forward);
        match full_rate_again(&self.network.emulation().readings(back), back, rate) {
            Some(recovery) => {
                let round_trips = recovery.as_secs_f64() / self.link.round_trip().as_secs_f64();
                self.figure("recovery_seconds", recovery.as_secs_f64());
                self.figure(RECOVERY, round_trips);
            }
            None => self.run.notes.push("the full rate was not reached again".to_owned()),
        }
        if let Some((in_order, full_second)) = delivery_again(&transfer, back, 0.8 * self.bound()) {
            self.figure("in_order_seconds", in_order.as_secs_f64());
            self.figure("full_second_seconds", full_second.as_secs_f64());
        }
        Ok(())
    }

    fn figure(&mut self, name: &str, value: f64) {
        self.run.figures.insert(name.to_owned(), value);
    }

    fn fail_on(&mut self, transfer: &Transfer) {
        self.run.notes.extend(transfer.error.clone());
    }

    fn timing(&mut self, times: &mut [Span]) {
        times.sort_unstable();
        let Some(&median) = times.get(times.len() / 2) else { return };
        let round_trip = self.link.round_trip().as_secs_f64();
        self.figure("seconds", median.as_secs_f64());
        self.figure(ROUND_TRIPS, median.as_secs_f64() / round_trip);
        if let (Some(best), Some(worst)) = (times.first(), times.last()) {
            self.figure("round_trips_best", best.as_secs_f64() / round_trip);
            self.figure("round_trips_worst", worst.as_secs_f64() / round_trip);
        }
    }

    fn return_channel(&mut self, from: Instant, window: Span) {
        let readings = self.network.emulation().readings(from);
        if let Some(bits) = return_bits(&readings, from + window) {
            self.figure(RETURN, bits);
        }
    }

    fn rate(&self, direction: Direction) -> BitRate {
        // The gateways' rates were derived from the link, so they exist.
        self.link.direction(direction).rate.unwrap_or(BitRate::from_bps(1))
    }

    fn bound(&self) -> f64 {
        let forward = &self.link.forward;
        bound(self.rate(Direction::Forward), forward.loss, forward.bit_error_ratio)
    }
}

fn download(network: &TestNetwork, seed: u64, limits: Limits, progress: &Progress) -> Transfer {
    let file = File { seed, bytes: ENDLESS, congestion: network.way().congestion() };
    let (way, server) = network.reach(network.files());
    network.net().client.run(|| traffic::download(way, server, file, limits, progress))
}

fn upload(network: &TestNetwork, overall: Span, progress: &Progress) -> Transfer {
    let file = File { seed: 1000, bytes: ENDLESS, congestion: network.way().congestion() };
    // Data buffered at the end of the upload is still sent.
    let limits = Limits { after_first_byte: overall, overall: overall + PATIENCE };
    let (way, server) = network.reach(network.files());
    network.net().client.run(|| traffic::upload(way, server, file, limits, progress))
}

/// Returns the bits/s that entered the return channel between the first reading and `until`.
pub(crate) fn return_bits(readings: &[Reading], until: Instant) -> Option<f64> {
    let first = readings.first()?;
    let last = readings.iter().rev().find(|reading| reading.at <= until)?;
    let seconds = last.at.since(first.at).as_secs_f64();
    let bytes = last.return_.since(first.return_).bytes;
    (seconds > 0.0).then(|| bytes as f64 * 8.0 / seconds)
}

/// Returns the time from `back` until forward packets enter the link at 0.9 of `rate` over the
/// following half second.
fn full_rate_again(readings: &[Reading], back: Instant, rate: BitRate) -> Option<Span> {
    let half = Span::from_millis(500);
    let enough = rate.bytes_in(half) * 9 / 10;
    let mut later = 0;
    for (index, reading) in readings.iter().enumerate() {
        later = later.max(index);
        while later < readings.len() && readings[later].at < reading.at + half {
            later += 1;
        }
        let end = readings.get(later)?;
        if reading.at >= back && end.forward.since(reading.forward).bytes >= enough {
            return Some(reading.at.since(back));
        }
    }
    None
}

/// Returns the start, relative to the first octet, of the first round trip over which the transfer
/// received `enough` bits/s.
fn full_rate_after(transfer: &Transfer, round_trip: Span, enough: f64) -> Option<Span> {
    let (series, first) = (&transfer.series, transfer.first_byte?);
    let bytes = (enough * round_trip.as_secs_f64() / 8.0) as u64;
    let before = |at: Span| {
        let count = series.partition_point(|sample| sample.at <= at);
        count.checked_sub(1).map_or(0, |last| series[last].bytes)
    };
    let full = |sample: &&traffic::Sample| {
        let since = sample.at.saturating_sub(round_trip);
        sample.at >= round_trip && sample.bytes - before(since) >= bytes
    };
    let found = series.iter().find(full)?;
    Some(found.at.saturating_sub(round_trip).saturating_sub(first))
}

/// Times from `back`, the end of an outage, to the first byte that a transfer then received, and
/// from there on to the start of the first second with `enough` bits.
fn delivery_again(transfer: &Transfer, back: Instant, enough: f64) -> Option<(Span, Span)> {
    let after = back.since(transfer.started);
    let series = &transfer.series;
    let first = series.partition_point(|sample| sample.at <= after);
    let full = (first..series.len()).find(|&start| {
        let end = series.partition_point(|s| s.at < series[start].at + Span::from_secs(1));
        let before = start.checked_sub(1).map_or(0, |before| series[before].bytes);
        end < series.len() && (series[end - 1].bytes - before) as f64 * 8.0 >= enough
    })?;
    Some((series[first].at.saturating_sub(after), series[full].at.saturating_sub(after)))
}

/// Adds the emulator's and gateways' remarks and metrics.
fn note_outcome(outcome: &Outcome, link: &LinkConfig, run: &mut Run) {
    let end = &outcome.emulator.end;
    run.emulator_kept_up = end.kept_up;
    run.notes.extend(end.reasons.iter().cloned());
    run.figures.insert("emulator_late_p99_seconds".to_owned(), end.lateness.p99_seconds);
    if let Some(again) = outcome.gateways.as_ref().and_then(|both| repeated(&both.hub)) {
        run.figures.insert("retransmissions".to_owned(), again);
    }
    run.gateways.clone_from(&outcome.gateways);
    // The last seconds include closing.
    let intervals = &outcome.emulator.intervals;
    let settled = intervals.len() / 3..intervals.len().saturating_sub(3);
    let queues: Vec<u64> = intervals
        .get(settled)
        .unwrap_or_default()
        .iter()
        .map(|interval| interval.forward.queue_bytes)
        .collect();
    if !run.figures.contains_key(SHARE) {
        return; // Only bulk transfers build a queue.
    }
    let product = link.forward.rate.map(|rate| rate.bytes_in(link.round_trip()) as f64);
    if let (Some(product), false) = (product, queues.is_empty()) {
        let mean = queues.iter().sum::<u64>() as f64 / queues.len() as f64;
        run.figures.insert("standing_queue_products".to_owned(), mean / product);
    }
}

/// Returns a gateway's retransmissions; those of a single gateway are counted by the kernel.
fn repeated(report: &serde_json::Value) -> Option<f64> {
    let single = report.pointer("/single/segments_retransmitted");
    single.or_else(|| report.get("retransmitted"))?.as_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::Traffic;

    fn readings(bytes_by_ms: impl Fn(u64) -> u64) -> Vec<Reading> {
        (0..300)
            .map(|step| {
                let ms = step * 10;
                let traffic = Traffic { packets: 0, bytes: bytes_by_ms(ms) };
                Reading {
                    at: Instant::ZERO + Span::from_millis(ms),
                    forward: traffic,
                    return_: traffic,
                }
            })
            .collect()
    }

    #[test]
    fn recovery_requires_a_sustained_full_rate() {
        // Few octets until 700 ms with a short burst at 200 ms, then 8 Mbit/s: 1,000 octets per ms.
        let taken = readings(|ms| match ms {
            0..200 => ms,
            200..700 => ms + 50_000,
            later => 51_000 + (later - 700) * 1_000,
        });
        let back = Instant::ZERO + Span::from_millis(100);
        let found = full_rate_again(&taken, back, BitRate::from_mbps(8)).unwrap();
        // Nine tenths are sufficient, so the interval may begin 50 ms earlier.
        let late = Span::from_millis(600).saturating_sub(found);
        assert!(late <= Span::from_millis(60), "{found}");
        assert_eq!(full_rate_again(&taken, back, BitRate::from_mbps(80)), None);
    }

    #[test]
    fn return_bits_are_counted_between_readings() {
        let taken = readings(|ms| ms * 10);
        let until = Instant::ZERO + Span::from_secs(1);
        assert_eq!(return_bits(&taken, until), Some(80_000.0));
        assert_eq!(return_bits(&[], until), None);
    }
}
