use super::*;
use crate::network::{Network, NodeId};
use satlink::{LinkConfig, profiles, words};
use simtcp::TcpConfig;
use units::{Instant, Span};

fn geo(words: &str) -> LinkConfig {
    let mut link = profiles::by_name("geo").unwrap();
    words::apply_link(&mut link, words).unwrap();
    link
}

fn at(secs: u64) -> Instant {
    Instant::ZERO + Span::from_secs(secs)
}

/// A source with flows of `tcp` (start, octets) on the forward side of a link.
fn network(link: &LinkConfig, tcp: &TcpConfig, flows: &[(u64, u64)]) -> (Network, NodeId, NodeId) {
    let mut net = Network::new(1, 0);
    let sink = net.host(TcpSink::new(tcp.clone(), 80));
    let plan = |&(start, bytes): &(u64, u64)| FlowPlan {
        start: at(start),
        stop: None,
        bytes,
        to: Address::new(sink, 80),
        tcp: tcp.clone(),
    };
    let plans = flows.iter().map(plan).collect();
    let source = net.host_with(|node| TcpSource::new(node, plans));
    net.link(source, sink, link);
    (net, source, sink)
}

#[test]
fn flows_are_delivered_and_close() {
    let tcp = TcpConfig::linux();
    let flows = [(0, 300_000), (1, 1), (2, 2_000_000)];
    let (mut net, source, sink) = network(&geo("both loss 1%"), &tcp, &flows);
    net.run_until(at(300));
    let sunk = net.node::<TcpSink>(sink);
    for (flow, (_, bytes)) in flows.iter().enumerate() {
        let got = sunk.flow(net.node::<TcpSource>(source).address(flow)).unwrap();
        assert_eq!((got.bytes, got.finished), (*bytes, true));
    }
    assert_eq!(sunk.unmatched(), 0);
    for connection in net.node::<TcpSource>(source).connections() {
        assert_eq!(connection.state(), simtcp::State::Closed, "TIME-WAIT is over as well");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        let (mut net, _, sink) =
            network(&geo("forward loss 2%"), &TcpConfig::sack(), &[(0, u64::MAX), (3, u64::MAX)]);
        net.trace();
        net.run_until(at(20));
        let bytes: Vec<u64> = net.node::<TcpSink>(sink).flows().iter().map(|f| f.bytes).collect();
        (net.trace_hash(), bytes)
    };
    let (hash, bytes) = run();
    assert_eq!((hash, bytes.clone()), run());
    assert!(hash != 0 && bytes.iter().all(|&bytes| bytes > 100_000), "{bytes:?}");
}

#[test]
fn aborted_flow_stops_sending() {
    let tcp = TcpConfig::linux();
    let mut net = Network::new(1, 0);
    let sink = net.host(TcpSink::new(tcp.clone(), 80));
    let plan = FlowPlan {
        start: at(0),
        stop: Some(at(10)),
        bytes: u64::MAX,
        to: Address::new(sink, 80),
        tcp,
    };
    let source = net.host_with(|node| TcpSource::new(node, vec![plan]));
    net.link(source, sink, &geo(""));
    net.run_until(at(20));
    let early = net.node::<TcpSink>(sink).flows()[0].bytes;
    net.run_until(at(60));
    assert_eq!(net.node::<TcpSink>(sink).flows()[0].bytes, early);
    assert_eq!(net.node::<TcpSource>(source).connection(0).unwrap().state(), simtcp::State::Closed);
}

/// Octets of a flow over 600 ms and of one over 20 ms, after two minutes in one router's queue.
/// (Henderson and Katz 1999, section 4, figure 4, discuss this for RED and fair queueing.)
fn shares(queue: &str) -> [u64; 2] {
    let tcp = TcpConfig::sack();
    let link = |words: &str| words::parse_link(words).unwrap();
    let mut net = Network::new(1, 0);
    let sink = net.host(TcpSink::new(tcp.clone(), 80));
    let router = net.router();
    let sources = ["both rate 100mbit delay 290ms", "both rate 100mbit"].map(|words| {
        let to = Address::new(sink, 80);
        let plan = FlowPlan { start: at(0), stop: None, bytes: u64::MAX, to, tcp: tcp.clone() };
        let source = net.host_with(|node| TcpSource::new(node, vec![plan]));
        net.link(source, router, &link(words));
        net.node::<TcpSource>(source).address(0)
    });
    net.link(router, sink, &link(&format!("both rate 1300kbit delay 10ms {queue}")));
    net.run_until(at(120));
    sources.map(|source| net.node::<TcpSink>(sink).flow(source).expect("it began").bytes)
}

#[test]
fn share_of_a_long_path_depends_on_the_queue_discipline() {
    let share = |[long, short]: [u64; 2]| long as f64 / (long + short) as f64;
    let tail = share(shares("limit 40p queue droptail"));
    let red = share(shares("limit 40p queue red 5p 15p 0.02"));
    let steep = share(shares("limit 40p queue red 5p 15p 0.02 steep"));
    let fair = share(shares("limit 40p queue fair"));
    assert!(tail < 0.25, "the short way has most of it: {tail}");
    assert!((0.40..0.55).contains(&fair), "each has its own queue: {fair}");
    assert!(steep < fair, "{steep}");
    assert!(red < fair, "RED drops in proportion, and the long way is slower to recover: {red}");
}

#[test]
fn tcp_fast_open_saves_a_round_trip() {
    // One segment each, ten seconds apart; with a three-way handshake it takes 1.5 round trips.
    let took = |opening| {
        let tcp = TcpConfig { opening, ..TcpConfig::sack() };
        let (mut net, source, sink) = network(&geo(""), &tcp, &[(0, 400), (10, 400)]);
        net.run_until(at(30));
        let address = net.node::<TcpSource>(source).address(1);
        let flow = net.node::<TcpSink>(sink).flow(address).unwrap();
        assert!(flow.finished);
        flow.last.unwrap().since(at(10)).as_secs_f64()
    };
    let round_trip = 0.6;
    let slow = took(simtcp::Opening::ThreeWay);
    assert!((slow - 1.5 * round_trip).abs() < 0.02, "{slow}");
    for opening in [simtcp::Opening::Transaction, simtcp::Opening::FastOpen] {
        let quick = took(opening);
        assert!((slow - quick - round_trip).abs() < 0.02, "{opening:?}: {quick}, not {slow}");
    }
}

#[test]
fn ecn_marks_replace_drops() {
    use satlink::{Direction, DropCause};
    let run = |queue: &str, ecn: bool| {
        let tcp = TcpConfig { ecn, ..TcpConfig::sack() };
        let mut net = Network::new(1, 0);
        let sink = net.host(TcpSink::new(tcp.clone(), 80));
        let to = Address::new(sink, 80);
        let plan = FlowPlan { start: at(0), stop: None, bytes: 10_000_000, to, tcp };
        let source = net.host_with(|node| TcpSource::new(node, vec![plan]));
        let router = format!("both rate 2mbit delay 50ms limit 100p queue {queue} ecn");
        let link = net.link(source, sink, &words::parse_link(&router).unwrap());
        net.run_until(at(60));
        let line = net.line(link).counters(Direction::Forward);
        let sender = net.node::<TcpSource>(source).connection(0).unwrap().counters();
        assert!(net.node::<TcpSink>(sink).flows()[0].finished);
        (line.marked, line.dropped(DropCause::Early).packets, sender.retransmitted_segments)
    };
    for queue in ["red 5p 15p 0.1", "codel", "fq-codel"] {
        let ((none, dropped, again), (marked, early, few)) = (run(queue, false), run(queue, true));
        assert!(none == 0 && dropped > 10, "{queue}: {dropped}");
        let marks = marked > 10 && early < dropped && few < again;
        assert!(marks, "{queue}: {marked} {early} {dropped}");
    }
}

#[test]
fn controlled_delay_keeps_the_queue_short() {
    // A segment beside a file of 30 MB: three-way handshake and data, 1.5 round trips of 40 ms.
    let took = |queue: &str| {
        let tcp = TcpConfig::linux_cubic();
        let router = format!("both rate 10mbit delay 20ms limit 1000p queue {queue}");
        let router = words::parse_link(&router).unwrap();
        let (mut net, source, sink) = network(&router, &tcp, &[(0, 30_000_000), (20, 400)]);
        net.run_until(at(60));
        let [file, short] = [0, 1].map(|flow| {
            let address = net.node::<TcpSource>(source).address(flow);
            net.node::<TcpSink>(sink).flow(address).unwrap().clone()
        });
        assert!(file.finished && short.finished, "{queue}");
        let seconds = |last: Option<Instant>, start| last.unwrap().since(at(start)).as_secs_f64();
        (seconds(file.last, 0), seconds(short.last, 20))
    };
    let [tail, codel, fair] = ["droptail", "codel", "fq-codel"].map(took);
    assert!(tail.1 > 0.5, "a queue of 1.2 s: {tail:?}");
    assert!(codel.1 < 0.2 && fair.1 < 0.065, "{codel:?} {fair:?}");
    // After a drop cubic's window is 0.7 of the product and 5 ms of queue: 0.79 of the product.
    assert!(codel.0 < 1.1 * tail.0 && fair.0 < 1.1 * tail.0, "{tail:?} {codel:?} {fair:?}");
}

/// Two flows of `tcp`, one after the other, over two routers with a link of `mtu` between them.
fn narrow(tcp: &TcpConfig, mtu: u16) -> (Network, NodeId, NodeId) {
    let mut net = Network::new(1, 0);
    let sink = net.host(TcpSink::new(tcp.clone(), 80));
    let plan = |start| FlowPlan {
        start: at(start),
        stop: None,
        bytes: 200_000,
        to: Address::new(sink, 80),
        tcp: tcp.clone(),
    };
    let source = net.host_with(|node| TcpSource::new(node, vec![plan(0), plan(60)]));
    let routers = [net.router(), net.router()];
    net.link(source, routers[0], &LinkConfig::default());
    let link = net.link(routers[0], routers[1], &geo(""));
    net.link(routers[1], sink, &LinkConfig::default());
    net.set_mtu(link, Some(mtu));
    net.run_until(at(200));
    (net, source, sink)
}

#[test]
fn path_mtu_is_discovered_and_cached() {
    for tcp in [TcpConfig::sack(), TcpConfig::linux_cubic()] {
        let tcp = TcpConfig { path_mtu: true, ..tcp };
        let (net, source, sink) = narrow(&tcp, 1_100);
        let source = net.node::<TcpSource>(source);
        let [first, second] = [0, 1].map(|flow| source.connection(flow).unwrap());
        let bytes: Vec<u64> = net.node::<TcpSink>(sink).flows().iter().map(|f| f.bytes).collect();
        assert_eq!(bytes, [200_000, 200_000]);
        let options = if tcp.timestamps.is_some() { 12 } else { 0 };
        assert_eq!(first.snapshot().segment, 1_060 - options);
        assert!(net.too_big() > 0 && first.counters().retransmitted_segments > 0);
        assert_eq!((first.counters().timeouts, first.counters().recoveries), (0, 0));
        assert_eq!(second.counters().retransmitted_segments, 0, "cached path MTU");
    }
}

#[test]
fn host_that_ignores_icmp_hits_a_black_hole() {
    let tcp = TcpConfig { retries: 4, ..TcpConfig::sack() };
    let (net, source, sink) = narrow(&tcp, 1_100);
    let first = net.node::<TcpSource>(source).connection(0).unwrap();
    assert!(first.counters().timeouts > 0);
    assert_eq!(net.node::<TcpSink>(sink).flows()[0].bytes, 0);
}
