//! Each kind of traffic over each transport: TCP, STP, and split paths of both.

use super::*;
use crate::Network;
use crate::host::{BulkReceiver, BulkSender, Host, Interceptor, Tcp, Transport, Xstp};
use crate::network::{Address, Node, NodeId};
use crate::pep::Split;
use satlink::LinkConfig;
use simtcp::{DelayedAck, InitialWindow, TcpConfig};
use units::{BitRate, Span};
use xstp::session::SessionConfig;

fn at(secs: u64) -> Instant {
    Instant::ZERO + Span::from_secs(secs)
}

fn link(words: &str) -> LinkConfig {
    satlink::words::parse_link(words).expect("right words")
}

/// The gateways between a user and a server.
#[derive(Clone, Copy, Debug)]
enum Between {
    Nothing,
    /// One gateway with TCP on both sides.
    Two,
    /// Two gateways with TCP between them.
    ThreeTcp,
    /// Two gateways with STP between them.
    ThreeStp,
}

const WAYS: [Between; 4] = [Between::Nothing, Between::Two, Between::ThreeTcp, Between::ThreeStp];

/// Connects the routers or hosts `user` and `server` by a satellite link of 2 Mbit/s and 540 ms
/// with a loss of 1 %; `sides` are the hosts on the user's side and on the server's.
fn join(net: &mut Network, [user, server]: [NodeId; 2], sides: [&[NodeId]; 2], between: Between) {
    let (lan, space) = (link("both rate 100mbit"), link("both rate 2mbit delay 270ms loss 1%"));
    let (plain, far) = (TcpConfig::new_reno(), TcpConfig::sack());
    match between {
        Between::Nothing => {
            net.link(server, user, &space);
        }
        Between::Two => {
            let gateway = net.gateway_with(|node| {
                Split::new(Tcp::gateway(node, &plain), Tcp::gateway(node, &far), sides[1].to_vec())
            });
            net.link(server, gateway, &lan);
            net.link(gateway, user, &space);
        }
        Between::ThreeTcp => three(net, [user, server], sides, |node| Tcp::gateway(node, &far)),
        Between::ThreeStp => {
            let stp = SessionConfig::stp_1999();
            three(net, [user, server], sides, |node| Xstp::gateway(node, &stp));
        }
    }

    fn three<N: Interceptor>(
        net: &mut Network,
        [user, server]: [NodeId; 2],
        sides: [&[NodeId]; 2],
        middle: impl Fn(NodeId) -> N,
    ) {
        let (lan, space) = (link("both rate 100mbit"), link("both rate 2mbit delay 270ms loss 1%"));
        let plain = TcpConfig::new_reno();
        let [terminal, hub] = sides.map(|side| {
            net.gateway_with(|node| {
                Split::new(Tcp::gateway(node, &plain), middle(node), side.to_vec())
            })
        });
        net.link(server, hub, &lan);
        net.link(hub, terminal, &space);
        net.link(terminal, user, &lan);
    }
}

/// Runs a user's plans against a server over a transport; returns the seconds.
fn ask<T: Transport>(
    between: Between,
    plans: Vec<ConnectionPlan>,
    serve: impl FnOnce(NodeId) -> T,
    client: impl FnOnce(NodeId, Address) -> T,
) -> f64
where
    T::Id: Ord + 'static,
{
    let mut net = Network::new(3, 0);
    let server = net.host_with(|node| Host::new(serve(node), Server::<T::Id>::new()));
    let user = net.host_with(|node| {
        Host::new(client(node, Address::new(server, 80)), Client::<T::Id>::new(plans))
    });
    join(&mut net, [user, server], [&[user], &[server]], between);
    type Asks<T> = Host<T, Client<<T as Streams>::Id>>;
    net.run_while(at(600), |net| !net.node::<Asks<T>>(user).application.is_done());
    let seen = &net.node::<Asks<T>>(user).application;
    assert!(seen.is_done() && seen.lost() == 0, "{between:?} {:?}", seen.exchanged());
    let last = seen.exchanged().iter().filter_map(|one| one.done).max().expect("there are some");
    last.since(at(1)).as_secs_f64()
}

fn over_tcp(between: Between, tcp: &TcpConfig, plans: Vec<ConnectionPlan>) -> f64 {
    let serve = |node| Tcp::server(node, tcp, 80);
    ask(between, plans, serve, |node, to| Tcp::client(node, tcp, to))
}

fn over_stp(plans: Vec<ConnectionPlan>) -> f64 {
    let stp = SessionConfig::stp_1999();
    let serve = |node| Xstp::server(node, &stp, 80);
    ask(Between::Nothing, plans, serve, |node, to| Xstp::client(node, &stp, to))
}

const HTTP: [Http; 4] = [
    Http::PerElement { at_once: 4 },
    Http::KeepAlive { connections: 4 },
    Http::Serial,
    Http::Pipelined,
];

#[test]
fn pages_are_fetched_with_every_http_over_every_transport() {
    let sizes = S1711_PAGES[0].even();
    for http in HTTP {
        let plans = || http.plans(at(1), &sizes, 300);
        for between in WAYS {
            over_tcp(between, &TcpConfig::sack_reno().of_1999(), plans());
        }
        for tcp in [TcpConfig::reno(), TcpConfig::linux()] {
            over_tcp(Between::Nothing, &tcp, plans());
        }
        over_stp(plans());
    }
}

#[test]
fn files_and_a_web_load_are_fetched_over_every_transport() {
    let mut rng = units::RngStream::new(1, 0, "load");
    let load = WebLoad { rate: BitRate::from_kbps(80), largest: Some(146_000) };
    let mut plans = ConnectionPlan::file(at(1), 1_000_000);
    plans.extend(load.plans(&mut rng, at(1), at(30)));
    assert!(plans.len() > 20, "{}", plans.len());
    for between in WAYS {
        over_tcp(between, &TcpConfig::sack(), plans.clone());
    }
    over_stp(plans);
}

/// A browsing user beside an upload of 1 Mbyte and 200 kbit/s of UDP.
#[test]
fn browsing_bulk_and_datagrams_share_a_path() {
    let tcp = TcpConfig::sack();
    for between in WAYS {
        let mut net = Network::new(3, 0);
        let hub = net.router();
        let terminal = net.router();
        let lan = link("both rate 100mbit");
        let server = net.host_with(|node| Host::new(Tcp::server(node, &tcp, 80), Server::new()));
        let rng = net.rng("person");
        let reading = BrowsingModel::Mah;
        let reader = net.host_with(|node| {
            let transport = Tcp::client(node, &tcp, Address::new(server, 80));
            Host::new(transport, Browser::new(reading, 4, rng, at(1), at(60)))
        });
        let sink =
            net.host_with(|node| Host::new(Tcp::server(node, &tcp, 80), BulkReceiver::new(5)));
        let sender = net.host_with(|node| {
            let transport = Tcp::client(node, &tcp, Address::new(sink, 80));
            Host::new(transport, BulkSender::new(at(2), 1_000_000, 5))
        });
        let counts = net.host(ConstantSink::new());
        let rate = BitRate::from_kbps(200);
        let plan = ConstantRate { rate, packet: 500, from: at(1), until: at(61) };
        let steady = net.host(ConstantSource::new(plan, 7, Address::new(counts, 9)));
        let (far, near) = ([server, sender, steady], [reader, sink, counts]);
        join(&mut net, [terminal, hub], [&near, &far], between);
        for (router, nodes) in [(hub, far), (terminal, near)] {
            for node in nodes {
                net.link(router, node, &lan);
            }
        }
        net.run_until(at(300));
        fn application<A: Node, B>(net: &Network, id: NodeId, read: impl Fn(&A) -> B) -> B {
            read(net.node::<A>(id))
        }
        let pages = application(&net, reader, |host: &Host<Tcp, Browser<_>>| {
            (host.application.pages().len(), host.application.lost())
        });
        assert!(pages.0 > 0 && pages.1 == 0, "{between:?} {pages:?}");
        application(&net, sink, |host: &Host<Tcp, BulkReceiver<_>>| {
            assert!(host.application.is_done() && host.application.received() == 1_000_000);
        });
        let lost = net.node::<ConstantSink>(counts).lost();
        let sent = net.node::<ConstantSource>(steady).sent();
        // 3,000 packets; 1 % is lost on the link, and others at the full queue.
        assert_eq!(sent, 3_000);
        assert!((10..150).contains(&lost), "{between:?}: {lost} of {sent}");
    }
}

/// The duration of a page without loss, computed from round trips and transmission times.
#[test]
fn http_variants_take_the_round_trips_of_the_recommendation() {
    // Four elements of 1,000 octets over 540 ms without transmission time. HTTP/1.0: two round
    // trips (connect, request) for the primary file, two for all others in parallel. Keep-alive
    // with three connections: the second has its first response after two more round trips. Serial:
    // one to connect and four. Pipelined: one to connect, one, one.
    let sizes = [1_000; 4];
    let tcp = TcpConfig::sack();
    let ways = [
        (Http::PerElement { at_once: 4 }, 4.0),
        (Http::PerElement { at_once: 2 }, 6.0),
        (Http::KeepAlive { connections: 3 }, 4.0),
        (Http::Serial, 5.0),
        (Http::Pipelined, 3.0),
    ];
    for (http, round_trips) in ways {
        let mut net = Network::new(3, 0);
        let server = net.host_with(|node| Host::new(Tcp::server(node, &tcp, 80), Server::new()));
        let user = net.host_with(|node| {
            let transport = Tcp::client(node, &tcp, Address::new(server, 80));
            Host::new(transport, Client::new(http.plans(at(1), &sizes, 300)))
        });
        net.link(server, user, &link("both rate 1gbit delay 270ms"));
        net.run_until(at(60));
        let seen = &net.node::<Host<Tcp, Client<_>>>(user).application;
        let last = seen.exchanged().iter().filter_map(|one| one.done).max().expect("some");
        let trips = last.since(at(1)).as_secs_f64() / 0.540;
        assert!((trips - round_trips).abs() < 0.01, "{http:?}: {trips}");
    }
}

/// Requests sent while the primary file still arrives save a round trip; computed.
#[test]
fn requesting_elements_as_they_are_named_is_faster() {
    // Six segments of the primary file in bursts of three, then three elements of 29 segments in
    // all; each segment acknowledged. After the file, whose last burst leaves a window of five:
    // connect, 3, 3, and 5, 10, 14 of elements. As they are named, half of the file names one of
    // the three, so that its last burst has two of an element or three: connect, 3, 5 or 6, 10 or
    // 12, and the rest.
    let sizes = [8_760, 14_000, 14_000, 14_000];
    let tcp = TcpConfig {
        initial_window: InitialWindow::Segments(3),
        delayed_ack: DelayedAck::OFF,
        ..TcpConfig::sack()
    };
    for (order, round_trips) in [(Order::PipelinedAfterFirst, 6.0), (Order::PipelinedAsNamed, 5.0)]
    {
        let mut plans = Http::Pipelined.plans(at(1), &sizes, 300);
        plans[0].order = order;
        let mut net = Network::new(3, 0);
        let server = net.host_with(|node| Host::new(Tcp::server(node, &tcp, 80), Server::new()));
        let user = net.host_with(|node| {
            let transport = Tcp::client(node, &tcp, Address::new(server, 80));
            Host::new(transport, Client::new(plans))
        });
        net.link(server, user, &link("both rate 10gbit delay 270ms"));
        net.run_until(at(60));
        let seen = &net.node::<Host<Tcp, Client<_>>>(user).application;
        let last = seen.exchanged().iter().filter_map(|one| one.done).max().expect("some");
        let trips = last.since(at(1)).as_secs_f64() / 0.540;
        assert!((trips - round_trips).abs() < 0.02, "{order:?}: {trips}");
    }
}
