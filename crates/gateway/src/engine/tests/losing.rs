//! A session that is lost and what is opened in the same moment: the engine goes round by hand.

use super::harness::echo;
use crate::engine::Machine;
use crate::{Config, Gateway};
use relay::{Event, Hub, RelayConfig, TransmitBatch};
use rt::Clock;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;
use units::{Instant, Span};

/// A terminal's engine, and in this test's hands all that its hub hears and says.
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

    /// The engine learns what is ready, and does nothing about it yet.
    fn look(&mut self) {
        let Gateway { engine, driver, .. } = &mut self.gateway;
        driver.wait(engine, true, Instant::FAR_FUTURE).unwrap();
        driver.dispatch(engine);
    }

    /// The hub takes what has come.
    fn hear(&mut self) {
        let mut room = [0; 65_536];
        while let Ok((len, from)) = self.socket.recv_from(&mut room) {
            let now = self.clock.now();
            self.hub.handle_timeout(now);
            let _ = self.hub.handle_datagram(now, from, &mut room[..len]);
        }
    }

    /// The hub says what it has to say.
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

    /// What the hub has to say is said, and the engine goes round.
    fn step(&mut self) {
        self.say();
        self.look();
        self.gateway.engine.round(self.clock.now());
        self.clock.sleep_until(self.clock.now() + Span::from_micros(200));
    }

    /// Everything goes on until the hub has heard what is waited for, and has not answered yet.
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

    /// A client that says at once what it wants and more.
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

    /// The connections that the hub was asked for so far.
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
fn who_comes_when_a_session_is_lost_gets_no_stream_of_that_session() {
    let server = echo();
    let mut rig = Rig::new();
    let mut old = rig.client(server);
    rig.until(|rig| rig.opened() == 1);
    // Another hub takes its place, and the terminal finds out: the Welcome is on its way.
    rig.hub = hub();
    old.write_all(b"and more").unwrap();
    rig.until(|rig| rig.hub.association_counters().hellos == 1);
    // Both are there when the engine goes round: the end of the old session, and a client.
    let mut new = rig.client(server);
    rig.step();
    rig.until(|rig| rig.opened() == 1);
    for _ in 0..100 {
        rig.hear();
        rig.step();
    }
    // The old client hears that its connection is gone, and the new one has one.
    let end = old.read_to_end(&mut Vec::new()).expect_err("it is gone");
    assert_eq!(end.kind(), ErrorKind::ConnectionReset);
    new.set_nonblocking(true).unwrap();
    let mut words = [0; 64];
    assert_eq!(new.read(&mut words).unwrap(), 12, "the proxy's answers");
    assert_eq!(new.read(&mut words).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(rig.gateway.engine.connections(), 1);
}
