use super::*;
use crate::{DelayedAck, Flags, Segment, TcpConfig};
use std::vec::Vec;

const CLIENT: Ports = Ports { from: 1_000, to: 80 };

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

fn pair(config: &TcpConfig) -> (Endpoint, Endpoint) {
    (Endpoint::connect(config, CLIENT, 1), Endpoint::listen(config, 80, 2))
}

/// Exchanges segments until neither end sends any more at `now`; returns them.
fn settle(now: Instant, a: &mut Endpoint, b: &mut Endpoint) -> Vec<Segment> {
    let mut all = Vec::new();
    loop {
        let before = all.len();
        while let Some(segment) = a.poll_transmit(now) {
            b.handle_segment(now, &segment);
            all.push(segment);
        }
        while let Some(segment) = b.poll_transmit(now) {
            a.handle_segment(now, &segment);
            all.push(segment);
        }
        if all.len() == before {
            return all;
        }
    }
}

fn open(config: &TcpConfig) -> (Endpoint, Endpoint) {
    let (mut client, mut server) = pair(config);
    settle(at(0), &mut client, &mut server);
    (client, server)
}

#[test]
fn three_segments_open_a_connection_and_agree_on_options() {
    let (mut client, mut server) = pair(&TcpConfig::cubic());
    let all = settle(at(0), &mut client, &mut server);
    assert_eq!(all.len(), 3);
    assert_eq!((all[0].flags.syn, all[0].acknowledgement, all[0].len()), (true, None, 40));
    assert_eq!((all[1].flags.syn, all[1].acknowledgement, all[1].len()), (true, Some(1), 40));
    assert_eq!((all[2].flags, all[2].acknowledgement), (Flags::default(), Some(1)));
    assert_eq!(all[2].len(), 32, "timestamps");
    for end in [&mut client, &mut server] {
        assert_eq!(end.state(), State::Established);
        assert_eq!(end.poll_event(), Some(Event::Established));
        let snapshot = end.snapshot();
        assert_eq!(snapshot.segment, 1_448);
        assert_eq!(snapshot.congestion_window, 14_480, "ten segments (RFC 6928)");
        assert_eq!(end.poll_timeout(), None);
    }
}

#[test]
fn an_option_that_one_end_lacks_is_not_used() {
    let plain = TcpConfig { window_scale: false, ..TcpConfig::new_reno() };
    let mut client = Endpoint::connect(&TcpConfig::cubic(), CLIENT, 1);
    let mut server = Endpoint::listen(&plain, 80, 2);
    let all = settle(at(0), &mut client, &mut server);
    assert_eq!(all[1].len(), 24, "MSS alone");
    assert_eq!((all[2].len(), all[2].window), (20, 65_535));
    assert_eq!(client.snapshot().segment, 1_460);
}

#[test]
fn a_window_beyond_64_kilobytes_is_shifted() {
    let (mut client, _) = pair(&TcpConfig::cubic());
    let syn = client.poll_transmit(at(0)).unwrap();
    // 16 MiB >> 9 = 32768; SYN's own window is not shifted.
    assert_eq!((syn.options.window_scale, syn.window), (Some(9), 65_535));
    let (mut client, mut server) = open(&TcpConfig::cubic());
    client.write(1);
    assert_eq!(settle(at(10), &mut client, &mut server)[0].window, 32_768);
}

#[test]
fn closing_goes_through_the_states_of_rfc_9293() {
    let (mut client, mut server) = open(&TcpConfig::cubic());
    client.write(10);
    client.close();
    assert_eq!(client.state(), State::FinWait1);
    let fin = client.poll_transmit(at(1)).unwrap();
    assert!(fin.flags.fin && fin.payload.len == 10, "FIN is piggybacked on the last data");
    server.handle_segment(at(1), &fin);
    assert_eq!(server.state(), State::CloseWait);
    assert_eq!(client.acknowledged(), 0);
    settle(at(1), &mut server, &mut client);
    assert_eq!((client.state(), client.acknowledged()), (State::FinWait2, 10));
    assert_eq!(server.read(99).map(|piece| piece.len), Some(10));
    assert!(server.is_finished());
    server.close();
    assert_eq!(server.state(), State::LastAck);
    settle(at(2), &mut server, &mut client);
    assert_eq!((client.state(), server.state()), (State::TimeWait, State::Closed));
    let wait = client.poll_timeout().unwrap();
    assert_eq!(wait, at(2) + Span::from_secs(60));
    client.handle_timeout(wait);
    let events: Vec<Event> = core::iter::from_fn(|| client.poll_event()).collect();
    let done = Event::Closed(CloseReason::Done);
    assert_eq!(events, [Event::Established, Event::PeerClosed, done]);
    assert_eq!(client.write(5), 0);
}

#[test]
fn simultaneous_close() {
    let (mut client, mut server) = open(&TcpConfig::cubic());
    client.close();
    server.close();
    let (one, other) = (client.poll_transmit(at(1)).unwrap(), server.poll_transmit(at(1)).unwrap());
    client.handle_segment(at(2), &other);
    server.handle_segment(at(2), &one);
    assert_eq!((client.state(), server.state()), (State::Closing, State::Closing));
    settle(at(2), &mut client, &mut server);
    assert_eq!((client.state(), server.state()), (State::TimeWait, State::TimeWait));
}

#[test]
fn simultaneous_open() {
    let config = TcpConfig::cubic();
    let mut one = Endpoint::connect(&config, CLIENT, 1);
    let mut other = Endpoint::connect(&config, CLIENT.back(), 2);
    let (a, b) = (one.poll_transmit(at(0)).unwrap(), other.poll_transmit(at(0)).unwrap());
    one.handle_segment(at(1), &b);
    other.handle_segment(at(1), &a);
    assert_eq!((one.state(), other.state()), (State::SynReceived, State::SynReceived));
    settle(at(1), &mut one, &mut other);
    assert_eq!((one.state(), other.state()), (State::Established, State::Established));
}

#[test]
fn a_reset_ends_it_and_an_abort_sends_one() {
    let (mut client, mut server) = open(&TcpConfig::cubic());
    client.abort();
    let all = settle(at(1), &mut client, &mut server);
    assert!(all.len() == 1 && all[0].flags.reset);
    assert_eq!((client.state(), server.state()), (State::Closed, State::Closed));
    assert_eq!(server.poll_event(), Some(Event::Established));
    assert_eq!(server.poll_event(), Some(Event::Closed(CloseReason::Reset)));
}

#[test]
fn connection_to_an_unresponsive_peer_times_out() {
    let config = TcpConfig { retries: 3, ..TcpConfig::new_reno() };
    let mut client = Endpoint::connect(&config, CLIENT, 1);
    let mut sent = Vec::new();
    for _ in 0..10 {
        let now = client.poll_timeout().unwrap_or(at(0));
        if now > at(0) {
            client.handle_timeout(now);
        }
        sent.extend(client.poll_transmit(now).map(|_| now.as_secs_f64()));
    }
    assert_eq!(sent, [0.0, 1.0, 3.0, 7.0], "doubling (RFC 6298, rule 5.5)");
    assert_eq!(client.poll_event(), Some(Event::Closed(CloseReason::TimedOut)));
}

#[test]
fn single_segment_has_a_delayed_acknowledgement() {
    let (mut client, mut server) = open(&TcpConfig::new_reno());
    client.write(3 * 1_460);
    let sent: Vec<Segment> = core::iter::from_fn(|| client.poll_transmit(at(10))).collect();
    assert_eq!(sent.len(), 3);
    server.handle_segment(at(10), &sent[0]);
    server.read(u64::MAX);
    assert_eq!(server.poll_transmit(at(10)), None);
    assert_eq!(server.poll_timeout(), Some(at(210)));
    server.handle_segment(at(20), &sent[1]);
    assert_eq!(server.poll_transmit(at(20)).unwrap().acknowledgement, Some(1 + 2_920));
    server.handle_segment(at(30), &sent[2]);
    assert_eq!(server.poll_transmit(at(30)), None);
    server.handle_timeout(at(230));
    assert_eq!(server.poll_transmit(at(230)).unwrap().acknowledgement, Some(1 + 4_380));
}

#[test]
fn responses_carry_acknowledgements_until_one_is_late() {
    let delayed_ack = DelayedAck { at_once: 100, with_answers: true, ..DelayedAck::USUAL };
    let (mut client, mut server) = open(&TcpConfig { delayed_ack, ..TcpConfig::new_reno() });
    let mut ask = |server: &mut Endpoint, ms| {
        client.write(100);
        let request = client.poll_transmit(at(ms)).expect("the window is open");
        server.handle_segment(at(ms), &request);
        server.read(u64::MAX);
        server.poll_transmit(at(ms))
    };
    let first = ask(&mut server, 10).expect("the first segments are acknowledged at once");
    assert_eq!((first.acknowledgement, first.payload.len), (Some(101), 0));
    server.write(50);
    assert_eq!(server.poll_transmit(at(20)).expect("an answer").payload.len, 50);
    // The next request is acknowledged with its response.
    assert_eq!(ask(&mut server, 300), None);
    server.write(50);
    assert_eq!(server.poll_transmit(at(310)).expect("an answer").acknowledgement, Some(201));
    // No response in time: the acknowledgement is sent standalone, and later ones immediately.
    assert_eq!(ask(&mut server, 600), None);
    server.handle_timeout(at(800));
    assert_eq!(server.poll_transmit(at(800)).expect("late").acknowledgement, Some(301));
    assert_eq!(ask(&mut server, 900).expect("at once").acknowledgement, Some(401));
}

#[test]
fn sack_blocks_list_the_most_recent_first() {
    let (mut client, mut server) = open(&TcpConfig::cubic());
    client.write(10 * 1_448);
    let sent: Vec<Segment> = core::iter::from_fn(|| client.poll_transmit(at(10))).collect();
    let number = |index: u64| 1 + index * 1_448;
    for (index, blocks) in [
        (2, Vec::from([(2, 3)])),
        (6, Vec::from([(6, 7), (2, 3)])),
        (4, Vec::from([(4, 5), (6, 7), (2, 3)])),
        (5, Vec::from([(4, 7), (2, 3)])),
        (9, Vec::from([(9, 10), (4, 7), (2, 3)])),
    ] {
        server.handle_segment(at(20), &sent[index]);
        let answer = server.poll_transmit(at(20)).expect("at once (RFC 5681, section 4.2)");
        let expected: Vec<_> = blocks.iter().map(|&(a, b)| (number(a), number(b))).collect();
        assert_eq!(answer.options.sack.as_slice(), expected, "after {index}");
        assert_eq!(answer.acknowledgement, Some(1));
    }
    server.handle_segment(at(30), &sent[0]);
    server.handle_segment(at(30), &sent[1]);
    let answer = server.poll_transmit(at(30)).unwrap();
    assert_eq!(answer.acknowledgement, Some(number(3)));
    assert_eq!(answer.options.sack.as_slice().len(), 2);
}

#[test]
fn closed_window_is_probed_until_it_opens() {
    let config = TcpConfig { receive_buffer: 3_000, ..TcpConfig::new_reno() };
    let (mut client, mut server) = open(&config);
    client.write(5_000);
    settle(at(10), &mut client, &mut server);
    assert_eq!(server.readable(), 2_920, "two whole segments: a short one would not pay");
    server.handle_timeout(at(300));
    settle(at(300), &mut client, &mut server);
    // The rest of the window, 80 octets, is too small for a segment; the persist timer sends a
    // probe of one octet.
    let due = client.poll_timeout().expect("the persist timer");
    client.handle_timeout(due);
    let probe = client.poll_transmit(due).unwrap();
    assert_eq!(probe.payload.len, 1);
    server.handle_segment(due, &probe);
    settle(due, &mut client, &mut server);
    while server.readable() > 0 || client.snapshot().flight + client.snapshot().unsent > 0 {
        server.read(u64::MAX);
        settle(due, &mut client, &mut server);
        let now = client.poll_timeout().into_iter().chain(server.poll_timeout()).min();
        let now = now.unwrap_or(due).max(due);
        server.handle_timeout(now);
        client.handle_timeout(now);
        settle(now, &mut client, &mut server);
    }
    assert_eq!(client.counters().data_bytes, 5_000 - 1);
    assert_eq!(client.counters().timeouts, 0, "asking is no sign of congestion");
}

#[test]
#[should_panic(expected = "bytes that belong elsewhere")]
fn octets_of_another_connection_are_detected() {
    let (mut client, mut server) = open(&TcpConfig::cubic());
    client.write(5_000);
    let mut sent = client.poll_transmit(at(10)).unwrap();
    sent.payload.offset += 1;
    server.handle_segment(at(20), &sent);
}

#[test]
fn segments_of_no_connection_do_nothing() {
    let (mut client, mut server) = open(&TcpConfig::cubic());
    client.write(100);
    let data = client.poll_transmit(at(10)).unwrap();
    let mut listening = Endpoint::listen(&TcpConfig::cubic(), 80, 3);
    listening.handle_segment(at(10), &data);
    assert_eq!((listening.state(), listening.poll_transmit(at(10))), (State::Listen, None));
    // An acknowledgement of data that was never sent is answered and ignored.
    let beyond = Segment { acknowledgement: Some(5_000), payload: Default::default(), ..data };
    server.handle_segment(at(10), &beyond);
    assert_eq!(server.poll_transmit(at(10)).unwrap().acknowledgement, Some(1));
    assert_eq!(server.snapshot().flight, 0);
}
