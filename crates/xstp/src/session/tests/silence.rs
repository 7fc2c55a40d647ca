//! A pace of next to nothing, as a peer can grant it that means ill, and what a session still says.

use super::*;
use crate::wire::Poll;

/// A gateway's client that has not found its rate yet, and was granted 8 kbit/s.
fn granted() -> Hand {
    let (mut client, _) = established(&SessionConfig::gateway_auto());
    client.send(at(600));
    client.session.set_granted_rate(Some(BitRate::from_kbps(8)));
    client
}

/// XSTP-8.1.7: what goes alone is charged at the rate that was granted; a part of what the
/// link may take at most would be all of that for ever, and a debt besides.
#[test]
fn control_has_its_part_of_what_was_granted() {
    let mut client = granted();
    let mut octets = 0;
    for now in 700..4_700 {
        let poll = Poll { seq: now as u32, next: Seq24::ZERO };
        let _ = client.hear(at(now), &Segment::poll(now as u32, poll));
        let overhead = client.session.config.packet_overhead;
        octets += client.send(at(now)).iter().map(|sent| sent.len() + overhead).sum::<usize>();
    }
    let quarter = BitRate::from_kbps(2).bytes_in(Span::from_secs(4)) as usize;
    assert!(octets >= quarter / 2, "{octets} octets: some of it goes");
    assert!(octets <= quarter + 2 * 100, "{octets} octets in four seconds");
    client.upper.push(b"request");
    client.session.wake();
    let soon = client.send(at(5_200));
    assert!(!soon.is_empty() && client.upper.waiting.is_empty(), "data has the rest");
}

/// XSTP-10.2.10: whatever keeps data back, the peer hears a word in time.
#[test]
fn who_has_something_to_send_says_a_word_within_two_seconds() {
    for (kbps, least, most) in [(8, 2_000, 2_100), (1, 10_240, 10_340)] {
        let mut client = granted();
        client.session.set_keep_alive(Span::from_secs(60));
        client.session.set_granted_rate(Some(BitRate::from_kbps(kbps)));
        // What is planned would take minutes.
        client.session.charge_external(at(700), 100_000);
        client.upper.push(b"request");
        client.session.wake();
        client.send(at(700));
        let due = client.session.poll_timeout().expect("a word");
        let first = (700..60_000).step_by(10).find(|&now| {
            let said = client.said(at(now));
            assert!(said.iter().all(|said| said.starts_with("POLL")), "{said:?}");
            !said.is_empty()
        });
        let after = first.expect("a word") - 600;
        assert!((least..=most).contains(&after), "{after} ms at {kbps} kbit/s");
        assert!(due <= at(600 + most), "it asks to be called for that");
    }
}

/// XSTP-10.2.10 XSTP-14.8.1: on a narrow way back the word would take the place of a train's answer.
#[test]
fn a_narrow_way_back_is_not_asked_while_a_train_is_to_be_answered() {
    let most = Some(BitRate::from_mbps(60));
    let narrow = Some(BitRate::from_kbps(1));
    let config =
        SessionConfig { max_rate: most, reverse_rate: narrow, ..SessionConfig::gateway_auto() };
    let (mut client, _) = established(&config);
    client.send(at(600));
    client.session.set_keep_alive(Span::from_secs(60));
    client.session.charge_external(at(700), 100_000_000);
    client.upper.push(b"request");
    client.session.wake();
    client.send(at(700));
    let first = (700..60_000).step_by(10).find(|&now| !client.said(at(now)).is_empty());
    assert!(first.is_some_and(|first| (10_000..11_000).contains(&first)), "{first:?}");
}
