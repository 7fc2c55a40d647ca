use super::fuzzing::extend;
use super::segment::{ACK, Bare, Block, SYN, clear_ecn};
use super::{PacketPep, PepConfig, Toward, Verdict};
use proptest::prelude::*;
use rig::{Network, Options, Rig};
use std::net::SocketAddr;
use units::{Instant, Span};

mod acks;
mod rig;

const SPOOF: PepConfig =
    PepConfig { spoof: true, space_acks: false, flows: 16, flow_memory: 1 << 20, memory: 4 << 20 };

const CLEAN: Network = Network {
    near_delay: Span::from_millis(1),
    far_delay: Span::from_millis(300),
    near_loss: 0.0,
    far_loss: 0.0,
    duplication: 0.0,
    reordering: 0.0,
};

const USUAL: Options =
    Options { v6: false, sack: true, timestamps: true, window: 400_000, scale: 4 };

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// PEP-1.5, PEP-2.1, PEP-2.2, PEP-2.5, PEP-3.1, PEP-3.2, PEP-3.6: over any network, the receiver gets exactly what was
    /// sent, no acknowledgement is ahead of what is stored (`PacketPep::check`, at each
    /// millisecond), and no end sees more window than the other one has offered.
    #[test]
    fn what_is_sent_arrives(
        (v6, sack, timestamps, scale) in (any::<bool>(), any::<bool>(), any::<bool>(), 0_u8..8),
        window in 4_000_u32..600_000,
        (near_loss, far_loss) in (0.0..0.03, 0.0..0.15),
        (duplication, reordering) in (0.0..0.1, 0.0..0.2),
        total in 1_u32..400_000,
        (memory, rate, seed) in (20_usize << 10..2 << 20, 1_u32..60, any::<u64>()),
        space_acks in any::<bool>(),
    ) {
        let far_delay = Span::from_millis(100);
        let network = Network { near_loss, far_loss, duplication, reordering, far_delay, ..CLEAN };
        let window = if scale == 0 { window.min(65_535) } else { window };
        let options = Options { v6, sack, timestamps, window: window.min(65_535 << scale), scale };
        let config = PepConfig { flow_memory: memory, space_acks, ..SPOOF };
        let mut rig = Rig::new(config, options, network, total, seed);
        rig.rate = rate;
        prop_assert!(rig.run(Span::from_secs(3_000)), "it does not end: {rig:?}");
        rig.check_content();
        let statistics = rig.statistics();
        prop_assert_eq!((statistics.stored, statistics.aborted), (0, 0));
    }
}

fn ends(number: u16) -> (SocketAddr, SocketAddr) {
    (([10, 1, 0, 2], number).into(), ([10, 3, 0, 2], 80).into())
}

/// A packet without payload between the ends of connection `number`.
fn packet(number: u16, toward: Toward, flags: u8, (seq, ack): Block, options: &[u8]) -> Vec<u8> {
    let (near, far) = ends(number);
    let (source, destination) = if toward == Toward::Far { (near, far) } else { (far, near) };
    let timestamps = None;
    let bare = Bare { source, destination, seq, ack, flags, window: 60_000, timestamps, sack: &[] };
    let mut packet = bare.build();
    extend(&mut packet, options, &[]);
    packet
}

/// Hands `pep` a handshake with these options of the SYN, and returns its connections.
fn shake_hands(pep: &mut PacketPep, number: u16, options: &[u8]) -> usize {
    let steps = [
        packet(number, Toward::Far, SYN, (99, 0), options),
        packet(number, Toward::Near, SYN | ACK, (499, 100), &[]),
        packet(number, Toward::Far, ACK, (100, 500), &[]),
    ];
    for (mut step, toward) in steps.into_iter().zip([Toward::Far, Toward::Near, Toward::Far]) {
        assert_eq!(pep.handle(Instant::ZERO, toward, &mut step), Verdict::Pass);
    }
    pep.check();
    pep.statistics().flows
}

/// PEP-1.1: without a complete handshake in both directions nothing has state, and no packet is
/// changed.
#[test]
fn flows_begun_elsewhere_are_left_alone() {
    let mut pep = PacketPep::new(SPOOF);
    let half = [
        packet(1, Toward::Far, SYN, (99, 0), &[]),
        packet(1, Toward::Far, ACK, (100, 500), &[]),
        packet(2, Toward::Far, ACK, (100, 500), &[]),
    ];
    for original in half {
        let mut packet = original.clone();
        extend(&mut packet, &[], &[7; 900]);
        let before = packet.clone();
        assert_eq!(pep.handle(Instant::ZERO, Toward::Far, &mut packet), Verdict::Pass);
        assert_eq!(packet, before);
    }
    assert_eq!(pep.statistics().flows, 0);
    assert_eq!(pep.poll_output(Instant::ZERO, |_, _| true), None);
    assert_eq!(shake_hands(&mut pep, 3, &[]), 1);
}

/// PEP-1.2: Multipath TCP, MD5 signatures, Fast Open, AccECN.
#[test]
fn what_spoofing_would_break_is_left_alone() {
    for options in [
        &[30, 4, 0, 1][..],
        &[19, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[34, 2],
        &[172, 2],
    ] {
        assert_eq!(shake_hands(&mut PacketPep::new(SPOOF), 1, options), 0, "{options:?}");
    }
    assert_eq!(shake_hands(&mut PacketPep::new(SPOOF), 1, &[2, 4, 5, 0xb4, 4, 2]), 1);
}

/// PEP-1.3: a flood of SYNs, and of handshakes, does not end a connection with stored data.
#[test]
fn floods_displace_nothing() {
    let mut rig = Rig::new(SPOOF, USUAL, CLEAN, 300_000, 1);
    rig.run(Span::from_millis(20));
    let stored = rig.statistics().stored;
    assert!(stored > 8_192 && rig.statistics().spoofed == 1);
    for number in 0..3_000 {
        let syn = packet(number, Toward::Far, SYN, (99, 0), &[]);
        assert_eq!(rig.inject(Toward::Far, syn).0, Verdict::Pass);
    }
    for number in 0..60 {
        shake_hands(&mut rig.pep, number, &[]);
    }
    assert_eq!((rig.statistics().flows, rig.statistics().stored), (SPOOF.flows, stored));
    assert!(rig.run(Span::from_secs(20)));
    rig.check_content();
}

/// PEP-1.4: forged and damaged segments change nothing.
#[test]
fn forged_acknowledgements_change_nothing() {
    let mut rig = Rig::new(SPOOF, USUAL, CLEAN, 300_000, 1);
    rig.run(Span::from_millis(20));
    let before = rig.statistics();
    let mut damaged = rig.forged(0, 0);
    damaged[24] ^= 1;
    for forged in [rig.forged(0, 10), rig.forged(1 << 20, 0), rig.forged(0, 1 << 31), damaged] {
        let (verdict, packet) = rig.inject(Toward::Near, forged.clone());
        assert_eq!((verdict, packet), (Verdict::Pass, forged));
    }
    let after = rig.statistics();
    assert_eq!((after.implausible, after.stored), (before.implausible + 4, before.stored));
}

/// PEP-1.6: without stored data the state of an idle connection is removed after 900 s.
#[test]
fn idle_state_expires() {
    let mut pep = PacketPep::new(SPOOF);
    shake_hands(&mut pep, 1, &[]);
    for (seconds, flows) in [(800, 1), (960, 0)] {
        pep.handle_timeout(Instant::ZERO + Span::from_secs(seconds));
        assert_eq!(pep.statistics().flows, flows, "{seconds} s");
    }
    assert_eq!(pep.poll_timeout(), None);
}

/// PEP-2.3, PEP-2.4, PEP-2.6: a bulk sender's data is acknowledged at once, its FIN by the far end; a few
/// kilobytes are acknowledged by the far end.
#[test]
fn data_is_acknowledged_early_and_fin_is_not() {
    let mut rig = Rig::new(SPOOF, USUAL, CLEAN, 60_000, 1);
    assert!(!rig.run(Span::from_millis(20)));
    assert_eq!(rig.acked(), 60_000, "all but the FIN, within 20 ms");
    assert!(rig.run(Span::from_millis(1_000)) && rig.is_received());
    assert!(rig.statistics().suppressed > 20 && rig.statistics().flows == 1);
    let mut short = Rig::new(SPOOF, USUAL, CLEAN, 6_000, 1);
    assert!(!short.run(Span::from_millis(300)));
    assert_eq!((short.acked(), short.statistics().early_acks), (0, 0));
    assert!(short.run(Span::from_millis(400)));
}

/// PEP-2.2: a closed window is seen by the sender, whose data waits; it reopens.
#[test]
fn a_closed_window_is_honoured() {
    let mut rig = Rig::new(SPOOF, USUAL, CLEAN, 2_000_000, 1);
    rig.run(Span::from_secs(2));
    rig.stop_receiver(true);
    rig.run(Span::from_secs(10));
    let stopped = rig.acked();
    rig.run(Span::from_secs(200));
    assert_eq!((rig.acked(), rig.statistics().aborted), (stopped, 0));
    rig.stop_receiver(false);
    assert!(rig.run(Span::from_secs(60)));
    rig.check_content();
}

/// PEP-2.7: keep-alive probes are answered by the far end.
#[test]
fn keep_alive_probes_pass() {
    let mut rig = Rig::new(SPOOF, USUAL, CLEAN, 60_000, 1);
    rig.run(Span::from_millis(50));
    let early = rig.statistics().early_acks;
    assert_eq!(rig.inject(Toward::Far, rig.probe()).0, Verdict::Pass);
    assert_eq!(rig.statistics().early_acks, early);
}

/// PEP-3.3, PEP-3.4: losses behind the proxy are repaired from it; the sender does not retransmit.
#[test]
fn losses_are_repaired_locally() {
    for sack in [true, false] {
        let network = Network { far_loss: 0.02, ..CLEAN };
        let mut rig = Rig::new(SPOOF, Options { sack, ..USUAL }, network, 400_000, 5);
        assert!(rig.run(Span::from_secs(60)), "sack {sack}");
        rig.check_content();
        let statistics = rig.statistics();
        assert!(statistics.retransmitted > 2, "{statistics:?}");
        // Only its FIN, which nobody but the receiver acknowledges.
        assert!(statistics.duplicates < 40 && statistics.no_room == 0, "{statistics:?}");
        assert_eq!(rig.paws(), 0);
    }
}

/// PEP-3.5
#[test]
fn retransmissions_are_not_ecn_capable() {
    let mut v4 = packet(1, Toward::Far, ACK, (1, 1), &[]);
    let original = v4.clone();
    v4[1] |= 2;
    clear_ecn(&mut v4);
    assert_eq!(v4, original);
    let mut v6 = [0x60, 0x20, 0, 0];
    clear_ecn(&mut v6);
    assert_eq!(v6, [0x60, 0, 0, 0]);
}

/// PEP-4.1: a reset of the sender follows its data.
#[test]
fn a_reset_follows_the_data() {
    let mut rig = Rig::new(SPOOF, USUAL, CLEAN, 300_000, 1);
    rig.rate = 1;
    rig.run(Span::from_millis(20));
    assert_eq!(rig.inject(Toward::Far, rig.sender_reset()).0, Verdict::Taken);
    let acked = rig.acked();
    for _ in 0..100 {
        rig.run(Span::from_millis(20));
        assert!(rig.resets_in_flight() == 0 || rig.statistics().stored == 0);
        if rig.resets_in_flight() > 0 {
            break;
        }
    }
    assert_eq!((rig.resets_in_flight(), rig.statistics().flows), (1, 0));
    assert!(rig.received() >= acked, "acknowledged, and not received");
}

/// PEP-4.2: a reset of the far end ends the state if it has the next sequence number.
#[test]
fn a_reset_of_the_far_end_needs_its_number() {
    let mut rig = Rig::new(SPOOF, USUAL, CLEAN, 300_000, 1);
    rig.run(Span::from_millis(20));
    let stored = rig.statistics().stored;
    assert_eq!(rig.inject(Toward::Near, rig.receiver_reset(100)).0, Verdict::Pass);
    assert_eq!(rig.statistics().stored, stored);
    assert_eq!(rig.inject(Toward::Near, rig.receiver_reset(0)).0, Verdict::Pass);
    assert_eq!((rig.statistics().flows, rig.statistics().stored), (0, 0));
}

/// PEP-4.3: where the far end does not respond for 120 s, the sender is reset.
#[test]
fn a_dead_far_end_resets_the_sender() {
    let mut rig = Rig::new(SPOOF, USUAL, CLEAN, 300_000, 1);
    rig.run(Span::from_millis(20));
    rig.is_dead = true;
    rig.run(Span::from_secs(110));
    assert!(!rig.was_reset);
    rig.run(Span::from_secs(120));
    assert!(rig.was_reset);
    let statistics = rig.statistics();
    assert_eq!((statistics.aborted, statistics.flows, statistics.stored), (1, 0, 0));
}

/// PEP-4.4: at the end of the process, senders whose data is stored are reset; others are not.
#[test]
fn closing_resets_senders_with_stored_data() {
    let mut rig = Rig::new(SPOOF, USUAL, CLEAN, 300_000, 1);
    rig.run(Span::from_millis(20));
    shake_hands(&mut rig.pep, 1, &[]);
    rig.pep.close();
    assert_eq!((rig.statistics().aborted, rig.statistics().flows), (1, 1));
    rig.run(Span::from_millis(10));
    assert!(rig.was_reset);
}
