//! Packets with compressed headers under loss, duplication, reordering, outages and restarts, over
//! one path and over two: what arrives is what was sent.

mod rig;

use proptest::prelude::*;
use relay::{DatagramStatistics, DisconnectReason, RelayConfig};
use rig::{App, Faults, Rig, Side};
use std::collections::BTreeSet;
use units::{BitRate, Span};

const UP: BitRate = BitRate::from_mbps(2);
const DOWN: BitRate = BitRate::from_mbps(10);

/// Returns the packet `number` of a flow: IPv4 or IPv6 by the lowest bit of `flow`, UDP with RTP or
/// without by the next one.
fn packet(flow: u8, number: u16) -> Vec<u8> {
    let (v6, rtp) = (flow & 1 != 0, flow & 2 != 0);
    let [high, low] = number.to_be_bytes();
    let mut udp = vec![0x40, flow, 0x13, 0x8c, 0, 0, 0, 0];
    if rtp {
        udp.extend([0x80, 18, high, low]);
        udp.extend((u32::from(number) * 160).to_be_bytes());
        udp.extend([1, 2, 3, flow]);
    }
    udp.extend([high, low]);
    udp.extend((0..20).map(|at| at ^ low));
    let len = udp.len() as u16;
    udp[4..6].copy_from_slice(&len.to_be_bytes());
    let mut ip = if v6 {
        let [a, b] = len.to_be_bytes();
        let mut header = vec![0x60, 0, 0, 0, a, b, 17, 64];
        header.extend([[0x20; 16], [0x30; 16]].concat());
        header
    } else {
        let [a, b] = (len + 20).to_be_bytes();
        vec![0x45, 0, a, b, high, low, 0x40, 0, 64, 17, 0, 0, 10, 1, 0, 2, 10, 3, 0, 2]
    };
    let addresses = if v6 { &ip[8..] } else { &ip[12..] };
    let sum = checksum(&[addresses, &[0, 17], &len.to_be_bytes(), &udp].concat());
    udp[6..8].copy_from_slice(&sum.to_be_bytes());
    if !v6 {
        let sum = checksum(&ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    [ip, udp].concat()
}

fn checksum(octets: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let mut sum: u32 = octets.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    match !(sum as u16) {
        0 => 0xffff,
        sum => sum,
    }
}

/// Packets that were sent and have not arrived, by the side that sent them.
#[derive(Default)]
struct Expected {
    packets: [BTreeSet<Vec<u8>>; 2],
    numbers: [u16; 16],
}

impl Expected {
    /// Sends the next packet of a flow in each direction.
    fn send(&mut self, rig: &mut Rig, flow: u8) {
        let number = &mut self.numbers[usize::from(flow)];
        *number += 1;
        let packet = packet(flow, *number);
        for side in [Side::Terminal, Side::Hub] {
            let now = rig.now;
            if rig.relay(side).is_some_and(|relay| relay.send_datagram(now, &packet)) {
                self.packets[side as usize].insert(packet.clone());
            }
        }
    }

    /// Takes what has arrived.
    ///
    /// # Panics
    /// Panics if it was not sent, or has arrived before.
    fn receive(&mut self, rig: &mut Rig) {
        for (side, from) in [(Side::Terminal, Side::Hub), (Side::Hub, Side::Terminal)] {
            while let Some(packet) = rig.relay(side).and_then(relay::Relay::take_datagram) {
                assert!(self.packets[from as usize].remove(&packet), "{side:?}: {packet:?}");
            }
        }
    }
}

fn statistics(rig: &Rig) -> [DatagramStatistics; 2] {
    [rig.terminal.totals().datagrams, rig.hub.totals().datagrams]
}

/// Two ends, whose headers are compressed as configured, with delays of the first path and the second one
/// in ms; without the second one if it has none.
fn ends(seed: u64, compresses: [bool; 2], (delay, joined): (u64, u64)) -> Rig {
    let [mut terminal, mut hub] = [RelayConfig::new("boat"), RelayConfig::new("hub")];
    terminal = terminal.with_rates(Some(UP), Some(DOWN));
    [terminal.compress_headers, hub.compress_headers] = compresses;
    let mut rig = Rig::with(seed, terminal, hub);
    rig.set_lines(UP, DOWN);
    rig.delay = Span::from_millis(delay);
    if joined > 0 {
        rig.add_path("boat/leo", Span::from_millis(joined), [DOWN, UP]);
    }
    rig
}

/// HDR-2.7: contexts are common to the paths; while one of them is dark, the other uses them.
#[test]
fn voice_is_compressed_over_paths_of_which_one_fails() {
    let mut rig = ends(1, [true; 2], (300, 25));
    assert!(rig.run(Span::from_secs(5), |rig| rig.connected.len() == 2));
    rig.run(Span::from_secs(3), |_| false);
    let mut expected = Expected::default();
    for number in 0..1_500 {
        if number == 500 {
            rig.links[0].dark_until = rig.now + Span::from_secs(10);
        }
        expected.send(&mut rig, 2);
        rig.run(Span::from_millis(20), |_| false);
        expected.receive(&mut rig);
    }
    rig.run(Span::from_secs(1), |_| false);
    expected.receive(&mut rig);
    for (lost, seen) in expected.packets.iter().zip(statistics(&rig)) {
        assert_eq!(seen.headers_damaged, 0);
        assert!(seen.headers_compressed * 100 > seen.sent * 85, "{seen:?}");
        // Until the outage is detected.
        assert!(lost.len() < 150, "{} of 1,500 were lost", lost.len());
    }
}

/// RLY-12.6: a hub that has restarted knows none of the paths. The terminal notices it on each
/// of them, and ends the streams, and the contexts of headers with them, at the first.
#[test]
fn a_restart_of_the_hub_ends_the_contexts_of_all_paths() {
    for seed in (0..40).chain([6_111_538_957_069_097_365]) {
        let mut rig = ends(seed, [true, false], (48, 210));
        rig.faults = Faults { loss: 0.0713, duplicate: 0.0698, reorder: 0.106, corrupt: 0.0 };
        assert!(rig.run(Span::from_secs(5), |rig| rig.connected.len() == 2));
        rig.open("source-3000000", App::default());
        let mut expected = Expected::default();
        for (flow, count, wait) in [(11, 45, 13), (10, 85, 19)] {
            if flow == 10 {
                rig.restart_hub();
            }
            for number in 0..count {
                expected.send(&mut rig, if number % 5 == 4 { flow ^ 1 } else { flow });
                rig.run(Span::from_millis(wait), |_| false);
                expected.receive(&mut rig);
            }
        }
        rig.run(Span::from_secs(10), |_| false);
        expected.receive(&mut rig);
        let restarted = (Side::Terminal, DisconnectReason::PeerRestarted);
        assert!(rig.disconnected.contains(&restarted), "seed {seed}: {:?}", rig.disconnected);
        assert!(statistics(&rig).iter().all(|seen| seen.headers_damaged == 0), "seed {seed}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// HDR-2.2, HDR-2.5, HDR-2.7
    #[test]
    fn packets_arrive_as_they_were_sent(
        seed: u64,
        compresses in any::<[bool; 2]>(),
        delays in (1_u64..400, prop_oneof![Just(0_u64), 1_u64..400]),
        loss in 0.0_f64..0.15,
        duplicate in 0.0_f64..0.1,
        reorder in 0.0_f64..0.2,
        flows in prop::collection::vec((0_u8..16, 1_u16..120, 1_u64..40), 1..12),
        outages in prop::collection::vec((0_usize..3, 10_u64..4_000), 0..4),
        bulk: bool,
    ) {
        let mut rig = ends(seed, compresses, delays);
        rig.faults = Faults { loss, duplicate, reorder, corrupt: 0.0 };
        rig.run(Span::from_secs(5), |rig| rig.connected.len() == 2);
        if bulk {
            rig.open("source-3000000", App::default());
        }
        let mut expected = Expected::default();
        let mut outages = outages.into_iter();
        for (flow, count, wait) in flows {
            for number in 0..count {
                // With packets of another flow between them.
                expected.send(&mut rig, if number % 5 == 4 { flow ^ 1 } else { flow });
                rig.run(Span::from_millis(wait), |_| false);
                expected.receive(&mut rig);
            }
            match outages.next() {
                Some((0, time)) => rig.dark_until = rig.now + Span::from_millis(time),
                Some((1, time)) if !rig.links.is_empty() => {
                    rig.links[0].dark_until = rig.now + Span::from_millis(time);
                }
                Some((2, _)) => rig.restart_hub(),
                Some(_) | None => {}
            }
        }
        rig.run(Span::from_secs(10), |_| false);
        expected.receive(&mut rig);
        for (seen, compresses) in statistics(&rig).iter().zip(compresses) {
            prop_assert_eq!(seen.headers_damaged, 0);
            prop_assert!(compresses || seen.headers_compressed == 0);
        }
        let bad = [rig.terminal.totals().bad_frames, rig.hub.totals().bad_frames];
        prop_assert_eq!(bad, [0, 0]);
    }
}
