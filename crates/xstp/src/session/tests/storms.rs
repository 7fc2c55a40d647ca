//! What storms have found (docs/reliability.md), one script for each.

use super::*;
use crate::wire::{Begin, BeginAck, Delivery, Endpoints, Poll, Profile};
use core::net::SocketAddr;

/// Published sessions: a client's configuration, and a server's.
fn published() -> [SessionConfig; 2] {
    let client = SocketAddr::from(([10, 0, 0, 1], 1024));
    let server = SocketAddr::from(([10, 0, 0, 2], 80));
    [(client, server), (server, client)].map(|(local, remote)| SessionConfig {
        profile: Profile::Published(Endpoints { local, remote }),
        ..SessionConfig::stp_1999()
    })
}

/// XSTP-2.2.2, XSTP-4.1.4: a listener's counts begin with its clock when BGN comes. When they
/// began at zero, those of a server that had run for 25 days were older than its BGNAK, and the
/// client dropped them as of an earlier incarnation.
#[test]
fn the_counts_of_a_server_that_has_run_for_weeks_are_its_clock() {
    let [client, server] = published();
    let month = Span::from_secs(30 * 86_400);
    let mut client = Hand::client(&client);
    let mut server = Hand::server(&server);
    let begin = client.send(at(0));
    server.hear_all(at(300) + month, &begin);
    let answer = server.send(at(300) + month);
    client.hear_all(at(600), &answer);
    server.upper.push_many(40, 100);
    server.session.wake();
    for round in 1..40 {
        let now = at(600 * round);
        let sent = server.send(now + month);
        client.hear_all(now, &sent);
        let sent = client.send(now);
        server.hear_all(now + month, &sent);
    }
    assert_eq!(client.upper.delivered_sorted(), Vec::from_iter(0..40));
    assert_eq!(client.session.statistics().other_incarnation, 0);
    assert!(server.session.sender.table.is_empty(), "the answers were taken too");
}

/// XSTP-4.1.4: a POLL of an earlier incarnation that comes before BGNAK would make the client
/// report packets missing that this one never has; its STATs would not be believed, and nothing
/// that the server sent would ever be acknowledged.
#[test]
fn a_client_that_has_not_heard_bgnak_hears_nothing_else() {
    let [client, _] = published();
    let mut client = Hand::client(&client);
    client.send(at(0));
    let old = Poll { seq: 5, next: Seq24::new(100) };
    assert_eq!(
        client.hear(at(10), &Segment::poll(5, old)),
        Err(ReceiveError::OtherIncarnation),
        "whose it is cannot be known"
    );
    assert_eq!(client.session.receiver.highest(), Seq24::ZERO);
    let begin =
        Begin { incarnation: 1, window: 100, max_segment: 1480, delivery: Delivery::InOrder };
    let ack = BeginAck { begin, echo: 0 };
    client.hear(at(600), &Segment::begin_ack(Seq24::ZERO, ack).with_timestamp(90_000)).unwrap();
    assert_eq!(client.session.state(), State::Established);
    let poll = Poll { seq: 90_001, next: Seq24::new(1) };
    client.hear(at(601), &Segment::poll(90_001, poll)).unwrap();
    assert_eq!(client.session.receiver.highest(), Seq24::new(1));
}

/// XSTP-6.1.3: as published SD does not say of which incarnation it is. Storms have found packets
/// of a client that had begun anew, whose BGN was lost, in the middle of the last connection's
/// stream.
#[test]
fn what_a_client_sends_before_bgnak_says_whose_it_is() {
    let [client, server] = published();
    let config = SessionConfig { initial_window: 4, ..client };
    let mut first = crate::Connection::connect(&config, at(0), 1);
    let mut peer = crate::Connection::listen(&server);
    let mut out = [0; 2000];
    first.write(&[1; 10]).unwrap();
    while let Some(len) = first.poll_transmit(at(0), &mut out) {
        peer.handle_segment(at(100), &out[..len]).unwrap();
    }
    let mut second = crate::Connection::connect(&config, at(1_000), 2);
    second.write(&[2; 4_000]).unwrap();
    let mut sent = Vec::new();
    while let Some(len) = second.poll_transmit(at(1_000), &mut out) {
        sent.push(out[..len].to_vec());
    }
    assert_eq!(sent.len(), 3);
    // The first segment is lost; the second makes the server notice.
    let _ = peer.handle_segment(at(1_100), &sent[1]);
    assert_eq!(peer.session().state(), State::Closed);
    let mut read = [0; 100];
    assert_eq!(peer.read(&mut read), 10);
}

/// XSTP-4.1.5: a clock that is set back between one BGNAK and the next does not let the stamps of
/// this incarnation go back to where an earlier one's were. A storm (connections 73877) had a
/// client that heard the second BGNAK only, and took the old server's packets for this one's.
#[test]
fn stamps_do_not_go_back_with_the_clock() {
    let [client, server] = published();
    let (mut client, mut server) = (Hand::client(&client), Hand::server(&server));
    let begin = client.send(at(0));
    server.hear_all(at(90_000), &begin);
    let lost = server.send(at(90_000));
    assert!(!lost.is_empty());
    assert_eq!(server.session.renewable_at(), at(90_001));
    // The old server sent this when its clock showed 89,500; now the clock is set back by 1 s.
    let old = Segment::data(Seq24::ZERO, b"old").with_timestamp(89_500);
    let begin = client.send(at(10_000));
    server.hear_all(at(89_000), &begin);
    let answer = server.send(at(89_000));
    client.hear_all(at(10_300), &answer);
    assert_eq!(client.session.state(), State::Established);
    assert_eq!(client.hear(at(10_301), &old), Err(ReceiveError::OtherIncarnation));
    server.upper.push(b"new");
    server.session.wake();
    let new = server.send(at(89_001));
    client.hear_all(at(10_302), &new);
    assert_eq!(client.upper.delivered, [(0, b"new".to_vec())], "what is new is taken");
    assert!(server.session.renewable_at() >= at(90_001), "the successor's stamps are above");
}

/// XSTP-4.1.5: the same for BGN; and the echo of a stamp that was used for long measures no round
/// trip that is too short.
#[test]
fn a_client_whose_clock_is_set_back_before_bgnak_keeps_its_stamps() {
    let [client, server] = published();
    let (mut client, mut server) = (Hand::client(&client), Hand::server(&server));
    let profile = server.session.config.profile;
    let stamps = |sent: &[Vec<u8>]| -> Vec<u32> {
        sent.iter().map(|octets| Segment::decode(&profile, octets).unwrap().timestamp()).collect()
    };
    let first = stamps(&client.send(at(90_000)));
    client.upper.push_many(3, 100);
    client.session.wake();
    let mut again = client.send(at(85_000));
    again.extend(client.send(at(88_000)));
    again.extend(client.send(at(96_000)));
    assert!(!again.is_empty());
    assert!(stamps(&again).iter().all(|stamp| *stamp >= first[0]), "{:?}", stamps(&again));
    server.hear_all(at(500), &again[..1]);
    assert_eq!(
        server.hear(at(501), &Segment::data(Seq24::new(1), b"old").with_timestamp(first[0] - 1)),
        Err(ReceiveError::OtherIncarnation)
    );
}
