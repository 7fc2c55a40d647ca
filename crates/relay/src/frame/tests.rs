use super::*;
use crate::FamilyReach;
use crate::target::Destination;
use crate::target::MAX_NUMBER;
use proptest::prelude::*;
use std::net::{IpAddr, SocketAddr};

fn t(number: u32) -> StreamId {
    StreamId::new(number, false)
}

fn h(number: u32) -> StreamId {
    StreamId::new(number, true)
}

fn head(id: StreamId, offset: u64) -> StreamHead<'static> {
    StreamHead { id, offset, open: None, end: false, charged: false, coded: false }
}

/// RLY-1.2, RLY-1.3
#[test]
fn a_full_data_frame_has_a_header_of_eight_bytes() {
    let mut room = [0u8; 1444];
    let mut writer = Writer::new(&mut room);
    let number = (1 << 21) - 1;
    let taken = writer.stream(head(h(number), 0x1234_5678_9abc), 9_999, 1, true, |data| {
        data.fill(0xaa);
    });
    assert_eq!(taken, Some(1436));
    assert_eq!(room[..9], [0xd0, 0xff, 0xff, 0x7f, 0x56, 0x78, 0x9a, 0xbc, 0xaa]);
}

/// RLY-1.3, RLY-1.6
#[test]
fn low_offsets_have_a_short_encoding() {
    let mut room = [0u8; 20];
    let mut writer = Writer::new(&mut room);
    let head = StreamHead { end: true, charged: true, ..head(t(5), 0x0023_4567) };
    assert_eq!(writer.stream(head, 3, 1, true, |data| data.copy_from_slice(b"end")), Some(3));
    assert_eq!(writer.written(), 9);
    assert_eq!(room[..9], [0xaa, 5, 0x23, 0x45, 0x67, 3, b'e', b'n', b'd']);
}

/// RLY-1.4
#[test]
fn fin_is_only_in_the_frame_of_the_last_byte() {
    let mut room = [0u8; 8];
    let mut writer = Writer::new(&mut room);
    let head = StreamHead { end: true, ..head(t(5), 0) };
    assert_eq!(writer.stream(head, 9, 1, false, |data| data.fill(1)), Some(3));
    assert_eq!(room[0] & END, 0);
}

#[test]
fn control_frames_have_the_layout_of_the_specification() {
    let written = |frame: &Frame<'_>| {
        let mut room = [0u8; 32];
        let mut writer = Writer::new(&mut room);
        assert!(writer.control(frame));
        let len = writer.written();
        assert!(!Writer::new(&mut [0; 32][..len - 1]).control(frame), "one byte too few");
        let mut reader = Reader::new(&room[..len]);
        assert_eq!(reader.frame().as_ref(), Ok(frame));
        assert!(reader.is_empty());
        room[..len].to_vec()
    };
    assert_eq!(written(&Frame::Accept { id: t(1) }), [0x01, 1]);
    assert_eq!(
        written(&Frame::Reset { id: h(200), final_offset: 5, charged: 300, code: 65 }),
        [0x42, 0xc8, 0x01, 5, 0xac, 0x02, 65]
    );
    assert_eq!(written(&Frame::Credit { id: t(2), limit: 5 << 10 }), [0x03, 2, 5]);
    assert_eq!(written(&Frame::Shared { returned: 128 << 10 }), [0x04, 0x80, 0x01]);
    assert_eq!(written(&Frame::Grant { number: 3, kbps: 512 }), [0x07, 3, 0x80, 0x04]);
    assert_eq!(written(&Frame::Need { number: 200, units: 9 }), [0x08, 0xc8, 0x01, 9]);
    let families = Families { ipv4: FamilyReach::Global, ipv6: FamilyReach::Partial };
    assert_eq!(written(&Frame::Families { number: 300, families }), [0x09, 0xac, 0x02, 0x06]);
}

/// RLY-1.5
#[test]
fn openings_have_the_layout_of_the_specification() {
    let written = |open: &Open| {
        let mut room = [0u8; 64];
        let mut writer = Writer::new(&mut room);
        let head = StreamHead { open: Some(open), ..head(t(1), 0) };
        assert_eq!(writer.stream(head, 2, 1, true, |data| data.copy_from_slice(b"hi")), Some(2));
        let len = writer.written();
        room[..len].to_vec()
    };
    let named = Target {
        destination: Destination::Name("a.b".into(), 80),
        source: Some("192.0.2.7:1025".parse().expect("address")),
    };
    assert_eq!(
        written(&Open { priority: Priority::Background, target: named }),
        b"\xa4\x01\x02\x12\x03a.b\x00\x50\xc0\x00\x02\x07\x04\x01\x02hi"
    );
    let numbered = Target {
        destination: Destination::Address("[2001:db8::5]:443".parse().expect("address")),
        source: None,
    };
    assert_eq!(
        written(&Open { priority: Priority::Normal, target: numbered }),
        b"\xa4\x01\x01\x01\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x05\x01\xbb\x02hi"
    );
}

/// RLY-9.1
#[test]
fn families_have_two_bits_each() {
    let read = |bytes: &[u8]| match Reader::new(bytes).frame() {
        Ok(Frame::Families { number, families: Families { ipv4, ipv6 } }) => (number, ipv4, ipv6),
        other => panic!("{other:?}"),
    };
    assert_eq!(read(&[0x09, 5, 0x00]), (5, FamilyReach::None, FamilyReach::None));
    assert_eq!(read(&[0x09, 5, 0x09]), (5, FamilyReach::Partial, FamilyReach::Global));
    // The value 3 is reserved and causes no refusal; neither do bits above.
    assert_eq!(read(&[0x09, 1, 0x0f]), (1, FamilyReach::Global, FamilyReach::Global));
    assert_eq!(read(&[0x09, 1, 0xf2, 0x7f]), (1, FamilyReach::Global, FamilyReach::None));
    assert!(Reader::new(&[0x49, 1, 2]).frame().is_err(), "an unused bit");
    assert!(Reader::new(&[0x09, 1]).frame().is_err(), "cut short");
}

/// RLY-1.7
#[test]
fn reasons_have_the_codes_of_the_specification() {
    use crate::target::Cut;
    use crate::{RefuseReason as Refuse, ResetReason as Reset};
    let resets = [Reset::Aborted, Reset::Local, Reset::TimedOut, Reset::Protocol];
    let refusals = [
        Refuse::Other,
        Refuse::ConnectionRefused,
        Refuse::HostUnreachable,
        Refuse::NetworkUnreachable,
        Refuse::TimedOut,
        Refuse::Policy,
        Refuse::NameNotFound,
        Refuse::Limit,
    ];
    let all = (0..).zip(resets.map(Cut::Reset)).chain((64..).zip(refusals.map(Cut::Refused)));
    for (code, cut) in all {
        assert_eq!((cut.code(), Cut::from_code(code)), (code, cut));
    }
    for (code, cut) in [(4, resets[1]), (63, resets[1])] {
        assert_eq!(Cut::from_code(code), Cut::Reset(cut));
    }
    for code in [72, 255] {
        assert_eq!(Cut::from_code(code), Cut::Refused(Refuse::Other));
    }
}

/// RLY-1.9
#[test]
fn notes_contain_stream_limits_and_shared_credit() {
    let mut room = [0u8; 7];
    let mut writer = Writer::new(&mut room);
    assert!(writer.note(None, 3 << 10));
    assert!(writer.note(Some(h(70)), (200 << 10) + 1023));
    assert!(!writer.note(Some(t(70)), 200 << 10), "one byte is left");
    assert_eq!(writer.written(), 6);
    assert_eq!(room[..6], [0, 3, 0x8e, 0x01, 0xc8, 0x01]);
    let mut reader = Reader::new(&room[..6]);
    assert_eq!(reader.note(), Ok((None, 3 << 10)));
    assert_eq!(reader.note(), Ok((Some(h(70)), 200 << 10)));
}

/// RLY-1.1, RLY-1.8
#[test]
fn unused_bits_and_numbers_out_of_range_are_rejected() {
    for bytes in [
        &[0x94, 1, 1, 0, 127, 0, 0, 1, 0, 80][..],
        &[0x00, 1],
        &[0x44, 1],
        &[0x7f],
        &[0x01, 0xff, 0xff, 0xff, 0xff, 0x7f],
        &[0x04, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0x84, 1, 1, 3, 127, 0, 0, 1, 0, 80],
        &[0xa0, 1, 0, 0, 0, 2, 9],
    ] {
        assert!(Reader::new(bytes).frame().is_err(), "{bytes:02x?}");
    }
}

/// RLY-1.5
#[test]
fn an_opening_with_an_undefined_value_has_a_known_length() {
    for bytes in [
        &[0xa4, 1, 3, 0, 127, 0, 0, 1, 0, 80, 1, 9, 1, 7][..],
        &[0xa4, 1, 1, 2, 0, 0, 80, 0, 1, 7],
        &[0xa4, 1, 1, 2, 1, 0xff, 0, 80, 0, 1, 7],
    ] {
        let mut reader = Reader::new(bytes);
        let id = StreamId::new(1, false);
        assert_eq!(reader.frame(), Ok(Frame::BadOpening { id }), "{bytes:02x?}");
        let next = StreamId::new(7, false);
        assert_eq!(reader.frame(), Ok(Frame::Accept { id: next }), "the frame behind it");
    }
}

/// RLY-1.11
#[test]
fn padding_fills_a_packet() {
    for size in [0, 1, 2, 3, 129, 130, 131, 1_440] {
        let mut room = vec![0xff; size];
        let mut writer = Writer::new(&mut room);
        writer.padding();
        let len = writer.written();
        assert!(len + 1 >= size || len == 0, "{len} of {size}");
        let mut reader = Reader::new(&room[..len]);
        if len > 0 {
            assert_eq!(reader.frame(), Ok(Frame::Padding), "{size}");
        }
        assert!(reader.is_empty(), "{size}");
    }
}

/// RLY-1.10
#[test]
fn unknown_extension_frames_are_skipped_by_their_length() {
    let mut reader = Reader::new(&[0x1f, 2, 0xab, 0xcd, 0x01, 7]);
    assert_eq!(reader.frame(), Ok(Frame::Unknown { kind: 0x1f }));
    assert_eq!(reader.frame(), Ok(Frame::Accept { id: StreamId::new(7, false) }));
    for bytes in [&[0x1f, 3, 0xab][..], &[0x1f], &[0x10, 0], &[0x10, 1, 0x80]] {
        assert!(Reader::new(bytes).frame().is_err(), "{bytes:02x?}");
    }
}

fn targets() -> impl Strategy<Value = Target> {
    let address = (any::<bool>(), any::<[u8; 16]>(), any::<u16>()).prop_map(|(v4, ip, port)| {
        let four = [ip[0], ip[1], ip[2], ip[3]];
        let ip = if v4 { IpAddr::from(four) } else { IpAddr::from(ip) };
        SocketAddr::from((ip, port))
    });
    let name =
        ("[a-z.]{1,255}", any::<u16>()).prop_map(|(name, port)| Destination::Name(name, port));
    let destination = prop_oneof![address.clone().prop_map(Destination::Address), name];
    (destination, prop::option::of(address))
        .prop_map(|(destination, source)| Target { destination, source })
}

proptest! {
    #[test]
    fn stream_frames_come_back_as_they_went(
        number in 0u32..=MAX_NUMBER,
        base in 0u64..1 << 40,
        ahead in 0u64..1 << 30,
        open in prop::option::of(targets()),
        (hub, end, charged, coded, more) in any::<(bool, bool, bool, bool, bool)>(),
        data in prop::collection::vec(any::<u8>(), 0..300),
        room in 8usize..1200,
    ) {
        let open = open.map(|target| Open { priority: Priority::Background, target });
        let offset = if open.is_some() { 0 } else { base + ahead };
        let id = StreamId::new(number, hub);
        let head = StreamHead { id, offset, open: open.as_ref(), end, charged, coded };
        let mut room = vec![0; room];
        let mut writer = Writer::new(&mut room);
        let taken = writer.stream(head, data.len(), 1, more, |out| {
            out.copy_from_slice(&data[..out.len()]);
        });
        let written = writer.written();
        let Some(taken) = taken else {
            prop_assert_eq!(written, 0);
            return Ok(());
        };
        match Reader::new(&room[..written]).frame() {
            Ok(Frame::Stream { id: i, open: o, offset: at, end: e, charged: c, coded: z, data: d }) => {
                prop_assert_eq!((i, o, at.resolve(base), c, z), (id, open, offset, charged, coded));
                prop_assert_eq!(e, end && taken == data.len());
                prop_assert_eq!(d, &data[..taken]);
            }
            other => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let mut reader = Reader::new(&bytes);
        while !reader.is_empty() {
            if reader.frame().is_err() {
                break;
            }
        }
        let mut reader = Reader::new(&bytes);
        while !reader.is_empty() && reader.note().is_ok() {}
    }
}

/// RLY-6.1, RLY-6.4
#[test]
fn datagram_and_piece_encoding() {
    let mut room = [0; 64];
    let mut writer = Writer::new(&mut room);
    assert!(writer.datagram(b"abc", true));
    assert_eq!(writer.piece(0x81, 300, 296, &[7; 4], true), Some(4));
    assert!(!writer.datagram(&[0; 60], true), "no room");
    assert!(writer.datagram(b"z", false));
    assert_eq!(writer.left(), 0, "nothing follows what has no length");
    let len = writer.written();
    let bytes =
        [0x25, 3, b'a', b'b', b'c', 0x26, 0x81, 1, 0xac, 2, 0xa8, 2, 4, 7, 7, 7, 7, 5, b'z'];
    assert_eq!(room[..len], bytes);
    let mut reader = Reader::new(&room[..len]);
    assert_eq!(reader.frame(), Ok(Frame::Datagram { packet: b"abc" }));
    let piece = Frame::Piece { number: 0x81, total: 300, offset: 296, piece: &[7; 4] };
    assert_eq!(reader.frame(), Ok(piece));
    assert_eq!(reader.frame(), Ok(Frame::Datagram { packet: b"z" }));
    assert!(reader.is_empty());
    for bad in [
        &[6, 1, 3, 2, b'x', b'x'][..],
        &[6, 1, 3, 0],
        &[6, 1, 3, 0, b'x'],
        &[6, 0x80, 0x80, 4, 3, 0, 1],
        &[0x45, 1],
    ] {
        assert!(Reader::new(bad).frame().is_err(), "{bad:?}");
    }
}
