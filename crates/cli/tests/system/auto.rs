//! Gateways without a configured rate, and their cached path metrics.

use crate::network::{Setup, TestNetwork, content, pause, read_all};
use std::fs;
use std::io::Write;
use std::thread;
use std::time::Duration;
use testbed::addresses::SERVER;

const LINK: &str = "delay 40ms rate 20mbit limit 1bdp";
const RATES: &str = "rate_up = \"auto\"\nround_trip = \"80ms\"";

/// Downloads `length` octets and compares them.
fn download(network: &TestNetwork, length: usize) {
    let listener = network.listen(SERVER.0, 9000);
    let mut client = network.connect(SERVER.0, 9000);
    let (mut server, _) = listener.accept().unwrap();
    let bytes = content(5, length);
    thread::scope(|scope| {
        scope.spawn(|| {
            server.write_all(&bytes).unwrap();
            server.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let (got, end) = read_all(&mut client);
        end.expect("a clean end");
        assert!(got == bytes, "{} bytes", got.len());
    });
}

/// Returns the rate in the state file in bit/s.
fn remembered(file: &std::path::Path) -> Option<f64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.contains("rate_bits_per_second"))?;
    line.split('=').nth(1)?.trim().parse().ok()
}

#[test]
fn the_next_hub_uses_the_cached_rate() {
    let folder = std::env::temp_dir().join(format!("bentpipe-{}-state", std::process::id()));
    let file = folder.join("peers.toml");
    let top = format!("state = \"{}\"", file.display());
    let setup = Setup { link: LINK, rates: RATES, top: &top, ..Setup::default() };
    let Some(mut network) = TestNetwork::build("auto", &setup) else { return };
    download(&network, 8_000_000);
    // On a loaded machine the first measured rate is too low.
    let found = |_| {
        download(&network, 2_000_000);
        pause(Duration::from_millis(500));
        remembered(&file).is_some_and(|rate| (5e6..22e6).contains(&rate))
    };
    assert!((0..60).any(found), "in {}: {:?}", file.display(), remembered(&file));
    // The next hub has only the file, and sends no more than a few octets, which show that the
    // terminal is present.
    network.replace_hub();
    let known = remembered(&file).expect("it is remembered still");
    download(&network, 1_000);
    let hub = network.finish_hub();
    assert_eq!(hub["controller"], "steady");
    let peer = &hub["peers"][0];
    let rate = peer["rate_bits_per_second"].as_f64().expect("a rate");
    assert!((0.5..1.5).contains(&(rate / known)), "a start at {rate} where {known} was known");
    fs::remove_dir_all(&folder).expect("a folder of the test's");
}
