use super::*;

fn run_one(system: System, rate: u64, size: u64) -> Transferred {
    let config =
        RadioConfig { systems: Some(vec![system]), rates: vec![rate], sizes: vec![size], seed: 1 };
    run(&config, &|_| {}).expect("a transfer").transfers.remove(0)
}

#[test]
fn a_file_arrives_over_the_model() {
    let found = run_one(System::Model, 9_600, 300);
    // The octets alone. What the accesses take is random, and a busy machine takes longer.
    assert!(found.live_seconds > 300.0 * 8.0 / 9_600.0, "{found}");
    assert!(found.published_bps.is_none());
}

#[test]
fn a_file_arrives_through_dire_wolf() {
    if !is_installed() {
        eprintln!("skipped: direwolf is not installed");
        return;
    }
    let found = run_one(System::Direwolf, 9_600, 300);
    // Its key-ups, the tail of the first frame, and the octets.
    assert!(found.live_seconds > 0.6, "{found}");
}

#[test]
fn transfers_are_put_beside_the_published_throughput() {
    let found = compare(System::Model, 1_200, 1, Span::from_secs(2), 1).expect("a simulation");
    assert!((found.live_bps - 396.0).abs() < 0.1, "(1 + 98) octets in 2 s, not {}", found.live_bps);
    assert_eq!(found.published_bps, Some(334.07));
    let [least, most] = found.simulated_range;
    assert!(least <= found.simulated_seconds && found.simulated_seconds <= most);
}
