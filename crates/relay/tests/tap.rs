//! A tap at each end receives the same decrypted segments without affecting them.

use relay::{Direction, Event, Hub, Priority, Relay, RelayConfig, Tap, Target, TransmitBatch};
use units::{Instant, RngStream, Span};

/// Delivers everything that either side sends, for a while.
fn run(terminal: &mut Relay, hub: &mut Hub, now: &mut Instant) -> Vec<Event> {
    let here = "192.0.2.1:4500".parse().unwrap();
    let mut events = Vec::new();
    let mut buffer = vec![0; 1500];
    for _ in 0..40 {
        let mut batch = TransmitBatch::new(&mut buffer, 1);
        while terminal.poll_transmit(*now, &mut batch).is_some() {
            let mut datagram = batch.datagrams().next().unwrap().to_vec();
            hub.handle_datagram(*now, here, &mut datagram).unwrap();
            batch.clear();
        }
        while hub.poll_transmit(*now, &mut batch).is_some() {
            let mut datagram = batch.datagrams().next().unwrap().to_vec();
            terminal.handle_datagram(*now, &mut datagram).unwrap();
            batch.clear();
        }
        events.extend(std::iter::from_fn(|| hub.poll_event()).map(|(_, event)| event));
        *now += Span::from_millis(1);
        terminal.handle_timeout(*now);
        hub.handle_timeout(*now);
    }
    events
}

#[test]
fn both_ends_see_the_same_segments() {
    let mut now = Instant::ZERO;
    let config = |name| RelayConfig::new(name);
    let mut terminal = Relay::terminal(&config("boat"), now, RngStream::new(1, 0, "boat"));
    let mut hub = Hub::new(&config("hub"), RngStream::new(1, 0, "hub"));
    terminal.set_tap(Some(Tap::new(None, 1 << 20)));
    hub.set_tap(Some(Tap::new(Some("boat".into()), 1 << 20)));
    let stream = terminal.open(now, Target::name("example.org", 80), Priority::Normal).unwrap();
    terminal.write(now, stream, b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let events = run(&mut terminal, &mut hub, &mut now);
    assert!(events.contains(&Event::Connected));

    let collect = |tap: &Tap, direction| -> Vec<Vec<u8>> {
        tap.held()
            .filter(|one| one.direction == direction)
            .map(|one| one.segment.to_vec())
            .collect()
    };
    let there = terminal.tap().unwrap().clone();
    let here = hub.tap().unwrap().clone();
    assert_eq!(collect(&there, Direction::Out), collect(&here, Direction::In));
    assert_eq!(collect(&there, Direction::In), collect(&here, Direction::Out));
    let up = collect(&there, Direction::Out);
    // The first segment begins the session (BGN), and one of them contains the request.
    assert_eq!(up[0][0] & 0x10, 0x10);
    assert!(up.iter().any(|segment| segment.ends_with(b"GET / HTTP/1.0\r\n\r\n")));

    // Another terminal's payloads are not captured, and none after the tap is closed.
    hub.set_tap(Some(Tap::new(Some("bus".into()), 1 << 20)));
    terminal.set_tap(None);
    terminal.write(now, stream, b"more").unwrap();
    run(&mut terminal, &mut hub, &mut now);
    assert_eq!(hub.tap().unwrap().held().count(), 0);
    assert!(terminal.tap().is_none());
    let seen = terminal.status();
    assert!(seen.connected_since.is_some() && seen.heard >= seen.connected_since);
    assert_eq!((seen.mtu, seen.receive_memory), (1500, 0));
}
