//! Octets over time.

use units::{Instant, Span};

/// Counts octets in bins of equal length, starting at the epoch. The number of bins is bounded: at
/// the limit pairs of bins are merged into bins of twice the length.
#[derive(Clone, Debug)]
pub struct Meter {
    bin: Span,
    limit: usize,
    bins: Vec<Sample>,
    /// End of the last bin.
    until: Instant,
}

/// Default maximum number of bins: 10 ms each over more than five minutes.
const LIMIT: usize = 1 << 15;

/// One bin of a [`Meter`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Packets in it.
    pub packets: u64,
    /// Their octets, headers included.
    pub bytes: u64,
}

impl Meter {
    /// A meter with bins of this length and at most 32,768 bins.
    ///
    /// # Panics
    /// If `bin` is zero.
    pub fn new(bin: Span) -> Self {
        Self::bounded(bin, LIMIT)
    }

    /// A meter with bins of this length and at most `limit` bins.
    ///
    /// # Panics
    /// If `bin` is zero or `limit` is below two.
    pub fn bounded(bin: Span, limit: usize) -> Self {
        assert!(!bin.is_zero(), "a bin needs some length");
        assert!(limit >= 2, "two bins become one");
        Self { bin, limit, bins: Vec::new(), until: Instant::ZERO }
    }

    /// Counts a packet of `bytes` octets at `at`.
    pub fn count(&mut self, at: Instant, bytes: u64) {
        let recent = at < self.until && at + self.bin >= self.until;
        let index = if recent { self.bins.len() - 1 } else { self.find(at) };
        let bin = &mut self.bins[index];
        bin.packets += 1;
        bin.bytes += bytes;
    }

    /// Returns the bin of `at`, which it creates if necessary.
    fn find(&mut self, at: Instant) -> usize {
        while self.index(at) >= self.limit {
            let halves = self.bins.chunks(2).map(sum);
            self.bins = halves.collect();
            self.bin = self.bin * 2;
        }
        let index = self.index(at);
        if index >= self.bins.len() {
            self.bins.resize(index + 1, Sample::default());
        }
        self.until = Instant::ZERO + self.bin * self.bins.len() as u64;
        index
    }

    fn index(&self, at: Instant) -> usize {
        (at.as_nanos() / self.bin.as_nanos()) as usize
    }

    /// Packets and octets from `from` to `to`, in whole bins.
    pub fn between(&self, from: Instant, to: Instant) -> Sample {
        let end = self.index(to).min(self.bins.len());
        let start = self.index(from).min(end);
        sum(&self.bins[start..end])
    }

    /// Sum of all bins.
    pub fn total(&self) -> Sample {
        sum(&self.bins)
    }

    /// All bins.
    pub fn bins(&self) -> &[Sample] {
        &self.bins
    }

    /// Current length of a bin.
    pub fn bin(&self) -> Span {
        self.bin
    }
}

fn sum(bins: &[Sample]) -> Sample {
    bins.iter().fold(Sample::default(), |sum, bin| Sample {
        packets: sum.packets + bin.packets,
        bytes: sum.bytes + bin.bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn bytes_fall_into_their_bins() {
        let mut meter = Meter::new(Span::from_millis(100));
        for ms in [0, 99, 100, 350, 199] {
            meter.count(at(ms), 10);
        }
        let bytes: Vec<_> = meter.bins().iter().map(|bin| bin.bytes).collect();
        assert_eq!(bytes, [20, 20, 0, 10]);
        assert_eq!(meter.between(at(100), at(1_000)), Sample { packets: 3, bytes: 30 });
        assert_eq!(meter.between(at(500), at(900)), Sample::default());
        assert_eq!(meter.total(), Sample { packets: 5, bytes: 50 });
    }

    #[test]
    fn number_of_bins_is_bounded() {
        let mut meter = Meter::bounded(Span::from_millis(10), 8);
        for ms in 0..1_000 {
            meter.count(at(ms), 1);
            assert!(meter.bins().len() <= 8);
        }
        assert_eq!(meter.bin(), Span::from_millis(160));
        assert_eq!(meter.between(at(0), at(160)), Sample { packets: 160, bytes: 160 });
        assert_eq!(meter.total().packets, 1_000);
    }
}
