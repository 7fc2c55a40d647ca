//! Prints the goodput of flows that share a satellite bottleneck.
//!
//! ```text
//! cargo run -p sim --release --example shared -- [OPTION...] FLOW...
//!
//!   FLOW       steady, fixed:RATE_MBPS, newreno, cubic, linux, sack, reno;
//!              with @SECONDS it starts then, with +MILLIS its round trip is so much longer
//!   link WORDS     changes the link (GEO, 10/1 Mbit/s, 600 ms, queue of one bandwidth-delay product)
//!   seconds N      duration (300)
//!   from N         start of the measured interval (0)
//!   seed N         (1)
//!   trace N        prints each flow's goodput and the queue every N seconds
//!
//! cargo run -p sim --release --example shared -- seconds 300 steady cubic
//! cargo run -p sim --release --example shared -- link "forward limit 0.25bdp" steady steady@20
//! ```

use satlink::{LinkConfig, profiles, words};
use sim::scenario::shared::{Shared, SharedFlow};
use simtcp::TcpConfig;
use units::{BitRate, Instant, Span};
use xstp::congestion::Controller;
use xstp::session::SessionConfig;

struct Options {
    link: LinkConfig,
    seconds: u64,
    from: u64,
    seed: u64,
    trace: Option<u64>,
    flows: Vec<(String, SharedFlow)>,
}

fn main() {
    match options() {
        Ok(options) => run(&options),
        Err(message) => {
            eprintln!("{message}");
            std::process::exit(2);
        }
    }
}

fn options() -> Result<Options, String> {
    let link = profiles::by_name("geo").expect("a profile");
    let mut options = Options { link, seconds: 300, from: 0, seed: 1, trace: None, flows: vec![] };
    let mut args = std::env::args().skip(1);
    while let Some(word) = args.next() {
        let mut value = || args.next().ok_or(format!("{word}: a value is missing"));
        let number = |text: String| text.parse::<u64>().map_err(|_| format!("{text}: no number"));
        match word.as_str() {
            "link" => words::apply_link(&mut options.link, &value()?).map_err(|e| e.to_string())?,
            "seconds" => options.seconds = number(value()?)?,
            "from" => options.from = number(value()?)?,
            "seed" => options.seed = number(value()?)?,
            "trace" => options.trace = Some(number(value()?)?.max(1)),
            flow => options.flows.push((flow.into(), parse(flow)?)),
        }
    }
    if options.flows.is_empty() {
        return Err("no flows: for instance `steady cubic`".into());
    }
    Ok(options)
}

fn parse(text: &str) -> Result<SharedFlow, String> {
    let (name, further) = text.split_once('+').unwrap_or((text, "0"));
    let (name, start) = name.split_once('@').unwrap_or((name, "0"));
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{text}: no number"));
    let flow = match name.split_once(':').unwrap_or((name, "")) {
        ("steady", "") => SharedFlow::xstp(&SessionConfig::gateway_auto()),
        ("fixed", mbps) => {
            SharedFlow::xstp(&SessionConfig::gateway(BitRate::from_mbps(number(mbps)?.max(1))))
        }
        ("newreno", "") => SharedFlow::xstp(&SessionConfig {
            controller: Controller::NewReno,
            ..SessionConfig::gateway_auto()
        }),
        ("cubic", "") => SharedFlow::tcp(&TcpConfig::cubic()),
        ("linux", "") => SharedFlow::tcp(&TcpConfig::linux()),
        ("reno", "") => SharedFlow::tcp(&TcpConfig::new_reno()),
        ("sack", "") => SharedFlow::tcp(&TcpConfig::sack()),
        _ => {
            return Err(format!(
                "{text}: no flow; steady, fixed:N, newreno, cubic, linux, sack, reno"
            ));
        }
    };
    let start = Span::from_secs(number(start)?);
    Ok(flow.at(start).extra_delay(Span::from_millis(number(further)?)))
}

fn run(options: &Options) {
    let flows: Vec<SharedFlow> = options.flows.iter().map(|(_, flow)| flow.clone()).collect();
    let mut shared = Shared::new(&options.link, options.seed, 0, &flows);
    let at = |secs: u64| Instant::ZERO + Span::from_secs(secs);
    let (mut queue, mut looks, mut traced) = (0.0, 0.0, 0);
    for tenth in 1..=options.seconds * 10 {
        shared.run_until(Instant::ZERO + Span::from_millis(100 * tenth));
        if tenth / 10 >= options.from {
            queue += shared.queue().as_secs_f64();
            looks += 1.0;
        }
        if options.trace.is_some_and(|step| tenth == (traced + step) * 10) {
            let rates = shared.shares(at(traced), at(tenth / 10)).goodput_bps;
            let rates: Vec<String> = rates.iter().map(|bps| format!("{:7.3}", bps / 1e6)).collect();
            println!("{:5} s {} queue {:.3} s", tenth / 10, rates.join(" "), queue_now(&shared));
            let now = Instant::ZERO + Span::from_millis(100 * tenth);
            for index in 0..options.flows.len() {
                if let Some(session) = shared.session(index) {
                    let seen = session.snapshot(now);
                    let mbps = seen.rate.map_or(0.0, |rate| rate.as_bps() as f64 / 1e6);
                    let mode = seen.mode;
                    println!(
                        "        {index} {mode:10} {mbps:9.3} Mbit/s, sees {:?}",
                        seen.queuing_delay
                    );
                }
            }
            traced = tenth / 10;
        }
    }
    let shares = shared.shares(at(options.from), at(options.seconds));
    println!("{:24} {:>12} {:>10}", "flow", "Mbit/s", "of fair");
    for (index, (name, _)) in options.flows.iter().enumerate() {
        let (bps, fair) = (shares.goodput_bps[index], shares.of_fair[index]);
        println!("{name:24} {:>12.3} {fair:>10.2}", bps / 1e6);
    }
    let product = options.link.round_trip().as_secs_f64();
    println!("Jain's index {:.3}, used {:.3}", shares.jain, shares.used);
    println!("mean queue {:.2} products", queue / f64::max(looks, 1.0) / product);
}

fn queue_now(shared: &Shared) -> f64 {
    shared.queue().as_secs_f64()
}
