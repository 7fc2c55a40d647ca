//! Real sessions in every state, fed every kind of segment: what the table says happens.

use super::super::lifecycle::{StateInput, step};
use super::*;
use crate::wire::{Begin, BeginAck, Delivery, Echo, End, Poll, RunList, Stat, Ustat};

const OURS: End = End { incarnation: 1 };

fn begin(incarnation: u32) -> Begin {
    Begin { incarnation, window: 100, max_segment: 1448, delivery: Delivery::Immediate }
}

/// A session in this state, which has neither sent nor received a packet.
fn in_state(state: State) -> Hand {
    let (_, mut hand) = established(&gateway());
    match state {
        State::Listening => return Hand::server(&gateway()),
        State::Opening => {
            let mut client = Hand::client(&gateway());
            client.send(at(0));
            client.send(at(620));
            return client;
        }
        State::Closed => hand.session.abort(at(610)),
        State::Established => {}
        State::Closing => hand.session.end(at(610)),
        State::HalfClosedLocal => {
            hand.session.end(at(610));
            hand.send(at(610));
            hand.hear(at(620), &Segment::end_ack(Seq24::ZERO, OURS)).unwrap();
        }
        State::HalfClosedRemote => hand.hear(at(610), &Segment::end(Seq24::ZERO, OURS)).unwrap(),
        State::LastClosing => {
            hand.hear(at(610), &Segment::end(Seq24::ZERO, OURS)).unwrap();
            hand.session.end(at(610));
        }
    }
    hand.send(at(620));
    hand.events();
    assert_eq!(hand.session.state(), state);
    hand
}

fn segments() -> Vec<(StateInput, Segment<'static>)> {
    let poll = Poll { seq: 50, next: Seq24::ZERO };
    let echo = Echo { seq: 1, timestamp: 0 };
    let stat = Stat {
        echo,
        received_below: Seq24::ZERO,
        window: 100,
        arrival: None,
        runs: RunList::EMPTY,
    };
    let gap = RunList::new(0, &[1]).unwrap();
    let number = Seq24::ZERO;
    Vec::from([
        (StateInput::Begin, Segment::begin(number, 0, begin(1))),
        (StateInput::BeginNewer, Segment::begin(number, 0, begin(2))),
        (StateInput::BeginAck, Segment::begin_ack(number, BeginAck { begin: begin(1), echo: 0 })),
        (StateInput::End, Segment::end(number, OURS)),
        (StateInput::EndAck, Segment::end_ack(number, OURS)),
        (StateInput::Reset, Segment::reset(Seq24::ZERO, OURS)),
        (StateInput::Data, Segment::data(number, b"data")),
        (StateInput::Poll, Segment::poll(0, poll)),
        (StateInput::Report, Segment::stat(number, stat)),
        (StateInput::Report, Segment::ustat(number, Ustat::new(number, gap).unwrap())),
    ])
}

/// What is answered: the types, nothing for nothing.
fn answer(hand: &mut Hand, now: Instant) -> alloc::string::String {
    let said = hand.said(now);
    // Handshakes that wait anyway are not answers.
    let own = |text: &&alloc::string::String| !text.starts_with("END ") && *text != "END";
    let kinds: Vec<&str> =
        said.iter().filter(own).filter_map(|text| text.split(' ').next()).collect();
    kinds.join(" ")
}

/// XSTP-6.2.1
#[test]
fn sessions_do_what_the_table_says() {
    for state in State::ALL {
        for (input, segment) in segments() {
            let mut hand = in_state(state);
            let delivered = hand.upper.delivered.len();
            let result = hand.hear(at(630), &segment);
            let (expected, _) = step(state, input);
            // Only a server takes BGN, only a client BGNAK.
            let client = state == State::Opening;
            let is_begin = matches!(input, StateInput::Begin | StateInput::BeginNewer);
            let wrong_end = is_begin && client || input == StateInput::BeginAck && !client;
            let expected = if wrong_end { state } else { expected };
            assert_eq!(hand.session.state(), expected, "{state:?} × {segment:?}: {result:?}");
            let taken = hand.upper.delivered.len() - delivered;
            let takes = input == StateInput::Data && state.is_connected();
            assert_eq!(taken, usize::from(takes), "{state:?} × {segment:?}");
        }
    }
}

/// XSTP-6.2.1: the answers, for each state: to BGN, newer BGN, BGNAK, END, ENDAK, RST, SD, POLL,
/// STAT and USTAT.
#[test]
fn sessions_answer_what_the_table_says() {
    let ack = "STAT+BGN+AK";
    let lone_ack = "BGN+AK";
    let expected = [
        (State::Closed, ["RST", "RST", "", "END+AK", "", "", "RST", "RST", "", ""]),
        (State::Listening, [lone_ack, lone_ack, "", "END+AK", "", "", "", "", "", ""]),
        (State::Opening, ["", "", "", "", "", "", "", "STAT", "", ""]),
        (State::Established, [lone_ack, "", "", "END+AK", "", "", "", "STAT", "", ""]),
        (State::Closing, [lone_ack, "", "", "END+AK", "", "", "", "STAT", "", ""]),
        (State::HalfClosedLocal, [lone_ack, "", "", "END+AK", "", "", "", "STAT", "", ""]),
        (State::HalfClosedRemote, [lone_ack, "", "", "END+AK", "", "", "", "STAT", "", ""]),
        (State::LastClosing, [lone_ack, "", "", "END+AK", "", "", "", "STAT", "", ""]),
    ];
    for (state, answers) in expected {
        for ((_, segment), expected) in segments().into_iter().zip(answers) {
            let mut hand = in_state(state);
            let _ = hand.hear(at(630), &segment);
            assert_eq!(answer(&mut hand, at(630)), expected, "{state:?} × {segment:?}");
        }
    }
    // With a POLL the BGNAK brings the STAT.
    let mut listener = Hand::server(&gateway());
    let poll = Poll { seq: 1, next: Seq24::ZERO };
    listener.hear(at(0), &Segment::begin(Seq24::ZERO, 0, begin(1)).and_poll(0, poll)).unwrap();
    assert_eq!(answer(&mut listener, at(0)), ack);
}
