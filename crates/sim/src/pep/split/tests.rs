//! Connections through transparent gateways.

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

/// A user, a gateway at each end of the satellite link, a server.
struct Three {
    net: Network,
    user: NodeId,
    near: NodeId,
    far: NodeId,
    server: NodeId,
    wire: LinkId,
}

/// The gateways of three segments; `near` and `far` make their transports on the satellite.
fn three<A, S, N>(
    words: &str,
    middle: impl Fn(NodeId) -> N,
    server: impl FnOnce(Tcp) -> S,
    user: impl FnOnce(Tcp) -> A,
) -> Three
where
    N: Interceptor,
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

fn upload<N: Interceptor>(words: &str, middle: impl Fn(NodeId) -> N) -> Three {
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

fn arrives<N: Interceptor>(words: &str, middle: impl Fn(NodeId) -> N) -> Three {
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
fn three_segments_deliver_all_octets_with_every_middle_transport() {
    for words in ["profile geo", "profile geo both loss 2%", "profile geo outage at 3s for 2s"] {
        let run = arrives(words, stp);
        let near = run.net.node::<Split<Tcp, Xstp>>(run.near);
        assert_eq!((near.carried(), near.usage().connections), (0, 1), "{words}");
        assert_eq!(run.net.node::<Split<Xstp, Tcp>>(run.far).carried(), 0);
        let run = arrives(words, tcp);
        let near = run.net.node::<Split<Tcp, Tcp>>(run.near);
        assert_eq!((near.carried(), near.usage().connections), (0, 1), "{words}");
        assert_eq!(run.net.node::<Split<Tcp, Tcp>>(run.far).carried(), 0);
    }
}

/// A server, a gateway before the satellite, users behind it.
#[test]
fn two_segments_deliver_pages_and_files() {
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
    assert_eq!((split.carried(), split.usage().connections), (0, 5));
    assert_eq!(split.left.unmatched() + split.right.unmatched(), 0);
}

/// A user whose terminal uses STP to a single gateway.
#[test]
fn two_segments_work_with_stp_on_the_satellite() {
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
    assert_eq!((split.carried(), split.usage().connections), (0, 4));
}

/// Transactions with request and FIN on the SYN, with such transactions also between the gateways.
#[test]
fn end_on_the_syn_is_held_as_well() {
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
fn sender_progresses_while_the_other_side_is_being_opened() {
    // The gateway responds after 2 ms; the server receives the SYN 0.3 s later.
    let mut run = upload(SPACE, stp);
    run.net.run_until(at(1) + Span::from_millis(100));
    let written = run.net.node::<Sender>(run.user).application.written();
    assert!(written > 200_000, "{written}");
    assert_eq!(run.net.node::<Receiver>(run.server).transport.connections().count(), 0);
    let usage = run.net.node::<Split<Tcp, Xstp>>(run.near).usage();
    assert!(usage.peak > 100_000, "{usage:?}");
}

#[test]
fn end_is_acknowledged_after_the_last_octet_has_arrived() {
    fn check<N: Interceptor>(middle: impl Fn(NodeId) -> N) {
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
        // The reverse path over the satellite takes at least 0.25 s.
        assert!(now >= ended + Span::from_millis(200), "{now:?} {ended:?}");
    }
    check(stp);
    check(tcp);
}

#[test]
fn end_is_never_acknowledged_if_data_is_lost() {
    fn check<N: Interceptor>(middle: impl Fn(NodeId) -> N) {
        let mut run = upload(SPACE, middle);
        let (user, server, wire) = (run.user, run.server, run.wire);
        // The server disappears before the last octet has reached the second gateway.
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
        assert!(run.net.node::<Sender>(user).application.over().is_some(), "it was notified");
    }
    check(stp);
    check(tcp);
}

#[test]
fn resets_are_forwarded_in_both_directions() {
    fn check<N: Interceptor>(from_user: bool, middle: impl Fn(NodeId) -> N) {
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
fn packets_of_other_protocols_are_forwarded() {
    // UDP, and TCP segments without payload octets.
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
    assert_eq!(split.usage().connections, 0);
}

/// Transfers 10 Mbyte over 1.3 Mbit/s and 600 ms, through a gateway with `bytes` octets for the
/// connection, of which 1/5 on the terrestrial side. Returns the buffer usage and the seconds.
fn with_memory(bytes: u64) -> (BufferUsage, f64) {
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
    (net.node::<Split<Tcp, Tcp>>(gateway).usage(), took.since(at(0)).as_secs_f64())
}

#[test]
fn two_to_three_bandwidth_delay_products_suffice() {
    // Henderson and Katz 1999, section 6.1; the product is 97,500 octets.
    let [(scarce, slow), (enough, fast), (plenty, fastest)] =
        [78_000, 243_000, 480_000].map(with_memory);
    assert!(fast < 1.03 * fastest && slow > 1.2 * fastest, "{slow} {fast} {fastest}");
    // An unlimited sender fills the available memory, and never more.
    for (usage, given) in [(scarce, 78_000), (enough, 243_000), (plenty, 480_000)] {
        assert!((given * 9 / 10..=given).contains(&usage.peak), "{usage:?}");
        assert!(
            usage.mean <= usage.peak as f64 && usage.mean > 0.5 * usage.peak as f64,
            "{usage:?}"
        );
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
