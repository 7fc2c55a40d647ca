//! Figure 8 of Henderson and Katz 1999, packet for packet.
//!
//! The text of section VII.A tells it: packets 0 to 4, a POLL, a STAT that acknowledges them;
//! 5 to 9 with 7 lost, a USTAT for 7 when 8 arrives, a second POLL on its way; 7 again at once,
//! then new data; then the second STAT still reports 7, and nothing is sent again for it.

use super::*;
use crate::congestion::Controller;
use crate::wire::{Delivery, Profile};

/// Polls only by the forced share: after every five packets of 100 bytes.
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
    // The example's POLLs come by the number of packets, before the timer's first.
    config.polls_per_round_trip = 1;
    config.stp.poll_after_bytes = Some(500);
    config
}

/// Sends packets one by one, so that each leaves at its own time.
fn sends(sender: &mut Hand, now: Instant, packets: u32) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for _ in 0..packets {
        sender.upper.push(&[0; 100]);
        // One more waits, so that none of them is the last of a burst.
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

    // 0 to 4, and a POLL that says that 5 is next (here it rides on 4).
    let first = sends(&mut sender, at(1_000), 5);
    assert_eq!(texts(&first), ["SD 0", "SD 1", "SD 2", "SD 3", "SD+POLL 4 poll<5"]);
    receiver.hear_all(at(1_100), &first);
    let stat = receiver.send(at(1_100));
    assert_eq!(texts(&stat), ["STAT have<5"]);

    // 5 to 9; 7 is lost. The receiver asks for 7 as soon as 8 is there.
    let second = sends(&mut sender, at(1_010), 5);
    assert_eq!(texts(&second), ["SD 5", "SD 6", "SD 7", "SD 8", "SD+POLL 9 poll<10"]);
    receiver.hear_all(at(1_110), &second[..2]);
    assert!(receiver.send(at(1_110)).is_empty());
    receiver.hear_all(at(1_112), &second[3..4]);
    let ustat = receiver.send(at(1_112));
    assert_eq!(texts(&ustat), ["USTAT miss 7+1"]);
    // The second POLL was sent before the USTAT could arrive.
    receiver.hear_all(at(1_113), &second[4..]);
    let second_stat = receiver.send(at(1_113));
    assert_eq!(texts(&second_stat), ["STAT have<7 miss 7+1"]);

    sender.hear_all(at(1_200), &stat);
    assert_eq!(sender.upper.released, [0, 1, 2, 3, 4]);
    assert!(sender.send(at(1_200)).is_empty());

    // The USTAT: 7 at once, then new data.
    sender.hear_all(at(1_212), &ustat);
    let again = sends(&mut sender, at(1_212), 3);
    assert_eq!(texts(&again), ["SD 7", "SD 10", "SD 11"]);
    sender.upper.waiting.clear();

    // The STAT still reports 7, but its POLL was sent before 7 was sent again.
    sender.hear_all(at(1_213), &second_stat);
    assert!(sender.send(at(1_213)).is_empty(), "7 is not sent a third time");
    assert_eq!(sender.session.statistics().data_retransmitted, 1);

    // Had it been lost again, the next STAT would bring it back.
    sender.upper.push(&[0; 100]);
    let third = sender.send(at(1_220));
    assert_eq!(texts(&third), ["SD+POLL 12 poll<13"]);
    receiver.hear_all(at(1_314), &again[1..]);
    receiver.hear_all(at(1_320), &third);
    let third_stat = receiver.send(at(1_320));
    assert_eq!(texts(&third_stat), ["STAT have<7 miss 7+1"]);
    sender.hear_all(at(1_420), &third_stat);
    assert_eq!(texts(&sender.send(at(1_420)))[0], "SD+POLL 7 poll<13");
}
