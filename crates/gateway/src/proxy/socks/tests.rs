use super::super::{Destination, Ending, Handshake, drive};
use super::*;

fn request(tail: &[u8]) -> Ending {
    let input = [&[5, 1, 0], tail].concat();
    let once = drive(&mut Handshake::socks5(), &input, input.len());
    let bytewise = drive(&mut Handshake::socks5(), &input, 1);
    assert_eq!(once, bytewise);
    once
}

fn complaint(ending: Ending) -> (Vec<u8>, String) {
    match ending {
        Ending::Bad { reply, message } => (reply, message),
        other => panic!("not bad: {other:?}"),
    }
}

#[test]
fn the_greeting_is_answered_with_no_authentication() {
    let mut handshake = Handshake::socks5();
    let reply = Progress::Reply { bytes: vec![5, 0], used: 4 };
    assert_eq!(handshake.feed(&[5, 2, 2, 0]), reply);
    assert_eq!(handshake.feed(&[]), Progress::NeedMore);
}

#[test]
fn an_ipv4_address_is_read() {
    let ending = request(&[5, 1, 0, 1, 192, 0, 2, 7, 0, 80, b'x', b'y']);
    let destination = Destination::Address("192.0.2.7:80".parse().unwrap());
    assert_eq!(ending, Ending::Request { destination, taken: 13 });
}

#[test]
fn an_ipv6_address_is_read() {
    let mut message = vec![5, 1, 0, 4, 0x20, 0x01, 0x0d, 0xb8];
    message.extend_from_slice(&[0; 11]);
    message.extend_from_slice(&[9, 0x1f, 0x90]);
    let destination = Destination::Address("[2001:db8::9]:8080".parse().unwrap());
    assert_eq!(request(&message), Ending::Request { destination, taken: 25 });
}

#[test]
fn an_address_written_as_a_name_is_an_address() {
    let ending = request(b"\x05\x01\x00\x03\x093.3.3.3.3\x00\x50");
    assert!(matches!(ending, Ending::Request { destination: Destination::Name(..), .. }));
    let ending = request(b"\x05\x01\x00\x03\x07\x33.3.3.3\x00\x50");
    let destination = Destination::Address("3.3.3.3:80".parse().unwrap());
    assert_eq!(ending, Ending::Request { destination, taken: 17 });
}

#[test]
fn commands_other_than_connect_are_refused_with_code_7() {
    for (command, word) in [(2, "BIND"), (3, "UDP ASSOCIATE"), (9, "9")] {
        let (reply, message) = complaint(request(&[5, command, 0, 1, 1, 2, 3, 4, 0, 80]));
        assert_eq!(reply, [5, 7, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert!(message.contains(word), "{message}");
    }
}

#[test]
fn malformed_requests_are_refused_with_a_reason() {
    for (tail, code, word) in [
        (&[5, 1, 0, 2][..], 8, "address type 2"),
        (&[5, 1, 0, 3, 0], 1, "empty host name"),
        (&[5, 1, 0, 3, 1, b' ', 0, 80], 1, "not a host name"),
        (&[5, 1, 0, 1, 1, 2, 3, 4, 0, 0], 1, "port 0"),
        (&[5, 1, 0, 1, 0, 0, 0, 0, 0, 80], 1, "0.0.0.0"),
        (&[4], 1, "version 4 after"),
    ] {
        let (reply, message) = complaint(request(tail));
        assert_eq!((reply[0], reply[1], reply.len()), (5, code, 10));
        assert!(message.contains(word), "{message}");
    }
}

#[test]
fn other_protocols_are_recognised() {
    for (first, reply_start, word) in [
        (&b"\x04\x01\x00\x50\x01\x02\x03\x04\x00"[..], &b"\x00\x5b"[..], "version 4"),
        (b"GET / HTTP/1.1\r\n", b"HTTP/1.1 400", "HTTP"),
        (b"\x16\x03\x01", b"", "TLS"),
        (b"\x00", b"", "first byte is 0"),
        (b"\x05\x00", b"\x05\xff", "no authentication method"),
        (b"\x05\x02\x01\x02", b"\x05\xff", "GSSAPI, user name and password"),
    ] {
        let (reply, message) = complaint(drive(&mut Handshake::socks5(), first, 100));
        assert!(reply.starts_with(reply_start), "{reply:?}");
        assert!(message.contains(word), "{message}");
    }
}

#[test]
fn refusals_have_the_codes_of_rfc_1928() {
    let codes = [
        (RefuseReason::Policy, 2),
        (RefuseReason::NetworkUnreachable, 3),
        (RefuseReason::HostUnreachable, 4),
        (RefuseReason::NameNotFound, 4),
        (RefuseReason::ConnectionRefused, 5),
        (RefuseReason::TimedOut, 6),
        (RefuseReason::Limit, 1),
        (RefuseReason::Other, 1),
    ];
    for (reason, code) in codes {
        assert_eq!(refused(reason), [5, code, 0, 1, 0, 0, 0, 0, 0, 0]);
    }
}

#[test]
fn a_grant_names_the_bound_address() {
    assert_eq!(granted(None), [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    let v4 = granted(Some("198.51.100.2:513".parse().unwrap()));
    assert_eq!(v4, [5, 0, 0, 1, 198, 51, 100, 2, 2, 1]);
    let v6 = granted(Some("[::1]:256".parse().unwrap()));
    assert_eq!(v6, [5, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0]);
}
