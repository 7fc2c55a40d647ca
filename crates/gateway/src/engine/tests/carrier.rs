//! Changes of the carrier of a path.

use relay::{Hub, Relay, RelayConfig, TransmitBatch};
use std::net::SocketAddr;
use units::{Instant, RngStream, Span};

/// TLS-4.3
#[test]
fn a_terminal_polls_at_once_when_another_carrier_may_end_an_outage() {
    let config = RelayConfig::new("x");
    let mut hub = Hub::new(&config, RngStream::new(1, 0, "hub"));
    let mut terminal = Relay::terminal(&config, Instant::ZERO, RngStream::new(1, 0, "terminal"));
    let from = SocketAddr::from(([192, 0, 2, 1], 7000));
    let mut now = Instant::ZERO;
    let mut buffer = [0; 1_500];
    let mut batch = TransmitBatch::new(&mut buffer, 1);
    let mut was_connected = false;
    while !was_connected || terminal.is_answered() {
        now += Span::from_millis(10);
        assert!(now < Instant::ZERO + Span::from_secs(120), "{terminal:?}");
        terminal.handle_timeout(now);
        while terminal.poll_transmit(now, &mut batch).is_some() {
            let mut datagram = batch.datagrams().next().expect("one").to_vec();
            // Later the hub receives nothing.
            if !was_connected {
                let _ = hub.handle_datagram(now, from, &mut datagram);
            }
            batch.clear();
        }
        while hub.poll_transmit(now, &mut batch).is_some() {
            let mut datagram = batch.datagrams().next().expect("one").to_vec();
            let _ = terminal.handle_datagram(now, &mut datagram);
            batch.clear();
        }
        was_connected |= terminal.is_answered();
    }
    assert!(terminal.poll_transmit(now, &mut batch).is_none(), "the next POLL is not due");
    terminal.on_carrier_change(0);
    assert!(terminal.poll_transmit(now, &mut batch).is_some());
}
