//! Users who read the same pages, one after another, through a cache.

use super::*;
use crate::Network;
use crate::host::{Host, Tcp, TcpId};
use crate::network::Address;
use crate::traffic::{Client, ConnectionPlan, Http, S1711_PAGES, Server};
use satlink::LinkConfig;
use simtcp::TcpConfig;
use units::Span;

fn at(secs: u64) -> Instant {
    Instant::ZERO + Span::from_secs(secs)
}

type Asks = Host<Tcp, Client<TcpId>>;
type Cache = WebCache<Tcp, Tcp>;

/// Two users behind a cache, with the satellite between cache and server; the second user starts a
/// minute after the first. Returns the seconds of each.
fn run(plans: impl Fn(Instant) -> Vec<ConnectionPlan>, capacity: u64) -> ([f64; 2], CacheCounts) {
    let link = |words: &str| -> LinkConfig { satlink::words::parse_link(words).expect("words") };
    let tcp = TcpConfig::sack();
    let mut net = Network::new(5, 0);
    let server = net.host_with(|node| Host::new(Tcp::server(node, &tcp, 80), Server::new()));
    let starts = [at(1), at(61)];
    let users = starts.map(|start| {
        net.host_with(|node| {
            let transport = Tcp::client(node, &tcp, Address::new(server, 80));
            Host::new(transport, Client::new(plans(start)))
        })
    });
    let cache = net.gateway_with(|node| {
        let (near, far) = (Tcp::gateway(node, &tcp), Tcp::gateway(node, &tcp));
        WebCache::new(near, far, users, capacity)
    });
    for user in users {
        net.link(user, cache, &link("both rate 10mbit delay 1ms"));
    }
    net.link(cache, server, &link("both rate 2mbit delay 270ms loss 1%"));
    net.run_until(at(300));
    let seen = net.node::<Cache>(cache);
    assert_eq!(seen.visits(), 0, "{:?}", seen.visits);
    assert!(seen.kept() <= capacity);
    assert_eq!(net.node::<Host<Tcp, Server<TcpId>>>(server).application.lost(), 0);
    let mut took = [0.0; 2];
    for ((took, user), start) in took.iter_mut().zip(users).zip(starts) {
        let client = &net.node::<Asks>(user).application;
        assert!(client.is_done() && client.lost() == 0, "{:?}", client.exchanged());
        let last = client.exchanged().iter().filter_map(|one| one.done).max().expect("some");
        *took = last.since(start).as_secs_f64();
    }
    (took, seen.counts())
}

#[test]
fn second_user_is_served_from_the_cache() {
    let page = S1711_PAGES[0];
    for http in [
        Http::PerElement { at_once: 4 },
        Http::KeepAlive { connections: 4 },
        Http::Serial,
        Http::Pipelined,
    ] {
        let plans = |start| http.plans(start, &page.even(), 300);
        let ([first, second], counts) = run(plans, 1_000_000);
        assert_eq!((counts.misses, counts.hits), (30, 30), "{http:?}");
        assert_eq!((counts.missed_bytes, counts.hit_bytes), (page.bytes, page.bytes));
        assert!(first > 2.0 && second < 0.5, "{http:?}: {first} {second}");
    }
}

#[test]
fn cache_without_capacity_only_splits() {
    let plans = |start| Http::Pipelined.plans(start, &S1711_PAGES[0].even(), 300);
    let ([first, second], counts) = run(plans, 1_000);
    assert_eq!((counts.misses, counts.hits), (60, 0));
    assert!(first > 2.0 && second > 2.0, "{first} {second}");
}

#[test]
fn uploads_are_always_forwarded() {
    let plans = |start| {
        let mut plans = ConnectionPlan::file(start, 50_000);
        plans.push(ConnectionPlan::upload(start, 100_000));
        plans
    };
    let (_, counts) = run(plans, 1_000_000);
    // Both uploads; once each the file, the command before it and the one after it.
    assert_eq!((counts.misses, counts.hits), (2 + 3, 3));
}
