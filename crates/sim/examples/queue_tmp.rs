use satlink::{DirectionConfig, Limit, LinkConfig, QueueConfig};
use sim::transfer::{Transfer, TransferConfig, transfer};
use units::{BitRate, Span};
use xstp::session::*;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let runs: u64 = args[1].parse().unwrap();
    let kbps: u64 = args[2].parse().unwrap();
    for queue in [8u64, 16, 32] {
        for p in [0.0, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1] {
            let dir = DirectionConfig {
                rate: Some(BitRate::from_kbps(kbps)),
                delay: Span::from_millis(100),
                loss: p,
                queue: QueueConfig { limit: Limit::Packets(queue), ..QueueConfig::default() },
                ..DirectionConfig::default()
            };
            let link = LinkConfig::symmetric(dir);
            let mut line = format!("q {queue:3} p {p:6.4}");
            let mut t = [0.0; 2];
            for (i, on) in [false, true].into_iter().enumerate() {
                let (mut over, mut drops, mut again) = (0.0, 0.0, 0.0);
                let mut pr = ProbingStatistics::default();
                for run in 0..runs {
                    let mut c = SessionConfig::xstp_2003();
                    if !on {
                        c.probing = None
                    }
                    let x = once(&link, c, run);
                    t[i] += x.throughput_bps() / 1e3 / runs as f64;
                    over += x.forward.dropped(satlink::DropCause::QueueFull).packets as f64;
                    drops += x.forward.dropped(satlink::DropCause::Loss).packets as f64;
                    again += x.overhead().total() as f64 / 1e5 / runs as f64;
                    pr = x.source.probing;
                }
                line += &format!(
                    "  | {} {:7.1} share {:5.3} over {again:5.2} ",
                    if on { "on " } else { "off" },
                    t[i],
                    over / (over + drops).max(1.0)
                );
                if on {
                    line += &format!(
                        " gain {:+6.1} %  E{} S{} U{} prem {} link {} cong {}",
                        (t[1] / t[0] - 1.0) * 100.0,
                        pr.early_timeouts,
                        pr.begun_by_stat,
                        pr.begun_by_ustat,
                        pr.premature,
                        pr.recovered,
                        pr.congested
                    );
                }
            }
            println!("{line}");
        }
    }
}

fn once(link: &LinkConfig, c: SessionConfig, run: u64) -> Transfer {
    let config = TransferConfig {
        source: c.clone(),
        sink: c,
        link: link.clone(),
        size: 10_000_000,
        chunk: 1_000,
        header: 20,
        seed: 7,
        run,
        limit: Span::from_secs(1_000_000),
    };
    transfer(&config).unwrap_or_else(|error| panic!("run {run}: {error}"))
}
