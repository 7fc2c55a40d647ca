//! Packets that are forwarded unsplit, parallel to bulk streams.

mod rig;

use rig::{App, Faults, Rig, Side};
use units::{BitRate, Instant, Span};

/// Returns a UDP packet of `len` octets from `port` with a DSCP and its send time.
fn packet(now: Instant, port: u8, dscp: u8, len: usize) -> Vec<u8> {
    let mut packet = vec![0x45, dscp << 2, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0];
    packet.extend([10, 1, 0, 2, 10, 3, 0, 2, 0x10, port, 0, 53, 0, 0, 0, 0]);
    packet.extend(now.as_nanos().to_be_bytes());
    packet.resize(len, port);
    packet
}

#[derive(Default)]
struct Heard {
    count: usize,
    longest: Span,
}

/// Sends a packet every `every` from the hub in each of `flows` (port, DSCP, octets) for `time`;
/// returns the received packets of each.
fn play(rig: &mut Rig, time: Span, every: Span, flows: &[(u8, u8, usize)]) -> Vec<Heard> {
    let mut heard: Vec<Heard> = flows.iter().map(|_| Heard::default()).collect();
    let end = rig.now + time;
    while rig.now < end {
        let now = rig.now;
        for &(port, dscp, len) in flows {
            let packet = packet(now, port, dscp, len);
            assert!(rig.relay(Side::Hub).expect("hub").send_datagram(now, &packet));
        }
        // There is no event for forwarded packets, so the test polls.
        for _ in 0..10 {
            rig.run(every / 10, |_| false);
            while let Some(packet) = rig.terminal.take_datagram() {
                let sent = packet[28..36].try_into().map(u64::from_be_bytes).expect("a time");
                let flow = flows.iter().position(|flow| flow.0 == packet[21]).expect("a flow");
                assert_eq!(packet.len(), flows[flow].2, "whole");
                heard[flow].count += 1;
                heard[flow].longest =
                    heard[flow].longest.max(rig.now.since(Instant::from_nanos(sent)));
            }
        }
    }
    heard
}

fn busy(seed: u64, rate: BitRate) -> Rig {
    let mut rig = Rig::new(seed, rate, BitRate::from_kbps(256));
    rig.run(Span::from_secs(2), |rig| rig.connected.len() == 2);
    rig.run(Span::from_secs(2), |_| false);
    for _ in 0..4 {
        rig.open("source-100000000", App::default());
    }
    rig.run(Span::from_secs(4), |_| false);
    rig
}

/// RLY-6.2: voice (with or without a DSCP) has no queuing delay behind bulk data, which gets the
/// remaining rate.
#[test]
fn voice_during_bulk_is_on_time_and_complete() {
    for dscp in [46, 0] {
        let mut rig = busy(1, BitRate::from_mbps(2));
        let read = |rig: &Rig| rig.apps.values().map(|app| app.read).sum::<u64>();
        let before = read(&rig);
        let heard = play(&mut rig, Span::from_secs(20), Span::from_millis(20), &[(1, dscp, 200)]);
        assert!(heard[0].count >= 960, "{} of 1000, 30 are under way", heard[0].count);
        let most = rig.delay + Span::from_millis(30);
        assert!(heard[0].longest < most, "{} with {dscp}", heard[0].longest);
        // Voice has 80 kbit/s with its headers, and the rest 4 % of headers.
        let bulk = (read(&rig) - before) * 8 / 20;
        assert!(bulk > 1_700_000, "{bulk} bit/s of bulk");
    }
}

/// RLY-6.2, RLY-6.3: flows above their share compete with streams without delaying voice; excess
/// packets are dropped before they expire.
#[test]
fn bulk_flows_share_with_streams_without_delaying_voice() {
    let mut rig = busy(2, BitRate::from_mbps(2));
    let read = |rig: &Rig| rig.apps.values().map(|app| app.read).sum::<u64>();
    let before = read(&rig);
    let flows = [(1, 46, 200), (2, 0, 1_200), (3, 0, 1_500)];
    // Each bulk flow sends 2 Mbit/s or more.
    let heard = play(&mut rig, Span::from_secs(20), Span::from_millis(5), &flows);
    assert!(heard[0].longest < rig.delay + Span::from_millis(40), "{}", heard[0].longest);
    for flow in &heard[1..] {
        assert!(flow.longest < rig.delay + Span::from_millis(360), "{}", flow.longest);
    }
    let of = |bytes: u64| bytes * 8 / 20;
    let (streams, two, three) = (
        of(read(&rig) - before),
        of(heard[1].count as u64 * 1_200),
        of(heard[2].count as u64 * 1_500),
    );
    // 2 Mbit/s less 330 kbit/s of the first flow, for six with more demand.
    assert!(streams > 700_000, "{streams} bit/s for four streams");
    assert!(
        (150_000..500_000).contains(&two) && (150_000..500_000).contains(&three),
        "{two} {three}"
    );
    let sent = rig.relay(Side::Hub).expect("hub").totals().datagrams;
    assert!(sent.late + sent.no_room > 1_000, "{sent:?}");
}

/// RLY-6.1: lost packets are not retransmitted, and do not affect streams.
#[test]
fn a_lost_packet_is_not_retransmitted() {
    let mut rig = busy(3, BitRate::from_mbps(2));
    rig.faults = Faults { loss: 0.1, ..Faults::default() };
    let heard = play(&mut rig, Span::from_secs(20), Span::from_millis(20), &[(1, 46, 200)]);
    assert!((820..940).contains(&heard[0].count), "{} of 1000", heard[0].count);
    // Retransmissions precede new data in bursts.
    assert!(heard[0].longest < rig.delay + Span::from_millis(60), "{}", heard[0].longest);
    for side in [Side::Terminal, Side::Hub] {
        assert_eq!(rig.relay(side).expect("relay").statistics().bad_frames, 0);
    }
}

/// RLY-6.4: packets larger than the path MTU are fragmented.
#[test]
fn large_packets_cross_a_small_path_mtu() {
    let mut rig = Rig::new(4, BitRate::from_mbps(10), BitRate::from_mbps(1));
    rig.run(Span::from_secs(3), |_| false);
    let now = rig.now;
    rig.path_mtu = 700;
    rig.relay(Side::Hub).expect("hub").set_mtu(now, 700);
    let heard = play(&mut rig, Span::from_secs(5), Span::from_millis(20), &[(1, 0, 1_500)]);
    assert!(heard[0].count >= 230, "{} of 250", heard[0].count);
}

/// From this a hub determines which of several paths a terminal uses.
#[test]
fn the_time_of_the_last_packet_is_known() {
    let mut rig = Rig::new(5, BitRate::from_mbps(10), BitRate::from_mbps(1));
    rig.run(Span::from_secs(3), |_| false);
    assert_eq!(rig.relay(Side::Hub).expect("hub").datagram_came(), None);
    for _ in 0..2 {
        let sent = rig.now;
        assert!(rig.terminal.send_datagram(sent, &packet(sent, 1, 0, 200)));
        rig.run(Span::from_secs(1), |_| false);
        let came = rig.relay(Side::Hub).expect("hub").datagram_came().expect("one has come");
        assert!(came >= sent + rig.delay && came < rig.now, "{came:?}");
    }
}
