//! Binding of the layers: which side begins a session, when, and how datagrams contain segments.

use relay::{Hub, Relay, RelayConfig, TransmitBatch};
use std::net::SocketAddr;
use units::{Instant, RngStream};
use xstp::wire::{Control, Profile, Segment};

/// In the null suite the payload between header and tag is not encrypted.
fn segment(datagram: &[u8]) -> Segment<'_> {
    Segment::decode(&Profile::Sealed, &datagram[8..datagram.len() - 16]).expect("a segment")
}

/// RLY-2.8: there is no stream at either side.
#[test]
fn the_terminal_begins_a_session_as_soon_as_there_is_an_association() {
    let now = Instant::ZERO;
    let here: SocketAddr = "192.0.2.1:4500".parse().expect("an address");
    let config = |name, mtu| RelayConfig { mtu, ..RelayConfig::new(name) };
    let small = config("boat", 1300);
    let largest = (1300 - small.ip_overhead - 24) as u16;
    let mut terminal = Relay::terminal(&small, now, RngStream::new(1, 0, "boat"));
    let mut hub = Hub::new(&config("hub", 1500), RngStream::new(1, 0, "hub"));
    let mut buffer = [0; 1500];
    let mut sent = |datagrams: &mut dyn FnMut(&mut TransmitBatch<'_>) -> bool| {
        let mut batch = TransmitBatch::new(&mut buffer, 1);
        let some = datagrams(&mut batch);
        some.then(|| batch.datagrams().next().expect("one").to_vec())
    };

    let mut hello = sent(&mut |batch| terminal.poll_transmit(now, batch).is_some()).expect("Hello");
    hub.handle_datagram(now, here, &mut hello).expect("understood");
    let mut welcome = sent(&mut |batch| hub.poll_transmit(now, batch).is_some()).expect("Welcome");
    assert!(sent(&mut |batch| hub.poll_transmit(now, batch).is_some()).is_none());
    terminal.handle_datagram(now, &mut welcome).expect("understood");

    let begun = sent(&mut |batch| terminal.poll_transmit(now, batch).is_some()).expect("BGN");
    let Some(Control::Begin(begin)) = segment(&begun).control() else { panic!("no BGN") };
    assert_eq!(begin.max_segment, largest);
    hub.handle_datagram(now, here, &mut begun.clone()).expect("understood");
    let answer = sent(&mut |batch| hub.poll_transmit(now, batch).is_some()).expect("BGNAK");
    let Some(Control::BeginAck(ack)) = segment(&answer).control() else { panic!("no BGNAK") };
    assert_eq!((ack.begin.max_segment, ack.begin.incarnation), (largest, begin.incarnation));
}
