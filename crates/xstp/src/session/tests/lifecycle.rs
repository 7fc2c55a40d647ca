//! Beginning and ending: the table of states, handshakes that lose segments, incarnations.

use super::super::lifecycle::{Action, StateInput, step};
use super::pipe::{Faults, World};
use super::*;
use crate::wire::{Begin, Delivery, End};

fn begin(incarnation: u32) -> Segment<'static> {
    let begin =
        Begin { incarnation, window: 100, max_segment: 1448, delivery: Delivery::Immediate };
    Segment::begin(Seq24::ZERO, 0, begin)
}

/// Next states by hand, a row for each state, a column for each input: C closed, L listening,
/// B beginning, E established, N ending, S self ended, P peer ended, M peer ended and ending.
///
/// XSTP-6.2.1
#[test]
fn every_event_is_decided_in_every_state() {
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
            let takes_part = matches!(action, Action::Process);
            assert!(!takes_part || state.is_connected(), "{state:?} processes {input:?}");
            if next == State::Closed && state.is_connected() {
                assert_ne!(action, Action::Nothing, "{state:?} × {input:?} closes silently");
            }
        }
    }
}

/// XSTP-6.1.1, XSTP-6.1.2
#[test]
fn data_and_poll_ride_on_bgn_and_more_follows_before_bgnak() {
    let mut client = Hand::client(&gateway());
    client.upper.push(b"first");
    client.upper.push(b"second");
    assert_eq!(client.said(at(0)), ["SD+POLL+BGN 0 poll<1"]);
    // The second is paced behind the first, and is sent without an answer.
    let later = client.session.poll_timeout().unwrap();
    assert!(later < at(1), "{later:?}");
    assert_eq!(client.said(later), ["SD 1"]);
    let mut server = Hand::server(&gateway());
    let mut again = Hand::client(&gateway());
    again.upper.push(b"first");
    server.hear_all(at(300), &again.send(at(0)));
    assert_eq!(server.upper.delivered, [(0, b"first".to_vec())]);
    assert_eq!(server.events(), [Event::Established]);
    assert_eq!(server.said(at(300)), ["STAT+BGN+AK have<1"]);
}

/// XSTP-6.1.3
#[test]
fn bgn_goes_with_every_poll_until_it_is_answered() {
    let mut client = Hand::client(&gateway());
    for _ in 0..2_000 {
        client.upper.push(&[0; 1444]);
    }
    let mut with_begin = 0;
    let mut now = at(0);
    while now < at(600) {
        with_begin += client.said(now).iter().filter(|text| text.contains("BGN")).count();
        now = client.session.poll_timeout().unwrap().max(now);
    }
    assert!((3..=4).contains(&with_begin), "{with_begin} in a round trip");
}

/// XSTP-6.1.4
#[test]
fn a_lost_bgn_costs_a_third_of_a_round_trip_and_its_data_comes_again() {
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
fn bgnak_is_sent_again_when_bgn_comes_again() {
    let mut client = Hand::client(&gateway());
    let mut server = Hand::server(&gateway());
    server.hear_all(at(300), &client.send(at(0)));
    assert_eq!(server.send(at(300)).len(), 1, "and it is lost");
    let again = client.send(at(234));
    server.hear_all(at(534), &again);
    let answer = server.send(at(534));
    client.hear_all(at(834), &answer);
    assert_eq!(client.events(), [Event::Established]);
    assert_eq!(server.events(), [Event::Established], "once");
    // The echo names the second BGN.
    assert_eq!(client.session.round_trip(), Some(Span::from_millis(600)));
}

/// XSTP-6.1.6
#[test]
fn a_bgn_without_an_answer_is_given_up() {
    let mut world = World::pair(&gateway(), &gateway(), Faults::clean(Span::from_millis(300)));
    world.faults.loss = 1.0;
    assert!(world.run(at(1_000_000), |ends| ends[0].session.state() == State::Closed));
    assert_eq!(world.ends[0].events().last(), Some(&Event::NoResponse));
    let statistics = *world.ends[0].session.statistics();
    assert_eq!(statistics.handshakes_failed + statistics.no_response, 1);
    assert_eq!(world.ends[0].session.poll_timeout(), None, "nothing is left to be done");
}

/// XSTP-6.1.7
#[test]
fn a_closed_session_refuses() {
    let mut closed = Hand::server(&gateway());
    closed.session.abort(at(0));
    let mut client = Hand::client(&gateway());
    closed.hear_all(at(300), &client.send(at(0)));
    let answer = closed.send(at(300));
    client.hear_all(at(600), &answer);
    assert_eq!(client.events(), [Event::Refused]);
    assert!(client.send(at(700)).is_empty());
}

/// XSTP-6.3.1, XSTP-4.1.3
#[test]
fn incarnations_are_kept_apart() {
    let (mut client, mut server) = established(&gateway());
    let other = |error| matches!(error, Err(ReceiveError::OtherIncarnation));
    assert!(other(client.hear(at(700), &Segment::reset(Seq24::ZERO, End { incarnation: 9 }))));
    assert!(other(client.hear(at(700), &Segment::end(Seq24::ZERO, End { incarnation: 9 }))));
    assert!(other(server.hear(at(700), &begin(0))), "an older BGN");
    assert_eq!(server.session.statistics().other_incarnation, 1);
    assert_eq!(client.session.statistics().other_incarnation, 2);
    assert_eq!(server.session.state(), State::Established);
    // A newer one means that the peer began anew.
    server.hear(at(700), &begin(2)).unwrap();
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
    server.hear_all(at(1_000), &client.send(at(800)));
    client.hear_all(at(1_300), &server.send(at(1_000)));
    assert_eq!(client.events(), [Event::Reset]);
    assert_eq!(client.session.peer_reset_reason(), Some(reason));
}

/// XSTP-6.3.2
#[test]
fn a_listener_can_be_told_what_not_to_accept_again() {
    let mut server =
        Hand { session: Session::listen_after(&gateway(), 7), upper: Queue::default() };
    for old in [7, 6, u32::MAX] {
        assert!(server.hear(at(0), &begin(old)).is_err());
    }
    server.hear(at(0), &begin(8)).unwrap();
    assert_eq!(server.session.state(), State::Established);
}

/// XSTP-6.1.8
#[test]
fn ends_that_deliver_differently_do_not_connect() {
    let mut config = gateway();
    config.delivery = Delivery::InOrder;
    let mut server = Hand::server(&config);
    assert!(server.hear(at(0), &begin(5)).is_err());
    assert_eq!(server.session.state(), State::Listening);
    assert_eq!(server.said(at(0)), ["RST"]);
}

/// XSTP-6.4.1, XSTP-6.4.2
#[test]
fn each_direction_ends_on_its_own() {
    let mut world = World::pair(&gateway(), &gateway(), Faults::clean(Span::from_millis(300)));
    world.ends[0].upper.push(b"all I have");
    world.run(at(0), |_| false);
    world.ends[0].session.end(at(0));
    let ended = |world: &mut World| {
        world.run(at(5_000), |ends| ends[1].session.state() == State::HalfClosedRemote)
    };
    assert!(ended(&mut world));
    assert_eq!(world.ends[1].upper.delivered.len(), 1, "END comes after all data");
    assert_eq!(world.ends[1].events(), [Event::Established, Event::PeerEnded]);
    // The other direction goes on.
    world.ends[1].upper.push_many(5, 100);
    world.ends[1].session.wake();
    assert!(world.run(at(8_000), |ends| ends[0].upper.delivered.len() == 5));
    assert_eq!(world.ends[0].session.state(), State::HalfClosedLocal);
    let now = world.now;
    world.ends[1].session.end(now);
    let closed = |ends: &[Hand; 2]| ends.iter().all(|e| e.session.state() == State::Closed);
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
fn ends_survive_loss() {
    for seed in 0..40 {
        let faults = Faults { loss: 0.4, ..Faults::clean(Span::from_millis(50)) };
        let ends = [Hand::client(&gateway()), Hand::server(&gateway())];
        let mut world = World::new(ends, faults, seed).without_log();
        world.ends[0].upper.push_many(20, 200);
        world.ends[1].upper.push_many(20, 200);
        world.ends[0].session.end(at(0));
        world.ends[1].session.end(at(0));
        let closed = |ends: &[Hand; 2]| ends.iter().all(|e| e.session.state() == State::Closed);
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
    server.hear_all(at(1_000), &reset);
    assert_eq!(server.events(), [Event::Reset]);
    assert!(server.send(at(1_000)).is_empty(), "a RST is not answered");
}

/// XSTP-6.5.2
#[test]
fn a_session_that_is_gone_is_told_so() {
    let (mut client, mut server) = established(&gateway());
    server.session.abort(at(700));
    server.send(at(700)); // and the RST is lost
    client.upper.push(b"hello?");
    client.session.wake();
    server.hear_all(at(1_100), &client.send(at(800)));
    client.hear_all(at(1_400), &server.send(at(1_100)));
    assert_eq!(client.events(), [Event::Reset]);
}
