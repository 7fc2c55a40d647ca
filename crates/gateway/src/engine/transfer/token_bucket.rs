//! A token bucket that bounds the rate at which all connections together send over the satellite.

use units::{BitRate, Instant, Span};

/// Bytes that IP and TCP with time stamps add to a segment.
const HEADERS: u64 = 52;

/// Tokens are added at the link's rate, up to the depth of the bucket.
///
/// The state is the time at which the bucket was or will be empty. That needs no fractions of
/// tokens, and no work while nothing is sent.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    rate: BitRate,
    /// How long a full bucket lasts.
    depth: Span,
    /// Time since which tokens were added; in the future while there is a deficit.
    empty_at: Instant,
    /// Bytes of payload in a full segment.
    segment: u64,
    /// Bytes that the link adds to each packet, with the headers.
    overhead: u64,
}

impl TokenBucket {
    /// Full at `now`. `depth` in bytes, at least a packet; `mtu` and `link_overhead` in bytes.
    pub(crate) fn new(
        now: Instant,
        rate: BitRate,
        depth: u64,
        mtu: u32,
        link_overhead: u32,
    ) -> Self {
        let segment = u64::from(mtu).saturating_sub(HEADERS).max(1);
        let depth = rate.time_for(depth.max(u64::from(mtu) + u64::from(link_overhead)));
        let empty_at = Instant::from_nanos(now.as_nanos().saturating_sub(depth.as_nanos()));
        let overhead = HEADERS + u64::from(link_overhead);
        Self { rate, depth, empty_at, segment, overhead }
    }

    /// Bytes of payload that may be sent at `now`.
    pub(crate) fn payload(&mut self, now: Instant) -> u64 {
        self.spill(now);
        let tokens = self.rate.bytes_in(now.since(self.empty_at));
        let packet = self.segment + self.overhead;
        // What is left of a packet holds headers first.
        tokens / packet * self.segment + (tokens % packet).saturating_sub(self.overhead)
    }

    /// Takes the tokens of `payload` bytes in segments as large as they can be. There may be a
    /// deficit afterwards: the kernel retransmits without a permission.
    pub(crate) fn take(&mut self, now: Instant, payload: u64) {
        self.spill(now);
        let bytes = payload + payload.div_ceil(self.segment) * self.overhead;
        self.empty_at += self.rate.time_for(bytes);
    }

    /// When `payload` bytes may be sent.
    pub(crate) fn when(&self, payload: u64) -> Instant {
        let bytes = payload + payload.div_ceil(self.segment) * self.overhead;
        let needed = self.rate.time_for(bytes).min(self.depth);
        self.empty_at + needed
    }

    /// Bytes of payload in a full segment.
    pub(crate) fn segment(&self) -> u64 {
        self.segment
    }

    /// A full bucket takes no more.
    fn spill(&mut self, now: Instant) {
        let full = Instant::from_nanos(now.as_nanos().saturating_sub(self.depth.as_nanos()));
        self.empty_at = self.empty_at.max(full);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::from_nanos(5_000_000_000);

    /// 10 Mbit/s, 1,500-byte packets, ten of them deep.
    fn bucket() -> TokenBucket {
        TokenBucket::new(START, BitRate::from_mbps(10), 15_000, 1500, 0)
    }

    #[test]
    fn a_full_bucket_lets_its_depth_go_at_once_and_then_the_rate() {
        let mut bucket = bucket();
        assert_eq!(bucket.payload(START), 10 * 1448);
        bucket.take(START, 10 * 1448);
        assert_eq!(bucket.payload(START), 0);
        let mut sent = 0;
        let mut now = START;
        let end = START + Span::from_secs(10);
        while now < end {
            now = bucket.when(1448).max(now);
            assert!(bucket.payload(now) >= 1448, "what was promised for {now:?} is there");
            bucket.take(now, 1448);
            sent += 1500 * 8;
        }
        let share = f64::from(sent) / 100e6;
        assert!((0.999..1.001).contains(&share), "{share}");
    }

    #[test]
    fn rest_fills_it_no_further_than_its_depth() {
        let mut bucket = bucket();
        bucket.take(START, 10 * 1448);
        let later = START + Span::from_secs(3600);
        assert_eq!(bucket.payload(later), 10 * 1448);
    }

    #[test]
    fn retransmissions_of_the_kernel_are_charged() {
        let mut bucket = bucket();
        bucket.take(START, 20 * 1448);
        assert_eq!(bucket.payload(START), 0);
        // The deficit is ten packets, 12 ms of the link, and one more is to be sent.
        let due = bucket.when(1448);
        assert_eq!(due, START + BitRate::from_mbps(10).time_for(11 * 1500));
        assert_eq!(bucket.payload(due), 1448);
    }

    #[test]
    fn more_than_a_bucketful_is_not_waited_for() {
        let mut bucket = bucket();
        bucket.take(START, 10 * 1448);
        let due = bucket.when(1 << 30);
        assert_eq!(bucket.payload(due), 10 * 1448);
    }

    #[test]
    fn small_packets_cost_their_headers() {
        let mut bucket = bucket();
        bucket.take(START, 10 * 1448);
        bucket.take(START, 1);
        assert_eq!(bucket.when(1), START + BitRate::from_mbps(10).time_for(2 * 53));
    }
}
