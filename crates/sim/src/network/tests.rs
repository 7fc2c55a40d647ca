//! Networks of minimal hosts that send at intervals or echo.

use super::*;
use satlink::DirectionConfig;
use units::{BitRate, Span};

/// Sends `left` packets, one each millisecond, and records arrivals.
struct Pinger {
    to: Address,
    left: u32,
    due: Instant,
    got: Vec<(Instant, u8)>,
}

impl Pinger {
    fn new(to: NodeId, left: u32) -> Self {
        Self { to: Address::new(to, 7), left, due: Instant::ZERO, got: Vec::new() }
    }
}

impl Node for Pinger {
    fn handle_packet(&mut self, now: Instant, packet: &mut Packet) {
        self.got.push((now, packet.bytes()[0]));
    }
    fn poll_transmit(&mut self, now: Instant, out: &mut Outbox<'_>) {
        if self.left > 0 && now >= self.due {
            let mut buffer = out.buffer(72);
            buffer.fill(self.left as u8);
            let from = Address::new(out.node(), 7);
            out.send(Packet::udp(from, self.to, buffer));
            self.left -= 1;
            self.due = now + Span::from_millis(1);
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        (self.left > 0).then_some(self.due)
    }
    fn handle_timeout(&mut self, _: Instant) {}
}

/// Sends every packet back.
#[derive(Default)]
struct Echo(Vec<Packet>);

impl Node for Echo {
    fn handle_packet(&mut self, _: Instant, packet: &mut Packet) {
        self.0.push(Packet { from: packet.to, to: packet.from, hops: 0, ..packet.clone() });
    }
    fn poll_transmit(&mut self, _: Instant, out: &mut Outbox<'_>) {
        self.0.drain(..).for_each(|packet| out.send(packet));
    }
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    fn handle_timeout(&mut self, _: Instant) {}
}

fn wire(rate: u64, delay: u64) -> LinkConfig {
    LinkConfig::symmetric(DirectionConfig {
        rate: Some(BitRate::from_mbps(rate)),
        delay: Span::from_millis(delay),
        ..DirectionConfig::default()
    })
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

/// Two pingers, two routers, an echo behind the middle link.
fn dumbbell(seed: u64, middle: &LinkConfig) -> (Network, [NodeId; 2], LinkId) {
    let mut net = Network::new(seed, 0);
    let (left, right) = (net.router(), net.router());
    let middle = net.link(left, right, middle);
    let echo = net.host(Echo::default());
    net.link(right, echo, &wire(10, 1));
    let pingers = [(); 2].map(|()| {
        let host = net.host(Pinger::new(echo, 100));
        net.link(host, left, &wire(10, 1));
        host
    });
    (net, pingers, middle)
}

#[test]
fn round_trip_time_follows_from_the_links() {
    let (mut net, [first, second], middle) = dumbbell(1, &wire(1, 10));
    net.run_until(at(2_000));
    // 100 octets: 80 us on each of two wires, 800 us in the middle, 12 ms of delay; both
    // directions.
    let trip = Span::from_micros(80 * 2 + 800) + Span::from_millis(12);
    let got = &net.node::<Pinger>(first).got;
    assert_eq!((got.len(), got[0]), (100, (Instant::ZERO + trip * 2, 100)));
    assert_eq!(net.node::<Pinger>(second).got.len(), 100);
    let total = net.offered(middle, Direction::Forward).total();
    assert_eq!((total.packets, total.bytes), (200, 20_000));
    assert_eq!(net.delivered(middle, Direction::Return).total().packets, 200);
    assert_eq!(net.now(), at(2_000));
}

#[test]
fn same_seed_gives_the_same_run_and_links_are_independent() {
    let mut lossy = wire(1, 10);
    lossy.forward.loss = 0.2;
    let run = |seed| {
        let (mut net, [first, _], _) = dumbbell(seed, &lossy);
        net.trace();
        net.run_until(at(2_000));
        (net.trace_hash(), net.node::<Pinger>(first).got.len())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
    let mut net = Network::new(1, 0);
    let echo = net.host(Echo::default());
    let hosts = [(); 2].map(|()| {
        let host = net.host(Pinger::new(echo, 100));
        net.link(host, echo, &lossy);
        host
    });
    net.run_until(at(2_000));
    let [one, two] = hosts.map(|host| &net.node::<Pinger>(host).got);
    assert_ne!(one, two);
}

#[test]
fn routes_are_shortest_or_manual_and_avoid_hosts() {
    let mut net = Network::new(1, 0);
    let [a, b, c] = [(); 3].map(|()| net.router());
    let echo = net.host(Echo::default());
    let (ab, bc, ac) =
        (net.link(a, b, &wire(10, 1)), net.link(b, c, &wire(10, 1)), net.link(a, c, &wire(10, 50)));
    net.link(c, echo, &wire(10, 1));
    let host = net.host(Pinger::new(echo, 10));
    net.link(host, a, &wire(10, 1));
    // A host with two links does not forward.
    let bystander = net.host(Echo::default());
    net.link(a, bystander, &wire(10, 1));
    net.link(bystander, c, &wire(10, 1));
    net.run_until(at(500));
    let count = |net: &Network, link| net.offered(link, Direction::Forward).total().packets;
    assert_eq!([ab, bc, ac].map(|link| count(&net, link)), [0, 0, 10], "fewest hops");
    net.route(a, echo, ab);
    net.node_mut::<Pinger>(host).left = 10;
    net.run_until(at(1_000));
    assert_eq!([ab, bc, ac].map(|link| count(&net, link)), [10, 10, 10]);
    assert_eq!(net.node::<Pinger>(host).got.len(), 20);
}

#[test]
fn unroutable_packets_are_counted() {
    let mut net = Network::new(1, 0);
    let island = net.host(Echo::default());
    let router = net.router();
    let host = net.host(Pinger::new(island, 5));
    net.link(host, router, &wire(10, 1));
    net.run_until(at(100));
    assert_eq!(net.unroutable(), 5);
}

#[test]
fn links_and_faults_change_at_the_scheduled_time() {
    let (mut net, [first, _], middle) = dumbbell(1, &wire(1, 10));
    net.change_at(at(20), move |net| {
        let mut dead = wire(1, 10);
        dead.forward.loss = 1.0;
        net.reconfigure(middle, &dead).expect("valid");
    });
    net.change_at(at(50), move |net| {
        net.reconfigure(middle, &wire(1, 10)).expect("valid");
        let twice = Faults { duplicate: 1.0, ..Faults::default() };
        net.set_faults(middle, Direction::Return, twice);
    });
    net.run_until(at(1_000));
    let got = &net.node::<Pinger>(first).got;
    let count = |share: u8| got.iter().filter(|(_, number)| *number == share).count();
    assert_eq!([100, 70, 1].map(count), [1, 0, 2]);
}

#[test]
#[should_panic(expected = "seed 9 run 2 at 0.000000000s: no progress of time")]
fn node_that_is_always_due_is_detected() {
    struct Impatient;
    impl Node for Impatient {
        fn handle_packet(&mut self, _: Instant, _: &mut Packet) {}
        fn poll_transmit(&mut self, _: Instant, _: &mut Outbox<'_>) {}
        fn poll_timeout(&self) -> Option<Instant> {
            Some(Instant::ZERO)
        }
        fn handle_timeout(&mut self, _: Instant) {}
    }
    let mut net = Network::new(9, 2);
    net.host(Impatient);
    net.run_until(at(1));
}

#[test]
#[should_panic(expected = "routing loop")]
fn routing_loop_is_detected() {
    let mut net = Network::new(1, 0);
    let [a, b] = [(); 2].map(|()| net.router());
    let echo = net.host(Echo::default());
    let ab = net.link(a, b, &wire(10, 1));
    net.link(b, echo, &wire(10, 1));
    let host = net.host(Pinger::new(echo, 1));
    net.link(host, a, &wire(10, 1));
    net.route(b, echo, ab);
    net.run_until(at(1_000));
}

#[test]
#[should_panic(expected = "of 373 packets 372 are accounted for")]
fn vanished_packet_is_detected() {
    let (mut net, ..) = dumbbell(1, &wire(1, 10));
    net.fabric.created += 1;
    net.run_until(at(150));
}

#[test]
#[should_panic(expected = "are accounted for")]
fn run_that_stops_early_is_audited() {
    let (mut net, [first, _], _) = dumbbell(1, &wire(1, 10));
    net.fabric.created += 1;
    net.run_while(at(150), |net| net.node::<Pinger>(first).got.is_empty());
}

#[test]
fn too_big_message_quotes_the_packet() {
    /// Stores received packets.
    struct Keeper(Vec<Packet>);
    impl Node for Keeper {
        fn handle_packet(&mut self, _: Instant, packet: &mut Packet) {
            self.0.push(packet.take());
        }
        fn poll_transmit(&mut self, _: Instant, _: &mut Outbox<'_>) {}
        fn poll_timeout(&self) -> Option<Instant> {
            None
        }
        fn handle_timeout(&mut self, _: Instant) {}
    }
    let mut net = Network::new(1, 0);
    let [near, far] = [(); 2].map(|()| net.host(Keeper(Vec::new())));
    let link = net.link(near, far, &wire(10, 1));
    net.set_mtu(link, Some(300));
    let ports = simtcp::Ports { from: 1_000, to: 80 };
    let mut client = simtcp::Endpoint::connect(&simtcp::TcpConfig::reno(), ports, 1);
    let mut segment = client.poll_transmit(at(0)).unwrap();
    segment.sequence = (7 << 32) + 5;
    segment.payload.len = 300;
    let packet = Packet::tcp(near, far, Box::new(segment));
    // With IPv4 and TCP headers and the SYN's options the packet exceeds 340 octets.
    assert!(!net.fabric.fits(at(0), far, 0, &packet));
    net.fabric.created += 1;
    net.run_until(at(3));
    let [answer] = &net.node::<Keeper>(near).0[..] else { panic!("an answer") };
    let notice = answer.too_big().expect("what it says");
    let [from, to] = [Address::new(near, 1_000), Address::new(far, 80)];
    assert_eq!(notice, TooBig { from, to, sequence: 5, mtu: 300 });
    let bytes = answer.bytes();
    assert_eq!((bytes.len(), &bytes[..2], &bytes[4..8]), (36, &[3, 4][..], &[0, 0, 1, 44][..]));
    assert_eq!(crate::capture::checksum(&[bytes]), 0);
    // Packets other than TCP are dropped without a message.
    let datagram = Packet::udp(from, to, vec![0; 400]);
    assert!(!net.fabric.fits(at(10), far, 0, &datagram));
    assert_eq!((net.too_big(), net.fabric.created), (2, 2));
}
