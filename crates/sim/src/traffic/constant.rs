//! UDP at a constant rate, numbered and timed.

use crate::Pattern;
use crate::network::{Address, IPV4_UDP, Node, Outbox, Packet};
use units::{BitRate, Instant, Span};

/// Octets before the pattern of a datagram: its number and when it was sent, in nanoseconds.
const HEAD: usize = 16;

/// What a [`ConstantSource`] sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantRate {
    /// Bits per second of IP packets.
    pub rate: BitRate,
    /// Bytes of each IP packet; at least 44.
    pub packet: usize,
    /// When the first goes.
    pub from: Instant,
    /// None goes from here on.
    pub until: Instant,
}

/// A host that sends datagrams evenly spaced to one address.
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
    /// When packets are shorter than 44 bytes.
    pub fn new(plan: ConstantRate, port: u16, to: Address) -> Self {
        assert!(plan.packet >= IPV4_UDP + HEAD, "packets of at least 44 bytes");
        Self { plan, to, port, sent: 0 }
    }

    /// Datagrams sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// When the next goes.
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

/// A host that takes such datagrams of one source, and counts.
#[derive(Debug, Default)]
pub struct ConstantSink {
    received: u64,
    bytes: u64,
    /// One more than the highest number.
    expected: u64,
    late: u64,
    delays: Delays,
}

/// How long datagrams were under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// The shortest.
    pub least: Option<Span>,
    /// The longest.
    pub most: Span,
    /// The mean deviation of one from the next, smoothed by a sixteenth (RFC 3550, section
    /// 6.4.1).
    pub jitter: Span,
    last: Option<Span>,
}

impl ConstantSink {
    /// Nothing came yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Datagrams that came.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Bytes of their IP packets.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Datagrams that did not come, and were sent before one that did.
    pub fn lost(&self) -> u64 {
        self.expected - self.received
    }

    /// Datagrams that came after one that was sent later.
    pub fn overtaken(&self) -> u64 {
        self.late
    }

    /// How long they were under way.
    pub fn delays(&self) -> Delays {
        self.delays
    }
}

impl Node for ConstantSink {
    /// # Panics
    /// When a byte is not the one that was sent.
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

    /// 500 bytes at a time, 400 kbit/s for a second, over a link.
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
    fn a_packet_every_ten_milliseconds_without_jitter() {
        let (sent, sink) = run("both rate 1mbit delay 50ms");
        assert_eq!((sent, sink.received(), sink.bytes()), (100, 100, 50_000));
        assert_eq!((sink.lost(), sink.overtaken()), (0, 0));
        // 4 ms on the line and 50 ms on the way, each of them.
        let delays = sink.delays();
        assert_eq!(
            (delays.least, delays.most),
            (Some(Span::from_millis(54)), Span::from_millis(54))
        );
        assert_eq!(delays.jitter, Span::ZERO);
    }

    #[test]
    fn what_the_line_does_not_take_waits_and_is_lost() {
        // Half the rate, five places: one in service, four that wait.
        let (sent, sink) = run("both rate 200kbit limit 5p");
        assert_eq!(sent, 100);
        // 50 go in the second, and the five that are left after it.
        assert!((50..=55).contains(&sink.received()), "{}", sink.received());
        assert!(sink.lost() > 40 && sink.delays().most <= Span::from_millis(100));
    }
}
