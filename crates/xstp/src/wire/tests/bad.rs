//! Invalid segments and their errors.

use super::*;
use std::string::ToString;

fn error(octets: &str) -> DecodeError {
    Segment::decode(&SEALED, &hex(octets)).expect_err("an invalid segment")
}

/// Error of a published segment whose checksum is corrected first.
fn published_error(octets: &str) -> DecodeError {
    let mut octets = hex(octets);
    seal_checksum(&receiver(), &mut octets);
    Segment::decode(&receiver(), &octets).expect_err("an invalid segment")
}

/// Corrects the checksum of a segment that `profile` receives.
pub(super) fn seal_checksum(profile: &Profile, octets: &mut [u8]) {
    let Profile::Published(Endpoints { local, remote }) = profile else { return };
    octets[header::CHECKSUM].fill(0);
    let sum = checksum::checksum(remote.ip(), local.ip(), octets);
    octets[header::CHECKSUM].copy_from_slice(&sum.to_be_bytes());
}

// XSTP-3.2.2
#[test]
fn invalid_combinations_are_rejected() {
    for octets in ["00 000000", "41 000000", "30 000000", "21 000005 cafef00d", "81 000000"] {
        let error = error(octets);
        assert!(matches!(error, DecodeError::Combination { .. }), "{octets}: {error}");
    }
    assert_eq!(
        error("c0 000000").to_string(),
        "expected a valid combination of types, found AK+RST"
    );
}

// XSTP-3.11.1
#[test]
fn invalid_repair_symbols_are_rejected() {
    let cut = |expected, found| DecodeError::Truncated { part: Part::Repair, expected, found };
    assert_eq!(error("40 000000"), cut(1, 0));
    assert_eq!(error("40 000000 00 00"), cut(2, 0));
    assert_eq!(error("40 000000 00 00 01"), cut(2, 1));
    for octets in ["40 000000 80 00 0000", "40 000000 00 80 0000"] {
        let error = error(octets);
        assert!(matches!(error, DecodeError::Field { expected: 127, found: 128, .. }), "{error}");
    }
    let published = published_error("03e8 07d0 40 000000 0000 0000 00000000 00 00 0000");
    assert!(matches!(published, DecodeError::Combination { .. }), "{published}");
}

// XSTP-3.2.3
#[test]
fn trailing_octets_are_rejected() {
    assert_eq!(error("80 000000 cafef00d 00"), DecodeError::Trailing { found: 1 });
    assert_eq!(
        error("02 000010 01020304 ac02 00 7878").to_string(),
        "expected the end, found 2 more octets"
    );
}

#[test]
fn truncated_fields_are_rejected() {
    let cut = |part, expected, found| DecodeError::Truncated { part, expected, found };
    assert_eq!(error(""), cut(Part::Header, 4, 0));
    assert_eq!(error("01 0000"), cut(Part::Header, 4, 3));
    assert_eq!(error("02 000010 0102"), cut(Part::Timestamp, 4, 2));
    assert_eq!(error("02 000010 01020304"), cut(Part::Poll, 1, 0));
    assert_eq!(error("02 000010 01020304 ac02 05 78"), cut(Part::Note, 5, 1));
    // A list with a claimed number of 2³²-1 lengths allocates nothing.
    assert_eq!(error("08 000000 000007 00 ffffffff0f 01"), cut(Part::Ustat, 1, 0));
    assert_eq!(
        Segment::decode(&receiver(), &[0; 15]).unwrap_err().to_string(),
        "header: expected 16 more octets, found 15"
    );
}

// XSTP-3.7.3
#[test]
fn fields_above_their_limit_are_rejected() {
    let field = |part, field, expected, found| DecodeError::Field { part, field, expected, found };
    assert_eq!(
        error("10 000000 | 02 01 05a8 cafef00d 8020 | 00000007"),
        field(Part::Begin, "version", 1, 2)
    );
    assert_eq!(
        error("10 000000 | 01 02 05a8 cafef00d 8020 | 00000007"),
        field(Part::Begin, "delivery", 1, 2)
    );
    // 2²³ + 1 is 81 80 80 04.
    assert_eq!(
        error("10 000000 | 01 01 05a8 cafef00d 81808004 | 00000007"),
        field(Part::Begin, "window", 1 << 23, (1 << 23) + 1)
    );
    assert_eq!(
        error("03 000002 | 000003e8 | 01 80808004 | 00"),
        field(Part::Poll, "ahead", (1 << 23) - 1, 1 << 23)
    );
    assert_eq!(
        error("04 000000 | 04 000007 01020304 01 01 00 00"),
        field(Part::Stat, "flags", 3, 4)
    );
    assert_eq!(error("02 000010 01020304 8000 00"), DecodeError::Varint { part: Part::Poll });
}

// XSTP-3.8.4, XSTP-3.9.2
#[test]
fn invalid_sealed_lists_are_rejected() {
    let order = |part, expected, found| DecodeError::ListOrder { part, expected, found };
    let stat = |list: &str| error(&["04 000000 | 00 000007 01020304 01 01", list, "00"].concat());
    let later = |list: &str| error(&["04 000000 | 02 000007 01020304 01 01", list, "00"].concat());
    assert_eq!(stat("03 01 00 01"), order(Part::Stat, 2, 1), "an empty run");
    assert_eq!(stat("01 81808004"), order(Part::Stat, 1, (1 << 23) + 1), "too wide");
    let all = "03 ffffffff0f ffffffff0f ffffffff0f";
    assert_eq!(stat(all), order(Part::Stat, 1, u64::from(u32::MAX)), "no wrap");
    assert_eq!(later("00 01 01"), order(Part::Stat, 1, 0), "a skip of zero");
    assert_eq!(later("01 00"), DecodeError::ListLength { part: Part::Stat, found: 0 });
    let ustat = |list: &str| error(&["08 000000 000007 00", list].concat());
    assert_eq!(ustat("02 01 01"), DecodeError::ListLength { part: Part::Ustat, found: 2 });
    assert_eq!(ustat("00"), DecodeError::ListLength { part: Part::Ustat, found: 0 });
}

// XSTP-3.8.4, XSTP-3.9.2
#[test]
fn invalid_published_lists_are_rejected() {
    let stat =
        |list: &str| published_error(&["03e8 07d0 04 000000 0040 0000 00000000", list].concat());
    let order = |expected, found| DecodeError::ListOrder { part: Part::Stat, expected, found };
    assert_eq!(
        stat("01 000007 00000000 000007"),
        DecodeError::ListLength { part: Part::Stat, found: 1 }
    );
    assert_eq!(stat("02 000007 00000000 000007 000007"), order(1, 0), "an empty run");
    assert_eq!(stat("02 000007 00000000 000009 000008"), order(3, 1), "falling");
    assert_eq!(stat("02 000007 00000000 000006 000009"), order(0, 0xff_ffff), "below N(R)");
    let cut = DecodeError::Truncated { part: Part::Stat, expected: 6, found: 3 };
    assert_eq!(stat("02 000007 00000000 000009"), cut);
    assert_eq!(
        published_error("03e8 07d0 08 000000 0000 0000 00000000 03 000007 000007 000008 000009"),
        DecodeError::ListLength { part: Part::Ustat, found: 2 }
    );
    assert_eq!(
        published_error("03e8 07d0 03 000002 0000 0000 00000001 000002"),
        DecodeError::Field {
            part: Part::Poll,
            field: "ahead",
            expected: (1 << 23) - 1,
            found: 0xff_ffff
        }
    );
}

// XSTP-3.3.3, XSTP-3.3.5
#[test]
fn wrong_ports_and_checksums_are_rejected() {
    let wrong = hex("03e8 07d0 | 01 000005 | 0000 75c8 | 00000000 | 68 69");
    let error = Segment::decode(&receiver(), &wrong).unwrap_err();
    assert_eq!(error, DecodeError::Checksum { expected: 0x75c7, found: 0x75c8 });
    assert_eq!(error.to_string(), "checksum: expected 0x75c7, found 0x75c8");
    let ports = published_error("03e8 07d1 01 000005 0000 0000 00000000");
    assert_eq!(ports, DecodeError::Ports { expected: (1000, 2000), found: (1000, 2001) });
}

#[test]
fn a_published_list_is_counted_in_one_octet() {
    let lengths = [1; 255];
    let stat = |runs| {
        let echo = Echo { seq: 1, timestamp: 1 };
        let stat = Stat { echo, received_below: number(0), window: 1, arrival: None, runs };
        Segment::stat(number(0), stat)
    };
    let mut out = [0; 1500];
    let most = stat(RunList::new(0, &lengths[..254]).unwrap());
    assert_eq!(most.encode(&sender(), &mut out), Ok(16 + 8 + 3 * 255));
    let more = stat(RunList::new(0, &lengths).unwrap());
    assert_eq!(
        more.encode(&sender(), &mut out),
        Err(EncodeError::ListLength { expected: 255, found: 256 })
    );
}
