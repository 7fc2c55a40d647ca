//! Frames of the relay, and NOTEs.

use super::{check, hex, octets};
use crate::families::{Families, FamilyReach};
use crate::frame::{Frame, Open, PartialOffset, Reader, StreamHead, Writer};
use crate::report::tests::example;
use crate::report::{ReportedCounters, ReportedMessage, ReportedPath, TerminalReport};
use crate::target::{Destination, Priority, StreamId, Target};
use serde_json::{Value, json};

const TERMINAL: StreamId = StreamId::new(300, false);
const HUB: StreamId = StreamId::new(5, true);

/// Returns the meaning of a payload: its frames up to the first malformed one.
fn meaning(payload: &[u8]) -> (Vec<Value>, bool) {
    let (mut reader, mut frames) = (Reader::new(payload), Vec::new());
    while !reader.is_empty() {
        match reader.frame() {
            Ok(frame) => frames.push(describe(&frame)),
            Err(_) => return (frames, false),
        }
    }
    (frames, true)
}

/// A packet of RTP in IPv4, with 4 octets of payload.
const VOICE: &str = "45b8002c01f440004011240e0a0100020a030002\
                     4000138c0018000080120001000000a012345678aabbccdd";

fn describe(frame: &Frame<'_>) -> Value {
    let id = |id: StreamId| json!({ "opened_by_hub": id.opened_by_hub(), "number": id.number() });
    match frame {
        Frame::Stream { id: stream, open, offset, end, charged, coded, data } => {
            let (offset, bits) = match offset {
                PartialOffset::Whole(offset) => (*offset, 24),
                PartialOffset::Low(low) => (u64::from(*low), 32),
            };
            json!({
                "frame": "STREAM", "stream": id(*stream), "opening": open.as_ref().map(opening),
                "offset": offset, "offset_bits": bits, "end": end, "shared": charged, "coded": coded,
                "data": hex(data),
            })
        }
        Frame::Accept { id: stream } => json!({ "frame": "ACCEPT", "stream": id(*stream) }),
        Frame::Reset { id: stream, final_offset, charged, code } => json!({
            "frame": "RESET", "stream": id(*stream), "final_offset": final_offset,
            "shared_used": charged, "reason": code,
        }),
        Frame::Credit { id: stream, limit } => {
            json!({ "frame": "CREDIT", "stream": id(*stream), "limit": limit })
        }
        Frame::Shared { returned } => json!({ "frame": "SHARED", "returned": returned }),
        Frame::Datagram { packet } => json!({ "frame": "DATAGRAM", "packet": hex(packet) }),
        Frame::Grant { number, kbps } => {
            json!({ "frame": "GRANT", "number": number, "bits_per_second": kbps * 1000 })
        }
        Frame::Need { number, units } => {
            json!({ "frame": "NEED", "number": number, "bytes": units * 1024 })
        }
        Frame::Families { number, families } => json!({
            "frame": "FAMILIES", "number": number,
            "ipv4": families.ipv4 as u8, "ipv6": families.ipv6 as u8,
        }),
        Frame::Piece { number, total, offset, piece } => json!({
            "frame": "PIECE", "number": number, "total": total, "offset": offset,
            "data": hex(piece),
        }),
        Frame::GoAway { opened, leaves } => {
            json!({ "frame": "GOAWAY", "opened": opened, "leaves": leaves })
        }
        Frame::Padding => json!({ "frame": "PADDING" }),
        Frame::Received { id: stream, offset } => {
            json!({ "frame": "RECEIVED", "stream": id(*stream), "offset": offset })
        }
        Frame::Report { number, content } => {
            let report = TerminalReport::decode(content);
            let ReportedCounters { open, opened, refused, lost, dropped } = report.counters;
            let path = |path: &ReportedPath| json!([path.state, path.failures, path.name]);
            let message = |message: &ReportedMessage| json!([message.unix_s, message.text]);
            json!({
                "frame": "REPORT", "number": number, "release": report.release,
                "started": report.started_unix_s,
                "paths": report.paths.iter().map(path).collect::<Vec<_>>(),
                "counters": [open, opened, refused, lost, dropped],
                "messages": report.messages.iter().map(message).collect::<Vec<_>>(),
            })
        }
        Frame::Define { context, rule } => json!({
            "frame": "DEFINE", "context": context, "rule": rule.octet(), "stride": rule.stride,
        }),
        Frame::Compressed { content } => json!({ "frame": "COMPRESSED", "content": hex(content) }),
        Frame::Contexts { contexts } => json!({ "frame": "CONTEXTS", "contexts": contexts }),
        Frame::Invalid { context } => json!({ "frame": "INVALID", "context": context }),
        Frame::Unknown { kind } => json!({ "frame": "unknown", "kind": kind }),
        Frame::BadOpening { id: stream } => {
            json!({ "frame": "STREAM", "stream": id(*stream), "opening": "undefined" })
        }
    }
}

fn opening(open: &Open) -> Value {
    let target = match &open.target.destination {
        Destination::Address(address) => json!([address.ip().to_string(), address.port()]),
        Destination::Name(name, port) => json!([name, port]),
    };
    let source = open.target.source.map(|source| json!([source.ip().to_string(), source.port()]));
    json!({ "priority": open.priority as u8, "target": target, "source": source })
}

/// Returns a payload made by a writer.
fn written(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut room = [0; 200];
    let mut writer = Writer::new(&mut room);
    write(&mut writer);
    let len = writer.written();
    room[..len].to_vec()
}

fn vector(name: &str, clauses: &str, payload: &[u8]) -> Value {
    let (frames, whole) = meaning(payload);
    let undefined = frames.iter().any(|frame| frame["opening"] == "undefined");
    let reaction = match (whole, undefined) {
        (true, false) => "taken",
        (true, true) => "RESET of the stream, reason 72",
        (false, _) => "the frames before the one that cannot be read are taken; then RST",
    };
    json!({
        "name": name, "clauses": clauses, "payload": hex(payload), "frames": frames,
        "readable": whole, "reaction": reaction,
    })
}

fn control(name: &str, clauses: &str, frame: &Frame<'_>) -> Value {
    vector(name, clauses, &written(|writer| assert!(writer.control(frame))))
}

fn stream(name: &str, clauses: &str, head: StreamHead<'_>, more_follows: bool) -> Value {
    let data = b"some data";
    let payload = written(|writer| {
        let fill = |room: &mut [u8]| room.copy_from_slice(&data[..room.len()]);
        assert_eq!(writer.stream(head, data.len(), 1, more_follows, fill), Some(data.len()));
    });
    vector(name, clauses, &payload)
}

fn streams() -> Vec<Value> {
    let head = StreamHead {
        id: TERMINAL,
        offset: 70_000,
        open: None,
        end: false,
        charged: false,
        coded: false,
    };
    let address = |text: &str| Target::address(text.parse().expect("an address"));
    let open = |priority, target| Open { priority, target };
    let v4 = open(Priority::Interactive, address("192.0.2.1:443"));
    let v6 = open(Priority::Normal, address("[2001:db8::1]:80"));
    let client = "[2001:db8:1::7]:50000".parse().expect("an address");
    let name = open(Priority::Background, Target::name("example.com", 8080).from(client));
    let opens = |open| StreamHead { offset: 0, open: Some(open), ..head };
    vec![
        stream("STREAM, the last frame", "RLY-1.2, 1.3", head, false),
        stream("STREAM with a length", "RLY-1.2", head, true),
        stream("STREAM of a coded half", "RLY-13.1", StreamHead { coded: true, ..head }, true),
        stream(
            "STREAM with an offset of 32 bits: the end, on shared credit",
            "RLY-1.3, 1.4, 1.6",
            StreamHead {
                id: HUB,
                offset: (7 << 32) + 0x0100_0000,
                end: true,
                charged: true,
                ..head
            },
            true,
        ),
        stream("STREAM that opens, to IPv4", "RLY-1.5", opens(&v4), false),
        stream("STREAM that opens, to IPv6", "RLY-1.5", opens(&v6), true),
        stream("STREAM that opens, to a name, with a client", "RLY-1.5", opens(&name), true),
    ]
}

fn others() -> Vec<Value> {
    let families = Families { ipv4: FamilyReach::Global, ipv6: FamilyReach::None };
    let reset = Frame::Reset { id: TERMINAL, final_offset: 70_000, charged: 1000, code: 65 };
    vec![
        control("ACCEPT", "RLY-2.2", &Frame::Accept { id: TERMINAL }),
        control("RESET: refused", "RLY-1.7, 2.4", &reset),
        control("CREDIT", "RLY-4.1", &Frame::Credit { id: HUB, limit: 1 << 20 }),
        control("SHARED", "RLY-4.3", &Frame::Shared { returned: 300 << 10 }),
        control("GRANT", "RLY-7.1", &Frame::Grant { number: 1, kbps: 2500 }),
        control("NEED", "RLY-7.2", &Frame::Need { number: 2, units: 64 }),
        control("FAMILIES: no IPv6", "RLY-9.1", &Frame::Families { number: 1, families }),
        vector("DATAGRAM", "RLY-6.1", &written(|w| assert!(w.datagram(&[0x45; 40], false)))),
        vector(
            "DATAGRAM with a length, and ACCEPT behind it",
            "RLY-1.2",
            &written(|writer| {
                assert!(writer.datagram(&[0x45; 20], true));
                assert!(writer.control(&Frame::Accept { id: HUB }));
            }),
        ),
        vector(
            "PIECE: the last of two",
            "RLY-6.4",
            &written(|w| assert_eq!(w.piece(9, 100, 90, &[0x60; 10], false), Some(10))),
        ),
        vector("ACCEPT whose number is longer than it need be", "RLY-1.8", &octets("01 85 00")),
        control(
            "GOAWAY: 300 streams were opened, and no session follows",
            "RLY-10.1",
            &Frame::GoAway { opened: 300, leaves: true },
        ),
        vector(
            "GOAWAY with octets of a later release, and ACCEPT behind it",
            "RLY-1.10, 10.1",
            &octets("10 03 05 ffff 01 05"),
        ),
        vector("PADDING, and ACCEPT behind it", "RLY-1.11", &octets("11 02 0000 01 05")),
        vector("REPORT", "RLY-11.1, 11.2", &{
            let report = example().encode();
            written(|writer| assert!(writer.report(1, &report)))
        }),
        vector(
            "REPORT with a field of a later release, and ACCEPT behind it",
            "RLY-1.10, 11.2",
            &octets("12 0b 02 0105 302e322e30 0901aa 01 05"),
        ),
        vector("RECEIVED", "RLY-12.8", &octets("13 05 0b 80808010")),
    ]
}

/// Frames of header compression.
fn headers() -> Vec<Value> {
    vec![
        vector(
            "DEFINE of context 3: RTP, sequential identification, 160 ticks; and its packet",
            "HDR-1.2, 2.1",
            &octets(&format!("14 04 03 06 a001 05 {VOICE}")),
        ),
        vector(
            "COMPRESSED for this context: the next packet of the flow",
            "HDR-3.1, 3.3",
            &octets("15 07 03 f4 01 aabbccdd"),
        ),
        vector(
            "COMPRESSED for this context, with a form: type of service 0, 16 ticks late",
            "HDR-3.2, 3.3",
            &octets("15 0a 83 21 bf 02 00 20 aabbccdd"),
        ),
        vector("CONTEXTS", "HDR-2.3", &octets("16 02 8001")),
        vector("INVALID, and ACCEPT behind it", "HDR-2.6", &octets("17 01 03 01 05")),
        vector(
            "DEFINE with an undefined rule, skipped",
            "HDR-1.1, HDR-2.1",
            &octets("14 03 03 03 00"),
        ),
    ]
}

/// Frames of later releases, and what their reader makes of them.
fn later() -> Vec<Value> {
    vec![
        vector(
            "an extension frame of an unknown kind, and ACCEPT behind it",
            "RLY-1.10",
            &octets("1f 02 abcd 01 05"),
        ),
        vector(
            "an opening with priority 3, and ACCEPT behind it",
            "RLY-1.5",
            &octets("a4 05 03 00 c0000201 01bb 00 01 06"),
        ),
        vector("an opening to an empty name", "RLY-1.5", &octets("84 05 01 02 00 01bb")),
    ]
}

fn malformed() -> Vec<Value> {
    let bad = |name: &str, clauses: &str, payload: &str| {
        let vector = vector(name, clauses, &octets(payload));
        assert_eq!(vector["readable"], false, "{name}");
        vector
    };
    vec![
        bad("ACCEPT, and a frame of a kind that is not known", "RLY-1.8", "01 05 0b 00"),
        bad("STREAM that opens and has W", "RLY-1.5, 1.8", "94 05 01 00 c0000201 01bb"),
        bad("STREAM whose data goes past the end", "RLY-1.8", "a0 05 000000 05 6162"),
        bad("STREAM of a number of 2^28", "RLY-1.1", "80 8080808001 000000 61"),
        bad("an opening to a target of kind 3", "RLY-1.5", "84 05 01 03 c0000201 01bb"),
        bad("an opening with a source of kind 3", "RLY-1.5", "84 05 01 30 c0000201 01bb"),
        bad("SHARED with H", "RLY-1.8", "44 05"),
        bad("an integer of ten octets", "RLY-1.8", "04 ffffffffffffffffff01"),
        bad("PIECE that is empty", "RLY-6.4", "26 01 64 00 00"),
        bad("GOAWAY without its number", "RLY-10.1, 1.10", "10 00"),
        bad("GOAWAY without its flags", "RLY-10.1, 1.10", "10 01 05"),
        bad("RECEIVED of a stream with a number of 2^28", "RLY-12.8, 1.8", "13 06 8080808002 00"),
        bad("RECEIVED without an offset", "RLY-12.8, 1.10", "13 01 05"),
        bad("REPORT without its number", "RLY-11.1, 1.10", "12 00"),
        bad("DEFINE without a stride", "HDR-2.1, RLY-1.10", "14 02 03 06"),
        bad("INVALID without a context", "HDR-2.6, RLY-1.10", "17 00"),
        bad("shared credit of 2^62 bytes", "RLY-1.8", "04 80808080808080 08"),
        bad("an extension frame that goes past the end", "RLY-1.10", "1f 05 00"),
        bad("PIECE beyond its packet", "RLY-6.4", "06 01 04 03 6162"),
    ]
}

fn notes() -> Vec<Value> {
    let note = written(|writer| {
        assert!(writer.note(None, 300 << 10));
        assert!(writer.note(Some(TERMINAL), 1 << 20));
        assert!(writer.note(Some(HUB), 64 << 10));
    });
    let mut reader = Reader::new(&note);
    let mut entries = Vec::new();
    while !reader.is_empty() {
        let (id, value) = reader.note().expect("an entry");
        let stream =
            id.map(|id| json!({ "opened_by_hub": id.opened_by_hub(), "number": id.number() }));
        entries.push(json!({ "stream": stream, "value": value }));
    }
    let name = "NOTE: shared credit returned, and two streams' limits";
    vec![json!({ "name": name, "clauses": "RLY-1.9", "note": hex(&note), "entries": entries })]
}

/// RLY-1.1, RLY-1.2, RLY-1.3, RLY-1.4, RLY-1.5, RLY-1.6, RLY-1.8, RLY-1.9, RLY-1.10
#[test]
fn frames_are_those_of_the_vectors() {
    let all = [streams(), others(), headers(), later(), malformed(), notes()].concat();
    check("frames.json", "Payloads of packets: frames of the relay (relay.md), and a NOTE.", &all);
}
