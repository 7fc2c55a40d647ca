use satlink::{LinkConfig, profiles};
use sim::transfer::{Transfer, TransferConfig, transfer};
use units::Span;
use xstp::session::*;

type Edit = fn(&mut SessionConfig);
fn p(c: &mut SessionConfig) -> Option<&mut ProbingConfig> {
    c.probing.as_mut()
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let runs: u64 = args[1].parse().unwrap();
    let reorder = std::env::var("REORDER").is_ok();
    let only = args.get(2).cloned().unwrap_or_default();
    let variants: Vec<(&str, Edit)> = vec![
        ("base", |_| {}),
        ("tol0", |c| {
            if let Some(p) = p(c) {
                p.tolerance_millionths = 0
            }
        }),
        ("tol.2", |c| {
            if let Some(p) = p(c) {
                p.tolerance_millionths = 200_000
            }
        }),
        ("tol.5", |c| {
            if let Some(p) = p(c) {
                p.tolerance_millionths = 500_000
            }
        }),
        ("last", |c| {
            if let Some(p) = p(c) {
                p.loss_round_trip = LossRoundTrip::Last
            }
        }),
        ("restore", |c| {
            if let Some(p) = p(c) {
                p.restore_window = true
            }
        }),
        ("flight", |c| {
            if let Some(p) = p(c) {
                p.halve = Halve::Flight
            }
        }),
        ("noearly", |c| {
            if let Some(p) = p(c) {
                p.early_timeout = false
            }
        }),
        ("nopre", |c| {
            if let Some(p) = p(c) {
                p.before_loss = false
            }
        }),
        ("req3", |c| {
            if let Some(p) = p(c) {
                p.required_probes = 3
            }
        }),
        ("idle1", |c| {
            c.slow_start_after_idle = Some(Span::from_secs(1));
            if let Some(p) = p(c) {
                p.idle_threshold = Span::from_secs(1)
            }
        }),
        ("idle10", |c| {
            c.slow_start_after_idle = Some(Span::from_secs(10));
            if let Some(p) = p(c) {
                p.idle_threshold = Span::from_secs(10)
            }
        }),
        ("idle1000", |c| {
            c.slow_start_after_idle = Some(Span::from_secs(1000));
            if let Some(p) = p(c) {
                p.idle_threshold = Span::from_secs(1000)
            }
        }),
        ("outage-not-idle", |c| c.outage_is_idle = false),
        ("pollorder", |c| c.retransmit_rule = RetransmitRule::PollOrder),
        ("backedoff", |c| c.retransmit_rule = RetransmitRule::BackedOff),
        ("spreadwin", |c| c.spread = Spread::Window),
        ("againall", |c| c.again_burst = u32::MAX),
        ("whenshut", |c| c.poll_when_shut = true),
        ("win4096", |c| c.number_window = 4096),
        ("cap3", |c| c.poll_backoff_cap = 3),
        ("cap8", |c| c.poll_backoff_cap = 8),
        ("cap10", |c| c.poll_backoff_cap = 10),
    ];
    let s = Span::from_secs(1);
    let mut points: Vec<(String, LinkConfig)> = vec![];
    for d in [0, 5, 20, 50] {
        points.push((
            format!("cor10 {d}"),
            profiles::elaasar_corruption(s * 10, f64::from(d) / 100.0),
        ));
    }
    for d in [5, 20, 50] {
        points.push((format!("cor1 {d}"), profiles::elaasar_corruption(s, f64::from(d) / 100.0)));
    }
    for r in [1, 5, 15] {
        points.push((format!("hand.5 {r}"), profiles::elaasar_handoff(s / 2, r.into())));
    }
    for r in [1, 5, 15] {
        points.push((format!("hand1 {r}"), profiles::elaasar_handoff(s, r.into())));
    }
    for r in [1, 10, 30] {
        points.push((format!("con5 {r}"), profiles::elaasar_connectivity(s * 5, r.into())));
    }
    for r in [1, 10, 30] {
        points.push((format!("con10 {r}"), profiles::elaasar_connectivity(s * 10, r.into())));
    }
    for (_, link) in &mut points {
        if reorder {
            link.forward.keep_order = false;
            link.return_.keep_order = false;
        }
    }
    println!("{:16} {}", "", points.iter().map(|p| format!("{:>11}", p.0)).collect::<String>());
    for (name, edit) in variants {
        if !only.is_empty() && !only.split(',').any(|o| o == name) {
            continue;
        }
        let mut lines = [
            format!("{name:16} "),
            format!("{:16} ", "  overhead"),
            format!("{:16} ", "  off/on kbps"),
        ];
        for (_, link) in &points {
            let mut t = [0.0; 2];
            let mut o = [0.0; 2];
            for (i, on) in [false, true].into_iter().enumerate() {
                for run in 0..runs {
                    let mut c = SessionConfig::xstp_2003();
                    if !on {
                        c.probing = None
                    }
                    edit(&mut c);
                    let x = once(link, c, run);
                    t[i] += x.throughput_bps() / 1e3 / runs as f64;
                    o[i] += x.overhead().total() as f64 / 1e5 / runs as f64;
                }
            }
            lines[0] += &format!("{:+11.1}", (t[1] / t[0] - 1.0) * 100.0);
            lines[1] += &format!("{:+11.1}", (o[1] / o[0] - 1.0) * 100.0);
            lines[2] += &format!("{:>11}", format!("{:.0}/{:.0}", t[0], t[1]));
        }
        for l in lines {
            println!("{l}");
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
