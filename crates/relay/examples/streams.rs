//! What a relay costs without sockets: a hub sends so many megabytes to a terminal, by so many
//! streams that always have more, at 4 Gbit/s and 1 ms round trip of virtual time.
//!
//! `cargo build -p bentpipe-relay --release --example streams`, and then, for the processor time of both ends,
//! `time target/release/examples/streams aes 100 1000` and the same with `chacha`. What goes before
//! the first byte is small beside a thousand megabytes.

use relay::{
    Capabilities, Control, Event, Hub, Keys, Known, PeerId, PresharedKey, Priority, PrivateKey,
    PublicKey, Relay, RelayConfig, Security, StreamId, Target, TransmitBatch,
};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use units::{BitRate, Instant, RngStream, Span};

/// Datagrams in one batch, and the octets of a batch.
const BATCH: (usize, usize) = (64, 63 * 1024);
const ONE_WAY: Span = Span::from_micros(500);
const STEP: Span = Span::from_micros(50);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [cipher, streams, megabytes] = &words[..] else {
        panic!("aes or chacha, a number of streams, and megabytes");
    };
    let capabilities = match cipher.as_str() {
        "aes" => Capabilities::ALL.or(Capabilities::AES_256_GCM),
        "chacha" => Capabilities::ALL,
        other => panic!("aes or chacha, not {other}"),
    };
    let streams = streams.parse().expect("a number of streams");
    let bytes = megabytes.parse::<u64>().expect("megabytes") << 20;
    let mut ends = Ends::new(capabilities);
    while ends.read < bytes {
        ends.step(streams);
    }
    let Ends { read, datagrams, batches, .. } = ends;
    println!("{read} bytes in {datagrams} datagrams, {} to a batch", datagrams / batches);
}

/// Datagrams of one batch on their way.
struct Flight {
    arrives: Instant,
    bytes: Vec<u8>,
    segment_size: usize,
}

struct Ends {
    now: Instant,
    terminal: Relay,
    hub: Hub,
    from: SocketAddr,
    down: VecDeque<Flight>,
    up: VecDeque<Flight>,
    buffer: Vec<u8>,
    payload: Vec<u8>,
    /// The hub's streams, and those that have room.
    streams: BTreeMap<StreamId, PeerId>,
    writable: VecDeque<StreamId>,
    read: u64,
    datagrams: u64,
    batches: u64,
}

impl Ends {
    fn new(capabilities: Capabilities) -> Self {
        let mut rng = RngStream::new(1, 0, "keys");
        let [boat, shore] = [(); 2].map(|()| PrivateKey::generate(&mut rng));
        let rate = Some(BitRate::from_mbps(4_000));
        let config = |name: &str, own: &PrivateKey, peer: PublicKey| {
            let known = Known { name: "peer".into(), public: peer, preshared: PresharedKey::NONE };
            let keys = Keys::new(own.clone(), vec![known]).expect("one key");
            let security = Security::Noise(keys.into());
            let control = Control::Fixed;
            let usual = RelayConfig::new(name).with_rates(rate, rate);
            RelayConfig { security, control, capabilities, probe_mtu: false, ..usual }
        };
        let now = Instant::ZERO + Span::from_secs(1);
        let hub = config("hub", &shore, boat.public());
        let boat = config("boat", &boat, shore.public());
        Self {
            now,
            terminal: Relay::terminal(&boat, now, RngStream::new(1, 0, "terminal")),
            hub: Hub::new(&hub, RngStream::new(1, 0, "hub")),
            from: "192.0.2.1:4500".parse().expect("an address"),
            down: VecDeque::new(),
            up: VecDeque::new(),
            buffer: vec![0; BATCH.1],
            payload: vec![7; 64 << 10],
            streams: BTreeMap::new(),
            writable: VecDeque::new(),
            read: 0,
            datagrams: 0,
            batches: 0,
        }
    }

    fn step(&mut self, streams: usize) {
        self.now += STEP;
        let now = self.now;
        self.terminal.handle_timeout(now);
        self.hub.handle_timeout(now);
        for mut flight in arrived(&mut self.down, now) {
            for datagram in flight.bytes.chunks_mut(flight.segment_size) {
                self.terminal.handle_datagram(now, datagram).expect("the hub's");
            }
        }
        for mut flight in arrived(&mut self.up, now) {
            for datagram in flight.bytes.chunks_mut(flight.segment_size) {
                self.hub.handle_datagram(now, self.from, datagram).expect("the terminal's");
            }
        }
        self.events(streams);
        for _ in 0..self.writable.len() {
            let Some(stream) = self.writable.pop_front() else { break };
            let relay = self.hub.peer(self.streams[&stream]).expect("connected");
            if relay.write(now, stream, &self.payload) == Ok(self.payload.len()) {
                self.writable.push_back(stream);
            }
        }
        self.transmit();
    }

    fn events(&mut self, streams: usize) {
        while let Some(event) = self.terminal.poll_event() {
            match event {
                Event::Connected => {
                    for _ in 0..streams {
                        let target = Target::name("server", 80);
                        self.terminal.open(self.now, target, Priority::Normal).expect("opened");
                    }
                }
                Event::Readable { stream } => loop {
                    let len = self.terminal.peek(stream).len();
                    if len == 0 {
                        break;
                    }
                    self.terminal.consume(self.now, stream, len).expect("open");
                    self.read += len as u64;
                },
                _ => {}
            }
        }
        while let Some((peer, event)) = self.hub.poll_event() {
            match event {
                Event::Opened { stream, .. } => {
                    self.streams.insert(stream, peer);
                    self.writable.push_back(stream);
                }
                Event::Writable { stream } => self.writable.push_back(stream),
                _ => {}
            }
        }
    }

    fn transmit(&mut self) {
        let arrives = self.now + ONE_WAY;
        loop {
            let mut batch = TransmitBatch::new(&mut self.buffer, BATCH.0);
            let Some((_, sent)) = self.hub.poll_transmit(self.now, &mut batch) else { break };
            self.datagrams += batch.count() as u64;
            self.batches += 1;
            let bytes = self.buffer[..sent.len].to_vec();
            self.down.push_back(Flight { arrives, bytes, segment_size: sent.segment_size });
        }
        loop {
            let mut batch = TransmitBatch::new(&mut self.buffer, BATCH.0);
            let Some(sent) = self.terminal.poll_transmit(self.now, &mut batch) else { break };
            let bytes = self.buffer[..sent.len].to_vec();
            self.up.push_back(Flight { arrives, bytes, segment_size: sent.segment_size });
        }
    }
}

/// What has arrived by `now`.
fn arrived(flights: &mut VecDeque<Flight>, now: Instant) -> impl Iterator<Item = Flight> {
    let count = flights.iter().take_while(|flight| flight.arrives <= now).count();
    flights.drain(..count)
}
