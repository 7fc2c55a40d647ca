//! Timed scripts: one session and hand-made segments.

use super::*;
use crate::wire::{Echo, Poll, RunList, Stat, Ustat};

fn stat(count: u32, below: u32, window: u32, runs: RunList<'_>) -> Segment<'_> {
    let echo = Echo { seq: count, timestamp: 0 };
    let received_below = Seq24::new(below);
    Segment::stat(Seq24::ZERO, Stat { echo, received_below, window, arrival: None, runs })
}

fn runs(lengths: &[u32]) -> RunList<'_> {
    RunList::new(0, lengths).unwrap()
}

/// XSTP-7.5.1, XSTP-7.5.2
#[test]
fn nonsense_is_counted_and_changes_nothing() {
    let (mut client, _) = established(&gateway());
    client.upper.push_many(3, 100);
    while client.session.outstanding_numbers() < 3 {
        let now = client.session.poll_timeout().unwrap().max(at(700));
        client.send(now);
    }
    let polls = client.session.statistics().polls_sent as u32;
    let now = at(710);
    client.hear(now, &stat(polls + 1, 3, 100, RunList::EMPTY)).unwrap();
    assert_eq!(client.session.statistics().stat_poll_errors, 1, "never asked");
    client.hear(now, &stat(polls, 4, 100, RunList::EMPTY)).unwrap();
    client.hear(now, &stat(polls, 0, 100, runs(&[1, 3]))).unwrap();
    client.hear(now, &stat(polls, 0, 100, runs(&[1 << 23]))).unwrap();
    assert_eq!(client.session.statistics().stat_list_errors, 3);
    let gaps = RunList::new(1 << 22, &[5]).unwrap();
    client.hear(now, &Segment::ustat(Seq24::ZERO, Ustat::new(Seq24::ZERO, gaps).unwrap())).unwrap();
    assert_eq!(client.session.statistics().ustat_errors, 1);
    assert_eq!(client.session.outstanding_numbers(), 3);
    assert!(client.upper.released.is_empty());
    assert_eq!(client.session.statistics().data_retransmitted, 0);
}

/// XSTP-4.1.1
#[test]
fn garbage_is_counted() {
    let (mut client, _) = established(&gateway());
    for garbage in [&[][..], &[0x01], &[0xff; 40], &[0x90, 0, 0, 0]] {
        let error = client.session.handle_segment(at(700), garbage, &mut client.upper);
        assert!(matches!(error, Err(ReceiveError::Malformed(_))), "{garbage:?}");
    }
    assert_eq!(client.session.statistics().malformed, 4);
}

/// XSTP-10.2.5
#[test]
fn a_long_list_makes_the_next_one_wait() {
    let (_, mut server) = established(&gateway());
    // Every other packet is missing: two octets each, in several segments.
    for number in (1..6_000).step_by(2) {
        server.hear(at(700), &Segment::data(Seq24::new(number), b"x")).unwrap();
    }
    let ask = |count| Segment::poll(0, Poll { seq: count, next: Seq24::new(6_000) });
    server.hear(at(800), &ask(100)).unwrap();
    let parts = server.send(at(800)).iter().filter(|octets| octets[0] & 0x04 != 0).count();
    assert!((4..=6).contains(&parts), "{parts} segments");
    for (count, millis) in (101..).zip(801..800 + 5 * parts as u64) {
        server.hear(at(millis), &ask(count)).unwrap();
        assert!(server.send(at(millis)).iter().all(|octets| octets[0] & 0x04 == 0), "{millis}");
    }
    assert!(!server.send(at(800 + 5 * parts as u64)).is_empty());
}

/// XSTP-7.3.5
#[test]
fn an_old_stat_is_ignored() {
    let (mut client, _) = established(&gateway());
    client.upper.push_many(1, 100);
    client.send(at(700)); // carries POLL 2
    client.upper.push_many(1, 100);
    client.send(at(750)); // carries POLL 3
    client.hear(at(1_350), &stat(3, 1, 50, RunList::EMPTY)).unwrap();
    client.hear(at(1_351), &stat(2, 1, 1_000, runs(&[1]))).unwrap();
    assert_eq!(client.session.statistics().stat_poll_errors, 1);
    assert_eq!(client.session.statistics().data_retransmitted, 0);
}

/// XSTP-7.2.3
#[test]
fn a_packet_that_is_not_wanted_any_more_goes_as_an_empty_sd() {
    let (mut client, mut server) = established(&gateway());
    client.upper.push_many(1, 100);
    client.send(at(700)); // lost
    client.upper.push_many(1, 100);
    server.hear_all(at(1_050), &client.send(at(750)));
    client.upper.shrink_to = Some(0);
    client.hear_all(at(1_350), &server.send(at(1_050)));
    let again = client.send(at(1_350));
    server.hear_all(at(1_650), &again);
    assert_eq!(server.upper.delivered.last(), Some(&(0, Vec::new())));
    assert_eq!(client.session.outstanding_bytes(), 0);
    assert_eq!(client.session.outstanding_numbers(), 1);
}

/// XSTP-7.1.3, XSTP-10.4.3
#[test]
fn a_shut_window_is_asked_about_until_it_opens() {
    let (mut client, _) = established(&gateway());
    client.upper.push_many(1, 100);
    client.send(at(700));
    client.hear(at(1_300), &stat(2, 1, 0, RunList::EMPTY)).unwrap();
    client.upper.push_many(1, 100);
    client.session.wake();
    assert_eq!(client.said(at(1_300)), ["POLL poll<1"], "at once");
    assert_eq!(client.events(), [Event::CreditLost]);
    // Answered, but still shut: again after a round trip.
    client.hear(at(1_900), &stat(3, 1, 0, RunList::EMPTY)).unwrap();
    let next = client.session.poll_timeout().unwrap();
    assert_eq!(next, at(1_900));
    assert_eq!(client.said(next), ["POLL poll<1"]);
    client.hear(at(2_500), &stat(4, 1, 10, RunList::EMPTY)).unwrap();
    assert_eq!(client.events(), [Event::CreditRegained]);
    assert_eq!(client.said(at(2_500)), ["SD+POLL 1 poll<2"]);
    assert_eq!(client.session.statistics().credit_lost, 1);
}

/// XSTP-10.4.2
#[test]
fn a_peer_that_is_silent_for_too_long_is_given_up() {
    let (mut client, _) = established(&gateway());
    client.upper.push_many(1, 100);
    let mut now = at(700);
    let mut polls = 0;
    while client.session.state() != State::Closed {
        polls += client.said(now).iter().filter(|text| text.contains("POLL")).count();
        now = client.session.poll_timeout().unwrap_or(now).max(now);
        assert!(now < at(200_000));
    }
    assert_eq!(now, at(700) + Span::from_secs(180));
    // Three for each round trip, however long it lasts.
    assert!((890..=910).contains(&polls), "{polls}");
    let events = client.events();
    assert!(matches!(events[..], [Event::OutageBegan { .. }, Event::OutageEnded { .. }, _]));
    assert_eq!(events[2], Event::NoResponse);
    assert_eq!(client.session.statistics().no_response, 1);
}

/// XSTP-10.4.1
#[test]
fn an_idle_session_polls_to_see_whether_its_peer_lives() {
    let (mut client, _) = established(&gateway());
    assert!(client.send(at(600)).is_empty());
    let due = client.session.poll_timeout().unwrap();
    assert_eq!(due, at(600) + Span::from_secs(12));
    assert_eq!(client.said(due), ["POLL poll<0"]);
}

/// XSTP-10.5.1, XSTP-10.5.3
#[test]
fn an_outage_is_noticed_and_its_round_trips_are_not_believed() {
    let (mut client, _) = established(&gateway());
    client.upper.push_many(1, 100);
    client.send(at(700));
    let mut now = at(700);
    while now < at(3_000) {
        client.send(now);
        now = client.session.poll_timeout().unwrap().max(now);
    }
    let events = client.events();
    assert!(matches!(events[..], [Event::OutageBegan { silence }] if silence.as_millis() >= 1_200));
    client.hear(now, &stat(2, 1, 100, RunList::EMPTY)).unwrap();
    assert!(matches!(client.events()[..], [Event::OutageEnded { .. }]));
    // Not the 2.3 s that it took; but the way may have become longer, by as much again.
    assert_eq!(client.session.round_trip(), Some(Span::from_millis(1_200)));
}

/// XSTP-7.2.4
#[test]
fn full_packets_are_not_cut_for_what_would_ride_along() {
    let (mut client, _) = established(&gateway());
    client.upper.push(&[7; 1444]);
    client.upper.note = alloc::vec![9; 20];
    client.hear(at(700), &Segment::poll(0, Poll { seq: 1, next: Seq24::ZERO })).unwrap();
    let sent = client.send(at(700));
    let kinds: Vec<_> =
        sent.iter().map(|o| Segment::decode(&gateway().profile, o).unwrap()).collect();
    assert_eq!(describe(&kinds[0]), "SD 0");
    assert_eq!(kinds[0].payload().unwrap().len(), 1444);
    assert_eq!(describe(&kinds[1]), "POLL+STAT poll<1 have<0");
    assert_eq!(kinds[1].note(), [9; 20]);
}

/// XSTP-7.2.4
#[test]
fn what_is_due_rides_on_a_packet_that_leaves_room() {
    let (mut client, mut server) = established(&gateway());
    client.upper.push(b"short");
    client.upper.note = b"note".to_vec();
    client.hear(at(700), &Segment::poll(0, Poll { seq: 1, next: Seq24::ZERO })).unwrap();
    let sent = client.send(at(700));
    assert_eq!(sent.len(), 1);
    server.hear_all(at(1_000), &sent);
    assert_eq!(server.upper.delivered, [(0, b"short".to_vec())]);
    assert_eq!(server.upper.noted, [b"note".to_vec()]);
    assert_eq!(server.said(at(1_000)), ["STAT have<1"]);
}

/// XSTP-7.2.5
#[test]
fn segments_shrink_with_the_path() {
    let (mut client, _) = established(&gateway());
    client.session.set_max_segment(600);
    client.upper.push_many(1, 597);
    assert!(client.send(at(700)).is_empty(), "the layer above has nothing that fits");
    client.upper.waiting.clear();
    client.upper.push_many(1, 596);
    client.session.wake();
    assert_eq!(client.send(at(701))[0].len(), 600);
    client.session.set_max_segment(1_000_000);
    assert_eq!(client.session.max_segment(), 1448, "never above what is configured");
    let server = Hand::server(&SessionConfig { max_segment: 700, ..gateway() });
    let mut pair = [Hand::client(&gateway()), server];
    let begin = pair[0].send(at(0));
    pair[1].hear_all(at(300), &begin);
    let answer = pair[1].send(at(300));
    pair[0].hear_all(at(600), &answer);
    pair[0].session.set_max_segment(1_448);
    assert_eq!(pair[0].session.max_segment(), 700, "nor above what the peer takes");
}

/// XSTP-10.6.1
#[test]
fn a_second_loss_is_asked_about_at_once() {
    let (mut client, _) = established(&gateway());
    // Full packets and more behind them, so that nothing else makes a POLL due.
    client.upper.push_many(2_000, 1_400);
    let mut now = at(700);
    let mut run_until = |client: &mut Hand, end: Instant| {
        let mut said = Vec::new();
        while now < end {
            said.extend(client.said(now));
            now = client.session.poll_timeout().unwrap().max(now).min(end);
        }
        said
    };
    run_until(&mut client, at(1_350));
    let polls = |client: &Hand| client.session.statistics().polls_sent as u32;
    // The first loss: packet 0 goes again, and the timer's POLLs come as they would have.
    let first = polls(&client);
    client.hear(at(1_350), &stat(first, 0, 4_000, runs(&[1, 1]))).unwrap();
    run_until(&mut client, at(1_360));
    assert_eq!(client.session.statistics().data_retransmitted, 1);
    assert_eq!(polls(&client), first);
    run_until(&mut client, at(1_960));
    // The second: the POLL follows the packet.
    let second = polls(&client);
    client.hear(at(1_960), &stat(second, 0, 4_000, runs(&[1, 1]))).unwrap();
    let said = run_until(&mut client, at(1_970));
    assert_eq!(client.session.statistics().data_retransmitted, 2);
    assert_eq!(polls(&client), second + 1, "{said:?}");
}
