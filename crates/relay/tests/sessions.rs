//! The end of sessions, and consecutive sessions in one association.

mod rig;

use association::{Config, HEADER_LEN, OVERHEAD, Sealed, Terminal, TerminalReceived};
use relay::{
    Capabilities, DisconnectReason, Event, Hub, OpenError, PeerId, Priority, Relay, RelayConfig,
    TransmitBatch,
};
use rig::{App, Faults, Rig, Side};
use std::net::SocketAddr;
use units::{BitRate, Instant, RngStream, Span};
use xstp::Seq24;
use xstp::wire::{Begin, Control, Delivery, End, Poll, Profile, Segment};

fn lossy(seed: u64) -> Rig {
    let mut rig = Rig::new(seed, BitRate::from_mbps(5), BitRate::from_mbps(2));
    rig.faults = Faults { loss: 0.05, duplicate: 0.03, reorder: 0.05, corrupt: 0.0 };
    rig
}

/// RLY-10.1, RLY-10.2, RLY-10.3: whichever side ends it during a transfer.
#[test]
fn an_orderly_end_during_a_transfer_loses_no_data() {
    for (seed, side) in [(1, Side::Terminal), (2, Side::Hub), (3, Side::Terminal), (4, Side::Hub)] {
        let mut rig = lossy(seed);
        let down = rig.open("source-900000", App { end: true, ..App::default() });
        let up = rig.open("sink", App::writer(400_000));
        let both = rig.open("echo", App::writer(100_000));
        rig.run(Span::from_millis(2_500), |_| false);
        match side {
            Side::Terminal => rig.terminal.drain(),
            Side::Hub => rig.hub.drain(),
        }
        assert!(!rig.terminal.has_drained());
        rig.run(Span::from_millis(2_000), |_| false);
        let late = rig.open_as("sink", Priority::Normal, &App::default());
        assert_eq!(late, Err(OpenError::Draining));
        let ended = rig.run(Span::from_secs(60), |rig| {
            rig.apps.iter().all(|(_, app)| app.is_over()) && !rig.terminal.is_connected()
        });
        assert!(ended, "seed {seed}");
        for (stream, read) in [(down, 900_000), (up, 0), (both, 100_000)] {
            // The state of the terminal's application is removed with its session.
            assert!(rig.over.contains(&(Side::Terminal, stream, read)), "{stream}: {:?}", rig.over);
        }
        assert!(rig.over.contains(&(Side::Hub, up, 400_000)), "{:?}", rig.over);
        rig.run(Span::from_secs(3), |_| false);
        let reasons: Vec<_> = rig.disconnected.iter().map(|(_, reason)| *reason).collect();
        assert_eq!(reasons, [DisconnectReason::Closed; 2], "both sides, no RST");
        if side == Side::Hub {
            let has_ended = |(_, relay): (PeerId, &Relay)| relay.has_drained();
            assert!(rig.hub.relays().all(has_ended), "it accepts no session either");
            assert!(!rig.terminal.is_connected());
        } else {
            assert!(rig.terminal.has_drained());
            rig.run(Span::from_secs(8), |_| false);
            assert_eq!(rig.hub.peers().count(), 0, "a terminal that has left keeps no place");
        }
    }
}

/// RLY-10.7: a peer of the previous release has no GOAWAY. Its session remains until it is reset.
#[test]
fn a_peer_without_the_capability_gets_no_unknown_frames() {
    for old in [Side::Terminal, Side::Hub] {
        let without = |name: &str, side| RelayConfig {
            capabilities: if side == old { Capabilities::NONE } else { Capabilities::ALL },
            ..RelayConfig::new(name)
        };
        let (terminal, hub) = (without("boat", Side::Terminal), without("hub", Side::Hub));
        let mut rig = Rig::with(1, terminal, hub);
        let stream = rig.open("source-200000", App { end: true, ..App::default() });
        rig.run(Span::from_millis(2_000), |_| false);
        rig.terminal.drain();
        rig.hub.drain();
        assert!(rig.terminal.has_drained(), "there is nothing to wait for");
        assert!(rig.run(Span::from_secs(30), |rig| rig.all_over(Side::Terminal)));
        assert_eq!(rig.app(Side::Terminal, stream).read, 200_000);
        assert!(rig.disconnected.is_empty());
        for side in [Side::Terminal, Side::Hub] {
            assert_eq!(rig.relay(side).expect("a relay").statistics().bad_frames, 0);
        }
        let now = rig.now;
        rig.terminal.close(now);
        rig.run(Span::from_secs(1), |_| false);
        assert_eq!(rig.disconnected, [(Side::Hub, DisconnectReason::Closed)]);
        assert_eq!(rig.hub.peers().count(), 0, "the association is gone as well");
    }
}

/// A terminal with an association, whose segments the test builds.
struct Raw {
    now: Instant,
    association: Terminal,
    hub: Hub,
    peer: Option<PeerId>,
    events: Vec<Event>,
}

fn here() -> SocketAddr {
    "192.0.2.1:4500".parse().expect("an address")
}

const WINDOW: u32 = 1 << 16;

fn begin(incarnation: u32) -> Segment<'static> {
    let begin =
        Begin { incarnation, window: WINDOW, max_segment: 1_400, delivery: Delivery::Immediate };
    Segment::begin(Seq24::ZERO, 0, begin).and_poll(0, Poll { seq: 1, next: Seq24::ZERO })
}

impl Raw {
    fn new() -> Self {
        Self::with(Capabilities::ALL)
    }

    /// A terminal that announces `capabilities`.
    fn with(capabilities: Capabilities) -> Self {
        let now = Instant::ZERO + Span::from_secs(1);
        let hub = Hub::new(&RelayConfig::new("hub"), RngStream::new(1, 0, "hub"));
        let mut config = Config::new("boat");
        config.limits.capabilities = capabilities;
        let association = Terminal::new(config, now, RngStream::new(1, 0, "boat"));
        let mut raw = Self { now, association, hub, peer: None, events: Vec::new() };
        let mut buffer = [0; 1500];
        let mut batch = TransmitBatch::new(&mut buffer, 1);
        assert!(raw.association.poll_transmit(now, &mut batch));
        let mut hello = batch.datagrams().next().expect("a Hello").to_vec();
        raw.hub.handle_datagram(now, here(), &mut hello).expect("understood");
        assert!(raw.answers().is_empty(), "a Welcome is no segment");
        raw
    }

    /// Sends a segment; returns the segments that the hub sends immediately, as octets.
    fn send(&mut self, segment: &Segment<'_>) -> Vec<Vec<u8>> {
        let datagram = self.sealed(segment);
        self.receive(&datagram)
    }

    /// Seals a segment, to be sent later.
    fn sealed(&mut self, segment: &Segment<'_>) -> Vec<u8> {
        let mut datagram = vec![0; 1500];
        let room = &mut datagram[HEADER_LEN..];
        let len = segment.encode(&Profile::Sealed, room).expect("there is room");
        datagram.truncate(len + OVERHEAD);
        assert!(self.association.seal(self.now, Sealed::Data, &mut datagram));
        datagram
    }

    /// Delivers a datagram to the hub.
    fn receive(&mut self, datagram: &[u8]) -> Vec<Vec<u8>> {
        let _ = self.hub.handle_datagram(self.now, here(), &mut datagram.to_vec());
        self.answers()
    }

    fn answers(&mut self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for _ in 0..20 {
            self.now += Span::from_millis(10);
            self.hub.handle_timeout(self.now);
            let mut buffer = vec![0; 16 * 1500];
            let mut batch = TransmitBatch::new(&mut buffer, 16);
            let _ = self.hub.poll_transmit(self.now, &mut batch);
            for datagram in batch.datagrams() {
                let mut datagram = datagram.to_vec();
                let received = self.association.handle_datagram(self.now, &mut datagram);
                if let Ok(TerminalReceived::Payload { kind: Sealed::Data, payload, .. }) = received
                {
                    all.push(payload.to_vec());
                }
            }
        }
        while let Some((peer, event)) = self.hub.poll_event() {
            self.peer = Some(peer);
            self.events.push(event);
        }
        all
    }

    /// Sends a packet in an open session.
    fn packet(&mut self, number: u32, payload: &[u8]) -> Vec<Vec<u8>> {
        self.send(&Segment::data(Seq24::new(number), payload))
    }
}

/// Returns the controls of segments.
fn controls(segments: &[Vec<u8>]) -> Vec<Control> {
    let decode = |octets: &Vec<u8>| Segment::decode(&Profile::Sealed, octets).unwrap().control();
    segments.iter().filter_map(decode).collect()
}

fn is_begin_ack(segments: &[Vec<u8>], incarnation: u32) -> bool {
    controls(segments).iter().any(
        |control| matches!(control, Control::BeginAck(ack) if ack.begin.incarnation == incarnation),
    )
}

/// RLY-10.4: after RST, after END in both directions, and in place of an open session.
#[test]
fn the_next_session_begins_in_the_same_association() {
    let mut raw = Raw::new();
    assert!(is_begin_ack(&raw.send(&begin(1)), 1));
    let peer = raw.peer.expect("connected");
    // An open stream uses memory: 20 octets in order, and more after a gap.
    raw.packet(0, b"\xa4\x05\x01\x00\xc0\x00\x02\x01\x01\xbb\x02ab");
    raw.packet(1, &[&b"\x80\x05\x00\x10\x00"[..], &[7; 1_000]].concat());
    assert!(raw.hub.peer(peer).expect("there").receive_allocated() > 1_000);
    assert!(is_begin_ack(&raw.send(&begin(2)), 2), "in place of the first");
    assert_eq!(raw.hub.peer(peer).expect("there").receive_allocated(), 0);
    assert_eq!(raw.hub.peer(peer).expect("there").statistics().streams, 0);
    raw.events.clear();
    raw.send(&Segment::reset(Seq24::ZERO, End { incarnation: 2 }));
    assert_eq!(raw.events, [Event::Disconnected { reason: DisconnectReason::Closed }]);
    assert_eq!(raw.hub.peers().collect::<Vec<_>>(), [peer], "the association is there");
    assert!(is_begin_ack(&raw.send(&begin(3)), 3));
    // An early END of one direction: the hub has nothing to send, and ends as well.
    let ended = raw.send(&Segment::end(Seq24::ZERO, End { incarnation: 3 }));
    let end = End { incarnation: 3 };
    assert_eq!(controls(&ended), [Control::EndAck(end), Control::End(end)]);
    raw.events.clear();
    raw.send(&Segment::end_ack(Seq24::ZERO, end));
    assert_eq!(raw.events, [Event::Disconnected { reason: DisconnectReason::Closed }]);
    // A lost ENDAK is retransmitted.
    let again = raw.send(&Segment::end(Seq24::ZERO, end));
    assert_eq!(controls(&again), [Control::EndAck(end)]);
    assert!(is_begin_ack(&raw.send(&begin(4)), 4));
    assert!(controls(&raw.send(&begin(3))).is_empty(), "an older one begins nothing");
    assert_eq!(raw.hub.peers().count(), 1);
}

/// RLY-10.7: the ENDAK for a peer of the previous release is lost, and END is answered again.
#[test]
fn an_end_is_answered_again_also_where_no_session_follows() {
    let mut raw = Raw::with(Capabilities::NONE);
    raw.send(&begin(1));
    let end = End { incarnation: 1 };
    let ended = raw.send(&Segment::end(Seq24::ZERO, end));
    assert_eq!(controls(&ended), [Control::EndAck(end), Control::End(end)]);
    raw.events.clear();
    raw.send(&Segment::end_ack(Seq24::ZERO, end));
    assert_eq!(raw.events, [Event::Disconnected { reason: DisconnectReason::Closed }]);
    raw.now += Span::from_secs(3);
    let again = raw.send(&Segment::end(Seq24::ZERO, end));
    assert_eq!(controls(&again), [Control::EndAck(end)]);
    raw.now += Span::from_secs(1);
    raw.answers();
    assert_eq!(raw.hub.peers().count(), 0, "the association is gone as well");
}

/// RLY-10.4
#[test]
fn consecutive_sessions_use_the_memory_of_one_and_an_idle_association_is_removed() {
    let mut raw = Raw::new();
    for incarnation in 1..200 {
        raw.send(&begin(incarnation));
        raw.packet(0, &[&b"\x84\x05\x01\x00\xc0\x00\x02\x01\x01\xbb"[..], &[7; 1_000]].concat());
        let peer = raw.peer.expect("connected");
        let relay = raw.hub.peer(peer).expect("there");
        assert!(relay.receive_allocated() < 200_000, "{}", relay.receive_allocated());
        assert_eq!((relay.statistics().streams, raw.hub.peers().count()), (1, 1));
    }
    raw.send(&Segment::reset(Seq24::ZERO, End { incarnation: 199 }));
    raw.now += Span::from_secs(9);
    raw.answers();
    assert_eq!(raw.hub.peers().count(), 1);
    raw.now += Span::from_secs(2);
    raw.answers();
    assert_eq!(raw.hub.peers().count(), 0);
}

/// RLY-10.8: they were in flight when the next session began.
#[test]
fn segments_of_an_earlier_session_are_not_accepted_in_the_next_one() {
    let mut raw = Raw::new();
    raw.send(&begin(1));
    let late =
        raw.sealed(&Segment::data(Seq24::ZERO, b"\x84\x05\x01\x00\xc0\x00\x02\x01\x01\xbbold"));
    raw.send(&begin(2));
    let peer = raw.peer.expect("connected");
    raw.receive(&late);
    assert_eq!(raw.hub.peer(peer).expect("there").statistics().streams, 0);
    raw.packet(0, b"\x84\x07\x01\x00\xc0\x00\x02\x01\x01\xbbnew");
    assert_eq!(raw.hub.peer(peer).expect("there").statistics().streams, 1);
    // Segments with an incarnation are accepted in any order.
    let late = raw.sealed(&Segment::reset(Seq24::ZERO, End { incarnation: 2 }));
    raw.packet(1, b"");
    raw.events.clear();
    raw.receive(&late);
    assert_eq!(raw.events, [Event::Disconnected { reason: DisconnectReason::Closed }]);
}

/// RLY-1.8, RLY-10.6
#[test]
fn an_unreadable_frame_resets_the_session_with_a_reason() {
    let mut raw = Raw::new();
    raw.send(&begin(1));
    raw.events.clear();
    let answers = raw.packet(0, b"\x0b\x00\x84\x05\x01\x00\xc0\x00\x02\x01\x01\xbb");
    let reset = Segment::decode(&Profile::Sealed, &answers[0]).unwrap();
    assert_eq!(reset.control(), Some(Control::Reset(End { incarnation: 1 })));
    assert_eq!(reset.number(), Seq24::new(0x01_0b00));
    let reason = DisconnectReason::Unreadable { frame: 0x0b };
    assert_eq!(raw.events, [Event::Disconnected { reason }]);
    // The peer reports the reason.
    raw.send(&begin(2));
    raw.events.clear();
    raw.send(&Segment::reset(Seq24::new(0x01_0b00), End { incarnation: 2 }));
    let reason = DisconnectReason::Rejected { frame: 0x0b };
    assert_eq!(raw.events, [Event::Disconnected { reason }]);
}

/// RLY-1.5, RLY-1.10
#[test]
fn an_unsupported_opening_is_refused_and_unknown_frames_are_skipped() {
    let mut raw = Raw::new();
    raw.send(&begin(1));
    raw.events.clear();
    // An extension frame, an opening of stream 5 with priority 3, and a valid one of stream 6.
    let good = b"\x1f\x02\xab\xcd\xa4\x05\x03\x00\xc0\x00\x02\x01\x01\xbb\x00\x84\x06\x01\x00\xc0\x00\x02\x01\x01\xbb";
    let answers = raw.packet(0, good);
    let payloads: Vec<&[u8]> = answers
        .iter()
        .filter_map(|octets| Segment::decode(&Profile::Sealed, octets).unwrap().payload())
        .collect();
    assert_eq!(payloads, [&[0x02, 5, 0, 0, 72]], "RESET of stream 5 with reason 72");
    let opened =
        |event: &Event| matches!(event, Event::Opened { stream, .. } if stream.number() == 6);
    assert!(raw.events.iter().any(opened), "{:?}", raw.events);
    let statistics = raw.hub.peer(raw.peer.expect("connected")).expect("there").statistics();
    assert_eq!((statistics.bad_frames, statistics.unknown_frames), (1, 1));
}

/// XSTP-15.2.1: on a lossy link symbols are sent if both sides have a share for them.
#[test]
fn repair_symbols_are_sent_if_both_sides_announce_them() {
    for (terminal, hub) in [(None, Some(10)), (Some(10), None), (Some(10), Some(10))] {
        let config = |name: &str, repair_percent| RelayConfig {
            repair_percent,
            ..RelayConfig::new(name)
                .with_rates(Some(BitRate::from_mbps(5)), Some(BitRate::from_mbps(5)))
        };
        let mut rig = Rig::with(3, config("boat", terminal), config("hub", hub));
        rig.faults.loss = 0.05;
        for _ in 0..30 {
            rig.open("source-20000", App { end: true, ..App::default() });
            rig.run(Span::from_millis(3_000), |_| false);
        }
        let (sender, receiver) = (rig.hub.totals(), rig.terminal.totals());
        let is_used = terminal.is_some() && hub.is_some();
        assert_eq!(sender.repairs_sent > 0, is_used, "{terminal:?} {hub:?}");
        assert_eq!(receiver.packets_recovered > 0, is_used, "{terminal:?} {hub:?}");
    }
}
