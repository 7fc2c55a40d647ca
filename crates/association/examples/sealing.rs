//! Measures the cost of sealing: seals and opens datagrams of 1,472 octets under each suite.
//!
//! `cargo build -p association --release --example sealing`, and then, for datagrams per second,
//! `time target/release/examples/sealing null 5000000` and the same with `noise`.

use association::{
    Config, Hub, HubReceived, Keys, Known, OVERHEAD, PresharedKey, PrivateKey, PublicKey, Sealed,
    Security, Terminal, TransmitBatch,
};
use units::{Instant, RngStream};

fn main() {
    let mut words = std::env::args().skip(1);
    let noise = match words.next().as_deref() {
        Some("noise") => true,
        Some("null") => false,
        Some(_) | None => panic!("null or noise, and a number"),
    };
    let count: u64 = words.next().and_then(|word| word.parse().ok()).expect("how many");
    let (mut terminal, mut hub) = pair(noise);
    let (now, from) = (Instant::ZERO, "192.0.2.1:4500".parse().expect("an address"));
    let mut datagram = vec![0; 1472];
    let mut opened = 0;
    for _ in 0..count {
        assert!(terminal.seal(now, Sealed::Data, &mut datagram));
        match hub.handle_datagram(now, from, &mut datagram) {
            Ok(HubReceived::Payload { payload, .. }) => opened += payload.len() + OVERHEAD,
            other => panic!("{other:?}"),
        }
    }
    println!("{count} datagrams sealed and opened, {opened} bytes");
}

/// A terminal and a hub with an association.
fn pair(noise: bool) -> (Terminal, Hub) {
    let mut rng = RngStream::new(1, 0, "keys");
    let [boat, shore] = [(); 2].map(|()| PrivateKey::generate(&mut rng));
    let config = |own: &PrivateKey, other: PublicKey, name: &str| {
        let known = Known { name: name.into(), public: other, preshared: PresharedKey::NONE };
        let keys = Keys::new(own.clone(), vec![known]).expect("one key");
        let security = if noise { Security::Noise(keys.into()) } else { Security::None };
        // One pair of keys for the whole run.
        Config { security, renew_after_datagrams: u64::MAX, ..Config::new(name) }
    };
    let (now, from) = (Instant::ZERO, "192.0.2.1:4500".parse().expect("an address"));
    let terminal = config(&boat, shore.public(), "boat");
    let mut terminal = Terminal::new(terminal, now, RngStream::new(1, 0, "boat"));
    let hub = config(&shore, boat.public(), "hub");
    let mut hub = Hub::new(hub, RngStream::new(1, 0, "hub"));
    let mut buffer = [0; 1500];
    let mut batch = TransmitBatch::new(&mut buffer, 1);
    assert!(terminal.poll_transmit(now, &mut batch));
    let mut hello = batch.datagrams().next().expect("a Hello").to_vec();
    hub.handle_datagram(now, from, &mut hello).expect("taken");
    batch.clear();
    hub.poll_transmit(&mut batch).expect("a Welcome");
    let mut welcome = batch.datagrams().next().expect("a Welcome").to_vec();
    terminal.handle_datagram(now, &mut welcome).expect("taken");
    (terminal, hub)
}
