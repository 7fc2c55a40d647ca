//! State table, handshakes under loss, incarnations.

use super::super::lifecycle::{Action, StateInput, step};
use super::pipe::{Faults, World};
use super::*;
use crate::wire::{Begin, Delivery, End};

fn begin(incarnation: u32) -> Segment<'static> {
    let begin =
        Begin { incarnation, window: 100, max_segment: 1448, delivery: Delivery::Immediate };
    Segment::begin(Seq24::ZERO, 0, begin)
}

/// Next states, one row per state and one column per input: C closed, L listening, B opening,
/// E established, N closing, S half-closed (local), P half-closed (remote), M last closing.
///
/// XSTP-6.2.1
#[test]
fn the_state_table_is_complete() {
    const LETTERS: &[u8; 8] = b"CLBENSPM";
    //                  Begin .. BeginNewer, BeginAck, End, EndAck, Reset, Data, Poll, Report,
    //                  Drained, Abort, Retry, GiveUp, NoResponse
    const NEXT: [&[u8; 14]; 8] = [
        b"CCCCCCCCCCCCCC",
        b"EELLLLLLLLCLLL",
        b"BBEBBCBBBBCBCC",
        b"ECEPECEEENCEEC",
        b"NCNMSCNNNNCNCC",
        b"SCSCSCSSSSCSSC",
        b"PCPPPCPPPMCPPC",
        b"MCMMCCMMMMCMCC",
    ];
    for (state, row) in State::ALL.into_iter().zip(NEXT) {
        for (input, &expected) in StateInput::ALL.into_iter().zip(row) {
            let (next, action) = step(state, input);
            let found = LETTERS[State::ALL.iter().position(|&s| s == next).unwrap()];
            assert_eq!(found as char, expected as char, "{state:?} × {input:?}");
            let processes = matches!(action, Action::Process);
            assert!(!processes || state.is_connected(), "{state:?} processes {input:?}");
            if next == State::Closed && state.is_connected() {
                assert_ne!(action, Action::Nothing, "{state:?} × {input:?} closes silently");
            }
        }
    }
}

/// XSTP-6.1.1, XSTP-6.1.2
#[test]
fn data_and_poll_are_piggybacked_on_bgn_and_data_follows_before_bgnak() {
    let mut client = Peer::client(&gateway());
    client.upper.push(b"first");
    client.upper.push(b"second");
    assert_eq!(client.send_text(at(0)), ["SD+POLL+BGN 0 poll<1"]);
    // The second packet is paced, and is sent before BGNAK arrives.
    let later = client.session.poll_timeout().unwrap();
    assert!(later < at(1), "{later:?}");
    assert_eq!(client.send_text(later), ["SD 1"]);
    let mut server = Peer::server(&gateway());
    let mut other = Peer::client(&gateway());
    other.upper.push(b"first");
    server.receive_all(at(300), &other.send(at(0)));
    assert_eq!(server.upper.delivered, [(0, b"first".to_vec())]);
    assert_eq!(server.events(), [Event::Established]);
    assert_eq!(server.send_text(at(300)), ["STAT+BGN+AK have<1"]);
}

/// XSTP-6.1.3
#[test]
fn bgn_is_sent_with_every_poll_until_bgnak() {
    let mut client = Peer::client(&gateway());
    for _ in 0..2_000 {
        client.upper.push(&[0; 1444]);
    }
    let mut with_begin = 0;
    let mut now = at(0);
    while now < at(600) {
        with_begin += client.send_text(now).iter().filter(|text| text.contains("BGN")).count();
        now = client.session.poll_timeout().unwrap().max(now);
    }
    assert!((3..=4).contains(&with_begin), "{with_begin} per RTT");
}

/// XSTP-6.1.4
#[test]
fn a_lost_bgn_costs_a_third_of_an_rtt_and_its_data_is_retransmitted() {
    let mut world = World::pair(&gateway(), &gateway(), Faults::clean(Span::from_millis(300)));
    world.faults.outage = Some((at(0), at(1)));
    world.ends[0].upper.push(b"lost");
    assert!(world.run(at(5_000), |ends| !ends[1].upper.delivered.is_empty()));
    assert!(world.now <= at(1_200), "{:?}", world.now);
    world.run(at(6_000), |_| false);
    assert_eq!(world.ends[0].session.state(), State::Established);
    assert_eq!(world.ends[1].upper.delivered.len(), 1);
}

/// XSTP-6.1.5
#[test]
fn bgnak_is_retransmitted_for_a_repeated_bgn() {
    let mut client = Peer::client(&gateway());
    let mut server = Peer::server(&gateway());
    server.receive_all(at(300), &client.send(at(0)));
    assert_eq!(server.send(at(300)).len(), 1, "this one is lost");
    let repeated = client.send(at(234));
    server.receive_all(at(534), &repeated);
    let response = server.send(at(534));
    client.receive_all(at(834), &response);
    assert_eq!(client.events(), [Event::Established]);
    assert_eq!(server.events(), [Event::Established], "once");
    // The echo names the second BGN.
    assert_eq!(client.session.srtt(), Some(Span::from_millis(600)));
}

/// XSTP-6.1.6
#[test]
fn an_unanswered_bgn_fails() {
    let mut world = World::pair(&gateway(), &gateway(), Faults::clean(Span::from_millis(300)));
    world.faults.loss = 1.0;
    assert!(world.run(at(1_000_000), |ends| ends[0].session.state() == State::Closed));
    assert_eq!(world.ends[0].events().last(), Some(&Event::NoResponse));
    let statistics = *world.ends[0].session.statistics();
    assert_eq!(statistics.handshakes_failed + statistics.no_response, 1);
    assert_eq!(world.ends[0].session.poll_timeout(), None, "no timer is running");
}

/// XSTP-6.1.7
#[test]
fn a_closed_session_rejects_bgn() {
    let mut closed = Peer::server(&gateway());
    closed.session.abort(at(0));
    let mut client = Peer::client(&gateway());
    closed.receive_all(at(300), &client.send(at(0)));
    let response = closed.send(at(300));
    client.receive_all(at(600), &response);
    assert_eq!(client.events(), [Event::Refused]);
    assert!(client.send(at(700)).is_empty());
}

/// XSTP-6.3.1, XSTP-4.1.3
#[test]
fn segments_of_other_incarnations_are_rejected() {
    let (mut client, mut server) = established(&gateway());
    let other = |error| matches!(error, Err(ReceiveError::OtherIncarnation));
    let reset = Segment::reset(Seq24::ZERO, End { incarnation: 9 });
    assert!(other(client.receive(at(700), &reset)));
    assert!(other(client.receive(at(700), &Segment::end(Seq24::ZERO, End { incarnation: 9 }))));
    assert!(other(server.receive(at(700), &begin(0))), "an older BGN");
    assert_eq!(server.session.statistics().other_incarnation, 1);
    assert_eq!(client.session.statistics().other_incarnation, 2);
    assert_eq!(server.session.state(), State::Established);
    // A newer incarnation: the peer has restarted.
    server.receive(at(700), &begin(2)).unwrap();
    assert_eq!(server.events(), [Event::Superseded]);
    assert_eq!(server.session.state(), State::Closed);
}

/// XSTP-6.3.1
#[test]
fn a_session_recognizes_the_begin_of_the_next_one_whether_or_not_it_is_closed() {
    let octets = |incarnation| {
        let mut out = [0; 100];
        let len = begin(incarnation).encode(&Profile::Sealed, &mut out).unwrap();
        out[..len].to_vec()
    };
    let (_, mut server) = established(&gateway());
    for closed in [false, true] {
        let is_anew = |incarnation| server.session.is_begin_anew(&octets(incarnation));
        assert!(is_anew(2) && !is_anew(1) && !is_anew(0), "closed: {closed}");
        assert!(!server.session.is_begin_anew(&[0; 4]));
        server.session.abort(at(700));
    }
    assert!(!Session::listen(&gateway()).is_begin_anew(&octets(1)), "a listener accepts it itself");
}

/// XSTP-6.5.3
#[test]
fn a_reset_names_its_reason_as_often_as_it_is_sent() {
    let (mut client, mut server) = established(&gateway());
    let reason = Seq24::new(0x02_0b00);
    server.session.abort_for(at(700), reason);
    assert_eq!(server.send(at(700)).len(), 1, "this one is lost");
    client.upper.push(b"late");
    client.session.wake();
    server.receive_all(at(1_000), &client.send(at(800)));
    client.receive_all(at(1_300), &server.send(at(1_000)));
    assert_eq!(client.events(), [Event::Reset]);
    assert_eq!(client.session.peer_reset_reason(), Some(reason));
}

/// XSTP-6.3.2
#[test]
fn listen_after_accepts_only_newer_incarnations() {
    let mut server =
        Peer { session: Session::listen_after(&gateway(), 7), upper: Queue::default() };
    for old in [7, 6, u32::MAX] {
        assert!(server.receive(at(0), &begin(old)).is_err());
    }
    server.receive(at(0), &begin(8)).unwrap();
    assert_eq!(server.session.state(), State::Established);
}

/// XSTP-6.1.8
#[test]
fn peers_with_different_delivery_do_not_connect() {
    let mut config = gateway();
    config.delivery = Delivery::InOrder;
    let mut server = Peer::server(&config);
    assert!(server.receive(at(0), &begin(5)).is_err());
    assert_eq!(server.session.state(), State::Listening);
    assert_eq!(server.send_text(at(0)), ["RST"]);
}

/// XSTP-6.4.1, XSTP-6.4.2
#[test]
fn each_direction_is_closed_separately() {
    let mut world = World::pair(&gateway(), &gateway(), Faults::clean(Span::from_millis(300)));
    world.ends[0].upper.push(b"data");
    world.run(at(0), |_| false);
    world.ends[0].session.end(at(0));
    let ended = |world: &mut World| {
        world.run(at(5_000), |ends| ends[1].session.state() == State::HalfClosedRemote)
    };
    assert!(ended(&mut world));
    assert_eq!(world.ends[1].upper.delivered.len(), 1, "END follows all data");
    assert_eq!(world.ends[1].events(), [Event::Established, Event::PeerEnded]);
    // The other direction stays open.
    world.ends[1].upper.push_many(5, 100);
    world.ends[1].session.wake();
    assert!(world.run(at(8_000), |ends| ends[0].upper.delivered.len() == 5));
    assert_eq!(world.ends[0].session.state(), State::HalfClosedLocal);
    let now = world.now;
    world.ends[1].session.end(now);
    let closed = |ends: &[Peer; 2]| ends.iter().all(|e| e.session.state() == State::Closed);
    assert!(world.run(at(12_000), closed));
    assert_eq!(
        world.ends[0].events(),
        [Event::Established, Event::SelfEnded, Event::PeerEnded, Event::Closed]
    );
    assert_eq!(world.ends[1].events(), [Event::SelfEnded, Event::Closed]);
    assert!(!world.run(at(1_000_000), |_| false));
    assert!(world.ends.iter().all(|end| end.session.poll_timeout().is_none()));
}

/// XSTP-6.4.3
#[test]
fn both_directions_close_under_loss() {
    for seed in 0..40 {
        let faults = Faults { loss: 0.4, ..Faults::clean(Span::from_millis(50)) };
        let ends = [Peer::client(&gateway()), Peer::server(&gateway())];
        let mut world = World::new(ends, faults, seed).without_log();
        world.ends[0].upper.push_many(20, 200);
        world.ends[1].upper.push_many(20, 200);
        world.ends[0].session.end(at(0));
        world.ends[1].session.end(at(0));
        let closed = |ends: &[Peer; 2]| ends.iter().all(|e| e.session.state() == State::Closed);
        assert!(world.run(at(170_000), closed), "seed {seed}");
        for end in &mut world.ends {
            assert_eq!(end.upper.delivered_sorted(), (0..20).collect::<Vec<u32>>());
            assert_eq!(end.events().last(), Some(&Event::Closed), "seed {seed}");
        }
    }
}

/// XSTP-6.5.1
#[test]
fn abort_resets_the_peer() {
    let (mut client, mut server) = established(&gateway());
    client.session.abort(at(700));
    let reset = client.send(at(700));
    assert_eq!(reset.len(), 1);
    server.receive_all(at(1_000), &reset);
    assert_eq!(server.events(), [Event::Reset]);
    assert!(server.send(at(1_000)).is_empty(), "a RST is not answered");
}

/// XSTP-6.5.2
#[test]
fn data_for_a_closed_session_is_answered_by_rst() {
    let (mut client, mut server) = established(&gateway());
    server.session.abort(at(700));
    server.send(at(700)); // the RST is lost
    client.upper.push(b"hello?");
    client.session.wake();
    server.receive_all(at(1_100), &client.send(at(800)));
    client.receive_all(at(1_400), &server.send(at(1_100)));
    assert_eq!(client.events(), [Event::Reset]);
}
