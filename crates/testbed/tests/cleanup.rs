//! Networks are removed completely. Runs alone in its process, because it counts descriptors.

use std::fs;
use testbed::{Satellite, SatelliteConfig, permission};

/// Number of network namespaces held by descriptors of this process.
fn namespaces_held() -> usize {
    let entries = fs::read_dir("/proc/self/fd").unwrap();
    entries
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter(|target| target.to_string_lossy().starts_with("net:"))
        .count()
}

#[test]
fn network_is_removed_when_dropped() {
    if let Err(reason) = permission::check() {
        eprintln!("skipped: {reason}");
        return;
    }
    let net = Satellite::new(&SatelliteConfig::default()).unwrap();
    assert_eq!(namespaces_held(), 5);
    drop(net);
    assert_eq!(namespaces_held(), 0);
    // Also after a panic.
    let panicked = std::panic::catch_unwind(|| {
        let _net = Satellite::new(&SatelliteConfig::default()).unwrap();
        panic!("on purpose");
    });
    assert!(panicked.is_err());
    assert_eq!(namespaces_held(), 0);
}
