//! Reference models in real namespaces; skipped with the reason if they are not permitted.

use satlink::reference::Plan;
use satlink::{LinkConfig, words};
use std::net::SocketAddr;
use testbed::traffic::{FileServer, Way, ask};
use testbed::{Reference, SatelliteConfig, permission};
use units::Span;

fn link(text: &str) -> LinkConfig {
    words::parse_link(text).unwrap()
}

/// Sends a request between each pair of sites, by name; none may take less than the given
/// milliseconds.
fn check(plan: &Plan, pairs: &[(&str, &str, u64)]) {
    if let Err(reason) = permission::check() {
        eprintln!("skipped: {reason}");
        return;
    }
    let net = Reference::new(plan, &SatelliteConfig::default()).unwrap();
    let emulators = net.emulate(1).unwrap();
    let delays = plan.wires.iter().filter(|wire| wire.config != LinkConfig::default()).count();
    assert_eq!(emulators.handles().count(), delays);
    for &(from, to, least) in pairs {
        let [from, to] = [from, to].map(|name| plan.find(name).unwrap());
        let address = SocketAddr::new(net.address_of(to).into(), 7000);
        let server = FileServer::start(Some(net.host(to)), address).unwrap();
        let way = Way::Direct;
        let asked =
            net.host(from).run(|| ask(way, server.address(), (4096, 4096), Span::from_secs(10)));
        let took = asked.took.unwrap_or_else(|| panic!("{from} to {to}: {asked:?}"));
        // One round trip to connect, one for the request; there is no upper bound.
        assert!(took >= Span::from_millis(2 * least), "{from} to {to}: {asked:?}");
    }
}

#[test]
fn sites_of_a_mesh_and_of_several_hops_are_connected() {
    let (lan, space) = (LinkConfig::default(), link("both delay 20ms"));
    check(&Plan::mesh(&lan, &space, 3), &[("user-1", "user-3", 40), ("user-3", "user-2", 40)]);
    check(&Plan::several_hops(&lan, &space, 2), &[("user-1", "user-2", 80)]);
}

#[test]
fn remotes_of_a_star_are_connected_over_the_satellite() {
    let (lan, space) = (LinkConfig::default(), link("forward delay 20ms return delay 30ms"));
    let pairs = [("user-2", "server", 50), ("server", "user-1", 50), ("user-1", "user-2", 60)];
    check(&Plan::star(&lan, &space, 2), &pairs);
}
