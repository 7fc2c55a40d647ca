//! The loss of a session while a stream is being opened; the test runs the engine's rounds itself.

use super::harness::echo;
use crate::engine::Machine;
use crate::{Config, Gateway};
use relay::{Event, Hub, RelayConfig, TransmitBatch};
use rt::Clock;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;
use units::{Instant, Span};

/// A terminal's engine, and a hub whose datagrams the test passes on.
struct Rig {
    gateway: Gateway,
    hub: Hub,
    socket: UdpSocket,
    clock: Clock,
}

impl Rig {
    fn new() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let config = format!(
            "role = \"terminal\"\nsecurity = \"none\"\naccept = \"early\"\n\
             [link]\npeer = \"{}\"\nlisten = \"127.0.0.1:0\"\n\
             rate_up = \"200mbit\"\nrate_down = \"200mbit\"\nround_trip = \"10ms\"\n\
             [socks5]\nlisten = \"127.0.0.1:0\"\n",
            socket.local_addr().unwrap()
        );
        let config = Config::parse("test.toml", &config).unwrap();
        let gateway = Gateway::open(&config).unwrap();
        Self { gateway, hub: hub(), socket, clock: Clock::new() }
    }

    /// Passes readiness to the engine without running a round.
    fn look(&mut self) {
        let Gateway { engine, driver, .. } = &mut self.gateway;
        driver.wait(engine, true, Instant::FAR_FUTURE).unwrap();
        driver.dispatch(engine);
    }

    /// Passes queued datagrams to the hub.
    fn hear(&mut self) {
        let mut room = [0; 65_536];
        while let Ok((len, from)) = self.socket.recv_from(&mut room) {
            let now = self.clock.now();
            self.hub.handle_timeout(now);
            let _ = self.hub.handle_datagram(now, from, &mut room[..len]);
        }
    }

    /// Sends the hub's queued datagrams.
    fn say(&mut self) {
        let mut room = [0; 65_536];
        loop {
            let now = self.clock.now();
            self.hub.handle_timeout(now);
            let mut batch = TransmitBatch::new(&mut room, 1);
            let Some((to, _)) = self.hub.poll_transmit(now, &mut batch) else { return };
            for datagram in batch.datagrams() {
                self.socket.send_to(datagram, to).unwrap();
            }
        }
    }

    /// Sends the hub's datagrams, and runs a round of the engine.
    fn step(&mut self) {
        self.say();
        self.look();
        self.gateway.engine.round(self.clock.now());
        self.clock.sleep_until(self.clock.now() + Span::from_micros(200));
    }

    /// Repeats until `done`, without sending the hub's datagrams after that.
    fn until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        let limit = self.clock.now() + Span::from_secs(20);
        loop {
            self.hear();
            if done(self) {
                return;
            }
            assert!(self.clock.now() < limit, "it does not come to that");
            self.step();
        }
    }

    /// Opens a client that sends its request and data without waiting.
    fn client(&self, target: SocketAddr) -> TcpStream {
        let SocketAddr::V4(target) = target else { panic!("{target}") };
        let mut client = TcpStream::connect(self.gateway.addresses().socks5[0]).unwrap();
        let mut words = vec![5, 1, 0, 5, 1, 0, 1];
        words.extend(target.ip().octets());
        words.extend(target.port().to_be_bytes());
        words.extend(b"hello");
        client.write_all(&words).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        client
    }

    /// Returns the number of streams that were opened at the hub.
    fn opened(&mut self) -> usize {
        let mut opened = 0;
        while let Some((_, event)) = self.hub.poll_event() {
            opened += usize::from(matches!(event, Event::Opened { .. }));
        }
        opened
    }
}

fn hub() -> Hub {
    Hub::new(&RelayConfig::new("hub"), crate::SystemEntropy)
}

#[test]
fn a_client_during_a_session_loss_gets_a_stream_of_the_next_session() {
    let server = echo();
    let mut rig = Rig::new();
    let mut old = rig.client(server);
    rig.until(|rig| rig.opened() == 1);
    // Another hub replaces it, and the terminal detects that: the Welcome is in flight.
    rig.hub = hub();
    old.write_all(b"and more").unwrap();
    rig.until(|rig| rig.hub.association_counters().hellos == 1);
    // The round handles both the end of the old session and a new client.
    let mut new = rig.client(server);
    rig.step();
    rig.until(|rig| rig.opened() == 1);
    for _ in 0..100 {
        rig.hear();
        rig.step();
    }
    // The old client's connection is reset, and the new one's is relayed.
    let end = old.read_to_end(&mut Vec::new()).expect_err("it is gone");
    assert_eq!(end.kind(), ErrorKind::ConnectionReset);
    new.set_nonblocking(true).unwrap();
    let mut words = [0; 64];
    assert_eq!(new.read(&mut words).unwrap(), 12, "the proxy's answers");
    assert_eq!(new.read(&mut words).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(rig.gateway.engine.connections(), 1);
}
