//! UDP at a constant rate with sequence numbers and timestamps.

use crate::Pattern;
use crate::network::{Address, IPV4_UDP, Node, Outbox, Packet};
use units::{BitRate, Instant, Span};

/// Octets before the pattern of a datagram: its number and its time of transmission in nanoseconds.
const HEAD: usize = 16;

/// The traffic of a [`ConstantSource`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantRate {
    /// Rate of IP packets in bit/s.
    pub rate: BitRate,
    /// Octets of each IP packet; at least 44.
    pub packet: usize,
    /// When the first is sent.
    pub from: Instant,
    /// No datagram is sent from this time on.
    pub until: Instant,
}

/// A host that sends equally spaced datagrams to one address.
#[derive(Debug)]
pub struct ConstantSource {
    plan: ConstantRate,
    to: Address,
    port: u16,
    sent: u64,
}

impl ConstantSource {
    /// Sends from `port` to `to`.
    ///
    /// # Panics
    /// If packets are shorter than 44 octets.
    pub fn new(plan: ConstantRate, port: u16, to: Address) -> Self {
        assert!(plan.packet >= IPV4_UDP + HEAD, "packets of at least 44 bytes");
        Self { plan, to, port, sent: 0 }
    }

    /// Datagrams sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// When the next datagram is sent.
    fn next(&self) -> Option<Instant> {
        let at = self.plan.from + self.plan.rate.time_for(self.plan.packet as u64 * self.sent);
        (at < self.plan.until).then_some(at)
    }
}

impl Node for ConstantSource {
    fn handle_packet(&mut self, _: Instant, _: &mut Packet) {}

    fn poll_transmit(&mut self, now: Instant, out: &mut Outbox<'_>) {
        while self.next().is_some_and(|at| at <= now) {
            let mut payload = out.buffer(self.plan.packet - IPV4_UDP);
            let (head, body) = payload.split_at_mut(HEAD);
            head[..8].copy_from_slice(&self.sent.to_be_bytes());
            head[8..].copy_from_slice(&now.as_nanos().to_be_bytes());
            Pattern(self.sent).fill(0, body);
            out.send(Packet::udp(Address::new(out.node(), self.port), self.to, payload));
            self.sent += 1;
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next()
    }

    fn handle_timeout(&mut self, _: Instant) {}
}

/// A host that receives the datagrams of one source.
#[derive(Debug, Default)]
pub struct ConstantSink {
    received: u64,
    bytes: u64,
    /// The highest number plus one.
    expected: u64,
    late: u64,
    delays: Delays,
}

/// One-way delays of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// Minimum.
    pub least: Option<Span>,
    /// Maximum.
    pub most: Span,
    /// Smoothed difference between consecutive datagrams with a gain of 1/16 (RFC 3550, section
    /// 6.4.1).
    pub jitter: Span,
    last: Option<Span>,
}

impl ConstantSink {
    /// Creates a sink without datagrams.
    pub fn new() -> Self {
        Self::default()
    }

    /// Datagrams received.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Octets of their IP packets.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Datagrams that were sent before one that arrived, and did not arrive.
    pub fn lost(&self) -> u64 {
        self.expected - self.received
    }

    /// Datagrams that arrived after one that was sent later.
    pub fn overtaken(&self) -> u64 {
        self.late
    }

    /// One-way delays.
    pub fn delays(&self) -> Delays {
        self.delays
    }
}

impl Node for ConstantSink {
    /// # Panics
    /// If octets differ from those sent.
    fn handle_packet(&mut self, now: Instant, packet: &mut Packet) {
        let bytes = packet.bytes();
        let Some((head, body)) = bytes.split_at_checked(HEAD) else { return };
        let word = |bytes: &[u8]| bytes.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        let (number, sent) = (word(&head[..8]), word(&head[8..]));
        assert_eq!(Pattern(number).mismatch(0, body), None, "the source's bytes");
        self.received += 1;
        self.bytes += (IPV4_UDP + bytes.len()) as u64;
        self.late += u64::from(number < self.expected);
        self.expected = self.expected.max(number + 1);
        self.delays.take(now.since(Instant::from_nanos(sent)));
    }

    fn poll_transmit(&mut self, _: Instant, _: &mut Outbox<'_>) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn handle_timeout(&mut self, _: Instant) {}
}

impl Delays {
    fn take(&mut self, delay: Span) {
        self.least = Some(self.least.map_or(delay, |least| least.min(delay)));
        self.most = self.most.max(delay);
        if let Some(last) = self.last.replace(delay) {
            let change = delay.max(last) - delay.min(last);
            self.jitter = (self.jitter * 15 + change) / 16;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Network;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Span::from_millis(millis)
    }

    /// 500 octets at a time, 400 kbit/s for 1 s, over a link.
    fn run(words: &str) -> (u64, ConstantSink) {
        let mut net = Network::new(1, 0);
        let sink = net.host(ConstantSink::new());
        let rate = BitRate::from_kbps(400);
        let plan = ConstantRate { rate, packet: 500, from: at(100), until: at(1_100) };
        let source = net.host(ConstantSource::new(plan, 7, Address::new(sink, 9)));
        let link = satlink::words::parse_link(words).expect("right words");
        net.link(source, sink, &link);
        net.run_until(at(10_000));
        let sent = net.node::<ConstantSource>(source).sent();
        (sent, core::mem::take(net.node_mut::<ConstantSink>(sink)))
    }

    #[test]
    fn packet_every_ten_milliseconds_without_jitter() {
        let (sent, sink) = run("both rate 1mbit delay 50ms");
        assert_eq!((sent, sink.received(), sink.bytes()), (100, 100, 50_000));
        assert_eq!((sink.lost(), sink.overtaken()), (0, 0));
        // 4 ms of transmission and 50 ms of propagation for each.
        let delays = sink.delays();
        assert_eq!(
            (delays.least, delays.most),
            (Some(Span::from_millis(54)), Span::from_millis(54))
        );
        assert_eq!(delays.jitter, Span::ZERO);
    }

    #[test]
    fn excess_traffic_is_queued_and_dropped() {
        // Half the rate, five places: one in service, four queued.
        let (sent, sink) = run("both rate 200kbit limit 5p");
        assert_eq!(sent, 100);
        // 50 are delivered within the second, and the five queued ones after it.
        assert!((50..=55).contains(&sink.received()), "{}", sink.received());
        assert!(sink.lost() > 40 && sink.delays().most <= Span::from_millis(100));
    }
}
