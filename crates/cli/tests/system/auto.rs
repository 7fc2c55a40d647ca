//! Gateways that are told no rate, and what they remember.

use crate::bed::{Bed, Setup, content, pause, read_all};
use std::fs;
use std::io::Write;
use std::thread;
use std::time::Duration;
use testbed::addresses::SERVER;

const LINK: &str = "delay 40ms rate 20mbit limit 1bdp";
const RATES: &str = "rate_up = \"auto\"\nround_trip = \"80ms\"";

/// Downloads `length` bytes and compares them.
fn download(bed: &Bed, length: usize) {
    let listener = bed.listen(SERVER.0, 9000);
    let mut client = bed.connect(SERVER.0, 9000);
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

#[test]
fn a_rate_that_was_found_is_remembered_by_the_hub_that_comes_next() {
    let folder = std::env::temp_dir().join(format!("bentpipe-{}-state", std::process::id()));
    let file = folder.join("peers.toml");
    let top = format!("state = \"{}\"", file.display());
    let setup = Setup { link: LINK, rates: RATES, top: &top, ..Setup::default() };
    let Some(mut bed) = Bed::build("auto", &setup) else { return };
    download(&bed, 8_000_000);
    let written = (0..300).any(|_| {
        pause(Duration::from_millis(50));
        fs::read_to_string(&file).is_ok_and(|text| text.contains("rate_bits_per_second"))
    });
    assert!(written, "nothing was remembered in {}", file.display());
    // The next hub knows nothing but the file, and has sent no more than a few bytes.
    bed.replace_hub();
    let (_, hub) = bed.finish();
    assert_eq!(hub["controller"], "steady");
    let peer = &hub["peers"][0];
    let rate = peer["rate_bits_per_second"].as_f64().expect("a rate");
    assert!((5e6..22e6).contains(&rate), "a start at speed: {rate} bit/s");
    fs::remove_dir_all(&folder).expect("a folder of the test's");
}
