//! Nothing stays; alone in its process, since it counts what the process holds.

use std::fs;
use testbed::{Satellite, SatelliteConfig, permission};

/// Network namespaces that this process holds by descriptors.
fn namespaces_held() -> usize {
    let entries = fs::read_dir("/proc/self/fd").unwrap();
    entries
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter(|target| target.to_string_lossy().starts_with("net:"))
        .count()
}

#[test]
fn a_network_vanishes_with_its_value() {
    if let Err(reason) = permission::check() {
        eprintln!("skipped: {reason}");
        return;
    }
    let net = Satellite::new(&SatelliteConfig::default()).unwrap();
    assert_eq!(namespaces_held(), 5);
    drop(net);
    assert_eq!(namespaces_held(), 0);
    // Also when its user panics.
    let panicked = std::panic::catch_unwind(|| {
        let _net = Satellite::new(&SatelliteConfig::default()).unwrap();
        panic!("on purpose");
    });
    assert!(panicked.is_err());
    assert_eq!(namespaces_held(), 0);
}
