//! Octets on the link for each packet of a voice call that is forwarded, without and with compressed
//! headers: 60 s of a packet every 20 ms, 600 ms round trip, 2 % loss, in one direction.
//!
//! `cargo run -p bentpipe-relay --example headers`. Octets are those of whole IPv4 packets of the
//! satellite link, with the sender's POLLs.

use relay::{Hub, IPV4_UDP, Relay, RelayConfig, TransmitBatch};
use std::collections::{BTreeSet, VecDeque};
use units::{BitRate, Instant, RngStream, Span};

const ONE_WAY: Span = Span::from_millis(300);
const PACKETS: u64 = 3_000;

fn main() {
    println!("| packet | octets of it | on the link | compressed | saved |");
    println!("|---|---|---|---|---|");
    for (name, v6, payload, ticks) in [
        ("G.729, IPv4", false, 20, 160),
        ("G.729, IPv6", true, 20, 160),
        ("Opus 24 kbit/s, IPv4", false, 60, 960),
        ("Opus 24 kbit/s, IPv6", true, 60, 960),
    ] {
        let [plain, compressed] = [false, true].map(|on| call(v6, payload, ticks, on));
        let saved = 100.0 * (1.0 - compressed / plain);
        let whole = packet(v6, payload, ticks, 0).len();
        println!("| {name} | {whole} | {plain:.1} | {compressed:.1} | {saved:.0} % |");
    }
}

/// Octets on the link for each packet of a call with payloads of `payload` octets.
fn call(v6: bool, payload: usize, ticks: u32, compresses: bool) -> f64 {
    let rate = Some(BitRate::from_mbps(1));
    let config = |name| RelayConfig {
        compress_headers: compresses,
        probe_mtu: false,
        ..RelayConfig::new(name).with_rates(rate, rate)
    };
    let (mut now, here) = (Instant::ZERO, "192.0.2.1:4500".parse().expect("an address"));
    let mut terminal = Relay::terminal(&config("boat"), now, RngStream::new(1, 0, "boat"));
    let mut hub = Hub::new(&config("hub"), RngStream::new(1, 0, "hub"));
    let mut errors = RngStream::new(1, 0, "errors");
    let (mut up, mut down) = (VecDeque::new(), VecDeque::new());
    let (mut buffer, mut octets, mut sent, mut received) = (vec![0; 1500], 0, 0, 0);
    let mut expected = BTreeSet::new();
    for millis in 0..=6_000 + 20 * PACKETS {
        // The call begins after the handshakes.
        if millis >= 5_000 && millis % 20 == 0 && sent < PACKETS {
            let packet = packet(v6, payload, ticks, sent as u16);
            assert!(terminal.send_datagram(now, &packet), "no session");
            expected.insert(packet);
            sent += 1;
        }
        let mut batch = TransmitBatch::new(&mut buffer, 1);
        while terminal.poll_transmit(now, &mut batch).is_some() {
            for datagram in batch.datagrams() {
                octets += if sent > 0 { datagram.len() + IPV4_UDP } else { 0 };
                if sent == 0 || !errors.next_u64().is_multiple_of(50) {
                    up.push_back((now + ONE_WAY, datagram.to_vec()));
                }
            }
            batch.clear();
        }
        while hub.poll_transmit(now, &mut batch).is_some() {
            down.extend(batch.datagrams().map(|datagram| (now + ONE_WAY, datagram.to_vec())));
            batch.clear();
        }
        now += Span::from_millis(1);
        while let Some(mut datagram) = due(&mut up, now) {
            hub.handle_datagram(now, here, &mut datagram).expect("of this terminal");
        }
        while let Some(mut datagram) = due(&mut down, now) {
            terminal.handle_datagram(now, &mut datagram).expect("of this hub");
        }
        terminal.handle_timeout(now);
        hub.handle_timeout(now);
        while let Some((_, packet)) = hub.take_datagram() {
            assert!(expected.remove(&packet), "a packet that was not sent");
            received += 1;
        }
    }
    assert!(received > PACKETS * 95 / 100, "{received} of {PACKETS}");
    octets as f64 / PACKETS as f64
}

/// Takes the first datagram if it has arrived.
fn due(flying: &mut VecDeque<(Instant, Vec<u8>)>, now: Instant) -> Option<Vec<u8>> {
    let has_arrived = flying.front().is_some_and(|(at, _)| *at <= now);
    if has_arrived { flying.pop_front().map(|(_, datagram)| datagram) } else { None }
}

/// The RTP packet `number` of a call.
fn packet(v6: bool, payload: usize, ticks: u32, number: u16) -> Vec<u8> {
    let mut udp = vec![0x40, 0, 0x13, 0x8c];
    udp.extend_from_slice(&(20 + payload as u16).to_be_bytes());
    udp.extend([0, 0, 0x80, 18]);
    udp.extend_from_slice(&number.to_be_bytes());
    udp.extend_from_slice(&(u32::from(number) * ticks).to_be_bytes());
    udp.extend([1, 2, 3, 4]);
    udp.extend((0..payload).map(|at| (at as u8).wrapping_mul(number as u8)));
    let len = udp.len() as u16;
    let mut ip = if v6 {
        let [a, b] = len.to_be_bytes();
        let mut header = vec![0x6b, 0x80, 0, 0, a, b, 17, 64];
        header.extend([[0x20; 16], [0x30; 16]].concat());
        header
    } else {
        let ([a, b], [c, d]) = ((len + 20).to_be_bytes(), number.to_be_bytes());
        vec![0x45, 0xb8, a, b, c, d, 0x40, 0, 64, 17, 0, 0, 10, 1, 0, 2, 10, 3, 0, 2]
    };
    let addresses = if v6 { &ip[8..] } else { &ip[12..] };
    let pseudo = [addresses, &[0, 17], &len.to_be_bytes(), &udp].concat();
    udp[6..8].copy_from_slice(&checksum(&pseudo).to_be_bytes());
    if !v6 {
        let sum = checksum(&ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    [ip, udp].concat()
}

fn checksum(octets: &[u8]) -> u16 {
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
    let mut sum: u64 = octets.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    match !(sum as u16) {
        0 => 0xffff,
        sum => sum,
    }
}
