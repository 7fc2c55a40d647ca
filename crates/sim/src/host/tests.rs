//! Applications on XSTP, through routers and through a gateway.

use super::*;
use crate::network::{Address, NodeId};
use crate::traffic::{Client, ConnectionPlan, Server};
use crate::{Faults, Network};
use ::xstp::session::SessionConfig;
use satlink::{Direction, DirectionConfig, LinkConfig};
use units::{BitRate, Span};

fn at(secs: u64) -> Instant {
    Instant::ZERO + Span::from_secs(secs)
}

fn wire() -> LinkConfig {
    LinkConfig::symmetric(DirectionConfig {
        rate: Some(BitRate::from_mbps(100)),
        delay: Span::from_millis(1),
        ..DirectionConfig::default()
    })
}

fn satellite(words: &str) -> LinkConfig {
    let mut link = satlink::profiles::by_name("geo").expect("a profile");
    satlink::words::apply_link(&mut link, words).expect("right words");
    link
}

type Source = Host<Xstp, BulkSender<XstpStream>>;
type Sink = Host<Xstp, BulkReceiver<XstpStream>>;

const BYTES: u64 = 2_000_000;

/// A sender, a router, a satellite link down, a router, a receiver.
fn transfer(config: &SessionConfig, words: &str) -> (Network, NodeId, NodeId) {
    let mut net = Network::new(5, 0);
    let sink = net.host_with(|node| {
        Host::new(Xstp::server(node, config, 80), BulkReceiver::<XstpStream>::new(3))
    });
    let source = net.host_with(|node| {
        let transport = Xstp::client(node, config, Address::new(sink, 80));
        Host::new(transport, BulkSender::<XstpStream>::new(at(1), BYTES, 3))
    });
    let [left, right] = [(); 2].map(|()| net.router());
    net.link(source, left, &wire());
    net.link(left, right, &satellite(words));
    net.link(right, sink, &wire());
    net.trace();
    (net, source, sink)
}

fn arrives(config: &SessionConfig, words: &str) {
    let (mut net, source, sink) = transfer(config, words);
    let done =
        net.run_while(at(600), |net| net.node::<Source>(source).application.over().is_none());
    let seen = &net.node::<Sink>(sink).application;
    assert!(done && seen.is_done(), "{:?}", seen.streams().next());
    assert_eq!(seen.received(), BYTES);
    assert_eq!(net.node::<Source>(source).application.written(), BYTES);
}

#[test]
fn transfer_arrives_with_published_and_sealed_profiles() {
    let gateway = SessionConfig::gateway(BitRate::from_mbps(10));
    for words in ["", "loss 3%", "outage at 2s for 3s"] {
        arrives(&SessionConfig::stp_1999(), words);
        arrives(&gateway, words);
    }
}

#[test]
fn damaged_segments_are_rejected_and_retransmitted() {
    let (mut net, source, sink) = transfer(&SessionConfig::stp_1999(), "");
    let link = net.link(source, sink, &wire());
    let faults = Faults { corrupt: 0.05, truncate: 0.05, duplicate: 0.05, replay: 0.05 };
    for direction in Direction::BOTH {
        net.set_faults(link, direction, faults);
    }
    assert!(net.run_while(at(600), |net| !net.node::<Sink>(sink).application.is_done()));
    assert_eq!(net.node::<Sink>(sink).application.received(), BYTES);
    assert!(net.node::<Sink>(sink).transport.bad() > 50);
}

#[test]
#[should_panic(expected = "the sender's bytes, once and in order")]
fn modified_octets_are_detected() {
    let (mut net, _, sink) = transfer(&SessionConfig::stp_1999(), "");
    net.node_mut::<Sink>(sink).application = BulkReceiver::new(4);
    net.run_until(at(30));
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        let (mut net, ..) = transfer(&SessionConfig::stp_1999(), "loss 2%");
        net.run_until(at(60));
        net.trace_hash()
    };
    assert_eq!(run(), run());
}

/// Clients that send requests through two gateways: one connection per segment.
#[test]
fn requests_pass_through_gateways() {
    let lan = SessionConfig::stp_1999();
    let space = SessionConfig::gateway(BitRate::from_mbps(1));
    let mut net = Network::new(5, 0);
    let server =
        net.host_with(|node| Host::new(Xstp::server(node, &lan, 80), Server::<XstpStream>::new()));
    let hub = net.gateway_with(|node| {
        let far = Xstp::client(node, &lan, Address::new(server, 80));
        Proxy::new(Xstp::server(node, &space, 4500), far)
    });
    let terminal = net.gateway_with(|node| {
        let far = Xstp::client(node, &space, Address::new(hub, 4500));
        Proxy::new(Xstp::server(node, &lan, 80), far)
    });
    let mut plans = ConnectionPlan::page(at(1), 30, 212_207, 6);
    plans.push(ConnectionPlan::upload(at(2), 50_000));
    let client = net.host_with(|node| {
        let transport = Xstp::client(node, &lan, Address::new(terminal, 80));
        Host::new(transport, Client::<XstpStream>::new(plans))
    });
    // Another client without gateways, over the same links.
    let direct = net.host_with(|node| {
        let transport = Xstp::client(node, &lan, Address::new(server, 80));
        let plans = vec![ConnectionPlan::download(at(1), 100_000)];
        Host::new(transport, Client::<XstpStream>::new(plans))
    });
    net.link(client, terminal, &wire());
    net.link(direct, terminal, &wire());
    net.link(hub, terminal, &satellite("loss 1%"));
    net.link(server, hub, &wire());
    type Clients = Host<Xstp, Client<XstpStream>>;
    net.run_until(at(60));
    for host in [client, direct] {
        let seen = &net.node::<Clients>(host).application;
        assert!(seen.is_done() && seen.lost() == 0, "{:?}", seen.exchanged());
    }
    net.run_until(at(120));
    assert_eq!(net.node::<Proxy<Xstp, Xstp>>(hub).carried(), 0, "nothing is left behind");
    assert_eq!(net.node::<Proxy<Xstp, Xstp>>(terminal).carried(), 0);
    assert_eq!(
        net.node::<Host<Xstp, Server<XstpStream>>>(server).transport.connections().count(),
        0
    );
}

/// The relays of the product as hosts of a network, with routers between them.
#[test]
fn product_gateways_run_as_hosts() {
    use crate::gateways::{HubSide, Terminal};
    use relay::RelayConfig;
    let [down, up] = [BitRate::from_mbps(10), BitRate::from_mbps(1)];
    let mut net = Network::new(5, 0);
    let hub = RelayConfig::new("hub").with_rates(Some(down), Some(up));
    let hub = HubSide::new(&hub, net.rng("hub"));
    let hub = net.host(Datagrams::new(hub, 4500, None));
    let mut plans = ConnectionPlan::page(at(2), 30, 212_207, 6);
    plans.extend(ConnectionPlan::file(at(3), 500_000));
    let terminal = RelayConfig::new("terminal").with_rates(Some(up), Some(down));
    let terminal = Terminal::new(&terminal, net.rng("terminal"), plans);
    let terminal = net.host(Datagrams::new(terminal, 4500, Some(Address::new(hub, 4500))));
    let [near, far] = [(); 2].map(|()| net.router());
    net.link(hub, near, &wire());
    net.link(near, far, &satellite("loss 1%"));
    net.link(far, terminal, &wire());
    net.expect_progress("the clients", at(4), Span::from_secs(5), move |net| {
        let client = &net.node::<Datagrams<Terminal>>(terminal).endpoint.client;
        (!client.is_done()).then(|| client.received().total().bytes)
    });
    net.run_until(at(30));
    let seen = &net.node::<Datagrams<Terminal>>(terminal).endpoint;
    assert!(seen.client.is_done() && seen.client.lost() == 0, "{:?}", seen.client.exchanged());
}

/// Requests and a file over a link with losses and an outage, by the QUIC-like transport.
#[test]
fn quic_carries_requests_and_files_over_losses() {
    use simtcp::quic::QuicConfig;
    let config = QuicConfig::default();
    let mut net = Network::new(5, 0);
    let server =
        net.host_with(|node| Host::new(Quic::server(node, &config, 80), Server::<QuicId>::new()));
    let mut plans = ConnectionPlan::page(at(1), 30, 212_207, 6);
    plans.push(ConnectionPlan::upload(at(2), 50_000));
    let client = net.host_with(|node| {
        let transport = Quic::client(node, &config, Address::new(server, 80));
        Host::new(transport, Client::<QuicId>::new(plans))
    });
    net.link(server, client, &satellite("loss 2% outage at 2s for 3s"));
    net.run_until(at(90));
    let seen = &net.node::<Host<Quic, Client<QuicId>>>(client).application;
    assert!(seen.is_done() && seen.lost() == 0, "{:?}", seen.exchanged());
    let server = &net.node::<Host<Quic, Server<QuicId>>>(server).transport;
    assert_eq!((server.connections().count(), server.unmatched()), (0, 0), "nothing is left");
}

#[test]
fn quic_rejects_damaged_datagrams_without_a_panic() {
    use simtcp::quic::QuicConfig;
    type Source = Host<Quic, BulkSender<QuicId>>;
    type Sink = Host<Quic, BulkReceiver<QuicId>>;
    let config = QuicConfig::default();
    let mut net = Network::new(5, 0);
    let sink =
        net.host_with(|node| Host::new(Quic::server(node, &config, 80), BulkReceiver::new(3)));
    let source = net.host_with(|node| {
        let transport = Quic::client(node, &config, Address::new(sink, 80));
        Host::new(transport, BulkSender::new(at(1), BYTES, 3))
    });
    let link = net.link(source, sink, &satellite(""));
    let faults = Faults { corrupt: 0.0, truncate: 0.05, duplicate: 0.05, replay: 0.05 };
    for direction in Direction::BOTH {
        net.set_faults(link, direction, faults);
    }
    net.run_while(at(600), |net| net.node::<Source>(source).application.over().is_none());
    assert_eq!(net.node::<Sink>(sink).application.received(), BYTES);
    assert!(net.node::<Sink>(sink).transport.unmatched() > 5);
}
