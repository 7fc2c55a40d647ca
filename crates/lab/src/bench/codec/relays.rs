//! Streams from one relay to another over a path with a delay.

use super::super::figures::Figures;
use super::{BATCH, Stopwatch, acquainted, terminal_address};
use relay::{
    Control, Event, Priority, Relay, RelayConfig, Security, StreamId, Target, TransmitBatch,
};
use std::collections::VecDeque;
use units::{BitRate, Instant, RngStream, Span};

/// Virtual time of one step.
const STEP: Span = Span::from_micros(100);
/// Size of an IP packet where many are on the path, octets: the smallest that relays have, so that
/// they take less memory.
const SMALL: usize = 576;
/// Round trips before the measurement.
const WARM_UP: u64 = 4;

/// What streams are measured over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    rate: BitRate,
    mtu: usize,
    round_trip: Span,
    streams: usize,
    control: Control,
}

impl Path {
    /// A path of 10 Gbit/s without delay, and one stream.
    pub(super) fn fast() -> Self {
        let rate = BitRate::from_mbps(10_000);
        Self { rate, mtu: 1500, round_trip: Span::ZERO, streams: 1, control: Control::Steady }
    }

    /// A path on which `packets` packets are in flight, and one stream.
    pub(super) fn with_window(packets: usize) -> Self {
        let rate = BitRate::from_mbps(2_000);
        let round_trip = rate.time_for((packets * SMALL) as u64);
        Self { rate, mtu: SMALL, round_trip, streams: 1, control: Control::Fixed }
    }

    /// A path on which 10,000 packets are in flight, and streams that all have data to send.
    pub(super) fn with_streams(streams: usize) -> Self {
        Self { streams, ..Self::with_window(10_000) }
    }
}

/// Two relays and the datagrams between them.
struct Pair {
    now: Instant,
    delay: Span,
    terminal: Relay,
    hub: relay::Hub,
    transmit: Stopwatch,
    receive: Stopwatch,
    packets: usize,
    buffer: Vec<u8>,
    /// What streams are written from.
    block: Vec<u8>,
    /// Datagrams under way, and when they arrive.
    to_hub: VecDeque<(Instant, Vec<u8>)>,
    to_terminal: VecDeque<(Instant, Vec<u8>)>,
}

/// Measures at least `count` packets of streams from a terminal to a hub.
pub(super) fn streams(encrypted: bool, path: &Path, count: usize) -> Figures {
    let [terminal, hub] = acquainted(encrypted);
    let config = |name, security: Security| RelayConfig {
        security,
        initial_rtt: path.round_trip.max(Span::from_millis(1)),
        mtu: path.mtu,
        max_streams: path.streams * 2,
        control: path.control,
        ..RelayConfig::new(name).with_rates(Some(path.rate), Some(path.rate))
    };
    let random = |name| RngStream::new(1, 0, name);
    let now = Instant::ZERO;
    let mut pair = Pair {
        now,
        delay: path.round_trip / 2,
        terminal: Relay::terminal(&config("terminal", terminal), now, random("terminal")),
        hub: relay::Hub::new(&config("hub", hub), random("hub")),
        transmit: Stopwatch::new(),
        receive: Stopwatch::new(),
        packets: 0,
        buffer: vec![0; 64 << 10],
        block: vec![0x5a; 64 << 10],
        to_hub: VecDeque::new(),
        to_terminal: VecDeque::new(),
    };
    pair.open(path.streams);
    let steps = path.round_trip.as_nanos() * WARM_UP / STEP.as_nanos();
    for _ in 0..steps {
        pair.step();
    }
    (pair.transmit, pair.receive, pair.packets) = (Stopwatch::new(), Stopwatch::new(), 0);
    // More steps than any count needs: a stall is detected.
    for _ in 0..1_000 + count * 10 {
        if pair.packets >= count {
            break;
        }
        pair.step();
    }
    assert!(pair.packets >= count, "{} of {count} packets were sent", pair.packets);
    let mut figures = Figures::default();
    pair.transmit.add_to(&mut figures, "transmit", pair.packets);
    pair.receive.add_to(&mut figures, "receive", pair.packets);
    figures
}

impl Pair {
    /// Opens streams, once the hub has announced how many it accepts, and fills them.
    fn open(&mut self, count: usize) {
        let mut open = 0;
        for _ in 0..100_000 {
            let target = || Target::name("example.org", 80);
            while open < count
                && let Ok(stream) = self.terminal.open(self.now, target(), Priority::Normal)
            {
                write(&mut self.terminal, self.now, stream, &self.block);
                open += 1;
            }
            if open == count {
                return;
            }
            self.step();
        }
        panic!("{open} of {count} streams were opened");
    }

    /// Transmits, receives and reads what is due, and moves on by one step.
    fn step(&mut self) {
        self.transmit();
        self.receive();
        self.acknowledge();
        self.now += STEP;
        self.terminal.handle_timeout(self.now);
        self.hub.handle_timeout(self.now);
    }

    fn transmit(&mut self) {
        loop {
            let mut batch = TransmitBatch::new(&mut self.buffer, BATCH);
            let (now, terminal) = (self.now, &mut self.terminal);
            if self.transmit.time(|| terminal.poll_transmit(now, &mut batch)).is_none() {
                return;
            }
            let before = self.to_hub.len();
            let at = now + self.delay;
            self.to_hub.extend(batch.datagrams().map(|datagram| (at, datagram.to_vec())));
            self.packets += self.to_hub.len() - before;
        }
    }

    /// Passes datagrams that have arrived to the hub, and reads the data of the streams, as a
    /// gateway's socket does.
    fn receive(&mut self) {
        let mut arrived = due(&mut self.to_hub, self.now);
        let (now, hub) = (self.now, &mut self.hub);
        self.receive.time(|| {
            for datagram in &mut arrived {
                let received = hub.handle_datagram(now, terminal_address(), datagram);
                received.expect("a datagram of the peer is valid");
            }
            while let Some((peer, event)) = hub.poll_event() {
                let Event::Readable { stream } = event else { continue };
                let Some(relay) = hub.peer(peer) else { continue };
                loop {
                    let octets = relay.peek(stream).len();
                    if octets == 0 || relay.consume(now, stream, octets).is_err() {
                        break;
                    }
                }
            }
        });
    }

    /// Transmits STATs and credit from the hub to the terminal, and fills streams with room.
    fn acknowledge(&mut self) {
        loop {
            let mut batch = TransmitBatch::new(&mut self.buffer, BATCH);
            let (now, hub) = (self.now, &mut self.hub);
            if self.receive.time(|| hub.poll_transmit(now, &mut batch)).is_none() {
                break;
            }
            let at = now + self.delay;
            self.to_terminal.extend(batch.datagrams().map(|datagram| (at, datagram.to_vec())));
        }
        let mut arrived = due(&mut self.to_terminal, self.now);
        let (now, terminal) = (self.now, &mut self.terminal);
        // As a whole, because reading the clock takes about as long as an event.
        self.transmit.time(|| {
            for datagram in &mut arrived {
                terminal.handle_datagram(now, datagram).expect("the hub's datagram is valid");
            }
            while let Some(event) = terminal.poll_event() {
                if let Event::Writable { stream } = event {
                    write(terminal, now, stream, &self.block);
                }
            }
        });
    }
}

/// Writes what the stream has room for.
fn write(terminal: &mut Relay, now: Instant, stream: StreamId, block: &[u8]) {
    while terminal.write(now, stream, block).is_ok_and(|written| written == block.len()) {}
}

/// Takes the datagrams that have arrived.
fn due(datagrams: &mut VecDeque<(Instant, Vec<u8>)>, now: Instant) -> Vec<Vec<u8>> {
    let count = datagrams.partition_point(|(at, _)| *at <= now);
    datagrams.drain(..count).map(|(_, datagram)| datagram).collect()
}
