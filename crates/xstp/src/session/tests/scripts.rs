//! Timed scripts: one session and constructed segments.

use super::*;
use crate::wire::{Echo, Poll, RunList, Stat, Ustat};

fn stat(seq: u32, below: u32, window: u32, runs: RunList<'_>) -> Segment<'_> {
    let echo = Echo { seq, timestamp: 0 };
    let received_below = Seq24::new(below);
    Segment::stat(Seq24::ZERO, Stat { echo, received_below, window, arrival: None, runs })
}

fn runs(lengths: &[u32]) -> RunList<'_> {
    RunList::new(0, lengths).unwrap()
}

/// XSTP-7.5.1, XSTP-7.5.2
#[test]
fn invalid_reports_are_counted_and_have_no_effect() {
    let (mut client, _) = established(&gateway());
    client.upper.push_many(3, 100);
    while client.session.outstanding_packets() < 3 {
        let now = client.session.poll_timeout().unwrap().max(at(700));
        client.send(now);
    }
    let polls = client.session.statistics().polls_sent as u32;
    let now = at(710);
    client.receive(now, &stat(polls + 1, 3, 100, RunList::EMPTY)).unwrap();
    assert_eq!(client.session.statistics().stat_poll_errors, 1, "no such POLL");
    client.receive(now, &stat(polls, 4, 100, RunList::EMPTY)).unwrap();
    client.receive(now, &stat(polls, 0, 100, runs(&[1, 3]))).unwrap();
    client.receive(now, &stat(polls, 0, 100, runs(&[1 << 23]))).unwrap();
    assert_eq!(client.session.statistics().stat_list_errors, 3);
    let gaps = RunList::new(1 << 22, &[5]).unwrap();
    client
        .receive(now, &Segment::ustat(Seq24::ZERO, Ustat::new(Seq24::ZERO, gaps).unwrap()))
        .unwrap();
    assert_eq!(client.session.statistics().ustat_errors, 1);
    assert_eq!(client.session.outstanding_packets(), 3);
    assert!(client.upper.released.is_empty());
    assert_eq!(client.session.statistics().data_retransmitted, 0);
}

/// XSTP-4.1.1
#[test]
fn malformed_segments_are_counted() {
    let (mut client, _) = established(&gateway());
    for garbage in [&[][..], &[0x01], &[0xff; 40], &[0x90, 0, 0, 0]] {
        let error = client.session.handle_segment(at(700), garbage, &mut client.upper);
        assert!(matches!(error, Err(ReceiveError::Malformed(_))), "{garbage:?}");
    }
    assert_eq!(client.session.statistics().malformed, 4);
}

/// XSTP-10.2.5
#[test]
fn a_list_in_several_stats_delays_the_next_list() {
    let (_, mut server) = established(&gateway());
    // Every other packet is missing: two octets each, in several segments.
    for number in (1..6_000).step_by(2) {
        server.receive(at(700), &Segment::data(Seq24::new(number), b"x")).unwrap();
    }
    let poll = |seq| Segment::poll(0, Poll { seq, next: Seq24::new(6_000) });
    server.receive(at(800), &poll(100)).unwrap();
    let parts = server.send(at(800)).iter().filter(|octets| octets[0] & 0x04 != 0).count();
    assert!((4..=6).contains(&parts), "{parts} segments");
    for (seq, millis) in (101..).zip(801..800 + 5 * parts as u64) {
        server.receive(at(millis), &poll(seq)).unwrap();
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
    client.receive(at(1_350), &stat(3, 1, 50, RunList::EMPTY)).unwrap();
    client.receive(at(1_351), &stat(2, 1, 1_000, runs(&[1]))).unwrap();
    assert_eq!(client.session.statistics().stat_poll_errors, 1);
    assert_eq!(client.session.statistics().data_retransmitted, 0);
}

/// XSTP-7.2.3
#[test]
fn an_obsolete_packet_is_retransmitted_as_an_empty_sd() {
    let (mut client, mut server) = established(&gateway());
    client.upper.push_many(1, 100);
    client.send(at(700)); // lost
    client.upper.push_many(1, 100);
    server.receive_all(at(1_050), &client.send(at(750)));
    client.upper.shrink_to = Some(0);
    client.receive_all(at(1_350), &server.send(at(1_050)));
    let retransmission = client.send(at(1_350));
    server.receive_all(at(1_650), &retransmission);
    assert_eq!(server.upper.delivered.last(), Some(&(0, Vec::new())));
    assert_eq!(client.session.outstanding_bytes(), 0);
    assert_eq!(client.session.outstanding_packets(), 1);
}

/// XSTP-7.1.3, XSTP-10.4.3
#[test]
fn a_closed_window_is_polled_until_it_reopens() {
    let (mut client, _) = established(&gateway());
    client.upper.push_many(1, 100);
    client.send(at(700));
    client.receive(at(1_300), &stat(2, 1, 0, RunList::EMPTY)).unwrap();
    client.upper.push_many(1, 100);
    client.session.wake();
    assert_eq!(client.send_text(at(1_300)), ["POLL poll<1"], "immediately");
    assert_eq!(client.events(), [Event::WindowClosed]);
    // The window is still closed: the next POLL follows after one RTT.
    client.receive(at(1_900), &stat(3, 1, 0, RunList::EMPTY)).unwrap();
    let next = client.session.poll_timeout().unwrap();
    assert_eq!(next, at(1_900));
    assert_eq!(client.send_text(next), ["POLL poll<1"]);
    client.receive(at(2_500), &stat(4, 1, 10, RunList::EMPTY)).unwrap();
    assert_eq!(client.events(), [Event::WindowReopened]);
    assert_eq!(client.send_text(at(2_500)), ["SD+POLL 1 poll<2"]);
    assert_eq!(client.session.statistics().windows_closed, 1);
}

/// XSTP-10.4.2
#[test]
fn a_session_closes_after_the_no_response_timeout() {
    let (mut client, _) = established(&gateway());
    client.upper.push_many(1, 100);
    let mut now = at(700);
    let mut polls = 0;
    while client.session.state() != State::Closed {
        polls += client.send_text(now).iter().filter(|text| text.contains("POLL")).count();
        now = client.session.poll_timeout().unwrap_or(now).max(now);
        assert!(now < at(200_000));
    }
    assert_eq!(now, at(700) + Span::from_secs(180));
    // Three per RTT for the whole time.
    assert!((890..=910).contains(&polls), "{polls}");
    let events = client.events();
    assert!(matches!(events[..], [Event::OutageBegan { .. }, Event::OutageEnded { .. }, _]));
    assert_eq!(events[2], Event::NoResponse);
    assert_eq!(client.session.statistics().no_response, 1);
}

/// XSTP-10.4.1
#[test]
fn an_idle_session_sends_a_keep_alive_poll() {
    let (mut client, _) = established(&gateway());
    assert!(client.send(at(600)).is_empty());
    let due = client.session.poll_timeout().unwrap();
    assert_eq!(due, at(600) + Span::from_secs(12));
    assert_eq!(client.send_text(due), ["POLL poll<0"]);
}

/// XSTP-10.5.1, XSTP-10.5.3
#[test]
fn an_outage_is_detected_and_gives_no_rtt_sample() {
    let (mut client, _) = established(&gateway());
    client.upper.push_many(1, 100);
    client.send(at(700));
    let mut now = at(700);
    while now < at(3_000) {
        client.send(now);
        now = client.session.poll_timeout().unwrap().max(now);
    }
    let events = client.events();
    assert!(
        matches!(events[..], [Event::OutageBegan { duration }] if duration.as_millis() >= 1_200)
    );
    client.receive(now, &stat(2, 1, 100, RunList::EMPTY)).unwrap();
    assert!(matches!(client.events()[..], [Event::OutageEnded { .. }]));
    // Not the 2.3 s of the outage; but the RTT may have become longer, and SRTT doubles.
    assert_eq!(client.session.srtt(), Some(Span::from_millis(1_200)));
}

/// XSTP-7.2.4
#[test]
fn full_packets_are_not_shortened_for_piggybacking() {
    let (mut client, _) = established(&gateway());
    client.upper.push(&[7; 1444]);
    client.upper.note = alloc::vec![9; 20];
    client.receive(at(700), &Segment::poll(0, Poll { seq: 1, next: Seq24::ZERO })).unwrap();
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
fn due_control_is_piggybacked_on_a_short_packet() {
    let (mut client, mut server) = established(&gateway());
    client.upper.push(b"short");
    client.upper.note = b"note".to_vec();
    client.receive(at(700), &Segment::poll(0, Poll { seq: 1, next: Seq24::ZERO })).unwrap();
    let sent = client.send(at(700));
    assert_eq!(sent.len(), 1);
    server.receive_all(at(1_000), &sent);
    assert_eq!(server.upper.delivered, [(0, b"short".to_vec())]);
    assert_eq!(server.upper.received_notes, [b"note".to_vec()]);
    assert_eq!(server.send_text(at(1_000)), ["STAT have<1"]);
}

/// XSTP-7.2.5
#[test]
fn the_segment_size_follows_the_path_mtu() {
    let (mut client, _) = established(&gateway());
    client.session.set_max_segment(600);
    client.upper.push_many(1, 597);
    assert!(client.send(at(700)).is_empty(), "no packet fits");
    client.upper.waiting.clear();
    client.upper.push_many(1, 596);
    client.session.wake();
    assert_eq!(client.send(at(701))[0].len(), 600);
    client.session.set_max_segment(1_000_000);
    assert_eq!(client.session.max_segment(), 1448, "at most the configured size");
    let server = Peer::server(&SessionConfig { max_segment: 700, ..gateway() });
    let mut pair = [Peer::client(&gateway()), server];
    let begin = pair[0].send(at(0));
    pair[1].receive_all(at(300), &begin);
    let response = pair[1].send(at(300));
    pair[0].receive_all(at(600), &response);
    pair[0].session.set_max_segment(1_448);
    assert_eq!(pair[0].session.max_segment(), 700, "at most the limit of the peer");
}

/// XSTP-10.6.1
#[test]
fn a_poll_follows_the_second_retransmission() {
    let (mut client, _) = established(&gateway());
    // A queue of full packets: no other rule makes a POLL due.
    client.upper.push_many(2_000, 1_400);
    let mut now = at(700);
    let mut run_until = |client: &mut Peer, end: Instant| {
        let mut sent = Vec::new();
        while now < end {
            sent.extend(client.send_text(now));
            now = client.session.poll_timeout().unwrap().max(now).min(end);
        }
        sent
    };
    run_until(&mut client, at(1_350));
    let polls = |client: &Peer| client.session.statistics().polls_sent as u32;
    // The first loss: packet 0 is retransmitted, and causes no POLL.
    let first = polls(&client);
    client.receive(at(1_350), &stat(first, 0, 4_000, runs(&[1, 1]))).unwrap();
    run_until(&mut client, at(1_360));
    assert_eq!(client.session.statistics().data_retransmitted, 1);
    assert_eq!(polls(&client), first);
    run_until(&mut client, at(1_960));
    // The second loss: a POLL follows the retransmission.
    let second = polls(&client);
    client.receive(at(1_960), &stat(second, 0, 4_000, runs(&[1, 1]))).unwrap();
    let sent = run_until(&mut client, at(1_970));
    assert_eq!(client.session.statistics().data_retransmitted, 2);
    assert_eq!(polls(&client), second + 1, "{sent:?}");
}
