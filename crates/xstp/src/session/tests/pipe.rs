//! Two sessions and a simulated path between them, under virtual time.

use super::*;
use units::RngStream;

/// Impairments of the path.
pub(super) struct Faults {
    pub(super) delay: Span,
    pub(super) jitter: Span,
    pub(super) loss: f64,
    pub(super) duplicate: f64,
    /// Time in which all packets are lost.
    pub(super) outage: Option<(Instant, Instant)>,
    /// Direction of the outage, by its sender; `None`: both.
    pub(super) outage_from: Option<usize>,
    /// Rate of each direction, with an unlimited queue.
    pub(super) rate: Option<BitRate>,
}

impl Faults {
    pub(super) fn clean(delay: Span) -> Self {
        let (outage, outage_from) = (None, None);
        Self {
            delay,
            jitter: Span::ZERO,
            loss: 0.0,
            duplicate: 0.0,
            outage,
            outage_from,
            rate: None,
        }
    }
}

/// A segment that was sent.
pub(super) struct Entry {
    pub(super) at: Instant,
    pub(super) from: usize,
    pub(super) octets: Vec<u8>,
}

pub(super) struct World {
    pub(super) now: Instant,
    /// Client and server.
    pub(super) ends: [Peer; 2],
    pub(super) faults: Faults,
    pub(super) log: Vec<Entry>,
    rng: RngStream,
    in_flight: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    lines: [units::Serializer; 2],
    next: u64,
    keep_log: bool,
    /// Whether STATs are without their A block.
    strip_arrivals: bool,
}

impl World {
    pub(super) fn new(ends: [Peer; 2], faults: Faults, seed: u64) -> Self {
        let line = units::Serializer::new(faults.rate.unwrap_or(BitRate::from_bps(u64::MAX)));
        Self {
            now: Instant::ZERO,
            ends,
            faults,
            log: Vec::new(),
            rng: RngStream::new(seed, 0, "pipe"),
            in_flight: BTreeMap::new(),
            lines: [line.clone(), line],
            next: 0,
            keep_log: true,
            strip_arrivals: false,
        }
    }

    pub(super) fn pair(client: &SessionConfig, server: &SessionConfig, faults: Faults) -> Self {
        Self::new([Peer::client(client), Peer::server(server)], faults, 1)
    }

    pub(super) fn without_log(mut self) -> Self {
        self.keep_log = false;
        self
    }

    /// From now on STATs are without their A block.
    pub(super) fn strip_arrivals(&mut self) {
        self.strip_arrivals = true;
    }

    /// Runs until `done` holds or `until`; returns whether `done` holds.
    pub(super) fn run(&mut self, until: Instant, done: impl Fn(&[Peer; 2]) -> bool) -> bool {
        loop {
            self.flush();
            if done(&self.ends) {
                return true;
            }
            let arrival = self.in_flight.keys().next().map(|&(at, _)| at);
            let timers = self.ends.iter().filter_map(|end| end.session.poll_timeout());
            let Some(next) = timers.chain(arrival).min().filter(|&next| next <= until) else {
                self.now = until;
                return false;
            };
            self.now = self.now.max(next);
            while let Some(entry) = self.in_flight.first_entry() {
                if entry.key().0 > self.now {
                    break;
                }
                let (to, octets) = entry.remove();
                let end = &mut self.ends[to];
                let _ = end.session.handle_segment(self.now, &octets, &mut end.upper);
            }
        }
    }

    fn flush(&mut self) {
        for from in 0..2 {
            for octets in self.ends[from].send(self.now) {
                let octets = if self.strip_arrivals { without_arrival(&octets) } else { octets };
                self.enter(from, octets);
            }
        }
    }

    fn enter(&mut self, from: usize, octets: Vec<u8>) {
        let now = self.now;
        let is_affected = self.faults.outage_from.is_none_or(|affected| affected == from);
        let down =
            is_affected && self.faults.outage.is_some_and(|(start, end)| now >= start && now < end);
        let lost = self.rng.chance(self.faults.loss) || down;
        let copies = 1 + u32::from(self.rng.chance(self.faults.duplicate));
        let size = octets.len() + self.ends[from].session.config.packet_overhead;
        let out = self.lines[from].send(now, size as u64);
        if !lost {
            for _ in 0..copies {
                let jitter = self.rng.below(self.faults.jitter.as_nanos() + 1);
                let at = out + self.faults.delay + Span::from_nanos(jitter);
                self.next += 1;
                self.in_flight.insert((at, self.next), (1 - from, octets.clone()));
            }
        }
        if self.keep_log {
            self.log.push(Entry { at: now, from, octets });
        }
    }

    /// Octets of IP packets that `from` has sent since `since`.
    pub(super) fn bytes_from(&self, from: usize, since: Instant) -> u64 {
        let overhead = self.ends[from].session.config.packet_overhead;
        let own = self.log.iter().filter(|entry| entry.from == from && entry.at >= since);
        own.map(|entry| (entry.octets.len() + overhead) as u64).sum()
    }
}

/// The segment without the A block of its STAT (XSTP-3.8.2).
fn without_arrival(octets: &[u8]) -> Vec<u8> {
    let segment = Segment::decode(&Profile::Sealed, octets).unwrap();
    let Some(stat) = segment.stat_part().filter(|stat| stat.arrival.is_some()) else {
        return octets.to_vec();
    };
    // The block follows the fixed fields and two varints; what precedes the STAT is left out.
    let arrival = stat.arrival.unwrap();
    let block = [arrival.at.to_be_bytes(), arrival.octets.to_be_bytes()].concat();
    let echo = stat.echo.timestamp.to_be_bytes();
    let at = octets.windows(8).position(|octets| octets == block).unwrap();
    let flags = octets[..at].windows(4).rposition(|octets| octets == echo).unwrap() - 4;
    let mut stripped = octets.to_vec();
    stripped.drain(at..at + 8);
    stripped[flags] &= !1;
    assert_eq!(
        Segment::decode(&Profile::Sealed, &stripped).unwrap().stat_part().unwrap().arrival,
        None
    );
    stripped
}
