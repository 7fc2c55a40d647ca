//! The path, with a minimal stop-and-wait protocol.

use super::*;
use crate::{Pattern, StreamCheck};

/// Sends numbered pieces of a pattern, one at a time, until each is acknowledged.
struct Sender {
    next: u64,
    last: u64,
    due: Instant,
    pattern: Pattern,
    sent: bool,
}

const PIECE: usize = 100;
const INTERVAL: Span = Span::from_millis(900);

fn check_sum(bytes: &[u8]) -> [u8; 8] {
    let mut hash = TraceHash::new();
    hash.event(Instant::ZERO, 0, bytes);
    hash.value().to_be_bytes()
}

impl Endpoint for Sender {
    fn handle_datagram(&mut self, now: Instant, datagram: &mut [u8]) {
        let Some((sum, rest)) = datagram.split_first_chunk::<8>() else { return };
        if *sum == check_sum(rest) && *rest == self.next.to_be_bytes() {
            self.next += 1;
            self.due = now;
            self.sent = false;
        }
    }
    fn poll_transmit(&mut self, now: Instant, send: &mut dyn FnMut(&[u8])) {
        if self.next == self.last || (self.sent && now < self.due) {
            return;
        }
        let mut datagram = vec![0; 16 + PIECE];
        datagram[8..16].copy_from_slice(&self.next.to_be_bytes());
        self.pattern.fill(self.next * PIECE as u64, &mut datagram[16..]);
        let sum = check_sum(&datagram[8..]);
        datagram[..8].copy_from_slice(&sum);
        send(&datagram);
        self.sent = true;
        self.due = now + INTERVAL;
    }
    fn poll_timeout(&self) -> Option<Instant> {
        (self.next < self.last).then_some(self.due)
    }
    fn handle_timeout(&mut self, _: Instant) {}
}

/// Acknowledges each piece, and accepts those in order.
struct Receiver {
    next: u64,
    check: StreamCheck,
    answers: Vec<u64>,
}

impl Endpoint for Receiver {
    fn handle_datagram(&mut self, _: Instant, datagram: &mut [u8]) {
        let Some((sum, rest)) = datagram.split_first_chunk::<8>() else { return };
        if *sum != check_sum(rest) {
            return;
        }
        let Some((number, piece)) = rest.split_first_chunk::<8>() else { return };
        let number = u64::from_be_bytes(*number);
        if number == self.next {
            self.check.take(piece).expect("each byte once, in order");
            self.next += 1;
        }
        if number < self.next {
            self.answers.push(number);
        }
    }
    fn poll_transmit(&mut self, _: Instant, send: &mut dyn FnMut(&[u8])) {
        for number in self.answers.drain(..) {
            let bytes = number.to_be_bytes();
            send(&[check_sum(&bytes), bytes].concat());
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    fn handle_timeout(&mut self, _: Instant) {}
}

fn path(config: &PathConfig, pieces: u64) -> Path<Sender, Receiver> {
    let pattern = Pattern(9);
    let sender = Sender { next: 0, last: pieces, due: Instant::ZERO, pattern, sent: false };
    let receiver = Receiver { next: 0, check: StreamCheck::new(pattern), answers: Vec::new() };
    Path::new(config, sender, receiver).expect("a valid path")
}

fn geo(words: &str) -> PathConfig {
    let mut link = satlink::profiles::by_name("geo").expect("a profile");
    satlink::words::apply_link(&mut link, words).expect("right words");
    PathConfig::new(link)
}

fn at(secs: u64) -> Instant {
    Instant::ZERO + Span::from_secs(secs)
}

#[test]
fn time_follows_from_the_link() {
    let mut path = path(&geo(""), 1);
    assert!(path.run_while(at(10), |path| path.terminal.next < 1));
    // Return: 100 + 16 + 28 octets at 1 Mbit/s; forward: 16 + 28 at 10 Mbit/s; 300 ms each.
    let expected = Span::from_micros(144 * 8) + Span::from_nanos(44 * 800) + Span::from_millis(600);
    assert_eq!(path.now(), Instant::ZERO + expected);
    assert_eq!(path.offered(Direction::Return).between(at(0), at(1)).bytes, 144);
    assert_eq!(path.delivered(Direction::Forward).between(at(0), at(1)).bytes, 44);
}

/// A writer whose content can be read while the path still owns it.
#[derive(Clone, Default)]
struct Written(std::rc::Rc<std::cell::RefCell<Vec<u8>>>);

impl std::io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn captures_and_series_do_not_affect_the_run() {
    let run = |looked_at: bool| {
        let mut path = path(&geo("loss 10%"), 20);
        let file = Written::default();
        if looked_at {
            path.capture(End::Hub, file.clone());
            path.sample(Span::from_millis(500), "next", "", |path| Some(path.hub.next as f64));
        }
        path.run_until(at(60));
        path.finish_captures().expect("memory takes everything");
        let samples: Vec<f64> = path.series().flat_map(|one| one.samples()).map(|s| s.1).collect();
        (path.trace_hash(), path.now(), file.0.take(), samples)
    };
    let (plain, looked_at) = (run(false), run(true));
    assert_eq!((plain.0, plain.1), (looked_at.0, looked_at.1), "looking changes nothing");
    assert_eq!(looked_at.3.len(), 121);
    assert_eq!((looked_at.3[0], looked_at.3[120]), (0.0, 20.0));
    // The kind of block, its length: an enhanced packet block (6) for each packet at the hub;
    // packets lost by the link on the return path are not included.
    let (mut rest, mut packets) = (looked_at.2.as_slice(), Vec::new());
    while let [kind, _, _, _, a, b, c, d, ..] = *rest {
        let len = u32::from_le_bytes([a, b, c, d]) as usize;
        if kind == 6 {
            packets.push(&rest[28..len - 4]);
        }
        rest = &rest[len..];
    }
    let from = |source: [u8; 4]| packets.iter().filter(|packet| packet[12..16] == source).count();
    let (terminal, hub) = (from([10, 0, 0, 1]), from([10, 0, 0, 2]));
    assert_eq!(terminal + hub, packets.len());
    assert!(terminal >= 20 && hub >= terminal, "every piece that arrives is answered");
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let run = |seed| {
        let mut config = geo("loss 10% delay 300ms 50ms");
        config.seed = seed;
        config.faults = Faults { corrupt: 0.1, truncate: 0.1, duplicate: 0.1, replay: 0.1 };
        let mut path = path(&config, 40);
        path.run_until(at(200));
        (path.trace_hash(), path.hub.check.received())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
}

#[test]
fn all_pieces_arrive_after_faults_and_an_outage() {
    for seed in 0..20 {
        let mut config = geo("loss 5% outage at 20s for 10s");
        config.seed = seed;
        config.faults = Faults { corrupt: 0.2, truncate: 0.2, duplicate: 0.2, replay: 0.2 };
        let mut path = path(&config, 100);
        path.run_until(at(60));
        assert!(path.link().audit(), "seed {seed}");
        let before = path.hub.check.received();
        path.change_at(at(60), Change::Faults(Faults::default()));
        path.change_at(at(60), Change::Link(Box::new(geo("").link)));
        assert!(path.run_while(at(200), |path| path.hub.next < 100), "seed {seed}: no progress");
        assert_eq!(path.hub.check.received(), 100 * PIECE as u64);
        assert!(before < path.hub.check.received(), "the faults cost something");
    }
}

#[test]
#[should_panic(expected = "no progress of time")]
fn endpoint_that_is_always_due_is_detected() {
    struct Impatient;
    impl Endpoint for Impatient {
        fn handle_datagram(&mut self, _: Instant, _: &mut [u8]) {}
        fn poll_transmit(&mut self, _: Instant, _: &mut dyn FnMut(&[u8])) {}
        fn poll_timeout(&self) -> Option<Instant> {
            Some(Instant::ZERO)
        }
        fn handle_timeout(&mut self, _: Instant) {}
    }
    let mut path = Path::new(&geo(""), Impatient, Impatient).expect("valid");
    path.run_until(at(1));
}
