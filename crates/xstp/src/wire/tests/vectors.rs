//! Encoding of each type of segment, octet by octet.

use super::*;
use std::vec;

/// N(R) 7; missing 7, received 8 and 9, missing 10 to 12, received the next 200.
const LENGTHS: [u32; 4] = [1, 2, 3, 200];
const END: End = End { incarnation: 0xcafe_f00d };
const BEGIN: Begin = Begin {
    incarnation: 0xcafe_f00d,
    window: 4096,
    max_segment: 1448,
    delivery: Delivery::Immediate,
};

fn runs(skip: u32) -> RunList<'static> {
    RunList::new(skip, &LENGTHS).unwrap()
}

fn gaps() -> Ustat<'static> {
    Ustat::new(number(7), RunList::new(0, &LENGTHS[..3]).unwrap()).unwrap()
}

fn stat(runs: RunList<'static>) -> Stat<'static> {
    Stat {
        echo: Echo { seq: 300, timestamp: 0x0102_0304 },
        received_below: number(7),
        window: 20_000,
        arrival: None,
        runs,
    }
}

/// Encodes `segment`, compares with `octets`, decodes, and compares with `segment`.
fn check(from: &Profile, to: &Profile, segment: Segment<'_>, octets: &str) {
    let octets = hex(octets);
    let mut out = vec![0xee; octets.len()];
    assert_eq!(segment.encode(from, &mut out), Ok(octets.len()));
    assert_eq!(out, octets, "{segment:?}");
    assert_eq!(Segment::decode(to, &octets), Ok(segment));
    let short = segment.encode(from, &mut out[1..]);
    assert_eq!(short, Err(EncodeError::NoRoom { expected: octets.len(), found: octets.len() - 1 }));
}

fn sealed(segment: Segment<'_>, octets: &str) {
    check(&SEALED, &SEALED, segment, octets);
}

fn published(segment: Segment<'_>, octets: &str) {
    check(&sender(), &receiver(), segment, octets);
}

// XSTP-3.1.1, XSTP-3.4.1, XSTP-3.6.1
#[test]
fn sealed_data_takes_four_octets_of_header() {
    sealed(Segment::data(number(5), b"hi"), "01 000005 | 68 69");
    sealed(Segment::data(number(0xff_ffff), b""), "01 ffffff");
}

// XSTP-3.7.2
#[test]
fn sealed_polls_have_timestamp_seq_and_ahead() {
    let poll = |count, next| Poll { seq: count, next: number(next) };
    sealed(Segment::poll(0x0102_0304, poll(300, 16)), "02 000010 | 01020304 | ac02 | 00");
    let newest = Segment::data(number(4), b"tail").and_poll(1000, poll(1, 5));
    sealed(newest, "03 000004 | 000003e8 | 01 00 | 00 | 74 61 69 6c");
    let again = Segment::data(number(2), b"x").and_poll(1000, poll(1, 5));
    sealed(again, "03 000002 | 000003e8 | 01 02 | 00 | 78");
    let wrapped = Segment::data(number(0xff_ffff), b"").and_poll(0, poll(u32::MAX, 1));
    sealed(wrapped, "03 ffffff | 00000000 | ffffffff0f 01 | 00");
}

// XSTP-3.8.2
#[test]
fn a_sealed_stat_without_gaps_takes_27_octets() {
    let clean = Stat {
        received_below: number(16),
        arrival: Some(Arrival { at: 0x0a0b_0c0d, octets: 0x0001_0000 }),
        ..stat(RunList::EMPTY)
    };
    sealed(
        Segment::stat(number(0), clean),
        "04 000000 | 01 000010 01020304 ac02 a09c01 | 0a0b0c0d 00010000 | 00 | 00",
    );
}

// XSTP-3.8.3
#[test]
fn sealed_lists_are_lengths() {
    sealed(
        Segment::stat(number(0), stat(runs(0))),
        "04 000000 | 00 000007 01020304 ac02 a09c01 | 04 01 02 03 c801 | 00",
    );
    // The same list after 206 packets that another segment has listed.
    sealed(
        Segment::stat(number(0), stat(runs(206))),
        "04 000000 | 02 000007 01020304 ac02 a09c01 | ce01 04 01 02 03 c801 | 00",
    );
    sealed(Segment::ustat(number(0), gaps()), "08 000000 | 000007 00 03 01 02 03");
}

// XSTP-3.10.1
#[test]
fn a_note_is_piggybacked_on_stat() {
    let segment = Segment::stat(number(9), stat(RunList::EMPTY));
    let with = segment.and_note(b"credit");
    sealed(with, "04 000009 | 00 000007 01020304 ac02 a09c01 | 00 | 06 63 72 65 64 69 74");
    assert_eq!(with.overhead(&SEALED), segment.overhead(&SEALED) + Segment::note_overhead(6));
    let reply = segment.and_ustat(gaps()).and_data(number(9), b"y");
    sealed(
        reply,
        "0d 000009 | 00 000007 01020304 ac02 a09c01 00 | 000007 00 03 01 02 03 | 00 | 79",
    );
}

// XSTP-3.2.4, XSTP-3.5.2, XSTP-3.5.3
#[test]
fn a_sealed_connection_begins_and_ends() {
    let begin = Segment::begin(number(0), 7, BEGIN);
    sealed(begin, "10 000000 | 01 01 05a8 cafef00d 8020 | 00000007");
    let poll = Poll { seq: 1, next: number(1) };
    sealed(
        begin.and_data(number(0), b"GET").and_poll(7, poll),
        "13 000000 | 01 01 05a8 cafef00d 8020 | 00000007 | 01 00 | 00 | 47 45 54",
    );
    let accepted = BeginAck { begin: BEGIN, echo: 7 };
    sealed(
        Segment::begin_ack(number(0), accepted),
        "50 000000 | 01 01 05a8 cafef00d 8020 00000007",
    );
    sealed(Segment::end(number(5), END), "20 000005 | cafef00d");
    sealed(Segment::end_ack(number(5), END), "60 000005 | cafef00d");
    sealed(Segment::reset(Seq24::ZERO, END), "80 000000 | cafef00d");
}

// XSTP-3.3.2, XSTP-3.3.4, XSTP-3.7.1. Checksums: 10.0.0.1 + 10.0.0.2 + 253 is 1500, both ports are 0bb8, and
// each line below adds the length and the words of the segment.
#[test]
fn published_segments_have_the_16_octet_header() {
    // 1500 + 12 + 0bb8 + 0100 + 0005 + 6869 = 8a38
    published(
        Segment::data(number(5), b"hi"),
        "03e8 07d0 | 01 000005 | 0000 75c7 | 00000000 | 68 69",
    );
    // 1500 + 10 + 0bb8 + 0200 + 0005 + 03e8 = 26b5
    let poll = Poll { seq: 1000, next: number(5) };
    published(Segment::poll(1000, poll), "03e8 07d0 | 02 000005 | 0000 d94a | 000003e8");
    // 1500 + 14 + 0bb8 + 0300 + 0002 + 03e8 + 0000 + 0578 = 2d2e
    published(
        Segment::data(number(2), b"x").and_poll(1000, poll),
        "03e8 07d0 | 03 000002 | 0000 d2d1 | 000003e8 | 000005 | 78",
    );
}

// XSTP-3.8.1, XSTP-3.9.1
#[test]
fn published_lists_are_boundaries() {
    let echo = Echo { seq: 1000, timestamp: 1000 };
    let stat = |received_below, runs| {
        let received_below = number(received_below);
        let stat = Stat { echo, received_below, window: 64, arrival: None, runs };
        Segment::stat(number(0), stat)
    };
    // 24 octets, so 44 with IP. 1500 + 18 + 0bb8 + 0400 + 0040 + 0005 + 03e8 = 28fd
    published(
        stat(5, RunList::EMPTY),
        "03e8 07d0 | 04 000000 | 0040 d702 | 00000000 | 00 000005 000003e8",
    );
    // 1500 + 27 + 0bb8 + 0400 + 0040 = 251f; the body adds ef04
    published(
        stat(7, runs(0)),
        "03e8 07d0 | 04 000000 | 0040 ebdb | 00000000 | 05 000007 000003e8 \
         | 000007 000008 00000a 00000d 0000d5",
    );
    // 1500 + 20 + 0bb8 + 0800 = 28d8; the body adds 151c
    published(
        Segment::ustat(number(0), gaps()),
        "03e8 07d0 | 08 000000 | 0000 c20b | 00000000 | 04 000007 | 000007 000008 00000a 00000d",
    );
}

// XSTP-3.5.1
#[test]
fn a_published_connection_begins_and_ends() {
    let begin =
        Begin { incarnation: 13, window: 64, max_segment: 1000, delivery: Delivery::InOrder };
    // 1500 + 13 + 0bb8 + 1000 + 0040 + 0007 + 0d03 + e800 = 12615
    published(
        Segment::begin(number(0), 7, begin),
        "03e8 07d0 | 10 000000 | 0040 d9e9 | 00000007 | 0d 03e8",
    );
    // 1500 + 17 + 0bb8 + 5000 + 0040 + 0d03 + e800 + 0000 + 0700 = 16d12; the odd octets shift
    // what follows them: 0d 03 | e8 00 | 00 00 | 07 00
    published(
        Segment::begin_ack(number(0), BeginAck { begin, echo: 7 }),
        "03e8 07d0 | 50 000000 | 0040 92ec | 00000000 | 0d 03e8 00000007",
    );
    // 1500 + 11 + 0bb8 + 2000 + 0005 + 0d00 = 4dce
    published(
        Segment::end(number(5), End { incarnation: 13 }),
        "03e8 07d0 | 20 000005 | 0000 b231 | 00000000 | 0d",
    );
}

#[test]
fn published_checksums_cover_ipv6_addresses() {
    let end = |last, port| {
        SocketAddr::new(IpAddr::V6(core::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last)), port)
    };
    let (left, right) = (end(1, 1000), end(2, 2000));
    let from = Profile::Published(Endpoints { local: left, remote: right });
    let to = Profile::Published(Endpoints { local: right, remote: left });
    // fd00 + 0001 + fd00 + 0002 = 1fa03; + 00fd + 0010 + 0bb8 + 0100 + 0005 = 207cd
    let segment = Segment::data(number(5), b"");
    check(&from, &to, segment, "03e8 07d0 | 01 000005 | 0000 f830 | 00000000");
}

// XSTP-3.11.1
#[test]
fn repair_symbols_follow_their_header() {
    let repair = Repair { count: 128, key: 5, symbol: &[0, 1, 7] };
    check(&SEALED, &SEALED, Segment::repair(number(9), repair), "40 000009 | 7f 05 | 000107");
}

// XSTP-3.3.6
#[test]
fn published_fields_are_truncated() {
    let wide = Stat { window: 1 << 20, ..stat(RunList::EMPTY) };
    let mut out = [0; 64];
    let len = Segment::stat(number(0), wide).encode(&sender(), &mut out).unwrap();
    let seen = Segment::decode(&receiver(), &out[..len]).unwrap();
    assert_eq!(seen.stat_part().map(|stat| stat.window), Some(65_535));
}

#[test]
fn a_payload_is_encoded_in_place() {
    let segment = Segment::data(number(2), b"").and_poll(9, Poll { seq: 1, next: number(5) });
    for (from, to) in [(SEALED, SEALED), (sender(), receiver())] {
        let mut out = [0; 64];
        let overhead = segment.overhead(&from);
        out[overhead..overhead + 4].copy_from_slice(b"here");
        let len = segment.encode_in_place(&from, &mut out, 4).unwrap();
        let seen = Segment::decode(&to, &out[..len]).unwrap();
        assert_eq!((len, seen.payload()), (overhead + 4, Some(&b"here"[..])));
    }
}

#[test]
#[should_panic(expected = "SD+END cannot be combined")]
fn invalid_combinations_cannot_be_built() {
    let _ = Segment::end(number(5), END).and_data(number(4), b"");
}

// XSTP-2.2.1
#[test]
fn timestamps_are_milliseconds_or_microseconds() {
    assert_eq!(sender().tick(), units::Span::from_millis(1));
    assert_eq!(SEALED.tick(), units::Span::from_micros(1));
}
