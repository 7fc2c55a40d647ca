use super::super::{Ending, Handshake, drive};
use super::*;

fn request(text: &str) -> Ending {
    let once = drive(&mut Handshake::http_connect(), text.as_bytes(), text.len());
    let bytewise = drive(&mut Handshake::http_connect(), text.as_bytes(), 1);
    match (&once, &bytewise) {
        (Ending::Bad { .. }, Ending::Bad { .. }) => {}
        _ => assert_eq!(once, bytewise),
    }
    once
}

fn connect(target: &str) -> Ending {
    request(&format!("CONNECT {target} HTTP/1.1\r\nHost: x\r\n\r\n"))
}

/// The status, the reply and the message of a request that is refused.
fn complaint(ending: Ending) -> (u16, String, String) {
    let Ending::Bad { reply, message } = ending else { panic!("not bad: {ending:?}") };
    let reply = String::from_utf8(reply).unwrap();
    (status(&reply), reply, message)
}

/// Reads a response, checking that its length is right; returns the status.
fn status(reply: &str) -> u16 {
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    let length = head.lines().find_map(|l| l.strip_prefix("Content-Length: ")).unwrap();
    assert_eq!(length.parse(), Ok(body.len()));
    assert!(body.ends_with('\n') && head.contains("\r\nConnection: close"));
    head[9..12].parse().unwrap()
}

#[test]
fn the_examples_of_rfc_9110_are_read() {
    let text = "CONNECT server.example.com:80 HTTP/1.1\r\nHost: server.example.com\r\n\
                Proxy-Authorization: basic aGVsbG86d29ybGQ=\r\n\r\n";
    let destination = Destination::Name("server.example.com".into(), 80);
    assert_eq!(request(text), Ending::Request { destination, taken: text.len() });
}

#[test]
fn addresses_are_read() {
    for target in ["192.0.2.1:25", "[2001:db8::1]:443"] {
        let Ending::Request { destination, .. } = connect(target) else { panic!("{target}") };
        assert_eq!(destination, Destination::Address(target.parse().unwrap()));
    }
}

#[test]
fn data_after_the_request_is_kept() {
    let text = "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n";
    let with_data = format!("{text}\r\n\r\nSSH-2.0-x\r\n");
    let destination = Destination::Name("a".into(), 1);
    assert_eq!(request(&with_data), Ending::Request { destination, taken: text.len() });
}

#[test]
fn bare_line_feeds_leading_empty_lines_and_http_1_0_are_accepted() {
    for text in [
        "CONNECT a:1 HTTP/1.0\r\n\r\n",
        "CONNECT a:1 HTTP/1.0\n\n",
        "\r\nCONNECT a:1 HTTP/1.1\r\nhOsT: b\r\n\r\n",
    ] {
        assert!(matches!(request(text), Ending::Request { .. }), "{text:?}");
    }
}

#[test]
fn other_methods_get_405_with_the_allowed_ones() {
    for text in [
        "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
        "POST /x HTTP/1.0\r\n\r\n",
    ] {
        let (status, reply, message) = complaint(request(text));
        assert_eq!(status, 405);
        assert!(reply.contains("\r\nAllow: CONNECT\r\n") && reply.contains("tunnel"));
        assert!(message.contains("only CONNECT"));
    }
}

#[test]
fn malformed_targets_are_distinguished() {
    for (target, word) in [
        ("example.com", "port is missing"),
        ("example.com:", "port is missing"),
        ("example.com:http", "not a port"),
        ("example.com:65536", "above 65535"),
        ("example.com:000001", "not a port"),
        ("example.com:0", "port 0"),
        (":80", "host is empty"),
        ("user@example.com:80", "user names"),
        ("http://example.com:80", "brackets"),
        ("2001:db8::1:80", "brackets"),
        ("[fe80::1%25eth0]:80", "not an IPv6"),
        ("[192.0.2.1]:80", "not an IPv6"),
        ("a%20b:80", "not a host name"),
    ] {
        let (status, _, message) = complaint(connect(target));
        assert_eq!(status, 400, "{target}");
        assert!(message.contains(word), "{target}: {message}");
    }
}

#[test]
fn malformed_requests_are_distinguished() {
    let many = format!("CONNECT a:1 HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(65));
    let long = format!("CONNECT a:1 HTTP/1.1\r\nx: {}", "y".repeat(MAX_HEAD));
    for (text, expected, word) in [
        ("CONNECT a:1 HTTP/1.1\r\n\r\n", 400, "0 Host"),
        ("CONNECT a:1 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "2 Host"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "not HTTP/1"),
        ("CONNECT a:1 HTTP/1.1\r\nHo st: a\r\n\r\n", 400, "name is malformed"),
        ("CONNECT a:1 HTTP/1.1\r\nHost: a\x01\r\n\r\n", 400, "value is malformed"),
        ("\x16\x03\x01\x02\x00\x01", 400, "TLS"),
        ("\x05\x01\x00", 400, "SOCKS"),
        ("\r\n\r\n\r\n", 400, "empty lines"),
        (&many, 431, "64 header fields"),
        (&long, 431, "16 KB"),
    ] {
        let (status, _, message) = complaint(request(text));
        assert_eq!(status, expected, "{text:?}");
        assert!(message.contains(word), "{message}");
    }
}

#[test]
fn a_request_of_just_the_limit_is_read() {
    let frame = "CONNECT a:1 HTTP/1.1\r\nHost: a\r\nx: \r\n\r\n".len();
    let filler = "y".repeat(MAX_HEAD - frame);
    let text = format!("CONNECT a:1 HTTP/1.1\r\nHost: a\r\nx: {filler}\r\n\r\n");
    assert!(matches!(request(&text), Ending::Request { taken: MAX_HEAD, .. }));
}

#[test]
fn refusals_have_a_status_and_a_reason() {
    for (reason, expected, error) in [
        (RefuseReason::ConnectionRefused, 502, "connection_refused"),
        (RefuseReason::HostUnreachable, 502, "destination_unavailable"),
        (RefuseReason::NetworkUnreachable, 502, "destination_ip_unroutable"),
        (RefuseReason::TimedOut, 504, "connection_timeout"),
        (RefuseReason::Policy, 403, "http_request_denied"),
        (RefuseReason::NameNotFound, 502, "dns_error"),
        (RefuseReason::Limit, 503, "connection_limit_reached"),
        (RefuseReason::Other, 502, "proxy_internal_error"),
    ] {
        let reply = String::from_utf8(refused(reason, "no \r\nSet-Cookie: luck")).unwrap();
        assert_eq!(status(&reply), expected);
        assert!(reply.contains(&format!("\r\nProxy-Status: bentpipe; error={error}\r\n")));
        assert!(reply.contains(reason.words()) && !reply.contains("\nSet-Cookie"));
    }
}
