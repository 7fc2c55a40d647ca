//! Defects that fault-injection runs have found (docs/reliability.md), one script each.

use super::*;
use crate::wire::{Begin, BeginAck, Delivery, Endpoints, Poll, Profile};
use core::net::SocketAddr;

/// Configurations of a client and a server in the published profile.
fn published() -> [SessionConfig; 2] {
    let client = SocketAddr::from(([10, 0, 0, 1], 1024));
    let server = SocketAddr::from(([10, 0, 0, 2], 80));
    [(client, server), (server, client)].map(|(local, remote)| SessionConfig {
        profile: Profile::Published(Endpoints { local, remote }),
        ..SessionConfig::stp_1999()
    })
}

/// XSTP-2.2.2, XSTP-4.1.4: POLL sequence numbers of a listener start at its clock when BGN is
/// received. When they started at zero, those of a server that had run for 25 days were older than
/// its BGNAK, and the client rejected its POLLs as of an earlier incarnation.
#[test]
fn poll_sequence_numbers_of_a_server_start_at_its_clock() {
    let [client, server] = published();
    let month = Span::from_secs(30 * 86_400);
    let mut client = Peer::client(&client);
    let mut server = Peer::server(&server);
    let begin = client.send(at(0));
    server.receive_all(at(300) + month, &begin);
    let response = server.send(at(300) + month);
    client.receive_all(at(600), &response);
    server.upper.push_many(40, 100);
    server.session.wake();
    for round in 1..40 {
        let now = at(600 * round);
        let sent = server.send(now + month);
        client.receive_all(now, &sent);
        let sent = client.send(now);
        server.receive_all(now + month, &sent);
    }
    assert_eq!(client.upper.delivered_sorted(), Vec::from_iter(0..40));
    assert_eq!(client.session.statistics().other_incarnation, 0);
    assert!(server.session.sender.table.is_empty(), "its STATs were accepted, too");
}

/// XSTP-4.1.4: a POLL of an earlier incarnation that arrives before BGNAK would make the client
/// report packets missing that were never sent; its STATs would be rejected, and no packet of the
/// server would be acknowledged.
#[test]
fn a_client_rejects_other_segments_before_bgnak() {
    let [client, _] = published();
    let mut client = Peer::client(&client);
    client.send(at(0));
    let old = Poll { seq: 5, next: Seq24::new(100) };
    assert_eq!(
        client.receive(at(10), &Segment::poll(5, old)),
        Err(ReceiveError::OtherIncarnation),
        "its incarnation is unknown"
    );
    assert_eq!(client.session.receiver.highest(), Seq24::ZERO);
    let begin =
        Begin { incarnation: 1, window: 100, max_segment: 1480, delivery: Delivery::InOrder };
    let ack = BeginAck { begin, echo: 0 };
    client.receive(at(600), &Segment::begin_ack(Seq24::ZERO, ack).with_timestamp(90_000)).unwrap();
    assert_eq!(client.session.state(), State::Established);
    let poll = Poll { seq: 90_001, next: Seq24::new(1) };
    client.receive(at(601), &Segment::poll(90_001, poll)).unwrap();
    assert_eq!(client.session.receiver.highest(), Seq24::new(1));
}

/// XSTP-6.1.3: as published SD does not name its incarnation. After a restart of the client and
/// the loss of its BGN, its packets were delivered in the stream of the previous connection.
#[test]
fn segments_before_bgnak_name_their_incarnation() {
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
    // The first segment is lost; by the second the server detects the restart.
    let _ = peer.handle_segment(at(1_100), &sent[1]);
    assert_eq!(peer.session().state(), State::Closed);
    let mut read = [0; 100];
    assert_eq!(peer.read(&mut read), 10);
}

/// XSTP-4.1.5: a clock that is set back between two BGNAKs does not decrease the timestamps of this
/// incarnation to those of an earlier one. A client that received only the second BGNAK (seed 73877
/// of `connections`) accepted packets of the old server.
#[test]
fn timestamps_do_not_decrease_when_the_clock_is_set_back() {
    let [client, server] = published();
    let (mut client, mut server) = (Peer::client(&client), Peer::server(&server));
    let begin = client.send(at(0));
    server.receive_all(at(90_000), &begin);
    let lost = server.send(at(90_000));
    assert!(!lost.is_empty());
    assert_eq!(server.session.renewable_at(), at(90_001));
    // The old server sent this when its clock showed 89,500; now the clock is set back by 1 s.
    let old = Segment::data(Seq24::ZERO, b"old").with_timestamp(89_500);
    let begin = client.send(at(10_000));
    server.receive_all(at(89_000), &begin);
    let response = server.send(at(89_000));
    client.receive_all(at(10_300), &response);
    assert_eq!(client.session.state(), State::Established);
    assert_eq!(client.receive(at(10_301), &old), Err(ReceiveError::OtherIncarnation));
    server.upper.push(b"new");
    server.session.wake();
    let new = server.send(at(89_001));
    client.receive_all(at(10_302), &new);
    assert_eq!(client.upper.delivered, [(0, b"new".to_vec())], "new data is accepted");
    assert!(
        server.session.renewable_at() >= at(90_001),
        "later incarnations have higher timestamps"
    );
}

/// XSTP-4.1.5: the same for BGN; the echo of a timestamp that several BGNs have gives no RTT sample
/// that is too short.
#[test]
fn timestamps_before_bgnak_do_not_decrease_either() {
    let [client, server] = published();
    let (mut client, mut server) = (Peer::client(&client), Peer::server(&server));
    let profile = server.session.config.profile;
    let timestamps = |sent: &[Vec<u8>]| -> Vec<u32> {
        sent.iter().map(|octets| Segment::decode(&profile, octets).unwrap().timestamp()).collect()
    };
    let first = timestamps(&client.send(at(90_000)));
    client.upper.push_many(3, 100);
    client.session.wake();
    let mut later = client.send(at(85_000));
    later.extend(client.send(at(88_000)));
    later.extend(client.send(at(96_000)));
    assert!(!later.is_empty());
    assert!(timestamps(&later).iter().all(|&at| at >= first[0]), "{:?}", timestamps(&later));
    server.receive_all(at(500), &later[..1]);
    assert_eq!(
        server.receive(at(501), &Segment::data(Seq24::new(1), b"old").with_timestamp(first[0] - 1)),
        Err(ReceiveError::OtherIncarnation)
    );
}
