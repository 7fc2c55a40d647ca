//! Hosts on packet radio under virtual time; their lines are real sockets.

use super::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// A station, and the other end of its line.
fn station(tnc: &TcpListener, station: Station) -> (Inner, TcpStream) {
    let tnc_at = Line::Tcp(tnc.local_addr().unwrap().to_string());
    let link = tnc::TncLink::open(&Tnc::new(tnc_at, station)).unwrap();
    let (line, _) = tnc.accept().unwrap();
    line.set_nonblocking(true).unwrap();
    let session = radio_session();
    let inner = Inner {
        connections: Connections::new(session.clone(), station.address.into(), 7, 0),
        carrier: Carrier::Tnc(Box::new(link)),
        lifetime: Lifetime::default(),
        send_buffer: session.send_buffer,
        hold_until: None,
        last: Instant::ZERO,
    };
    (inner, line)
}

/// Returns what the station has written to its line.
fn written(mut line: &TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let ended = line.read_to_end(&mut all).expect_err("the line is open");
    assert_eq!(ended.kind(), ErrorKind::WouldBlock);
    all
}

/// Number of frames of KISS: each is between two FENDs, which its content does not have.
fn frames(octets: &[u8]) -> usize {
    octets.iter().filter(|octet| **octet == 0xC0).count() / 2
}

/// RAD-3.2: a station that has received data sends nothing before its program had time to answer,
/// and then one frame that acknowledges the data and has the answer.
#[test]
fn an_answer_shares_a_frame_with_the_acknowledgement() {
    const PORT: u16 = 21;
    let tnc = TcpListener::bind("127.0.0.1:0").unwrap();
    let [here, there] = ["M0ABC-1", "M0XYZ-2"].map(|call| Station::new(call.parse().unwrap()));
    let ((mut a, line_a), (mut b, line_b)) = (station(&tnc, here), station(&tnc, there));
    let mut buffer = vec![0; 4_096];
    let mut now = Instant::ZERO + Span::from_secs(1);
    b.connections.listen(PORT).unwrap();
    let client = a.connections.connect(now, there.into(), PORT).unwrap();
    // The parameters of the TNC precede the frames.
    while a.connections.poll_timeout().is_some() || b.connections.poll_timeout().is_some() {
        now += Span::from_millis(100);
        for (own, line, mut other) in [(&mut a, &line_a, &line_b), (&mut b, &line_b, &line_a)] {
            own.exchange(now, &mut buffer).unwrap();
            other.write_all(&written(line)).unwrap();
            own.take_events();
        }
        if now > Instant::ZERO + Span::from_secs(60) {
            break;
        }
    }
    let (server, ..) = b.accept(PORT).expect("a connection");
    a.write(now, client, b"question").unwrap();
    a.exchange(now, &mut buffer).unwrap();
    let question = written(&line_a);
    assert_eq!(frames(&question), 1);
    (&line_b).write_all(&question).unwrap();
    b.exchange(now, &mut buffer).unwrap();
    assert_eq!(frames(&written(&line_b)), 0, "sent before the program had time to answer");
    let until = b.poll_timeout().expect("an acknowledgement is due");
    assert!(until > now && until <= now + Span::from_millis(50), "{until:?}");
    b.take_events();
    let length = b.read(now, server, &mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"question");
    b.write(now, server, b"answer").unwrap();
    b.exchange(until - Span::from_millis(1), &mut buffer).unwrap();
    assert_eq!(frames(&written(&line_b)), 0);
    b.exchange(until, &mut buffer).unwrap();
    let answer = written(&line_b);
    assert_eq!(frames(&answer), 1);
    (&line_a).write_all(&answer).unwrap();
    a.exchange(until, &mut buffer).unwrap();
    a.take_events();
    let length = a.read(until, client, &mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"answer");
    assert_eq!(a.unacknowledged(client).unwrap(), 0, "the frame acknowledges the question");
}
