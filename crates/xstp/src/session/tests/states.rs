//! Sessions in every state with every kind of segment: transitions and responses (XSTP-6.2.1).

use super::super::lifecycle::{StateInput, step};
use super::*;
use crate::wire::{Begin, BeginAck, Delivery, Echo, End, Poll, RunList, Stat, Ustat};

const OURS: End = End { incarnation: 1 };

fn begin(incarnation: u32) -> Begin {
    Begin { incarnation, window: 100, max_segment: 1448, delivery: Delivery::Immediate }
}

/// A session in `state` that has neither sent nor received a packet.
fn in_state(state: State) -> Peer {
    let (_, mut peer) = established(&gateway());
    match state {
        State::Listening => return Peer::server(&gateway()),
        State::Opening => {
            let mut client = Peer::client(&gateway());
            client.send(at(0));
            client.send(at(620));
            return client;
        }
        State::Closed => peer.session.abort(at(610)),
        State::Established => {}
        State::Closing => peer.session.end(at(610)),
        State::HalfClosedLocal => {
            peer.session.end(at(610));
            peer.send(at(610));
            peer.receive(at(620), &Segment::end_ack(Seq24::ZERO, OURS)).unwrap();
        }
        State::HalfClosedRemote => peer.receive(at(610), &Segment::end(Seq24::ZERO, OURS)).unwrap(),
        State::LastClosing => {
            peer.receive(at(610), &Segment::end(Seq24::ZERO, OURS)).unwrap();
            peer.session.end(at(610));
        }
    }
    peer.send(at(620));
    peer.events();
    assert_eq!(peer.session.state(), state);
    peer
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

/// Types of the response; empty if there is none.
fn response(peer: &mut Peer, now: Instant) -> alloc::string::String {
    let sent = peer.send_text(now);
    // An END that was due before is no response.
    let own = |text: &&alloc::string::String| !text.starts_with("END ") && *text != "END";
    let kinds: Vec<&str> =
        sent.iter().filter(own).filter_map(|text| text.split(' ').next()).collect();
    kinds.join(" ")
}

/// XSTP-6.2.1
#[test]
fn sessions_follow_the_state_table() {
    for state in State::ALL {
        for (input, segment) in segments() {
            let mut peer = in_state(state);
            let delivered = peer.upper.delivered.len();
            let result = peer.receive(at(630), &segment);
            let (expected, _) = step(state, input);
            // Only a server accepts BGN, and only a client BGNAK.
            let client = state == State::Opening;
            let is_begin = matches!(input, StateInput::Begin | StateInput::BeginNewer);
            let wrong_role = is_begin && client || input == StateInput::BeginAck && !client;
            let expected = if wrong_role { state } else { expected };
            assert_eq!(peer.session.state(), expected, "{state:?} × {segment:?}: {result:?}");
            let taken = peer.upper.delivered.len() - delivered;
            let takes = input == StateInput::Data && state.is_connected();
            assert_eq!(taken, usize::from(takes), "{state:?} × {segment:?}");
        }
    }
}

/// XSTP-6.2.1: responses in each state to BGN, newer BGN, BGNAK, END, ENDAK, RST, SD, POLL, STAT
/// and USTAT.
#[test]
fn sessions_respond_as_the_state_table_says() {
    let ack = "STAT+BGN+AK";
    let bare_ack = "BGN+AK";
    let expected = [
        (State::Closed, ["RST", "RST", "", "END+AK", "", "", "RST", "RST", "", ""]),
        (State::Listening, [bare_ack, bare_ack, "", "END+AK", "", "", "", "", "", ""]),
        (State::Opening, ["", "", "", "", "", "", "", "STAT", "", ""]),
        (State::Established, [bare_ack, "", "", "END+AK", "", "", "", "STAT", "", ""]),
        (State::Closing, [bare_ack, "", "", "END+AK", "", "", "", "STAT", "", ""]),
        (State::HalfClosedLocal, [bare_ack, "", "", "END+AK", "", "", "", "STAT", "", ""]),
        (State::HalfClosedRemote, [bare_ack, "", "", "END+AK", "", "", "", "STAT", "", ""]),
        (State::LastClosing, [bare_ack, "", "", "END+AK", "", "", "", "STAT", "", ""]),
    ];
    for (state, responses) in expected {
        for ((_, segment), expected) in segments().into_iter().zip(responses) {
            let mut peer = in_state(state);
            let _ = peer.receive(at(630), &segment);
            assert_eq!(response(&mut peer, at(630)), expected, "{state:?} × {segment:?}");
        }
    }
    // In response to a BGN with POLL, BGNAK has a STAT.
    let mut listener = Peer::server(&gateway());
    let poll = Poll { seq: 1, next: Seq24::ZERO };
    listener.receive(at(0), &Segment::begin(Seq24::ZERO, 0, begin(1)).and_poll(0, poll)).unwrap();
    assert_eq!(response(&mut listener, at(0)), ack);
}
