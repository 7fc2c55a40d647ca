//! The claims of section 7.

use super::report::{COMPRESSION_PAGE, RESULTS};
use super::stacks::{RATES, SIZES};
use super::{
    COMPRESSION, Results, STACKS, Summary, counted_bits, key, latencies, latency, named, throughput,
};
use crate::experiments::{Cell, statistics};
use satlink::tnc::ax25;
use sim::radio::file_transfer;
use xstp::wire::ipv4;

/// Returns table 1 in bit/s, indexed as `RATES` and `SIZES`.
pub(super) fn published() -> [[f64; 4]; 2] {
    RATES.map(|rate| SIZES.map(|size| RESULTS.claim(&format!("table-1-{rate}-{size}")).value()))
}

/// Returns the cells of tables 1 and 2.
pub(super) fn numbers(results: &Results) -> Vec<Cell> {
    let mut cells = Vec::new();
    for table in [1, 2] {
        for rate in RATES {
            for size in SIZES {
                let ours = throughput(results, STACKS, &key("chosen", rate), size);
                let normalised = if table == 1 { 1.0 } else { 1.0 / rate as f64 };
                let claim = RESULTS.claim(&format!("table-{table}-{rate}-{size}"));
                cells.push(claim.number(ours.scaled(normalised)));
            }
        }
    }
    cells
}

pub(super) fn claims(results: &Results) -> Vec<Cell> {
    let mut cells = sizes(results);
    cells.push(mean_normalised(results));
    cells.push(low_at_9600(results));
    cells.push(bandwidth(results));
    cells.push(processing(results));
    cells.push(small_files(results));
    cells.push(rises(results));
    cells.push(theory());
    cells.push(peak(results));
    cells.push(headers());
    cells
}

pub(super) fn compression(results: &Results) -> Cell {
    let mut holds = true;
    let mut words = Vec::new();
    let mut least: Option<Summary> = None;
    for under in ["as chosen", "without pauses"] {
        for rate in RATES {
            let gain = compression_gain(results, "compressed", under, rate, 10_240);
            holds &= gain.clearly_above(0.0);
            words.push(format!("{:.1} %", 100.0 * gain.mean));
            if least.is_none_or(|other| gain.mean < other.mean) {
                least = Some(gain);
            }
        }
    }
    let ours = format!("10 KB take {} less", words.join(", "));
    COMPRESSION_PAGE.claim("compression").holds(holds, ours, least)
}

/// Returns the fraction of the latency that `kind` saves, paired by run.
pub(super) fn compression_gain(
    results: &Results,
    kind: &str,
    under: &str,
    rate: u64,
    size: u64,
) -> Summary {
    let values = |kind: &str| {
        let key = key(&format!("{kind}/{under}"), rate);
        results.values(COMPRESSION, &key, &named("latency_s", size))
    };
    statistics::relative_gain(&values(kind), &values("plain")).scaled(-1.0)
}

fn sizes(results: &Results) -> Vec<Cell> {
    let headers = ax25::HEADER_AS_PUBLISHED + ipv4::HEADER_WITH_ROUTE + 16 + file_transfer::HEADER;
    let payload = ax25::FRAME_AS_PUBLISHED - headers;
    let frames = results.summary(STACKS, &key("bare", RATES[0]), &named("new_data_frames", 10_240));
    vec![
        RESULTS.claim("payload").number(Summary::exact(payload as f64)),
        RESULTS.claim("frames").number(frames),
    ]
}

/// Returns the mean of the normalised throughput over the sizes.
fn mean_over_sizes(results: &Results, rate: u64) -> Summary {
    let parts =
        SIZES.map(|size| throughput(results, STACKS, &key("chosen", rate), size).scaled(0.25));
    let variance: f64 = parts.iter().map(|part| part.half * part.half).sum();
    let mean = parts.iter().map(|part| part.mean).sum();
    Summary { mean, half: variance.sqrt(), ..parts[0] }.scaled(1.0 / rate as f64)
}

fn mean_normalised(results: &Results) -> Cell {
    RESULTS.claim("mean-normalised").number(mean_over_sizes(results, RATES[0]))
}

fn low_at_9600(results: &Results) -> Cell {
    let [low, high] = RATES.map(|rate| mean_over_sizes(results, rate));
    let ours = format!("{:.3} beside {:.3}", high.mean, low.mean);
    let apart = (high.mean + high.half) * 2.0 < low.mean - low.half;
    RESULTS.claim("low-at-9600").holds(apart, ours, Some(high))
}

fn bandwidth(results: &Results) -> Cell {
    let ratio = |size| {
        let latencies = |rate| latencies(results, STACKS, &key("chosen", rate), size);
        let [low, high] = RATES.map(latencies);
        statistics::relative_gain(&low, &high)
    };
    let ratios = [ratio(1), ratio(100)];
    let [one, hundred] = ratios.map(|more| more.mean + 1.0);
    let ours = format!("{one:.2} times for 1 B, {hundred:.2} for 100 B");
    RESULTS.claim("bandwidth").holds(ratios.iter().all(|more| more.clearly_above(1.0)), ours, None)
}

fn processing(results: &Results) -> Cell {
    let shares = RATES.map(|rate| {
        let (latency, _) = latency(results, STACKS, &key("chosen", rate), 10_240);
        let on_air = counted_bits(10_240) / rate as f64;
        (on_air / latency.mean, on_air / (latency.mean - latency.half))
    });
    let ours = shares.map(|(share, _)| format!("{:.0} %", 100.0 * share)).join(" and ");
    let ours = format!("transmission takes {ours} of the latency");
    let most = |&(_, most): &(f64, f64)| (0.0..0.5).contains(&most);
    RESULTS.claim("processing").holds(shares.iter().all(most), ours, None)
}

fn small_files(results: &Results) -> Cell {
    let mut holds = true;
    let mut words = Vec::new();
    for rate in RATES {
        let all = SIZES.map(|size| throughput(results, STACKS, &key("chosen", rate), size));
        for small in &all[..2] {
            let apart = |large: &Summary| small.mean - small.half > large.mean + large.half;
            holds &= all[2..].iter().all(apart);
        }
        words.push(all.map(|it| format!("{:.0}", it.mean)).join(", "));
    }
    RESULTS.claim("small-files").holds(holds, format!("{} bit/s", words.join("; ")), None)
}

fn rises(results: &Results) -> Cell {
    let rows =
        RATES.map(|rate| SIZES.map(|size| latency(results, STACKS, &key("chosen", rate), size).0));
    // By more than both intervals.
    let less = |a: &Summary, b: &Summary| a.mean + a.half < b.mean - b.half;
    let up = rows.iter().all(|row| row.windows(2).all(|pair| less(&pair[0], &pair[1])));
    let down = rows[0].iter().zip(&rows[1]).all(|(low, high)| less(high, low));
    let words = rows.map(|row| row.map(|it| format!("{:.1}", it.mean)).join(", "));
    RESULTS.claim("rises").holds(up && down, format!("{} s; {} s", words[0], words[1]), None)
}

/// Returns the throughput of two stations that always have a full frame to send at 1.2 kbit/s,
/// alone on the channel: Kleinrock and Tobagi's heavy traffic with p = 129/256.
pub(super) fn saturated() -> f64 {
    let channel = super::stacks::chosen(RATES[0]).channel;
    let p = channel.probability();
    let silent = (1.0 - p) * (1.0 - p);
    let success = 2.0 * p * (1.0 - p) / (1.0 - silent);
    let frame = 8.0 * ax25::FRAME_AS_PUBLISHED as f64 / RATES[0] as f64;
    let slots = silent / (1.0 - silent) * channel.slot.as_secs_f64();
    success * frame / (slots + channel.key_up.as_secs_f64() + frame)
}

fn theory() -> Cell {
    let most = saturated();
    RESULTS.claim("theory").holds(most > 0.48, format!("{most:.2} with full frames"), None)
}

fn peak(results: &Results) -> Cell {
    let size = 100;
    let found = throughput(results, STACKS, &key("chosen", RATES[0]), size).scaled(1.0 / 1_200.0);
    let channel = super::stacks::chosen(RATES[0]).channel;
    let frame = counted_bits(size) / RATES[0] as f64;
    // The request has as many bytes of headers, and each frame waits for channel access.
    let request = counted_bits(8) / RATES[0] as f64;
    let access = channel.key_up + channel.mean_wait();
    let bound = frame / (frame + request + 2.0 * access.as_secs_f64());
    let shares = found.scaled(1.0 / bound).interval().unwrap_or([found.mean / bound; 2]);
    let ours = format!("{:.2} of {bound:.2}", found.mean);
    RESULTS.claim("peak").holds(0.5 <= shares[0] && shares[1] <= 1.0, ours, Some(found))
}

fn headers() -> Cell {
    let headers = ax25::FRAME_AS_PUBLISHED - file_transfer::CHUNK;
    let share = headers as f64 / ax25::FRAME_AS_PUBLISHED as f64;
    let ours = format!("{:.0} % of a full frame", 100.0 * share);
    RESULTS.claim("headers").holds(share > 1.0 / 3.0, ours, None)
}
