//! A peer that means no good: whatever it sends is an error or has a bound.

use super::*;
use crate::Class;
use crate::frame::{Frame, StreamHead, Writer};
use proptest::prelude::*;

mod coding;

const MINIMUM: u64 = 4 << 10;
const SHARED: u64 = 64 << 10;

fn config() -> RelayConfig {
    RelayConfig {
        max_streams: 8,
        stream_minimum: MINIMUM,
        shared_credit: SHARED,
        receive_pool: 256 << 10,
        send_pool: 256 << 10,
        unsent_limit: 32 << 10,
        ..RelayConfig::new("test")
    }
}

/// The hub's streams; the peer is the test.
fn hub() -> Streams {
    Streams::new(&config(), true, Instant::ZERO + Span::from_secs(1))
}

fn theirs(number: u32) -> StreamId {
    StreamId::new(number, false)
}

fn ours(number: u32) -> StreamId {
    StreamId::new(number, true)
}

fn open() -> Open {
    Open { priority: Priority::Normal, target: Target::name("server", 80) }
}

/// A payload of one STREAM frame.
fn stream(id: StreamId, offset: u64, data: &[u8], end: bool, charged: bool) -> Vec<u8> {
    let opening = open();
    let open = (offset == 0).then_some(&opening);
    let head = StreamHead { id, offset, open, end, charged, coded: false };
    let mut room = vec![0; data.len() + 64];
    let mut writer = Writer::new(&mut room);
    let written = writer.stream(head, data.len(), 0, true, |out| out.copy_from_slice(data));
    assert_eq!(written, Some(data.len()));
    let len = writer.written();
    room.truncate(len);
    room
}

fn control(frame: &Frame<'_>) -> Vec<u8> {
    let mut room = vec![0; 64];
    let mut writer = Writer::new(&mut room);
    assert!(writer.control(frame));
    let len = writer.written();
    room.truncate(len);
    room
}

fn events(streams: &mut Streams) -> Vec<Event> {
    core::iter::from_fn(|| streams.poll_event()).collect()
}

/// The frames that go out now.
fn sent(streams: &mut Streams) -> Vec<u8> {
    let mut room = [0; 1400];
    match streams.fresh(&mut room) {
        Some((len, handle)) => {
            streams.released(handle);
            room[..len].to_vec()
        }
        None => Vec::new(),
    }
}

/// Whether the stream was reset for what the peer did.
fn assert_violated(streams: &mut Streams, id: StreamId) {
    let reason = ResetReason::Protocol;
    assert!(events(streams).contains(&Event::Reset { stream: id, reason }));
    assert_eq!(sent(streams)[0] & 0x3f, 0x02, "a RESET goes out");
    audit(streams);
}

fn audit(streams: &Streams) {
    fuzzing::audit(streams, &config());
}

#[test]
fn a_stream_that_stays_open_does_not_use_up_the_numbers_above_it() {
    let now = Instant::ZERO + Span::from_secs(1);
    let mut terminal = Streams::new(&config(), false, now);
    let open = |terminal: &mut Streams| {
        let target = Target::name("server", 80);
        terminal.open(now, target, Priority::Normal)
    };
    let stays = open(&mut terminal).unwrap();
    sent(&mut terminal);
    for number in 1..NUMBER_SPAN + 100 {
        let id = open(&mut terminal).expect("the peer has seen all before it");
        assert_eq!(id.number(), number);
        sent(&mut terminal);
        let over = Frame::Reset { id, final_offset: 0, charged: 0, code: 0 };
        terminal.deliver(&control(&over));
        sent(&mut terminal);
        events(&mut terminal);
    }
    assert!(terminal.has(stays) && terminal.streams.len() == 1);
    assert_eq!(terminal.free_local(), 7);
}

/// RLY-4.1, RLY-4.4
#[test]
fn credit_is_not_to_be_taken() {
    let mut hub = hub();
    hub.deliver(&stream(theirs(0), 0, &[1; 100], false, false));
    assert_eq!(events(&mut hub).len(), 2);
    hub.deliver(&stream(theirs(0), MINIMUM - 10, &[1; 11], false, false));
    assert_violated(&mut hub, theirs(0));
    assert_eq!(hub.statistics().credit_violations, 1);
}

#[test]
fn shared_credit_has_an_end_and_comes_after_the_own() {
    let mut hub = hub();
    hub.deliver(&stream(theirs(0), 0, &[1; 100], false, false));
    events(&mut hub);
    hub.deliver(&stream(theirs(0), MINIMUM - 1, &[1; 10], false, true));
    assert_violated(&mut hub, theirs(0));
    hub.deliver(&stream(theirs(1), 0, &[1; MINIMUM as usize], false, false));
    events(&mut hub);
    // Nobody reads: what is held is covered from half of the pool, then there is an end to it.
    let mut at = MINIMUM;
    while hub.statistics().credit_violations < 2 {
        assert!(at < MINIMUM + SHARED + config().receive_pool / 2 + 2048, "no end");
        hub.deliver(&stream(theirs(1), at, &[1; 1024], false, true));
        audit(&hub);
        at += 1024;
    }
    assert!(at > MINIMUM + SHARED);
    assert_violated(&mut hub, theirs(1));
}

#[test]
fn what_credit_does_not_permit_does_not_wait_for_the_link() {
    let now = Instant::ZERO + Span::from_secs(1);
    let mut terminal = Streams::new(&config(), false, now);
    let (minimum_credit, shared_credit) = (MINIMUM as u32, 0);
    terminal.set_peer(Limits { minimum_credit, shared_credit, ..terminal.peer }, false);
    let id = terminal.open(now, Target::name("server", 80), Priority::Normal).unwrap();
    assert_eq!(terminal.write(now, id, &[1; 10_000]), Ok(10_000));
    assert!(terminal.waits_for_link(id));
    // All that may be sent is acknowledged at once.
    while !sent(&mut terminal).is_empty() {}
    assert_eq!(terminal.held(id), 10_000 - MINIMUM);
    assert!(!terminal.waits_for_link(id));
}

/// RLY-4.2
#[test]
fn gaps_below_a_charged_byte_cost_shared_credit_too() {
    let mut hub = hub();
    for number in 0..2 {
        hub.deliver(&stream(theirs(number), 0, &[1; 10], false, false));
    }
    events(&mut hub);
    // One byte at the end of all the shared credit, and no more for anybody.
    hub.deliver(&stream(theirs(0), MINIMUM + SHARED - 1, &[1], false, true));
    assert!(events(&mut hub).is_empty());
    audit(&hub);
    hub.deliver(&stream(theirs(1), MINIMUM, &[1], false, true));
    assert_violated(&mut hub, theirs(1));
    // Beyond it not even the one who has it.
    hub.deliver(&stream(theirs(0), 1 << 23, &[1], false, true));
    assert_violated(&mut hub, theirs(0));
    assert!(hub.receive_allocated() < 64 << 10);
}

/// RLY-2.6
#[test]
fn resets_of_streams_never_heard_of_take_bounded_memory() {
    let mut hub = hub();
    for number in 0..150_000 {
        let id = theirs(number);
        hub.deliver(&control(&Frame::Reset { id, final_offset: 0, charged: 0, code: 0 }));
    }
    assert_eq!(hub.controls.len(), 1 << 17, "answers wait for a peer that takes none");
    assert_eq!(hub.statistics().bad_frames, 150_000 - (1 << 17));
    let mut room = [0; 1400];
    let (_, handle) = hub.fresh(&mut room).expect("answers");
    hub.deliver(&stream(theirs(140_000), 0, b"x", false, false));
    assert!(hub.streams.is_empty(), "those in packets count as long as they are not acknowledged");
    hub.released(handle);
    hub.deliver(&stream(theirs(140_000), 0, b"x", false, false));
    assert_eq!(hub.streams.len(), 1);
}

#[test]
fn ranges_ahead_of_gaps_have_a_bound_over_all_streams() {
    let mut hub = hub();
    hub.pool.ranges = (1 << 18) - 1;
    hub.deliver(&stream(theirs(0), 0, &[1; 10], false, false));
    hub.deliver(&stream(theirs(0), 20, &[1; 10], false, false));
    events(&mut hub);
    hub.deliver(&stream(theirs(0), 40, &[1; 10], false, false));
    assert_eq!(events(&mut hub).len(), 1, "reset");
    hub.deliver(&control(&Frame::Reset { id: theirs(0), final_offset: 50, charged: 0, code: 0 }));
    assert_eq!(hub.pool.ranges, (1 << 18) - 1, "and forgotten");
}

/// A hub to which 40 KB have come on shared credit, all of them read.
fn read_40_kilobytes_on_shared_credit() -> Streams {
    let mut hub = hub();
    let now = hub.now;
    for at in 0..11 {
        hub.deliver(&stream(theirs(0), at * MINIMUM, &[1; MINIMUM as usize], false, at > 0));
        while hub.peek(theirs(0)) != b"" {
            let len = hub.peek(theirs(0)).len();
            hub.consume(now, theirs(0), len).expect("open");
        }
    }
    hub
}

/// RLY-4.3, RLY-4.6
#[test]
fn an_announcement_goes_in_a_note_or_else_in_a_frame() {
    let at = |hub: &mut Streams, start: Instant, millis| {
        hub.set_time(start + Span::from_millis(millis), None, None);
        hub.handle_timeout();
        sent(hub)
    };
    let mut hub = read_40_kilobytes_on_shared_credit();
    let start = hub.now;
    assert!(at(&mut hub, start, 249).is_empty(), "a note may yet come");
    assert_eq!(at(&mut hub, start, 250), [0x04, 40]);
    // It rides in a note; nothing shows that the note has arrived.
    let mut hub = read_40_kilobytes_on_shared_credit();
    let mut note = [0; 20];
    let len = hub.note(&mut note);
    assert_eq!(note[..len], [0, 40]);
    assert!(at(&mut hub, start, 899).is_empty(), "one and a half round trips are not over");
    assert_eq!(at(&mut hub, start, 900), [0x04, 40]);
}

/// RLY-4.6: other streams may wait for that credit, and have nothing to send without it.
#[test]
fn shared_credit_of_a_stream_that_this_side_resets_is_announced() {
    let mut hub = hub();
    for at in 0..4 {
        hub.deliver(&stream(theirs(0), at * MINIMUM, &[1; MINIMUM as usize], false, at > 0));
    }
    events(&mut hub);
    hub.reset(theirs(0), ResetReason::Aborted).expect("open");
    assert_eq!(sent(&mut hub)[0] & 0x3f, 0x02, "the reset");
    let mut note = [0; 20];
    let len = hub.note(&mut note);
    assert_eq!(note[..len], [0, 12], "12 KiB are given back");
}

/// RLY-4.6
#[test]
fn what_a_lost_note_said_is_said_again_before_the_peer_runs_dry() {
    let config = RelayConfig { receive_pool: 16 << 20, ..config() };
    let mut hub = Streams::new(&config, true, Instant::ZERO + Span::from_secs(1));
    let start = hub.now;
    let (mut limit, mut offset, mut lost) = (0, 0, None);
    // A peer that sends 100 KB/s, once a little faster, so that the window grows at a bound; and
    // every 200 ms a note, of which the one with that word is lost.
    for step in 0..4_000 {
        hub.set_time(start + Span::from_millis(10 * step), None, None);
        if step % 20 == 0 {
            let mut room = [0; 20];
            let len = hub.note(&mut room);
            let mut reader = crate::frame::Reader::new(&room[..len]);
            while !reader.is_empty() {
                let (Some(_), said) = reader.note().expect("ours") else { continue };
                if lost.is_none() && said > limit + 1_000_000 && limit > 0 {
                    lost = Some(said);
                } else {
                    limit = limit.max(said);
                }
            }
        }
        if lost.is_some_and(|lost| limit >= lost) {
            return;
        }
        let packets = if step == 300 { 150 } else { 1 };
        for _ in 0..packets {
            let charged = limit == 0 && offset >= MINIMUM;
            let may = limit == 0 || offset < limit;
            assert!(may, "dry at {offset} after {step} steps, {lost:?} lost");
            hub.deliver(&stream(theirs(0), offset, &[1; 1024], false, charged));
            offset += 1024;
            while hub.peek(theirs(0)) != b"" {
                let (now, len) = (hub.now, hub.peek(theirs(0)).len());
                hub.consume(now, theirs(0), len).expect("open");
            }
        }
    }
    panic!("{lost:?} was never said again");
}

/// RLY-4.4
#[test]
fn an_end_without_data_needs_no_credit() {
    let mut hub = hub();
    hub.deliver(&stream(theirs(0), 0, &[1; MINIMUM as usize], false, false));
    hub.deliver(&stream(theirs(0), MINIMUM, &[1; 4000], false, true));
    hub.deliver(&stream(theirs(0), MINIMUM + 4000, &[], true, false));
    assert!(!events(&mut hub).iter().any(|event| matches!(event, Event::Reset { .. })));
    assert!(hub.streams.get(&theirs(0)).expect("open").receive.is_complete());
}

#[test]
fn two_ends_or_bytes_beyond_the_end_are_a_contradiction() {
    for second in [
        stream(theirs(0), 50, &[1; 60], false, false),
        stream(theirs(0), 50, &[1; 10], true, false),
        stream(theirs(0), 99, &[], true, false),
    ] {
        let mut hub = hub();
        hub.deliver(&stream(theirs(0), 0, &[1; 10], false, false));
        hub.deliver(&stream(theirs(0), 90, &[1; 10], true, false));
        events(&mut hub);
        hub.deliver(&second);
        assert_violated(&mut hub, theirs(0));
        assert_eq!(hub.statistics().bad_frames, 1);
    }
}

/// RLY-1.9, RLY-2.1, RLY-2.5
#[test]
fn credit_may_overtake_the_opening_of_its_stream() {
    let mut hub = hub();
    let limit = 1 << 20;
    let mut note = [0; 16];
    let mut writer = Writer::new(&mut note);
    assert!(writer.note(Some(theirs(1)), limit));
    let len = writer.written();
    hub.deliver(&control(&Frame::Credit { id: theirs(0), limit }));
    hub.noted(&note[..len]);
    assert_eq!(events(&mut hub), [], "the streams are not shown before their openings");
    for id in [theirs(0), theirs(1)] {
        hub.deliver(&stream(id, 0, &[], false, false));
        assert!(matches!(events(&mut hub)[..], [Event::Opened { .. }]));
        assert_eq!(hub.streams.get(&id).unwrap().send.credit(0), limit);
    }
    assert_eq!(hub.statistics().bad_frames, 0);
    audit(&hub);
}

/// RLY-4.3
#[test]
fn a_reset_that_contradicts_what_came_resets_all_the_same() {
    let mut hub = hub();
    hub.deliver(&stream(theirs(0), 0, &[1; 100], false, false));
    events(&mut hub);
    let frame = Frame::Reset { id: theirs(0), final_offset: 99, charged: 1 << 60, code: 2 };
    hub.deliver(&control(&frame));
    let (stream, reason) = (theirs(0), ResetReason::TimedOut);
    assert_eq!(events(&mut hub), [Event::Ending { stream, reason }]);
    assert_eq!(hub.statistics().bad_frames, 1);
    audit(&hub);
    hub.consume(Instant::ZERO, stream, 100).expect("it can be read");
    assert_eq!(events(&mut hub), [Event::Reset { stream, reason }]);
    assert!(hub.streams.is_empty());
    audit(&hub);
}

/// RLY-2.4
#[test]
fn what_came_before_a_reset_can_be_read() {
    let mut hub = hub();
    let (id, reason) = (theirs(0), ResetReason::Aborted);
    hub.deliver(&stream(id, 0, &[1; 1000], false, false));
    // Behind a gap, and on shared credit.
    let far = MINIMUM + 300;
    hub.deliver(&stream(id, far, &[2; 100], false, true));
    events(&mut hub);
    hub.write(Instant::ZERO, id, &[3; 5000]).expect("room");
    hub.deliver(&control(&Frame::Reset { id, final_offset: far + 100, charged: 400, code: 0 }));
    assert_eq!(events(&mut hub), [Event::Ending { stream: id, reason }]);
    assert_eq!(sent(&mut hub)[0] & 0x3f, 0x02, "the peer may forget it");
    audit(&hub);
    assert_eq!(hub.pool.shared_returned, hub.pool.shared_received, "all of it");
    assert_eq!(hub.pool.shared_received, 400);
    // Nothing is sent for it any more, and nothing that is late changes it.
    assert!(sent(&mut hub).is_empty());
    assert!(hub.write(Instant::ZERO, id, &[3]).is_err() && hub.end(id).is_err());
    hub.deliver(&stream(id, 1000, &[4; 100], true, false));
    hub.deliver(&control(&Frame::Reset { id, final_offset: 7, charged: 0, code: 2 }));
    hub.deliver(&control(&Frame::Credit { id, limit: 1 << 30 }));
    assert_eq!((events(&mut hub), hub.statistics().bad_frames), (vec![], 0));
    assert_eq!(hub.peek(id), [1; 1000]);
    hub.consume(Instant::ZERO, id, 999).expect("it can be read");
    assert!(events(&mut hub).is_empty());
    hub.consume(Instant::ZERO, id, 1).expect("it can be read");
    assert_eq!(events(&mut hub), [Event::Reset { stream: id, reason }]);
    assert!(hub.streams.is_empty() && hub.peek(id).is_empty());
    audit(&hub);
    // Who does not want it forgets it.
    let id = theirs(1);
    hub.deliver(&stream(id, 0, &[1; 1000], false, false));
    hub.deliver(&control(&Frame::Reset { id, final_offset: 1000, charged: 0, code: 0 }));
    events(&mut hub);
    hub.reset(id, ResetReason::Local).expect("it is there");
    assert!(hub.streams.is_empty() && events(&mut hub).is_empty());
    assert_eq!(hub.receive_allocated(), 0);
    audit(&hub);
}

/// RLY-2.4, RLY-2.5, RLY-2.6
#[test]
fn numbers_that_were_used_or_never_could_be_are_passed_over() {
    let mut hub = hub();
    hub.deliver(&control(&Frame::Reset { id: theirs(3), final_offset: 0, charged: 0, code: 0 }));
    assert_eq!(sent(&mut hub)[0] & 0x3f, 0x02, "the peer may forget it");
    hub.deliver(&stream(theirs(3), 0, b"late", false, false));
    assert!(hub.streams.is_empty());
    hub.deliver(&stream(theirs(NUMBER_SPAN + 64), 0, b"far", false, false));
    assert_eq!(hub.statistics().bad_frames, 1);
    hub.deliver(&stream(ours(0), 0, b"not opened", false, false));
    hub.deliver(&control(&Frame::Credit { id: ours(0), limit: 1 << 20 }));
    hub.deliver(&control(&Frame::Accept { id: ours(0) }));
    assert_eq!(hub.statistics().bad_frames, 3);
    assert!(hub.streams.is_empty());
    assert!(events(&mut hub).is_empty());
}

#[test]
fn what_is_scattered_more_than_packets_can_be_is_refused() {
    let mut hub = hub();
    hub.deliver(&stream(theirs(0), 0, &[1; 10], false, false));
    events(&mut hub);
    for at in 0..200 {
        hub.deliver(&stream(theirs(0), 20 + 2 * at, &[1], false, false));
    }
    assert_violated(&mut hub, theirs(0));
}

#[test]
fn streams_that_are_too_many_are_refused_and_kept_in_bounds() {
    let mut hub = hub();
    for number in 0..100 {
        hub.deliver(&stream(theirs(number), 0, b"x", false, false));
        audit(&hub);
    }
    let opened = events(&mut hub);
    let opened = opened.iter().filter(|event| matches!(event, Event::Opened { .. })).count();
    assert_eq!(opened, 8);
    assert_eq!(hub.statistics().refused, 3 * 8 + 64 - 8, "beyond that they are not even answered");
}

/// RLY-2.1
#[test]
fn bytes_before_the_opening_wait_for_it() {
    let mut hub = hub();
    hub.deliver(&stream(theirs(0), 5, b" world", true, false));
    assert!(events(&mut hub).is_empty());
    assert_eq!(hub.accept(theirs(0)), Ok(()));
    hub.deliver(&stream(theirs(0), 0, b"hello", false, false));
    let target = open().target;
    let stream = theirs(0);
    assert_eq!(events(&mut hub), [Event::Opened { stream, target }, Event::Readable { stream }]);
    assert_eq!(hub.peek(stream), b"hello world");
    let now = hub.now;
    hub.consume(now, stream, 11).expect("open");
    assert_eq!(events(&mut hub), [Event::Ended { stream }]);
}

#[test]
fn pieces_that_overlap_are_put_together() {
    let mut hub = hub();
    let text: Vec<u8> = (0..60).collect();
    for (from, to) in [(10, 20), (30, 40), (50, 60), (5, 35), (0, 7), (38, 52)] {
        hub.deliver(&stream(theirs(0), from as u64, &text[from..to], false, false));
    }
    assert_eq!(hub.peek(theirs(0)), text);
}

#[test]
fn small_frames_of_several_streams_share_a_packet() {
    let mut hub = hub();
    let now = hub.now;
    for _ in 0..5 {
        let id = hub.open(now, Target::name("x", 1), Priority::Normal).expect("opened");
        hub.write(now, id, b"hello").expect("written");
        hub.end(id).expect("ended");
    }
    let payload = sent(&mut hub);
    assert!(!hub.has_fresh());
    let mut reader = crate::frame::Reader::new(&payload);
    let frames = core::iter::from_fn(|| (!reader.is_empty()).then(|| reader.frame())).count();
    assert_eq!(frames, 5);
}

/// RLY-3.1
#[test]
fn a_packet_whose_room_shrank_sends_the_rest_anew() {
    let mut hub = hub();
    let mut peer = Streams::new(&config(), false, Instant::ZERO);
    let now = hub.now;
    let id = hub.open(now, Target::name("x", 1), Priority::Normal).expect("opened");
    let data: Vec<u8> = (0..1000u32).map(|at| at as u8).collect();
    hub.write(now, id, &data).expect("written");
    hub.end(id).expect("ended");
    let mut room = [0; 1400];
    let (_, handle) = hub.fresh(&mut room).expect("something");
    assert!(!hub.has_fresh());
    let len = hub.again(handle, &mut room[..300]);
    assert!(len <= 300);
    peer.deliver(&room[..len]);
    let mut packets = vec![handle];
    while let Some((len, handle)) = hub.fresh(&mut room[..300]) {
        peer.deliver(&room[..len]);
        packets.push(handle);
    }
    assert_eq!(peer.peek(id), data);
    for handle in packets {
        hub.released(handle);
    }
    peer.consume(now, id, 1000).expect("open");
    assert!(events(&mut peer).contains(&Event::Ended { stream: id }));
    assert_eq!(hub.send_pool.buffered, 0);
    assert!(hub.packets.is_empty());
}

/// One thing that a peer, or the layer above, may do.
#[derive(Clone, Debug)]
enum Step {
    Stream { hub: bool, number: u32, offset: u64, len: usize, flags: (bool, bool) },
    Reset { hub: bool, number: u32, final_offset: u64, charged: u64, code: u8 },
    Credit { hub: bool, number: u32, limit: u64 },
    Shared { returned: u64 },
    Note(Vec<u8>),
    Raw(Vec<u8>),
    Open,
    Accept(u32),
    Write(usize, usize),
    Consume(usize),
    Cut(usize),
    End(usize),
    Send(usize),
    Again(usize, usize),
    Release(usize),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Step> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..40);
    let large = || prop_oneof![0u64..300, 0u64..200_000, any::<u64>().prop_map(|n| n >> 1)];
    prop_oneof![
        6 => (any::<bool>(), 0u32..12, 0u64..100_000, 0usize..3000, any::<(bool, bool)>()).prop_map(
            |(hub, number, offset, len, (end, charged))| {
                let flags = (end && offset % 5 == 0, charged);
                Step::Stream { hub, number, offset: offset / 16 * 16, len, flags }
            }
        ),
        1 => (any::<bool>(), 0u32..40, large(), large(), any::<u8>()).prop_map(
            |(hub, number, final_offset, charged, code)| {
                Step::Reset { hub, number, final_offset, charged, code }
            }
        ),
        1 => (any::<bool>(), 0u32..12, 0u64..1 << 40)
            .prop_map(|(hub, number, limit)| Step::Credit { hub, number, limit }),
        1 => (0u64..1 << 40).prop_map(|returned| Step::Shared { returned }),
        1 => bytes().prop_map(Step::Note),
        1 => bytes().prop_map(Step::Raw),
        2 => Just(Step::Open),
        1 => (0u32..12).prop_map(Step::Accept),
        3 => (0usize..20, 0usize..9_000).prop_map(|(at, len)| Step::Write(at, len)),
        3 => (0usize..20).prop_map(Step::Consume),
        1 => (0usize..20).prop_map(Step::Cut),
        1 => (0usize..20).prop_map(Step::End),
        3 => (0usize..1500).prop_map(Step::Send),
        2 => (0usize..20, 0usize..1500).prop_map(|(at, room)| Step::Again(at, room)),
        2 => (0usize..20).prop_map(Step::Release),
        1 => (0u64..2000).prop_map(Step::Wait),
    ]
}

fn any_stream(streams: &Streams, at: usize) -> Option<StreamId> {
    streams.streams.keys().nth(at % streams.streams.len().max(1)).copied()
}

fn take(streams: &mut Streams, packets: &mut Vec<u64>, step: Step) {
    let now = streams.now;
    let id = |hub, number| StreamId::new(number, hub);
    match step {
        Step::Stream { hub, number, offset, len, flags } => {
            streams.deliver(&stream(id(hub, number), offset, &vec![7; len], flags.0, flags.1));
        }
        Step::Reset { hub, number, final_offset, charged, code } => {
            let id = id(hub, number);
            streams.deliver(&control(&Frame::Reset { id, final_offset, charged, code }));
        }
        Step::Credit { hub, number, limit } => {
            streams.deliver(&control(&Frame::Credit { id: id(hub, number), limit }));
        }
        Step::Shared { returned } => streams.deliver(&control(&Frame::Shared { returned })),
        Step::Note(bytes) => streams.noted(&bytes),
        Step::Raw(bytes) => streams.deliver(&bytes),
        Step::Open => drop(streams.open(now, Target::name("x", 1), Priority::Normal)),
        Step::Accept(number) => drop(streams.accept(theirs(number))),
        Step::Write(at, len) => {
            let Some(id) = any_stream(streams, at) else { return };
            let _ = streams.write(now, id, &vec![9; len]);
        }
        Step::Consume(at) => {
            let Some(id) = any_stream(streams, at) else { return };
            let len = streams.peek(id).len();
            let _ = streams.consume(now, id, len - len / 3);
        }
        Step::Cut(at) => {
            let Some(id) = any_stream(streams, at) else { return };
            let _ = streams.reset(id, ResetReason::Local);
        }
        Step::End(at) => {
            let Some(id) = any_stream(streams, at) else { return };
            let _ = streams.end(id);
        }
        Step::Send(room) => {
            let mut room = vec![0; room];
            packets.extend(streams.fresh(&mut room).map(|(_, handle)| handle));
        }
        Step::Again(at, room) if at < packets.len() => {
            let mut room = vec![0; room];
            assert!(streams.again(packets[at], &mut room) <= room.len());
        }
        Step::Release(at) if at < packets.len() => streams.released(packets.swap_remove(at)),
        Step::Again(..) | Step::Release(_) => {}
        Step::Wait(millis) => {
            streams.set_time(now + Span::from_millis(millis), None, None);
            streams.handle_timeout();
            let mut room = [0; 100];
            streams.note(&mut room);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_peer_does_the_accounts_agree(all in prop::collection::vec(steps(), 1..120)) {
        let mut streams = hub();
        let mut packets = Vec::new();
        for step in all {
            take(&mut streams, &mut packets, step);
            audit(&streams);
        }
        while streams.poll_event().is_some() {}
    }
}

/// RLY-4.8: what all streams may hold in any case leaves the pool to those that use it.
#[test]
fn first_bytes_of_many_streams_are_beside_the_pool() {
    let config = RelayConfig { send_pool: 1 << 20, ..RelayConfig::new("x") };
    let mut streams = Streams::new(&config, false, Instant::ZERO);
    streams.set_peer(config.limits(), false);
    let now = Instant::ZERO;
    let open = |streams: &mut Streams, owner| {
        let id = streams.open(now, Target::name("x", 1), Priority::Normal).expect("opened");
        streams.set_owner(id, Owner(owner));
        id
    };
    for _ in 0..300 {
        let id = open(&mut streams, 2);
        streams.write(now, id, &[0; 1 << 20]).expect("open");
    }
    let mine = open(&mut streams, 1);
    // A third of what its owner may hold, which is a half of the pool at least.
    assert!(streams.room(mine) > 1 << 16, "{} octets", streams.room(mine));
    let statistics = streams.statistics();
    assert!(statistics.send_buffered > 300 * (16 << 10), "{statistics:?}");
    assert!(statistics.send_buffered <= (1 << 20) + 301 * (16 << 10), "{statistics:?}");
}

/// The heads of frames are part of what an owner has had.
#[test]
fn octets_that_are_written_one_by_one_take_no_more_than_their_owners_share() {
    let config = RelayConfig::new("x");
    let mut streams = Streams::new(&config, false, Instant::ZERO);
    streams.set_peer(config.limits(), false);
    let rate = BitRate::from_mbps(1);
    let mut now = Instant::ZERO;
    let open = |streams: &mut Streams, owner| {
        let id = streams.open(now, Target::name("x", 1), Priority::Normal).expect("opened");
        streams.set_owner(id, Owner(owner));
        streams.streams.get_mut(&id).expect("opened").send.grant(u64::MAX);
        id
    };
    let bulk = open(&mut streams, 2);
    let trickle: Vec<StreamId> = (0..200).map(|_| open(&mut streams, 1)).collect();
    let (mut all, mut room) = (0, [0; 1_400]);
    while now < Instant::ZERO + Span::from_secs(20) {
        streams.set_time(now, None, Some(rate));
        streams.write(now, bulk, &[0; 8_000]).expect("open");
        for &id in &trickle {
            streams.write(now, id, &[0]).expect("open");
        }
        let (len, _) = streams.fresh(&mut room).expect("something to send");
        all += len as u64;
        now += rate.time_for(len as u64);
    }
    let had = streams.streams.get(&bulk).expect("open").send.sent();
    assert!(had > all / 100 * 45, "{had} of {all} octets");
}

/// At 4 Gbit/s one stream holds 8 MiB unsent, a thousand that fill up one after another four times
/// that and 64 KiB each; by equal parts of a growing number alone it would be 163 MiB.
#[test]
fn unsent_bytes_of_all_streams_are_bounded() {
    let config = RelayConfig::new("x").with_memory(1 << 30);
    let mut streams = Streams::new(&config, false, Instant::ZERO);
    streams.set_peer(config.limits(), false);
    let now = Instant::ZERO;
    streams.set_time(now, None, Some(BitRate::from_mbps(4_000)));
    for owner in 0..1_000 {
        let id = streams.open(now, Target::name("x", 1), Priority::Normal).expect("opened");
        streams.set_owner(id, Owner(owner));
        streams.streams.get_mut(&id).expect("opened").send.grant(u64::MAX);
        streams.write(now, id, &[0; 8 << 20]).expect("open");
        if owner == 0 {
            assert_eq!(streams.unsent(id), 8 << 20);
        }
    }
    let unsent = streams.send_pool.unsent.total();
    assert!(unsent <= (32 << 20) + 1_000 * (64 << 10), "{unsent} octets");
}

/// RLY-3.2
#[test]
fn the_class_of_a_stream_follows_from_what_it_has_sent() {
    let config = RelayConfig::new("x");
    let mut streams = Streams::new(&config, false, Instant::ZERO);
    streams.set_peer(config.limits(), false);
    let mut now = Instant::ZERO + Span::from_secs(1);
    streams.set_time(now, None, Some(BitRate::from_mbps(10)));
    let id = streams.open(now, Target::name("x", 1), Priority::Normal).expect("opened");
    streams.streams.get_mut(&id).expect("opened").send.grant(u64::MAX);
    assert_eq!(streams.class_of(now, id), Some(Class::Interactive));
    streams.write(now, id, &[0; 80_000]).expect("open");
    while !sent(&mut streams).is_empty() {}
    assert_eq!(streams.class_of(now, id), Some(Class::Bulk));
    now += Span::from_secs(1);
    assert_eq!(streams.class_of(now, id), Some(Class::Interactive));
    assert_eq!(streams.class_of(now, StreamId::new(7, true)), None);
}

#[test]
fn pools_follow_the_round_trip() {
    let rate = Some(BitRate::from_mbps(4_000));
    let config = RelayConfig::new("x").with_rates(rate, rate);
    let shared = config.shared_credit;
    let mut streams = Streams::new(&config, false, Instant::ZERO);
    // 10 s of the rate, until a round trip is measured.
    assert_eq!(streams.pools(), [5_000_000_000 + shared, 5_000_000_000]);
    let mut pools_at = |millis| {
        streams.set_time(Instant::ZERO, Some(Span::from_millis(millis)), None);
        streams.pools()
    };
    assert_eq!(pools_at(5), [(64 << 20) + shared, 64 << 20]);
    assert_eq!(pools_at(50), [400_000_000 + shared, 400_000_000]);
    assert_eq!(pools_at(1_000), [5_000_000_000 + shared, 5_000_000_000]);
}
