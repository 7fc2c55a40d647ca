//! The network in real namespaces; skipped, with the reason, where none are to be had.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use testbed::traffic::{FileServer, Way, ask};
use testbed::{Host, Satellite, SatelliteConfig, addresses, permission};
use units::Span;

/// Whether the machine lets this test make networks; says so when not.
fn permitted() -> bool {
    match permission::check() {
        Ok(()) => true,
        Err(reason) => {
            eprintln!("skipped: {reason}");
            false
        }
    }
}

/// Network namespaces that this process holds by descriptors.
fn namespaces_held() -> usize {
    let entries = fs::read_dir("/proc/self/fd").unwrap();
    entries
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter(|target| target.to_string_lossy().starts_with("net:"))
        .count()
}

fn exchange(from: &Host, to: &Host, address: IpAddr) {
    let server = FileServer::start(Some(to), SocketAddr::new(address, 7000)).unwrap();
    let asked = from.run(|| ask(Way::Direct, server.address(), (4096, 4096), Span::from_secs(10)));
    assert!(asked.took.is_some(), "{} to {} ({address}): {asked:?}", from.name(), to.name());
}

#[test]
fn neighbours_reach_each_other_by_both_families_and_nothing_stays() {
    if !permitted() {
        return;
    }
    {
        let net = Satellite::new(&SatelliteConfig::default()).unwrap();
        let pairs = [
            (&net.client, &net.terminal, addresses::TERMINAL_LAN),
            (&net.terminal, &net.client, addresses::CLIENT),
            (&net.hub, &net.server, addresses::SERVER),
            (&net.server, &net.hub, addresses::HUB_WAN),
            // Across a router: the hub's address on the satellite's side.
            (&net.server, &net.hub, addresses::HUB),
        ];
        for (from, to, (v4, v6)) in pairs {
            exchange(from, to, v4.into());
            exchange(from, to, v6.into());
        }
        assert_eq!(namespaces_held(), 5);
    }
    assert_eq!(namespaces_held(), 0);
}
