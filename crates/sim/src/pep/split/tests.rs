//! Connections through gateways that nobody sees.

use super::*;
use crate::Network;
use crate::host::{BulkReceiver, BulkSender, Host, Tcp, TcpId, Transport, Xstp, XstpStream};
use crate::network::{Address, LinkId, Packet};
use crate::traffic::{Client, ConnectionPlan, Server};
use satlink::LinkConfig;
use simtcp::TcpConfig;
use units::Span;
use xstp::session::SessionConfig;

fn at(secs: u64) -> Instant {
    Instant::ZERO + Span::from_secs(secs)
}

fn link(words: &str) -> LinkConfig {
    satlink::words::parse_link(words).expect("right words")
}

fn lan() -> LinkConfig {
    link("both rate 100mbit delay 1ms")
}

const SPACE: &str = "profile geo";

/// A user, a gateway on the near side of the satellite, one on the far side, a server.
struct Three {
    net: Network,
    user: NodeId,
    near: NodeId,
    far: NodeId,
    server: NodeId,
    wire: LinkId,
}

/// The gateways of three segments, which speak what `near` and `far` make.
fn three<A, S, N>(
    words: &str,
    middle: impl Fn(NodeId) -> N,
    server: impl FnOnce(Tcp) -> S,
    user: impl FnOnce(Tcp) -> A,
) -> Three
where
    N: StandIn,
    A: Node,
    S: Node,
{
    let tcp = TcpConfig::linux();
    let mut net = Network::new(7, 0);
    let server = net.host_with(|node| server(Tcp::server(node, &tcp, 80)));
    let user = net.host_with(|node| user(Tcp::client(node, &tcp, Address::new(server, 80))));
    let near = net.gateway_with(|node| Split::new(Tcp::gateway(node, &tcp), middle(node), [user]));
    let far = net.gateway_with(|node| Split::new(middle(node), Tcp::gateway(node, &tcp), [user]));
    net.link(user, near, &lan());
    net.link(far, near, &link(words));
    let wire = net.link(far, server, &lan());
    net.trace();
    Three { net, user, near, far, server, wire }
}

type Sender = Host<Tcp, BulkSender<TcpId>>;
type Receiver = Host<Tcp, BulkReceiver<TcpId>>;
type Asks = Host<Tcp, Client<TcpId>>;
type Answers = Host<Tcp, Server<TcpId>>;

const BYTES: u64 = 3_000_000;

fn upload<N: StandIn>(words: &str, middle: impl Fn(NodeId) -> N) -> Three {
    three(
        words,
        middle,
        |tcp| Host::new(tcp, BulkReceiver::<TcpId>::new(3)),
        |tcp| Host::new(tcp, BulkSender::<TcpId>::new(at(1), BYTES, 3)),
    )
}

fn stp(node: NodeId) -> Xstp {
    Xstp::gateway(node, &SessionConfig::stp_1999())
}

fn tcp(node: NodeId) -> Tcp {
    Tcp::gateway(node, &TcpConfig::sack())
}

fn arrives<N: StandIn>(words: &str, middle: impl Fn(NodeId) -> N) -> Three {
    let mut run = upload(words, middle);
    run.net.run_until(at(400));
    let seen = &run.net.node::<Receiver>(run.server).application;
    assert!(seen.is_done() && seen.received() == BYTES, "{:?}", seen.streams().next());
    let sender = run.net.node::<Sender>(run.user);
    assert!(sender.application.over().is_some());
    assert_eq!(sender.transport.connections().count(), 0);
    run
}

#[test]
fn three_segments_bring_every_byte_whatever_the_middle_speaks() {
    for words in ["profile geo", "profile geo both loss 2%", "profile geo outage at 3s for 2s"] {
        let run = arrives(words, stp);
        let near = run.net.node::<Split<Tcp, Xstp>>(run.near);
        assert_eq!((near.carried(), near.need().connections), (0, 1), "{words}");
        assert_eq!(run.net.node::<Split<Xstp, Tcp>>(run.far).carried(), 0);
        let run = arrives(words, tcp);
        let near = run.net.node::<Split<Tcp, Tcp>>(run.near);
        assert_eq!((near.carried(), near.need().connections), (0, 1), "{words}");
        assert_eq!(run.net.node::<Split<Tcp, Tcp>>(run.far).carried(), 0);
    }
}

/// A server, a gateway before the satellite, users behind it.
#[test]
fn two_segments_bring_pages_and_files() {
    let (plain, space) = (TcpConfig::new_reno(), TcpConfig::sack());
    let mut net = Network::new(7, 0);
    let server =
        net.host_with(|node| Host::new(Tcp::server(node, &plain, 80), Server::<TcpId>::new()));
    let user = net.host_with(|node| {
        let mut plans = ConnectionPlan::page(at(1), 30, 212_207, 4);
        plans.push(ConnectionPlan::upload(at(2), 100_000));
        let tcp = Tcp::client(node, &plain, Address::new(server, 80));
        Host::new(tcp, Client::<TcpId>::new(plans))
    });
    let gateway = net.gateway_with(|node| {
        Split::new(Tcp::gateway(node, &plain), Tcp::gateway(node, &space), [server])
    });
    net.link(gateway, user, &link("profile geo both loss 1%"));
    net.link(server, gateway, &lan());
    net.run_until(at(200));
    let seen = &net.node::<Asks>(user).application;
    assert!(seen.is_done() && seen.lost() == 0, "{:?}", seen.exchanged());
    assert_eq!(net.node::<Answers>(server).application.lost(), 0);
    let split = net.node::<Split<Tcp, Tcp>>(gateway);
    assert_eq!((split.carried(), split.need().connections), (0, 5));
    assert_eq!(split.left.strangers() + split.right.strangers(), 0);
}

/// A user whose terminal speaks STP to the one gateway there is.
#[test]
fn two_segments_may_have_stp_on_the_satellite() {
    let (tcp, space) = (TcpConfig::linux(), SessionConfig::stp_1999());
    let mut net = Network::new(7, 0);
    let server =
        net.host_with(|node| Host::new(Tcp::server(node, &tcp, 80), Server::<TcpId>::new()));
    let user = net.host_with(|node| {
        let plans = ConnectionPlan::page(at(1), 30, 212_207, 4);
        let transport = Xstp::client(node, &space, Address::new(server, 80));
        Host::new(transport, Client::<XstpStream>::new(plans))
    });
    let gateway =
        net.gateway_with(|node| Split::new(Tcp::gateway(node, &tcp), stp(node), [server]));
    net.link(gateway, user, &link("profile geo both loss 1%"));
    net.link(server, gateway, &lan());
    net.run_until(at(200));
    let seen = &net.node::<Host<Xstp, Client<XstpStream>>>(user).application;
    assert!(seen.is_done() && seen.lost() == 0, "{:?}", seen.exchanged());
    assert_eq!(net.node::<Answers>(server).application.lost(), 0);
    let split = net.node::<Split<Tcp, Xstp>>(gateway);
    assert_eq!((split.carried(), split.need().connections), (0, 4));
}

/// Transactions whose requests and ends come with their SYNs, over a gateway that speaks so too.
#[test]
fn an_end_that_comes_with_the_syn_is_held_back_all_the_same() {
    let tcp = TcpConfig { opening: simtcp::Opening::Transaction, ..TcpConfig::sack() };
    let mut net = Network::new(7, 0);
    let server =
        net.host_with(|node| Host::new(Tcp::server(node, &tcp, 80), Server::<TcpId>::new()));
    let user = net.host_with(|node| {
        let plans = (1..=5).map(|start| ConnectionPlan::download(at(10 * start), 20_000)).collect();
        let transport = Tcp::client(node, &tcp, Address::new(server, 80));
        Host::new(transport, Client::<TcpId>::new(plans))
    });
    let gateway = net.gateway_with(|node| {
        Split::new(Tcp::gateway(node, &tcp), Tcp::gateway(node, &tcp), [server])
    });
    net.link(gateway, user, &link("profile geo"));
    net.link(server, gateway, &lan());
    net.run_until(at(200));
    let seen = &net.node::<Asks>(user).application;
    assert!(seen.is_done() && seen.lost() == 0, "{:?}", seen.exchanged());
    assert_eq!(net.node::<Split<Tcp, Tcp>>(gateway).carried(), 0);
}

#[test]
fn the_sender_gets_on_while_the_other_side_is_not_yet_there() {
    // The gateway answers from 2 ms away; the server hears of the connection 0.3 s later.
    let mut run = upload(SPACE, stp);
    run.net.run_until(at(1) + Span::from_millis(100));
    let written = run.net.node::<Sender>(run.user).application.written();
    assert!(written > 200_000, "{written}");
    assert_eq!(run.net.node::<Receiver>(run.server).transport.connections().count(), 0);
    let need = run.net.node::<Split<Tcp, Xstp>>(run.near).need();
    assert!(need.peak > 100_000, "{need:?}");
}

#[test]
fn an_end_is_confirmed_when_the_last_byte_is_at_the_far_end() {
    fn check<N: StandIn>(middle: impl Fn(NodeId) -> N) {
        let mut run = upload(SPACE, middle);
        let (user, server) = (run.user, run.server);
        let confirmed = move |net: &Network| {
            let tcp = &net.node::<Sender>(user).transport;
            let closes = tcp.connections().all(|(id, _)| tcp.is_confirmed(id));
            net.now() > at(2) && closes
        };
        assert!(run.net.run_while(at(100), |net| !confirmed(net)));
        let seen = &run.net.node::<Receiver>(server).application;
        assert!(seen.is_done() && seen.received() == BYTES);
        let (ended, now) = (seen.streams().next().unwrap().ended.unwrap(), run.net.now());
        // Back over the satellite, 0.25 s at the least.
        assert!(now >= ended + Span::from_millis(200), "{now:?} {ended:?}");
    }
    check(stp);
    check(tcp);
}

#[test]
fn an_end_whose_bytes_do_not_arrive_is_never_confirmed() {
    fn check<N: StandIn>(middle: impl Fn(NodeId) -> N) {
        let mut run = upload(SPACE, middle);
        let (user, server, wire) = (run.user, run.server, run.wire);
        // The server is gone before the last byte has come to the far gateway.
        run.net.change_at(at(2), move |net| {
            net.reconfigure(wire, &link("both loss 100%")).expect("a link");
        });
        let takes_it_for_whole = move |net: &Network| {
            let tcp = &net.node::<Sender>(user).transport;
            tcp.connections().any(|(_, end)| {
                matches!(end.state(), simtcp::State::FinWait2 | simtcp::State::TimeWait)
            })
        };
        assert!(!run.net.run_while(at(2_000), |net| !takes_it_for_whole(net)));
        assert!(run.net.node::<Receiver>(server).application.received() < BYTES);
        assert!(run.net.node::<Sender>(user).application.over().is_some(), "it was told");
    }
    check(stp);
    check(tcp);
}

#[test]
fn a_reset_is_passed_on_both_ways() {
    fn check<N: StandIn>(from_user: bool, middle: impl Fn(NodeId) -> N) {
        let mut run = upload(SPACE, middle);
        let (user, server) = (run.user, run.server);
        run.net.change_at(at(3), move |net| {
            if from_user {
                let tcp = &mut net.node_mut::<Sender>(user).transport;
                let id = tcp.connections().next().expect("a connection").0;
                tcp.abort(id);
            } else {
                let tcp = &mut net.node_mut::<Receiver>(server).transport;
                let id = tcp.connections().next().expect("a connection").0;
                tcp.abort(id);
            }
        });
        run.net.run_until(at(60));
        let seen = &run.net.node::<Receiver>(server).application;
        assert!(!seen.is_done() && seen.received() < BYTES);
        assert!(seen.streams().all(|stream| stream.gone.is_some_and(|gone| gone < at(5))));
        let over = run.net.node::<Sender>(user).application.over();
        assert!(over.is_some_and(|over| over < at(5)), "{over:?}");
        let near = run.net.node::<Split<Tcp, N>>(run.near);
        let far = run.net.node::<Split<N, Tcp>>(run.far);
        assert_eq!((near.carried(), far.carried()), (0, 0));
    }
    for from_user in [true, false] {
        check(from_user, stp);
        check(from_user, tcp);
    }
}

#[test]
fn whoever_it_is_not_for_passes_by() {
    // UDP, and TCP whose segments bring no bytes.
    use crate::tcp::{FlowPlan, TcpSink, TcpSource};
    let tcp = TcpConfig::linux();
    let mut net = Network::new(7, 0);
    let sink = net.host(TcpSink::new(tcp.clone(), 80));
    let plan = FlowPlan {
        start: at(0),
        stop: None,
        bytes: 100_000,
        to: Address::new(sink, 80),
        tcp: tcp.clone(),
    };
    let source = net.host_with(|node| TcpSource::new(node, vec![plan]));
    let gateway =
        net.gateway_with(|node| Split::new(Tcp::gateway(node, &tcp), stp(node), [source]));
    net.link(source, gateway, &lan());
    net.link(gateway, sink, &lan());
    net.run_until(at(30));
    assert_eq!(net.node::<TcpSink>(sink).flows()[0].bytes, 100_000);
    let split = net.node::<Split<Tcp, Xstp>>(gateway);
    assert!(!split.left.wants(&Packet::udp(
        Address::new(source, 1),
        Address::new(sink, 2),
        vec![0]
    )));
    assert_eq!(split.need().connections, 0);
}

/// 10 Mbyte over 1.3 Mbit/s and 600 ms, through a gateway with so many bytes for the connection,
/// a fifth of them on the terrestrial side: the need and the seconds.
fn with_memory(bytes: u64) -> (BufferNeed, f64) {
    let host = TcpConfig::sack();
    let gateway =
        TcpConfig { receive_buffer: bytes / 5, send_buffer: bytes - bytes / 5, ..host.clone() };
    let mut net = Network::new(7, 0);
    let sink = net
        .host_with(|node| Host::new(Tcp::server(node, &host, 80), BulkReceiver::<TcpId>::new(3)));
    let source = net.host_with(|node| {
        let to = Address::new(sink, 80);
        Host::new(Tcp::client(node, &host, to), BulkSender::<TcpId>::new(at(0), 10_000_000, 3))
    });
    let gateway = net.gateway_with(|node| {
        Split::new(Tcp::gateway(node, &gateway), Tcp::gateway(node, &gateway), [source])
    });
    net.link(source, gateway, &lan());
    net.link(gateway, sink, &link("both rate 1300kbit delay 300ms limit 1bdp"));
    net.run_until(at(300));
    let seen = &net.node::<Receiver>(sink).application;
    assert!(seen.is_done());
    let took = seen.streams().next().and_then(|stream| stream.ended).expect("it ended");
    (net.node::<Split<Tcp, Tcp>>(gateway).need(), took.since(at(0)).as_secs_f64())
}

#[test]
fn two_to_three_products_are_memory_enough() {
    // Henderson and Katz 1999, section 6.1; the product is 97,500 bytes.
    let [(scarce, slow), (enough, fast), (plenty, fastest)] =
        [78_000, 243_000, 480_000].map(with_memory);
    assert!(fast < 1.03 * fastest && slow > 1.2 * fastest, "{slow} {fast} {fastest}");
    // A greedy sender fills what there is; nothing more is ever held.
    for (need, given) in [(scarce, 78_000), (enough, 243_000), (plenty, 480_000)] {
        assert!((given * 9 / 10..=given).contains(&need.peak), "{need:?}");
        assert!(need.mean <= need.peak as f64 && need.mean > 0.5 * need.peak as f64, "{need:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        let mut run = upload("profile geo both loss 2%", stp);
        run.net.run_until(at(30));
        run.net.trace_hash()
    };
    assert_eq!(run(), run());
}
