//! Applications on TCP, and TCP through gateways with XSTP between them.

use super::*;
use crate::Network;
use crate::host::{BulkReceiver, BulkSender, Host, Proxy, Xstp};
use crate::traffic::{Client, ClientClose, ConnectionPlan, Server};
use satlink::{Direction, DirectionConfig, LinkConfig};
use simtcp::Opening;
use units::{BitRate, Span};
use xstp::session::SessionConfig;

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

#[test]
fn transfer_arrives_completely() {
    const BYTES: u64 = 3_000_000;
    // Small buffers, so that both applications have to wait.
    let small = TcpConfig { send_buffer: 100_000, receive_buffer: 50_000, ..TcpConfig::sack() };
    for (config, words) in
        [(TcpConfig::linux(), "loss 2%"), (small, ""), (TcpConfig::new_reno(), "reorder 5%")]
    {
        let mut net = Network::new(3, 0);
        let sink = net.host_with(|node| {
            Host::new(Tcp::server(node, &config, 80), BulkReceiver::<TcpId>::new(3))
        });
        let source = net.host_with(|node| {
            let transport = Tcp::client(node, &config, Address::new(sink, 80));
            Host::new(transport, BulkSender::<TcpId>::new(at(1), BYTES, 3))
        });
        net.link(source, sink, &satellite(words));
        net.run_until(at(600));
        let seen = &net.node::<Host<Tcp, BulkReceiver<TcpId>>>(sink).application;
        assert!(seen.is_done(), "{words}");
        assert_eq!(seen.received(), BYTES);
        let source = net.node::<Host<Tcp, BulkSender<TcpId>>>(source);
        assert!(source.application.over().is_some());
        assert_eq!(source.transport.connections().count(), 0, "all is over");
    }
}

#[test]
fn request_takes_two_round_trips_and_a_page_more() {
    let config = TcpConfig::linux();
    let mut net = Network::new(3, 0);
    let server =
        net.host_with(|node| Host::new(Tcp::server(node, &config, 80), Server::<TcpId>::new()));
    let mut plans = vec![ConnectionPlan::download(at(1), 4_096)];
    plans.extend(ConnectionPlan::page(at(10), 30, 212_207, 6));
    let client = net.host_with(|node| {
        let transport = Tcp::client(node, &config, Address::new(server, 80));
        Host::new(transport, Client::<TcpId>::new(plans))
    });
    net.link(server, client, &satellite(""));
    net.run_until(at(60));
    let seen = &net.node::<Host<Tcp, Client<TcpId>>>(client).application;
    assert!(seen.is_done() && seen.lost() == 0, "{:?}", seen.exchanged());
    let first = seen.exchanged()[0];
    let took = first.done.unwrap().since(first.asked).as_secs_f64();
    assert!((1.2..1.22).contains(&took), "a handshake, a question, and 4 KB: {took}");
}

#[test]
fn transaction_takes_one_round_trip_with_cached_peer_data() {
    let config = TcpConfig { opening: Opening::Transaction, ..TcpConfig::reno() };
    let mut net = Network::new(3, 0);
    let server =
        net.host_with(|node| Host::new(Tcp::server(node, &config, 80), Server::<TcpId>::new()));
    let plans = [1, 10].map(|start| ConnectionPlan::download(at(start), 1_000));
    let client = net.host_with(|node| {
        let transport = Tcp::client(node, &config, Address::new(server, 80));
        Host::new(transport, Client::<TcpId>::new(plans.to_vec()))
    });
    net.link(server, client, &satellite(""));
    net.run_until(at(60));
    let seen = &net.node::<Host<Tcp, Client<TcpId>>>(client).application;
    assert!(seen.is_done() && seen.lost() == 0, "{:?}", seen.exchanged());
    let took = [0, 1].map(|n| {
        let one = seen.exchanged()[n];
        one.done.unwrap().since(one.asked).as_secs_f64()
    });
    assert!((1.2..1.22).contains(&took[0]) && (0.6..0.62).contains(&took[1]), "{took:?}");
}

#[test]
fn tcp_is_split_by_gateways() {
    let lan = TcpConfig::linux();
    let space = SessionConfig::gateway(BitRate::from_mbps(1));
    let mut net = Network::new(5, 0);
    let server =
        net.host_with(|node| Host::new(Tcp::server(node, &lan, 80), Server::<TcpId>::new()));
    let hub = net.gateway_with(|node| {
        let far = Tcp::client(node, &lan, Address::new(server, 80));
        Proxy::new(Xstp::server(node, &space, 4500), far)
    });
    let terminal = net.gateway_with(|node| {
        let far = Xstp::client(node, &space, Address::new(hub, 4500));
        Proxy::new(Tcp::server(node, &lan, 80), far)
    });
    let client = net.host_with(|node| {
        let transport = Tcp::client(node, &lan, Address::new(terminal, 80));
        let plans = ConnectionPlan::page(at(1), 30, 212_207, 6);
        Host::new(transport, Client::<TcpId>::new(plans))
    });
    net.link(client, terminal, &wire());
    net.link(hub, terminal, &satellite("loss 1%"));
    net.link(server, hub, &wire());
    net.run_until(at(100));
    let seen = &net.node::<Host<Tcp, Client<TcpId>>>(client).application;
    assert!(seen.is_done() && seen.lost() == 0, "{:?}", seen.exchanged());
}

#[test]
fn segments_shrink_to_the_path_mtu() {
    let config = TcpConfig { path_mtu: true, ..TcpConfig::sack() };
    let mut net = Network::new(3, 0);
    let server =
        net.host_with(|node| Host::new(Tcp::server(node, &config, 80), Server::<TcpId>::new()));
    let client = net.host_with(|node| {
        let transport = Tcp::client(node, &config, Address::new(server, 80));
        Host::new(transport, Client::<TcpId>::new(vec![ConnectionPlan::download(at(1), 300_000)]))
    });
    let router = net.router();
    net.link(server, router, &wire());
    let link = net.link(router, client, &satellite(""));
    net.set_mtu(link, Some(576));
    net.run_until(at(60));
    assert!(net.node::<Host<Tcp, Client<TcpId>>>(client).application.is_done());
    // Only the first window was too large.
    assert_eq!(net.too_big(), 3);
}

#[test]
fn short_reply_takes_eight_packets_and_a_transaction_three() {
    let packets = |config: &TcpConfig, ends| {
        let mut net = Network::new(3, 0);
        let server = net.host_with(|node| {
            Host::new(Tcp::server(node, config, 80), Server::<TcpId>::new().closing())
        });
        let client = net.host_with(|node| {
            let plans = [1, 100].map(|start| ConnectionPlan::download(at(start), 1_000));
            let transport = Tcp::client(node, config, Address::new(server, 80));
            Host::new(transport, Client::<TcpId>::new(plans.to_vec()).ending(ends))
        });
        let link = net.link(server, client, &satellite(""));
        let sent = |net: &Network| {
            let packets = |way| net.line(link).counters(way).sent.packets;
            Direction::BOTH.map(packets).iter().sum::<u64>()
        };
        net.run_until(at(99));
        let before = sent(&net);
        net.run_until(at(200));
        let seen = &net.node::<Host<Tcp, Client<TcpId>>>(client).application;
        assert!(seen.is_done() && seen.lost() == 0);
        sent(&net) - before
    };
    // SYN, SYN and ACK, ACK, request, reply with FIN, ACK, FIN, ACK.
    let apart = TcpConfig { answers_first: true, ..TcpConfig::reno() };
    assert_eq!(packets(&apart, ClientClose::AfterResponses), 8);
    // With the request on the third segment, and the FIN on its acknowledgement.
    assert_eq!(packets(&TcpConfig::reno(), ClientClose::AfterResponses), 6);
    let transaction = TcpConfig { opening: Opening::Transaction, ..apart };
    assert_eq!(packets(&transaction, ClientClose::WithRequests), 3);
}
