//! Segments of XSTP's sealed profile.

use super::{check, hex, octets};
use serde_json::{Value, json};
use xstp::Seq24;
use xstp::wire::{
    Arrival, Begin, BeginAck, Control, Delivery, Echo, End, Poll, Profile, Repair, RunList, Runs,
    Segment, Stat, Ustat,
};

const BEGIN: Begin = Begin {
    incarnation: 0xcafe_f00d,
    window: 262_144,
    max_segment: 1448,
    delivery: Delivery::Immediate,
};
const END: End = End { incarnation: 0xcafe_f00d };
/// Missing 1, received 2, missing 3, received 200.
const LENGTHS: [u32; 4] = [1, 2, 3, 200];

fn number(value: u32) -> Seq24 {
    Seq24::new(value)
}

fn runs(runs: Runs<'_>) -> Value {
    let run = |run: xstp::wire::Run| json!({ "first": run.start.value(), "length": run.len, "missing": run.missing });
    runs.map(run).collect()
}

fn describe(segment: &Segment<'_>) -> Value {
    let begin = |begin: Begin, echo: Option<u32>| {
        json!({
            "incarnation": begin.incarnation, "window": begin.window, "echo": echo,
            "max_segment": begin.max_segment, "delivery": begin.delivery as u8,
        })
    };
    let mut out = json!({ "number": segment.number().value() });
    match segment.control() {
        Some(Control::Begin(begun)) => out["BGN"] = begin(begun, None),
        Some(Control::BeginAck(ack)) => out["BGNAK"] = begin(ack.begin, Some(ack.echo)),
        Some(Control::End(end)) => out["END"] = json!({ "incarnation": end.incarnation }),
        Some(Control::EndAck(end)) => out["ENDAK"] = json!({ "incarnation": end.incarnation }),
        Some(Control::Reset(end)) => out["RST"] = json!({ "incarnation": end.incarnation }),
        None => {}
    }
    if let Some(poll) = segment.poll_part() {
        out["POLL"] = json!({ "count": poll.seq, "vt_s": poll.next.value() });
    }
    if segment.poll_part().is_some() || matches!(segment.control(), Some(Control::Begin(_))) {
        out["stamp"] = json!(segment.timestamp());
    }
    if let Some(stat) = segment.stat_part() {
        out["STAT"] = json!({
            "n_r": stat.received_below.value(), "window": stat.window,
            "echoed_stamp": stat.echo.timestamp, "echoed_count": stat.echo.seq,
            "arrival": stat.arrival.map(|arrival| json!([arrival.at, arrival.octets])),
            "runs": runs(stat.runs()),
        });
    }
    if let Some(ustat) = segment.ustat_part() {
        let gap = |run: xstp::wire::Run| json!({ "first": run.start.value(), "length": run.len });
        out["USTAT"] = json!({
            "n_r": ustat.received_below().value(), "gaps": ustat.gaps().map(gap).collect::<Value>(),
        });
    }
    if segment.poll_part().is_some() || segment.stat_part().is_some() {
        out["NOTE"] = json!(hex(segment.note()));
    }
    if let Some(repair) = segment.repair_part() {
        let symbol = hex(repair.symbol);
        out["REPAIR"] = json!({ "packets": repair.count, "key": repair.key, "symbol": symbol });
    }
    if let Some(payload) = segment.payload() {
        out["payload"] = json!(hex(payload));
    }
    out
}

fn vector(name: &str, clauses: &str, segment: Segment<'_>) -> Value {
    let mut room = [0; 200];
    let len = segment.encode(&Profile::Sealed, &mut room).expect("there is room");
    assert_eq!(Segment::decode(&Profile::Sealed, &room[..len]), Ok(segment), "{name}");
    json!({
        "name": name, "clauses": clauses, "segment": hex(&room[..len]), "parts": describe(&segment),
        "reaction": "handled",
    })
}

fn stat(runs: RunList<'static>, arrival: Option<Arrival>) -> Stat<'static> {
    let echo = Echo { seq: 300, timestamp: 0x0102_0304 };
    Stat { echo, received_below: number(0xff_fffe), window: 20_000, arrival, runs }
}

fn list(skip: u32, lengths: &'static [u32]) -> RunList<'static> {
    RunList::new(skip, lengths).expect("a list")
}

fn connections() -> Vec<Value> {
    let poll = Poll { seq: 1, next: number(1) };
    let first = Segment::begin(number(0), 1000, BEGIN).and_poll(1000, poll);
    let ack = Segment::begin_ack(number(0), BeginAck { begin: BEGIN, echo: 1000 });
    let empty = Stat {
        echo: Echo { seq: 1, timestamp: 1000 },
        received_below: number(1),
        window: 262_144,
        arrival: Some(Arrival { at: 77, octets: 83 }),
        runs: RunList::EMPTY,
    };
    vec![
        vector("BGN with POLL", "XSTP-3.5.2, 3.7.2, 6.1.1", first.and_note(b"")),
        vector(
            "BGN with POLL and the first packet",
            "XSTP-3.5.2, 3.7.2, 6.1.1",
            first.and_data(number(0), b"frames"),
        ),
        vector("BGNAK alone: it has no stamp", "XSTP-3.5.2, 6.1.5", ack),
        vector("BGNAK with STAT", "XSTP-6.1.2", ack.and_stat(empty)),
        vector("END", "XSTP-3.5.2, 6.4.2", Segment::end(number(4711), END)),
        vector("ENDAK", "XSTP-3.5.2, 6.4.2", Segment::end_ack(number(4711), END)),
        vector("RST", "XSTP-3.5.2, 6.5.1", Segment::reset(Seq24::ZERO, END)),
        vector(
            "RST: a frame that begins with 0x0b could not be read",
            "XSTP-6.5.3, RLY-10.6",
            Segment::reset(number(0x01_0b00), END),
        ),
    ]
}

fn data_and_reports() -> Vec<Value> {
    let arrival = Some(Arrival { at: 0x0a0b_0c0d, octets: 123_456 });
    let newest = Poll { seq: 300, next: number(0) };
    let gaps = Ustat::new(number(7), list(0, &LENGTHS[..3])).expect("gaps");
    let later = Ustat::new(number(7), list(5, &[4])).expect("a gap");
    vec![
        vector("SD", "XSTP-3.6.1", Segment::data(number(5), b"payload")),
        vector(
            "SD, empty: its payload is not wanted any more",
            "XSTP-3.6.1",
            Segment::data(number(5), b""),
        ),
        vector(
            "SD with POLL, the newest packet, at the end of the number space",
            "XSTP-2.1.1, 3.7.2",
            Segment::data(number(0xff_ffff), b"payload").and_poll(16_909_060, newest),
        ),
        vector(
            "SD that is sent again, with POLL",
            "XSTP-3.7.2, 3.7.3",
            Segment::data(number(5), b"payload")
                .and_poll(16_909_060, Poll { seq: 300, next: number(1000) })
                .and_note(b"\x00\x20"),
        ),
        vector(
            "POLL alone, with a NOTE",
            "XSTP-3.7.2, 3.10.1",
            Segment::poll(16_909_060, Poll { seq: 300, next: number(9) }).and_note(b"\x00\x20"),
        ),
        vector(
            "STAT without gaps",
            "XSTP-3.8.2",
            Segment::stat(number(9), stat(RunList::EMPTY, arrival)),
        ),
        vector(
            "STAT with gaps, across the end of the number space",
            "XSTP-3.8.2",
            Segment::stat(number(9), stat(list(0, &LENGTHS), arrival)),
        ),
        vector(
            "STAT whose list ends with a gap",
            "XSTP-3.8.2",
            Segment::stat(number(9), stat(list(0, &LENGTHS[..3]), arrival)),
        ),
        vector(
            "STAT that goes on with a list",
            "XSTP-3.8.3, 5.3.4, 5.3.5",
            Segment::stat(number(9), stat(list(206, &LENGTHS[..2]), None)),
        ),
        vector("USTAT with two gaps", "XSTP-3.9.1", Segment::ustat(number(9), gaps)),
        vector("USTAT with a gap beyond N(R)", "XSTP-3.9.1", Segment::ustat(number(9), later)),
        vector(
            "SD with POLL and STAT: one NOTE",
            "XSTP-3.2.3, 3.10.1",
            Segment::data(number(5), b"payload")
                .and_poll(16_909_060, Poll { seq: 300, next: number(6) })
                .and_stat(stat(list(0, &LENGTHS), arrival))
                .and_note(b"\x00\x20"),
        ),
    ]
}

/// The symbols are those of `xstp::repair`, whose tests have them as well.
fn repairs() -> Vec<Value> {
    let repair = |name: &str, first: u32, key: u8, covered: &[&[u8]], symbol: &str| {
        let symbol = octets(symbol);
        let repair = Repair { count: covered.len() as u8, key, symbol: &symbol };
        let clauses = "XSTP-3.11.1, 15.1.2, 15.1.3";
        let mut vector = vector(name, clauses, Segment::repair(number(first), repair));
        vector["covered"] = covered.iter().map(|payload| hex(payload)).collect();
        vector
    };
    let three: [&[u8]; 3] = [b"payload", b"", b"frames"];
    vec![
        repair("REPAIR that covers one packet", 7, 5, &three[..1], "00407417b469971708"),
        repair(
            "REPAIR that covers packets across the end of the number space",
            0xff_ffff,
            127,
            &three,
            "0058f01054bc466ea5",
        ),
        repair(
            "REPAIR with the next key, for the same packets",
            0xff_ffff,
            0,
            &three,
            "002c1fede87afab9b4",
        ),
    ]
}

fn malformed() -> Vec<Value> {
    let bad = |name: &str, clauses: &str, segment: &str| {
        let segment = octets(segment);
        assert!(Segment::decode(&Profile::Sealed, &segment).is_err(), "{name}");
        json!({ "name": name, "clauses": clauses, "segment": hex(&segment), "reaction": "dropped" })
    };
    vec![
        bad("no type", "XSTP-3.2.2", "00 000000"),
        bad("END with SD", "XSTP-3.2.2", "21 000005 cafef00d"),
        bad("octets behind RST", "XSTP-3.2.3", "80 000000 cafef00d 00"),
        bad("BGN of version 2", "XSTP-3.5.2", "10 000000 02 01 05a8 cafef00d 8020 000003e8"),
        bad("BGN with delivery 2", "XSTP-3.5.2", "10 000000 01 02 05a8 cafef00d 8020 000003e8"),
        bad(
            "BGN with a window above 2^23",
            "XSTP-3.5.2",
            "10 000000 01 01 05a8 cafef00d 81808004 000003e8",
        ),
        bad("a count that is longer than it need be", "XSTP-3.1.2", "02 000010 01020304 8100 00"),
        bad("a count above 32 bits", "XSTP-3.1.2", "02 000010 01020304 8080808010 00"),
        bad(
            "SD with POLL whose VT(S) is too far ahead",
            "XSTP-3.7.3",
            "03 000005 01020304 01 80808004 00",
        ),
        bad("a NOTE beyond the end", "XSTP-3.10.1", "02 000010 01020304 01 05 78"),
        bad("STAT with a reserved bit", "XSTP-3.8.4", "04 000000 04 000007 01020304 01 0a 00 00"),
        bad(
            "STAT with a skip of zero",
            "XSTP-3.8.4",
            "04 000000 02 000007 01020304 01 0a 00 01 01 00",
        ),
        bad(
            "STAT with a skip and no list",
            "XSTP-3.8.4",
            "04 000000 02 000007 01020304 01 0a 05 00 00",
        ),
        bad(
            "STAT with a run of length zero",
            "XSTP-3.8.4",
            "04 000000 00 000007 01020304 01 0a 02 01 00 00",
        ),
        bad(
            "STAT with a list beyond 2^23",
            "XSTP-3.8.4",
            "04 000000 00 000007 01020304 01 0a 01 81808004 00",
        ),
        bad(
            "STAT with a window above 2^23",
            "XSTP-3.8.4",
            "04 000000 00 000007 01020304 01 81808004 00 00",
        ),
        bad("USTAT with an even number of lengths", "XSTP-3.9.2", "08 000000 000007 00 02 01 01"),
        bad("USTAT without lengths", "XSTP-3.9.2", "08 000000 000007 00 00"),
        bad(
            "a list that says it is longer than the segment",
            "XSTP-4.1.1",
            "08 000000 000007 00 ffffffff0f 01",
        ),
        bad("REPAIR that covers more than 128 packets", "XSTP-3.11.1", "40 000007 80 05 0040"),
        bad("REPAIR with a key above 127", "XSTP-3.11.1", "40 000007 00 80 0040"),
        bad("REPAIR with a symbol of one octet", "XSTP-3.11.1", "40 000007 00 05 00"),
        bad("REPAIR with SD", "XSTP-3.2.2", "41 000007 00 05 0040"),
    ]
}

// The clauses are named by XSTP's own tests; this test compares the results with the files.
#[test]
fn segments_are_those_of_the_vectors() {
    let all = [connections(), data_and_reports(), repairs(), malformed()].concat();
    check("segments.json", "Segments of the sealed profile (xstp.md).", &all);
}
