//! Control traffic and liveness at a granted rate of a few kbit/s.

use super::*;
use crate::wire::Poll;

/// A client without a rate estimate that was granted 8 kbit/s.
fn granted() -> Peer {
    let (mut client, _) = established(&SessionConfig::gateway_auto());
    client.send(at(600));
    client.session.set_granted_rate(Some(BitRate::from_kbps(8)));
    client
}

/// XSTP-8.1.7: control traffic is accounted at the granted rate; a fraction of the rate cap could
/// exceed it.
#[test]
fn control_takes_its_fraction_of_the_granted_rate() {
    let mut client = granted();
    let mut octets = 0;
    for now in 700..4_700 {
        let poll = Poll { seq: now as u32, next: Seq24::ZERO };
        let _ = client.receive(at(now), &Segment::poll(now as u32, poll));
        let overhead = client.session.config.packet_overhead;
        octets += client.send(at(now)).iter().map(|sent| sent.len() + overhead).sum::<usize>();
    }
    let quarter = BitRate::from_kbps(2).bytes_in(Span::from_secs(4)) as usize;
    assert!(octets >= quarter / 2, "{octets} octets");
    assert!(octets <= quarter + 2 * 100, "{octets} octets in four seconds");
    client.upper.push(b"request");
    client.session.wake();
    let sent = client.send(at(5_200));
    assert!(!sent.is_empty() && client.upper.waiting.is_empty(), "data has the rest");
}

/// XSTP-10.2.10: a POLL is sent although pacing delays the data.
#[test]
fn a_session_with_queued_data_polls_within_the_liveness_interval() {
    for (kbps, min_ms, max_ms) in [(8, 2_000, 2_100), (1, 10_240, 10_340)] {
        let mut client = granted();
        client.session.set_keep_alive(Span::from_secs(60));
        client.session.set_granted_rate(Some(BitRate::from_kbps(kbps)));
        // The pacer is busy for minutes.
        client.session.charge_external(at(700), 100_000);
        client.upper.push(b"request");
        client.session.wake();
        client.send(at(700));
        let due = client.session.poll_timeout().expect("a POLL");
        let first = (700..60_000).step_by(10).find(|&now| {
            let sent = client.send_text(at(now));
            assert!(sent.iter().all(|text| text.starts_with("POLL")), "{sent:?}");
            !sent.is_empty()
        });
        let after = first.expect("a POLL") - 600;
        assert!((min_ms..=max_ms).contains(&after), "{after} ms at {kbps} kbit/s");
        assert!(due <= at(600 + max_ms), "poll_timeout includes it");
    }
}

/// XSTP-10.2.10 XSTP-14.8.1: on a low-rate reverse path the STAT for a liveness POLL would delay
/// those for a train.
#[test]
fn liveness_polls_are_rare_on_a_low_rate_reverse_path() {
    let max_rate = Some(BitRate::from_mbps(60));
    let reverse_rate = Some(BitRate::from_kbps(1));
    let config = SessionConfig { max_rate, reverse_rate, ..SessionConfig::gateway_auto() };
    let (mut client, _) = established(&config);
    client.send(at(600));
    client.session.set_keep_alive(Span::from_secs(60));
    client.session.charge_external(at(700), 100_000_000);
    client.upper.push(b"request");
    client.session.wake();
    client.send(at(700));
    let first = (700..60_000).step_by(10).find(|&now| !client.send_text(at(now)).is_empty());
    assert!(first.is_some_and(|first| (10_000..11_000).contains(&first)), "{first:?}");
}
