//! Compares gateways with and without configured rates on links of many kinds, under virtual time.
//!
//! ```text
//! cargo run -p sim --release --example unconfigured -- [OPTION...]
//!
//!   link NAME      only the links whose name begins with this; `other` stands for those that are
//!                  not among the first eight
//!   seeds N        seeds 1 to N (3)
//!   trace          prints every 100 ms what arrived and what the hub's session does, instead; the
//!                  seed is the number of seeds
//!   configured     the trace is that of gateways with configured rates
//!   no-padding     the hub without configured rates sends no padding
//! ```
//!
//! Shares are octets in order at the client over the link's rate, from the first octet on. A queue
//! is the delay of the forward queue, sampled every 10 ms. Nothing is cached. Each figure is the
//! mean of the seeds, first with configured rates, then without, then the latter divided by the
//! former. `idle` are the octets that both gateways sent before the first request, without
//! configured rates, forward and return.

use satlink::{Direction, LinkConfig, profiles, words};
use sim::scenario::{START, Setting, page, request};
use sim::traffic::{ConnectionPlan, Exchange};
use units::{Instant, Span};

/// The links of the table: name and words. The last ones were not used to choose any constant.
const LINKS: &[(&str, &str)] = &[
    ("geo-10", "both delay 300ms limit 1bdp forward rate 10mbit return rate 1mbit"),
    ("geo-10-loss-1", "both delay 300ms limit 1bdp loss 1% forward rate 10mbit return rate 1mbit"),
    (
        "meo-100-loss",
        "both delay 25ms limit 1bdp loss 0.5% forward rate 100mbit return rate 15mbit",
    ),
    (
        "geo-20-thin-return",
        "both delay 300ms limit 1bdp forward rate 20mbit return loss 5% rate 256kbit",
    ),
    ("geo-25-loss-3", "both delay 260ms limit 1bdp loss 3% forward rate 25mbit return rate 3mbit"),
    ("leo-200-jitter", "both delay 20ms 2ms limit 1bdp forward rate 200mbit return rate 20mbit"),
    ("geo-2-thin-return", "both delay 300ms limit 1bdp forward rate 2mbit return rate 64kbit"),
    ("geo-50", "both delay 300ms limit 1bdp forward rate 50mbit return rate 1mbit"),
    ("other-5-far", "both delay 350ms limit 1bdp loss 0.5% forward rate 5mbit return rate 512kbit"),
    ("other-150", "both delay 290ms limit 0.5bdp forward rate 150mbit return rate 6mbit"),
    ("other-meo-30", "both delay 65ms limit 1bdp loss 1% forward rate 30mbit return rate 5mbit"),
    (
        "other-leo-80",
        "both delay 30ms 1ms limit 2bdp loss 0.2% forward rate 80mbit return rate 8mbit",
    ),
    ("other-1", "both delay 280ms limit 2bdp forward rate 1mbit return rate 256kbit"),
];

/// Number of pages and of requests for each seed: whether one of their packets is lost changes
/// their time by an RTT.
const EXCHANGES: u64 = 10;
/// A request and its response, octets.
const EXCHANGE: Exchange = Exchange { request: 4096, response: 65_536 };
/// Number of links that the controller may be adjusted to.
const KNOWN_LINKS: usize = 8;

fn main() {
    let mut args = std::env::args().skip(1);
    let (mut prefix, mut seeds, mut is_trace, mut is_configured) = (String::new(), 3, false, false);
    let (mut all, mut has_padding) = (false, true);
    while let Some(word) = args.next() {
        match word.as_str() {
            "link" => prefix = args.next().unwrap_or_default(),
            "seeds" => seeds = args.next().and_then(|word| word.parse().ok()).unwrap_or(seeds),
            "trace" => is_trace = true,
            "configured" => is_configured = true,
            "all" => all = true,
            "no-padding" => has_padding = false,
            other => eprintln!("{other}: no such option"),
        }
    }
    let chosen = LINKS.iter().enumerate().filter(|(index, (name, _))| {
        name.starts_with(&prefix) && (*index < KNOWN_LINKS || all || prefix.starts_with("other"))
    });
    if !is_trace {
        println!(
            "{:19}  {:^20}   {:^20}   {:^13} {:^13} {:^20} {:^20} {:^13}",
            "", "10 s", "30 s", "queue, ms", "95th, ms", "page, ms", "request, ms", "idle, kB"
        );
    }
    for (_, (name, words)) in chosen {
        if is_trace {
            trace(&setting(words, seeds, is_configured, has_padding));
            return;
        }
        print_row(name, words, seeds, has_padding);
    }
}

fn link(words: &str) -> LinkConfig {
    let mut link = profiles::by_name("geo").expect("the profile should exist");
    words::apply_link(&mut link, words).expect("the words should be understood");
    link
}

fn setting(words: &str, seed: u64, is_configured: bool, has_padding: bool) -> Setting {
    let link = link(words);
    let rate = |rate: Option<units::BitRate>| rate.expect("the link should have a rate");
    let rates = [rate(link.forward.rate), rate(link.return_.rate)];
    let setting = Setting::on(link, rates).with_seed(seed);
    match (is_configured, has_padding) {
        (true, _) => setting,
        (false, true) => setting.auto(),
        (false, false) => setting.auto().without_padding(),
    }
}

/// Figures of one link, each a mean of the seeds.
#[derive(Clone, Copy, Default)]
struct Figures {
    share_10: f64,
    share_30: f64,
    queue_ms: f64,
    queue_95_ms: f64,
    page_ms: f64,
    request_ms: f64,
    /// Kilobytes before the first request, in each direction.
    idle_kb: [f64; 2],
}

impl Figures {
    fn add(&mut self, other: &Self, weight: f64) {
        self.share_10 += other.share_10 * weight;
        self.share_30 += other.share_30 * weight;
        self.queue_ms += other.queue_ms * weight;
        self.queue_95_ms += other.queue_95_ms * weight;
        self.page_ms += other.page_ms * weight;
        self.request_ms += other.request_ms * weight;
        for (sum, kb) in self.idle_kb.iter_mut().zip(other.idle_kb) {
            *sum += kb * weight;
        }
    }
}

fn print_row(name: &str, words: &str, seeds: u64, has_padding: bool) {
    let [configured, found] = [true, false].map(|is_configured| {
        let mut mean = Figures::default();
        for seed in 1..=seeds {
            let figures = measure(&setting(words, seed, is_configured, has_padding));
            mean.add(&figures, 1.0 / seeds as f64);
        }
        mean
    });
    let pair = |of: fn(&Figures) -> f64, digits: usize| {
        format!("{:6.digits$} {:6.digits$}", of(&configured), of(&found))
    };
    let ratio = |of: fn(&Figures) -> f64| of(&found) / of(&configured);
    println!(
        "{name:19}  {} {:6.3}   {} {:6.3}   {} {} {} {:6.3} {} {:6.3} {:6.1} {:6.1}",
        pair(|one| one.share_10, 3),
        ratio(|one| one.share_10),
        pair(|one| one.share_30, 3),
        ratio(|one| one.share_30),
        pair(|one| one.queue_ms, 1),
        pair(|one| one.queue_95_ms, 1),
        pair(|one| one.page_ms, 0),
        ratio(|one| one.page_ms),
        pair(|one| one.request_ms, 0),
        ratio(|one| one.request_ms),
        found.idle_kb[0],
        found.idle_kb[1],
    );
}

fn measure(setting: &Setting) -> Figures {
    let mut rig = setting.rig(vec![ConnectionPlan::download(START, 1 << 40)]);
    let has_none = |rig: &sim::scenario::Rig| rig.terminal.client.received().bins().is_empty();
    rig.run_until(START);
    let idle_kb = [Direction::Forward, Direction::Return]
        .map(|direction| rig.offered(direction).total().bytes as f64 / 1e3);
    assert!(rig.run_while(START + Span::from_secs(60), has_none), "no octet arrived");
    let first = rig.now();
    let rate = setting.rates[0];
    let mut queues_ms = Vec::new();
    while rig.now() < first + Span::from_secs(30) {
        rig.run_until(rig.now() + Span::from_millis(10));
        let octets = rig.link().backlog(Direction::Forward).bytes;
        queues_ms.push(rate.time_for(octets).as_secs_f64() * 1e3);
    }
    queues_ms.sort_by(f64::total_cmp);
    let share = |secs: u64| {
        let octets = rig.terminal.client.received().between(first, first + Span::from_secs(secs));
        octets.bytes as f64 * 8.0 / secs as f64 / rate.as_bps() as f64
    };
    let mut exchanges = [0.0; 2];
    for run in 0..EXCHANGES {
        let setting = setting.clone().with_seed(setting.seed * EXCHANGES + run);
        let took = [page(&setting, 6).took, request(&setting, EXCHANGE, false)];
        for (sum, took) in exchanges.iter_mut().zip(took) {
            *sum += took.as_secs_f64() * 1e3 / EXCHANGES as f64;
        }
    }
    Figures {
        share_10: share(10),
        share_30: share(30),
        queue_ms: queues_ms.iter().sum::<f64>() / queues_ms.len() as f64,
        queue_95_ms: queues_ms[queues_ms.len() * 95 / 100],
        page_ms: exchanges[0],
        request_ms: exchanges[1],
        idle_kb,
    }
}

fn trace(setting: &Setting) {
    let mut rig = setting.rig(vec![ConnectionPlan::download(START, 1 << 40)]);
    let mut before = 0;
    let mut line = |rig: &mut sim::scenario::Rig, at: Instant| {
        rig.run_until(at);
        let total = rig.terminal.client.received().total().bytes;
        let peer = rig.hub.peer;
        let snapshot = peer
            .and_then(|peer| rig.hub.hub.peer(peer))
            .and_then(|relay| relay.session().map(|session| session.snapshot(at)));
        let octets = rig.link().backlog(Direction::Forward).bytes;
        let queue = setting.rates[0].time_for(octets);
        print!("{:7.2} ", at.since(Instant::ZERO).as_secs_f64());
        print!(
            "goodput {:9.3} queue {:6.1} ",
            (total - before) as f64 * 8e-5,
            queue.as_secs_f64() * 1e3
        );
        match snapshot {
            Some(sender) => println!(
                "{:10} rate {:9.3} seen {:6.1} outstanding {} retransmit {} srtt {:?}",
                sender.mode,
                sender.rate.map_or(0.0, |rate| rate.as_bps() as f64 / 1e6),
                sender.queuing_delay.map_or(0.0, |queue| queue.as_secs_f64() * 1e3),
                sender.outstanding_bytes,
                sender.retransmit_queue,
                sender.srtt,
            ),
            None => println!("no session"),
        }
        before = total;
    };
    for tick in 0..200 {
        line(&mut rig, START + Span::from_millis(tick * 100));
    }
}
