use super::*;
use proptest::prelude::*;

const SOCKS: &[u8] = b"\x05\x01\x00\x05\x01\x00\x03\x0bexample.com\x01\xbbhello";
const HTTP: &[u8] = b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\nhello";

fn name(name: &str, port: u16) -> Destination {
    Destination::Name(name.into(), port)
}

#[test]
fn the_first_byte_chooses_the_protocol() {
    for (input, step) in [(SOCKS, 1), (SOCKS, 100), (HTTP, 1), (HTTP, 100)] {
        let mut handshake = Handshake::either();
        assert_eq!(handshake.feed(&[]), Progress::NeedMore);
        let ending = drive(&mut handshake, input, step);
        let taken = input.len() - 5;
        assert_eq!(ending, Ending::Request { destination: name("example.com", 443), taken });
    }
}

#[test]
fn before_a_first_byte_there_is_nothing_to_answer() {
    let handshake = Handshake::either();
    assert!(handshake.granted(None).is_empty());
    assert!(handshake.refused(RefuseReason::Limit, "").is_empty());
}

#[test]
fn every_truncation_waits_for_more() {
    for (input, len) in [(SOCKS, SOCKS.len() - 5), (HTTP, HTTP.len() - 5)] {
        for cut in 0..len {
            let ending = drive(&mut Handshake::either(), &input[..cut], 3);
            assert!(matches!(ending, Ending::Waiting { .. }), "cut at {cut}: {ending:?}");
        }
    }
}

#[test]
fn input_after_the_end_is_rejected_without_a_reply() {
    for input in [SOCKS, HTTP] {
        let mut handshake = Handshake::either();
        drive(&mut handshake, input, 1000);
        let Progress::Bad { reply, .. } = handshake.feed(b"x") else { panic!("not bad") };
        assert!(reply.is_empty());
    }
}

#[test]
fn destinations_are_addresses_or_names_that_a_resolver_may_see() {
    let v6 = "[2001:db8::1]:443".parse().unwrap();
    assert_eq!(destination(b"2001:db8::1", 443), Ok(Destination::Address(v6)));
    let v4 = "192.0.2.1:80".parse().unwrap();
    assert_eq!(destination(b"192.0.2.1", 80), Ok(Destination::Address(v4)));
    assert_eq!(destination(b"_srv.x-y.example.", 1), Ok(name("_srv.x-y.example.", 1)));
    assert_eq!(destination(&[b'a'; 255], 1), Ok(name(&"a".repeat(255), 1)));
    for (host, port, word) in [
        (&b""[..], 80, "empty"),
        (&[b'a'; 256], 80, "255"),
        (b"a b", 80, "not a host"),
        (b"a\0b", 80, "not a host"),
        (b"...", 80, "not a host"),
        (b"a/b", 80, "not a host"),
        ("münchen.de".as_bytes(), 80, "xn--"),
        (b"example.com", 0, "port 0"),
        (b"0.0.0.0", 80, "not an address to connect to"),
        (b"::", 80, "not an address to connect to"),
        (b"::ffff:0.0.0.0", 80, "not an address to connect to"),
    ] {
        let error = destination(host, port).unwrap_err();
        assert!(error.contains(word), "{error}");
    }
}

proptest! {
    #[test]
    fn parsing_is_independent_of_segmentation(
        data in proptest::collection::vec(any::<u8>(), 0..600),
        prefix in 0usize..4,
        step in 1usize..40,
    ) {
        let prefix: &[u8] = [&b""[..], &b"\x05\x01\x00\x05"[..], &HTTP[..40], &SOCKS[..10]][prefix];
        let input = [prefix, &data].concat();
        let whole = drive(&mut Handshake::either(), &input, input.len().max(1));
        let cut = drive(&mut Handshake::either(), &input, step);
        // Invalid input may be rejected early or late, but what is a request is
        // the same request.
        let request = |e: &Ending| matches!(e, Ending::Request { .. });
        if request(&whole) || request(&cut) {
            prop_assert_eq!(&whole, &cut);
        }
    }

    #[test]
    fn a_mutated_request_never_panics(
        http in any::<bool>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        step in any::<u8>(),
    ) {
        let mut data = if http { HTTP.to_vec() } else { SOCKS.to_vec() };
        for (at, byte) in changes {
            let at = at.index(data.len());
            data[at] = byte;
        }
        data.insert(0, step);
        fuzz_socks5(&data);
        fuzz_http_connect(&data);
    }
}
