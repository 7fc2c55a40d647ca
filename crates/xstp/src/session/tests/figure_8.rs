//! Figure 8 of Henderson and Katz 1999, packet for packet.
//!
//! Section VII.A: packets 0 to 4, a POLL, and a STAT that acknowledges them; packets 5 to 9, of which
//! 7 is lost; a USTAT for 7 when 8 arrives, while a second POLL is in flight; the retransmission of 7,
//! then new data; the second STAT still reports 7, which causes no further retransmission.

use super::*;
use crate::congestion::Controller;
use crate::wire::{Delivery, Profile};

/// POLLs are sent only after every five packets of 100 octets.
fn config() -> SessionConfig {
    let mut config = gateway();
    config.controller = Controller::Fixed;
    config.profile = Profile::Sealed;
    config.delivery = Delivery::Immediate;
    config.max_rate = Some(BitRate::from_bps(u64::MAX));
    config.headroom_millionths = 0;
    config.control_spacing = Span::ZERO;
    config.ustat_threshold = 1;
    config.ustat_hold = Span::ZERO;
    // POLLs are triggered by octets, before the first one of the timer.
    config.polls_per_round_trip = 1;
    config.stp.poll_after_bytes = Some(500);
    config
}

/// Sends packets one by one, so that each leaves at its own time.
fn sends(sender: &mut Peer, now: Instant, packets: u32) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for _ in 0..packets {
        sender.upper.push(&[0; 100]);
        // With another packet queued, none of them is the last one of a burst.
        sender.upper.push(&[1; 100]);
        let mut out = [0; 2000];
        let len = sender.session.poll_transmit(now, &mut sender.upper, &mut out).unwrap();
        all.push(out[..len].to_vec());
        sender.upper.waiting.pop_back();
    }
    all
}

fn texts(segments: &[Vec<u8>]) -> Vec<alloc::string::String> {
    let all = segments.iter().map(|octets| Segment::decode(&Profile::Sealed, octets).unwrap());
    all.map(|segment| describe(&segment)).collect()
}

/// XSTP-7.3.2, XSTP-7.4.1, XSTP-10.3.2
#[test]
fn figure_8_packet_for_packet() {
    let (mut sender, mut receiver) = established(&config());

    // Packets 0 to 4, and a POLL with VT(S) = 5, here piggybacked on 4.
    let first = sends(&mut sender, at(1_000), 5);
    assert_eq!(texts(&first), ["SD 0", "SD 1", "SD 2", "SD 3", "SD+POLL 4 poll<5"]);
    receiver.receive_all(at(1_100), &first);
    let stat = receiver.send(at(1_100));
    assert_eq!(texts(&stat), ["STAT have<5"]);

    // Packets 5 to 9; 7 is lost. The receiver reports it when it receives 8.
    let second = sends(&mut sender, at(1_010), 5);
    assert_eq!(texts(&second), ["SD 5", "SD 6", "SD 7", "SD 8", "SD+POLL 9 poll<10"]);
    receiver.receive_all(at(1_110), &second[..2]);
    assert!(receiver.send(at(1_110)).is_empty());
    receiver.receive_all(at(1_112), &second[3..4]);
    let ustat = receiver.send(at(1_112));
    assert_eq!(texts(&ustat), ["USTAT miss 7+1"]);
    // The second POLL was sent before the USTAT was received.
    receiver.receive_all(at(1_113), &second[4..]);
    let second_stat = receiver.send(at(1_113));
    assert_eq!(texts(&second_stat), ["STAT have<7 miss 7+1"]);

    sender.receive_all(at(1_200), &stat);
    assert_eq!(sender.upper.released, [0, 1, 2, 3, 4]);
    assert!(sender.send(at(1_200)).is_empty());

    // The USTAT causes the retransmission of 7; new data follows.
    sender.receive_all(at(1_212), &ustat);
    let retransmission = sends(&mut sender, at(1_212), 3);
    assert_eq!(texts(&retransmission), ["SD 7", "SD 10", "SD 11"]);
    sender.upper.waiting.clear();

    // The STAT still reports 7, but its POLL was sent before the retransmission.
    sender.receive_all(at(1_213), &second_stat);
    assert!(sender.send(at(1_213)).is_empty(), "7 is not retransmitted twice");
    assert_eq!(sender.session.statistics().data_retransmitted, 1);

    // If the retransmission is lost, the next STAT causes another one.
    sender.upper.push(&[0; 100]);
    let third = sender.send(at(1_220));
    assert_eq!(texts(&third), ["SD+POLL 12 poll<13"]);
    receiver.receive_all(at(1_314), &retransmission[1..]);
    receiver.receive_all(at(1_320), &third);
    let third_stat = receiver.send(at(1_320));
    assert_eq!(texts(&third_stat), ["STAT have<7 miss 7+1"]);
    sender.receive_all(at(1_420), &third_stat);
    assert_eq!(texts(&sender.send(at(1_420)))[0], "SD+POLL 7 poll<13");
}
